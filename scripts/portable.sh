#!/usr/bin/env bash
# Builds one file to copy to a large machine that has no compiler and no hwloc:
# target/portable/pageinit. hwloc is inside; the C library, libm, libgcc and libudev, which
# every distribution has, are taken from that machine. Prints how new its glibc must be.
# Usage: ./scripts/portable.sh
set -euo pipefail
me='portable'
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

out=$PWD/target/portable
static=$out/hwloc

have cargo || die "cargo is missing; run ./scripts/setup.sh"
pkg-config --exists hwloc 2>/dev/null || ./scripts/setup.sh
archive=$(pkg-config --variable=libdir hwloc)/libhwloc.a
[ -r "$archive" ] || die "$archive is missing; install hwloc's static library (Debian: libhwloc-dev)"

# A folder in which the linker finds hwloc's archive and no shared library.
mkdir -p "$static"
cp "$archive" "$static/"
sed "s|^libdir=.*|libdir=$static|" "$(pkg-config --variable=pcfiledir hwloc)/hwloc.pc" \
    >"$static/hwloc.pc"
PKG_CONFIG_PATH=$static cargo build --release --locked --target-dir "$out/build" --bin pageinit
strip -o "$out/pageinit" "$out/build/release/pageinit"

needed=$(readelf -d "$out/pageinit" | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p' | tr '\n' ' ')
case $needed in *hwloc*) die "hwloc is still shared: $needed" ;; esac
# hwloc's licence (BSD) wants its text to go with the binary.
for text in /usr/share/doc/libhwloc-dev/copyright /usr/share/licenses/hwloc*/COPYING; do
    [ ! -r "$text" ] || cp "$text" "$out/LICENCE-hwloc"
done
glibc=$(readelf -V "$out/pageinit" | grep -oE 'GLIBC_2\.[0-9]+' | sort -uV | tail -n 1)
say "$out/pageinit, $(($(stat -c %s "$out/pageinit") / 1024)) KiB, needs glibc ${glibc#GLIBC_}" \
    "or newer and: $needed"
