//! One figure, one prediction.
//!
//! [`of`] goes through a record's figures. Thread counts of a machine that also has a
//! one-thread time are anchored on it, everything else rests on the class alone.

use super::gathered::{Machines, Post, anchor_of, swept_machines};
use super::sift::{subject_of, version_of};
use super::{Reason, StudyError, devices, judged, later, left_out};
use crate::kernel::{KernelModel, KernelVersion};
use crate::model::cost::Era;
use crate::model::range::{Basis, Range, extrapolation};
use crate::model::run::PhaseRun;
use crate::plan::{Executor, PhaseName, Strategy};
use crate::record::validate::Validated;
use crate::study::published::{Figure, Kind, Published, node_in_words};
use crate::study::subject::{Change, Predicted, Subject, deferring};

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
        Kind::Rate => out(Reason::Rate),
        _ if figure.ms.is_none() => out(Reason::NoTime),
        _ if figure.invalid => out(Reason::Void),
        _ if figure.what.contains("not merged") => out(Reason::NotMerged),
        Kind::Boot => out(Reason::WholeBoot),
        Kind::Expectation => out(Reason::Expectation),
        Kind::Device => devices::of(record, figure),
        Kind::Reserved => out(Reason::Reserved),
        Kind::Hotplug => later::hotplug(record, figure),
        Kind::Huge => later::huge(record, figure),
        Kind::Other => out(Reason::NotStructPages),
        Kind::Saving | Kind::NodeZeroExtra => out(Reason::NoTime),
        Kind::DeferredNode | Kind::DeferredSlowest => deferred(record, figure, machines),
        Kind::BootZero | Kind::Sweep | Kind::FreeAll => boot_cpu(record, figure),
    }
}

/// The changes of 4.20 to 5.2 by the names of their series and of what they changed.
const LADDER: [&str; 6] = [
    "deferred page init improvements",
    "duyck",
    "meminit_pfn_in_nid",
    "mm_zero_struct_page",
    "zone specific memblock iterator",
    "persistent memory initialization",
];

/// What a step of the changes of 4.20 to 5.2 left in the kernel, by the author's words;
/// `None` for posts of other changes, whose `before` and `after` mean something else.
pub(super) fn era_by_words(record: &Published, version: KernelVersion, what: &str) -> Option<Step> {
    let text = what.to_ascii_lowercase();
    if Era::of(version) != Era::C || !["before", "after"].iter().any(|w| text.contains(w)) {
        return None;
    }
    let about = format!("{} {} {text}", record.source, record.config).to_ascii_lowercase();
    if !LADDER.iter().any(|name| about.contains(name)) {
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
    let Some(subject) = subject_of(record) else { return out(Reason::MemoryUnknown) };
    let stated = match version_of(record, figure, FIRST_POSTED) {
        Ok(version) => version,
        Err(reason) => return out(reason),
    };
    let step = era_by_words(record, stated, &figure.what);
    let stated = came_with(record, figure, stated);
    let (version, less_ns) = step.map_or((deferring(stated, figure.threads), 0.0), Step::rules);
    let threads = figure.threads.map(|t| t.max(1)).or((version < PADATA).then_some(1));
    let by_cpus = KernelModel::new(version, subject.machine.arch).threads_by_cpus;
    let m = &record.machine;
    if threads.is_none() && by_cpus && m.cpus_per_node.or(m.cores_per_node).is_none() {
        return out(Reason::CpusUnknown);
    }
    let strategy = usual_strategy(version);
    let prepared = subject.prepare(version, strategy, threads)?;
    let anchor = threads.filter(|t| *t > 1).and_then(|_| anchor_of(machines, record));
    let scale = anchor.and_then(|anchor| anchor_scale(&subject, &prepared, anchor));
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
            Some(a) if scale.is_some() => {
                format!("one thread of the same machine, {:.1} ms", a.ms)
            }
            _ => "class".into(),
        }),
        ..described(record, &figure.what, figure.ms, &predicted)
    }))
}

/// Changes of the deferred phase by words of their series, and the version they came with.
const CAME_WITH: [(&str, KernelVersion); 2] = [
    ("parallelize deferred_init_memmap", PADATA),
    ("deferred_page_init_max_threads", KernelVersion::new(6, 11)),
];

