//! One machine, one kernel, one strategy: what the boot's memory phases take.
//!
//! [`estimate`] fills an [`Estimate`]; [`Case`] is a machine that is ready to be run
//! with many strategies and thread counts, which `sweep` uses as well. [`logged`] holds
//! a log's own times against it, [`what_if`] says what changes cost or save.

mod apart;
mod boot;
pub mod logged;
pub mod what_if;

pub use what_if::{HugePool, WhatIf};

use self::what_if::Asked;
use super::StudyError;
use super::subject::{set_threads, store_of};
use super::validate::usual_strategy;
use crate::kernel::cmdline::CommandLine;
use crate::kernel::version::NEWEST;
use crate::kernel::{KernelModel, KernelVersion, Layout};
use crate::machine::Machine;
use crate::machine::bootlog::Boot;
use crate::model::anchor::{self, AnchorError};
use crate::model::range::{self, Basis, Range, extrapolation};
use crate::model::run::{CalibratedPhase, PhaseRun};
use crate::model::{Anchor, Bound, Hardware, Options, Run, Setup, Virt, run};
use crate::pfn::{self, Nid};
use crate::plan::strategies::all_pages;
use crate::plan::{BootPlan, Executor, Strategy};
use crate::record::estimate::{
    AnchorFacts, ESTIMATE_SCHEMA, Estimate, NodeEstimate, PhaseFacts, ProcessorFacts, Saving,
    TimelineSpan,
};
use crate::record::{Head, Label, MachineFacts, NodeFacts};
use crate::warning::Warning;
use rayon::prelude::*;

/// Versions that savings are shown against: the last ones before something changed.
const LANDMARKS: [KernelVersion; 9] = [
    KernelVersion::new(4, 1),
    KernelVersion::new(4, 14),
    KernelVersion::new(5, 1),
    KernelVersion::new(5, 7),
    KernelVersion::new(5, 10),
    KernelVersion::new(6, 1),
    KernelVersion::new(6, 8),
    KernelVersion::new(6, 12),
    NEWEST,
];

/// What is asked for beyond machine and kernel.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// The strategy; the kernel's own when `None`.
    pub strategy: Option<Strategy>,
    /// Threads per node; the kernel's own rule when `None`.
    pub threads: Option<u32>,
    /// Pages of a chunk; padata's rule when `None`.
    pub chunk_pages: Option<u64>,
    /// Whether pages are freed.
    pub free: bool,
    /// Bare metal or guest; by the processor's name when `None`.
    pub virt: Option<Virt>,
    /// Poisoning and debugging, beyond what command line and configuration say.
    pub options: Options,
    /// The kernel command line; of a captured boot its own when `None`.
    pub line: Option<CommandLine>,
    /// Bytes of a struct page; what the configuration makes of it when `None`.
    pub struct_page_bytes: Option<u64>,
    /// Memory set aside for a crash kernel, in bytes.
    pub crash_bytes: Option<u64>,
    /// What to change.
    pub what_if: WhatIf,
    /// The boot of the machine's own log, whose times are held against the prediction.
    pub log: Option<Box<Boot>>,
    /// Times that are known.
    pub anchors: Vec<Anchor>,
    /// Measured costs.
    pub calibrated: Vec<CalibratedPhase>,
    /// The command line, for the record.
    pub argv: Vec<String>,
}

/// A machine under one kernel, ready to run.
#[derive(Clone, Debug)]
pub struct Case {
    /// The layout, with the kernel's own thread counts.
    pub layout: Layout,
    /// What the nodes can do.
    pub hardware: Hardware,
    /// Options and the factors of anchors.
    pub setup: Setup,
    /// The command line that it boots with, where one is known.
    pub line: Option<CommandLine>,
}

impl Case {
    /// Lays out a machine.
    ///
    /// # Errors
    /// When it has no memory.
    pub fn new(
        machine: &Machine,
        kernel: &KernelModel,
        question: &Question,
    ) -> Result<Self, StudyError> {
        let (layout, hardware) = boot::boot(machine, kernel, question)?;
        let captured = || machine.boot.as_ref().and_then(|facts| facts.cmdline.parse().ok());
        let line = question.line.clone().or_else(captured);
        let options = boot::options(machine, &layout, line.as_ref(), question);
        let calibrated = question.calibrated.clone();
        let setup = Setup { options, calibrated, ..Setup::default() };
        Ok(Self { layout, hardware, setup, line })
    }

