//! Boot logs as published records: each time that a kernel printed, predicted blind.
//!
//! [`add`] goes through every boot of every log. Each gives rows with a prediction by
//! the processor's class, or one row with the reason why there is none. Rows of a few
//! timer ticks are shown and count in no statistic.

use super::{GROUPS, Reason, StudyError, group, range};
use crate::kernel::cmdline::CommandLine;
use crate::kernel::version::VersionError;
use crate::kernel::{KernelModel, KernelVersion};
use crate::machine::Machine;
use crate::machine::bootlog::{Boot, BootLog, Caveat};
use crate::machine::input::Request;
use crate::pfn::Nid;
use crate::record::estimate::Logged;
use crate::record::validate::{Validated, Validation};
use crate::study::estimate::{Question, Ran, logged};

/// Adds the rows of `logs`, with their statistics. With `anchor_first` the first node that
/// a boot times is taken as known, and the others are predicted from it.
///
/// # Errors
/// When a machine of a log has no layout.
pub fn add(
    out: &mut Validation,
    logs: &[(String, BootLog)],
    anchor_first: bool,
) -> Result<(), StudyError> {
    let mut rows = Vec::new();
    for (name, log) in logs {
        let short = short(name, logs);
        if log.boots.is_empty() {
            rows.push(reason(short, "the whole file", Reason::NoBoot));
        }
        for (boot, number) in log.boots.iter().zip(1u32..) {
            let id = match log.boots.len() {
                1 => short.to_owned(),
                _ => format!("{short}, boot {number}"),
            };
            rows.extend(of_boot(&id, name, boot, anchor_first)?);
        }
    }
    let own = GROUPS.iter().filter(|(name, _)| name.starts_with("boot-logs"));
    out.groups.extend(own.filter_map(|(name, title)| group(name, title, &rows)));
    out.ranges.extend(range("boot-logs", &rows));
    out.records.extend(rows);
    Ok(())
}

/// A log's file name, or its whole path where another one has the same name.
fn short<'n>(name: &'n str, logs: &[(String, BootLog)]) -> &'n str {
    let file = |path: &'n str| path.rsplit('/').next().unwrap_or(path);
    let same = logs.iter().filter(|(n, _)| n.rsplit('/').next() == Some(file(name))).count();
    if same > 1 { name } else { file(name) }
}

/// Why a boot on QEMU's translator has no prediction.
const EMULATED: &str = "emulated: software imitates the processor, times are of no real one";

fn reason(id: &str, what: &str, reason: Reason) -> Validated {
    left_out(id, what, reason.text())
}

fn left_out(id: &str, what: &str, reason: &str) -> Validated {
    Validated {
        id: id.into(),
        what: what.into(),
        left_out: Some(reason.into()),
        ..Validated::default()
    }
}

/// The rows of one boot, at least one.
fn of_boot(
    id: &str,
    name: &str,
    boot: &Boot,
    anchor_first: bool,
) -> Result<Vec<Validated>, StudyError> {
    let out = |why| Ok(vec![reason(id, &boot.summary(), why)]);
    let printed = !boot.init.is_empty() || !boot.device_init.is_empty();
    if !printed && boot.serial_times().is_empty() {
        return out(Reason::NoTimes);
    }
    let Ok(machine) = Request::default().of_boot(name, boot) else {
        return out(Reason::MachineIncomplete);
    };
    if machine.is_emulated() {
        return Ok(vec![left_out(id, &boot.summary(), EMULATED)]);
    }
    let Some(release) = boot.kernel() else { return out(Reason::KernelUnknown) };
    let kernel = match KernelModel::from_release(&release.value, machine.arch) {
        Ok(kernel) => kernel,
        Err(VersionError::Range(_)) => return out(Reason::KernelRange),
        Err(_) => return out(Reason::KernelUnknown),
    };
    if machine.cpus.is_empty() && kernel.threads_by_cpus && !boot.init.is_empty() {
        return out(Reason::CpusUnknown);
    }
    let blind = ran(&machine, kernel.clone(), boot, None)?;
    let lines = logged::of(boot, &blind);
    let first = lines.iter().filter(|_| anchor_first).find_map(anchor);
    let rows: Vec<Validated> = match first {
        None => rows(id, &lines, &blind),
        Some((nid, scale)) => {
            let ran = ran(&machine, kernel, boot, Some(vec![(nid, scale)]))?;
            let mut rows = rows(id, &logged::of(boot, &ran), &ran);
            rows.iter_mut().filter(|r| r.left_out.is_none()).for_each(|r| anchored(r, nid));
            rows
        }
    };
    if rows.is_empty() { out(Reason::NoTimes) } else { Ok(rows) }
}

