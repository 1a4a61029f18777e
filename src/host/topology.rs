//! This host's CPUs and NUMA nodes, and binding threads to them.
//!
//! [`HostTopology`] wraps hwloc's view of the machine that the program runs on.
//! hwloc can also describe other machines, and then all bindings succeed without
//! doing anything; [`HostTopology::load`] refuses that case, so that every binding
//! made through this type is real.

use super::error::{Cause, HostError};
use super::node_memory::node_cpus;
use hwlocality::Topology;
use hwlocality::bitmap::BitmapIndex;
use hwlocality::cpu::binding::CpuBindingFlags;
use hwlocality::cpu::cpuset::CpuSet;
use hwlocality::memory::binding::{MemoryBindingError, MemoryBindingFlags, MemoryBindingPolicy};
use hwlocality::memory::nodeset::NodeSet;
use hwlocality::object::TopologyObject;
use hwlocality::object::attributes::ObjectAttributes;
use hwlocality::object::depth::Depth;
use hwlocality::object::types::ObjectType;
use std::path::Path;

/// The variables through which hwloc reads another machine.
const VARIABLES: [&str; 6] = [
    "HWLOC_SYNTHETIC",
    "HWLOC_XMLFILE",
    "HWLOC_FSROOT",
    "HWLOC_CPUID_PATH",
    "HWLOC_COMPONENTS",
    "HWLOC_THISSYSTEM",
];

/// The machine that this program runs on. Share it by reference between threads.
#[derive(Debug)]
pub struct HostTopology {
    topology: Topology,
    allowed: CpuSet,
}

/// A NUMA node of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostNode {
    /// Linux's number of the node.
    pub nid: u32,
    /// Linux's numbers of its allowed CPUs in pinning order: one of each core first,
    /// then the second hardware thread of each, and so on.
    pub cpus: Vec<u32>,
    /// Memory on this node; 0 where there is none or hwloc does not know.
    pub local_bytes: u64,
}

impl HostTopology {
    /// Reads this machine. Call it before pinning the main thread, whose CPUs count
    /// as those that the process may use.
    ///
    /// # Errors
    /// [`HostError::NotThisSystem`] when environment variables make hwloc describe
    /// another machine, [`HostError::Topology`] when hwloc fails.
    pub fn load() -> Result<Self, HostError> {
        let topology = Topology::new().map_err(|error| HostError::Topology(error.into()))?;
        if !topology.is_this_system() {
            let is_set = |name: &&&str| std::env::var_os(name).is_some();
            let variables = VARIABLES.iter().filter(is_set).map(|&name| name.into()).collect();
            return Err(HostError::NotThisSystem { variables });
        }
        // hwloc sees cgroup cpusets, but not `taskset`. The main thread stands for the
        // process: walking all threads fails while some of them come and go.
        let process = topology
            .process_cpu_binding(std::process::id(), CpuBindingFlags::THREAD)
            .map_err(|error| HostError::Topology(cpu_cause(error).into_source()))?;
        let allowed = process & topology.allowed_cpuset();
        Ok(Self { topology, allowed })
    }

    /// hwloc's own view, for what this type does not offer.
    pub fn inner(&self) -> &Topology {
        &self.topology
    }

    /// The CPUs that this process may use, ascending.
    pub fn allowed_cpus(&self) -> Vec<u32> {
        members(&self.allowed)
    }

    /// All nodes, by ascending nid; those without CPUs or memory too.
    pub fn nodes(&self) -> Vec<HostNode> {
        let objects = self.topology.objects_at_depth(Depth::NUMANode);
        let mut nodes: Vec<HostNode> = objects.filter_map(|node| self.node(node)).collect();
        nodes.sort_by_key(|node| node.nid);
        nodes
    }

    fn node(&self, node: &TopologyObject) -> Option<HostNode> {
        let nid = u32::try_from(node.os_index()?).ok()?;
        let local_bytes = match node.attributes() {
            Some(ObjectAttributes::NUMANode(numa)) => numa.local_memory().map_or(0, |b| b.get()),
            _ => 0,
        };
        let cpus = match (node_cpus(Path::new("/"), nid), node.cpuset()) {
            (Some(cpus), _) => cpus.into_iter().filter_map(index).collect(),
            (None, Some(cpuset)) => cpuset.clone_target(),
            (None, None) => CpuSet::new(),
        };
        let cpus = &cpus & &self.allowed;
        let cores: Vec<CpuSet> = self
            .topology
            .objects_with_type(ObjectType::Core)
            .filter_map(|core| Some(&*core.cpuset()? & &cpus))
            .collect();
        let cores: Vec<Vec<u32>> = cores.iter().map(members).collect();
        Some(HostNode { nid, cpus: pinning_order(&cores, &members(&cpus)), local_bytes })
    }

