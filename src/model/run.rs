//! A boot plan in virtual time: the twin of `exec`.
//!
//! [`run`] does the phases of a [`BootPlan`] one after another: the boot CPU's works in
//! order, the nodes' teams all at once. It returns when each worker began and ended
//! ([`Run`]), and what bounds the whole ([`Bound`]).

use super::constants as k;
use super::cost::{self, At, Options, PageCost};
use super::hardware::{Hardware, NodeHardware};
use super::queue::{Curve, Demand};
use super::teams::{self, Job, Team, TeamTime};
use crate::kernel::padata;
use crate::pfn::Nid;
use crate::plan::{BootPlan, Executor, PageOp, Phase, PhaseName, Work};
use std::sync::Arc;

/// What is known beyond plan and hardware.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Setup {
    /// Poisoning, debugging, page size.
    pub options: Options,
    /// Factors by which anchors make nodes slower or faster than their class; nodes that
    /// are not named take the mean of those that are.
    pub scales: Vec<(Nid, f64)>,
    /// Measured costs, which replace the class's where strategy and phase are the same.
    pub calibrated: Vec<CalibratedPhase>,
}

/// What one phase of one strategy was measured to cost.
#[derive(Clone, Debug, PartialEq)]
pub struct CalibratedPhase {
    /// The strategy.
    pub strategy: String,
    /// The phase.
    pub phase: PhaseName,
    /// Whether pages are freed.
    pub free: bool,
    /// One page on one worker, in ns.
    pub alone_ns: f64,
    /// The part of it that a node's workers share, in ns.
    pub bandwidth_ns: f64,
}

/// A whole plan in virtual time.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The phases in boot order.
    pub phases: Vec<PhaseRun>,
}

/// One phase.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseRun {
    /// Which phase.
    pub name: PhaseName,
    /// Who does it.
    pub executor: Executor,
    /// When it begins, in ns from the plan's start.
    pub start_ns: f64,
    /// When everyone is done.
    pub end_ns: f64,
    /// Its works, in the plan's order.
    pub works: Vec<WorkRun>,
}

/// One node's share of a phase.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkRun {
    /// The node whose pages these are.
    pub nid: Nid,
    /// Struct pages.
    pub pages: u64,
    /// What one page costs without sharing anything.
    pub page: PageCost,
    /// Workers at most.
    pub workers: u32,
    /// The busy share of the node's memory bandwidth with all workers.
    pub bandwidth_use: f64,
    /// The busy share of the zone's lock.
    pub lock_use: f64,
    /// The part of the time in which nothing was attributed to a worker, in ns.
    pub settle_ns: f64,
    /// Who worked when.
    pub spans: Vec<Span>,
}

/// What one worker did, from its first chunk to its last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// The worker's number on its node; 0 for the boot CPU.
    pub worker: u32,
    /// In ns from the plan's start.
    pub start_ns: f64,
    /// In ns from the plan's start.
    pub end_ns: f64,
    /// Struct pages done.
    pub pages: u64,
}

/// What most of the time goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// There is nothing to do.
    Nothing,
    /// The boot CPU's phases.
    BootCpu,
    /// A node's memory bandwidth.
    Bandwidth(Nid),
    /// A node's zone lock.
    ZoneLock(Nid),
    /// A node's workers, who do not slow each other down.
    Threads(Nid),
    /// A node with a single worker.
    OneThread(Nid),
    /// A node without CPUs, and so with one worker from elsewhere.
    NoCpus(Nid),
}

impl Run {
    /// The whole, in ns.
    pub fn total_ns(&self) -> f64 {
        self.phases.last().map_or(0.0, |p| p.end_ns)
    }

    /// The boot CPU's or the nodes' share of the whole, in ns.
    pub fn share_ns(&self, executor: Executor) -> f64 {
        let own = self.phases.iter().filter(|p| p.executor == executor);
        own.map(|p| p.end_ns - p.start_ns).sum()
    }

