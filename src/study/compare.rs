//! The main job: run the boot strategies for real and compare them.
//!
//! [`compare`] prepares memory once, lets [`Rounds`] run every [`Candidate`] once per
//! round, and fills a [`Record`]; [`compare_and_keep`] saves it while it grows.

use super::candidates::{Candidate, candidates, choices, strategies};
use super::facts::machine_facts;
use super::figures::{self, Drawn, TeamRates};
use super::room::HostRoom;
use super::rounds::{Rounds, RunsOf};
use super::setup::{BufferPlan, check_nodes, map_nodes, plan_buffer, served_nodes, set_threads};
use super::{StudyError, scale};
use crate::exec::{Mapping, Memory, RunTimes, Stop, zero_advantage};
use crate::host::clock::Clock;
use crate::host::node_memory::node_available_bytes;
use crate::host::store::Store;
use crate::host::topology::HostTopology;
use crate::host::zeroes;
use crate::kernel::cmdline::CommandLine;
use crate::kernel::{BootInput, KernelModel, Layout};
use crate::machine::{Machine, doctor};
use crate::pfn::{Nid, PfnRange};
use crate::plan::{Executor, Strategy, Work};
use crate::progress::Progress;
use crate::record::keeper::Keeper;
use crate::record::{COMPARE_SCHEMA, Execution, Head, HostFacts, MappingFacts, Record};
use crate::stats::median;
use crate::units::Bytes;
use crate::warning::Warning;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// What the user chose.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Names of strategies; empty for all.
    pub strategies: Vec<String>,
    /// Names of stores; empty for each strategy's default.
    pub stores: Vec<String>,
    /// Threads per node; `None` for what the kernel would use.
    pub threads: Option<u32>,
    /// Whether more threads than CPUs are allowed.
    pub oversubscribe: bool,
    /// Pages of a chunk; `None` for padata's rule.
    pub chunk_pages: Option<u64>,
    /// Bytes of the buffer; `None` to decide here.
    pub buffer_bytes: Option<u64>,
    /// Whether pages are handed to the buddy allocator.
    pub free: bool,
    /// Rounds of runs.
    pub runs: u32,
    /// Seed of the order of runs.
    pub seed: u64,
    /// The command line, for the record.
    pub argv: Vec<String>,
    /// The kernel's command line; its effects on nodes, memory and CPUs have been
    /// applied to the machine.
    pub line: Option<CommandLine>,
    /// The real node of each node that the command line made; others are their own.
    pub origins: BTreeMap<Nid, Nid>,
}

/// What is known about the host that measures.
#[derive(Debug)]
pub struct HostContext {
    /// For binding and pinning.
    pub topo: HostTopology,
    /// For timing.
    pub clock: Clock,
    /// What plans depend on.
    pub room: HostRoom,
}

/// Executes the strategies on this host and returns what was measured.
///
/// When `stop` says so, the record holds what was done by then and `complete` is
/// false.
///
/// # Errors
/// For options that cannot be met, too little memory, and wrong data.
pub fn compare(
    machine: &Machine,
    kernel: &KernelModel,
    host: &HostContext,
    options: &Options,
    progress: &dyn Progress,
    stop: Stop<'_>,
) -> Result<Record, StudyError> {
    compare_and_keep(machine, kernel, host, options, progress, stop, None)
}

/// As [`compare`]; `keep` saves what there is between rounds.
///
/// # Errors
/// As [`compare`], and when saving fails.
pub fn compare_and_keep(
    machine: &Machine,
    kernel: &KernelModel,
    host: &HostContext,
    options: &Options,
    progress: &dyn Progress,
    stop: Stop<'_>,
    keep: Option<&mut Keeper>,
) -> Result<Record, StudyError> {
    let inputs = Inputs { machine, kernel, host, options };
    Ok(execute(&inputs, progress, stop, keep, |_| ())?.0)
}

/// As [`compare`]; beside the record what a page costs the teams of `nodes`, by candidate.
///
/// # Errors
/// As [`compare`].
pub(super) fn compare_teams(
    inputs: &Inputs<'_>,
    nodes: &[Nid],
    progress: &dyn Progress,
    stop: Stop<'_>,
) -> Result<(Record, Vec<TeamRates>), StudyError> {
    execute(inputs, progress, stop, None, |drawn| drawn.team_rates(nodes))
}

