//! The buddy allocator's free lists of one node, linked through the struct pages.
//!
//! [`NodeLists`] links block heads at the tail, one list per zone and order, under
//! one lock, as `mm/page_alloc.c: __free_one_page` does with `FPI_TO_TAIL` (v5.10
//! on). It owns the last head of every list, because the next one must be written
//! into it. What remains of a list when its workers are done is a [`Chain`].

use crate::host::line::Line;
use crate::kernel::layout::ZoneKind;
use crate::kernel::struct_page::{LRU, PageFormat};
use crate::pfn::{Nid, Pfn};
use std::sync::Mutex;

/// Zones of a node that can have lists.
pub const ZONES: usize = 4;

/// A finished part of a list, by its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The first block's head.
    pub first: Pfn,
    /// The last block's head.
    pub last: Pfn,
    /// How many blocks it links.
    pub count: u64,
}

/// A chain on its way, with its last head still open.
#[derive(Debug, Default)]
struct Slot<'a> {
    chain: Option<Chain>,
    tail: Option<&'a mut Line>,
}

/// The free lists of one node while its pages are freed.
#[derive(Debug)]
pub struct NodeLists<'a> {
    format: PageFormat,
    nid: Nid,
    orders: usize,
    slots: Mutex<Vec<Slot<'a>>>,
}

/// A run of linked heads that a worker has written: its ends are open.
#[derive(Debug)]
pub struct Run<'a> {
    /// The zone of all its blocks.
    pub zone: ZoneKind,
    /// The order of all its blocks.
    pub order: u32,
    /// Where it begins and ends.
    pub chain: Chain,
    /// The first head.
    pub first: &'a mut Line,
    /// The last head, unless it is the first.
    pub last: Option<&'a mut Line>,
}

/// The address that stands for the list head in a zone's `free_area`: our own, as
/// the zone itself is not part of the memmap.
pub fn sentinel(nid: Nid, zone: ZoneKind, order: u32) -> u64 {
    const ZONE_STRUCTS: u64 = 0xffff_8880_0000_0000;
    ZONE_STRUCTS + (u64::from(nid.0) << 16) + ((zone as u64) << 12) + (u64::from(order) << 4)
}

impl<'a> NodeLists<'a> {
    /// Empty lists for orders up to that of `max_order_pages`.
    pub fn new(format: PageFormat, nid: Nid, max_order_pages: u64) -> Self {
        let orders = max_order_pages.trailing_zeros() as usize + 1;
        let slots = Mutex::new((0..orders * ZONES).map(|_| Slot::default()).collect());
        Self { format, nid, orders, slots }
    }

    /// Links the head `line` of a block at the end of its list.
    pub fn push(&self, zone: ZoneKind, order: u32, pfn: Pfn, line: &'a mut Line) {
        let chain = Chain { first: pfn, last: pfn, count: 1 };
        self.append(Run { zone, order, chain, first: line, last: None });
    }

    /// Links a whole run of heads at the end of its list.
    pub fn append(&self, run: Run<'a>) {
        let end = sentinel(self.nid, run.zone, run.order);
        let index = run.zone as usize * self.orders + run.order as usize;
        // A poisoned lock means that another worker panicked: the run is lost anyway,
        // and its own panic is what must be seen.
        let mut slots = self.slots.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let Some(slot) = slots.get_mut(index) else { return };
        let before = match (&mut slot.tail, slot.chain) {
            (Some(tail), Some(chain)) => {
                tail.set_word::<{ LRU[0] }>(self.format.lru_address(run.chain.first));
                self.format.lru_address(chain.last)
            }
            _ => end,
        };
        run.first.set_word::<{ LRU[1] }>(before);
        let tail = run.last.unwrap_or(run.first);
        tail.set_word::<{ LRU[0] }>(end);
        slot.tail = Some(tail);
        slot.chain = Some(match slot.chain {
            None => run.chain,
            Some(c) => {
                Chain { first: c.first, last: run.chain.last, count: c.count + run.chain.count }
            }
        });
    }

    /// The chains that were formed, with zone index and order.
    pub fn finish(self) -> Vec<(usize, u32, Chain)> {
        let orders = self.orders;
        let slots = self.slots.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let chains = slots.into_iter().enumerate().filter_map(|(i, slot)| {
            let order = u32::try_from(i % orders).ok()?;
            slot.chain.map(|chain| (i / orders, order, chain))
        });
        chains.collect()
    }
}
