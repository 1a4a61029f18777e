#!/usr/bin/env bash
# Boots a Debian kernel with any number of NUMA nodes in an emulator and runs a command
# there, with `pageinit` on its path. No virtualisation and no disk image are needed;
# times in the guest mean nothing.
#
# Usage: ./scripts/numa-vm.sh [OPTIONS] -- COMMAND [ARGUMENT...]
#   --nodes LIST      memory and CPUs of each node [default: 1G:2,1G:2]; 2G:0 has no CPU,
#                     0:2 no memory
#   --distances ROWS  the SLIT, for example '10,20;20,10' [default: 10 and 20]
#   --kernel WHAT     a series in Debian (6.1, 6.12) or a file [default: 6.1]
#   --append WORDS    more words for the kernel command line
#   --binary FILE     the program [default: PAGEINIT_BINARY, else target/release/pageinit,
#                     built if missing]
#   --add FILE        one more file for the guest's /bin; may be repeated
#   --console FILE    keep the console log
#   --timeout SECONDS [default: 120]
#
# One COMMAND without arguments is a line for the guest's shell (busybox); the guest is
# root. Output and exit status are the command's own. Exit status 125: the guest could not
# be started or did not end in time. Packages are cached in target/guest.
set -euo pipefail
me='numa-vm'
root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/lib.sh
. "$root/scripts/lib.sh"
die() { say "$@"; exit 125; }

nodes=1G:2,1G:2 distances='' kernel=6.1 append='' console='' timeout=120
binary=${PAGEINIT_BINARY:-$root/target/release/pageinit}
cache=$root/target/guest
resident_limit_kib=$((4 * 1024 * 1024))
added=()

usage() { sed -n '2,/^set/{s/^# \{0,1\}//;/^set/d;p}' "$0"; }

parse() {
    while [ $# -gt 0 ]; do
        case $1 in
            --) shift; break ;;
            -h | --help) usage; exit 0 ;;
            --nodes | --distances | --kernel | --append | --binary | --add | --console | --timeout)
                [ $# -gt 1 ] || die "$1 needs a value" ;;&
            --nodes) nodes=$2; shift 2 ;;
            --distances) distances=$2; shift 2 ;;
            --kernel) kernel=$2; shift 2 ;;
            --append) append=$2; shift 2 ;;
            --binary) binary=$2; shift 2 ;;
            --add) added+=("$2"); shift 2 ;;
            --console) console=$2; shift 2 ;;
            --timeout) timeout=$2; shift 2 ;;
            *) die "unknown argument '$1'; the command comes after --" ;;
        esac
    done
    [ $# -gt 0 ] || die "no command; for example: numa-vm.sh -- pageinit machine"
    [[ $timeout =~ ^[1-9][0-9]*$ ]] || die "--timeout wants seconds, not '$timeout'"
    command=("$@")
}

# Fills `numa` with the emulator's arguments for memory, CPUs and distances.
numa_arguments() {
    local list node size cpus nid=0 cpu=0 total=0 mib
    numa=()
    IFS=, read -ra list <<<"$nodes"
    for node in "${list[@]}"; do
        [[ $node =~ ^(0|[0-9]+)([MG]|):([0-9]+)$ && (-n ${BASH_REMATCH[2]} || $node == 0:*) ]] ||
            die "--nodes: '$node' is not SIZE:CPUS, for example 512M:2 or 2G:0"
        size=${BASH_REMATCH[1]} cpus=${BASH_REMATCH[3]}
        case ${BASH_REMATCH[2]} in G) mib=$((size * 1024)) ;; *) mib=$size ;; esac
        local about="node,nodeid=$nid"
        if [ "$mib" -gt 0 ]; then
            numa+=(-object "memory-backend-ram,id=mem$nid,size=${mib}M,reserve=off")
            about+=",memdev=mem$nid"
        fi
        [ "$cpus" -eq 0 ] || about+=",cpus=$cpu-$((cpu + cpus - 1))"
        numa+=(-numa "$about")
        total=$((total + mib)) cpu=$((cpu + cpus)) nid=$((nid + 1))
    done
    [ "$cpu" -gt 0 ] || die "--nodes: no node has a CPU"
    [ "$total" -ge 256 ] || die "--nodes: a guest needs at least 256M in all"
    numa+=(-m "${total}M" -smp "$cpu")
    distance_arguments "$nid"
}

