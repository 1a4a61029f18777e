//! From a log with `memblock=debug` to the facts of a captured boot.
//!
//! [`facts`] makes the [`BootFacts`] from which `kernel` lays out exactly that boot. A
//! log says nothing of the kernel's configuration: a distribution's is taken, but for
//! two options of x86_64 that the size of the section root array gives away.

use super::boot::Boot;
use super::memblock::Memblock;
use crate::machine::facts::{AllocationFact, BootFacts, FreeFact, MemoryFact};
use crate::machine::facts::{NodeDataFact, NodeFact};
use crate::machine::{Arch, Machine};
use crate::pfn::Nid;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The facts of `boot`, whose machine is `machine`; `None` unless the log shows memory
/// and reservations as they stood before `sparse_init`, and the kernel's release. Of
/// other architectures than x86_64 a log leaves too much open, such as the size of a
/// section: their reservations are assumed like any machine's.
pub fn facts(boot: &Boot, machine: &Machine) -> Option<BootFacts> {
    let memory = boot.memblock.memory()?;
    let memblock_memory = memory.iter().map(|m| MemoryFact {
        start: m.range.start,
        end: m.range.end,
        nid: m.nid,
        flags: u32::try_from(m.flags).unwrap_or(u32::MAX),
    });
    let nodes = machine.nodes.iter().map(|n| NodeFact {
        nid: n.nid,
        cpus: n.cpus.clone(),
        distance: machine.nodes.iter().map(|to| machine.distance(n.nid, to.nid)).collect(),
        mem_total_kib: n.memory_bytes() >> 10,
    });
    let node_data = boot.node_data.iter().map(|n| NodeDataFact { nid: n.nid, range: n.range });
    // Threads end in any order.
    let deferred: BTreeSet<Nid> = boot.init.iter().map(|line| line.nid).collect();
    Some(BootFacts {
        id: machine.name.clone(),
        arch: machine.arch,
        page_bytes: machine.page_bytes,
        struct_page_bytes: 64,
        kernel: boot.kernel()?.value.clone(),
        cmdline: boot.cmdline.as_ref().map(|c| c.value.clone()).unwrap_or_default(),
        config: config(&boot.memblock),
        memblock_memory: memblock_memory.collect(),
        reserved_before_sparse: boot.memblock.reserved_before_sparse()?,
        node_data: node_data.collect(),
        vmcoreinfo: BTreeMap::new(),
        vmemmap_base: None,
        allocations: allocations(&boot.memblock),
        frees: Some(frees(&boot.memblock)),
        zones: Vec::new(),
        nodes: nodes.collect(),
        deferred_nodes: deferred.into_iter().collect(),
        struct_pages: Vec::new(),
        vmemmap_map: Vec::new(),
    })
}

/// What the section root array gives away on x86_64: 16 KiB with four levels of page
/// tables and 1 MiB with five, twice that with `CONFIG_PAGE_EXTENSION`.
fn config(memblock: &Memblock) -> BTreeMap<String, Value> {
    let root = memblock.allocations.iter().find(|a| a.nid.is_none()).map(|a| a.bytes);
    let Some(bytes) = root else { return BTreeMap::new() };
    let levels = if bytes >= 1 << 20 { 5 } else { 4 };
    let extension = bytes == 32 << 10 || bytes == 2 << 20;
    let options = [("PGTABLE_LEVELS", json!(levels)), ("PAGE_EXTENSION", json!(extension))];
    options.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn allocations(memblock: &Memblock) -> Vec<AllocationFact> {
    let fact = |a: &super::memblock::LoggedAllocation| AllocationFact {
        call: a.call.clone(),
        bytes: a.bytes,
        align: a.align,
        nid: a.nid,
        min_addr: a.min_addr,
        max_addr: a.max_addr,
        caller: a.caller.clone(),
        start: a.given.map(|g| g.start),
    };
    memblock.allocations.iter().map(fact).collect()
}

fn frees(memblock: &Memblock) -> Vec<FreeFact> {
    memblock.frees.iter().map(|f| FreeFact { after: f.after, range: f.range }).collect()
}
