//! Small and large machines through the whole memory model.

use super::*;
use crate::kernel::layout::{Backing, ZoneKind};
use crate::kernel::memblock::MemblockFlags;
use crate::kernel::memory_map::{MemoryRegion, ReservedRegion};
use crate::kernel::sparse::{Succession, sparse_init_in};
use crate::kernel::sparse_rules::Platform;
use crate::kernel::version::KernelModel;
use proptest::prelude::*;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn rules_for(release: &str, arch: Arch, page_bytes: u64) -> ReleaseRules {
    let kernel = KernelModel::from_release(release, arch).expect("modelled");
    ReleaseRules::new(&kernel, page_bytes, Platform::default())
}

fn rules(release: &str) -> ReleaseRules {
    rules_for(release, Arch::X86_64, 4096)
}

fn map(memory: &[(u64, u64, u32)], reserved: &[(u64, u64)]) -> MemoryMap {
    let flags = MemblockFlags::NONE;
    let memory = memory.iter().map(|&(start, end, nid)| {
        let nid = Nid(nid);
        MemoryRegion { start, end, nid, flags }
    });
    let reserved =
        reserved.iter().map(|&(start, end)| ReservedRegion { start, end, nid: None, flags });
    MemoryMap { memory: memory.collect(), reserved: reserved.collect(), ..Default::default() }
}

fn placed(map: &MemoryMap, rules: &ReleaseRules) -> Placement {
    place(map, rules, &CommandLine::default()).unwrap_or_else(|e| panic!("{e}"))
}

fn refused(map: &MemoryMap, rules: &ReleaseRules) -> PlaceError {
    place(map, rules, &CommandLine::default()).unwrap_err()
}

/// Node 0 below 2 GiB and from 4 to 66 GiB, node 1 from 66 to 130 GiB.
fn two_nodes_of_64_gib() -> MemoryMap {
    let memory = [
        (0x1000, 0x9_f000, 0),
        (MIB, 2 * GIB, 0),
        (4 * GIB, 66 * GIB, 0),
        (66 * GIB, 130 * GIB, 1),
    ];
    map(&memory, &[(16 * MIB, 64 * MIB)])
}