/// What a comparison starts from.
pub(super) struct Inputs<'i> {
    pub machine: &'i Machine,
    pub kernel: &'i KernelModel,
    pub host: &'i HostContext,
    pub options: &'i Options,
}

/// Runs it; `more` is drawn from the samples beside the record.
fn execute<T>(
    inputs: &Inputs<'_>,
    progress: &dyn Progress,
    stop: Stop<'_>,
    mut keep: Option<&mut Keeper>,
    more: impl FnOnce(&Drawn<'_>) -> T,
) -> Result<(Record, T), StudyError> {
    let Inputs { machine, kernel, host, options } = *inputs;
    let whole = layout(machine, kernel, options)?;
    let choices = choices(&strategies(&options.strategies)?, &options.stores)?;
    let buffer = plan_buffer(&whole, &host.room, options)?;
    let mut executed = buffer.window.layout.clone();
    let nodes = map_nodes(machine, &executed, &host.room, options)?;
    set_threads(&mut executed, &nodes, options);
    check_nodes(&nodes, buffer.copies, |nid| node_available_bytes(Path::new("/"), nid))?;
    let mut record = new_record(machine, &whole, host, options);
    record.head.warnings.extend(machine.warnings.iter().chain(&whole.warnings).cloned());
    record.head.warnings.extend(doctor::warnings(host.clock.facts()));
    record.execution = execution(&buffer, &nodes, options);
    record.execution.is_this_host = Some(machine.is_this_host);
    record.head.warnings.extend(buffer.warnings);
    record.head.warnings.extend(stand_ins(machine, &record.execution.mapping));
    record.head.warnings.extend(served_nodes(machine, &nodes, &host.room.nodes));
    let candidates = candidates(&choices, &executed, &whole, options.free, options.chunk_pages);
    record.plans = figures::plan_facts(&candidates);
    record.head.warnings.extend(idle_threads(&candidates, options));

    let memory = Memory::map(nodes, buffer.copies)?;
    let drawing = Drawing { machine, whole: &whole, options };
    let mut rounds = Rounds { host, executed, candidates, memory, progress, stop };
    let mut samples = RunsOf::new();
    let ended = measure(&mut rounds, &mut record, &drawing, keep.as_deref_mut(), &mut samples);
    let done = samples.iter().map(Vec::len).min().unwrap_or(0);
    record.head.complete = !samples.is_empty() && done >= options.runs as usize;
    drawing.draw(&mut record, &rounds, &samples)?;
    match ended {
        Err(error) if !error.is_interrupt() => {
            // The error counts; that the runs so far are kept is a help, if it works.
            drop(keep.map(|keeper| keeper.save(&record)));
            Err(error)
        }
        _ => Ok((record, more(&drawing.drawn(&rounds, &samples)))),
    }
}

/// The whole machine's layout with the command line that was chosen.
fn layout(
    machine: &Machine,
    kernel: &KernelModel,
    options: &Options,
) -> Result<Layout, StudyError> {
    Ok(BootInput::of_machine(machine, kernel, options.line.as_ref())?.boot()?.0)
}

/// The plans that [`compare`] would execute, without touching memory or binding anything.
///
/// # Errors
/// As [`compare`].
pub fn plans(
    machine: &Machine,
    kernel: &KernelModel,
    room: &HostRoom,
    options: &Options,
) -> Result<Vec<Candidate>, StudyError> {
    let whole = layout(machine, kernel, options)?;
    let choices = choices(&strategies(&options.strategies)?, &options.stores)?;
    let buffer = plan_buffer(&whole, room, options)?;
    let mut executed = buffer.window.layout;
    let nodes = map_nodes(machine, &executed, room, options)?;
    set_threads(&mut executed, &nodes, options);
    Ok(candidates(&choices, &executed, &whole, options.free, options.chunk_pages))
}

/// Prepares the memory, runs all rounds, and notes what is known before them.
fn measure(
    rounds: &mut Rounds<'_>,
    record: &mut Record,
    drawing: &Drawing<'_>,
    mut keep: Option<&mut Keeper>,
    samples: &mut RunsOf,
) -> Result<(), StudyError> {
    let touch = rounds.fault_in()?;
    record.execution.first_touch_ns = Some(touch.wall_ns);
    record.execution.placement = touch.placement;
    record.execution.huge_page_bytes = rounds.memory.huge_page_bytes();
    record.head.warnings.extend(touch.warnings);
    record.head.warnings.extend(no_huge_pages(&record.execution));
    let (topo, clock) = (&rounds.host.topo, &rounds.host.clock);
    let advantage = zero_advantage(&mut rounds.memory, topo, clock, rounds.stop)?;
    record.execution.zero_advantage = Some(advantage);
    record.head.warnings.extend(zeroes_faster(advantage));
    // From here on a kill leaves a record, if one without figures.
    if let Some(keeper) = keep.as_deref_mut() {
        keeper.save(record)?;
    }
    let options = drawing.options;
    rounds.run(options.runs, options.seed, samples, &mut |rounds, samples| {
        let Some(keeper) = keep.as_deref_mut() else { return Ok(()) };
        if !keeper.is_time() {
            return Ok(());
        }
        let mut so_far = record.clone();
        drawing.draw(&mut so_far, rounds, samples)?;
        Ok(keeper.save(&so_far)?)
    })
}

/// What figures are drawn with.
struct Drawing<'d> {
    machine: &'d Machine,
    whole: &'d Layout,
    options: &'d Options,
}

