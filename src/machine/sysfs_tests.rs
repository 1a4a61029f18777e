//! Tests of the reading of `/sys` and `/proc`, on small trees.

use super::*;
use crate::units::MIB;
use std::fs;
use tempfile::TempDir;

/// A tree with blocks of 128 MiB: `nodes` lists the blocks of each node.
pub(in crate::machine) fn tree(nodes: &[(u32, &[u32])]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    put(&dir, "sys/devices/system/memory/block_size_bytes", "8000000\n");
    for (nid, blocks) in nodes {
        let distance: Vec<_> =
            nodes.iter().map(|(other, _)| if other == nid { "10" } else { "21" }).collect();
        put(&dir, &format!("sys/devices/system/node/node{nid}/distance"), &distance.join(" "));
        for block in *blocks {
            put(&dir, &format!("sys/devices/system/memory/memory{block}/state"), "online\n");
            put(&dir, &format!("sys/devices/system/node/node{nid}/memory{block}/state"), "online");
        }
    }
    dir
}

pub(in crate::machine) fn put(dir: &TempDir, path: &str, text: &str) {
    let path = dir.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn zone(nid: u32, name: &str, start: u64, spanned: u64, present: u64) -> String {
    format!(
        "Node {nid}, zone {name:>8}\n  per-node stats\n      nr_active 7\n  pages free     1\n\
         \x20       spanned  {spanned}\n        present  {present}\n        managed  1\n\
         \x20 start_pfn:           {start}\n"
    )
}

fn mib(dir: &TempDir, nid: u32) -> Vec<(u64, u64)> {
    let found = memory(dir.path(), 4096).unwrap();
    found.ranges[&Nid(nid)].iter().map(|r| (r.start / MIB, r.end / MIB)).collect()
}

fn codes(dir: &TempDir) -> Vec<String> {
    memory(dir.path(), 4096).unwrap().warnings.into_iter().map(|w| w.code).collect()
}

// MiB      0    128  256  384  512  640
// node 0   |=====|=====|     |=====|            block 2 is a hole
// node 1               :     :     |=====|
#[test]
fn two_nodes_and_a_hole() {
    let dir = tree(&[(0, &[0, 1, 3]), (1, &[4])]);
    assert_eq!(mib(&dir, 0), [(0, 256), (384, 512)]);
    assert_eq!(mib(&dir, 1), [(512, 640)]);
    assert_eq!(codes(&dir), [""; 0]);
    let table = vec![vec![10, 21], vec![21, 10]];
    assert_eq!(distances(dir.path()), Some((vec![Nid(0), Nid(1)], table)));
}

#[test]
fn offline_blocks_are_no_memory() {
    let dir = tree(&[(0, &[0, 1, 2])]);
    put(&dir, "sys/devices/system/memory/memory1/state", "offline\n");
    assert_eq!(mib(&dir, 0), [(0, 128), (256, 384)]);
}

#[test]
fn iomem_of_zeros_is_not_believed() {
    let dir = tree(&[(0, &[0, 1])]);
    put(&dir, "proc/iomem", "00000000-00000000 : System RAM\n00000000-00000000 : Reserved\n");
    assert_eq!(mib(&dir, 0), [(0, 256)]);
    assert!(!memory(dir.path(), 4096).unwrap().from.contains("iomem"));
}

// MiB      0  1      100    128       256
// blocks   |=================|=========|
// iomem       |=======|      |=========|
#[test]
fn iomem_refines_blocks_in_whole_pages() {
    let dir = tree(&[(0, &[0, 1])]);
    let text = "00000000-000fffff : Reserved\n00100000-06400abc : System RAM\n  \
                01000000-01ffffff : Kernel code\n08000000-0fffffff : System RAM\n";
    put(&dir, "proc/iomem", text);
    assert_eq!(mib(&dir, 0), [(1, 100), (128, 256)]);
    assert!(memory(dir.path(), 4096).unwrap().from.contains("/proc/iomem"));
}

#[test]
fn iomem_that_contradicts_the_blocks_is_not_used() {
    let dir = tree(&[(0, &[0, 1])]);
    put(&dir, "proc/iomem", "00100000-001fffff : System RAM\n");
    assert_eq!(mib(&dir, 0), [(0, 256)]);
    assert_eq!(codes(&dir), ["iomem-differs"]);
}

// MiB      0     128   192   256   384
// blocks   |==0==|==0 and 1==|==1==|
// zones    0-----------|-----------|      the zones cut the shared block
#[test]
fn a_block_of_two_nodes_is_cut_by_the_zones() {
    let dir = tree(&[(0, &[0, 1]), (1, &[1, 2])]);
    assert_eq!(mib(&dir, 1), [(256, 384)]);
    assert_eq!(codes(&dir), ["shared-memory-block"]);
    let pages = 192 * 256;
    let zones = zone(0, "DMA32", 1, pages - 1, pages - 1) + &zone(1, "Normal", pages, pages, pages);
    put(&dir, "proc/zoneinfo", &zones);
    assert_eq!(mib(&dir, 1), [(192, 384)]);
    let first = memory(dir.path(), 4096).unwrap().ranges[&Nid(0)].clone();
    assert_eq!(first, [PhysRange::new(4096, 192 * MIB)]);
    assert_eq!(codes(&dir), [""; 0]);
}

#[test]
fn present_pages_are_compared() {
    let dir = tree(&[(0, &[0, 1, 2, 3])]);
    put(&dir, "proc/zoneinfo", &zone(0, "Normal", 0, 131_072, 131_072 - 32_769));
    assert_eq!(codes(&dir), ["memory-ranges-differ"]);
    put(&dir, "proc/zoneinfo", &zone(0, "Normal", 0, 131_072, 131_072 - 32_768));
    assert_eq!(codes(&dir), [""; 0]);
}

#[test]
fn the_block_size_is_hexadecimal() {
    let dir = tree(&[(0, &[0, 1])]);
    put(&dir, "sys/devices/system/memory/block_size_bytes", "80000000\n");
    assert_eq!(mib(&dir, 0), [(0, 4096)]);
}

#[test]
fn a_kernel_without_numa_or_without_hotplug_still_tells() {
    let dir = tree(&[]);
    put(&dir, "sys/devices/system/memory/memory3/state", "online");
    assert_eq!(mib(&dir, 0), [(384, 512)]);
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(memory(dir.path(), 4096), None);
    put(&dir, "proc/zoneinfo", &zone(2, "Normal", 256, 512, 512));
    assert_eq!(mib(&dir, 2), [(1, 3)]);
}

#[test]
fn nonsense_is_ignored() {
    let dir = tree(&[(0, &[0])]);
    put(&dir, "proc/zoneinfo", "Node x, zone\n spanned z\n present\nNode 7, zone A\n spanned 0\n");
    put(&dir, "proc/iomem", "zz-1 : System RAM\nffffffffffffffff-ffffffffffffffff : System RAM\n");
    assert_eq!(mib(&dir, 0), [(0, 128)]);
    put(&dir, "sys/devices/system/memory/block_size_bytes", "0\n");
    assert_eq!(memory(dir.path(), 4096), None);
}
