//! How a machine's memmap is laid into this host: buffer, copies, window, mapping.
//!
//! [`plan_buffer`] decides how many bytes are used and which share of the memmap
//! they hold; [`map_nodes`] which host node and CPUs stand for which node.

use super::StudyError;
use super::compare::Options;
use super::room::HostRoom;
use crate::exec::Mapping;
use crate::host::budget::MemoryBudget;
use crate::host::topology::HostNode;
use crate::kernel::Layout;
use crate::kernel::struct_page::STRUCT_PAGE_BYTES;
use crate::machine::Machine;
use crate::pfn::{Nid, PfnRange};
use crate::plan::strategies::all_pages;
use crate::plan::window::{TooSmall, Window, layout_pages, window};
use crate::units::{Bytes, MIB};
use crate::warning::Warning;

/// What the buffer will hold.
#[derive(Clone, Debug, PartialEq)]
pub struct BufferPlan {
    /// The executed part of the memmap.
    pub window: Window,
    /// How often it lies in the buffer.
    pub copies: usize,
    /// Warnings about the choice.
    pub warnings: Vec<Warning>,
}

/// A buffer smaller than this many last-level caches is partly measured in cache.
const CACHES: u64 = 4;

/// Memory left to the rest of the system when the user names no size.
const SPARE_BYTES: u64 = 512 * MIB;

/// Decides window and copies.
///
/// Without `--buffer` the memmap is executed whole where it fits, in as many copies
/// as make four last-level caches.
///
/// # Errors
/// When the named buffer is larger than what may be used, or too small for a window.
pub fn plan_buffer(
    layout: &Layout,
    room: &HostRoom,
    options: &Options,
) -> Result<BufferPlan, StudyError> {
    let memmap_bytes = layout_pages(layout).saturating_mul(STRUCT_PAGE_BYTES);
    let usable = room.budget.usable_bytes();
    let cache_bytes = room.machine.last_level_cache_bytes().saturating_mul(CACHES);
    let limit = match options.buffer_bytes {
        Some(wanted) if wanted > usable => return Err(no_memory(&room.budget, wanted)),
        Some(wanted) => wanted,
        None => memmap_bytes.max(cache_bytes).min(usable.saturating_sub(SPARE_BYTES)),
    };
    let window = window(layout, limit / STRUCT_PAGE_BYTES).map_err(|e| no_room(e, options))?;
    let one_bytes = window.executed_pages.saturating_mul(STRUCT_PAGE_BYTES).max(1);
    let copies = match options.buffer_bytes {
        Some(_) => limit / one_bytes,
        None => cache_bytes.div_ceil(one_bytes).min(limit / one_bytes),
    };
    let copies = usize::try_from(copies.max(1)).unwrap_or(1);
    let buffer_bytes = one_bytes.saturating_mul(copies as u64);
    let mut warnings = Vec::new();
    if buffer_bytes < cache_bytes {
        warnings.push(Warning::new(
            "buffer-in-cache",
            format!(
                "the buffer of {} is smaller than {CACHES} last-level caches ({})",
                Bytes(buffer_bytes),
                Bytes(cache_bytes)
            ),
            "stores may stay in the cache; use a larger --buffer",
        ));
    }
    if window.executed_pages < window.total_pages {
        warnings.push(Warning::new(
            "windowed",
            format!(
                "only {:.3} % of the memmap of {} is executed ({} of {}); times are scaled",
                window.executed_pages as f64 / window.total_pages as f64 * 100.0,
                layout.machine,
                Bytes(one_bytes),
                Bytes(memmap_bytes)
            ),
            "a larger --buffer executes more of it",
        ));
    }
    Ok(BufferPlan { window, copies, warnings })
}

/// A window that does not fit: the user's doing where the user named the buffer.
fn no_room(small: TooSmall, options: &Options) -> StudyError {
    let Some(bytes) = options.buffer_bytes else { return small.into() };
    // In KiB, because a size that is rounded for people might be too small again.
    let least_kib = small.least_pages.saturating_mul(STRUCT_PAGE_BYTES).div_ceil(1024);
    StudyError::Usage(format!(
        "--buffer {} is too small for a window of {}: use --buffer {least_kib}KiB or more",
        Bytes(bytes),
        small.machine
    ))
}

