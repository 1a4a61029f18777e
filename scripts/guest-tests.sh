#!/usr/bin/env bash
# Tests of `pageinit` on real kernels with 2, 4 and 8 NUMA nodes, in an emulator: what is
# seen, where memory is bound, where workers run, which limits are kept. Installs the
# emulator and downloads a kernel where they are missing.
# Usage: ./scripts/guest-tests.sh [FILTER]
set -euo pipefail
me='guest-tests'
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

need qemu-system-x86_64 qemu-system-x86
need busybox busybox-static
need cpio cpio
# Emulation is slow enough: only a release build will do.
cargo build --release --locked
say "booting guests, one after another"
cargo test --locked --test guest -- --ignored --test-threads=1 "$@"
