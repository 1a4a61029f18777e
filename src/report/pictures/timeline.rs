//! Who did what when: [`Timeline`], drawn from records of `estimate` and `compare`.
//!
//! An estimate has a span for every worker. A comparison has the median of every phase
//! on the boot CPU and of every node's threads together; they are put one after another
//! in boot order. [`Timeline::few_lanes`] and [`Timeline::thin`] make one small enough to
//! be drawn, and say so in its notes.

use super::boots;
use crate::record::any::AnyRecord;
use crate::report::sheet::{Cell, Sheet};
use crate::report::source::Source;
use crate::units::{gb_per_s, grouped, three_digits, time};
use std::collections::BTreeMap;

/// Bytes of one struct page.
const STRUCT_PAGE_BYTES: u64 = 64;

/// One boot.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// Strategy, machine and kernel.
    pub title: String,
    /// The record's file, to tell timelines of several records apart.
    pub source: String,
    /// The strategy.
    pub strategy: String,
    /// `measured`, `scaled` or `modelled`.
    pub label: &'static str,
    /// How the times came about, and what was left out.
    pub notes: Vec<String>,
    /// Who works, the boot CPU first, then by node and worker.
    pub lanes: Vec<Lane>,
}

/// One executor.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    /// Who it is.
    pub who: Who,
    /// What it did, by start; bars of one lane do not overlap.
    pub bars: Vec<Bar>,
}

/// An executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// The CPU that boots.
    BootCpu,
    /// One worker of a node.
    Worker {
        /// The node.
        nid: u32,
        /// The worker on it.
        worker: u32,
    },
    /// All workers of a node together.
    Node {
        /// The node.
        nid: u32,
        /// How many there are; 0 when that is not known.
        workers: u32,
    },
}

/// One stretch of work.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// The phase.
    pub phase: String,
    /// The node whose struct pages these are; `None` for several.
    pub nid: Option<u32>,
    /// From the first phase's begin.
    pub start_ns: f64,
    /// From the first phase's begin.
    pub end_ns: f64,
    /// Struct pages.
    pub pages: u64,
    /// How many bars were merged into it.
    pub bars: u64,
}

impl Bar {
    /// What it says when pointed at.
    pub fn says(&self, who: Who) -> String {
        let took = self.end_ns - self.start_ns;
        let several =
            if self.bars > 1 { format!(" ({} pieces)", self.bars) } else { String::new() };
        let whose = match (who, self.nid) {
            (Who::BootCpu, Some(nid)) => format!(" of node {nid}"),
            _ => String::new(),
        };
        format!(
            "{}{whose}{several} on {}: {} to {}, takes {}; {} struct pages, {} GB/s",
            self.phase,
            who.name(),
            time(self.start_ns),
            time(self.end_ns),
            time(took),
            grouped(self.pages),
            three_digits(gb_per_s(self.bytes(), took)),
        )
    }

    /// The bytes of its struct pages.
    pub const fn bytes(&self) -> u64 {
        self.pages.saturating_mul(STRUCT_PAGE_BYTES)
    }
}

impl Who {
    /// For people.
    pub fn name(self) -> String {
        match self {
            Self::BootCpu => "boot CPU".into(),
            Self::Worker { nid, worker } => format!("node {nid}, worker {worker}"),
            Self::Node { nid, workers: 0 } => format!("node {nid}"),
            Self::Node { nid, workers: 1 } => format!("node {nid}, 1 worker"),
            Self::Node { nid, workers } => format!("node {nid}, {workers} workers"),
        }
    }
}

impl Timeline {
    /// The timelines of a record: one of an estimate, one per strategy of a comparison,
    /// none of others. An empty list of strategies means all of them.
    pub fn of(source: &Source, strategies: &[String]) -> Vec<Self> {
        let all = match &source.record {
            AnyRecord::Estimate(e) => vec![boots::estimated(&source.name, e)],
            AnyRecord::Compare(r) => {
                r.plans.iter().map(|p| boots::planned(&source.name, r, p)).collect()
            }
            _ => Vec::new(),
        };
        let wanted = |t: &Self| strategies.is_empty() || strategies.contains(&t.strategy);
        all.into_iter().filter(|t| !t.lanes.is_empty() && wanted(t)).collect()
    }

    /// When the last bar ends, in ns.
    pub fn end_ns(&self) -> f64 {
        self.bars().map(|(_, bar)| bar.end_ns).fold(0.0, f64::max)
    }

