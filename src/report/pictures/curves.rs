//! Time and bandwidth over threads: [`Curves`], drawn from sweeps, comparisons,
//! calibrations and validations.
//!
//! Every line says how its points came about; published points stand beside predictions
//! without a line. What is left out is said in the notes.

use super::series;
use crate::record::any::AnyRecord;
use crate::report::sheet::{Cell, Sheet};
use crate::report::source::Source;
use crate::units::{three_digits, time};

/// Lines of one picture at most; more cannot be told apart.
pub const MOST_LINES: usize = 12;

/// Points of one line at most.
pub const MOST_POINTS: usize = 100;

/// One picture: panels over the same threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Curves {
    /// What is shown.
    pub title: String,
    /// One above the other.
    pub panels: Vec<Panel>,
    /// How to read it, and what was left out.
    pub notes: Vec<String>,
}

/// One pair of axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// What the lines show.
    pub title: String,
    /// The unit of the vertical axis.
    pub unit: Unit,
    /// The lines; those of several panels with the same name look the same.
    pub lines: Vec<Line>,
}

/// The unit of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Nanoseconds per struct page.
    NsPerPage,
    /// Bytes per ns, which is GB/s.
    GbPerS,
}

/// One line, or points alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// What varies between lines.
    pub name: String,
    /// How the points came about.
    pub how: How,
    /// Ascending in threads.
    pub points: Vec<CurvePoint>,
}

/// Draws the lines of one kind of record out of all.
type Kind = fn(&[&Source]) -> Option<Curves>;

/// How points came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum How {
    /// Read from a clock.
    Measured,
    /// Measured and multiplied up.
    Scaled,
    /// Computed.
    Modelled,
    /// Somebody else's.
    Published,
}

/// One point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// Threads per node.
    pub threads: u32,
    /// The value, in the panel's unit.
    pub value: f64,
    /// Whether more threads pay no longer from here on.
    pub is_knee: bool,
}

impl How {
    /// For people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Scaled => "scaled",
            Self::Modelled => "modelled",
            Self::Published => "published",
        }
    }
}

impl Unit {
    /// A value with its unit.
    pub fn shown(self, value: f64) -> String {
        match self {
            Self::Ns => time(value),
            Self::NsPerPage => format!("{} ns per struct page", three_digits(value)),
            Self::GbPerS => format!("{} GB/s", three_digits(value)),
        }
    }

    /// The title of an axis.
    pub const fn axis(self) -> &'static str {
        match self {
            Self::Ns => "time",
            Self::NsPerPage => "ns per struct page",
            Self::GbPerS => "GB/s",
        }
    }

    /// The name of a column: its last word is the unit.
    const fn column(self) -> &'static str {
        match self {
            Self::Ns => "time_ns",
            Self::NsPerPage => "per_page_ns",
            Self::GbPerS => "gb_per_s",
        }
    }
}

impl CurvePoint {
    /// What it says when pointed at.
    pub fn says(&self, line: &Line, unit: Unit) -> String {
        let plural = if self.threads == 1 { "" } else { "s" };
        let knee = if self.is_knee { "; knee: more threads add under 5 %" } else { "" };
        format!(
            "{} ({}), {} thread{plural} per node: {}{knee}",
            line.name,
            line.how.name(),
            self.threads,
            unit.shown(self.value)
        )
    }
}

impl Curves {
    /// The pictures of some records, one for each kind; none for kinds without threads.
    pub fn of(sources: &[&Source]) -> Vec<Self> {
        let kinds: [Kind; 5] = [
            series::sweeps,
            series::comparisons,
            series::calibrations,
            series::stores,
            series::validations,
        ];
        kinds.into_iter().filter_map(|kind| kind(sources)).filter_map(Self::tidy).collect()
    }

    /// Whether a record has points over threads at all.
    pub const fn suits(record: &AnyRecord) -> bool {
        !matches!(record, AnyRecord::Estimate(_) | AnyRecord::Lab(_))
    }

    /// Whether any line has several points.
    pub fn has_lines(&self) -> bool {
        let lines = self.panels.iter().flat_map(|panel| &panel.lines);
        lines.into_iter().any(|line| line.points.len() > 1)
    }

    /// Drops what cannot be drawn, cuts what is too much, and says so.
    fn tidy(mut self) -> Option<Self> {
        let mut dropped = 0;
        for line in self.panels.iter_mut().flat_map(|panel| &mut panel.lines) {
            let before = line.points.len();
            line.points.retain(|p| p.value.is_finite() && (0.0..=1e21).contains(&p.value));
            dropped += before - line.points.len();
            line.points.sort_by_key(|p| p.threads);
        }
        if dropped > 0 {
            self.notes.push(format!("{dropped} points have no value that can be drawn"));
        }
        for panel in &mut self.panels {
            panel.lines.retain(|line| !line.points.is_empty());
        }
        self.few_lines();
        self.few_points();
        self.panels.retain(|panel| !panel.lines.is_empty());
        (!self.panels.is_empty()).then_some(self)
    }

