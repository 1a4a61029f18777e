//! Running candidates on prepared memory: [`Rounds`].
//!
//! Every candidate once per round, in an order shuffled by the seed, every run verified.
//! [`super::compare()`] runs strategies so, [`super::sweep`] combinations.

use super::StudyError;
use super::candidates::Candidate;
use super::compare::HostContext;
use crate::exec::memory::FirstTouch;
use crate::exec::verify::{Expect, verify};
use crate::exec::{Memory, RunTimes, Stop, run_until};
use crate::kernel::Layout;
use crate::progress::{Progress, Unit};
use crate::stats::Rng;

/// Per candidate the times of its runs, in order of the rounds.
pub type RunsOf = Vec<Vec<RunTimes>>;

/// What is asked after every round: it may save what there is.
pub type AfterRound<'a> = &'a mut dyn FnMut(&Rounds<'_>, &RunsOf) -> Result<(), StudyError>;

/// Candidates that are ready to run.
pub struct Rounds<'s> {
    /// The host.
    pub host: &'s HostContext,
    /// The executed part of the layout.
    pub executed: Layout,
    /// What is run.
    pub candidates: Vec<Candidate>,
    /// The memory that all of them run on.
    pub memory: Memory,
    /// Told how far the work is.
    pub progress: &'s dyn Progress,
    /// Asked whether the user ended the work.
    pub stop: Stop<'s>,
}

impl Rounds<'_> {
    /// Touches all memory on its nodes.
    ///
    /// # Errors
    /// When memory runs out or the user ends the work.
    pub fn fault_in(&mut self) -> Result<FirstTouch, StudyError> {
        Ok(self.memory.fault_in(&self.host.topo, self.progress, self.stop)?)
    }

    /// Runs `runs` rounds in an order that follows from `seed`; fewer when the user ends
    /// them. Times go to `samples`, which has what was done before an error too. `after` is
    /// called between rounds, never between the runs of one.
    ///
    /// # Errors
    /// For wrong data, and what executing and `after` say.
    pub fn run(
        &mut self,
        runs: u32,
        seed: u64,
        samples: &mut RunsOf,
        after: AfterRound<'_>,
    ) -> Result<(), StudyError> {
        let count = self.candidates.len();
        samples.resize(count, Vec::new());
        let mut rng = Rng::new(seed);
        self.progress.begin("runs", u64::from(runs) * count as u64, Unit::Runs);
        'rounds: for round in 1..=runs {
            let mut order: Vec<usize> = (0..count).collect();
            rng.shuffle(&mut order);
            for index in order {
                if (self.stop)() {
                    break 'rounds;
                }
                match self.run_one(index, round) {
                    Ok(times) => samples[index].push(times),
                    Err(error) if error.is_interrupt() => break 'rounds,
                    Err(other) => return Err(other),
                }
                self.progress.advance(1);
            }
            after(self, samples)?;
        }
        self.progress.end();
        Ok(())
    }

    fn run_one(&mut self, index: usize, round: u32) -> Result<RunTimes, StudyError> {
        let candidate = &self.candidates[index];
        let plan = &candidate.executed;
        let (topo, clock) = (&self.host.topo, &self.host.clock);
        let mut times = run_until(&mut self.memory, topo, clock, plan, self.stop)?;
        let expect = candidate.probe.map_or(Expect::Final, |p| Expect::OnlyOp(p.op()));
        verify(&self.memory, &self.executed, plan, expect).map_err(|mismatch| {
            StudyError::WrongData {
                strategy: candidate.name.clone(),
                run: round,
                mismatch: Box::new(mismatch),
            }
        })?;
        times.verified = true;
        Ok(times)
    }
}