    /// All bars with their executors.
    pub fn bars(&self) -> impl Iterator<Item = (Who, &Bar)> {
        self.lanes.iter().flat_map(|lane| lane.bars.iter().map(move |bar| (lane.who, bar)))
    }

    /// The same with `most` lanes at most: workers of a node share one first, then only
    /// the nodes that end last are kept.
    pub fn few_lanes(mut self, most: usize) -> Self {
        if self.lanes.len() <= most {
            return self;
        }
        let before = self.lanes.len();
        self.lanes = by_node(&self.lanes);
        if self.lanes.len() < before {
            self.notes.push("the workers of a node share one line, from first to last".into());
        }
        let nodes = self.lanes.len();
        if nodes > most {
            self.lanes.sort_by(|a, b| ends(b).total_cmp(&ends(a)).then(a.who.cmp(&b.who)));
            self.lanes.truncate(most);
            self.lanes.sort_by_key(|lane| lane.who);
            self.notes.push(format!("the {most} of {nodes} lines that end last"));
        }
        self
    }

    /// The same with neighbours merged whose bars would be narrower than `least_ns`.
    pub fn thin(mut self, least_ns: f64) -> Self {
        let before: usize = self.lanes.iter().map(|lane| lane.bars.len()).sum();
        for lane in &mut self.lanes {
            lane.bars = merged(std::mem::take(&mut lane.bars), least_ns);
        }
        let after: usize = self.lanes.iter().map(|lane| lane.bars.len()).sum();
        if after < before {
            self.notes.push(format!(
                "{before} bars drawn as {after}: neighbours too narrow to be seen are merged"
            ));
        }
        self
    }

    /// Every bar as a row.
    pub fn sheet(&self) -> Sheet {
        let columns = [
            ("by", "executor"),
            ("phase", "phase"),
            ("label", "label"),
            ("start", "start_ns"),
            ("end", "end_ns"),
            ("takes", "took_ns"),
            ("struct pages", "pages"),
            ("GB/s", "gb_per_s"),
        ];
        let mut sheet = Sheet::new(&format!("Drawn: {}", self.title), &columns, 3);
        let ns = |value: f64| Cell::number(value, time(value));
        sheet.rows = self
            .bars()
            .map(|(who, bar)| {
                let took = bar.end_ns - bar.start_ns;
                let rate = gb_per_s(bar.bytes(), took);
                vec![
                    Cell::Text(who.name()),
                    Cell::Text(bar.phase.clone()),
                    self.label.into(),
                    ns(bar.start_ns),
                    ns(bar.end_ns),
                    ns(took),
                    Cell::number(bar.pages as f64, grouped(bar.pages)),
                    Cell::number(rate, three_digits(rate)),
                ]
            })
            .collect();
        sheet
    }
}

fn ends(lane: &Lane) -> f64 {
    lane.bars.iter().map(|bar| bar.end_ns).fold(0.0, f64::max)
}

/// One lane per node, with one bar per phase.
fn by_node(lanes: &[Lane]) -> Vec<Lane> {
    let mut nodes: BTreeMap<Option<u32>, (u32, Vec<Bar>)> = BTreeMap::new();
    for lane in lanes {
        let (nid, workers) = match lane.who {
            Who::BootCpu => (None, 0),
            Who::Worker { nid, .. } => (Some(nid), 1),
            Who::Node { nid, workers } => (Some(nid), workers),
        };
        let (count, bars) = nodes.entry(nid).or_default();
        *count += workers;
        for bar in &lane.bars {
            match bars.iter_mut().find(|b| nid.is_some() && b.phase == bar.phase) {
                Some(known) => join(known, bar),
                None => bars.push(bar.clone()),
            }
        }
    }
    let lane = |(nid, (workers, mut bars)): (Option<u32>, (u32, Vec<Bar>))| {
        bars.sort_by(|a, b| a.start_ns.total_cmp(&b.start_ns));
        Lane { who: nid.map_or(Who::BootCpu, |nid| Who::Node { nid, workers }), bars }
    };
    nodes.into_iter().map(lane).collect()
}

/// Makes one bar of two.
fn join(into: &mut Bar, other: &Bar) {
    if into.phase != other.phase {
        into.phase = "several phases".into();
    }
    if into.nid != other.nid {
        into.nid = None;
    }
    into.start_ns = into.start_ns.min(other.start_ns);
    into.end_ns = into.end_ns.max(other.end_ns);
    into.pages = into.pages.saturating_add(other.pages);
    into.bars += other.bars;
}