    /// The plan of a strategy with so many threads and such chunks.
    pub fn plan(
        &self,
        strategy: Strategy,
        threads: Option<u32>,
        chunk_pages: Option<u64>,
        free: bool,
    ) -> BootPlan {
        let mut layout = self.layout.clone();
        if let Some(threads) = threads {
            // A node without CPUs keeps its one unbound thread.
            layout.nodes.iter_mut().filter(|n| n.cpus == 0).for_each(|n| n.max_threads = 1);
            set_threads(&mut layout, threads);
            for node in layout.nodes.iter_mut().filter(|n| n.cpus == 0) {
                node.jobs.iter_mut().for_each(|job| job.max_threads = 1);
            }
        }
        let smaller = chunk_pages.unwrap_or(u64::MAX);
        for job in layout.nodes.iter_mut().flat_map(|n| &mut n.jobs) {
            job.min_chunk = job.min_chunk.min(smaller);
            job.align = job.align.min(smaller);
        }
        let mut plan = strategy.plan(&layout, store_of(strategy), free);
        for work in plan.phases.iter_mut().flat_map(|p| &mut p.work) {
            work.chunk_pages = chunk_pages;
        }
        plan
    }

    /// Runs a plan in virtual time.
    pub fn run(&self, plan: &BootPlan) -> Run {
        run(plan, &self.hardware, &self.setup)
    }

    /// Applies anchors: from now on the machine is as fast as they say.
    ///
    /// # Errors
    /// When an anchor contradicts another, the machine, or its memory.
    pub fn anchor(&mut self, plan: &BootPlan, anchors: &[Anchor]) -> Result<(), AnchorError> {
        let mut scales = Vec::with_capacity(anchors.len());
        for one in anchors {
            if scales.iter().any(|(nid, _)| *nid == one.nid) {
                return Err(AnchorError::Twice(one.nid));
            }
            scales.push((one.nid, anchor::scale(one, plan, &self.hardware, &self.setup)?));
        }
        self.setup.scales = scales;
        Ok(())
    }

    /// The range of a run.
    pub fn range(&self, run: &Run, threads: u32) -> Range {
        let known = !self.setup.scales.is_empty() || !self.setup.calibrated.is_empty();
        let basis = Basis::of(&self.hardware, known);
        let version = self.layout.kernel.version;
        let far = extrapolation(version, self.layout.arch, threads).is_some();
        let [boot, nodes] = [Executor::BootCpu, Executor::NodeThreads].map(|e| run.share_ns(e));
        Range::of(basis, far, boot, nodes)
    }
}

/// A machine under one kernel, and what one plan took on it.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The machine, ready to run.
    pub case: Case,
    /// The plan.
    pub plan: BootPlan,
    /// Its times.
    pub run: Run,
}

impl Ran {
    /// Lays out, plans and runs; without `scales` the question's anchors are applied.
    ///
    /// # Errors
    /// When the machine has no memory, or anchors contradict.
    pub fn new(
        machine: &Machine,
        kernel: &KernelModel,
        question: &Question,
        scales: Option<Vec<(Nid, f64)>>,
    ) -> Result<Self, StudyError> {
        check_threads(machine, question.threads)?;
        let mut case = Case::new(machine, kernel, question)?;
        let strategy = question.strategy.unwrap_or_else(|| usual_strategy(kernel.version));
        let plan = case.plan(strategy, question.threads, question.chunk_pages, question.free);
        match scales {
            Some(scales) => case.setup.scales = scales,
            None => case.anchor(&plan, &question.anchors)?,
        }
        let run = case.run(&plan);
        Ok(Self { case, plan, run })
    }
}

/// Refuses more threads than a node has CPUs, as such a kernel would never start them.
///
/// # Errors
/// Names the smallest node's CPUs.
pub fn check_threads(machine: &Machine, threads: Option<u32>) -> Result<(), StudyError> {
    let with_cpus = machine.nodes.iter().filter(|n| !n.cpus.is_empty() && !n.memory.is_empty());
    let (Some(threads), Some(fewest)) = (threads, with_cpus.map(|n| n.cpus.len()).min()) else {
        return Ok(());
    };
    if threads as usize > fewest {
        return Err(StudyError::Usage(format!(
            "--threads {threads} is more than the {fewest} CPUs of a node of {}; \
             use at most {fewest}",
            machine.name
        )));
    }
    Ok(())
}

