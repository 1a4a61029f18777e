//! The bytes of a struct page.
//!
//! [`PageFormat`] knows where the fields lie and which bits the flags have; from it
//! comes the image of a page in each [`PageState`]. This is the slowly written
//! truth that every executed run is compared with; the fast writers in `exec` take
//! only constants from here.
//!
//! Images have the word order of 4.18 and later on a little-endian machine, the one
//! that `exec` writes ([`PageFormat::image`]). What a kernel really has in memory,
//! up to 4.17 or on s390x as well, is [`PageFormat::kernel_image`]: a permutation of
//! the words and of the halves of one. Layout: `include/linux/mm_types.h`.

use super::layout::ZoneKind;
use crate::pfn::{Nid, Pfn};
use serde::{Deserialize, Serialize};

/// Bytes of a struct page in every configuration modelled.
pub const STRUCT_PAGE_BYTES: u64 = 64;

/// The eight 64-bit words of a struct page.
pub type PageWords = [u64; 8];

/// Word of the flags.
pub const FLAGS: usize = 0;
/// Words of `lru.next` and `lru.prev`.
pub const LRU: [usize; 2] = [1, 2];
/// Word of `private`, which holds the order of a free block's head.
pub const PRIVATE: usize = 5;
/// Word that holds `_mapcount` (or the page type) below and `_refcount` above.
pub const COUNTS: usize = 6;

/// Word of `mapping`.
pub const MAPPING: usize = 3;
/// Word of `index`.
pub const INDEX: usize = 4;
/// Word of `memcg_data`.
pub const MEMCG: usize = 7;

/// At which word of the kernel's struct page each word of an image lies.
pub type WordMap = [usize; 8];

/// 4.18 and later: the words lie as the constants above say.
pub const WORDS: WordMap = [0, 1, 2, 3, 4, 5, 6, 7];
/// Up to 4.17: `flags mapping index counts lru.next lru.prev private memcg`.
pub const WORDS_TO_4_17: WordMap = [0, 4, 5, 1, 2, 6, 3, 7];

/// How pages that hold the memmap or a node's data are marked once the kernel has
/// noted what they are for (x86_64, `register_page_bootmem_info_node`, after boot's
/// memory initialisation; up to 7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BootmemMarks {
    /// Not at all.
    None,
    /// `PG_private`; the type in `index`, its number in `private`.
    TypeInIndex,
    /// `PG_private`; number and type share `private`.
    TypeInPrivate,
    /// The same without the flag, and for the memmap only (7.2).
    MemmapOnly,
}

/// What the tail of a gigantic page has in place of `lru.next` and `mapping`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TailForm {
    /// The head's address plus 1; no mapping (5.10 and 6.1).
    Head,
    /// The head's address plus 1, and `TAIL_MAPPING` (6.12 and 6.18).
    HeadAndMapping,
    /// A mask that leads to the head, plus 1, and `TAIL_MAPPING` (7.1 on).
    MaskAndMapping,
}

/// `TAIL_MAPPING`, without the architecture's offset.
const TAIL_MAPPING: u64 = 0x400;
/// `PG_head` from 6.6 on.
const HEAD_MASK: u64 = 1 << 6;
/// The page type of HugeTLB from 6.12 on.
const HUGETLB_MARK: u32 = 0xf400_0000;
/// The flag `HPG_freed`, kept in `private` of a free huge page.
const HUGETLB_FREED: u64 = 1 << 3;

/// What a marked page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootmemUse {
    /// The memmap of the section with this number.
    Memmap(u64),
    /// The data of this node.
    NodeData(Nid),
}

/// Bit positions and constants of struct pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageFormat {
    /// Virtual address of the struct page of page frame 0.
    pub vmemmap_base: u64,
    /// Lowest bit of the node id in the flags.
    pub node_shift: u32,
    /// Lowest bit of the zone number in the flags.
    pub zone_shift: u32,
    /// The bits of "no last CPU and process" in the flags.
    pub cpupid_mask: u64,
    /// The bit of `PG_reserved`.
    pub reserved_mask: u64,
    /// Flags that freeing takes off every page (`PAGE_FLAGS_CHECK_AT_PREP`).
    pub prep_mask: u64,
    /// What stands in `_mapcount`'s place on the head of a free block.
    pub buddy_mark: u32,
    /// Zone numbers of DMA, DMA32, Normal and Movable.
    pub zone_numbers: [u64; 4],
    /// Where the kernel has each word.
    pub words: WordMap,
    /// Whether `_mapcount` and `_refcount` swap halves: on a big-endian machine.
    pub counts_swapped: bool,
    /// What `list_del` leaves in `lru.next` and `lru.prev` there.
    pub list_poison: [u64; 2],
    /// How pages of the memmap and of node data are marked later.
    pub bootmem_marks: BootmemMarks,
    /// What tails of gigantic pages look like.
    pub tail_form: TailForm,
}

