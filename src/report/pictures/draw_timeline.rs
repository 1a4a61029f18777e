//! Timelines as SVG: one above the other on one time axis.

use super::svg::{Canvas, Place, STYLES, Set, fit, number, text_width, ticks};
use super::timeline::{Lane, Timeline};
use crate::units::time;
use std::fmt::Write;

/// What the picture measures, in pixels.
const WIDTH: f64 = 960.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 30.0;
const LANE: f64 = 16.0;
const BAR: f64 = 12.0;

/// Lanes of all timelines of one picture at most.
const MOST_LANES: usize = 64;

/// The timelines as they are drawn: few enough lanes, and no bar too narrow to be seen.
pub(super) fn drawable(timelines: Vec<Timeline>) -> Vec<Timeline> {
    let end_ns = end_of(&timelines);
    let least_ns = end_ns / (WIDTH - LEFT - RIGHT) / 2.0;
    let most = (MOST_LANES / timelines.len().max(1)).max(2);
    timelines.into_iter().map(|t| t.few_lanes(most).thin(least_ns)).collect()
}

fn end_of(timelines: &[Timeline]) -> f64 {
    timelines.iter().map(Timeline::end_ns).fold(0.0, f64::max)
}

/// Draws timelines that are [`drawable`].
pub(super) fn draw(timelines: &[Timeline], place: Place, remarks: &[String]) -> String {
    let mut canvas = Canvas::new(place, WIDTH);
    let scale = Scale::new(end_of(timelines));
    let phases = phases(timelines);
    let title = title(timelines);
    canvas.text(10.0, 22.0, &fit(&title, WIDTH - 20.0, 15.0), Set { class: "title", anchor: "" });
    let mut y = legend(&mut canvas, &phases, 42.0);
    let common = common_notes(timelines);
    let notes = own_notes(timelines, &common);
    let height: f64 = timelines.iter().zip(&notes).map(|(t, n)| panel_height(t, n)).sum();
    scale.axis(&mut canvas, y, height);
    for (timeline, notes) in timelines.iter().zip(&notes) {
        panel(&mut canvas, timeline, &scale, &phases, notes, y);
        y += panel_height(timeline, notes);
    }
    y = canvas.notes(y + 34.0, &common);
    y = canvas.notes(y, remarks);
    canvas.finish(y + 12.0, &title, &description(timelines))
}

/// From ns to pixels.
struct Scale {
    end_ns: f64,
}

impl Scale {
    fn new(end_ns: f64) -> Self {
        Self { end_ns: if end_ns > 0.0 { end_ns } else { 1.0 } }
    }

    fn x(&self, ns: f64) -> f64 {
        LEFT + (ns / self.end_ns).clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }

    /// Lines behind the bars, and times below them.
    fn axis(&self, canvas: &mut Canvas, top: f64, height: f64) {
        let bottom = top + height;
        for tick in ticks(self.end_ns, 8) {
            let x = self.x(tick);
            canvas.line((x, top), (x, bottom), "grid");
            let text = if tick == 0.0 { "0".into() } else { round_time(tick) };
            let set = Set { class: "small faint", anchor: "middle" };
            canvas.text(x, bottom + 14.0, &text, set);
        }
        canvas.line((LEFT, bottom), (WIDTH - RIGHT, bottom), "axis");
        let set = Set { class: "small faint", anchor: "middle" };
        let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
        canvas.text(middle, bottom + 29.0, "time since the first phase began", set);
    }
}

/// A tick's time without zeros behind the point.
pub(super) fn round_time(ns: f64) -> String {
    let text = time(ns);
    let Some((number, unit)) = text.split_once(' ') else { return text };
    let number = if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    };
    format!("{number} {unit}")
}

/// The phases in order of appearance; their place is their style.
fn phases(timelines: &[Timeline]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for (_, bar) in timelines.iter().flat_map(Timeline::bars) {
        if !out.contains(&bar.phase) {
            out.push(bar.phase.clone());
        }
    }
    out
}

fn title(timelines: &[Timeline]) -> String {
    match timelines {
        [one] => format!("Boot timeline ({}): {}", one.label, one.title),
        many => {
            let mut labels: Vec<&str> = many.iter().map(|t| t.label).collect();
            labels.sort_unstable();
            labels.dedup();
            format!("Boot timelines ({}), one time axis", labels.join(", "))
        }
    }
}

fn description(timelines: &[Timeline]) -> String {
    let mut out = String::new();
    for t in timelines {
        let (lanes, end) = (t.lanes.len(), time(t.end_ns()));
        let _ = write!(out, "{}, {}: {lanes} executors, ends after {end}. ", t.title, t.label);
    }
    out
}

/// Patches and names; returns where the next row may begin.
fn legend(canvas: &mut Canvas, phases: &[String], top: f64) -> f64 {
    let (mut x, mut y) = (10.0, top);
    for (style, phase) in phases.iter().enumerate().take(STYLES * 2) {
        let name = fit(phase, 300.0, 12.0);
        let width = 22.0 + text_width(&name, 12.0) + 16.0;
        if x + width > canvas.width() && x > 10.0 {
            x = 10.0;
            y += 18.0;
        }
        canvas.legend_patch((x, y - 10.0), style);
        canvas.text(x + 20.0, y, &name, Set::default());
        x += width;
    }
    y + 12.0
}

