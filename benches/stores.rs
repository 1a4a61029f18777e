//! Fills of a faulted arena by every store that this CPU has: zeros and images.
//!
//! `cargo bench --bench stores`; with the environment variable
//! `PAGEINIT_BENCH_SMOKE` set the arena is small and the numbers mean nothing.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pageinit::host::{Arena, HostTopology, Line, Store};
use std::hint::black_box;
use std::time::Duration;

/// Far larger than any cache.
const FULL_BYTES: usize = 256 << 20;
const SMOKE_BYTES: usize = 1 << 20;

/// What a `struct page` of node 0 looks like: flags, two list pointers to itself, and
/// so on; the pointers advance by its size.
const FIRST: [u64; 8] =
    [1 << 36, 0xffff_ea00_0000_0008, 0xffff_ea00_0000_0008, 0, 0, 0, 0x1_ffff_ffff, 0];
const STEP: [u64; 8] = [0, 64, 64, 0, 0, 0, 0, 0];

fn is_smoke() -> bool {
    std::env::var_os("PAGEINIT_BENCH_SMOKE").is_some()
}

/// A faulted arena, with this thread pinned next to it.
fn arena() -> Result<Arena, Box<dyn std::error::Error>> {
    let topo = HostTopology::load()?;
    let bytes = if is_smoke() { SMOKE_BYTES } else { FULL_BYTES };
    let mut arena = Arena::map(bytes / size_of::<Line>())?;
    let node = topo.nodes().into_iter().find(|node| !node.cpus.is_empty());
    let node = node.ok_or("no node has a CPU that this process may use")?;
    // A container may refuse the binding; then the first touch places the memory.
    let _ = arena.bind(&topo, node.nid);
    arena.fault_in(&topo, &node.cpus[..1], &|_| (), &|| false)?;
    topo.pin_thread(node.cpus[0])?;
    Ok(arena)
}

fn fills(criterion: &mut Criterion) {
    let mut arena = arena().unwrap_or_else(|error| panic!("no arena: {error}"));
    let bytes = size_of_val(arena.lines()) as u64;
    let mut group = criterion.benchmark_group("zero");
    group.throughput(Throughput::Bytes(bytes));
    for store in Store::available() {
        group.bench_function(store.name(), |bencher| {
            bencher.iter(|| store.zero(black_box(arena.lines_mut())));
        });
    }
    group.finish();
    let mut group = criterion.benchmark_group("image");
    group.throughput(Throughput::Bytes(bytes));
    for store in Store::available().iter().filter_map(Store::as_image) {
        group.bench_function(store.name(), |bencher| {
            bencher.iter(|| store.write_images(black_box(arena.lines_mut()), FIRST, STEP));
        });
    }
    group.finish();
}

fn settings() -> Criterion {
    let (warm_up_ms, time_ms) = if is_smoke() { (1, 10) } else { (300, 2000) };
    Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(warm_up_ms))
        .measurement_time(Duration::from_millis(time_ms))
        .without_plots()
}

criterion_group! { name = benches; config = settings(); targets = fills }
criterion_main!(benches);
