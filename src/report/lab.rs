//! The experiments beside the boot, for people.
//!
//! [`text`] renders any [`LabRecord`]: a heading, the tables of the experiment, what
//! follows for this host, and the published figures beside, labelled as such. It adds
//! nothing that the record does not hold.

mod clear_huge;
mod mremap;
mod prefetch;
mod pte_scan;

use crate::record::lab::{LabPoint, LabRecord, Published};
use crate::units::{three_digits, time};
use comfy_table::{CellAlignment, Table};
use std::fmt::Write;

/// The whole report.
pub fn text(record: &LabRecord) -> String {
    let mut out = heading(record);
    if record.points.is_empty() {
        out.push_str("\nNothing was measured.\n");
        return out;
    }
    out.push_str(&match experiment(record) {
        "prefetch" => prefetch::tables(record),
        "clear-huge" => clear_huge::tables(record),
        "mremap" => mremap::tables(record),
        "pte-scan" => pte_scan::tables(record),
        _ => String::new(),
    });
    out.push_str(&findings(record));
    if record.points.iter().all(|point| point.verified) {
        out.push_str("memory was compared with what it should hold after every run\n");
    }
    if !record.head.complete {
        out.push_str("\nINCOMPLETE: the run was interrupted; fewer runs than asked for.\n");
    }
    out
}

/// The experiment's name, from the schema.
fn experiment(record: &LabRecord) -> &str {
    let name = record.head.schema.strip_prefix("pageinit/lab-").unwrap_or_default();
    name.split('/').next().unwrap_or_default()
}

fn heading(record: &LabRecord) -> String {
    let model = record.host.cpu_model.as_deref().unwrap_or("unknown processor");
    let kernel = record.host.kernel_release.as_deref().unwrap_or("of unknown version");
    format!(
        "lab {}: measured on {model}, {}, Linux {kernel}; {} runs interleaved, seed {}\n",
        experiment(record),
        record.host.arch,
        record.runs,
        record.seed,
    )
}

fn findings(record: &LabRecord) -> String {
    let mut out = String::new();
    if !record.findings.is_empty() {
        out.push_str("\nOn this host:\n");
    }
    for finding in &record.findings {
        let _ = write!(out, "  {}", finding.text);
        if let Some(value) = finding.value {
            let _ = write!(out, " [95 %: {:.2} to {:.2}]", value.ci95[0], value.ci95[1]);
        }
        out.push('\n');
    }
    out.push('\n');
    out
}

/// An empty table in the style of all tables.
fn table(header: Vec<String>) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::UTF8_BORDERS_ONLY);
    table.set_header(header);
    table
}

/// The table with all columns from `first` on right-aligned.
fn aligned(mut table: Table, first: usize) -> String {
    for column in table.column_iter_mut().skip(first) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!("{table}\n")
}

/// Median and interval of a whole sample.
fn median(point: &LabPoint) -> String {
    let [low, high] = point.ci95_ns;
    format!("{} [{}, {}]", time(point.median_ns), time(low), time(high))
}

/// Mean and deviation, as the discussions gave them.
fn mean_sd(mean_ns: f64, sd_ns: Option<f64>) -> String {
    sd_ns.map_or_else(|| time(mean_ns), |sd| format!("{} ({})", time(mean_ns), time(sd)))
}

/// Names in order of first appearance.
fn distinct<'n>(names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let mut out: Vec<&str> = Vec::new();
    for name in names {
        if !out.contains(&name) {
            out.push(name);
        }
    }
    out
}

/// Who published a figure, for a line of its own.
fn origin(published: &Published) -> String {
    format!("published: {} ({})", published.source, published.platform)
}

/// A bar for `value` where `largest` fills `width`.
fn bar(value: f64, largest: f64, width: usize) -> String {
    let share = if largest > 0.0 { (value / largest).clamp(0.0, 1.0) } else { 0.0 };
    "█".repeat((share * width as f64).round() as usize)
}

/// A number per unit, three digits.
fn number(value: f64) -> String {
    three_digits(value)
}

#[cfg(test)]
#[path = "lab/tests.rs"]
mod tests;
