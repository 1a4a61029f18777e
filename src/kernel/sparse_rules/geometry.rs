//! Sizes: sections, usage maps, page tables, addresses.

use super::{SparseConfig, TableLevel, since};
use crate::kernel::version::KernelVersion;
use crate::machine::Arch;

/// `SECTION_SIZE_BITS` of each `sparsemem.h`.
pub(super) fn section_bits(version: KernelVersion, arch: Arch, page_bytes: u64) -> u32 {
    match arch {
        Arch::X86_64 | Arch::Riscv64 => 27,
        Arch::Arm64 if !since(version, 5, 12) => 30,
        Arch::Arm64 if page_bytes == 65536 => 29,
        Arch::Arm64 => 27,
        Arch::Ppc64 => 24,
        Arch::S390x if since(version, 6, 14) => 27,
        Arch::S390x => 28,
        Arch::Sparc64 => 30,
    }
}

/// `MAX_PHYSMEM_BITS`.
pub(super) fn physmem_bits(version: KernelVersion, arch: Arch, config: &SparseConfig) -> u32 {
    match arch {
        Arch::X86_64 if config.five_level_paging => 52,
        Arch::X86_64 | Arch::S390x => 46,
        Arch::Arm64 => 48,
        Arch::Ppc64 if since(version, 4, 20) => 51,
        Arch::Ppc64 => 46,
        Arch::Riscv64 => 56,
        Arch::Sparc64 => 53,
    }
}

/// Bytes of a pageblock: those of a huge page (`HUGETLB_PAGE_ORDER`).
pub(super) fn pageblock_bytes(arch: Arch, page_bytes: u64) -> u64 {
    match arch {
        Arch::S390x => 1 << 20,
        Arch::Sparc64 => 8 << 20,
        Arch::Arm64 if page_bytes == 16384 => 32 << 20,
        Arch::Arm64 if page_bytes == 65536 => 512 << 20,
        _ => 2 << 20,
    }
}

/// `struct mem_section_usage` of one section; before 5.3 its pageblock flags alone.
pub(super) fn usage_bytes(
    release: &str,
    version: KernelVersion,
    arch: Arch,
    page_bytes: u64,
    section_bits: u32,
    config: &SparseConfig,
) -> u64 {
    let section_bytes = 1u64 << section_bits;
    let blocks: u64 = (section_bytes / pageblock_bytes(arch, page_bytes)).max(1);
    let bits_per_block = if since(version, 6, 17) && config.memory_isolation { 8 } else { 4 };
    let words = |bits: u64| bits.div_ceil(64) * 8;
    let subsection_map = if since(version, 5, 3) { words(section_bytes >> 21) } else { 0 };
    let rcu_head = if usage_has_rcu_head(release, version) { 16 } else { 0 };
    words(blocks * bits_per_block) + subsection_map + rcu_head
}

/// The numbers behind `major.minor`: 117 in `6.12.117+deb13`, 0 and 32 in `5.10.0-32`.
fn patch_and_build(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>).skip(2);
    let mut next = || numbers.next().and_then(Result::ok).unwrap_or(0);
    (next(), next())
}

/// 6.8 added an `rcu_head`; maintained 5.10, 5.15, 6.1, 6.6 and 6.7 got it too, from
/// the releases below on. Debian counts its builds behind `x.y.0-` instead.
pub(super) fn usage_has_rcu_head(release: &str, version: KernelVersion) -> bool {
    let since_patch = match (version.major, version.minor) {
        (5, 10) => 210,
        (5, 15) => 149,
        (6, 1) => 76,
        (6, 6) => 15,
        (6, 7) => 3,
        _ => return since(version, 6, 8),
    };
    let (patch, build) = patch_and_build(release);
    let debian_build = match (version.major, version.minor) {
        (5, 10) => 29,
        (6, 1) => 18,
        _ => u32::MAX,
    };
    patch >= since_patch || (patch == 0 && release.contains(".0-") && build >= debian_build)
}

pub(super) fn pmd_bytes(arch: Arch, page_bytes: u64, config: &SparseConfig) -> u64 {
    match arch {
        Arch::Arm64 if page_bytes == 16384 => 32 << 20,
        Arch::Arm64 if page_bytes == 65536 => 512 << 20,
        Arch::Ppc64 if config.hash_mmu && page_bytes == 65536 => 16 << 20,
        Arch::S390x => 1 << 20,
        Arch::Sparc64 => 8 << 20,
        _ => 2 << 20,
    }
}

/// Levels above these exist already when `sparse_init` runs, because the kernel
/// image or the direct map shares them.
pub(super) fn tables(
    release: &str,
    version: KernelVersion,
    arch: Arch,
    page_bytes: u64,
    config: &SparseConfig,
) -> Vec<TableLevel> {
    let level = |shift: u32, table_bytes| TableLevel { covers_bytes: 1 << shift, table_bytes };
    let all = |shifts: &[u32]| shifts.iter().map(|&s| level(s, page_bytes)).collect();
    match (arch, page_bytes) {
        (Arch::Arm64, 16384) => all(&[36, 25]),
        (Arch::Arm64, 65536) => all(&[42, 29]),
        // Up to 5.8 tables had the size that 512 entries need.
        (Arch::Ppc64, _) if !since(version, 5, 9) => vec![level(39, 4096), level(30, 4096)],
        (Arch::Ppc64, _) => all(&[39, 30]),
        (Arch::Sparc64, _) => all(&[43, 33]),
        (Arch::S390x, _) => s390_tables(release, version, config),
        _ => match config.table_levels(arch) {
            5 => all(&[48, 39, 30, 21]),
            3 => all(&[30, 21]),
            _ => all(&[39, 30, 21]),
        },
    }
}

/// Region-third tables only where the vmemmap lies beyond the first one's 4 TiB. Tables
/// of base pages fill half a page up to 6.16; maintained releases were changed.
fn s390_tables(release: &str, version: KernelVersion, config: &SparseConfig) -> Vec<TableLevel> {
    let since_patch = match (version.major, version.minor) {
        (6, 12) => 42,
        (6, 15) => 10,
        (6, 16) => 1,
        _ => u32::MAX,
    };
    let whole_page = since(version, 6, 17) || patch_and_build(release).0 >= since_patch;
    let pte_bytes = if whole_page { 4096 } else { 2048 };
    let mut out = Vec::new();
    if config.vmemmap_base.is_some_and(|base| base >= 1 << 42) {
        out.push(TableLevel { covers_bytes: 1 << 42, table_bytes: 16384 });
    }
    out.push(TableLevel { covers_bytes: 1 << 31, table_bytes: 16384 });
    out.push(TableLevel { covers_bytes: 1 << 20, table_bytes: pte_bytes });
    out
}

/// Where the memmap starts when nothing says so; only alignment to tables matters.
pub(super) fn vmemmap_base(version: KernelVersion, arch: Arch, config: &SparseConfig) -> u64 {
    match arch {
        Arch::X86_64 if config.five_level_paging => 0xffd4_0000_0000_0000,
        Arch::X86_64 => 0xffff_ea00_0000_0000,
        Arch::Arm64 if since(version, 6, 12) => 0xffff_fdff_c000_0000,
        Arch::Arm64 => 0xffff_fc00_0000_0000,
        Arch::Ppc64 if since(version, 5, 2) => 0xc00c_0000_0000_0000,
        Arch::Ppc64 => 0xf000_0000_0000_0000,
        Arch::Riscv64 => 0xff1c_0000_0000_0000,
        Arch::S390x => 0x372_0000_0000,
        Arch::Sparc64 => 0x0000_0fc0_0000_0000,
    }
}
