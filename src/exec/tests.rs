//! A whole run with a store that has a defect, and figures of runs.

use super::verify::{Expect, Mismatch, verify};
use super::*;
use super::{PhaseTime, RunTimes, WorkerSpan};
use crate::host::clock::Clock;
use crate::host::topology::HostTopology;
use crate::kernel::{KernelModel, KernelVersion, Layout, layout};
use crate::machine::input;
use crate::plan::strategies::all_pages;
use crate::plan::window::window;
use crate::plan::{Executor, PhaseName, Strategy};
use crate::progress::Silent;
use std::sync::atomic::{AtomicU32, Ordering};

/// A window of a small machine, and memory for it on the first node with CPUs.
fn small(topo: &HostTopology) -> (Layout, Memory) {
    let machine = input::load("@vm-2c", None).unwrap();
    let kernel = KernelModel::new(KernelVersion::new(6, 12), machine.arch);
    let layout = window(&layout(&machine, &kernel).unwrap(), 1 << 16).unwrap().layout;
    let host = topo.nodes().into_iter().find(|n| !n.cpus.is_empty()).unwrap();
    let nodes = layout.nodes.iter().zip(0..).map(|(node, round)| {
        let (host_nid, cpus) = (host.nid, host.cpus.clone());
        (Mapping { nid: node.nid, host_nid, cpus, round }, all_pages(node))
    });
    let mut memory = Memory::map(nodes.collect(), 1).unwrap();
    memory.fault_in(topo, &Silent, &|| false).unwrap();
    (layout, memory)
}

#[test]
fn a_store_that_leaves_words_out_fails_verification() {
    let (topo, clock) = (HostTopology::load().unwrap(), Clock::measure());
    let (mut layout, mut memory) = small(&topo);
    for job in layout.nodes.iter_mut().flat_map(|n| &mut n.jobs) {
        job.max_threads = 1;
    }
    for (store, strategies) in [
        ("broken-for-tests", vec![Strategy::FusedNt, Strategy::SetupZero]),
        ("portable", vec![Strategy::Fused, Strategy::SetupZero]),
    ] {
        for (strategy, free) in strategies.into_iter().flat_map(|s| [(s, true), (s, false)]) {
            let plan = strategy.plan(&layout, Some(store), free);
            run(&mut memory, &topo, &clock, &plan).unwrap();
            let found = verify(&memory, &layout, &plan, Expect::Final);
            // No field write reaches the last word, so a lapse in zeroing stays too.
            let breaks = store == "broken-for-tests";
            match &found {
                Err(Mismatch::Page { found, .. }) => assert!(breaks && found[7] == u64::MAX),
                other => assert!(!breaks && other.is_ok(), "{strategy}, {store}: {other:?}"),
            }
        }
    }
}

#[test]
fn a_run_that_is_stopped_has_no_times() {
    let (topo, clock) = (HostTopology::load().unwrap(), Clock::measure());
    let (layout, mut memory) = small(&topo);
    let plan = Strategy::Deferred.plan(&layout, None, true);
    let asked = AtomicU32::new(0);
    let count = || asked.fetch_add(1, Ordering::Relaxed);
    let never = || {
        count();
        false
    };
    run_until(&mut memory, &topo, &clock, &plan, &never).unwrap();
    let all = asked.swap(0, Ordering::Relaxed);
    for last in [0, 1, all / 2, all - 1] {
        asked.store(0, Ordering::Relaxed);
        let ended = run_until(&mut memory, &topo, &clock, &plan, &|| count() >= last);
        assert!(ended.is_err_and(|e| e.is_interrupt()), "stopped when asked for the {last}th time");
    }
    run(&mut memory, &topo, &clock, &plan).unwrap();
    assert_eq!(verify(&memory, &layout, &plan, Expect::Final), Ok(()));
}

fn worker(nid: u32, start_ns: u64, end_ns: u64, busy_ns: u64) -> WorkerSpan {
    let ran_on = [Some(nid); 2];
    WorkerSpan { nid: Nid(nid), cpu: nid, ran_on, start_ns, end_ns, busy_ns, chunks: 1 }
}

// worker 0   100 [####..]      200   80 of 100 ns busy
// worker 1   100 [#######....] 400   220 of 300 ns busy
#[test]
fn overhead_is_the_share_of_worker_time_without_page_operations() {
    let phase = |workers| PhaseTime {
        name: PhaseName::DeferredInit,
        executor: Executor::NodeThreads,
        wall_ns: 300,
        nodes: vec![(Nid(0), 100), (Nid(1), 300)],
        workers,
    };
    let workers = vec![worker(0, 100, 200, 80), worker(1, 100, 400, 220)];
    let run = RunTimes { phases: vec![phase(workers)], verified: false };
    assert_eq!(run.overhead_share(), 0.25);
    assert_eq!(RunTimes { phases: vec![phase(vec![])], verified: false }.overhead_share(), 0.0);
}
