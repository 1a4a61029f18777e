//! From the times of runs to the figures of a record.
//!
//! [`Drawn`] takes the runs of all candidates. Points are what was measured; their
//! `scaled_median_ns` multiplies phase by phase up to the whole machine. Ratios are
//! taken run by run, and the prefetch effect from the three probes of each round.

mod rates;

pub use rates::{PhaseRate, TeamRates};

use super::candidates::Candidate;
use super::facts::executor_name;
use crate::exec::{PhaseTime, RunTimes};
use crate::pfn::Nid;
use crate::plan::probes::Probe;
use crate::plan::{BootPlan, Executor, Phase};
use crate::record::{Label, PlanFacts, PlanPhaseFacts, Point, Prefetch, Ratio};
use crate::stats::{Summary, paired_ratios, summarise};
use rayon::prelude::*;

/// The runs of a study.
#[derive(Clone, Copy, Debug)]
pub struct Drawn<'d> {
    /// What was run.
    pub candidates: &'d [Candidate],
    /// Per candidate, the times of its runs in order of the rounds.
    pub samples: &'d [Vec<RunTimes>],
    /// Copies of the executed part in the buffer.
    pub copies: u64,
    /// Seed of the intervals.
    pub seed: u64,
    /// Whether nodes took turns on this host's nodes: then they share one rate, and
    /// what differs between them is this host's noise.
    pub took_turns: bool,
}

/// Which part of a run a point is about.
#[derive(Clone, Debug)]
enum Part {
    Total,
    BootCpu,
    Deferred(Option<Nid>),
    Phase(usize),
}