fn no_memory(budget: &MemoryBudget, wanted: u64) -> StudyError {
    let usable = budget.usable_bytes();
    let limit = match budget.cgroup_limit_bytes {
        Some(limit) if usable < budget.available_bytes => {
            format!("the cgroup's memory limit is {}", Bytes(limit))
        }
        _ => format!("MemAvailable is {}", Bytes(budget.available_bytes)),
    };
    let what = "--buffer".into();
    StudyError::NoMemory { what, needed: Bytes(wanted), free: Bytes(usable), limit }
}

/// Checks that each host node has room for what will be bound to it: a strict binding
/// that runs out of memory ends in the OOM killer, not in an error.
///
/// # Errors
/// Names the node and how much it has free.
pub fn check_nodes(
    nodes: &[(Mapping, Vec<PfnRange>)],
    copies: usize,
    available_on: impl Fn(u32) -> Option<u64>,
) -> Result<(), StudyError> {
    let mut needed: std::collections::BTreeMap<u32, u64> = std::collections::BTreeMap::new();
    for (mapping, pages) in nodes {
        let bytes = crate::pfn::total_pages(pages).saturating_mul(STRUCT_PAGE_BYTES);
        *needed.entry(mapping.host_nid).or_default() += bytes.saturating_mul(copies as u64);
    }
    for (nid, bytes) in needed {
        let Some(free) = available_on(nid) else { continue };
        if bytes > free {
            return Err(StudyError::NoMemory {
                what: format!("the part of the buffer on node {nid}"),
                needed: Bytes(bytes),
                free: Bytes(free),
                limit: format!("node {nid}'s free and reclaimable memory"),
            });
        }
    }
    Ok(())
}

/// Says for every node of `layout` who stands for it on this host.
///
/// On this host itself each node stands for itself, and a fake node (`numa=fake=`) is
/// the host node that its memory is on, with the CPUs that the kernel brought up there.
/// Nodes of another machine take turns: node by node on the host's nodes that have
/// memory and CPUs.
///
/// # Errors
/// When no host node has CPUs that may be used, or more threads are asked for than
/// there are CPUs.
pub fn map_nodes(
    machine: &Machine,
    layout: &Layout,
    room: &HostRoom,
    options: &Options,
) -> Result<Vec<(Mapping, Vec<PfnRange>)>, StudyError> {
    let able: Vec<&HostNode> = room.nodes.iter().filter(|n| !n.cpus.is_empty()).collect();
    if able.is_empty() {
        let text = "no node of this host has a CPU that this process may use; widen its affinity";
        return Err(StudyError::Usage(text.into()));
    }
    let mut out = Vec::with_capacity(layout.nodes.len());
    for (i, node) in layout.nodes.iter().enumerate() {
        let mapping = match machine.is_this_host {
            true => own_node(machine, node.nid, options, &able),
            false => borrowed_node(node.nid, i, &lenders(&able)),
        };
        out.push((mapping, all_pages(node)));
    }
    check_threads(&out, layout, options)?;
    Ok(out)
}

/// What is said of nodes of this host that are served by a CPU of another node.
pub fn served_nodes(
    machine: &Machine,
    nodes: &[(Mapping, Vec<PfnRange>)],
    host_nodes: &[HostNode],
) -> Vec<Warning> {
    let able = |nid: u32| host_nodes.iter().any(|n| n.nid == nid && !n.cpus.is_empty());
    let served = nodes.iter().filter(|(m, _)| machine.is_this_host && !able(m.host_nid));
    let warning = |mapping: &Mapping| {
        let cpu = mapping.cpus.first().copied()?;
        let from = host_nodes.iter().find(|n| n.cpus.contains(&cpu))?;
        let nid = mapping.nid;
        let has_cpus = machine.node(nid).is_some_and(|n| !n.cpus.is_empty());
        let (lacks, remedy) = match has_cpus {
            true => ("no CPU that may be used", "widen the affinity or the cpuset"),
            false => ("no CPU", "expect its pages to take longest; the kernel does the same"),
        };
        let message = format!(
            "node {nid} has {lacks}: one worker on CPU {cpu} of node {} serves it (distance {})",
            from.nid,
            machine.distance(nid, Nid(from.nid))
        );
        Some(Warning::new("node-served-by-another", message, remedy))
    };
    served.filter_map(|(mapping, _)| warning(mapping)).collect()
}

