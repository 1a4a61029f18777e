//! What the memory model must know beside version and architecture.
//!
//! [`SparseConfig`] comes from a captured boot, exactly, or from
//! [`SparseConfig::distribution`], as large distributions build their kernels.

use crate::kernel::page_format;
use crate::kernel::version::{KernelModel, KernelVersion};
use crate::machine::facts::BootFacts;
use crate::machine::{Arch, Machine};

/// Options of the build, the command line and the processor that change what
/// `sparse_init` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SparseConfig {
    /// `sizeof(struct page)`; 64 in every configuration seen.
    pub struct_page_bytes: u64,
    /// `CONFIG_PAGE_EXTENSION`: doubles `struct mem_section`.
    pub page_extension: bool,
    /// `CONFIG_MEMORY_HOTREMOVE`.
    pub memory_hotremove: bool,
    /// `CONFIG_MEMORY_ISOLATION`: from 6.17 on doubles the pageblock flags.
    pub memory_isolation: bool,
    /// `CONFIG_ZONE_DMA`.
    pub zone_dma: bool,
    /// `CONFIG_ZONE_DMA32`.
    pub zone_dma32: bool,
    /// `CONFIG_NR_CPUS`.
    pub nr_cpus: u64,
    /// The largest buddy block has 2 to this power pages.
    pub max_order: u32,
    /// `CONFIG_PGTABLE_LEVELS`, or fewer where the processor has fewer.
    pub page_table_levels: u32,
    /// x86_64: five levels are in use (built in, LA57, no `no5lvl`).
    pub five_level_paging: bool,
    /// `movable_node` is on the command line.
    pub movable_node: bool,
    /// ppc64: the hash MMU instead of radix.
    pub hash_mmu: bool,
    /// ppc64 hash: the page size of the vmemmap in bytes, 16 MiB on real machines.
    pub hash_vmemmap_bytes: u64,
    /// s390: the processor maps 1 MiB segments.
    pub s390_edat1: bool,
    /// arm64: the physical address at the start of the linear map, where known.
    pub phys_offset: Option<u64>,
    /// The virtual address of pfn 0's struct page, where known.
    pub vmemmap_base: Option<u64>,
    /// `SECTION_SIZE_BITS`, where known.
    pub section_bits: Option<u32>,
    /// `MAX_PHYSMEM_BITS`, where known.
    pub physmem_bits: Option<u32>,
    /// `sizeof(struct mem_section)`, where known.
    pub mem_section_bytes: Option<u64>,
}

impl SparseConfig {
    /// As large distributions configure `version` on `arch`.
    pub fn distribution(version: KernelVersion, arch: Arch, page_bytes: u64) -> Self {
        let max_order = match (arch, page_bytes) {
            (Arch::Arm64, 16384) => 11,
            (Arch::Arm64, 65536) => 13,
            (Arch::Ppc64, 65536) => 8,
            (Arch::Ppc64 | Arch::Sparc64, _) => 12,
            _ => 10,
        };
        let five_levels = version >= KernelVersion::new(6, 1);
        Self {
            struct_page_bytes: 64,
            page_extension: matches!(arch, Arch::Ppc64 | Arch::S390x | Arch::Riscv64),
            memory_hotremove: true,
            memory_isolation: true,
            zone_dma: matches!(arch, Arch::X86_64 | Arch::Arm64 | Arch::S390x),
            zone_dma32: matches!(arch, Arch::X86_64 | Arch::Arm64 | Arch::Riscv64),
            nr_cpus: if arch == Arch::X86_64 { 8192 } else { 512 },
            max_order,
            page_table_levels: if five_levels { 5 } else { 4 },
            five_level_paging: false,
            movable_node: false,
            hash_mmu: false,
            hash_vmemmap_bytes: 16 << 20,
            s390_edat1: true,
            phys_offset: None,
            vmemmap_base: None,
            section_bits: None,
            physmem_bits: None,
            mem_section_bytes: None,
        }
    }