impl Drawn<'_> {
    /// Pairs of a candidate and its runs, those without runs left out.
    pub fn with_runs(&self) -> impl Iterator<Item = (&Candidate, &Vec<RunTimes>)> {
        self.candidates.iter().zip(self.samples).filter(|(_, runs)| !runs.is_empty())
    }

    /// One point per candidate and part of the run that has pages.
    pub fn points(&self) -> Vec<Point> {
        let todo: Vec<(&Candidate, &Vec<RunTimes>, Part)> = self
            .with_runs()
            .flat_map(|(c, runs)| parts(c).into_iter().map(move |part| (c, runs, part)))
            .collect();
        todo.into_par_iter().map(|(c, runs, part)| self.point(c, runs, &part)).collect()
    }

    fn point(&self, candidate: &Candidate, runs: &[RunTimes], part: &Part) -> Point {
        let samples_ns: Vec<u64> = runs.iter().map(|run| measured_ns(run, part)).collect();
        let summary = summarise(&as_f64(&samples_ns), self.seed);
        let scaled: Vec<f64> =
            runs.iter().map(|run| self.scaled_ns(candidate, run, part)).collect();
        let (phase, nid) = match part {
            Part::Total => ("total".to_owned(), None),
            Part::BootCpu => ("boot-cpu".to_owned(), None),
            Part::Deferred(nid) => ("deferred".to_owned(), nid.map(|n| n.0)),
            Part::Phase(i) => (candidate.executed.phases[*i].name.to_string(), None),
        };
        Point {
            strategy: candidate.name.clone(),
            store: candidate.store.clone(),
            threads: threads(&candidate.executed),
            free: candidate.executed.free,
            phase,
            nid,
            label: Label::Measured,
            executed_pages: pages(&candidate.executed, part) * self.copies,
            scaled_pages: pages(&candidate.whole, part),
            samples_ns,
            median_ns: summary.median,
            ci95_ns: summary.ci95,
            scaled_median_ns: crate::stats::median(&scaled),
            verified: runs.iter().all(|run| run.verified),
        }
    }

    /// A run's time multiplied up to the whole machine, phase by phase.
    fn scaled_ns(&self, candidate: &Candidate, run: &RunTimes, part: &Part) -> f64 {
        let phases = run.phases.iter().enumerate();
        let chosen = phases.filter(|(i, phase)| belongs(part, *i, phase));
        chosen
            .map(|(i, phase)| {
                let small = &candidate.executed.phases[i];
                let whole = whole_phase(candidate, small);
                match phase.executor {
                    Executor::BootCpu => {
                        phase.wall_ns as f64 * self.factor(small.pages(), whole.pages())
                    }
                    Executor::NodeThreads => self.scaled_nodes_ns(part, phase, small, whole),
                }
            })
            .sum()
    }

    /// The slowest node, or the one asked for: each at its own rate, or all at the
    /// common rate when they took turns.
    fn scaled_nodes_ns(&self, part: &Part, time: &PhaseTime, small: &Phase, whole: &Phase) -> f64 {
        let wanted = |nid: &Nid| match part {
            Part::Deferred(Some(only)) => nid == only,
            _ => true,
        };
        let common = phase_ns(time) * self.factor(small.pages(), 1);
        let nodes = time.nodes.iter().filter(|(nid, _)| wanted(nid));
        nodes
            .map(|&(nid, ns)| match self.took_turns {
                true => common * whole.pages_of(nid) as f64,
                false => ns as f64 * self.factor(small.pages_of(nid), whole.pages_of(nid)),
            })
            .fold(0.0, f64::max)
    }

    fn factor(&self, executed_pages: u64, whole_pages: u64) -> f64 {
        let executed = executed_pages.saturating_mul(self.copies);
        if executed == 0 { 0.0 } else { whole_pages as f64 / executed as f64 }
    }

    /// Every strategy's whole scaled time against the baseline's, run by run; `label` says
    /// how such times came about.
    pub fn ratios(&self, baseline: &str, label: Label) -> Vec<Ratio> {
        let totals = |c: &Candidate, runs: &[RunTimes]| -> Vec<f64> {
            runs.iter().map(|run| self.scaled_ns(c, run, &Part::Total)).collect()
        };
        let Some((base, base_runs)) = self.with_runs().find(|(c, _)| c.name == baseline) else {
            return Vec::new();
        };
        let base_ns = totals(base, base_runs);
        let strategies = self.with_runs().filter(|(c, _)| c.probe.is_none());
        strategies
            .map(|(c, runs)| {
                let summary = summarise(&paired_ratios(&totals(c, runs), &base_ns), self.seed);
                Ratio {
                    strategy: c.name.clone(),
                    store: c.store.clone(),
                    baseline: baseline.into(),
                    label: Some(label),
                    median: summary.median,
                    ci95: summary.ci95,
                }
            })
            .collect()
    }

    /// What zeroing does for the field writes; `None` when a probe has no run, or no page.
    pub fn prefetch(&self) -> Option<Prefetch> {
        let (threads, cold) = self.probe_ns(Probe::FieldsCold)?;
        let (_, zero) = self.probe_ns(Probe::ZeroOnly)?;
        let (_, both) = self.probe_ns(Probe::ZeroThenFields)?;
        let minus =
            |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a - b).collect() };
        let sum = |samples: &[f64]| -> Summary { summarise(samples, self.seed) };
        Some(Prefetch {
            label: Label::Measured,
            threads,
            fields_cold_ns: sum(&cold),
            zero_only_ns: sum(&zero),
            zero_then_fields_ns: sum(&both),
            fields_warm_ns: sum(&minus(&both, &zero)),
            inline_zero_adds_ns: sum(&minus(&both, &cold)),
        })
    }

    /// A probe's ns per struct page, run by run.
    fn probe_ns(&self, probe: Probe) -> Option<(u32, Vec<f64>)> {
        let (candidate, runs) = self.with_runs().find(|(c, _)| c.probe == Some(probe))?;
        let part = Part::Deferred(None);
        let pages = pages(&candidate.executed, &part) * self.copies;
        if pages == 0 {
            return None;
        }
        let per_page = runs.iter().map(|run| total_node_ns(run) / pages as f64);
        Some((threads(&candidate.executed), per_page.collect()))
    }
}

/// The phase of the whole machine that an executed phase stands for.
fn whole_phase<'c>(candidate: &'c Candidate, executed: &'c Phase) -> &'c Phase {
    candidate.whole.phases.iter().find(|p| p.name == executed.name).unwrap_or(executed)
}

/// The parts of a candidate's run that become points.
fn parts(candidate: &Candidate) -> Vec<Part> {
    let phases = &candidate.executed.phases;
    let mut out = vec![Part::Total];
    if phases.iter().any(|p| p.executor == Executor::BootCpu) {
        out.push(Part::BootCpu);
    }
    if let Some(deferred) = phases.iter().find(|p| p.executor == Executor::NodeThreads) {
        out.push(Part::Deferred(None));
        out.extend(deferred.work.iter().map(|w| Part::Deferred(Some(w.nid))));
    }
    out.extend((0..phases.len()).map(Part::Phase));
    out
}

