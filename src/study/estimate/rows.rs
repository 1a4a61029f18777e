//! A run as the rows of an estimate's record.

use super::{Case, whole};
use crate::model::range::Basis;
use crate::model::run::{PhaseRun, WorkRun};
use crate::model::{Anchor, Bound, Hardware, Run, Virt};
use crate::plan::Executor;
use crate::record::estimate::{
    AnchorFacts, NodeEstimate, PhaseFacts, ProcessorFacts, TimelineSpan,
};
use crate::study::facts::executor_name;

pub(super) fn processor(hardware: &Hardware) -> ProcessorFacts {
    let class = hardware.class;
    ProcessorFacts {
        class: class.name.clone(),
        mark: class.mark().name().into(),
        source: class.source.clone(),
        virt: if hardware.virt == Virt::Guest { "guest" } else { "bare-metal" }.into(),
        line_ns: class.w_line_ns,
        node_bytes_per_s: hardware.nodes.first().map_or(0, |n| (n.bytes_per_ns * 1e9) as u64),
    }
}

pub(super) fn timeline(run: &Run, struct_page_bytes: u64) -> Vec<TimelineSpan> {
    let mut out = Vec::new();
    for phase in &run.phases {
        for work in &phase.works {
            out.extend(work.spans.iter().map(|span| TimelineSpan {
                phase: phase.name.to_string(),
                executor: executor_name(phase.executor).into(),
                nid: work.nid.0,
                worker: span.worker,
                start_ns: whole(span.start_ns),
                end_ns: whole(span.end_ns),
                pages: span.pages,
                bytes: span.pages.saturating_mul(struct_page_bytes),
            }));
        }
    }
    out
}

/// The bytes of the struct pages that the nodes' threads initialise, each once.
pub(in crate::study) fn node_bytes(run: &Run, struct_page_bytes: u64) -> u64 {
    let phases = run.phases.iter().filter(|p| p.executor == Executor::NodeThreads);
    let pages = phases.map(|p| p.works.iter().map(|w| w.pages).sum::<u64>());
    pages.max().unwrap_or(0).saturating_mul(struct_page_bytes)
}

pub(super) fn phase_facts(phase: &PhaseRun) -> PhaseFacts {
    PhaseFacts {
        phase: phase.name.to_string(),
        executor: executor_name(phase.executor).into(),
        start_ns: whole(phase.start_ns),
        end_ns: whole(phase.end_ns),
        pages: phase.works.iter().map(|w| w.pages).sum(),
        slowest_nid: match phase.executor {
            Executor::BootCpu => None,
            Executor::NodeThreads => phase.slowest().map(|w| w.nid.0),
        },
    }
}

pub(super) fn nodes(run: &Run) -> Vec<NodeEstimate> {
    let Some(phase) = run.longest_node_phase() else { return Vec::new() };
    let node = |w: &WorkRun| NodeEstimate {
        nid: w.nid.0,
        workers: w.workers,
        pages: w.pages,
        wall_ns: whole(w.end_ns() - phase.start_ns),
        page_ns: w.page.ns,
        moved_bytes: (w.page.bytes * w.pages as f64) as u64,
        bandwidth_use: w.bandwidth_use,
        lock_use: w.lock_use,
    };
    phase.works.iter().map(node).collect()
}

/// What bounds a run, as records have it.
pub(in crate::study) fn bound_by(bound: Bound) -> String {
    match bound {
        Bound::Nothing => "nothing".into(),
        Bound::BootCpu => "boot-cpu".into(),
        Bound::Bandwidth(nid) => format!("bandwidth node {nid}"),
        Bound::ZoneLock(nid) => format!("zone-lock node {nid}"),
        Bound::Threads(nid) => format!("threads node {nid}"),
        Bound::OneThread(nid) => format!("one-thread node {nid}"),
        Bound::NoCpus(nid) => format!("no-cpus node {nid}"),
    }
}

pub(super) fn anchor_facts(case: &Case, anchors: &[Anchor]) -> AnchorFacts {
    let basis = Basis::of(&case.hardware, !anchors.is_empty());
    if anchors.is_empty() && !case.setup.calibrated.is_empty() {
        let from = format!("{} measured phases", case.setup.calibrated.len());
        return AnchorFacts { kind: "calibration".into(), from };
    }
    let texts: Vec<String> = anchors.iter().map(ToString::to_string).collect();
    let class = case.hardware.class;
    AnchorFacts {
        kind: basis.name().into(),
        from: match anchors.is_empty() {
            true => format!("{} ({})", class.name, class.mark().name()),
            false => texts.join(", "),
        },
    }
}
