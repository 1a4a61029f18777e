//! The split once more, page by page as the kernel goes, against the one by ranges.
//!
//! Slow and literal: every page that the sweep meets is counted, every reserved page
//! looked up, every job walked chunk by chunk.

use super::tests::{PAGE, model, world, zones};
use super::*;
use crate::kernel::layout::ZoneKind;
use crate::kernel::padata;
use crate::kernel::version::{EarlyCounter, EarlyRule, SweepOrder};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Who touched a page, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Sweep,
    Reserved,
    Deferred,
}

struct Oracle<'a> {
    input: &'a Split,
    kernel: &'a KernelModel,
    first: BTreeMap<Nid, u64>,
    touched: BTreeMap<u64, Vec<Cause>>,
    static_count: u64,
    static_end: Option<u64>,
}

impl<'a> Oracle<'a> {
    fn new(input: &'a Split, kernel: &'a KernelModel) -> Self {
        let (first, touched) = (BTreeMap::new(), BTreeMap::new());
        Self { input, kernel, first, touched, static_count: 0, static_end: None }
    }

    fn nid_of(&self, page: u64) -> Option<Nid> {
        self.input.memory.iter().find(|m| m.range.contains(Pfn(page))).map(|m| m.nid)
    }

    fn reserved(&self, page: u64) -> bool {
        let bytes = PhysRange::new(page * PAGE, (page + 1) * PAGE);
        self.input.reserved.iter().any(|r| r.intersect(bytes).is_some())
    }

    fn deferred(&self, page: u64, nid: Nid) -> bool {
        self.first.get(&nid).is_some_and(|first| *first <= page)
    }

    fn limit(&self, nid: Nid) -> u64 {
        let span = self.input.node_span(nid);
        let section = self.input.pages_per_section;
        let two_gib = (2u64 << 30) / PAGE;
        let share = two_gib.max(span.pages() / 256);
        // Reservations of the random worlds are whole pages; the mix-up of 4.12 looks
        // at the first bytes of page 0 alone.
        let reserved =
            (span.start.0..span.start.0 + share).filter(|p| self.reserved(*p)).count() as u64;
        match self.kernel.early_rule {
            EarlyRule::All => u64::MAX,
            EarlyRule::TwoGib => two_gib,
            EarlyRule::TwoGibOrShare => share,
            EarlyRule::WithReservedMixup => share.min(span.pages()),
            EarlyRule::WithReserved => (share + reserved).min(span.pages()),
            EarlyRule::SectionWithinSpan => section.min(span.pages()),
            EarlyRule::Section => section,
        }
    }

    /// Asked for every page of a sweep: is this one left for later?
    fn defers(&mut self, page: u64, nid: Nid, zone_end: u64, local: &mut u64) -> bool {
        let highest = zone_end >= self.input.node_span(nid).end.0;
        let counter = self.kernel.early_counter;
        if counter == EarlyCounter::StaticHighest && !highest {
            return false;
        }
        if counter != EarlyCounter::PerZone && self.static_end != Some(zone_end) {
            self.static_end = Some(zone_end);
            self.static_count = 0;
        }
        if !highest || self.kernel.early_rule == EarlyRule::All {
            return false;
        }
        if self.first.contains_key(&nid) {
            return true;
        }
        let count = if counter == EarlyCounter::PerZone { local } else { &mut self.static_count };
        *count += 1;
        let count = *count;
        let stops = count > self.limit(nid) && page.is_multiple_of(self.input.pages_per_section);
        if stops {
            self.first.insert(nid, page);
        }
        stops
    }

    fn sweep_part(&mut self, zone: &ZoneSpan, part: PfnRange, zone_end: u64, local: &mut u64) {
        for page in part.start.0..part.end.0 {
            if self.defers(page, zone.nid, zone_end, local) {
                break;
            }
            self.touched.entry(page).or_default().push(Cause::Sweep);
        }
    }

    fn sweep(&mut self) {
        let input = self.input;
        let by_address = self.kernel.sweep_order == SweepOrder::Regions;
        let mut calls: Vec<(&ZoneSpan, &MemoryPages)> = Vec::new();
        if by_address {
            for region in &input.memory {
                calls.extend(
                    input.zones.iter().filter(|z| z.nid == region.nid).map(|z| (z, region)),
                );
            }
        } else {
            for zone in &input.zones {
                calls.extend(input.memory.iter().filter(|m| m.nid == zone.nid).map(|m| (zone, m)));
            }
        }
        let (mut local, mut zone_before) = (0, None);
        for (zone, region) in calls {
            if zone_before != Some((zone.nid, zone.start_pfn)) {
                (local, zone_before) = (0, Some((zone.nid, zone.start_pfn)));
            }
            let Some(part) = region.range.intersect(zone.range()) else { continue };
            let end = if self.kernel.region_bug { part.end } else { zone.range().end };
            self.sweep_part(zone, part, end.0, &mut local);
        }
    }

