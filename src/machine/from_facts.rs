//! A machine from a captured boot.
//!
//! [`parse`] reads the JSON of `fixtures/boots`, [`machine`] takes the facts as they
//! are. Whoever reads a boot in another form, such as the log of one with
//! `memblock=debug`, fills a [`BootFacts`] and calls [`machine`] as well: the layout of
//! such a machine is exact.

use super::facts::{BootFacts, FactsError};
use super::{Cpu, Machine, MachineError, Node, Source, Sources, check};
use crate::pfn::{Nid, PhysRange};
use crate::warning::Origin;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Reads the machine of a captured boot called `name` from JSON.
pub(super) fn parse(name: &str, text: &str) -> Result<Machine, MachineError> {
    let facts = BootFacts::parse(text, Path::new(name)).map_err(|error| match error {
        FactsError::Read { source, .. } => MachineError::content(name, None, source.to_string()),
        FactsError::Json { line, problem, .. } => {
            let problem = format!("{problem}; expected a captured boot in JSON");
            MachineError::content(name, Some(line), problem)
        }
        FactsError::Field { field, problem, .. } => {
            MachineError::content(name, None, format!("field {field}: {problem}"))
        }
    })?;
    machine(name, Arc::new(facts))
}

/// The machine that booted; what memblock knew is kept in `boot`.
///
/// # Errors
/// When its memory, nodes or distances are none of a Linux machine.
pub fn machine(name: &str, facts: Arc<BootFacts>) -> Result<Machine, MachineError> {
    let read = |what: &str| Source::new(Origin::Read, format!("{what} of a captured boot"));
    let nodes = nodes_of(&facts);
    let cpus = facts.nodes.iter().flat_map(|n| n.cpus.iter().map(|&id| (id, n.nid)));
    // Fake nodes share their CPUs; the first one counts, as in the kernel.
    let mut owners: BTreeMap<u32, Nid> = BTreeMap::new();
    cpus.for_each(|(id, nid)| {
        owners.entry(id).or_insert(nid);
    });
    let cpus = owners.iter().map(|(&id, &nid)| Cpu { id, nid, core: id, package: nid.0 });
    let by_node: BTreeMap<Nid, Vec<u32>> =
        facts.nodes.iter().map(|n| (n.nid, n.cpus.clone())).collect();
    let machine = Machine {
        name: name.into(),
        title: String::new(),
        arch: facts.arch,
        page_bytes: facts.page_bytes,
        distances: distances_of(&facts, &nodes),
        nodes,
        cpus: cpus.collect(),
        caches: Vec::new(),
        cpu_model: None,
        kernel_release: Some(facts.kernel.clone()),
        is_this_host: false,
        boot: Some(facts),
        source: Sources {
            topology: read("nodes"),
            memory_bytes: read("memblock"),
            memory_ranges: read("memblock"),
            distances: read("nodes"),
        },
        warnings: Vec::new(),
    };
    let checked =
        check::finish(machine).map_err(|flaw| MachineError::content(name, None, flaw.to_string()));
    let mut machine = checked?;
    for node in &mut machine.nodes {
        node.cpus = by_node.get(&node.nid).cloned().unwrap_or_default();
    }
    machine.title = check::title(&machine);
    Ok(machine)
}

/// Nodes of the running guest and of memblock; without NUMA node 0.
fn nodes_of(facts: &BootFacts) -> Vec<Node> {
    let mut memory: BTreeMap<Nid, Vec<PhysRange>> =
        facts.nodes.iter().map(|n| (n.nid, Vec::new())).collect();
    for region in &facts.memblock_memory {
        let ranges = memory.entry(region.nid.unwrap_or_default()).or_default();
        ranges.push(PhysRange::new(region.start, region.end));
    }
    let node = |(nid, memory)| Node { nid, memory, cpus: Vec::new(), channels: None, mts: None };
    memory.into_iter().map(node).collect()
}

/// The distance table, where every node has a row.
fn distances_of(facts: &BootFacts, nodes: &[Node]) -> Option<Vec<Vec<u32>>> {
    let row = |nid| facts.nodes.iter().find(|n| n.nid == nid).map(|n| n.distance.clone());
    let rows: Option<Vec<_>> = nodes.iter().map(|n| row(n.nid)).collect();
    rows.filter(|rows| rows.iter().all(|row| row.len() == nodes.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::input::parse_text;

    fn boots() -> Vec<(String, String)> {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/boots");
        let files = std::fs::read_dir(dir).expect("fixtures").map(|e| e.expect("entry").path());
        let json = files.filter(|p| p.extension().is_some_and(|e| e == "json"));
        json.map(|p| (p.display().to_string(), std::fs::read_to_string(&p).expect("text")))
            .collect()
    }

    #[test]
    fn every_captured_boot_is_a_machine() {
        for (name, text) in boots() {
            let machine = parse_text(&name, text.as_bytes(), None).expect(&name);
            let facts = machine.boot.as_ref().expect("facts");
            let bytes: u64 = facts.memblock_memory.iter().map(|m| m.end - m.start).sum();
            assert_eq!(machine.memory_bytes(), bytes, "{name}");
            let threads = |n: &&Node| n.cpus.len();
            let most = facts.nodes.iter().map(|n| n.cpus.len()).max().unwrap_or(0);
            assert_eq!(machine.nodes.iter().map(|n| threads(&n)).max(), Some(most), "{name}");
        }
    }

    #[test]
    fn broken_facts_name_file_and_line() {
        let error = parse("x.json", "{\n \"id\": 7\n}").expect_err("no text").to_string();
        assert!(error.starts_with("x.json:2: "), "{error}");
    }
}
