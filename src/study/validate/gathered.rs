//! What several figures say together: medians of posts, many nodes, kernel changes.
//!
//! [`swept_machines`] finds the machines whose thread count was swept, with all their
//! posts. A record counts once among one-thread times, however many lines it prints.

use super::entries::{anchor_scale, described, era_by_words, usual_strategy};
use super::{StudyError, judged};
use crate::model::constants as k;
use crate::plan::PhaseName;
use crate::record::validate::Validated;
use crate::stats;
use crate::study::published::{Figure, Kind, Published};
use crate::study::subject::{Change, Predicted, Subject, deferring};
use std::collections::BTreeMap;

/// The posts of each machine by what identifies it.
pub(super) type Machines<'a> = BTreeMap<String, Vec<&'a Published>>;

/// Machines whose deferred phase was timed with one thread and with more.
pub(super) fn swept_machines(records: &[Published]) -> Machines<'_> {
    let mut machines: Machines<'_> = BTreeMap::new();
    for record in records.iter().filter(|r| posts(r).count() > 0) {
        machines.entry(key(record)).or_default().push(record);
    }
    machines.retain(|_, posts_of| {
        let threads: Vec<u32> = posts_of.iter().flat_map(|r| posts(r)).map(|(t, _)| t).collect();
        threads.iter().any(|t| *t <= 1) && threads.iter().any(|t| *t > 1)
    });
    machines
}

fn key(record: &Published) -> String {
    let m = &record.machine;
    let cpu = m.cpu.as_deref().unwrap_or("unknown processor");
    let (nodes, gib) = (m.nodes.unwrap_or(1), m.memory_per_node_gib.unwrap_or(0.0));
    format!("{nodes} node(s) of {gib} GiB, {cpu}")
}

/// Threads and times of the slowest node's deferred phase.
fn posts(record: &Published) -> impl Iterator<Item = (u32, f64)> {
    let slowest = |f: &&Figure| f.kind == Kind::DeferredSlowest && !f.invalid;
    record.figures.iter().filter(slowest).filter_map(|f| Some((f.threads?, f.ms?)))
}

/// The median of a machine's posts for each thread count.
pub(super) fn medians(posts_of: &[&Published]) -> BTreeMap<u32, f64> {
    let mut all: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (threads, ms) in posts_of.iter().flat_map(|r| posts(r)) {
        all.entry(threads).or_default().push(ms);
    }
    all.into_iter().map(|(threads, ms)| (threads, stats::median(&ms))).collect()
}

/// The one-thread time that a record's thread counts are anchored on, in ms.
pub(super) fn anchor_of(machines: &Machines<'_>, record: &Published) -> Option<f64> {
    one_thread_ms(machines.get(&key(record))?)
}

/// With one thread where that was timed, else the kernel without the change.
fn one_thread_ms(posts_of: &[&Published]) -> Option<f64> {
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
    /// Thread counts above 1, with the median time in ms.
    pub(super) points: Vec<(u32, f64)>,
    prepared: Vec<(crate::kernel::Layout, crate::plan::BootPlan)>,
    scale: f64,
}

impl<'a> Swept<'a> {
    /// Prepares one machine; `None` where it has no memory, kernel or anchor.
    pub(super) fn of(
        machine: &'a str,
        posts_of: &[&'a Published],
    ) -> Result<Option<Self>, StudyError> {
        let Some((record, subject)) = posts_of.iter().find_map(|r| Some((*r, Subject::of(r)?)))
        else {
            return Ok(None);
        };
        let (Some(stated), Some(anchor_ms)) = (subject.version, one_thread_ms(posts_of)) else {
            return Ok(None);
        };
        let version = deferring(stated, Some(2));
        let points: Vec<(u32, f64)> =
            medians(posts_of).into_iter().filter(|(t, _)| *t > 1).collect();
        let prepare = |t: u32| subject.prepare(version, usual_strategy(version), Some(t));
        let prepared: Vec<_> = points.iter().map(|(t, _)| prepare(*t)).collect::<Result<_, _>>()?;
        let scale = prepared.first().and_then(|p| anchor_scale(&subject, p, anchor_ms));
        let Some(scale) = scale else { return Ok(None) };
        Ok(Some(Self { machine, record, subject, points, prepared, scale }))
    }

    /// What each point would take with these constants.
    pub(super) fn predict(&self, scaling: Option<crate::model::Scaling>) -> Vec<Predicted> {
        let scales = vec![(crate::pfn::Nid(0), self.scale)];
        let change = Change { threads: None, scales, scaling };
        self.prepared.iter().map(|p| self.subject.rerun(p, &change)).collect()
    }
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
    for (id, lines) in lines_by_record(entries, "node ") {
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
    for (id, lines) in lines_by_record(entries, "") {
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
fn lines_by_record<'e>(entries: &'e [Validated], what: &str) -> Vec<(String, Vec<&'e Validated>)> {
    let mut out: Vec<(String, Vec<&Validated>)> = Vec::new();
    let single = |e: &&Validated| {
        e.anchor.as_deref() == Some("class") && e.threads == Some(1) && e.group.is_none()
    };
    for entry in entries.iter().filter(single).filter(|e| e.what.starts_with(what)) {
        match out.iter_mut().find(|(id, _)| *id == entry.id) {
            Some((_, lines)) => lines.push(entry),
            None => out.push((entry.id.clone(), vec![entry])),
        }
    }
    out
}

/// Ratios between the steps of a record whose words name kernel changes.
pub(super) fn ladder(record: &Published) -> Result<Vec<Validated>, StudyError> {
    let Some(subject) = Subject::of(record) else { return Ok(Vec::new()) };
    let Some(version) = subject.version else { return Ok(Vec::new()) };
    let merged = |f: &&Figure| !f.what.contains("not merged") && !f.invalid;
    let steps: Vec<(&Figure, super::entries::Step)> = record
        .figures
        .iter()
        .filter(|f| f.kind == Kind::DeferredSlowest)
        .filter(merged)
        .filter_map(|f| Some((f, era_by_words(version, &f.what)?)))
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
