//! What comes out of a run or a prediction, in a form that lasts.
//!
//! A [`Record`] describes itself: its schema, who made it with which arguments, on
//! which host, for which machine and kernel, and whether it is complete. Numbers are
//! plain integers in bytes, pages and ns; what is unknown is null, never 0. `study`
//! fills records, `report` renders them; predictions have records of their own in the
//! submodules; this module uses nothing above [`crate::stats`].

pub mod any;
pub mod calibration;
pub mod diff;
pub mod estimate;
pub mod file;
mod head;
pub mod keeper;
pub mod lab;
pub mod memory;
pub mod schema;
pub mod sweep;
pub mod validate;

pub use head::{Head, Tool};

use crate::stats::Summary;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The schema of records of `compare`, with its version.
pub const COMPARE_SCHEMA: &str = "pageinit/compare/1";

/// How a figure came about. The three are never mixed without this label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Label {
    /// Read from a clock while the work was really done.
    Measured,
    /// Measured figures multiplied up to a machine that did not run.
    Scaled,
    /// Computed by a model.
    Modelled,
}

impl Label {
    /// The word for it, as records and tables have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Scaled => "scaled",
            Self::Modelled => "modelled",
        }
    }
}

/// One record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Record {
    /// What every document begins with.
    #[serde(flatten)]
    pub head: Head,
    /// When the run began, in seconds since 1970.
    pub started_unix_s: u64,
    /// The seed of the order of runs and of the intervals.
    pub seed: u64,
    /// The strategy that ratios refer to.
    pub baseline: String,
    /// The computer that measured.
    pub host: HostFacts,
    /// The machine whose memmap was executed.
    pub machine: MachineFacts,
    /// The kernel rules, as the kernel layer writes them.
    pub kernel: Value,
    /// How the memmap was executed.
    pub execution: Execution,
    /// What lies where; null in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<memory::MemoryFacts>,
    /// What was executed, strategy by strategy.
    pub plans: Vec<PlanFacts>,
    /// The figures.
    pub points: Vec<Point>,
    /// Strategies against the baseline.
    pub ratios: Vec<Ratio>,
    /// What zeroing does for the field writes that follow.
    pub prefetch: Option<Prefetch>,
    /// What the measured rates mean for whole machines.
    pub scaled: Vec<ScaledMachine>,
    /// Ratios that others published, beside the same ones here.
    #[serde(default)]
    pub published: Vec<PublishedRatio>,
}

/// A published ratio of two ways to write struct pages, and the same one measured here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PublishedRatio {
    /// The publication.
    pub id: String,
    /// What was timed there, in the author's words.
    pub what: String,
    /// The machine and kernel it was published for.
    pub machine: String,
    /// The strategy that stands for it here.
    pub strategy: String,
    /// Its store.
    pub store: Option<String>,
    /// The strategy it is divided by.
    pub baseline: String,
    /// The published ratio.
    pub published: f64,
    /// Median of the ratios of the threads' phase measured here, run by run.
    pub measured: f64,
    /// Its 95 % bootstrap interval.
    pub ci95: [f64; 2],
    /// Threads per node here; there it was one.
    pub threads: u32,
    /// Whether pages were freed here; there nothing was.
    pub free: bool,
}

/// The computer that measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HostFacts {
    /// The processor's model name.
    pub cpu_model: Option<String>,
    /// The processor architecture.
    pub arch: String,
    /// The running kernel's release.
    pub kernel_release: Option<String>,
    /// CPUs that this process may use.
    pub allowed_cpus: Vec<u32>,
    /// Memory of the host in bytes.
    pub memory_bytes: Option<u64>,
    /// Memory that was available in bytes.
    pub available_bytes: Option<u64>,
    /// The tightest cgroup memory limit in bytes.
    pub cgroup_limit_bytes: Option<u64>,
    /// The largest cache of the first CPU in bytes.
    pub last_level_cache_bytes: Option<u64>,
    /// The clock's kind.
    pub clock: String,
    /// The smallest difference that the clock shows, in ns.
    pub clock_resolution_ns: u64,
    /// What one reading costs, in ns.
    pub clock_overhead_ns: u64,
    /// Stores that this CPU has.
    pub stores: Vec<String>,
}

/// The machine whose memmap was executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MachineFacts {
    /// What the user called it.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Its architecture.
    pub arch: String,
    /// The base page size in bytes.
    pub page_bytes: u64,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Nodes that have memory.
    pub nodes: Vec<NodeFacts>,
    /// Where its physical ranges came from.
    pub memory_ranges_from: String,
}

/// One node of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodeFacts {
    /// The node.
    pub nid: u32,
    /// Its memory in bytes.
    pub memory_bytes: u64,
    /// How many logical CPUs it has.
    pub cpu_count: u32,
    /// Struct pages initialised by the boot CPU.
    pub early_pages: u64,
    /// Struct pages left to its threads.
    pub deferred_pages: u64,
    /// Threads that the kernel would use at most.
    pub kernel_threads: u32,
}

/// How the memmap was executed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Execution {
    /// Bytes of the buffer.
    pub buffer_bytes: u64,
    /// Bytes of the machine's memmap.
    pub memmap_bytes: u64,
    /// The share of the memmap that was executed, 0 to 1.
    pub executed_share: f64,
    /// How often the executed part lies in the buffer.
    pub copies: u64,
    /// Whether pages were handed to the buddy allocator.
    pub free: bool,
    /// Rounds of runs that were asked for.
    pub runs: u32,
    /// How long the first touch of the buffer took, in ns.
    pub first_touch_ns: Option<u64>,
    /// Bytes of the buffer in 2 MiB pages.
    pub huge_page_bytes: Option<u64>,
    /// Whether the machine is the host itself; null in records that do not say.
    #[serde(default)]
    pub is_this_host: Option<bool>,
    /// Where the buffer really lies.
    pub placement: Vec<Placement>,
    /// Which host node and CPUs stood for which node.
    pub mapping: Vec<MappingFacts>,
    /// The CPUs that the boot CPU's phases really ran on, ascending.
    #[serde(default)]
    pub boot_cpu_ran_on: Vec<u32>,
    /// How many times as fast as other data zeroes are written past the caches.
    pub zero_advantage: Option<f64>,
    /// The share of workers' time outside page operations, median over all runs.
    pub overhead_share: Option<f64>,
}