impl Drawing<'_> {
    fn drawn<'r>(&self, rounds: &'r Rounds<'_>, samples: &'r RunsOf) -> Drawn<'r> {
        Drawn {
            candidates: &rounds.candidates,
            samples,
            copies: rounds.memory.copies as u64,
            seed: self.options.seed,
            took_turns: !self.machine.is_this_host,
        }
    }

    /// Everything in the record that follows from the samples.
    fn draw(
        &self,
        record: &mut Record,
        rounds: &Rounds<'_>,
        samples: &RunsOf,
    ) -> Result<(), StudyError> {
        let drawn = self.drawn(rounds, samples);
        record.points = drawn.points();
        record.ratios = drawn.ratios(&record.baseline, record.execution.whole_label());
        record.prefetch = drawn.prefetch();
        record.published = super::beside::ratios(record);
        let shares: Vec<f64> = samples.iter().flatten().map(RunTimes::overhead_share).collect();
        note_cpus(record, samples);
        record.execution.overhead_share = (!shares.is_empty()).then(|| median(&shares));
        record.scaled =
            scale::scaled_machines(&drawn, self.machine, self.whole, self.options.free)?;
        record.head.warnings.extend(scale::left_out(&record.scaled, &record.points));
        Ok(())
    }
}

/// Notes the CPUs that workers were on, and warns of those they were not pinned to.
fn note_cpus(record: &mut Record, samples: &[Vec<RunTimes>]) {
    let phases = || samples.iter().flatten().flat_map(|run| &run.phases);
    let seen = |executor: Executor, nid: Option<u32>| -> Vec<u32> {
        let workers = phases().filter(|p| p.executor == executor).flat_map(|p| &p.workers);
        let mine = workers.filter(|w| nid.is_none_or(|nid| w.nid.0 == nid));
        let cpus: BTreeSet<u32> = mine.flat_map(|w| w.ran_on).flatten().collect();
        cpus.into_iter().collect()
    };
    for mapping in &mut record.execution.mapping {
        mapping.ran_on = seen(Executor::NodeThreads, Some(mapping.nid));
    }
    record.execution.boot_cpu_ran_on = seen(Executor::BootCpu, None);
    let mut workers = phases().flat_map(|p| &p.workers);
    let moved = workers.find_map(|w| {
        let elsewhere = w.ran_on.into_iter().flatten().find(|cpu| *cpu != w.cpu)?;
        Some(format!("a worker of node {} pinned to CPU {} ran on CPU {elsewhere}", w.nid, w.cpu))
    });
    record.head.warnings.extend(moved.map(|message| {
        let remedy = "keep CPUs online and affinities as they are while measuring";
        Warning::new("worker-moved", message, remedy)
    }));
}

/// What is said of a machine that is not this host.
pub(super) fn stand_ins(machine: &Machine, mapping: &[MappingFacts]) -> Option<Warning> {
    let mut hosts: Vec<u32> = mapping.iter().map(|m| m.host_nid).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let hosts: Vec<String> = hosts.iter().map(u32::to_string).collect();
    (!machine.is_this_host).then(|| {
        Warning::new(
            "not-this-host",
            format!(
                "{} is not this host: its {} node{} executed on this host's node{} {}",
                machine.name,
                mapping.len(),
                if mapping.len() == 1 { " is" } else { "s are" },
                if hosts.len() == 1 { "" } else { "s" },
                hosts.join(", ")
            ),
            "times are those of this host's CPUs and memory",
        )
    })
}

