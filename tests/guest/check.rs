//! What a guest must show, whatever its topology.

use super::vm::{Step, Topology};
use pageinit::plan::Strategy;
use pageinit::record::Record;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const MIB: u64 = 1 << 20;
/// The emulated PC keeps this much memory below 4 GiB, or all if it has less than 3.5 GiB.
const LOW_BYTES: u64 = 3 << 30;

pub(crate) fn warned(record: &Record, code: &str) -> bool {
    record.head.warnings.iter().any(|w| w.code == code)
}

/// `machine --json` shows nodes, CPUs, distances and memory as the emulator was told.
pub(crate) fn check_machine(guest: &Topology, json: &Value) {
    assert_eq!(json["is_this_host"], true);
    let nodes = json["nodes"].as_array().expect("nodes");
    assert_eq!(nodes.len(), guest.nodes.len());
    for (i, node) in nodes.iter().enumerate() {
        assert_eq!(node["nid"], i);
        assert_eq!(node["cpus"], serde_json::json!(guest.cpus(i as u32)), "node {i}");
        let row: Vec<u32> = (0..nodes.len()).map(|to| guest.distance(i, to)).collect();
        assert_eq!(json["distances"][i], serde_json::json!(row));
    }
    for cpu in json["cpus"].as_array().expect("cpus") {
        let (id, nid) = (cpu["id"].as_u64().unwrap(), cpu["nid"].as_u64().unwrap());
        assert!(guest.cpus(nid as u32).contains(&(id as u32)), "{cpu}");
    }
    check_memory(guest, json["memory"].as_array().expect("memory"));
}

/// Nodes follow each other in the order in which they were given, with the PC's hole
/// below 4 GiB. Firmware takes a little at both ends of low memory.
fn check_memory(guest: &Topology, ranges: &[Value]) {
    let total: u64 = guest.nodes.iter().map(|(mib, _)| mib * MIB).sum();
    let low = if total >= LOW_BYTES + (512 << 20) { LOW_BYTES } else { total };
    let physical = |at: u64| if at < low { at } else { at - low + (4 << 30) };
    let mut begin = 0;
    for (nid, (mib, _)) in guest.nodes.iter().enumerate() {
        let end = begin + mib * MIB;
        let mine: Vec<(u64, u64)> = ranges
            .iter()
            .filter(|r| r["nid"] == nid)
            .map(|r| (r["start"].as_u64().unwrap(), r["end"].as_u64().unwrap()))
            .collect();
        let bytes: u64 = mine.iter().map(|(start, end)| end - start).sum();
        assert!(bytes <= mib * MIB && bytes + 2 * MIB >= mib * MIB, "node {nid}: {mine:x?}");
        for (start, last) in mine.iter().map(|(start, end)| (*start, end - 1)) {
            let inside = |at: u64| (begin..end).contains(&at) && at < low;
            let above = |at: u64| at >= physical(begin.max(low)) && at <= physical(end - 1);
            let good = |at: u64| inside(at) || (end > low && above(at));
            assert!(good(start) && good(last), "node {nid}: {start:x}-{last:x}");
        }
        begin = end;
    }
}

/// A whole comparison: everything bound, read back, pinned, run and verified.
pub(crate) fn check_compare(guest: &Topology, record: &Record) {
    assert!(record.head.complete);
    placed(record);
    ran_where_pinned(record);
    let with_memory: Vec<u32> =
        (0..guest.nodes.len() as u32).filter(|n| guest.nodes[*n as usize].0 > 0).collect();
    let placed: Vec<u32> = record.execution.placement.iter().map(|p| p.host_nid).collect();
    assert_eq!(placed, with_memory);
    let mapped: Vec<(u32, u32)> =
        record.execution.mapping.iter().map(|m| (m.nid, m.host_nid)).collect();
    assert_eq!(mapped, with_memory.iter().map(|n| (*n, *n)).collect::<Vec<_>>());
    for mapping in record.execution.mapping.iter().filter(|m| !guest.cpus(m.nid).is_empty()) {
        assert_eq!(mapping.cpus, guest.cpus(mapping.nid), "node {}", mapping.nid);
    }
    let verified = record.points.iter().filter(|p| p.verified && p.phase == "total");
    let verified: BTreeSet<&str> = verified.map(|p| p.strategy.as_str()).collect();
    for strategy in Strategy::ALL {
        assert!(verified.contains(strategy.name()), "{strategy} is not verified: {verified:?}");
    }
}

