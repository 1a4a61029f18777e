//! One machine, one kernel, one strategy: what the boot's memory phases take.
//!
//! [`estimate`] fills an [`Estimate`]; [`Case`] is a machine that is ready to be run
//! with many strategies and thread counts, which `sweep` uses as well. [`logged`] holds
//! a log's own times against it, [`what_if`] says what changes cost or save.

mod apart;
mod boot;
mod huge;
pub mod logged;
mod rows;
mod savings;
mod warnings;
pub mod what_if;

pub use what_if::{HugePool, WhatIf};

pub(super) use self::rows::{bound_by, node_bytes};

use self::rows::{anchor_facts, nodes, phase_facts, processor, timeline};
use self::savings::savings;
use self::what_if::Asked;
use super::StudyError;
use super::facts::machine_facts;
use super::subject::{set_threads, store_of};
use super::validate::usual_strategy;
use crate::kernel::cmdline::CommandLine;
use crate::kernel::{KernelModel, Layout};
use crate::machine::Machine;
use crate::machine::bootlog::Boot;
use crate::model::anchor::{self, AnchorError};
use crate::model::range::{self, Basis, Range, extrapolation};
use crate::model::setup::CalibratedPhase;
use crate::model::{Anchor, Hardware, Options, Run, Setup, Virt, run};
use crate::pfn::Nid;
use crate::plan::{BootPlan, Executor, Strategy};
use crate::record::estimate::{ESTIMATE_SCHEMA, Estimate};
use crate::record::{Head, Label};

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
            set_threads(&mut layout, threads);
            // A node without CPUs keeps its one unbound thread.
            for node in layout.nodes.iter_mut().filter(|n| n.cpus == 0) {
                node.max_threads = 1;
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
        let mut found: Vec<(Nid, anchor::Factors)> = Vec::with_capacity(anchors.len());
        for one in anchors {
            if found.iter().any(|(nid, _)| *nid == one.nid) {
                return Err(AnchorError::Twice(one.nid));
            }
            found.push((one.nid, anchor::factors(one, plan, &self.hardware, &self.setup)?));
        }
        self.setup.scales = found.iter().map(|(nid, f)| (*nid, f.costs)).collect();
        self.setup.rates = found.iter().map(|(nid, f)| (*nid, f.rate)).collect();
        Ok(())
    }

    /// The range of a run.
    pub fn range(&self, run: &Run, threads: u32) -> Range {
        let [boot, nodes] = [Executor::BootCpu, Executor::NodeThreads].map(|e| run.share_ns(e));
        self.range_of(boot, nodes, threads)
    }

    /// The range of a time of which the boot CPU does one part and the nodes the other.
    pub fn range_of(&self, boot_ns: f64, nodes_ns: f64, threads: u32) -> Range {
        let beyond = self.beyond_calibration(threads).is_some();
        // Beyond what was measured the memory is the class's.
        let known = !self.setup.scales.is_empty() || !self.setup.calibrated.is_empty() && !beyond;
        let basis = Basis::of(&self.hardware, known);
        let version = self.layout.kernel.version;
        let far = beyond || extrapolation(version, self.layout.arch, threads).is_some();
        Range::of(basis, far, boot_ns, nodes_ns)
    }

    /// The threads that a calibration measured, where there are more of them here.
    fn beyond_calibration(&self, threads: u32) -> Option<u32> {
        self.setup.calibrated_threads().filter(|most| threads > *most)
    }

    /// A whole boot in ns: a run, and the pass over gigantic pages behind it.
    fn total_ns(&self, run: &Run) -> f64 {
        run.total_ns() + huge::gather_ns(self)
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
        Self::with(machine, kernel, question, |case, plan| {
            match scales {
                Some(scales) => case.setup.scales = scales,
                None => case.anchor(plan, &question.anchors)?,
            }
            Ok(())
        })
    }

    /// The same with the factors of `setup`, which come from anchors of another boot.
    ///
    /// # Errors
    /// When the machine has no memory.
    pub fn like(
        machine: &Machine,
        kernel: &KernelModel,
        question: &Question,
        setup: &Setup,
    ) -> Result<Self, StudyError> {
        Self::with(machine, kernel, question, |case, _| {
            case.setup.scales.clone_from(&setup.scales);
            case.setup.rates.clone_from(&setup.rates);
            Ok(())
        })
    }

    fn with(
        machine: &Machine,
        kernel: &KernelModel,
        question: &Question,
        anchor: impl FnOnce(&mut Case, &BootPlan) -> Result<(), AnchorError>,
    ) -> Result<Self, StudyError> {
        check_threads(machine, question.threads)?;
        let mut case = Case::new(machine, kernel, question)?;
        let strategy = question.strategy.unwrap_or_else(|| usual_strategy(kernel.version));
        let plan = case.plan(strategy, question.threads, question.chunk_pages, question.free);
        anchor(&mut case, &plan)?;
        let run = case.run(&plan);
        Ok(Self { case, plan, run })
    }

    /// The most threads of a node.
    fn threads(&self) -> u32 {
        let works = self.plan.phases.iter().flat_map(|p| &p.work);
        works.map(|w| w.threads()).max().unwrap_or(1)
    }

    /// The range of a part of this boot, or of what follows it.
    fn range(&self, boot_ns: f64, nodes_ns: f64) -> Range {
        self.case.range_of(boot_ns, nodes_ns, self.threads())
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
    let logged = logged.unwrap_or_default();
    let what_ifs = asked.rows()?;
    // What is said of the question is said of it as it was put.
    let put = question;
    let (machine, question, ran) = asked.chosen();
    let warnings = warnings::of(machine, ran, put, &logged);
    let Ran { case, plan, run } = ran;
    let threads = ran.threads();
    let total_ns = whole(case.total_ns(run));
    let nodes_ns = run.share_ns(Executor::NodeThreads);
    let range = ran.range(case.total_ns(run) - nodes_ns, nodes_ns);
    let mut out = Estimate {
        head: Head::new(ESTIMATE_SCHEMA, &question.argv).with_warnings(warnings),
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
        total_ns,
        range_ns: [whole(range.low_ns), whole(range.high_ns)],
        range_meaning: range::MEANING.into(),
        bound_by: bound_by(run.bound(&case.hardware)),
        anchor: anchor_facts(case, &question.anchors),
        savings: savings(machine, case, question, total_ns),
        logged,
        what_ifs,
    };
    huge::append(&mut out, case);
    Ok(out)
}

/// Whole ns; a float of any size becomes one.
fn whole(ns: f64) -> u64 {
    ns.round() as u64
}

#[cfg(test)]
mod tests;
