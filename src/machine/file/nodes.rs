//! From the keys of machine TOML to nodes, CPUs and distances.
//!
//! [`collect`] reads `[nodes]` and `[[node]]` and reports with line numbers what
//! the general check could report only without. [`super`] does the rest.

use super::schema::{MachineToml, NodeToml, Threads, UniformToml};
use super::{Fault, Outcome, at, ranges, size};
use crate::machine::check::MAX_NID;
use crate::machine::cpulist::{self, MAX_CPU_ID};
use crate::machine::{Arch, Cpu, Node};
use crate::pfn::{Nid, PhysRange};
use std::collections::{BTreeMap, HashMap};
use toml::Spanned;

/// What the file says about nodes.
#[derive(Debug, Default)]
pub(super) struct Collected {
    pub(super) nodes: Vec<Node>,
    pub(super) cpus: Vec<Cpu>,
    /// Bytes by node where the file gives sizes; `None` where it gives ranges.
    pub(super) sizes: Option<BTreeMap<Nid, u64>>,
}

struct Collector<'f> {
    file: &'f MachineToml,
    threads: Threads,
    out: Collected,
    cores: u32,
    node_of_cpu: HashMap<u32, Nid>,
    with_ranges: bool,
    /// Where the ranges of a node stand in the text.
    ranges_of: HashMap<Nid, usize>,
    sizes: BTreeMap<Nid, u64>,
}

/// Reads all nodes of the file.
pub(super) fn collect(file: &MachineToml, arch: Arch) -> Outcome<Collected> {
    let threads = file.threads.unwrap_or(match arch {
        Arch::X86_64 | Arch::Arm64 | Arch::Riscv64 => Threads::Spread,
        Arch::Ppc64 | Arch::S390x | Arch::Sparc64 => Threads::Adjacent,
    });
    let mut collector = Collector {
        file,
        threads,
        out: Collected::default(),
        cores: 0,
        node_of_cpu: HashMap::new(),
        with_ranges: false,
        ranges_of: HashMap::new(),
        sizes: BTreeMap::new(),
    };
    if let Some(uniform) = &file.nodes {
        collector.uniform(uniform)?;
    }
    for node in &file.node {
        collector.node(node.get_ref())?;
    }
    if collector.out.nodes.is_empty() {
        let problem = "there is no node; add [[node]] tables or a [nodes] table".into();
        return Err(Fault { offset: None, problem });
    }
    collector.disjoint()?;
    collector.packages()?;
    let sizes = (!collector.with_ranges).then_some(collector.sizes);
    Ok(Collected { sizes, ..collector.out })
}

