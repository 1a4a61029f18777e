//! Where everything lies: a memory map and the rules of a release give a [`Placement`].
//!
//! [`place`] checks the map, runs [`sparse_init`](super::sparse::sparse_init) on a model
//! of memblock, and computes the zones. Pure: equal input, equal output.

use super::cmdline::CommandLine;
use super::layout::{MemmapExtent, ZoneSpan};
use super::memblock::{ArrayFull, Memblock, Region};
use super::memory_map::MemoryMap;
use super::sparse::{FreeRecord, MemmapRun, Requests, SectionRun, SparseError, sparse_init};
use super::sparse_rules::ReleaseRules;
use super::zones::{NodeSpan, node_spans, zones};
use crate::machine::Arch;
use crate::pfn::{Nid, PhysRange, SectionNr};
use crate::warning::Warning;
use serde::Serialize;
use std::collections::BTreeSet;

/// The most nodes that Linux can be built for (`CONFIG_NODES_SHIFT` 10).
pub const MAX_NODES: u32 = 1024;

/// The most memory that is modelled: a guard against typing errors, for time and space
/// grow with the number of sections.
pub const MAX_MEMORY_BYTES: u64 = 1 << 50;

/// memblock's two lists at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemblockDump {
    /// Memory, ascending.
    pub memory: Vec<Region>,
    /// Reservations, ascending.
    pub reserved: Vec<Region>,
}

/// What lies where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// memblock when `sparse_init` starts.
    pub before: MemblockDump,
    /// memblock when it has finished.
    pub after: MemblockDump,
    /// The requests of `sparse_init`, in order.
    pub requests: Requests,
    /// What `sparse_init` gave back.
    pub frees: Vec<FreeRecord>,
    /// Where the memmap lies, ascending by the page frames it describes.
    pub memmap: Vec<MemmapRun>,
    /// Present sections with their owner.
    pub sections: Vec<SectionRun>,
    /// Zones with memory, by node and then ascending.
    pub zones: Vec<ZoneSpan>,
    /// Spans of the nodes with memory.
    pub nodes: Vec<NodeSpan>,
    /// What was assumed.
    pub warnings: Vec<Warning>,
}

/// Why a memory map cannot be placed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// There is no memory.
    #[error("the machine has no whole page of memory: give its nodes memory")]
    Empty,
    /// A range ends where it starts, or before.
    #[error("range {0} is empty; its end must lie above its start")]
    EmptyRange(PhysRange),
    /// Memory is not sorted.
    #[error("memory {1} comes after {0}; sort memory by address")]
    Unsorted(PhysRange, PhysRange),
    /// Two ranges of memory overlap.
    #[error("memory {0} overlaps {1}; each byte may belong to one node only")]
    Overlap(PhysRange, PhysRange),
    /// Memory or a reservation lies above what the architecture can address.
    #[error(
        "range {range} ends above {limit:#x}, the physical limit of {arch} with this \
         configuration; move it down or choose a kernel that addresses more"
    )]
    AboveLimit {
        /// The range.
        range: PhysRange,
        /// The first byte that cannot be addressed.
        limit: u64,
        /// The architecture.
        arch: Arch,
    },
    /// The architecture has no such base page.
    #[error("{arch} has no base pages of {page_bytes} bytes; use {expected}")]
    PageSize {
        /// The architecture.
        arch: Arch,
        /// The page size asked for.
        page_bytes: u64,
        /// What there is.
        expected: &'static str,
    },
    /// This kernel is not built for so many nodes.
    #[error(
        "node {nid} is too high: this kernel knows {nodes} nodes (NODES_SHIFT), and none more \
         than 1024; use --config NODES_SHIFT=10 or fewer nodes"
    )]
    TooManyNodes {
        /// The node.
        nid: Nid,
        /// How many nodes there may be.
        nodes: u32,
    },
    /// A reservation names a node that has no memory.
    #[error("reservation {range} is on node {nid}, which has no memory; leave the node out")]
    NodeWithoutMemory {
        /// The reservation.
        range: PhysRange,
        /// The node.
        nid: Nid,
    },
    /// More memory than the model is made for.
    #[error("{bytes} bytes of memory are too many; machines up to 1 PiB are modelled")]
    TooLarge {
        /// How many bytes there are.
        bytes: u64,
    },
    /// Something does not fit.
    #[error(transparent)]
    Sparse(#[from] SparseError),
}

impl From<ArrayFull> for PlaceError {
    fn from(full: ArrayFull) -> Self {
        Self::Sparse(full.into())
    }
}

