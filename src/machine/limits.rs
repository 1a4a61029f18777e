//! How much of this host this process may use.
//!
//! [`Limits`] is plain data for `machine` to show beside the machine. [`read`]
//! fills in the CPUs; the caller, who has the memory budget, fills in the rest.

use super::{cpulist, sysfs};
use std::path::Path;

/// What this process may use of the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// CPUs that the affinity mask and the cpuset allow; empty where unknown.
    pub allowed_cpus: Vec<u32>,
    /// CPUs that are online; empty where unknown.
    pub online_cpus: Vec<u32>,
    /// `MemAvailable`, in bytes.
    pub mem_available_bytes: Option<u64>,
    /// The tightest memory limit of the control groups, in bytes.
    pub cgroup_limit_bytes: Option<u64>,
}

/// Reads the CPU limits from the files under `root`; leaves memory unknown.
///
/// `Cpus_allowed_list` of `/proc/self/status` already is the intersection of
/// `sched_setaffinity` and the cpuset.
pub fn read(root: &Path) -> Limits {
    let list = |text: &str| cpulist::parse(text).unwrap_or_default();
    let status = sysfs::read(root, "proc/self/status").unwrap_or_default();
    let allowed = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:"));
    let online = sysfs::read(root, "sys/devices/system/cpu/online").unwrap_or_default();
    Limits {
        allowed_cpus: list(allowed.unwrap_or("")),
        online_cpus: list(&online),
        ..Limits::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::sysfs::tests::put;
    use super::*;

    #[test]
    fn cpu_limits_are_read_and_memory_stays_unknown() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path()), Limits::default());
        let status = "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t0-1,7\nMems_allowed:\t1\n";
        put(&dir, "proc/self/status", status);
        put(&dir, "sys/devices/system/cpu/online", "0-7\n");
        let limits = read(dir.path());
        assert_eq!(limits.allowed_cpus, [0, 1, 7]);
        assert_eq!(limits.online_cpus.len(), 8);
        assert_eq!(limits.mem_available_bytes, None);
    }
}
