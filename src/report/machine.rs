//! A machine as a table and as JSON.
//!
//! [`text`] is what `pageinit machine` prints, [`json()`] the body of its `--json`,
//! and [`library_table`] the list of built-in machines. Takes
//! [`crate::machine`]'s types as plain data.

use crate::machine::limits::Limits;
use crate::machine::{Cache, Machine, Node, Source, cpulist, library};
use crate::pfn::PhysRange;
use crate::units::Bytes;
use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Value, json};

/// Above this many nodes the distance grid is summarised.
const MAX_GRID_NODES: usize = 32;

/// The machine as text for people, with a newline at the end.
pub fn text(machine: &Machine, limits: Option<&Limits>) -> String {
    let mut parts = vec![machine.title.clone(), facts(machine).to_string()];
    parts.push(node_table(machine).to_string());
    parts.push(distance_text(machine));
    parts.push(sources(machine).to_string());
    parts.extend(limits.map(|limits| limit_table(limits).to_string()));
    let lines = parts.iter().flat_map(|part| part.lines().chain([""]));
    let mut out: String = lines.map(|line| format!("{}\n", line.trim_end())).collect();
    out.truncate(out.trim_end().len());
    out + "\n"
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    if header.is_empty() {
        table.load_style(presets::NOTHING);
    } else {
        table.load_style(presets::UTF8_BORDERS_ONLY).set_header(header.to_vec());
    }
    table
}

