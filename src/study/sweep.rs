//! Predictions over every combination of kernel, strategy, chunk and threads.
//!
//! [`Axes`] says which; [`sweep`] predicts all of them in parallel and draws knees,
//! best chunks and the cost of zeroing in a pass of its own from them. [`values`] reads
//! lists and ranges such as `1,2,4..max`.

pub mod values;

use super::StudyError;
use super::estimate::{Case, Question};
use crate::kernel::{KernelModel, KernelVersion};
use crate::machine::Machine;
use crate::model::range::extrapolation;
use crate::plan::{Executor, Strategy};
use crate::progress::{Progress, Unit};
use crate::record::sweep::{BestChunk, Knee, SWEEP_SCHEMA, SetupZero, Sweep, SweepPoint};
use crate::record::{Head, Label};
use crate::warning::Warning;
use rayon::prelude::*;

/// More threads have to gain at least this share to pay.
const LEAST_GAIN: f64 = 0.05;

/// What is varied.
#[derive(Clone, Debug)]
pub struct Axes {
    /// Kernels by version.
    pub kernels: Vec<KernelModel>,
    /// Strategies.
    pub strategies: Vec<Strategy>,
    /// Threads per node, ascending.
    pub threads: Vec<u32>,
    /// Pages of a chunk; `None` for padata's rule.
    pub chunks: Vec<Option<u64>>,
}