    /// Keeps the best lines of the first panel, and the same in the others: those with
    /// the least time or the highest rate.
    fn few_lines(&mut self) {
        let Some(first) = self.panels.first() else { return };
        // Published points stay with the predictions of the same name.
        let least = |line: &Line| {
            let same = first.lines.iter().filter(|other| other.name == line.name);
            let best = match first.unit {
                Unit::GbPerS => |line: &Line| -highest(line),
                Unit::Ns | Unit::NsPerPage => lowest,
            };
            same.map(best).fold(f64::INFINITY, f64::min)
        };
        let mut ranked: Vec<(f64, usize)> = first.lines.iter().map(least).zip(0..).collect();
        if ranked.len() <= MOST_LINES {
            return;
        }
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        ranked.truncate(MOST_LINES);
        let kept: Vec<(String, How)> = ranked
            .iter()
            .filter_map(|(_, at)| first.lines.get(*at))
            .map(|line| (line.name.clone(), line.how))
            .collect();
        self.notes.push(format!(
            "the best {MOST_LINES} of {} lines; the tables and --as csv have all",
            first.lines.len()
        ));
        for panel in &mut self.panels {
            panel.lines.retain(|l| kept.iter().any(|(name, how)| *name == l.name && *how == l.how));
        }
    }

    /// Evenly spaced points where a line has too many; ends, knee and the least stay.
    fn few_points(&mut self) {
        let mut most = 0;
        for line in self.panels.iter_mut().flat_map(|panel| &mut panel.lines) {
            let count = line.points.len();
            if count <= MOST_POINTS {
                continue;
            }
            most = most.max(count);
            let least = lowest(line);
            let step = count.div_ceil(MOST_POINTS);
            let mut at = 0;
            line.points.retain(|p| {
                let keep = at % step == 0 || at + 1 == count || p.is_knee || p.value == least;
                at += 1;
                keep
            });
        }
        if most > 0 {
            self.notes.push(format!(
                "lines of up to {most} points are drawn with about {MOST_POINTS}, evenly spaced; \
                 knees and least values are kept"
            ));
        }
    }

    /// Every drawn point as a row, a table for each panel.
    pub fn sheets(&self) -> Vec<Sheet> {
        self.panels.iter().map(|panel| panel.sheet(&self.title)).collect()
    }
}

impl Panel {
    fn sheet(&self, title: &str) -> Sheet {
        let columns = [
            ("line", "line"),
            ("label", "label"),
            ("knee", "knee"),
            ("threads per node", "threads"),
            (self.unit.axis(), self.unit.column()),
        ];
        let mut sheet = Sheet::new(&format!("Drawn: {title}, {}", self.title), &columns, 3);
        let rows = self.lines.iter().flat_map(|line| line.points.iter().map(move |p| (line, p)));
        let row = |(line, point): (&Line, &CurvePoint)| {
            vec![
                Cell::Text(line.name.clone()),
                line.how.name().into(),
                if point.is_knee { "knee".into() } else { Cell::Empty },
                Cell::number(f64::from(point.threads), point.threads.to_string()),
                Cell::number(point.value, self.unit.shown(point.value)),
            ]
        };
        sheet.rows = rows.map(row).collect();
        sheet
    }
}

/// The largest value of a line.
fn highest(line: &Line) -> f64 {
    line.points.iter().map(|p| p.value).fold(f64::NEG_INFINITY, f64::max)
}

/// The least value of a line.
fn lowest(line: &Line) -> f64 {
    line.points.iter().map(|p| p.value).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: String, values: impl Iterator<Item = f64>) -> Line {
        let points = (1..).zip(values).map(|(threads, value)| CurvePoint {
            threads,
            value,
            is_knee: threads == 7,
        });
        Line { name, how: How::Modelled, points: points.collect() }
    }

    fn curves(lines: Vec<Line>) -> Curves {
        let panel = Panel { title: "p".into(), unit: Unit::Ns, lines };
        Curves { title: "t".into(), panels: vec![panel], notes: vec![] }
    }

    #[test]
    fn a_long_line_keeps_its_ends_its_knee_and_its_least_value() {
        let values = (0..10_000).map(|i| if i == 4321 { 1.0 } else { 5.0 });
        let tidy = curves(vec![line("a".into(), values)]).tidy().unwrap();
        let threads: Vec<u32> = tidy.panels[0].lines[0].points.iter().map(|p| p.threads).collect();
        assert!(threads.len() <= MOST_POINTS + 3 && threads.is_sorted());
        assert!([1, 7, 4322, 10_000].iter().all(|t| threads.contains(t)), "{threads:?}");
        assert!(tidy.notes[0].contains("10000 points"), "{:?}", tidy.notes);
    }

    #[test]
    fn of_many_lines_the_best_stay_and_this_is_said() {
        let lines = (0..30).map(|i| line(format!("l{i}"), [f64::from(100 - i)].into_iter()));
        let tidy = curves(lines.collect()).tidy().unwrap();
        let names: Vec<&str> = tidy.panels[0].lines.iter().map(|l| &*l.name).collect();
        assert_eq!((names.len(), names[0], names[11]), (MOST_LINES, "l18", "l29"));
        assert!(tidy.notes[0].starts_with("the best 12 of 30 lines"), "{:?}", tidy.notes);
    }

    #[test]
    fn what_is_no_number_is_dropped_and_counted() {
        let values = [1.0, f64::NAN, f64::INFINITY, -1.0].into_iter();
        let tidy = curves(vec![line("a".into(), values)]).tidy().unwrap();
        assert_eq!(tidy.panels[0].lines[0].points.len(), 1);
        assert!(tidy.notes[0].starts_with("3 points"), "{:?}", tidy.notes);
        assert_eq!(curves(vec![line("a".into(), [f64::NAN].into_iter())]).tidy(), None);
    }
}
