//! Checks of the clock, the CPUs and what else runs on them.

use super::{Check, Files};
use crate::host::cgroup::{self, Version};
use crate::host::clock::ClockFacts;
use crate::machine::cpulist;
use std::fs;
use std::path::Path;

/// Clock sources that are read without leaving the processor or the process, one for
/// each architecture and hypervisor.
const GOOD_SOURCES: [&str; 8] = [
    "tsc",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
    "arch_sys_counter",
    "timebase",
    "tod",
    "riscv_clocksource",
    "xen",
];
/// A reading that costs more than this shows in short phases.
const SLOW_READING_NS: u64 = 200;
/// A coarser clock cannot tell phases of a millisecond apart.
const COARSE_NS: u64 = 10_000;
/// Share of the last ten seconds in which something waited for a CPU, in percent.
const BUSY_PERCENT: f64 = 10.0;
/// Runnable tasks per allowed CPU, where waiting is not counted.
const BUSY_LOAD: f64 = 0.5;
/// Time that the hypervisor gave to others since boot, in percent.
const STOLEN_PERCENT: f64 = 1.0;

/// All checks of this file.
pub(super) fn checks(files: &Files<'_>, clock: &ClockFacts) -> Vec<Check> {
    let allowed = allowed_cpus(files);
    vec![
        self::clock(files, clock),
        affinity(files, allowed),
        governor(files),
        busy(files, allowed),
        quota(files, allowed),
        hypervisor(files),
        stolen(files),
    ]
}

