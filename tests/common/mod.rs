//! What several integration tests share: tiny machines and a prepared memory.

use pageinit::exec::{Mapping, Memory};
use pageinit::host::topology::HostTopology;
use pageinit::kernel::{KernelModel, KernelVersion, Layout, layout};
use pageinit::machine::{Arch, Machine};
use pageinit::pfn::PhysRange;
use pageinit::plan::strategies::all_pages;
use pageinit::progress::Silent;

const MIB: u64 = 1 << 20;

/// Two nodes with holes, ragged ends and a part above 4 GiB.
///
/// ```text
/// node 0   [4K, 636K)  [1M, 300M + 12K)        [4G, 4G + 200M)
/// node 1                                                        [5G + 8K, 5G + 400M - 4K)
/// ```
pub(crate) fn ragged_machine() -> Machine {
    let high = 4 << 30;
    let memory = [
        vec![
            PhysRange::new(4096, 636 << 10),
            PhysRange::new(MIB, 300 * MIB + 12288),
            PhysRange::new(high, high + 200 * MIB),
        ],
        vec![PhysRange::new(high + 1024 * MIB + 8192, high + 1424 * MIB - 4096)],
    ];
    let mut machine = Machine::of_ranges("ragged", Arch::X86_64, 4096, memory);
    for node in &mut machine.nodes {
        node.cpus = vec![node.nid.0];
    }
    machine
}

/// The layout of the ragged machine under one kernel version, with `threads` per node.
pub(crate) fn ragged_layout(version: KernelVersion, threads: u32) -> Layout {
    let machine = ragged_machine();
    let model = KernelModel::new(version, machine.arch);
    let mut layout = layout(&machine, &model).expect("the machine has memory");
    for job in layout.nodes.iter_mut().flat_map(|n| &mut n.jobs) {
        job.max_threads = threads;
    }
    layout
}

/// Memory for all pages of a layout on the first node of this host that has CPUs.
pub(crate) fn memory_for(layout: &Layout, topo: &HostTopology, copies: usize) -> Memory {
    let host = topo.nodes().into_iter().find(|n| !n.cpus.is_empty()).expect("a node with CPUs");
    let nodes = layout.nodes.iter().zip(0..).map(|(node, round)| {
        let (host_nid, cpus) = (host.nid, host.cpus.clone());
        (Mapping { nid: node.nid, host_nid, cpus, round }, all_pages(node))
    });
    let mut memory = Memory::map(nodes.collect(), copies).expect("address space");
    memory.fault_in(topo, &Silent, &|| false).expect("a few MiB of memory");
    memory
}
