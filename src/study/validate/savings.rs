//! What changes saved of a boot.
//!
//! [`of`] compares differences of whole boots, and savings that authors print, with
//! differences between two plans. Where a record has its own zeroing or node times they
//! anchor the parts; a rate that comes from the difference itself is marked so.

use super::entries::described;
use super::sift::subject_of;
use super::{Reason, StudyError, judged, left_out};
use crate::kernel::KernelVersion;
use crate::model::range::{Basis, Range};
use crate::plan::{Executor, Strategy};
use crate::record::validate::{Seconds, Validated};
use crate::study::published::{Figure, Kind, Published, node_in_words};
use crate::study::subject::{Change, Predicted, Subject};
use crate::units::TIB;

/// Entries and the origin of their seconds.
pub(super) type Found = (Vec<Validated>, Vec<Seconds>);

/// The two sides of a change.
type Sides = [(KernelVersion, Strategy); 2];

const BEFORE_DEFERRED: KernelVersion = KernelVersion::new(4, 1);
const FIRST_DEFERRED: KernelVersion = KernelVersion::new(4, 2);
const LAST_PREZERO: KernelVersion = KernelVersion::new(4, 14);
const FIRST_INLINE: KernelVersion = KernelVersion::new(4, 15);

/// Everything that a record says about savings.
pub(super) fn of(record: &Published, all: &[Published]) -> Result<Found, StudyError> {
    let mut out: Found = (Vec::new(), Vec::new());
    for saving in printed(record) {
        out.0.push(plain(record, &saving)?);
    }
    out.0.extend(node_extra(record)?);
    if let Some(found) = by_zeroing_time(record)? {
        out.0.push(found.0);
        out.1.extend(found.1);
    }
    if let Some(found) = by_node_times(record, all) {
        out.0.extend(found.0);
        out.1.extend(found.1);
    }
    Ok(out)
}

/// A saving as printed, or as the difference of two boots.
struct Saving {
    what: String,
    ms: f64,
    /// Whether it is meant per TB of memory.
    per_tb: bool,
}

fn printed(record: &Published) -> Vec<Saving> {
    let savings = record.figures.iter().filter(|f| f.kind == Kind::Saving && !f.invalid);
    let mut out: Vec<Saving> = savings
        .filter_map(|f| {
            let per_tb = f.what.to_ascii_lowercase().contains("per tb");
            Some(Saving { what: f.what.clone(), ms: f.ms?, per_tb })
        })
        .collect();
    let boots: Vec<&Figure> = record.figures.iter().filter(|f| f.kind == Kind::Boot).collect();
    for (index, before) in boots.iter().enumerate() {
        let Some(name) = unmarked(&before.what, ["before", "base"]) else { continue };
        let same = |f: &&&Figure| unmarked(&f.what, ["after", "fix"]).as_ref() == Some(&name);
        let after = boots.iter().skip(index + 1).find(same);
        if let (Some(before_ms), Some(after_ms)) = (before.ms, after.and_then(|a| a.ms)) {
            let what = format!("saving: {name}");
            out.push(Saving { what, ms: before_ms - after_ms, per_tb: false });
        }
    }
    out
}

/// The words without the one that tells the sides apart, and without remarks.
fn unmarked(what: &str, marks: [&str; 2]) -> Option<String> {
    let plain = what.split(" (").next().unwrap_or(what).to_ascii_lowercase();
    let words: Vec<&str> = plain.split([' ', ',']).filter(|w| !w.is_empty()).collect();
    let rest: Vec<&str> = words.iter().copied().filter(|w| !marks.contains(w)).collect();
    (rest.len() < words.len()).then(|| rest.join(" "))
}

/// Which change a record is about, by its kernel and words.
fn sides(version: KernelVersion, what: &str) -> Option<Sides> {
    let serial = ["single-threaded", "not deferred"].iter().any(|w| what.contains(w));
    match version {
        v if v < BEFORE_DEFERRED && v < KernelVersion::new(4, 0) => None,
        v if v < FIRST_DEFERRED => {
            Some([(BEFORE_DEFERRED, Strategy::Serial), (FIRST_DEFERRED, Strategy::Prezero)])
        }
        v if v < FIRST_INLINE && serial => {
            Some([(LAST_PREZERO, Strategy::Serial), (FIRST_INLINE, Strategy::SerialInline)])
        }
        v if v < FIRST_INLINE => {
            Some([(LAST_PREZERO, Strategy::Prezero), (FIRST_INLINE, Strategy::Deferred)])
        }
        _ => None,
    }
}

