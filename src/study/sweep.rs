//! Figures over every combination of machine shape, kernel, strategy, chunk and threads.
//!
//! [`Axes`] says which; [`sweep`] predicts all of them in parallel, or runs them for real
//! with a [`Measure`], and draws [`findings`] from them. A [`Control`] saves what there is,
//! ends early, and goes on from a record. [`values`] reads lists and ranges such as
//! `1,2,4..max`, [`shapes`] makes the machines.

mod findings;
mod job;
pub mod measure;
mod predict;
pub mod shapes;
pub mod values;

pub use measure::Measure;

use super::StudyError;
use super::estimate::Question;
use crate::exec::Stop;
use crate::kernel::KernelModel;
use crate::machine::Machine;
use crate::plan::Strategy;
use crate::progress::Progress;
use crate::record::keeper::Keeper;
use crate::record::sweep::Sweep;
use job::Job;
use shapes::Shape;

/// What is varied. Every axis needs a value; `None` leaves the machine's own.
#[derive(Clone, Debug)]
pub struct Axes {
    /// Kernels by version, each version once.
    pub kernels: Vec<KernelModel>,
    /// Strategies.
    pub strategies: Vec<Strategy>,
    /// Threads per node, ascending.
    pub threads: Vec<u32>,
    /// Memory that a chunk describes, in bytes; `None` for padata's rule.
    pub chunks: Vec<Option<u64>>,
    /// Numbers of nodes.
    pub nodes: Vec<Option<u32>>,
    /// Sizes of all memory in bytes.
    pub memory_bytes: Vec<Option<u64>>,
    /// Base page sizes in bytes.
    pub page_bytes: Vec<Option<u64>>,
}

/// One combination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Combination {
    shape: Shape,
    /// Index of the kernel.
    kernel: usize,
    strategy: Strategy,
    chunk_bytes: Option<u64>,
    threads: u32,
}

impl Axes {
    /// Of the machine as it is: nothing but kernels, strategies and threads is varied.
    pub fn of_machine(kernels: &[KernelModel], strategies: &[Strategy], threads: &[u32]) -> Self {
        Self {
            kernels: kernels.to_vec(),
            strategies: strategies.to_vec(),
            threads: threads.to_vec(),
            chunks: vec![None],
            nodes: vec![None],
            memory_bytes: vec![None],
            page_bytes: vec![None],
        }
    }

    /// How many combinations there are.
    pub fn points(&self) -> u128 {
        let cases = self.shapes().len() * self.kernels.len();
        cases as u128 * self.per_case() as u128
    }

    /// The machines, in order.
    fn shapes(&self) -> Vec<Shape> {
        let mut out = Vec::new();
        for &nodes in &self.nodes {
            for &memory_bytes in &self.memory_bytes {
                let shape = |page_bytes: &Option<u64>| Shape {
                    nodes,
                    memory_bytes,
                    page_bytes: *page_bytes,
                };
                out.extend(self.page_bytes.iter().map(shape));
            }
        }
        out
    }

    /// Combinations of one machine and one kernel.
    fn per_case(&self) -> usize {
        self.strategies.len() * self.chunks.len() * self.threads.len()
    }

    /// The combination with this number: threads vary fastest, machines slowest.
    fn at(&self, shapes: &[Shape], index: usize) -> Option<Combination> {
        let (rest, threads) = split(index, self.threads.len())?;
        let (rest, chunk) = split(rest, self.chunks.len())?;
        let (rest, strategy) = split(rest, self.strategies.len())?;
        let (shape, kernel) = split(rest, self.kernels.len())?;
        Some(Combination {
            shape: *shapes.get(shape)?,
            kernel,
            strategy: *self.strategies.get(strategy)?,
            chunk_bytes: *self.chunks.get(chunk)?,
            threads: *self.threads.get(threads)?,
        })
    }
}

fn split(index: usize, radix: usize) -> Option<(usize, usize)> {
    Some((index.checked_div(radix)?, index.checked_rem(radix)?))
}

