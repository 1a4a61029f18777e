//! Executing the phases of a plan and timing them.
//!
//! [`run`] is the only entry. Everything that is not page work is prepared before a
//! phase's clock starts: pieces are carved, queues filled, threads pinned. A worker
//! then takes chunks until its node's queue is empty.

use super::lists::{Chain, NodeLists};
use super::memory::{Area, ListKey, Memory, carve, cpus_of};
use super::ops::{Ops, Piece, ReadyStep};
use super::team::run_team;
use super::{ExecError, Stop};
use crate::host::HostError;
use crate::host::clock::Clock;
use crate::host::line::Line;
use crate::host::store::{ImageStore, Store, StoreKind};
use crate::host::topology::{HostTopology, running_on};
use crate::kernel::padata;
use crate::kernel::struct_page::{LRU, PageFormat};
use crate::pfn::{Nid, PfnRange};
use crate::plan::{BootPlan, Executor, Phase, PhaseName, Work};
use crate::stats::median;
use crossbeam::queue::ArrayQueue;

/// What one run of a plan took.
#[derive(Clone, Debug, PartialEq)]
pub struct RunTimes {
    /// The phases in boot order.
    pub phases: Vec<PhaseTime>,
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

/// Fills the buffer with 0xff past the caches, then executes `plan`.
///
/// # Errors
/// When a store is missing, a node has no area, or a thread cannot be pinned.
pub fn run(
    memory: &mut Memory,
    topo: &HostTopology,
    clock: &Clock,
    plan: &BootPlan,
) -> Result<RunTimes, ExecError> {
    run_until(memory, topo, clock, plan, &|| false)
}

/// As [`run`], but ends early when `stop` says so, which is asked before every chunk
/// and every phase.
///
/// # Errors
/// As [`run`], and [`HostError::Interrupted`] when it was ended early: memory then
/// holds a part of a boot.
pub fn run_until(
    memory: &mut Memory,
    topo: &HostTopology,
    clock: &Clock,
    plan: &BootPlan,
    stop: Stop<'_>,
) -> Result<RunTimes, ExecError> {
    poison(memory, topo, stop)?;
    memory.lists.clear();
    let mut phases = Vec::with_capacity(plan.phases.len());
    for phase in &plan.phases {
        let runner = Runner { topo, clock, plan, phase, stop };
        phases.push(match phase.executor {
            Executor::BootCpu => runner.boot_cpu(memory)?,
            Executor::NodeThreads => runner.node_threads(memory)?,
        });
        go_on(stop)?;
    }
    Ok(RunTimes { phases })
}

/// An error once `stop` says so.
fn go_on(stop: Stop<'_>) -> Result<(), ExecError> {
    if stop() { Err(HostError::Interrupted.into()) } else { Ok(()) }
}

/// So that nothing is zero by luck and every line is cold, as at boot.
fn poison(memory: &mut Memory, topo: &HostTopology, stop: Stop<'_>) -> Result<(), ExecError> {
    fill(memory, topo, u64::MAX, stop)
}

/// Fills the whole buffer with one word past the caches, by all CPUs of each node.
fn fill(
    memory: &mut Memory,
    topo: &HostTopology,
    word: u64,
    stop: Stop<'_>,
) -> Result<(), ExecError> {
    const SLICE_LINES: usize = (8 << 20) / 64;
    let store = best_image(StoreKind::NonTemporal)?;
    for (host_nid, lines) in memory.arenas_mut() {
        let cpus = cpus_of(topo, host_nid);
        let queue = filled(lines.chunks_mut(SLICE_LINES).collect());
        let seats: Vec<(u32, ())> = cpus.into_iter().map(|cpu| (cpu, ())).collect();
        run_team(topo, &seats, |()| {
            while !stop()
                && let Some(slice) = queue.pop()
            {
                store.write_images(slice, [word; 8], [0; 8]);
            }
        })?;
    }
    go_on(stop)
}

/// How many times as fast as other data this host writes zeroes past the caches:
/// the median of a few fills in turn. Some processors treat lines of zeroes apart, and
/// then a pass of zeroes says little about other stores.
///
/// # Errors
/// When threads cannot be started or pinned, and when `stop` says so.
pub fn zero_advantage(
    memory: &mut Memory,
    topo: &HostTopology,
    clock: &Clock,
    stop: Stop<'_>,
) -> Result<f64, ExecError> {
    const ROUNDS: usize = 5;
    let mut timed = |word: u64| -> Result<f64, ExecError> {
        let began = clock.now_ns();
        fill(memory, topo, word, stop)?;
        Ok((clock.now_ns() - began) as f64)
    };
    let mut ratios = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let (other, zeroes) = (timed(u64::MAX)?, timed(0)?);
        ratios.push(other / zeroes.max(1.0));
    }
    Ok(median(&ratios))
}

