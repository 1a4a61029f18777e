//! The phases of whole boots, out of any record that has them.
//!
//! A [`Boot`] is one strategy on one machine: measured ones come from medians of phase
//! and node, predicted ones from the timeline. [`super::blame`] and [`super::chain`] show
//! them.

use super::compare::is_probe;
use super::source::Source;
use super::view::ViewError;
use crate::record::any::AnyRecord;
use crate::record::estimate::{Estimate, PhaseFacts, TimelineSpan};
use crate::record::{NodeFacts, Point, Record};

/// One boot.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Boot {
    /// The machine's name.
    pub(super) machine: String,
    /// The strategy.
    pub(super) strategy: String,
    /// Its store, where it has a choice.
    pub(super) store: Option<String>,
    /// `measured`, `scaled` or `modelled`.
    pub(super) label: &'static str,
    /// The whole in ns. For measured boots the median of its own, beside the phases'.
    pub(super) total_ns: f64,
    /// The phases in boot order.
    pub(super) phases: Vec<Took>,
    /// What a reader must know about the nodes.
    pub(super) note: Option<&'static str>,
}

/// One phase.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Took {
    /// Its name; joined where several are known together only.
    pub(super) phase: String,
    /// `boot-cpu` or `node-threads`.
    pub(super) executor: String,
    /// When it began, from the first phase's begin.
    pub(super) start_ns: f64,
    /// How long it took.
    pub(super) took_ns: f64,
    /// Its struct pages.
    pub(super) pages: u64,
    /// Every node's end, the last first; empty for the boot CPU.
    pub(super) ends: Vec<NodeEnd>,
    /// The single phases, where this one is joined of several.
    pub(super) parts: Vec<Took>,
}

/// When a node was done with a phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct NodeEnd {
    /// The node.
    pub(super) nid: u32,
    /// Its end, from the phase's begin.
    pub(super) took_ns: f64,
    /// The worker that ended last, where known.
    pub(super) worker: Option<u32>,
    /// Its struct pages.
    pub(super) pages: u64,
    /// Whether the machine says that it has no CPU.
    pub(super) is_cpuless: bool,
}

/// The boots of a record; none for records of other kinds.
pub(super) fn boots(record: &AnyRecord) -> Vec<Boot> {
    match record {
        AnyRecord::Compare(record) => measured(record),
        AnyRecord::Estimate(estimate) => vec![predicted(estimate)],
        _ => Vec::new(),
    }
}

/// The boots of all records, or those with one of these strategies, by record.
pub(super) fn chosen<'s>(
    sources: &'s [Source],
    strategies: &[String],
) -> Result<Vec<(&'s Source, Vec<Boot>)>, ViewError> {
    let mut all: Vec<(&Source, Vec<Boot>)> =
        sources.iter().map(|source| (source, boots(&source.record))).collect();
    let mut known: Vec<&str> = Vec::new();
    for boot in all.iter().flat_map(|(_, boots)| boots) {
        if !known.contains(&boot.strategy.as_str()) {
            known.push(&boot.strategy);
        }
    }
    if let Some(wanted) = strategies.iter().find(|name| !known.contains(&name.as_str())) {
        let (wanted, known) = (wanted.clone(), known.join(", "));
        return Err(ViewError::NoStrategy { wanted, known });
    }
    for (_, boots) in &mut all {
        boots.retain(|b| strategies.is_empty() || strategies.contains(&b.strategy));
    }
    Ok(all)
}

fn is_cpuless(nodes: &[NodeFacts], nid: u32) -> bool {
    nodes.iter().any(|n| n.nid == nid && n.cpu_count == 0)
}

/// The last first; of equal ones the lowest node.
fn last_first(mut ends: Vec<NodeEnd>) -> Vec<NodeEnd> {
    ends.sort_by(|a, b| b.took_ns.total_cmp(&a.took_ns).then(a.nid.cmp(&b.nid)));
    ends
}

fn predicted(e: &Estimate) -> Boot {
    let took = |p: &PhaseFacts| Took {
        phase: p.phase.clone(),
        executor: p.executor.clone(),
        start_ns: p.start_ns as f64,
        took_ns: p.end_ns.saturating_sub(p.start_ns) as f64,
        pages: p.pages,
        ends: if p.executor == "boot-cpu" { Vec::new() } else { predicted_ends(e, p) },
        parts: Vec::new(),
    };
    Boot {
        machine: e.machine.name.clone(),
        strategy: e.strategy.clone(),
        store: None,
        label: e.label.name(),
        total_ns: e.total_ns as f64,
        phases: e.phases.iter().map(took).collect(),
        note: None,
    }
}