/// The version whose rules a post of a change ran by, where words say `after` it.
fn came_with(record: &Published, figure: &Figure, stated: KernelVersion) -> KernelVersion {
    let about = format!("{} {}", record.source, record.config).to_ascii_lowercase();
    let change = CAME_WITH.iter().find(|(name, _)| about.contains(name));
    let after = is_after_change(&figure.what);
    change.filter(|_| after).map_or(stated, |(_, version)| stated.max(*version))
}

/// The first version that deferral was posted for.
const FIRST_POSTED: KernelVersion = KernelVersion::new(4, 0);

/// The first version whose boot CPU works as in 4.1.
const FIRST_SERIAL: KernelVersion = KernelVersion::new(3, 0);

/// Beyond this a known time is not the time of what is predicted.
const MOST_SCALE: f64 = 100.0;

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

/// The factor on the class with which one thread takes the known time for its pages.
pub(super) fn anchor_scale(
    subject: &Subject,
    prepared: &(crate::kernel::Layout, crate::plan::BootPlan),
    known: Post,
) -> Option<f64> {
    let mut one = prepared.clone();
    for phase in &mut one.1.phases {
        for job in phase.work.iter_mut().flat_map(|w| &mut w.jobs) {
            job.max_threads = 1;
        }
    }
    let run = subject.rerun(&one, &Change::default());
    let phase = run.run.phases.iter().find(|p| p.name == PhaseName::DeferredInit)?;
    let predicted_ms = (phase.end_ns - phase.start_ns) / 1e6 * share_of(phase, known.pages)?;
    let scale = known.ms / predicted_ms;
    (1.0 / MOST_SCALE..=MOST_SCALE).contains(&scale).then_some(scale)
}

/// The part of the slowest node's work that printed pages are. More than that node has
/// are those of all nodes.
pub(super) fn share_of(phase: &PhaseRun, pages: Option<u64>) -> Option<f64> {
    let node = phase.slowest()?.pages.max(1);
    let all: u64 = phase.works.iter().map(|w| w.pages).sum();
    let Some(pages) = pages else { return Some(1.0) };
    let whole = if pages > node + node / 2 { all.max(1) } else { node };
    Some(pages as f64 / whole as f64)
}

/// The time that a figure of a deferred phase shows.
fn deferred_ns(predicted: &Predicted, figure: &Figure, less_ns: f64) -> Option<f64> {
    let phase = predicted.run.phases.iter().find(|p| p.name == PhaseName::DeferredInit)?;
    let core = predicted.hardware.class.core_factor;
    let less = |pages: u64| less_ns * core * pages as f64;
    let nid = node_in_words(&figure.what).filter(|_| figure.kind == Kind::DeferredNode);
    let Some(nid) = nid else {
        let slowest = phase.slowest()?.pages;
        let ns = phase.end_ns - phase.start_ns - less(slowest);
        return Some(ns * share_of(phase, figure.pages)?);
    };
    let work = phase.works.iter().find(|w| w.nid.0 == nid).or(phase.works.first())?;
    // Printed pages count more than those of a described machine.
    let share = figure.pages.map_or(1.0, |pages| pages as f64 / work.pages.max(1) as f64);
    Some((work.end_ns() - phase.start_ns - less(work.pages)) * share)
}

/// Whether words speak of the kernel after a change; `after boot` is a point in time.
pub(super) fn is_after_change(what: &str) -> bool {
    let text = what.to_ascii_lowercase();
    text.split_once("after").is_some_and(|(_, rest)| {
        let next = rest.split_whitespace().next().unwrap_or_default();
        !["boot", "booting", "reset", "kexec", "power"].contains(&next)
    })
}

/// A phase of the boot CPU alone.
fn boot_cpu(record: &Published, figure: &Figure) -> Result<Validated, StudyError> {
    let out = |reason| Ok(left_out(record, &figure.what, figure.ms, reason));
    let Some(subject) = subject_of(record) else { return out(Reason::MemoryUnknown) };
    let version = match version_of(record, figure, FIRST_SERIAL) {
        Ok(version) => version,
        Err(reason) => return out(reason),
    };
    if is_after_change(&figure.what) {
        return out(Reason::ChangeUnknown);
    }
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
