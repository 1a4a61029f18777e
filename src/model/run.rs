//! A boot plan in virtual time: the twin of `exec`.
//!
//! [`run`] does the phases of a [`BootPlan`] one after another: the boot CPU's works in
//! order, the nodes' teams all at once. It returns when each worker began and ended
//! ([`Run`]), and what bounds the whole ([`Bound`]).

use super::constants as k;
use super::cost::{self, At, PageCost};
use super::hardware::{Hardware, NodeHardware};
use super::jobs::{Curves, jobs_of};
use super::queue::{Curve, Demand};
use super::setup::{CalibratedPhase, Setup};
use super::teams::{self, Job, Team, TeamTime};
use crate::pfn::Nid;
use crate::plan::{BootPlan, Executor, PageOp, Phase, PhaseName, Work};

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

    /// How much of it is settling: in it nobody is attributed anything, in ns.
    pub fn settle_ns(&self) -> f64 {
        let own = self.phases.iter().filter(|p| p.executor == Executor::NodeThreads);
        own.filter_map(PhaseRun::slowest).map(|w| w.settle_ns).sum()
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
    let hardware = &setup.rated(hardware);
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

/// The deferred phase of one node by itself, with so many threads; anchors applied.
pub fn deferred_alone(
    plan: &BootPlan,
    hardware: &Hardware,
    setup: &Setup,
    (nid, threads): (Nid, u32),
) -> Option<WorkRun> {
    let phase = plan.phases.iter().find(|p| p.name == PhaseName::DeferredInit)?;
    let mut work = phase.work.iter().find(|w| w.nid == nid)?.clone();
    work.jobs.iter_mut().for_each(|job| job.max_threads = threads);
    let phase = Phase { name: phase.name, executor: phase.executor, work: vec![work] };
    let hardware = &setup.rated(hardware);
    let runner = Runner { plan, phase: &phase, hardware, setup };
    runner.node_threads(0.0).works.pop()
}

struct Runner<'r> {
    plan: &'r BootPlan,
    phase: &'r Phase,
    hardware: &'r Hardware,
    setup: &'r Setup,
}

impl Runner<'_> {
    fn page(&self, work: &Work, node: &NodeHardware) -> PageCost {
        let on = At { node, options: self.setup.options };
        let by_class = cost::page(self.plan, self.phase, work, &on);
        let Some(measured) = self.measured() else {
            return by_class.scaled(self.setup.scale_of(work.nid));
        };
        let marks = work.steps.iter().all(|s| s.op == PageOp::MarkReserved);
        // Measured phases count pages once, with the second visit in their time.
        let ns = if marks { 0.0 } else { measured.alone_ns };
        // A few workers say next to nothing of what many find: the class's traffic does.
        let bytes = match work.threads() > measured.most_threads {
            true => by_class.bytes,
            false => measured.bandwidth_ns * node.bytes_per_ns,
        };
        PageCost { ns, bytes, lock_ns: 0.0 }.scaled(self.setup.scale_of(work.nid))
    }

    fn measured(&self) -> Option<&CalibratedPhase> {
        self.setup.calibrated.iter().find(|c| {
            c.strategy == self.plan.strategy
                && c.phase == self.phase.name
                && c.free == self.plan.free
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
        let demand = page.demand(node);
        // Nobody writes a page faster than the memory takes it.
        let page_ns = page.ns.max(demand.bandwidth_ns);
        let curve = curves.get(demand, workers, node.cores);
        Team {
            page_ps: (page_ns * 1000.0).round() as u64,
            settle_ns: self.settle_ns(node, &jobs, page_ns, &curve),
            jobs,
            curve,
            shares: self.hardware.controllers && !is_home(work.nid),
        }
    }

    /// What settling takes at most: a worker that shares a CPU takes twice as long for
    /// its chunk until it is moved, so the others wait for one more chunk and no longer.
    fn settle_ns(&self, node: &NodeHardware, jobs: &[Job], page_ns: f64, curve: &Curve) -> f64 {
        let workers = jobs.iter().map(|j| j.workers).max().unwrap_or(1);
        // Measured teams are pinned: nothing has to settle.
        if workers < 2 || workers >= node.hw_threads || self.measured().is_some() {
            return 0.0;
        }
        let chunk_ns = |job: &Job| {
            let busy = job.workers.min(u32::try_from(job.chunks.len()).unwrap_or(u32::MAX));
            let largest = job.chunks.iter().copied().max().unwrap_or(0);
            largest as f64 * page_ns / curve.speed(busy.max(1))
        };
        let shared = jobs.iter().filter(|j| j.workers > 1);
        let chunk_ns = shared.map(chunk_ns).fold(0.0, f64::max);
        let per_thread_ns = self.hardware.scaling.settle_ms_per_thread * 1e6;
        chunk_ns.min(per_thread_ns * f64::from(node.hw_threads))
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
            settle_ns: time.settle_ns,
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
