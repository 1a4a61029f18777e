//! What the measured rates mean for whole machines: multiplication, labelled so.
//!
//! A machine's time is the sum of its phases: pages × this host's ns per page for the
//! boot CPU, and the node with the most pages for the nodes' threads. That holds a
//! terabyte machine to this host's cores and memory, which is all that measuring
//! here can say; a prediction by processor is a different thing.

use super::StudyError;
use super::figures::{Drawn, PhaseRate};
use crate::exec::RunTimes;
use crate::kernel::{KernelModel, Layout, layout};
use crate::machine::{Machine, input};
use crate::plan::{BootPlan, Executor, Strategy};
use crate::record::{Label, ScaledMachine, ScaledRow};
use crate::study::Candidate;

/// Two machines of a terabyte and more that every comparison is scaled to.
const TERABYTE_MACHINES: [&str; 2] = ["@8n-e7-8895v3-1t", "@16n-hp-12t"];

/// The rule, for the record and the table.
pub const RULE: &str = "pages x this host's measured ns per page, phase by phase; all nodes at \
                        once, the one with the most pages decides";

/// Scales the measured rates to `machine` and to two built-in terabyte machines.
///
/// # Errors
/// When a built-in machine does not load: a defect of this program.
pub fn scaled_machines(
    drawn: &Drawn<'_>,
    machine: &Machine,
    whole: &Layout,
    free: bool,
) -> Result<Vec<ScaledMachine>, StudyError> {
    let measured: Vec<(&Candidate, &Vec<RunTimes>)> =
        drawn.with_runs().filter(|(c, _)| c.probe.is_none()).collect();
    if measured.is_empty() {
        return Ok(Vec::new());
    }
    let mut out = vec![scaled(drawn, &measured, machine, whole, free)];
    for name in TERABYTE_MACHINES.iter().filter(|name| **name != machine.name) {
        let big = input::load(name, None)?;
        let kernel = KernelModel::new(whole.kernel.version, big.arch);
        let layout = layout(&big, &kernel)?;
        out.push(scaled(drawn, &measured, &big, &layout, free));
    }
    Ok(out)
}

fn scaled(
    drawn: &Drawn<'_>,
    measured: &[(&Candidate, &Vec<RunTimes>)],
    machine: &Machine,
    layout: &Layout,
    free: bool,
) -> ScaledMachine {
    let mut rows: Vec<ScaledRow> = measured
        .iter()
        .filter_map(|(candidate, runs)| {
            let strategy = Strategy::named(&candidate.name)?;
            let plan = strategy.plan(layout, candidate.store.as_deref(), free);
            Some(row(candidate, &plan, &drawn.rates(candidate, runs)))
        })
        .collect();
    let base = rows.iter().find(|r| r.strategy == Strategy::Prezero.name()).map(|r| r.total_ns);
    for row in &mut rows {
        row.saved_ns = base.map(|base| base - row.total_ns);
    }
    ScaledMachine {
        machine: machine.name.clone(),
        title: machine.title.clone(),
        memory_bytes: machine.memory_bytes(),
        label: Label::Scaled,
        rule: RULE.into(),
        rows,
    }
}

fn row(candidate: &Candidate, plan: &BootPlan, rates: &[PhaseRate]) -> ScaledRow {
    let (mut boot_cpu_ns, mut deferred_ns) = (0.0, 0.0);
    for phase in &plan.phases {
        let rate = rates.iter().find(|r| r.phase == phase.name).map_or(0.0, |r| r.ns_per_page);
        match phase.executor {
            Executor::BootCpu => boot_cpu_ns += rate * phase.pages() as f64,
            Executor::NodeThreads => {
                let most = phase.work.iter().map(|w| w.pages()).max().unwrap_or(0);
                deferred_ns += rate * most as f64;
            }
        }
    }
    ScaledRow {
        strategy: candidate.name.clone(),
        store: candidate.store.clone(),
        boot_cpu_ns,
        deferred_ns,
        total_ns: boot_cpu_ns + deferred_ns,
        saved_ns: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::KernelVersion;

    #[test]
    fn the_terabyte_machines_load_and_defer_most_of_their_pages() {
        for name in TERABYTE_MACHINES {
            let machine = input::load(name, None).unwrap();
            let kernel = KernelModel::new(KernelVersion::new(6, 12), machine.arch);
            let layout = layout(&machine, &kernel).unwrap();
            let deferred: u64 =
                layout.nodes.iter().map(|n| crate::pfn::total_pages(&n.deferred)).sum();
            assert!(deferred * machine.page_bytes * 10 > machine.memory_bytes() * 9);
        }
    }
}
