//! Two records against each other: what became faster or slower, and is it certain.
//!
//! [`diff()`] matches rows by what tells them apart ([`rows`]), takes ratios B ÷ A, and
//! lists what else differs ([`facts`]). Runs of two records do not belong together, so an
//! interval is the bootstrap of a ratio of medians. It covers the spread within the
//! records, not what differs from one start of the program to the next.

mod facts;
mod rows;

use crate::record::Head;
use crate::record::Label;
use crate::record::any::AnyRecord;
use crate::record::diff::{DIFF_SCHEMA, Diff, DiffRow, Verdict};
use crate::record::lab::Factors;
use crate::stats::{median, ratio_of_medians};
use crate::warning::Warning;
use rayon::prelude::*;
use rows::Row;
use std::collections::HashMap;

/// Fewer runs on either side have no interval: with three and three, chance alone puts all
/// of one side above all of the other in one of ten cases.
const FEWEST_RUNS: usize = 4;

/// The seed of the intervals: the same records give the same verdict.
const SEED: u64 = 1;

/// Why two records cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiffError {
    /// Records of different verbs or experiments.
    #[error("{a} is a record of {a_kind}, {b} of {b_kind}: they have nothing in common")]
    Kinds {
        /// A's name.
        a: String,
        /// What A is.
        a_kind: String,
        /// B's name.
        b: String,
        /// What B is.
        b_kind: String,
    },
    /// Times of different origin.
    #[error(
        "the times of {a} are {a_label}, those of {b} are {b_label}: their ratio means nothing"
    )]
    Labels {
        /// A's name.
        a: String,
        /// How A's times came about.
        a_label: &'static str,
        /// B's name.
        b: String,
        /// How B's times came about.
        b_label: &'static str,
    },
    /// Records without times of this host or machine.
    #[error("records of {0} have no times that could be faster or slower")]
    NoTimes(String),
    /// Not one row in both.
    #[error("no row is in both: {a} has {in_a}, {b} has {in_b}")]
    NoRow {
        /// A's name.
        a: String,
        /// One of its rows.
        in_a: String,
        /// B's name.
        b: String,
        /// One of its rows.
        in_b: String,
    },
}

/// A record with the name it is called by.
#[derive(Clone, Copy, Debug)]
pub struct Side<'r> {
    /// Its file.
    pub name: &'r str,
    /// What it holds.
    pub record: &'r AnyRecord,
}

/// Compares `b` with `a`. A difference counts above `threshold`, a share such as 0.05.
///
/// # Errors
/// Records that have nothing to compare, see [`DiffError`].
pub fn diff(a: Side<'_>, b: Side<'_>, threshold: f64, argv: &[String]) -> Result<Diff, DiffError> {
    let kind = a.record.kind();
    check_kinds(a, b)?;
    let (of_a, of_b) = (rows::rows(a.record), rows::rows(b.record));
    let label = check_labels(a, &of_a, b, &of_b)?;
    let (by_id_a, by_id_b) = (by_id(&of_a), by_id(&of_b));
    let pairs: Vec<(&Row, &Row)> =
        of_a.iter().filter_map(|row| Some((row, *by_id_b.get(row.id.as_str())?))).collect();
    if pairs.is_empty() {
        let first = |rows: &[Row]| rows.first().map_or_else(|| "none".into(), |r| key_text(&r.key));
        let (in_a, in_b) = (first(&of_a), first(&of_b));
        return Err(DiffError::NoRow { a: a.name.into(), in_a, b: b.name.into(), in_b });
    }
    let alone = |rows: &[Row], other: &HashMap<&str, &Row>| -> Vec<Factors> {
        let only = rows.iter().filter(|row| !other.contains_key(row.id.as_str()));
        only.map(|row| row.key.clone()).collect()
    };
    let rows: Vec<DiffRow> =
        pairs.par_iter().map(|(a, b)| row(a, b, threshold, needs_runs(a, b, &kind))).collect();
    let (verdict, rule) = overall(&rows, &kind, threshold);
    Ok(Diff {
        head: Head::new(DIFF_SCHEMA, argv).with_warnings(warnings(a, b, &pairs, &kind)),
        only_in_a: alone(&of_a, &by_id_b),
        only_in_b: alone(&of_b, &by_id_a),
        differences: facts::differences(a.record, b.record),
        a: a.name.into(),
        b: b.name.into(),
        kind,
        label,
        threshold,
        verdict,
        rule,
        rows,
    })
}

fn by_id(rows: &[Row]) -> HashMap<&str, &Row> {
    rows.iter().map(|row| (row.id.as_str(), row)).collect()
}

fn check_kinds(a: Side<'_>, b: Side<'_>) -> Result<(), DiffError> {
    let (a_kind, b_kind) = (a.record.kind(), b.record.kind());
    if a_kind != b_kind {
        return Err(DiffError::Kinds { a: a.name.into(), a_kind, b: b.name.into(), b_kind });
    }
    match a.record {
        AnyRecord::Validate(_) => Err(DiffError::NoTimes(a_kind)),
        _ => Ok(()),
    }
}

