//! The live benchmark: this kernel's own faults on memory that is partly there.
//!
//! As in the discussion: 1 GiB, the last page of every 32 KiB touched first, then all
//! orders but 2 MiB enabled, then every page touched; only that last loop is timed. The
//! orders are enabled for memory that asks for them, so that other programs see little
//! of it, and a [`SettingGuard`] puts everything back.

use super::scan::{Algorithm, SET, sweep};
use crate::host::region::{HugePages, Region};
use crate::host::setting::{self, SettingError, SettingGuard};
use crate::host::thp::{self, Size};
use crate::lab::clear_huge::not_restored;
use crate::lab::{Lab, LabError, Samples};
use crate::record::lab::{Finding, LabPoint, LabRecord, factors};
use crate::units::{Bytes, MIB};
use crate::warning::Warning;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

const PAGE_BYTES: usize = 4096;
/// Pages of a set whose last one is touched first: 32 KiB.
const SET_PAGES: usize = 8;
/// Without `--runs`, no round begins later than this.
const LIMIT_S: u64 = 12;
/// Pages touched before anybody is asked whether to stop: outside timed loops only.
const BATCH_BYTES: usize = 64 << 20;

/// Runs the part, or says in a warning why not; whether it was finished.
pub(super) fn part(
    lab: &Lab<'_>,
    bytes: u64,
    allowed: bool,
    record: &mut LabRecord,
) -> Result<bool, LabError> {
    let sizes = thp::sizes(Path::new("/"));
    if let Some(why) = refusal(&sizes, allowed) {
        record.head.warnings.push(Warning::new(
            "no-live-part",
            format!("the live part is left out: {why}"),
            "it needs Linux 6.8 or later with transparent huge pages, and root, to write \
             /sys/kernel/mm/transparent_hugepage/hugepages-*kB/enabled for a while",
        ));
        return Ok(true);
    }
    lab.check_memory("the live part", bytes, "--live-size")?;
    let mut live = Live { lab, sizes, bytes: usize::try_from(bytes).unwrap_or(usize::MAX) };
    let guard = SettingGuard::save(&live.paths()).map_err(not_possible)?;
    let measured = live.measure(&guard, record);
    for path in guard.restore() {
        record.head.warnings.push(not_restored(&path));
    }
    measured
}

fn not_possible(error: SettingError) -> LabError {
    LabError::NotSupported(error.to_string())
}

/// Why the live part cannot be run, if it cannot.
fn refusal(sizes: &[Size], allowed: bool) -> Option<String> {
    if !allowed {
        return Some("--no-settings forbids to change settings".into());
    }
    if sizes.is_empty() {
        return Some("this kernel has no settings for sizes of huge pages".into());
    }
    let locked = sizes.iter().find(|size| !setting::may_write(&size.enabled))?;
    Some(format!("{} may not be written", locked.enabled.display()))
}

struct Live<'l> {
    lab: &'l Lab<'l>,
    sizes: Vec<Size>,
    bytes: usize,
}

