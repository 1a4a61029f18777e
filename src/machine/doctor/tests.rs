//! Tests of the checks, on hosts made of a few files.

use super::*;
use tempfile::TempDir;

const FINE: ClockFacts = ClockFacts { kind: String::new(), resolution_ns: 10, overhead_ns: 20 };

/// A host with these files.
fn host(files: &[(&str, &str)]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

fn state(files: &[(&str, &str)], code: &str) -> (State, String) {
    let root = host(files);
    let checks = examine(root.path(), &FINE);
    let found = checks.iter().find(|check| check.code == code).unwrap();
    assert_eq!(found.remedy.is_empty(), found.state != State::Doubtful, "{found:?}");
    (found.state, found.found.clone())
}

fn is_doubtful(files: &[(&str, &str)], code: &str) -> bool {
    state(files, code).0 == State::Doubtful
}

#[test]
fn unknown_is_not_bad() {
    let root = host(&[]);
    let checks = examine(root.path(), &FINE);
    assert!(checks.iter().all(|check| check.state != State::Doubtful), "{checks:?}");
    assert!(checks.iter().filter(|check| check.state == State::Unknown).count() >= 6);
    assert!(checks.iter().all(|check| check.warning().is_none()));
}

#[test]
fn codes_are_told_apart() {
    let root = host(&[]);
    let mut codes: Vec<_> = examine(root.path(), &FINE).iter().map(|c| c.code).collect();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), 11);
}

#[test]
fn a_clock_is_slow_by_its_source_or_by_its_cost() {
    let source = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    assert!(!is_doubtful(&[(source, "tsc\n")], "slow-clock"));
    assert!(is_doubtful(&[(source, "hpet\n")], "slow-clock"));
    let root = host(&[]);
    let slow = ClockFacts { overhead_ns: 900, ..FINE };
    assert_eq!(examine(root.path(), &slow)[0].state, State::Doubtful);
}

#[test]
fn fewer_cpus_than_online_are_said() {
    let with = |allowed: &str| {
        let status = format!("Name:\tx\nCpus_allowed_list:\t{allowed}\n");
        let files =
            [("proc/self/status", status.as_str()), ("sys/devices/system/cpu/online", "0-7\n")];
        state(&files, "cpus-withheld")
    };
    assert_eq!(with("0-7").0, State::Good);
    assert_eq!(with("0-1,4"), (State::Doubtful, "3 of 8 online CPUs may be used".into()));
}

#[test]
fn governors_count_unless_the_driver_prefers_performance() {
    let of = |n: u32, name: &str| format!("sys/devices/system/cpu/cpufreq/policy{n}/{name}");
    let (a, b) = (of(0, "scaling_governor"), of(1, "scaling_governor"));
    let preference = of(1, "energy_performance_preference");
    let good = [(a.as_str(), "performance"), (b.as_str(), "performance")];
    assert!(!is_doubtful(&good, "frequency-governor"));
    let mixed = [(a.as_str(), "performance"), (b.as_str(), "powersave\n")];
    let (state_found, found) = state(&mixed, "frequency-governor");
    assert_eq!((state_found, found.as_str()), (State::Doubtful, "powersave on 1 of 2 policies"));
    let preferred = [mixed[0], mixed[1], (preference.as_str(), "performance\n")];
    assert!(!is_doubtful(&preferred, "frequency-governor"));
    // Some guests have the file, and it is empty.
    assert_eq!(state(&[(a.as_str(), "\n")], "frequency-governor").0, State::Unknown);
}

#[test]
fn waiting_tasks_count_more_than_the_load() {
    let quiet = "some avg10=0.30 avg60=0.00 avg300=0.00 total=1\nfull avg10=0.00\n";
    let busy = "some avg10=42.00 avg60=0.00 avg300=0.00 total=1\n";
    let load = ("proc/loadavg", "7.00 1.00 1.00 1/100 5\n");
    let cpus = ("proc/self/status", "Cpus_allowed_list:\t0-3\n");
    assert!(!is_doubtful(&[("proc/pressure/cpu", quiet), load, cpus], "busy-host"));
    assert!(is_doubtful(&[("proc/pressure/cpu", busy), cpus], "busy-host"));
    assert!(is_doubtful(&[load, cpus], "busy-host"));
    assert!(!is_doubtful(&[("proc/loadavg", "1.00 1 1 1/1 5"), cpus], "busy-host"));
}

#[test]
fn the_tightest_quota_of_all_groups_counts() {
    let group = ("proc/self/cgroup", "0::/a/b\n");
    let cpus = ("proc/self/status", "Cpus_allowed_list:\t0-3\n");
    let quota = |own: &str, above: &str| {
        let files =
            [group, cpus, ("sys/fs/cgroup/a/b/cpu.max", own), ("sys/fs/cgroup/a/cpu.max", above)];
        state(&files, "cpu-quota")
    };
    assert_eq!(quota("max 100000\n", "max 100000\n"), (State::Good, "none".into()));
    assert_eq!(quota("max 100000", "150000 100000"), (State::Doubtful, "1.5 CPUs' time".into()));
    assert_eq!(quota("800000 100000", "max 100000").0, State::Good);
    let old = [
        ("proc/self/cgroup", "4:cpu,cpuacct:/x\n"),
        cpus,
        ("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "50000\n"),
        ("sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n"),
    ];
    assert_eq!(state(&old, "cpu-quota").0, State::Doubtful);
}

#[test]
fn guests_and_stolen_time_are_seen() {
    let info = |flags: &'static str| [("proc/cpuinfo", flags)];
    assert!(is_doubtful(&info("flags\t\t: fpu hypervisor lahf_lm\n"), "guest"));
    assert_eq!(state(&info("flags\t\t: fpu lahf_lm\n"), "guest").0, State::Good);
    assert!(is_doubtful(&[("sys/hypervisor/type", "xen\n")], "guest"));
    assert!(is_doubtful(&[("proc/stat", "cpu  50 0 0 45 0 0 0 5 0 0\n")], "stolen-time"));
    assert!(!is_doubtful(&[("proc/stat", "cpu  50 0 0 950 0 0 0 5 0 0\n")], "stolen-time"));
}

#[test]
fn memory_is_checked() {
    let thp = "sys/kernel/mm/transparent_hugepage/enabled";
    assert!(is_doubtful(&[(thp, "always madvise [never]\n")], "thp-off"));
    assert_eq!(state(&[(thp, "always [madvise] never\n")], "thp-off").1, "madvise");
    let balancing = ("proc/sys/kernel/numa_balancing", "1\n");
    let nodes = |list: &'static str| ("sys/devices/system/node/online", list);
    assert!(is_doubtful(&[balancing, nodes("0-3\n")], "numa-balancing"));
    assert!(!is_doubtful(&[balancing, nodes("0\n")], "numa-balancing"));
    let meminfo = "MemTotal: 1000 kB\nMemAvailable: 100 kB\n";
    assert!(is_doubtful(&[("proc/meminfo", meminfo)], "little-memory"));
}

#[test]
fn a_doubtful_check_is_a_warning_with_a_remedy() {
    let root = host(&[("sys/hypervisor/type", "xen")]);
    let checks = examine(root.path(), &FINE);
    let warning = checks.iter().find_map(Check::warning).unwrap();
    assert_eq!(
        (warning.code.as_str(), warning.message.as_str()),
        ("guest", "hypervisor: a guest of xen")
    );
    assert!(!warning.remedy.is_empty());
}
