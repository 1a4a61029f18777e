//! Tests of differences: on one real record, changed by hand.

use super::*;
use crate::record::Record;
use proptest::prelude::*;

const V1: &str = include_str!("../../../fixtures/records/compare-v1.json");

fn record() -> Record {
    serde_json::from_str(V1).unwrap()
}

/// The record with every run of the chosen points `factor` times as long.
fn times(factor: f64, chosen: impl Fn(&crate::record::Point) -> bool) -> Record {
    let mut record = record();
    for point in record.points.iter_mut().filter(|p| chosen(p)) {
        for ns in &mut point.samples_ns {
            *ns = (*ns as f64 * factor) as u64;
        }
        point.median_ns *= factor;
    }
    record
}

fn against_v1(b: Record) -> Diff {
    let (a, b) = (AnyRecord::Compare(record().into()), AnyRecord::Compare(b.into()));
    of(&a, &b).unwrap()
}

fn of(a: &AnyRecord, b: &AnyRecord) -> Result<Diff, DiffError> {
    diff(Side { name: "a", record: a }, Side { name: "b", record: b }, 0.05, &[])
}

fn codes(diff: &Diff) -> Vec<&str> {
    diff.head.warnings.iter().map(|w| w.code.as_str()).collect()
}

#[test]
fn a_record_does_not_differ_from_itself() {
    let same = against_v1(record());
    assert_eq!((same.verdict, same.rows.len()), (Verdict::Inconclusive, record().points.len()));
    assert!(same.rows.iter().all(|row| row.ratio == Some(1.0)), "{same:?}");
    assert!(same.differences.is_empty() && same.only_in_a.is_empty() && codes(&same).is_empty());
}

#[test]
fn one_slower_strategy_makes_all_slower() {
    let slower = against_v1(times(2.0, |p| p.strategy == "fused"));
    assert_eq!(slower.verdict, Verdict::Slower, "{}", slower.rule);
    assert!(slower.rule.contains("of 9 totals of strategies, 1 slower, 0 faster"), "{slower:?}");
    let faster = against_v1(times(0.4, |p| p.strategy == "fused"));
    assert_eq!(faster.verdict, Verdict::Faster);
    // What is not a total of a strategy decides nothing.
    let probe = against_v1(times(3.0, |p| p.strategy.starts_with("probe-") || p.phase != "total"));
    assert_eq!(probe.verdict, Verdict::Inconclusive);
    assert!(probe.rows.iter().any(|row| row.verdict == Verdict::Slower && !row.decides));
}

#[test]
fn few_runs_are_never_certain() {
    let mut few = times(5.0, |_| true);
    for point in &mut few.points {
        point.samples_ns.truncate(3);
    }
    few.head.complete = false;
    let diff = against_v1(few);
    assert_eq!(diff.verdict, Verdict::Inconclusive);
    assert!(diff.rows.iter().all(|row| row.ci95.is_none() && !row.within_threshold));
    assert_eq!(codes(&diff), ["incomplete-record", "few-runs"]);
}

#[test]
fn rows_only_in_one_and_other_facts_are_listed() {
    let mut other = record();
    other.points.retain(|p| p.strategy != "serial");
    other.host.cpu_model = None;
    other.kernel["config"]["hz"] = 1000.into();
    other.execution.overhead_share = Some(0.5);
    let diff = against_v1(other);
    assert!(!diff.only_in_a.is_empty() && diff.only_in_b.is_empty());
    let text = |d: &crate::record::diff::Difference| (d.what.clone(), d.a.clone(), d.b.clone());
    let some = |text: &str| Some(text.to_owned());
    let wanted = [
        ("host.cpu_model".to_owned(), some("Example CPU"), None),
        ("kernel.config.hz".to_owned(), some("250"), some("1000")),
    ];
    assert_eq!(diff.differences.iter().map(text).collect::<Vec<_>>(), wanted);
}

#[test]
fn what_cannot_be_compared_is_an_error() {
    let a = AnyRecord::Compare(record().into());
    let mut apart = record();
    apart.points.iter_mut().for_each(|p| p.threads += 1);
    let b = AnyRecord::Compare(apart.into());
    assert!(matches!(of(&a, &b), Err(DiffError::NoRow { .. })));
    let mut modelled = record();
    modelled.points.iter_mut().for_each(|p| p.label = Label::Modelled);
    let b = AnyRecord::Compare(modelled.into());
    assert!(matches!(of(&a, &b), Err(DiffError::Labels { .. })));
    let text = include_str!("../../../fixtures/records/estimate-v1.json");
    let b = AnyRecord::read(text).unwrap();
    assert!(matches!(of(&a, &b), Err(DiffError::Kinds { .. })));
}

#[test]
fn predictions_are_compared_exactly() {
    let text = include_str!("../../../fixtures/records/estimate-v1.json");
    let AnyRecord::Estimate(e) = AnyRecord::read(text).unwrap() else { panic!("an estimate") };
    let mut longer = e.clone();
    longer.total_ns = e.total_ns / 100 * 110;
    let diff = of(&AnyRecord::Estimate(e), &AnyRecord::Estimate(longer)).unwrap();
    assert_eq!((diff.verdict, diff.label), (Verdict::Slower, Label::Modelled));
    assert!(diff.rows.iter().all(|row| row.ci95.is_none()));
}

proptest! {
    #[test]
    fn changing_the_sides_changes_the_verdict(
        low in 0.1f64..3.0,
        width in 0.0f64..1.0,
        t in 0.0f64..0.5,
    ) {
        let high = low + width;
        let (there, within) = judge([low, high], t);
        let (back, within_back) = judge([high.recip(), low.recip()], t);
        let turned = match there {
            Verdict::Faster => Verdict::Slower,
            Verdict::Slower => Verdict::Faster,
            Verdict::Inconclusive => Verdict::Inconclusive,
        };
        // Rounding may put a bound on the other side of the threshold.
        let close = |x: f64| (x.ln().abs() - (1.0 + t).ln()).abs() < 1e-9;
        prop_assume!(!close(low) && !close(high));
        prop_assert_eq!((back, within_back), (turned, within));
        prop_assert!(!within || there == Verdict::Inconclusive);
    }
}
