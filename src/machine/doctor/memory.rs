//! Checks of memory: huge pages, balancing between nodes, and what is free.

use super::{Check, Files};
use crate::host::budget::MemoryBudget;
use crate::host::thp;
use crate::machine::cpulist;
use crate::units::Bytes;

/// All checks of this file.
pub(super) fn checks(files: &Files<'_>, budget: Option<&MemoryBudget>) -> Vec<Check> {
    vec![huge_pages(files), balancing(files), free(budget), limit(budget)]
}

fn huge_pages(files: &Files<'_>) -> Check {
    const WHAT: (&str, &str) = ("thp-off", "transparent huge pages");
    let Some(text) = files.text(thp::ENABLED) else {
        return Check::unknown(WHAT.0, WHAT.1, "this kernel has no setting for them");
    };
    let chosen = text.split(['[', ']']).nth(1).unwrap_or(&text).to_owned();
    let off = chosen == "never";
    let remedy = format!("echo madvise > {} (as root)", thp::ENABLED);
    Check::good(WHAT.0, WHAT.1, chosen).but(off, remedy)
}

/// The kernel moves pages towards threads, and unmaps them to see who uses them.
fn balancing(files: &Files<'_>) -> Check {
    const WHAT: (&str, &str) = ("numa-balancing", "NUMA balancing");
    let Some(text) = files.text("/proc/sys/kernel/numa_balancing") else {
        return Check::unknown(WHAT.0, WHAT.1, "this kernel has no setting for it");
    };
    let nodes = files.text("/sys/devices/system/node/online");
    let nodes = nodes.and_then(|list| cpulist::parse(&list).ok()).map_or(1, |nodes| nodes.len());
    let on = text != "0";
    let found = match (on, nodes) {
        (false, _) => "off".to_owned(),
        (true, 1) => "on, which means nothing on one node".to_owned(),
        (true, _) => format!("on, with {nodes} nodes"),
    };
    let remedy = "sysctl kernel.numa_balancing=0 (as root) for the time of measuring";
    Check::good(WHAT.0, WHAT.1, found).but(on && nodes > 1, remedy)
}

fn free(budget: Option<&MemoryBudget>) -> Check {
    const WHAT: (&str, &str) = ("little-memory", "memory");
    let Some(budget) = budget else {
        return Check::unknown(WHAT.0, WHAT.1, "/proc/meminfo cannot be read");
    };
    let (available, total) = (budget.available_bytes, budget.total_bytes);
    let found = format!("{} of {} available", Bytes(available), Bytes(total));
    let remedy = "end what holds memory: buffers will be small, and may push others into swap";
    Check::good(WHAT.0, WHAT.1, found).but(available < total / 4, remedy)
}

fn limit(budget: Option<&MemoryBudget>) -> Check {
    const WHAT: (&str, &str) = ("memory-limit", "control group");
    let Some(limit) = budget.and_then(|budget| budget.cgroup_limit_bytes) else {
        return Check::good(WHAT.0, WHAT.1, "no memory limit");
    };
    let room = budget.map_or(0, MemoryBudget::usable_bytes);
    let available = budget.map_or(0, |budget| budget.available_bytes);
    let found = format!("limit {}, room for {}", Bytes(limit), Bytes(room));
    Check::good(WHAT.0, WHAT.1, found)
        .but(room < available / 2, "raise the group's memory limit for larger buffers")
}
