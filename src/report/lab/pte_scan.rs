//! The tables of `lab pte-scan`.

use super::{aligned, distinct, median, number, origin, table};
use crate::record::lab::{Derived, Factor, LabPoint, LabRecord};
use crate::units::{Bytes, grouped, time};
use std::fmt::Write;

/// Everything between heading and findings.
pub(super) fn tables(record: &LabRecord) -> String {
    let mut out = faults(record);
    out.push_str(&sweeps(record));
    out.push_str(&live(record));
    out
}

/// One row per pattern, one column per highest order.
fn faults(record: &LabRecord) -> String {
    let points: Vec<&LabPoint> = record.part("fault").collect();
    if points.is_empty() {
        return String::new();
    }
    let mut orders: Vec<u64> = points.iter().filter_map(|p| p.number("highest_order")).collect();
    orders.sort_unstable();
    orders.dedup();
    let mut header = vec!["entries set before".to_owned()];
    header.extend(orders.iter().map(|order| format!("orders 2-{order}")));
    let mut rows = table(header);
    for pattern in distinct(points.iter().map(|p| p.name("pattern"))) {
        let mut row = vec![pattern.to_owned()];
        for &order in &orders {
            let of = |algorithm: &str| {
                points.iter().find(|p| {
                    p.has("pattern", pattern)
                        && p.has("highest_order", order)
                        && p.has("algorithm", algorithm)
                })
            };
            row.push(match (of("every-range"), of("first-set")) {
                (Some(a), Some(b)) => format!("{} / {}", number(a.each_ns()), number(b.each_ns())),
                _ => "-".into(),
            });
        }
        rows.add_row(row);
    }
    format!(
        "\nOne fault on an array in memory, measured: ns, scanning every range / remembering the \
         first set entry\n{}",
        aligned(rows, 1)
    )
}

fn sweeps(record: &LabRecord) -> String {
    let points: Vec<&LabPoint> =
        record.part("sweep").filter(|p| p.has("algorithm", "every-range")).collect();
    if points.is_empty() {
        return String::new();
    }
    let header = [
        "entries set before",
        "orders",
        "faults",
        "entries read\nevery range",
        "entries read\nfirst set",
        "time\nevery range",
        "time\nfirst set",
        "first set ÷ every range\n[95 %]",
    ];
    let mut rows = table(header.map(str::to_owned).to_vec());
    for every in points {
        let pattern = every.name("pattern");
        let order = every.number("highest_order").unwrap_or(0);
        let first = record.part("sweep").find(|p| {
            p.has("pattern", pattern)
                && p.has("highest_order", order)
                && p.has("algorithm", "first-set")
        });
        let reads = |p: &LabPoint| grouped(p.counts.get("pte_reads").copied().unwrap_or(0));
        let ratio = record.derived.iter().find(|d: &&Derived| {
            d.what == "sweep_ratio" && d.has("pattern", pattern) && d.has("highest_order", order)
        });
        rows.add_row([
            pattern.to_owned(),
            format!("2-{order}"),
            grouped(every.counts.get("faults").copied().unwrap_or(0)),
            reads(every),
            first.map_or_else(|| "-".into(), reads),
            time(every.median_ns),
            first.map_or_else(|| "-".into(), |p| time(p.median_ns)),
            ratio.map_or_else(|| "-".into(), ratio_cell),
        ]);
    }
    let bytes = Bytes(record.setting("size_bytes").unwrap_or(0));
    format!("\n{bytes} touched page by page, tables in memory, measured\n{}", aligned(rows, 1))
}

fn ratio_cell(ratio: &Derived) -> String {
    let [low, high] = ratio.value.ci95;
    format!("{:.2} [{low:.2}, {high:.2}]", ratio.value.median)
}

fn live(record: &LabRecord) -> String {
    let points: Vec<&LabPoint> = record.part("live").collect();
    let mut out = String::new();
    if !points.is_empty() {
        let bytes = Bytes(record.setting("live_bytes").unwrap_or(0));
        let header = [
            "orders below 2 MiB".to_owned(),
            format!("{bytes}, median [95 %]"),
            "ns/page".into(),
            "n".into(),
        ];
        let mut rows = table(header.to_vec());
        for p in &points {
            rows.add_row([
                p.name("orders").to_owned(),
                median(p),
                number(p.each_ns()),
                p.samples_ns.len().to_string(),
            ]);
        }
        let _ = write!(
            out,
            "\nThis kernel's own faults, measured: the last page of every 32 KiB was there \
             before\n{}",
            aligned(rows, 1)
        );
    }
    for figure in &record.published {
        let algorithm = match figure.factors.get("algorithm") {
            Some(Factor::Name(name)) => name.as_str(),
            _ => "",
        };
        let _ = writeln!(out, "{}: {algorithm} {}", origin(figure), time(figure.mean_ns));
    }
    out
}
