//! The array parts of the experiments: both scans of page-table entries, and clearing
//! one page in every order.
//!
//! `cargo bench --bench lab`; with the environment variable `PAGEINIT_BENCH_SMOKE` set
//! the arrays are small and the numbers mean nothing.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use pageinit::host::{Line, Store};
use pageinit::lab::clear_huge::cells::{Cell, clear};
use pageinit::lab::clear_huge::order::{Direction, Pair};
use pageinit::lab::pte_scan::patterns::{PATTERNS, fill};
use pageinit::lab::pte_scan::scan::{Algorithm, TABLE_PTES, orders_to, sweep};
use std::hint::black_box;
use std::time::Duration;

fn is_smoke() -> bool {
    std::env::var_os("PAGEINIT_BENCH_SMOKE").is_some()
}

fn sweeps(criterion: &mut Criterion) {
    let tables = if is_smoke() { 2 } else { 512 };
    let mut group = criterion.benchmark_group("pte-sweep");
    group.throughput(Throughput::Elements((tables * TABLE_PTES) as u64));
    for pattern in PATTERNS {
        for algorithm in Algorithm::ALL {
            group.bench_function(format!("{}/{}", pattern.name(), algorithm.name()), |bencher| {
                bencher.iter_batched(
                    || fill(pattern, tables, 1),
                    |ptes| black_box(sweep(&ptes, orders_to(8), algorithm)),
                    BatchSize::LargeInput,
                );
            });
        }
    }
    group.finish();
}

fn clears(criterion: &mut Criterion) {
    let bytes: u64 = if is_smoke() { 64 << 10 } else { 2 << 20 };
    let mut lines = vec![Line::default(); bytes as usize / 64];
    let mut group = criterion.benchmark_group("clear");
    group.throughput(Throughput::Bytes(bytes));
    for direction in Direction::ALL {
        for pair in [false, true] {
            let store = Store::default_zero();
            let cell = Cell { store, direction, chunk_bytes: 4096, bytes, pair, warm: true };
            let (chunks, counters) = (cell.order(), Pair::default());
            let name = if pair { "pair" } else { "plain" };
            group.bench_function(format!("{}/{name}", direction.name()), |bencher| {
                bencher.iter(|| clear(&cell, &chunks, black_box(&mut lines), &counters));
            });
        }
    }
    group.finish();
}

fn settings() -> Criterion {
    let (warm_up_ms, time_ms) = if is_smoke() { (1, 10) } else { (200, 1000) };
    Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(warm_up_ms))
        .measurement_time(Duration::from_millis(time_ms))
        .without_plots()
}

criterion_group! { name = benches; config = settings(); targets = sweeps, clears }
criterion_main!(benches);
