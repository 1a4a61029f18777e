//! Running a sweep's combinations for real, on this host.
//!
//! The combinations of one machine and kernel share memory and run interleaved, once per
//! round, as in [`crate::study::compare()`]; machines that are not this host are executed
//! through a window. What this host cannot do is listed with the reason.

use super::job::{Job, Outcome, digest};
use super::{Combination, Control, chunk_pages};
use crate::exec::{Mapping, Memory, RunTimes, zero_advantage};
use crate::host::node_memory::node_available_bytes;
use crate::kernel::{Layout, layout};
use crate::machine::{Machine, doctor};
use crate::pfn::PfnRange;
use crate::plan::Strategy;
use crate::record::sweep::{MachineShape, MeasuredPoint, SweepPoint};
use crate::record::{Label, Point};
use crate::study::StudyError;
use crate::study::candidates::{Candidate, candidates, default_store};
use crate::study::compare::{
    HostContext, Options, execution, host_facts, idle_threads, no_huge_pages, stand_ins,
    zeroes_faster,
};
use crate::study::figures::Drawn;
use crate::study::rounds::{Rounds, RunsOf};
use crate::study::setup::{check_nodes, map_nodes, plan_buffer, served_nodes, set_threads};
use crate::warning::Warning;
use std::collections::HashMap;
use std::path::Path;

/// How combinations are run.
pub struct Measure<'m> {
    /// The host that runs them.
    pub host: &'m HostContext,
    /// Rounds of runs.
    pub runs: u32,
    /// Seed of their order.
    pub seed: u64,
    /// Bytes of the buffer; `None` to decide here.
    pub buffer_bytes: Option<u64>,
}

/// Plans that were run, by what makes them: their digest, and the kernel.
type Seen = HashMap<(Strategy, u32, Option<u64>), Vec<(String, String)>>;

/// A machine under one kernel, ready to run.
struct Ready {
    machine: Machine,
    shape: MachineShape,
    version: String,
    whole: Layout,
    executed: Layout,
    nodes: Vec<(Mapping, Vec<PfnRange>)>,
    copies: usize,
    options: Options,
    warnings: Vec<Warning>,
}

/// Runs what is missing.
///
/// # Errors
/// For wrong data, what executing says, and when saving fails. An interruption is none.
pub(super) fn run(
    job: &mut Job<'_>,
    control: &mut Control<'_>,
    measure: &Measure<'_>,
) -> Result<(), StudyError> {
    job.host.get_or_insert_with(|| host_facts(measure.host));
    warn(job, doctor::warnings(measure.host.clock.facts()));
    let kernels = job.axes.kernels.len().max(1);
    let mut seen = Seen::new();
    for case in 0..job.cases() {
        if (control.stop)() {
            return Ok(());
        }
        if case.is_multiple_of(kernels) {
            // Another machine.
            seen.clear();
        }
        match run_case(job, control, measure, case, &mut seen) {
            Err(error) if error.is_interrupt() => return Ok(()),
            done => done?,
        }
    }
    Ok(())
}

fn run_case(
    job: &mut Job<'_>,
    control: &mut Control<'_>,
    measure: &Measure<'_>,
    case: usize,
    seen: &mut Seen,
) -> Result<(), StudyError> {
    let range = job.case_range(case);
    let Some(first) = job.at(range.start) else { return Ok(()) };
    let ready = match prepare(job, first, measure) {
        Ok(ready) => ready,
        Err(reason) => {
            for slot in job.outcomes.get_mut(range).unwrap_or_default() {
                slot.get_or_insert_with(|| Outcome::Skipped(reason.clone()));
            }
            return Ok(());
        }
    };
    let (mut indices, mut chosen) = (Vec::new(), Vec::new());
    for index in range {
        match candidate(job, &ready, index, seen) {
            Ok(Some(candidate)) => {
                indices.push(index);
                chosen.push(candidate);
            }
            Ok(None) => {}
            Err(reason) => set(job, index, Outcome::Skipped(reason)),
        }
    }
    if chosen.is_empty() {
        return Ok(());
    }
    rounds(job, control, measure, ready, (indices, chosen))
}

