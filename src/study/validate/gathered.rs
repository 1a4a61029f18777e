//! What several figures say together: medians of posts, many nodes, kernel changes.
//!
//! [`swept_machines`] finds the machines whose thread count was swept, with all their
//! posts. A record counts once among one-thread times, however many lines it prints.

use super::entries::{anchor_scale, described, era_by_words, share_of, usual_strategy};
use super::sift::subject_of;
use super::{StudyError, judged};
use crate::kernel::KernelVersion;
use crate::model::constants as k;
use crate::model::cost::Era;
use crate::plan::PhaseName;
use crate::record::validate::Validated;
use crate::stats;
use crate::study::published::{Figure, Kind, Published, kernel_in_words, node_in_words};
use crate::study::subject::{Change, Predicted, Subject, deferring};
use std::collections::BTreeMap;

/// The posts of each machine by what identifies it.
pub(super) type Machines<'a> = BTreeMap<Key, Vec<&'a Published>>;

/// What identifies a machine, as it was when it was timed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    /// For people.
    label: String,
    /// Everything else in which two machines, or two kernels on one, may differ.
    rest: String,
}

/// One time of the slowest node's deferred phase, or the median of several.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Post {
    /// Threads per node; 0 is the kernel without the change.
    pub(super) threads: u32,
    /// The time in ms.
    pub(super) ms: f64,
    /// The struct pages that took it, where they are printed.
    pub(super) pages: Option<u64>,
}

/// Machines whose deferred phase was timed with one thread and with more.
pub(super) fn swept_machines(records: &[Published]) -> Machines<'_> {
    let mut machines: Machines<'_> = BTreeMap::new();
    for record in records.iter().filter(|r| posts(r).count() > 0) {
        machines.entry(key(record)).or_default().push(record);
    }
    machines.retain(|_, posts_of| {
        let threads: Vec<u32> = posts_of.iter().flat_map(|r| posts(r)).map(|p| p.threads).collect();
        threads.iter().any(|t| *t <= 1) && threads.iter().any(|t| *t > 1)
    });
    machines
}

fn key(record: &Published) -> Key {
    let m = &record.machine;
    let cpu = m.cpu.as_deref().unwrap_or("unknown processor");
    let nodes = m.nodes.unwrap_or(1);
    let total = || m.total_memory_gib.map(|gib| gib / f64::from(nodes.max(1)));
    let gib = m.memory_per_node_gib.or_else(total).unwrap_or(0.0);
    let era = kernel_in_words(&record.kernel).map(Era::of);
    // Two machines without a name are two machines.
    let own = if is_named(cpu) { "" } else { &record.id };
    let counts = (m.total_memory_gib.map(f64::to_bits), m.cpus_per_node, m.page_kib);
    Key {
        label: format!("{nodes} node(s) of {gib} GiB, {cpu}"),
        rest: format!("{counts:?} {:?} {:?} {era:?} {own}", m.arch, record.is_guest()),
    }
}

/// Whether a processor's name has a model number, not only that of its architecture.
fn is_named(cpu: &str) -> bool {
    let text = cpu.to_ascii_lowercase();
    let words = text.split(['(', ';']).next().unwrap_or_default().split([' ', ',']);
    let plain = words.filter(|w| !w.starts_with("x86") && !w.contains("socket"));
    plain.into_iter().any(|word| word.contains(|c: char| c.is_ascii_digit()))
}

/// Times of the slowest node's deferred phase.
fn posts(record: &Published) -> impl Iterator<Item = Post> {
    let slowest = |f: &&Figure| f.kind == Kind::DeferredSlowest && !f.invalid;
    record
        .figures
        .iter()
        .filter(slowest)
        .filter_map(|f| Some(Post { threads: f.threads?, ms: f.ms?, pages: f.pages }))
}

/// The median of a machine's posts for each thread count.
pub(super) fn medians(posts_of: &[&Published]) -> BTreeMap<u32, Post> {
    let mut all: BTreeMap<u32, Vec<Post>> = BTreeMap::new();
    for post in posts_of.iter().flat_map(|r| posts(r)) {
        all.entry(post.threads).or_default().push(post);
    }
    all.into_iter().filter_map(|(threads, posts)| Some((threads, median(&posts)?))).collect()
}

/// Of times of whole nodes; where every one has its pages, of the times per page.
fn median(posts: &[Post]) -> Option<Post> {
    let first = posts.first()?;
    let whole: Vec<f64> = posts.iter().filter(|p| p.pages.is_none()).map(|p| p.ms).collect();
    if !whole.is_empty() {
        return Some(Post { ms: stats::median(&whole), pages: None, ..*first });
    }
    let rates: Vec<f64> = posts.iter().filter_map(|p| Some(p.ms / p.pages? as f64)).collect();
    let ms = match posts.len() {
        1 => first.ms,
        _ => stats::median(&rates) * first.pages? as f64,
    };
    Some(Post { ms, ..*first })
}

