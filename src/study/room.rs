//! What of this host a plan depends on: its nodes, its memory, its caches.
//!
//! [`HostRoom`] binds and pins nothing, so that plans can be made, and shown, by a
//! program without hwloc. Used by [`super::setup`]; [`super::HostContext`] has one.

use crate::host::HostError;
use crate::host::budget::MemoryBudget;
use crate::host::topology::{HostNode, HostTopology};
use crate::machine::{Machine, limits};
use std::collections::BTreeMap;
use std::path::Path;

/// The host as far as plans depend on it.
#[derive(Clone, Debug)]
pub struct HostRoom {
    /// Its nodes, by ascending nid, with the CPUs that this process may use.
    pub nodes: Vec<HostNode>,
    /// How much memory may be used.
    pub budget: MemoryBudget,
    /// The host as a machine.
    pub machine: Machine,
}

impl HostRoom {
    /// The room of this host, which is `machine`: as hwloc sees it, or, in a program
    /// without hwloc, as `/sys` shows it.
    ///
    /// # Errors
    /// When hwloc fails or describes another machine.
    pub fn of_host(machine: Machine, budget: MemoryBudget) -> Result<Self, HostError> {
        let nodes = match HostTopology::load() {
            Ok(topo) => topo.nodes(),
            Err(HostError::WithoutHwloc) => {
                nodes(&machine, &limits::read(Path::new("/")).allowed_cpus)
            }
            Err(other) => return Err(other),
        };
        Ok(Self { nodes, budget, machine })
    }
}

/// The nodes of the host `machine` with the CPUs in `allowed`, all of them where that is
/// empty; one of each core first, as [`HostTopology::nodes`] orders them.
fn nodes(machine: &Machine, allowed: &[u32]) -> Vec<HostNode> {
    let mut seen: BTreeMap<u32, usize> = BTreeMap::new();
    let mut ranked: Vec<(usize, u32)> = Vec::new();
    for cpu in &machine.cpus {
        if allowed.is_empty() || allowed.binary_search(&cpu.id).is_ok() {
            let rank = seen.entry(cpu.core).or_default();
            ranked.push((*rank, cpu.id));
            *rank += 1;
        }
    }
    ranked.sort_unstable();
    let of = |node: &crate::machine::Node| HostNode {
        nid: node.nid.0,
        cpus: ranked.iter().map(|(_, cpu)| *cpu).filter(|cpu| node.cpus.contains(cpu)).collect(),
        local_bytes: node.memory_bytes(),
    };
    machine.nodes.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{KernelModel, KernelVersion};
    use crate::machine::input;
    use crate::study::Options;
    use crate::study::compare::plans;

    const TWO: &str = "arch = \"x86_64\"\nsmt = 2\n[[node]]\nid = 0\nmemory = \"1GiB\"\n\
                       cpus = \"0-1,4-5\"\n[[node]]\nid = 2\nmemory = \"1GiB\"\n\
                       cpus = \"2-3,6-7\"\n";

    // core    a  b  c  d
    // CPUs    0  1  2  3      all but 6 are allowed
    //         4  5  6  7
    #[test]
    fn siblings_come_last_and_forbidden_cpus_not_at_all() {
        let machine = input::parse_text("m", TWO.as_bytes(), None).unwrap();
        let nodes = nodes(&machine, &[0, 1, 2, 3, 4, 5, 7]);
        let found: Vec<_> = nodes.iter().map(|n| (n.nid, n.cpus.clone())).collect();
        assert_eq!(found, [(0, vec![0, 1, 4, 5]), (2, vec![2, 3, 7])]);
        assert!(nodes.iter().all(|n| n.local_bytes == 1 << 30));
    }

    // With every set of features: what is only shown needs nothing that binds.
    #[test]
    fn plans_are_made_without_a_topology() {
        let host = input::load("host", None).unwrap();
        let machine = input::load("@vm-2c", None).unwrap();
        let kernel = KernelModel::new(KernelVersion::new(6, 12), machine.arch);
        let budget = MemoryBudget::read(Path::new("/")).unwrap();
        let found = HostRoom::of_host(host.clone(), budget).unwrap();
        assert!(!found.nodes.is_empty());
        let room = HostRoom { nodes: nodes(&host, &[]), budget, machine: host };
        let options = Options { buffer_bytes: Some(8 << 20), free: true, ..Options::default() };
        let made = plans(&machine, &kernel, &room, &options).unwrap();
        assert!(made.len() >= 9 && made.iter().all(|c| !c.executed.phases.is_empty()));
    }
}
