//! Transparent huge pages of this kernel: settings, sizes and counters, as files below
//! a root that is `/` outside tests.

use std::fs;
use std::path::{Path, PathBuf};

/// The setting for the whole system.
pub const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// One size of transparent huge page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    /// Bytes of such a page.
    pub bytes: u64,
    /// Its setting.
    pub enabled: PathBuf,
    /// How many were given at page faults.
    fault_alloc: PathBuf,
}

impl Size {
    /// How many were given at page faults since boot; `None` where it cannot be read.
    pub fn fault_allocs(&self) -> Option<u64> {
        fs::read_to_string(&self.fault_alloc).ok()?.trim().parse().ok()
    }
}

/// The sizes that have a setting of their own, ascending (v6.8 and later); those that
/// only shared memory has are left out.
pub fn sizes(root: &Path) -> Vec<Size> {
    let folder = root.join("sys/kernel/mm/transparent_hugepage");
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut sizes: Vec<Size> = entries.filter_map(|entry| size(&entry.path())).collect();
    sizes.sort_by_key(|size| size.bytes);
    sizes
}

fn size(folder: &Path) -> Option<Size> {
    let name = folder.file_name()?.to_str()?;
    let kib: u64 = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
    let enabled = folder.join("enabled");
    let fault_alloc = folder.join("stats/anon_fault_alloc");
    enabled.exists().then_some(())?;
    Some(Size { bytes: kib.checked_mul(1024)?, enabled, fault_alloc })
}

/// A counter of `/proc/vmstat`.
pub fn vmstat(root: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/vmstat")).ok()?;
    let value = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok();
    text.lines().find_map(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_found_with_their_files() {
        let root = tempfile::tempdir().unwrap();
        let top = root.path().join("sys/kernel/mm/transparent_hugepage");
        for name in ["hugepages-2048kB", "hugepages-16kB", "hugepages-xkB", "khugepaged"] {
            fs::create_dir_all(top.join(name).join("stats")).unwrap();
            fs::write(top.join(name).join("enabled"), "always [never]").unwrap();
        }
        fs::create_dir_all(top.join("hugepages-8kB")).unwrap();
        fs::write(top.join("hugepages-16kB/stats/anon_fault_alloc"), "12\n").unwrap();
        let found = sizes(root.path());
        assert_eq!(found.iter().map(|s| s.bytes).collect::<Vec<_>>(), [16 << 10, 2 << 20]);
        assert_eq!(found[0].fault_allocs(), Some(12));
        assert_eq!(found[1].fault_allocs(), None);
        assert_eq!(sizes(Path::new("/nonexistent")), []);
    }

    #[test]
    fn counters_are_found_by_their_whole_name() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc")).unwrap();
        fs::write(root.path().join("proc/vmstat"), "thp_fault_alloc_x 1\nthp_fault_alloc 7\n")
            .unwrap();
        assert_eq!(vmstat(root.path(), "thp_fault_alloc"), Some(7));
        assert_eq!(vmstat(root.path(), "thp"), None);
    }
}
