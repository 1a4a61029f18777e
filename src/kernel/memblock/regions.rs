//! Sorted sets of memory regions, as memblock keeps two of: memory and reserved.
//!
//! A [`Region`] has a node and flags; regions that touch merge when both are equal
//! (`mm/memblock.c: memblock_merge_regions`). [`RegionSet`] answers exactly what
//! Linux's sorted array would, the number of regions included, because a full array
//! is doubled and its new place takes memory away. It is a tree keyed by region
//! *end*, so that a reservation just below another one, the pattern of top-down
//! allocation, changes one value and moves nothing.

use crate::pfn::{Nid, PhysRange};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::collections::btree_map;
use std::ops::Bound::{Excluded, Unbounded};

/// The flags of a region (`enum memblock_flags`).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct MemblockFlags(pub u32);

impl MemblockFlags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// The firmware may take the memory away later.
    pub const HOTPLUG: Self = Self(1);
    /// The memory is mirrored.
    pub const MIRROR: Self = Self(2);
    /// Not in the direct map; never handed out.
    pub const NOMAP: Self = Self(4);
    /// Added by a driver (5.16 on); never handed out.
    pub const DRIVER_MANAGED: Self = Self(8);
    /// Reserved by memblock's own allocation functions (6.17 on).
    pub const RSRV_KERN: Self = Self(0x20);

    /// Whether every flag of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These flags and those of `other`.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These flags without those of `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// One region (`struct memblock_region`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// The first byte.
    pub start: u64,
    /// The first byte behind the region.
    pub end: u64,
    /// The node, where it is known.
    pub nid: Option<Nid>,
    /// The flags.
    pub flags: MemblockFlags,
}

impl Region {
    /// A region from its parts.
    pub const fn new(start: u64, end: u64, nid: Option<Nid>, flags: MemblockFlags) -> Self {
        Self { start, end, nid, flags }
    }

    /// The bytes from the first to the last.
    pub const fn range(&self) -> PhysRange {
        PhysRange::new(self.start, self.end)
    }

    fn merges_with(&self, other: &Self) -> bool {
        self.nid == other.nid && self.flags == other.flags
    }
}

/// A sorted set of disjoint regions (`struct memblock_type`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegionSet {
    /// The regions by their `end`.
    by_end: BTreeMap<u64, Region>,
}

impl RegionSet {
    /// How many regions there are (`cnt`).
    pub fn len(&self) -> usize {
        self.by_end.len()
    }

    /// Whether there is no region.
    pub fn is_empty(&self) -> bool {
        self.by_end.is_empty()
    }

