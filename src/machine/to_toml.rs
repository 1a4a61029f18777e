//! Writing a machine as machine TOML, which [`super::file`] reads back.
//!
//! [`to_toml`] keeps everything but the machine's name and where its facts came
//! from; ranges that were only assumed are written as sizes and assumed again.

use super::{Cpu, Machine, Node, cpulist};
use crate::pfn::Nid;
use crate::units::{GIB, MIB};
use crate::warning::Origin;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The machine as a file that [`super::file::parse`] reads.
pub fn to_toml(machine: &Machine) -> String {
    let mut out = String::new();
    header(machine, &mut out);
    let with_sizes = machine.source.memory_ranges.origin == Origin::Assumed;
    let cpus = CpusOf::new(machine);
    for node in &machine.nodes {
        put(&mut out, "\n[[node]]");
        put(&mut out, &format!("id = {}", node.nid));
        memory(node, with_sizes, &mut out);
        cpus.write(node, &mut out);
        number("channels", node.channels, &mut out);
        number("mts", node.mts, &mut out);
    }
    for cache in &machine.caches {
        put(&mut out, "\n[[cache]]");
        put(&mut out, &format!("level = {}", cache.level));
        put(&mut out, &format!("size = {}", quoted(&size(cache.bytes))));
        number("line", cache.line_bytes, &mut out);
        put(&mut out, &format!("shared_by = {}", cache.shared_by_cpus));
    }
    out
}

fn put(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}

fn header(machine: &Machine, out: &mut String) {
    put(out, &format!("title = {}", quoted(&machine.title)));
    put(out, &format!("source = {}", quoted(&machine.source.topology.from)));
    put(out, &format!("arch = {}", quoted(&machine.arch.to_string())));
    put(out, &format!("page_size = {}", quoted(&size(machine.page_bytes))));
    let texts = [("cpu_model", &machine.cpu_model), ("kernel", &machine.kernel_release)];
    for (key, text) in texts {
        if let Some(text) = text {
            put(out, &format!("{key} = {}", quoted(text)));
        }
    }
    if let Some(packages) = packages(machine) {
        put(out, &format!("packages = {packages}"));
    }
    if let Some(table) = &machine.distances {
        put(out, "distances = [");
        for row in table {
            let row: Vec<_> = row.iter().map(u32::to_string).collect();
            put(out, &format!("  [{}],", row.join(", ")));
        }
        put(out, "]");
    }
}

fn memory(node: &Node, with_sizes: bool, out: &mut String) {
    if node.memory.is_empty() {
        return;
    }
    if with_sizes {
        return put(out, &format!("memory = {}", quoted(&size(node.memory_bytes()))));
    }
    let pair = |start: u64, end: u64| format!("[{}, {}]", address(start), address(end));
    let ranges: Vec<_> = node.memory.iter().map(|r| pair(r.start, r.end)).collect();
    match ranges.as_slice() {
        [one] => put(out, &format!("ranges = [{one}]")),
        _ => put(out, &format!("ranges = [\n  {},\n]", ranges.join(",\n  "))),
    }
}

fn number(key: &str, value: Option<u32>, out: &mut String) {
    if let Some(value) = value {
        put(out, &format!("{key} = {value}"));
    }
}

