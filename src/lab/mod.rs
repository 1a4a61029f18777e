//! Small real experiments beside the boot.
//!
//! Each measures on this host what a discussion on the kernel's list argued about, and
//! puts the published figures beside: [`prefetch`] (does zeroing fetch for the field
//! writes), [`clear_huge`] (how to clear a huge page), [`mremap`] (moving page tables
//! instead of entries), [`pte_scan`] (finding empty ranges of entries). A [`Lab`] holds
//! what they share: host, seed, interruption; [`Lab::rounds`] interleaves runs. Uses
//! `host`, `stats` and `record` alone.

pub mod clear_huge;
mod limits;
pub mod mremap;
pub mod prefetch;
pub mod pte_scan;
pub mod published;
mod rounds;
pub mod team;

pub use limits::Limits;
pub use rounds::Samples;

use crate::host::budget::MemoryBudget;
use crate::host::clock::Clock;
use crate::host::error::HostError;
use crate::host::line::Line;
use crate::host::store::{Store, StoreError, StoreKind};
use crate::host::topology::{HostNode, HostTopology};
use crate::host::{Arena, budget, zeroes};
use crate::progress::{Progress, Unit};
use crate::record::file::FileError;
use crate::record::keeper::Keeper;
use crate::record::lab::{CacheFacts, Factors, LabRecord};
use crate::record::{Head, HostFacts};
use crate::units::{Bytes, GIB, MIB};
use crate::warning::Warning;
use std::convert::Infallible;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

/// Why an experiment ended without a record.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The options cannot be met.
    #[error("{0}")]
    Usage(String),
    /// More memory is needed than there is.
    #[error(
        "{what} needs {} and {} are free; use a smaller {flag}",
        Bytes(*.needed_bytes), Bytes(*.usable_bytes)
    )]
    NoMemory {
        /// The experiment or part.
        what: &'static str,
        /// Bytes that it would take.
        needed_bytes: u64,
        /// Bytes that may be taken.
        usable_bytes: u64,
        /// The option that makes it smaller.
        flag: &'static str,
    },
    /// This kernel or processor cannot do it.
    #[error("{0}")]
    NotSupported(String),
    /// Memory does not hold what it should.
    #[error("wrong data after {what}: {found}")]
    WrongData {
        /// What was executed.
        what: String,
        /// Where and what was found, and what was expected.
        found: String,
    },
    /// The host layer failed.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A store is not to be had.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The record could not be saved.
    #[error(transparent)]
    File(#[from] FileError),
    /// The memory of the machine could not be read.
    #[error(transparent)]
    Budget(#[from] budget::BudgetError),
}

impl LabError {
    /// Whether the user ended the work.
    pub const fn is_interrupt(&self) -> bool {
        matches!(self, Self::Host(HostError::Interrupted))
    }
}

/// What all experiments share.
#[derive(Clone, Copy)]
pub struct Lab<'l> {
    /// For pinning and binding.
    pub topo: &'l HostTopology,
    /// For timing.
    pub clock: &'l Clock,
    /// How much memory may be used.
    pub budget: &'l MemoryBudget,
    /// The host, for the record.
    pub host: &'l HostFacts,
    /// Its caches, smallest first.
    pub caches: &'l [CacheFacts],
    /// The command line, for the record.
    pub argv: &'l [String],
    /// Samples per point.
    pub runs: u32,
    /// Whether nobody asked for that number: then there may be fewer on a slow host.
    pub runs_are_default: bool,
    /// Seed of everything random.
    pub seed: u64,
    /// Told how far the work is.
    pub progress: &'l dyn Progress,
    /// Told which parts their time limits ended.
    pub limits: &'l Limits,
    /// What is doubtful about this host, for the record.
    pub doubts: &'l [Warning],
    /// Asked between samples; `true` ends the work.
    pub stop: &'l (dyn Fn() -> bool + Sync),
    /// Saves the record while it grows.
    pub keep: Option<&'l Mutex<Keeper>>,
}

