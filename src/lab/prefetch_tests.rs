//! Tests of the prefetch experiment: its loops, its cases, its figures.

use super::*;
use crate::lab::bench_of_tests::with_lab;

/// ```text
///   distance 3 | z z z f f f | z z z f f f | z f |     block 1024 ends sooner or later
/// ```
#[test]
fn every_pass_leaves_what_is_expected_at_any_distance() {
    let mut prepares = vec![Prepare::Nothing, Prepare::Inline, Prepare::Prefetchw];
    prepares.extend(Store::available().into_iter().map(Prepare::Zero));
    for prepare in prepares {
        for distance in [1, 3, 64, 1024, 1500, usize::MAX] {
            for then in [Then::Nothing, Then::Fields, Then::FieldsAndFree] {
                let mut lines = vec![Line::new([u64::MAX; 8]); 2500];
                pass(&mut lines, 70, &prepare, distance, then);
                for (at, line) in lines.iter().enumerate() {
                    let wanted = expected(at + 70, &prepare, then);
                    assert_eq!(line.words(), wanted, "{prepare:?} {distance} {then:?} {at}");
                }
            }
        }
    }
}

#[test]
fn a_wrong_line_is_found() {
    let (prepare, distance) = (Prepare::Inline, DISTANCES[0]);
    let case = Case { prepare, distance, then: Then::Fields, threads: 1 };
    let mut lines = vec![Line::new([u64::MAX; 8]); 100];
    pass(&mut lines, 0, &prepare, 1, case.then);
    assert!(check(&lines, &case).is_ok());
    lines[77].set_word::<3>(1);
    let text = check(&lines, &case).unwrap_err().to_string();
    assert!(text.contains("inline") && text.contains("struct page 77"), "{text}");
}

fn node(cpus: usize) -> HostNode {
    HostNode { nid: 0, cpus: (0..cpus as u32).collect(), local_bytes: 1 }
}

#[test]
fn threads_double_up_to_the_largest() {
    let counts =
        |threads, cpus| thread_counts(&Options { threads, ..Options::default() }, &node(cpus)).ok();
    assert_eq!(counts(None, 1), Some(vec![1]));
    assert_eq!(counts(None, 6), Some(vec![1, 2, 4, 6]));
    assert_eq!(counts(Some(4), 6), Some(vec![1, 2, 4]));
    assert_eq!(counts(Some(7), 6), None);
    assert_eq!(counts(Some(0), 6), None);
}

#[test]
fn figures_are_taken_round_by_round() {
    let of = |prepare, then| Case { prepare, distance: DISTANCES[0], then, threads: 1 };
    let cases = [
        of(Prepare::Nothing, Then::Fields),
        of(Prepare::Inline, Then::Nothing),
        of(Prepare::Inline, Then::Fields),
    ];
    let of_case = vec![vec![80, 160, 80], vec![60, 120, 60], vec![68, 136, 68]];
    let samples = Samples { of_case, complete: true };
    let drawn = Drawn { cases: &cases, samples: &samples, lines: 10, seed: 1 };
    assert_eq!(drawn.paid(Prepare::Inline, DISTANCES[0], 1), [0.9, 0.9, 0.9]);
    let derived = drawn.derived();
    let find = |what: &str| derived.iter().find(|d| d.what == what).unwrap().value.median;
    assert!((find("second_touch_ns") - 0.8).abs() < 1e-9);
    assert!((find("adds_ns") + 1.2).abs() < 1e-9);
    let verdict = drawn.verdict(Prepare::Inline, DISTANCES[0], "zeroing-in-place").unwrap();
    assert_eq!(verdict.code, "zeroing-in-place-prefetches");
    assert!(drawn.verdict(Prepare::Prefetchw, DISTANCES[0], "x").is_none());
}

#[test]
fn a_small_run_is_complete_and_an_interrupted_one_is_not() {
    let buffer_bytes = Some(1 << 20);
    let stores = vec!["portable".to_owned(), Store::default_zero().name().to_owned()];
    let options = Options { buffer_bytes, stores, threads: Some(1) };
    let record = with_lab(&|| false, |lab| run(&lab, &options).unwrap());
    assert!(record.head.complete && record.points.iter().all(|p| p.samples_ns.len() == 2));
    assert!(record.derived.iter().any(|d| d.what == "paid_share"));
    assert_eq!(record.findings.len(), 3);
    let record = with_lab(&|| true, |lab| run(&lab, &options).unwrap());
    assert!(!record.head.complete && record.points.is_empty());
}

#[test]
fn bad_options_are_refused() {
    let fails = |options: Options| with_lab(&|| false, |lab| run(&lab, &options).unwrap_err());
    let error = fails(Options { buffer_bytes: Some(100), ..Options::default() });
    assert!(matches!(error, LabError::Usage(_)), "{error}");
    let error = fails(Options { stores: vec!["nonsense".into()], ..Options::default() });
    assert!(matches!(error, LabError::Store(_)), "{error}");
    let error = fails(Options { buffer_bytes: Some(1 << 50), ..Options::default() });
    assert!(matches!(error, LabError::NoMemory { .. }), "{error}");
}
