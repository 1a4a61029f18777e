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
pub mod team;

pub use limits::Limits;

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
use crate::stats::Rng;
use crate::units::Bytes;
use crate::warning::Warning;
use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};
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

    /// Runs `cases` things `runs` times each, in a new random order in every round, and
    /// returns their times case by case; fewer when the user ended it. Without `--runs`
    /// no round begins later than `limit_s` seconds after the first. Between rounds the
    /// record that `so_far` draws is saved, where somebody asked for it.
    ///
    /// # Errors
    /// What `run_one` says, other than an interruption; that saving fails.
    pub fn rounds<E: Into<LabError>>(
        &self,
        what: &str,
        sizes: (usize, u32, u64),
        run_one: impl FnMut(usize) -> Result<u64, E>,
        so_far: impl Fn(&Samples) -> LabRecord,
    ) -> Result<Samples, LabError> {
        self.run_rounds(what, sizes, run_one, |samples| self.keep_so_far(samples, &so_far))
    }

    /// [`Lab::rounds`] without a record to save.
    ///
    /// # Errors
    /// What `run_one` says, other than an interruption.
    pub(crate) fn rounds_alone<E: Into<LabError>>(
        &self,
        what: &str,
        sizes: (usize, u32, u64),
        run_one: impl FnMut(usize) -> Result<u64, E>,
    ) -> Result<Samples, LabError> {
        self.run_rounds(what, sizes, run_one, |_| Ok(()))
    }

    /// Saves the record that `so_far` draws, if it is time.
    fn keep_so_far(
        &self,
        samples: &Samples,
        so_far: impl Fn(&Samples) -> LabRecord,
    ) -> Result<(), LabError> {
        let Some(keep) = self.keep else { return Ok(()) };
        let mut keeper = keep.lock().unwrap_or_else(PoisonError::into_inner);
        if !keeper.is_time() {
            return Ok(());
        }
        let mut record = so_far(samples);
        record.head.complete = false;
        Ok(keeper.save(&record)?)
    }

    fn run_rounds<E: Into<LabError>>(
        &self,
        what: &str,
        (cases, runs, limit_s): (usize, u32, u64),
        mut run_one: impl FnMut(usize) -> Result<u64, E>,
        after: impl Fn(&Samples) -> Result<(), LabError>,
    ) -> Result<Samples, LabError> {
        let mut samples = Samples { of_case: vec![Vec::new(); cases], complete: true };
        let mut rng = Rng::new(self.seed);
        self.progress.begin(what, u64::from(runs) * cases as u64, Unit::Runs);
        let began = self.clock.now_ns();
        let ends = began.saturating_add(limit_s.saturating_mul(1_000_000_000));
        'rounds: for round in 0..runs {
            if round > 0 && self.runs_are_default && self.clock.now_ns() > ends {
                self.limits.note(what, round, runs);
                break;
            }
            let mut order: Vec<usize> = (0..cases).collect();
            rng.shuffle(&mut order);
            for case in order {
                let ended = if (self.stop)() {
                    Err(HostError::Interrupted.into())
                } else {
                    run_one(case).map_err(Into::into)
                };
                match ended {
                    Ok(ns) => samples.of_case[case].push(ns),
                    Err(error) if error.is_interrupt() => {
                        samples.complete = false;
                        break 'rounds;
                    }
                    Err(other) => return Err(other),
                }
                self.progress.advance(1);
            }
            after(&samples)?;
        }
        self.progress.end();
        Ok(samples)
    }

    /// Repeats a sample in which the kernel took a CPU away, a few times at most.
    /// `sample` returns its time and how often that happened.
    ///
    /// # Errors
    /// What `sample` says.
    pub fn undisturbed<E>(
        &self,
        mut sample: impl FnMut() -> Result<(u64, u64), E>,
    ) -> Result<u64, E> {
        const ATTEMPTS: u32 = 3;
        let mut least = (u64::MAX, u64::MAX);
        for _ in 0..ATTEMPTS {
            let (ns, switches) = sample()?;
            least = least.min((switches, ns));
            if switches == 0 {
                break;
            }
        }
        Ok(least.1)
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

/// Times of cases, in order of the rounds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// One list per case.
    pub of_case: Vec<Vec<u64>>,
    /// Whether every round was finished.
    pub complete: bool,
}

