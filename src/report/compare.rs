//! The table that `compare` shows to people.
//!
//! [`text`] renders a [`Record`]; it adds nothing that the record does not hold.

use super::grid::grid;
use crate::kernel::struct_page::STRUCT_PAGE_BYTES;
use crate::record::{Point, Prefetch, PublishedRatio, Record, ScaledMachine};
use crate::units::{Bytes, gb_per_s, grouped, three_digits, time};
use comfy_table::{Cell, Table};
use std::fmt::Write;

/// The whole report: what ran, the strategies, the prefetch effect, scaled machines.
pub fn text(record: &Record) -> String {
    let mut out = heading(record);
    if record.points.is_empty() {
        out.push_str("\nNothing was measured.\n");
        return out;
    }
    let _ = write!(out, "\n{}\n", strategies(record));
    out.push_str(&below_table(record));
    if let Some(prefetch) = &record.prefetch {
        out.push_str(&prefetch_lines(prefetch));
    }
    out.push_str(&published(&record.published));
    out.push_str(&scaled(&record.scaled));
    if !record.head.complete {
        out.push_str("\nINCOMPLETE: the run was interrupted; fewer runs than asked for.\n");
    }
    out
}

fn heading(record: &Record) -> String {
    let (machine, exec) = (&record.machine, &record.execution);
    let mut out = format!(
        "{}: {} on {} node{}, {}, {} struct pages ({} memmap), rules of Linux {}\n",
        machine.name,
        Bytes(machine.memory_bytes),
        machine.nodes.len(),
        if machine.nodes.len() == 1 { "" } else { "s" },
        machine.arch,
        grouped(exec.memmap_bytes / STRUCT_PAGE_BYTES),
        Bytes(exec.memmap_bytes),
        super::source::version(&record.kernel).unwrap_or_else(|| "of unknown version".into()),
    );
    let model = record.host.cpu_model.as_deref().unwrap_or("unknown processor");
    let _ = writeln!(
        out,
        "measured on {model}, {} CPUs; buffer {}{}; {} runs interleaved, seed {}",
        record.host.allowed_cpus.len(),
        Bytes(exec.buffer_bytes),
        copies(exec.copies),
        exec.runs,
        record.seed,
    );
    out.push_str(&stand_ins(record));
    if exec.executed_share < 1.0 {
        let _ = writeln!(
            out,
            "executed {:.3} % of the memmap through a window; times below are multiplied up",
            exec.executed_share * 100.0
        );
    }
    out.push_str(&placement(record));
    out
}

/// For a machine that is not the host: who stood for its nodes.
fn stand_ins(record: &Record) -> String {
    let mapping = &record.execution.mapping;
    let is_the_host = record.machine.name == "host" && mapping.iter().all(|m| m.round == 0);
    if is_the_host || mapping.is_empty() {
        return String::new();
    }
    let nodes = mapping.iter().map(|m| format!("{} on {}", m.nid, m.host_nid));
    format!("nodes on this host's nodes: {}\n", nodes.collect::<Vec<_>>().join(", "))
}

fn copies(copies: u64) -> String {
    if copies > 1 { format!(" ({copies} copies of the memmap)") } else { String::new() }
}

fn placement(record: &Record) -> String {
    let places = &record.execution.placement;
    let total: u64 = places.iter().map(|p| p.bytes).fold(0, u64::saturating_add);
    let known =
        places.iter().try_fold(0u64, |sum, place| Some(sum.saturating_add(place.on_node_bytes?)));
    match known {
        _ if total == 0 => String::new(),
        Some(on_node) => {
            let share = on_node as f64 / total as f64 * 100.0;
            format!("placement read back: {share:.0} % of the buffer on the node it is bound to\n")
        }
        None => "placement unknown: memory could not be bound, or not be read back\n".into(),
    }
}

/// One row per strategy and store.
fn strategies(record: &Record) -> Table {
    let how = record.execution.whole_label().name();
    let header = [
        "strategy".to_owned(),
        "store".into(),
        "threads".into(),
        format!("boot CPU\n{how}"),
        format!("node threads\n{how}"),
        format!("sum\n{how}"),
        "ns/page".into(),
        "GB/s".into(),
        format!("÷ {}\n[95 %]", record.baseline),
    ];
    let mut table = grid(header, 2);
    for total in record.points.iter().filter(|p| p.phase == "total" && !is_probe(p)) {
        table.add_row(strategy_row(record, total));
    }
    table
}