/// Runs the memory model.
///
/// # Errors
/// See [`PlaceError`].
pub fn place(
    map: &MemoryMap,
    rules: &ReleaseRules,
    line: &CommandLine,
) -> Result<Placement, PlaceError> {
    check(map, rules)?;
    let mut memblock = map.memblock(rules, line.movable_node)?;
    let before = dump(&memblock);
    let outcome = sparse_init(&mut memblock, rules, &map.node_data)?;
    Ok(Placement {
        before,
        after: dump(&memblock),
        requests: outcome.requests,
        frees: outcome.frees,
        memmap: outcome.memmap,
        sections: outcome.sections,
        zones: zones(memblock.memory(), rules, line),
        nodes: node_spans(memblock.memory(), rules.page_bytes),
        warnings: map.warnings.clone(),
    })
}

impl Placement {
    /// Where the memmap lies, by sections. A run that starts or ends inside a section
    /// names that section too.
    pub fn extents(&self, rules: &ReleaseRules) -> Vec<MemmapExtent> {
        let bytes = rules.section_memmap_bytes().max(1);
        let extent = |run: &MemmapRun| MemmapExtent {
            section_start: SectionNr(run.map_start / bytes),
            section_end: SectionNr(run.map_end.div_ceil(bytes)),
            nid: run.nid,
            on_nid: run.on_nid,
            backing: run.backing,
            start: run.start,
            end: run.end,
        };
        self.memmap.iter().map(extent).collect()
    }
}

fn dump(memblock: &Memblock) -> MemblockDump {
    MemblockDump {
        memory: memblock.memory().iter().copied().collect(),
        reserved: memblock.reserved().iter().copied().collect(),
    }
}

/// Refuses what Linux would not start with.
fn check(map: &MemoryMap, rules: &ReleaseRules) -> Result<(), PlaceError> {
    check_page_size(rules)?;
    let range = |start, end| PhysRange::new(start, end);
    let memory: Vec<PhysRange> = map.memory.iter().map(|r| range(r.start, r.end)).collect();
    let reserved = map.reserved.iter().map(|r| range(r.start, r.end));
    let limit = 1u64.checked_shl(rules.physmem_bits).unwrap_or(u64::MAX);
    for range in memory.iter().copied().chain(reserved) {
        if range.is_empty() {
            return Err(PlaceError::EmptyRange(range));
        }
        if range.end > limit {
            return Err(PlaceError::AboveLimit { range, limit, arch: rules.arch });
        }
    }
    for pair in memory.windows(2) {
        if pair[1].start < pair[0].start {
            return Err(PlaceError::Unsorted(pair[0], pair[1]));
        }
        if pair[1].start < pair[0].end {
            return Err(PlaceError::Overlap(pair[0], pair[1]));
        }
    }
    check_nodes(map, rules)?;
    let bytes = memory.iter().fold(0u64, |sum, r| sum.saturating_add(r.bytes()));
    if bytes > MAX_MEMORY_BYTES {
        return Err(PlaceError::TooLarge { bytes });
    }
    if memory.iter().all(|r| r.whole_pages(rules.page_bytes).is_empty()) {
        return Err(PlaceError::Empty);
    }
    Ok(())
}

fn check_nodes(map: &MemoryMap, rules: &ReleaseRules) -> Result<(), PlaceError> {
    let nodes = MAX_NODES.min(1 << rules.config.nodes_shift.min(31));
    if let Some(high) = map.memory.iter().find(|r| r.nid.0 >= nodes) {
        return Err(PlaceError::TooManyNodes { nid: high.nid, nodes });
    }
    let known: BTreeSet<Nid> = map.memory.iter().map(|r| r.nid).collect();
    for reserved in &map.reserved {
        if let Some(nid) = reserved.nid.filter(|nid| !known.contains(nid)) {
            let range = PhysRange::new(reserved.start, reserved.end);
            return Err(PlaceError::NodeWithoutMemory { range, nid });
        }
    }
    Ok(())
}

fn check_page_size(rules: &ReleaseRules) -> Result<(), PlaceError> {
    let (sizes, expected): (&[u64], _) = match rules.arch {
        Arch::X86_64 | Arch::S390x | Arch::Riscv64 => (&[4096], "4096"),
        Arch::Arm64 => (&[4096, 16384, 65536], "4096, 16384 or 65536"),
        Arch::Ppc64 => (&[4096, 65536], "4096 or 65536"),
        Arch::Sparc64 => (&[8192], "8192"),
    };
    if sizes.contains(&rules.page_bytes) {
        return Ok(());
    }
    Err(PlaceError::PageSize { arch: rules.arch, page_bytes: rules.page_bytes, expected })
}

#[cfg(test)]
mod tests;