fn clock(files: &Files<'_>, clock: &ClockFacts) -> Check {
    let source = files.text("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let named = source.as_deref().unwrap_or("source unknown");
    let found =
        format!("{named}, {} ns a reading, steps of {} ns", clock.overhead_ns, clock.resolution_ns);
    let slow = clock.overhead_ns > SLOW_READING_NS || clock.resolution_ns > COARSE_NS;
    let strange = source.as_deref().is_some_and(|source| !GOOD_SOURCES.contains(&source));
    Check::good("slow-clock", "clock", found).but(
        slow || strange,
        "boot with a faster clock source if the machine has one (available_clocksource lists \
         them), or use a larger --buffer",
    )
}

fn allowed_cpus(files: &Files<'_>) -> Option<usize> {
    let list = files.field("/proc/self/status", "Cpus_allowed_list")?;
    Some(cpulist::parse(&list).ok()?.len())
}

fn affinity(files: &Files<'_>, allowed: Option<usize>) -> Check {
    const WHAT: (&str, &str) = ("cpus-withheld", "affinity");
    let online = files.text("/sys/devices/system/cpu/online");
    let online = online.and_then(|list| cpulist::parse(&list).ok()).map(|cpus| cpus.len());
    let (Some(online), Some(allowed)) = (online, allowed) else {
        return Check::unknown(WHAT.0, WHAT.1, "which CPUs are online or allowed");
    };
    let found = format!("{allowed} of {online} online CPUs may be used");
    Check::good(WHAT.0, WHAT.1, found).but(
        allowed < online,
        "start the program without taskset and cpuset, or read its figures as those of fewer CPUs",
    )
}

fn governor(files: &Files<'_>) -> Check {
    const WHAT: (&str, &str) = ("frequency-governor", "frequency governor");
    let policies = files.folders("/sys/devices/system/cpu/cpufreq");
    let text = |folder: &Path, name: &str| {
        fs::read_to_string(folder.join(name)).ok().map(|text| text.trim().to_owned())
    };
    let mut slow = Vec::new();
    let mut known = 0;
    for policy in &policies {
        let Some(governor) = text(policy, "scaling_governor").filter(|text| !text.is_empty())
        else {
            continue;
        };
        known += 1;
        // Drivers that choose by themselves go by this preference instead.
        let preference = text(policy, "energy_performance_preference");
        if governor != "performance" && preference.as_deref() != Some("performance") {
            slow.push(governor);
        }
    }
    if known == 0 {
        return Check::unknown(WHAT.0, WHAT.1, "none to be seen, as in most guests");
    }
    let found = match slow.first() {
        None => format!("performance on all {known} policies"),
        Some(first) => format!("{first} on {} of {known} policies", slow.len()),
    };
    let remedy = "cpupower frequency-set -g performance (as root) for the time of measuring";
    Check::good(WHAT.0, WHAT.1, found).but(!slow.is_empty(), remedy)
}

/// Waiting tasks of the last ten seconds where the kernel counts them, else the load.
fn busy(files: &Files<'_>, allowed: Option<usize>) -> Check {
    const WHAT: (&str, &str) = ("busy-host", "load");
    let remedy = "wait until other work has ended, or trust ratios more than times";
    let pressure = files.text("/proc/pressure/cpu").and_then(|text| {
        let some = text.lines().find(|line| line.starts_with("some "))?;
        let value = some.split_whitespace().find_map(|word| word.strip_prefix("avg10="))?;
        value.parse::<f64>().ok()
    });
    if let Some(percent) = pressure {
        let found = format!("tasks waited for a CPU in {percent:.0} % of the last ten seconds");
        return Check::good(WHAT.0, WHAT.1, found).but(percent > BUSY_PERCENT, remedy);
    }
    let load = files.text("/proc/loadavg");
    let load = load.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    let (Some(load), Some(cpus)) = (load, allowed) else {
        return Check::unknown(WHAT.0, WHAT.1, "neither /proc/pressure/cpu nor /proc/loadavg");
    };
    let found = format!("{load:.2} tasks on {cpus} CPUs in the last minute");
    Check::good(WHAT.0, WHAT.1, found).but(load > BUSY_LOAD * cpus as f64, remedy)
}

/// CPU time that a control group may use.
fn quota(files: &Files<'_>, allowed: Option<usize>) -> Check {
    const WHAT: (&str, &str) = ("cpu-quota", "CPU quota");
    let folders = cgroup::folders(files.root, "cpu").into_iter();
    let least = folders.filter_map(|(version, folder)| quota_of(version, &folder));
    let Some(cpus) = least.reduce(f64::min) else { return Check::good(WHAT.0, WHAT.1, "none") };
    let found = format!("{cpus:.1} CPUs' time");
    let enough = allowed.is_none_or(|allowed| cpus >= allowed as f64);
    let remedy = "raise the control group's cpu.max: the kernel stops all threads when it is used \
                  up";
    Check::good(WHAT.0, WHAT.1, found).but(!enough, remedy)
}

fn quota_of(version: Version, folder: &Path) -> Option<f64> {
    let text = |name: &str| fs::read_to_string(folder.join(name)).ok();
    match version {
        Version::V1 => share(&text("cpu.cfs_quota_us")?, &text("cpu.cfs_period_us")?),
        Version::V2 => {
            let both = text("cpu.max")?;
            let (quota, period) = both.split_once(' ')?;
            share(quota, period)
        }
    }
}

/// `max` and -1 are no limit.
fn share(quota: &str, period: &str) -> Option<f64> {
    let (quota, period): (f64, f64) = (quota.trim().parse().ok()?, period.trim().parse().ok()?);
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

fn hypervisor(files: &Files<'_>) -> Check {
    const WHAT: (&str, &str) = ("guest", "hypervisor");
    let flagged = files
        .field("/proc/cpuinfo", "flags")
        .map(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    let named = files
        .text("/sys/hypervisor/type")
        .filter(|name| !name.is_empty())
        .or_else(|| files.text("/proc/device-tree/hypervisor/compatible"))
        .or_else(|| files.field("/proc/sysinfo", "VM00 Control Program"));
    let remedy = "measure on the machine itself where times shall be the processor's; ratios of \
                  stores hold as a rule";
    match (named, flagged) {
        (Some(name), _) => {
            let name = name.trim_matches('\0').to_owned();
            Check::good(WHAT.0, WHAT.1, format!("a guest of {name}")).but(true, remedy)
        }
        (None, Some(true)) => Check::good(WHAT.0, WHAT.1, "a guest").but(true, remedy),
        (None, Some(false)) => Check::good(WHAT.0, WHAT.1, "none"),
        (None, None) => Check::unknown(WHAT.0, WHAT.1, "no sign of one"),
    }
}

/// Time in which the hypervisor ran something else, since boot.
fn stolen(files: &Files<'_>) -> Check {
    const WHAT: (&str, &str) = ("stolen-time", "stolen time");
    const STEAL: usize = 7;
    let text = files.text("/proc/stat").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "));
    let ticks: Vec<f64> =
        line.unwrap_or_default().split_whitespace().filter_map(|n| n.parse().ok()).collect();
    let all: f64 = ticks.iter().take(STEAL + 1).sum();
    let Some(&stolen) = ticks.get(STEAL).filter(|_| all > 0.0) else {
        return Check::unknown(WHAT.0, WHAT.1, "/proc/stat does not say");
    };
    let percent = 100.0 * stolen / all;
    Check::good(WHAT.0, WHAT.1, format!("{percent:.1} % of the time since boot"))
        .but(percent > STOLEN_PERCENT, "measure when neighbours on the same machine are idle")
}
