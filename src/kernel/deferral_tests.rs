//! Tiny worlds for every rule of the split, drawn as memory.
//!
//! A section has 16 pages and a page 32 MiB, so that 2 GiB are 64 pages. The zones end
//! at pages 32 (DMA32) and above (Normal) unless a test says otherwise.

use super::*;
use crate::kernel::layout::ZoneKind;
use crate::kernel::padata;
use crate::kernel::version::KernelVersion;
use crate::machine::Arch;

pub(super) const PAGE: u64 = 32 << 20;
const SECTION: u64 = 16;
const DMA32_END: u64 = 32;

pub(super) fn model(major: u32, minor: u32) -> KernelModel {
    KernelModel::new(KernelVersion::new(major, minor), Arch::X86_64)
}

/// Memory as `(node, first page, end)`, reservations as pages.
pub(super) fn world(memory: &[(u32, u64, u64)], reserved: &[(u64, u64)]) -> Split {
    let memory: Vec<MemoryPages> = memory
        .iter()
        .map(|&(nid, start, end)| MemoryPages { range: PfnRange::new(start, end), nid: Nid(nid) })
        .collect();
    let mut out = Split {
        page_bytes: PAGE,
        pages_per_section: SECTION,
        zones: Vec::new(),
        memory,
        reserved: reserved.iter().map(|&(s, e)| PhysRange::new(s * PAGE, e * PAGE)).collect(),
        cpus: vec![(Nid(0), 4), (Nid(1), 4)],
    };
    let limits = [(ZoneKind::Dma32, 0, DMA32_END), (ZoneKind::Normal, DMA32_END, u64::MAX)];
    out.zones = zones(&out, &limits);
    out
}

/// The zones of all nodes under limits in pages.
pub(super) fn zones(input: &Split, limits: &[(ZoneKind, u64, u64)]) -> Vec<ZoneSpan> {
    let mut out = Vec::new();
    for nid in input.nodes() {
        for &(zone, start, end) in limits {
            let inside = input.node_span(nid).intersect(PfnRange::new(start, end));
            let Some(range) = inside else { continue };
            let of_node = input.memory.iter().filter(|m| m.nid == nid);
            let present: u64 =
                of_node.filter_map(|m| m.range.intersect(range)).map(|r| r.pages()).sum();
            if present > 0 {
                let (start_pfn, spanned) = (range.start, range.pages());
                out.push(ZoneSpan { nid, zone, start_pfn, spanned, present });
            }
        }
    }
    out
}

fn firsts(input: &Split, kernel: &KernelModel) -> Vec<Option<u64>> {
    split(input, kernel).iter().map(|n| n.first_deferred_pfn.map(|p| p.0)).collect()
}

fn pairs(ranges: &[PfnRange]) -> Vec<(u64, u64)> {
    ranges.iter().map(|r| (r.start.0, r.end.0)).collect()
}

// pfn     0              32              48                              128
// node 0  [ DMA32, early | one section   | deferred …                    )
#[test]
fn an_aligned_zone_start_makes_exactly_one_section_early() {
    let input = world(&[(0, 0, 128)], &[]);
    let node = &split(&input, &model(6, 12))[0];
    assert_eq!(node.first_deferred_pfn, Some(Pfn(48)));
    assert_eq!(pairs(&node.early.sweep), [(0, 48)]);
    assert_eq!(pairs(&node.deferred), [(48, 128)]);
    assert_eq!((node.max_threads, node.cpus), (4, 4));
}

// section 32              48              64              80
// node 0      [36 … early |       … early |   … deferred  …)
// The count at 48 is 12 pages and at 64 is 28: only there it exceeds 16.
#[test]
fn an_unaligned_zone_start_makes_almost_two_sections_early() {
    assert_eq!(firsts(&world(&[(0, 36, 128)], &[]), &model(6, 12)), [Some(64)]);
}

// section 32              48              64              80
// node 0  [32=36)     hole        [56=64) [ …            128)
// Counted: 4, then 8 more up to 64, and 28 at 80.
#[test]
fn holes_do_not_count() {
    assert_eq!(firsts(&world(&[(0, 32, 36), (0, 56, 128)], &[]), &model(6, 12)), [Some(80)]);
}

// A node that ends where its first section of Normal ends, and one all below it.
#[test]
fn a_small_node_defers_nothing_and_a_low_one_its_dma32() {
    assert_eq!(firsts(&world(&[(0, 0, 48)], &[]), &model(6, 12)), [None]);
    assert_eq!(firsts(&world(&[(0, 0, 30)], &[]), &model(6, 12)), [Some(16)]);
    let early = split(&world(&[(0, 0, 48)], &[]), &model(6, 12));
    assert!(early[0].jobs.is_empty() && early[0].deferred.is_empty());
}

