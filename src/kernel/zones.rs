//! Zones and node spans: `free_area_init` as far as it counts pages.
//!
//! [`zones`] gives every populated zone of every node. The limits between zones come
//! from the architecture ([`zone_limits`]); `kernelcore=`, `movablecore=` and
//! `movable_node` of a [`CommandLine`] cut `ZONE_MOVABLE` off the top, by the rules in
//! `movable`. A zone spans holes, and other nodes' memory that lies inside.

mod movable;

use super::cmdline::{CommandLine, Core};
use super::layout::{ZoneKind, ZoneSpan};
use super::memblock::{MemblockFlags, RegionSet};
use super::sparse_rules::{ReleaseRules, since};
use crate::machine::Arch;
use crate::pfn::{Nid, Pfn, PfnRange};
use std::collections::BTreeMap;

/// From a node's first to its last page frame, holes included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeSpan {
    /// The node.
    pub nid: Nid,
    /// `node_start_pfn` up to `node_start_pfn + node_spanned_pages`.
    pub range: PfnRange,
    /// Pages of memory in it that belong to the node.
    pub present: u64,
}

/// The possible range of a zone on the whole machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneLimit {
    /// The kind.
    pub zone: ZoneKind,
    /// The page frames that it may have; empty when the zone below takes all.
    pub range: PfnRange,
}

/// The spans of all nodes with memory, ascending by id (`get_pfn_range_for_nid`).
pub fn node_spans(memory: &RegionSet, page_bytes: u64) -> Vec<NodeSpan> {
    let mut spans: BTreeMap<Nid, NodeSpan> = BTreeMap::new();
    for region in memory.iter() {
        let range = region.range().whole_pages(page_bytes);
        if range.is_empty() {
            continue;
        }
        let nid = region.nid.unwrap_or_default();
        let span = spans.entry(nid).or_insert(NodeSpan { nid, range, present: 0 });
        span.range.start = span.range.start.min(range.start);
        span.range.end = span.range.end.max(range.end);
        span.present += range.pages();
    }
    spans.into_values().collect()
}

/// Where each zone may lie, ascending (`zone_sizes_init` and `free_area_init`).
pub fn zone_limits(memory: &RegionSet, rules: &ReleaseRules) -> Vec<ZoneLimit> {
    let page = rules.page_bytes;
    let dram_start = memory.first_byte().unwrap_or(0);
    let dram_end = memory.end_byte().unwrap_or(0);
    let (dma, dma32) = dma_limits(rules, dram_start, dram_end);
    let mut from = Pfn(dram_start / page);
    let limits =
        [(ZoneKind::Dma, dma), (ZoneKind::Dma32, dma32), (ZoneKind::Normal, Some(dram_end))];
    let mut out = Vec::new();
    for (zone, limit) in limits {
        let Some(limit) = limit else { continue };
        let end = Pfn(limit / page).max(from);
        out.push(ZoneLimit { zone, range: PfnRange { start: from, end } });
        from = end;
    }
    out
}

const GIB: u64 = 1 << 30;

/// The first byte behind `ZONE_DMA` and `ZONE_DMA32`; `None` where there is no such zone.
fn dma_limits(rules: &ReleaseRules, start: u64, end: u64) -> (Option<u64>, Option<u64>) {
    let (dma, dma32) = match rules.arch {
        Arch::X86_64 => (Some(16 << 20), Some(4 * GIB)),
        Arch::Arm64 => return arm64_limits(rules, start, end),
        // limit_zone_pfn: ZONE_DMA was the only zone up to 4.19.
        Arch::Ppc64 if !since(rules.version, 4, 20) => (Some(end), None),
        Arch::Ppc64 => (Some((2 * GIB).min(end)), None),
        Arch::S390x => (Some(2 * GIB), None),
        Arch::Riscv64 => (None, Some((4 * GIB).min(end))),
        Arch::Sparc64 => (None, None),
    };
    let only_zone = rules.arch == Arch::Ppc64 && !since(rules.version, 4, 20);
    (dma.filter(|_| rules.config.zone_dma || only_zone), dma32.filter(|_| rules.config.zone_dma32))
}

/// `arch/arm64/mm/init.c: max_zone_phys` through the versions. 5.5 to 5.9 have a
/// `ZONE_DMA` of 1 GiB, which no captured boot shows; 5.10 is taken as its maintained
/// releases are, without that limit.
fn arm64_limits(rules: &ReleaseRules, start: u64, end: u64) -> (Option<u64>, Option<u64>) {
    let window = |bits: u32| ((start >> bits << bits).saturating_add(1 << bits)).min(end);
    let masked = |mask: u64| match start {
        s if s > u64::from(u32::MAX) => end,
        s if s > mask => (1u64 << 32).min(end),
        _ => (mask + 1).min(end),
    };
    let version = rules.version;
    let (dma, dma32) = match () {
        () if since(version, 5, 10) => (masked(u32::MAX.into()), masked(u32::MAX.into())),
        () if since(version, 5, 5) => (window(30), window(32)),
        () if since(version, 5, 1) => return (None, Some(window(32))),
        () => return (Some(window(32)), None),
    };
    (rules.config.zone_dma.then_some(dma), rules.config.zone_dma32.then_some(dma32))
}

