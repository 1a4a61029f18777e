//! One figure, one prediction.
//!
//! [`of`] goes through a record's figures. Thread counts of a machine that also has a
//! one-thread time are anchored on it, everything else rests on the class alone.

use super::gathered::{Machines, anchor_of, swept_machines};
use super::{Reason, StudyError, devices, judged, left_out};
use crate::kernel::KernelVersion;
use crate::model::cost::Era;
use crate::model::range::{Basis, Range, extrapolation};
use crate::plan::{Executor, PhaseName, Strategy};
use crate::record::validate::Validated;
use crate::study::published::{Figure, Kind, Published};
use crate::study::subject::{Change, Predicted, Subject, deferring, node_of};

/// Ticks per second of the clock behind printed times, where the author does not say.
const HZ: f64 = 1000.0;

/// Predicts every figure of a record; `all` is where its machine's other posts are.
pub(super) fn of(record: &Published, all: &[Published]) -> Result<Vec<Validated>, StudyError> {
    let machines = swept_machines(all);
    // Savings and what zeroing adds are compared with differences, in `savings`.
    let apart = [Kind::Saving, Kind::NodeZeroExtra];
    let own = record.figures.iter().filter(|f| f.ms.is_none() || !apart.contains(&f.kind));
    own.map(|figure| one(record, figure, &machines)).collect()
}

fn one(
    record: &Published,
    figure: &Figure,
    machines: &Machines<'_>,
) -> Result<Validated, StudyError> {
    let out = |reason| Ok(left_out(record, &figure.what, figure.ms, reason));
    match figure.kind {
        _ if figure.ms.is_none() => out(Reason::NoTime),
        _ if figure.invalid => out(Reason::Void),
        _ if figure.what.contains("not merged") => out(Reason::NotMerged),
        Kind::Boot => out(Reason::WholeBoot),
        Kind::Expectation => out(Reason::Expectation),
        Kind::Device => devices::of(record, figure),
        Kind::Other => out(Reason::NotStructPages),
        Kind::Saving | Kind::NodeZeroExtra => out(Reason::NoTime),
        Kind::DeferredNode | Kind::DeferredSlowest => deferred(record, figure, machines),
        Kind::BootZero | Kind::Sweep | Kind::FreeAll => boot_cpu(record, figure),
    }
}

/// What a step of the changes of 4.20 to 5.2 left in the kernel, by the author's words.
pub(super) fn era_by_words(version: KernelVersion, what: &str) -> Option<Step> {
    let text = what.to_ascii_lowercase();
    if Era::of(version) != Era::C || !["before", "after"].iter().any(|w| text.contains(w)) {
        return None;
    }
    Some(match () {
        _ if text.contains("before series") || text.ends_with("before") => Step::Before,
        _ if text.contains("patch 1") || text.contains("before patch 2") => Step::Inline,
        _ if text.contains("patch 2") => Step::NoChecks,
        _ if text.contains("before") => Step::Before,
        _ => Step::Blocks,
    })
}

/// The steps from 4.20 to 5.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// 4.20 as it is.
    Before,
    /// Zeroing without a call of memset.
    Inline,
    /// No check of the node per page frame.
    NoChecks,
    /// Block by block: 5.2.
    Blocks,
}

impl Step {
    /// The version that has it, and ns per page that later steps have taken from it.
    pub(super) fn rules(self) -> (KernelVersion, f64) {
        use crate::model::constants as k;
        let before = KernelVersion::new(4, 20);
        match self {
            Self::Before => (before, 0.0),
            Self::Inline => (before, k::MEMSET_CALL_NS),
            Self::NoChecks => (before, k::MEMSET_CALL_NS + k::PER_PFN_CHECKS_NS),
            Self::Blocks => (KernelVersion::new(5, 2), 0.0),
        }
    }
}

fn deferred(
    record: &Published,
    figure: &Figure,
    machines: &Machines<'_>,
) -> Result<Validated, StudyError> {
    let out = |reason| Ok(left_out(record, &figure.what, figure.ms, reason));
    let Some(subject) = Subject::of(record) else { return out(Reason::MemoryUnknown) };
    let Some(stated) = subject.version else { return out(Reason::KernelUnknown) };
    let step = era_by_words(stated, &figure.what);
    let (version, less_ns) = step.map_or((deferring(stated, figure.threads), 0.0), Step::rules);
    let threads = figure.threads.map(|t| t.max(1)).or((version < PADATA).then_some(1));
    let strategy = usual_strategy(version);
    let prepared = subject.prepare(version, strategy, threads)?;
    let anchor = threads.filter(|t| *t > 1).and_then(|_| anchor_of(machines, record));
    let scale = match anchor {
        Some(ms) => anchor_scale(&subject, &prepared, ms),
        None => None,
    };
    let scales = scale.map(|s| vec![(crate::pfn::Nid(0), s)]).unwrap_or_default();
    let change = Change { threads, scales, ..Change::default() };
    let predicted = subject.rerun(&prepared, &change);
    let Some(ns) = deferred_ns(&predicted, figure, less_ns) else { return out(Reason::Phase) };
    let basis = Basis::of(&predicted.hardware, scale.is_some());
    let far = extrapolation(version, subject.machine.arch, threads.unwrap_or(1)).is_some();
    let range = Range::of(basis, far, 0.0, ns).with_ticks(HZ);
    Ok(judged(Validated {
        group: scale.is_some().then(|| "threads-anchored-posts".into()),
        threads,
        predicted_ms: Some(ns / 1e6),
        range_ms: Some([range.low_ns / 1e6, range.high_ns / 1e6]),
        anchor: Some(match anchor {
            Some(ms) if scale.is_some() => format!("one thread of the same machine, {ms:.1} ms"),
            _ => "class".into(),
        }),
        ..described(record, &figure.what, figure.ms, &predicted)
    }))
}