    /// Binds the calling thread to `cpu` and to nothing else, and reads it back.
    ///
    /// # Errors
    /// [`HostError::NoSuchCpu`], [`HostError::Pin`] when the kernel says no, and
    /// [`HostError::PinIgnored`] when it said yes and did not do it.
    pub fn pin_thread(&self, cpu: u32) -> Result<(), HostError> {
        let wanted = index(cpu).filter(|&index| self.allowed.is_set(index));
        let Some(wanted) = wanted.map(CpuSet::from) else {
            return Err(HostError::NoSuchCpu { cpu, allowed: self.allowed.to_string() });
        };
        let failed = |error| HostError::Pin { cpu, source: cpu_cause(error).into_source() };
        let thread = CpuBindingFlags::THREAD;
        self.topology.bind_cpu(&wanted, thread | CpuBindingFlags::STRICT).map_err(failed)?;
        let found = self.topology.cpu_binding(thread).map_err(failed)?;
        if found != wanted {
            return Err(HostError::PinIgnored { cpu, found: found.to_string() });
        }
        Ok(())
    }

    /// Whether there is such a node.
    ///
    /// # Errors
    /// [`HostError::NoSuchNode`].
    pub(super) fn check_node(&self, nid: u32) -> Result<(), HostError> {
        self.nodeset(nid).map(drop)
    }

    /// Makes all pages of `area` that are touched from now on come from one node.
    ///
    /// # Errors
    /// [`HostError::BindRefused`], [`HostError::NoSuchNode`], [`HostError::Bind`].
    pub(super) fn bind_area(&self, area: &[u8], nid: u32) -> Result<(), HostError> {
        let nodes = self.nodeset(nid)?;
        // STRICT makes it MPOL_BIND; otherwise Linux would only prefer the node.
        let strict = MemoryBindingFlags::STRICT;
        self.topology
            .bind_memory_area::<[u8], _>(area, &nodes, MemoryBindingPolicy::Bind, strict)
            .map_err(|error| match memory_cause(error) {
                Cause::Refused(source) => HostError::BindRefused { nid, source },
                Cause::Other(source) => HostError::Bind { nid, source },
            })
    }

    /// Whether pages of `part` are on this node, and whether some are elsewhere.
    ///
    /// # Errors
    /// [`HostError::LocateRefused`], [`HostError::NoSuchNode`], [`HostError::Locate`].
    pub(super) fn locate(&self, part: &[u8], nid: u32) -> Result<(bool, bool), HostError> {
        let wanted = self.nodeset(nid)?;
        let nodes = self
            .topology
            .area_memory_location::<[u8], NodeSet>(part, MemoryBindingFlags::empty())
            .map_err(|error| match memory_cause(error) {
                Cause::Refused(source) => HostError::LocateRefused(source),
                Cause::Other(source) => HostError::Locate(source),
            })?;
        Ok((nodes.intersects(&wanted), !wanted.includes(&nodes)))
    }

    /// The set of this one node.
    ///
    /// # Errors
    /// [`HostError::NoSuchNode`], [`HostError::NodeNotAllowed`].
    fn nodeset(&self, nid: u32) -> Result<NodeSet, HostError> {
        let (known, allowed) = (self.topology.complete_nodeset(), self.topology.nodeset());
        match index(nid).filter(|&index| known.is_set(index)) {
            Some(index) if allowed.is_set(index) => Ok(NodeSet::from(index)),
            Some(_) => Err(HostError::NodeNotAllowed { nid, allowed: allowed.to_string() }),
            None => Err(HostError::NoSuchNode { nid, known: known.to_string() }),
        }
    }
}

/// A number as hwloc's sets hold it.
fn index(number: u32) -> Option<BitmapIndex> {
    BitmapIndex::try_from(usize::try_from(number).ok()?).ok()
}

fn memory_cause(error: hwlocality::errors::HybridError<MemoryBindingError<NodeSet>>) -> Cause {
    Cause::of(error, |error| matches!(error, MemoryBindingError::Unsupported))
}