/// A node of this host; one without usable CPUs gets one worker on the nearest node's.
fn own_node(machine: &Machine, nid: Nid, options: &Options, able: &[&HostNode]) -> Mapping {
    let host_nid = options.origins.get(&nid).unwrap_or(&nid).0;
    let own = able.iter().find(|n| n.nid == host_nid);
    let mut cpus = own.map(|node| node.cpus.clone()).unwrap_or_default();
    if options.line.is_some() {
        let online = machine.node(nid).map(|n| n.cpus.as_slice()).unwrap_or_default();
        cpus.retain(|cpu| online.contains(cpu));
    }
    if cpus.is_empty() {
        // The kernel's thread is unbound there; the last CPU is the least busy guess.
        let nearest = able.iter().min_by_key(|n| (machine.distance(nid, Nid(n.nid)), n.nid));
        cpus.extend(nearest.and_then(|n| n.cpus.last()));
    }
    Mapping { nid, host_nid, cpus, round: 0 }
}

/// Nodes that can stand for others: those with memory, or all where no size is known.
fn lenders<'n>(able: &[&'n HostNode]) -> Vec<&'n HostNode> {
    let with_memory: Vec<_> = able.iter().copied().filter(|n| n.local_bytes > 0).collect();
    if with_memory.is_empty() { able.to_vec() } else { with_memory }
}

fn borrowed_node(nid: Nid, index: usize, able: &[&HostNode]) -> Mapping {
    let host = able[index % able.len()];
    let round = u32::try_from(index / able.len()).unwrap_or(u32::MAX);
    Mapping { nid, host_nid: host.nid, cpus: host.cpus.clone(), round }
}

/// Nodes without CPUs do not count: they get one worker whatever is asked for.
fn check_threads(
    nodes: &[(Mapping, Vec<PfnRange>)],
    layout: &Layout,
    options: &Options,
) -> Result<(), StudyError> {
    let Some(threads) = options.threads else { return Ok(()) };
    let own = nodes.iter().zip(&layout.nodes).filter(|(_, node)| node.cpus > 0);
    let fewest = own.map(|((m, _), _)| m.cpus.len()).min().unwrap_or(0);
    if threads as usize > fewest && !options.oversubscribe {
        return Err(StudyError::Usage(format!(
            "--threads {threads} is more than the {fewest} CPUs of a node of this host; \
             use --threads {fewest} or add --oversubscribe"
        )));
    }
    Ok(())
}