impl Axes {
    /// How many combinations there are.
    pub fn points(&self) -> u128 {
        let sizes =
            [self.kernels.len(), self.strategies.len(), self.threads.len(), self.chunks.len()];
        sizes.iter().map(|n| *n as u128).product()
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

/// One combination, before it is predicted.
#[derive(Clone, Copy)]
struct Combination {
    case: usize,
    strategy: Strategy,
    chunk_pages: Option<u64>,
    threads: u32,
}

/// Predicts every combination. `question` gives what does not vary; its anchors hold
/// under the first kernel and strategy.
///
/// # Errors
/// When the machine has no memory, an axis exceeds it, or anchors contradict.
pub fn sweep(
    machine: &Machine,
    axes: &Axes,
    question: &Question,
    progress: &dyn Progress,
) -> Result<Sweep, StudyError> {
    let most = most_threads(machine);
    if let Some(threads) = axes.threads.iter().find(|t| **t > most) {
        return Err(StudyError::Usage(format!(
            "--threads {threads} is more than the {most} CPUs of a node of {}; use at most {most}",
            machine.name
        )));
    }
    let cases = cases(machine, axes, question)?;
    let todo = combinations(axes);
    progress.begin("predicting", todo.len() as u64, Unit::Runs);
    let points: Vec<SweepPoint> = todo
        .par_iter()
        .map(|combination| {
            let point = predict(&cases, combination, question, machine.page_bytes);
            progress.advance(1);
            point
        })
        .collect();
    progress.end();
    Ok(Sweep {
        head: Head::new(SWEEP_SCHEMA, &question.argv)
            .with_warnings(warnings(machine, axes, &cases)),
        label: Label::Modelled,
        machine: machine.name.clone(),
        title: machine.title.clone(),
        class: cases.first().map(|c| c.hardware.class.name.clone()).unwrap_or_default(),
        knees: knees(&points),
        best_chunks: if axes.chunks.len() > 1 { best_chunks(&points) } else { Vec::new() },
        setup_zero: setup_zero(&points),
        points,
    })
}

fn cases(machine: &Machine, axes: &Axes, question: &Question) -> Result<Vec<Case>, StudyError> {
    let made: Vec<_> =
        axes.kernels.par_iter().map(|kernel| Case::new(machine, kernel, question)).collect();
    let mut cases = made.into_iter().collect::<Result<Vec<_>, _>>()?;
    let first = cases.first().zip(axes.strategies.first()).map(|(case, strategy)| {
        let plan = case.plan(*strategy, Some(1), None, question.free);
        let mut anchored = case.clone();
        anchored.anchor(&plan, &question.anchors).map(|()| anchored.setup)
    });
    if let Some(setup) = first.transpose()? {
        cases.iter_mut().for_each(|case| case.setup = setup.clone());
    }
    Ok(cases)
}

fn combinations(axes: &Axes) -> Vec<Combination> {
    let mut out = Vec::new();
    for case in 0..axes.kernels.len() {
        for strategy in &axes.strategies {
            for chunk_pages in &axes.chunks {
                out.extend(axes.threads.iter().map(|threads| Combination {
                    case,
                    strategy: *strategy,
                    chunk_pages: *chunk_pages,
                    threads: *threads,
                }));
            }
        }
    }
    out
}

fn predict(
    cases: &[Case],
    combination: &Combination,
    question: &Question,
    page_bytes: u64,
) -> SweepPoint {
    let Combination { case, strategy, chunk_pages, threads } = *combination;
    let case = &cases[case];
    let plan = case.plan(strategy, Some(threads), chunk_pages, question.free);
    let run = case.run(&plan);
    let range = case.range(&run, threads);
    let whole = |ns: f64| ns.round() as u64;
    SweepPoint {
        kernel: case.layout.kernel.version.to_string(),
        strategy: strategy.name().into(),
        threads,
        chunk_bytes: chunk_pages.map(|pages| pages.saturating_mul(page_bytes)),
        total_ns: whole(run.total_ns()),
        boot_cpu_ns: whole(run.share_ns(Executor::BootCpu)),
        nodes_ns: whole(run.share_ns(Executor::NodeThreads)),
        node_bytes: Some(super::estimate::node_bytes(&run)),
        range_ns: [whole(range.low_ns), whole(range.high_ns)],
        bound_by: super::estimate::bound_by(run.bound(&case.hardware)),
    }
}

fn warnings(machine: &Machine, axes: &Axes, cases: &[Case]) -> Vec<Warning> {
    let mut out = machine.warnings.clone();
    out.extend(cases.first().into_iter().flat_map(|c| c.hardware.warnings.iter().cloned()));
    let most = axes.threads.last().copied().unwrap_or(1);
    let versions = axes.kernels.iter().map(|k| k.version);
    let far: Vec<(KernelVersion, &str)> =
        versions.filter_map(|v| Some((v, extrapolation(v, machine.arch, most)?))).collect();
    if let Some((version, why)) = far.first() {
        let text = format!("extrapolated from {version} on or in parts: {why}");
        out.push(Warning::new("extrapolated", text, "ranges are wider there"));
    }
    out
}

/// Points that differ in threads only, ascending in threads.
fn by_threads(points: &[SweepPoint]) -> Vec<Vec<&SweepPoint>> {
    let mut out: Vec<Vec<&SweepPoint>> = Vec::new();
    let key = |p: &SweepPoint| (p.kernel.clone(), p.strategy.clone(), p.chunk_bytes);
    for point in points {
        // Points come with threads innermost: the same series is always the last one.
        match out.last_mut() {
            Some(series) if series.first().is_some_and(|p| key(p) == key(point)) => {
                series.push(point);
            }
            _ => out.push(vec![point]),
        }
    }
    out
}

fn knees(points: &[SweepPoint]) -> Vec<Knee> {
    let series = by_threads(points);
    let with_nodes = series.iter().filter(|s| s.len() > 1 && s.iter().any(|p| p.nodes_ns > 0));
    with_nodes.filter_map(|s| knee(s)).collect()
}

/// The fewest threads that no larger count beats by [`LEAST_GAIN`].
fn knee(series: &[&SweepPoint]) -> Option<Knee> {
    let least_ns = series.iter().map(|p| p.nodes_ns).min()?;
    let pays = |at: usize, now: &SweepPoint| {
        let later = series.iter().skip(at + 1).map(|p| p.nodes_ns).min();
        later.is_some_and(|ns| (ns as f64) < now.nodes_ns as f64 * (1.0 - LEAST_GAIN))
    };
    let found = series.iter().enumerate().find(|(at, point)| !pays(*at, point))?.1;
    Some(Knee {
        kernel: found.kernel.clone(),
        strategy: found.strategy.clone(),
        chunk_bytes: found.chunk_bytes,
        threads: found.threads,
        nodes_ns: found.nodes_ns,
        least_ns,
    })
}

fn best_chunks(points: &[SweepPoint]) -> Vec<BestChunk> {
    let mut out: Vec<BestChunk> = Vec::new();
    for p in points {
        let same = |b: &&mut BestChunk| b.kernel == p.kernel && b.strategy == p.strategy;
        let best = BestChunk {
            kernel: p.kernel.clone(),
            strategy: p.strategy.clone(),
            chunk_bytes: p.chunk_bytes,
            threads: p.threads,
            total_ns: p.total_ns,
        };
        match out.iter_mut().find(same) {
            Some(known) if known.total_ns <= best.total_ns => {}
            Some(known) => *known = best,
            None => out.push(best),
        }
    }
    out
}

fn setup_zero(points: &[SweepPoint]) -> Vec<SetupZero> {
    let series = by_threads(points);
    let named = |strategy: Strategy| {
        series.iter().filter(move |s| s.first().is_some_and(|p| p.strategy == strategy.name()))
    };
    let mut out = Vec::new();
    for own in named(Strategy::SetupZero) {
        let like = |other: &&Vec<&SweepPoint>| {
            let pair = own.first().zip(other.first());
            pair.is_some_and(|(a, b)| (&a.kernel, a.chunk_bytes) == (&b.kernel, b.chunk_bytes))
        };
        let (Some(first), Some(other)) = (own.first(), named(Strategy::Deferred).find(like)) else {
            continue;
        };
        let ratios: Vec<(u32, f64)> = own
            .iter()
            .zip(other)
            .filter(|(_, deferred)| deferred.nodes_ns > 0)
            .map(|(zero, deferred)| (zero.threads, zero.nodes_ns as f64 / deferred.nodes_ns as f64))
            .collect();
        let last_above = ratios.iter().rposition(|(_, ratio)| *ratio >= 1.05);
        let from = last_above.map_or(0, |at| at + 1);
        out.push(SetupZero {
            kernel: first.kernel.clone(),
            chunk_bytes: first.chunk_bytes,
            negligible_from: ratios.get(from).map(|(threads, _)| *threads),
            ratios,
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::input;
    use crate::progress::Silent;

    fn axes(machine: &Machine, threads: &[u32]) -> Axes {
        Axes {
            kernels: vec![KernelModel::new(KernelVersion::new(5, 10), machine.arch)],
            strategies: vec![Strategy::SetupZero, Strategy::Deferred],
            threads: threads.to_vec(),
            chunks: vec![None, Some(1 << 18)],
        }
    }

    fn run(threads: &[u32]) -> Result<Sweep, StudyError> {
        let machine = input::load("@2n-skylake-768g", None).unwrap();
        let question = Question { free: true, ..Question::default() };
        sweep(&machine, &axes(&machine, threads), &question, &Silent)
    }

    #[test]
    fn every_combination_is_there_once_and_in_order() {
        let s = run(&[1, 8, 52]).unwrap();
        assert_eq!(s.points.len(), 12);
        assert_eq!(s.knees.len(), 4);
        assert_eq!(s.best_chunks.len(), 2);
        assert_eq!(s.setup_zero.len(), 2);
        assert_eq!(run(&[1, 8, 52]).unwrap(), s);
    }

    #[test]
    fn a_knee_lies_where_bandwidth_is_full() {
        let s = run(&[1, 2, 4, 8, 16, 26, 40]).unwrap();
        let knee = s.knees.iter().find(|k| k.strategy == "deferred").unwrap();
        assert!((8..=26).contains(&knee.threads), "{knee:?}");
        assert!(knee.nodes_ns as f64 <= knee.least_ns as f64 / 0.95);
    }

    #[test]
    fn zeroing_apart_costs_a_second_pass() {
        let s = run(&[1, 26]).unwrap();
        let ratios = &s.setup_zero[0].ratios;
        assert!(ratios[0].1 > 1.3 && ratios[1].1 > 1.3, "{ratios:?}");
        assert_eq!(s.setup_zero[0].negligible_from, None);
    }

    #[test]
    fn sweeps_of_nothing_and_of_too_much_are_refused() {
        assert!(check_points(0, 10).unwrap_err().to_string().contains("no points"));
        let error = check_points(10_000_000, 100_000).unwrap_err().to_string();
        assert!(error.contains("10000000") && error.contains("--max-points"), "{error}");
        assert!(run(&[53]).unwrap_err().to_string().contains("at most 52"));
    }
}
