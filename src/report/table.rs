//! Records as text for people.
//!
//! [`text`] puts where each record comes from above what its own verb shows; several
//! records of one kind have a table across them first. [`sheet`] is any table as text.

use super::grid::grid;
use super::sheet::Sheet;
use super::source::Source;
use super::{compare, estimate, lab, sheets, summary, sweep, validate};
use crate::record::any::AnyRecord;
use comfy_table::CellAlignment;
use std::fmt::Write;

/// All records.
pub fn text(sources: &[Source]) -> String {
    let mut out = String::new();
    for across in summary::sheets(sources) {
        let _ = writeln!(out, "{}", sheet(&across));
    }
    for (at, source) in sources.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        out.push_str(&heading(source));
        out.push('\n');
        out.push_str(&body(&source.record));
    }
    out
}

/// Where a record comes from, and its warnings.
pub(super) fn heading(source: &Source) -> String {
    let facts = source.facts();
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for (name, text) in facts {
        let _ = writeln!(out, "{name:width$}  {text}");
    }
    for warning in &source.record.head().warnings {
        let _ = writeln!(out, "warning: {warning}");
    }
    out
}

/// What the record's own verb shows.
fn body(record: &AnyRecord) -> String {
    match record {
        AnyRecord::Compare(record) => compare::text(record),
        AnyRecord::Estimate(record) => estimate::text(record),
        AnyRecord::Sweep(record) => sweep::text(record),
        AnyRecord::Validate(record) => validate::text(record),
        AnyRecord::Lab(record) => lab::text(record),
        AnyRecord::Calibration(_) => {
            let tables = sheets::sheets(record);
            tables.iter().map(sheet).collect::<Vec<_>>().join("\n")
        }
    }
}

/// A table under its title.
pub(super) fn sheet(sheet: &Sheet) -> String {
    let titles: Vec<&str> = sheet.columns.iter().map(|c| c.title.as_str()).collect();
    let mut table = grid(titles, usize::MAX);
    for (at, _) in sheet.columns.iter().enumerate().filter(|(_, c)| c.is_number) {
        if let Some(column) = table.column_mut(at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for row in &sheet.rows {
        let shown = |cell: &super::sheet::Cell| match cell.shown() {
            "" => "-".to_owned(),
            text => text.to_owned(),
        };
        table.add_row(row.iter().map(shown));
    }
    let note = sheet.note.as_ref().map_or_else(String::new, |note| format!(": {note}"));
    format!("{}{note}\n{table}\n", sheet.title)
}
