//! Machines that are varied: as many nodes, as much memory, pages of another size.
//!
//! [`Shape`] says what is changed and [`Shape::of`] makes the machine. Knows nothing of
//! kernels, plans and times.

use crate::machine::{Arch, Cpu, Machine, Node, Source, assume};
use crate::pfn::{Nid, PhysRange};
use crate::study::StudyError;
use crate::study::subject::distances;
use crate::units::Bytes;
use crate::warning::Origin;
use std::collections::BTreeMap;

/// Linux's `MAX_NUMNODES` where `NODES_SHIFT` is 10, the largest value there is.
pub const MOST_NODES: u32 = 1024;

/// What is changed about a machine; `None` leaves it as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Equal nodes, each like the first node with CPUs and memory.
    pub nodes: Option<u32>,
    /// All memory, shared among the nodes.
    pub memory_bytes: Option<u64>,
    /// The base page size.
    pub page_bytes: Option<u64>,
}

/// The base page sizes that Linux can be built with (`arch/*/Kconfig`, v6.12).
pub const fn page_sizes(arch: Arch) -> &'static [u64] {
    match arch {
        Arch::X86_64 | Arch::S390x | Arch::Riscv64 => &[4096],
        Arch::Arm64 => &[4096, 16_384, 65_536],
        Arch::Ppc64 => &[4096, 65_536],
        Arch::Sparc64 => &[8192],
    }
}

impl Shape {
    /// Refuses what no machine of this architecture can be.
    ///
    /// # Errors
    /// Names the flag and what there is.
    pub fn check(&self, arch: Arch) -> Result<(), StudyError> {
        let usage = |text: String| Err(StudyError::Usage(text));
        if let Some(nodes) = self.nodes.filter(|n| !(1..=MOST_NODES).contains(n)) {
            return usage(format!("--nodes {nodes}: Linux has 1 to {MOST_NODES} nodes"));
        }
        let sizes = page_sizes(arch);
        if let Some(bytes) = self.page_bytes.filter(|bytes| !sizes.contains(bytes)) {
            let names: Vec<String> = sizes.iter().map(|b| Bytes(*b).to_string()).collect();
            let (size, names) = (Bytes(bytes), names.join(", "));
            return usage(format!("--page-size {size}: Linux on {arch} has pages of {names}"));
        }
        Ok(())
    }

    /// The machine as changed.
    ///
    /// # Errors
    /// Why there is no such machine, in a sentence.
    pub fn of(&self, machine: &Machine) -> Result<Machine, String> {
        let page_bytes = self.page_bytes.filter(|bytes| *bytes != machine.page_bytes);
        let mut out = machine.clone();
        if page_bytes.is_none() && self.nodes.is_none() && self.memory_bytes.is_none() {
            return Ok(out);
        }
        out.name = self.name(machine);
        // What memblock once knew belongs to the machine as it was.
        (out.boot, out.is_this_host) = (None, false);
        if let Some(bytes) = page_bytes {
            out.page_bytes = bytes;
            for node in &mut out.nodes {
                node.memory = whole_pages(&node.memory, bytes);
            }
        }
        if let Some(count) = self.nodes {
            repeat(&mut out, count)?;
        }
        if self.nodes.is_some() || self.memory_bytes.is_some() {
            self.place(&mut out)?;
        }
        Ok(out)
    }

    fn name(&self, machine: &Machine) -> String {
        let nodes = self.nodes.map(|n| format!("{n} nodes"));
        let memory = self.memory_bytes.map(|b| Bytes(b).to_string());
        let pages = self.page_bytes.map(|b| format!("pages of {}", Bytes(b)));
        let parts: Vec<String> = [nodes, memory, pages].into_iter().flatten().collect();
        format!("{} with {}", machine.name, parts.join(", "))
    }

    /// Shares memory among the nodes as it was shared before, in whole sections.
    fn place(&self, machine: &mut Machine) -> Result<(), String> {
        let own: BTreeMap<Nid, u64> =
            machine.nodes.iter().map(|n| (n.nid, n.memory_bytes())).collect();
        let total: u64 = own.values().fold(0, |sum, bytes| sum.saturating_add(*bytes));
        let section = assume::section_bytes(machine.arch, machine.page_bytes);
        let share = |node: &Node| {
            let bytes = own.get(&node.nid).copied().unwrap_or(0);
            let Some(wanted) = self.memory_bytes else { return bytes };
            let scaled = u128::from(wanted) * u128::from(bytes) / u128::from(total.max(1));
            u64::try_from(scaled).unwrap_or(u64::MAX) / section * section
        };
        let empty = machine.nodes.iter().find(|n| own.get(&n.nid) != Some(&0) && share(n) == 0);
        if let Some(node) = empty {
            return Err(format!(
                "node {} would get less than a memory section of {}",
                node.nid,
                Bytes(section)
            ));
        }
        let before = machine.warnings.len();
        assume::place(machine, share).map_err(|why| why.to_string())?;
        // One word about assumed addresses is enough.
        if machine.warnings.iter().take(before).any(|w| w.code == "assumed-ranges") {
            machine.warnings.truncate(before);
        }
        Ok(())
    }
}