    /// The longest of the nodes' phases.
    pub fn longest_node_phase(&self) -> Option<&PhaseRun> {
        let own = self.phases.iter().filter(|p| p.executor == Executor::NodeThreads);
        own.max_by(|a, b| (a.end_ns - a.start_ns).total_cmp(&(b.end_ns - b.start_ns)))
    }

    /// What bounds the run.
    pub fn bound(&self, hardware: &Hardware) -> Bound {
        let (boot, nodes) =
            (self.share_ns(Executor::BootCpu), self.share_ns(Executor::NodeThreads));
        let slowest = self.longest_node_phase().and_then(PhaseRun::slowest);
        match slowest {
            _ if boot <= 0.0 && nodes <= 0.0 => Bound::Nothing,
            Some(work) if nodes > boot => {
                let has_cpus = hardware.node(work.nid).is_some_and(|n| n.hw_threads > 0);
                work.bound(has_cpus)
            }
            _ => Bound::BootCpu,
        }
    }
}

impl PhaseRun {
    /// The work that ends last; of equal ones the first.
    pub fn slowest(&self) -> Option<&WorkRun> {
        let mut found: Option<&WorkRun> = None;
        for work in &self.works {
            if found.is_none_or(|f| work.end_ns() > f.end_ns()) {
                found = Some(work);
            }
        }
        found
    }
}

impl WorkRun {
    /// When its last worker is done, settling included.
    pub fn end_ns(&self) -> f64 {
        self.spans.iter().map(|s| s.end_ns).fold(0.0, f64::max) + self.settle_ns
    }

    fn bound(&self, has_cpus: bool) -> Bound {
        // A station that is busy for most of the time decides.
        const BUSY: f64 = 0.85;
        match self.workers {
            _ if !has_cpus => Bound::NoCpus(self.nid),
            0 | 1 => Bound::OneThread(self.nid),
            _ if self.bandwidth_use > BUSY => Bound::Bandwidth(self.nid),
            _ if self.lock_use > BUSY => Bound::ZoneLock(self.nid),
            _ => Bound::Threads(self.nid),
        }
    }
}

/// Runs `plan` in virtual time. Works on nodes that `hardware` lacks are left out.
pub fn run(plan: &BootPlan, hardware: &Hardware, setup: &Setup) -> Run {
    let mut phases: Vec<PhaseRun> = Vec::with_capacity(plan.phases.len());
    for phase in &plan.phases {
        let start_ns = phases.last().map_or(0.0, |p| p.end_ns);
        let runner = Runner { plan, phase, hardware, setup };
        phases.push(match phase.executor {
            Executor::BootCpu => runner.boot_cpu(start_ns),
            Executor::NodeThreads => runner.node_threads(start_ns),
        });
    }
    Run { phases }
}

/// What a page of each node's deferred pages costs one worker, anchors applied.
pub fn deferred_page(
    plan: &BootPlan,
    hardware: &Hardware,
    setup: &Setup,
    nid: Nid,
) -> Option<PageCost> {
    let phase = plan.phases.iter().find(|p| p.name == PhaseName::DeferredInit)?;
    let work = phase.work.iter().find(|w| w.nid == nid)?;
    let runner = Runner { plan, phase, hardware, setup };
    Some(runner.page(work, hardware.node(nid)?))
}

struct Runner<'r> {
    plan: &'r BootPlan,
    phase: &'r Phase,
    hardware: &'r Hardware,
    setup: &'r Setup,
}

