//! From a publication to something that the model can run.
//!
//! [`Subject`] is the machine that a [`Published`] record describes, with what the
//! author left out filled in by class and stated rules, and the kernel versions that its
//! words mean. [`Subject::predict`] runs a strategy on it in virtual time.

use super::StudyError;
use super::published::{Figure, Kind, Published, kernel_in_words, node_in_words};
use crate::kernel::version::{EarlyLimit, NEWEST};
use crate::kernel::{KernelModel, KernelVersion, Layout, layout};
use crate::machine::{Arch, Cpu, Machine, Node, assume};
use crate::model::constants as k;
use crate::model::processors::{self, Class};
use crate::model::{Hardware, Options, Run, Scaling, Setup, Virt, run};
use crate::pfn::Nid;
use crate::plan::{BootPlan, Strategy};
use crate::units::GIB;

/// The store that stands for streaming ones in plans that are not executed.
pub const STREAMING_STORE: &str = "movnti";

/// Linux has no more (`NODES_SHIFT` of 10).
const MOST_NODES: u32 = 1024;

/// A machine and kernel that can be run in virtual time.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The machine.
    pub machine: Machine,
    /// Bare metal or guest, where the author says so.
    pub virt: Option<Virt>,
    /// The kernel that the author names, with the change under discussion.
    pub version: Option<KernelVersion>,
    /// Poisoning and debugging by the author's words.
    pub options: Options,
}

/// One run: the plan, what it runs on, and what came out.
#[derive(Clone, Debug)]
pub struct Predicted {
    /// The plan.
    pub plan: BootPlan,
    /// The hardware.
    pub hardware: Hardware,
    /// The layout.
    pub layout: Layout,
    /// The times.
    pub run: Run,
}

/// What a prediction may change.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// Threads per node instead of the kernel's own rule.
    pub threads: Option<u32>,
    /// Factors by which anchors change costs.
    pub scales: Vec<(Nid, f64)>,
    /// The fitted constants, where they are not the usual ones.
    pub scaling: Option<Scaling>,
}

impl Subject {
    /// What a record describes; `None` without any hint of its memory.
    pub fn of(record: &Published) -> Option<Self> {
        let words = format!("{} {}", record.kernel, record.config).to_ascii_lowercase();
        let machine = machine_of(record)?;
        let poison = ["page_poison=1", "init_on_free=1", "page_poison on", "page_poisoning"];
        let debug = ["kasan", "lockdep", "prove_locking"];
        Some(Self {
            options: Options {
                poison: poison.iter().any(|w| words.contains(w)),
                debug: debug.iter().any(|w| words.contains(w)),
                page_bytes: machine.page_bytes,
                ..Options::default()
            },
            machine,
            virt: record.is_guest().map(|g| if g { Virt::Guest } else { Virt::BareMetal }),
            version: kernel_in_words(&record.kernel).map(|v| v.min(NEWEST)),
        })
    }

    /// The processor's class.
    pub fn class(&self) -> &'static Class {
        processors::classify(self.machine.cpu_model.as_deref())
    }

    /// Runs `strategy` by the rules of `version`.
    ///
    /// # Errors
    /// When the machine has no layout.
    pub fn predict(
        &self,
        version: KernelVersion,
        strategy: Strategy,
        change: &Change,
    ) -> Result<Predicted, StudyError> {
        let prepared = self.prepare(version, strategy, change.threads)?;
        Ok(self.rerun(&prepared, change))
    }

    /// The plan and layout, not yet run.
    ///
    /// # Errors
    /// When the machine has no layout.
    pub fn prepare(
        &self,
        version: KernelVersion,
        strategy: Strategy,
        threads: Option<u32>,
    ) -> Result<(Layout, BootPlan), StudyError> {
        let kernel = deferring_rules(version, self.machine.arch);
        let mut layout = layout(&self.machine, &kernel)?;
        if let Some(threads) = threads {
            set_threads(&mut layout, threads);
        }
        let plan = strategy.plan(&layout, store_of(strategy), true);
        Ok((layout, plan))
    }

    /// Runs what was prepared, with anchors and fitted constants of `change`.
    pub fn rerun(&self, (layout, plan): &(Layout, BootPlan), change: &Change) -> Predicted {
        let scaling = change.scaling.unwrap_or_default();
        let hardware = Hardware::of(&self.machine, layout, self.virt, scaling);
        let scales = change.scales.clone();
        let setup = Setup { options: self.options, scales, ..Setup::default() };
        let run = run(plan, &hardware, &setup);
        Predicted { plan: plan.clone(), hardware, layout: layout.clone(), run }
    }
}