fn filled<T>(items: Vec<T>) -> ArrayQueue<T> {
    let queue = ArrayQueue::new(items.len().max(1));
    for item in items {
        // The queue has room for every item, so none comes back.
        let _ = queue.push(item);
    }
    queue
}

struct Runner<'r> {
    topo: &'r HostTopology,
    clock: &'r Clock,
    plan: &'r BootPlan,
    phase: &'r Phase,
    stop: Stop<'r>,
}

/// The chunks of one node and everything its workers share.
struct NodeTask<'a> {
    area: usize,
    lists: Vec<NodeLists<'a>>,
    queue: ArrayQueue<(usize, Vec<Piece<'a>>)>,
    threads: u32,
}

impl Runner<'_> {
    fn boot_cpu(&self, memory: &mut Memory) -> Result<PhaseTime, ExecError> {
        let cpu = memory.areas.first().and_then(|a| a.mapping.cpus.first()).copied();
        let cpu = cpu.or(self.topo.allowed_cpus().first().copied()).unwrap_or(0);
        let steps: Vec<Vec<ReadyStep>> =
            self.phase.work.iter().map(ready_steps).collect::<Result<_, _>>()?;
        let memory = std::sync::Mutex::new(memory);
        let spans = run_team(self.topo, &[(cpu, ())], |()| {
            let mut memory = memory.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            self.boot_cpu_work(&mut memory, &steps, cpu)
        })?;
        let workers: Vec<WorkerSpan> = spans.into_iter().collect::<Result<_, _>>()?;
        let wall_ns = workers.iter().map(|w| w.end_ns - w.start_ns).sum();
        let (name, executor) = (self.phase.name, self.phase.executor);
        Ok(PhaseTime { name, executor, wall_ns, nodes: Vec::new(), workers })
    }

    /// All work of the phase, one item after another, on the calling thread.
    fn boot_cpu_work(
        &self,
        memory: &mut Memory,
        steps: &[Vec<ReadyStep>],
        cpu: u32,
    ) -> Result<WorkerSpan, ExecError> {
        let began_on = running_on();
        let start_ns = self.clock.now_ns();
        let (mut busy_ns, mut chunks) = (0, 0);
        for (work, steps) in self.phase.work.iter().zip(steps) {
            let index = area_of(&memory.areas, work.nid)?;
            let pages = memory.areas[index].pages.clone();
            for copy in 0..memory.copies {
                go_on(self.stop)?;
                let lines = memory.copies_mut().swap_remove(index).swap_remove(copy);
                let pieces = carve(lines, &pages, &work.spans);
                let lists = self.lists(work.nid);
                let began = self.clock.now_ns();
                self.ops(work, steps, &lists).run(pieces);
                busy_ns += self.clock.now_ns() - began;
                chunks += 1;
                let chains = lists.finish();
                splice(memory, &self.plan.format, index, copy, chains);
            }
        }
        let nid = self.phase.work.first().map_or(Nid(0), |w| w.nid);
        let end_ns = self.clock.now_ns();
        let ran_on = [began_on, running_on()];
        Ok(WorkerSpan { nid, cpu, ran_on, start_ns, end_ns, busy_ns, chunks })
    }

    fn node_threads(&self, memory: &mut Memory) -> Result<PhaseTime, ExecError> {
        let rounds = memory.areas.iter().map(|a| a.mapping.round).max().unwrap_or(0);
        let mut out = PhaseTime {
            name: self.phase.name,
            executor: self.phase.executor,
            wall_ns: 0,
            nodes: Vec::new(),
            workers: Vec::new(),
        };
        for round in 0..=rounds {
            self.round(memory, round, &mut out)?;
        }
        out.wall_ns = out.nodes.iter().map(|(_, ns)| *ns).max().unwrap_or(0);
        Ok(out)
    }

    /// The nodes of one round at the same time, each by its own team.
    fn round(&self, memory: &mut Memory, round: u32, out: &mut PhaseTime) -> Result<(), ExecError> {
        let works = self.works_of_round(memory, round)?;
        let steps: Vec<Vec<ReadyStep>> =
            works.iter().map(|(_, work)| ready_steps(work)).collect::<Result<_, _>>()?;
        let areas = memory.areas.clone();
        let mut copies: Vec<_> = memory.copies_mut().into_iter().map(Some).collect();
        let tasks: Vec<NodeTask<'_>> = works
            .iter()
            .map(|&(index, work)| {
                let lines = copies[index].take().unwrap_or_default();
                self.task(index, &areas[index], lines, work)
            })
            .collect();
        let mut seats = Vec::new();
        for (i, task) in tasks.iter().enumerate() {
            let cpus = &areas[task.area].mapping.cpus;
            let team = cpus.iter().copied().cycle().take(task.threads as usize);
            seats.extend(team.map(|cpu| (cpu, (i, cpu))));
        }
        let spans = run_team(self.topo, &seats, |&(i, cpu)| {
            self.worker(&tasks[i], works[i].1, &steps[i], cpu)
        })?;
        let chains: Vec<_> = tasks
            .into_iter()
            .flat_map(|t| {
                let area = t.area;
                let lists = t.lists.into_iter().enumerate();
                lists.map(move |(copy, lists)| (area, copy, lists.finish()))
            })
            .collect();
        let began = self.clock.now_ns();
        for (area, copy, finished) in chains {
            splice(memory, &self.plan.format, area, copy, finished);
        }
        let splice_ns = self.clock.now_ns() - began;
        for (_, work) in &works {
            out.nodes.push((work.nid, node_wall_ns(&spans, work.nid) + splice_ns));
        }
        out.workers.extend(spans);
        Ok(())
    }

    fn works_of_round(
        &self,
        memory: &Memory,
        round: u32,
    ) -> Result<Vec<(usize, &Work)>, ExecError> {
        let mut works = Vec::new();
        for work in &self.phase.work {
            let index = area_of(&memory.areas, work.nid)?;
            if memory.areas[index].mapping.round == round {
                works.push((index, work));
            }
        }
        Ok(works)
    }

    fn task<'a>(
        &self,
        index: usize,
        area: &Area,
        copies: Vec<&'a mut [Line]>,
        work: &Work,
    ) -> NodeTask<'a> {
        let lists = copies.iter().map(|_| self.lists(work.nid)).collect();
        let mut chunks = Vec::new();
        for (copy, lines) in copies.into_iter().enumerate() {
            let pieces = carve(lines, &area.pages, &work.spans);
            chunks.extend(cut(pieces, work).into_iter().map(|chunk| (copy, chunk)));
        }
        NodeTask { area: index, lists, queue: filled(chunks), threads: work.threads() }
    }

    /// One worker: takes chunks until there are none.
    fn worker(
        &self,
        task: &NodeTask<'_>,
        work: &Work,
        steps: &[ReadyStep],
        cpu: u32,
    ) -> WorkerSpan {
        let began_on = running_on();
        let start_ns = self.clock.now_ns();
        let (mut busy_ns, mut chunks) = (0, 0);
        // Asking is one load; `run_until` throws the times of a stopped phase away.
        while !(self.stop)()
            && let Some((copy, pieces)) = task.queue.pop()
        {
            let began = self.clock.now_ns();
            self.ops(work, steps, &task.lists[copy]).run(pieces);
            busy_ns += self.clock.now_ns() - began;
            chunks += 1;
        }
        let end_ns = self.clock.now_ns();
        let ran_on = [began_on, running_on()];
        WorkerSpan { nid: work.nid, cpu, ran_on, start_ns, end_ns, busy_ns, chunks }
    }

    fn lists<'a>(&self, nid: Nid) -> NodeLists<'a> {
        NodeLists::new(self.plan.format, nid, self.plan.freeing.max_order_pages)
    }

    fn ops<'o, 'a>(
        &self,
        work: &Work,
        steps: &'o [ReadyStep],
        lists: &'o NodeLists<'a>,
    ) -> Ops<'o, 'a> {
        Ops {
            format: self.plan.format,
            freeing: self.plan.freeing,
            nid: work.nid,
            steps,
            grain: work.grain,
            lists,
        }
    }
}

