//! Allocation: find, reserve, and what is given up when nothing fits.
//!
//! [`Memblock::alloc`] stands for `memblock_alloc_try_nid`, its raw form (which does
//! not zero) and `memblock_alloc_exact_nid_raw`: they differ in the fallback to other
//! nodes and in zeroing, which moves no address.

use super::{Memblock, MemblockFlags, Region};
use crate::pfn::{Nid, PhysRange};
use serde::{Deserialize, Serialize};

/// The arguments of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocRequest {
    /// How many bytes.
    pub bytes: u64,
    /// The alignment in bytes; 0 means the cache line size.
    pub align: u64,
    /// The lowest address wanted. A wish: it is dropped rather than fail.
    pub min_addr: u64,
    /// The first byte behind the highest address allowed;
    /// [`super::ALLOC_ACCESSIBLE`] or [`super::ALLOC_NOLEAKTRACE`] for the current limit.
    pub max_addr: u64,
    /// The preferred node, `None` for any.
    pub nid: Option<Nid>,
    /// Fail rather than take another node's memory.
    pub exact_nid: bool,
}

impl Memblock {
    /// The address allocated, or `None`; Linux's own callers then fall back or panic.
    ///
    /// Up to 5.0 `memblock_virt_alloc_internal`, later `memblock_alloc_internal` and
    /// `memblock_alloc_range_nid`.
    pub fn alloc(&mut self, request: &AllocRequest) -> Option<u64> {
        let mut request = *request;
        if request.align == 0 {
            request.align = self.rules.smp_cache_bytes;
        }
        request.max_addr = request.max_addr.min(self.current_limit);
        if self.rules.drops_min_addr_first {
            self.alloc_dropping_min_first(request)
        } else {
            self.alloc_dropping_mirror_first(request)
        }
    }

    fn alloc_dropping_mirror_first(&mut self, mut request: AllocRequest) -> Option<u64> {
        loop {
            let preferred = self.preferred_flags();
            let mut found = self.alloc_on_nodes(&request, preferred);
            if found.is_none() && preferred != MemblockFlags::NONE {
                found = self.alloc_on_nodes(&request, MemblockFlags::NONE);
            }
            if found.is_some() || request.min_addr == 0 {
                return found;
            }
            request.min_addr = 0;
        }
    }

    fn alloc_dropping_min_first(&mut self, mut request: AllocRequest) -> Option<u64> {
        let mut flags = self.preferred_flags();
        loop {
            if let Some(found) = self.alloc_on_nodes(&request, flags) {
                return Some(found);
            }
            if request.min_addr > 0 {
                request.min_addr = 0;
            } else if flags != MemblockFlags::NONE {
                flags = MemblockFlags::NONE;
            } else {
                return None;
            }
        }
    }

    /// On the wanted node, then on any, unless the node must be exact.
    fn alloc_on_nodes(&mut self, request: &AllocRequest, flags: MemblockFlags) -> Option<u64> {
        self.alloc_once(request, request.nid, flags).or_else(|| {
            let other = request.nid.is_some() && !request.exact_nid;
            other.then(|| self.alloc_once(request, None, flags)).flatten()
        })
    }

    fn alloc_once(
        &mut self,
        request: &AllocRequest,
        nid: Option<Nid>,
        flags: MemblockFlags,
    ) -> Option<u64> {
        let window = PhysRange::new(request.min_addr, request.max_addr);
        let start = self.find(request.bytes, request.align, window, nid, flags)?;
        let end = start.checked_add(request.bytes)?;
        self.reserve_region(self.reservation(start, end, nid)).ok().map(|()| start)
    }

    /// What an allocation for `nid` leaves among the reservations.
    fn reservation(&self, start: u64, end: u64, nid: Option<Nid>) -> Region {
        if self.rules.reserved_carry_nid {
            Region::new(start, end, nid, MemblockFlags::RSRV_KERN)
        } else {
            Region::new(start, end, None, MemblockFlags::NONE)
        }
    }