/// Checks that a size is a positive multiple of `unit_bytes`.
///
/// # Errors
/// [`LabError::Usage`], naming the flag.
pub fn check_multiple(flag: &str, bytes: u64, unit_bytes: u64) -> Result<(), LabError> {
    if bytes == 0 || !bytes.is_multiple_of(unit_bytes) {
        return Err(LabError::Usage(format!(
            "{flag} {} is not a multiple of {}; write for example {}",
            Bytes(bytes),
            Bytes(unit_bytes),
            Bytes(bytes.next_multiple_of(unit_bytes).max(unit_bytes)),
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
    use std::cell::RefCell;

    #[test]
    fn every_round_runs_every_case_once() {
        let seen = RefCell::new(Vec::new());
        let samples = with_lab(&|| false, |lab| {
            let run_one = |case| {
                seen.borrow_mut().push(case);
                Ok::<_, LabError>(case as u64)
            };
            lab.rounds("test", (5, 3, 9), run_one, |_| lab.record("test")).unwrap()
        });
        assert!(samples.complete);
        assert_eq!(samples.of_case, (0..5).map(|case| vec![case; 3]).collect::<Vec<_>>());
        for round in seen.borrow().chunks(5) {
            let mut sorted = round.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3, 4]);
        }
    }

    #[test]
    fn an_interruption_keeps_what_was_done_and_other_errors_do_not() {
        with_lab(&|| false, |lab| {
            let count = RefCell::new(0);
            let run_one = |_| {
                *count.borrow_mut() += 1;
                if *count.borrow() > 3 { Err(HostError::Interrupted) } else { Ok(1) }
            };
            let record = |_: &Samples| lab.record("test");
            let samples = lab.rounds("test", (2, 3, 9), run_one, record).unwrap();
            assert!(!samples.complete);
            assert_eq!(samples.of_case.iter().map(Vec::len).sum::<usize>(), 3);
            let fails = |_| Err::<u64, _>(HostError::NoCpus);
            assert!(lab.rounds("test", (1, 1, 9), fails, record).is_err());
        });
    }

    #[test]
    fn the_record_so_far_is_saved_after_every_round() {
        let dir = tempfile::TempDir::new().unwrap();
        let file = dir.path().join("lab.json");
        let target = crate::record::file::Target::new(&file, false).unwrap();
        let keeper = Mutex::new(Keeper::new(target, std::time::Duration::ZERO));
        with_lab(&|| false, |lab| {
            let lab = Lab { keep: Some(&keeper), ..lab };
            let seen = RefCell::new(Vec::new());
            let run_one = |_| {
                seen.borrow_mut().push(std::fs::read_to_string(&file).ok());
                Ok::<_, LabError>(1)
            };
            let so_far = |samples: &Samples| LabRecord {
                runs: samples.of_case.iter().map(|runs| runs.len() as u32).sum(),
                ..lab.record("test")
            };
            lab.rounds("test", (2, 2, 9), run_one, so_far).unwrap();
            // Nothing before the first round, and nothing between the runs of one.
            let seen = seen.borrow();
            assert_eq!((&seen[0], &seen[1]), (&None, &None));
            assert_eq!(seen[2], seen[3]);
            let saved: LabRecord = serde_json::from_str(seen[3].as_deref().unwrap()).unwrap();
            assert_eq!((saved.runs, saved.head.complete), (2, false));
        });
    }

    #[test]
    fn a_time_limit_ends_a_part_between_rounds_and_says_so() {
        with_lab(&|| false, |lab| {
            let lab = Lab { runs_are_default: true, ..lab };
            let later = |_| {
                let began = lab.clock.now_ns();
                while lab.clock.now_ns() == began {}
                Ok::<_, LabError>(1)
            };
            assert!(lab.limits.warning("").is_none());
            let record = |_: &Samples| lab.record("test");
            let samples = lab.rounds("table", (2, 3, 0), later, record).unwrap();
            assert_eq!((samples.complete, samples.of_case), (true, vec![vec![1]; 2]));
            let said = lab.limits.warning("").unwrap().to_string();
            assert!(said.contains("1 of 3 in \"table\""), "{said}");
            let asked_for = Lab { runs_are_default: false, ..lab };
            let samples = asked_for.rounds("page", (1, 3, 0), later, record).unwrap();
            assert_eq!(samples.of_case, [vec![1; 3]]);
        });
    }

    #[test]
    fn a_disturbed_sample_is_repeated_and_the_least_disturbed_counts() {
        with_lab(&|| false, |lab| {
            let of = |samples: &[(u64, u64)]| {
                let mut left = samples.iter();
                lab.undisturbed(|| left.next().copied().ok_or(())).unwrap()
            };
            assert_eq!(of(&[(9, 1), (5, 0)]), 5);
            assert_eq!(of(&[(5, 2), (7, 1), (6, 1)]), 6);
        });
    }

    #[test]
    fn sizes_are_multiples_and_fit() {
        assert!(check_multiple("--buffer", 8192, 4096).is_ok());
        let text = check_multiple("--buffer", 5000, 4096).unwrap_err().to_string();
        assert!(text.contains("--buffer 4.9 KiB") && text.contains("8 KiB"), "{text}");
        assert!(check_multiple("--buffer", 0, 4096).is_err());
        with_lab(&|| false, |lab| {
            let text = lab.arena("a test", 1 << 60, "--buffer").unwrap_err().to_string();
            assert!(text.contains("smaller --buffer"), "{text}");
        });
    }
}