/// The widest store of a kind that writes images.
fn best_image(kind: StoreKind) -> Result<ImageStore, ExecError> {
    let store = Store::best_image(kind);
    store.as_image().ok_or(ExecError::NoImageStore { kind })
}

/// Looks up the stores of a work's steps.
fn ready_steps(work: &Work) -> Result<Vec<ReadyStep>, ExecError> {
    let ready = work.steps.iter().map(|step| {
        let named = step.store.as_deref().map(Store::named).transpose()?;
        let image = named.and_then(|store| store.as_image());
        Ok(ReadyStep {
            op: step.op,
            zero: named.unwrap_or_else(Store::default_zero),
            image: match image {
                Some(image) => image,
                None => best_image(StoreKind::Temporal)?,
            },
        })
    });
    ready.collect()
}

fn area_of(areas: &[Area], nid: Nid) -> Result<usize, ExecError> {
    let found = areas.iter().position(|a| a.mapping.nid == nid);
    found.ok_or(ExecError::UnknownNode(nid))
}

/// From the first start to the last end among a node's workers.
fn node_wall_ns(spans: &[WorkerSpan], nid: Nid) -> u64 {
    let of_node = || spans.iter().filter(|s| s.nid == nid);
    let start = of_node().map(|s| s.start_ns).min().unwrap_or(0);
    of_node().map(|s| s.end_ns).max().unwrap_or(start) - start
}

