//! Which blocks a freed range of pages forms in the buddy allocator.
//!
//! Buddies merge eagerly, so the blocks depend only on which pages are free:
//! [`blocks`] gives them. A piece that fills its largest block is freed as a whole;
//! others are freed page by page, and then pages that had been the head of a block
//! for a while keep a trace, which [`super::oracle`] knows. Source: `mm/page_alloc.c:
//! __free_one_page`, `mm/mm_init.c: deferred_free_pages` (v6.12).

use crate::pfn::{Pfn, PfnRange};

/// One free block: `1 << order` pages from `head`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeBlock {
    /// The first page.
    pub head: Pfn,
    /// The power of two of its length.
    pub order: u32,
}

impl FreeBlock {
    /// Pages of the block.
    pub fn pages(&self) -> u64 {
        1 << self.order
    }
}

/// The largest order a block at `start` may have that ends at or before `end`.
fn order_at(start: Pfn, end: Pfn, max_order_pages: u64) -> u32 {
    let by_place = start.0.trailing_zeros().min(max_order_pages.trailing_zeros());
    let by_room = end.pages_since(start).ilog2();
    by_place.min(by_room)
}

/// The blocks that the pages of `range` form once all are free, ascending.
///
/// `max_order_pages` is the largest block, a power of two.
pub fn blocks(range: PfnRange, max_order_pages: u64) -> impl Iterator<Item = FreeBlock> {
    let mut at = range.start;
    std::iter::from_fn(move || {
        if at >= range.end {
            return None;
        }
        let block = FreeBlock { head: at, order: order_at(at, range.end, max_order_pages) };
        at = at.offset(block.pages());
        Some(block)
    })
}

/// The pieces in which a worker frees a range: it is cut at multiples of `unit_pages`.
pub fn pieces(range: PfnRange, unit_pages: u64) -> impl Iterator<Item = PfnRange> {
    super::padata::chunks_of(range, unit_pages, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    // pfn   3   4         8                 16       18
    //       [o0 | order 2 | order 3         | order 1 )
    #[test]
    fn a_ragged_range_forms_maximal_blocks() {
        let orders: Vec<(u64, u32)> =
            blocks(PfnRange::new(3, 18), 1024).map(|b| (b.head.0, b.order)).collect();
        assert_eq!(orders, [(3, 0), (4, 2), (8, 3), (16, 1)]);
    }
}
