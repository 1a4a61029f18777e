//! What lies where in physical memory, compact enough to travel with a record.
//!
//! [`MemoryFacts`] is the layout of [`super::estimate`] and [`super::Record`] for
//! pictures: ranges per node, zones, the memmap's places, early and deferred pages.
//! Neighbours are merged; lists have an upper limit and say what was left out.

use serde::{Deserialize, Serialize};

/// The most ranges that a record carries, over all lists of all nodes.
pub const MOST_RANGES: usize = 4096;

/// Physical memory of a machine under one kernel. Lists ascend.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MemoryFacts {
    /// The base page size in bytes.
    pub page_bytes: u64,
    /// Nodes that have memory.
    pub nodes: Vec<NodeMemory>,
    /// Zones that have memory, by node and then ascending.
    pub zones: Vec<ZoneFacts>,
    /// Where the memmap lies.
    pub memmap: Vec<MemmapPlace>,
    /// How many ranges were left out because a record carries [`MOST_RANGES`] at most.
    pub left_out_ranges: u64,
}

/// One node. Page frames are half-open ranges of page frame numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodeMemory {
    /// The node.
    pub nid: u32,
    /// Page frames with memory.
    pub ranges_pfn: Vec<[u64; 2]>,
    /// Where the deferred part starts; null when nothing is deferred.
    pub first_deferred_pfn: Option<u64>,
    /// Page frames whose struct pages the boot CPU initialises.
    pub early_pfn: Vec<[u64; 2]>,
    /// Page frames whose struct pages the node's threads initialise.
    pub deferred_pfn: Vec<[u64; 2]>,
}

/// One zone of one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ZoneFacts {
    /// The node.
    pub nid: u32,
    /// `DMA`, `DMA32`, `Normal` or `Movable`.
    pub zone: String,
    /// The first page frame.
    pub start_pfn: u64,
    /// The first page frame behind the zone, holes included.
    pub end_pfn: u64,
}

/// Physical bytes that hold a part of the memmap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MemmapPlace {
    /// The node whose struct pages these are.
    pub nid: u32,
    /// The node on which they lie.
    pub on_nid: u32,
    /// `pmd` or `base-pages`.
    pub backing: String,
    /// The first byte.
    pub start: u64,
    /// The first byte behind them.
    pub end: u64,
}