/// When helpers came.
const PADATA: KernelVersion = KernelVersion::new(5, 8);

/// What a kernel of that version does by itself.
pub fn usual_strategy(version: KernelVersion) -> Strategy {
    match version {
        v if v >= KernelVersion::new(4, 15) => Strategy::Deferred,
        v if v >= KernelVersion::new(4, 2) => Strategy::Prezero,
        _ => Strategy::Serial,
    }
}

/// The part of an entry that every prediction has.
pub(super) fn described(
    record: &Published,
    what: &str,
    ms: Option<f64>,
    predicted: &Predicted,
) -> Validated {
    let class = predicted.hardware.class;
    Validated {
        id: record.id.clone(),
        what: what.into(),
        published_ms: ms,
        class: Some(class.name.clone()),
        class_mark: Some(class.mark().name().into()),
        ..Validated::default()
    }
}

/// The factor on the class with which one thread takes `ms` for the slowest node.
pub(super) fn anchor_scale(
    subject: &Subject,
    prepared: &(crate::kernel::Layout, crate::plan::BootPlan),
    ms: f64,
) -> Option<f64> {
    let mut one = prepared.clone();
    for phase in &mut one.1.phases {
        for job in phase.work.iter_mut().flat_map(|w| &mut w.jobs) {
            job.max_threads = 1;
        }
    }
    let run = subject.rerun(&one, &Change::default());
    let phase = run.run.phases.iter().find(|p| p.name == PhaseName::DeferredInit)?;
    let predicted_ms = (phase.end_ns - phase.start_ns) / 1e6;
    (predicted_ms > 0.0).then(|| ms / predicted_ms)
}

/// The time that a figure of a deferred phase shows.
fn deferred_ns(predicted: &Predicted, figure: &Figure, less_ns: f64) -> Option<f64> {
    let phase = predicted.run.phases.iter().find(|p| p.name == PhaseName::DeferredInit)?;
    let (work, ns) = match figure.kind {
        Kind::DeferredNode => {
            let nid = node_of(&figure.what).unwrap_or(0);
            let work = phase.works.iter().find(|w| w.nid.0 == nid).or(phase.works.first())?;
            (work, work.end_ns() - phase.start_ns)
        }
        _ => (phase.slowest()?, phase.end_ns - phase.start_ns),
    };
    // Printed pages count more than those of a described machine.
    let pages = figure.pages.map_or(1.0, |pages| pages as f64 / work.pages.max(1) as f64);
    let core = predicted.hardware.class.core_factor;
    Some((ns - less_ns * core * work.pages as f64) * pages)
}

/// A phase of the boot CPU alone.
fn boot_cpu(record: &Published, figure: &Figure) -> Result<Validated, StudyError> {
    let out = |reason| Ok(left_out(record, &figure.what, figure.ms, reason));
    let Some(subject) = Subject::of(record) else { return out(Reason::MemoryUnknown) };
    let Some(version) = subject.version else { return out(Reason::KernelUnknown) };
    if figure.what.contains("after") {
        return out(Reason::NotMerged);
    }
    let version = version.max(crate::kernel::version::OLDEST);
    let predicted = subject.predict(version, Strategy::Serial, &Change::default())?;
    let name = match figure.kind {
        Kind::BootZero => PhaseName::MemblockZero,
        Kind::Sweep => PhaseName::EarlyInit,
        _ => PhaseName::EarlyFree,
    };
    let Some(phase) = predicted.run.phases.iter().find(|p| p.name == name) else {
        return out(Reason::Phase);
    };
    debug_assert_eq!(phase.executor, Executor::BootCpu);
    let pages: u64 = phase.works.iter().map(|w| w.pages).sum();
    let share = figure.pages.map_or(1.0, |p| p as f64 / pages.max(1) as f64);
    let ns = (phase.end_ns - phase.start_ns) * share;
    let range = Range::of(Basis::of(&predicted.hardware, false), false, ns, 0.0);
    Ok(judged(Validated {
        group: Some("boot-cpu-blind".into()),
        threads: Some(1),
        predicted_ms: Some(ns / 1e6),
        range_ms: Some([range.low_ns / 1e6, range.high_ns / 1e6]),
        anchor: Some("class".into()),
        ..described(record, &figure.what, figure.ms, &predicted)
    }))
}
