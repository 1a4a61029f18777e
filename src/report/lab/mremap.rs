//! The table of `lab mremap`.

use super::{aligned, median, number, origin, table};
use crate::record::lab::{Factor, LabPoint, LabRecord};
use crate::units::{Bytes, grouped, time};
use std::fmt::Write;

/// Everything between heading and findings.
pub(super) fn tables(record: &LabRecord) -> String {
    let header =
        ["size", "aligned for", "memory", "used", "pte", "pmd", "pud", "median [95 %]", "ns/entry"];
    let mut rows = table(header.map(str::to_owned).to_vec());
    for point in &record.points {
        rows.add_row(row(point));
    }
    let mut out = format!(
        "\nmremap, measured; entries moved, by level; `used` is what the time says\n{}",
        aligned(rows, 4)
    );
    for figure in &record.published {
        let used = match figure.factors.get("used") {
            Some(Factor::Name(name)) => name.as_str(),
            _ => "",
        };
        let _ = writeln!(out, "{}: by {used} entries {}", origin(figure), time(figure.mean_ns));
    }
    out
}

fn row(point: &LabPoint) -> Vec<String> {
    let count =
        |level: &str| grouped(point.counts.get(&format!("{level}_entries")).copied().unwrap_or(0));
    let touched = point.has("memory", "base pages");
    vec![
        Bytes(point.number("size_bytes").unwrap_or(0)).to_string(),
        point.name("aligned_for").into(),
        point.name("memory").into(),
        if touched { point.name("used").into() } else { "-".into() },
        count("pte"),
        count("pmd"),
        count("pud"),
        median(point),
        if touched { number(point.each_ns()) } else { "-".into() },
    ]
}
