//! How long the memory model takes on a large machine: 64 TiB, 32 nodes, thousands of
//! reservations. 6.12 allocates one buffer per node, 7.2 half a million single PMDs.
//! `layout` is the library call with the split into early and deferred pages, `split`
//! that part alone, `plan` a boot plan with all its chunks.
//!
//! With `PAGEINIT_BENCH_SMOKE` set the machine has 64 GiB, so that a test run can show
//! that the benchmark works.

use criterion::{Criterion, criterion_group, criterion_main};
use pageinit::kernel::boot::BootInput;
use pageinit::kernel::cmdline::CommandLine;
use pageinit::kernel::deferral::split;
use pageinit::kernel::layout::Layout;
use pageinit::kernel::memblock::MemblockFlags;
use pageinit::kernel::memory_map::{MemoryMap, MemoryRegion, ReservedRegion};
use pageinit::kernel::padata::chunks;
use pageinit::kernel::place::place;
use pageinit::kernel::sparse_rules::{Platform, ReleaseRules};
use pageinit::kernel::version::KernelModel;
use pageinit::machine::Arch;
use pageinit::pfn::Nid;
use pageinit::plan::Strategy;
use std::hint::black_box;
use std::time::Duration;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const NODES: u64 = 32;

/// `NODES` nodes of `node_bytes`, each with `holes` reservations of growing size, some
/// with less than 2 MiB between them.
fn fragmented(node_bytes: u64, holes: u64) -> MemoryMap {
    let mut map = MemoryMap::default();
    for n in 0..NODES {
        let start = n * node_bytes + 4 * GIB;
        let (end, nid) = (start + node_bytes, Nid(n as u32));
        map.memory.push(MemoryRegion { start, end, nid, flags: MemblockFlags::NONE });
        for i in 0..holes {
            let from_top = (i * (i % 7 + 1) * MIB / 2 + i * 12_288) % (node_bytes - 32 * MIB);
            let bytes = 4096 << (i % 11);
            let at = (end - from_top - bytes) & !4095;
            map.reserved.push(ReservedRegion {
                start: at,
                end: at + bytes,
                nid: None,
                flags: MemblockFlags::NONE,
            });
        }
    }
    map
}

fn rules(release: &str) -> ReleaseRules {
    let kernel = KernelModel::from_release(release, Arch::X86_64).expect("a modelled version");
    // 64 TiB end above 2^46, the limit of four levels.
    let platform = Platform { five_level_paging: true, ..Platform::default() };
    ReleaseRules::new(&kernel, 4096, platform)
}

fn input(map: &MemoryMap, release: &str) -> BootInput {
    let rules = rules(release);
    let kernel = KernelModel::from_release(release, Arch::X86_64).expect("a modelled version");
    BootInput {
        name: "bench".into(),
        map: map.clone(),
        rules,
        line: CommandLine::default(),
        kernel,
        cpus: (0..NODES).map(|n| (Nid(n as u32), 64)).collect(),
        gigantic: Vec::new(),
    }
}

/// A plan of `layout`, and all its chunks one by one.
fn planned(layout: &Layout) -> usize {
    let plan = Strategy::Deferred.plan(layout, None, true);
    let jobs = plan.phases.iter().flat_map(|p| &p.work).flat_map(|w| &w.jobs);
    jobs.map(|job| chunks(job).count()).sum::<usize>() + plan.phases.len()
}

fn layout(c: &mut Criterion) {
    let smoke = std::env::var_os("PAGEINIT_BENCH_SMOKE").is_some();
    let (node_bytes, holes) = if smoke { (2 * GIB, 10) } else { (2048 * GIB, 300) };
    let map = fragmented(node_bytes, holes);
    let mut group = c.benchmark_group(if smoke { "layout-smoke" } else { "layout-64TiB-32n" });
    group.sample_size(10).warm_up_time(Duration::from_millis(if smoke { 10 } else { 500 }));
    group.measurement_time(Duration::from_millis(if smoke { 50 } else { 3000 }));
    for release in ["6.12", "7.2"] {
        let rules = rules(release);
        group.bench_function(format!("place {release}"), |b| {
            b.iter(|| {
                let placement = place(black_box(&map), &rules, &CommandLine::default());
                black_box(placement.expect("fits").memmap.len())
            });
        });
        let input = input(&map, release);
        group.bench_function(format!("layout {release}"), |b| {
            b.iter(|| black_box(black_box(&input).boot().expect("fits").0.nodes.len()));
        });
        let (layout, placement) = input.boot().expect("fits");
        let question = input.split_input(&placement);
        group.bench_function(format!("split {release}"), |b| {
            b.iter(|| black_box(split(black_box(&question), &input.kernel).len()));
        });
        group.bench_function(format!("plan {release}"), |b| {
            b.iter(|| black_box(planned(black_box(&layout))));
        });
    }
    group.finish();
}

criterion_group!(benches, layout);
criterion_main!(benches);