impl Collector<'_> {
    fn uniform(&mut self, table: &Spanned<UniformToml>) -> Outcome<()> {
        let keys = table.get_ref();
        let (count, cores) =
            (*keys.count.get_ref(), keys.cores.as_ref().map_or(0, |c| *c.get_ref()));
        if !(1..=MAX_NID + 1).contains(&count) {
            return Err(at(&keys.count, format!("count = {count} is not in 1..={}", MAX_NID + 1)));
        }
        let smt = self.smt(keys.smt.as_ref())?;
        let cpus = u64::from(count) * u64::from(cores) * u64::from(smt);
        if cpus > u64::from(MAX_CPU_ID) + 1 {
            let problem =
                format!("count × cores × smt = {cpus} CPUs, more than {}", MAX_CPU_ID + 1);
            return Err(at(table, problem));
        }
        let per_package = keys.nodes_per_package.as_ref();
        let divisor = per_package.map_or(1, |n| *n.get_ref());
        if let (0, Some(key)) = (divisor, per_package) {
            return Err(at(key, "nodes_per_package = 0; write at least 1"));
        }
        let bytes = size("memory of [nodes]", &keys.memory)?;
        for id in 0..count {
            self.push(Nid(id), vec![], keys.channels, keys.mts);
            self.sizes.insert(Nid(id), bytes);
            for core in id * cores..(id + 1) * cores {
                for thread in 0..smt {
                    let id_of_cpu = match self.threads {
                        Threads::Spread => thread * count * cores + core,
                        Threads::Adjacent => core * smt + thread,
                    };
                    self.node_of_cpu.insert(id_of_cpu, Nid(id));
                    let package = id / divisor;
                    self.out.cpus.push(Cpu { id: id_of_cpu, nid: Nid(id), core, package });
                }
            }
        }
        self.cores = count * cores;
        Ok(())
    }

    fn push(&mut self, nid: Nid, memory: Vec<PhysRange>, channels: Option<u32>, mts: Option<u32>) {
        let (channels, mts) = (channels.or(self.file.channels), mts.or(self.file.mts));
        self.out.nodes.push(Node { nid, memory, cpus: Vec::new(), channels, mts });
    }

    fn smt(&self, own: Option<&Spanned<u32>>) -> Outcome<u32> {
        let Some(key) = own.or(self.file.smt.as_ref()) else { return Ok(1) };
        let smt = *key.get_ref();
        if (1..=64).contains(&smt) {
            return Ok(smt);
        }
        Err(at(key, format!("smt = {smt} is not in 1..=64")))
    }

    fn node(&mut self, keys: &NodeToml) -> Outcome<()> {
        let nid = Nid(*keys.id.get_ref());
        if nid.0 > MAX_NID {
            let problem = format!("id = {nid} is above {MAX_NID}, the highest node id of Linux");
            return Err(at(&keys.id, problem));
        }
        if self.out.nodes.iter().any(|n| n.nid == nid) {
            return Err(at(&keys.id, format!("id = {nid}: node {nid} is described twice")));
        }
        let memory = self.memory(nid, keys)?;
        self.push(nid, memory, keys.channels, keys.mts);
        self.cpus(nid, keys)
    }

    fn memory(&mut self, nid: Nid, keys: &NodeToml) -> Outcome<Vec<PhysRange>> {
        let mixed = "gives ranges where other nodes give `memory`; give one of the two everywhere";
        match (&keys.memory, &keys.ranges) {
            (Some(_), Some(lists)) => {
                Err(at(lists, format!("node {nid} has `memory` and `ranges`; give one of them")))
            }
            (None, None) => Ok(Vec::new()),
            (Some(text), None) if self.with_ranges => Err(at(
                text,
                format!(
                    "node {nid} {}",
                    "gives `memory` where other nodes give ranges; give one of the two everywhere"
                ),
            )),
            (Some(text), None) => {
                let bytes = size(&format!("memory of node {nid}"), text)?;
                self.sizes.insert(nid, bytes);
                Ok(Vec::new())
            }
            (None, Some(lists)) if !self.sizes.is_empty() => {
                Err(at(lists, format!("node {nid} {mixed}")))
            }
            (None, Some(lists)) => {
                self.with_ranges = true;
                self.ranges_of.insert(nid, lists.span().start);
                ranges(nid, lists)
            }
        }
    }

    /// Whether the ranges of all nodes are disjoint; those of one node are.
    fn disjoint(&self) -> Outcome<()> {
        let mut all: Vec<(PhysRange, Nid)> = Vec::new();
        for node in &self.out.nodes {
            all.extend(node.memory.iter().map(|&range| (range, node.nid)));
        }
        all.sort();
        let mut pairs = all.iter().zip(all.iter().skip(1));
        let Some((low, high)) = pairs.find(|(low, high)| low.0.end > high.0.start) else {
            return Ok(());
        };
        let problem =
            format!("ranges: {} of node {} overlaps {} of node {}", high.0, high.1, low.0, low.1);
        let key = self.ranges_of.get(&low.1.max(high.1));
        Err(Fault { offset: key.copied(), problem })
    }

    fn cpus(&mut self, nid: Nid, keys: &NodeToml) -> Outcome<()> {
        match (&keys.cpus, &keys.cores) {
            (Some(_), Some(cores)) => {
                Err(at(cores, format!("node {nid} has `cpus` and `cores`; give one of them")))
            }
            (None, None) => Ok(()),
            (None, Some(cores)) => {
                for list in cores.get_ref() {
                    let ids = cpu_list("cores", list)?;
                    self.add_cpus(nid, &ids, list, |_| 0, 1)?;
                }
                Ok(())
            }
            (Some(list), None) => {
                let ids = cpu_list("cpus", list)?;
                let smt = self.smt(keys.smt.as_ref())? as usize;
                if !ids.len().is_multiple_of(smt) {
                    let problem = format!(
                        "cpus of node {nid}: {} CPUs do not divide into cores with {smt} threads",
                        ids.len()
                    );
                    return Err(at(list, problem));
                }
                let cores = ids.len() / smt;
                let core_of = |rank: usize| match self.threads {
                    Threads::Spread => rank.checked_rem(cores).unwrap_or(0),
                    Threads::Adjacent => rank / smt,
                };
                let ranks: Vec<usize> = (0..ids.len()).map(core_of).collect();
                self.add_cpus(nid, &ids, list, |rank| ranks.get(rank).copied().unwrap_or(0), cores)
            }
        }
    }

    /// Adds CPUs of one node; `core_of` maps a rank in `ids` to one of `cores` cores.
    fn add_cpus<V>(
        &mut self,
        nid: Nid,
        ids: &[u32],
        key: &Spanned<V>,
        core_of: impl Fn(usize) -> usize,
        cores: usize,
    ) -> Outcome<()> {
        for (rank, &id) in ids.iter().enumerate() {
            if let Some(other) = self.node_of_cpu.insert(id, nid) {
                return Err(at(
                    key,
                    format!("CPU {id} is in node {other} and again in node {nid}"),
                ));
            }
            let core = self.cores.saturating_add(u32::try_from(core_of(rank)).unwrap_or(u32::MAX));
            self.out.cpus.push(Cpu { id, nid, core, package: nid.0 });
        }
        self.cores = self.cores.saturating_add(u32::try_from(cores).unwrap_or(u32::MAX));
        Ok(())
    }

    /// Applies `packages`, which has to name every CPU once.
    fn packages(&mut self) -> Outcome<()> {
        let Some(lists) = &self.file.packages else { return Ok(()) };
        let mut package_of: HashMap<u32, u32> = HashMap::new();
        for (list, package) in lists.get_ref().iter().zip(0u32..) {
            for id in cpu_list("packages", list)? {
                if package_of.insert(id, package).is_some() {
                    return Err(at(list, format!("packages: CPU {id} is in two packages")));
                }
                if !self.node_of_cpu.contains_key(&id) {
                    return Err(at(list, format!("packages: CPU {id} is in no node")));
                }
            }
        }
        for cpu in &mut self.out.cpus {
            let package = package_of.get(&cpu.id);
            let missing = || at(lists, format!("packages: CPU {} is in none of them", cpu.id));
            cpu.package = *package.ok_or_else(missing)?;
        }
        Ok(())
    }
}

