//! What a small machine looks like: drawing, tables, JSON, changes.

use super::*;
use crate::kernel::memblock::MemblockFlags;
use crate::kernel::memory_map::{MemoryMap, MemoryRegion};
use crate::kernel::sparse_rules::{Platform, ReleaseRules};
use crate::kernel::version::KernelModel;
use crate::machine::Arch;
use crate::pfn::Nid;
use serde_json::Value;

const GIB: u64 = 1 << 30;

/// Two nodes without CPUs; node 0 has a hole.
///
/// ```text
/// GiB     0       4       8      12      16
/// node 0  0000            0000
/// node 1                      1111111111
/// ```
fn two_nodes(release: &str) -> BootInput {
    let kernel = KernelModel::from_release(release, Arch::X86_64).expect("modelled");
    let region = |(start, end, nid): (u64, u64, u32)| MemoryRegion {
        start: start * GIB,
        end: end * GIB,
        nid: Nid(nid),
        flags: MemblockFlags::NONE,
    };
    let memory = [(0, 2, 0), (8, 10, 0), (10, 15, 1)].map(region).to_vec();
    BootInput {
        name: "two".into(),
        map: MemoryMap { memory, ..MemoryMap::default() },
        rules: ReleaseRules::new(&kernel, 4096, Platform::default()),
        line: Default::default(),
        kernel,
        cpus: Vec::new(),
        gigantic: Vec::new(),
    }
}

fn shown<T>(input: &BootInput, show: impl Fn(&LayoutView) -> T) -> T {
    let (layout, placement) = input.boot().expect("fits");
    let notes = crate::kernel::notes::notes(input);
    show(&LayoutView { input, layout: &layout, placement: &placement, notes: &notes })
}

#[test]
fn a_drawing_has_a_line_per_node_with_cells_of_one_size() {
    let out = shown(&two_nodes("6.12"), drawing::text);
    let expected = [
        "█ memmap   ▓ reserved   ▒ early   ░ deferred   · no memory; one block is 128 MiB",
        "node 0    0x0 to 0x280000000",
        "  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒················································▒░░░░░░░░░░░░░░█",
        "  └DMA32                          └Normal",
        "node 1    0x280000000 to 0x3c0000000",
        "  ▒░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░█",
        "  └Normal",
    ];
    // DMA32 begins in the first cell, as DMA does; its name wins. Normal begins at 4 GiB.
    assert_eq!(out.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn text_names_every_part() {
    let out = shown(&two_nodes("7.2"), text);
    for part in ["two: 9 GiB on 2 nodes", "descending", "vmemmap_populate_hugepages", "rests on"] {
        assert!(out.contains(part), "{part}: {out}");
    }
}

#[test]
fn json_counts_every_page_once() {
    let input = two_nodes("5.10");
    let body = shown(&input, |v| serde_json::to_value(json::body(v, false)).expect("JSON"));
    let number = |v: &Value| v.as_u64().expect("a number");
    let mut pages = 0;
    for node in body["nodes"].as_array().expect("a list") {
        let early = &node["early"];
        pages += number(&early["sweep"]) + number(&early["reserved"]);
        pages += number(&node["deferred_pages"]);
    }
    assert_eq!(pages, 9 * GIB / 4096);
    assert_eq!(body["memmap"].as_array().expect("a list").len(), 72);
    assert_eq!(body["memblock"]["before"]["reserved"], Value::Array(Vec::new()));
}

#[test]
fn changes_name_what_differs() {
    let (old, new) = (two_nodes("5.7"), two_nodes("6.18"));
    let list = shown(&old, |a| shown(&new, |b| against::changes(a, b)));
    let change = |what: &str| list.iter().find(|c| c.what == what).map(|c| (&c.from, &c.to));
    let (from, to) = (Value::Bool(false), Value::Bool(true));
    assert_eq!(change("rules.one_job_per_node"), Some((&from, &to)));
    assert_eq!(change("zones.0.Normal.present"), None);
    let table = shown(&old, |a| shown(&new, |b| against::text(a, b)));
    assert!(table.contains("rules.padata"), "{table}");
}
