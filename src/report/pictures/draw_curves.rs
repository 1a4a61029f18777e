//! Curves as SVG: `plotters` draws axes, ticks and grid; lines and markers are added at
//! the places that it maps points to, so that each can be focused and read.

use super::curves::{CurvePoint, Curves, How, Line, Panel, Unit};
use super::draw_timeline::round_time;
use super::svg::{Canvas, Place, Set, fit, number, text_width, ticks};
use crate::units::three_digits;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::prelude::{ChartBuilder, IntoDrawingArea, RGBColor, SVGBackend, TRANSPARENT};
use std::fmt::Write;
use std::ops::Range;

const WIDTH: u32 = 960;
const PANEL_HEIGHT: u32 = 300;

/// From this ratio of largest to smallest value on, the vertical axis is logarithmic.
const LOGARITHMIC_FROM: f64 = 30.0;

/// Axes and grid in greys that the page's style sheet replaces in the dark.
const AXIS: RGBColor = RGBColor(0x55, 0x5c, 0x64);
const GRID: RGBColor = RGBColor(0xdd, 0xe1, 0xe6);

/// Draws the panels one above the other.
pub(super) fn draw(curves: &Curves, place: Place, remarks: &[String]) -> String {
    let mut canvas = Canvas::new(place, f64::from(WIDTH));
    let names = names(curves);
    let title = format!("{} ({})", curves.title, labels(curves));
    let room = f64::from(WIDTH) - 20.0;
    canvas.text(10.0, 22.0, &fit(&title, room, 15.0), Set { class: "title", anchor: "" });
    let mut y = legend(&mut canvas, curves, &names, 44.0);
    for panel in &curves.panels {
        let head = fit(&panel.title, room, 12.0);
        canvas.text(10.0, y + 16.0, &head, Set { class: "head", anchor: "" });
        draw_panel(&mut canvas, panel, &names, y + 22.0);
        y += 22.0 + f64::from(PANEL_HEIGHT);
    }
    y = canvas.notes(y, &curves.notes);
    y = canvas.notes(y, remarks);
    canvas.finish(y + 12.0, &title, &description(curves))
}

/// The names of all lines; a name's place is its style in every panel.
fn names(curves: &Curves) -> Vec<&str> {
    let mut out: Vec<&str> = Vec::new();
    for line in curves.panels.iter().flat_map(|panel| &panel.lines) {
        if !out.contains(&&*line.name) {
            out.push(&line.name);
        }
    }
    out
}

fn hows(curves: &Curves) -> Vec<How> {
    let lines = curves.panels.iter().flat_map(|panel| &panel.lines);
    let mut hows: Vec<How> = lines.map(|line| line.how).collect();
    hows.sort_unstable();
    hows.dedup();
    hows
}

fn labels(curves: &Curves) -> String {
    hows(curves).iter().map(|how| how.name()).collect::<Vec<_>>().join(" and ")
}

fn description(curves: &Curves) -> String {
    let mut out = String::new();
    for panel in &curves.panels {
        let _ =
            write!(out, "{}: {} lines over threads per node. ", panel.title, { panel.lines.len() });
    }
    out + &curves.notes.join(". ")
}

/// How a line of this kind is drawn: the classes of its stroke and its markers.
const fn classes(how: How) -> (&'static str, &'static str) {
    match how {
        How::Measured => ("curve", "full"),
        How::Scaled => ("curve dotted", "full"),
        How::Modelled => ("curve dashed", "hollow"),
        How::Published => ("", "cross"),
    }
}

/// The style of a line: its name's place.
fn style_of(names: &[&str], line: &Line) -> usize {
    names.iter().position(|name| *name == line.name).unwrap_or(0)
}

/// One entry per line and label; returns where the panels may begin.
fn legend(canvas: &mut Canvas, curves: &Curves, names: &[&str], top: f64) -> f64 {
    let mut seen: Vec<(usize, How)> = Vec::new();
    let (mut x, mut y) = (10.0, top);
    for line in curves.panels.iter().flat_map(|panel| &panel.lines) {
        let style = style_of(names, line);
        if seen.contains(&(style, line.how)) {
            continue;
        }
        seen.push((style, line.how));
        let text = fit(&format!("{} ({})", line.name, line.how.name()), 420.0, 12.0);
        let width = 42.0 + text_width(&text, 12.0) + 12.0;
        if x + width > canvas.width() && x > 10.0 {
            x = 10.0;
            y += 18.0;
        }
        entry(canvas, (x, y), style, line.how, &text);
        x += width;
    }
    let has_knee = curves.panels.iter().flat_map(|p| &p.lines).any(has_knee);
    if has_knee {
        y += 18.0;
        knee_ring(canvas, (24.0, y - 4.0));
        canvas.text(42.0, y, "knee: more threads add under 5 %", Set::default());
    }
    y + 10.0
}

fn has_knee(line: &Line) -> bool {
    line.points.iter().any(|p| p.is_knee)
}

