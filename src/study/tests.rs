//! Whole comparisons, with a store that has a defect and without.

use super::room::HostRoom;
use super::*;
use crate::host::budget::MemoryBudget;
use crate::host::clock::Clock;
use crate::host::topology::HostTopology;
use crate::kernel::{KernelModel, KernelVersion};
use crate::machine::input;
use crate::progress::Silent;
use crate::record::Record;
use crate::units::MIB;
use std::path::Path;

fn run(strategies: &[&str], stores: &[&str], stop: bool) -> Result<Record, StudyError> {
    let names = |names: &[&str]| names.iter().map(|&name| name.into()).collect();
    let machine = input::load("@vm-2c", None).unwrap();
    let machine_of_host = input::load("host", None).unwrap();
    let budget = MemoryBudget::read(Path::new("/")).unwrap();
    let host = HostContext {
        topo: HostTopology::load().unwrap(),
        clock: Clock::measure(),
        room: HostRoom::of_host(machine_of_host, budget).unwrap(),
    };
    let options = Options {
        strategies: names(strategies),
        stores: names(stores),
        threads: Some(1),
        oversubscribe: false,
        chunk_pages: None,
        buffer_bytes: Some(8 * MIB),
        free: true,
        runs: 2,
        seed: 1,
        argv: Vec::new(),
        line: None,
        origins: Default::default(),
    };
    let kernel = KernelModel::new(KernelVersion::new(6, 12), machine.arch);
    compare(&machine, &kernel, &host, &options, &Silent, &|| stop)
}

#[test]
fn wrong_data_ends_the_study_and_names_strategy_run_and_page() {
    let error = run(&["fused-nt"], &["broken-for-tests"], false).unwrap_err();
    let StudyError::WrongData { strategy, run, .. } = &error else { panic!("{error}") };
    assert_eq!((strategy.as_str(), *run), ("fused-nt", 1));
    assert!(error.to_string().contains("struct page of pfn"), "{error}");
}

#[test]
fn overhead_and_placement_are_computed() {
    let record = run(&["prezero", "deferred"], &[], false).unwrap();
    assert!(record.head.complete);
    let share = record.execution.overhead_share.unwrap();
    assert!((0.0..1.0).contains(&share), "{share}");
    assert_eq!(record.execution.placement.len(), 1);
}

#[test]
fn a_study_that_is_stopped_leaves_an_incomplete_record() {
    let record = run(&["prezero"], &[], true).unwrap();
    assert!(!record.head.complete && record.points.is_empty());
    assert_eq!(record.execution.overhead_share, None);
}