/// Sets how many threads every node's jobs get: what was asked for, else what the
/// kernel would use but at most the CPUs there are.
pub fn set_threads(layout: &mut Layout, nodes: &[(Mapping, Vec<PfnRange>)], options: &Options) {
    for (node, (mapping, _)) in layout.nodes.iter_mut().zip(nodes) {
        let cpus = u32::try_from(mapping.cpus.len()).unwrap_or(u32::MAX).max(1);
        let threads = match options.threads {
            Some(threads) if node.cpus > 0 => threads,
            _ => node.max_threads.min(cpus),
        };
        for job in &mut node.jobs {
            job.max_threads = threads;
            if let Some(pages) = options.chunk_pages {
                // Both limit how many workers get a chunk (`InitJob::workers`).
                job.min_chunk = pages.min(job.min_chunk);
                job.align = pages.min(job.align);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{KernelModel, KernelVersion};
    use crate::units::GIB;

    fn host_node(nid: u32, cpus: &[u32], local_bytes: u64) -> HostNode {
        HostNode { nid, cpus: cpus.to_vec(), local_bytes }
    }

    // node            0      1      2
    // CPUs           0 1    2 3     -
    // distance to 2  30     15
    fn three_nodes() -> (Machine, Vec<HostNode>) {
        let text = "pack:3 [numa(memory=1GiB)] core:2 pu:1";
        let mut machine = crate::machine::input::load(text, None).unwrap();
        machine.is_this_host = true;
        machine.nodes[2].cpus.clear();
        machine.distances = Some(vec![vec![10, 20, 30], vec![20, 10, 15], vec![30, 15, 10]]);
        let nodes =
            vec![host_node(0, &[0, 1], GIB), host_node(1, &[2, 3], GIB), host_node(2, &[], GIB)];
        (machine, nodes)
    }

    #[test]
    fn a_node_without_cpus_gets_one_worker_on_the_nearest_nodes_last_cpu() {
        let (machine, host) = three_nodes();
        let able: Vec<&HostNode> = host.iter().filter(|n| !n.cpus.is_empty()).collect();
        let mappings: Vec<_> = (0..3)
            .map(|nid| (own_node(&machine, Nid(nid), &Options::default(), &able), Vec::new()))
            .collect();
        assert_eq!(mappings[1].0.cpus, [2, 3]);
        assert_eq!((mappings[2].0.host_nid, mappings[2].0.cpus.as_slice()), (2, &[3][..]));
        let warnings = served_nodes(&machine, &mappings, &host);
        assert_eq!(warnings.len(), 1);
        let text = "node 2 has no CPU: one worker on CPU 3 of node 1 serves it (distance 15)";
        assert_eq!(warnings[0].message, text);
    }

    #[test]
    fn a_node_whose_cpus_are_kept_away_is_told_from_one_without() {
        let (machine, mut host) = three_nodes();
        host[0].cpus.clear();
        let able: Vec<&HostNode> = host.iter().filter(|n| !n.cpus.is_empty()).collect();
        let mapping = own_node(&machine, Nid(0), &Options::default(), &able);
        let warnings = served_nodes(&machine, &[(mapping, Vec::new())], &host);
        assert!(warnings[0].message.starts_with("node 0 has no CPU that may be used"));
    }

    // Two threads fit nodes 0 and 1; node 2 has none of its own to be counted.
    #[test]
    fn a_node_without_cpus_does_not_limit_the_threads_of_others() {
        let (machine, host) = three_nodes();
        let kernel = KernelModel::new(KernelVersion::new(6, 12), machine.arch);
        let layout = crate::kernel::layout(&machine, &kernel).unwrap();
        let able: Vec<&HostNode> = host.iter().filter(|n| !n.cpus.is_empty()).collect();
        let nodes: Vec<_> = (0..3)
            .map(|nid| (own_node(&machine, Nid(nid), &Options::default(), &able), Vec::new()))
            .collect();
        let asks = |threads| Options { threads: Some(threads), ..Options::default() };
        assert!(check_threads(&nodes, &layout, &asks(2)).is_ok());
        let error = check_threads(&nodes, &layout, &asks(3)).unwrap_err().to_string();
        assert!(error.contains("more than the 2 CPUs of a node"), "{error}");
    }

    #[test]
    fn nodes_without_memory_stand_for_no_others() {
        let (with, without) = (host_node(1, &[2], GIB), host_node(0, &[0], 0));
        assert_eq!(lenders(&[&without, &with]), [&with]);
        assert_eq!(lenders(&[&without]), [&without]);
    }

    // A limit above what is available is not what is in the way.
    #[test]
    fn the_message_names_the_limit_that_is_in_the_way() {
        let budget = |limit: Option<u64>| MemoryBudget {
            total_bytes: 32 * GIB,
            available_bytes: 20 * GIB,
            cgroup_limit_bytes: limit,
            cgroup_used_bytes: Some(GIB),
            cgroup_reclaimable_bytes: Some(0),
        };
        let text = |limit| no_memory(&budget(limit), 64 * GIB).to_string();
        assert!(text(None).contains("only 20 GiB may be used here (MemAvailable is 20 GiB)"));
        assert!(text(Some(30 * GIB)).contains("MemAvailable"));
        let tight = text(Some(8 * GIB));
        assert!(tight.contains("only 7 GiB") && tight.contains("cgroup's memory limit is 8 GiB"));
    }
}