    /// As `kernel` runs on `machine`: with as many address bits as its memory needs and
    /// the version has (five levels on x86_64 from 4.14 on).
    pub fn for_machine(kernel: &KernelModel, machine: &Machine) -> Self {
        let version = kernel.version;
        let mut out = Self::distribution(version, machine.arch, machine.page_bytes);
        out.struct_page_bytes = page_format::struct_page_bytes(kernel);
        out.page_extension = kernel.config.page_extension;
        out.memory_hotremove = kernel.config.memory_hotremove;
        out.memory_isolation = kernel.config.memory_isolation;
        out.zone_dma = kernel.config.zone_dma;
        out.zone_dma32 = kernel.config.zone_dma32;
        out.nr_cpus = u64::from(kernel.config.nr_cpus);
        out.page_table_levels = kernel.config.pgtable_levels;
        let end = machine.nodes.iter().flat_map(|n| &n.memory).map(|r| r.end).max().unwrap_or(0);
        let five_levels = version >= KernelVersion::new(4, 14) && out.page_table_levels > 4;
        out.five_level_paging = machine.arch == Arch::X86_64 && five_levels && end > 1 << 46;
        if machine.arch == Arch::Arm64 && end > 1 << 48 {
            out.physmem_bits = Some(52);
        }
        out
    }

    /// As a captured boot says; what it leaves out as a distribution would.
    pub fn from_facts(facts: &BootFacts, version: KernelVersion) -> Self {
        let usual = Self::distribution(version, facts.arch, facts.page_bytes);
        let flag = |option, usual| facts.config_flag(option).unwrap_or(usual);
        let word = |text: &str| facts.cmdline.split_whitespace().any(|w| w == text);
        let bits = |symbol: &str, plausible: std::ops::RangeInclusive<u32>| {
            let number = facts.vmcore_number(symbol).and_then(|n| n.try_into().ok());
            number.filter(|n| plausible.contains(n))
        };
        let section_entry = facts.vmcore_number("SIZE(mem_section)");
        let levels = match facts.vmcore_number("NUMBER(VA_BITS)") {
            Some(57) => Some(5),
            Some(39) => Some(3),
            Some(48) => Some(4),
            _ => facts.config_number("PGTABLE_LEVELS").and_then(|n| n.try_into().ok()),
        };
        // An option that a captured configuration does not name is off, zones above all.
        let zone = |option, usual| match facts.arch {
            Arch::X86_64 => usual,
            _ => facts.config_flag(option).unwrap_or(false),
        };
        Self {
            struct_page_bytes: facts.struct_page_bytes,
            page_extension: flag("PAGE_EXTENSION", usual.page_extension),
            memory_hotremove: flag("MEMORY_HOTREMOVE", usual.memory_hotremove),
            memory_isolation: flag("MEMORY_ISOLATION", usual.memory_isolation),
            zone_dma: zone("ZONE_DMA", usual.zone_dma),
            zone_dma32: zone("ZONE_DMA32", usual.zone_dma32),
            nr_cpus: facts.config_number("NR_CPUS").unwrap_or(usual.nr_cpus),
            page_table_levels: levels.unwrap_or(usual.page_table_levels),
            five_level_paging: facts.uses_five_levels(),
            movable_node: word("movable_node"),
            hash_mmu: facts.arch == Arch::Ppc64 && word("disable_radix"),
            // The captured hash boots ran in an emulator without large pages.
            hash_vmemmap_bytes: facts.page_bytes,
            s390_edat1: false,
            phys_offset: facts.vmcore_number("NUMBER(PHYS_OFFSET)"),
            vmemmap_base: facts.vmemmap_base,
            section_bits: bits("NUMBER(SECTION_SIZE_BITS)", 22..=34),
            physmem_bits: bits("NUMBER(MAX_PHYSMEM_BITS)", 36..=60),
            mem_section_bytes: section_entry.filter(|n| (8..=256).contains(n)),
            ..usual
        }
    }

    /// Levels of page tables in use below the kernel's own top-level table.
    pub(super) fn table_levels(&self, arch: Arch) -> u32 {
        match arch {
            Arch::X86_64 if self.five_level_paging => 5,
            Arch::X86_64 => 4,
            // The vmemmap shares its upper levels with the kernel image here.
            Arch::Arm64 => self.page_table_levels.min(4),
            _ => self.page_table_levels,
        }
    }
}
