//! Physical memory as SVG: a strip for every node, all on one scale.

use super::memory::{Memory, Piece, Strip, What};
use super::svg::{Canvas, Place, Set, fit, text_width};
use crate::units::Bytes;
use std::fmt::Write;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 130.0;
const RIGHT: f64 = 30.0;
const STRIP: f64 = 74.0;

/// The picture's pieces: none too narrow to be seen.
pub(super) fn drawable(memory: Memory) -> Memory {
    let least = memory.longest() as f64 / (WIDTH - LEFT - RIGHT) / 2.0;
    memory.thin(least as u64)
}

/// Draws memory that is [`drawable`].
pub(super) fn draw(memory: &Memory, place: Place, remarks: &[String]) -> String {
    let mut canvas = Canvas::new(place, WIDTH);
    let title = format!("{} (modelled)", memory.title);
    canvas.text(10.0, 22.0, &fit(&title, WIDTH - 20.0, 15.0), Set { class: "title", anchor: "" });
    legend(&mut canvas, 42.0);
    let scale = memory.longest() as f64;
    let mut y = 58.0;
    for strip in &memory.strips {
        draw_strip(&mut canvas, strip, scale, y);
        y += STRIP;
    }
    axis(&mut canvas, scale, y);
    y = canvas.notes(y + 34.0, &memory.notes);
    y = canvas.notes(y, remarks);
    canvas.finish(y + 12.0, &title, &description(memory))
}

fn description(memory: &Memory) -> String {
    let mut out = format!("{} nodes. ", memory.strips.len());
    for strip in &memory.strips {
        let size = Bytes(strip.end.saturating_sub(strip.start));
        let _ = write!(out, "Node {}: {size} from {:#x}. ", strip.nid, strip.start);
    }
    out
}

const fn style(what: What) -> usize {
    match what {
        What::Early => 1,
        What::Deferred => 0,
        What::Memmap => 3,
        What::Zone => 7,
    }
}

fn legend(canvas: &mut Canvas, y: f64) {
    let mut x = 10.0;
    for what in [What::Early, What::Deferred, What::Memmap] {
        canvas.legend_patch((x, y - 10.0), style(what));
        canvas.text(x + 20.0, y, what.name(), Set::default());
        x += 20.0 + text_width(what.name(), 12.0) + 30.0;
    }
    canvas.line((x, y - 10.0), (x, y + 2.0), "edge");
    canvas.text(x + 8.0, y, "first_deferred_pfn", Set::default());
}

fn axis(canvas: &mut Canvas, scale: f64, y: f64) {
    canvas.line((LEFT, y), (WIDTH - RIGHT, y), "axis");
    let unit = step_of(scale);
    for tick in (0..=16).map(|i| f64::from(i) * unit).take_while(|tick| *tick <= scale) {
        let x = LEFT + tick / scale * (WIDTH - LEFT - RIGHT);
        canvas.line((x, y), (x, y + 4.0), "axis");
        let text = Bytes(tick as u64).to_string();
        canvas.text(x, y + 16.0, &text, Set { class: "small faint", anchor: "middle" });
    }
    let set = Set { class: "small faint", anchor: "middle" };
    let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
    canvas.text(middle, y + 30.0, "address from the node's first byte", set);
}

/// The power of two that divides the scale into 4 to 8 steps.
fn step_of(scale: f64) -> f64 {
    (scale.max(1.0) / 4.0).log2().floor().exp2()
}

fn draw_strip(canvas: &mut Canvas, strip: &Strip, scale: f64, top: f64) {
    let x_of = |byte: u64| {
        let from_start = byte.saturating_sub(strip.start) as f64;
        LEFT + (from_start / scale).clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    };
    let name = format!("node {}", strip.nid);
    let label = Set { class: "head", anchor: "end" };
    canvas.text(LEFT - 10.0, top + 18.0, &fit(&name, LEFT - 14.0, 12.0), label);
    let faint = Set { class: "small faint", anchor: "end" };
    canvas.text(LEFT - 10.0, top + 32.0, &format!("{:#x}", strip.start), faint);
    let whole = (x_of(strip.end) - LEFT).max(1.0);
    canvas.rect((LEFT, top + 6.0), (whole, 22.0), "class=\"none\"");
    for piece in &strip.pieces {
        draw_piece(canvas, piece, strip.nid, (x_of(piece.start), x_of(piece.end)), top);
    }
    if let Some((pfn, at)) = strip.first_deferred {
        let x = x_of(at);
        canvas.line((x, top), (x, top + 42.0), "edge");
        // Near the right end there is no room behind the line.
        let is_late = x > WIDTH - 160.0;
        let (x, anchor) = if is_late { (x - 5.0, "end") } else { (x + 5.0, "start") };
        let text = format!("pfn {pfn:#x}");
        canvas.text(x, top + 4.0, &text, Set { class: "small faint", anchor });
    }
}

fn draw_piece(canvas: &mut Canvas, piece: &Piece, nid: u32, (x, end): (f64, f64), top: f64) {
    let width = (end - x).max(1.0);
    let (y, height) = match piece.what {
        What::Early | What::Deferred => (top + 6.0, 22.0),
        What::Memmap => (top + 30.0, 9.0),
        What::Zone => (top + 43.0, 5.0),
    };
    canvas.bar((x, y), (width, height), style(piece.what), &piece.says(nid));
    if piece.what == What::Zone && width > text_width(&piece.name, 11.0) {
        let set = Set { class: "small faint", anchor: "" };
        canvas.text(x, y + 16.0, &piece.name, set);
    }
}