/// Bytes with the largest unit that divides them, so that nothing is rounded.
fn size(bytes: u64) -> String {
    let units = [(GIB << 10, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (1 << 10, "KiB")];
    let fitting = units.iter().find(|(unit, _)| bytes > 0 && bytes.is_multiple_of(*unit));
    fitting.map_or(format!("{bytes}B"), |(unit, name)| format!("{}{name}", bytes / unit))
}

fn address(byte: u64) -> String {
    match byte {
        0 => quoted("0"),
        _ if byte.is_multiple_of(MIB) => quoted(&size(byte)),
        _ => quoted(&format!("{byte:#x}")),
    }
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Lists of CPUs by package, or `None` where each node is a package of its own.
fn packages(machine: &Machine) -> Option<String> {
    let mut lists: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let mut node_of: BTreeMap<u32, Nid> = BTreeMap::new();
    let mut package_of: BTreeMap<Nid, u32> = BTreeMap::new();
    let mut is_default = true;
    for cpu in &machine.cpus {
        lists.entry(cpu.package).or_default().push(cpu.id);
        is_default &= *node_of.entry(cpu.package).or_insert(cpu.nid) == cpu.nid;
        is_default &= *package_of.entry(cpu.nid).or_insert(cpu.package) == cpu.package;
    }
    if is_default {
        return None;
    }
    let lists: Vec<_> = lists.values().map(|ids| quoted(&cpulist::format(ids))).collect();
    Some(format!("[{}]", lists.join(", ")))
}

/// CPUs by node, each as its core and its id.
struct CpusOf {
    by_node: BTreeMap<Nid, Vec<Cpu>>,
    is_spread_by_default: bool,
}

impl CpusOf {
    fn new(machine: &Machine) -> Self {
        let mut by_node: BTreeMap<Nid, Vec<Cpu>> = BTreeMap::new();
        for cpu in &machine.cpus {
            by_node.entry(cpu.nid).or_default().push(*cpu);
        }
        use super::Arch::{Arm64, Riscv64, X86_64};
        let is_spread_by_default = matches!(machine.arch, X86_64 | Arm64 | Riscv64);
        Self { by_node, is_spread_by_default }
    }

    /// `cpus` and `smt` where siblings follow the architecture's rule, or `cores`.
    fn write(&self, node: &Node, out: &mut String) {
        let Some(cpus) = self.by_node.get(&node.nid) else { return };
        let mut cores: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for cpu in cpus {
            cores.entry(cpu.core).or_default().push(cpu.id);
        }
        let smt = cpus.len() / cores.len().max(1);
        if self.follows_rule(cpus, cores.len(), smt) {
            let ids: Vec<u32> = cpus.iter().map(|c| c.id).collect();
            put(out, &format!("cpus = {}", quoted(&cpulist::format(&ids))));
            if smt > 1 {
                put(out, &format!("smt = {smt}"));
            }
            return;
        }
        let cores: Vec<_> = cores.values().map(|ids| quoted(&cpulist::format(ids))).collect();
        put(out, &format!("cores = [{}]", cores.join(", ")));
    }

    fn follows_rule(&self, cpus: &[Cpu], cores: usize, smt: usize) -> bool {
        if cores * smt != cpus.len() || smt == 0 {
            return false;
        }
        let rank_of_core = |rank: usize| {
            let rank = if self.is_spread_by_default { rank % cores } else { rank / smt * smt };
            cpus.get(rank).map(|c| c.core)
        };
        cpus.iter().enumerate().all(|(rank, cpu)| rank_of_core(rank) == Some(cpu.core))
    }
}

#[cfg(all(test, feature = "hwloc"))]
mod tests {
    use super::super::hwloc::{from_synthetic, from_xml};
    use super::super::{Source, file, library};
    use super::*;
    use proptest::prelude::*;

    /// What a written file keeps.
    fn kept(mut machine: Machine) -> Machine {
        for source in [
            &mut machine.source.topology,
            &mut machine.source.memory_bytes,
            &mut machine.source.memory_ranges,
            &mut machine.source.distances,
        ] {
            *source = Source::new(Origin::Given, "");
        }
        machine.is_this_host = false;
        machine.warnings.retain(|w| w.code == "assumed-ranges");
        machine
    }

    fn round_trip(machine: &Machine) {
        let text = to_toml(machine);
        let read = file::parse(&machine.name, &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(kept(read), kept(machine.clone()), "{text}");
    }

    #[test]
    fn library_machines_and_this_host_read_back() {
        for (name, _) in library::names() {
            round_trip(&library::load(name).unwrap());
        }
        round_trip(&super::super::host::load().unwrap());
    }

    #[test]
    fn hwloc_machines_read_back() {
        for text in [
            "pack:2 [numa(memory=3GiB)] l3:1(size=32MiB) core:2 pu:2",
            "numa:3(memory=1GiB indexes=5,1,9) core:1 pu:4",
            "[numa(memory=1GiB)][numa(memory=5GiB)] pack:2 core:2 pu:1",
        ] {
            round_trip(&from_synthetic(text).unwrap());
        }
        let Ok(text) = std::fs::read_to_string("../shared/corpus/B09_hwloc_ppc64_2node.xml") else {
            return;
        };
        round_trip(&from_xml("b09", &text).unwrap());
    }

    proptest! {
        #[test]
        fn any_string_is_quoted_so_that_toml_reads_it(text in ".*|[\\x00-\\x7f]*") {
            let line = format!("a = {}", quoted(&text));
            let table: toml::Table = toml::from_str(&line).unwrap();
            prop_assert_eq!(table["a"].as_str(), Some(text.as_str()));
        }

        #[test]
        fn sizes_keep_every_byte(bytes in 0u64..1 << 50) {
            let read: crate::units::Bytes = size(bytes).parse().unwrap();
            prop_assert_eq!(read.0, bytes);
        }
    }
}
