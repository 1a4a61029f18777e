//! Linux's boot-time allocator, `mm/memblock.c`, as a pure model.
//!
//! [`Memblock`] keeps two [`RegionSet`]s, memory and reserved, and answers every
//! allocation with the address that Linux would give. Compare with the source:
//!
//! | here | `mm/memblock.c` (v6.12) |
//! |---|---|
//! | [`Memblock::find`] | `memblock_find_in_range_node` and its two walkers |
//! | [`Memblock::alloc`] | `memblock_alloc_internal`, `memblock_alloc_range_nid` |
//! | [`Memblock::add`], [`reserve`](Memblock::reserve) | `memblock_add_node`, `memblock_reserve` |
//! | [`Memblock::remove`], [`free`](Memblock::free) | `memblock_remove`, `memblock_phys_free` |
//! | `make_room` | `memblock_double_array` |
//!
//! What changed between versions is in [`MemblockRules`]. Not modelled: the scratch
//! areas of kexec handover, and `accept_memory`. The kernel around it, `sparse_init`
//! above all, is in [`super::sparse`].

mod alloc;
mod array;
#[cfg(test)]
mod golden_tests;
mod regions;
mod search;
#[cfg(test)]
mod worked;

pub use alloc::AllocRequest;
pub use array::ArrayFull;
pub use regions::{MemblockFlags, Region, RegionSet};

use crate::pfn::{Nid, PhysRange};
use array::RegionArray;
use search::SearchCache;

/// `MEMBLOCK_ALLOC_ACCESSIBLE`: allocate below the current limit.
pub const ALLOC_ACCESSIBLE: u64 = 0;
/// `MEMBLOCK_ALLOC_NOLEAKTRACE`: the same, and keep the leak detector away.
pub const ALLOC_NOLEAKTRACE: u64 = 1;
/// `MEMBLOCK_ALLOC_ANYWHERE`.
pub const ALLOC_ANYWHERE: u64 = u64::MAX;

/// What differs between versions, architectures and configurations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemblockRules {
    /// The base page size in bytes; the page at address 0 is never handed out.
    pub page_bytes: u64,
    /// The alignment of requests that name none (`SMP_CACHE_BYTES`).
    pub smp_cache_bytes: u64,
    /// Up to 5.0 a failed request drops its lower limit before mirrored memory;
    /// from 5.2 on it is the other way round.
    pub drops_min_addr_first: bool,
    /// From 6.17 on reservations by the allocation functions carry the requested
    /// node and `RSRV_KERN`, so that they do not merge with plain ones.
    pub reserved_carry_nid: bool,
    /// Up to 5.10.0 bottom-up allocation starts behind the kernel image, which ends
    /// here, and falls back to top-down. `None`: it starts anywhere.
    pub bottom_up_floor: Option<u64>,
    /// `movable_node` is on the command line: hot-pluggable memory is not used.
    pub movable_node: bool,
    /// Places in the static array of memory regions (128; 1024 on newer arm64).
    pub memory_places: usize,
    /// Places in the static array of reserved regions (128; more on newer arm64).
    pub reserved_places: usize,
}

impl Default for MemblockRules {
    /// A kernel from 5.11 to 6.16 on x86_64.
    fn default() -> Self {
        Self {
            page_bytes: 4096,
            smp_cache_bytes: 64,
            drops_min_addr_first: false,
            reserved_carry_nid: false,
            bottom_up_floor: None,
            movable_node: false,
            memory_places: 128,
            reserved_places: 128,
        }
    }
}

/// The allocator's state.
#[derive(Clone, Debug)]
pub struct Memblock {
    rules: MemblockRules,
    memory: RegionArray,
    reserved: RegionArray,
    bottom_up: bool,
    current_limit: u64,
    can_resize: bool,
    has_mirror: bool,
    cache: SearchCache,
}

impl Memblock {
    /// An empty allocator: top-down, without limit, its arrays fixed in size.
    pub fn new(rules: MemblockRules) -> Self {
        Self {
            memory: RegionArray::new(rules.memory_places),
            reserved: RegionArray::new(rules.reserved_places),
            rules,
            bottom_up: false,
            current_limit: u64::MAX,
            can_resize: false,
            has_mirror: false,
            cache: SearchCache::default(),
        }
    }

    /// The rules in force.
    pub fn rules(&self) -> &MemblockRules {
        &self.rules
    }

    /// All memory.
    pub fn memory(&self) -> &RegionSet {
        &self.memory.regions
    }

    /// All reservations.
    pub fn reserved(&self) -> &RegionSet {
        &self.reserved.regions
    }

    /// `memblock_set_bottom_up`.
    pub fn set_bottom_up(&mut self, bottom_up: bool) {
        self.bottom_up = bottom_up;
    }

    /// `memblock_set_current_limit`: no allocation ends above this address.
    pub fn set_current_limit(&mut self, limit: u64) {
        self.current_limit = limit;
    }

    /// `system_has_some_mirror`: from now on mirrored memory is preferred. Marking
    /// memory as mirrored does it; adding mirrored memory, as a copied state does, not.
    pub fn prefer_mirror(&mut self) {
        self.has_mirror = true;
    }

    /// `memblock_allow_resize`: from now on a full array doubles. An array that
    /// already holds more regions than its static size must have doubled before.
    pub fn allow_resize(&mut self) {
        self.can_resize = true;
        self.memory.assume_doubled();
        self.reserved.assume_doubled();
    }

