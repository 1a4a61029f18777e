//! Rates that `scripts/bench-peers.sh` holds against other programs' rates.
//!
//! One line per figure: name, threads, value, and the store where it matters. Fills
//! are in GB/s of bytes stored, strategies in ns per struct page with freeing. All
//! candidates are run in turn, round by round, and each line is a median.

use pageinit::exec::{Mapping, Memory, run};
use pageinit::host::Arena;
use pageinit::host::clock::Clock;
use pageinit::host::line::Line;
use pageinit::host::store::{Store, StoreKind};
use pageinit::host::topology::HostTopology;
use pageinit::kernel::{KernelModel, KernelVersion, Layout, layout};
use pageinit::lab::clear_huge::PAGE_BYTES;
use pageinit::lab::clear_huge::cells::{Cell, clear};
use pageinit::lab::clear_huge::order::{Direction, Pair};
use pageinit::machine::{Arch, Machine};
use pageinit::pfn::{Nid, PhysRange};
use pageinit::plan::probes::Probe;
use pageinit::plan::strategies::all_pages;
use pageinit::plan::{BootPlan, PageOp, Strategy};
use pageinit::progress::Silent;
use pageinit::stats::median;

/// One figure to take: what, with which plan.
struct Figure {
    name: &'static str,
    store: String,
    plan: BootPlan,
}

fn main() {
    let smoke = std::env::var_os("PAGEINIT_BENCH_SMOKE").is_some()
        || std::env::args().any(|arg| arg == "--test");
    let (memory_bytes, rounds) = if smoke { (256 << 20, 1) } else { (64 << 30, 5) };
    let topo = HostTopology::load().expect("this host has a topology");
    let clock = Clock::measure();
    let host = topo.nodes().into_iter().find(|n| !n.cpus.is_empty()).expect("a node with CPUs");
    for threads in [1, 2] {
        if host.cpus.len() < threads {
            println!("# only {} CPU: no figures for {threads} threads", host.cpus.len());
            continue;
        }
        let layout = one_node(memory_bytes, threads as u32);
        let mapping =
            Mapping { nid: Nid(0), host_nid: host.nid, cpus: host.cpus.clone(), round: 0 };
        let nodes = vec![(mapping, all_pages(&layout.nodes[0]))];
        let mut memory = Memory::map(nodes, 1).expect("address space for the buffer");
        memory.fault_in(&topo, &Silent, &|| false).expect("memory for the buffer");
        measure(&mut memory, &topo, &clock, &figures(&layout), threads, rounds);
    }
    topo.pin_thread(host.cpus[0]).expect("a CPU of this process");
    clears(&clock, if smoke { PAGE_BYTES } else { 1 << 30 }, rounds);
}

/// Clears a buffer with every store as `lab clear-huge` does: in one call, and page by
/// page of 2 MiB.
fn clears(clock: &Clock, bytes: u64, rounds: usize) {
    let mut arena = Arena::map(bytes as usize / 64).expect("address space for the buffer");
    let cell = |store, direction| Cell {
        store,
        direction,
        chunk_bytes: PAGE_BYTES,
        bytes,
        pair: false,
        warm: false,
    };
    let both = [Direction::OneShot, Direction::Forward];
    let cells: Vec<Cell> =
        Store::available().into_iter().flat_map(|s| both.map(|d| cell(s, d))).collect();
    let mut samples = vec![Vec::new(); cells.len()];
    arena.lines_mut().fill(Line::new([u64::MAX; 8]));
    for _ in 0..rounds {
        for (cell, samples) in cells.iter().zip(&mut samples) {
            let chunks = cell.order();
            let began = clock.now_ns();
            clear(cell, &chunks, arena.lines_mut(), &Pair::default());
            samples.push((clock.now_ns() - began) as f64);
        }
    }
    assert!(arena.lines().iter().all(|line| line.words() == [0; 8]), "all is cleared");
    for (cell, samples) in cells.iter().zip(&samples) {
        let kind = match cell.store.kind() {
            StoreKind::NonTemporal => "nt-clear",
            StoreKind::Temporal => "temporal-clear",
        };
        let way = if cell.direction == Direction::OneShot { "one-shot" } else { "by-2MiB" };
        println!("{kind}-{way} 1 {:.3} {}", bytes as f64 / median(samples), cell.store.name());
    }
}

/// Runs all figures in turn and prints the median of each.
fn measure(
    memory: &mut Memory,
    topo: &HostTopology,
    clock: &Clock,
    figures: &[Figure],
    threads: usize,
    rounds: usize,
) {
    let mut samples = vec![Vec::new(); figures.len()];
    for _ in 0..rounds {
        for (figure, samples) in figures.iter().zip(&mut samples) {
            let times = run(memory, topo, clock, &figure.plan).expect("the plan runs");
            let last = times.phases.last().expect("a plan has phases");
            let pages = figure.plan.phases.last().map_or(1, |p| p.pages());
            samples.push(last.wall_ns as f64 / pages as f64);
        }
    }
    for (figure, samples) in figures.iter().zip(&samples) {
        let ns_per_page = median(samples);
        let value = if figure.name.ends_with("fill") { 64.0 / ns_per_page } else { ns_per_page };
        println!("{} {threads} {value:.3} {}", figure.name, figure.store);
    }
}

/// Fills with every store, and the two strategies that peers are held against.
fn figures(layout: &Layout) -> Vec<Figure> {
    let mut out = Vec::new();
    for store in Store::available() {
        let name = match store.kind() {
            StoreKind::NonTemporal => "nt-fill",
            StoreKind::Temporal => "temporal-fill",
        };
        out.push(Figure { name, store: store.name().into(), plan: fill(layout, store.name()) });
        if store.writes_images() {
            let name = match store.kind() {
                StoreKind::NonTemporal => "nt-image-fill",
                StoreKind::Temporal => "temporal-image-fill",
            };
            let plan = single(layout, PageOp::Compose, store.name());
            out.push(Figure { name, store: store.name().into(), plan });
        }
    }
    for (name, strategy) in [("deferred", Strategy::Deferred), ("fused-nt", Strategy::FusedNt)] {
        let store = match strategy {
            Strategy::FusedNt => Some(Store::best_image(StoreKind::NonTemporal).name()),
            _ => None,
        };
        let plan = strategy.plan(layout, store, true);
        out.push(Figure { name, store: store.unwrap_or("-").into(), plan });
    }
    out
}

/// Zeroing all deferred pages and nothing else.
fn fill(layout: &Layout, store: &str) -> BootPlan {
    single(layout, PageOp::Zero, store)
}

/// One operation on all deferred pages and nothing else.
fn single(layout: &Layout, op: PageOp, store: &str) -> BootPlan {
    let mut plan = Probe::ZeroOnly.plan(layout);
    for step in plan.phases.iter_mut().flat_map(|p| &mut p.work).flat_map(|w| &mut w.steps) {
        step.op = op;
        step.store = Some(store.into());
    }
    plan
}

/// A machine with one node of that size, laid out as Linux 6.12 would.
fn one_node(memory_bytes: u64, threads: u32) -> Layout {
    let start = 4 << 30;
    let memory = vec![PhysRange::new(start, start + memory_bytes)];
    let mut machine = Machine::of_ranges("one-node", Arch::X86_64, 4096, [memory]);
    machine.nodes[0].cpus = (0..threads).collect();
    let model = KernelModel::new(KernelVersion::new(6, 12), machine.arch);
    layout(&machine, &model).expect("the machine has memory")
}
