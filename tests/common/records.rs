//! Many records and large ones, made up: for sizes of pages, in tests and benchmarks.

use pageinit::record::any::AnyRecord;
use pageinit::record::sweep::{SWEEP_SCHEMA, Sweep, SweepPoint};
use pageinit::record::{Head, Label};
use pageinit::report::source::Source;

/// A record of `compare` with memory, warnings and several strategies.
const COMPARE: &str = include_str!("../../fixtures/records/compare-v1-memory.json");

/// So many records of as many hosts.
pub(crate) fn many(count: usize) -> Vec<Source> {
    let first = Source::read("first", COMPARE).expect("a record");
    let record = |index: usize| {
        let mut source = first.clone();
        source.name = format!("results/host-{index:04}.json");
        if let AnyRecord::Compare(record) = &mut source.record {
            record.host.cpu_model = Some(format!("Example CPU {index}"));
            record.head.complete = index % 10 != 3;
        }
        source
    };
    (0..count).map(record).collect()
}

/// A sweep with at least so many points: kernels × strategies × chunks × threads.
pub(crate) fn sweep(count: usize) -> Source {
    let strategies = ["deferred", "block", "fused", "fused-nt"];
    let mut points = Vec::with_capacity(count);
    let mut chunk = 1u64;
    while points.len() < count {
        for strategy in strategies {
            points.extend((1..=500u32).map(|threads| SweepPoint {
                kernel: "6.12".into(),
                strategy: strategy.into(),
                threads,
                chunk_bytes: Some(chunk << 20),
                total_ns: 5_000_000_000 / u64::from(threads) + 40_000_000 + chunk,
                boot_cpu_ns: 40_000_000,
                nodes_ns: 5_000_000_000 / u64::from(threads) + chunk,
                node_bytes: Some(12 << 30),
                range_ns: [1, 9_000_000_000],
                bound_by: format!("bandwidth node {}", threads % 16),
            }));
        }
        chunk += 1;
    }
    let record = Sweep {
        head: Head::new(SWEEP_SCHEMA, &["pageinit".into(), "sweep".into()]),
        label: Label::Modelled,
        machine: "@example".into(),
        title: "An example".into(),
        class: "example".into(),
        points,
        knees: vec![],
        best_chunks: vec![],
        setup_zero: vec![],
    };
    Source { name: "sweep.json".into(), record: AnyRecord::Sweep(Box::new(record)) }
}
