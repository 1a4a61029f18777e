//! One row per record and strategy: what records of one kind say beside each other.
//!
//! [`sheets`] makes one table for each kind of which there are several records, so that
//! the records of a fleet can be read at a glance.

use super::compare::is_probe;
use super::sheet::{Cell, Sheet};
use super::sheets::{bytes, digits, ns, small, words};
use super::source::{Source, cpu_model, version};
use crate::record::Record;
use crate::record::any::AnyRecord;
use crate::record::calibration::{Calibration, Rate};
use crate::record::estimate::Estimate;
use crate::record::lab::LabRecord;
use crate::record::sweep::Sweep;
use crate::record::validate::Validation;

/// The summaries, in order of the kinds' first records.
pub(super) fn sheets(sources: &[Source]) -> Vec<Sheet> {
    let mut kinds: Vec<String> = Vec::new();
    for kind in sources.iter().map(|source| source.record.kind()) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds.iter().filter_map(|kind| of_kind(kind, sources)).collect()
}

fn of_kind(kind: &str, sources: &[Source]) -> Option<Sheet> {
    let own: Vec<&Source> = sources.iter().filter(|s| s.record.kind() == kind).collect();
    let [first, _, ..] = own[..] else { return None };
    let (columns, numbers_from) = columns(&first.record);
    let title = format!("All records of {kind}");
    let mut sheet = Sheet::new(&title, &columns, numbers_from);
    for source in own {
        sheet.rows.extend(rows(source).into_iter().map(|row| {
            let complete = if source.record.head().complete { "yes" } else { "NO" };
            [vec![words(&*source.name), complete.into()], row].concat()
        }));
    }
    sheet.note = Some("a row per record; what they rest on is said above each record".into());
    Some(sheet)
}

/// Phases of calibrations, with the title and the name of their columns.
const RATES: [(&str, Names); 6] = [
    ("memblock-zero", ("memblock-zero, ns/page", "memblock_zero_per_page_ns")),
    ("setup-zero", ("setup-zero", "setup_zero_per_page_ns")),
    ("early-init", ("early-init", "early_init_per_page_ns")),
    ("early-free", ("early-free", "early_free_per_page_ns")),
    ("deferred-zero", ("deferred-zero", "deferred_zero_per_page_ns")),
    ("deferred-init", ("deferred-init", "deferred_init_per_page_ns")),
];

type Names = (&'static str, &'static str);

/// The columns of a kind, and which is the first with numbers.
fn columns(record: &AnyRecord) -> (Vec<Names>, usize) {
    const START: [Names; 2] = [("record", "record"), ("complete", "complete")];
    const STRATEGY: [Names; 2] = [("strategy", "strategy"), ("store", "store")];
    const CPU: Names = ("measured on", "cpu_model");
    const MACHINE: Names = ("machine", "machine");
    const LABEL: Names = ("label", "label");
    const THREADS: Names = ("threads", "threads");
    const TOTAL: Names = ("sum", "total_ns");
    const RANGE: [Names; 2] = [("low", "low_ns"), ("high", "high_ns")];
    let (texts, numbers): (Vec<Names>, Vec<Names>) = match record {
        AnyRecord::Compare(_) => (
            [&[CPU, MACHINE], &STRATEGY[..], &[LABEL]].concat(),
            vec![THREADS, TOTAL, ("ns/page", "per_page_ns"), ("ratio", "ratio")]
                .into_iter()
                .chain([("ratio, low", "ratio_low"), ("ratio, high", "ratio_high")])
                .collect(),
        ),
        AnyRecord::Estimate(_) => (
            vec![MACHINE, STRATEGY[0], ("kernel", "kernel"), ("bound by", "bound_by"), LABEL],
            [&[THREADS, TOTAL], &RANGE[..]].concat(),
        ),
        AnyRecord::Sweep(_) => (
            vec![MACHINE, STRATEGY[0], ("kernel", "kernel"), ("bound by", "bound_by"), LABEL],
            vec![
                ("nodes", "node_count"),
                ("memory", "memory_bytes"),
                ("page", "page_bytes"),
                THREADS,
                TOTAL,
            ],
        ),
        AnyRecord::Validate(_) => (
            vec![("group", "group"), LABEL],
            vec![("n", "n"), ("median error", "median_share"), ("worst error", "worst_share")],
        ),
        AnyRecord::Calibration(_) => (
            vec![CPU, STRATEGY[0], LABEL],
            [&[THREADS], &RATES.map(|(_, names)| names)[..]].concat(),
        ),
        AnyRecord::Lab(_) => (
            vec![CPU, ("finding", "code"), ("what follows", "text"), LABEL],
            vec![("median", "median"), ("low", "low"), ("high", "high")],
        ),
    };
    let numbers_from = START.len() + texts.len();
    ([START.to_vec(), texts, numbers].concat(), numbers_from)
}

