//! The tables of a sweep; every time carries the record's label.

use super::{bytes, digits, maybe, small, whole_ns, with_note, words};
use crate::record::sweep::{BestChunk, Knee, Sweep, SweepPoint};
use crate::report::compare::label;
use crate::report::sheet::{Cell, Sheet};

/// What tells points apart.
const KEYS: [(&str, &str); 4] =
    [("kernel", "kernel"), ("strategy", "strategy"), ("label", "label"), ("chunk", "chunk_bytes")];

pub(super) fn sheets(s: &Sweep) -> Vec<Sheet> {
    vec![points(s), knees(s), best_chunks(s), setup_zero(s)]
}

/// The chunk; padata's own rule has no size.
fn key(s: &Sweep, kernel: &str, strategy: &str, chunk: Option<u64>) -> Vec<Cell> {
    vec![words(kernel), words(strategy), label(s.label).into(), maybe(chunk, bytes)]
}

fn points(s: &Sweep) -> Sheet {
    let columns = [
        ("threads", "threads"),
        ("boot CPU", "boot_cpu_ns"),
        ("nodes", "nodes_ns"),
        ("total", "total_ns"),
        ("low", "low_ns"),
        ("high", "high_ns"),
        ("bound by", "bound_by"),
    ];
    let mut sheet = Sheet::new("Points", &[&KEYS[..], &columns].concat(), 3);
    let row = |p: &SweepPoint| {
        let mut row = key(s, &p.kernel, &p.strategy, p.chunk_bytes);
        row.extend([
            small(p.threads),
            whole_ns(p.boot_cpu_ns),
            whole_ns(p.nodes_ns),
            whole_ns(p.total_ns),
            whole_ns(p.range_ns[0]),
            whole_ns(p.range_ns[1]),
            words(&*p.bound_by),
        ]);
        row
    };
    sheet.rows = s.points.iter().map(row).collect();
    let about = format!("{} {}; class {}", s.machine, s.title, s.class);
    with_note(sheet, about + "; no chunk means padata's own rule")
}

fn knees(s: &Sweep) -> Sheet {
    let columns = [("threads", "threads"), ("nodes", "nodes_ns"), ("least", "least_ns")];
    let mut sheet = Sheet::new("Knees", &[&KEYS[..], &columns].concat(), 3);
    let row = |k: &Knee| {
        let mut row = key(s, &k.kernel, &k.strategy, k.chunk_bytes);
        row.extend([small(k.threads), whole_ns(k.nodes_ns), whole_ns(k.least_ns)]);
        row
    };
    sheet.rows = s.knees.iter().map(row).collect();
    with_note(sheet, "the fewest threads per node from which more add under 5 %")
}

fn best_chunks(s: &Sweep) -> Sheet {
    let columns = [("threads", "threads"), ("total", "total_ns")];
    let mut sheet = Sheet::new("Best chunks", &[&KEYS[..], &columns].concat(), 3);
    let row = |b: &BestChunk| {
        let mut row = key(s, &b.kernel, &b.strategy, b.chunk_bytes);
        row.extend([small(b.threads), whole_ns(b.total_ns)]);
        row
    };
    sheet.rows = s.best_chunks.iter().map(row).collect();
    sheet
}

fn setup_zero(s: &Sweep) -> Sheet {
    let columns = [
        ("kernel", "kernel"),
        ("label", "label"),
        ("chunk", "chunk_bytes"),
        ("threads", "threads"),
        ("ratio", "ratio"),
        ("under 1.05 from", "negligible_from_threads"),
    ];
    let mut sheet = Sheet::new("setup-zero against deferred", &columns, 2);
    for z in &s.setup_zero {
        let row = |&(threads, ratio): &(u32, f64)| {
            vec![
                words(&*z.kernel),
                label(s.label).into(),
                maybe(z.chunk_bytes, bytes),
                small(threads),
                digits(ratio),
                maybe(z.negligible_from, small),
            ]
        };
        sheet.rows.extend(z.ratios.iter().map(row));
    }
    with_note(sheet, "the nodes' time of setup-zero divided by that of deferred")
}
