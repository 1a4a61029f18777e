#!/bin/sh
# Holds `estimate --calibration` against `compare` on this host: every strategy, with one
# thread per node and with two. Prints each difference and exits with 1 when one is over
# LIMIT percent (default 10). A benchmark, not a test: run it on an idle machine.
set -eu
limit=${LIMIT:-10}
runs=${RUNS:-7}
bin=${PAGEINIT:-target/release/pageinit}
kernel=${KERNEL:-6.12}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

"$bin" calibrate --kernel "$kernel" --runs "$runs" -o "$dir/calibration.json" 2>"$dir/log"
for threads in ${THREADS:-1 2}; do
    "$bin" compare --kernel "$kernel" --runs "$runs" --threads "$threads" --json \
        >"$dir/compare.json" 2>>"$dir/log"
    for strategy in serial serial-inline prezero deferred setup-zero no-zero block fused fused-nt; do
        "$bin" estimate -m host --kernel "$kernel" --threads "$threads" --strategy "$strategy" \
            --calibration "$dir/calibration.json" --json >"$dir/$strategy.json" 2>>"$dir/log"
    done
    python3 - "$dir" "$threads" "$limit" <<'PY'
import json, sys

folder, threads, limit = sys.argv[1], sys.argv[2], float(sys.argv[3])
compare = json.load(open(f"{folder}/compare.json"))
worst = 0.0
for point in compare["points"]:
    if point["phase"] != "total" or point["nid"] is not None:
        continue
    if point["strategy"].startswith("probe"):
        continue
    estimate = json.load(open(f"{folder}/{point['strategy']}.json"))
    off = 100 * (estimate["total_ns"] / point["scaled_median_ns"] - 1)
    worst = max(worst, abs(off))
    print(f"{threads} threads {point['strategy']:14} measured "
          f"{point['scaled_median_ns'] / 1e6:8.1f} ms, modelled "
          f"{estimate['total_ns'] / 1e6:8.1f} ms, {off:+.1f} %")
print(f"{threads} threads: worst {worst:.1f} %")
if worst > limit:
    open(f"{folder}/over", "w").close()
PY
done
[ ! -e "$dir/over" ]