/// A saving by class alone.
fn plain(record: &Published, saving: &Saving) -> Result<Validated, StudyError> {
    let out = |reason| Ok(left_out(record, &saving.what, Some(saving.ms), reason));
    let Some(subject) = subject_of(record) else { return out(Reason::MemoryUnknown) };
    let m = &record.machine;
    if m.total_memory_gib.or(m.memory_per_node_gib).is_none() {
        return out(Reason::MemoryUnknown);
    }
    if record.machine.nodes.is_none() && subject.machine.nodes.len() == 1 {
        return out(Reason::NodesUnknown);
    }
    let Some(version) = subject.version else { return out(Reason::KernelUnknown) };
    let Some([before, after]) = sides(version, &saving.what) else { return out(Reason::WholeBoot) };
    let (was, is) = (whole(&subject, before)?, whole(&subject, after)?);
    let share = match saving.per_tb {
        true => TIB as f64 / subject.machine.memory_bytes() as f64,
        false => 1.0,
    };
    let ns = (was.run.total_ns() - is.run.total_ns()) * share;
    let range = Range::of(Basis::of(&was.hardware, false), false, ns.max(0.0), 0.0);
    Ok(judged(Validated {
        group: Some("boot-cpu-blind".into()),
        predicted_ms: Some(ns / 1e6),
        range_ms: Some([range.low_ns / 1e6, range.high_ns / 1e6]),
        anchor: Some("class".into()),
        ..described(record, &saving.what, Some(saving.ms), &was)
    }))
}

fn whole(
    subject: &Subject,
    (version, strategy): (KernelVersion, Strategy),
) -> Result<Predicted, StudyError> {
    subject.predict(version, strategy, &Change::default())
}

/// What zeroing in place adds to the slowest node, in ns, by class.
fn extra_ns(subject: &Subject) -> Result<(f64, Predicted), StudyError> {
    let was = whole(subject, (LAST_PREZERO, Strategy::Prezero))?;
    let is = whole(subject, (FIRST_INLINE, Strategy::Deferred))?;
    let nodes = |p: &Predicted| p.run.share_ns(Executor::NodeThreads);
    Ok((nodes(&is) - nodes(&was), was))
}

/// What zeroing in place adds to each node.
fn node_extra(record: &Published) -> Result<Option<Validated>, StudyError> {
    let figure = record.figures.iter().find(|f| f.kind == Kind::NodeZeroExtra && f.ms.is_some());
    let (Some(figure), Some(subject)) = (figure, subject_of(record)) else { return Ok(None) };
    let (ns, was) = extra_ns(&subject)?;
    Ok(Some(judged(Validated {
        group: Some("boot-cpu-blind".into()),
        threads: Some(1),
        predicted_ms: Some(ns / 1e6),
        anchor: Some("class".into()),
        ..described(record, &figure.what, figure.ms, &was)
    })))
}

/// A printed saving, anchored on the record's own time of zeroing the memmap.
fn by_zeroing_time(record: &Published) -> Result<Option<(Validated, Vec<Seconds>)>, StudyError> {
    let figure = |kind| record.figures.iter().find(|f: &&Figure| f.kind == kind && f.ms.is_some());
    let (zero, saving) = (figure(Kind::BootZero), figure(Kind::Saving));
    let (Some(zero), Some(saving), Some(subject)) = (zero, saving, subject_of(record)) else {
        return Ok(None);
    };
    let (extra_ns, was) = extra_ns(&subject)?;
    let zero_ms = zero.ms.unwrap_or(0.0);
    let entry = judged(Validated {
        what: format!("{}, from the zeroing time", saving.what),
        group: Some("savings-anchored".into()),
        predicted_ms: Some(zero_ms - extra_ns / 1e6),
        anchor: Some(format!("its own one-thread zeroing, {zero_ms} ms")),
        ..described(record, "", saving.ms, &was)
    });
    let seconds = vec![
        part(record, "zeroing by the boot CPU", zero_ms / 1e3, "published, same record"),
        part(record, "zeroing by the nodes' threads", -extra_ns / 1e9, "class, modelled"),
    ];
    Ok(Some((entry, seconds)))
}

fn part(record: &Published, part: &str, seconds: f64, from: &str) -> Seconds {
    Seconds { id: record.id.clone(), part: part.into(), seconds, from: from.into() }
}

