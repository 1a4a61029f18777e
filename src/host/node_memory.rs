//! How much memory one NUMA node can still give.

use std::fs;
use std::path::Path;

/// Free and easily reclaimed bytes of node `nid`: `MemFree`, `Inactive(file)` and
/// `SReclaimable` of its `meminfo` below `root`. `None` where that cannot be read.
pub fn node_available_bytes(root: &Path, nid: u32) -> Option<u64> {
    let path = root.join(format!("sys/devices/system/node/node{nid}/meminfo"));
    let text = fs::read_to_string(path).ok()?;
    let kib = |name: &str| -> Option<u64> {
        let line = text.lines().find(|l| l.split_whitespace().nth(2) == Some(name))?;
        line.split_whitespace().nth(3)?.parse().ok()
    };
    let reclaimable = ["Inactive(file):", "SReclaimable:"].iter().filter_map(|n| kib(n));
    let total = reclaimable.fold(kib("MemFree:")?, u64::saturating_add);
    total.checked_mul(1024)
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
}
