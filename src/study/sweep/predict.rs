//! Predicting a sweep's combinations, in parallel and in blocks.
//!
//! Layouts are made a few machines and kernels at a time, so that memory stays bounded
//! however many there are. Between blocks the record is saved and the user is heard.

use super::job::{Job, Outcome};
use super::shapes::{Shape, pattern};
use super::{Combination, Control, chunk_pages, most_threads};
use crate::machine::Machine;
use crate::model::Setup;
use crate::plan::Executor;
use crate::progress::Unit;
use crate::record::Label;
use crate::record::sweep::{MachineShape, SweepPoint};
use crate::study::StudyError;
use crate::study::estimate::{Case, bound_by, node_bytes};
use rayon::prelude::*;

/// Machines under one kernel that are laid out at the same time.
const BATCH: usize = 16;

/// Points between two chances to save and to stop.
const BLOCK: usize = 32;

/// A machine under one kernel, ready to be asked.
struct Ready {
    case: Case,
    machine: Machine,
    shape: MachineShape,
    most_threads: u32,
}

/// Predicts what is missing.
///
/// # Errors
/// When saving fails.
pub(super) fn run(job: &mut Job<'_>, control: &mut Control<'_>) -> Result<(), StudyError> {
    let missing = job.outcomes.iter().filter(|outcome| outcome.is_none()).count();
    control.progress.begin("predicting", missing as u64, Unit::Runs);
    let done = batches(job, control);
    control.progress.end();
    done
}

fn batches(job: &mut Job<'_>, control: &mut Control<'_>) -> Result<(), StudyError> {
    for first in (0..job.cases()).step_by(BATCH) {
        let cases: Vec<usize> = (first..job.cases().min(first + BATCH)).collect();
        let missing = |case: &usize| -> Vec<usize> {
            let range = job.case_range(*case);
            range.filter(|at| job.outcomes.get(*at).is_some_and(Option::is_none)).collect()
        };
        let todo: Vec<Vec<usize>> = cases.iter().map(missing).collect();
        let ready: Vec<Option<Result<Ready, String>>> = cases
            .par_iter()
            .zip(&todo)
            .map(|(case, todo)| {
                (!todo.is_empty() && !(control.stop)()).then(|| prepare(job, *case))
            })
            .collect();
        let todo: Vec<(usize, usize)> = (0..).zip(&todo).flat_map(|(i, t)| pairs(i, t)).collect();
        for block in todo.chunks(BLOCK) {
            let done: Vec<(usize, Outcome)> = block
                .par_iter()
                .filter_map(|(case, index)| {
                    let ready = ready.get(*case)?.as_ref()?;
                    let outcome = (!(control.stop)()).then(|| outcome(job, ready, *index))??;
                    control.progress.advance(1);
                    Some((*index, outcome))
                })
                .collect();
            put(job, done);
            if (control.stop)() {
                return Ok(());
            }
            if let Some(keeper) = control.keep.as_deref_mut()
                && keeper.is_time()
            {
                keeper.save(&job.record())?;
            }
        }
    }
    Ok(())
}

fn pairs(case: usize, indices: &[usize]) -> impl Iterator<Item = (usize, usize)> {
    indices.iter().map(move |index| (case, *index))
}

fn put(job: &mut Job<'_>, done: Vec<(usize, Outcome)>) {
    for (index, outcome) in done {
        if let Some(slot) = job.outcomes.get_mut(index) {
            *slot = Some(outcome);
        }
    }
}

/// Lays a machine out under one kernel; why that cannot be done, if so.
fn prepare(job: &Job<'_>, case: usize) -> Result<Ready, String> {
    let first = job.at(job.case_range(case).start).ok_or("there is no such combination")?;
    let machine = first.shape.of(job.machine)?;
    let kernel = job.axes.kernels.get(first.kernel).ok_or("there is no such kernel")?;
    let case = Case::new(&machine, kernel, job.question).map_err(|error| error.to_string())?;
    let setup = setup_for(&job.setup, &machine, &first.shape, job.machine);
    Ok(Ready {
        case: Case { setup, ..case },
        shape: job.shape_of(first.shape),
        most_threads: most_threads(&machine),
        machine,
    })
}

