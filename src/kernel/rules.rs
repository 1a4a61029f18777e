//! The names of the rules in which kernel versions differ.
//!
//! Plain enumerations, one per row of the era table in `docs/kernel-eras.md`. The
//! table itself, which version has which, is [`super::version::KernelModel`].

use crate::pfn::Nid;
use serde::{Deserialize, Serialize};

/// Who sets the words of a struct page to zero, and with which instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ZeroStyle {
    /// memblock zeroes the whole memmap on the boot CPU (up to 4.14).
    ByMemblock,
    /// `__init_single_page` calls memset, then writes the fields (4.15–5.1).
    MemsetCall,
    /// `mm_zero_struct_page` expands to stores that the compiler merges with the
    /// field writes: nine stores in all (5.2 on).
    NineStores,
}

/// In which order a deferred worker initialises and frees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FreeOrder {
    /// Every block right after it was initialised (up to 4.14, 5.2 on).
    PerBlock,
    /// A whole free range, then the same range again (4.15).
    PerRange,
    /// The whole node, then the whole node again (4.18–5.1).
    PerNode,
}

/// How many pages of a node's last zone are early, in brief.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EarlyLimit {
    /// All of them: there is no deferred initialisation.
    All,
    /// 2 GiB and what belongs to it in that version.
    TwoGib,
    /// One section.
    OneSection,
}

/// The exact form of the early limit. The sweep of a node's highest zone stops at
/// the first section-aligned page once more than this many pages were counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EarlyRule {
    /// There is no deferred initialisation: everything is early.
    All,
    /// 2 GiB (4.2 to 4.6).
    TwoGib,
    /// 2 GiB or 1/256 of the node's span, whichever is more (4.7 to 4.11).
    TwoGibOrShare,
    /// As before, and the reserved bytes of a window whose page frame numbers were
    /// passed as addresses (4.12): in effect the first KiB of memory.
    WithReservedMixup,
    /// As before with addresses: plus what is reserved in the node's first part, at
    /// most the node's span (4.13 to 4.16, and late releases of 4.4).
    WithReserved,
    /// One section, at most the node's span (4.17 to 4.20).
    SectionWithinSpan,
    /// One section (5.0 on).
    Section,
}

/// Between which calls of the sweep the count of pages lives on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EarlyCounter {
    /// It starts again with every zone (up to 4.19).
    PerZone,
    /// A static variable, reset when another zone end is passed (4.20 to 6.8).
    Static,
    /// The same, but calls for lower zones do not touch it (6.9 on).
    StaticHighest,
}

/// In which order the boot CPU sweeps over zones and regions of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SweepOrder {
    /// Node by node, zone by zone, one call per zone (up to 5.7).
    Zones,
    /// Node by node, zone by zone, one call per region (5.8 to 5.11).
    ZoneRegions,
    /// All regions by address, whatever their node (5.12 on).
    Regions,
}

/// What becomes of pages without memory in a present section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HolesRule {
    /// They stay as memblock zeroed them (up to 4.14).
    Untouched,
    /// Zeroed where they are reserved (4.15 to 4.19).
    ReservedZeroed,
    /// All zeroed (4.20 to 5.6).
    Zeroed,
    /// All initialised as pages of node 0 in its first zone, and reserved (5.7 to 5.11).
    NodeZero,
    /// Initialised as pages of the region that follows, or of the last one up to
    /// the end of its section, and reserved (5.12 on, and late releases of 5.10).
    Neighbour,
}

/// What the deferred workers walk over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeferredWalk {
    /// There is no deferred phase.
    None,
    /// Regions of memory; pages with non-zero flags are skipped (4.2 to 4.14).
    MemoryRegions,
    /// Free ranges of memblock: memory without reservations (4.15 on).
    FreeRanges,
}

/// To which end of a free list a freed block goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ListEnd {
    /// The head: what is freed last is allocated first (up to 5.9).
    Head,
    /// The tail (5.10 on).
    Tail,
}

/// Where the helpers of a node's thread may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HelperPlace {
    /// There are none (up to 5.7).
    None,
    /// On the CPUs of the node (5.8 to 6.5).
    Node,
    /// Woken within the last-level cache of the queueing CPU, free to move (6.6 to 7.0).
    Cache,
    /// Woken within a shard of it, free to move (7.1 on).
    CacheShard,
}

/// Which line the kernel prints per node after the deferred phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DmesgLine {
    /// None.
    None,
    /// `node N initialised, P pages in Tms` (4.2 to 5.7).
    WithPages,
    /// `node N deferred pages initialised in Tms` (5.8 on).
    TimeOnly,
}

impl DmesgLine {
    /// The line for a node, if the kernel prints one. Its time comes from timer ticks.
    pub fn text(self, nid: Nid, pages: u64, elapsed_ms: u64) -> Option<String> {
        match self {
            Self::None => None,
            Self::WithPages => {
                Some(format!("node {nid} initialised, {pages} pages in {elapsed_ms}ms"))
            }
            Self::TimeOnly => {
                Some(format!("node {nid} deferred pages initialised in {elapsed_ms}ms"))
            }
        }
    }
}