    fn reserved_pass(&mut self, pages: u64) {
        for page in 0..pages {
            let nid = self.nid_of(page).filter(|_| self.reserved(page));
            if nid.is_some_and(|nid| self.deferred(page, nid)) {
                self.touched.entry(page).or_default().push(Cause::Reserved);
            }
        }
    }

    /// Free ranges of a node behind its border, one page after another.
    fn free_ranges(&self, nid: Nid) -> Vec<(u64, u64)> {
        let mut out: Vec<(u64, u64)> = Vec::new();
        for region in self.input.memory.iter().filter(|m| m.nid == nid) {
            let mut open = None;
            for page in region.range.start.0..=region.range.end.0 {
                let free =
                    page < region.range.end.0 && !self.reserved(page) && self.deferred(page, nid);
                match (open, free) {
                    (None, true) => open = Some(page),
                    (Some(start), false) => {
                        out.push((start, page));
                        open = None;
                    }
                    _ => {}
                }
            }
        }
        out
    }

    /// Jobs as `deferred_init_memmap` makes them, one free range after another.
    fn jobs(&self, nid: Nid) -> Vec<(u64, u64)> {
        let section = self.input.pages_per_section;
        let Some(&first) = self.first.get(&nid) else { return Vec::new() };
        let zones = self.input.zones.iter().filter(|z| z.nid == nid);
        let zone_end = zones.map(|z| z.range().end.0).max().unwrap();
        let free = self.free_ranges(nid);
        if self.kernel.one_job_per_node || (!self.kernel.padata && !free.is_empty()) {
            return vec![(first, zone_end.next_multiple_of(section))];
        }
        let (mut out, mut at) = (Vec::new(), first);
        while let Some((start, end)) = free.iter().find(|(_, end)| *end > at) {
            let (start, end) = ((*start).max(at), end.next_multiple_of(section));
            out.push((start, end));
            at = end;
        }
        if self.kernel.padata { out } else { Vec::new() }
    }

    fn deferred_pass(&mut self, nodes: &[NodeLayout]) {
        for node in nodes {
            let free = self.free_ranges(node.nid);
            for job in &node.jobs {
                for chunk in padata::chunks(job) {
                    for page in chunk.start.0..chunk.end.0 {
                        if free.iter().any(|(s, e)| (*s..*e).contains(&page)) {
                            self.touched.entry(page).or_default().push(Cause::Deferred);
                        }
                    }
                }
            }
        }
    }

    /// What is freed at boot: power-of-two chunks whose first page is not deferred.
    fn early_free(&self, nid: Nid) -> Vec<u64> {
        let mut out = Vec::new();
        for region in self.input.memory.iter().filter(|m| m.nid == nid) {
            let free = |p: &u64| region.range.contains(Pfn(*p)) && !self.reserved(*p);
            let mut page = region.range.start.0;
            while page < region.range.end.0 {
                let mut order = page.trailing_zeros().min(3);
                while order > 0 && !(page..page + (1 << order)).all(|p| free(&p)) {
                    order -= 1;
                }
                if free(&page) && !self.deferred(page, nid) {
                    out.extend(page..page + (1 << order));
                }
                page += 1 << order;
            }
        }
        out
    }
}

fn members(ranges: &[PfnRange]) -> Vec<u64> {
    ranges.iter().flat_map(|r| r.start.0..r.end.0).collect()
}

fn check(input: &Split, kernel: &KernelModel) -> Result<(), TestCaseError> {
    let nodes = split(input, kernel);
    let mut oracle = Oracle::new(input, kernel);
    oracle.sweep();
    let pages = input.memory.iter().map(|m| m.range.end.0).max().unwrap_or(0);
    oracle.reserved_pass(pages);
    oracle.deferred_pass(&nodes);
    for node in &nodes {
        let first = node.first_deferred_pfn.map(|p| p.0);
        prop_assert_eq!(first, oracle.first.get(&node.nid).copied());
        let jobs: Vec<(u64, u64)> =
            node.jobs.iter().map(|j| (j.start.0, j.range().end.0)).collect();
        prop_assert_eq!(jobs, oracle.jobs(node.nid));
        prop_assert_eq!(members(&node.early_free), oracle.early_free(node.nid));
        let causes = [
            (Cause::Sweep, &node.early.sweep),
            (Cause::Reserved, &node.early.reserved),
            (Cause::Deferred, &node.deferred),
        ];
        for (cause, ranges) in causes {
            let of_oracle: Vec<u64> = oracle
                .touched
                .iter()
                .filter(|(p, c)| c.contains(&cause) && oracle.nid_of(**p) == Some(node.nid))
                .map(|(p, _)| *p)
                .collect();
            prop_assert_eq!(members(ranges), of_oracle, "{:?}", cause);
        }
    }
    // Every present page exactly once, and no other page.
    for page in 0..pages {
        let times = oracle.touched.get(&page).map_or(0, Vec::len);
        prop_assert_eq!(times, usize::from(oracle.nid_of(page).is_some()), "page {}", page);
    }
    check_holes(input, kernel, &nodes, pages)
}

