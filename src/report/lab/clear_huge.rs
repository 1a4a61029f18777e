//! The tables of `lab clear-huge`.

use super::{aligned, distinct, mean_sd, median, number, origin, table};
use crate::record::lab::{Factor, LabPoint, LabRecord, Published};
use crate::units::{Bytes, gb_per_s, time};
use std::fmt::Write;

/// Everything between heading and findings.
pub(super) fn tables(record: &LabRecord) -> String {
    let mut out = five_rows(record);
    out.push_str(&pages(record));
    out.push_str(&gigantic(record));
    out.push_str(&touch(record));
    out
}

const DIRECTIONS: [&str; 3] = ["one-shot", "forward", "reverse"];

/// The discussion's table for this host, with the published ones beside.
fn five_rows(record: &LabRecord) -> String {
    let points: Vec<&LabPoint> = record.part("table").collect();
    let Some(first) = points.first() else { return String::new() };
    let mut out = format!(
        "\n{} cleared in chunks with {}, mean (σ), n = {}; beside it, published: linux-mm, April \
         2020 (arm64, x86-64;\nother machines, a buffer of unknown size: compare columns of \
         one machine, not machines)\n",
        Bytes(record.setting("buffer_bytes").unwrap_or(0)),
        first.name("store"),
        first.samples_ns.len(),
    );
    let mut header = vec!["chunk".to_owned()];
    for who in ["measured here", "published arm64", "published x86-64"] {
        header.extend(DIRECTIONS.map(|d| format!("{who}\n{d}")));
    }
    let mut rows = table(header);
    let mut chunks: Vec<u64> = points.iter().filter_map(|p| p.number("chunk_bytes")).collect();
    chunks.sort_unstable();
    chunks.dedup();
    for chunk in chunks {
        let mut row = vec![Bytes(chunk).to_string()];
        for direction in DIRECTIONS {
            let here = points
                .iter()
                .find(|p| p.has("chunk_bytes", chunk) && p.has("direction", direction));
            row.push(here.map_or_else(|| "-".into(), |p| mean_sd(p.mean_ns, p.sd_ns)));
        }
        for arch in ["arm64", "x86-64"] {
            row.extend(DIRECTIONS.map(|d| published_cell(record, arch, chunk, d)));
        }
        rows.add_row(row);
    }
    out.push_str(&aligned(rows, 1));
    out
}

fn published_cell(record: &LabRecord, arch: &str, chunk: u64, direction: &str) -> String {
    let is = |p: &Published, name: &str, value: Factor| p.factors.get(name) == Some(&value);
    let same = |p: &&Published| {
        is(p, "arch", arch.into())
            && is(p, "chunk_bytes", chunk.into())
            && is(p, "direction", direction.into())
    };
    let found = record.published.iter().find(same);
    found.map_or_else(|| "-".into(), |p| mean_sd(p.mean_ns, p.sd_ns))
}

/// One 2 MiB page: a row per store, the rates of the main ways, and the pair.
fn pages(record: &LabRecord) -> String {
    let points: Vec<&LabPoint> = record.part("page").collect();
    let mut out = String::new();
    for temperature in ["cold", "warm"] {
        let here: Vec<&LabPoint> =
            points.iter().copied().filter(|p| p.has("temperature", temperature)).collect();
        if here.is_empty() {
            continue;
        }
        let _ = write!(out, "\nOne 2 MiB page, {temperature}, measured: median, µs (GB/s)\n");
        out.push_str(&one_page(&here));
    }
    for figure in record.published.iter().filter(|p| p.part == "page") {
        let with = matches!(figure.factors.get("pair"), Some(Factor::Name(n)) if n == "with");
        let pair = if with { "with" } else { "without" };
        let spread = mean_sd(figure.mean_ns, figure.sd_ns);
        let _ = writeln!(out, "{}: {pair} the map/unmap pair {spread}", origin(figure));
    }
    out
}

