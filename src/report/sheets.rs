//! The numbers of any record as tables: [`sheets`] and [`samples`].
//!
//! One submodule per kind of record. Text tables, CSV, Markdown and HTML all render
//! these, so that every form shows the same numbers. Every sheet with figures says in a
//! column or in its title whether they are measured, scaled or modelled.

mod calibration;
mod compare;
mod estimate;
mod lab;
mod sweep;
mod validate;

use super::sheet::{Cell, Sheet};
use crate::record::HostFacts;
use crate::record::any::AnyRecord;
use crate::units::{Bytes, grouped, three_digits, time};

/// Every table of a record, the one that matters most first; single samples are in
/// [`samples`] alone.
pub fn sheets(record: &AnyRecord) -> Vec<Sheet> {
    let all = match record {
        AnyRecord::Compare(record) => compare::sheets(record),
        AnyRecord::Estimate(record) => estimate::sheets(record),
        AnyRecord::Sweep(record) => {
            sweep::sheets(record).into_iter().chain(record.host.as_ref().map(host)).collect()
        }
        AnyRecord::Validate(record) => validate::sheets(record),
        AnyRecord::Calibration(record) => calibration::sheets(record),
        AnyRecord::Lab(record) => lab::sheets(record),
    };
    all.into_iter().filter(|sheet| !sheet.rows.is_empty()).collect()
}

/// Every single run of a measured record; `None` where there are none.
pub fn samples(record: &AnyRecord) -> Option<Sheet> {
    let sheet = match record {
        AnyRecord::Compare(record) => compare::samples(record),
        AnyRecord::Lab(record) => lab::samples(record),
        AnyRecord::Calibration(record) => calibration::samples(record),
        AnyRecord::Sweep(record) => sweep::samples(record),
        _ => return None,
    };
    (!sheet.rows.is_empty()).then_some(sheet)
}

fn with_note(mut sheet: Sheet, note: impl Into<String>) -> Sheet {
    sheet.note = Some(note.into());
    sheet
}

/// Words; nothing where they are empty.
pub(super) fn words(text: impl Into<String>) -> Cell {
    let text = text.into();
    if text.is_empty() { Cell::Empty } else { Cell::Text(text) }
}

fn maybe<T>(value: Option<T>, cell: impl Fn(T) -> Cell) -> Cell {
    value.map_or(Cell::Empty, cell)
}

pub(super) fn ns(value: f64) -> Cell {
    Cell::number(value, time(value))
}

fn whole_ns(value: u64) -> Cell {
    ns(value as f64)
}

/// A ratio, a rate, or anything else with about three digits.
pub(super) fn digits(value: f64) -> Cell {
    Cell::number(value, three_digits(value))
}

fn count(value: u64) -> Cell {
    Cell::number(value as f64, grouped(value))
}

pub(super) fn small(value: u32) -> Cell {
    Cell::number(f64::from(value), value.to_string())
}

pub(super) fn bytes(value: u64) -> Cell {
    Cell::number(value as f64, Bytes(value).to_string())
}

/// 0.125 is 12.5 %; the raw value stays the share.
fn share(value: f64) -> Cell {
    Cell::number(value, format!("{:.1} %", value * 100.0))
}

fn yes(value: bool) -> Cell {
    Cell::from(if value { "yes" } else { "no" })
}

fn list(numbers: &[u32]) -> Cell {
    let texts: Vec<String> = ranges(numbers);
    words(texts.join(","))
}

/// `0-3`, `8`: runs of neighbours joined.
pub(super) fn ranges(numbers: &[u32]) -> Vec<String> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &n in numbers {
        match runs.last_mut() {
            Some((_, end)) if end.checked_add(1) == Some(n) => *end = n,
            _ => runs.push((n, n)),
        }
    }
    let text = |(a, b): (u32, u32)| if a == b { a.to_string() } else { format!("{a}-{b}") };
    runs.into_iter().map(text).collect()
}

/// A sheet of facts: a name that ends with its unit, and its value.
fn facts(title: &str, rows: Vec<(&str, Cell)>) -> Sheet {
    let mut sheet = Sheet::new(title, &[("fact", "fact"), ("value", "value")], 2);
    let known = rows.into_iter().filter(|(_, cell)| *cell != Cell::Empty);
    sheet.rows = known.map(|(name, cell)| vec![Cell::from(name), cell]).collect();
    sheet
}

fn host(host: &HostFacts) -> Sheet {
    let text = |value: &Option<String>| maybe(value.clone(), words);
    facts(
        "Host",
        vec![
            ("cpu_model", text(&host.cpu_model)),
            ("arch", words(&*host.arch)),
            ("kernel_release", text(&host.kernel_release)),
            ("allowed_cpus", list(&host.allowed_cpus)),
            ("memory_bytes", maybe(host.memory_bytes, bytes)),
            ("available_bytes", maybe(host.available_bytes, bytes)),
            ("cgroup_limit_bytes", maybe(host.cgroup_limit_bytes, bytes)),
            ("last_level_cache_bytes", maybe(host.last_level_cache_bytes, bytes)),
            ("clock", words(&*host.clock)),
            ("clock_resolution_ns", whole_ns(host.clock_resolution_ns)),
            ("clock_overhead_ns", whole_ns(host.clock_overhead_ns)),
            ("stores", words(host.stores.join(" "))),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_joined() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), ["0-2", "5", "7-8"]);
        assert_eq!(list(&[]), Cell::Empty);
        assert_eq!(list(&[u32::MAX, 0]).shown(), "4294967295,0");
    }

    #[test]
    fn unknown_facts_are_left_out() {
        let sheet = facts("x", vec![("a", Cell::Empty), ("b_bytes", bytes(4096))]);
        assert_eq!(sheet.rows.len(), 1);
        assert_eq!(sheet.rows[0][1], Cell::number(4096.0, "4 KiB"));
    }
}
