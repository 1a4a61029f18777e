#!/usr/bin/env bash
# Installs what building needs and this machine lacks: a C compiler (for linking),
# pkg-config, hwloc and libudev. Says what to do about Rust. Safe to run again.
# Usage: ./scripts/setup.sh
set -euo pipefail

have() { command -v "$1" >/dev/null 2>&1; }

# hwloc 3 changes the interface; the bindings ask for 2.4 or newer.
hwloc_ok() { have pkg-config && pkg-config --exists 'hwloc >= 2.4.0' 'hwloc < 3.0.0'; }

# The bindings ask pkg-config for static flags, and those name libudev: without its
# link library the build fails at the very end.
udev_ok() {
    [ "$(uname -s)" != Linux ] && return 0
    ! pkg-config --static --libs hwloc | grep -q -- -ludev || pkg-config --exists libudev
}

compiler_ok() { have cc || have gcc || have clang; }

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif have sudo; then
        sudo "$@"
    else
        echo "setup: this needs root; run as root: $*" >&2
        exit 1
    fi
}

install_packages() {
    if have apt-get; then
        as_root apt-get update -q
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y \
            --no-install-recommends gcc libc6-dev pkg-config libhwloc-dev libudev-dev
    elif have dnf; then
        as_root dnf install -y gcc pkgconf-pkg-config hwloc-devel systemd-devel
    elif have zypper; then
        as_root zypper --non-interactive install gcc pkgconf hwloc-devel systemd-devel
    elif have pacman; then
        as_root pacman -S --needed --noconfirm gcc pkgconf hwloc systemd-libs
    elif have apk; then
        as_root apk add build-base pkgconf hwloc-dev eudev-dev
    else
        echo "setup: no known package manager; install a C compiler, pkg-config," \
            "hwloc 2.4 or newer (not 3) and libudev, each with headers" >&2
        exit 1
    fi
}

if compiler_ok && hwloc_ok && udev_ok; then
    echo "setup: hwloc $(pkg-config --modversion hwloc) is there; nothing to install"
else
    install_packages
    if ! hwloc_ok; then
        found=$(pkg-config --modversion hwloc 2>/dev/null || echo none)
        echo "setup: hwloc between 2.4 and 3 is needed, found: $found" >&2
        exit 1
    fi
fi

if ! have cargo; then
    echo "setup: cargo is missing; install Rust 1.95 or newer with rustup" \
        "(see rust-lang.org) and open a new shell" >&2
    exit 1
fi