/// Predicts.
///
/// # Errors
/// When the machine has no memory, threads exceed its CPUs, or anchors contradict.
pub fn estimate(
    machine: &Machine,
    kernel: &KernelModel,
    question: &Question,
) -> Result<Estimate, StudyError> {
    let asked = Asked::new(machine, kernel, question)?;
    let logged = question.log.as_deref().map(|log| logged::of(log, &asked.base));
    let what_ifs = asked.rows()?;
    let (machine, question, Ran { case, plan, run }) = asked.chosen();
    let threads = plan.phases.iter().flat_map(|p| &p.work).map(|w| w.threads()).max().unwrap_or(1);
    let range = case.range(run, threads);
    Ok(Estimate {
        head: Head::new(ESTIMATE_SCHEMA, &question.argv)
            .with_warnings(warnings(machine, case, threads)),
        label: Label::Modelled,
        machine: machine_facts(machine, &case.layout),
        kernel: serde_json::to_value(&case.layout.kernel).unwrap_or_default(),
        strategy: plan.strategy.clone(),
        threads,
        free: question.free,
        processor: processor(&case.hardware),
        memory: Some(super::memory::facts(&case.layout)),
        timeline: timeline(run, case.layout.struct_page_bytes),
        phases: run.phases.iter().map(phase_facts).collect(),
        nodes: nodes(run),
        total_ns: whole(run.total_ns()),
        range_ns: [whole(range.low_ns), whole(range.high_ns)],
        range_meaning: range::MEANING.into(),
        bound_by: bound_by(run.bound(&case.hardware)),
        anchor: anchor_facts(case, &question.anchors),
        savings: savings(machine, case, question, whole(run.total_ns())),
        logged: logged.unwrap_or_default(),
        what_ifs,
    })
}

/// Whole ns; a float of any size becomes one.
fn whole(ns: f64) -> u64 {
    ns.round() as u64
}

fn warnings(machine: &Machine, case: &Case, threads: u32) -> Vec<Warning> {
    let mut out = machine.warnings.clone();
    out.extend(case.layout.warnings.iter().cloned());
    out.extend(case.hardware.warnings.iter().cloned());
    if let Some(why) = extrapolation(case.layout.kernel.version, case.layout.arch, threads) {
        let text = format!("extrapolated: {why}");
        out.push(Warning::new("extrapolated", text, "the range is wider; an --anchor helps"));
    }
    out
}

fn machine_facts(machine: &Machine, layout: &Layout) -> MachineFacts {
    let node = |n: &crate::kernel::layout::NodeLayout| NodeFacts {
        nid: n.nid.0,
        memory_bytes: machine.node(n.nid).map_or(0, crate::machine::Node::memory_bytes),
        cpu_count: n.cpus,
        early_pages: pfn::total_pages(&all_pages(n)) - pfn::total_pages(&n.deferred),
        deferred_pages: pfn::total_pages(&n.deferred),
        kernel_threads: n.max_threads,
    };
    MachineFacts {
        name: machine.name.clone(),
        title: machine.title.clone(),
        arch: machine.arch.to_string(),
        page_bytes: machine.page_bytes,
        memory_bytes: machine.memory_bytes(),
        nodes: layout.nodes.iter().map(node).collect(),
        memory_ranges_from: machine.source.memory_ranges.from.clone(),
    }
}

fn processor(hardware: &Hardware) -> ProcessorFacts {
    let class = hardware.class;
    ProcessorFacts {
        class: class.name.clone(),
        mark: class.mark().name().into(),
        source: class.source.clone(),
        virt: if hardware.virt == Virt::Guest { "guest" } else { "bare-metal" }.into(),
        line_ns: class.w_line_ns,
        node_bytes_per_s: hardware.nodes.first().map_or(0, |n| (n.bytes_per_ns * 1e9) as u64),
    }
}

/// The name of an executor in records.
pub(super) const fn executor_name(executor: Executor) -> &'static str {
    match executor {
        Executor::BootCpu => "boot-cpu",
        Executor::NodeThreads => "node-threads",
    }
}

fn timeline(run: &Run, struct_page_bytes: u64) -> Vec<TimelineSpan> {
    let mut out = Vec::new();
    for phase in &run.phases {
        for work in &phase.works {
            out.extend(work.spans.iter().map(|span| TimelineSpan {
                phase: phase.name.to_string(),
                executor: executor_name(phase.executor).into(),
                nid: work.nid.0,
                worker: span.worker,
                start_ns: whole(span.start_ns),
                end_ns: whole(span.end_ns),
                pages: span.pages,
                bytes: span.pages.saturating_mul(struct_page_bytes),
            }));
        }
    }
    out
}

