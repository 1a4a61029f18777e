//! The rules that every machine keeps, whatever it was read from.
//!
//! [`finish`] is the last step of each front end: it sorts, numbers cores and
//! packages densely and refuses what no Linux machine can be, so that the layers
//! above need not doubt a [`Machine`].

use super::assume::PHYS_LIMIT;
use super::cpulist::MAX_CPU_ID;
use super::{Cpu, Machine};
use crate::pfn::{Nid, PhysRange};
use std::collections::{BTreeMap, HashMap};

/// The highest node id (`MAX_NUMNODES` is at most `1 << CONFIG_NODES_SHIFT` = 1024).
pub const MAX_NID: u32 = 1023;

/// Why a description is no machine.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Flaw {
    /// There is no node at all.
    #[error("there is no NUMA node; a machine has at least one")]
    NoNodes,
    /// A node id stands twice.
    #[error("node {0} is described twice")]
    NodeTwice(Nid),
    /// A node id is above [`MAX_NID`].
    #[error("node {0} is above {MAX_NID}, the highest node id of Linux")]
    NidTooLarge(Nid),
    /// A CPU belongs to two nodes, or to one of them twice.
    #[error("CPU {0} is in node {1} and in node {2}; a CPU has one node")]
    CpuTwice(u32, Nid, Nid),
    /// A CPU id is too large.
    #[error("CPU {0} is above {MAX_CPU_ID}, the highest that is supported")]
    CpuTooLarge(u32),
    /// Two pieces of memory overlap.
    #[error("memory {0} of node {1} overlaps {2} of node {3}")]
    Overlap(PhysRange, Nid, PhysRange, Nid),
    /// A piece of memory lies beyond all physical addresses.
    #[error("memory {0} of node {1} reaches beyond {PHYS_LIMIT:#x}, the end of addresses")]
    BeyondLimit(PhysRange, Nid),
    /// No node has a whole page of memory.
    #[error("no node has any memory; give at least one of them some")]
    NoMemory,
    /// The distance table does not fit the nodes.
    #[error("the distance table has to have {nodes} rows of {nodes} numbers, as there are nodes")]
    DistanceShape {
        /// How many nodes there are.
        nodes: usize,
    },
    /// A distance that no SLIT can hold.
    #[error("distance {value} from node {from} to node {to} is not in 1..=255, as in a SLIT")]
    DistanceValue {
        /// The row's node.
        from: Nid,
        /// The column's node.
        to: Nid,
        /// The number found.
        value: u32,
    },
    /// The page size is not a power of two, or out of all reason.
    #[error("a page of {0} bytes is not possible; pages have 4, 8, 16 or 64 KiB")]
    PageSize(u64),
}

/// Sorts and numbers the parts of `machine`, and refuses what cannot be.
///
/// The distance table must already be in ascending order of node ids.
pub fn finish(mut machine: Machine) -> Result<Machine, Flaw> {
    machine.nodes.sort_by_key(|n| n.nid);
    check_nodes(&machine)?;
    check_memory(&mut machine)?;
    check_cpus(&mut machine)?;
    check_distances(&machine)?;
    if !matches!(machine.page_bytes, 4096 | 8192 | 16_384 | 65_536) {
        return Err(Flaw::PageSize(machine.page_bytes));
    }
    Ok(machine)
}

fn check_nodes(machine: &Machine) -> Result<(), Flaw> {
    let last = machine.nodes.last().ok_or(Flaw::NoNodes)?;
    let twice = machine.nodes.windows(2).find_map(|pair| match pair {
        [a, b] if a.nid == b.nid => Some(Flaw::NodeTwice(a.nid)),
        _ => None,
    });
    match twice {
        Some(flaw) => Err(flaw),
        None if last.nid.0 > MAX_NID => Err(Flaw::NidTooLarge(last.nid)),
        None => Ok(()),
    }
}