fn rows(source: &Source) -> Vec<Vec<Cell>> {
    match &source.record {
        AnyRecord::Compare(record) => compare(record),
        AnyRecord::Estimate(record) => vec![estimate(record)],
        AnyRecord::Sweep(record) => sweep(record),
        AnyRecord::Validate(record) => validate(record),
        AnyRecord::Calibration(record) => calibration(record),
        AnyRecord::Lab(record) => lab(record),
    }
}

fn compare(record: &Record) -> Vec<Vec<Cell>> {
    let how = record.execution.whole_label().name();
    let totals = record.points.iter().filter(|p| p.phase == "total" && !is_probe(p));
    let row = |p: &crate::record::Point| {
        let own = |r: &&crate::record::Ratio| r.strategy == p.strategy && r.store == p.store;
        let ratio = record.ratios.iter().find(own);
        let of =
            |pick: fn(&crate::record::Ratio) -> f64| ratio.map_or(Cell::Empty, |r| digits(pick(r)));
        vec![
            words(cpu_model(&record.host)),
            words(&*record.machine.name),
            words(&*p.strategy),
            p.store.clone().map_or(Cell::Empty, words),
            how.into(),
            small(p.threads),
            ns(p.scaled_median_ns),
            digits(p.scaled_median_ns / p.scaled_pages.max(1) as f64),
            of(|r| r.median),
            of(|r| r.ci95[0]),
            of(|r| r.ci95[1]),
        ]
    };
    totals.map(row).collect()
}

fn estimate(e: &Estimate) -> Vec<Cell> {
    vec![
        words(&*e.machine.name),
        words(&*e.strategy),
        version(&e.kernel).map_or(Cell::Empty, words),
        words(&*e.bound_by),
        e.label.name().into(),
        small(e.threads),
        ns(e.total_ns as f64),
        ns(e.range_ns[0] as f64),
        ns(e.range_ns[1] as f64),
    ]
}

/// The best point of every kernel, strategy and shape of the machine.
fn sweep(s: &Sweep) -> Vec<Vec<Cell>> {
    let mut best: Vec<&crate::record::sweep::SweepPoint> = Vec::new();
    for point in &s.points {
        let same = best.iter_mut().find(|b| {
            (&b.kernel, &b.strategy, b.shape()) == (&point.kernel, &point.strategy, point.shape())
        });
        match same {
            Some(known) if point.total_ns < known.total_ns => *known = point,
            Some(_) => {}
            None => best.push(point),
        }
    }
    let row = |p: &crate::record::sweep::SweepPoint| {
        vec![
            words(&*s.machine),
            words(&*p.strategy),
            words(&*p.kernel),
            words(&*p.bound_by),
            p.label.name().into(),
            p.nodes.map_or(Cell::Empty, small),
            p.memory_bytes.map_or(Cell::Empty, bytes),
            p.page_bytes.map_or(Cell::Empty, bytes),
            small(p.threads),
            ns(p.total_ns as f64),
        ]
    };
    best.into_iter().map(row).collect()
}

fn validate(v: &Validation) -> Vec<Vec<Cell>> {
    let percent = |share: f64| Cell::number(share, format!("{:.1} %", share * 100.0));
    let row = |g: &crate::record::validate::GroupStats| {
        let n = Cell::number(g.n as f64, g.n.to_string());
        vec![words(&*g.name), "modelled".into(), n, percent(g.median), percent(g.worst)]
    };
    v.groups.iter().map(row).collect()
}

/// A row per strategy and number of threads, a column per phase.
fn calibration(c: &Calibration) -> Vec<Vec<Cell>> {
    let mut series: Vec<(&str, u32)> = Vec::new();
    for rate in &c.rates {
        let one = (rate.strategy.as_str(), rate.threads);
        if !series.contains(&one) {
            series.push(one);
        }
    }
    let row = |&(strategy, threads): &(&str, u32)| {
        let own = |r: &&Rate| r.strategy == strategy && r.threads == threads;
        let of = |phase: &str| c.rates.iter().filter(own).find(|r| r.phase == phase);
        let rate = |(phase, _)| of(phase).map_or(Cell::Empty, |r| digits(r.ns_per_page));
        let texts = vec![words(cpu_model(&c.host)), words(strategy), c.label.name().into()];
        [texts, vec![small(threads)], RATES.map(rate).to_vec()].concat()
    };
    series.iter().map(row).collect()
}

fn lab(record: &LabRecord) -> Vec<Vec<Cell>> {
    let row = |f: &crate::record::lab::Finding| {
        let of = |pick: fn(&crate::stats::Summary) -> f64| {
            f.value.as_ref().map_or(Cell::Empty, |value| digits(pick(value)))
        };
        vec![
            words(cpu_model(&record.host)),
            words(&*f.code),
            words(&*f.text),
            "measured".into(),
            of(|v| v.median),
            of(|v| v.ci95[0]),
            of(|v| v.ci95[1]),
        ]
    };
    record.findings.iter().map(row).collect()
}
