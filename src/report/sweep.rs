//! What `sweep` shows: a table for people, and comma-separated values.
//!
//! Columns say how their figures came about: measured, scaled or modelled. Pure.

use crate::record::sweep::{MachineShape, SkippedPoint, Sweep, SweepPoint};
use crate::units::{Bytes, time};
use comfy_table::{CellAlignment, Table, presets};
use std::fmt::Write;

/// Longer tables are left to `--json` and `--csv`.
const MOST_ROWS: usize = 400;

/// Reasons that are shown; `--json` has all.
const MOST_REASONS: usize = 20;

/// The table, the knees and what follows from them.
pub fn text(s: &Sweep) -> String {
    let mut out = format!(
        "{} {}\nclass {}, {} points ({})\n",
        s.machine,
        s.title,
        s.class,
        s.points.len(),
        s.label.name()
    );
    if !s.head.complete {
        let _ = writeln!(out, "INCOMPLETE: ended early; --resume goes on where it was saved");
    }
    if s.points.len() > MOST_ROWS {
        let _ = writeln!(out, "too many for a table: use --csv or --json for the points");
    } else if s.points.is_empty() {
        let _ = writeln!(out, "no combination has a figure");
    } else {
        let _ = writeln!(out, "{}", points(s));
    }
    out.push_str(&knees(s));
    out.push_str(&best_chunks(s));
    out.push_str(&setup_zero(s));
    out.push_str(&skipped(&s.skipped));
    out
}

fn chunk(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "padata's".into(), |b| Bytes(b).to_string())
}

fn size(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "-".into(), |b| Bytes(b).to_string())
}

fn count(nodes: u32) -> String {
    format!("{nodes} node{}", if nodes == 1 { "" } else { "s" })
}

/// Which parts of the machine differ between points.
#[derive(Clone, Copy)]
struct Varied {
    nodes: bool,
    memory: bool,
    pages: bool,
}

impl Varied {
    fn of(s: &Sweep) -> Self {
        let first = s.points.first().map(SweepPoint::shape).unwrap_or_default();
        let any = |differs: fn(&MachineShape, &MachineShape) -> bool| {
            s.points.iter().any(|p| differs(&p.shape(), &first))
        };
        Self {
            nodes: any(|a, b| a.nodes != b.nodes),
            memory: any(|a, b| a.memory_bytes != b.memory_bytes),
            pages: any(|a, b| a.page_bytes != b.page_bytes),
        }
    }

    /// What tells a machine from the others, with a comma behind.
    fn words(self, shape: MachineShape) -> String {
        let nodes = shape.nodes.filter(|_| self.nodes).map(|n| format!("{}, ", count(n)));
        let memory = shape.memory_bytes.filter(|_| self.memory).map(|b| format!("{}, ", Bytes(b)));
        let pages =
            shape.page_bytes.filter(|_| self.pages).map(|b| format!("pages of {}, ", Bytes(b)));
        [nodes, memory, pages].into_iter().flatten().collect()
    }
}

fn points(s: &Sweep) -> Table {
    let varied = Varied::of(s);
    let is_measured = s.points.iter().any(|p| p.measured.is_some());
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    let mut header: Vec<String> = ["kernel", "strategy"].map(String::from).into();
    header.extend(varied.nodes.then(|| "nodes".into()));
    header.extend(varied.memory.then(|| "memory".into()));
    header.extend(varied.pages.then(|| "pages".into()));
    header.extend(["chunk".into(), "threads".into()]);
    header.extend(is_measured.then(|| "runs' median\nmeasured".into()));
    let label = label_of(s);
    let sums = ["boot CPU", "all nodes", "total", "range"];
    header.extend(sums.map(|sum| format!("{sum}\n{label}")));
    header.push(if is_measured { "verified".into() } else { "bound by\nmodelled".into() });
    let columns = header.len();
    table.set_header(header);
    for p in &s.points {
        table.add_row(row(p, varied, is_measured));
    }
    for column in table.column_iter_mut().take(columns - 2).skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// How the sums came about; all of them the same way, or else each says so itself.
fn label_of(s: &Sweep) -> &'static str {
    let first = s.points.first().map_or(s.label, |p| p.label);
    match s.points.iter().all(|p| p.label == first) {
        true => first.name(),
        false => "measured or scaled",
    }
}