fn align_right(table: &mut Table, columns: &[usize]) {
    for &index in columns {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

fn or_unknown(value: Option<impl ToString>) -> String {
    value.map_or("unknown".into(), |v| v.to_string())
}

fn facts(machine: &Machine) -> Table {
    let mut out = table(&[]);
    let cores = machine.cpus.iter().map(|c| c.core).max().map(|c| c + 1);
    let cpus = match cores {
        Some(cores) => {
            let threads = if machine.smt() == 1 { "thread" } else { "threads" };
            let (cpus, smt) = (machine.cpus.len(), machine.smt());
            format!("{cpus} ({cores} cores, {smt} {threads} each)")
        }
        None => "unknown".into(),
    };
    let caches: Vec<String> = machine.caches.iter().map(cache_text).collect();
    let caches = (!caches.is_empty()).then(|| caches.join(", "));
    for (key, value) in [
        ("machine", machine.name.clone()),
        ("architecture", machine.arch.to_string()),
        ("processor", or_unknown(machine.cpu_model.as_ref())),
        ("CPUs", cpus),
        ("caches of CPU 0", or_unknown(caches)),
        ("memory", Bytes(machine.memory_bytes()).to_string()),
        ("page size", Bytes(machine.page_bytes).to_string()),
        ("kernel", or_unknown(machine.kernel_release.as_ref())),
    ] {
        out.add_row([key.to_string(), value]);
    }
    out
}

fn cache_text(cache: &Cache) -> String {
    let shared = match cache.shared_by_cpus {
        1 => String::new(),
        cpus => format!(" of {cpus} CPUs"),
    };
    format!("L{} {}{shared}", cache.level, Bytes(cache.bytes))
}

fn node_table(machine: &Machine) -> Table {
    let mut out = table(&["node", "memory", "physical ranges", "CPUs", "channels"]);
    for node in &machine.nodes {
        let cpus = if node.cpus.is_empty() { "none".into() } else { cpulist::format(&node.cpus) };
        let memory = Bytes(node.memory_bytes()).to_string();
        let nid = node.nid.to_string();
        out.add_row([nid, memory, ranges_text(&node.memory), cpus, channels(node)]);
    }
    align_right(&mut out, &[0, 1]);
    out
}

/// One range a line, at most eight of them.
fn ranges_text(ranges: &[PhysRange]) -> String {
    const MOST: usize = 8;
    let mut lines: Vec<String> = ranges.iter().take(MOST).map(PhysRange::to_string).collect();
    if ranges.len() > MOST {
        lines.push(format!("and {} more", ranges.len() - MOST));
    }
    if lines.is_empty() { "none".into() } else { lines.join("\n") }
}

fn channels(node: &Node) -> String {
    match (node.channels, node.mts) {
        (Some(channels), Some(mts)) => format!("{channels} × {mts} MT/s"),
        (Some(channels), None) => channels.to_string(),
        _ => "unknown".into(),
    }
}

fn distance_text(machine: &Machine) -> String {
    let Some(rows) = &machine.distances else {
        return "distances: unknown; 10 on a node and 20 between nodes are assumed".into();
    };
    if machine.nodes.len() > MAX_GRID_NODES {
        let all = || rows.iter().flatten();
        let (low, high) = (all().min().copied(), all().max().copied());
        let (low, high) = (or_unknown(low), or_unknown(high));
        return format!("distances: {low} to {high}; --json has the whole table");
    }
    let ids = machine.nodes.iter().map(|n| n.nid.to_string());
    let header: Vec<String> = std::iter::once("distances".to_string()).chain(ids).collect();
    let mut out = table(&header.iter().map(String::as_str).collect::<Vec<_>>());
    for (node, row) in machine.nodes.iter().zip(rows) {
        let cells = std::iter::once(node.nid.to_string());
        out.add_row(cells.chain(row.iter().map(u32::to_string)));
    }
    align_right(&mut out, &(0..=machine.nodes.len()).collect::<Vec<_>>());
    out.to_string()
}

fn sources(machine: &Machine) -> Table {
    let mut out = table(&["fact", "is", "from"]);
    for (fact, source) in each_source(machine) {
        let fact = fact.replace('_', " ");
        out.add_row([fact, source.origin.to_string(), source.from.clone()]);
    }
    out
}

fn each_source(machine: &Machine) -> [(&'static str, &Source); 4] {
    let source = &machine.source;
    [
        ("topology", &source.topology),
        ("memory_bytes", &source.memory_bytes),
        ("memory_ranges", &source.memory_ranges),
        ("distances", &source.distances),
    ]
}

fn limit_table(limits: &Limits) -> Table {
    let mut out = table(&["limit of this process", ""]);
    let list = |ids: &[u32]| (!ids.is_empty()).then(|| cpulist::format(ids));
    let no_limit = || "none or unknown".to_string();
    let cgroup = limits.cgroup_limit_bytes.map_or_else(no_limit, |b| Bytes(b).to_string());
    for (key, value) in [
        ("CPUs allowed", or_unknown(list(&limits.allowed_cpus))),
        ("CPUs online", or_unknown(list(&limits.online_cpus))),
        ("memory available", or_unknown(limits.mem_available_bytes.map(Bytes))),
        ("control group's memory limit", cgroup),
    ] {
        out.add_row([key.to_string(), value]);
    }
    out
}

/// The machine as JSON: integers in bytes, half-open ranges, unknown is null.
pub fn json(machine: &Machine, limits: Option<&Limits>) -> Value {
    let nodes: Vec<Value> = machine.nodes.iter().map(node_json).collect();
    let memory: Vec<Value> = machine
        .nodes
        .iter()
        .flat_map(|n| n.memory.iter().map(move |r| (r, n.nid)))
        .map(|(r, nid)| json!({ "start": r.start, "end": r.end, "nid": nid }))
        .collect();
    let sources = each_source(machine).map(|(fact, source)| (fact.to_string(), json!(source)));
    json!({
        "name": machine.name,
        "title": machine.title,
        "arch": machine.arch,
        "is_this_host": machine.is_this_host,
        "nodes": nodes,
        "cpus": known(&machine.cpus),
        "memory": memory,
        "memory_bytes": machine.memory_bytes(),
        "distances": machine.distances,
        "caches": known(&machine.caches),
        "cpu_model": machine.cpu_model,
        "smt": (!machine.cpus.is_empty()).then(|| machine.smt()),
        "kernel": machine.kernel_release,
        "page_bytes": machine.page_bytes,
        "source": Value::Object(sources.into_iter().collect()),
        "limits": limits.map(limits_json),
    })
}

/// A list, or null where an empty one means that nothing is known.
fn known<T: serde::Serialize>(list: &[T]) -> Value {
    if list.is_empty() { Value::Null } else { json!(list) }
}

fn node_json(node: &Node) -> Value {
    json!({
        "nid": node.nid,
        "memory_bytes": node.memory_bytes(),
        "cpus": node.cpus,
        "channels": node.channels,
        "mts": node.mts,
    })
}

fn limits_json(limits: &Limits) -> Value {
    json!({
        "allowed_cpus": known(&limits.allowed_cpus),
        "online_cpus": known(&limits.online_cpus),
        "mem_available_bytes": limits.mem_available_bytes,
        "cgroup_limit_bytes": limits.cgroup_limit_bytes,
    })
}

/// The built-in machines as a table, with a newline at the end.
pub fn library_table() -> String {
    let mut out = table(&["name", "machine"]);
    for (name, title) in library::names() {
        out.add_row([format!("@{name}"), title]);
    }
    let lines = out.to_string();
    lines.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::load;

    fn skylake() -> Machine {
        load("@2n-skylake-768g", None).unwrap()
    }

    #[test]
    fn the_table_has_every_fact() {
        let text =
            text(&skylake(), Some(&Limits { allowed_cpus: vec![0, 1], ..Limits::default() }));
        for words in [
            "2 × Xeon Platinum 8167M (Skylake), 2 nodes, 768 GiB\n",
            "104 (52 cores, 2 threads each)",
            "384 GiB",
            "0x0..0xc0000000",
            "0-25,52-77",
            "6 × 2666 MT/s",
            "distances",
            "memory ranges",
            "assumed",
            "given",
            "4 KiB",
            "0-1",
            "none or unknown",
        ] {
            assert!(text.contains(words), "{words} is not in\n{text}");
        }
        assert!(text.lines().all(|l| l == l.trim_end() && !l.contains('\x1b')), "{text}");
    }

    #[test]
    fn json_says_null_where_nothing_is_known() {
        let text = "arch = \"arm64\"\n[nodes]\ncount = 2\nmemory = \"1GiB\"\n";
        let machine = crate::machine::input::parse_text("m", text.as_bytes(), None).unwrap();
        let value = json(&machine, None);
        for key in ["cpus", "distances", "caches", "cpu_model", "smt", "kernel", "limits"] {
            assert!(value.get(key).is_some_and(Value::is_null), "{key}: {value}");
        }
        assert!(value["nodes"][0]["channels"].is_null());
        assert_eq!(value["source"]["memory_ranges"]["origin"], "assumed");
        let limits = json(&machine, Some(&Limits::default()));
        assert!(limits["limits"]["cgroup_limit_bytes"].is_null());
    }

    #[test]
    fn json_has_half_open_ranges_in_bytes() {
        let value = json(&skylake(), None);
        let expected = json!({ "start": 0, "end": 3u64 << 30, "nid": 0 });
        assert_eq!(value["memory"][0], expected);
        assert_eq!(value["memory"][1]["start"], json!(4u64 << 30));
        assert_eq!(value["memory"][2]["nid"], 1);
        assert_eq!(value["page_bytes"], 4096);
        assert_eq!(value["nodes"][1]["cpus"].as_array().unwrap().len(), 52);
        assert_eq!(value["distances"][0][1], 21);
    }

    #[test]
    fn many_nodes_make_no_huge_grid() {
        let machine = load("pack:64 [numa(memory=1GiB)] core:1 pu:1", None).unwrap();
        assert!(text(&machine, None).contains("distances: unknown"));
        let table = library_table();
        assert!(table.contains("@32n-sparc-m6-32t") && table.matches('@').count() == 18, "{table}");
    }
}
