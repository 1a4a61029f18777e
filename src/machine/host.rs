//! This host: hwloc for CPUs, `/sys` and `/proc` for memory.
//!
//! [`load`] is what `-m host` means. [`join`] puts the parts together and takes
//! the root of the file system, so that tests can give it a tree. The parts come
//! from [`super::hwloc`] and [`super::sysfs`].

use super::assume::place;
use super::check::{finish, title};
use super::hwloc::{Facts, describe, empty_node, node_bytes, topology_of_host};
use super::{Arch, Machine, MachineError, Source, sysfs};
use crate::host::node_memory::node_cpus;
use crate::pfn::Nid;
use crate::warning::Origin;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

/// Describes the computer this program runs on.
pub fn load() -> Result<Machine, MachineError> {
    let topology = topology_of_host()?;
    let arch = Arch::of_this_program().map(|a| a.to_string());
    let facts = Facts {
        name: "host",
        from: "hwloc, this host".into(),
        arch: arch.as_deref(),
        kernel_release: None,
    };
    join(describe(&topology, &facts), &node_bytes(&topology), Path::new("/"))
}

/// Adds memory, distances and kernel release from the files under `root` to what
/// hwloc says. Where they tell no memory, hwloc's `sizes` serve, in assumed ranges.
pub fn join(
    mut machine: Machine,
    sizes: &HashMap<Nid, u64>,
    root: &Path,
) -> Result<Machine, MachineError> {
    machine.is_this_host = true;
    machine.kernel_release = sysfs::kernel_release(root);
    let memory = sysfs::memory(root, machine.page_bytes);
    place_cpus(&mut machine, root);
    add_nodes(&mut machine, root);
    if let Some(memory) = memory {
        for node in &mut machine.nodes {
            node.memory = memory.ranges.get(&node.nid).cloned().unwrap_or_default();
        }
        machine.source.memory_ranges = Source::new(Origin::Read, memory.from.clone());
        machine.source.memory_bytes = Source::new(Origin::Read, memory.from);
        machine.warnings.extend(memory.warnings);
    } else {
        let bytes = |nid: Nid| sizes.get(&nid).copied().unwrap_or(0);
        place(&mut machine, |n| bytes(n.nid)).map_err(|e| failed(&e))?;
    }
    add_distances(&mut machine, root);
    let mut machine = finish(machine).map_err(|e| failed(&e))?;
    machine.title = title(&machine);
    Ok(machine)
}

fn failed(error: &dyn std::error::Error) -> MachineError {
    MachineError::Host { problem: format!("{error}; describe it in a machine file instead") }
}

/// Adds nodes that the kernel has online and hwloc leaves out.
fn add_nodes(machine: &mut Machine, root: &Path) {
    let known: BTreeSet<Nid> = machine.nodes.iter().map(|n| n.nid).collect();
    let missing = sysfs::node_ids(root).into_iter().filter(|nid| !known.contains(nid));
    machine.nodes.extend(missing.map(empty_node));
    machine.nodes.sort_by_key(|n| n.nid);
}

/// Puts every CPU on the node where Linux has it: hwloc shows CPUs also on nodes
/// without CPUs in their neighbourhood.
fn place_cpus(machine: &mut Machine, root: &Path) {
    let listed = |nid: Nid| node_cpus(root, nid.0).unwrap_or_default().into_iter();
    let nids = sysfs::node_ids(root).into_iter();
    let node_of: HashMap<u32, Nid> =
        nids.flat_map(|nid| listed(nid).map(move |cpu| (cpu, nid))).collect();
    for cpu in &mut machine.cpus {
        cpu.nid = node_of.get(&cpu.id).copied().unwrap_or(cpu.nid);
    }
}

fn add_distances(machine: &mut Machine, root: &Path) {
    let nids: Vec<Nid> = machine.nodes.iter().map(|n| n.nid).collect();
    match sysfs::distances(root) {
        Some((rows, table)) if rows == nids => {
            machine.distances = Some(table);
            machine.source.distances =
                Source::new(Origin::Read, "/sys/devices/system/node/node*/distance");
        }
        // hwloc's table, if any, has only the nodes that hwloc knows.
        _ if machine.distances.as_ref().is_some_and(|t| t.len() != nids.len()) => {
            machine.distances = None;
            machine.source.distances =
                Source::new(Origin::Assumed, "10 on a node, 20 between nodes");
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::Cpu;
    use super::super::check::tests::blank;
    use super::super::sysfs::tests::{put, tree};
    use super::*;
    use crate::pfn::PhysRange;
    use crate::units::{GIB, MIB};

    // hwloc knows node 0; the kernel has node 2 online as well, without CPUs.
    #[test]
    fn nodes_memory_and_distances_come_from_the_tree() {
        let dir = tree(&[(0, &[0, 1]), (2, &[2])]);
        put(&dir, "proc/sys/kernel/osrelease", "6.12.1-test\n");
        let machine = join(blank(Arch::X86_64, 4096, 1), &HashMap::new(), dir.path()).unwrap();
        assert_eq!(machine.nodes.iter().map(|n| n.nid.0).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(machine.nodes[1].memory, [PhysRange::new(256 * MIB, 384 * MIB)]);
        assert_eq!(machine.distance(Nid(0), Nid(2)), 21);
        assert_eq!(machine.kernel_release.as_deref(), Some("6.12.1-test"));
        assert_eq!(machine.source.memory_ranges.origin, Origin::Read);
        assert!(machine.is_this_host && machine.warnings.is_empty());
    }

    // hwloc shows CPU 0 on node 0, the first node near it; Linux has it on node 2.
    #[test]
    fn a_cpu_belongs_to_the_node_where_linux_has_it() {
        let dir = tree(&[(0, &[0, 1]), (2, &[2])]);
        put(&dir, "sys/devices/system/node/node2/cpu0/online", "1\n");
        let mut blank = blank(Arch::X86_64, 4096, 1);
        blank.cpus.push(Cpu { id: 0, nid: Nid(0), core: 0, package: 0 });
        let machine = join(blank, &HashMap::new(), dir.path()).unwrap();
        assert_eq!(machine.cpus.iter().map(|c| (c.id, c.nid.0)).collect::<Vec<_>>(), [(0, 2)]);
        assert!(machine.nodes[0].cpus.is_empty());
        assert_eq!(machine.nodes[1].cpus, [0]);
    }

    #[test]
    fn without_files_hwlocs_sizes_are_placed() {
        let dir = tempfile::tempdir().unwrap();
        let sizes = HashMap::from([(Nid(0), GIB)]);
        let machine = join(blank(Arch::X86_64, 4096, 1), &sizes, dir.path()).unwrap();
        assert_eq!(machine.memory_bytes(), GIB);
        assert_eq!(machine.source.memory_ranges.origin, Origin::Assumed);
        let none = join(blank(Arch::X86_64, 4096, 1), &HashMap::new(), dir.path());
        assert!(none.unwrap_err().to_string().contains("no node has any memory"));
    }

    #[test]
    fn this_host_has_cpus_and_memory() {
        let machine = load().unwrap();
        assert!(machine.memory_bytes() > 0 && !machine.cpus.is_empty());
        assert!(machine.is_this_host && machine.kernel_release.is_some());
        let listed: usize = machine.nodes.iter().map(|n| n.cpus.len()).sum();
        assert_eq!(listed, machine.cpus.len());
    }
}
