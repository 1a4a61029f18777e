//! The arrays behind memblock's region sets, and how they grow.
//!
//! A [`RegionArray`] is a [`RegionSet`] with a number of places. When a reservation
//! would not fit, Linux takes memory for an array of twice the size
//! (`mm/memblock.c: memblock_double_array`), which moves later allocations.

use super::{Memblock, RegionSet};
use crate::pfn::PhysRange;

/// `sizeof(struct memblock_region)`: base, size, flags and node.
const REGION_BYTES: u64 = 24;

/// A region array is full, and memory for a larger one is not to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a memblock array of {places} regions is full and could not be doubled")]
pub struct ArrayFull {
    /// How many regions the array holds.
    pub places: usize,
}

/// Which of the two arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Memory,
    Reserved,
}

/// A region set, its places, and where an array that has been doubled lies.
#[derive(Clone, Debug)]
pub(super) struct RegionArray {
    pub(super) regions: RegionSet,
    places: usize,
    /// `None` for the static array in the kernel image.
    lies_at: Option<PhysRange>,
}

impl RegionArray {
    pub(super) fn new(places: usize) -> Self {
        Self { regions: RegionSet::default(), places: places.max(1), lies_at: None }
    }

    pub(super) fn set_places(&mut self, places: usize) {
        self.places = places.max(1);
    }

    /// No insertion adds more pieces than there are regions plus one. This is the
    /// quick path of `memblock_add_range`, and gives the same answer as counting.
    pub(super) fn has_room_for_any_insert(&self) -> bool {
        self.regions.len() * 2 < self.places
    }

    /// Whether `pieces` more regions fit without doubling.
    pub(super) fn has_room_for(&self, pieces: usize) -> bool {
        self.regions.len() + pieces <= self.places
    }

    /// A state taken from a running boot may hold more regions than the static array.
    /// Where its doubled array lies is then unknown; its bytes are among the
    /// reservations, so only freeing them at the next doubling is missed.
    pub(super) fn assume_doubled(&mut self) {
        while self.places < self.regions.len() {
            self.places *= 2;
        }
    }
}

impl Memblock {
    fn array(&mut self, which: Which) -> &mut RegionArray {
        match which {
            Which::Memory => &mut self.memory,
            Which::Reserved => &mut self.reserved,
        }
    }

    /// Doubles the array until `pieces` more regions fit. `range` is what is about to
    /// be inserted: the new array must not lie there.
    pub(super) fn make_room(
        &mut self,
        which: Which,
        pieces: usize,
        range: PhysRange,
    ) -> Result<(), ArrayFull> {
        while self.array(which).regions.len() + pieces > self.array(which).places {
            self.double_array(which, range)?;
        }
        Ok(())
    }

    fn double_array(&mut self, which: Which, pending: PhysRange) -> Result<(), ArrayFull> {
        let places = self.array(which).places;
        let full = ArrayFull { places };
        if !self.can_resize {
            return Err(full);
        }
        let bytes = (places as u64 * 2 * REGION_BYTES).next_multiple_of(self.rules.page_bytes);
        let start = self.place_for_array(which, pending, bytes).ok_or(full)?;
        let array = self.array(which);
        let old = array.lies_at.replace(PhysRange::new(start, start + bytes));
        array.places = places * 2;
        if let Some(old) = old {
            self.free(old)?;
        }
        self.reserve(PhysRange::new(start, start + bytes))
    }

    /// Above the pending range first, then below it; memory regions need no such care.
    fn place_for_array(&mut self, which: Which, pending: PhysRange, bytes: u64) -> Option<u64> {
        let avoid = if which == Which::Reserved { pending } else { PhysRange::new(0, 0) };
        let (page, limit) = (self.rules.page_bytes, self.current_limit);
        self.find_in_range(avoid.end, limit, bytes, page)
            .or_else(|| self.find_in_range(0, avoid.start.min(limit), bytes, page))
    }

    /// `memblock_find_in_range`: on any node. An `end` of 0 would mean "no limit", so
    /// an empty window is told apart here.
    fn find_in_range(&mut self, start: u64, end: u64, bytes: u64, align: u64) -> Option<u64> {
        if end <= start {
            return None;
        }
        let flags = self.preferred_flags();
        let found = self.find(bytes, align, PhysRange::new(start, end), None, flags);
        let plain = super::MemblockFlags::NONE;
        found.or_else(|| self.find(bytes, align, PhysRange::new(start, end), None, plain))
    }
}