/// The columns: how it is cleared, in which chunks, with or without the pair.
const COLUMNS: [(&str, &str, u64, &str); 6] = [
    ("one-shot", "one-shot", 2 << 20, "without"),
    ("4 KiB\nforward", "forward", 4 << 10, "without"),
    ("4 KiB\nreverse", "reverse", 4 << 10, "without"),
    ("4 KiB\nconverging", "converging", 4 << 10, "without"),
    ("4 KiB, pair\nforward", "forward", 4 << 10, "with"),
    ("64 KiB\nforward", "forward", 64 << 10, "without"),
];

fn one_page(points: &[&LabPoint]) -> String {
    let mut header = vec!["store".to_owned(), "kind".into()];
    header.extend(COLUMNS.map(|c| c.0.to_owned()));
    let mut rows = table(header);
    for store in distinct(points.iter().map(|p| p.name("store"))) {
        let of: Vec<&&LabPoint> = points.iter().filter(|p| p.has("store", store)).collect();
        let kind = of.first().map_or("", |p| p.name("kind"));
        let mut row = vec![store.to_owned(), kind.to_owned()];
        for (_, direction, chunk, pair) in COLUMNS {
            let found = of.iter().find(|p| {
                p.has("direction", direction) && p.has("chunk_bytes", chunk) && p.has("pair", pair)
            });
            row.push(found.map_or_else(|| "-".into(), |p| rate(p)));
        }
        rows.add_row(row);
    }
    aligned(rows, 2)
}

fn rate(point: &LabPoint) -> String {
    let bytes = point.number("bytes").unwrap_or(0);
    let gb = gb_per_s(bytes, point.median_ns);
    format!("{} ({})", number(point.median_ns / 1e3), number(gb))
}

fn gigantic(record: &LabRecord) -> String {
    let points: Vec<&LabPoint> = record.part("gigantic").collect();
    if points.is_empty() {
        return String::new();
    }
    let backing = match record.settings.get("gigantic_backing") {
        Some(Factor::Name(name)) if name == "hugetlb-1gib" => "1 GiB, cold\none page",
        _ => "1 GiB, cold\n2 MiB pages",
    };
    let mut rows = table(
        [backing, "chunk", "pair", "median [95 %]", "GB/s", "mean (σ)", "n"]
            .map(str::to_owned)
            .to_vec(),
    );
    for p in points {
        rows.add_row([
            p.name("store").to_owned(),
            match p.name("direction") {
                "one-shot" => "one-shot".into(),
                _ => Bytes(p.number("chunk_bytes").unwrap_or(0)).to_string(),
            },
            p.name("pair").into(),
            median(p),
            number(gb_per_s(p.number("bytes").unwrap_or(0), p.median_ns)),
            mean_sd(p.mean_ns, p.sd_ns),
            p.samples_ns.len().to_string(),
        ]);
    }
    format!("\n{}", aligned(rows, 3))
}

fn touch(record: &LabRecord) -> String {
    let points: Vec<&LabPoint> = record.part("touch").collect();
    if points.is_empty() {
        return String::new();
    }
    let bytes = Bytes(record.setting("touch_bytes").unwrap_or(0));
    let mut rows = table(vec![
        format!("{bytes} mapped and touched\nhuge pages"),
        "mean (σ)".into(),
        "median [95 %]".into(),
        "n".into(),
        "huge faults\nlast run".into(),
    ]);
    for p in points {
        let huge = p.counts.get("last_run_huge_faults").copied().unwrap_or(0);
        rows.add_row([
            p.name("huge_pages").to_owned(),
            mean_sd(p.mean_ns, p.sd_ns),
            median(p),
            p.samples_ns.len().to_string(),
            huge.to_string(),
        ]);
    }
    let mut out = format!("\n{}", aligned(rows, 1));
    for figure in record.published.iter().filter(|p| p.part == "touch") {
        let with = matches!(figure.factors.get("pair"), Some(Factor::Name(n)) if n == "with");
        let pair = if with { "with" } else { "without" };
        let sd = figure.sd_ns.map_or_else(String::new, |sd| format!(" ({})", time(sd)));
        let _ = writeln!(
            out,
            "{}: 100 MB, kernel clearing {pair} the map/unmap pair {}{sd}",
            origin(figure),
            time(figure.mean_ns)
        );
    }
    out
}