    /// Repeats `request`, which was answered with `last` just before, at most `most` times
    /// as long as each answer must lie directly below the one before; says how often.
    ///
    /// It leaves what so many calls of [`Memblock::alloc`] leave. Where that is not
    /// certain it does nothing: the half million equal requests of a large machine are
    /// what it is for.
    pub(in crate::kernel) fn repeat_below(
        &mut self,
        request: &AllocRequest,
        last: u64,
        most: u64,
    ) -> u64 {
        let Some(floor) = self.floor_below(request, last) else { return 0 };
        let count = most.min(last.saturating_sub(floor) / request.bytes);
        if count == 0 {
            return 0;
        }
        let region = self.reservation(last - count * request.bytes, last, request.nid);
        if self.reserve_region(region).is_ok() { count } else { 0 }
    }

    /// Where the free range ends that lies directly below `last`, if the next answers to
    /// `request` come from there and grow the reservation that `last` begins.
    fn floor_below(&self, request: &AllocRequest, last: u64) -> Option<u64> {
        let steps = request.bytes > 0
            && request.align == request.bytes
            && last.is_multiple_of(request.bytes)
            && !self.bottom_up
            // A range in one gap is one piece, before it merges.
            && self.reserved.has_room_for(1);
        let memory = self.memory.regions.containing(last).filter(|_| steps)?;
        if memory.nid != request.nid || self.is_skipped(memory, self.preferred_flags()) {
            return None;
        }
        let taken = self.reserved.regions.containing(last)?;
        if *taken != self.reservation(last, taken.end, request.nid) {
            return None;
        }
        let below = PhysRange::new(0, last);
        let reserved = self.reserved.regions.overlapping_down(below).next().map_or(0, |r| r.end);
        Some(reserved.max(memory.start).max(request.min_addr).max(self.rules.page_bytes))
    }

    /// `choose_memblock_flags`: mirrored memory first, where there is any.
    pub(super) fn preferred_flags(&self) -> MemblockFlags {
        if self.has_mirror { MemblockFlags::MIRROR } else { MemblockFlags::NONE }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MemblockRules, RegionSet};
    use super::*;

    const NODE: u64 = 1 << 20;

    fn ask(bytes: u64, nid: u32) -> AllocRequest {
        AllocRequest {
            bytes,
            align: 4096,
            min_addr: 0,
            max_addr: 0,
            nid: Some(Nid(nid)),
            exact_nid: false,
        }
    }

    /// Two nodes of 1 MiB.
    fn two_nodes(rules: MemblockRules) -> Memblock {
        let mut mb = Memblock::new(rules);
        for nid in 0..2 {
            let start = NODE * u64::from(nid + 1);
            let region = Region::new(start, start + NODE, Some(Nid(nid)), MemblockFlags::NONE);
            mb.add(region).expect("room");
        }
        mb
    }

    fn bounds(set: &RegionSet) -> Vec<(u64, u64)> {
        set.iter().map(|r| (r.start, r.end)).collect()
    }

    // node     |------- 0 -------|------- 1 -------|
    // 768 KiB       [============)                     top of node 0
    // 512 KiB                          [===========)   node 0 is too full
    // 512 KiB exact on node 0: no
    #[test]
    fn a_full_node_falls_back_unless_it_must_be_exact() {
        let mut mb = two_nodes(MemblockRules::default());
        assert_eq!(mb.alloc(&ask(768 << 10, 0)), Some(2 * NODE - (768 << 10)));
        let exact = AllocRequest { exact_nid: true, ..ask(512 << 10, 0) };
        assert_eq!(mb.alloc(&exact), None);
        assert_eq!(mb.alloc(&ask(512 << 10, 0)), Some(3 * NODE - (512 << 10)));
    }

    #[test]
    fn min_addr_is_a_wish_and_max_addr_is_not() {
        let mut mb = two_nodes(MemblockRules::default());
        let high = AllocRequest { min_addr: 1 << 40, ..ask(4096, 0) };
        assert_eq!(mb.alloc(&high), Some(2 * NODE - 4096));
        let low = AllocRequest { max_addr: NODE + 4096, ..ask(8192, 0) };
        assert_eq!(mb.alloc(&low), None);
    }