/// A saving from the times of one node before and after, and a zeroing rate: that of
/// another machine of the architecture, and, by construction, the record's own.
fn by_node_times(record: &Published, all: &[Published]) -> Option<Found> {
    let node = |marks: [&str; 2]| {
        let own = record.figures.iter().filter(|f| f.kind == Kind::DeferredNode);
        own.filter(|f| node_in_words(&f.what).is_some())
            .find(|f| unmarked(&f.what, marks).is_some())
            .and_then(|f| f.ms)
    };
    let (was_ms, is_ms) = (node(["base", "before"])?, node(["fix", "after"])?);
    let saving = printed(record).into_iter().find(|s| !s.per_tb)?;
    let boot = record
        .figures
        .iter()
        .find(|f| f.kind == Kind::Boot && unmarked(&f.what, ["base", "before"]).is_some())?;
    let pages = memory_pages(record)?;
    let nodes_ms = was_ms - is_ms;
    // The whole boot holds the zeroing and the slowest node, whatever the rate says.
    let most_ms = boot.ms? - was_ms;
    let mut out: Found = (Vec::new(), Vec::new());
    for (id, ns_per_page) in zeroing_rates(record, all) {
        let free_ms = pages * ns_per_page / 1e6;
        let zero_ms = free_ms.min(most_ms);
        let bounded = if free_ms > most_ms { ", bounded by the base boot" } else { "" };
        out.0.push(judged(Validated {
            id: record.id.clone(),
            what: format!("{}, zeroing as in {id}", saving.what),
            group: Some("savings-anchored".into()),
            published_ms: Some(saving.ms),
            predicted_ms: Some(zero_ms + nodes_ms),
            anchor: Some(format!("node times and base boot; {ns_per_page:.1} ns/page of {id}")),
            ..Validated::default()
        }));
        let from = format!("{ns_per_page:.1} ns/page of {id}{bounded}");
        out.1.push(part(record, "zeroing by the boot CPU", zero_ms / 1e3, &from));
    }
    let own_ms = saving.ms - nodes_ms;
    out.0.push(judged(Validated {
        id: record.id.clone(),
        what: format!("{}, zeroing as in this record", saving.what),
        published_ms: Some(saving.ms),
        predicted_ms: Some(own_ms + nodes_ms),
        anchor: Some("by construction: the rate is the saving itself".into()),
        by_construction: true,
        ..Validated::default()
    }));
    let from = format!("by construction: {:.1} ns/page", own_ms * 1e6 / pages);
    out.1.push(part(record, "zeroing by the boot CPU", own_ms / 1e3, &from));
    out.1.push(part(record, "faster node threads", nodes_ms / 1e3, "published, same record"));
    Some(out)
}

fn memory_pages(record: &Published) -> Option<f64> {
    let subject = subject_of(record)?;
    Some(subject.machine.memory_bytes() as f64 / subject.machine.page_bytes as f64)
}

/// What other records of the architecture say about zeroing on one CPU, in ns per page.
fn zeroing_rates(record: &Published, all: &[Published]) -> Vec<(String, f64)> {
    let like = |r: &&Published| r.id != record.id && r.machine.arch == record.machine.arch;
    let rate = |r: &Published| {
        let pages = memory_pages(r)?;
        let zero = r.figures.iter().find(|f| f.kind == Kind::BootZero).and_then(|f| f.ms);
        let serial = || printed(r).into_iter().find(|s| s.what.contains("not deferred"));
        let ms = zero.or_else(|| serial().map(|s| s.ms))?;
        Some((r.id.clone(), ms * 1e6 / pages))
    };
    all.iter().filter(like).filter_map(rate).collect()
}

/// The phase of the boot CPU's zeroing, for tests.
#[cfg(test)]
fn zero_ns(predicted: &Predicted) -> f64 {
    let zero = crate::plan::PhaseName::MemblockZero;
    let phase = predicted.run.phases.iter().find(|p| p.name == zero);
    phase.map_or(0.0, |p| p.end_ns - p.start_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::published::builtin;

    #[test]
    fn sides_are_told_by_words() {
        assert_eq!(
            unmarked("boot, base, deferred", ["before", "base"]).as_deref(),
            Some("boot deferred")
        );
        assert_eq!(
            unmarked("boot, fix (zeroing deferred too)", ["after", "fix"]).as_deref(),
            Some("boot")
        );
        assert_eq!(unmarked("boot", ["after", "fix"]), None);
    }

    #[test]
    fn a_sparc_of_32_tib_from_its_node_and_another_machines_rate() {
        let all = builtin().records;
        let record = all.iter().find(|r| r.id == "tatashin-zeroing-sparc32t").unwrap();
        let (entries, seconds) = by_node_times(record, &all).unwrap();
        let independent: Vec<f64> =
            entries.iter().filter(|e| !e.by_construction).filter_map(|e| e.error).collect();
        assert_eq!(independent.len(), 2);
        assert!(independent.iter().all(|e| *e < 1.0), "{independent:?}");
        assert!(entries.iter().any(|e| e.by_construction && e.error == Some(0.0)));
        assert!(seconds.iter().any(|s| s.from.contains("by construction")));
    }

    #[test]
    fn the_boot_cpu_zeroes_every_struct_page() {
        let all = builtin().records;
        let record = all.iter().find(|r| r.id == "tatashin-zeroing-x86").unwrap();
        let subject = subject_of(record).unwrap();
        let was = whole(&subject, (LAST_PREZERO, Strategy::Prezero)).unwrap();
        let line_ns = was.hardware.class.w_line_ns;
        assert!(zero_ns(&was) > 268_435_456.0 * line_ns, "most of it is remote");
    }
}