fn check_memory(machine: &mut Machine) -> Result<(), Flaw> {
    let mut all: Vec<(PhysRange, Nid)> = Vec::new();
    for node in &mut machine.nodes {
        node.memory.retain(|r| !r.is_empty());
        node.memory.sort();
        all.extend(node.memory.iter().map(|&r| (r, node.nid)));
    }
    all.sort();
    if let Some(&(range, nid)) = all.iter().find(|(r, _)| r.end > PHYS_LIMIT) {
        return Err(Flaw::BeyondLimit(range, nid));
    }
    for pair in all.windows(2) {
        if let [(low, a), (high, b)] = pair
            && low.end > high.start
        {
            return Err(Flaw::Overlap(*low, *a, *high, *b));
        }
    }
    // Struct pages are of whole pages: less than one is no memory.
    let page_bytes = machine.page_bytes.max(1);
    let has_page = |r: &PhysRange| r.start.div_ceil(page_bytes) < r.end / page_bytes;
    if all.iter().any(|(range, _)| has_page(range)) { Ok(()) } else { Err(Flaw::NoMemory) }
}

/// Sorts the CPUs, numbers cores and packages by their lowest CPU, and derives the
/// CPU lists of the nodes from them.
fn check_cpus(machine: &mut Machine) -> Result<(), Flaw> {
    machine.cpus.sort_by_key(|c| c.id);
    for pair in machine.cpus.windows(2) {
        if let [a, b] = pair
            && a.id == b.id
        {
            return Err(Flaw::CpuTwice(a.id, a.nid, b.nid));
        }
    }
    if let Some(cpu) = machine.cpus.last().filter(|c| c.id > MAX_CPU_ID) {
        return Err(Flaw::CpuTooLarge(cpu.id));
    }
    renumber(&mut machine.cpus, |c| &mut c.core);
    renumber(&mut machine.cpus, |c| &mut c.package);
    let mut by_node: BTreeMap<Nid, Vec<u32>> = BTreeMap::new();
    for cpu in &machine.cpus {
        by_node.entry(cpu.nid).or_default().push(cpu.id);
    }
    for node in &mut machine.nodes {
        node.cpus = by_node.remove(&node.nid).unwrap_or_default();
    }
    Ok(())
}

/// Replaces one number of each CPU by the rank of its first appearance.
fn renumber(cpus: &mut [Cpu], number: impl Fn(&mut Cpu) -> &mut u32) {
    let mut ranks: HashMap<u32, u32> = HashMap::new();
    for cpu in cpus {
        let next = u32::try_from(ranks.len()).unwrap_or(u32::MAX);
        let number = number(cpu);
        *number = *ranks.entry(*number).or_insert(next);
    }
}

fn check_distances(machine: &Machine) -> Result<(), Flaw> {
    let Some(table) = &machine.distances else { return Ok(()) };
    let nodes = machine.nodes.len();
    if table.len() != nodes || table.iter().any(|row| row.len() != nodes) {
        return Err(Flaw::DistanceShape { nodes });
    }
    for (row, from) in table.iter().zip(&machine.nodes) {
        for (&value, to) in row.iter().zip(&machine.nodes) {
            if !(1..=255).contains(&value) {
                return Err(Flaw::DistanceValue { from: from.nid, to: to.nid, value });
            }
        }
    }
    Ok(())
}

