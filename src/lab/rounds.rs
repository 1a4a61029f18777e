//! Samples in rounds: [`Lab::rounds`] runs every case of an experiment once per round, in
//! random order; [`Lab::timed`] and [`Lab::undisturbed`] take one sample.

use super::{Lab, LabError};
use crate::host::error::HostError;
use crate::host::preempt;
use crate::progress::Unit;
use crate::record::lab::LabRecord;
use crate::stats::Rng;
use std::sync::PoisonError;

/// Times of cases, in order of the rounds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// One list per case.
    pub of_case: Vec<Vec<u64>>,
    /// Whether every round was finished.
    pub complete: bool,
}

impl Lab<'_> {
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

    /// Times `work` on this thread: ns, how often the kernel took the CPU away meanwhile,
    /// and what came of it.
    pub fn timed<T>(&self, work: impl FnOnce() -> T) -> ((u64, u64), T) {
        let before = preempt::switches();
        let began = self.clock.now_ns();
        let out = work();
        let ns = self.clock.now_ns().saturating_sub(began);
        ((ns, preempt::switches().saturating_sub(before)), out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::bench_of_tests::with_lab;
    use crate::record::keeper::Keeper;
    use std::cell::RefCell;
    use std::sync::Mutex;

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
}