/// Every zone with memory, by node and then ascending.
pub fn zones(memory: &RegionSet, rules: &ReleaseRules, line: &CommandLine) -> Vec<ZoneSpan> {
    let limits = zone_limits(memory, rules);
    let spans = node_spans(memory, rules.page_bytes);
    let highest = limits.iter().rev().find(|l| !l.range.is_empty());
    let movable_from = highest.map_or_else(BTreeMap::new, |zone| {
        movable::starts(memory, rules, line, &spans, zone.range.start)
    });
    let mirror = line.kernelcore == Some(Core::Mirror) && !movable_from.is_empty();
    let mut out = Vec::new();
    for span in &spans {
        let movable = movable_from.get(&span.nid).copied();
        for limit in &limits {
            let range = without_movable(limit.range.intersect(span.range), movable, mirror);
            let absent = |flags| {
                mirror
                    && movable.is_some()
                    && limit.zone == ZoneKind::Normal
                    && !MemblockFlags::contains(flags, MemblockFlags::MIRROR)
            };
            out.extend(zone_span(memory, rules, span.nid, limit.zone, range, absent));
        }
        let end = highest.map_or(span.range.end, |h| span.range.end.min(h.range.end));
        let range = movable.map(|start| PfnRange { start, end });
        let absent = |flags| mirror && MemblockFlags::contains(flags, MemblockFlags::MIRROR);
        out.extend(zone_span(memory, rules, span.nid, ZoneKind::Movable, range, absent));
    }
    out
}

/// `adjust_zone_range_for_zone_movable`. With mirrored memory `ZONE_NORMAL` keeps its
/// range and overlaps `ZONE_MOVABLE`.
fn without_movable(
    range: Option<PfnRange>,
    movable: Option<Pfn>,
    mirror: bool,
) -> Option<PfnRange> {
    let (range, Some(start)) = (range?, movable) else { return range };
    if !mirror && range.start < start && range.end > start {
        return Some(PfnRange { end: start, ..range });
    }
    (range.start < start).then_some(range)
}

/// A zone, if any page of it is present (`zone_absent_pages_in_node`).
fn zone_span(
    memory: &RegionSet,
    rules: &ReleaseRules,
    nid: Nid,
    zone: ZoneKind,
    range: Option<PfnRange>,
    absent: impl Fn(MemblockFlags) -> bool,
) -> Option<ZoneSpan> {
    let range = range?;
    let own = memory.iter().filter(|r| r.nid.unwrap_or_default() == nid && !absent(r.flags));
    let inside = own.filter_map(|r| r.range().whole_pages(rules.page_bytes).intersect(range));
    let present: u64 = inside.map(|r| r.pages()).sum();
    let spanned = range.pages();
    (present > 0).then_some(ZoneSpan { nid, zone, start_pfn: range.start, spanned, present })
}

#[cfg(test)]
mod tests {
    use super::super::memblock::Region;
    use super::super::sparse_rules::Platform;
    use super::super::version::KernelModel;
    use super::*;

    const MIB: u64 = 1 << 20;

    fn rules(release: &str, arch: Arch) -> ReleaseRules {
        let mut kernel = KernelModel::from_release(release, arch).expect("known");
        kernel.config.zone_dma = true;
        ReleaseRules::new(&kernel, 4096, Platform::default())
    }

    fn memory(regions: &[(u64, u64, u32, u32)]) -> RegionSet {
        let mut out = RegionSet::default();
        for &(start, end, nid, flags) in regions {
            out.insert(Region::new(start, end, Some(Nid(nid)), MemblockFlags(flags)));
        }
        out
    }

    fn short(zones: &[ZoneSpan]) -> Vec<(u32, ZoneKind, u64, u64, u64)> {
        let mib = |pages: u64| pages / 256;
        zones
            .iter()
            .map(|z| (z.nid.0, z.zone, mib(z.start_pfn.0), mib(z.spanned), mib(z.present)))
            .collect()
    }

    fn options(cmdline: &str) -> CommandLine {
        cmdline.parse().expect("valid")
    }

    // MiB     0     16       2048          4096      6144      8192
    // node 0  [==============)             [=========)
    // node 1                                         [=========)
    // zones   | DMA |   DMA32             | Normal   | Normal  |
    #[test]
    fn x86_zones_end_at_16_mib_and_4_gib() {
        let m = memory(&[(0, 2 * GIB, 0, 0), (4 * GIB, 6 * GIB, 0, 0), (6 * GIB, 8 * GIB, 1, 0)]);
        let zones = zones(&m, &rules("6.12", Arch::X86_64), &CommandLine::default());
        let expected = [
            (0, ZoneKind::Dma, 0, 16, 16),
            (0, ZoneKind::Dma32, 16, 4080, 2032),
            (0, ZoneKind::Normal, 4096, 2048, 2048),
            (1, ZoneKind::Normal, 6144, 2048, 2048),
        ];
        assert_eq!(short(&zones), expected);
    }

