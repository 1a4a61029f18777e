//! Sweeps of small axes: order, findings, shapes, and going on from a record.

use super::*;
use crate::kernel::KernelVersion;
use crate::machine::input;
use crate::progress::Silent;
use crate::record::sweep::SweepPoint;
use crate::units::GIB;
use std::sync::atomic::{AtomicUsize, Ordering};

fn machine() -> Machine {
    input::load("@2n-skylake-768g", None).unwrap()
}

fn axes(machine: &Machine, threads: &[u32]) -> Axes {
    let kernels = [KernelModel::new(KernelVersion::new(5, 10), machine.arch)];
    Axes {
        chunks: vec![None, Some(GIB)],
        ..Axes::of_machine(&kernels, &[Strategy::SetupZero, Strategy::Deferred], threads)
    }
}

fn question() -> Question {
    Question { free: true, argv: vec!["pageinit".into(), "sweep".into()], ..Question::default() }
}

fn run(threads: &[u32]) -> Result<Sweep, StudyError> {
    let machine = machine();
    sweep(&machine, &axes(&machine, threads), &question(), Control::of(&Silent))
}

#[test]
fn every_combination_is_there_once_and_in_order() {
    let s = run(&[1, 8, 52]).unwrap();
    assert_eq!(s.points.len(), 12);
    assert_eq!(s.knees.len(), 4);
    assert_eq!(s.best_chunks.len(), 2);
    assert_eq!(s.setup_zero.len(), 2);
    assert!(s.head.complete && s.skipped.is_empty());
    let order: Vec<_> = s.points.iter().map(|p| (p.strategy.as_str(), p.chunk_bytes)).collect();
    assert_eq!(order[..6], [[("setup-zero", None); 3], [("setup-zero", Some(GIB)); 3]].concat());
    assert_eq!(run(&[1, 8, 52]).unwrap(), s);
}

#[test]
fn a_knee_lies_where_bandwidth_is_full() {
    let s = run(&[1, 2, 4, 8, 16, 26, 40]).unwrap();
    let knee = s.knees.iter().find(|k| k.strategy == "deferred").unwrap();
    assert!((8..=26).contains(&knee.threads), "{knee:?}");
    assert!(knee.nodes_ns as f64 <= knee.least_ns as f64 / 0.95);
}

// The last CPU ends the settling, which is no reason to start 20 threads more.
#[test]
fn a_knee_is_not_the_last_cpu() {
    let s = run(&(1..=52).collect::<Vec<_>>()).unwrap();
    for knee in &s.knees {
        assert!((6..=26).contains(&knee.threads) && knee.least_ns < knee.nodes_ns, "{knee:?}");
    }
    assert!(s.points.iter().any(|p| p.settle_ns > 0));
}

#[test]
fn zeroing_apart_costs_a_second_pass() {
    let s = run(&[1, 26]).unwrap();
    let ratios = &s.setup_zero[0].ratios;
    assert!(ratios[0].1 > 1.3 && ratios[1].1 > 1.3, "{ratios:?}");
    assert_eq!(s.setup_zero[0].negligible_from, None);
}

#[test]
fn sweeps_of_nothing_and_of_too_much_are_refused() {
    assert!(check_points(0, 10).unwrap_err().to_string().contains("no points"));
    let error = check_points(10_000_000, 100_000).unwrap_err().to_string();
    assert!(error.contains("10000000") && error.contains("--max-points"), "{error}");
    assert!(run(&[53]).unwrap_err().to_string().contains("at most 52"));
}

#[test]
fn machines_are_varied_and_grouped() {
    let machine = machine();
    let varied = Axes {
        nodes: vec![Some(1), Some(2), Some(4)],
        memory_bytes: vec![Some(256 * GIB), Some(512 * GIB)],
        ..axes(&machine, &[1, 4])
    };
    let s = sweep(&machine, &varied, &question(), Control::of(&Silent)).unwrap();
    assert_eq!((s.points.len() as u128, varied.points()), (48, 48));
    assert_eq!((s.knees.len(), s.best_chunks.len(), s.setup_zero.len()), (24, 12, 12));
    let of = |nodes, gib: u64| -> &SweepPoint {
        let found = s.points.iter().find(|p| {
            (p.nodes, p.memory_bytes, p.strategy.as_str(), p.threads, p.chunk_bytes)
                == (Some(nodes), Some(gib * GIB), "deferred", 1, None)
        });
        found.unwrap()
    };
    let ratio = |a: &SweepPoint, b: &SweepPoint| a.nodes_ns as f64 / b.nodes_ns as f64;
    assert!((1.8..2.2).contains(&ratio(of(2, 512), of(2, 256))));
    assert!((1.8..2.2).contains(&ratio(of(1, 256), of(2, 256))));
    assert!(s.head.warnings.iter().any(|w| w.code == "varied-machine"));
}

