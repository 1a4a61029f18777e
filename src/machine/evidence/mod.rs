//! What inputs say about a machine, before it is one.
//!
//! People's texts are incomplete: a `numactl -H` has sizes and no addresses, a boot
//! log often no CPUs. Each front end fills an [`Evidence`], [`combine`] joins those
//! of several inputs and refuses contradictions, [`complete`] makes the
//! [`super::Machine`] with what [`Answers`] add, and [`Explained`] lists where each
//! fact came from.

mod answers;
mod combine;
mod complete;
mod cpu_lists;

pub use combine::combine;
pub use complete::complete;

use super::{Arch, Cache, Cpu, Machine, MachineError, cpulist};
use crate::pfn::{Nid, PhysRange};
use crate::units::Bytes;
use crate::warning::Warning;
use std::collections::BTreeMap;
use std::fmt;

/// Where a fact was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The input as the user called it.
    pub input: String,
    /// The line, counted from 1; `None` where the input has no lines.
    pub line: Option<u64>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.input),
            None => f.write_str(&self.input),
        }
    }
}

/// A value and where it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Known<T> {
    /// The value.
    pub value: T,
    /// The place.
    pub at: Place,
}

/// A table of distances, with the nodes of its rows and columns.
pub type Slit = (Vec<Nid>, Vec<Vec<u32>>);

/// What is known of a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeEvidence {
    /// Its memory, ascending and disjoint; empty on a node known to have none.
    pub ranges: Option<Known<Vec<PhysRange>>>,
    /// Its size in bytes; what the kernel keeps for itself may be missing.
    pub bytes: Option<Known<u64>>,
    /// Its logical CPUs, ascending; empty on a node known to have none.
    pub cpus: Option<Known<Vec<u32>>>,
    /// CPUs that it has at least, where an input lists a part of them.
    pub some_cpus: Option<Known<Vec<u32>>>,
    /// Memory channels and their million transfers per second, where a machine file
    /// gives them.
    pub channels: (Option<u32>, Option<u32>),
    /// Pages that were initialised late, a lower limit of its memory.
    pub init_pages: Option<Known<u64>>,
}

/// What one input, or several together, say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// The input's name.
    pub input: String,
    /// What kind of input it is, for people: `boot log`.
    pub kind: String,
    /// The architecture.
    pub arch: Option<Known<Arch>>,
    /// An architecture that is not modelled, by its name.
    pub foreign_arch: Option<Known<String>>,
    /// The base page size in bytes.
    pub page_bytes: Option<Known<u64>>,
    /// The processor's name.
    pub cpu_model: Option<Known<String>>,
    /// The kernel's release.
    pub kernel: Option<Known<String>>,
    /// The nodes.
    pub nodes: BTreeMap<Nid, NodeEvidence>,
    /// Where the input shows that `nodes` are all there are.
    pub all_nodes: Option<Place>,
    /// Memory of which the node is unknown.
    pub ranges: Option<Known<Vec<PhysRange>>>,
    /// All memory in bytes.
    pub total_bytes: Option<Known<u64>>,
    /// How many CPUs there are.
    pub cpu_count: Option<Known<u32>>,
    /// How many nodes there are.
    pub node_count: Option<Known<u32>>,
    /// Threads per core.
    pub smt: Option<Known<u32>>,
    /// All CPUs with cores and packages.
    pub cpus: Option<Known<Vec<Cpu>>>,
    /// The SLIT, with the nodes of its rows.
    pub distances: Option<Known<Slit>>,
    /// Caches of the first CPU.
    pub caches: Vec<Cache>,
    /// Whether it is of the host that this program runs on.
    pub is_this_host: bool,
    /// What is missing because the input is cut off.
    pub cut_off: Option<Place>,
    /// What looked doubtful.
    pub warnings: Vec<Warning>,
    /// Facts beyond these, for `--explain`.
    pub explained: Vec<Explained>,
}

/// A fact in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// What it is about, for example `memory of node 0`.
    pub fact: String,
    /// The value for people.
    pub value: String,
    /// Where it was read.
    pub at: Place,
}

/// What the user says beside the inputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// `--arch`.
    pub arch: Option<Arch>,
    /// `--page-size`, in bytes.
    pub page_bytes: Option<u64>,
    /// `--memory-per-node`, in bytes.
    pub memory_per_node_bytes: Option<u64>,
    /// `--cpus-per-node`.
    pub cpus_per_node: Option<u32>,
    /// `--cpu-model`.
    pub cpu_model: Option<String>,
}

impl Evidence {
    /// Nothing known yet of `input`.
    pub fn new(input: &str, kind: &str) -> Self {
        Self { input: input.into(), kind: kind.into(), ..Self::default() }
    }

    /// Whether several inputs were joined.
    fn is_combined(&self) -> bool {
        self.kind.contains(" and ")
    }

    /// A value that stands on `line` of this input.
    pub fn known<T>(&self, value: T, line: u64) -> Known<T> {
        Known { value, at: self.place(Some(line)) }
    }

    /// A place in this input.
    pub fn place(&self, line: Option<u64>) -> Place {
        Place { input: self.input.clone(), line }
    }