/// What became of a page at the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageState {
    /// Initialised and not freed.
    Initialised,
    /// Initialised and reserved.
    Reserved,
    /// Inside a free block, not its head.
    Free,
    /// Was the head of a free block that merged into a lower one.
    FreeMerged,
    /// Head of a free block of this order.
    FreeHead(u32),
}

/// What `list_del` leaves in `lru.next` and `lru.prev` (`LIST_POISON1` and `2`).
pub const LIST_POISON: [u64; 2] = [0xdead_0000_0000_0100, 0xdead_0000_0000_0122];

impl PageFormat {
    /// The virtual address of a page's `lru`, to which list pointers point.
    pub fn lru_address(&self, pfn: Pfn) -> u64 {
        let page = self.vmemmap_base.wrapping_add(pfn.0.wrapping_mul(STRUCT_PAGE_BYTES));
        page.wrapping_add(8 * LRU[0] as u64)
    }

    /// The page frame whose `lru` lies at `address`, if one does.
    pub fn pfn_of_lru(&self, address: u64) -> Option<Pfn> {
        let offset = address.checked_sub(self.lru_address(Pfn(0)))?;
        offset.is_multiple_of(STRUCT_PAGE_BYTES).then_some(Pfn(offset / STRUCT_PAGE_BYTES))
    }

    /// The flags of a page right after `__init_single_page`.
    pub fn flags(&self, nid: Nid, zone: ZoneKind) -> u64 {
        let zone = self.zone_numbers[zone as usize] << self.zone_shift;
        u64::from(nid.0).checked_shl(self.node_shift).unwrap_or(0) | zone | self.cpupid_mask
    }

    /// The bits of the flags that say node, zone and last CPU and process: no state
    /// of a page changes node or zone.
    pub fn place_mask(&self) -> u64 {
        self.cpupid_mask | !((1u64 << self.zone_shift) - 1)
    }

    /// The finished struct page of `pfn` in `state`. The list pointers of a block's
    /// head depend on the order of frees: they are given as an empty list's here.
    pub fn image(&self, pfn: Pfn, nid: Nid, zone: ZoneKind, state: PageState) -> PageWords {
        let mut words = [0; 8];
        words[FLAGS] = self.flags(nid, zone);
        words[LRU[0]] = self.lru_address(pfn);
        words[LRU[1]] = self.lru_address(pfn);
        words[COUNTS] = match state {
            PageState::Initialised | PageState::Reserved => counts(1, u32::MAX),
            PageState::Free | PageState::FreeMerged => counts(0, u32::MAX),
            PageState::FreeHead(_) => counts(0, self.buddy_mark),
        };
        match state {
            PageState::Reserved => words[FLAGS] |= self.reserved_mask,
            PageState::FreeHead(order) => words[PRIVATE] = u64::from(order),
            PageState::FreeMerged => {
                words[LRU[0]] = LIST_POISON[0];
                words[LRU[1]] = LIST_POISON[1];
            }
            PageState::Initialised | PageState::Free => {}
        }
        words
    }
}

impl PageFormat {
    /// The virtual address of a page's `lru` in the kernel of this format.
    pub fn kernel_lru_address(&self, pfn: Pfn) -> u64 {
        let page = self.vmemmap_base.wrapping_add(pfn.0.wrapping_mul(STRUCT_PAGE_BYTES));
        page.wrapping_add(8 * self.words[LRU[0]] as u64)
    }

    /// The finished struct page as this kernel has it in memory, word by word.
    pub fn kernel_image(&self, pfn: Pfn, nid: Nid, zone: ZoneKind, state: PageState) -> PageWords {
        let mut words = self.image(pfn, nid, zone, state);
        match state {
            PageState::FreeMerged => {
                words[LRU[0]] = self.list_poison[0];
                words[LRU[1]] = self.list_poison[1];
            }
            _ => {
                words[LRU[0]] = self.kernel_lru_address(pfn);
                words[LRU[1]] = self.kernel_lru_address(pfn);
            }
        }
        self.to_kernel(words)
    }

