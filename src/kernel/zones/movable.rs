//! Where `ZONE_MOVABLE` begins on each node.
//!
//! [`starts`] follows
//! `mm/mm_init.c: find_zone_movable_pfns_for_nodes` (v6.12).

use super::NodeSpan;
use crate::kernel::cmdline::{CommandLine, Core};
use crate::kernel::memblock::{MemblockFlags, RegionSet};
use crate::kernel::sparse_rules::ReleaseRules;
use crate::pfn::{Nid, Pfn, PfnRange};
use std::collections::BTreeMap;

/// `size` in pages; mirrored memory is counted elsewhere.
fn core_pages(size: Option<Core>, total: u64, page_bytes: u64) -> u64 {
    match size {
        Some(Core::Bytes(bytes)) => bytes / page_bytes,
        Some(Core::Percent(percent)) => total.saturating_mul(u64::from(percent)) / 100,
        Some(Core::Mirror) | None => 0,
    }
}

/// The first page frame of `ZONE_MOVABLE` on each node that has one. `usable_from` is
/// where the highest other zone begins: nothing below may be movable.
pub(super) fn starts(
    memory: &RegionSet,
    rules: &ReleaseRules,
    line: &CommandLine,
    spans: &[NodeSpan],
    usable_from: Pfn,
) -> BTreeMap<Nid, Pfn> {
    let has_mirror = || memory.iter().any(|r| r.flags.contains(MemblockFlags::MIRROR));
    let mut starts = if line.movable_node {
        lowest(memory, rules, 0, |f| f.contains(MemblockFlags::HOTPLUG))
    } else if line.kernelcore == Some(Core::Mirror) {
        if !has_mirror() {
            return BTreeMap::new();
        }
        lowest(memory, rules, 1 << 32, |f| !f.contains(MemblockFlags::MIRROR))
    } else {
        match kernelcore_pages(rules, line, spans) {
            Some(pages) => spread(memory, rules, spans, usable_from, pages),
            None => return BTreeMap::new(),
        }
    };
    for start in starts.values_mut() {
        *start = start.align_up(rules.max_order_pages());
    }
    starts.retain(|nid, start| {
        spans.iter().any(|s| s.nid == *nid && *start < s.range.end) && start.0 > 0
    });
    starts
}

/// Per node the start of the lowest region at or above `from` with such flags.
fn lowest(
    memory: &RegionSet,
    rules: &ReleaseRules,
    from: u64,
    wanted: impl Fn(MemblockFlags) -> bool,
) -> BTreeMap<Nid, Pfn> {
    let mut out = BTreeMap::new();
    for region in memory.iter().filter(|r| wanted(r.flags)) {
        let start = region.range().whole_pages(rules.page_bytes).start;
        if start.0 >= from / rules.page_bytes {
            out.entry(region.nid.unwrap_or_default()).or_insert(start);
        }
    }
    out
}

/// How many pages the kernel must keep; `None` when there is no `ZONE_MOVABLE`.
fn kernelcore_pages(rules: &ReleaseRules, line: &CommandLine, spans: &[NodeSpan]) -> Option<u64> {
    let total: u64 = spans.iter().map(|s| s.present).sum();
    let mut kernelcore = core_pages(line.kernelcore, total, rules.page_bytes);
    let movablecore = core_pages(line.movablecore, total, rules.page_bytes);
    if movablecore > 0 {
        let block = rules.max_order_pages();
        let rounded = movablecore.checked_next_multiple_of(block).unwrap_or(total).min(total);
        kernelcore = kernelcore.max(total - rounded);
    }
    (kernelcore > 0 && kernelcore < total).then_some(kernelcore)
}

/// Spreads `required` pages for the kernel evenly over the nodes, again with one node
/// fewer while some are left.
fn spread(
    memory: &RegionSet,
    rules: &ReleaseRules,
    spans: &[NodeSpan],
    usable_from: Pfn,
    mut required: u64,
) -> BTreeMap<Nid, Pfn> {
    let mut by_node: BTreeMap<Nid, Vec<PfnRange>> = BTreeMap::new();
    for region in memory.iter() {
        let range = region.range().whole_pages(rules.page_bytes);
        if !range.is_empty() {
            by_node.entry(region.nid.unwrap_or_default()).or_default().push(range);
        }
    }
    let mut starts = BTreeMap::new();
    let mut nodes = spans.len() as u64;
    while nodes > 0 {
        let mut share = required / nodes;
        for (&nid, ranges) in &by_node {
            if required < share {
                share = required / nodes;
            }
            let start = starts.entry(nid).or_insert(Pfn(0));
            take_from_node(ranges, usable_from, share, start, &mut required);
        }
        nodes -= 1;
        if required <= nodes {
            break;
        }
    }
    starts
}

/// Moves the `start` of one node's movable part up by `share` pages of memory.
fn take_from_node(
    ranges: &[PfnRange],
    usable_from: Pfn,
    share: u64,
    start: &mut Pfn,
    required: &mut u64,
) {
    let mut remaining = share;
    for range in ranges {
        let mut from = range.start.max(*start);
        if from >= range.end {
            continue;
        }
        if from < usable_from {
            let kernel_only = range.end.min(usable_from).pages_since(from);
            remaining = remaining.saturating_sub(kernel_only);
            *required = required.saturating_sub(kernel_only);
            if range.end <= usable_from {
                *start = range.end;
                continue;
            }
            from = usable_from;
        }
        let pages = range.end.pages_since(from).min(remaining);
        *start = from.offset(pages);
        *required = required.saturating_sub(pages);
        remaining -= pages;
        if remaining == 0 {
            break;
        }
    }
}
