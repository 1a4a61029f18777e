//! How long pages of many records take, how large they are, and the memory they need.
//!
//! The sizes are 1 000 records and a sweep of 100 000 points, or 20 and 2 000 with
//! `PAGEINIT_BENCH_SMOKE`. After each measurement the page's bytes and the peak memory
//! of the process are printed; the records lie in memory before the first one.

#[path = "../tests/common/records.rs"]
mod records;

use criterion::{Criterion, SamplingMode, criterion_group, criterion_main};
use pageinit::report::html::page;
use pageinit::report::source::Source;
use std::hint::black_box;
use std::time::{Duration, Instant};

fn peak_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib / 1024)
}

fn once(name: &str, sources: &[Source]) {
    let before = peak_mib().unwrap_or(0);
    let began = Instant::now();
    let bytes = page(sources, &[]).len();
    println!(
        "{name}: {bytes} bytes in {:.2} s, peak memory {} MiB ({before} MiB with the records)",
        began.elapsed().as_secs_f64(),
        peak_mib().unwrap_or(0)
    );
}

fn pages(c: &mut Criterion) {
    let is_smoke = std::env::var_os("PAGEINIT_BENCH_SMOKE").is_some();
    let (records, points) = if is_smoke { (20, 2_000) } else { (1_000, 100_000) };
    let mut group = c.benchmark_group("report");
    group.sampling_mode(SamplingMode::Flat).sample_size(10);
    group.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(100));
    let cases = [
        (format!("html of {records} records"), records::many(records)),
        (format!("html of {points} points"), vec![records::sweep(points)]),
    ];
    for (name, sources) in &cases {
        once(name, sources);
        group.bench_function(name, |b| b.iter(|| black_box(page(sources, &[]))));
    }
    group.finish();
}

criterion_group!(benches, pages);
criterion_main!(benches);