fn strategy_row(record: &Record, total: &Point) -> Vec<Cell> {
    let part = |phase: &str| part_ns(record, total, phase);
    let ns = total.scaled_median_ns;
    let ratio =
        record.ratios.iter().find(|r| r.strategy == total.strategy && r.store == total.store);
    let ratio = ratio.map_or_else(
        || "-".to_owned(),
        |r| format!("{:.2} [{:.2}, {:.2}]", r.median, r.ci95[0], r.ci95[1]),
    );
    let or_dash = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), time);
    [
        total.strategy.clone(),
        total.store.clone().unwrap_or_else(|| "-".into()),
        total.threads.to_string(),
        or_dash(part("boot-cpu")),
        or_dash(part("deferred")),
        time(ns),
        three_digits(ns / total.scaled_pages.max(1) as f64),
        three_digits(gb_per_s(total.scaled_pages.saturating_mul(STRUCT_PAGE_BYTES), ns)),
        ratio,
    ]
    .into_iter()
    .map(Cell::new)
    .collect()
}

/// What a phase of the same candidate takes on all nodes of the whole machine.
pub(super) fn part_ns(record: &Record, total: &Point, phase: &str) -> Option<f64> {
    let same = |p: &&Point| {
        p.phase == phase
            && p.nid.is_none()
            && p.strategy == total.strategy
            && p.store == total.store
    };
    record.points.iter().find(same).map(|p| p.scaled_median_ns)
}

pub(super) fn is_probe(point: &Point) -> bool {
    point.strategy.starts_with("probe-")
}

fn below_table(record: &Record) -> String {
    let verified = record.points.iter().all(|p| p.verified);
    let exec = &record.execution;
    let mut out = format!(
        "pages {} the buddy allocator; memory {} after every run",
        if exec.free { "are freed to" } else { "are not freed to" },
        if verified { "verified byte by byte" } else { "NOT verified" },
    );
    if let Some(share) = exec.overhead_share {
        let _ = write!(out, "; {:.2} % of worker time outside page operations", share * 100.0);
    }
    out.push('\n');
    out
}

fn prefetch_lines(p: &Prefetch) -> String {
    let show =
        |s: &crate::stats::Summary| format!("{:.2} [{:.2}, {:.2}]", s.median, s.ci95[0], s.ci95[1]);
    format!(
        "\nPrefetch effect, ns per struct page per node, {} thread{} ({}):\n  \
         field writes on cold lines {}, on lines just zeroed {}; zeroing in place adds {}\n",
        p.threads,
        if p.threads == 1 { "" } else { "s" },
        p.label.name(),
        show(&p.fields_cold_ns),
        show(&p.fields_warm_ns),
        show(&p.inline_zero_adds_ns),
    )
}

/// Published ratios with the same ones here.
fn published(ratios: &[PublishedRatio]) -> String {
    let Some(first) = ratios.first() else { return String::new() };
    let mut out = format!(
        "\nBeside published figures, node threads alone (published for {}: one thread, struct \
         pages of device memory, nothing freed):\n",
        first.machine
    );
    for r in ratios {
        let _ = writeln!(
            out,
            "  {} ÷ {}: published {:.2}; measured here {:.2} [{:.2}, {:.2}], {} thread{}{}",
            r.strategy,
            r.baseline,
            r.published,
            r.measured,
            r.ci95[0],
            r.ci95[1],
            r.threads,
            if r.threads == 1 { "" } else { "s" },
            if r.free { ", freeing included (without: --no-free)" } else { "" },
        );
    }
    out
}

/// One table for all machines: what each strategy would take, and save.
fn scaled(machines: &[ScaledMachine]) -> String {
    let Some(first) = machines.first() else { return String::new() };
    let mut out = format!("\nAt these rates, {} ({}):\n", first.label.name(), first.rule);
    let mut header = vec!["strategy".to_owned()];
    for machine in machines {
        let _ = writeln!(out, "  {}: {}", machine.machine, machine.title);
        header.push(format!("{}\n{}", machine.machine, Bytes(machine.memory_bytes)));
        header.push("\nsaved".into());
    }
    let mut table = grid(header, 1);
    for (index, row) in first.rows.iter().enumerate() {
        let mut cells = vec![row.strategy.clone()];
        for row in machines.iter().filter_map(|m| m.rows.get(index)) {
            cells.push(time(row.total_ns));
            cells.push(row.saved_ns.map_or_else(|| "-".into(), time));
        }
        table.add_row(cells);
    }
    let _ = writeln!(out, "{table}");
    out
}
