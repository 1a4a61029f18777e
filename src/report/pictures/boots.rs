//! Timelines out of records: [`estimated`] and, of a comparison's strategy, [`planned`].

use super::timeline::{Bar, Lane, Timeline, Who};
use crate::kernel::struct_page::STRUCT_PAGE_BYTES;
use crate::record::estimate::{Estimate, TimelineSpan};
use crate::record::{PlanFacts, Point, Record};
use crate::report::source::version;
use crate::units::time;
use std::collections::BTreeMap;

/// The timeline of an estimate: a span for every worker.
pub(super) fn estimated(name: &str, e: &Estimate) -> Timeline {
    let mut lanes: BTreeMap<Who, Vec<Bar>> = BTreeMap::new();
    for span in &e.timeline {
        lanes.entry(who(span)).or_default().push(bar(span));
    }
    let lane = |(who, mut bars): (Who, Vec<Bar>)| {
        bars.sort_by(|a, b| a.start_ns.total_cmp(&b.start_ns));
        Lane { who, bars }
    };
    let kernel = version(&e.kernel).unwrap_or_else(|| "of unknown version".into());
    let [low, high] = e.range_ns.map(|ns| time(ns as f64));
    Timeline {
        title: format!("{} on {}, Linux {kernel}", e.strategy, e.machine.name),
        source: name.into(),
        strategy: e.strategy.clone(),
        label: e.label.name(),
        notes: vec![format!("total {}, likely {low} to {high}", time(e.total_ns as f64))],
        lanes: lanes.into_iter().map(lane).collect(),
    }
}

fn who(span: &TimelineSpan) -> Who {
    match span.executor.as_str() {
        "boot-cpu" => Who::BootCpu,
        _ => Who::Worker { nid: span.nid, worker: span.worker },
    }
}

fn bar(span: &TimelineSpan) -> Bar {
    Bar {
        phase: span.phase.clone(),
        nid: Some(span.nid),
        start_ns: span.start_ns as f64,
        end_ns: span.end_ns.max(span.start_ns) as f64,
        pages: span.pages,
        bytes: span.bytes,
        bars: 1,
    }
}

/// The medians of a strategy's phases, one after another; every node's threads begin
/// when the boot CPU is done.
pub(super) fn planned(name: &str, record: &Record, plan: &PlanFacts) -> Timeline {
    let points: Vec<&Point> = of_strategy(record, plan);
    let mut boot = Lane { who: Who::BootCpu, bars: Vec::new() };
    let mut at = 0.0;
    for phase in plan.phases.iter().filter(|phase| phase.executor == "boot-cpu") {
        let found = points.iter().find(|p| p.phase == phase.phase && p.nid.is_none());
        let Some(point) = found else { continue };
        boot.bars.push(median_bar(point, &phase.phase, at));
        at = boot.bars.last().map_or(at, |bar| bar.end_ns);
    }
    let threaded: Vec<&str> = plan
        .phases
        .iter()
        .filter(|phase| phase.executor != "boot-cpu")
        .map(|phase| phase.phase.as_str())
        .collect();
    let shared = threaded.join(" + ");
    let nodes = points.iter().filter(|p| p.phase == "deferred" && p.nid.is_some());
    let mut lanes = vec![boot];
    lanes.extend(nodes.map(|point| Lane {
        who: Who::Node { nid: point.nid.unwrap_or_default(), workers: point.threads },
        bars: vec![median_bar(point, &shared, at)],
    }));
    lanes.retain(|lane| !lane.bars.is_empty());
    lanes.sort_by_key(|lane| lane.who);
    Timeline {
        title: format!("{} on {}", plan_name(plan), record.machine.name),
        source: name.into(),
        strategy: plan.strategy.clone(),
        label: record.execution.whole_label().name(),
        notes: notes_of(record),
        lanes,
    }
}

fn plan_name(plan: &PlanFacts) -> String {
    match plan.stores.is_empty() {
        true => plan.strategy.clone(),
        false => format!("{} ({})", plan.strategy, plan.stores.join(", ")),
    }
}

/// The points of a plan. Where a strategy ran with several stores, each plan has one
/// of them.
fn of_strategy<'r>(record: &'r Record, plan: &PlanFacts) -> Vec<&'r Point> {
    let all = record.points.iter().filter(|p| p.strategy == plan.strategy);
    let matches = |p: &&Point| p.store.as_ref().is_none_or(|store| plan.stores.contains(store));
    all.filter(matches).collect()
}

fn median_bar(point: &Point, phase: &str, at: f64) -> Bar {
    let took =
        if point.scaled_median_ns.is_finite() { point.scaled_median_ns.max(0.0) } else { 0.0 };
    Bar {
        phase: phase.into(),
        nid: point.nid,
        start_ns: at,
        end_ns: at + took,
        pages: point.scaled_pages,
        bytes: point.scaled_pages.saturating_mul(STRUCT_PAGE_BYTES),
        bars: 1,
    }
}

fn notes_of(record: &Record) -> Vec<String> {
    let runs = record.execution.runs;
    let mut notes = vec![format!("medians of {runs} runs, phase by phase, put one after another")];
    if record.execution.executed_share < 1.0 {
        let share = record.execution.executed_share * 100.0;
        notes.push(format!("{share:.3} % of the memmap was executed; times are multiplied up"));
    }
    if record.execution.mapping.iter().any(|m| m.round > 0) {
        notes.push("nodes took turns on this host; they are drawn as if all ran at once".into());
    }
    notes
}
