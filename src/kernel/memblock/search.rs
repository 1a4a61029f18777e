//! The search for a free place.
//!
//! [`Memblock::find`] is `memblock_find_in_range_node`. On a large machine the same
//! request comes up to half a million times, so the top-down search remembers where
//! its last answer was: nothing above it can fit until something is freed.

use super::{ALLOC_ACCESSIBLE, ALLOC_NOLEAKTRACE, Memblock, MemblockFlags, Region};
use crate::pfn::{Nid, PhysRange};

/// How many kinds of request are remembered; `sparse_init` alternates among four.
const REMEMBERED: usize = 8;

/// What makes two searches the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SearchKey {
    bytes: u64,
    align: u64,
    window: PhysRange,
    nid: Option<Nid>,
    flags: MemblockFlags,
}

/// For recent searches, the address from which upwards nothing fits any more.
///
/// It stays true while reservations are only added: the owner clears it whenever
/// memory is added or changed, or a reservation is freed.
#[derive(Clone, Debug, Default)]
pub(super) struct SearchCache {
    recent: Vec<(SearchKey, u64)>,
}

impl SearchCache {
    pub(super) fn clear(&mut self) {
        self.recent.clear();
    }

    fn bound(&self, key: &SearchKey) -> Option<u64> {
        self.recent.iter().find(|(k, _)| k == key).map(|&(_, bound)| bound)
    }

    fn remember(&mut self, key: SearchKey, bound: u64) {
        match self.recent.iter_mut().find(|(k, _)| *k == key) {
            Some(entry) => entry.1 = bound,
            None => {
                if self.recent.len() == REMEMBERED {
                    self.recent.remove(0);
                }
                self.recent.push((key, bound));
            }
        }
    }
}

impl Memblock {
    /// The address of the best free place for `bytes`, or `None`.
    ///
    /// `window.end` may be [`ALLOC_ACCESSIBLE`] or [`ALLOC_NOLEAKTRACE`] (6.12 and
    /// others: `mm/memblock.c: memblock_find_in_range_node`). Reserves nothing.
    /// An `align` of 0 counts as 1.
    pub fn find(
        &mut self,
        bytes: u64,
        align: u64,
        window: PhysRange,
        nid: Option<Nid>,
        flags: MemblockFlags,
    ) -> Option<u64> {
        let end = match window.end {
            ALLOC_ACCESSIBLE | ALLOC_NOLEAKTRACE => self.current_limit,
            end => end,
        };
        let start = window.start.max(self.rules.page_bytes);
        let window = PhysRange::new(start, end.max(start));
        let key = SearchKey { bytes, align: align.max(1), window, nid, flags };
        if !self.bottom_up {
            return self.find_top_down(key);
        }
        match self.rules.bottom_up_floor {
            None => self.find_bottom_up(key, window),
            Some(floor) => self.find_above_kernel(key, floor),
        }
    }

    /// Up to 5.10.0: bottom-up behind the kernel image, else top-down.
    fn find_above_kernel(&mut self, key: SearchKey, floor: u64) -> Option<u64> {
        let window = PhysRange::new(key.window.start.max(floor), key.window.end);
        let above = (key.window.end > floor).then(|| self.find_bottom_up(key, window)).flatten();
        above.or_else(|| self.find_top_down(key))
    }

    fn find_top_down(&mut self, key: SearchKey) -> Option<u64> {
        let end = match self.cache.bound(&key) {
            Some(bound) => bound.min(key.window.end),
            None => key.window.end,
        };
        let found = self.highest_fit(&key, PhysRange::new(key.window.start, end));
        let bound = found.map_or(0, |start| start.saturating_add(key.bytes));
        self.cache.remember(key, bound);
        found
    }

    /// `__memblock_find_range_top_down`.
    fn highest_fit(&self, key: &SearchKey, window: PhysRange) -> Option<u64> {
        for region in self.memory.regions.overlapping_down(window) {
            if !self.is_eligible(region, key) {
                continue;
            }
            let part = region.range().intersect(window)?;
            for gap in self.reserved.regions.gaps_down(part) {
                let Some(highest) = gap.end.checked_sub(key.bytes) else { continue };
                let start = highest - highest % key.align;
                if start >= gap.start {
                    return Some(start);
                }
            }
        }
        None
    }

    /// `__memblock_find_range_bottom_up`.
    fn find_bottom_up(&self, key: SearchKey, window: PhysRange) -> Option<u64> {
        for region in self.memory.regions.overlapping(window) {
            if !self.is_eligible(region, &key) {
                continue;
            }
            let part = region.range().intersect(window)?;
            for gap in self.reserved.regions.gaps_up(part) {
                let start = gap.start.checked_next_multiple_of(key.align)?;
                if start < gap.end && gap.end - start >= key.bytes {
                    return Some(start);
                }
            }
        }
        None
    }

    fn is_eligible(&self, region: &Region, key: &SearchKey) -> bool {
        (key.nid.is_none() || region.nid == key.nid) && !self.is_skipped(region, key.flags)
    }

    /// `should_skip_region`, v6.12, without the node.
    pub(super) fn is_skipped(&self, region: &Region, wanted: MemblockFlags) -> bool {
        let is = |flag| region.flags.contains(flag);
        let hotplug = self.rules.movable_node
            && is(MemblockFlags::HOTPLUG)
            && !wanted.contains(MemblockFlags::HOTPLUG);
        let mirror = wanted.contains(MemblockFlags::MIRROR) && !is(MemblockFlags::MIRROR);
        hotplug || mirror || is(MemblockFlags::NOMAP) || is(MemblockFlags::DRIVER_MANAGED)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{AllocRequest, MemblockRules};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        // Remembered bounds may save work but must not change an answer.
        #[test]
        fn remembering_changes_no_answer(
            ops in prop::collection::vec((0u8..8, 0u64..240, 0usize..4), 1..80),
        ) {
            let mut remembers = Memblock::new(MemblockRules::default());
            for nid in 0..2 {
                let start = u64::from(nid) * 0x8_0000 + 0x1_0000;
                let region =
                    Region::new(start, start + 0x7_8000, Some(Nid(nid)), MemblockFlags::NONE);
                remembers.add(region).expect("room");
            }
            remembers.allow_resize();
            let mut forgets = remembers.clone();
            for (op, place, kind) in ops {
                let range = PhysRange::new(place << 12, (place << 12) + 0x3000);
                let request = AllocRequest {
                    bytes: [0x1000, 0x8000, 0x2_0000, 0x800][kind],
                    align: [0x1000, 0x8000, 0x1000, 64][kind],
                    min_addr: if op == 2 { 0x4_0000 } else { 0 },
                    max_addr: 0,
                    nid: (op != 3).then_some(Nid(u32::from(op) % 2)),
                    exact_nid: op == 4,
                };
                forgets.cache.clear();
                match op {
                    0 => prop_assert_eq!(remembers.free(range), forgets.free(range)),
                    1 => prop_assert_eq!(remembers.reserve(range), forgets.reserve(range)),
                    _ => prop_assert_eq!(remembers.alloc(&request), forgets.alloc(&request)),
                }
                prop_assert_eq!(remembers.reserved(), forgets.reserved());
            }
        }
    }
}