/// Joins a bar to the one before it where both are narrow and nothing visible lies
/// between.
fn merged(bars: Vec<Bar>, least_ns: f64) -> Vec<Bar> {
    let mut out: Vec<Bar> = Vec::new();
    for bar in bars {
        match out.last_mut() {
            Some(last)
                if bar.start_ns - last.end_ns < least_ns
                    && last.end_ns - last.start_ns < least_ns
                    && bar.end_ns - bar.start_ns < least_ns =>
            {
                join(last, &bar);
            }
            _ => out.push(bar),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = include_str!("../../../fixtures/records/compare-v1.json");

    fn bar(phase: &str, start_ns: f64, end_ns: f64) -> Bar {
        Bar { phase: phase.into(), nid: Some(0), start_ns, end_ns, pages: 1, bars: 1 }
    }

    #[test]
    fn a_comparison_has_a_timeline_per_strategy_and_says_that_it_shows_medians() {
        let source = Source::read("a.json", V1).unwrap();
        let all = Timeline::of(&source, &[]);
        assert_eq!(all.len(), 9, "probes have no timeline");
        let prezero = all.iter().find(|t| t.strategy == "prezero").unwrap();
        assert_eq!(prezero.label, "scaled");
        assert!(prezero.notes[0].starts_with("medians of "), "{:?}", prezero.notes);
        let phases: Vec<&str> = prezero.lanes[0].bars.iter().map(|b| &*b.phase).collect();
        assert_eq!(phases, ["memblock-zero", "early-init", "early-free"]);
        let (last, node) = (prezero.lanes[0].bars.last().unwrap(), &prezero.lanes[1]);
        assert_eq!(node.who, Who::Node { nid: 0, workers: 2 });
        assert_eq!(node.bars[0].start_ns, last.end_ns);
        assert_eq!(Timeline::of(&source, &["fused".into()]).len(), 1);
    }

    // lane:   a b  cc   dddddddd e      thinner than 2: a, b, e
    #[test]
    fn narrow_neighbours_are_merged_and_wide_ones_stay() {
        let bars = [("p", 0., 1.), ("p", 2., 3.), ("q", 6., 8.), ("q", 11., 19.), ("r", 20., 21.)];
        let bars = bars.map(|(phase, start, end)| bar(phase, start, end)).to_vec();
        let timeline = Timeline {
            title: "t".into(),
            source: "s".into(),
            strategy: "x".into(),
            label: "modelled",
            notes: vec![],
            lanes: vec![Lane { who: Who::BootCpu, bars }],
        };
        let thin = timeline.clone().thin(2.0);
        let spans: Vec<(f64, f64, u64)> =
            thin.lanes[0].bars.iter().map(|b| (b.start_ns, b.end_ns, b.bars)).collect();
        assert_eq!(spans, [(0., 3., 2), (6., 8., 1), (11., 19., 1), (20., 21., 1)]);
        assert!(thin.notes[0].contains("5 bars drawn as 4"), "{:?}", thin.notes);
        assert_eq!(timeline.clone().thin(0.1), timeline);
    }

    #[test]
    fn many_workers_share_a_line_and_many_nodes_are_cut_to_the_slowest() {
        let lane = |nid: u32, worker: u32| Lane {
            who: Who::Worker { nid, worker },
            bars: vec![bar("p", f64::from(worker), f64::from(10 * nid + worker))],
        };
        let lanes = (1..=5).flat_map(|nid| (0..3).map(move |worker| lane(nid, worker)));
        let timeline = Timeline {
            title: "t".into(),
            source: "s".into(),
            strategy: "x".into(),
            label: "modelled",
            notes: vec![],
            lanes: lanes.collect(),
        };
        let few = timeline.clone().few_lanes(5);
        assert_eq!(few.lanes.len(), 5);
        assert_eq!(few.lanes[0].who, Who::Node { nid: 1, workers: 3 });
        assert_eq!((few.lanes[0].bars[0].end_ns, few.lanes[0].bars[0].pages), (12.0, 3));
        let fewer = timeline.few_lanes(2);
        let nids: Vec<Who> = fewer.lanes.iter().map(|lane| lane.who).collect();
        assert_eq!(nids, [4, 5].map(|nid| Who::Node { nid, workers: 3 }));
        assert_eq!(fewer.notes.len(), 2);
    }
}
