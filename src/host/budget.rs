//! How much memory a run may take, from text files below a root.
//!
//! [`MemoryBudget::read`] looks at `/proc/meminfo` and at the control groups of this
//! process, versions 1 and 2. Tests give it a folder instead of `/`.

use super::cgroup::{self, Version};
use std::fs;
use std::path::{Path, PathBuf};

/// Why the memory of a machine could not be read.
#[derive(Debug, thiserror::Error)]
pub enum BudgetError {
    /// The file could not be read.
    #[error("cannot read {}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// The file lacks a line that every Linux writes.
    #[error("{} has no line \"{field}:\" with a number of kB", .path.display())]
    Field {
        /// The file.
        path: PathBuf,
        /// The field that is missing.
        field: &'static str,
    },
}

/// Memory of the machine and of the control group with the least room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBudget {
    /// All memory that the kernel manages (`MemTotal`).
    pub total_bytes: u64,
    /// What can be had without swapping (`MemAvailable`).
    pub available_bytes: u64,
    /// The limit of the control group that leaves the least room, if any has one.
    pub cgroup_limit_bytes: Option<u64>,
    /// What that control group uses, page cache included.
    pub cgroup_used_bytes: Option<u64>,
    /// Page cache in it that the kernel would drop first (`inactive_file`).
    pub cgroup_reclaimable_bytes: Option<u64>,
}

/// One control group with a limit.
#[derive(Clone, Copy, Debug)]
struct Group {
    limit_bytes: u64,
    used_bytes: u64,
    reclaimable_bytes: u64,
}

/// The file names of a version of control groups.
struct Files {
    limits: &'static [&'static str],
    used: &'static str,
    reclaimable: &'static [&'static str],
}

/// Above `memory.high` the kernel slows a process down instead of ending it, which
/// would spoil a measurement: a limit as well.
const V2: Files = Files {
    limits: &["memory.max", "memory.high"],
    used: "memory.current",
    reclaimable: &["inactive_file"],
};

/// Version 1 counts descendants only in the `total_` fields.
const V1: Files = Files {
    limits: &["memory.limit_in_bytes"],
    used: "memory.usage_in_bytes",
    reclaimable: &["total_inactive_file", "inactive_file"],
};

/// Version 1 writes "no limit" as the largest number of pages, in bytes.
const UNLIMITED_BYTES: u64 = 1 << 62;

impl MemoryBudget {
    /// Reads `<root>/proc/meminfo`, `<root>/proc/self/cgroup` and
    /// `<root>/sys/fs/cgroup`; `root` is `/` outside tests. Missing control groups
    /// are no error.
    ///
    /// # Errors
    /// [`BudgetError`] when meminfo is missing or has no `MemTotal`.
    pub fn read(root: &Path) -> Result<Self, BudgetError> {
        let path = root.join("proc/meminfo");
        let text = match fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(source) => return Err(BudgetError::Read { path, source }),
        };
        let Some(total_bytes) = meminfo_bytes(&text, "MemTotal") else {
            return Err(BudgetError::Field { path, field: "MemTotal" });
        };
        // Before v3.14 there is no estimate; what is free is the safe one.
        let Some(available_bytes) =
            meminfo_bytes(&text, "MemAvailable").or_else(|| meminfo_bytes(&text, "MemFree"))
        else {
            return Err(BudgetError::Field { path, field: "MemAvailable" });
        };
        let group = tightest_group(root);
        Ok(Self {
            total_bytes,
            available_bytes,
            cgroup_limit_bytes: group.map(|group| group.limit_bytes),
            cgroup_used_bytes: group.map(|group| group.used_bytes),
            cgroup_reclaimable_bytes: group.map(|group| group.reclaimable_bytes),
        })
    }

    /// What can be taken without swapping and without hitting a limit.
    pub fn usable_bytes(&self) -> u64 {
        let Some(limit_bytes) = self.cgroup_limit_bytes else { return self.available_bytes };
        let used_bytes = self.cgroup_used_bytes.unwrap_or(0);
        let reclaimable_bytes = self.cgroup_reclaimable_bytes.unwrap_or(0);
        let group = Group { limit_bytes, used_bytes, reclaimable_bytes };
        self.available_bytes.min(group.room_bytes())
    }
}

impl Group {
    /// What may still be allocated in it.
    fn room_bytes(&self) -> u64 {
        let held_bytes = self.used_bytes.saturating_sub(self.reclaimable_bytes);
        self.limit_bytes.saturating_sub(held_bytes)
    }

    /// The group of this folder, or `None` if it has no limit.
    fn read(folder: &Path, files: &Files) -> Option<Self> {
        let limits = files.limits.iter().filter_map(|name| number_in(&folder.join(name)));
        let limit_bytes = limits.filter(|&bytes| bytes < UNLIMITED_BYTES).min()?;
        let used_bytes = number_in(&folder.join(files.used)).unwrap_or(0);
        let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
        let field = |name: &&str| stat.lines().find_map(|line| stat_field(line, name));
        let reclaimable_bytes = files.reclaimable.iter().find_map(field).unwrap_or(0);
        Some(Self { limit_bytes, used_bytes, reclaimable_bytes })
    }
}

/// The group with the least room among those of this process and all above them.
fn tightest_group(root: &Path) -> Option<Group> {
    let folders = cgroup::folders(root, "memory").into_iter();
    let groups = folders.filter_map(|(version, folder)| match version {
        Version::V1 => Group::read(&folder, &V1),
        Version::V2 => Group::read(&folder, &V2),
    });
    groups.min_by_key(Group::room_bytes)
}

/// The number that is all of a file; `max`, negative and other texts are none.
fn number_in(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The value of `name` in a line `name value` of memory.stat.
fn stat_field(line: &str, name: &str) -> Option<u64> {
    line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok()
}

/// The value of a field `Name:   123 kB` of meminfo, in bytes.
fn meminfo_bytes(text: &str, field: &str) -> Option<u64> {
    let value = |line: &str| line.strip_prefix(field)?.strip_prefix(':').map(str::to_owned);
    let value = text.lines().find_map(value)?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
#[path = "budget_tests.rs"]
mod tests;
