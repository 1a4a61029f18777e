//! A layout for people, as JSON, as a drawing, and two of them compared.
//!
//! [`LayoutView`] is what `pageinit layout` shows: the question, its answer, and what
//! it rests on. [`text`] is the table view with [`drawing`]; [`json`] streams every
//! address; [`against`] lists what differs between two kernels. Pure: no printing.

pub mod against;
pub mod drawing;
pub mod json;

use crate::kernel::boot::BootInput;
use crate::kernel::layout::{Layout, NodeLayout};
use crate::kernel::padata::chunks;
use crate::kernel::place::Placement;
use crate::kernel::sparse::{MemmapRun, RequestRun, Succession};
use crate::pfn::total_pages;
use crate::units::{Bytes, grouped};
use comfy_table::{CellAlignment, Table, presets};
use std::fmt::Write;

/// One boot with everything that is to be shown of it.
#[derive(Clone, Copy, Debug)]
pub struct LayoutView<'a> {
    /// Memory, reservations, rules.
    pub input: &'a BootInput,
    /// Zones, early and deferred pages.
    pub layout: &'a Layout,
    /// Requests, answers, extents.
    pub placement: &'a Placement,
    /// What is recalled or not modelled.
    pub notes: &'a [String],
}

/// Rows of a table before the rest is only counted; `--json` has all.
const MOST_ROWS: usize = 40;

/// The whole report, with a newline at the end.
pub fn text(view: &LayoutView) -> String {
    let mut out = heading(view);
    let mut part = |title: &str, body: String| {
        let _ = write!(out, "\n{title}\n{}\n", body.trim_end());
    };
    part("Physical memory", drawing::text(view));
    part("Zones", zones(view));
    part("Struct pages by who initialises them, in pages", nodes(view));
    part("The memmap's extents", extents(view));
    part("Requests of sparse_init to memblock, in order", requests(view));
    let notes: String = view.notes.iter().map(|n| format!("- {n}\n")).collect();
    part("What this rests on", notes);
    out
}

fn heading(view: &LayoutView) -> String {
    let layout = view.layout;
    let memory: u64 = view.input.map.memory.iter().map(|m| m.end - m.start).sum();
    let memmap: u64 = view.placement.memmap.iter().map(|m| m.end - m.start).sum();
    let count = layout.nodes.len();
    format!(
        "{}: {} on {count} node{}, {}, pages of {}, memmap of {}, rules of Linux {}\n",
        layout.machine,
        Bytes(memory),
        if count == 1 { "" } else { "s" },
        layout.arch,
        Bytes(layout.page_bytes),
        Bytes(memmap),
        layout.kernel.release,
    )
}

fn table(header: &[&str], left: usize) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY).set_header(header.to_vec());
    for index in left..header.len() {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn zones(view: &LayoutView) -> String {
    let mut out = table(&["node", "zone", "start pfn", "spanned", "present", "memory"], 2);
    for zone in &view.layout.zones {
        out.add_row([
            zone.nid.to_string(),
            name_of(&zone.zone),
            format!("{:#x}", zone.start_pfn.0),
            grouped(zone.spanned),
            grouped(zone.present),
            Bytes(zone.present.saturating_mul(view.layout.page_bytes)).to_string(),
        ]);
    }
    out.to_string()
}

/// The name that a value has in JSON.
fn name_of(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

fn nodes(view: &LayoutView) -> String {
    let header = [
        "node",
        "CPUs",
        "first deferred",
        "sweep",
        "reserved",
        "holes",
        "deferred",
        "threads",
        "jobs",
        "chunk",
        "chunks",
    ];
    let mut out = table(&header, 0);
    for node in &view.layout.nodes {
        out.add_row([
            node.nid.to_string(),
            node.cpus.to_string(),
            node.first_deferred_pfn.map_or("-".into(), |p| format!("{:#x}", p.0)),
            grouped(total_pages(&node.early.sweep)),
            grouped(total_pages(&node.early.reserved)),
            grouped(total_pages(&node.early.holes)),
            grouped(total_pages(&node.deferred)),
            if node.jobs.is_empty() { "-".into() } else { node.max_threads.to_string() },
            grouped(node.jobs.len() as u64),
            chunk_text(node, view.layout.page_bytes),
            grouped(chunk_count(node)),
        ]);
    }
    out.to_string()
}

fn chunk_count(node: &NodeLayout) -> u64 {
    node.jobs.iter().map(|job| chunks(job).count() as u64).sum()
}

/// The memory that one chunk describes; of several sizes the smallest and the largest.
fn chunk_text(node: &NodeLayout, page_bytes: u64) -> String {
    let sizes = node.jobs.iter().map(|job| job.chunk_pages().saturating_mul(page_bytes));
    match (sizes.clone().min(), sizes.max()) {
        (Some(least), Some(most)) if least == most => Bytes(least).to_string(),
        (Some(least), Some(most)) => format!("{} to {}", Bytes(least), Bytes(most)),
        _ => "-".into(),
    }
}

fn extents(view: &LayoutView) -> String {
    let header = ["sections", "of node", "on node", "mapped by", "order", "start", "end", "size"];
    let mut out = table(&header, 5);
    let section = view.input.rules.section_memmap_bytes().max(1);
    for run in view.placement.memmap.iter().take(MOST_ROWS) {
        out.add_row([
            format!("{}–{}", run.map_start / section, (run.map_end - 1) / section),
            run.nid.to_string(),
            run.on_nid.to_string(),
            name_of(&run.backing),
            order_of(run).into(),
            format!("{:#x}", run.start),
            format!("{:#x}", run.end),
            Bytes(run.end - run.start).to_string(),
        ]);
    }
    with_rest(out, view.placement.memmap.len())
}

fn order_of(run: &MemmapRun) -> &'static str {
    match run.succession {
        _ if run.end - run.start == run.piece_bytes => "one piece",
        Succession::Ascending => "ascending",
        Succession::Descending => "descending",
    }
}

fn with_rest(table: Table, rows: usize) -> String {
    let mut out = table.to_string();
    if rows > MOST_ROWS {
        let _ = write!(out, "\nand {} more; --json has all", rows - MOST_ROWS);
    }
    out
}

fn requests(view: &LayoutView) -> String {
    let header = ["caller", "call", "count", "bytes", "align", "node", "first answer", "step"];
    let mut out = table(&header, 2);
    let runs = view.placement.requests.runs();
    for RequestRun { first, count, step } in runs.iter().take(MOST_ROWS) {
        out.add_row([
            first.caller.to_owned(),
            first.call.to_owned(),
            grouped(*count),
            Bytes(first.bytes).to_string(),
            Bytes(first.align).to_string(),
            first.nid.map_or("any".into(), |n| n.to_string()),
            first.start.map_or("failed".into(), |s| format!("{s:#x}")),
            if *count > 1 { signed(*step) } else { String::new() },
        ]);
    }
    with_rest(out, runs.len())
}

fn signed(step: i64) -> String {
    let sign = if step < 0 { "-" } else { "+" };
    format!("{sign}{}", Bytes(step.unsigned_abs()))
}

#[cfg(test)]
mod tests;