// pfn     0        32              96   112            160
// node 0  [ DMA32  | Normal, early | Movable: 96…112 early, then deferred )
#[test]
fn with_a_movable_zone_all_of_normal_is_early() {
    let mut input = world(&[(0, 0, 160)], &[]);
    let (normal, movable) = (ZoneKind::Normal, ZoneKind::Movable);
    let limits = [(ZoneKind::Dma32, 0, 32), (normal, 32, 96), (movable, 96, u64::MAX)];
    input.zones = zones(&input, &limits);
    assert_eq!(firsts(&input, &model(6, 12)), [Some(112)]);
}

// 2 GiB are 64 pages: Normal is early from 32 to 96, whatever is reserved there. From
// 4.13 on, pages reserved in the node's first 64 pages count too, so it goes on by
// 20 pages, up to the next section.
#[test]
fn before_4_17_two_gib_are_early_and_later_what_is_reserved_too() {
    let input = world(&[(0, 0, 256)], &[(40, 60), (200, 210)]);
    for (minor, first) in [(2, 96), (9, 96), (12, 96), (14, 128), (15, 128), (18, 48)] {
        assert_eq!(firsts(&input, &model(4, minor)), [Some(first)], "4.{minor}");
    }
    assert_eq!(firsts(&input, &model(4, 1)), [None]);
    let none = world(&[(0, 0, 256)], &[]);
    assert_eq!(firsts(&none, &model(4, 14)), [Some(96)]);
}

// From 4.7 on 1/256 of the node's span counts where it is more than 2 GiB:
// 32768 pages / 256 = 128, so 32 + 128 = 160.
#[test]
fn a_large_node_is_early_by_its_share() {
    let input = world(&[(0, 0, 32768)], &[]);
    assert_eq!(firsts(&input, &model(4, 4)), [Some(96)]);
    assert_eq!(firsts(&input, &model(4, 9)), [Some(160)]);
}

// pfn     32       44  60              96        100          200
// node 0  [ region )   [ region        )         [ the last   )
// 5.8–5.10.4 take a region's end for the zone's: only the last region can start.
#[test]
fn the_region_bug_defers_only_in_the_last_region() {
    let input = world(&[(0, 32, 44), (0, 60, 96), (0, 100, 200)], &[]);
    assert_eq!(firsts(&input, &model(5, 7)), [Some(64)]);
    assert_eq!(firsts(&input, &model(5, 9)), [Some(128)]);
    assert_eq!(firsts(&input, &model(5, 10)), [Some(128)]);
    let debian = KernelModel::from_release("5.10.0-32-amd64", Arch::X86_64).unwrap();
    assert_eq!(firsts(&input, &debian), [Some(64)]);
    assert_eq!(firsts(&input, &model(5, 11)), [Some(64)]);
}

// pfn     32     48     64     80     96     112    128
// node 0  [ one  )      [ one  )      [ one  )
// node 1         [ one  )      [ one  )      [ one  )
// A count that a static variable holds starts again at every change of node, so with
// one section at a time it never exceeds a section. Node by node it does.
#[test]
fn interleaved_nodes_can_defeat_deferral_from_5_12_on() {
    let memory: Vec<(u32, u64, u64)> =
        (0..6).map(|i| (i % 2, 32 + 16 * u64::from(i), 48 + 16 * u64::from(i))).collect();
    let input = world(&memory, &[]);
    assert_eq!(firsts(&input, &model(5, 11)), [Some(64), Some(80)]);
    assert_eq!(firsts(&input, &model(6, 12)), [None, None]);
    let longer = world(&[(0, 32, 64), (1, 64, 96), (0, 96, 128), (1, 128, 160)], &[]);
    assert_eq!(firsts(&longer, &model(6, 12)), [Some(48), Some(80)]);
}

// pfn     0    12   20              60       128 130            200
// node 0  [ one )    [ all DMA32    )
// node 1       [ low )                        |   [ Normal       )
// Node 1 is met in a zone that is not its highest. Up to 6.8 that resets the count of
// node 0, which then needs a section behind page 20; later it stays at 12.
#[test]
fn a_lower_zone_of_another_node_resets_the_count_up_to_6_8() {
    let mut input = world(&[(0, 0, 12), (1, 12, 20), (0, 20, 60), (1, 130, 200)], &[]);
    let limits = [(ZoneKind::Dma32, 0, 128), (ZoneKind::Normal, 128, u64::MAX)];
    input.zones = zones(&input, &limits);
    assert_eq!(firsts(&input, &model(6, 1)), [Some(48), Some(160)]);
    assert_eq!(firsts(&input, &model(6, 12)), [Some(32), Some(160)]);
}

