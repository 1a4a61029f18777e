//! Holding the model against published figures.
//!
//! [`validate`] predicts every figure of a set, or says why not ([`Reason`]), and
//! draws statistics per group; [`boot_logs`] does the same with boot logs. [`entries`]
//! predicts single figures, [`devices`] those of device memory, [`later`] those of memory
//! that is added and of gigantic pages, [`gathered`] what several
//! figures say together, [`savings`] what changes saved of a boot, and [`leave_out`] fits
//! the constants of thread scaling anew without one machine. [`sift`] goes before them all
//! and takes out what cannot be so; [`kernels`] reads versions in authors' words.

pub mod boot_logs;
mod devices;
mod entries;
mod gathered;
mod later;
mod leave_out;
mod savings;
mod sift;

pub use entries::usual_strategy;

use super::StudyError;
use super::published::{Figures, Published};
use crate::model::constants::{self, Group, Mark};
use crate::record::Head;
use crate::record::validate::{
    ConstantFacts, GroupStats, RangeStats, VALIDATE_SCHEMA, Validated, Validation,
};
use crate::stats;
use crate::warning::Warning;

/// Why a figure has no prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    WholeBoot,
    NotStructPages,
    PagesUnknown,
    FirstBind,
    FewSteps,
    MemoryUnknown,
    NodesUnknown,
    KernelUnknown,
    NotMerged,
    Void,
    NoTime,
    Expectation,
    Phase,
    NoBoot,
    NoTimes,
    MachineIncomplete,
    CpusUnknown,
    KernelRange,
    NotUnderstood,
    Impossible,
    ArchUnknown,
    Rate,
    Reserved,
    Hotplug,
    Huge,
    ChangeUnknown,
}

impl Reason {
    const fn text(self) -> &'static str {
        match self {
            Self::WholeBoot => "whole-boot: holds firmware, drivers and user space",
            Self::NotStructPages => "not-struct-pages: times something else",
            Self::PagesUnknown => "pages-unknown: how many struct pages it covers is not stated",
            Self::FirstBind => "first-bind: maps the memmap and touches it first, shares unknown",
            Self::FewSteps => "a-few-steps: a tick more or less is chance",
            Self::MemoryUnknown => "memory-unknown: neither pages nor memory are stated",
            Self::NodesUnknown => "nodes-unknown: how many share the work is not stated",
            Self::KernelUnknown => "kernel-unknown: no version in the author's words",
            Self::NotMerged => "not-merged: no kernel has this code",
            Self::Void => "void: the author or a defect of that kernel makes it so",
            Self::NoTime => "no-time: prose without a number",
            Self::Expectation => "expectation: the author's own estimate",
            Self::Phase => "no-such-phase: that kernel has no such phase on this machine",
            Self::NoBoot => "no-boot: no line of a kernel's boot was found",
            Self::NoTimes => "no-times: the log does not tell how long nodes took",
            Self::MachineIncomplete => "machine-incomplete: memory or page size are not in the log",
            Self::CpusUnknown => "no-cpus: this kernel takes as many threads as a node has CPUs",
            Self::KernelRange => "kernel-not-modelled: no rules for that version",
            Self::NotUnderstood => "not-understood: a field of it cannot be read",
            Self::Impossible => "impossible: no such machine, node, thread, time or page count",
            Self::ArchUnknown => "arch-not-modelled: no rules for that architecture",
            Self::Rate => "a-rate: a bandwidth, not a time",
            Self::Reserved => "reserved-pages: marking them is not timed apart here",
            Self::Hotplug => "hotplug: memory is added after boot, and how much is not stated",
            Self::Huge => "huge-pages: how many of which size are gathered is not stated",
            Self::ChangeUnknown => "change-unknown: the rules of that change are not known here",
        }
    }
}