/// What is needed to run a machine's combinations; why that cannot be done, if so.
fn prepare(job: &Job<'_>, first: Combination, measure: &Measure<'_>) -> Result<Ready, String> {
    let machine = first.shape.of(job.machine)?;
    let kernel = job.axes.kernels.get(first.kernel).ok_or("there is no such kernel")?;
    let options = Options {
        buffer_bytes: measure.buffer_bytes,
        free: job.question.free,
        runs: measure.runs,
        seed: measure.seed,
        ..Options::default()
    };
    let host = measure.host;
    let text = |error: StudyError| error.to_string();
    let whole = layout(&machine, kernel).map_err(|error| error.to_string())?;
    let buffer = plan_buffer(&whole, &host.room, &options).map_err(text)?;
    let executed = buffer.window.layout.clone();
    let nodes = map_nodes(&machine, &executed, &host.room, &options).map_err(text)?;
    let available = |nid| node_available_bytes(Path::new("/"), nid);
    check_nodes(&nodes, buffer.copies, available).map_err(text)?;
    let mut warnings = whole.warnings.clone();
    warnings.extend(stand_ins(&machine, &execution(&buffer, &nodes, &options).mapping));
    warnings.extend(served_nodes(&machine, &nodes, &host.topo.nodes()));
    let copies = buffer.copies;
    warnings.extend(buffer.warnings);
    let version = kernel.version.to_string();
    let shape = job.shape_of(first.shape);
    Ok(Ready { machine, shape, version, whole, executed, nodes, copies, options, warnings })
}

/// What runs a combination; nothing where it has its figure already.
///
/// # Errors
/// Why it cannot be run, or need not.
fn candidate(
    job: &Job<'_>,
    ready: &Ready,
    index: usize,
    seen: &mut Seen,
) -> Result<Option<Candidate>, String> {
    let combination = job.at(index).ok_or("there is no such combination")?;
    let Combination { strategy, threads, chunk_bytes, .. } = combination;
    let own = ready.nodes.iter().zip(&ready.executed.nodes).filter(|(_, node)| node.cpus > 0);
    let fewest = own.map(|((mapping, _), _)| mapping.cpus.len()).min().unwrap_or(1);
    if threads as usize > fewest {
        return Err(format!("a node of this host has {fewest} CPUs that may be used"));
    }
    let chunk_pages = chunk_pages(chunk_bytes, &ready.machine)?;
    let options = Options { threads: Some(threads), chunk_pages, ..ready.options.clone() };
    let mut executed = ready.executed.clone();
    set_threads(&mut executed, &ready.nodes, &options);
    let choice = [(strategy, default_store(strategy.store_role()))];
    let all = candidates(&choice, &executed, &ready.whole, options.free, chunk_pages);
    let found = all.into_iter().find(|c| c.probe.is_none());
    let found = found.ok_or("there is nothing to execute")?;
    let plan = digest(&(&found.executed.phases, found.executed.freeing));
    let known = seen.entry((strategy, threads, chunk_bytes)).or_default();
    if let Some((_, version)) = known.iter().find(|(other, _)| *other == plan) {
        return Err(format!("the same plan as under Linux {version}, which is measured"));
    }
    known.push((plan, ready.version.clone()));
    let done = job.outcomes.get(index).is_none_or(Option::is_some);
    Ok((!done).then_some(found))
}

fn set(job: &mut Job<'_>, index: usize, outcome: Outcome) {
    if let Some(slot) = job.outcomes.get_mut(index) {
        *slot = Some(outcome);
    }
}

fn rounds(
    job: &mut Job<'_>,
    control: &mut Control<'_>,
    measure: &Measure<'_>,
    mut ready: Ready,
    (indices, chosen): (Vec<usize>, Vec<Candidate>),
) -> Result<(), StudyError> {
    let mut warnings = std::mem::take(&mut ready.warnings);
    let most = indices.iter().filter_map(|index| job.at(*index)).map(|c| c.threads).max();
    let asked = Options { threads: most, ..ready.options.clone() };
    warnings.extend(idle_threads(&chosen, &asked));
    let memory = Memory::map(std::mem::take(&mut ready.nodes), ready.copies)?;
    let executed = ready.executed.clone();
    let (host, progress, stop) = (measure.host, control.progress, control.stop);
    let mut rounds = Rounds { host, executed, candidates: chosen, memory, progress, stop };
    warnings.extend(touch(&mut rounds, &mut ready)?);
    warn(job, warnings);
    let mut keep = control.keep.as_deref_mut();
    if let Some(keeper) = keep.as_deref_mut() {
        keeper.save(&job.record())?;
    }
    let mut samples = RunsOf::new();
    let ended = rounds.run(measure.runs, measure.seed, &mut samples, &mut |rounds, samples| {
        let Some(keeper) = keep.as_deref_mut() else { return Ok(()) };
        if !keeper.is_time() {
            return Ok(());
        }
        put(job, &ready, rounds, &indices, samples);
        Ok(keeper.save(&job.record())?)
    });
    put(job, &ready, &rounds, &indices, &samples);
    ended
}

