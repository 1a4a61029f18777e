//! Tests of what people see of experiments.

use super::*;
use crate::record::lab::{CacheFacts, Derived, Factor, Factors, Finding, factors};
use crate::record::{Head, HostFacts};
use crate::stats::Summary;

pub(super) fn record(experiment: &str) -> LabRecord {
    LabRecord {
        head: Head::new(format!("pageinit/lab-{experiment}/1"), &[]),
        started_unix_s: 0,
        seed: 5,
        runs: 3,
        host: HostFacts { arch: "x86_64".into(), ..HostFacts::default() },
        caches: vec![CacheFacts { level: 1, bytes: 32 << 10 }],
        settings: Factors::new(),
        points: vec![],
        derived: vec![],
        findings: vec![],
        published: vec![],
    }
}

#[test]
fn nothing_measured_is_said() {
    for experiment in ["prefetch", "clear-huge", "mremap", "pte-scan", "other"] {
        let text = text(&record(experiment));
        assert!(text.contains("Nothing was measured"), "{text}");
        assert!(text.starts_with(&format!("lab {experiment}: measured on")), "{text}");
    }
}

#[test]
fn an_incomplete_record_says_so_and_findings_have_intervals() {
    let mut record = record("prefetch");
    record.head.complete = false;
    let of = |name: &str, bytes: u64, then: &str| {
        factors([
            ("prepare", "rep-stosb".into()),
            ("kind", "temporal".into()),
            ("threads", 1.into()),
            ("distance", Factor::from(name)),
            ("distance_bytes", bytes.into()),
            ("then", then.into()),
        ])
    };
    record.settings = factors([("kernel_store", "rep-stosb".into())]);
    for (name, bytes) in [("4KiB", 4096), ("64KiB", 65536)] {
        let point = LabPoint::measured(
            "passes",
            of(name, bytes, "fields"),
            ("struct-page", 100),
            &[200],
            1,
        );
        record.points.extend(point);
        let mut shared = of(name, bytes, "fields");
        shared.remove("then");
        let value = Summary { median: 0.5, ci95: [0.25, 0.75] };
        for what in ["second_touch_ns", "paid_share"] {
            record.derived.push(Derived { what: what.into(), factors: shared.clone(), value });
        }
    }
    let value = Some(Summary { median: 0.5, ci95: [0.25, 0.75] });
    record.findings.push(Finding { code: "x".into(), text: "it is so".into(), value });
    let text = text(&record);
    assert!(text.contains("INCOMPLETE"), "{text}");
    assert!(text.contains("it is so [95 %: 0.25 to 0.75]"), "{text}");
    assert!(text.contains("2.00, 0.50 (50 %)"), "{text}");
    let (small, cache, large) =
        (text.find(" 4KiB 0.50"), text.find("L1 cache"), text.rfind("64KiB"));
    let _ = small;
    assert!(cache < large && cache.is_some(), "{text}");
}

#[test]
fn bars_have_a_length_in_proportion() {
    assert_eq!(bar(5.0, 10.0, 10).chars().count(), 5);
    assert_eq!(bar(-1.0, 10.0, 10), "");
    assert_eq!(bar(1.0, 0.0, 10), "");
}
