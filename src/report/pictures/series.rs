//! The lines of each kind of record over threads, for [`super::curves`].

use super::curves::{CurvePoint, Curves, How, Line, Panel, Unit};
use crate::kernel::struct_page::STRUCT_PAGE_BYTES;
use crate::record::any::AnyRecord;
use crate::record::calibration::{Rate, StoreRate};
use crate::record::sweep::{MachineShape, Sweep, SweepPoint};
use crate::record::validate::Validated;
use crate::record::{Label, Point, Record};
use crate::report::compare::is_probe;
use crate::report::source::Source;
use crate::units::Bytes;
use std::collections::HashMap;

/// Bytes of one struct page.
/// Lines by name, in order of first appearance.
#[derive(Default)]
struct Lines {
    lines: Vec<Line>,
    places: HashMap<(String, How), usize>,
}

impl Lines {
    fn add(&mut self, name: String, how: How, point: CurvePoint) {
        let next = self.lines.len();
        let at = *self.places.entry((name.clone(), how)).or_insert(next);
        if at == next {
            self.lines.push(Line { name, how, points: Vec::new() });
        }
        if let Some(line) = self.lines.get_mut(at) {
            line.points.push(point);
        }
    }

    fn panel(self, title: &str, unit: Unit) -> Panel {
        Panel { title: title.into(), unit, lines: self.lines }
    }
}

const fn point(threads: u32, value: f64) -> CurvePoint {
    CurvePoint { threads, value, is_knee: false }
}

/// How a sweep's point came about.
fn how_of(point: &SweepPoint) -> How {
    how(point.label)
}

fn how(label: Label) -> How {
    match label {
        Label::Measured => How::Measured,
        Label::Scaled => How::Scaled,
        Label::Modelled => How::Modelled,
    }
}

/// A name for a line: of several records each line says whose it is.
fn named(source: &Source, several: bool, name: &str) -> String {
    if several { format!("{name} · {}", source.name) } else { name.into() }
}

/// Sweeps: the nodes' time with knees, the whole time, and the nodes' bandwidth.
pub(super) fn sweeps(sources: &[&Source]) -> Option<Curves> {
    let own: Vec<(&Source, &Sweep)> = sources
        .iter()
        .filter_map(|source| match &source.record {
            AnyRecord::Sweep(sweep) => Some((*source, &**sweep)),
            _ => None,
        })
        .collect();
    let first = own.first()?.1;
    let several = own.len() > 1;
    let [mut nodes, mut whole, mut rates] = [(); 3].map(|()| Lines::default());
    for (source, sweep) in &own {
        let knees = knees(sweep);
        for p in &sweep.points {
            let name = named(source, several, &point_name(sweep, p));
            let is_knee = knees.get(&key(p.shape(), &p.kernel, &p.strategy, p.chunk_bytes));
            let is_knee = is_knee == Some(&p.threads);
            let of = |value: f64| CurvePoint { is_knee, ..point(p.threads, value) };
            let label = how_of(p);
            whole.add(name.clone(), label, of(p.total_ns as f64));
            if p.nodes_ns == 0 {
                continue;
            }
            nodes.add(name.clone(), label, of(p.nodes_ns as f64));
            if let Some(bytes) = p.node_bytes {
                rates.add(name, label, of(bytes as f64 / p.nodes_ns as f64));
            }
        }
    }
    let mut notes = Vec::new();
    if rates.lines.is_empty() {
        notes.push("the record does not say how many bytes the nodes store: no GB/s".into());
    }
    let title = match several {
        false => format!("Sweep of {}", first.machine),
        true => format!("{} sweeps", own.len()),
    };
    let panels = vec![
        nodes.panel("Time of the nodes' threads, the slowest node's", Unit::Ns),
        whole.panel("Whole time, the boot CPU's phases included", Unit::Ns),
        rates.panel("Struct pages stored by all nodes' threads", Unit::GbPerS),
    ];
    Some(Curves { title, panels, notes })
}

type Key<'k> = (MachineShape, &'k str, &'k str, Option<u64>);

const fn key<'k>(
    shape: MachineShape,
    kernel: &'k str,
    strategy: &'k str,
    chunk_bytes: Option<u64>,
) -> Key<'k> {
    (shape, kernel, strategy, chunk_bytes)
}