fn cpu_cause(
    error: hwlocality::errors::HybridError<hwlocality::cpu::binding::CpuBindingError>,
) -> Cause {
    Cause::of(error, |_| false)
}

/// The numbers in a set, ascending. Bounded, because an hwloc set may be infinite.
fn members(set: &CpuSet) -> Vec<u32> {
    let bounded = set.last_set().is_some();
    let numbers = set.iter_set().map_while(|cpu| u32::try_from(usize::from(cpu)).ok());
    if bounded { numbers.collect() } else { Vec::new() }
}

/// One CPU of each core first, then the second of each: sorted by place within the
/// core, then by number. CPUs outside all cores count as cores of their own.
fn pinning_order(cores: &[Vec<u32>], cpus: &[u32]) -> Vec<u32> {
    let mut ranked: Vec<(usize, u32)> =
        cores.iter().flat_map(|core| core.iter().copied().enumerate()).collect();
    let mut in_core: Vec<u32> = ranked.iter().map(|&(_, cpu)| cpu).collect();
    in_core.sort_unstable();
    let alone = cpus.iter().filter(|cpu| in_core.binary_search(cpu).is_err());
    ranked.extend(alone.map(|&cpu| (0, cpu)));
    ranked.sort_unstable();
    ranked.into_iter().map(|(_, cpu)| cpu).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_send_and_sync<T: Send + Sync>() {}

    #[test]
    fn threads_may_share_it() {
        is_send_and_sync::<HostTopology>();
    }

    /// ```text
    ///   core   | a      | b      | c |
    ///   thread | 0    4 | 1    5 | 2 |   and CPU 9 outside all cores
    /// ```
    #[test]
    fn siblings_come_last() {
        let cores = [vec![0, 4], vec![1, 5], vec![2], vec![]];
        assert_eq!(pinning_order(&cores, &[0, 1, 2, 4, 5, 9]), [0, 1, 2, 9, 4, 5]);
        assert_eq!(pinning_order(&[], &[]), [0u32; 0]);
    }

    #[test]
    fn numbers_above_1023_fit_and_infinite_sets_end() {
        let set: CpuSet = [3, 1024, 70_000].into_iter().filter_map(index).collect();
        assert_eq!(members(&set), [3, 1024, 70_000]);
        assert!(members(&CpuSet::full()).is_empty());
        assert!(index(u32::MAX).is_none());
    }

    #[test]
    fn this_host_has_an_allowed_cpu_on_a_node() {
        let topo = HostTopology::load().unwrap();
        let allowed = topo.allowed_cpus();
        assert!(!allowed.is_empty() && allowed.is_sorted());
        let nodes = topo.nodes();
        let mut on_nodes: Vec<u32> = nodes.iter().flat_map(|node| node.cpus.clone()).collect();
        on_nodes.sort_unstable();
        on_nodes.dedup();
        assert_eq!(on_nodes, allowed);
        assert!(topo.nodeset(nodes[0].nid).is_ok());
        assert!(matches!(topo.nodeset(4000), Err(HostError::NoSuchNode { nid: 4000, .. })));
    }

    /// hwloc reads its variables from the environment of the process, so this test
    /// starts itself again with one set.
    #[test]
    fn another_machine_is_refused() {
        const VARIABLE: &str = "HWLOC_SYNTHETIC";
        if std::env::var_os(VARIABLE).is_some() {
            let text = HostTopology::load().unwrap_err().to_string();
            return assert!(text.contains(VARIABLE), "{text}");
        }
        let name = "host::topology::tests::another_machine_is_refused";
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name])
            .env(VARIABLE, "pack:2 core:2 pu:2")
            .env_remove("HWLOC_THISSYSTEM")
            .output()
            .unwrap();
        assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
    }

    #[test]
    fn a_thread_is_pinned_where_asked() {
        let topo = HostTopology::load().unwrap();
        for cpu in topo.allowed_cpus() {
            let pinned = std::thread::scope(|s| {
                s.spawn(|| {
                    topo.pin_thread(cpu)?;
                    let set = topo.inner().cpu_binding(CpuBindingFlags::THREAD).unwrap();
                    assert_eq!(crate::host::preempt::running_on(), Some(cpu));
                    Ok::<_, HostError>(members(&set))
                })
                .join()
            });
            assert_eq!(pinned.unwrap().unwrap(), [cpu]);
        }
        let error = topo.pin_thread(u32::MAX).unwrap_err();
        assert!(matches!(error, HostError::NoSuchCpu { .. }), "{error}");
    }
}