impl Lab<'_> {
    /// A record without figures.
    pub fn record(&self, experiment: &str) -> LabRecord {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        LabRecord {
            head: Head::unfinished(format!("pageinit/lab-{experiment}/1"), self.argv)
                .with_warnings(self.doubts.to_vec()),
            started_unix_s: since_1970.map_or(0, |d| d.as_secs()),
            seed: self.seed,
            runs: self.runs,
            host: self.host.clone(),
            caches: self.caches.to_vec(),
            settings: Factors::new(),
            points: Vec::new(),
            derived: Vec::new(),
            findings: Vec::new(),
            published: Vec::new(),
        }
    }

    /// The node that experiments run on: the first with CPUs and memory.
    ///
    /// # Errors
    /// When there is none.
    pub fn node(&self) -> Result<HostNode, LabError> {
        let mut nodes: Vec<HostNode> = self.topo.nodes();
        nodes.retain(|node| !node.cpus.is_empty());
        let with_memory = nodes.iter().find(|node| node.local_bytes > 0).cloned();
        with_memory
            .or_else(|| nodes.into_iter().next())
            .ok_or_else(|| LabError::NotSupported("no node has a CPU to run on".into()))
    }

    /// Memory for an experiment, faulted in on its node.
    ///
    /// # Errors
    /// [`LabError::NoMemory`], an interruption, and what the arena says.
    pub fn arena(
        &self,
        what: &'static str,
        bytes: u64,
        flag: &'static str,
    ) -> Result<Arena, LabError> {
        self.check_memory(what, bytes, flag)?;
        let node = self.node()?;
        let lines = usize::try_from(bytes / 64).unwrap_or(usize::MAX);
        let mut arena = match Arena::map_on(self.topo, lines, node.nid) {
            Err(HostError::NodeFull { needed_bytes, free_bytes: usable_bytes, .. }) => {
                return Err(LabError::NoMemory { what, needed_bytes, usable_bytes, flag });
            }
            mapped => mapped?,
        };
        self.progress.begin("first touch", bytes, Unit::Bytes);
        let done = |bytes| self.progress.advance(bytes);
        let touched = arena.fault_in(self.topo, &node.cpus, &done, self.stop);
        self.progress.end();
        touched?;
        Ok(arena)
    }

    /// Does `work` on a thread that is pinned to the first CPU of [`Lab::node`].
    ///
    /// # Errors
    /// When there is no such CPU or no thread can be started.
    pub(crate) fn pinned<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, LabError> + Send,
    ) -> Result<T, LabError> {
        let cpu = self.node()?.cpus.first().copied().ok_or(HostError::NoCpus)?;
        let pinned = || {
            self.topo.pin_thread(cpu)?;
            work()
        };
        std::thread::scope(|scope| {
            let started = std::thread::Builder::new().spawn_scoped(scope, pinned);
            let ended = started.map_err(HostError::Thread)?.join();
            ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Refuses what does not fit into nine tenths of what is free.
    ///
    /// # Errors
    /// [`LabError::NoMemory`].
    pub fn check_memory(
        &self,
        what: &'static str,
        needed_bytes: u64,
        flag: &'static str,
    ) -> Result<(), LabError> {
        let usable_bytes = self.budget.usable_bytes() / 10 * 9;
        if needed_bytes > usable_bytes {
            return Err(LabError::NoMemory { what, needed_bytes, usable_bytes, flag });
        }
        Ok(())
    }

    /// The largest cache in bytes; 32 MiB where none is known.
    pub fn last_level_bytes(&self) -> u64 {
        self.caches.iter().map(|cache| cache.bytes).max().unwrap_or(32 << 20)
    }
}

/// Bytes of a buffer that caches of `cache_bytes` do not hold: twice as much, at least
/// 64 MiB, but at most a quarter of `usable_bytes`, in whole huge pages; may be 0.
pub fn beyond_caches_bytes(cache_bytes: u64, usable_bytes: u64) -> u64 {
    const HUGE_BYTES: u64 = 2 * MIB;
    let whole = |bytes: u64| bytes / HUGE_BYTES * HUGE_BYTES;
    let wanted = cache_bytes.saturating_mul(2).saturating_add(HUGE_BYTES - 1).max(64 * MIB);
    whole(wanted).min(whole(usable_bytes / 4))
}

/// A size as a flag takes it, without rounding.
fn exact(bytes: u64) -> String {
    let units = [("GiB", GIB), ("MiB", MIB), ("KiB", 1 << 10)];
    let unit = units.into_iter().find(|(_, unit)| bytes > 0 && bytes.is_multiple_of(*unit));
    unit.map_or_else(|| format!("{bytes}B"), |(name, unit)| format!("{}{name}", bytes / unit))
}

/// Checks that a size is a positive multiple of `unit_bytes`.
///
/// # Errors
/// [`LabError::Usage`], naming the flag.
pub fn check_multiple(flag: &str, bytes: u64, unit_bytes: u64) -> Result<(), LabError> {
    if bytes == 0 || !bytes.is_multiple_of(unit_bytes) {
        let below = bytes / unit_bytes * unit_bytes;
        let near = bytes.checked_next_multiple_of(unit_bytes).unwrap_or(below);
        return Err(LabError::Usage(format!(
            "{flag} {} is not a multiple of {}; write for example {}",
            exact(bytes),
            exact(unit_bytes),
            exact(near.max(unit_bytes)),
        )));
    }
    Ok(())
}

/// What is said where this processor fills `lines` with zeroes notably faster than with
/// other data.
pub(crate) fn zeroes_faster(clock: &Clock, lines: &mut [Line]) -> Option<Warning> {
    let store = Store::best_image(StoreKind::NonTemporal).as_image()?;
    let fill = |word| {
        store.write_images(lines, [word; 8], [0; 8]);
        Ok::<_, Infallible>(())
    };
    let Ok(advantage) = zeroes::advantage(clock, fill);
    let consequence = "non-temporal stores of zeroes look better here than on other processors";
    zeroes::warning(advantage, consequence)
}

/// Fills lines with 0xff past the caches: cold, and nothing zero by luck.
pub(crate) fn poison_cold(lines: &mut [Line]) {
    match Store::best_image(StoreKind::NonTemporal).as_image() {
        Some(store) => store.write_images(lines, [u64::MAX; 8], [0; 8]),
        None => lines.fill(Line::new([u64::MAX; 8])),
    }
}

/// What a test of any experiment needs.
#[cfg(test)]
pub(crate) mod bench_of_tests {
    use super::*;
    use crate::progress::Silent;
    use std::path::Path;

    /// Runs `test` with a lab of two runs.
    pub(crate) fn with_lab<T>(stop: &(dyn Fn() -> bool + Sync), test: impl Fn(Lab<'_>) -> T) -> T {
        let topo = HostTopology::load().unwrap();
        let budget = MemoryBudget::read(Path::new("/")).unwrap();
        let lab = Lab {
            topo: &topo,
            clock: &Clock::measure(),
            budget: &budget,
            host: &HostFacts::default(),
            caches: &[CacheFacts { level: 1, bytes: 32 << 10 }],
            argv: &["pageinit".to_owned()],
            limits: &Limits::default(),
            runs: 2,
            runs_are_default: false,
            seed: 7,
            progress: &Silent,
            doubts: &[],
            stop,
            keep: None,
        };
        test(lab)
    }
}

#[cfg(test)]
mod tests {
    use super::bench_of_tests::with_lab;
    use super::*;

    #[test]
    fn buffers_beyond_caches_fit_into_a_quarter() {
        let of = beyond_caches_bytes;
        assert_eq!((of(0, GIB), of(40 * MIB, GIB)), (64 * MIB, 80 * MIB));
        assert_eq!((of(33 * MIB + 1, GIB), of(GIB, GIB)), (68 * MIB, 256 * MIB));
        assert_eq!((of(0, 9 * MIB), of(0, 7 * MIB), of(u64::MAX, 0)), (2 * MIB, 0, 0));
    }

    #[test]
    fn sizes_are_multiples_and_fit() {
        assert!(check_multiple("--buffer", 8192, 4096).is_ok());
        let text = check_multiple("--buffer", 5000, 4096).unwrap_err().to_string();
        assert!(text.contains("--buffer 5000B") && text.contains("8KiB"), "{text}");
        let text = check_multiple("--buffer", (1 << 30) + (1 << 20), 2 * MIB).unwrap_err();
        assert!(text.to_string().contains("--buffer 1025MiB is not"), "{text}");
        assert!(check_multiple("--buffer", u64::MAX, 4096).is_err());
        assert!(check_multiple("--buffer", 0, 4096).is_err());
        with_lab(&|| false, |lab| {
            let text = lab.arena("a test", 1 << 60, "--buffer").unwrap_err().to_string();
            assert!(text.contains("smaller --buffer"), "{text}");
        });
    }
}