/// Ranges cut to whole pages.
fn whole_pages(memory: &[PhysRange], page_bytes: u64) -> Vec<PhysRange> {
    let cut = |r: &PhysRange| {
        let start = r.start.checked_next_multiple_of(page_bytes).unwrap_or(r.end);
        PhysRange::new(start, (r.end / page_bytes * page_bytes).max(start))
    };
    memory.iter().map(cut).filter(|r| !r.is_empty()).collect()
}

/// The node that is repeated: the first one with CPUs and memory, or else with memory.
pub(super) fn pattern(machine: &Machine) -> Option<&Node> {
    let able = |n: &&Node| !n.memory.is_empty() && !n.cpus.is_empty();
    let with_memory = |n: &&Node| !n.memory.is_empty();
    machine.nodes.iter().find(able).or(machine.nodes.iter().find(with_memory))
}

/// Gives the machine `count` nodes like [`pattern`].
fn repeat(machine: &mut Machine, count: u32) -> Result<(), String> {
    let pattern = pattern(machine).cloned().ok_or("no node has memory to repeat")?;
    let cores = pattern_cores(machine, &pattern);
    let sockets = sockets(machine);
    machine.distances = Some(distances_of(machine, count as usize));
    machine.nodes.clear();
    machine.cpus.clear();
    let stride = cores.iter().max().map_or(1, |core| core + 1);
    for nid in 0..count {
        let first = u32::try_from(machine.cpus.len()).unwrap_or(u32::MAX);
        for core in &cores {
            machine.cpus.push(Cpu {
                id: u32::try_from(machine.cpus.len()).unwrap_or(u32::MAX),
                nid: Nid(nid),
                core: nid.saturating_mul(stride).saturating_add(*core),
                package: nid / sockets,
            });
        }
        let cpus = (first..).take(pattern.cpus.len()).collect();
        machine.nodes.push(Node { nid: Nid(nid), cpus, ..pattern.clone() });
    }
    let rule = format!("{count} nodes like node {}", pattern.nid);
    machine.source.topology = Source::new(Origin::Assumed, rule.clone());
    machine.source.distances = Source::new(Origin::Assumed, rule);
    Ok(())
}

/// The cores of a node's CPUs, counted from 0; each CPU its own where none are known.
fn pattern_cores(machine: &Machine, pattern: &Node) -> Vec<u32> {
    let mut known: Vec<u32> = Vec::new();
    let core_of = |id: u32| machine.cpus.iter().find(|cpu| cpu.id == id).map(|cpu| cpu.core);
    let mut number = |id: u32| {
        // Numbers of unknown cores must not meet those of known ones.
        let core = core_of(id).unwrap_or(u32::MAX - id);
        let at = known.iter().position(|c| *c == core).unwrap_or_else(|| {
            known.push(core);
            known.len() - 1
        });
        u32::try_from(at).unwrap_or(u32::MAX)
    };
    pattern.cpus.iter().map(|id| number(*id)).collect()
}

/// How many nodes share a socket.
fn sockets(machine: &Machine) -> u32 {
    let mut of_socket: BTreeMap<u32, Vec<Nid>> = BTreeMap::new();
    for cpu in &machine.cpus {
        let nodes = of_socket.entry(cpu.package).or_default();
        if !nodes.contains(&cpu.nid) {
            nodes.push(cpu.nid);
        }
    }
    let most = of_socket.values().map(Vec::len).max().unwrap_or(1).max(1);
    u32::try_from(most).unwrap_or(1)
}