/// The callers of a placement with equal neighbours joined, and how often they come.
fn callers(placement: &Placement) -> Vec<(&'static str, u64)> {
    let mut out: Vec<(&'static str, u64)> = Vec::new();
    for run in placement.requests.runs() {
        match out.last_mut() {
            Some(last) if last.0 == run.first.caller => last.1 += run.count,
            _ => out.push((run.first.caller, run.count)),
        }
    }
    out
}

#[test]
fn two_nodes_have_the_sections_and_zones_of_the_worked_example() {
    let p = placed(&two_nodes_of_64_gib(), &rules("6.1"));
    let present: Vec<u64> = p.nodes.iter().map(|n| n.present).collect();
    assert_eq!(present, [16_777_118, 16_777_216]);
    let sections = |nid| -> u64 {
        let own = p.sections.iter().filter(|s| s.nid == Nid(nid));
        own.map(|s| s.end - s.start).sum()
    };
    assert_eq!((sections(0), sections(1)), (512, 512));
    let memmap = |nid| -> u64 {
        let own = p.memmap.iter().filter(|m| m.on_nid == Nid(nid));
        own.map(|m| m.end - m.start).sum()
    };
    assert_eq!((memmap(0), memmap(1)), (GIB, GIB));
    let extents = p.extents(&rules("6.1"));
    let sections: Vec<_> = extents.iter().map(|e| (e.section_start.0, e.section_end.0)).collect();
    // Below 2 GiB, from 4 to 66 GiB, and node 1.
    assert_eq!(sections, [(0, 16), (32, 528), (528, 1040)]);
    assert_eq!(p.zones.last().map(|z| z.zone), Some(ZoneKind::Normal));
}

// The memmap ascends like the memory it describes up to 7.1, and against it from 7.2.
#[test]
fn the_physical_order_flips_in_7_2() {
    for (release, order) in [("7.1", Succession::Ascending), ("7.2", Succession::Descending)] {
        let p = placed(&map(&[(4 * GIB, 8 * GIB, 0)], &[]), &rules(release));
        assert_eq!(p.memmap.len(), 1, "{release}");
        assert_eq!((p.memmap[0].succession, p.memmap[0].backing), (order, Backing::Pmd));
        assert_eq!(p.memmap[0].end - p.memmap[0].start, 64 * MIB);
        let first = p.memmap[0].address_of(p.memmap[0].map_start);
        let expected = match order {
            Succession::Ascending => p.memmap[0].start,
            Succession::Descending => p.memmap[0].end - 2 * MIB,
        };
        assert_eq!(first, Some(expected));
    }
}

// Up to 4.18: two arrays of 2^19 pointers are there for the while, usage maps of both
// nodes come first, and 4.14 lets memblock zero the memmap.
#[test]
fn old_kernels_ask_node_by_node_for_maps_then_memmaps() {
    let p = placed(&two_nodes_of_64_gib(), &rules("4.14"));
    let expected = [
        ("sparse_index_alloc", 5),
        ("sparse_init", 1),
        ("sparse_early_usemaps_alloc_node", 2),
        ("sparse_init", 1),
        ("sparse_mem_maps_populate_node", 1),
        ("vmemmap_alloc_block_zero", 3),
        ("sparse_mem_maps_populate_node", 1),
        ("vmemmap_alloc_block_zero", 1),
    ];
    let (roots, rest) = (callers(&p)[0], callers(&p)[1..].to_vec());
    assert_eq!(roots, ("sparse_index_alloc", 5));
    assert_eq!(rest, expected[1..]);
    assert!(p.requests.iter().all(|r| r.call == "alloc_try_nid"));
    let freed: Vec<u64> = p.frees.iter().map(|f| f.end - f.start).collect();
    assert_eq!(freed, [4 * MIB, 4 * MIB]);
}

// 4.19–5.6: the buffer is page aligned, so the first PMD skips its head and the last
// one does not fit. Up to 5.3 the head leaks, from 5.4 on it is given back.
#[test]
fn an_unaligned_buffer_loses_a_pmd() {
    let one = map(&[(4 * GIB, 8 * GIB, 0)], &[]);
    for (release, freed) in [("5.3", 1), ("5.6", 2)] {
        let p = placed(&one, &rules(release));
        assert_eq!(callers(&p).last(), Some(&("vmemmap_alloc_block", 1)), "{release}");
        assert_eq!(p.frees.len(), freed, "{release}");
        let alone = p.memmap.last().expect("memmap");
        assert_eq!(alone.end - alone.start, 2 * MIB);
    }
    let p = placed(&one, &rules("5.7"));
    assert_eq!((p.frees.len(), p.memmap.len()), (0, 1));
}

// A node of two sections, its free memory cut to pieces smaller than 2 MiB: no buffer,
// no PMD, base pages. The failed attempts are in the log.
#[test]
fn fragmented_memory_gets_base_pages() {
    let cuts: Vec<(u64, u64)> =
        (0..256).map(|i| (4 * GIB + i * MIB, 4 * GIB + i * MIB + 4096)).collect();
    let p = placed(&map(&[(4 * GIB, 4 * GIB + 256 * MIB, 0)], &cuts), &rules("6.12"));
    assert!(p.memmap.iter().all(|m| m.backing == Backing::BasePages));
    let bytes: u64 = p.memmap.iter().map(|m| m.end - m.start).sum();
    assert_eq!(bytes, 4 * MIB);
    let failed: Vec<u64> =
        p.requests.iter().filter(|r| r.start.is_none()).map(|r| r.bytes).collect();
    assert_eq!(failed, [4 * MIB, 2 * MIB, 2 * MIB]);
}

// 7.2 on: PMD by PMD, so a full node overflows to the other one.
#[test]
fn a_full_node_puts_part_of_its_memmap_elsewhere() {
    let memory = [(4 * GIB, 8 * GIB, 0), (8 * GIB, 12 * GIB, 1)];
    let p = placed(&map(&memory, &[(4 * GIB + 32 * MIB, 8 * GIB)]), &rules("7.2"));
    let away: u64 = p
        .memmap
        .iter()
        .filter(|m| m.nid == Nid(0) && m.on_nid == Nid(1))
        .map(|m| m.end - m.start)
        .sum();
    assert_eq!(away, 34 * MIB);
}

// arm64 with 64 KiB pages: the buffer is counted in PMDs of 512 MiB, as much as all of
// the memory, so the request fails and every page of the memmap is asked for by itself.
#[test]
fn arm64_64k_never_gets_its_buffer() {
    let p = placed(&map(&[(GIB, 5 * GIB, 0)], &[]), &rules_for("6.1", Arch::Arm64, 65536));
    let failed: Vec<_> = p.requests.iter().filter(|r| r.start.is_none()).collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0].bytes, 4 * GIB);
    assert!(p.memmap.iter().all(|m| m.backing == Backing::BasePages));
    let bytes: u64 = p.memmap.iter().map(|m| m.end - m.start).sum();
    assert_eq!(bytes, 4 * MIB);
}

