//! Physical memory as lines of blocks: one line per node, cells of equal size.
//!
//! A cell shows what most of its bytes are; the memmap and early pages count more, so
//! that thin ones stay visible. Below stand the zones where they begin.

use super::LayoutView;
use crate::kernel::layout::NodeLayout;
use crate::kernel::place::Placement;
use crate::pfn::{Nid, PfnRange, PhysRange};
use crate::units::Bytes;
use std::fmt::Write;

/// Cells of the longest line.
const WIDTH: u64 = 80;

/// Nodes that are drawn; more are only counted.
const MOST_NODES: usize = 64;

/// How a byte of memory counts: nothing there, left for later, swept early, reserved, or
/// the memmap.
const SIGNS: [char; 5] = ['·', '░', '▒', '▓', '█'];

/// The weight of each kind in a cell.
const WEIGHTS: [u64; 5] = [1, 1, 3, 2, 6];

const LEGEND: &str = "█ memmap   ▓ reserved   ▒ early   ░ deferred   · no memory";

/// The drawing with its legend.
pub fn text(view: &LayoutView) -> String {
    let nodes: Vec<(&NodeLayout, PhysRange)> = view
        .layout
        .nodes
        .iter()
        .filter_map(|node| Some((node, span_of(view.placement, view.layout.page_bytes, node.nid)?)))
        .collect();
    let longest = nodes.iter().map(|(_, span)| span.bytes()).max().unwrap_or(1);
    let cell_bytes = longest.div_ceil(WIDTH).max(view.layout.page_bytes).next_power_of_two();
    let mut out = format!("{LEGEND}; one block is {}\n", Bytes(cell_bytes));
    for (node, span) in nodes.iter().take(MOST_NODES) {
        let base = span.start - span.start % cell_bytes;
        let _ = writeln!(
            out,
            "node {:<4} {:#x} to {:#x}\n  {}\n  {}",
            node.nid.to_string(),
            span.start,
            span.end,
            cells(view, node, *span, cell_bytes),
            zone_marks(view, node.nid, base, cell_bytes),
        );
    }
    if nodes.len() > MOST_NODES {
        let _ = writeln!(out, "and {} more nodes; --json has all", nodes.len() - MOST_NODES);
    }
    out
}

fn span_of(placement: &Placement, page_bytes: u64, nid: Nid) -> Option<PhysRange> {
    let span = placement.nodes.iter().find(|n| n.nid == nid)?.range;
    Some(bytes_of(&span, page_bytes))
}

fn bytes_of(pages: &PfnRange, page_bytes: u64) -> PhysRange {
    let at = |pfn: u64| pfn.saturating_mul(page_bytes);
    PhysRange::new(at(pages.start.0), at(pages.end.0))
}

/// Bytes of each kind in every cell, then the heaviest kind of each.
fn cells(view: &LayoutView, node: &NodeLayout, span: PhysRange, cell_bytes: u64) -> String {
    let window = PhysRange::new(span.start - span.start % cell_bytes, span.end);
    let count = window.bytes().div_ceil(cell_bytes) as usize;
    let mut weights = vec![[0u64; 5]; count];
    let page_bytes = view.layout.page_bytes;
    let mut add = |kind: usize, range: PhysRange| {
        let Some(range) = range.intersect(window) else { return };
        let mut start = range.start;
        while start < range.end {
            let index = (start - window.start) / cell_bytes;
            let end = (window.start + (index + 1) * cell_bytes).min(range.end);
            if let Some(cell) = weights.get_mut(index as usize) {
                cell[kind] += end - start;
            }
            start = end;
        }
    };
    let pages = [(1, &node.deferred), (2, &node.early_free), (3, &node.pg_reserved)];
    for (kind, list) in pages {
        list.iter().for_each(|p| add(kind, bytes_of(p, page_bytes)));
    }
    for run in view.placement.memmap.iter() {
        add(4, PhysRange::new(run.start, run.end));
    }
    let cell = |(index, cell): (usize, &[u64; 5])| {
        let start = window.start + index as u64 * cell_bytes;
        // The node may begin or end within a cell.
        let inside = PhysRange::new(start, start + cell_bytes).intersect(span);
        sign(cell, inside.map_or(0, PhysRange::bytes))
    };
    weights.iter().enumerate().map(cell).collect()
}

fn sign(bytes: &[u64; 5], cell_bytes: u64) -> char {
    let mut bytes = *bytes;
    // The memmap's own pages are among the reserved ones.
    bytes[3] = bytes[3].saturating_sub(bytes[4]);
    let known: u64 = bytes[1..].iter().sum();
    bytes[0] = cell_bytes.saturating_sub(known);
    let weight = |kind: &usize| bytes[*kind].saturating_mul(WEIGHTS[*kind]);
    let heaviest = (0..5).max_by_key(weight).unwrap_or(0);
    SIGNS[heaviest]
}

/// Zone names below the cell where they begin; of several in one cell the last.
fn zone_marks(view: &LayoutView, nid: Nid, base: u64, cell_bytes: u64) -> String {
    let mut out: Vec<char> = Vec::new();
    for zone in view.layout.zones.iter().filter(|z| z.nid == nid) {
        let start = zone.start_pfn.0.saturating_mul(view.layout.page_bytes);
        let at = (start.saturating_sub(base) / cell_bytes) as usize;
        out.truncate(at);
        out.resize(at, ' ');
        out.push('└');
        out.extend(super::name_of(&zone.zone).chars());
    }
    out.into_iter().collect()
}