/// The rules of a version. Figures of deferred phases come from kernels that defer, also
/// where mainline had it for x86 alone at the time.
fn deferring_rules(version: KernelVersion, arch: Arch) -> KernelModel {
    let own = KernelModel::new(version, arch);
    match own.early_limit {
        EarlyLimit::All => KernelModel { arch, ..KernelModel::new(version, Arch::X86_64) },
        _ => own,
    }
}

/// The store that a strategy needs to be named, if it needs one.
pub fn store_of(strategy: Strategy) -> Option<&'static str> {
    (strategy == Strategy::FusedNt).then_some(STREAMING_STORE)
}

/// Gives every node's jobs so many threads.
pub fn set_threads(layout: &mut Layout, threads: u32) {
    for node in &mut layout.nodes {
        node.max_threads = threads;
        for job in &mut node.jobs {
            job.max_threads = threads;
        }
    }
}

/// The version whose rules a deferred phase ran by: with the change that the author
/// posted on top, which came with the next versions.
pub fn deferring(version: KernelVersion, threads: Option<u32>) -> KernelVersion {
    let first = KernelVersion::new(4, 2);
    let padata = KernelVersion::new(5, 8);
    match threads {
        Some(2..) => version.max(padata),
        _ => version.max(first),
    }
}

fn machine_of(record: &Published) -> Option<Machine> {
    let m = &record.machine;
    let arch = m.stated_arch().unwrap_or(Arch::X86_64);
    let page_bytes = m.page_kib.map_or(assume::default_page_bytes(arch), |kib| kib << 10);
    let class = processors::classify(m.stated_cpu());
    let nodes = node_count(record);
    let bytes = node_bytes(record, nodes, page_bytes)?;
    let cores = m.cores_per_node.or(m.cpus_per_node.map(|c| c / m.smt.unwrap_or(1).max(1)));
    let cores = cores.unwrap_or(class.cores / class.nodes_per_socket.max(1)).clamp(1, 4096);
    let smt = m.smt.or(m.cpus_per_node.map(|c| c / cores)).unwrap_or(class.smt).clamp(1, 16);
    let mut machine = blank(record, arch, page_bytes);
    for nid in 0..nodes {
        add_node(&mut machine, nid, cores, smt);
    }
    machine.distances = Some(distances(nodes as usize));
    let bytes_of = |n: &Node| bytes.get(n.nid.0 as usize).copied().unwrap_or(0);
    assume::place(&mut machine, bytes_of).ok()?;
    Some(machine)
}

fn blank(record: &Published, arch: Arch, page_bytes: u64) -> Machine {
    let cpu_model = record.machine.stated_cpu().map(str::to_owned);
    Machine {
        title: cpu_model.clone().unwrap_or_default(),
        cpu_model,
        ..Machine::of_ranges(&record.id, arch, page_bytes, [])
    }
}

fn add_node(machine: &mut Machine, nid: u32, cores: u32, smt: u32) {
    let first = u32::try_from(machine.cpus.len()).unwrap_or(0);
    let cpus: Vec<u32> = (first..first + cores * smt).collect();
    machine.cpus.extend(cpus.iter().map(|id| {
        let core = nid * cores + (id - first) % cores;
        Cpu { id: *id, nid: Nid(nid), core, package: nid }
    }));
    machine.nodes.push(Node { nid: Nid(nid), memory: vec![], cpus, channels: None, mts: None });
}

/// Distances by how many nodes there are, where authors do not print them.
pub(super) fn distances(nodes: usize) -> Vec<Vec<u32>> {
    let far = match nodes {
        ..=4 => k::ASSUMED_SLIT_NEAR,
        5..=8 => k::ASSUMED_SLIT_EIGHT,
        9..=16 => k::ASSUMED_SLIT_SIXTEEN,
        _ => k::ASSUMED_SLIT_CONTROLLER,
    } as u32;
    (0..nodes).map(|i| (0..nodes).map(|j| if i == j { 10 } else { far }).collect()).collect()
}