/// Holes as `memmap_init` goes: up to the region behind them, or up to the section's end.
fn check_holes(
    input: &Split,
    kernel: &KernelModel,
    nodes: &[NodeLayout],
    pages: u64,
) -> Result<(), TestCaseError> {
    let section = input.pages_per_section;
    let in_memory = |p: u64| input.memory.iter().any(|m| m.range.contains(Pfn(p)));
    let present = |p: u64| (0..section).any(|i| in_memory(p / section * section + i));
    let lowest = nodes.first().map(|n| n.nid);
    let oracle = Oracle::new(input, kernel);
    let mut expect: BTreeMap<Nid, Vec<u64>> = BTreeMap::new();
    for page in (0..pages.next_multiple_of(section)).filter(|p| present(*p) && !in_memory(*p)) {
        let behind = input.memory.iter().find(|m| m.range.start.0 > page);
        let neighbour = behind.or(input.memory.last()).map(|m| m.nid);
        let owner = match kernel.holes {
            HolesRule::Neighbour => neighbour,
            HolesRule::NodeZero | HolesRule::Zeroed => lowest,
            _ => lowest.filter(|_| oracle.reserved(page)),
        };
        if let Some(nid) = owner {
            expect.entry(nid).or_default().push(page);
        }
    }
    for node in nodes {
        let of_node = expect.remove(&node.nid).unwrap_or_default();
        prop_assert_eq!(members(&node.early.holes), of_node);
    }
    Ok(())
}

/// Up to eight regions of up to four sections, with holes and any nodes.
fn machines() -> impl Strategy<Value = Split> {
    let region = (0u64..24, 1u64..70, 0u32..3);
    let reserved = prop::collection::vec((0u64..300, 1u64..30), 0..6);
    let zone_ends = (0u64..160, prop::option::of(0u64..80));
    (prop::collection::vec(region, 1..8), reserved, zone_ends, 0u64..40).prop_map(
        |(regions, reserved, (low, movable), from)| {
            let mut at = from;
            let mut memory: Vec<(u32, u64, u64)> = Vec::new();
            for (gap, pages, nid) in regions {
                memory.push((nid, at + gap, at + gap + pages));
                at += gap + pages;
            }
            let reserved: Vec<(u64, u64)> = reserved.into_iter().map(|(s, n)| (s, s + n)).collect();
            let mut input = world(&memory, &reserved);
            // The kernel's array of reservations is merged.
            let merged = input.reserved_pages();
            input.reserved =
                merged.iter().map(|r| PhysRange::new(r.start.0 * PAGE, r.end.0 * PAGE)).collect();
            let cut = movable.map_or(u64::MAX, |pages| low + pages);
            let limits = [
                (ZoneKind::Dma32, 0, low),
                (ZoneKind::Normal, low, cut),
                (ZoneKind::Movable, cut, u64::MAX),
            ];
            input.zones = zones(&input, &limits);
            input
        },
    )
}

/// One version of every era, and a release with backports.
fn kernels() -> Vec<KernelModel> {
    let versions = [
        (4, 1),
        (4, 2),
        (4, 9),
        (4, 12),
        (4, 14),
        (4, 15),
        (4, 18),
        (4, 20),
        (5, 0),
        (5, 7),
        (5, 9),
        (5, 11),
        (5, 12),
        (6, 1),
        (6, 12),
        (6, 18),
        (7, 3),
    ];
    let mut out: Vec<KernelModel> = versions.iter().map(|&(a, b)| model(a, b)).collect();
    let debian = KernelModel::from_release("5.10.0-32-amd64", crate::machine::Arch::X86_64);
    out.extend(debian);
    out
}

proptest! {
    #[test]
    fn ranges_agree_with_pages(input in machines()) {
        for kernel in kernels() {
            check(&input, &kernel)?;
        }
    }

    #[test]
    fn renumbering_nodes_permutes_and_changes_no_total(input in machines()) {
        let renumber = |nid: Nid| Nid([2, 0, 1][nid.0 as usize]);
        let mut other = input.clone();
        other.memory.iter_mut().for_each(|m| m.nid = renumber(m.nid));
        other.zones.iter_mut().for_each(|z| z.nid = renumber(z.nid));
        other.cpus = input.cpus.iter().map(|(n, c)| (renumber(*n), *c)).collect();
        other.zones.sort_by_key(|z| (z.nid, z.start_pfn));
        for kernel in kernels() {
            let nodes = split(&other, &kernel);
            for node in split(&input, &kernel) {
                let twin = nodes.iter().find(|n| n.nid == renumber(node.nid)).unwrap();
                prop_assert_eq!(twin.first_deferred_pfn, node.first_deferred_pfn);
                prop_assert_eq!(&twin.early.sweep, &node.early.sweep);
                prop_assert_eq!(&twin.early.reserved, &node.early.reserved);
                prop_assert_eq!(&twin.deferred, &node.deferred);
                prop_assert_eq!(&twin.jobs, &node.jobs);
            }
            let holes = |nodes: &[NodeLayout]| -> u64 {
                nodes.iter().map(|n| pfn::total_pages(&n.early.holes)).sum()
            };
            prop_assert_eq!(holes(&nodes), holes(&split(&input, &kernel)));
        }
    }
}