fn row(p: &SweepPoint, varied: Varied, is_measured: bool) -> Vec<String> {
    let mut cells = vec![p.kernel.clone(), p.strategy.clone()];
    let nodes = || p.nodes.map_or_else(|| "-".into(), |n| n.to_string());
    cells.extend(varied.nodes.then(nodes));
    cells.extend(varied.memory.then(|| size(p.memory_bytes)));
    cells.extend(varied.pages.then(|| size(p.page_bytes)));
    cells.extend([chunk(p.chunk_bytes), p.threads.to_string()]);
    let median = || p.measured.as_ref().map_or_else(|| "-".into(), |m| time(m.median_ns));
    cells.extend(is_measured.then(median));
    cells.extend([p.boot_cpu_ns, p.nodes_ns, p.total_ns].map(|ns| time(ns as f64)));
    let [low, high] = p.range_ns.map(|ns| time(ns as f64));
    cells.push(format!("{low} to {high}"));
    cells.push(match (&p.measured, is_measured) {
        (Some(m), _) => if m.verified { "yes" } else { "no" }.into(),
        (None, true) => "-".into(),
        (None, false) => p.bound_by.clone(),
    });
    cells
}

fn knees(s: &Sweep) -> String {
    let varied = Varied::of(s);
    let mut out = String::new();
    for k in &s.knees {
        let _ = writeln!(
            out,
            "knee of {} under {}, {}chunks {}: {} threads per node ({}); more add under 5 % \
             where the work settles alike, the least is {}",
            k.strategy,
            k.kernel,
            varied.words(k.shape),
            chunk(k.chunk_bytes),
            k.threads,
            time(k.nodes_ns as f64),
            time(k.least_ns as f64),
        );
    }
    out
}

fn best_chunks(s: &Sweep) -> String {
    let varied = Varied::of(s);
    let mut out = String::new();
    for b in &s.best_chunks {
        let _ = writeln!(
            out,
            "best chunk of {} under {}: {}{} with {} threads ({})",
            b.strategy,
            b.kernel,
            varied.words(b.shape),
            chunk(b.chunk_bytes),
            b.threads,
            time(b.total_ns as f64),
        );
    }
    out
}

fn setup_zero(s: &Sweep) -> String {
    let varied = Varied::of(s);
    let mut out = String::new();
    for z in &s.setup_zero {
        let ratios: Vec<String> = z.ratios.iter().map(|(t, r)| format!("{t}: {r:.2}")).collect();
        let from = match z.negligible_from {
            Some(threads) => format!("under 1.05 from {threads} threads on"),
            None => "never under 1.05 for good".into(),
        };
        let _ = writeln!(
            out,
            "setup-zero ÷ deferred, nodes' time by threads, {}, {}chunks {}: {}; {from}",
            z.kernel,
            varied.words(z.shape),
            chunk(z.chunk_bytes),
            ratios.join(", "),
        );
    }
    out
}

/// What has no figure, and why.
fn skipped(skipped: &[SkippedPoint]) -> String {
    let mut out = String::new();
    for point in skipped.iter().take(MOST_REASONS) {
        let nodes = point.nodes.map(|n| format!(", {}", count(n)));
        let memory = point.memory_bytes.map(|b| format!(", {}", Bytes(b)));
        let pages = point.page_bytes.map(|b| format!(", pages of {}", Bytes(b)));
        let shape: String = [nodes, memory, pages].into_iter().flatten().collect();
        let _ = writeln!(
            out,
            "no figure for {} under {}{shape}, chunks {}, {} threads: {}",
            point.strategy,
            point.kernel,
            chunk(point.chunk_bytes),
            point.threads,
            point.reason,
        );
    }
    let more = skipped.len().saturating_sub(MOST_REASONS);
    if more > 0 {
        let _ = writeln!(out, "{more} more have no figure: --json lists them");
    }
    out
}

/// One line per point, under a line of names. No field holds a comma or a quote; what is
/// not known is empty.
pub fn csv(s: &Sweep) -> String {
    let mut out = String::from(
        "kernel,strategy,threads,chunk_bytes,boot_cpu_ns,nodes_ns,total_ns,low_ns,high_ns,bound_by,\
         nodes,memory_bytes,page_bytes,median_ns,ci95_low_ns,ci95_high_ns,runs,verified,label\n",
    );
    let number = |n: Option<u64>| n.map_or_else(String::new, |n| n.to_string());
    for p in &s.points {
        let _ = write!(
            out,
            "{},{},{},{},{},{},{},{},{},{}",
            p.kernel,
            p.strategy,
            p.threads,
            number(p.chunk_bytes),
            p.boot_cpu_ns,
            p.nodes_ns,
            p.total_ns,
            p.range_ns[0],
            p.range_ns[1],
            p.bound_by,
        );
        let (nodes, memory, pages) =
            (number(p.nodes.map(u64::from)), number(p.memory_bytes), number(p.page_bytes));
        let _ = write!(out, ",{nodes},{memory},{pages}");
        let _ = match &p.measured {
            None => writeln!(out, ",,,,,,{}", p.label.name()),
            Some(m) => writeln!(
                out,
                ",{},{},{},{},{},{}",
                m.median_ns,
                m.ci95_ns[0],
                m.ci95_ns[1],
                m.samples_ns.len(),
                m.verified,
                p.label.name()
            ),
        };
    }
    out
}
