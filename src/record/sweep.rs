//! The record of a sweep: one figure per combination, and what they show together.
//!
//! `study` fills a [`Sweep`], `report` renders it as table, JSON or CSV. Fields that came
//! after the first version may be missing in a file; they are null or empty then.

use super::{Head, HostFacts, Label};
use serde::{Deserialize, Serialize};

/// The schema of records of `sweep`.
pub const SWEEP_SCHEMA: &str = "pageinit/sweep/1";

/// All points of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Sweep {
    /// What every document begins with.
    #[serde(flatten)]
    pub head: Head,
    /// `modelled`, or `measured` with `--measure`.
    pub label: Label,
    /// What was asked for; a sweep is only resumed by the same question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<SweepQuestion>,
    /// The computer that measured, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostFacts>,
    /// The machine's name.
    pub machine: String,
    /// One line for people.
    pub title: String,
    /// The processor's class.
    pub class: String,
    /// The points: by nodes, memory, page size, kernel, strategy, chunk, threads.
    pub points: Vec<SweepPoint>,
    /// Combinations that have no figure, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<SkippedPoint>,
    /// Where more threads stop paying.
    pub knees: Vec<Knee>,
    /// The best chunk of each kernel and strategy, where several were tried.
    pub best_chunks: Vec<BestChunk>,
    /// Zeroing in a pass of its own against zeroing in place.
    pub setup_zero: Vec<SetupZero>,
}

/// What a sweep was asked for, apart from the program's version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SweepQuestion {
    /// A number that differs where machines differ, in hexadecimal.
    pub machine_digest: String,
    /// The kernel versions.
    pub kernels: Vec<String>,
    /// A number that differs where the kernels' rules differ.
    pub kernels_digest: String,
    /// The strategies.
    pub strategies: Vec<String>,
    /// Threads per node.
    pub threads: Vec<u32>,
    /// Chunks; null for padata's rule.
    pub chunk_bytes: Vec<Option<u64>>,
    /// Nodes; null for the machine's own.
    pub nodes: Vec<Option<u32>>,
    /// Memory; null for the machine's own.
    pub memory_bytes: Vec<Option<u64>>,
    /// Page sizes; null for the machine's own.
    pub page_bytes: Vec<Option<u64>>,
    /// Whether pages are handed to the buddy allocator.
    pub free: bool,
    /// `bare-metal` or `guest`, where the user said so.
    pub virt: Option<String>,
    /// Times that are known.
    pub anchors: Vec<String>,
    /// Whether combinations are run for real.
    pub measure: bool,
    /// Rounds of runs, where they are.
    pub runs: Option<u32>,
    /// The seed of their order.
    pub seed: Option<u64>,
    /// The buffer that the user named.
    pub buffer_bytes: Option<u64>,
}

/// A combination without a figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SkippedPoint {
    /// The kernel version.
    pub kernel: String,
    /// The strategy.
    pub strategy: String,
    /// Threads per node.
    pub threads: u32,
    /// The chunk; null for padata's rule.
    pub chunk_bytes: Option<u64>,
    /// Nodes that were asked for; null for the machine's own.
    pub nodes: Option<u32>,
    /// Memory that was asked for.
    pub memory_bytes: Option<u64>,
    /// The page size that was asked for.
    pub page_bytes: Option<u64>,
    /// Why there is no figure.
    pub reason: String,
}

/// One combination.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SweepPoint {
    /// The kernel version.
    pub kernel: String,
    /// The strategy.
    pub strategy: String,
    /// Threads per node at most.
    pub threads: u32,
    /// Memory that one chunk describes; null for padata's rule.
    pub chunk_bytes: Option<u64>,
    /// The whole in ns.
    pub total_ns: u64,
    /// The boot CPU's phases.
    pub boot_cpu_ns: u64,
    /// The nodes' phases, the slowest node's time.
    pub nodes_ns: u64,
    /// Struct pages that the nodes' threads initialise, each once, in bytes; null in
    /// records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_bytes: Option<u64>,
    /// How much of the nodes' time passes while threads settle on CPUs of their own.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub settle_ns: u64,
    /// Lowest and highest likely total.
    pub range_ns: [u64; 2],
    /// What most of the time goes to; `not-known` of measured points.
    pub bound_by: String,
    /// The machine's nodes that have memory.
    #[serde(default)]
    pub nodes: Option<u32>,
    /// Its memory.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// Its base page size.
    #[serde(default)]
    pub page_bytes: Option<u64>,
    /// How `total_ns`, `boot_cpu_ns`, `nodes_ns` and `range_ns` came about: `modelled`,
    /// `measured`, or `scaled` where only a part of the memmap was executed.
    #[serde(default = "modelled")]
    pub label: Label,
    /// What was measured, if anything was.
    #[serde(flatten)]
    pub measured: Option<MeasuredPoint>,
}

const fn modelled() -> Label {
    Label::Modelled
}

/// The runs of a combination, label `measured`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MeasuredPoint {
    /// One time per run for the executed pages, in order of the rounds.
    pub samples_ns: Vec<u64>,
    /// Their median.
    pub median_ns: f64,
    /// Its 95 % bootstrap interval.
    pub ci95_ns: [f64; 2],
    /// Struct pages that the samples cover.
    pub executed_pages: u64,
    /// Struct pages of the machine.
    pub machine_pages: u64,
    /// Whether every byte was compared with the oracle after every run.
    pub verified: bool,
}

/// Which machine of a sweep a figure is about.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MachineShape {
    /// Nodes that have memory.
    #[serde(default)]
    pub nodes: Option<u32>,
    /// Memory.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// The base page size.
    #[serde(default)]
    pub page_bytes: Option<u64>,
}

impl SweepPoint {
    /// Which machine it is about.
    pub const fn shape(&self) -> MachineShape {
        let Self { nodes, memory_bytes, page_bytes, .. } = *self;
        MachineShape { nodes, memory_bytes, page_bytes }
    }
}

/// The fewest threads from which more add under 5 %.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Knee {
    /// The machine.
    #[serde(flatten)]
    pub shape: MachineShape,
    /// The kernel version.
    pub kernel: String,
    /// The strategy.
    pub strategy: String,
    /// The chunk.
    pub chunk_bytes: Option<u64>,
    /// The knee.
    pub threads: u32,
    /// The nodes' time there.
    pub nodes_ns: u64,
    /// The least of all thread counts.
    pub least_ns: u64,
}

/// The chunk with the least total.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BestChunk {
    /// The machine.
    #[serde(flatten)]
    pub shape: MachineShape,
    /// The kernel version.
    pub kernel: String,
    /// The strategy.
    pub strategy: String,
    /// The chunk; null for padata's rule.
    pub chunk_bytes: Option<u64>,
    /// Threads per node.
    pub threads: u32,
    /// The whole in ns.
    pub total_ns: u64,
}

/// The nodes' time of `setup-zero` divided by that of `deferred`, over threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SetupZero {
    /// The machine.
    #[serde(flatten)]
    pub shape: MachineShape,
    /// The kernel version.
    pub kernel: String,
    /// The chunk.
    pub chunk_bytes: Option<u64>,
    /// Threads per node, and the ratio.
    pub ratios: Vec<(u32, f64)>,
    /// The fewest threads from which the ratio stays under 1.05; null if it never does.
    pub negligible_from: Option<u32>,
}

/// Whether a number can be left out of a file.
const fn is_zero(number: &u64) -> bool {
    *number == 0
}
