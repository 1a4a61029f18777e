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
use crate::record::{Label, Point, ScaledMachine, ScaledRow};
use crate::study::Candidate;
use crate::warning::Warning;

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
    out.retain(|machine| !machine.rows.is_empty());
    Ok(out)
}

/// What is said where machines lack strategies of `points`.
pub fn left_out(machines: &[ScaledMachine], points: &[Point]) -> Option<Warning> {
    let of_strategies =
        points.iter().filter(|p| p.phase == "total" && Strategy::named(&p.strategy).is_some());
    let wanted = of_strategies.count();
    let lacks = machines.len() < 2 || machines.iter().any(|machine| machine.rows.len() < wanted);
    (wanted > 0 && lacks).then(|| {
        Warning::new(
            "not-scaled",
            "strategies are not scaled to machines that have phases which this one has not",
            "measure a machine that defers struct pages, with a kernel that does",
        )
    })
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
            row(candidate, &plan, &drawn.rates(candidate, runs))
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

/// `None` where a phase has pages there and had none here: a machine that defers nothing
/// says nothing about what deferring costs.
fn row(candidate: &Candidate, plan: &BootPlan, rates: &[PhaseRate]) -> Option<ScaledRow> {
    let (mut boot_cpu_ns, mut deferred_ns) = (0.0, 0.0);
    for phase in &plan.phases {
        let rate = rates.iter().find(|r| r.phase == phase.name)?.ns_per_page;
        match phase.executor {
            Executor::BootCpu => boot_cpu_ns += rate * phase.pages() as f64,
            Executor::NodeThreads => {
                let most = phase.work.iter().map(|w| w.pages()).max().unwrap_or(0);
                deferred_ns += rate * most as f64;
            }
        }
    }
    Some(ScaledRow {
        strategy: candidate.name.clone(),
        store: candidate.store.clone(),
        boot_cpu_ns,
        deferred_ns,
        total_ns: boot_cpu_ns + deferred_ns,
        saved_ns: None,
    })
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

    #[test]
    fn a_phase_that_was_not_measured_is_not_free() {
        let [small, big] = ["@vm-2c", "@2n-skylake-768g"].map(|name| {
            let machine = input::load(name, None).unwrap();
            layout(&machine, &KernelModel::new(KernelVersion::new(6, 12), machine.arch)).unwrap()
        });
        let plan = Strategy::Prezero.plan(&big, None, true);
        let executed = Strategy::Serial.plan(&small, None, true);
        let candidate = Candidate {
            name: "prezero".into(),
            probe: None,
            store: None,
            executed: executed.clone(),
            whole: executed,
        };
        let rate = |phase: &crate::plan::Phase| PhaseRate {
            phase: phase.name,
            executor: phase.executor,
            ns_per_page: 1.0,
        };
        let all: Vec<PhaseRate> = plan.phases.iter().map(rate).collect();
        assert!(row(&candidate, &plan, &all).is_some());
        let early: Vec<PhaseRate> =
            all.into_iter().filter(|r| r.executor == Executor::BootCpu).collect();
        assert_eq!(row(&candidate, &plan, &early), None);
    }
}