/// Every arena is bound, and all of it lies where it was bound to.
pub(crate) fn placed(record: &Record) {
    let execution = &record.execution;
    assert!(!execution.placement.is_empty());
    for place in &execution.placement {
        assert!(place.bound && place.bytes > 0, "{place:?}");
        assert_eq!(place.on_node_bytes, Some(place.bytes), "{place:?}");
    }
    let bytes: u64 = execution.placement.iter().map(|p| p.bytes).sum();
    assert_eq!(bytes, execution.buffer_bytes);
    assert!(!warned(record, "bind-refused") && !warned(record, "placement-unknown"));
}

/// Workers were seen on their node's CPUs only, and on as many as there were threads.
pub(crate) fn ran_where_pinned(record: &Record) {
    let execution = &record.execution;
    for mapping in &execution.mapping {
        let node = record.machine.nodes.iter().find(|n| n.nid == mapping.nid);
        let deferred = node.expect("the mapping's node").deferred_pages > 0;
        assert_eq!(deferred, !mapping.ran_on.is_empty(), "{mapping:?} {node:?}");
        let elsewhere = mapping.ran_on.iter().find(|cpu| !mapping.cpus.contains(cpu));
        assert_eq!(elsewhere, None, "{mapping:?}");
    }
    let boot_cpu = execution.mapping.first().and_then(|m| m.cpus.first()).copied();
    assert_eq!(execution.boot_cpu_ran_on, boot_cpu.into_iter().collect::<Vec<_>>());
    assert!(!warned(record, "worker-moved"), "{:?}", record.head.warnings);
}

/// What the kernel said while a comparison ran: bound memory lay on its node alone, and
/// the workers, which are named after their CPUs, were bound to them.
pub(crate) fn check_samples(guest: &Topology, step: &Step) {
    assert_eq!(step.status, 0, "{step:?}");
    let mut bound: BTreeMap<u32, u64> = BTreeMap::new();
    let mut pinned = BTreeSet::new();
    for line in step.stdout.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some(own) = words.first().and_then(|w| w.strip_prefix("pageinit-")) {
            // A thread that was just started is not pinned yet, and one may just have ended.
            let allowed = words.get(2).filter(|allowed| **allowed == own);
            pinned.extend(allowed.map(|_| own.parse::<u32>().expect("a CPU")));
            continue;
        }
        let policy = words.iter().find_map(|w| w.strip_prefix("bind:"));
        let nid: u32 = policy.expect("a policy").parse().unwrap_or_else(|e| panic!("{e}: {line}"));
        for word in words.iter().filter_map(|w| w.strip_prefix('N')) {
            let Some((node, pages)) = word.split_once('=') else { continue };
            assert_eq!(node.parse(), Ok(nid), "{line}");
            let most = bound.entry(nid).or_default();
            *most = (*most).max(pages.parse().expect("pages"));
        }
    }
    let nodes: Vec<u32> = bound.keys().copied().collect();
    assert_eq!(nodes, (0..guest.nodes.len() as u32).collect::<Vec<_>>(), "{}", step.stdout);
    let cpus: BTreeSet<u32> = (0..nodes.len() as u32).flat_map(|n| guest.cpus(n)).collect();
    assert!(pinned.len() >= 2 && pinned.is_subset(&cpus), "{pinned:?} of {cpus:?}");
}

/// The layout made in the guest from its own log asks for what the guest's kernel asked
/// for, and is answered as the kernel was.
pub(crate) fn check_layout(log: &str, layout: &Value) {
    let dir = tempfile::TempDir::new().expect("a temporary folder");
    let path = dir.path().join("guest.log");
    std::fs::write(&path, log).expect("the temporary folder is writable");
    let machine = pageinit::machine::load(&path.to_string_lossy(), None).expect("a boot log");
    let facts = machine.boot.expect("memblock's lines");
    let real: Vec<(u64, u64, Option<u64>)> =
        facts.allocations.iter().map(|a| (a.bytes, a.align, a.start)).collect();
    let ours = layout["sparse_init"].as_array().expect("requests").iter();
    let number = |value: &Value, key: &str| value[key].as_u64();
    let ours: Vec<(u64, u64, Option<u64>)> = ours
        .map(|a| {
            let asked = number(a, "bytes").zip(number(a, "align")).expect("numbers");
            (asked.0, asked.1, number(a, "start"))
        })
        .collect();
    assert!(!real.is_empty());
    assert_eq!(ours, real);
    let nodes = layout["nodes"].as_array().expect("nodes").iter();
    let deferred = nodes.filter(|n| !n["first_deferred_pfn"].is_null());
    let deferred: Vec<u64> = deferred.filter_map(|n| n["nid"].as_u64()).collect();
    let logged: Vec<u64> = facts.deferred_nodes.iter().map(|n| u64::from(n.0)).collect();
    assert_eq!(deferred, logged);
}