/// Distributes pieces over the chunks of the work's jobs, in hand-out order.
fn cut<'a>(pieces: Vec<Piece<'a>>, work: &Work) -> Vec<Vec<Piece<'a>>> {
    let mut borders: Vec<PfnRange> = match work.chunk_pages {
        Some(pages) => {
            let jobs = work.jobs.iter();
            jobs.flat_map(|job| padata::chunks_of(job.range(), pages, false)).collect()
        }
        None => work.jobs.iter().flat_map(padata::chunks).collect(),
    };
    borders.sort();
    let mut out: Vec<Vec<Piece<'a>>> = Vec::with_capacity(borders.len());
    let mut borders = borders.into_iter().peekable();
    let mut chunk = Vec::new();
    for mut piece in pieces {
        while !piece.lines.is_empty() {
            // Pages that no job covers would be lost: they join the chunk before.
            let end = match borders.peek() {
                Some(border) if border.end <= piece.pages.start => {
                    borders.next();
                    if !chunk.is_empty() {
                        out.push(std::mem::take(&mut chunk));
                    }
                    continue;
                }
                Some(border) => border.end.min(piece.pages.end),
                None => piece.pages.end,
            };
            chunk.push(piece.split_off(end.pages_since(piece.pages.start)));
        }
    }
    if !chunk.is_empty() {
        out.push(chunk);
    }
    out
}

/// Joins chains that a phase has formed to the lists of the phases before.
fn splice(
    memory: &mut Memory,
    format: &PageFormat,
    area: usize,
    copy: usize,
    chains: Vec<(usize, u32, Chain)>,
) {
    for (zone, order, chain) in chains {
        let key: ListKey = (area, copy, zone, order);
        let joined = match memory.lists.get(&key).copied() {
            None => chain,
            Some(old) => {
                link(memory, format, (area, copy), old, chain);
                Chain { first: old.first, last: chain.last, count: old.count + chain.count }
            }
        };
        memory.lists.insert(key, joined);
    }
}

/// Links the first head of `new` behind the last head of `old`.
fn link(
    memory: &mut Memory,
    format: &PageFormat,
    (area, copy): (usize, usize),
    old: Chain,
    new: Chain,
) {
    let pages = memory.areas[area].pages.clone();
    let lines = memory.copies_mut().swap_remove(area).swap_remove(copy);
    if let Some(last) = pages.line_index(old.last).and_then(|i| lines.get_mut(i)) {
        last.set_word::<{ LRU[0] }>(format.lru_address(new.first));
    }
    if let Some(first) = pages.line_index(new.first).and_then(|i| lines.get_mut(i)) {
        first.set_word::<{ LRU[1] }>(format.lru_address(old.last));
    }
}
