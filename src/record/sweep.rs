//! The record of a sweep: one prediction per combination, and what they show together.
//!
//! `study` fills a [`Sweep`], `report` renders it as table, JSON or CSV.

use super::{Head, Label};
use serde::{Deserialize, Serialize};

/// The schema of records of `sweep`.
pub const SWEEP_SCHEMA: &str = "pageinit/sweep/1";

/// All points of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// What every document begins with.
    #[serde(flatten)]
    pub head: Head,
    /// Always `modelled`.
    pub label: Label,
    /// The machine's name.
    pub machine: String,
    /// One line for people.
    pub title: String,
    /// The processor's class.
    pub class: String,
    /// The points: by kernel, strategy, chunk, threads.
    pub points: Vec<SweepPoint>,
    /// Where more threads stop paying.
    pub knees: Vec<Knee>,
    /// The best chunk of each kernel and strategy, where several were tried.
    pub best_chunks: Vec<BestChunk>,
    /// Zeroing in a pass of its own against zeroing in place.
    pub setup_zero: Vec<SetupZero>,
}

/// One combination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Lowest and highest likely total.
    pub range_ns: [u64; 2],
    /// What most of the time goes to.
    pub bound_by: String,
}

/// The fewest threads from which more add under 5 %.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Knee {
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
pub struct BestChunk {
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
pub struct SetupZero {
    /// The kernel version.
    pub kernel: String,
    /// The chunk.
    pub chunk_bytes: Option<u64>,
    /// Threads per node, and the ratio.
    pub ratios: Vec<(u32, f64)>,
    /// The fewest threads from which the ratio stays under 1.05; null if it never does.
    pub negligible_from: Option<u32>,
}