fn cpu_list(key: &str, text: &Spanned<String>) -> Outcome<Vec<u32>> {
    let parsed = cpulist::parse(text.get_ref());
    parsed.map_err(|e| at(text, format!("{key} = {:?}: {e}", text.get_ref())))
}

/// The distance table: written out, or from `local` and `remote`.
pub(super) fn distances(file: &MachineToml, nodes: usize) -> Outcome<Option<Vec<Vec<u32>>>> {
    let Some(value) = &file.distances else { return Ok(None) };
    let wrong = || {
        at(
            value,
            format!(
                "distances have to be {nodes} rows of {nodes} numbers in 1..=255, \
            or {{ local = 10, remote = 21 }}"
            ),
        )
    };
    let number = |v: &toml::Value| v.as_integer().and_then(|n| u32::try_from(n).ok());
    let table: Option<Vec<Vec<u32>>> = match value.get_ref() {
        toml::Value::Table(table) if table.len() == 2 => {
            let pick = |key| table.get(key).and_then(number);
            pick("local").zip(pick("remote")).map(|(local, remote)| {
                let row = |i| (0..nodes).map(|j| if i == j { local } else { remote }).collect();
                (0..nodes).map(row).collect()
            })
        }
        toml::Value::Array(rows) => rows
            .iter()
            .map(|row| row.as_array().and_then(|row| row.iter().map(number).collect()))
            .collect(),
        _ => None,
    };
    let fits = |t: &Vec<Vec<u32>>| {
        let square = t.len() == nodes && t.iter().all(|row| row.len() == nodes);
        square && t.iter().flatten().all(|d| (1..=255).contains(d))
    };
    table.filter(fits).map(Some).ok_or_else(wrong)
}