fn rows(id: &str, lines: &[Logged], ran: &Ran) -> Vec<Validated> {
    lines.iter().filter(|l| l.logged_ms.is_some()).map(|l| row(id, l, ran)).collect()
}

/// The node of a line and the factor that makes the prediction agree with it.
fn anchor(line: &Logged) -> Option<(Nid, f64)> {
    let usable = line.what == "deferred-init" && line.error.is_some();
    let factor = line.logged_ms? / line.predicted_ms?;
    (usable && factor.is_finite() && factor > 0.0).then_some((Nid(line.nid?), factor))
}

/// Says that a row rests on the node, or is the node's own.
fn anchored(row: &mut Validated, nid: Nid) {
    let is_anchor = row.what.starts_with(&format!("node {nid} "));
    row.by_construction = is_anchor;
    row.anchor = Some(format!("node {nid} of the same boot"));
    row.group = row.group.take().filter(|_| !is_anchor).map(|_| "boot-logs-anchored".into());
}

/// The boot by its own command line. A kernel that prints no line of a deferred phase
/// had none.
fn ran(
    machine: &Machine,
    kernel: KernelModel,
    boot: &Boot,
    scales: Option<Vec<(Nid, f64)>>,
) -> Result<Ran, StudyError> {
    let mut kernel = kernel;
    if boot.init.is_empty() && kernel.version < KernelVersion::new(5, 12) {
        let mut config = kernel.config.clone();
        config.deferred_struct_page_init = false;
        kernel = kernel.with_config(config);
    }
    let line = boot.cmdline.as_ref().and_then(|c| CommandLine::of_log(&c.value).ok());
    let log = Some(Box::new(boot.clone()));
    let question = Question { free: true, line, log, ..Question::default() };
    Ran::new(machine, &kernel, &question, scales)
}

fn row(id: &str, l: &Logged, ran: &Ran) -> Validated {
    let class = ran.case.hardware.class;
    let few = l.caveats.iter().any(|code| code == Caveat::FewTicks.code());
    let group = match l.what.as_str() {
        "zone-device" => "boot-logs-device",
        "zone-init" => "boot-logs-serial",
        _ if class.is_known() => "boot-logs",
        _ => "boot-logs-unknown",
    };
    let node = l.nid.map(|nid| format!("node {nid} ")).unwrap_or_default();
    let remarks = if few { " (a few ticks)" } else { "" };
    Validated {
        id: id.into(),
        what: format!("{node}{}, line {}{remarks}", l.what, l.line),
        group: (l.left_out.is_none() && !few).then(|| group.into()),
        threads: l.workers,
        published_ms: l.logged_ms,
        predicted_ms: l.predicted_ms.filter(|_| l.left_out.is_none()),
        error: l.error,
        range_ms: l.range_ms.filter(|_| l.left_out.is_none()),
        in_range: l.in_range.filter(|_| l.left_out.is_none()),
        anchor: Some("class".into()),
        class: Some(class.name.clone()),
        class_mark: Some(class.mark().name().into()),
        by_construction: false,
        left_out: l.left_out.clone(),
    }
}