    // Node 0 is mirrored only at its bottom; the wish is for its top half.
    // up to 5.0: drop the wish, keep the mirror.  Later: the other way round.
    #[test]
    fn mirror_and_lower_limit_are_given_up_in_an_order_that_changed() {
        for (old, expected) in [(true, NODE + (256 << 10) - 4096), (false, 2 * NODE - 4096)] {
            let rules = MemblockRules { drops_min_addr_first: old, ..Default::default() };
            let mut mb = two_nodes(rules);
            mb.mark(PhysRange::new(NODE, NODE + (256 << 10)), MemblockFlags::MIRROR);
            let wish = AllocRequest { min_addr: NODE + NODE / 2, ..ask(4096, 0) };
            assert_eq!(mb.alloc(&wish), Some(expected));
        }
    }

    #[test]
    fn from_6_17_reservations_of_two_nodes_stay_apart() {
        let rules = MemblockRules { reserved_carry_nid: true, ..Default::default() };
        let mut mb = two_nodes(rules);
        mb.alloc(&ask(NODE, 1)).expect("fits");
        mb.alloc(&ask(NODE / 2, 0)).expect("fits");
        mb.alloc(&ask(NODE / 2, 0)).expect("fits");
        assert_eq!(bounds(mb.reserved()), [(NODE, 2 * NODE), (2 * NODE, 3 * NODE)]);
    }

    // 128 reserved regions fill the static array; the 129th goes to an array of 256
    // places, 6144 bytes, so two pages at the very top.
    #[test]
    fn a_full_array_doubles_and_takes_memory() {
        let (ram, end) = (0x100_0000, 0x4100_0000);
        let mut mb = Memblock::new(MemblockRules::default());
        mb.add(Region::new(ram, end, Some(Nid(0)), MemblockFlags::NONE)).expect("room");
        for i in 0..128 {
            let at = ram + i * 0x4_0000;
            mb.reserve(PhysRange::new(at, at + 0x1000)).expect("room");
        }
        let next = PhysRange::new(0x300_0000, 0x300_1000);
        assert_eq!(mb.reserve(next), Err(ArrayFull { places: 128 }));
        mb.allow_resize();
        assert_eq!(mb.reserve(next), Ok(()));
        assert_eq!(mb.reserved().containing(end - 1).map(|r| r.start), Some(0x40ff_e000));
        assert_eq!(mb.reserved().len(), 130);
    }

    use super::super::ArrayFull;

    // A range that merges into its neighbour still doubles a full array.
    #[test]
    fn merging_does_not_prevent_doubling() {
        let mut mb = Memblock::new(MemblockRules { reserved_places: 2, ..Default::default() });
        let memory = Region::new(1 << 20, 2 << 20, Some(Nid(0)), MemblockFlags::NONE);
        mb.add(memory).expect("room");
        mb.allow_resize();
        mb.reserve(PhysRange::new(0x10_0000, 0x10_1000)).expect("room");
        mb.reserve(PhysRange::new(0x11_0000, 0x11_1000)).expect("room");
        mb.reserve(PhysRange::new(0x10_1000, 0x10_2000)).expect("doubles");
        let expected = [(0x10_0000, 0x10_2000), (0x11_0000, 0x11_1000), (0x1f_f000, 0x20_0000)];
        assert_eq!(bounds(mb.reserved()), expected);
    }

    // Up to 5.10.0 bottom-up starts behind the kernel image.
    #[test]
    fn old_bottom_up_starts_behind_the_kernel() {
        let floor = NODE + 0x8_0000;
        let mut mb =
            two_nodes(MemblockRules { bottom_up_floor: Some(floor), ..Default::default() });
        mb.set_bottom_up(true);
        assert_eq!(mb.alloc(&ask(4096, 0)), Some(floor));
        let low = AllocRequest { max_addr: floor, ..ask(4096, 0) };
        assert_eq!(mb.alloc(&low), Some(floor - 4096));
    }
}