    // A node inside another one's span counts there as spanned, not as present.
    #[test]
    fn spans_include_other_nodes() {
        let m =
            memory(&[(4 * GIB, 5 * GIB, 0, 0), (5 * GIB, 6 * GIB, 1, 0), (6 * GIB, 7 * GIB, 0, 0)]);
        let zones = zones(&m, &rules("6.12", Arch::X86_64), &CommandLine::default());
        let expected =
            [(0, ZoneKind::Normal, 4096, 3072, 2048), (1, ZoneKind::Normal, 5120, 1024, 1024)];
        assert_eq!(short(&zones), expected);
    }

    // kernelcore=3G over two nodes. Node 0 has 2 GiB below 4 GiB that only the kernel may
    // use, more than its share of 1.5; node 1 then gives half of the missing 1 GiB, and a
    // second pass with one node fewer takes the other half from node 0.
    #[test]
    fn kernelcore_is_spread_over_nodes() {
        let m = memory(&[(0, 2 * GIB, 0, 0), (4 * GIB, 6 * GIB, 0, 0), (6 * GIB, 8 * GIB, 1, 0)]);
        let zones = zones(&m, &rules("6.12", Arch::X86_64), &options("quiet kernelcore=3G"));
        let expected = [
            (0, ZoneKind::Dma, 0, 16, 16),
            (0, ZoneKind::Dma32, 16, 4080, 2032),
            (0, ZoneKind::Normal, 4096, 512, 512),
            (0, ZoneKind::Movable, 4608, 1536, 1536),
            (1, ZoneKind::Normal, 6144, 512, 512),
            (1, ZoneKind::Movable, 6656, 1536, 1536),
        ];
        assert_eq!(short(&zones), expected);
    }

    // movablecore=50% of 4 GiB leaves 2 GiB to the kernel, 1 GiB on each node.
    #[test]
    fn movablecore_takes_a_share() {
        let m = memory(&[(4 * GIB, 6 * GIB, 0, 0), (6 * GIB, 8 * GIB, 1, 0)]);
        let zones = zones(&m, &rules("6.12", Arch::X86_64), &options("movablecore=50%"));
        let starts: Vec<_> = short(&zones).iter().map(|z| (z.1, z.2)).collect();
        let expected = [
            (ZoneKind::Normal, 4096),
            (ZoneKind::Movable, 5120),
            (ZoneKind::Normal, 6144),
            (ZoneKind::Movable, 7168),
        ];
        assert_eq!(starts, expected);
    }

    // kernelcore=mirror: both zones span the rest of the node and share out its pages.
    // GiB   4        5          6
    //       [mirror==)[plain===)
    #[test]
    fn mirrored_memory_makes_zones_overlap() {
        let m = memory(&[(4 * GIB, 5 * GIB, 0, 2), (5 * GIB, 6 * GIB, 0, 0)]);
        let zones = zones(&m, &rules("6.12", Arch::X86_64), &options("kernelcore=mirror"));
        let expected =
            [(0, ZoneKind::Normal, 4096, 2048, 1024), (0, ZoneKind::Movable, 5120, 1024, 1024)];
        assert_eq!(short(&zones), expected);
    }

    #[test]
    fn movable_node_starts_at_hotpluggable_memory() {
        let m = memory(&[(4 * GIB, 5 * GIB, 0, 0), (5 * GIB + MIB, 6 * GIB, 0, 1)]);
        let zones = zones(&m, &rules("6.12", Arch::X86_64), &options("movable_node"));
        let movable = short(&zones).pop().expect("zones");
        assert_eq!((movable.1, movable.2), (ZoneKind::Movable, 5124));
    }

    #[test]
    fn other_architectures_have_other_limits() {
        let m = memory(&[(GIB, 9 * GIB, 0, 0)]);
        let kinds = |release, arch| {
            let zones = zones(&m, &rules(release, arch), &CommandLine::default());
            zones.iter().map(|z| (z.zone, z.range().end.0 >> 18)).collect::<Vec<_>>()
        };
        let (dma, dma32, normal) = (ZoneKind::Dma, ZoneKind::Dma32, ZoneKind::Normal);
        assert_eq!(kinds("5.0", Arch::Arm64), [(dma, 4), (normal, 9)]);
        assert_eq!(kinds("5.4", Arch::Arm64), [(dma32, 4), (normal, 9)]);
        assert_eq!(kinds("6.1", Arch::Arm64), [(dma, 4), (normal, 9)]);
        assert_eq!(kinds("4.14", Arch::Ppc64), [(dma, 9)]);
        assert_eq!(kinds("6.1", Arch::S390x), [(dma, 2), (normal, 9)]);
        assert_eq!(kinds("6.1", Arch::Riscv64), [(dma32, 4), (normal, 9)]);
        assert_eq!(kinds("6.1", Arch::Sparc64), [(normal, 9)]);
    }
}
