//! What holds for every layout, on random machines under every era.
//!
//! Each present page is initialised exactly once, jobs cover the deferred pages, a plan
//! survives JSON, and the numbers of nodes mean nothing. Nonsense is refused.

use pageinit::kernel::boot::BootInput;
use pageinit::kernel::cmdline::CommandLine;
use pageinit::kernel::layout::{Layout, NodeLayout};
use pageinit::kernel::memblock::MemblockFlags;
use pageinit::kernel::memory_map::{MemoryMap, MemoryRegion, ReservedRegion};
use pageinit::kernel::padata::chunks;
use pageinit::kernel::sparse_rules::{Platform, ReleaseRules};
use pageinit::kernel::version::KernelModel;
use pageinit::machine::Arch;
use pageinit::pfn::{self, Nid, PfnRange, PhysRange, total_pages};
use pageinit::plan::{BootPlan, Strategy as PlanStrategy};
use proptest::prelude::*;

const PAGE: u64 = 4096;

const RELEASES: [&str; 12] = [
    "4.1",
    "4.4",
    "4.12",
    "4.14",
    "4.18",
    "5.0",
    "5.7",
    "5.9",
    "5.10.0-32-amd64",
    "6.1",
    "6.12",
    "7.2",
];

/// Regions of memory as `(pages of gap, pages, node)`, reservations as `(page, pages)`.
#[derive(Clone, Debug)]
struct World {
    regions: Vec<(u64, u64, u32)>,
    reserved: Vec<(u64, u64)>,
}

fn worlds() -> impl Strategy<Value = World> {
    let gap = prop_oneof![Just(0u64), 1u64..1 << 16];
    let region = (gap, 1u64..1 << 18, 0u32..4);
    let reserved = prop::collection::vec((0u64..1 << 20, 1u64..1 << 12), 0..40);
    (prop::collection::vec(region, 1..8), reserved)
        .prop_map(|(regions, reserved)| World { regions, reserved })
}

fn input(world: &World, release: &str, line: &str, node: impl Fn(u32) -> u32) -> BootInput {
    let kernel = KernelModel::from_release(release, Arch::X86_64).expect("modelled");
    let mut map = MemoryMap::default();
    // Page frames 0x100000 and up, so that the highest zone is Normal.
    let mut at = 1 << 20;
    for &(gap, pages, nid) in &world.regions {
        let (start, end) = ((at + gap) * PAGE, (at + gap + pages) * PAGE);
        let nid = Nid(node(nid));
        map.memory.push(MemoryRegion { start, end, nid, flags: MemblockFlags::NONE });
        at += gap + pages;
    }
    for &(page, pages) in &world.reserved {
        let start = ((1 << 20) + page) * PAGE;
        map.reserved.push(ReservedRegion::plain(PhysRange::new(start, start + pages * PAGE)));
    }
    BootInput {
        name: "random".into(),
        map,
        rules: ReleaseRules::new(&kernel, PAGE, Platform::default()),
        line: line.parse().expect("valid"),
        kernel,
        cpus: (0..4).map(|nid| (Nid(node(nid)), nid * 3)).collect(),
        gigantic: Vec::new(),
    }
}

fn booted(world: &World, release: &str) -> Option<Layout> {
    input(world, release, "", |n| n).boot().ok().map(|(layout, _)| layout)
}

/// Up to 6.19 a usage map is asked for on the node at the start of the section that holds
/// the node's data, and of node 0 where that is a hole: there a number does matter.
fn names_node_zero(input: &BootInput) -> bool {
    let section = input.rules.section_bytes();
    let memory = &input.map.memory;
    let last = |nid: Nid| memory.iter().rev().find(|m| m.nid == nid).map_or(0, |m| m.end - 1);
    let in_hole = |m: &MemoryRegion| {
        let start = last(m.nid) / section * section;
        !memory.iter().any(|r| (r.start..r.end).contains(&start))
    };
    input.rules.usage_near_pgdat && memory.iter().any(in_hole)
}

fn parts(node: &NodeLayout) -> [&[PfnRange]; 4] {
    [&node.early.sweep, &node.early.reserved, &node.early.holes, &node.deferred]
}