/// Whether the `index`th phase of a run is in the part.
fn belongs(part: &Part, index: usize, phase: &PhaseTime) -> bool {
    match part {
        Part::Total => true,
        Part::BootCpu => phase.executor == Executor::BootCpu,
        Part::Deferred(_) => phase.executor == Executor::NodeThreads,
        Part::Phase(i) => *i == index,
    }
}

/// The measured time of a part, as the executed pages took it.
fn measured_ns(run: &RunTimes, part: &Part) -> u64 {
    let phases = run.phases.iter().enumerate().filter(|(i, p)| belongs(part, *i, p));
    phases
        .map(|(_, phase)| match part {
            Part::Deferred(Some(nid)) => {
                phase.nodes.iter().filter(|(n, _)| n == nid).map(|(_, ns)| *ns).sum()
            }
            _ => phase.wall_ns,
        })
        .sum()
}

/// Struct pages of a part: those of its largest phase, since phases revisit pages.
fn pages(plan: &BootPlan, part: &Part) -> u64 {
    let of = |phase: &Phase| match part {
        Part::Deferred(Some(nid)) => phase.pages_of(*nid),
        _ => phase.pages(),
    };
    let chosen = plan.phases.iter().enumerate().filter(|(i, phase)| match part {
        Part::Total => true,
        Part::BootCpu => phase.executor == Executor::BootCpu,
        Part::Deferred(_) => phase.executor == Executor::NodeThreads,
        Part::Phase(only) => only == i,
    });
    if matches!(part, Part::Total) {
        return total_pages(plan);
    }
    chosen.map(|(_, phase)| of(phase)).max().unwrap_or(0)
}

/// All struct pages that a plan initialises: what its init phases cover together.
fn total_pages(plan: &BootPlan) -> u64 {
    use crate::plan::PhaseName::{DeferredInit, EarlyInit};
    let init = plan.phases.iter().filter(|p| matches!(p.name, EarlyInit | DeferredInit));
    init.map(Phase::pages).sum()
}

fn threads(plan: &BootPlan) -> u32 {
    let works = plan.phases.iter().flat_map(|p| &p.work);
    works.map(crate::plan::Work::threads).max().unwrap_or(1)
}

/// The time of all nodes one after another: divided by all their pages it is what a
/// page costs on a node, whether nodes ran together or took turns.
fn phase_ns(phase: &PhaseTime) -> f64 {
    match phase.executor {
        Executor::BootCpu => phase.wall_ns as f64,
        Executor::NodeThreads => phase.nodes.iter().map(|(_, ns)| *ns as f64).sum(),
    }
}

fn total_node_ns(run: &RunTimes) -> f64 {
    run.phases.iter().map(phase_ns).sum()
}

fn as_f64(samples: &[u64]) -> Vec<f64> {
    samples.iter().map(|&ns| ns as f64).collect()
}

/// What each strategy's plan was, for the record.
pub fn plan_facts(candidates: &[Candidate]) -> Vec<PlanFacts> {
    let strategies = candidates.iter().filter(|c| c.probe.is_none());
    let facts = strategies.map(|c| PlanFacts {
        strategy: c.name.clone(),
        stores: c.executed.stores().into_iter().map(str::to_owned).collect(),
        phases: c
            .executed
            .phases
            .iter()
            .map(|small| phase_facts(small, whole_phase(c, small)))
            .collect(),
    });
    facts.collect()
}

fn phase_facts(small: &Phase, whole: &Phase) -> PlanPhaseFacts {
    let mut ops: Vec<String> = Vec::new();
    for step in small.work.iter().flat_map(|w| &w.steps) {
        let name = op_name(step.op);
        if !ops.contains(&name) {
            ops.push(name);
        }
    }
    PlanPhaseFacts {
        phase: small.name.to_string(),
        executor: executor_name(small.executor).into(),
        ops,
        executed_pages: small.pages(),
        machine_pages: whole.pages(),
        threads: small.work.iter().map(crate::plan::Work::threads).max().unwrap_or(1),
    }
}

/// An operation's name as its serialised form has it, without its parameter.
fn op_name(op: crate::plan::PageOp) -> String {
    match serde_json::to_value(op) {
        Ok(serde_json::Value::String(name)) => name,
        Ok(serde_json::Value::Object(map)) => map.keys().next().cloned().unwrap_or_default(),
        _ => String::new(),
    }
}
