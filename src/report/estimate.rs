//! What `estimate` shows to people: timeline, total, nodes, savings.

use super::grid::grid;
use crate::record::estimate::{Estimate, Logged, NodeEstimate, Saving, WhatIfRow};
use crate::units::{Bytes, grouped, three_digits, time};
use comfy_table::Table;
use std::fmt::Write;

/// Machines with more nodes show only the slowest and the fastest.
const MOST_NODES: usize = 16;

/// The whole report.
pub fn text(e: &Estimate) -> String {
    let mut out = heading(e);
    let _ = writeln!(out, "\nTimeline (modelled):\n{}", timeline(e));
    if !e.nodes.is_empty() {
        let _ = writeln!(out, "Nodes, longest phase of their threads (modelled):\n{}", nodes(e));
    }
    out.push_str(&totals(e));
    if !e.logged.is_empty() {
        let _ = writeln!(out, "\nAgainst the log's own times:\n{}", logged(e));
        out.push_str(&left_out(&e.logged));
    }
    if !e.what_ifs.is_empty() {
        let _ = writeln!(out, "\nWhat if (modelled):\n{}", what_ifs(e));
        out.push_str(&notes(&e.what_ifs));
    }
    let _ = writeln!(out, "\nAgainst other strategies and kernels (modelled):\n{}", savings(e));
    out
}

fn logged(e: &Estimate) -> Table {
    let header = [
        "what",
        "caveats",
        "line",
        "struct pages",
        "workers",
        "logged",
        "predicted\nmodelled",
        "error",
        "in range",
    ];
    let mut table = grid(header, 2);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    for l in &e.logged {
        let node = l.nid.map(|nid| format!(", node {nid}")).unwrap_or_default();
        table.add_row([
            format!("{}{node}", l.what),
            if l.caveats.is_empty() { "-".into() } else { l.caveats.join(", ") },
            l.line.to_string(),
            or_dash(l.pages.map(grouped)),
            or_dash(l.workers.map(|w| w.to_string())),
            or_dash(l.logged_ms.map(|ms| time(ms * 1e6))),
            or_dash(l.predicted_ms.map(|ms| time(ms * 1e6))),
            or_dash(l.error.map(|error| format!("{:+.0} %", error * 100.0))),
            or_dash(l.in_range.map(|inside| if inside { "yes" } else { "no" }.into())),
        ]);
    }
    table
}

/// Why lines have no error, each reason once.
fn left_out(logged: &[Logged]) -> String {
    let mut reasons: Vec<&str> = logged.iter().filter_map(|l| l.left_out.as_deref()).collect();
    reasons.dedup();
    reasons.iter().map(|reason| format!("no error for some: {reason}\n")).collect()
}

fn what_ifs(e: &Estimate) -> Table {
    let header = ["what", "takes", "range", "saves", "memmap"];
    let mut table = grid(header, 1);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    for row in &e.what_ifs {
        let ns = |ns: u64| time(ns as f64);
        let range = row.range_ns.map(|[low, high]| format!("{} to {}", ns(low), ns(high)));
        table.add_row([
            row.what.clone(),
            or_dash(row.total_ns.map(ns)),
            or_dash(range),
            or_dash(row.saved_ns.map(saved)),
            or_dash(row.memmap_bytes.map(|bytes| Bytes(bytes).to_string())),
        ]);
    }
    table
}

fn saved(ns: i64) -> String {
    if ns == 0 { "nothing".into() } else { time(ns as f64) }
}

/// What each total is made of, which is more than the timeline's phases, and its note.
fn notes(rows: &[WhatIfRow]) -> String {
    let mut out = String::new();
    for row in rows {
        let parts = row.parts.iter().map(|p| format!("{} {}", p.part, time(p.ns as f64)));
        let parts = parts.collect::<Vec<_>>().join(" + ");
        let said = [parts, row.note.clone()].into_iter().filter(|text| !text.is_empty());
        let said = said.collect::<Vec<_>>().join("; ");
        if !said.is_empty() {
            let _ = writeln!(out, "  {}: {said}", row.name);
        }
    }
    out
}

fn heading(e: &Estimate) -> String {
    let m = &e.machine;
    format!(
        "{}: {} on {} node{}, {}; strategy {}, {} thread{} per node at most\nprocessor class {} \
         ({}), {}: {} ns per cold line, {} GB/s per node reached\n",
        m.name,
        Bytes(m.memory_bytes),
        m.nodes.len(),
        plural(m.nodes.len() as u64),
        m.arch,
        e.strategy,
        e.threads,
        plural(u64::from(e.threads)),
        e.processor.class,
        e.processor.mark,
        e.processor.virt,
        three_digits(e.processor.line_ns),
        three_digits(e.processor.node_bytes_per_s as f64 / 1e9),
    )
}

const fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn timeline(e: &Estimate) -> Table {
    let header = ["phase", "by", "start", "end", "takes", "struct pages", "ends with"];
    let mut table = grid(header, 2);
    for p in &e.phases {
        table.add_row([
            p.phase.clone(),
            p.executor.clone(),
            time(p.start_ns as f64),
            time(p.end_ns as f64),
            time(p.end_ns.saturating_sub(p.start_ns) as f64),
            grouped(p.pages),
            p.slowest_nid.map_or_else(|| "-".into(), |nid| format!("node {nid}")),
        ]);
    }
    table
}

fn nodes(e: &Estimate) -> Table {
    let header = ["node", "workers", "struct pages", "takes", "ns/page alone", "memory busy"];
    let mut table = grid(header, 0);
    for n in shown(&e.nodes) {
        table.add_row([
            n.nid.to_string(),
            n.workers.to_string(),
            grouped(n.pages),
            time(n.wall_ns as f64),
            three_digits(n.page_ns),
            format!("{:.0} %", n.bandwidth_use * 100.0),
        ]);
    }
    table
}

fn shown(nodes: &[NodeEstimate]) -> Vec<&NodeEstimate> {
    if nodes.len() <= MOST_NODES {
        return nodes.iter().collect();
    }
    let slowest = nodes.iter().max_by_key(|n| n.wall_ns);
    let fastest = nodes.iter().min_by_key(|n| n.wall_ns);
    slowest.into_iter().chain(fastest).collect()
}

fn totals(e: &Estimate) -> String {
    format!(
        "total {} (modelled), {} to {}: {}\nbound by {}; rests on {}: {}\n",
        time(e.total_ns as f64),
        time(e.range_ns[0] as f64),
        time(e.range_ns[1] as f64),
        e.range_meaning,
        e.bound_by,
        e.anchor.kind,
        e.anchor.from,
    )
}

fn savings(e: &Estimate) -> Table {
    let mut table = grid(["strategy", "kernel", "takes", "saved by this one"], 2);
    for s in &e.savings {
        table.add_row([s.strategy.clone(), s.kernel.clone(), time(s.total_ns as f64), signed(s)]);
    }
    table
}

fn signed(saving: &Saving) -> String {
    match saving.saved_ns {
        0 => "-".into(),
        ns => time(ns as f64),
    }
}