// s390 6.1 without EDAT1: 16384 single pages for 4 GiB, and the buffer freed whole.
#[test]
fn s390_6_1_ignores_its_buffer() {
    let mut rules = rules_for("6.1", Arch::S390x, 4096);
    rules.populate =
        crate::kernel::sparse_rules::Populate::S390 { segments: false, from_buffer: false };
    let p = placed(&map(&[(0, 4 * GIB, 0)], &[(0, 64 * MIB)]), &rules);
    let pages = p.requests.iter().filter(|r| r.caller == "__earlyonly_bootmem_alloc").count();
    assert_eq!(pages, 16384);
    let freed: Vec<u64> = p.frees.iter().map(|f| f.end - f.start).collect();
    assert_eq!(freed, [64 * MIB]);
}

// ppc64 radix up to 6.5: a block, a page for the list of blocks, then tables.
#[test]
fn old_radix_keeps_a_list_of_blocks() {
    let rules = rules_for("6.1", Arch::Ppc64, 65536);
    let p = placed(&map(&[(0, 4 * GIB, 0)], &[(0, 64 * MIB)]), &rules);
    let tail: Vec<_> = p.requests.iter().skip(4).map(|r| (r.caller, r.bytes)).collect();
    let table = ("early_alloc_pgtable", 65536);
    assert_eq!(tail, [("__earlyonly_bootmem_alloc", 65536), table, table]);
}

#[test]
fn every_architecture_is_placed() {
    let memory = [(GIB, 3 * GIB, 0), (3 * GIB, 5 * GIB, 1)];
    let cases = [
        (Arch::X86_64, 4096),
        (Arch::Arm64, 4096),
        (Arch::Arm64, 16384),
        (Arch::Arm64, 65536),
        (Arch::Ppc64, 4096),
        (Arch::Ppc64, 65536),
        (Arch::S390x, 4096),
        (Arch::Riscv64, 4096),
        (Arch::Sparc64, 8192),
    ];
    for (arch, page_bytes) in cases {
        for release in ["4.1", "4.15", "4.18", "4.19", "5.4", "5.15", "6.1", "6.8", "7.1", "7.3"] {
            // riscv has known sparse memory since 5.4.
            if arch == Arch::Riscv64 && release.starts_with('4') {
                continue;
            }
            let mut rules = rules_for(release, arch, page_bytes);
            // s390x is built without nodes; here it must place two all the same.
            rules.config.nodes_shift = 2;
            let p = placed(&map(&memory, &[]), &rules);
            assert_eq!(gaps(&p, &rules), None, "{arch} {page_bytes} {release}");
        }
    }
}

/// The offset of a byte of a present section's memmap that lies nowhere, if there is one.
fn gaps(p: &Placement, rules: &ReleaseRules) -> Option<u64> {
    let mut mapped = p.memmap.iter().map(|m| (m.map_start, m.map_end));
    let (mut start, mut end) = (0, 0);
    for sections in &p.sections {
        let bytes = rules.section_memmap_bytes();
        let mut at = sections.start * bytes;
        while at < sections.end * bytes {
            if at < start {
                return Some(at);
            }
            if at < end {
                at = end;
                continue;
            }
            match mapped.next() {
                Some(next) => (start, end) = next,
                None => return Some(at),
            }
        }
    }
    None
}