    /// All regions, ascending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Region> {
        self.by_end.values()
    }

    /// The lowest byte of all regions.
    pub fn first_byte(&self) -> Option<u64> {
        self.by_end.values().next().map(|r| r.start)
    }

    /// The first byte behind all regions.
    pub fn end_byte(&self) -> Option<u64> {
        self.by_end.keys().next_back().copied()
    }

    /// The region that holds the byte at `addr`.
    pub fn containing(&self, addr: u64) -> Option<&Region> {
        let (_, region) = self.by_end.range((Excluded(addr), Unbounded)).next()?;
        (region.start <= addr).then_some(region)
    }

    /// The regions that overlap `range`, ascending.
    pub fn overlapping(&self, range: PhysRange) -> impl Iterator<Item = &Region> {
        let above = self.by_end.range((Excluded(range.start), Unbounded));
        above.map(|(_, r)| r).take_while(move |r| r.start < range.end)
    }

    /// The regions that overlap `range`, descending.
    pub fn overlapping_down(&self, range: PhysRange) -> impl Iterator<Item = &Region> {
        let top = self.by_end.range(range.end..).next().map(|(_, r)| r);
        let lower = (range.start < range.end)
            .then(|| self.by_end.range((Excluded(range.start), Excluded(range.end))).rev())
            .into_iter()
            .flatten();
        top.filter(|r| r.start < range.end && !range.is_empty())
            .into_iter()
            .chain(lower.map(|(_, r)| r))
    }

    /// The parts of `range` that no region covers, descending.
    pub fn gaps_down(&self, range: PhysRange) -> GapsDown<'_> {
        let straddler = self.by_end.range(range.end..).next();
        let top = match straddler {
            Some((_, r)) if r.start < range.end => r.start,
            _ => range.end,
        };
        let lower = if range.is_empty() {
            self.by_end.range(0..0)
        } else {
            self.by_end.range((Excluded(range.start), Excluded(range.end)))
        };
        GapsDown { lower, floor: range.start, top }
    }

    /// The parts of `range` that no region covers, ascending.
    pub fn gaps_up(&self, range: PhysRange) -> GapsUp<'_> {
        let bounds = (Excluded(range.start), Unbounded);
        GapsUp { upper: self.by_end.range(bounds), floor: range.start, end: range.end }
    }

    /// How many regions adding `range` would insert *before* neighbours are merged.
    ///
    /// Linux checks the array's room with this number, so that even a range which
    /// merges into its neighbours can double a full array.
    pub fn pieces_to_insert(&self, range: PhysRange) -> usize {
        self.gaps_up(range).count()
    }

    /// Adds what is not covered yet, with this node and these flags, and merges
    /// (`mm/memblock.c: memblock_add_range`).
    pub fn insert(&mut self, new: Region) {
        if new.start >= new.end {
            return;
        }
        let above = self.by_end.range((Excluded(new.start), Unbounded)).next();
        if above.is_none_or(|(_, r)| r.start >= new.end) {
            self.insert_piece(new);
            return;
        }
        let pieces: Vec<PhysRange> = self.gaps_up(new.range()).collect();
        for piece in pieces {
            self.insert_piece(Region { start: piece.start, end: piece.end, ..new });
        }
    }

    /// Adds a region that overlaps none.
    fn insert_piece(&mut self, mut new: Region) {
        let below = self.by_end.get(&new.start).copied().filter(|r| r.merges_with(&new));
        if let Some(below) = below {
            self.by_end.remove(&below.end);
            new.start = below.start;
        }
        let above = self.by_end.range_mut((Excluded(new.start), Unbounded)).next();
        match above {
            Some((_, r)) if r.start == new.end && r.merges_with(&new) => r.start = new.start,
            _ => {
                self.by_end.insert(new.end, new);
            }
        }
    }

    /// Takes `range` out, splitting regions (`mm/memblock.c: memblock_remove_range`).
    pub fn remove(&mut self, range: PhysRange) {
        if range.is_empty() {
            return;
        }
        let hit: Vec<Region> = self.overlapping(range).copied().collect();
        for region in hit {
            self.by_end.remove(&region.end);
            for rest in
                [Region { end: range.start, ..region }, Region { start: range.end, ..region }]
            {
                if rest.start < rest.end {
                    self.by_end.insert(rest.end, rest);
                }
            }
        }
    }

    /// Changes node and flags of everything inside `range`, and merges.
    pub fn update(&mut self, range: PhysRange, change: impl Fn(&mut Region)) {
        let hit: Vec<Region> = self.overlapping(range).copied().collect();
        self.remove(range);
        for mut region in hit {
            region.start = region.start.max(range.start);
            region.end = region.end.min(range.end);
            change(&mut region);
            self.insert(region);
        }
        self.merge_neighbours();
    }

    fn merge_neighbours(&mut self) {
        let all: Vec<Region> = self.by_end.values().copied().collect();
        self.by_end.clear();
        for region in all {
            self.insert_piece(region);
        }
    }

    /// Keeps the part of every region that `keep` returns; drops it where it is empty.
    pub fn trim(&mut self, keep: impl Fn(PhysRange) -> PhysRange) {
        let all: Vec<Region> = self.by_end.values().copied().collect();
        self.by_end.clear();
        for region in all {
            let rest = keep(region.range());
            if !rest.is_empty() {
                self.insert_piece(Region { start: rest.start, end: rest.end, ..region });
            }
        }
    }
}

/// See [`RegionSet::gaps_down`].
pub struct GapsDown<'a> {
    lower: btree_map::Range<'a, u64, Region>,
    floor: u64,
    top: u64,
}