// pfn     16      32      48      56      64      80
// node 0  [ DMA32 [ Normal, its end 56)
// node 1                          [56 = 64 … Normal …      112)
// The section from 48 to 64 is shared: node 1 starts inside it.
#[test]
fn a_section_shared_by_two_nodes_delays_the_second() {
    let input = world(&[(0, 16, 56), (1, 56, 112)], &[]);
    let nodes = split(&input, &model(6, 12));
    assert_eq!(nodes[0].first_deferred_pfn, Some(Pfn(48)));
    assert_eq!(nodes[1].first_deferred_pfn, Some(Pfn(80)));
    let job = |at: usize| (nodes[at].jobs[0].start.0, nodes[at].jobs[0].range().end.0);
    assert_eq!((job(0), job(1)), ((48, 64), (80, 112)));
}

// pfn     32      48      60==64           90====100       128
// node 0  [ early | deferred, res. |       | reserved |    )
#[test]
fn reserved_pages_behind_the_border_are_early_work() {
    let input = world(&[(0, 32, 128)], &[(60, 64), (90, 100), (33, 34)]);
    let node = &split(&input, &model(6, 12))[0];
    assert_eq!(pairs(&node.early.reserved), [(60, 64), (90, 100)]);
    assert_eq!(pairs(&node.pg_reserved), [(33, 34), (60, 64), (90, 100)]);
    assert_eq!(pairs(&node.deferred), [(48, 60), (64, 90), (100, 128)]);
    assert_eq!(pairs(&node.early_free), [(32, 33), (34, 48)]);
    let jobs: Vec<(u64, u64)> = node.jobs.iter().map(|j| (j.start.0, j.range().end.0)).collect();
    assert_eq!(jobs, [(48, 64), (64, 96), (100, 128)]);
}

// pfn     32      48      64   70      80              128
// node 0  [ first region       | second, other flags   )
// A free range never spans two regions, so there are two jobs; the first reaches 80.
#[test]
fn regions_that_touch_make_jobs_of_their_own() {
    let input = world(&[(0, 32, 70), (0, 70, 128)], &[]);
    let node = &split(&input, &model(6, 12))[0];
    assert_eq!(pairs(&node.deferred), [(48, 128)]);
    let jobs: Vec<(u64, u64)> = node.jobs.iter().map(|j| (j.start.0, j.range().end.0)).collect();
    assert_eq!(jobs, [(48, 80), (80, 128)]);
}

// A reservation of half a page takes the whole page.
#[test]
fn reservations_round_outward() {
    let mut input = world(&[(0, 32, 128)], &[]);
    input.reserved = vec![PhysRange::new(60 * PAGE + 1, 61 * PAGE + 1)];
    assert_eq!(pairs(&split(&input, &model(6, 12))[0].early.reserved), [(60, 62)]);
}

// pfn     0  2        20   24      48         72      80
// node 0     [ memory )    [ memory )
// node 1                           hole       [ memory up to 78)
// holes  [==)         [====)                  ^72 begins inside a section: 64…72
#[test]
fn holes_go_to_the_region_behind_them_from_5_12_on() {
    let input = world(&[(0, 2, 20), (0, 24, 44), (1, 72, 78)], &[(0, 1)]);
    let holes = |kernel: &KernelModel| -> Vec<Vec<(u64, u64)>> {
        split(&input, kernel).iter().map(|n| pairs(&n.early.holes)).collect()
    };
    let (own, tail) = (vec![(0, 2), (20, 24)], vec![(44, 48), (64, 72), (78, 80)]);
    assert_eq!(holes(&model(6, 12)), [own.clone(), tail.clone()]);
    let all = [own, tail].concat();
    assert_eq!(holes(&model(5, 9)), [all.clone(), vec![]]);
    assert_eq!(holes(&model(5, 0)), [all.clone(), vec![]]);
    assert_eq!(holes(&model(4, 15)), [vec![(0, 1)], vec![]]);
    // Initialised holes are reserved, zeroed ones only where they are reserved anyway.
    assert_eq!(pairs(&split(&input, &model(5, 9))[0].pg_reserved), all);
    assert_eq!(pairs(&split(&input, &model(5, 0))[0].pg_reserved), [(0, 1)]);
}

