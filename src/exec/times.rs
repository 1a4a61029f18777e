//! What a run took: [`RunTimes`], by phase, node and worker.

use crate::pfn::Nid;
use crate::plan::{Executor, PhaseName};

/// What one run of a plan took.
#[derive(Clone, Debug, PartialEq)]
pub struct RunTimes {
    /// The phases in boot order.
    pub phases: Vec<PhaseTime>,
    /// Whether memory was compared with the oracle afterwards and found right. A run
    /// alone does not compare: whoever calls [`super::verify::verify`] says so here.
    pub verified: bool,
}

/// What one phase took.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseTime {
    /// Which phase.
    pub name: PhaseName,
    /// Who did it.
    pub executor: Executor,
    /// The boot CPU's time, or that of the slowest node, in ns.
    pub wall_ns: u64,
    /// Each node's time in ns; empty for the boot CPU.
    pub nodes: Vec<(Nid, u64)>,
    /// Each worker's time.
    pub workers: Vec<WorkerSpan>,
}

/// When one worker began and ended, and how much of it was page work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerSpan {
    /// The node whose pages it worked on.
    pub nid: Nid,
    /// The CPU it was pinned to.
    pub cpu: u32,
    /// The CPUs it was on when it began and when it ended.
    pub ran_on: [Option<u32>; 2],
    /// Start in ns of the raw monotonic clock.
    pub start_ns: u64,
    /// End in ns of the same clock.
    pub end_ns: u64,
    /// Time inside page operations, in ns.
    pub busy_ns: u64,
    /// Chunks taken.
    pub chunks: u64,
}

impl RunTimes {
    /// The whole run in ns.
    pub fn total_ns(&self) -> u64 {
        self.phases.iter().map(|p| p.wall_ns).sum()
    }

    /// The share of workers' time outside page operations, 0 to 1.
    pub fn overhead_share(&self) -> f64 {
        let workers = self.phases.iter().flat_map(|p| &p.workers);
        let (wall, busy) = workers.fold((0, 0), |(wall, busy), w| {
            (wall + w.end_ns.saturating_sub(w.start_ns), busy + w.busy_ns)
        });
        if wall == 0 { 0.0 } else { 1.0 - busy as f64 / wall as f64 }
    }
}