    /// Sets both arrays back to these many places, memory's first, after a state was
    /// copied in; [`Self::allow_resize`] then doubles them as often as needed.
    pub(super) fn shrink_arrays(&mut self, (memory, reserved): (usize, usize)) {
        self.memory.set_places(memory);
        self.reserved.set_places(reserved);
    }

    /// `memblock_add_node`.
    ///
    /// # Errors
    /// [`ArrayFull`] when the array is full and cannot be doubled.
    pub fn add(&mut self, region: Region) -> Result<(), ArrayFull> {
        self.cache.clear();
        let pieces = self.memory.regions.pieces_to_insert(region.range());
        self.make_room(array::Which::Memory, pieces, region.range())?;
        self.memory.regions.insert(region);
        Ok(())
    }

    /// `memblock_reserve`: without node and flags.
    ///
    /// # Errors
    /// [`ArrayFull`] when the array is full and cannot be doubled.
    pub fn reserve(&mut self, range: PhysRange) -> Result<(), ArrayFull> {
        self.reserve_region(Region::new(range.start, range.end, None, MemblockFlags::NONE))
    }

    /// `__memblock_reserve`: with node and flags.
    ///
    /// # Errors
    /// [`ArrayFull`] when the array is full and cannot be doubled.
    pub fn reserve_region(&mut self, region: Region) -> Result<(), ArrayFull> {
        if !self.reserved.has_room_for_any_insert() {
            let pieces = self.reserved.regions.pieces_to_insert(region.range());
            self.make_room(array::Which::Reserved, pieces, region.range())?;
        }
        self.reserved.regions.insert(region);
        Ok(())
    }

    /// `memblock_remove`: takes memory away.
    pub fn remove(&mut self, range: PhysRange) {
        self.cache.clear();
        self.memory.regions.remove(range);
    }

    /// `memblock_phys_free`: takes a reservation back.
    ///
    /// # Errors
    /// [`ArrayFull`]: splitting a region may need two more places.
    pub fn free(&mut self, range: PhysRange) -> Result<(), ArrayFull> {
        if range.is_empty() {
            return Ok(());
        }
        self.make_room(array::Which::Reserved, 2, range)?;
        self.cache.clear();
        self.reserved.regions.remove(range);
        Ok(())
    }

    /// `memblock_set_node` on memory.
    pub fn set_node(&mut self, range: PhysRange, nid: Nid) {
        self.cache.clear();
        self.memory.regions.update(range, |r| r.nid = Some(nid));
    }

    /// `memblock_mark_hotplug`, `_mirror`, `_nomap`: sets flags on memory.
    pub fn mark(&mut self, range: PhysRange, flags: MemblockFlags) {
        self.cache.clear();
        self.has_mirror |= flags.contains(MemblockFlags::MIRROR);
        self.memory.regions.update(range, |r| r.flags = r.flags.with(flags));
    }

    /// `memblock_trim_memory`: rounds every memory region inward to `align` bytes.
    pub fn trim_memory(&mut self, align: u64) {
        self.cache.clear();
        let align = align.max(1);
        self.memory.regions.trim(|r| {
            PhysRange::new(r.start.checked_next_multiple_of(align).unwrap_or(u64::MAX), {
                r.end - r.end % align
            })
        });
    }

    /// The node of the memory at `addr`; `None` in a hole.
    pub fn nid_of(&self, addr: u64) -> Option<Nid> {
        self.memory.regions.containing(addr).and_then(|r| r.nid)
    }

    /// Free ranges of one node or of all: every usable region of memory minus what is
    /// reserved, ascending. A free range never spans two memory regions.
    pub fn free_ranges(&self, nid: Option<Nid>) -> impl Iterator<Item = PhysRange> {
        let usable = self.memory.regions.iter().filter(move |r| {
            nid.is_none_or(|n| r.nid == Some(n)) && !self.is_skipped(r, MemblockFlags::NONE)
        });
        usable.flat_map(|r| self.reserved.regions.gaps_up(r.range()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // bytes     0x0fff     0x3001      0x5000     0x7000
    // memory       [=========)            [==========)
    // trimmed      0x1000..0x3000         0x5000..0x7000, node 1 from 0x6000
    // reserved                               0x5800..0x6800
    #[test]
    fn memory_is_trimmed_split_by_node_and_free_around_reservations() {
        let mut mb = Memblock::new(MemblockRules::default());
        for (start, end) in [(0xfff, 0x3001), (0x5000, 0x7000)] {
            mb.add(Region::new(start, end, Some(Nid(0)), MemblockFlags::NONE)).expect("room");
        }
        mb.trim_memory(0x1000);
        mb.set_node(PhysRange::new(0x6000, 0x7000), Nid(1));
        mb.reserve(PhysRange::new(0x5800, 0x6800)).expect("room");
        let free = |mb: &Memblock, nid| -> Vec<(u64, u64)> {
            mb.free_ranges(nid).map(|r| (r.start, r.end)).collect()
        };
        assert_eq!(free(&mb, None), [(0x1000, 0x3000), (0x5000, 0x5800), (0x6800, 0x7000)]);
        assert_eq!(free(&mb, Some(Nid(1))), [(0x6800, 0x7000)]);
        assert_eq!((mb.nid_of(0x5fff), mb.nid_of(0x6000)), (Some(Nid(0)), Some(Nid(1))));
        mb.mark(PhysRange::new(0x1000, 0x2000), MemblockFlags::NOMAP);
        mb.remove(PhysRange::new(0x2800, 0x5400));
        assert_eq!(free(&mb, Some(Nid(0))), [(0x2000, 0x2800), (0x5400, 0x5800)]);
    }
}
