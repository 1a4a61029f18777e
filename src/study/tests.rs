//! Whole comparisons, with a store that has a defect and without.

use super::compare::compare_and_keep;
use super::room::HostRoom;
use super::*;
use crate::host::budget::MemoryBudget;
use crate::host::clock::Clock;
use crate::host::topology::HostTopology;
use crate::kernel::{KernelModel, KernelVersion};
use crate::machine::input;
use crate::progress::Silent;
use crate::record::keeper::Keeper;
use crate::record::{Label, Record};
use crate::units::MIB;
use std::path::Path;

fn run(strategies: &[&str], stores: &[&str], stop: bool) -> Result<Record, StudyError> {
    run_and_keep(strategies, stores, stop, None)
}

fn run_and_keep(
    strategies: &[&str],
    stores: &[&str],
    stop: bool,
    keep: Option<&mut Keeper>,
) -> Result<Record, StudyError> {
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
    compare_and_keep(&machine, &kernel, &host, &options, &Silent, &|| stop, keep)
}

#[test]
fn wrong_data_ends_the_study_and_names_strategy_run_and_page() {
    let error = run(&["fused-nt"], &["broken-for-tests"], false).unwrap_err();
    let StudyError::WrongData { strategy, run, .. } = &error else { panic!("{error}") };
    assert_eq!((strategy.as_str(), *run), ("fused-nt", 1));
    assert!(error.to_string().contains("struct page of pfn"), "{error}");
}

#[test]
fn what_was_done_before_an_error_is_kept() {
    let dir = tempfile::TempDir::new().unwrap();
    let file = dir.path().join("compare.json");
    let target = crate::record::file::Target::new(&file, false).unwrap();
    // It is never time between rounds: only the error makes it save.
    let mut keeper = Keeper::new(target, std::time::Duration::from_secs(3600));
    // The store is that of fused-nt alone, which the seed does not put first.
    let names = ["deferred", "fused-nt", "serial-inline"];
    run_and_keep(&names, &["broken-for-tests"], false, Some(&mut keeper)).unwrap_err();
    let text = std::fs::read_to_string(&file).unwrap();
    let kept: Record = serde_json::from_str(&text).unwrap();
    assert!(!kept.head.complete);
    assert!(!kept.points.is_empty() && kept.points.iter().all(|p| p.verified));
    assert!(kept.points.iter().all(|p| p.strategy != "fused-nt"));
}

// One of two machines is this host, and of the other all was executed, too.
#[test]
fn figures_of_another_machine_are_scaled_though_all_of_it_ran() {
    let record = run(&["prezero"], &[], false).unwrap();
    let mut execution = record.execution.clone();
    assert_eq!(execution.is_this_host, Some(false));
    execution.executed_share = 1.0;
    assert_eq!(execution.whole_label(), Label::Scaled);
    execution.is_this_host = Some(true);
    assert_eq!(execution.whole_label(), Label::Measured);
    // Records that do not say show it by their stand-ins.
    execution.is_this_host = None;
    assert_eq!(execution.whole_label(), Label::Measured);
    execution.mapping[0].round = 1;
    assert_eq!(execution.whole_label(), Label::Scaled);
    assert!(record.ratios.iter().all(|r| r.label == Some(record.execution.whole_label())));
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