/// The bytes of the struct pages that the nodes' threads initialise, each once.
pub(super) fn node_bytes(run: &Run, struct_page_bytes: u64) -> u64 {
    let phases = run.phases.iter().filter(|p| p.executor == Executor::NodeThreads);
    let pages = phases.map(|p| p.works.iter().map(|w| w.pages).sum::<u64>());
    pages.max().unwrap_or(0).saturating_mul(struct_page_bytes)
}

fn phase_facts(phase: &PhaseRun) -> PhaseFacts {
    PhaseFacts {
        phase: phase.name.to_string(),
        executor: executor_name(phase.executor).into(),
        start_ns: whole(phase.start_ns),
        end_ns: whole(phase.end_ns),
        pages: phase.works.iter().map(|w| w.pages).sum(),
        slowest_nid: match phase.executor {
            Executor::BootCpu => None,
            Executor::NodeThreads => phase.slowest().map(|w| w.nid.0),
        },
    }
}

fn nodes(run: &Run) -> Vec<NodeEstimate> {
    let Some(phase) = run.longest_node_phase() else { return Vec::new() };
    let node = |w: &crate::model::run::WorkRun| NodeEstimate {
        nid: w.nid.0,
        workers: w.workers,
        pages: w.pages,
        wall_ns: whole(w.end_ns() - phase.start_ns),
        page_ns: w.page.ns,
        moved_bytes: (w.page.bytes * w.pages as f64) as u64,
        bandwidth_use: w.bandwidth_use,
        lock_use: w.lock_use,
    };
    phase.works.iter().map(node).collect()
}

pub(super) fn bound_by(bound: Bound) -> String {
    match bound {
        Bound::Nothing => "nothing".into(),
        Bound::BootCpu => "boot-cpu".into(),
        Bound::Bandwidth(nid) => format!("bandwidth node {nid}"),
        Bound::ZoneLock(nid) => format!("zone-lock node {nid}"),
        Bound::Threads(nid) => format!("threads node {nid}"),
        Bound::OneThread(nid) => format!("one-thread node {nid}"),
        Bound::NoCpus(nid) => format!("no-cpus node {nid}"),
    }
}

fn anchor_facts(case: &Case, anchors: &[Anchor]) -> AnchorFacts {
    let basis = Basis::of(&case.hardware, !anchors.is_empty());
    if anchors.is_empty() && !case.setup.calibrated.is_empty() {
        let from = format!("{} measured phases", case.setup.calibrated.len());
        return AnchorFacts { kind: "calibration".into(), from };
    }
    let texts: Vec<String> = anchors.iter().map(ToString::to_string).collect();
    let class = case.hardware.class;
    AnchorFacts {
        kind: basis.name().into(),
        from: match anchors.is_empty() {
            true => format!("{} ({})", class.name, class.mark().name()),
            false => texts.join(", "),
        },
    }
}

/// Every strategy under this kernel, then the kernels' own strategies.
fn savings(machine: &Machine, case: &Case, question: &Question, total_ns: u64) -> Vec<Saving> {
    let version = case.layout.kernel.version;
    let row = |strategy: Strategy, version: KernelVersion, other_ns: u64| Saving {
        strategy: strategy.name().into(),
        kernel: version.to_string(),
        total_ns: other_ns,
        saved_ns: i64::try_from(i128::from(other_ns) - i128::from(total_ns)).unwrap_or(i64::MAX),
    };
    let strategies = Strategy::ALL.par_iter().map(|strategy| {
        let plan = case.plan(*strategy, question.threads, question.chunk_pages, question.free);
        row(*strategy, version, whole(case.run(&plan).total_ns()))
    });
    let kernels = LANDMARKS.par_iter().filter_map(|landmark| {
        let mut kernel = KernelModel::new(*landmark, machine.arch);
        kernel.config.numa_emu |= case.layout.kernel.config.numa_emu;
        let other = Case::new(machine, &kernel, question).ok()?;
        let other = Case { setup: case.setup.clone(), ..other };
        let strategy = usual_strategy(*landmark);
        let plan = other.plan(strategy, None, question.chunk_pages, question.free);
        Some(row(strategy, *landmark, whole(other.run(&plan).total_ns())))
    });
    strategies.chain(kernels).collect()
}

#[cfg(test)]
mod tests;