impl Live<'_> {
    fn paths(&self) -> Vec<PathBuf> {
        self.sizes.iter().map(|size| size.enabled.clone()).collect()
    }

    /// All sizes to `never`, or those below 2 MiB to `madvise`.
    fn enable(&self, guard: &SettingGuard, on: bool) -> Result<(), LabError> {
        for size in &self.sizes {
            let value = if on && size.bytes < 2 * MIB { "madvise" } else { "never" };
            guard.set(&size.enabled, value).map_err(not_possible)?;
        }
        Ok(())
    }

    fn measure(&mut self, guard: &SettingGuard, record: &mut LabRecord) -> Result<bool, LabError> {
        let mut counted = vec![0; self.sizes.len()];
        // Without and with the orders: what they change is what is wanted.
        let cases = [("disabled", false), ("enabled", true)];
        let pages = (self.bytes / PAGE_BYTES) as u64;
        let point = |name: &str, times: &[u64]| {
            let factors = factors([("orders", name.into())]);
            LabPoint::measured("live", factors, ("page", pages), times, self.lab.seed)
        };
        let so_far = |samples: &Samples| {
            let mut record = record.clone();
            let both = cases.iter().zip(&samples.of_case);
            record.points.extend(both.filter_map(|((name, _), times)| point(name, times)));
            record
        };
        let run_one = |at: usize| {
            let before = self.counts();
            let ns = self.lab.undisturbed(|| self.run_one(guard, cases[at].1))?;
            if cases[at].1 {
                let after = self.counts();
                counted = after.iter().zip(&before).map(|(a, b)| a.saturating_sub(*b)).collect();
            }
            Ok::<_, LabError>(ns)
        };
        let sizes = (cases.len(), self.lab.runs, LIMIT_S);
        let samples = self.lab.rounds("live", sizes, run_one, so_far)?;
        for ((name, on), times) in cases.iter().zip(&samples.of_case) {
            record.points.extend(point(name, times).map(|mut point| {
                for (size, count) in self.sizes.iter().zip(&counted).filter(|_| *on) {
                    point.counts.insert(format!("faults_of_{}_kib", size.bytes >> 10), *count);
                }
                point
            }));
        }
        if !samples.of_case[1].is_empty() {
            record.findings.extend(self.confirm(&counted));
        }
        Ok(samples.complete)
    }

    fn counts(&self) -> Vec<u64> {
        self.sizes.iter().map(|size| size.fault_allocs().unwrap_or(0)).collect()
    }

    /// One sample: first the last page of every set, then every page, timed.
    fn run_one(&self, guard: &SettingGuard, on: bool) -> Result<(u64, u64), LabError> {
        self.enable(guard, false)?;
        let mut region = Region::map(self.bytes, HugePages::Unasked)?;
        let set_bytes = SET_PAGES * PAGE_BYTES;
        for start in (0..self.bytes).step_by(BATCH_BYTES) {
            if (self.lab.stop)() {
                return Err(crate::host::HostError::Interrupted.into());
            }
            let first = start + set_bytes - PAGE_BYTES;
            region.touch(first..start + BATCH_BYTES, set_bytes, 0x11);
        }
        self.enable(guard, on)?;
        region.advise(HugePages::Asked);
        let (time, ()) = self.lab.timed(|| region.touch(0..self.bytes, PAGE_BYTES, 0x22));
        if !region.holds(PAGE_BYTES, 0x22) {
            let found = "a page does not hold its byte and zeroes".to_owned();
            return Err(LabError::WrongData { what: "the live part".into(), found });
        }
        Ok(time)
    }

    /// Whether the counters say what the algorithms choose.
    fn confirm(&self, counted: &[u64]) -> Option<Finding> {
        let orders =
            self.sizes.iter().filter(|size| size.bytes < 2 * MIB).fold(0, |orders, size| {
                orders | 1u32.checked_shl((size.bytes / PAGE_BYTES as u64).ilog2()).unwrap_or(0)
            });
        let pages = self.bytes / PAGE_BYTES;
        let last = |at: usize| at % SET_PAGES == SET_PAGES - 1;
        let ptes: Vec<AtomicU64> =
            (0..pages).map(|at| AtomicU64::new(if last(at) { SET } else { 0 })).collect();
        let chosen = sweep(&ptes, orders & !0b11, Algorithm::Ranges);
        let mut same = true;
        let mut parts = Vec::new();
        for (size, count) in self.sizes.iter().zip(counted) {
            let order = (size.bytes / PAGE_BYTES as u64).ilog2() as usize;
            let wanted = chosen.get(order).copied().unwrap_or(0);
            // Other programs may have faulted meanwhile.
            same &= count.abs_diff(wanted) <= wanted / 100 + 16;
            if *count > 0 || wanted > 0 {
                parts.push(format!("{count} of {} ({wanted} chosen here)", Bytes(size.bytes)));
            }
        }
        let verdict = if same { "confirm" } else { "do NOT confirm" };
        let code = if same { "counters-confirm" } else { "counters-differ" };
        let text = format!("the kernel's counters {verdict} the orders: {}", parts.join(", "));
        Some(Finding { code: code.into(), text, value: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said() {
        assert!(refusal(&[], true).is_some_and(|why| why.contains("no settings")));
        assert!(refusal(&[], false).is_some_and(|why| why.contains("--no-settings")));
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("sys/kernel/mm/transparent_hugepage/hugepages-64kB");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("enabled"), "always [never]").unwrap();
        let sizes = thp::sizes(root.path());
        assert_eq!(refusal(&sizes, true), None);
        // Writing fails even for root.
        std::fs::remove_file(folder.join("enabled")).unwrap();
        std::fs::create_dir(folder.join("enabled")).unwrap();
        let why = refusal(&sizes, true).unwrap();
        assert!(why.contains("hugepages-64kB/enabled may not be written"), "{why}");
    }
}