fn knees(sweep: &Sweep) -> HashMap<Key<'_>, u32> {
    let entry = |k: &'_ crate::record::sweep::Knee| k.threads;
    let knees = sweep.knees.iter();
    knees.map(|k| (key(k.shape, &k.kernel, &k.strategy, k.chunk_bytes), entry(k))).collect()
}

/// The strategy, with kernel, chunk and machine as far as they vary.
fn point_name(sweep: &Sweep, p: &SweepPoint) -> String {
    let mut name = p.strategy.clone();
    let first = sweep.points.first();
    if first.is_some_and(|f| f.kernel != p.kernel) || varies(sweep, |q| &q.kernel) {
        name += &format!(", Linux {}", p.kernel);
    }
    if varies(sweep, |q| &q.chunk_bytes) {
        name += &match p.chunk_bytes {
            Some(bytes) => format!(", chunks of {}", Bytes(bytes)),
            None => ", padata's chunks".into(),
        };
    }
    name + &shape_name(sweep, p)
}

/// What varies of the machine.
fn shape_name(sweep: &Sweep, p: &SweepPoint) -> String {
    let mut name = String::new();
    if varies(sweep, |q| &q.nodes) {
        name += &p.nodes.map_or_else(String::new, |nodes| format!(", nodes: {nodes}"));
    }
    if varies(sweep, |q| &q.memory_bytes) {
        name += &p.memory_bytes.map_or_else(String::new, |bytes| format!(", {}", Bytes(bytes)));
    }
    if varies(sweep, |q| &q.page_bytes) {
        let pages = |bytes| format!(", pages of {}", Bytes(bytes));
        name += &p.page_bytes.map_or_else(String::new, pages);
    }
    name
}

/// Whether the last point differs from the first: points vary in the outermost axes
/// last, so that their ends differ wherever an axis has several values.
fn varies<T: PartialEq>(sweep: &Sweep, of: impl Fn(&SweepPoint) -> &T) -> bool {
    sweep.points.first().map(&of) != sweep.points.last().map(&of)
}

/// Comparisons of one machine with several thread counts: the nodes' time and rate.
pub(super) fn comparisons(sources: &[&Source]) -> Option<Curves> {
    let own: Vec<&Record> = sources
        .iter()
        .filter_map(|source| match &source.record {
            AnyRecord::Compare(record) => Some(&**record),
            _ => None,
        })
        .collect();
    let several = own.windows(2).any(|w| {
        w[0].machine.name != w[1].machine.name || w[0].host.cpu_model != w[1].host.cpu_model
    });
    let [mut times, mut rates] = [(); 2].map(|()| Lines::default());
    for record in &own {
        let shared = |p: &&Point| p.phase == "deferred" && p.nid.is_none() && !is_probe(p);
        for p in record.points.iter().filter(shared) {
            let label =
                if p.executed_pages == p.scaled_pages { How::Measured } else { How::Scaled };
            let name = compared_name(record, p, several);
            times.add(name.clone(), label, point(p.threads, p.scaled_median_ns));
            let bytes = p.executed_pages as f64 * STRUCT_PAGE_BYTES as f64;
            rates.add(name, how(p.label), point(p.threads, bytes / p.median_ns));
        }
    }
    let title = match own.first()? {
        _ if several => format!("{} comparisons", own.len()),
        first => format!("Comparison on {}", first.machine.name),
    };
    let panels = vec![
        times.panel("Time of the nodes' threads, medians", Unit::Ns),
        rates.panel("Struct pages stored by the nodes' threads", Unit::GbPerS),
    ];
    let notes = vec!["one point per strategy and record".into()];
    Some(Curves { title, panels, notes })
}

fn compared_name(record: &Record, p: &Point, several: bool) -> String {
    let mut name = p.strategy.clone();
    if let Some(store) = &p.store {
        name += &format!(" ({store})");
    }
    if several {
        let cpu = record.host.cpu_model.as_deref().unwrap_or("unknown processor");
        name += &format!(" · {} on {cpu}", record.machine.name);
    }
    name
}

