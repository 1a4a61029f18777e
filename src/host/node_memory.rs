//! What one NUMA node has: its CPUs as Linux counts them, and the memory that it can
//! still give.

use std::fs;
use std::path::{Path, PathBuf};

fn folder(root: &Path, nid: u32) -> PathBuf {
    root.join(format!("sys/devices/system/node/node{nid}"))
}

/// Linux's own CPUs of node `nid`, offline ones too, ascending; `None` where `root` does
/// not tell.
///
/// hwloc gives a node without CPUs those of its nearest neighbours.
pub fn node_cpus(root: &Path, nid: u32) -> Option<Vec<u32>> {
    let entries = fs::read_dir(folder(root, nid)).ok()?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut cpus: Vec<u32> =
        names.filter_map(|name| name.strip_prefix("cpu")?.parse().ok()).collect();
    cpus.sort_unstable();
    Some(cpus)
}

/// Bytes that node `nid` can give without the OOM killer: `MemFree`, `Inactive(file)` and
/// `SReclaimable` of its `meminfo` below `root`, without what its zones keep for the
/// kernel. `None` where that cannot be read.
pub fn node_available_bytes(root: &Path, nid: u32) -> Option<u64> {
    let text = fs::read_to_string(folder(root, nid).join("meminfo")).ok()?;
    let kib = |name: &str| -> Option<u64> {
        let line = text.lines().find(|l| l.split_whitespace().nth(2) == Some(name))?;
        line.split_whitespace().nth(3)?.parse().ok()
    };
    let reclaimable = ["Inactive(file):", "SReclaimable:"].iter().filter_map(|n| kib(n));
    let total = reclaimable.fold(kib("MemFree:")?, u64::saturating_add);
    let zones = fs::read_to_string(root.join("proc/zoneinfo")).unwrap_or_default();
    let kept_kib =
        reserve_pages(&zones, nid).saturating_mul(super::arena::page_bytes() as u64 / 1024);
    total.saturating_sub(kept_kib).checked_mul(1024)
}

/// Pages that the zones of a node do not give to user space without a fight, at most what
/// they manage: the high watermark and the largest protection from higher zones
/// (`mm/page_alloc.c: calculate_totalreserve_pages`, v6.12), and the low watermark once
/// more, because the lists of the node's CPUs together may keep so many free pages from
/// each other (`mm/page_alloc.c: zone_highsize`, v6.12) and are not emptied before the
/// OOM killer comes.
fn reserve_pages(zoneinfo: &str, nid: u32) -> u64 {
    let node = format!("Node {nid},");
    let sections = zoneinfo.split("\nNode ").enumerate().map(|(i, section)| match i {
        0 => section.to_owned(),
        _ => format!("Node {section}"),
    });
    let mine = sections.filter(|section| section.trim_start().starts_with(&node));
    mine.map(|zone| zone_reserve_pages(&zone)).fold(0, u64::saturating_add)
}

fn zone_reserve_pages(zone: &str) -> u64 {
    let field = |name: &str| -> u64 {
        let mut lines = zone.lines().map(str::trim_start);
        let value = lines.find_map(|l| l.strip_prefix(name)?.strip_prefix(' '));
        value.and_then(|v| v.trim().parse().ok()).unwrap_or(0)
    };
    let lists = zone.lines().find_map(|l| l.trim_start().strip_prefix("protection: ("));
    let numbers = lists.unwrap_or("").split([',', ')']);
    let protection = numbers.filter_map(|n| n.trim().parse::<u64>().ok()).max().unwrap_or(0);
    let kept = field("high").saturating_add(field("low")).saturating_add(protection);
    kept.min(field("managed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_what_a_node_can_give() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("sys/devices/system/node/node3");
        fs::create_dir_all(&dir).unwrap();
        let text = "Node 3 MemTotal: 9000 kB\nNode 3 MemFree: 100 kB\n\
                    Node 3 Inactive(file): 20 kB\nNode 3 SReclaimable: 3 kB\n";
        fs::write(dir.join("meminfo"), text).unwrap();
        assert_eq!(node_available_bytes(root.path(), 3), Some(123 * 1024));
        assert_eq!(node_available_bytes(root.path(), 4), None);
    }

    #[test]
    fn what_zones_keep_is_not_available() {
        let text = "Node 0, zone      DMA\n  pages free 50\n        high     9\n\
                    Node 3, zone    DMA32\n  per-node stats\n      nr_inactive_anon 7\n  \
                    pages free 500\n        boost    0\n        min      10\n        \
                    low      20\n        high     30\n        managed  400\n        \
                    protection: (0, 0, 25, 25)\n      high: 186\n\
                    Node 3, zone   Normal\n        high     70\n        managed  60\n        \
                    protection: (0, 0, 0, 0)\nNode 33, zone   Normal\n        high     8\n";
        assert_eq!(reserve_pages(text, 3), 30 + 20 + 25 + 60);
        assert_eq!(reserve_pages(text, 1), 0);
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("sys/devices/system/node/node3");
        fs::create_dir_all(&dir).unwrap();
        fs::create_dir_all(root.path().join("proc")).unwrap();
        fs::write(dir.join("meminfo"), "Node 3 MemFree: 90000 kB\n").unwrap();
        fs::write(root.path().join("proc/zoneinfo"), text).unwrap();
        let kept = 135 * crate::host::arena::page_bytes() as u64;
        assert_eq!(node_available_bytes(root.path(), 3), Some(90_000 * 1024 - kept));
    }

    // A link for each CPU, and a list of the same beginning.
    #[test]
    fn a_nodes_cpus_are_its_links() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("sys/devices/system/node/node1");
        for name in ["cpu10", "cpu2", "cpulist", "cpumap", "memory3"] {
            fs::create_dir_all(dir.join(name)).unwrap();
        }
        assert_eq!(node_cpus(root.path(), 1), Some(vec![2, 10]));
        assert_eq!(node_cpus(root.path(), 2), None);
    }
}