#[test]
fn what_no_machine_can_be_is_listed_with_its_reason() {
    let machine = machine();
    let varied = Axes { memory_bytes: vec![Some(1 << 20), Some(GIB)], ..axes(&machine, &[1]) };
    let s = sweep(&machine, &varied, &question(), Control::of(&Silent)).unwrap();
    assert_eq!((s.points.len(), s.skipped.len()), (4, 4));
    assert!(s.head.complete && s.skipped[0].reason.contains("memory section"));
}

/// Stops a sweep when it was asked so often.
fn stopped_after(asks: usize, kept: Option<Sweep>) -> Sweep {
    let machine = machine();
    let asked = AtomicUsize::new(0);
    let stop = || asked.fetch_add(1, Ordering::Relaxed) >= asks;
    let control = Control { stop: &stop, kept, ..Control::of(&Silent) };
    let threads: Vec<u32> = (1..=40).collect();
    sweep(&machine, &axes(&machine, &threads), &question(), control).unwrap()
}

#[test]
fn a_stopped_sweep_goes_on_to_the_same_record() {
    let whole = stopped_after(usize::MAX, None);
    assert_eq!(whole.points.len(), 160);
    for asks in [0, 1, 30, 100, 158] {
        let part = stopped_after(asks, None);
        assert!(!part.head.complete && part.points.len() < 160, "{asks}");
        let text = serde_json::to_string(&part).unwrap();
        let read: Sweep = serde_json::from_str(&text).unwrap();
        assert_eq!(read, part);
        assert_eq!(stopped_after(usize::MAX, Some(read)), whole, "{asks}");
    }
}

#[test]
fn only_the_same_question_goes_on() {
    let kept = run(&[1, 8]).unwrap();
    let machine = machine();
    let refused = |axes: &Axes, question: &Question, kept: Sweep| {
        let control = Control { kept: Some(kept), ..Control::of(&Silent) };
        sweep(&machine, axes, question, control).unwrap_err().to_string()
    };
    let text = refused(&axes(&machine, &[1, 9]), &question(), kept.clone());
    assert!(text.contains("its threads: [1,8], now [1,9]"), "{text}");
    let other = Question { free: false, ..question() };
    let text = refused(&axes(&machine, &[1, 8]), &other, kept.clone());
    assert!(text.contains("its free: true, now false"), "{text}");
    let mut old = kept.clone();
    old.head.tool.version = "0.0.1".into();
    assert!(refused(&axes(&machine, &[1, 8]), &question(), old).contains("0.0.1"));
    let mut renamed = machine.clone();
    renamed.nodes[0].channels = Some(2);
    let control = Control { kept: Some(kept), ..Control::of(&Silent) };
    let error = sweep(&renamed, &axes(&machine, &[1, 8]), &question(), control).unwrap_err();
    assert!(error.to_string().contains("its machine is another"), "{error}");
}

#[test]
fn records_of_the_first_version_are_read() {
    let text = r#"{"schema":"pageinit/sweep/1","tool":{"name":"pageinit","version":"0.1.0"},
        "argv":[],"complete":true,"warnings":[],"label":"modelled","machine":"m","title":"t",
        "class":"c","points":[{"kernel":"6.12","strategy":"deferred","threads":1,
        "chunk_bytes":null,"total_ns":1,"boot_cpu_ns":1,"nodes_ns":1,"range_ns":[1,2],
        "bound_by":"nothing"}],"knees":[{"kernel":"6.12","strategy":"deferred",
        "chunk_bytes":null,"threads":1,"nodes_ns":1,"least_ns":1}],"best_chunks":[],
        "setup_zero":[]}"#;
    let read: Sweep = serde_json::from_str(text).unwrap();
    assert_eq!((read.points[0].nodes, read.points[0].measured.as_ref()), (None, None));
    assert_eq!(read.knees[0].shape.nodes, None);
}