impl Execution {
    /// How figures of the whole machine came about: they are measured where all of its memmap
    /// ran, and on itself; else another host's rates stand for its own.
    pub fn whole_label(&self) -> Label {
        let swapped = |m: &MappingFacts| m.nid != m.host_nid || m.round > 0;
        let is_itself = self.is_this_host.unwrap_or(!self.mapping.iter().any(swapped));
        if self.executed_share < 1.0 || !is_itself { Label::Scaled } else { Label::Measured }
    }
}

/// Where one arena lies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Placement {
    /// The host node it was meant for.
    pub host_nid: u32,
    /// Its bytes.
    pub bytes: u64,
    /// Whether it could be bound.
    pub bound: bool,
    /// Bytes found on the node; null when it could not be read back.
    pub on_node_bytes: Option<u64>,
}

/// Which part of the host stood for a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MappingFacts {
    /// The machine's node.
    pub nid: u32,
    /// The host's node.
    pub host_nid: u32,
    /// The CPUs that its workers were pinned to.
    pub cpus: Vec<u32>,
    /// Nodes of the same round ran at the same time.
    pub round: u32,
    /// The CPUs that its workers were really on, read at the beginning and the end of
    /// every phase; ascending.
    #[serde(default)]
    pub ran_on: Vec<u32>,
}

/// What one strategy's plan was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlanFacts {
    /// The strategy.
    pub strategy: String,
    /// Its stores.
    pub stores: Vec<String>,
    /// Its phases in boot order.
    pub phases: Vec<PlanPhaseFacts>,
}

/// One phase of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlanPhaseFacts {
    /// The phase.
    pub phase: String,
    /// `boot-cpu` or `node-threads`.
    pub executor: String,
    /// The operations, each once.
    pub ops: Vec<String>,
    /// Struct pages executed per copy.
    pub executed_pages: u64,
    /// Struct pages of the whole machine.
    pub machine_pages: u64,
    /// Threads per node at most.
    pub threads: u32,
}

/// One figure: a strategy's phase, on one node or on all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Point {
    /// The strategy or probe.
    pub strategy: String,
    /// The store chosen for it; null when it has no choice.
    pub store: Option<String>,
    /// Threads per node.
    pub threads: u32,
    /// Whether pages were freed.
    pub free: bool,
    /// `total`, `boot-cpu`, `deferred`, or the name of one phase.
    pub phase: String,
    /// The node; null for all of them.
    pub nid: Option<u32>,
    /// How the samples came about.
    pub label: Label,
    /// Struct pages that the samples cover.
    pub executed_pages: u64,
    /// Struct pages of the machine that they stand for.
    pub scaled_pages: u64,
    /// One time per run, as measured for the executed pages, in order of the rounds.
    pub samples_ns: Vec<u64>,
    /// The samples' median.
    pub median_ns: f64,
    /// Its 95 % bootstrap interval.
    pub ci95_ns: [f64; 2],
    /// The median multiplied up to `scaled_pages`.
    pub scaled_median_ns: f64,
    /// Whether memory was compared with the oracle after every run.
    pub verified: bool,
}

/// A strategy's whole time divided by the baseline's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Ratio {
    /// The strategy.
    pub strategy: String,
    /// Its store.
    pub store: Option<String>,
    /// What it is divided by.
    pub baseline: String,
    /// How the times came about that are divided; null in records that do not say.
    #[serde(default)]
    pub label: Option<Label>,
    /// Median of the ratios, run by run; below 1 is faster than the baseline.
    pub median: f64,
    /// Its 95 % bootstrap interval.
    pub ci95: [f64; 2],
}

/// What zeroing does for the field writes that follow, in ns per struct page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Prefetch {
    /// How the figures came about.
    pub label: Label,
    /// Threads per node.
    pub threads: u32,
    /// Field writes on cold lines.
    pub fields_cold_ns: Summary,
    /// Eight zero stores per line, nothing else.
    pub zero_only_ns: Summary,
    /// Eight zero stores, then the field writes.
    pub zero_then_fields_ns: Summary,
    /// Field writes on lines just zeroed: the last minus the one before.
    pub fields_warm_ns: Summary,
    /// What zeroing in place adds to the field writes on cold lines.
    pub inline_zero_adds_ns: Summary,
}

/// What measured rates mean for a whole machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ScaledMachine {
    /// The machine's name.
    pub machine: String,
    /// One line for people.
    pub title: String,
    /// Its memory in bytes.
    pub memory_bytes: u64,
    /// Always `scaled`.
    pub label: Label,
    /// By what rule the times were scaled.
    pub rule: String,
    /// One row per strategy.
    pub rows: Vec<ScaledRow>,
}

/// One strategy on a scaled machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ScaledRow {
    /// The strategy.
    pub strategy: String,
    /// Its store.
    pub store: Option<String>,
    /// The boot CPU's time in ns.
    pub boot_cpu_ns: f64,
    /// The slowest node's time in ns.
    pub deferred_ns: f64,
    /// Both together.
    pub total_ns: f64,
    /// The baseline's total minus this one's; null without a baseline.
    pub saved_ns: Option<f64>,
}
