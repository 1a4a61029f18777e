//! The physical memory of a layout, for records: [`facts`].

use crate::kernel::Layout;
use crate::kernel::layout::{Backing, MemmapExtent, NodeLayout, ZoneKind, ZoneSpan};
use crate::pfn::{self, PfnRange};
use crate::record::memory::{MOST_RANGES, MemmapPlace, MemoryFacts, NodeMemory, ZoneFacts};

/// What lies where, neighbours merged, with at most [`MOST_RANGES`] ranges in all.
pub(super) fn facts(layout: &Layout) -> MemoryFacts {
    let mut facts = MemoryFacts {
        page_bytes: layout.page_bytes,
        nodes: layout.nodes.iter().map(node).collect(),
        zones: layout.zones.iter().map(zone).collect(),
        memmap: places(&layout.memmap),
        left_out_ranges: 0,
    };
    limit(&mut facts, MOST_RANGES);
    facts
}

fn node(node: &NodeLayout) -> NodeMemory {
    let early = &node.early;
    let merged = |lists: &[&Vec<PfnRange>]| {
        pfn::normalise(lists.iter().flat_map(|list| list.iter().copied()).collect())
    };
    let numbers = |ranges: Vec<PfnRange>| ranges.iter().map(|r| [r.start.0, r.end.0]).collect();
    NodeMemory {
        nid: node.nid.0,
        ranges_pfn: numbers(merged(&[&early.sweep, &early.reserved, &node.deferred])),
        first_deferred_pfn: node.first_deferred_pfn.map(|pfn| pfn.0),
        early_pfn: numbers(merged(&[&early.sweep, &early.reserved, &early.holes])),
        deferred_pfn: numbers(merged(&[&node.deferred])),
    }
}

fn zone(zone: &ZoneSpan) -> ZoneFacts {
    let name = match zone.zone {
        ZoneKind::Dma => "DMA",
        ZoneKind::Dma32 => "DMA32",
        ZoneKind::Normal => "Normal",
        ZoneKind::Movable => "Movable",
    };
    let range = zone.range();
    ZoneFacts { nid: zone.nid.0, zone: name.into(), start_pfn: range.start.0, end_pfn: range.end.0 }
}

/// Extents by address; those that touch and agree become one.
fn places(extents: &[MemmapExtent]) -> Vec<MemmapPlace> {
    let mut sorted: Vec<MemmapPlace> = extents.iter().map(place).collect();
    sorted.sort_by_key(|place| (place.start, place.end));
    let mut out: Vec<MemmapPlace> = Vec::new();
    for next in sorted {
        match out.last_mut() {
            Some(last)
                if last.end == next.start
                    && (last.nid, last.on_nid) == (next.nid, next.on_nid)
                    && last.backing == next.backing =>
            {
                last.end = next.end;
            }
            _ => out.push(next),
        }
    }
    out
}

fn place(extent: &MemmapExtent) -> MemmapPlace {
    let backing = match extent.backing {
        Backing::Pmd => "pmd",
        Backing::BasePages => "base-pages",
    };
    MemmapPlace {
        nid: extent.nid.0,
        on_nid: extent.on_nid.0,
        backing: backing.into(),
        start: extent.start,
        end: extent.end,
    }
}

/// Shortens every list to an equal share, where all together are too long: a list
/// keeps its longest ranges, in order.
fn limit(facts: &mut MemoryFacts, most: usize) {
    let lists = 2 + 3 * facts.nodes.len();
    let share = (most / lists).max(1);
    let held = |facts: &MemoryFacts| {
        let of_nodes = facts.nodes.iter();
        let of_nodes =
            of_nodes.map(|n| n.ranges_pfn.len() + n.early_pfn.len() + n.deferred_pfn.len());
        facts.zones.len() + facts.memmap.len() + of_nodes.sum::<usize>()
    };
    let before = held(facts);
    if before <= most {
        return;
    }
    for node in &mut facts.nodes {
        for list in [&mut node.ranges_pfn, &mut node.early_pfn, &mut node.deferred_pfn] {
            keep_longest(list, share, |r| r[1].saturating_sub(r[0]));
        }
    }
    keep_longest(&mut facts.memmap, share, |m| m.end.saturating_sub(m.start));
    keep_longest(&mut facts.zones, share.max(64), |z| z.end_pfn.saturating_sub(z.start_pfn));
    facts.left_out_ranges = (before - held(facts)) as u64;
}

fn keep_longest<T>(list: &mut Vec<T>, most: usize, length: impl Fn(&T) -> u64) {
    if list.len() <= most {
        return;
    }
    let mut lengths: Vec<(u64, usize)> =
        list.iter().enumerate().map(|(at, item)| (length(item), at)).collect();
    lengths.sort_by_key(|(length, at)| (std::cmp::Reverse(*length), *at));
    let mut kept = vec![false; list.len()];
    lengths.iter().take(most).for_each(|(_, at)| kept[*at] = true);
    let mut flags = kept.iter();
    list.retain(|_| flags.next().copied().unwrap_or(false));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{KernelModel, KernelVersion, layout};
    use crate::machine::input;

    fn of(name: &str) -> MemoryFacts {
        let machine = input::load(name, None).unwrap();
        let kernel = KernelModel::new(KernelVersion::new(6, 12), machine.arch);
        facts(&layout(&machine, &kernel).unwrap())
    }

    #[test]
    fn early_and_deferred_pages_cover_the_memory_and_do_not_overlap() {
        let facts = of("@2n-skylake-768g");
        assert_eq!((facts.nodes.len(), facts.left_out_ranges), (2, 0));
        let pages = |list: &[[u64; 2]]| list.iter().map(|r| r[1] - r[0]).sum::<u64>();
        for node in &facts.nodes {
            let parts = pages(&node.early_pfn) + pages(&node.deferred_pfn);
            assert!(parts >= pages(&node.ranges_pfn) && pages(&node.deferred_pfn) > 0);
            assert!(node.ranges_pfn.windows(2).all(|w| w[0][1] < w[1][0]), "merged, ascending");
            assert!(node.first_deferred_pfn.is_some());
        }
        assert!(facts.memmap.windows(2).all(|w| w[0].end <= w[1].start));
        let memmap: u64 = facts.memmap.iter().map(|m| m.end - m.start).sum();
        assert!(memmap >= (768 << 30) / 64, "{memmap}");
    }

    #[test]
    fn long_lists_keep_their_longest_ranges_and_say_how_many_they_lost() {
        // lengths 1 2 3 … 100, with a page between
        let mut at = 0;
        let ranges = (1..=100u64).map(|length| {
            let range = [at, at + length];
            at += length + 1;
            range
        });
        let node = NodeMemory { ranges_pfn: ranges.collect(), ..NodeMemory::default() };
        let mut facts = MemoryFacts { nodes: vec![node], ..MemoryFacts::default() };
        limit(&mut facts, 50);
        assert_eq!((facts.nodes[0].ranges_pfn.len(), facts.left_out_ranges), (10, 90));
        assert!(facts.nodes[0].ranges_pfn.iter().all(|r| r[1] - r[0] > 90));
        assert!(facts.nodes[0].ranges_pfn.is_sorted());
    }
}
