//! What `diff` shows to people: the verdict, the rows, and what else differs.

use super::sheet::{Cell, Sheet};
use super::sheets::{ns, words};
use super::table::sheet;
use crate::record::diff::{Diff, DiffRow, Verdict};
use crate::record::lab::{Factor, Factors};
use std::fmt::Write;

/// Names of key columns in the order in which they are shown; others follow.
const ORDER: [&str; 14] = [
    "part",
    "pass",
    "temperature",
    "strategy",
    "store",
    "kernel",
    "phase",
    "nid",
    "threads",
    "chunk_bytes",
    "nodes",
    "memory_bytes",
    "page_bytes",
    "free",
];

/// The whole report; `all` shows rows without a certain difference too.
pub fn text(diff: &Diff, all: bool) -> String {
    let mut out =
        format!("A: {}\nB: {}\n{}\n{}: {}\n", diff.a, diff.b, sentence(diff), diff.kind, diff.rule);
    let shown = |row: &&DiffRow| all || row.decides || row.verdict != Verdict::Inconclusive;
    let rows: Vec<&DiffRow> = diff.rows.iter().filter(shown).collect();
    let _ = writeln!(out, "\n{}", sheet(&table(diff, &rows)).trim_end());
    let left_out = diff.rows.len() - rows.len();
    if left_out > 0 {
        let _ = writeln!(out, "{left_out} more rows without a certain difference: --all");
    }
    for (name, keys) in [("A", &diff.only_in_a), ("B", &diff.only_in_b)] {
        if !keys.is_empty() {
            let _ = writeln!(out, "\nOnly in {name}: {} rows", keys.len());
            keys.iter().take(20).for_each(|key| out.push_str(&format!("  {}\n", key_line(key))));
            if keys.len() > 20 {
                let _ = writeln!(out, "  … and {} more: --json", keys.len() - 20);
            }
        }
    }
    out.push_str(&differences(diff));
    out
}

fn percent(share: f64) -> String {
    let text = format!("{:.2}", share * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

fn sentence(diff: &Diff) -> String {
    let mut deciding = diff.rows.iter().filter(|row| row.decides).peekable();
    let same = deciding.peek().is_some() && deciding.all(|row| row.within_threshold);
    let by_median = !same && (diff.kind == "calibrate" || diff.kind.starts_with("lab"));
    let percent = percent(diff.threshold);
    match diff.verdict {
        Verdict::Faster => format!("B is faster than A by more than {percent}."),
        Verdict::Slower => format!("B is slower than A by more than {percent}."),
        // A median ratio has no interval: it is not beyond the threshold, so within.
        Verdict::Inconclusive if by_median => {
            format!("On the whole there is no difference above {percent}; single rows may differ.")
        }
        Verdict::Inconclusive if same => format!("There is no difference above {percent}."),
        Verdict::Inconclusive => {
            format!("Inconclusive: a difference above {percent} is neither certain nor excluded.")
        }
    }
}

fn table(diff: &Diff, rows: &[&DiffRow]) -> Sheet {
    let mut names: Vec<&str> =
        rows.iter().flat_map(|row| row.key.keys().map(String::as_str)).collect();
    let place = |name: &str| ORDER.iter().position(|known| *known == name).unwrap_or(ORDER.len());
    names.sort_by(|a, b| place(a).cmp(&place(b)).then(a.cmp(b)));
    names.dedup();
    let how = diff.label.name();
    let figures = [
        ("verdict".to_owned(), "verdict"),
        (format!("A, {how}"), "a_ns"),
        (format!("B, {how}"), "b_ns"),
        ("B ÷ A".into(), "ratio"),
        ("95 %".into(), "ci95"),
    ];
    let columns = names.iter().map(|name| (*name, *name));
    let columns: Vec<(&str, &str)> =
        columns.chain(figures.iter().map(|(title, name)| (title.as_str(), *name))).collect();
    let mut sheet = Sheet::new("Rows", &columns, names.len() + 1);
    sheet.rows = rows.iter().map(|row| cells(row, &names, diff.threshold)).collect();
    let mut units: Vec<&str> = rows.iter().map(|row| row.per.as_str()).collect();
    units.sort_unstable();
    units.dedup();
    sheet.note = Some(match units[..] {
        ["whole"] => "times of the whole".into(),
        _ => format!("times per {}", units.join(", ")),
    });
    sheet
}

fn cells(row: &DiffRow, names: &[&str], threshold: f64) -> Vec<Cell> {
    let key = |name: &&str| row.key.get(*name).map_or(Cell::Empty, |value| words(factor(value)));
    let verdict = match row.verdict {
        Verdict::Inconclusive if row.within_threshold => {
            format!("no difference above {}", percent(threshold))
        }
        verdict => verdict.name().into(),
    };
    let ratio = |value: f64| Cell::number(value, format!("{value:.3}"));
    let interval = |[low, high]: [f64; 2]| words(format!("[{low:.3}, {high:.3}]"));
    let figures = [
        words(verdict),
        ns(row.a_ns),
        ns(row.b_ns),
        row.ratio.map_or(Cell::Empty, ratio),
        row.ci95.map_or(Cell::Empty, interval),
    ];
    names.iter().map(key).chain(figures).collect()
}

fn factor(value: &Factor) -> String {
    match value {
        Factor::Number(number) => number.to_string(),
        Factor::Name(text) => text.clone(),
    }
}

fn key_line(key: &Factors) -> String {
    let mut parts: Vec<(usize, String)> = Vec::new();
    for (name, value) in key {
        let place = ORDER.iter().position(|known| known == name).unwrap_or(ORDER.len());
        parts.push((place, format!("{name} {}", factor(value))));
    }
    parts.sort();
    parts.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(", ")
}

fn differences(diff: &Diff) -> String {
    if diff.differences.is_empty() {
        return "\nHosts, machines, kernel rules, options and program are the same.\n".into();
    }
    let mut out = "\nWhat else differs:\n".to_owned();
    for d in &diff.differences {
        let of = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".into());
        let _ = writeln!(out, "  {}: A {}, B {}", d.what, of(&d.a), of(&d.b));
    }
    out
}
