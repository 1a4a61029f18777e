//! The tables and the picture of `lab prefetch`.

use super::{aligned, bar, distinct, number, origin, table};
use crate::record::lab::{CacheFacts, Derived, Factor, LabPoint, LabRecord};
use crate::units::{Bytes, grouped};
use std::fmt::Write;

/// Everything between heading and findings.
pub(super) fn tables(record: &LabRecord) -> String {
    let pages = record.points.first().map_or(0, |point| point.count);
    let mut out = format!(
        "{} of struct pages ({}), every line cold before every run\n",
        Bytes(record.setting("buffer_bytes").unwrap_or(0)),
        grouped(pages),
    );
    let mut threads: Vec<u64> = record.points.iter().filter_map(|p| p.number("threads")).collect();
    threads.sort_unstable();
    threads.dedup();
    for threads in threads {
        out.push_str(&of_threads(record, threads));
    }
    let kernel = match record.settings.get("kernel_store") {
        Some(Factor::Name(name)) => name.as_str(),
        _ => "",
    };
    for store in distinct([kernel, "unrolled"].into_iter()) {
        out.push_str(&picture(record, store));
    }
    out.push_str(&published(record));
    out
}

/// One row per preparation, one column per distance.
fn of_threads(record: &LabRecord, threads: u64) -> String {
    let points: Vec<&LabPoint> =
        record.points.iter().filter(|p| p.has("threads", threads)).collect();
    let distances = distinct(points.iter().map(|p| p.name("distance")).filter(|d| !d.is_empty()));
    let plural = if threads == 1 { "" } else { "s" };
    let mut out = format!(
        "\n{threads} thread{plural}, ns per struct page, measured: preparing and filling, of \
         which filling (the share of\nthe cold field writes that the preparation paid for); \
         columns: how far it runs ahead\n"
    );
    let mut header = vec!["before the fields".to_owned(), "kind".into()];
    header.extend(distances.iter().map(|d| (*d).to_owned()));
    header.push("free pass after".into());
    let mut rows = table(header);
    for prepare in distinct(points.iter().map(|p| p.name("prepare"))) {
        let of: Vec<&&LabPoint> = points
            .iter()
            .filter(|p| p.has("prepare", prepare) && p.has("then", "fields"))
            .collect();
        let first_free = of.iter().find(|p| derived(record, p, "free_ns").is_some());
        let kind = of.first().map_or("", |p| p.name("kind"));
        let mut row = vec![prepare.to_owned(), kind.to_owned()];
        for (at, distance) in distances.iter().enumerate() {
            let here = of.iter().find(|p| p.has("distance", *distance));
            let alone = (at == 0).then(|| of.first()).flatten();
            row.push(here.or(alone).map_or_else(|| "-".into(), |p| cell(record, p)));
        }
        row.push(first_free.map_or_else(|| "-".into(), |p| free(record, p)));
        rows.add_row(row);
    }
    out.push_str(&aligned(rows, 2));
    out
}

fn derived<'r>(record: &'r LabRecord, point: &LabPoint, what: &str) -> Option<&'r Derived> {
    let same = |d: &&Derived| {
        d.what == what && d.factors.iter().all(|(k, v)| point.factors.get(k) == Some(v))
    };
    record.derived.iter().find(same)
}

fn cell(record: &LabRecord, point: &LabPoint) -> String {
    let sum = number(point.each_ns());
    let second = derived(record, point, "second_touch_ns").map(|d| number(d.value.median));
    let paid = derived(record, point, "paid_share").map(|d| d.value.median * 100.0);
    match (second, paid) {
        (Some(second), Some(paid)) => format!("{sum}, {second} ({paid:.0} %)"),
        _ => sum,
    }
}

fn free(record: &LabRecord, point: &LabPoint) -> String {
    derived(record, point, "free_ns").map_or_else(|| "-".into(), |d| number(d.value.median))
}

/// What the field writes cost after zeroing ahead, with the caches where they end.
fn picture(record: &LabRecord, store: &str) -> String {
    let of =
        |p: &&LabPoint| p.has("prepare", store) && p.has("threads", 1) && p.has("then", "fields");
    let rows: Vec<(u64, &str, f64)> = record
        .points
        .iter()
        .filter(of)
        .filter_map(|p| {
            let second = derived(record, p, "second_touch_ns")?.value.median;
            Some((p.number("distance_bytes")?, p.name("distance"), second.max(0.0)))
        })
        .collect();
    let Some((_, _, name)) = rows.first().map(|r| (r.0, r.1, r.2)) else { return String::new() };
    let largest = rows.iter().map(|row| row.2).fold(name, f64::max);
    let mut out = format!(
        "\nField writes after zeroing with {store}, ns per struct page, by how far it runs ahead\n"
    );
    let mut caches: Vec<&CacheFacts> = record.caches.iter().collect();
    caches.sort_by_key(|cache| cache.bytes);
    for (bytes, name, ns) in rows {
        while caches.first().is_some_and(|cache| cache.bytes < bytes) {
            let cache = caches.remove(0);
            let _ = writeln!(out, "  ---- L{} cache, {} ----", cache.level, Bytes(cache.bytes));
        }
        let _ = writeln!(out, "  {name:>12} {:>6} {}", number(ns), bar(ns, largest, 50));
    }
    out
}

fn published(record: &LabRecord) -> String {
    let mut out = String::new();
    for (at, figure) in record.published.iter().enumerate() {
        if at == 0 {
            let _ = writeln!(out, "\n{}:", origin(figure));
        }
        let zeroed = match figure.factors.get("zeroed") {
            Some(Factor::Name(name)) => name.as_str(),
            _ => "",
        };
        let _ = writeln!(
            out,
            "  {} ns per struct page where it is zeroed {zeroed}",
            number(figure.mean_ns)
        );
    }
    out
}