impl Iterator for GapsDown<'_> {
    type Item = PhysRange;

    fn next(&mut self) -> Option<PhysRange> {
        while self.top > self.floor {
            let (bottom, next_top) = match self.lower.next_back() {
                Some((_, r)) => (r.end, r.start),
                None => (self.floor, self.floor),
            };
            let gap = PhysRange::new(bottom, self.top);
            self.top = next_top;
            if !gap.is_empty() {
                return Some(gap);
            }
        }
        None
    }
}

/// See [`RegionSet::gaps_up`].
pub struct GapsUp<'a> {
    upper: btree_map::Range<'a, u64, Region>,
    floor: u64,
    end: u64,
}

impl Iterator for GapsUp<'_> {
    type Item = PhysRange;

    fn next(&mut self) -> Option<PhysRange> {
        while self.floor < self.end {
            let (top, next_floor) = match self.upper.next() {
                Some((_, r)) if r.start < self.end => (r.start, r.end),
                _ => (self.end, self.end),
            };
            let gap = PhysRange::new(self.floor, top);
            self.floor = next_floor;
            if !gap.is_empty() {
                return Some(gap);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(ranges: &[(u64, u64)]) -> RegionSet {
        let mut out = RegionSet::default();
        for &(start, end) in ranges {
            out.insert(Region::new(start, end, None, MemblockFlags::NONE));
        }
        out
    }

    fn bounds(set: &RegionSet) -> Vec<(u64, u64)> {
        set.iter().map(|r| (r.start, r.end)).collect()
    }

    //          0    10   20   30   40   50
    // set           [====)    [====)
    // insert             [====)              joins all three to one
    // remove          [==========)           leaves 10..15 and 45..
    #[test]
    fn neighbours_merge_and_holes_split() {
        let mut s = set(&[(10, 20), (30, 40)]);
        assert_eq!(s.pieces_to_insert(PhysRange::new(20, 30)), 1);
        s.insert(Region::new(15, 45, None, MemblockFlags::NONE));
        assert_eq!(bounds(&s), [(10, 45)]);
        s.remove(PhysRange::new(15, 40));
        assert_eq!(bounds(&s), [(10, 15), (40, 45)]);
        assert_eq!(s.pieces_to_insert(PhysRange::new(0, 60)), 3);
    }

    #[test]
    fn other_nodes_and_flags_do_not_merge() {
        let mut s = set(&[(10, 20)]);
        s.insert(Region::new(20, 30, Some(Nid(1)), MemblockFlags::NONE));
        s.insert(Region::new(0, 10, None, MemblockFlags::RSRV_KERN));
        assert_eq!(bounds(&s), [(0, 10), (10, 20), (20, 30)]);
        s.update(PhysRange::new(20, 25), |r| r.nid = None);
        assert_eq!(bounds(&s), [(0, 10), (10, 25), (25, 30)]);
    }

    proptest! {
        #[test]
        fn sets_agree_with_byte_maps(
            ops in prop::collection::vec((any::<bool>(), 0u64..100, 0u64..30), 0..30),
            window in (0u64..100, 0u64..60),
        ) {
            let mut s = RegionSet::default();
            let mut bytes = [false; 200];
            for &(add, start, size) in &ops {
                let range = PhysRange::new(start, start + size);
                if add {
                    s.insert(Region::new(start, start + size, None, MemblockFlags::NONE));
                } else {
                    s.remove(range);
                }
                bytes[start as usize..(start + size) as usize].fill(add);
            }
            let range = PhysRange::new(window.0, window.0 + window.1);
            let up: Vec<PhysRange> = s.gaps_up(range).collect();
            let mut down: Vec<PhysRange> = s.gaps_down(range).collect();
            down.reverse();
            prop_assert_eq!(&up, &down);
            let free: Vec<u64> = up.iter().flat_map(|g| g.start..g.end).collect();
            let expected: Vec<u64> =
                (range.start..range.end).filter(|&b| !bytes[b as usize]).collect();
            prop_assert_eq!(free, expected);
            let runs = (0..200).filter(|&i| bytes[i] && (i == 0 || !bytes[i - 1])).count();
            prop_assert_eq!(s.len(), runs);
            let mut hit: Vec<Region> = s.overlapping_down(range).copied().collect();
            hit.reverse();
            let expected: Vec<Region> = s.overlapping(range).copied().collect();
            prop_assert_eq!(hit, if range.is_empty() { Vec::new() } else { expected });
        }
    }
}