fn predicted_ends(e: &Estimate, phase: &PhaseFacts) -> Vec<NodeEnd> {
    let mut ends: Vec<(NodeEnd, u64)> = Vec::new();
    let own = |s: &&TimelineSpan| s.phase == phase.phase && s.executor == phase.executor;
    for span in e.timeline.iter().filter(own) {
        let at = ends.iter().position(|(end, _)| end.nid == span.nid).unwrap_or(ends.len());
        if at == ends.len() {
            let is_cpuless = is_cpuless(&e.machine.nodes, span.nid);
            let end = NodeEnd { nid: span.nid, took_ns: 0.0, worker: None, pages: 0, is_cpuless };
            ends.push((end, 0));
        }
        let Some((end, last_ns)) = ends.get_mut(at) else { continue };
        end.pages = end.pages.saturating_add(span.pages);
        if end.worker.is_none() || span.end_ns > *last_ns {
            *last_ns = span.end_ns;
            end.worker = Some(span.worker);
            end.took_ns = span.end_ns.saturating_sub(phase.start_ns) as f64;
        }
    }
    last_first(ends.into_iter().map(|(end, _)| end).collect())
}

fn measured(record: &Record) -> Vec<Boot> {
    let totals = record.points.iter().filter(|p| p.phase == "total" && !is_probe(p));
    totals.map(|total| measured_boot(record, total)).collect()
}

fn measured_boot(record: &Record, total: &Point) -> Boot {
    let same = |p: &&Point| p.strategy == total.strategy && p.store == total.store;
    let own: Vec<&Point> = record.points.iter().filter(same).collect();
    let took_turns = record.execution.mapping.iter().any(|m| m.round > 0);
    let mut phases = measured_phases(record, &own);
    let mut start_ns = 0.0;
    for phase in &mut phases {
        phase.start_ns = start_ns;
        start_ns += phase.took_ns;
    }
    Boot {
        machine: record.machine.name.clone(),
        strategy: total.strategy.clone(),
        store: total.store.clone(),
        label: record.execution.whole_label().name(),
        total_ns: total.scaled_median_ns,
        phases,
        note: took_turns.then_some(
            "nodes took turns on this host's nodes: they share one rate, and only their struct \
             pages tell them apart",
        ),
    }
}

/// Single phases; those of the nodes joined into one where there are several, because
/// only their sum is known per node.
fn measured_phases(record: &Record, own: &[&Point]) -> Vec<Took> {
    let of_nodes = |p: &Point| executor(record, p) == "node-threads";
    let single =
        own.iter().filter(|p| p.nid.is_none() && !is_sum(p)).copied().collect::<Vec<&Point>>();
    let (nodes, boot): (Vec<&Point>, Vec<&Point>) = single.into_iter().partition(|p| of_nodes(p));
    let took = |p: &Point, phase: String, executor: &str, ends| Took {
        phase,
        executor: executor.into(),
        start_ns: 0.0,
        took_ns: p.scaled_median_ns,
        pages: p.scaled_pages,
        ends,
        parts: Vec::new(),
    };
    let mut out: Vec<Took> =
        boot.into_iter().map(|p| took(p, p.phase.clone(), "boot-cpu", Vec::new())).collect();
    let together = own.iter().find(|p| p.phase == "deferred" && p.nid.is_none());
    let names: Vec<&str> = nodes.iter().map(|p| p.phase.as_str()).collect();
    if let Some(p) = together {
        let name = if names.is_empty() { "deferred".into() } else { names.join(" + ") };
        let alone = |p: &&Point| took(p, p.phase.clone(), "node-threads", Vec::new());
        let parts = if nodes.len() > 1 { nodes.iter().map(alone).collect() } else { Vec::new() };
        let ends = measured_ends(record, own);
        out.push(Took { parts, ..took(p, name, "node-threads", ends) });
    }
    out
}

fn is_sum(point: &Point) -> bool {
    ["total", "boot-cpu", "deferred"].contains(&point.phase.as_str())
}

fn executor<'r>(record: &'r Record, point: &Point) -> &'r str {
    let plan = record.plans.iter().find(|plan| plan.strategy == point.strategy);
    let phase = plan.and_then(|plan| plan.phases.iter().find(|p| p.phase == point.phase));
    phase.map_or_else(
        || if point.phase.starts_with("deferred") { "node-threads" } else { "boot-cpu" },
        |phase| &phase.executor,
    )
}

fn measured_ends(record: &Record, own: &[&Point]) -> Vec<NodeEnd> {
    let ends = own.iter().filter(|p| p.phase == "deferred").filter_map(|p| {
        let nid = p.nid?;
        Some(NodeEnd {
            nid,
            took_ns: p.scaled_median_ns,
            worker: None,
            pages: p.scaled_pages,
            is_cpuless: is_cpuless(&record.machine.nodes, nid),
        })
    });
    last_first(ends.collect())
}