/// Options and anchors of the machine as it is for the machine that is made of it: nodes
/// that repeat another one have the anchor of that one.
fn setup_for(setup: &Setup, machine: &Machine, shape: &Shape, base: &Machine) -> Setup {
    let mut out = setup.clone();
    out.options.page_bytes = machine.page_bytes;
    let Some(repeated) = shape.nodes.and(pattern(base)).map(|node| node.nid) else { return out };
    let all = |factor: f64| machine.nodes.iter().map(|node| (node.nid, factor)).collect();
    if !setup.scales.is_empty() {
        out.scales = all(setup.scale_of(repeated));
        out.rates = all(setup.rate_of(repeated));
    }
    out
}

fn outcome(job: &Job<'_>, ready: &Result<Ready, String>, index: usize) -> Option<Outcome> {
    let combination = job.at(index)?;
    let ready = match ready {
        Ok(ready) => ready,
        Err(reason) => return Some(Outcome::Skipped(reason.clone())),
    };
    let most = ready.most_threads;
    if combination.threads > most {
        let reason = format!("a node of {} has {most} CPUs", ready.machine.name);
        return Some(Outcome::Skipped(reason));
    }
    Some(match chunk_pages(combination.chunk_bytes, &ready.machine) {
        Ok(pages) => Outcome::Point(Box::new(point(job, ready, combination, pages))),
        Err(reason) => Outcome::Skipped(reason),
    })
}

fn point(
    job: &Job<'_>,
    ready: &Ready,
    combination: Combination,
    chunk_pages: Option<u64>,
) -> SweepPoint {
    let Combination { strategy, threads, chunk_bytes, .. } = combination;
    let (case, shape) = (&ready.case, ready.shape);
    let plan = case.plan(strategy, Some(threads), chunk_pages, job.question.free);
    let run = case.run(&plan);
    let range = case.range(&run, threads);
    let whole = |ns: f64| ns.round() as u64;
    SweepPoint {
        kernel: case.layout.kernel.version.to_string(),
        strategy: strategy.name().into(),
        threads,
        chunk_bytes,
        total_ns: whole(run.total_ns()),
        boot_cpu_ns: whole(run.share_ns(Executor::BootCpu)),
        nodes_ns: whole(run.share_ns(Executor::NodeThreads)),
        node_bytes: Some(node_bytes(&run, case.layout.struct_page_bytes)),
        settle_ns: whole(run.settle_ns()),
        range_ns: [whole(range.low_ns), whole(range.high_ns)],
        bound_by: bound_by(run.bound(&case.hardware)),
        nodes: shape.nodes,
        memory_bytes: shape.memory_bytes,
        page_bytes: shape.page_bytes,
        label: Label::Modelled,
        measured: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::input;
    use crate::pfn::Nid;

    // node 0 | node 8   becomes   node 0 | node 1 (| node 2), all of them like node 0
    #[test]
    fn made_up_nodes_have_the_anchor_of_the_node_that_they_repeat() {
        let mut base = input::load("@2n-skylake-768g", None).unwrap();
        base.nodes[1].nid = Nid(8);
        base.cpus.iter_mut().filter(|c| c.nid == Nid(1)).for_each(|c| c.nid = Nid(8));
        let setup = Setup {
            scales: vec![(Nid(0), 0.5), (Nid(8), 2.0)],
            rates: vec![(Nid(0), 1.0), (Nid(8), 0.25)],
            ..Setup::default()
        };
        for count in [2, 3] {
            let shape = Shape { nodes: Some(count), ..Shape::default() };
            let made = setup_for(&setup, &shape.of(&base).unwrap(), &shape, &base);
            for nid in (0..count).map(Nid) {
                assert_eq!((made.scale_of(nid), made.rate_of(nid)), (0.5, 1.0), "{count} {nid}");
            }
        }
        let same = setup_for(&setup, &base, &Shape::default(), &base);
        assert_eq!((same.scales, same.rates), (setup.scales, setup.rates));
    }
}