/// What is said when more threads were asked for than get a chunk.
pub(super) fn idle_threads(candidates: &[Candidate], options: &Options) -> Option<Warning> {
    let asked = options.threads?;
    let phases = candidates.iter().flat_map(|c| &c.executed.phases);
    let shared = phases.filter(|phase| phase.executor == Executor::NodeThreads);
    let most = shared.flat_map(|phase| &phase.work).map(Work::threads).max()?;
    (most < asked).then(|| {
        Warning::new(
            "idle-threads",
            format!("only {most} of --threads {asked} get a chunk of a node's pages"),
            "use a larger --buffer or a smaller --chunk",
        )
    })
}

/// What is said where zeroes are written notably faster than other data.
pub(super) fn zeroes_faster(advantage: f64) -> Option<Warning> {
    let consequence =
        "strategies that zero in a pass of its own cost less here than on other processors";
    zeroes::warning(advantage, consequence)
}

pub(super) fn no_huge_pages(execution: &Execution) -> Option<Warning> {
    let huge = execution.huge_page_bytes?;
    (huge.saturating_mul(10) < execution.buffer_bytes.saturating_mul(9)).then(|| {
        Warning::new(
            "no-huge-pages",
            format!(
                "only {} of the buffer's {} lie in 2 MiB pages",
                Bytes(huge),
                Bytes(execution.buffer_bytes)
            ),
            "allow them in /sys/kernel/mm/transparent_hugepage/enabled (madvise or always); \
             times include more TLB misses than a kernel's direct map has",
        )
    })
}

pub(super) fn execution(
    buffer: &BufferPlan,
    nodes: &[(Mapping, Vec<PfnRange>)],
    options: &Options,
) -> Execution {
    let window = &buffer.window;
    let bytes = |pages: u64| pages.saturating_mul(crate::kernel::struct_page::STRUCT_PAGE_BYTES);
    Execution {
        buffer_bytes: bytes(window.executed_pages).saturating_mul(buffer.copies as u64),
        memmap_bytes: bytes(window.total_pages),
        executed_share: window.executed_pages as f64 / window.total_pages.max(1) as f64,
        copies: buffer.copies as u64,
        free: options.free,
        runs: options.runs,
        mapping: nodes.iter().map(|(m, _)| mapping_facts(m)).collect(),
        ..Execution::default()
    }
}

fn mapping_facts(mapping: &Mapping) -> MappingFacts {
    MappingFacts {
        nid: mapping.nid.0,
        host_nid: mapping.host_nid,
        cpus: mapping.cpus.clone(),
        round: mapping.round,
        ran_on: Vec::new(),
    }
}

fn new_record(machine: &Machine, whole: &Layout, host: &HostContext, options: &Options) -> Record {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    Record {
        head: Head::unfinished(COMPARE_SCHEMA, &options.argv),
        started_unix_s: since_1970.map_or(0, |d| d.as_secs()),
        seed: options.seed,
        baseline: Strategy::Prezero.name().into(),
        host: host_facts(host),
        machine: machine_facts(machine, whole),
        kernel: serde_json::to_value(&whole.kernel).unwrap_or_default(),
        execution: Execution::default(),
        memory: Some(super::memory::facts(whole)),
        plans: Vec::new(),
        points: Vec::new(),
        ratios: Vec::new(),
        prefetch: None,
        scaled: Vec::new(),
        published: Vec::new(),
    }
}

/// What a record says of the host that measures.
pub fn host_facts(host: &HostContext) -> HostFacts {
    let clock = host.clock.facts();
    let cache_bytes = host.room.machine.last_level_cache_bytes();
    HostFacts {
        cpu_model: host.room.machine.cpu_model.clone(),
        arch: host.room.machine.arch.to_string(),
        kernel_release: host.room.machine.kernel_release.clone(),
        allowed_cpus: host.topo.allowed_cpus(),
        memory_bytes: Some(host.room.budget.total_bytes),
        available_bytes: Some(host.room.budget.available_bytes),
        cgroup_limit_bytes: host.room.budget.cgroup_limit_bytes,
        last_level_cache_bytes: (cache_bytes > 0).then_some(cache_bytes),
        clock: clock.kind.to_string(),
        clock_resolution_ns: clock.resolution_ns,
        clock_overhead_ns: clock.overhead_ns,
        stores: Store::available().iter().map(|s| s.name().into()).collect(),
    }
}
