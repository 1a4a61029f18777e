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

if ! have apt-get && ! have qemu-system-x86_64; then
    say "skipped: no emulator and no Debian packages"
    exit 0
fi
need qemu-system-x86_64 qemu-system-x86
need busybox busybox-static
need cpio cpio
# Emulation is slow enough: only an optimised build will do. The guests have no hwloc, so
# that the file for large machines is tested by the way.
./scripts/portable.sh
export PAGEINIT_BINARY=$PWD/target/portable/pageinit
say "booting guests, one after another"
cargo test --locked --test guest -- --ignored --test-threads=1 "$@"
