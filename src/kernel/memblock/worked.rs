//! Worked examples: short sequences whose answers the real memblock gave
//! (6.1 where nothing else is said; 6.12 and 7.3 agree).

use super::{AllocRequest, Memblock, MemblockFlags, MemblockRules, Region};
use crate::pfn::{Nid, PhysRange};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn world(memory: &[(u64, u64, u32)], reserved: &[(u64, u64)], limit: u64) -> Memblock {
    let mut mb = Memblock::new(MemblockRules::default());
    for &(start, end, nid) in memory {
        mb.add(Region::new(start, end, Some(Nid(nid)), MemblockFlags::NONE)).expect("room");
    }
    for &(start, end) in reserved {
        mb.reserve(PhysRange::new(start, end)).expect("room");
    }
    mb.set_current_limit(limit);
    mb
}

fn ask(bytes: u64, align: u64, nid: u32) -> AllocRequest {
    let (min_addr, max_addr) = (16 * MIB, 0);
    AllocRequest { bytes, align, min_addr, max_addr, nid: Some(Nid(nid)), exact_nid: false }
}

fn exact(bytes: u64, align: u64, nid: u32) -> AllocRequest {
    AllocRequest { exact_nid: true, ..ask(bytes, align, nid) }
}

// GiB     0    2    4                   66                  130
// node 0  [====)    [===================)
// node 1                                [===================)
fn two_nodes_of_64_gib() -> Memblock {
    let memory = [(MIB, 2 * GIB, 0), (4 * GIB, 66 * GIB, 0), (66 * GIB, 130 * GIB, 1)];
    world(&memory, &[(16 * MIB, 64 * MIB)], 130 * GIB)
}

#[test]
fn a_buffer_lies_below_the_node_data_and_tables_in_the_gap() {
    let mut mb = two_nodes_of_64_gib();
    assert_eq!(mb.alloc(&ask(168 << 10, 64, 0)), Some(0x10_7ffd_6000));
    assert_eq!(mb.alloc(&ask(168 << 10, 64, 1)), Some(0x20_7ffd_6000));
    assert_eq!(mb.alloc(&ask(20 << 10, 64, 0)), Some(0x10_7ffd_1000));
    assert_eq!(mb.alloc(&exact(GIB, 2 * MIB, 0)), Some(0x10_3fe0_0000));
    assert_eq!(mb.alloc(&ask(4096, 4096, 0)), Some(0x10_7ffd_0000));
    assert_eq!(mb.alloc(&ask(20 << 10, 64, 1)), Some(0x20_7ffd_1000));
    assert_eq!(mb.alloc(&exact(GIB, 2 * MIB, 1)), Some(0x20_3fe0_0000));
    assert_eq!(mb.alloc(&ask(4096, 4096, 1)), Some(0x20_7ffd_0000));
}

#[test]
fn single_pmds_descend_and_tables_fill_the_gap_above() {
    let mut mb = two_nodes_of_64_gib();
    mb.reserve(PhysRange::new(0x10_7ffc_f000, 66 * GIB)).expect("room");
    let table = ask(4096, 4096, 0);
    let pmd = ask(2 * MIB, 2 * MIB, 0);
    assert_eq!(mb.alloc(&table), Some(0x10_7ffc_e000));
    assert_eq!(mb.alloc(&table), Some(0x10_7ffc_d000));
    for expected in [0x10_7fc0_0000, 0x10_7fa0_0000, 0x10_7f80_0000, 0x10_7f60_0000] {
        assert_eq!(mb.alloc(&pmd), Some(expected));
    }
    assert_eq!(mb.alloc(&table), Some(0x10_7ffc_c000));
    assert_eq!(mb.alloc(&pmd), Some(0x10_7f40_0000));
}

#[test]
fn large_requests_stay_inside_one_region() {
    let end = 0x40_8000_0000;
    let memory = [
        (0x1000, 0x9_f000, 0),
        (MIB, 2 * GIB, 0),
        (4 * GIB, 0x20_8000_0000, 0),
        (0x20_8000_0000, end, 1),
    ];
    let reserved = [(16 * MIB, 64 * MIB), (0, 0x1000)];
    let any = |bytes, align, nid| AllocRequest { min_addr: 0, ..ask(bytes, align, nid) };
    let fresh = || world(&memory, &reserved, end);
    let mut mb = fresh();
    assert_eq!(mb.alloc(&exact(0x7e00_0000, 2 * MIB, 0)), Some(0x20_0200_0000));
    assert_eq!(mb.alloc(&exact(2 * GIB, 2 * MIB, 1)), Some(0x40_0000_0000));
    assert_eq!(mb.alloc(&any(4096, 4096, 0)), Some(0x20_01ff_f000));
    assert_eq!(mb.alloc(&any(2 * MIB, 2 * MIB, 1)), Some(0x3f_ffe0_0000));
    assert_eq!(mb.alloc(&exact(0x30_0000_0000, 4096, 1)), None);
    assert_eq!(mb.alloc(&any(0x20_0000_0000, 4096, 1)), None);
    mb.set_bottom_up(true);
    assert_eq!(mb.alloc(&ask(4096, 4096, 0)), Some(0x400_0000));
}
