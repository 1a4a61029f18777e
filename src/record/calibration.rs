//! The calibration file: what one host's stores and passes really cost.
//!
//! [`Calibration`] carries measured ns per struct page for every strategy and phase at
//! one thread per node and at all of them, which `estimate --calibration` reads; and for
//! people the rates of stores, passes and the first touch below them. `calibrate` writes
//! it.

use super::{Head, HostFacts, Label};
use crate::stats::Summary;
use serde::{Deserialize, Serialize};

/// The schema of calibration files.
pub const CALIBRATION_SCHEMA: &str = "pageinit/calibration/1";

/// What was measured on one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Calibration {
    /// What every document begins with.
    #[serde(flatten)]
    pub head: Head,
    /// Always `measured`.
    pub label: Label,
    /// The host.
    pub host: HostFacts,
    /// The kernel version whose rules were executed.
    pub kernel: String,
    /// Threads per node of the second series; 1 when there was none.
    pub most_threads: u32,
    /// The rates.
    pub rates: Vec<Rate>,
    /// Store kernels by threads and by where CPUs and memory are.
    #[serde(default)]
    pub stores: Vec<StoreRate>,
    /// The init pass and the free pass of one thread, on cold and on warm lines.
    #[serde(default)]
    pub passes: Vec<PassRate>,
    /// The first touch of each node's buffer.
    #[serde(default)]
    pub first_touch: Vec<FirstTouch>,
}

/// One phase of one strategy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Rate {
    /// The strategy.
    pub strategy: String,
    /// The phase.
    pub phase: String,
    /// Whether pages were freed.
    pub free: bool,
    /// Threads per node.
    pub threads: u32,
    /// Time of a node's team per struct page.
    pub ns_per_page: f64,
}

/// A store kernel over a buffer that no cache holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StoreRate {
    /// The store.
    pub store: String,
    /// `temporal` or `non-temporal`.
    pub kind: String,
    /// `zeroes`, or `images`: 64 bytes that are not zero.
    pub data: String,
    /// The node whose CPUs wrote.
    pub cpu_nid: u32,
    /// The node that the buffer is bound to.
    pub memory_nid: u32,
    /// Pinned threads.
    pub threads: u32,
    /// Bytes of the buffer.
    pub bytes: u64,
    /// One time per round, in order.
    pub samples_ns: Vec<u64>,
    /// Their median.
    pub median_ns: f64,
    /// Its 95 % bootstrap interval.
    pub ci95_ns: [f64; 2],
    /// Bytes stored per second at the median, reads for ownership not counted.
    pub bytes_per_s: f64,
}

/// A pass over struct pages by one thread on the node's memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PassRate {
    /// `init`: the field writes; `free`: what freeing changes in every struct page.
    pub pass: String,
    /// `cold`: in memory; `warm`: in the second-level cache or nearer.
    pub temperature: String,
    /// The node.
    pub nid: u32,
    /// Struct pages of one sample.
    pub pages: u64,
    /// ns per struct page.
    pub ns_per_page: Summary,
}

/// The first touch of a buffer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FirstTouch {
    /// The node that the buffer is bound to.
    pub nid: u32,
    /// Threads that touched it.
    pub threads: u32,
    /// Bytes of the buffer.
    pub bytes: u64,
    /// Bytes that came in 2 MiB pages; null where that cannot be read.
    pub huge_page_bytes: Option<u64>,
    /// The whole.
    pub wall_ns: u64,
}