/// What is true of all timelines is said once, below them.
fn common_notes(timelines: &[Timeline]) -> Vec<String> {
    let (first, rest) = match timelines {
        [first, rest @ ..] => (first, rest),
        [] => return Vec::new(),
    };
    let is_common = |note: &&String| rest.iter().all(|t| t.notes.contains(note));
    first.notes.iter().filter(is_common).cloned().collect()
}

/// What is said below each timeline; what is true of the next one of the same record as
/// well is said there.
fn own_notes<'t>(timelines: &'t [Timeline], common: &[String]) -> Vec<Vec<&'t str>> {
    let next = timelines.iter().skip(1).map(Some).chain(std::iter::once(None));
    let own = |(timeline, next): (&'t Timeline, Option<&Timeline>)| {
        let next = next.filter(|next| next.source == timeline.source);
        let is_later = |note: &String| next.is_some_and(|next| next.notes.contains(note));
        let notes = timeline.notes.iter();
        notes.filter(|n| !common.contains(n) && !is_later(n)).map(String::as_str).collect()
    };
    timelines.iter().zip(next).map(own).collect()
}

fn panel_height(timeline: &Timeline, notes: &[&str]) -> f64 {
    24.0 + timeline.lanes.len() as f64 * LANE + 16.0 * notes.len() as f64 + 10.0
}

/// One timeline.
fn panel(
    canvas: &mut Canvas,
    timeline: &Timeline,
    scale: &Scale,
    phases: &[String],
    notes: &[&str],
    top: f64,
) {
    let head = format!("{} ({}) · {}", timeline.title, timeline.label, timeline.source);
    let head = fit(&head, WIDTH - 20.0, 12.0);
    canvas.text(10.0, top + 16.0, &head, Set { class: "head", anchor: "" });
    let mut y = top + 24.0;
    for lane in &timeline.lanes {
        draw_lane(canvas, lane, scale, phases, y);
        y += LANE;
    }
    for note in notes {
        y += 16.0;
        let note = fit(note, WIDTH - LEFT - RIGHT, 11.0);
        canvas.text(LEFT, y - 4.0, &note, Set { class: "small faint", anchor: "" });
    }
}

fn draw_lane(canvas: &mut Canvas, lane: &Lane, scale: &Scale, phases: &[String], top: f64) {
    let name = fit(&lane.who.name(), LEFT - 20.0, 11.0);
    canvas.text(LEFT - 8.0, top + 10.5, &name, Set { class: "small", anchor: "end" });
    for bar in &lane.bars {
        let (x, end) = (scale.x(bar.start_ns), scale.x(bar.end_ns));
        let width = (end - x).max(0.8);
        let style = phases.iter().position(|phase| *phase == bar.phase).unwrap_or(0);
        canvas.bar((x, top), (width, BAR), style, &bar.says(lane.who));
        let took = time(bar.end_ns - bar.start_ns);
        if width > text_width(&took, 11.0) + 12.0 {
            canvas.raw(&format!(
                "<text x=\"{}\" y=\"{}\" class=\"in\" text-anchor=\"middle\">{took}</text>",
                number(x + width / 2.0),
                number(top + 10.0)
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::pictures::timeline::{Bar, Who};
    use proptest::prelude::*;

    fn timeline(spans: &[(f64, f64)], name: &str) -> Timeline {
        let bars = spans.iter().map(|&(start_ns, end_ns)| Bar {
            phase: name.into(),
            nid: None,
            start_ns,
            end_ns,
            pages: u64::MAX,
            bytes: u64::MAX,
            bars: 1,
        });
        Timeline {
            title: name.into(),
            source: name.into(),
            strategy: name.into(),
            label: "modelled",
            notes: vec![],
            lanes: vec![Lane { who: Who::BootCpu, bars: bars.collect() }],
        }
    }

    #[test]
    fn thousands_of_bars_become_hundreds_and_the_picture_says_so() {
        let spans: Vec<(f64, f64)> =
            (0..20_000).map(|i| (f64::from(i), f64::from(i) + 0.9)).collect();
        let svg = draw(&drawable(vec![timeline(&spans, "p")]), Place::File, &[]);
        let bars = svg.matches("<title>").count();
        assert!((400..2000).contains(&bars), "{bars}");
        assert!(svg.contains("20000 bars drawn as"), "said");
        assert!(svg.len() < 500_000, "{}", svg.len());
    }

    #[test]
    fn ticks_have_no_idle_zeros() {
        assert_eq!(round_time(2e8), "200 ms");
        assert_eq!(round_time(5e8), "500 ms");
        assert_eq!(round_time(1e9), "1 s");
        assert_eq!(round_time(1.5e9), "1.5 s");
    }

    proptest! {
        #[test]
        fn any_times_can_be_drawn(
            spans in proptest::collection::vec((0f64..1e19, 0f64..1e19), 0..40),
            name in ".{0,20}",
        ) {
            let spans: Vec<(f64, f64)> = spans.iter().map(|(a, d)| (*a, a + d)).collect();
            let one = timeline(&spans, &name);
            let svg = draw(&drawable(vec![one.clone(), one]), Place::Page(1), &[]);
            prop_assert!(roxmltree::Document::parse(&svg).is_ok());
            prop_assert!(!svg.contains("NaN") && !svg.contains("inf\""));
        }
    }
}
