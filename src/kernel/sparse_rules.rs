//! What one kernel release, built and started in one way, does in `sparse_init`.
//!
//! A [`KernelModel`] says what the release and its configuration are, [`Platform`] what
//! processor and firmware add; [`ReleaseRules`] are the consequences, computed once.
//! The release *text* matters beside the version, because distributions carry changes
//! back: Debian's 5.10 and 6.1 have the larger usage map of 6.8. [`super::sparse`],
//! [`super::zones`] and [`super::memblock`] ask these rules and never compare versions.

mod eras;
mod geometry;
mod platform;

pub use platform::Platform;

use super::config::KernelConfig;
use super::memblock::{ALLOC_ACCESSIBLE, ALLOC_NOLEAKTRACE, MemblockRules};
use super::page_format;
use super::version::{KernelModel, KernelVersion};
use crate::machine::Arch;

/// The rules of one release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseRules {
    /// The version that the release text names.
    pub version: KernelVersion,
    /// The architecture.
    pub arch: Arch,
    /// The base page size in bytes.
    pub page_bytes: u64,
    /// `sizeof(struct page)`.
    pub struct_page_bytes: u64,
    /// The configuration.
    pub config: KernelConfig,
    /// Processor and firmware.
    pub platform: Platform,
    /// The allocator's rules.
    pub memblock: MemblockRules,
    /// A section has 2 to this power bytes (`SECTION_SIZE_BITS`).
    pub section_bits: u32,
    /// Physical addresses are below 2 to this power (`MAX_PHYSMEM_BITS`).
    pub physmem_bits: u32,
    /// `sizeof(struct mem_section)`.
    pub mem_section_bytes: u64,
    /// From 4.15 on the first level of the section table is allocated.
    pub root_array_is_allocated: bool,
    /// Bytes of a section's usage map: pageblock flags and, later, more.
    pub usage_bytes: u64,
    /// Usage maps are placed in the section of the node's `pglist_data`
    /// (`CONFIG_MEMORY_HOTREMOVE`, up to 6.19).
    pub usage_near_pgdat: bool,
    /// How memory for the memmap is asked for.
    pub buffer: BufferRule,
    /// How a section's piece of the memmap is mapped.
    pub populate: Populate,
    /// What one entry of a PMD table maps (`PMD_SIZE`).
    pub pmd_bytes: u64,
    /// Page tables that `vmemmap_populate` allocates, from the top; the last level
    /// is needed only for base pages.
    pub tables: Vec<TableLevel>,
    /// The virtual address of the struct page of pfn 0.
    pub vmemmap_base: u64,
    /// The upper limit in requests for the memmap: 0, from 6.17 on 1.
    pub memmap_max_addr: u64,
    /// Names of the functions that memblock prints as callers.
    pub callers: Callers,
}

/// How the memory for the memmap is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferRule {
    /// Up to 4.18 on x86_64: one block per run of sections, PMD aligned.
    PerRun,
    /// Up to 4.18 elsewhere, and from 7.2 on: piece by piece.
    None,
    /// 4.19 to 7.1, `sparse_buffer_init`.
    SparseBuffer {
        /// From 5.7 on: on the node or not at all, aligned to a section's memmap.
        /// Before: page aligned, on any node if need be.
        exact: bool,
        /// From 5.4 on bytes skipped for alignment are given back; before they leak.
        frees_skipped: bool,
    },
}

/// How a section's piece of the memmap is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Populate {
    /// PMD mappings, base pages where no memory for one is to be had
    /// (`vmemmap_populate_hugepages`).
    HugePages,
    /// Base pages (`vmemmap_populate_basepages`).
    BasePages,
    /// ppc64 radix: 2 MiB blocks.
    PpcRadix {
        /// Up to 6.5 each block is entered in a list, and tables come after the block.
        keeps_list: bool,
    },
    /// ppc64 hash: blocks of this many bytes, each entered in a list.
    PpcHash {
        /// The page size of the vmemmap in bytes: 16 MiB, 64 KiB or 4 KiB.
        block_bytes: u64,
    },
    /// s390: 1 MiB segments with EDAT1, else base pages.
    S390 {
        /// The processor has EDAT1.
        segments: bool,
        /// 6.12 takes pieces from the sparse buffer; 6.1 and 7.2 do not.
        from_buffer: bool,
    },
    /// sparc64: 8 MiB blocks, past the buffer.
    Sparc,
}