/// How a sweep is watched, saved, ended and resumed.
pub struct Control<'c> {
    /// Told how far the work is.
    pub progress: &'c dyn Progress,
    /// Asked whether the user ended the work.
    pub stop: Stop<'c>,
    /// Saves the record while it grows.
    pub keep: Option<&'c mut Keeper>,
    /// What is there already.
    pub kept: Option<Sweep>,
    /// Runs combinations for real instead of predicting them.
    pub measure: Option<Measure<'c>>,
}

impl<'c> Control<'c> {
    /// A prediction that nothing ends and nobody saves.
    pub fn of(progress: &'c dyn Progress) -> Self {
        Self { progress, stop: &|| false, keep: None, kept: None, measure: None }
    }
}

/// The most CPUs of a node with memory.
pub fn most_threads(machine: &Machine) -> u32 {
    let with_memory = machine.nodes.iter().filter(|n| !n.memory.is_empty());
    let most = with_memory.map(|n| n.cpus.len()).max().unwrap_or(1).max(1);
    u32::try_from(most).unwrap_or(u32::MAX)
}

/// Refuses sweeps of nothing and of too much, before anything is laid out.
///
/// # Errors
/// Says how many points there would be.
pub fn check_points(points: u128, most: u64) -> Result<(), StudyError> {
    match points {
        0 => Err(StudyError::Usage("the sweep has no points: every axis needs a value".into())),
        n if n > u128::from(most) => Err(StudyError::Usage(format!(
            "the sweep has {n} points, more than {most}; narrow it or raise --max-points"
        ))),
        _ => Ok(()),
    }
}

/// Predicts or runs every combination. `question` gives what does not vary; its anchors
/// hold for the machine as it is, under the first kernel and strategy, and each node of a
/// varied machine has the one of the node that it repeats.
///
/// When `control.stop` says so, the record holds what was done by then and `complete` is
/// false.
///
/// # Errors
/// When the machine has no memory, an axis exceeds it, anchors contradict, the record to go
/// on from answers another question, or saving fails.
pub fn sweep(
    machine: &Machine,
    axes: &Axes,
    question: &Question,
    mut control: Control<'_>,
) -> Result<Sweep, StudyError> {
    check_axes(machine, axes)?;
    let mut job = Job::new(machine, axes, question, control.measure.as_ref())?;
    if let Some(kept) = control.kept.take() {
        job.go_on_from(kept)?;
    }
    if !job.is_complete() {
        let ended = match control.measure.take() {
            None => predict::run(&mut job, &mut control),
            Some(measure) => measure::run(&mut job, &mut control, &measure),
        };
        if let Err(error) = ended {
            // The error counts; that the points so far are kept is a help, if it works.
            let kept = control.keep.take().map(|keeper| keeper.save(&job.record()));
            drop(kept);
            return Err(error);
        }
    }
    Ok(job.record())
}

fn check_axes(machine: &Machine, axes: &Axes) -> Result<(), StudyError> {
    let most = most_threads(machine);
    if let Some(threads) = axes.threads.iter().find(|t| **t > most) {
        return Err(StudyError::Usage(format!(
            "--threads {threads} is more than the {most} CPUs of a node of {}; use at most {most}",
            machine.name
        )));
    }
    axes.shapes().iter().try_for_each(|shape| shape.check(machine.arch))
}

/// Pages that one chunk describes; chunks are whole largest blocks.
fn chunk_pages(chunk_bytes: Option<u64>, machine: &Machine) -> Result<Option<u64>, String> {
    const BLOCK_PAGES: u64 = 1024;
    let Some(bytes) = chunk_bytes else { return Ok(None) };
    let block_bytes = BLOCK_PAGES.saturating_mul(machine.page_bytes);
    if bytes == 0 || !bytes.is_multiple_of(block_bytes) {
        let block = crate::units::Bytes(block_bytes);
        return Err(format!("the chunk is not a multiple of the largest buddy block, {block}"));
    }
    Ok(Some(bytes / machine.page_bytes))
}

#[cfg(test)]
mod tests;