    /// A reserved page that holds part of the memmap or of a node's data, after the
    /// kernel marked it (`mm/bootmem_info.c: get_page_bootmem`, v6.12).
    pub fn marked_image(&self, pfn: Pfn, nid: Nid, zone: ZoneKind, what: BootmemUse) -> PageWords {
        let mut words = self.image(pfn, nid, zone, PageState::Reserved);
        words[LRU[0]] = self.kernel_lru_address(pfn);
        words[LRU[1]] = self.kernel_lru_address(pfn);
        // The types are counted from 12 as long as they stand alone, then from 1.
        let (number, kind) = match what {
            BootmemUse::Memmap(section) => (section, 0),
            BootmemUse::NodeData(node) => (u64::from(node.0), 2),
        };
        let skipped = self.bootmem_marks == BootmemMarks::MemmapOnly && kind != 0;
        if self.bootmem_marks == BootmemMarks::None || skipped {
            return self.to_kernel(words);
        }
        words[COUNTS] = counts(2, u32::MAX);
        if self.bootmem_marks == BootmemMarks::TypeInIndex {
            words[INDEX] = 12 + kind;
            words[PRIVATE] = number;
        } else {
            words[PRIVATE] = number << 4 | (1 + kind);
        }
        if self.bootmem_marks != BootmemMarks::MemmapOnly {
            words[FLAGS] |= self.private_mask();
        }
        self.to_kernel(words)
    }

    /// A page of an unused gigantic page of `pages` (a power of two, naturally aligned),
    /// once HugeTLB has taken it over without giving back struct pages. The head's form
    /// is that of 6.12 and later, and its list pointers are given as an empty list's
    /// (`mm/hugetlb.c: hugetlb_folio_init_vmemmap`, v6.12).
    pub fn gigantic_image(&self, pfn: Pfn, nid: Nid, zone: ZoneKind, pages: u64) -> PageWords {
        let mut words = self.image(pfn, nid, zone, PageState::Free);
        let bytes = pages.max(1).wrapping_mul(STRUCT_PAGE_BYTES);
        let head = pfn.align_down(pages.max(1));
        let head_address = self.vmemmap_base.wrapping_add(head.0.wrapping_mul(STRUCT_PAGE_BYTES));
        words[LRU[0]] = self.kernel_lru_address(pfn);
        words[LRU[1]] = self.kernel_lru_address(pfn);
        if head == pfn {
            words[FLAGS] |= HEAD_MASK;
            words[COUNTS] = counts(0, HUGETLB_MARK);
            words[PRIVATE] = HUGETLB_FREED;
            return self.to_kernel(words);
        }
        words[LRU[0]] = match self.tail_form {
            TailForm::Head | TailForm::HeadAndMapping => head_address + 1,
            TailForm::MaskAndMapping => (!(bytes - 1)).wrapping_add(1),
        };
        if self.tail_form != TailForm::Head {
            words[MAPPING] = self.list_poison[0] - 0x100 + TAIL_MAPPING;
        }
        self.to_kernel(words)
    }

    /// The bit of `PG_private`, which follows `PG_reserved` in every version.
    pub fn private_mask(&self) -> u64 {
        self.reserved_mask << 1
    }

    /// An image in the order of the kernel's memory.
    pub fn to_kernel(&self, image: PageWords) -> PageWords {
        let mut out = [0; 8];
        for (at, word) in self.words.into_iter().zip(image) {
            out[at] = word;
        }
        self.swap_counts(&mut out);
        out
    }

    /// The kernel's words in the order of an image.
    pub fn from_kernel(&self, mut words: PageWords) -> PageWords {
        self.swap_counts(&mut words);
        self.words.map(|at| words[at])
    }

    fn swap_counts(&self, words: &mut PageWords) {
        if self.counts_swapped {
            let at = self.words[COUNTS];
            words[at] = words[at].rotate_left(32);
        }
    }

    /// The order of the free block whose head these words of the kernel are.
    pub fn free_head_order(&self, kernel_words: PageWords) -> Option<u32> {
        let image = self.from_kernel(kernel_words);
        let mark = image[COUNTS] == counts(0, self.buddy_mark);
        mark.then(|| u32::try_from(image[PRIVATE]).ok().filter(|o| *o < 32)).flatten()
    }
}

