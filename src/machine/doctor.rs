//! Is this host fit for measuring? [`examine`] reads, changes nothing, and returns
//! [`Check`]s.
//!
//! What cannot be read is unknown, and unknown is not bad. Every doubtful check is a
//! [`Warning`] with a code and a remedy, which records of measurements carry too. [`cpu`]
//! has checks of processors and time, [`memory`] those of memory. Files are read below a
//! root that is `/` outside tests.

mod cpu;
mod memory;

use crate::host::budget::MemoryBudget;
use crate::host::clock::ClockFacts;
use crate::warning::Warning;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// What a check came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Nothing against measuring.
    Good,
    /// Figures may be worse or less steady than the hardware's.
    Doubtful,
    /// It cannot be read here; that is not bad.
    Unknown,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Stable, in kebab case: the code of the warning if it is doubtful.
    pub code: &'static str,
    /// What was looked at, for people.
    pub title: &'static str,
    /// What it came to.
    pub state: State,
    /// What was found.
    pub found: String,
    /// What to do if it is doubtful; empty otherwise.
    pub remedy: String,
}

impl Check {
    fn good(code: &'static str, title: &'static str, found: impl Into<String>) -> Self {
        Self { code, title, state: State::Good, found: found.into(), remedy: String::new() }
    }

    fn unknown(code: &'static str, title: &'static str, found: impl Into<String>) -> Self {
        Self { state: State::Unknown, ..Self::good(code, title, found) }
    }

    /// Makes it doubtful if `doubtful`.
    fn but(self, doubtful: bool, remedy: impl Into<String>) -> Self {
        match doubtful {
            true => Self { state: State::Doubtful, remedy: remedy.into(), ..self },
            false => self,
        }
    }

    /// What records carry of it.
    pub fn warning(&self) -> Option<Warning> {
        (self.state == State::Doubtful).then(|| {
            Warning::new(self.code, format!("{}: {}", self.title, self.found), &self.remedy)
        })
    }
}

/// Looks at everything, in a fixed order.
pub fn examine(root: &Path, clock: &ClockFacts) -> Vec<Check> {
    let files = Files { root };
    let budget = MemoryBudget::read(root).ok();
    let mut out = cpu::checks(&files, clock);
    out.extend(memory::checks(&files, budget.as_ref()));
    out
}

/// What records of measurements on this host carry.
pub fn warnings(clock: &ClockFacts) -> Vec<Warning> {
    examine(Path::new("/"), clock).iter().filter_map(Check::warning).collect()
}

/// Files below a root.
struct Files<'r> {
    root: &'r Path,
}

impl Files<'_> {
    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The trimmed text of a file; `None` if it cannot be read.
    fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.path(path)).ok().map(|text| text.trim().to_owned())
    }

    /// The value of `name` in lines `name: value`.
    fn field(&self, path: &str, name: &str) -> Option<String> {
        let text = self.text(path)?;
        let value = |line: &str| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        };
        text.lines().find_map(value)
    }

    /// Folders of a folder, in order of their names.
    fn folders(&self, path: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path(path)).into_iter().flatten().flatten();
        let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        found.sort();
        found
    }
}

#[cfg(test)]
#[path = "doctor/tests.rs"]
mod tests;