fn entry(canvas: &mut Canvas, (x, y): (f64, f64), style: usize, how: How, text: &str) {
    let (stroke, marker) = classes(how);
    let at = y - 4.0;
    if !stroke.is_empty() {
        let class = format!("s{} {stroke}", style % super::svg::STYLES);
        canvas.line((x, at), (x + 28.0, at), &class);
    }
    canvas.legend_marker((x + 14.0, at), style, marker);
    canvas.text(x + 36.0, y, text, Set::default());
}

fn knee_ring(canvas: &mut Canvas, (x, y): (f64, f64)) {
    let (x, y) = (number(x), number(y));
    canvas.raw(&format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"8.5\" class=\"knee\"/>"));
}

/// The vertical axis: values, or their logarithms.
#[derive(Clone, Copy)]
struct Vertical {
    unit: Unit,
    is_log: bool,
    low: f64,
    high: f64,
}

impl Vertical {
    fn of(panel: &Panel) -> Self {
        let values = || panel.lines.iter().flat_map(|l| &l.points).map(|p| p.value);
        let most = values().fold(0.0, f64::max).max(1e-6);
        let least = values().filter(|v| *v > 0.0).fold(most, f64::min).max(1e-6);
        let is_log = most / least > LOGARITHMIC_FROM;
        let (low, high) = match is_log {
            true => (least.log10() - 0.1, most.log10() + 0.1),
            false => (0.0, most * 1.08),
        };
        Self { unit: panel.unit, is_log, low, high }
    }

    fn place(&self, value: f64) -> f64 {
        match self.is_log {
            true => value.max(1e-6).log10().max(self.low),
            false => value,
        }
    }

    fn label(&self, place: f64) -> String {
        let value = if self.is_log { 10f64.powf(place) } else { place };
        match self.unit {
            _ if value == 0.0 => "0".into(),
            Unit::Ns => round_time(value),
            Unit::NsPerPage | Unit::GbPerS => three_digits(value),
        }
    }

    /// Where the axis has ticks: at round values.
    fn ticks(&self) -> Vec<f64> {
        if !self.is_log {
            return ticks(self.high, 6);
        }
        let decades = self.high - self.low;
        let powers = (self.low.floor() as i32)..=(self.high.ceil() as i32);
        let steps: &[f64] = if decades > 5.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let all =
            powers.flat_map(|power| steps.iter().map(move |step| step.log10() + f64::from(power)));
        all.filter(|place| (self.low..=self.high).contains(place)).collect()
    }

    fn title(&self) -> String {
        let scale = if self.is_log { ", logarithmic" } else { "" };
        format!("{}{scale}", self.unit.axis())
    }
}

/// A linear axis with ticks at chosen places.
#[derive(Clone)]
struct Ticked {
    range: Range<f64>,
    ticks: Vec<f64>,
}

