//! Sizes: sections, usage maps, page tables, addresses.

use super::{Platform, TableLevel, since};
use crate::kernel::config::KernelConfig;
use crate::kernel::release::{Backport, Release};
use crate::kernel::version::KernelVersion;
use crate::machine::Arch;

/// What most sizes depend on.
pub(super) struct Place<'a> {
    pub(super) release: &'a Release,
    pub(super) arch: Arch,
    pub(super) page_bytes: u64,
    pub(super) config: &'a KernelConfig,
}

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
pub(super) fn physmem_bits(version: KernelVersion, arch: Arch, platform: &Platform) -> u32 {
    match arch {
        Arch::X86_64 if platform.five_level_paging => 52,
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

/// The largest buddy block has 2 to this power pages: `CONFIG_ARCH_FORCE_MAX_ORDER`,
/// exclusive up to 6.3, or what the architecture has by default.
pub(super) fn max_order(
    version: KernelVersion,
    arch: Arch,
    page_bytes: u64,
    config: &KernelConfig,
) -> u32 {
    match (config.arch_force_max_order, arch, page_bytes) {
        (0, Arch::Arm64, 16384) => 11,
        (0, Arch::Arm64, 65536) => 13,
        (0, Arch::Ppc64, 65536) => 8,
        (0, Arch::Ppc64 | Arch::Sparc64, _) => 12,
        (0, ..) => 10,
        (order, ..) if since(version, 6, 4) => order,
        (order, ..) => order - 1,
    }
}

/// `struct mem_section_usage` of one section; before 5.3 its pageblock flags alone,
/// from 6.8 on with an `rcu_head`.
pub(super) fn usage_bytes(place: &Place, section_bits: u32) -> u64 {
    let version = place.release.version;
    let section_bytes = 1u64 << section_bits;
    let blocks: u64 = (section_bytes / pageblock_bytes(place.arch, place.page_bytes)).max(1);
    let wide = since(version, 6, 17) && place.config.memory_isolation;
    let bits_per_block = if wide { 8 } else { 4 };
    let words = |bits: u64| bits.div_ceil(64) * 8;
    let subsection_map = if since(version, 5, 3) { words(section_bytes >> 21) } else { 0 };
    let has_rcu_head = since(version, 6, 8) || place.release.has(Backport::UsageRcuHead);
    let rcu_head = if has_rcu_head { 16 } else { 0 };
    words(blocks * bits_per_block) + subsection_map + rcu_head
}

pub(super) fn pmd_bytes(arch: Arch, page_bytes: u64, platform: &Platform) -> u64 {
    match arch {
        Arch::Arm64 if page_bytes == 16384 => 32 << 20,
        Arch::Arm64 if page_bytes == 65536 => 512 << 20,
        Arch::Ppc64 if platform.hash_mmu && page_bytes == 65536 => 16 << 20,
        Arch::S390x => 1 << 20,
        Arch::Sparc64 => 8 << 20,
        _ => 2 << 20,
    }
}

/// Levels above these exist already when `sparse_init` runs, because the kernel
/// image or the direct map shares them.
pub(super) fn tables(place: &Place, platform: &Platform) -> Vec<TableLevel> {
    let (arch, page_bytes) = (place.arch, place.page_bytes);
    let level = |shift: u32, table_bytes| TableLevel { covers_bytes: 1 << shift, table_bytes };
    let all = |shifts: &[u32]| shifts.iter().map(|&s| level(s, page_bytes)).collect();
    match (arch, page_bytes) {
        (Arch::Arm64, 16384) => all(&[36, 25]),
        (Arch::Arm64, 65536) => all(&[42, 29]),
        // Up to 5.8 tables had the size that 512 entries need.
        (Arch::Ppc64, _) if !since(place.release.version, 5, 9) => {
            vec![level(39, 4096), level(30, 4096)]
        }
        (Arch::Ppc64, _) => all(&[39, 30]),
        (Arch::Sparc64, _) => all(&[43, 33]),
        (Arch::S390x, _) => s390_tables(place.release, platform),
        _ => match platform.table_levels(arch, place.config.pgtable_levels) {
            5 => all(&[48, 39, 30, 21]),
            3 => all(&[30, 21]),
            _ => all(&[39, 30, 21]),
        },
    }
}

/// Region-third tables only where the vmemmap lies beyond the first one's 4 TiB. Tables
/// of base pages fill half a page up to 6.16; maintained releases were changed.
fn s390_tables(release: &Release, platform: &Platform) -> Vec<TableLevel> {
    let whole_page = since(release.version, 6, 17) || release.has(Backport::WholePageTables);
    let pte_bytes = if whole_page { 4096 } else { 2048 };
    let mut out = Vec::new();
    if platform.vmemmap_base.is_some_and(|base| base >= 1 << 42) {
        out.push(TableLevel { covers_bytes: 1 << 42, table_bytes: 16384 });
    }
    out.push(TableLevel { covers_bytes: 1 << 31, table_bytes: 16384 });
    out.push(TableLevel { covers_bytes: 1 << 20, table_bytes: pte_bytes });
    out
}
