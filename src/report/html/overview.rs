//! The first table of a page: one row per record.

use crate::record::any::AnyRecord;
use crate::record::{Label, Record};
use crate::report::compare::is_probe;
use crate::report::sheet::{Cell, Sheet};
use crate::report::source::{Source, cpu_model, version};
use crate::units::{grouped, time};

/// One row per record, in their order.
pub(super) fn sheet(sources: &[Source]) -> Sheet {
    let columns = [
        ("record", "record"),
        ("kind", "kind"),
        ("complete", "complete"),
        ("in short", "headline"),
        ("figures are", "label"),
        ("machine", "machine"),
        ("measured on", "cpu_model"),
        ("Linux", "kernel"),
        ("warnings", "warnings"),
    ];
    let mut sheet = Sheet::new("All records", &columns, 8);
    sheet.rows = sources.iter().map(row).collect();
    sheet
}

fn row(source: &Source) -> Vec<Cell> {
    let head = source.record.head();
    let warnings = head.warnings.len();
    let [machine, kernel] = [machine(&source.record), kernel(&source.record)];
    vec![
        Cell::Text(source.name.clone()),
        Cell::Text(source.record.kind()),
        if head.complete { "yes" } else { "NO" }.into(),
        Cell::Text(headline(&source.record)),
        Cell::Text(how(&source.record).into()),
        words(machine),
        words(source.host().map(|host| cpu_model(host).to_owned())),
        words(kernel),
        Cell::number(warnings as f64, warnings.to_string()),
    ]
}

fn words(text: Option<String>) -> Cell {
    text.map_or(Cell::Empty, Cell::Text)
}

fn machine(record: &AnyRecord) -> Option<String> {
    match record {
        AnyRecord::Compare(r) => Some(r.machine.name.clone()),
        AnyRecord::Estimate(e) => Some(e.machine.name.clone()),
        AnyRecord::Sweep(s) => Some(s.machine.clone()),
        AnyRecord::Validate(_) | AnyRecord::Calibration(_) | AnyRecord::Lab(_) => None,
    }
}

fn kernel(record: &AnyRecord) -> Option<String> {
    match record {
        AnyRecord::Compare(r) => version(&r.kernel),
        AnyRecord::Estimate(e) => version(&e.kernel),
        AnyRecord::Calibration(c) => Some(c.kernel.clone()),
        AnyRecord::Sweep(_) | AnyRecord::Validate(_) | AnyRecord::Lab(_) => None,
    }
}

/// How a record's figures came about.
pub(super) fn how(record: &AnyRecord) -> &'static str {
    match record {
        AnyRecord::Compare(r) if r.execution.whole_label() == Label::Scaled => {
            "measured and scaled"
        }
        AnyRecord::Compare(_) | AnyRecord::Lab(_) => Label::Measured.name(),
        AnyRecord::Estimate(e) => e.label.name(),
        AnyRecord::Sweep(s) if s.points.iter().any(|p| p.label == Label::Scaled) => {
            "measured and scaled"
        }
        AnyRecord::Sweep(s) => s.label.name(),
        AnyRecord::Calibration(c) => c.label.name(),
        AnyRecord::Validate(_) => "published and modelled",
    }
}

/// What a record comes to, in a few words.
pub(super) fn headline(record: &AnyRecord) -> String {
    match record {
        AnyRecord::Compare(r) => fastest(r),
        AnyRecord::Estimate(e) => {
            format!("{} takes {}, bound by {}", e.strategy, time(e.total_ns as f64), e.bound_by)
        }
        AnyRecord::Sweep(s) => match s.points.iter().min_by_key(|p| p.total_ns) {
            Some(p) => format!(
                "{} points; least {} ({}, {} threads)",
                grouped(s.points.len() as u64),
                time(p.total_ns as f64),
                p.strategy,
                p.threads
            ),
            None => "no points".into(),
        },
        AnyRecord::Validate(v) => match v.groups.first() {
            Some(g) => format!("{}: median error {:.0} % of {}", g.name, g.median * 100.0, g.n),
            None => format!("{} figures, none predicted", v.records.len()),
        },
        AnyRecord::Calibration(c) => format!("{} rates", c.rates.len()),
        AnyRecord::Lab(l) => match l.findings.first() {
            Some(finding) => finding.text.clone(),
            None => format!("{} points", l.points.len()),
        },
    }
}

fn fastest(record: &Record) -> String {
    let totals = record.points.iter().filter(|p| p.phase == "total" && !is_probe(p));
    let best = totals.min_by(|a, b| a.scaled_median_ns.total_cmp(&b.scaled_median_ns));
    match best {
        Some(p) => format!("fastest is {}: {}", p.strategy, time(p.scaled_median_ns)),
        None => "nothing was measured".into(),
    }
}
