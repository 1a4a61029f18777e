//! Which pages the boot CPU initialises and which are left for later.
//!
//! [`Split`] holds what the question depends on: zones, regions of memory with their
//! nodes, reservations. [`split`] answers it under the rules of a [`KernelModel`] with
//! one [`NodeLayout`] per node with memory. It works by ranges and never by page.
//! [`super::early`] finds the border, [`super::jobs`] makes the jobs behind it.

use super::early;
use super::jobs::{self, Tail};
use super::layout::{EarlyPages, NodeLayout, ZoneSpan};
use super::version::{HolesRule, KernelModel};
use crate::pfn::{self, Nid, Pfn, PfnRange, PhysRange};
use std::collections::BTreeSet;

/// Pages of one region of memory; regions may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryPages {
    /// Its whole pages.
    pub range: PfnRange,
    /// Its node.
    pub nid: Nid,
}

/// What the split depends on, as it stands when memory is given to the buddy
/// allocator (`memblock_free_all`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// The base page size in bytes.
    pub page_bytes: u64,
    /// Pages of a section.
    pub pages_per_section: u64,
    /// Populated zones, those of a node ascending.
    pub zones: Vec<ZoneSpan>,
    /// Regions of memory, ascending and disjoint; nodes may alternate.
    pub memory: Vec<MemoryPages>,
    /// Reservations in bytes, in any order. Memory without mapping (`NOMAP`) is to be
    /// given here too: its pages are treated as reserved ones.
    pub reserved: Vec<PhysRange>,
    /// Online CPUs by node; nodes that are not named have none.
    pub cpus: Vec<(Nid, u32)>,
}

impl Split {
    /// Nodes with memory, ascending.
    pub fn nodes(&self) -> impl Iterator<Item = Nid> + use<> {
        self.memory.iter().map(|m| m.nid).collect::<BTreeSet<Nid>>().into_iter()
    }

    /// From a node's first page to its last, other nodes' memory between included.
    pub fn node_span(&self, nid: Nid) -> PfnRange {
        let mut of_node = self.memory.iter().filter(|m| m.nid == nid).map(|m| m.range);
        let first = of_node.next().unwrap_or(PfnRange::new(0, 0));
        of_node.fold(first, |span, range| PfnRange { start: span.start, end: range.end })
    }

    /// The pages that reservations touch.
    pub fn reserved_pages(&self) -> Vec<PfnRange> {
        let touched = self.reserved.iter().filter(|r| !r.is_empty());
        pfn::normalise(touched.map(|r| r.touched_pages(self.page_bytes)).collect())
    }

    fn node_cpus(&self, nid: Nid) -> u32 {
        self.cpus.iter().find(|(n, _)| *n == nid).map_or(0, |(_, cpus)| *cpus)
    }
}

/// Splits memory by the rules of `kernel`; one entry per node with memory, ascending.
///
/// Not modelled: sections that an allocation pulls forward (`deferred_grow_zone`), and
/// huge pages whose tails are not initialised with the reserved pages (6.7 on): all of
/// a reservation counts as reserved.
pub fn split(input: &Split, kernel: &KernelModel) -> Vec<NodeLayout> {
    let first_deferred = early::first_deferred(input, kernel);
    let mut holes = early::holes(input, kernel);
    let reserved = input.reserved_pages();
    let node = |nid: Nid| {
        // A node looks at the reservations within its span alone.
        let span = input.node_span(nid);
        let start = reserved.partition_point(|r| r.end <= span.start);
        let end = reserved.partition_point(|r| r.start < span.end);
        let part = NodePart {
            input,
            kernel,
            nid,
            first_deferred: first_deferred.get(&nid).copied(),
            holes: holes.remove(&nid).unwrap_or_default(),
            reserved: reserved.get(start..end).unwrap_or_default(),
            all_reserved: &reserved,
        };
        part.layout()
    };
    input.nodes().map(node).collect()
}

/// One node and what was found out about it.
struct NodePart<'a> {
    input: &'a Split,
    kernel: &'a KernelModel,
    nid: Nid,
    first_deferred: Option<Pfn>,
    holes: Vec<PfnRange>,
    reserved: &'a [PfnRange],
    all_reserved: &'a [PfnRange],
}

impl NodePart<'_> {
    fn layout(self) -> NodeLayout {
        let regions = self.regions();
        let memory = pfn::normalise(regions.clone());
        let border = self.first_deferred.unwrap_or(Pfn(u64::MAX));
        let below = [PfnRange { start: Pfn(0), end: border }];
        let sweep = pfn::intersect(&memory, &below);
        let behind = pfn::subtract(&memory, &below);
        let cpus = self.input.node_cpus(self.nid);
        let max_threads = jobs::max_threads(self.kernel, cpus);
        NodeLayout {
            nid: self.nid,
            cpus,
            first_deferred_pfn: self.first_deferred,
            early_free: pfn::subtract(&sweep, self.reserved),
            pg_reserved: self.pg_reserved(&memory),
            deferred: pfn::subtract(&behind, self.reserved),
            max_threads,
            jobs: self.jobs(&regions, max_threads),
            early: EarlyPages {
                sweep,
                reserved: pfn::intersect(&behind, self.reserved),
                holes: self.holes,
            },
        }
    }

    fn regions(&self) -> Vec<PfnRange> {
        let of_node = self.input.memory.iter().filter(|m| m.nid == self.nid);
        of_node.map(|m| m.range).filter(|r| !r.is_empty()).collect()
    }

    /// Reserved memory, and holes where the version marks them.
    fn pg_reserved(&self, memory: &[PfnRange]) -> Vec<PfnRange> {
        let mut out = pfn::intersect(memory, self.reserved);
        match self.kernel.holes {
            HolesRule::NodeZero | HolesRule::Neighbour => out.extend(&self.holes),
            _ => out.extend(pfn::intersect(&self.holes, self.all_reserved)),
        }
        pfn::normalise(out)
    }

    fn jobs(&self, regions: &[PfnRange], max_threads: u32) -> Vec<super::padata::InitJob> {
        let Some(first) = self.first_deferred else { return Vec::new() };
        let behind = |r: &PfnRange| PfnRange { start: r.start.max(first), end: r.end };
        let tails: Vec<PfnRange> = regions.iter().map(behind).filter(|r| !r.is_empty()).collect();
        // Regions are kept apart: a free range of memblock never spans two.
        let free = pfn::subtract(&tails, self.reserved);
        let zones = self.input.zones.iter().filter(|z| z.nid == self.nid);
        let zone_end = zones.map(|z| z.range().end).max().unwrap_or(first);
        let pages_per_section = self.input.pages_per_section;
        jobs::jobs(
            self.kernel,
            Tail { first, zone_end, free: &free, pages_per_section },
            max_threads,
        )
    }
}

#[cfg(test)]
#[path = "deferral_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "deferral_oracle.rs"]
mod oracle;