distance_arguments() {
    [ -n "$distances" ] || return 0
    local rows row values src=0 dst
    IFS=';' read -ra rows <<<"$distances"
    [ "${#rows[@]}" = "$1" ] || die "--distances: ${#rows[@]} rows for $1 nodes"
    for row in "${rows[@]}"; do
        IFS=, read -ra values <<<"$row"
        [ "${#values[@]}" = "$1" ] || die "--distances: row '$row' has not $1 values"
        for dst in "${!values[@]}"; do
            numa+=(-numa "dist,src=$src,dst=$dst,val=${values[$dst]}")
        done
        src=$((src + 1))
    done
}

# The name of the newest plain amd64 kernel package of a series, in the given lists.
newest_package() {
    local escaped=${1//./\\.}
    apt-cache pkgnames "linux-image-$1" 2>/dev/null |
        grep -E "^linux-image-$escaped\.[0-9.]+[-+a-z0-9.]*-amd64$" |
        grep -vE -- '-(cloud|rt)-' | sort -V | tail -n 1
}

# Sets `image`; downloads the package once and keeps its image and configuration.
find_kernel() {
    if [ -f "$kernel" ]; then image=$kernel; return; fi
    [[ $kernel =~ ^[0-9]+\.[0-9]+$ ]] ||
        die "--kernel: '$kernel' is neither a file nor a series such as 6.1"
    local folder=$cache/kernel-$kernel
    if [ ! -e "$folder/complete" ]; then
        have apt-get || die "--kernel $kernel needs apt-get; give a kernel image with --kernel FILE"
        fetch_kernel "$folder"
    fi
    image=$(echo "$folder"/boot/vmlinuz-*)
    [ -f "$image" ] || die "$folder has no boot/vmlinuz; remove the folder and try again"
}

fetch_kernel() {
    local folder=$1 package suite
    rm -rf "$folder"
    mkdir -p "$folder"
    package=$(newest_package "$kernel")
    for suite in trixie bookworm bookworm-backports sid; do
        [ -z "$package" ] || break
        export APT_CONFIG=$cache/apt-$suite/apt.conf
        private_apt "$cache/apt-$suite" amd64 "$suite" && package=$(newest_package "$kernel")
        [ -n "$package" ] || unset APT_CONFIG
    done
    [ -n "$package" ] || die "Debian has no linux-image-$kernel; give an image with --kernel FILE"
    say "downloading $package"
    (cd "$folder" && apt-get download -q "$package" >download.log 2>&1) ||
        { tail -n 3 "$folder/download.log" >&2; die "downloading $package failed"; }
    unset APT_CONFIG
    dpkg-deb --fsys-tarfile "$folder"/*.deb | tar -x -C "$folder" --wildcards \
        './boot/vmlinuz-*' './boot/config-*'
    rm "$folder"/*.deb
    touch "$folder/complete"
}

# Copies a program and the shared libraries that it needs into the guest.
put_program() {
    local from=$1 tree=$2 library
    install -m 755 "$from" "$tree/bin/"
    [ "$from" != "$binary" ] || strip "$tree/bin/$(basename "$from")" 2>/dev/null || true
    # A static program has none, and ldd says so with an error.
    { ldd "$from" 2>/dev/null || true; } | { grep -oE '/[^ ]+' || true; } |
        while read -r library; do install -D -m 755 "$library" "$tree$library"; done
}

initramfs() {
    local tree=$work/tree file
    mkdir -p "$tree"/{bin,proc,sys,dev,tmp,root}
    install -m 755 "$(command -v busybox)" "$tree/bin/busybox"
    put_program "$binary" "$tree"
    [ "$(basename "$binary")" = pageinit ] || ln -s "$(basename "$binary")" "$tree/bin/pageinit"
    for file in ${added[@]+"${added[@]}"}; do put_program "$file" "$tree"; done
    if [ "${#command[@]}" = 1 ]; then
        printf '%s\n' "${command[0]}" >"$tree/command"
    else
        printf '%q ' "${command[@]}" >"$tree/command"
    fi
    # Output goes through pipes, because programs behave differently on terminals.
    cat >"$tree/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev 2>/dev/null
mount -t tmpfs tmp /tmp
mount -t cgroup2 cgroup2 /sys/fs/cgroup
for port in 1 2 3; do stty -F /dev/ttyS$port raw -echo; done
mkfifo /tmp/.out /tmp/.err
cat /tmp/.out >/dev/ttyS1 & out=$!
cat /tmp/.err >/dev/ttyS2 & err=$!
cd /root
sh /command >/tmp/.out 2>/tmp/.err </dev/null
status=$?
wait $out $err
echo "status $status" >/dev/ttyS3
poweroff -f
INIT
    chmod 755 "$tree/init"
    (cd "$tree" && find . -print0 | cpio --null -o -H newc --quiet --owner 0:0) >"$work/initramfs"
}

# Starts the emulator and waits for its end, or ends it for time or memory.
boot() {
    local why='' resident began=$SECONDS
    rm -f "$work"/{console,out,err,status}
    qemu-system-x86_64 -accel tcg,thread=multi -cpu max -nodefaults -display none \
        -no-reboot "${numa[@]}" -kernel "$image" -initrd "$work/initramfs" \
        -append "console=ttyS0 panic=-1 random.trust_cpu=on no5lvl $append" \
        -serial "file:$work/console" -serial "file:$work/out" -serial "file:$work/err" \
        -serial "file:$work/status" </dev/null >"$work/qemu.log" 2>&1 &
    guest=$!
    while kill -0 "$guest" 2>/dev/null; do
        resident=$(awk '/^VmRSS/ { print $2 }' "/proc/$guest/status" 2>/dev/null || true)
        if [ "${resident:-0}" -gt "$resident_limit_kib" ]; then
            why="the guest took more than $((resident_limit_kib / 1024)) MiB"
        elif [ $((SECONDS - began)) -ge "$timeout" ]; then
            why="no end within $timeout seconds"
        fi
        if [ -n "$why" ]; then kill -9 "$guest" 2>/dev/null || true; break; fi
        sleep 0.2
    done
    wait "$guest" 2>/dev/null || true
    guest=''
    problem=$why
}

run_guest() {
    local status attempt
    for attempt in 1 2 3; do
        boot
        [ -z "$console" ] || cp "$work/console" "$console" 2>/dev/null || true
        status=$(tr -dc '0-9' <"$work/status" 2>/dev/null || true)
        [ -z "$status" ] || break
        # Emulation sometimes trips over a kernel that patches itself; that never
        # happens once the command runs.
        if [ -n "$problem" ] || [ -s "$work/out" ] || [ "$attempt" = 3 ]; then break; fi
        say "the guest ended early; trying again"
    done
    cat "$work/out" 2>/dev/null || true
    cat "$work/err" >&2 2>/dev/null || true
    [ -z "$status" ] || exit "$status"
    tail -n 20 "$work/qemu.log" "$work/console" >&2 2>/dev/null || true
    die "${problem:-the guest ended without running the command to its end}"
}

# shellcheck disable=SC2317 # called by the trap
cleanup() {
    [ -z "${guest:-}" ] || kill -9 "$guest" 2>/dev/null || true
    rm -rf "${work:-}"
}

parse "$@"
numa_arguments
need qemu-system-x86_64 qemu-system-x86
need busybox busybox-static
need cpio cpio
if [ ! -x "$binary" ]; then
    [ "$binary" = "$root/target/release/pageinit" ] || die "--binary: $binary is no program"
    (cd "$root" && cargo build --release --locked --quiet) || die "building pageinit failed"
fi
! ldd "$(command -v busybox)" >/dev/null 2>&1 ||
    die "busybox needs shared libraries; install busybox-static"
find_kernel
guest=''
trap cleanup EXIT
trap 'exit 130' INT TERM
work=$(mktemp -d)
initramfs
run_guest
