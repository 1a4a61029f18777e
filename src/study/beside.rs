//! Published ratios beside the same ones measured here.
//!
//! The series of 2026 on struct pages of device memory timed how long binding a device
//! again takes: with field by field stores, with a template, with a template streamed. The
//! deferred phases of three strategies do the same to struct pages, if nothing is freed.

use super::published::{self, Published};
use crate::plan::Strategy;
use crate::record::{Point, PublishedRatio, Record};
use crate::stats::{paired_ratios, summarise};

/// The publication.
const SERIES: &str = "lizhe-v1";

/// Its base, and what stands for its two proposals here.
const BASE: &str = "nd_pmem, base, rebind average of 30";
const PROPOSALS: [(&str, Strategy); 2] = [
    ("nd_pmem, template copy only, rebind", Strategy::Fused),
    ("nd_pmem, full series, rebind", Strategy::FusedNt),
];

/// The ratios of a record whose runs have both sides.
pub fn ratios(record: &Record) -> Vec<PublishedRatio> {
    // From 4.15 to 5.1 the base calls memset, which that series' kernel does not.
    let other_base = record.kernel["zero_style"] == "memset-call";
    let figures = published::builtin().records;
    let Some(series) = figures.iter().find(|r| r.id == SERIES && !other_base) else {
        return Vec::new();
    };
    let Some(base) = deferred_phase(record, Strategy::Deferred).next() else { return Vec::new() };
    let mut out = Vec::new();
    for (what, strategy) in PROPOSALS {
        let (Some(own), Some(of)) = (ms(series, what), ms(series, BASE)) else { continue };
        out.extend(deferred_phase(record, strategy).map(|point| {
            let as_f64 = |p: &Point| p.samples_ns.iter().map(|ns| *ns as f64).collect::<Vec<_>>();
            let summary = summarise(&paired_ratios(&as_f64(point), &as_f64(base)), record.seed);
            PublishedRatio {
                id: series.id.clone(),
                what: what.into(),
                machine: machine(series),
                strategy: point.strategy.clone(),
                store: point.store.clone(),
                baseline: base.strategy.clone(),
                published: own / of,
                measured: summary.median,
                ci95: summary.ci95,
                threads: point.threads,
                free: point.free,
            }
        }));
    }
    out
}

/// The threads' phases of a strategy on all nodes, one for each of its stores.
fn deferred_phase(record: &Record, strategy: Strategy) -> impl Iterator<Item = &Point> {
    record
        .points
        .iter()
        .filter(move |p| p.strategy == strategy.name() && p.phase == "deferred" && p.nid.is_none())
}

fn ms(series: &Published, what: &str) -> Option<f64> {
    series.figures.iter().find(|f| f.what == what)?.ms
}

fn machine(series: &Published) -> String {
    let m = &series.machine;
    let parts = [m.cpu.as_deref(), m.virt.as_deref()];
    let parts: Vec<&str> = parts.into_iter().flatten().collect();
    format!("{}, Linux {}", parts.join(", "), series.kernel)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Label;

    fn point(strategy: &str, samples_ns: &[u64]) -> Point {
        Point {
            strategy: strategy.into(),
            store: None,
            threads: 1,
            free: false,
            phase: "deferred".into(),
            nid: None,
            label: Label::Measured,
            executed_pages: 1,
            scaled_pages: 1,
            samples_ns: samples_ns.to_vec(),
            median_ns: 0.0,
            ci95_ns: [0.0; 2],
            scaled_median_ns: 0.0,
            verified: true,
        }
    }

    fn record(points: Vec<Point>) -> Record {
        let text = include_str!("../../fixtures/records/compare-v1.json");
        let record: Record = serde_json::from_str(text).unwrap();
        Record { points, ..record }
    }

    #[test]
    fn ratios_are_taken_run_by_run_and_need_both_sides() {
        let base = || point("deferred", &[100, 200, 400]);
        let of = |points| ratios(&record(points));
        let found = of(vec![base(), point("fused-nt", &[50, 100, 200])]);
        assert_eq!(found.len(), 1);
        assert!((found[0].published - 0.382).abs() < 0.001 && found[0].measured == 0.5);
        assert!(found[0].machine.contains("Ice Lake") && found[0].machine.contains("7.1"));
        assert!(of(vec![base()]).is_empty());
        assert!(of(vec![point("fused", &[1])]).is_empty());
        let mut old = record(vec![base(), point("fused", &[90, 180, 360])]);
        assert!((ratios(&old)[0].published - 0.9).abs() < 0.001);
        old.kernel["zero_style"] = "memset-call".into();
        assert!(ratios(&old).is_empty());
    }
}
