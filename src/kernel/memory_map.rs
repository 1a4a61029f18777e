//! What memblock knows when `sparse_init` starts.
//!
//! A [`MemoryMap`] is memory, reservations and where each node's `pglist_data` lies.
//! [`MemoryMap::from_facts`] takes it from a captured boot, exactly;
//! [`MemoryMap::assumed`] fills in plausible early reservations for a [`Machine`] of
//! which only ranges are known, and says so. [`super::place`] runs `sparse_init` on it.

use super::memblock::{AllocRequest, Memblock, MemblockFlags, Region};
use super::sparse_rules::ReleaseRules;
use crate::machine::facts::BootFacts;
use crate::machine::{Arch, Machine};
use crate::pfn::{Nid, PhysRange};
use crate::warning::Warning;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A range of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryRegion {
    /// The first byte.
    pub start: u64,
    /// The first byte behind it.
    pub end: u64,
    /// The node.
    pub nid: Nid,
    /// memblock's flags.
    pub flags: MemblockFlags,
}

/// A reserved range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservedRegion {
    /// The first byte.
    pub start: u64,
    /// The first byte behind it.
    pub end: u64,
    /// The node for which it was allocated, where that is recorded (6.17 on).
    pub nid: Option<Nid>,
    /// memblock's flags.
    pub flags: MemblockFlags,
}

impl ReservedRegion {
    /// A reservation without node and flags.
    pub fn plain(range: PhysRange) -> Self {
        Self { start: range.start, end: range.end, nid: None, flags: MemblockFlags::NONE }
    }
}

/// The state that the memory model starts from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryMap {
    /// Memory, ascending and disjoint.
    pub memory: Vec<MemoryRegion>,
    /// Reservations in any order; they may overlap.
    pub reserved: Vec<ReservedRegion>,
    /// The address of each node's `pglist_data`; a missing node's is taken to lie at
    /// the node's last byte.
    pub node_data: BTreeMap<Nid, u64>,
    /// No allocation above this address; `None`: the end of memory.
    pub current_limit: Option<u64>,
    /// Allocate from the bottom: never on x86_64 at this point.
    pub bottom_up: bool,
    /// What was assumed.
    pub warnings: Vec<Warning>,
}

impl MemoryMap {
    /// The state of a captured boot.
    pub fn from_facts(facts: &BootFacts) -> Self {
        let memory = facts.memblock_memory.iter().map(|m| MemoryRegion {
            start: m.start,
            end: m.end,
            // Without NUMA all memory is node 0's.
            nid: m.nid.unwrap_or_default(),
            flags: MemblockFlags(m.flags),
        });
        let reserved = facts.reserved_before_sparse.iter().map(|r| ReservedRegion::plain(*r));
        let mut node_data: BTreeMap<Nid, u64> =
            facts.node_data.iter().map(|n| (n.nid, n.range.start)).collect();
        if facts.arch == Arch::S390x {
            // Without NUMA the only pglist_data is part of the kernel image, which is
            // loaded into the first section.
            node_data.entry(Nid(0)).or_insert(0);
        }
        Self {
            memory: memory.collect(),
            reserved: reserved.collect(),
            node_data,
            ..Self::default()
        }
    }

    /// The ranges of `machine` with plausible early reservations: firmware's first MiB,
    /// the kernel image, page tables of the direct map, and a `pglist_data` per node.
    ///
    /// Ranges are taken as they are; [`super::place::place`] checks them.
    pub fn assumed(machine: &Machine, rules: &ReleaseRules) -> Self {
        let mut memory: Vec<MemoryRegion> = Vec::new();
        for node in &machine.nodes {
            memory.extend(node.memory.iter().map(|r| MemoryRegion {
                start: r.start,
                end: r.end,
                nid: node.nid,
                flags: MemblockFlags::NONE,
            }));
        }
        memory.sort_by_key(|r| (r.start, r.end));
        let mut map = Self { memory, ..Self::default() };
        map.reserved = early_reservations(&map, rules);
        map.allocate_early(machine, rules);
        map.warnings.push(Warning::new(
            "assumed-reservations",
            format!(
                "early reservations of {} are assumed: kernel image, page tables of the \
                 direct map, node data; addresses differ from a real boot by some MiB",
                machine.name
            ),
            "use a captured boot (memblock=debug) for exact addresses",
        ));
        map
    }