/// The common label of all rows.
fn check_labels(a: Side<'_>, of_a: &[Row], b: Side<'_>, of_b: &[Row]) -> Result<Label, DiffError> {
    let first = of_a.first().map_or(Label::Modelled, |row| row.label);
    match of_a.iter().chain(of_b).find(|row| row.label != first) {
        None => Ok(first),
        Some(other) => Err(DiffError::Labels {
            a: a.name.into(),
            a_label: first.name(),
            b: b.name.into(),
            b_label: other.label.name(),
        }),
    }
}

/// Whether a verdict on two rows needs an interval. Predictions have no runs; rates of
/// calibrations have lost theirs.
fn needs_runs(a: &Row, b: &Row, kind: &str) -> bool {
    let none = a.samples_ns.is_empty() && b.samples_ns.is_empty();
    a.label != Label::Modelled && !(none && kind == "calibrate")
}

fn row(a: &Row, b: &Row, threshold: f64, needs_runs: bool) -> DiffRow {
    let ratio = Some(b.ns / a.ns).filter(|ratio| ratio.is_finite());
    let enough = a.samples_ns.len().min(b.samples_ns.len()) >= FEWEST_RUNS;
    let summary = ratio_of_medians(&b.samples_ns, &a.samples_ns, SEED).filter(|_| enough);
    let ci95 = summary.map(|s| s.ci95);
    let interval = if needs_runs { ci95 } else { ratio.map(|ratio| [ratio, ratio]) };
    let (verdict, within_threshold) =
        interval.map_or((Verdict::Inconclusive, false), |interval| judge(interval, threshold));
    DiffRow {
        key: a.key.clone(),
        per: a.per.clone(),
        a_ns: a.ns,
        b_ns: b.ns,
        ratio,
        ci95,
        verdict,
        within_threshold,
        decides: a.decides,
    }
}

/// Slower above 1 + threshold, faster below its reciprocal, so that changing the sides
/// changes the verdict; and whether all of it lies between.
fn judge([low, high]: [f64; 2], threshold: f64) -> (Verdict, bool) {
    let above = 1.0 + threshold;
    let below = above.recip();
    let verdict = match () {
        () if low > above => Verdict::Slower,
        () if high < below => Verdict::Faster,
        () => Verdict::Inconclusive,
    };
    (verdict, low >= below && high <= above)
}

/// The verdict on all, and how it came about.
fn overall(rows: &[DiffRow], kind: &str, threshold: f64) -> (Verdict, String) {
    let deciding: Vec<&DiffRow> = rows.iter().filter(|row| row.decides).collect();
    if deciding.is_empty() {
        return (Verdict::Inconclusive, "no row that decides is in both records".into());
    }
    if kind == "calibrate" || kind.starts_with("lab") {
        let ratios: Vec<f64> = deciding.iter().filter_map(|row| row.ratio).collect();
        if ratios.is_empty() {
            return (Verdict::Inconclusive, "no row that decides has a ratio".into());
        }
        let middle = median(&ratios);
        let rule = format!(
            "the median of the ratios of {} rows, {middle:.3}, against the threshold alone",
            ratios.len()
        );
        return (judge([middle, middle], threshold).0, rule);
    }
    let count = |verdict| deciding.iter().filter(|row| row.verdict == verdict).count();
    let (slower, faster) = (count(Verdict::Slower), count(Verdict::Faster));
    let verdict = match (slower, faster) {
        (0, 0) => Verdict::Inconclusive,
        (0, _) => Verdict::Faster,
        _ => Verdict::Slower,
    };
    let of = match kind {
        "compare" => "totals of strategies",
        "sweep" => "points",
        _ => "totals",
    };
    let rule = format!(
        "slower if one is, else faster if one is: of {} {of}, {slower} slower, {faster} faster",
        deciding.len()
    );
    (verdict, rule)
}

fn warnings(a: Side<'_>, b: Side<'_>, pairs: &[(&Row, &Row)], kind: &str) -> Vec<Warning> {
    let mut out = Vec::new();
    for side in [a, b].into_iter().filter(|side| !side.record.head().complete) {
        let text = format!("{} is incomplete: it has fewer runs than asked for", side.name);
        out.push(Warning::new("incomplete-record", text, "measure it again"));
    }
    let few = |(a, b): &&(&Row, &Row)| {
        let runs = a.samples_ns.len().min(b.samples_ns.len());
        (1..FEWEST_RUNS).contains(&runs)
    };
    if let few @ 1.. = pairs.iter().filter(few).count() {
        let text = format!("{few} rows have fewer than {FEWEST_RUNS} runs on one side");
        out.push(Warning::new("few-runs", text, "they stay inconclusive; use a larger --runs"));
    }
    if kind == "calibrate" {
        let text =
            "rates of calibrations have no single runs: verdicts on them are by threshold alone";
        out.push(Warning::new("no-runs", text, "records of compare have intervals"));
    }
    if pairs.iter().any(|(a, b)| a.pages != b.pages) {
        let text = "the records are of different numbers of struct pages";
        out.push(Warning::new("other-pages", text, "times are compared per struct page"));
    }
    out
}

/// What tells a row apart, for people.
pub fn key_text(key: &Factors) -> String {
    use crate::record::lab::Factor;
    let part = |(name, value): (&String, &Factor)| match value {
        Factor::Number(number) => format!("{name} {number}"),
        Factor::Name(text) => format!("{name} {text}"),
    };
    key.iter().map(part).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
#[path = "diff/tests.rs"]
mod tests;