/// `2 × Xeon Platinum 8167M, 2 nodes, 104 CPUs, 768 GiB`, from what is known.
pub fn title(machine: &Machine) -> String {
    let packages = machine.cpus.iter().map(|c| c.package).max().map_or(0, |p| p + 1);
    let mut parts = Vec::new();
    match (&machine.cpu_model, packages) {
        (Some(model), 2..) => parts.push(format!("{packages} × {model}")),
        (Some(model), _) => parts.push(model.clone()),
        (None, _) => parts.push(machine.arch.to_string()),
    }
    parts.push(counted(machine.nodes.len(), "node"));
    if !machine.cpus.is_empty() {
        parts.push(counted(machine.cpus.len(), "CPU"));
    }
    parts.push(crate::units::Bytes(machine.memory_bytes()).to_string());
    parts.join(", ")
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::Arch;
    use super::*;

    /// A machine with `count` nodes and nothing in them.
    pub(in crate::machine) fn blank(arch: Arch, page_bytes: u64, count: usize) -> Machine {
        Machine::of_ranges("test", arch, page_bytes, vec![Vec::new(); count])
    }

    fn pages(start: u64, end: u64) -> PhysRange {
        PhysRange::new(start * 4096, end * 4096)
    }

    /// Two nodes with ranges in pages.
    fn two_nodes(memory: [&[(u64, u64)]; 2]) -> Machine {
        let mut machine = blank(Arch::X86_64, 4096, 2);
        for (node, ranges) in machine.nodes.iter_mut().zip(memory) {
            node.memory = ranges.iter().map(|&(s, e)| pages(s, e)).collect();
        }
        machine
    }

    fn cpu(id: u32, nid: u32, core: u32) -> Cpu {
        Cpu { id, nid: Nid(nid), core, package: nid + 7 }
    }

    // node 0   |====|          |====|
    // node 1            |========|        overlaps the second piece
    #[test]
    fn overlapping_memory_is_refused_and_interleaved_memory_is_not() {
        let flaw = finish(two_nodes([&[(0, 4), (10, 14)], &[(5, 12)]])).unwrap_err();
        assert_eq!(flaw, Flaw::Overlap(pages(5, 12), Nid(1), pages(10, 14), Nid(0)));
        assert!(finish(two_nodes([&[(10, 14), (0, 4)], &[(4, 10)]])).is_ok());
        assert_eq!(finish(two_nodes([&[], &[]])).unwrap_err(), Flaw::NoMemory);
        let far = finish(two_nodes([&[(0, PHYS_LIMIT / 4096 + 1)], &[]])).unwrap_err();
        assert!(matches!(far, Flaw::BeyondLimit(..)));
    }

    /// ```text
    ///   pages  |    0    |    1    |    2    |
    ///   bytes      |==========|                 8 KiB less one: no whole page
    ///   bytes      |==============|             page 1 is whole
    /// ```
    #[test]
    fn less_than_a_page_is_no_memory() {
        let with = |start, end| {
            let mut machine = two_nodes([&[], &[]]);
            machine.nodes[1].memory = vec![PhysRange::new(start, end)];
            finish(machine)
        };
        assert_eq!(with(0, 223).unwrap_err(), Flaw::NoMemory);
        assert_eq!(with(1, 8191).unwrap_err(), Flaw::NoMemory);
        assert!(with(1, 8192).is_ok());
        assert!(with(0, 4096).is_ok());
    }

    #[test]
    fn cpus_are_sorted_numbered_and_listed_by_node() {
        let mut machine = two_nodes([&[(0, 4)], &[]]);
        machine.cpus = vec![cpu(3, 1, 90), cpu(0, 0, 80), cpu(2, 0, 80), cpu(1, 1, 90)];
        let done = finish(machine.clone()).unwrap();
        assert_eq!(done.cpus.iter().map(|c| c.core).collect::<Vec<_>>(), [0, 1, 0, 1]);
        assert_eq!(done.cpus.iter().map(|c| c.package).collect::<Vec<_>>(), [0, 1, 0, 1]);
        assert_eq!(done.nodes[1].cpus, [1, 3]);
        machine.cpus.push(cpu(3, 0, 1));
        assert!(matches!(finish(machine).unwrap_err(), Flaw::CpuTwice(3, _, _)));
    }

    #[test]
    fn ids_and_distances_are_checked() {
        let good = two_nodes([&[(0, 4)], &[]]);
        let mut twice = good.clone();
        twice.nodes[1].nid = Nid(0);
        assert_eq!(finish(twice).unwrap_err(), Flaw::NodeTwice(Nid(0)));
        let mut high = good.clone();
        high.nodes[1].nid = Nid(1024);
        assert_eq!(finish(high).unwrap_err(), Flaw::NidTooLarge(Nid(1024)));
        let mut shape = good.clone();
        shape.distances = Some(vec![vec![10, 20]]);
        assert_eq!(finish(shape).unwrap_err(), Flaw::DistanceShape { nodes: 2 });
        let mut zero = good;
        zero.distances = Some(vec![vec![10, 0], vec![20, 10]]);
        assert!(matches!(finish(zero).unwrap_err(), Flaw::DistanceValue { value: 0, .. }));
    }
}
