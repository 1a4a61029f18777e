//! Every strategy, executed for real on a small ragged machine, ends in the bytes
//! that the oracle wants; and whatever a broken store would leave is found.
#![cfg(feature = "hwloc")]

mod common;

use common::{memory_for, ragged_layout};
use pageinit::exec::verify::{Expect, Mismatch, verify};
use pageinit::exec::{Memory, run};
use pageinit::host::clock::Clock;
use pageinit::host::line::Line;
use pageinit::host::topology::HostTopology;
use pageinit::kernel::{KernelVersion, Layout};
use pageinit::plan::probes::Probe;
use pageinit::plan::{BootPlan, Strategy};
use pageinit::study::candidates::{default_store, fits};

const VERSIONS: [(u32, u32); 7] = [(4, 1), (4, 14), (4, 15), (5, 1), (6, 1), (6, 12), (7, 3)];

fn host() -> (HostTopology, Clock) {
    (HostTopology::load().expect("this host has a topology"), Clock::measure())
}

fn default_plan(strategy: Strategy, layout: &Layout, free: bool) -> BootPlan {
    strategy.plan(layout, default_store(strategy.store_role()).as_deref(), free)
}

#[test]
fn every_strategy_ends_in_the_oracles_bytes_under_every_era() {
    let (topo, clock) = host();
    for (major, minor) in VERSIONS {
        let layout = ragged_layout(KernelVersion::new(major, minor), 2);
        let mut memory = memory_for(&layout, &topo, 2);
        for free in [true, false] {
            for strategy in Strategy::ALL {
                let plan = default_plan(strategy, &layout, free);
                let times = run(&mut memory, &topo, &clock, &plan).expect("the plan runs");
                assert_eq!(times.phases.len(), plan.phases.len());
                let verdict = verify(&memory, &layout, &plan, Expect::Final);
                assert_eq!(verdict, Ok(()), "{strategy}, free {free}, kernel {major}.{minor}");
            }
        }
    }
}

#[test]
fn every_store_that_fits_a_strategy_ends_in_the_same_bytes() {
    let (topo, clock) = host();
    let layout = ragged_layout(KernelVersion::new(6, 12), 2);
    let mut memory = memory_for(&layout, &topo, 1);
    for store in pageinit::host::store::Store::available() {
        for strategy in Strategy::ALL.into_iter().filter(|s| fits(store, s.store_role())) {
            let plan = strategy.plan(&layout, Some(store.name()), true);
            run(&mut memory, &topo, &clock, &plan).expect("the plan runs");
            let verdict = verify(&memory, &layout, &plan, Expect::Final);
            assert_eq!(verdict, Ok(()), "{strategy} with {}", store.name());
        }
    }
}

#[test]
fn probes_leave_what_their_one_operation_writes() {
    let (topo, clock) = host();
    let layout = ragged_layout(KernelVersion::new(6, 12), 2);
    let mut memory = memory_for(&layout, &topo, 1);
    for probe in Probe::ALL {
        let plan = probe.plan(&layout);
        run(&mut memory, &topo, &clock, &plan).expect("the plan runs");
        let verdict = verify(&memory, &layout, &plan, Expect::OnlyOp(probe.op()));
        assert_eq!(verdict, Ok(()), "{}", probe.name());
        let wrong = verify(&memory, &layout, &plan, Expect::Final);
        let complete = probe == Probe::ZeroThenFields;
        assert!(complete || wrong.is_err(), "{} is no whole boot", probe.name());
    }
}

/// What different kinds of broken stores would do to one line.
type Breakage = (&'static str, fn(&mut Line));

const BREAKAGES: [Breakage; 5] = [
    ("skips a line", |line| spoil(line, [u64::MAX; 8])),
    ("leaves the last word out", |line| line.set_word::<7>(u64::MAX)),
    ("writes one bit too many", |line| line.set_word::<0>(line.word::<0>() ^ 1 << 25)),
    ("gets the reference count wrong", |line| line.set_high_half::<6>(7)),
    ("writes the neighbour's address", |line| line.set_word::<1>(line.word::<1>() + 64)),
];

fn spoil(line: &mut Line, words: [u64; 8]) {
    line.set_word::<0>(words[0]);
    line.set_word::<1>(words[1]);
    line.set_word::<2>(words[2]);
    line.set_word::<3>(words[3]);
    line.set_word::<4>(words[4]);
    line.set_word::<5>(words[5]);
    line.set_word::<6>(words[6]);
    line.set_word::<7>(words[7]);
}

/// Breaks one line, verifies, and puts the line back.
fn broken(memory: &mut Memory, layout: &Layout, plan: &BootPlan, at: (usize, usize)) {
    for (what, breakage) in BREAKAGES {
        let line = |memory: &mut Memory| {
            let mut copies = memory.copies_mut();
            let lines = copies.swap_remove(at.0).swap_remove(0);
            let before = lines[at.1].words();
            breakage(&mut lines[at.1]);
            before
        };
        let before = line(memory);
        let found = verify(memory, layout, plan, Expect::Final);
        assert!(found.is_err(), "a store that {what} at line {at:?} was not noticed");
        let mut copies = memory.copies_mut();
        spoil(&mut copies.swap_remove(at.0).swap_remove(0)[at.1], before);
    }
    assert_eq!(verify(memory, layout, plan, Expect::Final), Ok(()));
}

#[test]
fn a_broken_store_is_caught_wherever_it_strikes() {
    let (topo, clock) = host();
    let layout = ragged_layout(KernelVersion::new(6, 12), 2);
    let mut memory = memory_for(&layout, &topo, 1);
    let plan = default_plan(Strategy::FusedNt, &layout, true);
    run(&mut memory, &topo, &clock, &plan).expect("the plan runs");
    for area in 0..memory.areas.len() {
        let last = memory.areas[area].lines - 1;
        for line in [0, 1, 255, 256, last / 3, last / 2, last - 1, last] {
            broken(&mut memory, &layout, &plan, (area, line));
        }
    }
}

#[test]
fn a_block_left_off_its_list_is_caught() {
    let (topo, clock) = host();
    let layout = ragged_layout(KernelVersion::new(6, 12), 1);
    let mut memory = memory_for(&layout, &topo, 1);
    let plan = default_plan(Strategy::Deferred, &layout, true);
    run(&mut memory, &topo, &clock, &plan).expect("the plan runs");
    let key = *memory.lists.iter().find(|(_, chain)| chain.count > 2).expect("a long list").0;
    if let Some(chain) = memory.lists.get_mut(&key) {
        chain.count -= 1;
    }
    let found = verify(&memory, &layout, &plan, Expect::Final);
    assert!(matches!(found, Err(Mismatch::List { .. })), "{found:?}");
    memory.lists.remove(&key);
    let found = verify(&memory, &layout, &plan, Expect::Final);
    assert!(matches!(found, Err(Mismatch::List { .. })), "{found:?}");
}
