//! Many records and large ones, made up: for sizes of pages, in tests and benchmarks.

use pageinit::record::any::AnyRecord;
use pageinit::report::source::Source;
use serde_json::{Value, json};

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

/// A sweep with at least so many points: strategies × chunks × threads.
pub(crate) fn sweep(count: usize) -> Source {
    let strategies = ["deferred", "block", "fused", "fused-nt"];
    let mut points: Vec<Value> = Vec::with_capacity(count);
    let mut chunk = 1u64;
    while points.len() < count {
        for strategy in strategies {
            points.extend((1..=500u64).map(|threads| {
                json!({"kernel": "6.12", "strategy": strategy, "threads": threads,
                    "chunk_bytes": chunk << 20, "boot_cpu_ns": 40_000_000,
                    "total_ns": 5_000_000_000 / threads + 40_000_000 + chunk,
                    "nodes_ns": 5_000_000_000 / threads + chunk,
                    "node_bytes": 12_884_901_888u64, "range_ns": [1, 9_000_000_000u64],
                    "bound_by": format!("bandwidth node {}", threads % 16)})
            }));
        }
        chunk += 1;
    }
    let record = json!({"schema": "pageinit/sweep/1",
        "tool": {"name": "pageinit", "version": "0.1.0"}, "argv": ["pageinit", "sweep"],
        "complete": true, "warnings": [], "label": "modelled", "machine": "@example",
        "title": "An example", "class": "example", "points": points, "knees": [],
        "best_chunks": [], "setup_zero": []});
    Source::read("sweep.json", &record.to_string()).expect("a record")
}
