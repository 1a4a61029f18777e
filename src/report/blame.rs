//! The phases of boots, the longest first, as `systemd-analyze blame` lists units.
//!
//! Phases follow each other and only the nodes within one run together, so that here the
//! times of a boot's phases do add up.

use super::phases::{Boot, Took, chosen};
use super::sheet::{Cell, Sheet};
use super::sheets::{digits, ns, words};
use super::source::Source;
use super::table::{heading, sheet};
use super::view::ViewError;
use crate::units::grouped;

/// All boots of all records, or those of some strategies.
///
/// # Errors
/// A strategy that no record has.
pub fn text(sources: &[Source], strategies: &[String]) -> Result<String, ViewError> {
    let parts = chosen(sources, strategies)?.into_iter().map(|(source, boots)| {
        let tables: Vec<String> = boots.iter().map(|boot| sheet(&table(boot))).collect();
        let tables =
            if tables.is_empty() { "No boot is in it.\n".into() } else { tables.join("\n") };
        format!("{}\n{tables}", heading(source))
    });
    Ok(parts.collect::<Vec<_>>().join("\n"))
}

fn table(boot: &Boot) -> Sheet {
    let columns = [
        ("phase", "phase"),
        ("by", "executor"),
        ("label", "label"),
        ("takes", "took_ns"),
        ("share", "share"),
        ("ns/page", "per_page_ns"),
        ("struct pages", "pages"),
        ("slowest node", "slowest_nid"),
    ];
    let mut out = Sheet::new(&title(boot), &columns, 3);
    let single = |p: &Took| if p.parts.is_empty() { vec![p.clone()] } else { p.parts.clone() };
    let mut phases: Vec<Took> = boot.phases.iter().flat_map(single).collect();
    let all_ns: f64 = phases.iter().map(|p| p.took_ns).sum();
    phases.sort_by(|a, b| b.took_ns.total_cmp(&a.took_ns));
    out.rows = phases.iter().map(|phase| row(boot, phase, all_ns)).collect();
    out.note = boot.note.map(str::to_owned);
    out
}

/// Strategy, store, machine and label of a boot.
pub(super) fn title(boot: &Boot) -> String {
    let store = boot.store.as_ref().map_or_else(String::new, |store| format!(" with {store}"));
    format!("{}{store} on {} ({})", boot.strategy, boot.machine, boot.label)
}

fn row(boot: &Boot, phase: &Took, all_ns: f64) -> Vec<Cell> {
    let share = if all_ns > 0.0 { phase.took_ns / all_ns } else { 0.0 };
    let slowest = phase.ends.first().map_or(Cell::Empty, |end| {
        let without = if end.is_cpuless { ", no CPU" } else { "" };
        Cell::number(f64::from(end.nid), format!("node {}{without}", end.nid))
    });
    vec![
        words(&*phase.phase),
        words(&*phase.executor),
        boot.label.into(),
        ns(phase.took_ns),
        Cell::number(share, format!("{:.1} %", share * 100.0)),
        digits(phase.took_ns / phase.pages.max(1) as f64),
        Cell::number(phase.pages as f64, grouped(phase.pages)),
        slowest,
    ]
}