/// A level of page tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableLevel {
    /// How many bytes of the vmemmap one table covers.
    pub covers_bytes: u64,
    /// The size of a table, and its alignment.
    pub table_bytes: u64,
}

/// Callers as `memblock=debug` prints them.
///
/// They depend on what the compiler inlined; names were seen in Debian's kernels,
/// except `block` on x86_64 up to 7.1, which no captured boot shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Callers {
    /// The root array.
    pub root: &'static str,
    /// A usage map.
    pub usage: &'static str,
    /// The buffer.
    pub buffer: &'static str,
    /// A page table.
    pub table: &'static str,
    /// A single piece of the memmap.
    pub block: &'static str,
}

impl ReleaseRules {
    /// The rules of `kernel` with base pages of `page_bytes` on `platform`.
    pub fn new(kernel: &KernelModel, page_bytes: u64, platform: Platform) -> Self {
        let (version, arch, config) = (kernel.version, kernel.arch, &kernel.config);
        let release = kernel.release();
        let usual_bits = geometry::section_bits(version, arch, page_bytes);
        let section_bits = platform.section_bits.unwrap_or(usual_bits);
        let usual_physmem = geometry::physmem_bits(version, arch, &platform);
        let vmemmap_base = platform.vmemmap_base.unwrap_or_else(|| {
            page_format::vmemmap_base(version, arch, platform.five_level_paging)
        });
        let place = geometry::Place { release: &release, arch, page_bytes, config };
        Self {
            version,
            arch,
            page_bytes,
            struct_page_bytes: platform
                .struct_page_bytes
                .unwrap_or_else(|| page_format::struct_page_bytes(kernel)),
            memblock: eras::memblock_rules(version, arch, page_bytes, config),
            section_bits,
            physmem_bits: platform.physmem_bits.unwrap_or(usual_physmem),
            mem_section_bytes: platform.mem_section_bytes.unwrap_or(if config.page_extension {
                32
            } else {
                16
            }),
            root_array_is_allocated: since(version, 4, 15),
            usage_bytes: geometry::usage_bytes(&place, section_bits),
            usage_near_pgdat: config.memory_hotremove && !since(version, 7, 0),
            buffer: eras::buffer_rule(version, arch),
            populate: eras::populate(version, arch, page_bytes, &platform),
            pmd_bytes: geometry::pmd_bytes(arch, page_bytes, &platform),
            tables: geometry::tables(&place, &platform),
            vmemmap_base,
            memmap_max_addr: if since(version, 6, 17) {
                ALLOC_NOLEAKTRACE
            } else {
                ALLOC_ACCESSIBLE
            },
            callers: eras::callers(version, arch),
            config: config.clone(),
            platform,
        }
    }

    /// Bytes of a section.
    pub fn section_bytes(&self) -> u64 {
        1 << self.section_bits
    }

    /// Pages of a section (`PAGES_PER_SECTION`).
    pub fn pages_per_section(&self) -> u64 {
        self.section_bytes() / self.page_bytes
    }

    /// Bytes of a section's memmap.
    pub fn section_memmap_bytes(&self) -> u64 {
        self.pages_per_section() * self.struct_page_bytes
    }

    /// The same as the buffer counts it, in whole PMDs (`section_map_size`).
    pub fn section_map_size(&self) -> u64 {
        self.section_memmap_bytes().next_multiple_of(self.pmd_bytes)
    }

    /// Pages of the largest buddy block (`MAX_ORDER_NR_PAGES`).
    pub fn max_order_pages(&self) -> u64 {
        1 << geometry::max_order(self.version, self.arch, self.page_bytes, &self.config)
    }

    /// Pages of a pageblock, at most a largest block (`pageblock_nr_pages`).
    pub fn pageblock_pages(&self) -> u64 {
        let bytes = geometry::pageblock_bytes(self.arch, self.page_bytes);
        (bytes / self.page_bytes).min(self.max_order_pages())
    }

