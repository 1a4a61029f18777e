#!/usr/bin/env bash
# Fuzzes every input front end, one target after another, and prints what came of it.
# Usage: ./scripts/fuzz.sh [SECONDS_PER_TARGET]        (default 60)
#
# FUZZ_TARGETS chooses targets, for example FUZZ_TARGETS="log xml"; FUZZ_NIGHTLY names
# the toolchain; FUZZ_BIN is a folder with targets that are built already. Needs a nightly toolchain and cargo-fuzz. The corpus is made of the
# project's own seeds and of public files beside the project where they are; it stays in
# fuzz/corpus, which git ignores, as do findings in fuzz/artifacts.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck disable=SC2034 # lib.sh says it
me=fuzz
# shellcheck source=scripts/lib.sh
. scripts/lib.sh
seconds=${1:-60}
toolchain=${FUZZ_NIGHTLY:-nightly}
all="log numactl iomem lsmem lscpu toml xml facts figures calibration several any"
read -r -a targets <<<"${FUZZ_TARGETS:-$all}"

have cargo-fuzz || die "cargo-fuzz is missing; cargo install cargo-fuzz"
rustup toolchain list | grep -q "^$toolchain" ||
    die "there is no $toolchain toolchain; rustup toolchain install nightly"

# put TARGET FILE...: copies files into a target's corpus.
put() {
    local target=$1 file
    shift
    mkdir -p "fuzz/corpus/$target"
    for file in "$@"; do
        [ -f "$file" ] && cp --no-preserve=mode "$file" "fuzz/corpus/$target/seed-${file##*/}"
    done
    return 0
}

seed() {
    local target shared=../shared
    for target in $all; do
        put "$target" "fuzz/seeds/$target"/*
        put any "fuzz/seeds/$target"/*
    done
    mkdir -p fuzz/corpus/several
    # Two texts about one machine, with a 0x01 between them.
    { cat fuzz/seeds/log/boot && printf '\001' && cat fuzz/seeds/numactl/two-nodes; } \
        >fuzz/corpus/several/seed-log-numactl
    { cat fuzz/seeds/iomem/two-ranges && printf '\001' && cat fuzz/seeds/lscpu/four-cpus; } \
        >fuzz/corpus/several/seed-iomem-lscpu
    { cat fuzz/seeds/numactl/two-nodes && printf '\001' && cat fuzz/seeds/lsmem/two-blocks; } \
        >fuzz/corpus/several/seed-numactl-lsmem
    put toml topology/*n-*.toml topology/laptop-16g.toml topology/vm-2c.toml
    put facts fixtures/boots/*.json
    put figures fixtures/published/*.toml "$shared"/reference/published-figures.json
    put log "$shared"/corpus/*dmesg* "$shared"/corpus/*.mail.txt "$shared"/corpus/*journal*
    put log "$shared"/corpus/C*.txt "$shared"/corpus/*issue.txt "$shared"/boots/*.log
    put numactl "$shared"/corpus/*numactl*
    put lscpu "$shared"/corpus/*lscpu*
    put lsmem "$shared"/corpus/*lsmem*
    put xml "$shared"/corpus/*.xml
    put any "$shared"/corpus/*numactl* "$shared"/corpus/*lscpu* "$shared"/corpus/*.mail.txt
    put any "$shared"/corpus/*.tar.gz
}

# Longer inputs are slower and find no more; a log's lines may wrap at 8 KiB.
longest() {
    case $1 in
        log | any | several) echo 20000 ;;
        facts | figures) echo 40000 ;;
        *) echo 6000 ;;
    esac
}

# stat LOG NAME: the sum of a figure that libFuzzer prints at its end.
stat() { awk -v name="stat::$2:" '$1 == name { sum += $2 } END { print sum + 0 }' "$1"; }
most() { awk -v name="stat::$2:" '$1 == name && $2 > top { top = $2 } END { print top + 0 }' "$1"; }

# Runs one target for its time; libFuzzer ends at a finding, so that it is started again.
fuzz() {
    local target=$1 log="fuzz/logs/$1.log" artifacts="fuzz/artifacts/$1" left crashes=0 begin
    local options=()
    mkdir -p fuzz/logs "$artifacts" "fuzz/corpus/$target"
    : >"$log"
    [ -f "fuzz/dict/$target.dict" ] && options+=("-dict=fuzz/dict/$target.dict")
    begin=$SECONDS
    while left=$((seconds - (SECONDS - begin))) && [ "$left" -gt 0 ] && [ "$crashes" -lt 20 ]; do
        local TIMEFORMAT='cpu_seconds %U'
        if ! { time RAYON_NUM_THREADS=1 HWLOC_HIDE_ERRORS=2 "$bin/$target" "fuzz/corpus/$target" \
            "${options[@]}" -max_len="$(longest "$target")" -max_total_time="$left" \
            -artifact_prefix="$artifacts/" -timeout=20 -rss_limit_mb=2048 \
            -print_final_stats=1; } >>"$log" 2>&1; then
            crashes=$((crashes + 1))
        fi
    done
    local runs=$((SECONDS - begin))
    local done_runs cpu
    cpu=$(awk '/^cpu_seconds / { sum += $2 } END { printf "%.0f", sum }' "$log")
    done_runs=$(stat "$log" number_of_executed_units)
    printf '%-12s %12d %8d %8d %10d %9d %8d\n' "$target" "$done_runs" "$cpu" \
        $((done_runs / (runs > 0 ? runs : 1))) "$(most "$log" peak_rss_mb)" \
        "$(stat "$log" new_units_added)" "$crashes"
    # Each place once, with the first input that led there.
    { grep -hA1 ' panicked at ' "$log"; grep -h '^SUMMARY: libFuzzer' "$log"; } |
        sed -E 's/^thread .* panicked at //; /^--$/d' | sort | uniq -c | head -n 20 || true
}

bin=${FUZZ_BIN:-fuzz/target/$(rustc -vV | sed -n 's/^host: //p')/release}
if [ -z "${FUZZ_BIN:-}" ]; then
    say "building with $toolchain"
    # Without a sanitizer: hwloc's library is not instrumented anyway, and what Rust allocates
    # is counted.
    cargo "+$toolchain" fuzz build -O -s none >&2
fi
seed
printf '%-12s %12s %8s %8s %10s %9s %8s\n' target executions 'CPU s' exec/s 'peak MiB' 'new units' crashes
for target in "${targets[@]}"; do fuzz "$target"; done
