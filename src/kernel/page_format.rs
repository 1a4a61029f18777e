//! From a version, an architecture and a configuration to the form of struct pages.
//!
//! [`of`] makes the [`PageFormat`] that [`super::struct_page`] works with. Widths and
//! shifts follow `include/linux/page-flags-layout.h`: node, zone and last CPU and
//! process from the top of the flags. Checked against captured boots for 5.10 to 7.3;
//! what older versions have differently is recalled where `docs/kernel-eras.md` says so.

use super::struct_page::{BootmemMarks, PageFormat, TailForm, WORDS, WORDS_TO_4_17};
use super::version::{KernelModel, KernelVersion};
use crate::machine::Arch;

/// Bits of the flags that number a process in the last CPU and process.
const PID_BITS: u32 = 8;
/// Bits of a KASAN tag.
const KASAN_TAG_BITS: u32 = 8;
/// Bits of a generation of the multi-generational LRU (`MAX_NR_GENS` 4, plus none).
const LRU_GEN_BITS: u32 = 3;

/// The form of struct pages under the rules of `model`.
pub fn of(model: &KernelModel) -> PageFormat {
    let since = |major, minor| model.version >= KernelVersion::new(major, minor);
    let config = &model.config;
    // A node number without bits may have any shift: it is always 0.
    let node_shift = 64 - config.nodes_shift;
    let zone_shift = node_shift - zone_bits(model);
    let cpupid_bits = cpupid_bits(model);
    PageFormat {
        vmemmap_base: vmemmap_base(model.version, model.arch, false),
        node_shift: node_shift.min(63),
        zone_shift,
        cpupid_mask: ((1 << cpupid_bits) - 1) << (zone_shift - cpupid_bits),
        reserved_mask: 1 << reserved_bit(model.version),
        prep_mask: (1 << 22) - 1,
        buddy_mark: buddy_mark(model.version),
        zone_numbers: zone_numbers(model),
        words: if since(4, 18) { WORDS } else { WORDS_TO_4_17 },
        counts_swapped: matches!(model.arch, Arch::S390x | Arch::Sparc64),
        list_poison: list_poison(model),
        bootmem_marks: bootmem_marks(model),
        tail_form: match model.version {
            // Captured up to 6.1, from 6.12, and from 7.1; the versions between are recalled.
            _ if since(7, 0) => TailForm::MaskAndMapping,
            _ if since(6, 7) => TailForm::HeadAndMapping,
            _ => TailForm::Head,
        },
    }
}

/// Bytes of a struct page (`include/linux/mm_types.h`): 56, a word for memory
/// cgroups, and rounded to 16 where SLUB wants double-word compare and exchange. A
/// last CPU and process that does not fit the flags takes a word of its own.
pub fn struct_page_bytes(model: &KernelModel) -> u64 {
    let own_word = model.config.numa_balancing && cpupid_bits(model) == 0;
    let bytes = 56 + 8 * u64::from(model.config.memcg) + 8 * u64::from(own_word);
    let rounds = matches!(model.arch, Arch::X86_64 | Arch::S390x | Arch::Arm64);
    if rounds { bytes.next_multiple_of(16) } else { bytes }
}

/// Virtual address of the struct page of page frame 0, without randomisation and with
/// physical memory counted from 0. Where the linear map starts at the first DRAM
/// (arm64, riscv64), Linux subtracts its struct pages.
pub fn vmemmap_base(version: KernelVersion, arch: Arch, five_levels: bool) -> u64 {
    let since = |major, minor| version >= KernelVersion::new(major, minor);
    match arch {
        Arch::X86_64 if five_levels => 0xffd4_0000_0000_0000,
        Arch::X86_64 => 0xffff_ea00_0000_0000,
        Arch::Arm64 if since(6, 9) => 0xffff_fdff_c000_0000,
        Arch::Arm64 => 0xffff_fc00_0000_0000,
        Arch::Ppc64 if since(5, 2) => 0xc00c_0000_0000_0000,
        Arch::Ppc64 => 0xf000_0000_0000_0000,
        Arch::S390x => 0x0372_0000_0000,
        Arch::Riscv64 => 0xff1c_0000_0000_0000,
        Arch::Sparc64 => 0x0002_0000_0000_0000,
    }
}

/// Which of DMA, DMA32, Normal, Movable and Device are configured.
fn zones(model: &KernelModel) -> [bool; 5] {
    let c = &model.config;
    [c.zone_dma, c.zone_dma32, true, true, c.zone_device]
}

/// `ZONES_SHIFT`: a zone more or less can change where everything below lies.
fn zone_bits(model: &KernelModel) -> u32 {
    match zones(model).into_iter().filter(|z| *z).count() {
        0..=2 => 1,
        3..=4 => 2,
        _ => 3,
    }
}

/// Numbers of DMA, DMA32, Normal and Movable; a zone that is not configured has the
/// number of the next one, and no page.
fn zone_numbers(model: &KernelModel) -> [u64; 4] {
    let configured = zones(model);
    let mut next = 0;
    [0, 1, 2, 3].map(|kind| {
        let number = next;
        next += u64::from(configured[kind]);
        number
    })
}

