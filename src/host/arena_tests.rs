//! Tests of the arena: on this host, and of its pure parts.

use super::*;
use proptest::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

fn topo() -> HostTopology {
    HostTopology::load().unwrap()
}

/// Whether a result is one that a container's filter may cause; says so.
fn refused<T>(result: &Result<T, HostError>) -> bool {
    let refused =
        matches!(result, Err(HostError::BindRefused { .. } | HostError::LocateRefused(_)));
    if refused {
        eprintln!("notice: binding memory is refused here; not tested");
    }
    refused
}

#[test]
fn an_arena_is_aligned_zero_and_of_the_size_asked() {
    for lines in [0, 1, 63, 32 * 1024, 32 * 1024 + 1] {
        let mut arena = Arena::map(lines).unwrap();
        assert_eq!(arena.lines().len(), lines);
        assert_eq!(arena.lines().as_ptr().addr() % HUGE_BYTES, 0);
        assert!(arena.start > 0 && arena.start + arena.padded_bytes < arena.map.len());
        assert!(arena.lines().iter().all(|&line| line == Line::default()));
        if let Some(last) = arena.lines_mut().last_mut() {
            last.set_word::<7>(1);
        }
        assert!(arena.lines().last().is_none_or(|line| line.word::<7>() == 1));
    }
}

#[test]
fn a_size_beyond_the_address_space_is_an_error() {
    assert!(matches!(Arena::map(usize::MAX), Err(HostError::TooLarge { .. })));
    assert!(matches!(Arena::map(usize::MAX / 64), Err(HostError::TooLarge { .. })));
    assert!(matches!(Arena::map(usize::MAX / 128), Err(HostError::Map { .. })));
}

#[test]
fn bound_memory_is_where_it_was_bound() {
    let topo = topo();
    let node = topo.nodes().into_iter().find(|node| !node.cpus.is_empty()).unwrap();
    // Two whole slices and a rest.
    let lines = (2 * SLICE_BYTES + HUGE_BYTES / 2) / LINE_BYTES + 3;
    let mut arena = Arena::map(lines).unwrap();
    let bound = arena.bind(&topo, node.nid);
    if refused(&bound) {
        return;
    }
    bound.unwrap();
    let done_bytes = AtomicU64::new(0);
    let done = |bytes| _ = done_bytes.fetch_add(bytes, Ordering::Relaxed);
    arena.fault_in(&topo, &node.cpus, &done, &|| false).unwrap();
    let bytes = (lines * LINE_BYTES) as u64;
    assert_eq!(done_bytes.into_inner(), bytes);
    let residency = arena.residency(&topo, node.nid);
    if !refused(&residency) {
        assert_eq!(residency.unwrap(), Residency { bytes, on_node_bytes: bytes });
    }
    assert!(arena.huge_page_bytes().is_none_or(|huge| huge <= arena.padded_bytes as u64));
    assert!(matches!(arena.bind(&topo, node.nid), Err(HostError::BindTooLate { .. })));
}

#[test]
fn an_untouched_arena_is_nowhere() {
    let topo = topo();
    let nid = topo.nodes()[0].nid;
    let residency = Arena::map(100_000).unwrap().residency(&topo, nid);
    if !refused(&residency) {
        assert_eq!(residency.unwrap().on_node_bytes, 0);
    }
    let empty = Arena::map(0).unwrap().residency(&topo, nid).unwrap();
    assert_eq!(empty, Residency { bytes: 0, on_node_bytes: 0 });
}

#[test]
fn faulting_in_stops_when_asked() {
    let topo = topo();
    let cpus = topo.allowed_cpus();
    let mut arena = Arena::map(3 * SLICE_BYTES / LINE_BYTES).unwrap();
    let slices = AtomicU64::new(0);
    let done = |_| _ = slices.fetch_add(1, Ordering::Relaxed);
    let stop = || slices.load(Ordering::Relaxed) >= 1;
    let ended = arena.fault_in(&topo, &cpus[..1], &done, &stop);
    assert!(matches!(ended, Err(HostError::Interrupted)));
    assert_eq!(slices.load(Ordering::Relaxed), 1);
}

#[test]
fn wrong_cpus_and_nodes_are_errors() {
    let topo = topo();
    let mut arena = Arena::map(10).unwrap();
    assert!(matches!(arena.bind(&topo, 4000), Err(HostError::NoSuchNode { nid: 4000, .. })));
    let none = arena.fault_in(&topo, &[], &|_| (), &|| false);
    assert!(matches!(none, Err(HostError::NoCpus)));
    let wrong = arena.fault_in(&topo, &[u32::MAX], &|_| (), &|| false);
    assert!(matches!(wrong, Err(HostError::NoSuchCpu { .. })));
    assert!(matches!(arena.residency(&topo, 4000), Err(HostError::NoSuchNode { .. })));
}

/// ```text
///   smaps   | 1000 … 3000 | 3000 … 5000 | 5000 … 7000 |
///   range                 [ 3000        …        7000 )
/// ```
#[test]
fn huge_pages_of_other_mappings_do_not_count() {
    let smaps = "1000-3000 rw-p 00000000 00:00 0 [heap]\nSize: 8 kB\nAnonHugePages:      1 kB\n\
                 3000-5000 rw-p 00000000 00:00 0\nAnonHugePages:      20 kB\nVmFlags: rd wr\n\
                 5000-7000 rw-p 00000000 00:00 0\nAnonHugePages:     300 kB\n\
                 7000-8000 r--p 00000000 00:00 0\nAnonHugePages:    4000 kB\n";
    assert_eq!(huge_bytes_within(smaps, 0x3000..0x7000), 320 * 1024);
    assert_eq!(huge_bytes_within("", 0..usize::MAX), 0);
}

proptest! {
    /// Pages on node 0 or 1 in any order, the last one perhaps partial, are counted
    /// one by one as the oracle.
    #[test]
    fn halving_counts_like_looking_at_every_page(
        pages in prop::collection::vec(any::<bool>(), 1..70), cut in 0usize..4096,
    ) {
        let bytes = pages.len() * 4096 - cut;
        let mut locate = |range: Range<usize>| {
            let part = &pages[range.start / 4096..range.end.div_ceil(4096)];
            let (here, elsewhere) = (part.contains(&true), part.contains(&false));
            Ok(Location { here, elsewhere })
        };
        let counted = bytes_here(0..bytes, 4096, &mut locate).unwrap();
        let page = |i: usize| bytes.min((i + 1) * 4096) - i * 4096;
        let oracle: usize = (0..pages.len()).filter(|&i| pages[i]).map(page).sum();
        prop_assert_eq!(counted, oracle as u64);
    }
}