impl Runner<'_> {
    fn page(&self, work: &Work, node: &NodeHardware) -> PageCost {
        if let Some(measured) = self.measured() {
            let bytes = measured.bandwidth_ns * node.bytes_per_ns;
            let marks = work.steps.iter().all(|s| s.op == PageOp::MarkReserved);
            // Measured phases count pages once, with the second visit in their time.
            let ns = if marks { 0.0 } else { measured.alone_ns };
            return PageCost { ns, bytes, lock_ns: 0.0 }.scaled(self.scale(work.nid));
        }
        let on = At { node, options: self.setup.options };
        cost::page(self.plan, self.phase, work, &on).scaled(self.scale(work.nid))
    }

    fn measured(&self) -> Option<&CalibratedPhase> {
        self.setup.calibrated.iter().find(|c| {
            c.strategy == self.plan.strategy
                && c.phase == self.phase.name
                && c.free == self.plan.free
        })
    }

    fn scale(&self, nid: Nid) -> f64 {
        let scales = &self.setup.scales;
        let own = scales.iter().find(|(n, _)| *n == nid).map(|(_, scale)| *scale);
        own.unwrap_or_else(|| {
            let sum: f64 = scales.iter().map(|(_, scale)| scale).sum();
            if scales.is_empty() { 1.0 } else { sum / scales.len() as f64 }
        })
    }

    fn boot_cpu(&self, start_ns: f64) -> PhaseRun {
        let mut now_ns = start_ns;
        let mut works = Vec::with_capacity(self.phase.work.len());
        for work in &self.phase.work {
            let Some(node) = self.hardware.node(work.nid) else { continue };
            let (page, pages) = (self.page(work, node), work.pages());
            let begin_ns = now_ns;
            now_ns += pages as f64 * page.ns;
            let span = Span { worker: 0, start_ns: begin_ns, end_ns: now_ns, pages };
            works.push(WorkRun {
                nid: work.nid,
                pages,
                page,
                workers: 1,
                bandwidth_use: page.demand(node).bandwidth_ns / page.ns.max(f64::MIN_POSITIVE),
                lock_use: 0.0,
                settle_ns: 0.0,
                spans: vec![span],
            });
        }
        self.finish(start_ns, now_ns, works)
    }

    fn finish(&self, start_ns: f64, end_ns: f64, works: Vec<WorkRun>) -> PhaseRun {
        let (name, executor) = (self.phase.name, self.phase.executor);
        PhaseRun { name, executor, start_ns, end_ns, works }
    }

    fn node_threads(&self, start_ns: f64) -> PhaseRun {
        let works: Vec<(&Work, &NodeHardware)> = self
            .phase
            .work
            .iter()
            .filter_map(|w| self.hardware.node(w.nid).map(|node| (w, node)))
            .collect();
        let mut curves = Curves::default();
        let teams: Vec<Team> =
            works.iter().map(|(work, node)| self.team(work, node, &mut curves)).collect();
        let shared = self.shared_station(&teams);
        let times = teams::run(&teams, shared.as_ref());
        let mut end_ns: f64 = 0.0;
        let mut runs = Vec::with_capacity(works.len());
        for (((work, node), team), time) in works.iter().zip(&teams).zip(times) {
            end_ns = end_ns.max(time.end_ns);
            runs.push(self.work_run(start_ns, work, node, team, &time));
        }
        self.finish(start_ns, start_ns + end_ns * spread(works.len()), runs)
    }

    fn team(&self, work: &Work, node: &NodeHardware, curves: &mut Curves) -> Team {
        let page = self.page(work, node);
        let jobs = jobs_of(work);
        let workers = jobs.iter().map(|j| j.workers).max().unwrap_or(1);
        // Measured teams are pinned: nothing has to settle.
        let settles = self.measured().is_none();
        let idle = settles && workers > 1 && workers < node.hw_threads;
        let per_thread_ns = self.hardware.scaling.settle_ms_per_thread * 1e6;
        let settle_ns = if idle { per_thread_ns * f64::from(node.hw_threads) } else { 0.0 };
        Team {
            jobs,
            page_ps: (page.ns * 1000.0).round() as u64,
            curve: curves.get(page.demand(node), workers, node.cores),
            settle_ns,
            shares: self.hardware.controllers && !is_home(work.nid),
        }
    }

    /// The station behind node controllers, for all workers that use it.
    fn shared_station(&self, teams: &[Team]) -> Option<Curve> {
        let sharing = teams.iter().filter(|t| t.shares);
        let workers: u32 =
            sharing.clone().flat_map(|t| t.jobs.iter().map(|j| j.workers).max()).sum();
        let first = sharing.clone().next()?;
        let block_pages = self.plan.freeing.unit_pages.max(1) as f64;
        let demand = Demand {
            alone_ns: first.page_ps as f64 / 1000.0,
            bandwidth_ns: k::CONTROLLER_BLOCK_NS / block_pages,
            lock_ns: 0.0,
        };
        Some(Curve::new(demand, workers, u32::MAX, 0.0))
    }

    fn work_run(
        &self,
        start_ns: f64,
        work: &Work,
        node: &NodeHardware,
        team: &Team,
        time: &TeamTime,
    ) -> WorkRun {
        let workers = team.jobs.iter().map(|j| j.workers).max().unwrap_or(1);
        let (bandwidth_use, lock_use) = team.curve.utilisation(workers);
        let spans = time.workers.iter().enumerate().map(|(index, w)| Span {
            worker: u32::try_from(index).unwrap_or(u32::MAX),
            start_ns: start_ns + w.start_ns,
            end_ns: start_ns + w.end_ns,
            pages: w.pages,
        });
        WorkRun {
            nid: work.nid,
            pages: work.pages(),
            page: self.page(work, node),
            workers,
            bandwidth_use,
            lock_use,
            settle_ns: team.settle_ns,
            spans: spans.collect(),
        }
    }
}