    /// Keeps the memory that `machine` has, with its nodes; flags stay.
    pub(super) fn keep_memory_of(&mut self, machine: &Machine) {
        let mut kept = Vec::new();
        for node in &machine.nodes {
            for region in &self.memory {
                let whole = PhysRange::new(region.start, region.end);
                let inside = node.memory.iter().filter_map(|r| r.intersect(whole));
                kept.extend(inside.filter(|r| !r.is_empty()).map(|r| MemoryRegion {
                    start: r.start,
                    end: r.end,
                    nid: node.nid,
                    flags: region.flags,
                }));
            }
        }
        kept.sort_by_key(|r| r.start);
        self.memory = kept;
    }

    /// A memblock in this state; with `movable_node` it avoids hot-pluggable memory.
    ///
    /// # Errors
    /// When the map has more regions than memblock's arrays may hold before they grow.
    pub(super) fn memblock(
        &self,
        rules: &ReleaseRules,
        movable_node: bool,
    ) -> Result<Memblock, super::memblock::ArrayFull> {
        let mut block_rules = rules.memblock.clone();
        block_rules.movable_node = movable_node;
        // Linux's arrays have grown by now if they had to; where to is among the
        // reservations of the map.
        block_rules.memory_places = places(block_rules.memory_places, self.memory.len());
        block_rules.reserved_places = places(block_rules.reserved_places, self.reserved.len());
        let shrink = (rules.memblock.memory_places, rules.memblock.reserved_places);
        let mut memblock = Memblock::new(block_rules);
        for r in &self.memory {
            memblock.add(Region::new(r.start, r.end, Some(r.nid), r.flags))?;
        }
        for r in &self.reserved {
            memblock.reserve_region(Region::new(r.start, r.end, r.nid, r.flags))?;
        }
        if self.memory.iter().any(|r| r.flags.contains(MemblockFlags::MIRROR)) {
            memblock.prefer_mirror();
        }
        memblock.shrink_arrays(shrink);
        memblock.allow_resize();
        let end = memblock.memory().end_byte().unwrap_or(0);
        memblock.set_current_limit(self.current_limit.unwrap_or(end));
        memblock.set_bottom_up(self.bottom_up);
        Ok(memblock)
    }

    /// Lets memblock itself place the direct map's tables and each node's data.
    fn allocate_early(&mut self, machine: &Machine, rules: &ReleaseRules) {
        let Ok(mut memblock) = self.memblock(rules, false) else { return };
        let request = |bytes, align, nid| AllocRequest {
            bytes,
            align,
            min_addr: 0,
            max_addr: 0,
            nid,
            exact_nid: false,
        };
        let bytes = direct_map_table_bytes(machine, rules);
        memblock.alloc(&request(bytes, rules.page_bytes, None));
        for node in machine.nodes.iter().filter(|n| n.memory.iter().any(|r| !r.is_empty())) {
            let bytes = NODE_DATA_BYTES;
            let align = rules.memblock.smp_cache_bytes;
            if let Some(start) = memblock.alloc(&request(bytes, align, Some(node.nid))) {
                self.node_data.insert(node.nid, start);
            }
        }
        let regions = memblock.reserved().iter();
        self.reserved = regions
            .map(|r| ReservedRegion { start: r.start, end: r.end, nid: r.nid, flags: r.flags })
            .collect();
    }
}

/// `sizeof(pg_data_t)` of distribution kernels on x86_64: 168 to 170 KiB.
const NODE_DATA_BYTES: u64 = 168 << 10;

/// Enough places to insert `regions` one by one without doubling.
fn places(static_places: usize, regions: usize) -> usize {
    static_places.max(regions.saturating_mul(2) + 2)
}

/// The first MiB and the kernel image at its usual place.
fn early_reservations(map: &MemoryMap, rules: &ReleaseRules) -> Vec<ReservedRegion> {
    const MIB: u64 = 1 << 20;
    let start = map.memory.first().map_or(0, |r| r.start);
    let image = match rules.arch {
        Arch::X86_64 => PhysRange::new(16 * MIB, 64 * MIB),
        _ => PhysRange::new(start, start.saturating_add(48 * MIB)),
    };
    let mut out = vec![ReservedRegion::plain(image)];
    if rules.arch == Arch::X86_64 {
        out.push(ReservedRegion::plain(PhysRange::new(0, MIB)));
    }
    out
}

