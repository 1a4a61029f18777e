//! The bytes of a struct page.
//!
//! [`PageFormat`] knows where the fields lie and which bits the flags have; from it
//! comes the image of a page in each [`PageState`]. This is the slowly written
//! truth that every executed run is compared with; the fast writers in `exec` take
//! only constants from here. Layout: `include/linux/mm_types.h`, v4.18 to v7.3.

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
        u64::from(nid.0) << self.node_shift | zone | self.cpupid_mask
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
    fn a_list_pointer_leads_back_to_its_page() {
        let f = format();
        assert_eq!(f.pfn_of_lru(f.lru_address(Pfn(77))), Some(Pfn(77)));
        assert_eq!(f.pfn_of_lru(f.lru_address(Pfn(77)) + 8), None);
    }
}
