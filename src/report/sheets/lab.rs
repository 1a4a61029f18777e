//! The tables of an experiment: one row per point, one column per factor.

use super::{count, digits, host, maybe, ns, small, whole_ns, with_note, words, yes};
use crate::record::lab::{Factor, Factors, Finding, LabPoint, LabRecord, Published};
use crate::report::sheet::{Cell, Sheet};

pub(super) fn sheets(record: &LabRecord) -> Vec<Sheet> {
    vec![
        findings(record),
        points(record),
        derived(record),
        published(record),
        settings(record),
        host(&record.host),
        caches(record),
    ]
}

/// Every name that any of the maps has, in order.
fn names<'f, V: 'f>(
    all: impl Iterator<Item = &'f std::collections::BTreeMap<String, V>>,
) -> Vec<&'f str> {
    let mut names: Vec<&str> = all.flat_map(|map| map.keys().map(String::as_str)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn factor(factors: &Factors, name: &str) -> Cell {
    match factors.get(name) {
        Some(Factor::Number(number)) => count(*number),
        Some(Factor::Name(text)) => words(text.as_str()),
        None => Cell::Empty,
    }
}

/// Columns whose title is their name.
fn plain<'n>(names: &[&'n str]) -> Vec<(&'n str, &'n str)> {
    names.iter().map(|name| (*name, *name)).collect()
}

fn points(record: &LabRecord) -> Sheet {
    let factors = names(record.points.iter().map(|p| &p.factors));
    let counts = names(record.points.iter().map(|p| &p.counts));
    let figures = [
        ("samples", "samples"),
        ("median", "median_ns"),
        ("low", "low_ns"),
        ("high", "high_ns"),
        ("mean", "mean_ns"),
        ("σ", "sd_ns"),
        ("each", "each_ns"),
        ("units per sample", "units"),
    ];
    let first = [("part", "part"), ("label", "label"), ("per", "per"), ("verified", "verified")];
    let columns = [&first[..], &plain(&factors), &figures, &plain(&counts)].concat();
    let mut sheet = Sheet::new("Points", &columns, first.len() + factors.len());
    let row = |p: &LabPoint| {
        let mut row = vec![words(&*p.part), p.label.name().into(), words(&*p.per), yes(p.verified)];
        row.extend(factors.iter().map(|name| factor(&p.factors, name)));
        row.extend([
            count(p.samples_ns.len() as u64),
            ns(p.median_ns),
            ns(p.ci95_ns[0]),
            ns(p.ci95_ns[1]),
            ns(p.mean_ns),
            maybe(p.sd_ns, ns),
            ns(p.each_ns()),
            count(p.count),
        ]);
        row.extend(counts.iter().map(|name| maybe(p.counts.get(*name).copied(), count)));
        row
    };
    sheet.rows = record.points.iter().map(row).collect();
    with_note(sheet, "times of whole samples; low and high are the median's 95 % interval")
}

fn derived(record: &LabRecord) -> Sheet {
    let factors = names(record.derived.iter().map(|d| &d.factors));
    let first = [("what", "what"), ("label", "label")];
    let figures = [("median", "median"), ("low", "low"), ("high", "high")];
    let columns = [&first[..], &plain(&factors), &figures].concat();
    let mut sheet = Sheet::new("Drawn from several points", &columns, first.len() + factors.len());
    let row = |d: &crate::record::lab::Derived| {
        let mut row = vec![words(&*d.what), "measured".into()];
        row.extend(factors.iter().map(|name| factor(&d.factors, name)));
        row.extend([d.value.median, d.value.ci95[0], d.value.ci95[1]].map(digits));
        row
    };
    sheet.rows = record.derived.iter().map(row).collect();
    with_note(sheet, "round by round, in the unit that the name ends with")
}

fn findings(record: &LabRecord) -> Sheet {
    let columns = [
        ("finding", "code"),
        ("what follows", "text"),
        ("label", "label"),
        ("median", "median"),
        ("low", "low"),
        ("high", "high"),
    ];
    let mut sheet = Sheet::new("Findings", &columns, 3);
    let row = |f: &Finding| {
        vec![
            words(&*f.code),
            words(&*f.text),
            "measured".into(),
            maybe(f.value, |v| digits(v.median)),
            maybe(f.value, |v| digits(v.ci95[0])),
            maybe(f.value, |v| digits(v.ci95[1])),
        ]
    };
    sheet.rows = record.findings.iter().map(row).collect();
    with_note(sheet, "for the host that measured")
}

fn published(record: &LabRecord) -> Sheet {
    let factors = names(record.published.iter().map(|p| &p.factors));
    let first = [("part", "part"), ("machine", "platform"), ("source", "source")];
    let figures = [("mean", "mean_ns"), ("σ", "sd_ns"), ("samples", "samples")];
    let columns = [&first[..], &plain(&factors), &figures].concat();
    let mut sheet = Sheet::new("Published by others", &columns, first.len() + factors.len());
    let row = |p: &Published| {
        let mut row = [&p.part, &p.platform, &p.source].map(|text| words(text.as_str())).to_vec();
        row.extend(factors.iter().map(|name| factor(&p.factors, name)));
        row.extend([ns(p.mean_ns), maybe(p.sd_ns, ns), maybe(p.samples, count)]);
        row
    };
    sheet.rows = record.published.iter().map(row).collect();
    with_note(sheet, "other machines and kernels; nothing here was measured by this program")
}

fn settings(record: &LabRecord) -> Sheet {
    let names: Vec<&str> = record.settings.keys().map(String::as_str).collect();
    let mut rows: Vec<(&str, Cell)> =
        names.iter().map(|name| (*name, factor(&record.settings, name))).collect();
    rows.push(("runs", small(record.runs)));
    rows.push(("seed", Cell::Text(record.seed.to_string())));
    rows.push(("started_unix_s", Cell::Text(record.started_unix_s.to_string())));
    super::facts("Settings", rows)
}

fn caches(record: &LabRecord) -> Sheet {
    let mut sheet = Sheet::new("Caches", &[("level", "level"), ("size", "cache_bytes")], 0);
    let row = |c: &crate::record::lab::CacheFacts| vec![small(c.level), super::bytes(c.bytes)];
    sheet.rows = record.caches.iter().map(row).collect();
    sheet
}

pub(super) fn samples(record: &LabRecord) -> Sheet {
    let factors = names(record.points.iter().map(|p| &p.factors));
    let first = [("part", "part"), ("label", "label"), ("per", "per")];
    let figures = [("run", "run"), ("time", "sample_ns"), ("units", "units")];
    let columns = [&first[..], &plain(&factors), &figures].concat();
    let mut sheet = Sheet::new("Samples", &columns, first.len() + factors.len());
    for p in &record.points {
        for (run, &sample) in (1..).zip(&p.samples_ns) {
            let mut row = vec![words(&*p.part), p.label.name().into(), words(&*p.per)];
            row.extend(factors.iter().map(|name| factor(&p.factors, name)));
            row.extend([count(run), whole_ns(sample), count(p.count)]);
            sheet.rows.push(row);
        }
    }
    sheet
}
