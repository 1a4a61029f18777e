//! The result of the memory model: what lies where and who initialises it.
//!
//! [`Layout`] is data; [`super::boot`] makes it for a machine or a captured boot.
//! `plan` makes boot plans of a layout, `report` shows it.

use super::cmdline::CmdlineError;
use super::config::ConfigError;
use super::padata::InitJob;
use super::place::PlaceError;
use super::struct_page::PageFormat;
use super::version::{KernelModel, VersionError};
use crate::machine::Arch;
use crate::pfn::{self, Nid, Pfn, PfnRange, PhysRange, SectionNr};
use crate::warning::Warning;
use serde::{Deserialize, Serialize};

/// Where Linux places what on one machine, and which pages are early or deferred.
///
/// Every page with a struct page that Linux initialises is in exactly one of
/// `early.sweep`, `early.reserved`, `early.holes` and `deferred` of one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// The machine's name.
    pub machine: String,
    /// The rules that were applied.
    pub kernel: KernelModel,
    /// The machine's architecture.
    pub arch: Arch,
    /// The base page size in bytes.
    pub page_bytes: u64,
    /// Pages of a memory section.
    pub pages_per_section: u64,
    /// Pages of the largest buddy block (1024 on x86_64).
    pub max_order_pages: u64,
    /// Pages of a pageblock (512 on x86_64).
    pub pageblock_pages: u64,
    /// How a struct page looks.
    pub format: PageFormat,
    /// Zones with memory, by node and then ascending.
    pub zones: Vec<ZoneSpan>,
    /// The memmap's backing, ascending by section.
    pub memmap: Vec<MemmapExtent>,
    /// Nodes that have memory, ascending by id.
    pub nodes: Vec<NodeLayout>,
    /// Gigantic pages that memblock gave, ascending and joined. They count among the
    /// reserved pages, tails included, although Linux leaves tails alone from 6.7 on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gigantic: Vec<PhysRange>,
    /// Bytes of a struct page.
    #[serde(default = "usual_struct_page_bytes")]
    pub struct_page_bytes: u64,
    /// What was assumed.
    pub warnings: Vec<Warning>,
}

/// For layouts that were written without it.
const fn usual_struct_page_bytes() -> u64 {
    super::struct_page::STRUCT_PAGE_BYTES
}

impl Layout {
    /// Cuts pages of a node at the borders of its zones. `pages` must be normalised.
    ///
    /// A hole outside every zone belongs to the zone that follows, the last hole to
    /// the zone before it (`mm/mm_init.c: init_unavailable_range`, v5.12 on).
    pub fn zoned(&self, nid: Nid, pages: &[PfnRange]) -> Vec<(PfnRange, ZoneKind)> {
        let zones: Vec<_> = self.zones.iter().filter(|z| z.nid == nid).collect();
        let inside_any = pfn::normalise(zones.iter().map(|z| z.range()).collect());
        let mut out = Vec::with_capacity(pages.len());
        for zone in &zones {
            let inside = pfn::intersect(pages, &[zone.range()]);
            out.extend(inside.into_iter().map(|range| (range, zone.zone)));
        }
        for hole in pfn::subtract(pages, &inside_any) {
            let next = zones.iter().find(|z| z.start_pfn >= hole.end).or(zones.last());
            out.extend(next.map(|z| (hole, z.zone)));
        }
        out.sort_by_key(|(range, _)| *range);
        out
    }
}

/// A memory zone's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ZoneKind {
    /// `ZONE_DMA`.
    #[serde(rename = "DMA")]
    Dma,
    /// `ZONE_DMA32`.
    #[serde(rename = "DMA32")]
    Dma32,
    /// `ZONE_NORMAL`.
    Normal,
    /// `ZONE_MOVABLE`.
    Movable,
}

/// One populated zone of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZoneSpan {
    /// The node.
    pub nid: Nid,
    /// The kind.
    pub zone: ZoneKind,
    /// `zone_start_pfn`.
    pub start_pfn: Pfn,
    /// `spanned_pages`, holes included.
    pub spanned: u64,
    /// `present_pages`, holes not included.
    pub present: u64,
}

impl ZoneSpan {
    /// The page frames from the first to the last.
    pub fn range(&self) -> PfnRange {
        PfnRange { start: self.start_pfn, end: self.start_pfn.offset(self.spanned) }
    }
}

/// A run of sections whose memmap lies contiguously in physical memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemmapExtent {
    /// The first section.
    pub section_start: SectionNr,
    /// The first section behind the run.
    pub section_end: SectionNr,
    /// The node that owns the sections.
    pub nid: Nid,
    /// The node on which the memmap really lies.
    pub on_nid: Nid,
    /// How it is mapped.
    pub backing: Backing,
    /// First physical byte of the memmap.
    pub start: u64,
    /// First physical byte behind it.
    pub end: u64,
}

/// How a piece of the memmap is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backing {
    /// Large (PMD) mappings.
    Pmd,
    /// Base pages.
    BasePages,
}

/// The pages of one node and the work they make.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeLayout {
    /// The node.
    pub nid: Nid,
    /// Its logical CPUs, online when the deferred phase starts.
    pub cpus: u32,
    /// Where the deferred part starts; `None` when nothing is deferred.
    pub first_deferred_pfn: Option<Pfn>,
    /// What the boot CPU initialises.
    pub early: EarlyPages,
    /// All pages that end with `PG_reserved`, early ones all of them.
    pub pg_reserved: Vec<PfnRange>,
    /// The part of `early.sweep` that the boot CPU frees to the buddy allocator.
    pub early_free: Vec<PfnRange>,
    /// What the node's threads initialise and free.
    pub deferred: Vec<PfnRange>,
    /// Threads that this kernel would use at most.
    pub max_threads: u32,
    /// The padata jobs, one after another.
    pub jobs: Vec<InitJob>,
}

/// Pages that the boot CPU initialises, by cause. All lists normalised, disjoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EarlyPages {
    /// By the sweep over zones, before anything is freed.
    pub sweep: Vec<PfnRange>,
    /// Behind `first_deferred_pfn`, because they are reserved.
    pub reserved: Vec<PfnRange>,
    /// Pages without memory whose section is present.
    pub holes: Vec<PfnRange>,
}

/// Why a machine has no layout.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum LayoutError {
    /// Memory cannot be placed by this kernel's rules.
    #[error("{machine}: {cause}")]
    Place {
        /// The machine.
        machine: String,
        /// What is wrong with it.
        cause: PlaceError,
    },
    /// The release names no version that is modelled.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// An option of the command line has a value that Linux would not take as meant.
    #[error(transparent)]
    CommandLine(#[from] CmdlineError),
    /// The command line asks for memory of a node that has none.
    #[error("hugepages= names node {nid}, which has no memory; name another node")]
    NodeWithoutMemory {
        /// The node.
        nid: Nid,
    },
    /// The configuration of a captured boot has an impossible value.
    #[error(transparent)]
    Config(#[from] ConfigError),
}
