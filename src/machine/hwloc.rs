//! hwloc topologies: of XML, of synthetic strings, and of this host.
//!
//! [`from_xml`] and [`from_synthetic`] make whole machines; [`topology_of_host`]
//! and `describe` serve [`super::host`], which knows the memory better. hwloc
//! knows sizes and no addresses, so that [`super::assume`] places the memory.

use super::assume::{arch_of, default_page_bytes, place};
use super::check::{finish, title};
use super::{Arch, Cache, Cpu, Machine, MachineError, Node, Source, Sources, synthetic, xml};
use crate::pfn::Nid;
use crate::warning::{Origin, Warning};
use hwlocality::Topology;
use hwlocality::object::attributes::ObjectAttributes;
use hwlocality::object::depth::Depth;
use hwlocality::object::distance::DistancesKind;
use hwlocality::object::types::{CacheType, ObjectType};
use hwlocality::object::{TopologyObject, TopologyObjectID};
use hwlocality::topology::builder::{BuildFlags, TopologyBuilder, TypeFilter};
use std::collections::{HashMap, HashSet};
use std::fmt::Display;

/// Reads hwloc XML of format 2 or 3. `name` is for errors and the machine's name.
pub fn from_xml(name: &str, text: &str) -> Result<Machine, MachineError> {
    let seen = xml::scan(text)
        .map_err(|e| MachineError::content(name, Some(e.line), e.problem.clone()))?;
    let version = seen.version().unwrap_or("1");
    let bad = |problem: String| MachineError::content(name, None, problem);
    let topology = builder(BuildFlags::INCLUDE_DISALLOWED)
        .and_then(|b| b.from_xml(seen.for_hwloc()).map_err(|e| e.to_string()))
        .and_then(|b| b.build().map_err(|e| e.to_string()))
        .map_err(|e| {
            bad(format!(
                "hwloc cannot read this topology (format {version}): {e}; \
            write it again with lstopo of hwloc 2, and unedited"
            ))
        })?;
    if counts(&topology) != seen.counts() {
        let (pus, nodes) = seen.counts();
        return Err(bad(dropped(counts(&topology), pus, nodes)));
    }
    let facts = Facts {
        name,
        from: format!("hwloc XML format {version}"),
        arch: seen.info("Architecture"),
        kernel_release: seen.info("OSRelease"),
    };
    let machine = describe(&topology, &facts);
    with_assumed_ranges(machine, &topology).map_err(bad)
}

/// Reads an hwloc synthetic string, which is also the machine's name.
pub fn from_synthetic(text: &str) -> Result<Machine, MachineError> {
    let bad = |problem: String| MachineError::Synthetic { text: text.into(), problem };
    let asked = synthetic::check(text).map_err(bad)?;
    let invalid = |_| format!("hwloc refuses it; {}", synthetic::EXAMPLE);
    let topology = builder(BuildFlags::empty())
        .and_then(|b| b.from_synthetic(text).map_err(|e| invalid(e.to_string())))
        .and_then(|b| b.build().map_err(|e| invalid(e.to_string())))
        .map_err(bad)?;
    let (pus, nodes) = counts(&topology);
    if pus as u64 != asked.pus || (asked.nodes != 0 && nodes as u64 != asked.nodes) {
        return Err(bad(dropped((pus, nodes), asked.pus, asked.nodes)));
    }
    let from = "hwloc synthetic string".to_string();
    let facts = Facts { name: text, from, arch: None, kernel_release: None };
    let machine = describe(&topology, &facts);
    with_assumed_ranges(machine, &topology).map_err(bad)
}

/// The topology of this host, with CPUs and nodes that this process may not use.
pub fn topology_of_host() -> Result<Topology, MachineError> {
    let failed = |problem: String| MachineError::Host { problem };
    let topology = builder(BuildFlags::INCLUDE_DISALLOWED)
        .and_then(|b| b.build().map_err(|e| e.to_string()))
        .map_err(|e| failed(format!("hwloc: {e}")))?;
    if !topology.is_this_system() {
        return Err(failed(
            "the environment tells hwloc to describe another machine; unset HWLOC_XMLFILE, \
             HWLOC_SYNTHETIC, HWLOC_FSROOT and HWLOC_THISSYSTEM"
                .into(),
        ));
    }
    Ok(topology)
}

/// How many CPUs and nodes hwloc has built. It drops objects that it cannot bring
/// into an order, with a complaint on the standard error stream only.
fn counts(topology: &Topology) -> (usize, usize) {
    let pus = topology.objects_with_type(ObjectType::PU).count();
    (pus, topology.objects_at_depth(Depth::NUMANode).count())
}

