#!/usr/bin/env bash
# Captures one boot: boots a Debian kernel in the emulator with memblock=debug and writes
# its facts in the form of fixtures/boots/ (see the README there): memory, reservations,
# every request of sparse_init with its answer, zones, nodes, raw struct pages.
# Usage: ./scripts/capture-boot.sh ID OUTPUT.json [OPTIONS of numa-vm.sh]
#   for example  ./scripts/capture-boot.sh 6.1_n2-2g fixtures/boots/6.1_n2-2g.json \
#                    --kernel 6.1 --nodes 1G:2,1G:2
# Afterwards  PAGEINIT_BOOTS=FOLDER cargo test --test kernel_boots  holds the model to all
# captures in a folder beside those of the project.
set -euo pipefail
me='capture-boot'
root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/lib.sh
. "$root/scripts/lib.sh"

usage="usage: capture-boot.sh ID OUTPUT.json [OPTIONS of numa-vm.sh]"
case ${1:-} in -h | --help) sed -n '2,/^set/{s/^# \{0,1\}//;/^set/d;p}' "$0"; exit 0 ;; esac
[ $# -ge 2 ] || die "$usage"
id=$1 output=$2
shift 2
kernel=6.1 append=''
options=()
while [ $# -gt 0 ]; do
    case $1 in
        --kernel) kernel=${2:?"$usage"} ;;
        --append) append=${2:?"$usage"}; shift 2; continue ;;
    esac
    options+=("$1")
    shift
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
need gcc gcc libc6-dev
# Reads struct pages from /proc/kcore, whose program headers say where the memmap is.
cat >"$work/memmap.c" <<'C'
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	/* Without KASLR: four and five page-table levels. */
	const unsigned long bases[2] = { 0xffffea0000000000, 0xffd4000000000000 };
	int file = open("/proc/kcore", O_RDONLY);
	Elf64_Ehdr header;
	if (file < 0 || pread(file, &header, sizeof header, 0) != sizeof header) {
		perror("/proc/kcore");
		return 1;
	}
	for (int arg = 1; arg < argc; arg++) {
		unsigned long pfn = strtoul(argv[arg], NULL, 10), words[8];
		for (int i = 0; i < header.e_phnum; i++) {
			Elf64_Phdr segment;
			off_t at = header.e_phoff + (off_t)i * sizeof segment;
			if (pread(file, &segment, sizeof segment, at) != sizeof segment)
				return 1;
			for (int base = 0; base < 2; base++) {
				unsigned long address = bases[base] + pfn * 64;
				if (segment.p_type != PT_LOAD || address < segment.p_vaddr ||
				    address + 64 > segment.p_vaddr + segment.p_memsz)
					continue;
				at = segment.p_offset + (address - segment.p_vaddr);
				if (pread(file, words, sizeof words, at) != sizeof words)
					continue;
				printf("%lu %lx", pfn, bases[base]);
				for (int word = 0; word < 8; word++)
					printf(" %lx", words[word]);
				printf("\n");
			}
		}
	}
	return 0;
}
C
gcc -static -O1 -Wall -Werror -o "$work/memmap" "$work/memmap.c"

# In the guest: both ends and the sections' beginnings and middles of every zone.
cat >"$work/look" <<'LOOK'
echo "@@ release"; uname -r
echo "@@ cmdline"; cat /proc/cmdline
echo "@@ zoneinfo"; cat /proc/zoneinfo
echo "@@ nodes"
for node in /sys/devices/system/node/node*; do
    total=$(awk '/MemTotal/ { print $4 }' $node/meminfo)
    echo "${node##*/node}|$(cat $node/cpulist)|$(cat $node/distance)|$total"
done
echo "@@ struct_pages"
memmap $(awk '
    /spanned/ { spanned = $2 }
    /present/ { present = $2 }
    /start_pfn:/ && spanned && present {
        first = $2; last = $2 + spanned - 1
        print first, first + 1, last - 1, last
        for (p = first - first % 32768 + 32768; p < last; p += 32768) print p, p + 16383
    }' /proc/zoneinfo | tr '\n' ' ')
LOOK

"$root/scripts/numa-vm.sh" "${options[@]}" --console "$work/console" --add "$work/memmap" \
    --append "ignore_loglevel memblock=debug nokaslr $append" -- "$(cat "$work/look")" \
    >"$work/guest"
config=/dev/null
for file in "$root/target/guest/kernel-$kernel"/boot/config-* "${kernel/vmlinuz/config}"; do
    if [ -f "$file" ] && [ "$file" != "$kernel" ]; then config=$file; break; fi
done
[ "$config" != /dev/null ] || say "no configuration beside $kernel: its options stay unknown"
(cd "$root" && cargo build --quiet --locked --example boot_facts)
"$root/target/debug/examples/boot_facts" "$id" "$work/console" "$work/guest" "$config" \
    >"$work/facts"
cp "$work/facts" "$output"
say "wrote $output"