/// The home of the line that all nodes fight for behind node controllers: the first
/// blade's two nodes.
fn is_home(nid: Nid) -> bool {
    nid.0 < 2
}

/// Equal nodes do not end at the same time; with several, the slowest is later.
fn spread(nodes: usize) -> f64 {
    if nodes >= 4 { k::SLOWEST_NODE } else { 1.0 }
}

/// Curves by what they are made from: most nodes of a machine are alike.
#[derive(Default)]
struct Curves(Vec<(Demand, u32, u32, Arc<Curve>)>);

impl Curves {
    fn get(&mut self, demand: Demand, workers: u32, cores: u32) -> Arc<Curve> {
        let same = |(d, w, c, _): &&(Demand, u32, u32, Arc<Curve>)| {
            (*d, *w, *c) == (demand, workers, cores)
        };
        if let Some((_, _, _, curve)) = self.0.iter().find(same) {
            return Arc::clone(curve);
        }
        let curve = Arc::new(Curve::new(demand, workers, cores, k::SMT_GAIN));
        self.0.push((demand, workers, cores, Arc::clone(&curve)));
        curve
    }
}

/// The jobs of a work with the pages of each chunk. Pages that no job covers are done
/// by one worker at the end.
fn jobs_of(work: &Work) -> Vec<Job> {
    let mut spans = work.spans.iter().map(|s| s.pages).peekable();
    let mut out = Vec::with_capacity(work.jobs.len());
    // Where the next span begins after parts of it were handed out.
    let mut done = 0;
    for job in &work.jobs {
        let workers = job.workers();
        let chunk_pages = work.chunk_pages.unwrap_or_else(|| job.chunk_pages());
        let mut chunks = Vec::new();
        for chunk in padata::chunks_of(job.range(), chunk_pages, workers == 1) {
            let mut pages = 0;
            while let Some(span) = spans.peek() {
                let start = span.start.0.max(done);
                pages += span.end.0.min(chunk.end.0).saturating_sub(start);
                done = chunk.end.0.min(span.end.0).max(done);
                if span.end > chunk.end {
                    break;
                }
                spans.next();
            }
            if pages > 0 {
                chunks.push(pages);
            }
        }
        out.push(Job { workers, chunks });
    }
    let left: u64 = spans.map(|s| s.end.0.saturating_sub(s.start.0.max(done))).sum();
    if left > 0 {
        out.push(Job { workers: 1, chunks: vec![left] });
    }
    out
}