fn dropped((pus, nodes): (usize, usize), asked_pus: impl Display, asked: impl Display) -> String {
    format!("hwloc keeps {pus} of {asked_pus} CPUs and {nodes} of {asked} nodes; check the indexes")
}

fn builder(flags: BuildFlags) -> Result<TopologyBuilder, String> {
    let builder = TopologyBuilder::new().with_io_type_filter(TypeFilter::KeepNone);
    let builder = builder.map_err(|e| e.to_string())?;
    builder.with_flags(flags).map_err(|e| e.to_string())
}

/// What is known of a topology beside hwloc's objects.
pub(super) struct Facts<'t> {
    /// The machine's name.
    pub name: &'t str,
    /// What the topology was read from, for `source`.
    pub from: String,
    /// The architecture's name, if the input tells.
    pub arch: Option<&'t str>,
    /// The kernel's release, if the input tells.
    pub kernel_release: Option<&'t str>,
}

/// A machine without memory, which [`finish`] has not seen yet.
pub(super) fn describe(topology: &Topology, facts: &Facts<'_>) -> Machine {
    let mut warnings = Vec::new();
    let arch = arch_or_assumed(facts.arch, &mut warnings);
    let objects = nodes_by_id(topology);
    let distances = distances(topology, &objects);
    let distance_source = match &distances {
        Some(_) => Source::new(Origin::Read, facts.from.clone()),
        None => Source::new(Origin::Assumed, "10 on a node, 20 between nodes"),
    };
    let read = || Source::new(Origin::Read, facts.from.clone());
    Machine {
        name: facts.name.into(),
        title: String::new(),
        arch,
        page_bytes: page_bytes(&objects).unwrap_or(default_page_bytes(arch)),
        nodes: objects.iter().map(|&(nid, _)| empty_node(nid)).collect(),
        cpus: cpus(topology, &objects),
        distances,
        caches: caches(topology),
        cpu_model: cpu_model(topology),
        kernel_release: facts.kernel_release.map(str::to_string),
        is_this_host: false,
        boot: None,
        source: Sources {
            topology: read(),
            memory_bytes: read(),
            memory_ranges: read(),
            distances: distance_source,
        },
        warnings,
    }
}

/// Memory of each node in bytes as hwloc knows it, by node id.
pub(super) fn node_bytes(topology: &Topology) -> HashMap<Nid, u64> {
    nodes_by_id(topology).into_iter().map(|(nid, object)| (nid, local_memory(object))).collect()
}

fn with_assumed_ranges(mut machine: Machine, topology: &Topology) -> Result<Machine, String> {
    let sizes = node_bytes(topology);
    machine.nodes.sort_by_key(|n| n.nid);
    place(&mut machine, |n| sizes.get(&n.nid).copied().unwrap_or(0)).map_err(|e| e.to_string())?;
    let mut machine = finish(machine).map_err(|e| e.to_string())?;
    machine.title = title(&machine);
    Ok(machine)
}

/// An empty node.
pub(super) fn empty_node(nid: Nid) -> Node {
    Node { nid, memory: Vec::new(), cpus: Vec::new(), channels: None, mts: None }
}

/// The architecture of that name, or x86_64 with a warning.
pub(super) fn arch_or_assumed(name: Option<&str>, warnings: &mut Vec<Warning>) -> Arch {
    name.and_then(arch_of).unwrap_or_else(|| {
        let seen = match name {
            Some(name) => format!("the architecture {name:?} is not known here"),
            None => "the input names no architecture".into(),
        };
        warnings.push(Warning::new(
            "assumed-architecture",
            format!("{seen}, x86_64 is assumed"),
            "use a machine file with `arch` where another one is meant",
        ));
        Arch::X86_64
    })
}

/// hwloc's nodes in ascending order of Linux's ids.
fn nodes_by_id(topology: &Topology) -> Vec<(Nid, &TopologyObject)> {
    let id = |object: &TopologyObject| {
        let index = object.os_index().unwrap_or_else(|| object.logical_index());
        Nid(u32::try_from(index).unwrap_or(u32::MAX))
    };
    let objects = topology.objects_at_depth(Depth::NUMANode);
    let mut nodes: Vec<_> = objects.map(|object| (id(object), object)).collect();
    nodes.sort_by_key(|&(nid, _)| nid);
    nodes
}

