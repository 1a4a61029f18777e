//! The tables of a sweep; every point carries its own label, what follows the record's.

use super::{bytes, count, digits, maybe, ns, small, whole_ns, with_note, words, yes};
use crate::record::sweep::{
    BestChunk, Knee, MachineShape, MeasuredPoint, SkippedPoint, Sweep, SweepPoint,
};
use crate::report::sheet::{Cell, Sheet};

/// What tells points apart.
const KEYS: [(&str, &str); 4] =
    [("kernel", "kernel"), ("strategy", "strategy"), ("label", "label"), ("chunk", "chunk_bytes")];

pub(super) fn sheets(s: &Sweep) -> Vec<Sheet> {
    vec![points(s), knees(s), best_chunks(s), setup_zero(s), executed(s), skipped(s)]
}

/// The chunk; padata's own rule has no size.
fn key(s: &Sweep, kernel: &str, strategy: &str, chunk: Option<u64>) -> Vec<Cell> {
    vec![words(kernel), words(strategy), s.label.name().into(), maybe(chunk, bytes)]
}

fn shape(of: MachineShape) -> [Cell; 3] {
    [maybe(of.nodes, small), maybe(of.memory_bytes, bytes), maybe(of.page_bytes, bytes)]
}

/// The machine of a point and its threads, behind the keys.
const SHAPE: [(&str, &str); 4] = [
    ("nodes of the machine", "node_count"),
    ("memory", "memory_bytes"),
    ("page", "page_bytes"),
    ("threads", "threads"),
];

fn point_key(p: &SweepPoint, how: &str) -> Vec<Cell> {
    vec![
        words(&*p.kernel),
        words(&*p.strategy),
        how.into(),
        maybe(p.chunk_bytes, bytes),
        maybe(p.nodes, small),
        maybe(p.memory_bytes, bytes),
        maybe(p.page_bytes, bytes),
        small(p.threads),
    ]
}

/// Points that ran, with what ran of them.
fn ran(s: &Sweep) -> impl Iterator<Item = (&SweepPoint, &MeasuredPoint)> {
    s.points.iter().filter_map(|p| Some((p, p.measured.as_ref()?)))
}

fn executed(s: &Sweep) -> Sheet {
    let columns = [
        ("runs", "runs"),
        ("median", "median_ns"),
        ("low", "low_ns"),
        ("high", "high_ns"),
        ("executed pages", "executed_pages"),
        ("machine's pages", "machine_pages"),
        ("verified", "verified"),
    ];
    let columns = [&KEYS[..], &SHAPE, &columns].concat();
    let mut sheet = Sheet::new("Executed pages", &columns, 3);
    let row = |(p, m): (&SweepPoint, &MeasuredPoint)| {
        let figures = [
            count(m.samples_ns.len() as u64),
            ns(m.median_ns),
            ns(m.ci95_ns[0]),
            ns(m.ci95_ns[1]),
            count(m.executed_pages),
            count(m.machine_pages),
            yes(m.verified),
        ];
        [point_key(p, "measured"), figures.to_vec()].concat()
    };
    sheet.rows = ran(s).map(row).collect();
    with_note(sheet, "times of the pages that ran; low and high are the median's 95 % interval")
}

pub(super) fn samples(s: &Sweep) -> Sheet {
    let columns = [("run", "run"), ("time", "sample_ns"), ("pages", "executed_pages")];
    let mut sheet = Sheet::new("Samples", &[&KEYS[..], &SHAPE, &columns].concat(), 3);
    for (p, m) in ran(s) {
        for (run, &sample) in (1..).zip(&m.samples_ns) {
            let figures = [count(run), whole_ns(sample), count(m.executed_pages)];
            sheet.rows.push([point_key(p, "measured"), figures.to_vec()].concat());
        }
    }
    sheet
}

fn skipped(s: &Sweep) -> Sheet {
    let columns = [&[("why", "reason"), KEYS[0], KEYS[1], KEYS[3]], &SHAPE[..]].concat();
    let mut sheet = Sheet::new("Left out", &columns, 3);
    let row = |p: &SkippedPoint| {
        vec![
            words(&*p.reason),
            words(&*p.kernel),
            words(&*p.strategy),
            maybe(p.chunk_bytes, bytes),
            maybe(p.nodes, small),
            maybe(p.memory_bytes, bytes),
            maybe(p.page_bytes, bytes),
            small(p.threads),
        ]
    };
    sheet.rows = s.skipped.iter().map(row).collect();
    sheet
}

fn points(s: &Sweep) -> Sheet {
    let columns = [
        ("boot CPU", "boot_cpu_ns"),
        ("nodes", "nodes_ns"),
        ("total", "total_ns"),
        ("low", "low_ns"),
        ("high", "high_ns"),
        ("bound by", "bound_by"),
    ];
    let mut sheet = Sheet::new("Points", &[&KEYS[..], &SHAPE, &columns].concat(), 3);
    let row = |p: &SweepPoint| {
        let mut row = point_key(p, p.label.name());
        row.extend([
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
    let columns = [("nodes", "nodes_ns"), ("least", "least_ns")];
    let mut sheet = Sheet::new("Knees", &[&KEYS[..], &SHAPE, &columns].concat(), 3);
    let row = |k: &Knee| {
        let mut row = key(s, &k.kernel, &k.strategy, k.chunk_bytes);
        row.extend(shape(k.shape));
        row.extend([small(k.threads), whole_ns(k.nodes_ns), whole_ns(k.least_ns)]);
        row
    };
    sheet.rows = s.knees.iter().map(row).collect();
    with_note(sheet, "the fewest threads per node from which more add under 5 %")
}

fn best_chunks(s: &Sweep) -> Sheet {
    let columns = [("total", "total_ns")];
    let mut sheet = Sheet::new("Best chunks", &[&KEYS[..], &SHAPE, &columns].concat(), 3);
    let row = |b: &BestChunk| {
        let mut row = key(s, &b.kernel, &b.strategy, b.chunk_bytes);
        row.extend(shape(b.shape));
        row.extend([small(b.threads), whole_ns(b.total_ns)]);
        row
    };
    sheet.rows = s.best_chunks.iter().map(row).collect();
    sheet
}

fn setup_zero(s: &Sweep) -> Sheet {
    let columns = [("kernel", "kernel"), ("label", "label"), ("chunk", "chunk_bytes")];
    let figures = [("ratio", "ratio"), ("under 1.05 from", "negligible_from_threads")];
    let columns = [&columns[..], &SHAPE, &figures].concat();
    let mut sheet = Sheet::new("setup-zero against deferred", &columns, 2);
    for z in &s.setup_zero {
        let row = |&(threads, ratio): &(u32, f64)| {
            let first = [words(&*z.kernel), s.label.name().into(), maybe(z.chunk_bytes, bytes)];
            let from = maybe(z.negligible_from, small);
            let figures = [small(threads), digits(ratio), from];
            [first, shape(z.shape), figures].concat()
        };
        sheet.rows.extend(z.ratios.iter().map(row));
    }
    with_note(sheet, "the nodes' time of setup-zero divided by that of deferred")
}