/// The one-thread time that a record's thread counts are anchored on: its own, else that
/// of the machine's other posts.
pub(super) fn anchor_of(machines: &Machines<'_>, record: &Published) -> Option<Post> {
    one_thread_post(&[record]).or_else(|| one_thread_post(machines.get(&key(record))?))
}

/// With one thread where that was timed, else the kernel without the change.
fn one_thread_post(posts_of: &[&Published]) -> Option<Post> {
    let medians = medians(posts_of);
    medians.get(&1).or(medians.get(&0)).copied()
}

/// A swept machine, ready to be run with any constants.
pub(super) struct Swept<'a> {
    /// What identifies it.
    pub(super) machine: &'a str,
    /// One of its posts.
    pub(super) record: &'a Published,
    /// The machine.
    pub(super) subject: Subject,
    /// Thread counts above 1, with the median time of a whole node in ms.
    pub(super) points: Vec<(u32, f64)>,
    prepared: Vec<(crate::kernel::Layout, crate::plan::BootPlan)>,
    scale: f64,
}

impl<'a> Swept<'a> {
    /// Prepares one machine; `None` where it has no memory, kernel or anchor.
    pub(super) fn of(
        machine: &'a Key,
        posts_of: &[&'a Published],
    ) -> Result<Option<Self>, StudyError> {
        let Some((record, subject)) = posts_of.iter().find_map(|r| Some((*r, subject_of(r)?)))
        else {
            return Ok(None);
        };
        let stated = subject.version.filter(|v| *v >= KernelVersion::new(4, 0));
        let (Some(stated), Some(anchor)) = (stated, one_thread_post(posts_of)) else {
            return Ok(None);
        };
        let version = deferring(stated, Some(2));
        let posts: Vec<Post> = medians(posts_of).into_values().filter(|p| p.threads > 1).collect();
        let prepare = |p: &Post| subject.prepare(version, usual_strategy(version), Some(p.threads));
        let prepared: Vec<_> = posts.iter().map(prepare).collect::<Result<_, _>>()?;
        let scale = prepared.first().and_then(|p| anchor_scale(&subject, p, anchor));
        let Some(scale) = scale else { return Ok(None) };
        let whole = |(post, prepared): (&Post, _)| {
            (post.threads, post.ms / printed_share(&subject, prepared, post))
        };
        let points = posts.iter().zip(&prepared).map(whole).collect();
        Ok(Some(Self { machine: &machine.label, record, subject, points, prepared, scale }))
    }

    /// What each point would take with these constants.
    pub(super) fn predict(&self, scaling: Option<crate::model::Scaling>) -> Vec<Predicted> {
        let scales = vec![(crate::pfn::Nid(0), self.scale)];
        let change = Change { threads: None, scales, scaling };
        self.prepared.iter().map(|p| self.subject.rerun(p, &change)).collect()
    }
}

/// The part of the slowest node that a post's printed pages are.
fn printed_share(
    subject: &Subject,
    prepared: &(crate::kernel::Layout, crate::plan::BootPlan),
    post: &Post,
) -> f64 {
    let share = || {
        post.pages?;
        let run = subject.rerun(prepared, &Change::default()).run;
        let phase = run.phases.iter().find(|p| p.name == PhaseName::DeferredInit)?;
        share_of(phase, post.pages)
    };
    share().unwrap_or(1.0)
}

/// The deferred phase of a prediction, in ms.
pub(super) fn phase_ms(predicted: &Predicted) -> Option<f64> {
    let phase = predicted.run.phases.iter().find(|p| p.name == PhaseName::DeferredInit)?;
    Some((phase.end_ns - phase.start_ns) / 1e6)
}

/// Every thread count against the median of a machine's posts.
pub(super) fn medians_of_posts(machines: &Machines<'_>) -> Result<Vec<Validated>, StudyError> {
    let mut out = Vec::new();
    for (machine, posts_of) in machines {
        let Some(swept) = Swept::of(machine, posts_of)? else { continue };
        for ((threads, ms), predicted) in swept.points.iter().zip(swept.predict(None)) {
            out.push(judged(Validated {
                group: Some("threads-anchored".into()),
                threads: Some(*threads),
                predicted_ms: phase_ms(&predicted),
                anchor: Some("median of its one-thread times".into()),
                ..described(swept.record, &of_posts(posts_of), Some(*ms), &predicted)
            }));
        }
    }
    Ok(out)
}

/// For example `deferred init, median of padata-v1-x, padata-v2-x`.
pub(super) fn of_posts(posts_of: &[&Published]) -> String {
    let ids: Vec<&str> = posts_of.iter().map(|r| r.id.as_str()).collect();
    format!("deferred init, median of {}", ids.join(", "))
}

/// Slowest and mean of every record that prints at least four nodes, by class alone.
pub(super) fn many_nodes(entries: &[Validated]) -> Vec<Validated> {
    let mut out = Vec::new();
    for (id, lines) in lines_by_record(entries, |e| node_in_words(&e.what).is_some()) {
        if lines.len() < 4 {
            continue;
        }
        let of = |value: fn(&Validated) -> Option<f64>| lines.iter().filter_map(move |l| value(l));
        let published: Vec<f64> = of(|l| l.published_ms).collect();
        let predicted: Vec<f64> = of(|l| l.predicted_ms).collect();
        let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len().max(1) as f64;
        let most = |v: &[f64]| v.iter().copied().fold(0.0, f64::max);
        let slowest = most(&predicted) * k::SLOWEST_NODE;
        let rows =
            [("slowest", most(&published), slowest), ("mean", mean(&published), mean(&predicted))];
        for (what, published_ms, predicted_ms) in rows {
            out.push(judged(Validated {
                id: id.clone(),
                what: format!("{what} of {} printed nodes", lines.len()),
                group: Some("many-nodes".into()),
                threads: Some(1),
                published_ms: Some(published_ms),
                predicted_ms: Some(predicted_ms),
                anchor: Some("class".into()),
                class: lines.first().and_then(|l| l.class.clone()),
                class_mark: lines.first().and_then(|l| l.class_mark.clone()),
                ..Validated::default()
            }));
        }
    }
    out
}

/// One entry per record: the median of its one-thread times by class alone.
pub(super) fn one_thread(entries: &[Validated]) -> Vec<Validated> {
    let mut out = Vec::new();
    for (id, lines) in lines_by_record(entries, |_| true) {
        let published: Vec<f64> = lines.iter().filter_map(|l| l.published_ms).collect();
        let ratios: Vec<f64> = lines.iter().filter_map(|l| Some(1.0 + l.error?)).collect();
        let Some(first) = lines.first() else { continue };
        let class = crate::model::processors::classes();
        let known = class.iter().find(|c| Some(&c.name) == first.class.as_ref());
        let known = known.is_some_and(crate::model::processors::Class::is_known);
        let ms = stats::median(&published);
        let group = if known { "one-thread-blind" } else { "one-thread-unknown" };
        out.push(judged(Validated {
            id,
            what: format!("one thread, median of {} times", lines.len()),
            group: Some(group.into()),
            published_ms: Some(ms),
            predicted_ms: Some(ms * stats::median(&ratios)),
            range_ms: None,
            ..(*first).clone()
        }));
    }
    out
}

/// Predictions by class with one thread, by record, in the order of the records.
fn lines_by_record(
    entries: &[Validated],
    wanted: impl Fn(&Validated) -> bool,
) -> Vec<(String, Vec<&Validated>)> {
    let mut out: Vec<(String, Vec<&Validated>)> = Vec::new();
    let single = |e: &&Validated| {
        e.anchor.as_deref() == Some("class") && e.threads == Some(1) && e.group.is_none()
    };
    for entry in entries.iter().filter(single).filter(|e| wanted(e)) {
        match out.iter_mut().find(|(id, _)| *id == entry.id) {
            Some((_, lines)) => lines.push(entry),
            None => out.push((entry.id.clone(), vec![entry])),
        }
    }
    out
}

/// Ratios between the steps of a record whose words name kernel changes.
pub(super) fn ladder(record: &Published) -> Result<Vec<Validated>, StudyError> {
    let Some(subject) = subject_of(record) else { return Ok(Vec::new()) };
    let Some(version) = subject.version else { return Ok(Vec::new()) };
    let merged = |f: &&Figure| !f.what.contains("not merged") && !f.invalid;
    let steps: Vec<(&Figure, super::entries::Step)> = record
        .figures
        .iter()
        .filter(|f| f.kind == Kind::DeferredSlowest)
        .filter(merged)
        .filter_map(|f| Some((f, era_by_words(record, version, &f.what)?)))
        .collect();
    let mut out = Vec::new();
    for pair in steps.windows(2) {
        let [(before, from), (after, to)] = pair else { continue };
        let (Some(before_ms), Some(after_ms)) = (before.ms, after.ms) else { continue };
        if from == to {
            continue;
        }
        let (was, is) = (step_ns(&subject, *from)?, step_ns(&subject, *to)?);
        out.push(judged(Validated {
            id: record.id.clone(),
            what: format!("ratio: {} to {}", before.what, after.what),
            group: Some("kernel-ladder".into()),
            threads: Some(1),
            published_ms: Some(after_ms / before_ms),
            predicted_ms: Some(is / was),
            anchor: Some("ratio".into()),
            class: Some(subject.class().name.clone()),
            class_mark: Some(subject.class().mark().name().into()),
            ..Validated::default()
        }));
    }
    Ok(out)
}

fn step_ns(subject: &Subject, step: super::entries::Step) -> Result<f64, StudyError> {
    let (version, less_ns) = step.rules();
    let change = Change { threads: Some(1), ..Change::default() };
    let predicted = subject.predict(version, usual_strategy(version), &change)?;
    let phase = predicted.run.phases.iter().find(|p| p.name == PhaseName::DeferredInit);
    let page = phase.and_then(|p| p.works.first()).map_or(0.0, |w| w.page.ns);
    Ok(page - less_ns * predicted.hardware.class.core_factor)
}
