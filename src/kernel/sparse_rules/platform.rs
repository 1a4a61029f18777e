//! What neither version nor configuration says: processor, firmware, vmcoreinfo.
//!
//! [`Platform`] comes from a captured boot, or from a machine, of which it is enough
//! to know how far its memory reaches. `None` stands for what version, architecture
//! and configuration make of it.

use crate::kernel::version::{KernelModel, KernelVersion};
use crate::machine::facts::BootFacts;
use crate::machine::{Arch, Machine};
use std::ops::RangeInclusive;

/// What `sparse_init` depends on beside the kernel and its configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    /// x86_64: five levels are in use (built in, LA57, no `no5lvl`).
    pub five_level_paging: bool,
    /// ppc64: the hash MMU instead of radix.
    pub hash_mmu: bool,
    /// ppc64 hash: the page size of the vmemmap in bytes, 16 MiB on real machines.
    pub hash_vmemmap_bytes: u64,
    /// s390: the processor maps 1 MiB segments.
    pub s390_edat1: bool,
    /// Page-table levels, where the processor has fewer than were configured.
    pub page_table_levels: Option<u32>,
    /// arm64: the physical address at the start of the linear map.
    pub phys_offset: Option<u64>,
    /// The virtual address of pfn 0's struct page.
    pub vmemmap_base: Option<u64>,
    /// `sizeof(struct page)`.
    pub struct_page_bytes: Option<u64>,
    /// `SECTION_SIZE_BITS`.
    pub section_bits: Option<u32>,
    /// `MAX_PHYSMEM_BITS`.
    pub physmem_bits: Option<u32>,
    /// `sizeof(struct mem_section)`.
    pub mem_section_bytes: Option<u64>,
}

impl Default for Platform {
    /// A current machine whose memory needs no more address bits than usual.
    fn default() -> Self {
        Self {
            five_level_paging: false,
            hash_mmu: false,
            hash_vmemmap_bytes: 16 << 20,
            s390_edat1: true,
            page_table_levels: None,
            phys_offset: None,
            vmemmap_base: None,
            struct_page_bytes: None,
            section_bits: None,
            physmem_bits: None,
            mem_section_bytes: None,
        }
    }
}

impl Platform {
    /// `machine` with as many address bits as its memory needs and the kernel has
    /// (five levels on x86_64 from 4.14 on, where configured).
    pub fn of_machine(kernel: &KernelModel, machine: &Machine) -> Self {
        let end = machine.nodes.iter().flat_map(|n| &n.memory).map(|r| r.end).max().unwrap_or(0);
        let can_have_five =
            kernel.version >= KernelVersion::new(4, 14) && kernel.config.pgtable_levels > 4;
        let arm64_large = machine.arch == Arch::Arm64 && end > 1 << 48;
        Self {
            five_level_paging: machine.arch == Arch::X86_64 && can_have_five && end > 1 << 46,
            physmem_bits: arm64_large.then_some(52),
            ..Self::default()
        }
    }

    /// What a captured boot says.
    pub fn of_facts(facts: &BootFacts) -> Self {
        let bits = |symbol: &str, plausible: RangeInclusive<u32>| {
            let number = facts.vmcore_number(symbol).and_then(|n| n.try_into().ok());
            number.filter(|n| plausible.contains(n))
        };
        let section_entry = facts.vmcore_number("SIZE(mem_section)");
        Self {
            five_level_paging: facts.uses_five_levels(),
            hash_mmu: facts.arch == Arch::Ppc64
                && facts.cmdline.split_whitespace().any(|w| w == "disable_radix"),
            // The captured hash boots ran in an emulator without large pages.
            hash_vmemmap_bytes: facts.page_bytes,
            s390_edat1: false,
            page_table_levels: match facts.vmcore_number("NUMBER(VA_BITS)") {
                Some(57) => Some(5),
                Some(39) => Some(3),
                Some(48) => Some(4),
                _ => None,
            },
            phys_offset: facts.vmcore_number("NUMBER(PHYS_OFFSET)"),
            vmemmap_base: facts.vmemmap_base,
            struct_page_bytes: Some(facts.struct_page_bytes),
            section_bits: bits("NUMBER(SECTION_SIZE_BITS)", 22..=34),
            physmem_bits: bits("NUMBER(MAX_PHYSMEM_BITS)", 36..=60),
            mem_section_bytes: section_entry.filter(|n| (8..=256).contains(n)),
        }
    }

    /// Levels of page tables in use below the kernel's own top-level table, of
    /// `configured` ones.
    pub(super) fn table_levels(&self, arch: Arch, configured: u32) -> u32 {
        let levels = self.page_table_levels.unwrap_or(configured);
        match arch {
            Arch::X86_64 if self.five_level_paging => 5,
            Arch::X86_64 => 4,
            // The vmemmap shares its upper levels with the kernel image here.
            Arch::Arm64 => levels.min(4),
            _ => levels,
        }
    }
}
