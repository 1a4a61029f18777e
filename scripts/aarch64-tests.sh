#!/usr/bin/env bash
# Builds the store kernels and the layout rules for aarch64 and runs their tests under
# user-mode emulation. Needs no arm64 machine and no other toolchain: compiler, arm64
# standard library and arm64 hwloc come from Debian packages (125 MB), unpacked in
# target/aarch64 and not installed. Where they cannot be had the script prints a notice
# and succeeds, because the machine and not the code is at fault.
# Usage: ./scripts/aarch64-tests.sh [FILTER...] [default: host::store kernel:: pfn::]
set -euo pipefail
me='aarch64-tests'
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

cache=$PWD/target/aarch64
tree=$cache/root
target=aarch64-unknown-linux-gnu

skip() { say "skipped: $*"; exit 0; }

packages_at_hand() {
    [ "$(uname -sm)" = 'Linux x86_64' ] || skip "this works on x86-64 Linux only"
    have apt-get || skip "packages of Debian are needed, and there is no apt-get"
    (need qemu-aarch64-static qemu-user-static) || skip "no user-mode emulator"
    (need aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu libc6-dev-arm64-cross) ||
        skip "no linker for aarch64"
    # Tests of C headers are not needed, but the linker wants the C library.
    [ -d /usr/aarch64-linux-gnu/lib ] || skip "libc6-dev-arm64-cross is not installed"
}

# The suite of this system and its security updates, where new compilers come.
suites() {
    local codename
    codename=$(sed -n "s/^VERSION_CODENAME=//p" /etc/os-release 2>/dev/null)
    [ -n "$codename" ] || return 1
    echo "$codename $codename-security"
}

fetch() {
    [ ! -e "$cache/complete" ] || return 0
    local list of_here of_there standard llvm
    rm -rf "$cache/debs" "$tree"
    mkdir -p "$cache/debs" "$tree"
    list=$(suites) || return 1
    # shellcheck disable=SC2086 # two words
    private_apt "$cache/apt-amd64" amd64 $list && private_apt "$cache/apt-arm64" arm64 $list ||
        return 1
    of_here=$cache/apt-amd64/apt.conf of_there=$cache/apt-arm64/apt.conf
    standard=$(depends "$of_here" libstd-rust-web-dev 'libstd-rust-web-[0-9.]+') || return 1
    llvm=$(depends "$of_here" "$standard" 'libllvm[0-9]+') || return 1
    say "downloading rustc-web, $standard, $llvm and arm64 libraries"
    (
        cd "$cache/debs"
        APT_CONFIG=$of_here apt-get download -q rustc-web libstd-rust-web-dev "$standard" "$llvm"
        APT_CONFIG=$of_there apt-get download -q libstd-rust-web-dev libhwloc15 libhwloc-dev \
            libudev1 libudev-dev
    ) >"$cache/download.log" 2>&1 || return 1
    for list in "$cache"/debs/*.deb; do dpkg -x "$list" "$tree"; done
    rm -r "$cache/debs"
    touch "$cache/complete"
}

# The package that PACKAGE depends on and whose name matches.
depends() {
    APT_CONFIG=$1 apt-cache depends "$2" 2>/dev/null | grep -oE "Depends: $3\$" |
        sed 's/.*: //' | head -n 1 | grep .
}

enough_compiler() {
    local wanted found
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    found=$(LD_LIBRARY_PATH=$tree/usr/lib/x86_64-linux-gnu "$tree/usr/bin/rustc" --version |
        cut -d' ' -f2)
    printf '%s\n%s\n' "$wanted" "$found" | sort -VC ||
        skip "Debian's rustc-web is $found, and $wanted is needed"
}

packages_at_hand
fetch || skip "packages cannot be had ($(tail -n 1 "$cache/download.log" 2>/dev/null))"
enough_compiler

libraries=$tree/usr/lib/aarch64-linux-gnu:$tree/lib/aarch64-linux-gnu
export RUSTC=$cache/rustc
# Only the compiler may see its libraries, not the programs that cargo starts besides.
cat >"$RUSTC" <<WRAPPER
#!/bin/sh
LD_LIBRARY_PATH=$tree/usr/lib/x86_64-linux-gnu exec $tree/usr/bin/rustc "\$@"
WRAPPER
chmod +x "$RUSTC"
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-L $tree/usr/lib/aarch64-linux-gnu \
-C link-arg=-Wl,-rpath-link,$libraries"
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64-static \
-L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=$libraries"
export PKG_CONFIG_ALLOW_CROSS=1 PKG_CONFIG_SYSROOT_DIR=$tree
export PKG_CONFIG_LIBDIR=$tree/usr/lib/aarch64-linux-gnu/pkgconfig
# Emulation is slow, and properties hold here as on x86-64.
export PROPTEST_CASES=${PROPTEST_CASES:-32}
[ $# -gt 0 ] || set -- host::store kernel:: pfn::
cargo test --locked --lib --target "$target" --target-dir "$cache/build" -- "$@"