fn release() -> impl Strategy<Value = &'static str> {
    prop::sample::select(RELEASES.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_present_page_is_initialised_exactly_once(world in worlds(), release in release()) {
        let Some(layout) = booted(&world, release) else { return Ok(()) };
        let all: Vec<PfnRange> =
            layout.nodes.iter().flat_map(|n| parts(n).concat()).collect();
        let once = pfn::normalise(all.clone());
        prop_assert_eq!(total_pages(&all), total_pages(&once), "a page twice");
        let memory = input(&world, release, "", |n| n).map.memory;
        let memory: Vec<PfnRange> = memory
            .iter()
            .map(|m| PhysRange::new(m.start, m.end).whole_pages(PAGE))
            .collect();
        let missing = pfn::subtract(&pfn::normalise(memory), &once);
        prop_assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn jobs_cover_the_deferred_pages_and_chunks_the_jobs(world in worlds(), release in release()) {
        let Some(layout) = booted(&world, release) else { return Ok(()) };
        for node in &layout.nodes {
            let jobs: Vec<PfnRange> = node.jobs.iter().map(|j| j.range()).collect();
            prop_assert_eq!(total_pages(&jobs), total_pages(&pfn::normalise(jobs.clone())));
            let missing = pfn::subtract(&node.deferred, &pfn::normalise(jobs.clone()));
            prop_assert!(missing.is_empty(), "{missing:?}");
            let pieces: Vec<PfnRange> = node.jobs.iter().flat_map(chunks).collect();
            prop_assert_eq!(pfn::normalise(pieces.clone()), pfn::normalise(jobs));
            let pages = total_pages(&pieces);
            prop_assert_eq!(pages, total_pages(&pfn::normalise(pieces)));
        }
    }

    // Nodes 0 to 3 become 3 to 0: what belongs to a node goes with it.
    #[test]
    fn numbers_of_nodes_mean_nothing(world in worlds(), release in release()) {
        let (plain, turned) = (
            input(&world, release, "", |n| n).boot(),
            input(&world, release, "", |n| 3 - n).boot(),
        );
        let (Ok((a, pa)), Ok((b, pb))) = (&plain, &turned) else {
            prop_assert_eq!(plain.is_ok(), turned.is_ok());
            return Ok(());
        };
        if names_node_zero(&input(&world, release, "", |n| n)) {
            return Ok(());
        }
        prop_assert_eq!(a.nodes.len(), b.nodes.len());
        let sum = |layout: &Layout, part: usize| -> u64 {
            layout.nodes.iter().map(|n| total_pages(parts(n)[part])).sum()
        };
        for part in 0..4 {
            prop_assert_eq!(sum(a, part), sum(b, part));
        }
        for node in &a.nodes {
            let other = b.nodes.iter().find(|n| n.nid.0 == 3 - node.nid.0).expect("renumbered");
            prop_assert_eq!(node.first_deferred_pfn, other.first_deferred_pfn);
            prop_assert_eq!(&node.deferred, &other.deferred);
            prop_assert_eq!(&node.jobs, &other.jobs);
        }
        let places = |p: &pageinit::kernel::place::Placement| -> Vec<(u64, u64)> {
            p.memmap.iter().map(|m| (m.start, m.end)).collect()
        };
        prop_assert_eq!(places(pa), places(pb));
    }

    #[test]
    fn a_plan_survives_json(world in worlds(), release in release()) {
        let Some(layout) = booted(&world, release) else { return Ok(()) };
        for strategy in [PlanStrategy::Prezero, PlanStrategy::Deferred, PlanStrategy::SetupZero] {
            let plan = strategy.plan(&layout, None, true);
            let text = serde_json::to_string(&plan).expect("serialisable");
            let back: BootPlan = serde_json::from_str(&text).expect("readable");
            prop_assert_eq!(back, plan);
        }
    }

    // Any options on any machine: a layout or an error, never a panic.
    #[test]
    fn options_never_make_it_panic(
        world in worlds(),
        release in release(),
        line in "(kernelcore=[0-9]{1,3}[%MG]|movablecore=[0-9]{1,3}M|hugepagesz=1G hugepages=\\d)",
    ) {
        let Ok(line) = line.parse::<CommandLine>() else { return Ok(()) };
        let mut input = input(&world, release, "", |n| n);
        input.line = line;
        let _ = input.boot();
    }
}

#[test]
fn wild_regions_are_refused_without_a_panic() {
    let ends = [0, 1, PAGE, 1 << 46, (1 << 46) + 1, u64::MAX - 1, u64::MAX];
    for start in ends {
        for end in ends {
            for nid in [0, 1023, 1024, u32::MAX] {
                let mut input =
                    input(&World { regions: vec![], reserved: vec![] }, "6.12", "", |n| n);
                let region = MemoryRegion { start, end, nid: Nid(nid), flags: MemblockFlags(!0) };
                input.map.memory = vec![region];
                input.map.reserved = vec![ReservedRegion {
                    start: end,
                    end: start,
                    nid: Some(Nid(nid)),
                    flags: MemblockFlags(!0),
                }];
                let _ = input.boot();
                input.map.reserved.clear();
                let _ = input.boot();
            }
        }
    }
}