#[test]
fn bad_maps_are_refused_with_a_reason() {
    let r = rules("6.12");
    let range = PhysRange::new;
    assert_eq!(refused(&map(&[], &[]), &r), PlaceError::Empty);
    assert_eq!(refused(&map(&[(1, 4097, 0)], &[]), &r), PlaceError::Empty);
    let empty = refused(&map(&[(GIB, GIB, 0)], &[]), &r);
    assert_eq!(empty, PlaceError::EmptyRange(range(GIB, GIB)));
    let overlap = refused(&map(&[(0, 2 * GIB, 0), (GIB, 3 * GIB, 1)], &[]), &r);
    assert_eq!(overlap, PlaceError::Overlap(range(0, 2 * GIB), range(GIB, 3 * GIB)));
    let unsorted = refused(&map(&[(GIB, 2 * GIB, 0), (0, GIB, 1)], &[]), &r);
    assert_eq!(unsorted, PlaceError::Unsorted(range(GIB, 2 * GIB), range(0, GIB)));
    let high = refused(&map(&[(0, 1 << 47, 0)], &[]), &r);
    assert!(matches!(high, PlaceError::AboveLimit { limit, .. } if limit == 1 << 46), "{high}");
    let high = refused(&map(&[(0, GIB, 1024)], &[]), &r);
    assert_eq!(high, PlaceError::TooManyNodes { nid: Nid(1024), nodes: 1024 });
    let mut elsewhere = map(&[(0, GIB, 0)], &[(0, 4096)]);
    elsewhere.reserved[0].nid = Some(Nid(3));
    let strange = refused(&elsewhere, &r);
    assert_eq!(strange, PlaceError::NodeWithoutMemory { range: range(0, 4096), nid: Nid(3) });
    let mut huge = rules("6.12");
    huge.physmem_bits = 52;
    let large = refused(&map(&[(0, 1 << 51, 0)], &[]), &huge);
    assert_eq!(large, PlaceError::TooLarge { bytes: 1 << 51 });
    let page = refused(&map(&[(0, GIB, 0)], &[]), &rules_for("6.12", Arch::X86_64, 8192));
    assert!(matches!(page, PlaceError::PageSize { page_bytes: 8192, .. }), "{page}");
    let full = refused(&map(&[(0, GIB, 0)], &[(0, GIB - 65536)]), &r);
    assert!(matches!(full, PlaceError::Sparse(SparseError::NoRoom { .. })), "{full}");
    let message = full.to_string();
    assert!(message.contains("too small to hold its own memmap"), "{message}");
}

/// Up to eight regions in units of 4 KiB to some MiB, and random reservations.
fn worlds() -> impl Strategy<Value = MemoryMap> {
    let region = (1u64..3 << 18, 1u64..1 << 18, 0u32..4, any::<bool>());
    let cut = (0u64..1 << 21, 1u64..1 << 14);
    (prop::collection::vec(region, 1..8), prop::collection::vec(cut, 0..60)).prop_map(
        |(regions, cuts)| {
            let mut at = 0;
            let mut memory = Vec::new();
            for (gap, pages, nid, touches) in regions {
                at += if touches { 0 } else { gap * 4096 };
                memory.push((at, at + pages * 4096, nid));
                at += pages * 4096;
            }
            let cuts: Vec<_> =
                cuts.iter().map(|&(at, pages)| (at * 4096, (at + pages) * 4096)).collect();
            map(&memory, &cuts)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    // Equal requests may be answered at once, and nothing comes out differently.
    #[test]
    fn runs_change_nothing(
        map in worlds(),
        release in prop::sample::select(vec!["4.18", "5.0", "6.12", "7.2"]),
        struct_page_bytes in prop::sample::select(vec![64, 80]),
    ) {
        let mut rules = rules(release);
        rules.struct_page_bytes = struct_page_bytes;
        let outcome = |in_runs| {
            let mut memblock = map.memblock(&rules, false).expect("room");
            let done = sparse_init_in(in_runs, &mut memblock, &rules, &map.node_data);
            (done, memblock.reserved().clone())
        };
        prop_assert_eq!(outcome(true), outcome(false));
    }

    // Whatever the map: an error or a placement in which the memmap is complete, lies
    // in memory that was free, and overlaps nothing.
    #[test]
    fn random_worlds_are_placed_or_refused(
        map in worlds(),
        release in prop::sample::select(vec!["4.1", "4.18", "5.0", "5.5", "6.1", "6.18", "7.2"]),
    ) {
        let rules = rules(release);
        let Ok(p) = place(&map, &rules, &CommandLine::default()) else { return Ok(()) };
        prop_assert_eq!(gaps(&p, &rules), None);
        let mut extents: Vec<_> = p.memmap.iter().map(|m| (m.start, m.end)).collect();
        extents.sort_unstable();
        prop_assert!(extents.windows(2).all(|w| w[0].1 <= w[1].0));
        let inside = |list: &[Region], (start, end): (u64, u64)| {
            let covered: u64 =
                list.iter().map(|r| r.end.min(end).saturating_sub(r.start.max(start))).sum();
            covered == end - start
        };
        let free = |(start, end): (u64, u64)| {
            p.before.reserved.iter().all(|r| r.end <= start || r.start >= end)
        };
        for &extent in &extents {
            prop_assert!(inside(&p.after.reserved, extent));
            prop_assert!(inside(&p.after.memory, extent) && free(extent));
        }
        let present: u64 = p.nodes.iter().map(|n| n.present).sum();
        prop_assert_eq!(p.zones.iter().map(|z| z.present).sum::<u64>(), present);
    }
}
