//! What records say of a machine, for every study that writes one.

use crate::kernel::Layout;
use crate::kernel::layout::NodeLayout;
use crate::machine::{Machine, Node};
use crate::pfn;
use crate::plan::Executor;
use crate::plan::strategies::early_pages;
use crate::record::{MachineFacts, NodeFacts};

/// A machine with what a kernel's rules make of it.
pub(super) fn machine_facts(machine: &Machine, layout: &Layout) -> MachineFacts {
    let node = |n: &NodeLayout| NodeFacts {
        nid: n.nid.0,
        memory_bytes: machine.node(n.nid).map_or(0, Node::memory_bytes),
        cpu_count: n.cpus,
        early_pages: pfn::total_pages(&early_pages(n)),
        deferred_pages: pfn::total_pages(&n.deferred),
        kernel_threads: n.max_threads,
    };
    MachineFacts {
        name: machine.name.clone(),
        title: machine.title.clone(),
        arch: machine.arch.to_string(),
        page_bytes: machine.page_bytes,
        memory_bytes: machine.memory_bytes(),
        nodes: layout.nodes.iter().map(node).collect(),
        memory_ranges_from: machine.source.memory_ranges.from.clone(),
    }
}

/// The name of an executor in records.
pub(super) const fn executor_name(executor: Executor) -> &'static str {
    match executor {
        Executor::BootCpu => "boot-cpu",
        Executor::NodeThreads => "node-threads",
    }
}
