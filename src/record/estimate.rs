//! The record of an estimate: a boot's memory phases in virtual time.
//!
//! [`Estimate`] holds the timeline, the total with its range, what bounds it and what it
//! rests on, and what other strategies and kernels would take. Everything in it is
//! modelled. `study` fills it, `report` renders it.

use super::memory::MemoryFacts;
use super::{Head, Label, MachineFacts};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The schema of records of `estimate`.
pub const ESTIMATE_SCHEMA: &str = "pageinit/estimate/1";

/// One prediction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Estimate {
    /// What every document begins with.
    #[serde(flatten)]
    pub head: Head,
    /// Always `modelled`.
    pub label: Label,
    /// The machine.
    pub machine: MachineFacts,
    /// The kernel rules.
    pub kernel: Value,
    /// The strategy.
    pub strategy: String,
    /// Threads per node at most.
    pub threads: u32,
    /// Whether pages are handed to the buddy allocator.
    pub free: bool,
    /// The processor's class and what was used of it.
    pub processor: ProcessorFacts,
    /// What lies where; null in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryFacts>,
    /// When who does what, in boot order.
    pub timeline: Vec<TimelineSpan>,
    /// The phases from begin to end.
    pub phases: Vec<PhaseFacts>,
    /// Each node's share of its threads' longest phase.
    pub nodes: Vec<NodeEstimate>,
    /// The whole in ns.
    pub total_ns: u64,
    /// Lowest and highest likely total.
    pub range_ns: [u64; 2],
    /// What the range means.
    pub range_meaning: String,
    /// What most of the time goes to: `boot-cpu`, `one-thread node 0`,
    /// `bandwidth node 1`, `zone-lock node 1`, `threads node 1`, `no-cpus node 7`,
    /// `gigantic-pages`.
    pub bound_by: String,
    /// What the prediction rests on.
    pub anchor: AnchorFacts,
    /// Other strategies and kernels against this one.
    pub savings: Vec<Saving>,
    /// What the machine's own log says its boot took, against this prediction.
    #[serde(default)]
    pub logged: Vec<Logged>,
    /// What changes would cost or save; the first row is the boot without any.
    #[serde(default)]
    pub what_ifs: Vec<WhatIfRow>,
}

/// One time of a boot log against its prediction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Logged {
    /// `deferred-init`, `zone-init`, `zone-device` or `hugetlb`.
    pub what: String,
    /// The node, where the line names one.
    pub nid: Option<u32>,
    /// The line of the log, counted from 1.
    pub line: u64,
    /// Struct pages, as the line says or else as they are predicted.
    pub pages: Option<u64>,
    /// Workers in the prediction.
    pub workers: Option<u32>,
    /// What the log says in ms; null for a line without a time.
    pub logged_ms: Option<f64>,
    /// One tick of the kernel's timer in ms, where the log tells.
    pub step_ms: Option<f64>,
    /// The prediction in ms.
    pub predicted_ms: Option<f64>,
    /// Its range in ms, with a tick either way.
    pub range_ms: Option<[f64; 2]>,
    /// Predicted ÷ logged − 1; null where the logged time says too little.
    pub error: Option<f64>,
    /// Whether the logged time lies in the range.
    pub in_range: Option<bool>,
    /// Codes of what to keep in mind.
    pub caveats: Vec<String>,
    /// Why there is no error, if there is none.
    pub left_out: Option<String>,
}

/// One change, or several together, against the boot without any.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WhatIfRow {
    /// For programs: `base`, `fake-numa`, `together`, `hotplug-serial`.
    pub name: String,
    /// In words.
    pub what: String,
    /// What it takes in ns; null where nothing can be said.
    pub total_ns: Option<u64>,
    /// Lowest and highest likely value.
    pub range_ns: Option<[u64; 2]>,
    /// What it is held against, in ns.
    pub against_ns: Option<u64>,
    /// What it saves of that; negative where it costs.
    pub saved_ns: Option<i64>,
    /// Bytes of struct pages that it is about.
    pub memmap_bytes: Option<u64>,
    /// What the total is made of.
    pub parts: Vec<WhatIfPart>,
    /// What is and what is not in it.
    pub note: String,
}

/// A part of a what-if's time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WhatIfPart {
    /// What is done.
    pub part: String,
    /// What it takes.
    pub ns: u64,
}

/// What a prediction rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AnchorFacts {
    /// `class`, `class-guest`, `default`, `default-guest`, `anchor` or `calibration`.
    pub kind: String,
    /// The class, or the times that were given.
    pub from: String,
}

/// The processor class as it was used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProcessorFacts {
    /// The class.
    pub class: String,
    /// `FIT`, `DERIVED` or `PRIOR`.
    pub mark: String,
    /// Where the row comes from.
    pub source: String,
    /// `bare-metal` or `guest`.
    pub virt: String,
    /// One core, one cold local line, in ns.
    pub line_ns: f64,
    /// Reads and writes together that a node reaches, in bytes per second.
    pub node_bytes_per_s: u64,
}

/// What one executor did in one phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TimelineSpan {
    /// The phase.
    pub phase: String,
    /// `boot-cpu` or `node-threads`.
    pub executor: String,
    /// The node whose struct pages these are.
    pub nid: u32,
    /// The worker on its node; 0 for the boot CPU.
    pub worker: u32,
    /// From the first phase's begin.
    pub start_ns: u64,
    /// From the first phase's begin.
    pub end_ns: u64,
    /// Struct pages.
    pub pages: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// One phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PhaseFacts {
    /// The phase.
    pub phase: String,
    /// `boot-cpu` or `node-threads`.
    pub executor: String,
    /// Its begin.
    pub start_ns: u64,
    /// Its end, the slowest node's.
    pub end_ns: u64,
    /// Struct pages of all nodes.
    pub pages: u64,
    /// The node that ends last.
    pub slowest_nid: Option<u32>,
}

/// One node's share of the nodes' longest phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodeEstimate {
    /// The node.
    pub nid: u32,
    /// Its workers.
    pub workers: u32,
    /// Struct pages.
    pub pages: u64,
    /// What they take.
    pub wall_ns: u64,
    /// One page on one worker that shares nothing.
    pub page_ns: f64,
    /// Bytes moved to and from memory, reads for ownership included.
    pub moved_bytes: u64,
    /// The busy share of its memory bandwidth with all workers.
    pub bandwidth_use: f64,
    /// The busy share of its zone's lock.
    pub lock_use: f64,
}

/// Another strategy or kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Saving {
    /// The strategy.
    pub strategy: String,
    /// The kernel version.
    pub kernel: String,
    /// What it would take.
    pub total_ns: u64,
    /// What the chosen one saves against it; negative where that one is faster.
    pub saved_ns: i64,
}
