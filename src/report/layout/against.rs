//! What differs between two kernels on one machine.
//!
//! [`changes`] compares the rules and the results of two layouts, number by number;
//! [`text`] shows the list, [`json`] is the body of its document.

use super::LayoutView;
use crate::kernel::padata::chunks;
use crate::pfn::total_pages;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// One number or rule that is not the same.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// What it is, as a path: `nodes.0.threads`.
    pub what: String,
    /// Its value under the first kernel; null where there is none.
    pub from: Value,
    /// Its value under the second.
    pub to: Value,
}

/// Everything that changes from `a` to `b`, by path.
pub fn changes(a: &LayoutView, b: &LayoutView) -> Vec<Change> {
    let (mut before, mut after) = (BTreeMap::new(), BTreeMap::new());
    flatten("", &summary(a), &mut before);
    flatten("", &summary(b), &mut after);
    let mut paths: Vec<&String> = before.keys().chain(after.keys()).collect();
    paths.sort();
    paths.dedup();
    let value = |map: &BTreeMap<String, Value>, path| map.get(path).cloned().unwrap_or_default();
    let all = paths.into_iter().map(|path| Change {
        what: path.clone(),
        from: value(&before, path),
        to: value(&after, path),
    });
    all.filter(|change| change.from != change.to).collect()
}

/// The list as a table.
pub fn text(a: &LayoutView, b: &LayoutView) -> String {
    let list = changes(a, b);
    let (from, to) = (&a.layout.kernel.release, &b.layout.kernel.release);
    let head = format!("{}: from Linux {from} to {to}", a.layout.machine);
    if list.is_empty() {
        return format!("{head}: nothing changes\n");
    }
    let mut out = super::table(&["what", from, to], 1);
    for change in &list {
        out.add_row([change.what.clone(), plain(&change.from), plain(&change.to)]);
    }
    format!("{head}, {} changes\n{out}\n", list.len())
}

/// The body of the document.
pub fn json(a: &LayoutView, b: &LayoutView) -> Value {
    json!({
        "machine": a.layout.machine,
        "kernel": a.layout.kernel,
        "against": b.layout.kernel,
        "notes": a.notes,
        "against_notes": b.notes,
        "changes": changes(a, b),
    })
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn flatten(path: &str, value: &Value, out: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let dot = if path.is_empty() { "" } else { "." };
                flatten(&format!("{path}{dot}{key}"), value, out);
            }
        }
        other => {
            out.insert(path.into(), other.clone());
        }
    }
}

/// Rules and results as nested numbers; lists of addresses are only counted.
fn summary(view: &LayoutView) -> Value {
    let layout = view.layout;
    let mut rules = serde_json::to_value(&layout.kernel).unwrap_or_default();
    if let Value::Object(map) = &mut rules {
        map.retain(|key, _| !["version", "release", "arch"].contains(&key.as_str()));
    }
    let nodes: Map<String, Value> =
        layout.nodes.iter().map(|n| (n.nid.to_string(), node(n))).collect();
    let zones: Map<String, Value> = layout
        .zones
        .iter()
        .map(|z| {
            let numbers = json!({
                "start_pfn": z.start_pfn, "spanned": z.spanned, "present": z.present,
            });
            (format!("{}.{}", z.nid, super::name_of(&z.zone)), numbers)
        })
        .collect();
    json!({
        "rules": rules,
        "memmap": memmap(view),
        "sparse_init": {
            "requests": view.placement.requests.len(),
            "frees": view.placement.frees.len(),
            "usage_bytes_per_section": view.input.rules.usage_bytes,
        },
        "nodes": nodes,
        "zones": zones,
    })
}

fn memmap(view: &LayoutView) -> Value {
    let runs = &view.placement.memmap;
    let bytes = |foreign: bool| -> u64 {
        let wanted = runs.iter().filter(|r| (r.nid != r.on_nid) == foreign);
        wanted.map(|r| r.end - r.start).sum()
    };
    let orders: Map<String, Value> = runs
        .iter()
        .take(super::MOST_ROWS)
        .enumerate()
        .map(|(i, run)| {
            let place = json!({
                "start": format!("{:#x}", run.start),
                "end": format!("{:#x}", run.end),
                "on_nid": run.on_nid,
                "order": super::order_of(run),
            });
            (format!("extent_{i}"), place)
        })
        .collect();
    let mut out = json!({
        "extents": runs.len(),
        "bytes_on_own_node": bytes(false),
        "bytes_on_other_nodes": bytes(true),
    });
    if let Value::Object(map) = &mut out {
        map.extend(orders);
    }
    out
}

fn node(node: &crate::kernel::layout::NodeLayout) -> Value {
    let chunk = node.jobs.iter().map(|j| j.chunk_pages()).max();
    json!({
        "first_deferred_pfn": node.first_deferred_pfn,
        "early_sweep": total_pages(&node.early.sweep),
        "early_reserved": total_pages(&node.early.reserved),
        "early_holes": total_pages(&node.early.holes),
        "deferred_pages": total_pages(&node.deferred),
        "threads": node.max_threads,
        "jobs": node.jobs.len(),
        "largest_chunk_pages": chunk,
        "chunks": node.jobs.iter().map(|j| chunks(j).count()).sum::<usize>(),
    })
}