/// `LAST_CPUPID_WIDTH`; 0 where it does not fit or NUMA balancing is off.
fn cpupid_bits(model: &KernelModel) -> u32 {
    let c = &model.config;
    if !c.numa_balancing || c.nodes_shift == 0 {
        return 0;
    }
    let bits = PID_BITS + c.nr_cpus_bits();
    let tag = if c.kasan_sw_tags || c.kasan_hw_tags { KASAN_TAG_BITS } else { 0 };
    let lru_gen = if c.lru_gen { LRU_GEN_BITS } else { 0 };
    let others = zone_bits(model) + c.nodes_shift + tag + lru_gen;
    // NR_PAGEFLAGS depends on many options; 23 is that of the captured kernels.
    if bits + others <= 64 - 23 { bits } else { 0 }
}

/// The bit of `PG_reserved` (`enum pageflags`). 12 in 5.10 and 6.1 and 13 from 6.12
/// are captured, the others recalled.
fn reserved_bit(version: KernelVersion) -> u32 {
    match version {
        v if v >= KernelVersion::new(6, 10) => 13,
        v if v >= KernelVersion::new(6, 6) => 14,
        v if v >= KernelVersion::new(4, 20) => 12,
        v if v >= KernelVersion::new(4, 10) => 11,
        _ => 10,
    }
}

/// What stands for `_mapcount` on the head of a free block. 4.17 and older used
/// -128; later a bit is cleared in all ones; from 6.12 the top byte is a type.
fn buddy_mark(version: KernelVersion) -> u32 {
    match version {
        v if v >= KernelVersion::new(6, 12) => 0xf000_0000,
        v if v >= KernelVersion::new(6, 11) => !0x4000_0000,
        v if v >= KernelVersion::new(4, 18) => !0x80,
        _ => u32::MAX - 127,
    }
}

/// `LIST_POISON1` and `2`: an offset of the architecture, and 0x100 and 0x122 (0x200
/// in versions before 4.20, recalled).
fn list_poison(model: &KernelModel) -> [u64; 2] {
    let delta = match model.arch {
        Arch::X86_64 | Arch::Arm64 | Arch::Riscv64 => 0xdead_0000_0000_0000,
        Arch::Ppc64 => 0x5dea_dbee_f000_0000,
        Arch::S390x | Arch::Sparc64 => 0,
    };
    let second = if model.version >= KernelVersion::new(4, 20) { 0x122 } else { 0x200 };
    [delta + 0x100, delta + second]
}

/// Captured: the first form in 5.10 to 6.12, the second in 6.18 and 7.1, the third in
/// 7.2, none in 7.3 and on other architectures.
fn bootmem_marks(model: &KernelModel) -> BootmemMarks {
    let since = |major, minor| model.version >= KernelVersion::new(major, minor);
    let c = &model.config;
    let registers = c.memory_hotremove || c.hugetlb_page_optimize_vmemmap;
    match model.version {
        _ if model.arch != Arch::X86_64 || !registers || since(7, 3) => BootmemMarks::None,
        _ if since(7, 2) => BootmemMarks::MemmapOnly,
        _ if since(6, 15) => BootmemMarks::TypeInPrivate,
        _ => BootmemMarks::TypeInIndex,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(arch: Arch, minor: u32) -> KernelModel {
        KernelModel::new(KernelVersion::new(6, minor), arch)
    }

    // Flags of captured boots: node 1 (s390x: none), zone Normal.
    #[test]
    fn shifts_follow_nodes_zones_and_cpus() {
        use super::super::layout::ZoneKind::Normal;
        use crate::pfn::Nid;
        let expect = [
            (Arch::X86_64, 12, 1, 0x0057_ffff_c000_0000),
            (Arch::Arm64, 12, 1, 0x15ff_ff00_0000_0000),
            (Arch::Arm64, 1, 1, 0x1bff_fc00_0000_0000),
            (Arch::Ppc64, 12, 1, 0x013f_fff8_0000_0000),
            (Arch::Riscv64, 12, 1, 0x5fff_e000_0000_0000),
            (Arch::S390x, 12, 0, 0x4000_0000_0000_0000),
        ];
        for (arch, minor, nid, flags) in expect {
            let format = of(&model(arch, minor));
            assert_eq!(format.flags(Nid(nid), Normal), flags, "{arch} 6.{minor}");
        }
    }

    #[test]
    fn without_numa_balancing_there_is_no_last_cpu() {
        let mut model = model(Arch::X86_64, 12);
        model.config.numa_balancing = false;
        assert_eq!(of(&model).cpupid_mask, 0);
        assert_eq!(struct_page_bytes(&model), 64);
    }

    #[test]
    fn a_last_cpu_that_does_not_fit_makes_struct_pages_larger() {
        let mut model = model(Arch::X86_64, 12);
        assert_eq!(struct_page_bytes(&model), 64);
        model.config.nr_cpus = 65536;
        model.config.kasan_sw_tags = true;
        assert_eq!((of(&model).cpupid_mask, struct_page_bytes(&model)), (0, 80));
        model.config.memcg = false;
        model.config.numa_balancing = false;
        assert_eq!(struct_page_bytes(&model), 64);
    }
}