/// Faults the memory in; what is to be said of it.
fn touch(rounds: &mut Rounds<'_>, ready: &mut Ready) -> Result<Vec<Warning>, StudyError> {
    let touch = rounds.fault_in()?;
    let mut warnings = touch.warnings;
    let mapped = crate::record::Execution {
        buffer_bytes: rounds.memory.bytes(),
        huge_page_bytes: rounds.memory.huge_page_bytes(),
        ..crate::record::Execution::default()
    };
    warnings.extend(no_huge_pages(&mapped));
    let (topo, clock) = (&rounds.host.topo, &rounds.host.clock);
    warnings.extend(zeroes_faster(zero_advantage(&mut rounds.memory, topo, clock, rounds.stop)?));
    ready.options.buffer_bytes = Some(mapped.buffer_bytes);
    Ok(warnings)
}

/// Says what was not said before; one warning of a kind is enough.
fn warn(job: &mut Job<'_>, warnings: Vec<Warning>) {
    for warning in warnings {
        if !job.head.warnings.iter().any(|known| known.code == warning.code) {
            job.head.warnings.push(warning);
        }
    }
}

/// Puts the figures of the runs so far into their places.
fn put(job: &mut Job<'_>, ready: &Ready, rounds: &Rounds<'_>, indices: &[usize], samples: &RunsOf) {
    let all = indices.iter().zip(&rounds.candidates).zip(samples);
    let point = |((index, candidate), runs): ((&usize, &Candidate), &Vec<RunTimes>)| {
        let drawn = Drawn {
            candidates: std::slice::from_ref(candidate),
            samples: std::slice::from_ref(runs),
            copies: rounds.memory.copies as u64,
            seed: ready.options.seed,
            took_turns: !ready.machine.is_this_host,
        };
        let point = point(job.at(*index)?, ready, &drawn.points())?;
        Some((*index, Outcome::Point(Box::new(point))))
    };
    let done: Vec<(usize, Outcome)> = all.filter_map(point).collect();
    for (index, outcome) in done {
        set(job, index, outcome);
    }
}

/// A combination's point; `None` before its first run.
fn point(combination: Combination, ready: &Ready, parts: &[Point]) -> Option<SweepPoint> {
    let Combination { strategy, threads, chunk_bytes, .. } = combination;
    let part = |name: &str| parts.iter().find(|p| p.phase == name && p.nid.is_none());
    let whole = |ns: f64| ns.round() as u64;
    let scaled = |name: &str| part(name).map_or(0, |p| whole(p.scaled_median_ns));
    let total = part("total")?;
    let factor = total.scaled_median_ns / total.median_ns.max(1.0);
    // Copies beyond the first are the same pages again.
    let is_whole = total.executed_pages >= total.scaled_pages && ready.machine.is_this_host;
    Some(SweepPoint {
        kernel: ready.version.clone(),
        strategy: strategy.name().into(),
        threads,
        chunk_bytes,
        total_ns: whole(total.scaled_median_ns),
        boot_cpu_ns: scaled("boot-cpu"),
        nodes_ns: scaled("deferred"),
        node_bytes: part("deferred")
            .map(|p| p.scaled_pages.saturating_mul(crate::kernel::struct_page::STRUCT_PAGE_BYTES)),
        settle_ns: 0,
        range_ns: total.ci95_ns.map(|ns| whole(ns * factor)),
        bound_by: "not-known".into(),
        nodes: ready.shape.nodes,
        memory_bytes: ready.shape.memory_bytes,
        page_bytes: ready.shape.page_bytes,
        label: if is_whole { Label::Measured } else { Label::Scaled },
        measured: Some(MeasuredPoint {
            samples_ns: total.samples_ns.clone(),
            median_ns: total.median_ns,
            ci95_ns: total.ci95_ns,
            executed_pages: total.executed_pages,
            machine_pages: total.scaled_pages,
            verified: total.verified,
        }),
    })
}