fn local_memory(object: &TopologyObject) -> u64 {
    match object.attributes() {
        Some(ObjectAttributes::NUMANode(node)) => node.local_memory().map_or(0, |b| b.get()),
        _ => 0,
    }
}

/// The smallest page size that hwloc lists; it lists huge pages as well.
fn page_bytes(nodes: &[(Nid, &TopologyObject)]) -> Option<u64> {
    let sizes = nodes.iter().flat_map(|(_, object)| match object.attributes() {
        Some(ObjectAttributes::NUMANode(node)) => {
            node.page_types().iter().map(|p| p.size().get()).collect()
        }
        _ => Vec::new(),
    });
    sizes.min()
}

/// All logical CPUs. One that lies in several nodes belongs to the lowest, as
/// Linux gives memory such as HBM a node of its own without CPUs.
fn cpus(topology: &Topology, nodes: &[(Nid, &TopologyObject)]) -> Vec<Cpu> {
    let mut node_of: HashMap<usize, Nid> = HashMap::new();
    for &(nid, object) in nodes {
        let Some(set) = object.cpuset() else { continue };
        for id in set.iter_set() {
            node_of.entry(usize::from(id)).or_insert(nid);
        }
    }
    let cores = topology.objects_with_type(ObjectType::Core).count();
    let describe = |pu: &TopologyObject| {
        let id = pu.os_index()?;
        let above = |kind| pu.ancestors().find(|a| a.object_type() == kind);
        let own = || cores.saturating_add(pu.logical_index());
        let core = above(ObjectType::Core).map_or_else(own, TopologyObject::logical_index);
        let package = above(ObjectType::Package).map_or(0, TopologyObject::logical_index);
        Some(Cpu {
            id: u32::try_from(id).ok()?,
            nid: *node_of.get(&id)?,
            core: u32::try_from(core).ok()?,
            package: u32::try_from(package).ok()?,
        })
    };
    topology.objects_with_type(ObjectType::PU).filter_map(describe).collect()
}

/// Data caches of the first CPU, innermost first.
fn caches(topology: &Topology) -> Vec<Cache> {
    let Some(first) = topology.objects_with_type(ObjectType::PU).next() else { return vec![] };
    let describe = |object: &TopologyObject| {
        let Some(ObjectAttributes::Cache(cache)) = object.attributes() else { return None };
        if cache.cache_type() == CacheType::Instruction {
            return None;
        }
        let sharing = object.cpuset().and_then(|set| set.weight()).unwrap_or(1);
        Some(Cache {
            level: u32::try_from(cache.depth()).ok()?,
            bytes: cache.size()?.get(),
            line_bytes: cache.line_size().and_then(|b| u32::try_from(b.get()).ok()),
            shared_by_cpus: u32::try_from(sharing).ok()?,
        })
    };
    first.ancestors().filter_map(describe).collect()
}

fn cpu_model(topology: &Topology) -> Option<String> {
    let root = std::iter::once(topology.root_object());
    let mut objects = topology.objects_with_type(ObjectType::Package).chain(root);
    let model = objects.find_map(|object| object.info("CPUModel"))?;
    // Processors pad their names with blanks.
    let words: Vec<_> = model.to_str().ok()?.split_whitespace().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// The latency matrix in the order of `nodes`. hwloc's rows have an order of their
/// own, so that each value is placed by the objects it stands for.
fn distances(topology: &Topology, nodes: &[(Nid, &TopologyObject)]) -> Option<Vec<Vec<u32>>> {
    let rank: HashMap<TopologyObjectID, usize> = nodes
        .iter()
        .enumerate()
        .map(|(rank, (_, object))| (object.global_persistent_index(), rank))
        .collect();
    let kind = Some(DistancesKind::MEANS_LATENCY);
    let matrices = topology.distances_with_type(kind, ObjectType::NUMANode).ok()?;
    matrices.iter().find_map(|matrix| {
        let mut table = vec![vec![0u32; nodes.len()]; nodes.len()];
        let mut seen = HashSet::new();
        for ((from, to), value) in matrix.object_distances() {
            let at = |object: Option<&TopologyObject>| {
                rank.get(&object?.global_persistent_index()).copied()
            };
            let (from, to) = (at(from)?, at(to)?);
            *table.get_mut(from)?.get_mut(to)? = u32::try_from(value).ok()?;
            seen.insert((from, to));
        }
        let plausible = table.iter().flatten().all(|d| (1..=255).contains(d));
        (plausible && seen.len() == nodes.len() * nodes.len()).then_some(table)
    })
}