/// The node whose own deferred phase the figure is.
fn own_node(figure: &Figure) -> Option<u32> {
    let is_nodes = figure.kind == Kind::DeferredNode;
    node_in_words(&figure.what).filter(|nid| is_nodes && *nid < MOST_NODES)
}

/// Nodes as stated, else as many as the per-node figures show.
fn node_count(record: &Published) -> u32 {
    let named = record.figures.iter().filter_map(own_node).max();
    let stated = record.machine.nodes.or(named.map(|nid| nid.saturating_add(1)));
    stated.or_else(|| blades(record)).unwrap_or(1).clamp(1, MOST_NODES)
}

/// Nodes of an SGI UV where the author does not say: 128 GiB each.
fn blades(record: &Published) -> Option<u32> {
    let name = record.machine.stated_cpu()?;
    let is_uv = name.split(|c: char| !c.is_alphanumeric()).any(|word| word == "UV");
    let gib = record.machine.total_memory_gib.filter(|_| is_uv)?;
    Some((gib / 128.0).clamp(2.0, 1024.0) as u32)
}

/// Each node's memory: as stated, else so much that the printed pages fit.
fn node_bytes(record: &Published, nodes: u32, page_bytes: u64) -> Option<Vec<u64>> {
    let m = &record.machine;
    let gib = m.memory_per_node_gib.or(m.total_memory_gib.map(|t| t / f64::from(nodes)));
    if let Some(gib) = gib.filter(|g| g.is_finite() && *g > 0.0) {
        let bytes = ((gib * GIB as f64) as u64).min(assume::PHYS_LIMIT >> 1);
        return Some(vec![bytes; nodes as usize]);
    }
    let printed: Vec<(u32, u64)> = record
        .figures
        .iter()
        .filter(|f| !f.invalid)
        .filter_map(|f| Some((own_node(f)?, f.pages?)))
        .collect();
    let mut sizes: Vec<u64> = printed.iter().map(|(_, pages)| *pages).collect();
    sizes.sort_unstable();
    let usual = *sizes.get(sizes.len() / 2)?;
    // The memmap takes a sixty-fourth and the early part a little more.
    let with_early = |pages: u64| {
        let bytes = pages.saturating_mul(page_bytes);
        bytes.saturating_add(bytes / 60).saturating_add(2 * GIB).min(assume::PHYS_LIMIT >> 1)
    };
    let of = |nid| printed.iter().find(|(n, _)| *n == nid).map_or(usual, |(_, pages)| *pages);
    Some((0..nodes).map(|nid| with_early(of(nid))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::published::builtin;

    #[test]
    fn deferred_phases_run_by_the_change_on_top() {
        assert_eq!(deferring(KernelVersion::new(4, 0), Some(1)), KernelVersion::new(4, 2));
        assert_eq!(deferring(KernelVersion::new(5, 6), Some(6)), KernelVersion::new(5, 8));
    }

    #[test]
    fn every_described_machine_can_be_built() {
        for record in builtin().records {
            let Some(subject) = Subject::of(&record) else {
                // Device memory is predicted without the machine's own.
                let apart = ["zimmer-sgi-boots", "lizhe-v1", "zone-device-lines"];
                assert!(apart.contains(&record.id.as_str()), "{}", record.id);
                continue;
            };
            assert!(subject.machine.memory_bytes() > 0, "{}", record.id);
            assert!(subject.version.is_some(), "{}", record.id);
        }
    }

    #[test]
    fn the_padata_machine_is_as_printed() {
        let records = builtin().records;
        let record = records.iter().find(|r| r.id == "padata-v3-skylake").unwrap();
        let subject = Subject::of(record).unwrap();
        let version = KernelVersion::new(5, 8);
        let change = Change { threads: Some(52), ..Change::default() };
        let got = subject.predict(version, Strategy::Deferred, &change).unwrap();
        let node = &got.run.phases.last().unwrap().works[0];
        assert_eq!((node.workers, got.hardware.nodes[0].cores), (52, 26));
        assert!(node.pages > 98_000_000 && node.pages < 100_663_296);
        let bound = got.run.bound(&got.hardware);
        assert!(matches!(bound, crate::model::Bound::Bandwidth(_)), "{bound:?}");
    }
}