impl Ranged for Ticked {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let span = self.range.end - self.range.start;
        let share = if span > 0.0 { (value - self.range.start) / span } else { 0.5 };
        let pixels = f64::from(limit.1) - f64::from(limit.0);
        (f64::from(limit.0) + share.clamp(0.0, 1.0) * pixels).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // Light lines between the ticks would only distract.
        if hint.weight().allow_light_points() { Vec::new() } else { self.ticks.clone() }
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

/// Threads are drawn by their logarithm: doublings lie equally far apart.
fn across(point: &CurvePoint) -> f64 {
    f64::from(point.threads.max(1)).log2()
}

fn threads_label(place: &f64) -> String {
    format!("{:.0}", place.exp2())
}

/// Where the horizontal axis has ticks: at the thread counts that there are, as far as
/// they are not too near each other.
fn threads_ticks(panel: &Panel, span: f64) -> Vec<f64> {
    let mut all: Vec<f64> = panel.lines.iter().flat_map(|line| &line.points).map(across).collect();
    all.sort_by(f64::total_cmp);
    let mut out: Vec<f64> = Vec::new();
    for place in all {
        if out.last().is_none_or(|last| place - last > span * 0.04) {
            out.push(place);
        }
    }
    out
}

fn draw_panel(canvas: &mut Canvas, panel: &Panel, names: &[&str], top: f64) {
    let vertical = Vertical::of(panel);
    let points = || panel.lines.iter().flat_map(|line| &line.points);
    let first = points().map(across).fold(f64::INFINITY, f64::min);
    let last = points().map(across).fold(0.0, f64::max);
    if !first.is_finite() {
        return;
    }
    let mut markup = String::new();
    // Drawing into a string fails for no valid axes; a panel without axes is left out.
    let Ok(places) = axes(&mut markup, panel, vertical, (first - 0.3)..(last + 0.3)) else {
        return;
    };
    canvas.raw(&format!("<g class=\"axes\" transform=\"translate(0 {})\">", number(top)));
    canvas.raw(inner(&markup));
    canvas.raw("</g>");
    let place = |(x, y): (i32, i32)| (f64::from(x), top + f64::from(y));
    for (line, places) in panel.lines.iter().zip(&places) {
        let places: Vec<(f64, f64)> = places.iter().copied().map(place).collect();
        draw_line(canvas, line, panel.unit, style_of(names, line), &places);
    }
}

/// Where a line's points lie, in pixels of the panel.
type Places = Vec<(i32, i32)>;

/// Draws axes and grid, and returns where every line's points lie.
fn axes(
    markup: &mut String,
    panel: &Panel,
    vertical: Vertical,
    threads: Range<f64>,
) -> Result<Vec<Places>, Box<dyn std::error::Error>> {
    let marked = threads_ticks(panel, threads.end - threads.start);
    let across_axis = Ticked { range: threads, ticks: marked };
    let upward_axis = Ticked { range: vertical.low..vertical.high, ticks: vertical.ticks() };
    let root = SVGBackend::with_string(markup, (WIDTH, PANEL_HEIGHT)).into_drawing_area();
    let mut chart = ChartBuilder::on(&root)
        .margin_top(6)
        .margin_right(20)
        .margin_left(14)
        .x_label_area_size(38)
        .y_label_area_size(76)
        .build_cartesian_2d(across_axis, upward_axis)?;
    chart
        .configure_mesh()
        .x_label_formatter(&threads_label)
        .y_label_formatter(&|place| vertical.label(*place))
        .x_desc("threads per node")
        .y_desc(vertical.title())
        .axis_style(AXIS)
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .label_style(("sans-serif", 12))
        .axis_desc_style(("sans-serif", 12))
        .draw()?;
    let at = |p: &CurvePoint| chart.backend_coord(&(across(p), vertical.place(p.value)));
    let places = panel.lines.iter().map(|line| line.points.iter().map(at).collect()).collect();
    root.present()?;
    Ok(places)
}

/// What stands inside the outermost element.
fn inner(svg: &str) -> &str {
    let from = svg.find("<svg").and_then(|at| svg[at..].find('>').map(|end| at + end + 1));
    let to = svg.rfind("</svg>");
    match (from, to) {
        (Some(from), Some(to)) if from <= to => svg[from..to].trim(),
        _ => "",
    }
}

fn draw_line(canvas: &mut Canvas, line: &Line, unit: Unit, style: usize, places: &[(f64, f64)]) {
    let (stroke, marker) = classes(line.how);
    if !stroke.is_empty() && places.len() > 1 {
        let texts: Vec<String> =
            places.iter().map(|(x, y)| format!("{} {}", number(*x), number(*y))).collect();
        let path = texts.join("L");
        let style = style % super::svg::STYLES;
        canvas.raw(&format!("<path d=\"M{path}\" class=\"s{style} {stroke}\"/>"));
    }
    for (point, place) in line.points.iter().zip(places) {
        if point.is_knee {
            knee_ring(canvas, *place);
        }
        canvas.marker(*place, style, marker, &point.says(line, unit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn curves(points: &[(u32, f64)], how: How) -> Curves {
        let points = points.iter().map(|&(threads, value)| CurvePoint {
            threads,
            value,
            is_knee: threads % 3 == 1,
        });
        let line = Line { name: "a < b".into(), how, points: points.collect() };
        let panel = Panel { title: "p & q".into(), unit: Unit::Ns, lines: vec![line] };
        Curves { title: "t".into(), panels: vec![panel], notes: vec!["n".into()] }
    }

    #[test]
    fn measured_and_modelled_differ_in_line_marker_and_words() {
        let points = [(1, 5.0), (2, 3.0)];
        let [measured, modelled] =
            [How::Measured, How::Modelled].map(|how| draw(&curves(&points, how), Place::File, &[]));
        assert!(measured.contains("class=\"s0 curve\"") && measured.contains("full"));
        assert!(modelled.contains("class=\"s0 curve dashed\"") && modelled.contains("hollow"));
        assert!(measured.contains("a &lt; b (measured)"), "{measured}");
        assert!(modelled.contains("a &lt; b (modelled), 2 threads per node: 3.00 ns"));
    }

    #[test]
    fn thread_counts_have_ticks_unless_they_are_too_near() {
        let points = [(1, 5.0), (2, 4.0), (52, 3.0), (53, 3.0)];
        let svg = draw(&curves(&points, How::Modelled), Place::File, &[]);
        for (threads, is_there) in [(1, true), (2, true), (52, true), (53, false), (16, false)] {
            assert_eq!(svg.contains(&format!("\n{threads}\n")), is_there, "{threads} in {svg}");
        }
        assert!(svg.contains("threads per node"));
    }

    proptest! {
        #[test]
        fn any_points_can_be_drawn(
            points in proptest::collection::vec((any::<u32>(), 0f64..1e21), 1..30),
        ) {
            let svg = draw(&curves(&points, How::Scaled), Place::Page(1), &[]);
            prop_assert!(roxmltree::Document::parse(&svg).is_ok(), "{}", svg);
        }
    }
}