// Nodes without CPUs get one thread; nodes without memory do not appear.
#[test]
fn a_node_without_cpus_has_one_thread() {
    let input = world(&[(0, 0, 128), (7, 128, 256)], &[]);
    let nodes = split(&input, &model(6, 12));
    let seen: Vec<(u32, u32, u32)> =
        nodes.iter().map(|n| (n.nid.0, n.cpus, n.max_threads)).collect();
    assert_eq!(seen, [(0, 4, 4), (7, 0, 1)]);
}

/// A worked example with real pages: two nodes that end at 66 and 130 GiB. The memmap
/// lies at the top of each node.
fn two_nodes() -> Split {
    const GIB: u64 = 1 << 18;
    let region = |nid, start, end| MemoryPages { range: PfnRange::new(start, end), nid: Nid(nid) };
    let memory = vec![
        region(0, 1, 0x9f),
        region(0, 256, 2 * GIB),
        region(0, 4 * GIB, 66 * GIB),
        region(1, 66 * GIB, 130 * GIB),
    ];
    let top = |end: u64| PhysRange::new((end - 1) << 30, end << 30);
    let mut out = Split {
        page_bytes: 4096,
        pages_per_section: 32768,
        zones: Vec::new(),
        memory,
        reserved: vec![top(66), top(130)],
        cpus: vec![(Nid(0), 32), (Nid(1), 32)],
    };
    let (dma, dma32, normal) = (ZoneKind::Dma, ZoneKind::Dma32, ZoneKind::Normal);
    let limits = [(dma, 0, 4096), (dma32, 4096, 1 << 20), (normal, 1 << 20, u64::MAX)];
    out.zones = zones(&out, &limits);
    out
}

#[test]
fn the_worked_example_of_two_large_nodes() {
    let input = two_nodes();
    let pages = |kernel: &KernelModel| -> Vec<(u64, u64, u64)> {
        let nodes = split(&input, kernel);
        let early = |n: &NodeLayout| pfn::total_pages(&n.early.sweep);
        let reserved = |n: &NodeLayout| pfn::total_pages(&n.early.reserved);
        let first = |n: &NodeLayout| n.first_deferred_pfn.unwrap().0;
        nodes.iter().map(|n| (first(n), early(n), reserved(n))).collect()
    };
    const GIB: u64 = 1 << 18;
    let old = [(6 * GIB, 524_190 + 524_288, 262_144), (68 * GIB, 524_288, 262_144)];
    assert_eq!(pages(&model(4, 14)), old);
    let new = [(4 * GIB + 32768, 524_190 + 32_768, 262_144), (66 * GIB + 32768, 32_768, 262_144)];
    assert_eq!(pages(&model(6, 12)), new);
}

#[test]
fn the_worked_example_of_padata_jobs() {
    let input = two_nodes();
    let jobs = |minor| split(&input, &model(6, minor)).remove(1).jobs;
    let one = jobs(18);
    assert_eq!((one.len(), one[0].size, one[0].chunk_pages()), (1, 16_744_448, 131_072));
    assert_eq!(padata::chunks(&one[0]).count(), 128);
    assert_eq!(padata::chunks(&one[0]).next().map(|c| c.pages()), Some(98_304));
    let free = jobs(12);
    assert_eq!((free.len(), free[0].size, free[0].chunk_pages()), (1, 16_482_304, 131_072));
    assert_eq!(padata::chunks(&free[0]).count(), 126);
}

// 64 TiB in 64 nodes with a thousand reservations each: by pages this would never end.
#[test]
fn sixty_four_tib_take_no_time() {
    const NODE: u64 = 1 << 28;
    let mut input = two_nodes();
    input.memory = (0..64)
        .map(|n| MemoryPages { range: PfnRange::new(n * NODE, (n + 1) * NODE), nid: Nid(n as u32) })
        .collect();
    input.reserved = (0..64_000).map(|i| PhysRange::new(i << 30, (i << 30) + 4097)).collect();
    input.zones = zones(&input, &[(ZoneKind::Normal, 0, u64::MAX)]);
    for (major, minor) in [(4, 14), (5, 9), (6, 12), (7, 3)] {
        let nodes = split(&input, &model(major, minor));
        let all: u64 = nodes
            .iter()
            .map(|n| {
                let early = pfn::total_pages(&n.early.sweep) + pfn::total_pages(&n.early.reserved);
                early + pfn::total_pages(&n.deferred)
            })
            .sum();
        assert_eq!(all, 64 * NODE, "{major}.{minor}");
    }
}

#[test]
fn no_memory_makes_no_nodes() {
    assert_eq!(split(&world(&[], &[(0, 4)]), &model(6, 12)), []);
}