/// The groups with what they hold.
const GROUPS: [(&str, &str); 18] = [
    ("threads-anchored", "thread counts, anchored on one thread, median of a machine's posts"),
    ("threads-anchored-posts", "thread counts, anchored on one thread, each post by itself"),
    ("threads-left-out", "the same medians, constants fitted without the machine"),
    ("one-thread-blind", "one thread, by class alone, known processors, one per record"),
    ("one-thread-unknown", "one thread, processor unknown, one per record"),
    ("many-nodes", "slowest and mean of many nodes, by class alone"),
    ("kernel-ladder", "ratios between kernel changes"),
    ("savings-anchored", "savings, anchored on parts of the same or a like machine"),
    ("boot-cpu-blind", "the boot CPU's phases and whole savings, by class alone"),
    ("device-memory", "struct pages of device memory, by class alone"),
    ("device-ratios", "ratios between ways to write them"),
    ("added-memory", "memory hotplug, by class alone"),
    ("gigantic-pages", "gathering gigantic pages, by class alone"),
    ("boot-logs", "nodes of boot logs, by class alone, known processors"),
    ("boot-logs-unknown", "nodes of boot logs, processor unknown"),
    ("boot-logs-serial", "zones of boot logs without deferral, from stamps"),
    ("boot-logs-device", "device memory of boot logs"),
    ("boot-logs-anchored", "boot logs, anchored on the first node of each boot"),
];

/// Predicts every record. One that cannot be so is left out, and spoils no other.
///
/// # Errors
/// None at present: what has no layout is left out with a reason.
pub fn validate(
    name: &str,
    figures: &Figures,
    argv: Vec<String>,
) -> Result<Validation, StudyError> {
    let mut out = empty(name, figures, argv);
    let (records, odd): (Vec<Published>, Vec<_>) = figures.records.iter().map(sift::sift).unzip();
    for (record, odd) in records.iter().zip(odd) {
        out.records.extend(odd);
        match of_record(record, &records) {
            Ok((entries, seconds)) => {
                out.records.extend(entries);
                out.seconds.extend(seconds);
            }
            Err(_) => out.records.extend(
                record
                    .figures
                    .iter()
                    .map(|figure| left_out(record, &figure.what, figure.ms, Reason::Impossible)),
            ),
        }
    }
    out.records.extend(gathered::many_nodes(&out.records));
    out.records.extend(gathered::one_thread(&out.records));
    let machines = gathered::swept_machines(&records);
    out.records.extend(gathered::medians_of_posts(&machines)?);
    let (entries, left_out) = leave_out::all(&machines)?;
    out.records.extend(entries);
    out.left_out_machines = left_out;
    out.groups = GROUPS.iter().filter_map(|(g, title)| group(g, title, &out.records)).collect();
    out.ranges =
        ["anchored", "blind", "devices"].iter().filter_map(|n| range(n, &out.records)).collect();
    Ok(out)
}

/// Everything that one record says by itself.
fn of_record(record: &Published, all: &[Published]) -> Result<savings::Found, StudyError> {
    let mut entries = entries::of(record, all)?;
    entries.extend(gathered::ladder(record)?);
    entries.extend(devices::ratios(record)?);
    let (of_savings, seconds) = savings::of(record, all)?;
    entries.extend(of_savings);
    Ok((entries, seconds))
}

/// A validation without any record yet.
pub fn empty(name: &str, figures: &Figures, argv: Vec<String>) -> Validation {
    let all = constants::ALL.iter().map(|c| ConstantFacts {
        name: c.name.into(),
        value: c.value,
        unit: c.unit.into(),
        mark: c.mark.name().into(),
        origin: c.origin.into(),
    });
    let fitted = constants::ALL.iter().filter(|c| c.mark == Mark::Fit).count();
    let mut warnings = Vec::new();
    if figures.unknown_fields > 0 {
        let text = format!("{} fields of {name} are not known here", figures.unknown_fields);
        warnings.push(Warning::new("unknown-fields", text, "they are ignored"));
    }
    if let Some(problem) = &figures.problem {
        let effect = "what cannot be read is left out; the rest is predicted";
        warnings.push(Warning::new("not-understood", problem.to_string(), effect));
    }
    Validation {
        head: Head::new(VALIDATE_SCHEMA, &argv).with_warnings(warnings),
        figures: name.into(),
        unknown_fields: figures.unknown_fields,
        fitted_thread_constants: constants::fitted(Group::Threads) as u64,
        fitted_constants: fitted as u64,
        constants: all.collect(),
        records: Vec::new(),
        groups: Vec::new(),
        ranges: Vec::new(),
        left_out_machines: Vec::new(),
        seconds: Vec::new(),
    }
}

