//! Where the boot CPU stops initialising: `first_deferred_pfn` of every node.
//!
//! The kernel counts pages while it sweeps over a node's highest zone and stops at
//! the first section-aligned page at which the count exceeds a limit
//! (`mm/mm_init.c: defer_init`, v6.12; before, `update_defer_init`). [`first_deferred`]
//! plays the same calls in the same order, but a whole range of pages at a time.
//! [`holes`] says which pages without memory are touched, and for which node.

use super::deferral::{MemoryPages, Split};
use super::layout::ZoneSpan;
use super::version::{EarlyCounter, EarlyRule, HolesRule, KernelModel, SweepOrder};
use crate::pfn::{self, Nid, Pfn, PfnRange, PhysRange};
use std::collections::BTreeMap;

/// The nodes of which something is deferred, with the first deferred page. It is a
/// multiple of a section, and not always a page of memory.
pub fn first_deferred(split: &Split, kernel: &KernelModel) -> BTreeMap<Nid, Pfn> {
    let mut sweep = Sweep {
        kernel,
        pages_per_section: split.pages_per_section,
        limits: split.nodes().map(|nid| (nid, Limit::of(split, kernel, nid))).collect(),
        count: 0,
        zone_end_before: None,
        found: BTreeMap::new(),
    };
    if kernel.early_rule == EarlyRule::All {
        return sweep.found;
    }
    if kernel.sweep_order == SweepOrder::Regions {
        for region in &split.memory {
            for zone in split.zones.iter().filter(|z| z.nid == region.nid) {
                sweep.region(zone, region);
            }
        }
        return sweep.found;
    }
    for nid in split.nodes() {
        for zone in split.zones.iter().filter(|z| z.nid == nid) {
            sweep.zone_begins();
            for region in split.memory.iter().filter(|r| r.nid == nid) {
                sweep.region(zone, region);
            }
        }
    }
    sweep.found
}

/// What a node's count is compared with.
struct Limit {
    pages: u64,
    node_end: Pfn,
}

impl Limit {
    fn of(split: &Split, kernel: &KernelModel, nid: Nid) -> Self {
        let span = split.node_span(nid);
        let two_gib = (2 << 30) / split.page_bytes;
        let share = two_gib.max(span.pages() / 256);
        let pages = match kernel.early_rule {
            EarlyRule::All => u64::MAX,
            EarlyRule::TwoGib => two_gib,
            EarlyRule::TwoGibOrShare => share,
            EarlyRule::WithReservedMixup => {
                let window = PhysRange::new(span.start.0, span.start.offset(share).0);
                (share + reserved_pages(split, window)).min(span.pages())
            }
            EarlyRule::WithReserved => {
                let byte = |pfn: Pfn| pfn.0.saturating_mul(split.page_bytes);
                let window = PhysRange::new(byte(span.start), byte(span.start.offset(share)));
                (share + reserved_pages(split, window)).min(span.pages())
            }
            EarlyRule::SectionWithinSpan => split.pages_per_section.min(span.pages()),
            EarlyRule::Section => split.pages_per_section,
        };
        Self { pages, node_end: span.end }
    }
}

/// Whole pages' worth of the reserved bytes within `window`
/// (`mm/memblock.c: memblock_reserved_memory_within`, v4.14).
fn reserved_pages(split: &Split, window: PhysRange) -> u64 {
    let bytes = split.reserved.iter().filter_map(|r| r.intersect(window)).map(PhysRange::bytes);
    bytes.sum::<u64>() / split.page_bytes
}

/// The state that the kernel keeps between calls.
struct Sweep<'a> {
    kernel: &'a KernelModel,
    pages_per_section: u64,
    limits: BTreeMap<Nid, Limit>,
    count: u64,
    zone_end_before: Option<Pfn>,
    found: BTreeMap<Nid, Pfn>,
}

impl Sweep<'_> {
    fn zone_begins(&mut self) {
        if self.kernel.early_counter == EarlyCounter::PerZone {
            self.count = 0;
        }
    }

    /// The part of one region in one zone.
    fn region(&mut self, zone: &ZoneSpan, region: &MemoryPages) {
        let Some(part) = region.range.intersect(zone.range()) else { return };
        let Some(limit) = self.limits.get(&zone.nid) else { return };
        // The bug of 5.8: the end of the part was passed for that of the zone.
        let zone_end = if self.kernel.region_bug { part.end } else { zone.range().end };
        let highest = zone_end >= limit.node_end;
        let resets = match self.kernel.early_counter {
            EarlyCounter::PerZone => false,
            EarlyCounter::Static => true,
            EarlyCounter::StaticHighest => highest,
        };
        if resets && self.zone_end_before != Some(zone_end) {
            self.zone_end_before = Some(zone_end);
            self.count = 0;
        }
        if !highest || self.found.contains_key(&zone.nid) {
            return;
        }
        let pages_left = limit.pages.saturating_sub(self.count);
        let stop = part.start.offset(pages_left).align_up(self.pages_per_section);
        if stop < part.end {
            self.found.insert(zone.nid, stop);
        } else {
            self.count = self.count.saturating_add(part.pages());
        }
    }
}

/// Pages without memory in present sections that this version's boot CPU touches, by
/// the node whose pages they are taken for. Versions that only zero them, or only
/// mark reserved ones, do so without regard to nodes: the lowest one stands for all.
///
/// Up to 5.7 the sweep over a zone's span also met such pages; those are not told
/// apart here.
pub fn holes(split: &Split, kernel: &KernelModel) -> BTreeMap<Nid, Vec<PfnRange>> {
    let memory = pfn::normalise(split.memory.iter().map(|m| m.range).collect());
    let section = split.pages_per_section;
    let sections = memory
        .iter()
        .map(|m| PfnRange { start: m.start.align_down(section), end: m.end.align_up(section) });
    let all = pfn::subtract(&pfn::normalise(sections.collect()), &memory);
    let mut out: BTreeMap<Nid, Vec<PfnRange>> = BTreeMap::new();
    let Some(lowest) = split.nodes().next() else { return out };
    match kernel.holes {
        HolesRule::Untouched | HolesRule::ReservedZeroed => {
            out.insert(lowest, pfn::intersect(&all, &split.reserved_pages()));
        }
        HolesRule::Zeroed | HolesRule::NodeZero => {
            out.insert(lowest, all);
        }
        HolesRule::Neighbour => {
            for hole in all {
                out.entry(neighbour(split, hole)).or_default().push(hole);
            }
        }
    }
    out
}

/// The node of the region behind `hole`, or of the last one.
fn neighbour(split: &Split, hole: PfnRange) -> Nid {
    let behind = split.memory.partition_point(|m| m.range.start < hole.end);
    let region = split.memory.get(behind).or(split.memory.last());
    region.map_or(Nid(0), |m| m.nid)
}
