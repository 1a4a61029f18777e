//! Executing the phases of a plan and timing them.
//!
//! [`run`] is the only entry. Everything that is not page work is prepared before a
//! phase's clock starts: pieces are carved, queues filled, threads pinned. A worker
//! then takes chunks until its node's queue is empty.

use super::chunks::{Chunk, NodeTask, cut};
use super::fill::{best_image, poison};
use super::lists::{Chain, NodeLists};
use super::memory::{Area, ListKey, Memory, carve};
use super::ops::{Ops, Piece, ReadyStep};
use super::team::run_team;
use super::times::{PhaseTime, RunTimes, WorkerSpan};
use super::{ExecError, Stop, go_on};
use crate::host::clock::Clock;
use crate::host::line::Line;
use crate::host::preempt::running_on;
use crate::host::store::{Store, StoreKind};
use crate::host::topology::HostTopology;
use crate::kernel::struct_page::{LRU, PageFormat};
use crate::pfn::Nid;
use crate::plan::{BootPlan, Executor, Phase, Work};

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
    Ok(RunTimes { phases, verified: false })
}

struct Runner<'r> {
    topo: &'r HostTopology,
    clock: &'r Clock,
    plan: &'r BootPlan,
    phase: &'r Phase,
    stop: Stop<'r>,
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
                let lines = memory.copies_mut().swap_remove(index).swap_remove(copy);
                let pieces = carve(lines, &pages, &work.spans);
                let lists = self.lists(work.nid);
                let began = self.clock.now_ns();
                let ops = self.ops(work, steps, &lists);
                for slice in sliced(pieces) {
                    go_on(self.stop)?;
                    ops.run(vec![slice]);
                    chunks += 1;
                }
                busy_ns += self.clock.now_ns() - began;
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
        let mut jobs: Vec<Vec<Chunk<'a>>> = work.jobs.iter().map(|_| Vec::new()).collect();
        for (copy, lines) in copies.into_iter().enumerate() {
            for (job, pieces) in cut(carve(lines, &area.pages, &work.spans), work) {
                if let Some(chunks) = jobs.get_mut(job) {
                    chunks.push(Chunk { copy, pieces });
                }
            }
        }
        NodeTask::new(index, lists, jobs, work.threads())
    }

    /// One worker: takes chunks until there are none, job by job.
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
        for (index, job) in task.jobs.iter().enumerate() {
            // Only a job that follows must wait for this one's last chunk.
            if let Some(before) = index.checked_sub(1).and_then(|i| task.jobs.get(i)) {
                before.finished.wait();
            }
            // Asking is one load; `run_until` throws the times of a stopped phase away.
            while !(self.stop)()
                && let Some(chunk) = job.queue.pop()
            {
                let began = self.clock.now_ns();
                self.ops(work, steps, &task.lists[chunk.copy]).run(chunk.pieces);
                busy_ns += self.clock.now_ns() - began;
                chunks += 1;
            }
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

/// Cuts the boot CPU's pieces so that it can be stopped now and then: at borders that
/// no buddy block crosses, and rarely enough to cost nothing.
fn sliced<'a>(pieces: Vec<Piece<'a>>) -> impl Iterator<Item = Piece<'a>> {
    const SLICE_PAGES: u64 = 1 << 18;
    pieces.into_iter().flat_map(|mut piece| {
        std::iter::from_fn(move || {
            let next = piece.pages.start.offset(1).align_up(SLICE_PAGES);
            let pages = next.pages_since(piece.pages.start);
            (!piece.lines.is_empty()).then(|| piece.split_off(pages))
        })
    })
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