/// An entry that says why there is no prediction.
fn left_out(record: &Published, what: &str, ms: Option<f64>, reason: Reason) -> Validated {
    Validated {
        id: record.id.clone(),
        what: what.into(),
        published_ms: ms,
        left_out: Some(reason.text().into()),
        ..Validated::default()
    }
}

/// Fills in the error, and whether a published time lies in its range.
fn judged(mut entry: Validated) -> Validated {
    if let (Some(published), Some(predicted)) = (entry.published_ms, entry.predicted_ms) {
        entry.error = (published > 0.0).then(|| predicted / published - 1.0);
        entry.in_range = entry.range_ms.map(|[low, high]| low <= published && published <= high);
    }
    entry
}

fn group(name: &str, title: &str, records: &[Validated]) -> Option<GroupStats> {
    let own = records.iter().filter(|r| r.group.as_deref() == Some(name) && !r.by_construction);
    let signed: Vec<f64> = own.filter_map(|r| r.error).collect();
    if signed.is_empty() {
        return None;
    }
    let errors: Vec<f64> = signed.iter().map(|e| e.abs()).collect();
    let near = signed.iter().filter(|e| (1.0 / 1.4..=1.4).contains(&(1.0 + **e))).count();
    Some(GroupStats {
        name: name.into(),
        title: title.into(),
        n: errors.len() as u64,
        median: stats::median(&errors),
        p90: percentile(&errors, 0.9),
        worst: errors.iter().copied().fold(0.0, f64::max),
        within_factor_1_4: near as f64 / signed.len() as f64,
    })
}

/// Anchored figures are single posts; blind ones every figure of a boot by class, and
/// devices those of device memory.
fn range(name: &str, records: &[Validated]) -> Option<RangeStats> {
    let apart = ["device-memory", "added-memory", "gigantic-pages"];
    let is_apart = |r: &Validated| r.group.as_deref().is_some_and(|g| apart.contains(&g));
    let is_device = |r: &Validated| r.group.as_deref() == Some("device-memory");
    let posts = |r: &&Validated| r.group.as_deref() == Some("threads-anchored-posts");
    let own = records.iter().filter(|r| match name {
        "anchored" => posts(r),
        "boot-logs" => r.group.as_deref().is_some_and(|g| g.starts_with("boot-logs")),
        "devices" => is_device(r),
        _ => !r.by_construction && r.anchor.as_deref() == Some("class") && !is_apart(r),
    });
    let judged: Vec<(bool, f64)> = own
        .filter_map(|r| {
            let [low, high] = r.range_ms?;
            Some((r.in_range?, high / low.max(f64::MIN_POSITIVE)))
        })
        .collect();
    let inside = judged.iter().filter(|(inside, _)| *inside).count();
    let widths: Vec<f64> = judged.iter().map(|(_, width)| *width).collect();
    (!judged.is_empty()).then(|| RangeStats {
        name: name.into(),
        n: judged.len() as u64,
        covered: inside as f64 / judged.len() as f64,
        median_width: stats::median(&widths),
    })
}

/// A percentile with linear interpolation; 0 for no samples.
fn percentile(samples: &[f64], share: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let at = share * last as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    low + (high - low) * at.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_lie_between_samples() {
        assert_eq!(
            percentile(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0], 0.9),
            10.0
        );
        assert!((percentile(&[0.0, 10.0], 0.9) - 9.0).abs() < 1e-12);
        assert_eq!(percentile(&[], 0.9), 0.0);
    }

    #[test]
    fn errors_are_relative_to_what_was_published() {
        let entry = Validated {
            published_ms: Some(200.0),
            predicted_ms: Some(150.0),
            range_ms: Some([120.0, 190.0]),
            ..Validated::default()
        };
        let entry = judged(entry);
        assert_eq!((entry.error, entry.in_range), (Some(-0.25), Some(false)));
    }
}
