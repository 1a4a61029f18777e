#!/usr/bin/env bash
# Holds this program's store loops and strategies against likwid-bench and
# perf bench, side by side: every round runs all of them one after another, and the
# ratios are taken round by round. Needs root on Debian where the peers are missing.
# Usage: ./scripts/bench-peers.sh [ROUNDS]        (default 5)
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-5}

have() { command -v "$1" >/dev/null 2>&1; }
if ! have likwid-bench || ! have perf; then
    echo "installing likwid and linux-perf" >&2
    apt-get install -y --no-install-recommends likwid linux-perf >&2
fi
cargo bench --bench peers --no-run --locked >&2
bench=$(cargo bench --bench peers --no-run --locked --message-format=json 2>/dev/null |
    sed -n 's/.*"executable":"\([^"]*peers[^"]*\)".*/\1/p' | tail -n 1)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# likwid's MByte is 10^6 bytes; prints GB/s.
likwid() { # test threads
    likwid-bench -t "$1" -w "S0:1GB:$2" 2>/dev/null |
        awk '/^MByte\/s/ { printf "%.3f\n", $2 / 1000 }'
}

# perf's GB is 2^30 bytes; prints the best of all functions in GB/s.
perf_best() {
    perf bench mem memset -s 1GB -f all 2>/dev/null |
        awk '/GB\/sec/ { rate = $1 * 1.073741824; if (rate > best) best = rate }
             END { printf "%.3f\n", best }'
}

for round in $(seq "$rounds"); do
    echo "round $round of $rounds" >&2
    "$bench" --bench >"$out/ours"
    while read -r name threads value store; do
        [ "$name" = "#" ] && continue
        echo "$round $name $threads $value $store"
    done <"$out/ours" >>"$out/all"
    for threads in 1 2; do
        for test in store store_mem_avx512; do
            rate=$(likwid "$test" "$threads")
            [ -n "$rate" ] && echo "$round likwid:$test $threads $rate -" >>"$out/all"
        done
    done
    echo "$round perf-best 1 $(perf_best) -" >>"$out/all"
done

python3 - "$out/all" <<'PYTHON'
import collections
import statistics
import sys

rows = collections.defaultdict(dict)  # (name, threads) -> round -> value, store
best = {}
for line in open(sys.argv[1]):
    rnd, name, threads, value, store = line.split()
    key = (name, int(threads))
    value = float(value)
    old = rows[key].get(rnd)
    if old is None or value > old[0]:
        rows[key][rnd] = (value, store)


def median(name, threads):
    return statistics.median(v for v, _ in rows[(name, threads)].values())


def ratio(ours, theirs, threads, peer_threads=None, ours_value=lambda v: v):
    a, b = rows[(ours, threads)], rows[(theirs, peer_threads or threads)]
    pairs = [ours_value(a[r][0]) / b[r][0] for r in a if r in b]
    return statistics.median(pairs) if pairs else float("nan")


def line(text, value, wanted):
    if wanted is None:
        print(f"{text:64} {value:6.2f}   no peer does that")
        return
    verdict = "ok" if value >= wanted else "BELOW"
    print(f"{text:64} {value:6.2f}   wanted {wanted:.2f}  {verdict}")


print("medians")
for (name, threads), values in sorted(rows.items()):
    stores = collections.Counter(store for _, store in values.values())
    unit = "ns/page" if name in ("deferred", "fused-nt") else "GB/s"
    print(f"  {name:24} {threads} thread(s) {median(name, threads):8.2f} {unit}"
          f"   {stores.most_common(1)[0][0]}")
print("ratios, round by round")
for threads in (1, 2):
    if ("likwid:store_mem_avx512", threads) in rows:
        line(f"non-temporal fill, zeroes / likwid store_mem_avx512, {threads} thread(s)",
             ratio("nt-fill", "likwid:store_mem_avx512", threads), 0.97)
        line(f"non-temporal fill, other data / likwid, {threads} thread(s)",
             ratio("nt-image-fill", "likwid:store_mem_avx512", threads), 0.97)
line("temporal fill / best of perf bench mem memset, 1 thread",
     ratio("temporal-fill", "perf-best", 1), 0.97)
# Peers store 1 GiB in one go. Page by page is what a kernel does; string instructions pay
# for every call on some processors.
for way, wanted in (("one-shot", 0.97), ("by-2MiB", None)):
    line(f"clearing 1 GiB, temporal, {way} / best of perf bench mem memset",
         ratio(f"temporal-clear-{way}", "perf-best", 1), wanted)
    if ("likwid:store_mem_avx512", 1) in rows:
        line(f"clearing 1 GiB, non-temporal, {way} / likwid store_mem_avx512",
             ratio(f"nt-clear-{way}", "likwid:store_mem_avx512", 1), wanted)
line("deferred with free as 64 B per page / likwid store, 1 thread",
     ratio("deferred", "likwid:store", 1, ours_value=lambda ns: 64 / ns), 0.80)
for threads in (1, 2):
    line(f"fused-nt with free, times faster than deferred, {threads} thread(s)",
         1 / ratio("fused-nt", "deferred", threads), 2.6)
PYTHON