/// Calibrations: ns per struct page and GB/s of every strategy and phase.
pub(super) fn calibrations(sources: &[&Source]) -> Option<Curves> {
    let mut own = Vec::new();
    for source in sources {
        if let AnyRecord::Calibration(calibration) = &source.record {
            own.push((*source, &**calibration));
        }
    }
    let several = own.len() > 1;
    let [mut costs, mut rates] = [(); 2].map(|()| Lines::default());
    for (source, calibration) in &own {
        let is_shared = |r: &&Rate| r.phase.starts_with("deferred");
        for r in calibration.rates.iter().filter(is_shared) {
            let freed = if r.free { "" } else { ", not freed" };
            let name = named(source, several, &format!("{}, {}{freed}", r.strategy, r.phase));
            costs.add(name.clone(), how(calibration.label), point(r.threads, r.ns_per_page));
            let rate = point(r.threads, STRUCT_PAGE_BYTES as f64 / r.ns_per_page);
            rates.add(name, how(calibration.label), rate);
        }
    }
    let host = own.first()?.1.host.cpu_model.as_deref().unwrap_or("unknown processor");
    let title = match several {
        false => format!("Calibration on {host}"),
        true => format!("{} calibrations", own.len()),
    };
    let panels = vec![
        costs.panel("Time of a node's team", Unit::NsPerPage),
        rates.panel("Struct pages stored by a node's team", Unit::GbPerS),
    ];
    let notes = vec!["phases of the nodes' threads".into()];
    Some(Curves { title, panels, notes })
}

/// Calibrations: GB/s of the stores into memory of their own node.
pub(super) fn stores(sources: &[&Source]) -> Option<Curves> {
    let mut own = Vec::new();
    for source in sources {
        if let AnyRecord::Calibration(calibration) = &source.record {
            own.push((*source, &**calibration));
        }
    }
    let several = own.len() > 1;
    let mut rates = Lines::default();
    for (source, calibration) in &own {
        let local = |r: &&StoreRate| r.cpu_nid == r.memory_nid;
        let first = calibration.stores.first().map(|r| r.cpu_nid);
        let is_one_node = calibration.stores.iter().all(|r| Some(r.cpu_nid) == first);
        for r in calibration.stores.iter().filter(local) {
            let node = if is_one_node { String::new() } else { format!(", node {}", r.cpu_nid) };
            let name = named(source, several, &format!("{} of {}{node}", r.store, r.data));
            rates.add(name, how(calibration.label), point(r.threads, r.bytes_per_s / 1e9));
        }
    }
    let panels = vec![rates.panel("Bytes stored, over threads of the node", Unit::GbPerS)];
    let notes = vec!["stores into memory of the threads' own node".into()];
    (!own.is_empty()).then(|| Curves { title: "Stores".into(), panels, notes })
}

/// Validations: published times and predictions of series with several thread counts.
pub(super) fn validations(sources: &[&Source]) -> Option<Curves> {
    let mut lines = Lines::default();
    let mut alone = 0;
    let mut is_any = false;
    for source in sources {
        let AnyRecord::Validate(validation) = &source.record else { continue };
        is_any = true;
        let mut series: HashMap<&str, Vec<&Validated>> = HashMap::new();
        let timed = validation.records.iter().filter(|v| v.threads.is_some());
        let mut order = Vec::new();
        for v in timed {
            let same = series.entry(&v.id).or_default();
            if same.is_empty() {
                order.push(&*v.id);
            }
            same.push(v);
        }
        for id in order {
            let own = series.get(id).map_or(&[][..], Vec::as_slice);
            if own.windows(2).all(|w| w[0].threads == w[1].threads) {
                alone += own.len();
                continue;
            }
            own.iter().for_each(|v| add_validated(&mut lines, v));
        }
    }
    let mut notes = vec!["published points have no line; predictions are modelled".to_owned()];
    if alone > 0 {
        notes.push(format!("{alone} figures of a single thread count are in the tables only"));
    }
    let panels = vec![lines.panel("Published and predicted times", Unit::Ns)];
    is_any.then(|| Curves { title: "Predictions against publications".into(), panels, notes })
}