/// Page tables of the direct map. arm64 with 4 KiB pages maps all memory by base pages
/// (`RODATA_FULL_DEFAULT_ENABLED`), 1/512 of it; others use the largest pages they have.
fn direct_map_table_bytes(machine: &Machine, rules: &ReleaseRules) -> u64 {
    let bytes = machine.nodes.iter().flat_map(|n| &n.memory).map(|r| r.bytes());
    let memory = bytes.fold(0u64, u64::saturating_add);
    let page = rules.page_bytes;
    let tables = match (rules.arch, page) {
        (Arch::Arm64, 4096) => memory >> 21,
        // Entries of 1 GiB: one table for 512 GiB, and some for the ragged edges.
        _ => (memory >> 39) + 8,
    };
    tables.saturating_mul(page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::cmdline::CommandLine;
    use crate::kernel::place::place;
    use crate::kernel::sparse_rules::Platform;
    use crate::kernel::version::{KernelModel, NEWEST};
    use proptest::prelude::*;

    const GIB: u64 = 1 << 30;

    fn rules(machine: &Machine) -> ReleaseRules {
        let kernel = KernelModel::new(NEWEST, machine.arch);
        let platform = Platform::of_machine(&kernel, machine);
        ReleaseRules::new(&kernel, machine.page_bytes, platform)
    }

    // GiB    0  3  4        6        8
    // node 0 [==)  [========)                 kernel image at 16 MiB, first MiB reserved
    // node 1                [========)        direct-map tables at the very top
    #[test]
    fn a_machine_gets_plausible_early_reservations() {
        let range = PhysRange::new;
        let nodes =
            vec![vec![range(0, 3 * GIB), range(4 * GIB, 6 * GIB)], vec![range(6 * GIB, 8 * GIB)]];
        let machine = Machine::of_ranges("test", Arch::X86_64, 4096, nodes);
        let map = MemoryMap::assumed(&machine, &rules(&machine));
        assert_eq!(map.warnings[0].code, "assumed-reservations");
        assert_eq!(map.node_data[&Nid(0)], 6 * GIB - NODE_DATA_BYTES);
        assert_eq!(map.node_data[&Nid(1)], 8 * GIB - 8 * 4096 - NODE_DATA_BYTES);
        let reserved: Vec<_> = map.reserved.iter().map(|r| (r.start >> 20, r.end >> 20)).collect();
        assert_eq!(reserved[..2], [(0, 1), (16, 64)]);
        let placement = place(&map, &rules(&machine), &CommandLine::default()).expect("fits");
        assert_eq!(placement.memmap.iter().map(|m| m.end - m.start).sum::<u64>(), 112 << 20);
    }

    #[test]
    fn a_machine_above_64_tib_gets_five_levels() {
        let nodes = vec![vec![PhysRange::new(1 << 46, (1 << 46) + 4 * GIB)]];
        let machine = Machine::of_ranges("test", Arch::X86_64, 4096, nodes);
        assert_eq!(rules(&machine).physmem_bits, 52);
        let map = MemoryMap::assumed(&machine, &rules(&machine));
        assert!(place(&map, &rules(&machine), &CommandLine::default()).is_ok());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        // Nonsense, on any architecture: an error or a placement, never a panic.
        #[test]
        fn nonsense_is_refused_without_a_panic(
            ranges in prop::collection::vec(
                (prop_oneof![0u64..1 << 35, any::<u64>()],
                 prop_oneof![0u64..1 << 33, any::<u64>()], 0usize..4),
                0..6,
            ),
            arch in 0usize..6,
            page_bytes in prop::sample::select(vec![0u64, 1, 4096, 8192, 16384, 65536, 1 << 40]),
        ) {
            let archs = [
                Arch::X86_64, Arch::Arm64, Arch::Ppc64, Arch::S390x, Arch::Riscv64, Arch::Sparc64,
            ];
            let mut nodes = vec![Vec::new(); 4];
            for (start, bytes, node) in ranges {
                nodes[node].push(PhysRange::new(start, start.wrapping_add(bytes)));
            }
            let machine = Machine::of_ranges("test", archs[arch], page_bytes, nodes);
            let rules = rules(&machine);
            let map = MemoryMap::assumed(&machine, &rules);
            let _ = place(&map, &rules, &CommandLine::default());
        }
    }
}
