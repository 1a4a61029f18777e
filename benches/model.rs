//! How long predictions take: an estimate of a very large machine, and a sweep.
//!
//! `cargo bench --bench model`; with `PAGEINIT_BENCH_SMOKE` set everything is small and
//! the numbers mean nothing. Wanted: 64 TiB on 32 nodes with 4096 CPUs, every chunk
//! simulated, in 50 ms; 10 000 points of a machine with 12 TiB in 2 s on two cores;
//! time linear in chunks.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use pageinit::kernel::{KernelModel, KernelVersion};
use pageinit::machine::{Machine, input};
use pageinit::plan::Strategy;
use pageinit::progress::Silent;
use pageinit::study::estimate::{Case, Question, estimate};
use pageinit::study::sweep::{Axes, Control, sweep};
use std::hint::black_box;

/// The smallest chunk that is varied, in bytes.
const SMALLEST_CHUNK_BYTES: u64 = 128 << 20;

fn is_smoke() -> bool {
    std::env::var_os("PAGEINIT_BENCH_SMOKE").is_some()
}

fn question() -> Question {
    Question { free: true, ..Question::default() }
}

fn machine(text: &str) -> Machine {
    input::load(text, None).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn large() -> Machine {
    match is_smoke() {
        true => machine("node:2(memory=8GiB) core:2 pu:2"),
        false => machine("node:32(memory=2TiB) core:64 pu:2"),
    }
}

fn estimates(criterion: &mut Criterion) {
    let machine = large();
    let kernel = KernelModel::new(KernelVersion::new(6, 12), machine.arch);
    criterion.bench_function("estimate, one strategy", |bencher| {
        bencher.iter(|| {
            let case = Case::new(&machine, &kernel, &question()).expect("it has memory");
            let plan = case.plan(Strategy::Deferred, None, None, true);
            black_box(case.run(&plan))
        });
    });
    criterion.bench_function("estimate with all savings", |bencher| {
        bencher.iter(|| black_box(estimate(&machine, &kernel, &question())));
    });
}

fn chunks(criterion: &mut Criterion) {
    let machine = large();
    let kernel = KernelModel::new(KernelVersion::new(6, 12), machine.arch);
    let case = Case::new(&machine, &kernel, &question()).expect("it has memory");
    let mut group = criterion.benchmark_group("chunks");
    for mib in [1024, 256, 64, 16] {
        let plan = case.plan(Strategy::Deferred, None, Some(mib << 8), true);
        group.bench_function(BenchmarkId::from_parameter(format!("{mib} MiB")), |bencher| {
            bencher.iter(|| black_box(case.run(&plan)));
        });
    }
    group.finish();
}

fn sweeps(criterion: &mut Criterion) {
    let machine = machine("@16n-hp-12t");
    let versions = [(4, 14), (5, 1), (5, 10), (6, 12), (7, 3)];
    let kernels = versions
        .map(|(major, minor)| KernelModel::new(KernelVersion::new(major, minor), machine.arch));
    let threads: Vec<u32> = (1..=if is_smoke() { 2 } else { 30 }).collect();
    let axes = Axes {
        chunks: (0..if is_smoke() { 1 } else { 8 })
            .map(|i| (i > 0).then_some(SMALLEST_CHUNK_BYTES << i))
            .collect(),
        ..Axes::of_machine(&kernels, &Strategy::ALL, &threads)
    };
    let name = format!("sweep of {} points", axes.points());
    let mut group = criterion.benchmark_group("sweep");
    group.sample_size(10);
    group.bench_function(name, |bencher| {
        bencher.iter(|| black_box(sweep(&machine, &axes, &question(), Control::of(&Silent))));
    });
    group.finish();
}

criterion_group!(benches, estimates, chunks, sweeps);
criterion_main!(benches);
