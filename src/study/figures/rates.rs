//! What a struct page costs, phase by phase: [`PhaseRate`] of all nodes together, for
//! scaling, and [`TeamRates`] of nodes with whole teams, for calibrations.

use super::{Drawn, phase_ns, threads};
use crate::exec::RunTimes;
use crate::pfn::Nid;
use crate::plan::{Executor, Phase, PhaseName, Work};
use crate::stats::median;
use crate::study::Candidate;
use std::collections::BTreeSet;

/// What one phase costs per struct page, as measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PhaseRate {
    /// The phase.
    pub phase: PhaseName,
    /// Who does it.
    pub executor: Executor,
    /// Time per struct page: of the boot CPU, or of one node with its threads.
    pub ns_per_page: f64,
}

/// What a page costs with one strategy and a number of threads.
#[derive(Clone, Debug, PartialEq)]
pub struct TeamRates {
    /// The strategy.
    pub strategy: String,
    /// Whether pages were freed.
    pub free: bool,
    /// Threads per node.
    pub threads: u32,
    /// Phase by phase, those with pages.
    pub phases: Vec<PhaseRate>,
}

impl Drawn<'_> {
    /// The boot CPU's time of a candidate per struct page and phase, and the nodes'.
    pub fn rates(&self, candidate: &Candidate, runs: &[RunTimes]) -> Vec<PhaseRate> {
        let phases = candidate.executed.phases.iter().enumerate();
        phases
            .map(|(i, phase)| {
                let pages = phase.pages().saturating_mul(self.copies).max(1) as f64;
                let per_page: Vec<f64> =
                    runs.iter().map(|run| phase_ns(&run.phases[i]) / pages).collect();
                let ns_per_page = median(&per_page);
                PhaseRate { phase: phase.name, executor: phase.executor, ns_per_page }
            })
            .collect()
    }

    /// What every strategy costs the boot CPU, and the teams of those of `nodes` that have as
    /// many threads as the plan's largest: a node that another's CPU serves, or one with few
    /// chunks, says nothing about such a team. Phases without pages are left out.
    pub fn team_rates(&self, nodes: &[Nid]) -> Vec<TeamRates> {
        let strategies = self.with_runs().filter(|(c, _)| c.probe.is_none());
        let of = |(candidate, runs): (&Candidate, &Vec<RunTimes>)| {
            let plan = &candidate.executed;
            let threads = threads(plan);
            let phases = plan.phases.iter().enumerate();
            TeamRates {
                strategy: candidate.name.clone(),
                free: plan.free,
                threads,
                phases: phases
                    .filter_map(|(i, phase)| self.team_rate(i, phase, (nodes, threads), runs))
                    .collect(),
            }
        };
        strategies.map(of).collect()
    }

    fn team_rate(
        &self,
        index: usize,
        phase: &Phase,
        (nodes, threads): (&[Nid], u32),
        runs: &[RunTimes],
    ) -> Option<PhaseRate> {
        let whole = |w: &&Work| w.threads() == threads && nodes.contains(&w.nid);
        let teams: BTreeSet<Nid> = phase.work.iter().filter(whole).map(|w| w.nid).collect();
        let (pages, ns): (u64, &dyn Fn(&RunTimes) -> f64) = match phase.executor {
            Executor::BootCpu => (phase.pages(), &|run| phase_ns(&run.phases[index])),
            Executor::NodeThreads => (teams.iter().map(|nid| phase.pages_of(*nid)).sum(), &|run| {
                let of_nodes = run.phases[index].nodes.iter();
                of_nodes.filter(|(nid, _)| teams.contains(nid)).map(|(_, ns)| *ns as f64).sum()
            }),
        };
        let executed = pages.saturating_mul(self.copies) as f64;
        let per_page: Vec<f64> = runs.iter().map(|run| ns(run) / executed).collect();
        (pages > 0).then(|| PhaseRate {
            phase: phase.name,
            executor: phase.executor,
            ns_per_page: median(&per_page),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::times::PhaseTime;
    use crate::kernel::{KernelModel, KernelVersion, Layout, layout};
    use crate::machine::input;
    use crate::plan::Strategy;

    /// Two nodes of two threads each.
    fn two_nodes() -> Layout {
        let machine = input::load("@2n-skylake-768g", None).unwrap();
        let kernel = KernelModel::new(KernelVersion::new(6, 12), machine.arch);
        let mut layout = layout(&machine, &kernel).unwrap();
        for node in &mut layout.nodes {
            node.jobs.iter_mut().for_each(|job| job.max_threads = 2);
        }
        layout
    }

    /// One run: a page costs the boot CPU 7 ns, node 0 100 ns, node 1 300 ns.
    fn times(candidate: &Candidate) -> RunTimes {
        let phases = candidate.executed.phases.iter().map(|phase| {
            let by_nodes = phase.executor == Executor::NodeThreads;
            let works = phase.work.iter().filter(|_| by_nodes);
            let nodes: Vec<(Nid, u64)> =
                works.map(|w| (w.nid, w.pages() * (100 + 200 * u64::from(w.nid.0)))).collect();
            let slowest = nodes.iter().map(|n| n.1).max().unwrap_or(7 * phase.pages());
            let (name, executor) = (phase.name, phase.executor);
            PhaseTime { name, executor, wall_ns: slowest, nodes, workers: Vec::new() }
        });
        RunTimes { phases: phases.collect(), verified: true }
    }

    #[test]
    fn a_teams_rate_is_of_its_own_node_and_pages() {
        let layout = two_nodes();
        let plan = Strategy::Deferred.plan(&layout, None, true);
        let (executed, whole) = (plan.clone(), plan);
        let candidate =
            Candidate { name: "deferred".into(), probe: None, store: None, executed, whole };
        let samples = [vec![times(&candidate)]];
        let candidates = [candidate];
        let drawn = Drawn {
            candidates: &candidates,
            samples: &samples,
            copies: 1,
            seed: 1,
            took_turns: false,
        };
        let deferred = |nodes: &[Nid]| -> Option<f64> {
            let teams = drawn.team_rates(nodes);
            assert_eq!((teams.len(), teams[0].threads), (1, 2));
            let phases = &teams[0].phases;
            let boot = phases.iter().find(|p| p.phase == PhaseName::EarlyInit).unwrap();
            assert!((boot.ns_per_page - 7.0).abs() < 1e-9);
            phases.iter().find(|p| p.phase == PhaseName::DeferredInit).map(|p| p.ns_per_page)
        };
        assert_eq!(deferred(&[Nid(0)]), Some(100.0));
        assert_eq!(deferred(&[Nid(1)]), Some(300.0));
        // Not the slowest node over the pages of both.
        let both = deferred(&[Nid(0), Nid(1)]).unwrap();
        assert!(both > 150.0 && both < 250.0, "{both}");
        assert_eq!(deferred(&[]), None);
    }
}