    /// The node, added if it is new.
    pub fn node(&mut self, nid: Nid) -> &mut NodeEvidence {
        self.nodes.entry(nid).or_default()
    }

    /// Refuses more CPUs than there can be. A CPU has one node, so that lists of all nodes
    /// together are bounded; else a text of many short lines would need endless memory.
    ///
    /// # Errors
    ///
    /// `count`, of all nodes, is too large; the text is read up to `line`.
    pub(super) fn check_cpu_count(&self, count: usize, line: u64) -> Result<(), MachineError> {
        let most = cpulist::MAX_CPU_ID as usize + 1;
        if count <= most {
            return Ok(());
        }
        let problem = format!("the nodes have {count} CPUs, and not more than {most} are possible");
        Err(MachineError::content(&self.input, usize::try_from(line).ok(), problem))
    }

    /// What a machine that is complete already says.
    pub fn of_machine(machine: &Machine) -> Self {
        let mut out = Self::new(&machine.name, "machine description");
        let at = out.place(None);
        let has_ranges = machine.source.memory_ranges.origin != crate::warning::Origin::Assumed;
        for node in &machine.nodes {
            let own = out.node(node.nid);
            own.channels = (node.channels, node.mts);
            let bytes = node.memory_bytes();
            if has_ranges {
                own.ranges = Some(Known { value: node.memory.clone(), at: at.clone() });
            } else {
                own.bytes = Some(Known { value: bytes, at: at.clone() });
            }
            if !machine.cpus.is_empty() {
                own.cpus = Some(Known { value: node.cpus.clone(), at: at.clone() });
            }
        }
        let known = |value| Known { value, at: at.clone() };
        let assumed_arch = machine.warnings.iter().any(|w| w.code == "assumed-architecture");
        out.arch = (!assumed_arch).then(|| Known { value: machine.arch, at: at.clone() });
        out.page_bytes =
            (!assumed_arch).then(|| Known { value: machine.page_bytes, at: at.clone() });
        out.cpu_model = machine.cpu_model.clone().map(known);
        out.kernel = machine.kernel_release.clone().map(|value| Known { value, at: at.clone() });
        let cpus = (!machine.cpus.is_empty()).then(|| machine.cpus.clone());
        out.cpus = cpus.map(|value| Known { value, at: at.clone() });
        let nids: Vec<Nid> = machine.nodes.iter().map(|n| n.nid).collect();
        let table = machine.distances.clone();
        out.distances = table.map(|table| Known { value: (nids, table), at: at.clone() });
        out.all_nodes = Some(at);
        out.caches = machine.caches.clone();
        out.is_this_host = machine.is_this_host;
        out
    }

    /// Every fact with its place, in the order of the places.
    pub fn explain(&self) -> Vec<Explained> {
        let mut out = self.explained.clone();
        let mut push = |fact: &str, value: String, at: &Place| {
            let new = Explained { fact: fact.into(), value, at: at.clone() };
            if !out.contains(&new) {
                out.push(new);
            }
        };
        let texts = [("processor", &self.cpu_model), ("kernel", &self.kernel)];
        for (fact, known) in texts {
            known.iter().for_each(|k| push(fact, k.value.clone(), &k.at));
        }
        self.arch.iter().for_each(|k| push("architecture", k.value.to_string(), &k.at));
        let sizes = [("page size", &self.page_bytes), ("memory", &self.total_bytes)];
        for (fact, known) in sizes {
            known.iter().for_each(|k| push(fact, Bytes(k.value).to_string(), &k.at));
        }
        let counts = [
            ("CPUs", &self.cpu_count),
            ("nodes", &self.node_count),
            ("threads per core", &self.smt),
        ];
        for (fact, known) in counts {
            known.iter().for_each(|k| push(fact, k.value.to_string(), &k.at));
        }
        self.ranges.iter().for_each(|k| push("memory", list(&k.value), &k.at));
        for (nid, node) in &self.nodes {
            if let Some(known) = &node.bytes {
                push(&format!("memory of node {nid}"), Bytes(known.value).to_string(), &known.at);
            }
            // A log lists its ranges one by one.
            if let Some(known) = node.ranges.as_ref().filter(|_| self.explained.is_empty()) {
                push(&format!("memory of node {nid}"), list(&known.value), &known.at);
            }
            if let Some(known) = &node.cpus {
                let text = match known.value.is_empty() {
                    true => "none".into(),
                    false => cpulist::format(&known.value),
                };
                push(&format!("CPUs of node {nid}"), text, &known.at);
            }
        }
        if let Some(known) = &self.distances {
            push("distances", format!("of {} nodes", known.value.0.len()), &known.at);
        }
        out
    }
}

/// Ranges in words, at most four of them.
fn list(ranges: &[PhysRange]) -> String {
    let mut parts: Vec<String> = ranges.iter().take(4).map(PhysRange::to_string).collect();
    if ranges.len() > parts.len() {
        parts.push(format!("and {} more", ranges.len() - parts.len()));
    }
    if parts.is_empty() { "none".into() } else { parts.join(", ") }
}

/// All bytes of `ranges`.
fn total(ranges: &[PhysRange]) -> u64 {
    ranges.iter().fold(0, |sum, r| sum.saturating_add(r.bytes()))
}

#[cfg(test)]
mod tests;