/// The table cut to `count` nodes, or repeated: nodes of different copies are as far as
/// the farthest ones, or as nodes of so large machines usually are, whichever is more.
fn distances_of(machine: &Machine, count: usize) -> Vec<Vec<u32>> {
    let mut usual = distances(count);
    let known = machine.nodes.len().max(1);
    let Some(own) = machine.distances.as_ref().filter(|d| d.len() == known) else { return usual };
    let farthest = own.iter().flatten().copied().max().unwrap_or(0);
    for (i, row) in usual.iter_mut().enumerate() {
        for (j, distance) in row.iter_mut().enumerate().filter(|(j, _)| *j != i) {
            let within = own.get(i % known).and_then(|row| row.get(j % known)).copied();
            *distance = match within {
                Some(within) if i / known == j / known => within,
                _ => farthest.max(*distance),
            };
        }
    }
    usual
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::input;
    use crate::units::{GIB, MIB};
    use proptest::prelude::*;

    fn skylake() -> Machine {
        input::load("@2n-skylake-768g", None).unwrap()
    }

    fn shaped(machine: &Machine, nodes: Option<u32>, memory_bytes: Option<u64>) -> Machine {
        Shape { nodes, memory_bytes, page_bytes: None }.of(machine).unwrap()
    }

    #[test]
    fn nothing_changed_is_the_machine_itself() {
        let machine = skylake();
        assert_eq!(Shape::default().of(&machine).unwrap(), machine);
        let same = Shape { page_bytes: Some(4096), ..Shape::default() };
        assert_eq!(same.of(&machine).unwrap(), machine);
    }

    // nodes        0   1   2   3
    // first copy   x   x
    // second copy          x   x
    #[test]
    fn nodes_are_repeated_with_cpus_cores_and_distances() {
        let machine = shaped(&skylake(), Some(4), None);
        assert_eq!((machine.nodes.len(), machine.cpus.len()), (4, 208));
        assert_eq!(machine.memory_bytes(), 4 * skylake().nodes[0].memory_bytes());
        assert_eq!(machine.smt(), 2);
        assert_eq!(machine.cpus.last().map(|c| (c.id, c.nid, c.package)), Some((207, Nid(3), 3)));
        let own = skylake().distance(Nid(0), Nid(1));
        assert_eq!(machine.distance(Nid(2), Nid(3)), own);
        assert!(machine.distance(Nid(1), Nid(2)) >= own);
        assert_eq!(machine.distance(Nid(3), Nid(3)), 10);
    }

    #[test]
    fn nodes_are_cut() {
        let machine = shaped(&skylake(), Some(1), None);
        assert_eq!((machine.nodes.len(), machine.cpus.len()), (1, 52));
        assert_eq!(machine.distances, Some(vec![vec![10]]));
    }

    #[test]
    fn memory_is_shared_in_whole_sections() {
        let machine = shaped(&skylake(), Some(3), Some(1024 * GIB));
        for node in &machine.nodes {
            assert_eq!(node.memory_bytes(), 1024 * GIB / 3 / (128 * MIB) * (128 * MIB));
        }
        let shape = Shape { memory_bytes: Some(200 * MIB), ..Shape::default() };
        assert!(shape.of(&skylake()).unwrap_err().contains("memory section of 128 MiB"));
        let shape = Shape { memory_bytes: Some(u64::MAX), ..Shape::default() };
        assert!(shape.of(&skylake()).unwrap_err().contains("does not fit"));
    }

    #[test]
    fn page_sizes_are_those_of_the_architecture() {
        let error = |arch, bytes| {
            let shape = Shape { page_bytes: Some(bytes), ..Shape::default() };
            shape.check(arch).err().map(|e| e.to_string()).unwrap_or_default()
        };
        let x86 = error(Arch::X86_64, 65_536);
        assert!(x86.contains("--page-size 64 KiB") && x86.contains("pages of 4 KiB"), "{x86}");
        assert_eq!(error(Arch::Arm64, 16_384), "");
        assert!(error(Arch::Ppc64, 16_384).contains("4 KiB, 64 KiB"));
        let nodes = Shape { nodes: Some(0), ..Shape::default() };
        assert!(nodes.check(Arch::Arm64).unwrap_err().to_string().contains("1 to 1024"));
    }

    #[test]
    fn ranges_are_cut_to_larger_pages() {
        let range = |start, end| PhysRange::new(start, end);
        let memory = [range(4096, 131_072 + 4096), range(196_608, 196_608 + 4096)];
        assert_eq!(whole_pages(&memory, 65_536), [range(65_536, 131_072)]);
    }

    proptest! {
        #[test]
        fn every_shape_is_a_machine_or_a_reason(
            nodes in prop::option::of(1u32..40),
            memory in prop::option::of(any::<u64>()),
        ) {
            let shape = Shape { nodes, memory_bytes: memory, page_bytes: None };
            if let Ok(machine) = shape.of(&skylake()) {
                prop_assert_eq!(machine.nodes.len(), nodes.unwrap_or(2) as usize);
                prop_assert!(memory.is_none_or(|bytes| machine.memory_bytes() <= bytes));
                prop_assert_eq!(machine.distances.map(|d| d.len()), Some(machine.nodes.len()));
            }
        }
    }
}