    /// The lowest address that the kernel wants its memmap at, `__pa(MAX_DMA_ADDRESS)`.
    /// `dram_start` is the lowest byte of memory.
    pub fn memmap_min_addr(&self, dram_start: u64) -> u64 {
        match self.arch {
            Arch::X86_64 => 16 << 20,
            // The linear map starts at this physical address; kernels built for 52-bit
            // addresses on a 48-bit processor have an address far above all memory here.
            Arch::Arm64 => self.platform.phys_offset.unwrap_or(dram_start & !((1 << 30) - 1)),
            Arch::Riscv64 => dram_start,
            Arch::S390x => 2 << 30,
            // MAX_DMA_ADDRESS is ~0, so that the first attempt finds an empty window.
            Arch::Ppc64 => u64::MAX >> 4,
            Arch::Sparc64 => u64::MAX,
        }
    }
}

pub(super) fn since(version: KernelVersion, major: u32, minor: u32) -> bool {
    version >= KernelVersion::new(major, minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(release: &str, arch: Arch, page_bytes: u64) -> ReleaseRules {
        let kernel = KernelModel::from_release(release, arch).expect("modelled");
        ReleaseRules::new(&kernel, page_bytes, Platform::default())
    }

    fn x86(release: &str) -> ReleaseRules {
        rules(release, Arch::X86_64, 4096)
    }

    // Pageblock flags; 5.3 adds the subsection map, 6.8 an rcu_head, 6.17 wider flags.
    // Maintained releases have the rcu_head earlier.
    #[test]
    fn usage_maps_grow_with_versions_and_backports() {
        let expected = [
            ("5.2", 32),
            ("5.3", 40),
            ("6.7", 40),
            ("6.8", 56),
            ("6.17", 88),
            ("5.10", 40),
            ("5.10.0-32-cloud-amd64", 56),
            ("5.10.0-8-amd64", 40),
            ("5.10.223", 56),
            ("6.1.0-57-amd64", 56),
            ("6.1.75", 40),
            ("6.1.76-arch1", 56),
        ];
        for (release, bytes) in expected {
            assert_eq!(x86(release).usage_bytes, bytes, "{release}");
        }
    }

    #[test]
    fn buffers_come_and_go() {
        let sparse = |exact, frees_skipped| BufferRule::SparseBuffer { exact, frees_skipped };
        for (release, rule) in [
            ("4.18", BufferRule::PerRun),
            ("4.19", sparse(false, false)),
            ("5.4", sparse(false, true)),
            ("5.7", sparse(true, true)),
            ("7.1", sparse(true, true)),
            ("7.2", BufferRule::None),
        ] {
            assert_eq!(x86(release).buffer, rule, "{release}");
        }
        assert_eq!(rules("4.18", Arch::Arm64, 4096).buffer, BufferRule::None);
    }

    #[test]
    fn sections_have_the_sizes_of_their_architecture() {
        for (arch, page_bytes, release, pages, map_size) in [
            (Arch::X86_64, 4096, "6.12", 32768, 2 << 20),
            (Arch::Arm64, 4096, "5.11", 262_144, 16 << 20),
            (Arch::Arm64, 16384, "6.1", 8192, 32 << 20),
            (Arch::Arm64, 65536, "6.1", 8192, 512 << 20),
            (Arch::Ppc64, 65536, "6.1", 256, 2 << 20),
            (Arch::S390x, 4096, "6.1", 65536, 4 << 20),
            (Arch::Sparc64, 8192, "6.1", 131_072, 8 << 20),
        ] {
            let r = rules(release, arch, page_bytes);
            assert_eq!((r.pages_per_section(), r.section_map_size()), (pages, map_size), "{arch}");
        }
    }

    #[test]
    fn the_lowest_address_wanted_is_the_architectures() {
        assert_eq!(x86("6.1").memmap_min_addr(0), 16 << 20);
        let arm = rules("6.1", Arch::Arm64, 4096);
        assert_eq!(arm.memmap_min_addr(0x8800_0000), 0x8000_0000);
        assert_eq!(rules("6.1", Arch::Ppc64, 65536).memmap_min_addr(0), 0x0fff_ffff_ffff_ffff);
        assert_eq!(x86("6.16").memmap_max_addr, 0);
        assert_eq!(x86("6.17").memmap_max_addr, 1);
    }
}