/// `_refcount` and `_mapcount` as they share a word.
pub const fn counts(refcount: u32, mapcount: u32) -> u64 {
    (refcount as u64) << 32 | mapcount as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::version::{KernelModel, KernelVersion};
    use crate::machine::Arch;

    fn format() -> PageFormat {
        KernelModel::new(KernelVersion::new(6, 12), Arch::X86_64).page_format()
    }

    // Words of a captured boot: 6.12, x86_64, two nodes of 4 GiB.
    #[test]
    fn images_equal_struct_pages_of_a_captured_boot() {
        let f = format();
        let reserved = f.image(Pfn(1), Nid(0), ZoneKind::Dma, PageState::Reserved);
        assert_eq!(
            reserved[..3],
            [0x0007_ffff_c000_2000, 0xffff_ea00_0000_0048, 0xffff_ea00_0000_0048]
        );
        assert_eq!(reserved[3..], [0, 0, 0, 0x1_ffff_ffff, 0]);
        let free = f.image(Pfn(4095), Nid(0), ZoneKind::Dma, PageState::Free);
        assert_eq!(free[FLAGS], 0x0007_ffff_c000_0000);
        assert_eq!(free[COUNTS], 0xffff_ffff);
        let head = f.image(Pfn(24576), Nid(0), ZoneKind::Dma32, PageState::FreeHead(10));
        assert_eq!(
            (head[FLAGS], head[PRIVATE], head[COUNTS]),
            (0x000f_ffff_c000_0000, 10, 0xf000_0000)
        );
    }

    #[test]
    fn before_4_18_the_words_lie_elsewhere() {
        let f = KernelModel::new(KernelVersion::new(4, 15), Arch::X86_64).page_format();
        let words = f.kernel_image(Pfn(1), Nid(0), ZoneKind::Dma, PageState::FreeHead(3));
        let lru = 0xffff_ea00_0000_0060;
        assert_eq!(words[1..], [0, 0, 0xffff_ff80, lru, lru, 3, 0]);
        assert_eq!(f.from_kernel(words)[PRIVATE], 3);
        assert_eq!(f.free_head_order(words), Some(3));
    }

    #[test]
    fn big_endian_machines_have_the_reference_count_below() {
        let f = KernelModel::new(KernelVersion::new(6, 12), Arch::S390x).page_format();
        let words = f.kernel_image(Pfn(1), Nid(0), ZoneKind::Normal, PageState::Reserved);
        assert_eq!(words[FLAGS], 0x4000_0000_0000_2000);
        assert_eq!(words[COUNTS], 0xffff_ffff_0000_0001);
        assert_eq!(f.from_kernel(words)[COUNTS], counts(1, u32::MAX));
    }

    // Words of captured boots of 6.12 and 6.18: section 0x11's memmap and node 1's data.
    #[test]
    fn the_memmaps_own_pages_are_marked_later() {
        let marked = |minor, what| {
            let f = KernelModel::new(KernelVersion::new(6, minor), Arch::X86_64).page_format();
            let w = f.marked_image(Pfn(9), Nid(0), ZoneKind::Normal, what);
            (w[FLAGS] & 0xffff, w[INDEX], w[PRIVATE], w[COUNTS] >> 32)
        };
        assert_eq!(marked(12, BootmemUse::Memmap(0x11)), (0x6000, 0xc, 0x11, 2));
        assert_eq!(marked(18, BootmemUse::Memmap(0x11)), (0x6000, 0, 0x111, 2));
        assert_eq!(marked(18, BootmemUse::NodeData(Nid(1))), (0x6000, 0, 0x13, 2));
    }

    // Words of captured boots with four pages of 1 GiB.
    #[test]
    fn tails_of_gigantic_pages_lead_to_their_head() {
        let tail = |major, minor| {
            let f = KernelModel::new(KernelVersion::new(major, minor), Arch::X86_64).page_format();
            let w = f.gigantic_image(Pfn(0x30_2000), Nid(0), ZoneKind::Normal, 1 << 18);
            assert_eq!((w[2], w[6]), (0xffff_ea00_0c08_0008, 0xffff_ffff));
            (w[LRU[0]], w[MAPPING])
        };
        assert_eq!(tail(6, 1), (0xffff_ea00_0c00_0001, 0));
        assert_eq!(tail(6, 18), (0xffff_ea00_0c00_0001, 0xdead_0000_0000_0400));
        assert_eq!(tail(7, 3), (0xffff_ffff_ff00_0001, 0xdead_0000_0000_0400));
    }

    #[test]
    fn a_list_pointer_leads_back_to_its_page() {
        let f = format();
        assert_eq!(f.pfn_of_lru(f.lru_address(Pfn(77))), Some(Pfn(77)));
        assert_eq!(f.pfn_of_lru(f.lru_address(Pfn(77)) + 8), None);
    }
}
