//! Tests of the budget, on trees of text files.

use super::*;
use proptest::prelude::*;
use tempfile::TempDir;

const MEMINFO: &str = "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    800 kB\n";
const MEMINFO_AVAILABLE_BYTES: u64 = 800 * 1024;

/// A root with these files.
fn tree(files: &[(&str, &str)]) -> TempDir {
    let root = TempDir::new().unwrap();
    for (name, text) in files {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

fn read(files: &[(&str, &str)]) -> MemoryBudget {
    let mut all = vec![("proc/meminfo", MEMINFO)];
    all.extend_from_slice(files);
    MemoryBudget::read(tree(&all).path()).unwrap()
}

#[test]
fn without_groups_it_is_what_is_available() {
    let budget = read(&[]);
    assert_eq!((budget.total_bytes, budget.cgroup_limit_bytes), (1000 * 1024, None));
    assert_eq!(budget.usable_bytes(), MEMINFO_AVAILABLE_BYTES);
    let old = tree(&[("proc/meminfo", "MemTotal: 9 kB\nMemFree: 4 kB\n")]);
    assert_eq!(MemoryBudget::read(old.path()).unwrap().usable_bytes(), 4096);
}

/// ```text
///   /            no limit
///   └─ a         limit 500000, used 450000, of which 50000 reclaimable: room 100000
///      └─ b      limit 300000, used 100000:                              room 200000
/// ```
#[test]
fn v2_takes_the_group_with_the_least_room() {
    let budget = read(&[
        ("proc/self/cgroup", "0::/a/b\n"),
        ("sys/fs/cgroup/memory.stat", "inactive_file 1\n"),
        ("sys/fs/cgroup/a/memory.max", "500000\n"),
        ("sys/fs/cgroup/a/memory.current", "450000\n"),
        ("sys/fs/cgroup/a/memory.stat", "file 70000\ninactive_file 50000\nactive_file 1\n"),
        ("sys/fs/cgroup/a/b/memory.max", "300000\n"),
        ("sys/fs/cgroup/a/b/memory.current", "100000\n"),
    ]);
    assert_eq!(budget.cgroup_limit_bytes, Some(500_000));
    assert_eq!(budget.cgroup_used_bytes, Some(450_000));
    assert_eq!(budget.usable_bytes(), 100_000);
}

#[test]
fn v2_max_is_no_limit_and_high_is_one() {
    let cgroup = ("proc/self/cgroup", "0::/a\n");
    let unlimited = read(&[cgroup, ("sys/fs/cgroup/a/memory.max", "max\n")]);
    assert_eq!(unlimited.cgroup_limit_bytes, None);
    let high = ("sys/fs/cgroup/a/memory.high", "4096\n");
    let throttled = read(&[cgroup, ("sys/fs/cgroup/a/memory.max", "max\n"), high]);
    assert_eq!(throttled.usable_bytes(), 4096);
}

#[test]
fn a_path_of_the_host_falls_back_to_the_mount() {
    for path in ["0::/docker/0123\n", "0::/../../other\n", "0::/\n"] {
        let budget = read(&[
            ("proc/self/cgroup", path),
            ("sys/fs/cgroup/memory.max", "65536\n"),
            ("sys/fs/cgroup/memory.current", "4096\n"),
        ]);
        assert_eq!(budget.usable_bytes(), 61_440, "{path}");
    }
}

#[test]
fn v1_reads_the_memory_controller_alone() {
    let cgroup = "7:cpu,cpuacct:/x\n5:memory:/x\n1:name=systemd:/x\n0::/x\n";
    let budget = read(&[
        ("proc/self/cgroup", cgroup),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "200000\n"),
        ("sys/fs/cgroup/memory/x/memory.usage_in_bytes", "150000\n"),
        ("sys/fs/cgroup/memory/x/memory.stat", "inactive_file 1\ntotal_inactive_file 50000\n"),
    ]);
    assert_eq!(budget.cgroup_limit_bytes, Some(200_000));
    assert_eq!(budget.usable_bytes(), 100_000);
}

#[test]
fn a_group_over_its_limit_leaves_nothing() {
    let budget = read(&[
        ("proc/self/cgroup", "0::/\n"),
        ("sys/fs/cgroup/memory.max", "10\n"),
        ("sys/fs/cgroup/memory.current", "20\n"),
    ]);
    assert_eq!(budget.usable_bytes(), 0);
}

#[test]
fn a_machine_without_meminfo_is_an_error_that_names_the_file() {
    let error = MemoryBudget::read(tree(&[]).path()).unwrap_err().to_string();
    assert!(error.contains("proc/meminfo"), "{error}");
    let error = MemoryBudget::read(tree(&[("proc/meminfo", "MemTotal: x kB")]).path());
    assert!(error.unwrap_err().to_string().contains("MemTotal"));
}

#[test]
fn this_host_has_memory() {
    let budget = MemoryBudget::read(Path::new("/")).unwrap();
    assert!(budget.total_bytes > 0 && budget.usable_bytes() <= budget.available_bytes);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn no_text_panics(meminfo in ".{0,60}", cgroup in "[0-9:a./\n-]{0,40}", limit in ".{0,20}") {
        let root = tree(&[
            ("proc/meminfo", &format!("MemTotal: 1 kB\n{meminfo}")),
            ("proc/self/cgroup", &cgroup),
            ("sys/fs/cgroup/memory.max", &limit),
        ]);
        if let Ok(budget) = MemoryBudget::read(root.path()) {
            prop_assert!(budget.usable_bytes() <= budget.available_bytes);
        }
    }
}