fn add_validated(lines: &mut Lines, v: &Validated) {
    let threads = v.threads.unwrap_or_default();
    let pairs = [(v.predicted_ms, How::Modelled), (v.published_ms, How::Published)];
    for (ms, how) in pairs {
        if let Some(ms) = ms {
            lines.add(v.id.clone(), how, point(threads, ms * 1e6));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn sweep(chunks: &[Option<u64>]) -> Source {
        let point = |threads: u64, chunk_bytes: &Option<u64>| {
            json!({"kernel": "6.12", "strategy": "deferred", "threads": threads,
                "chunk_bytes": chunk_bytes, "total_ns": 1000 / threads + 100,
                "boot_cpu_ns": 100, "nodes_ns": 1000 / threads, "node_bytes": 5000,
                "range_ns": [1, 2], "bound_by": "boot-cpu"})
        };
        let points: Vec<Value> = chunks
            .iter()
            .flat_map(|chunk| [1, 2, 4].map(|threads| point(threads, chunk)))
            .collect();
        let knee = json!({"kernel": "6.12", "strategy": "deferred", "chunk_bytes": chunks[0],
            "threads": 2, "nodes_ns": 500, "least_ns": 250});
        let record = json!({"schema": "pageinit/sweep/1",
            "tool": {"name": "pageinit", "version": "1"}, "argv": [], "complete": true,
            "warnings": [], "label": "modelled", "machine": "@m", "title": "M", "class": "c",
            "points": points, "knees": [knee], "best_chunks": [], "setup_zero": []});
        Source::read("s.json", &record.to_string()).unwrap()
    }

    #[test]
    fn a_sweep_has_a_line_per_chunk_with_its_knee_and_its_bandwidth() {
        let source = sweep(&[None, Some(1 << 27)]);
        let [curves] = &Curves::of(&[&source])[..] else { panic!("one picture") };
        let names: Vec<&str> = curves.panels[0].lines.iter().map(|l| &*l.name).collect();
        assert_eq!(names, ["deferred, padata's chunks", "deferred, chunks of 128 MiB"]);
        let knees: Vec<bool> = curves.panels[0].lines[0].points.iter().map(|p| p.is_knee).collect();
        assert_eq!(knees, [false, true, false]);
        assert!(curves.panels[0].lines[1].points.iter().all(|p| !p.is_knee));
        assert_eq!(curves.panels[2].unit, Unit::GbPerS);
        assert_eq!(curves.panels[2].lines[0].points[1].value, 10.0);
    }

    #[test]
    fn every_point_keeps_its_own_label_and_its_machine() {
        let mut source = sweep(&[None]);
        let AnyRecord::Sweep(record) = &mut source.record else { panic!("a sweep") };
        let shapes = [(1, Label::Measured), (2, Label::Scaled), (4, Label::Modelled)];
        for (point, (nodes, label)) in record.points.iter_mut().zip(shapes) {
            (point.nodes, point.label) = (Some(nodes), label);
        }
        let curves = Curves::of(&[&source]);
        let lines = curves[0].panels[0].lines.iter();
        let seen: Vec<(&str, How)> = lines.map(|l| (&*l.name, l.how)).collect();
        let expected = [
            ("deferred, nodes: 1", How::Measured),
            ("deferred, nodes: 2", How::Scaled),
            ("deferred, nodes: 4", How::Modelled),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn lines_of_several_records_say_whose_they_are() {
        let (a, mut b) = (sweep(&[None]), sweep(&[None]));
        b.name = "b.json".into();
        let both = Curves::of(&[&a, &b]);
        let names: Vec<&str> = both[0].panels[0].lines.iter().map(|l| &*l.name).collect();
        assert_eq!(names, ["deferred · s.json", "deferred · b.json"]);
    }

    #[test]
    fn published_points_stand_beside_predictions() {
        let figure = |id: &str, threads, ms| Validated {
            id: id.into(),
            threads: Some(threads),
            published_ms: Some(ms),
            predicted_ms: Some(ms * 1.1),
            ..Validated::default()
        };
        let text = r#"{"schema":"pageinit/validate/1","tool":{"name":"p","version":"1"},"argv":[],
            "complete":true,"warnings":[],"figures":"f","unknown_fields":0,
            "fitted_thread_constants":0,"fitted_constants":0,"constants":[],"records":[],
            "groups":[],"ranges":[],"left_out_machines":[],"seconds":[]}"#;
        let mut source = Source::read("v.json", text).unwrap();
        let AnyRecord::Validate(v) = &mut source.record else { panic!("a validation") };
        v.records = vec![figure("a", 1, 9.0), figure("b", 1, 5.0), figure("a", 8, 2.0)];
        let [curves] = &Curves::of(&[&source])[..] else { panic!("one picture") };
        let lines: Vec<(&str, How, usize)> =
            curves.panels[0].lines.iter().map(|l| (&*l.name, l.how, l.points.len())).collect();
        assert_eq!(lines, [("a", How::Modelled, 2), ("a", How::Published, 2)]);
        assert!(curves.notes.iter().any(|n| n.starts_with("1 figures of a single")));
    }
}
