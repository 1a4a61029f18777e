//! What `sweep` shows: a table for people, and comma-separated values.

use crate::record::sweep::{Sweep, SweepPoint};
use crate::units::{Bytes, time};
use comfy_table::{CellAlignment, Table, presets};
use std::fmt::Write;

/// Longer tables are left to `--json` and `--csv`.
const MOST_ROWS: usize = 400;

/// The table, the knees and what follows from them.
pub fn text(s: &Sweep) -> String {
    let mut out = format!(
        "{} {}\nclass {}, {} points (modelled)\n",
        s.machine,
        s.title,
        s.class,
        s.points.len()
    );
    if s.points.len() > MOST_ROWS {
        let _ = writeln!(out, "too many for a table: use --csv or --json for the points");
    } else {
        let _ = writeln!(out, "{}", points(&s.points));
    }
    out.push_str(&knees(s));
    out.push_str(&best_chunks(s));
    out.push_str(&setup_zero(s));
    out
}

fn chunk(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "padata's".into(), |b| Bytes(b).to_string())
}

fn points(points: &[SweepPoint]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    let header = [
        "kernel", "strategy", "chunk", "threads", "boot CPU", "nodes", "total", "range", "bound by",
    ];
    table.set_header(header);
    for p in points {
        table.add_row([
            p.kernel.clone(),
            p.strategy.clone(),
            chunk(p.chunk_bytes),
            p.threads.to_string(),
            time(p.boot_cpu_ns as f64),
            time(p.nodes_ns as f64),
            time(p.total_ns as f64),
            format!("{} to {}", time(p.range_ns[0] as f64), time(p.range_ns[1] as f64)),
            p.bound_by.clone(),
        ]);
    }
    for column in table.column_iter_mut().skip(3).take(4) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn knees(s: &Sweep) -> String {
    let mut out = String::new();
    for k in &s.knees {
        let _ = writeln!(
            out,
            "knee of {} under {}, chunks {}: {} threads per node ({}); more add under 5 %, the \
             least is {}",
            k.strategy,
            k.kernel,
            chunk(k.chunk_bytes),
            k.threads,
            time(k.nodes_ns as f64),
            time(k.least_ns as f64),
        );
    }
    out
}

fn best_chunks(s: &Sweep) -> String {
    let mut out = String::new();
    for b in &s.best_chunks {
        let _ = writeln!(
            out,
            "best chunk of {} under {}: {} with {} threads ({})",
            b.strategy,
            b.kernel,
            chunk(b.chunk_bytes),
            b.threads,
            time(b.total_ns as f64),
        );
    }
    out
}

fn setup_zero(s: &Sweep) -> String {
    let mut out = String::new();
    for z in &s.setup_zero {
        let ratios: Vec<String> = z.ratios.iter().map(|(t, r)| format!("{t}: {r:.2}")).collect();
        let from = match z.negligible_from {
            Some(threads) => format!("under 1.05 from {threads} threads on"),
            None => "never under 1.05 for good".into(),
        };
        let _ = writeln!(
            out,
            "setup-zero ÷ deferred, nodes' time by threads, {}, chunks {}: {}; {from}",
            z.kernel,
            chunk(z.chunk_bytes),
            ratios.join(", "),
        );
    }
    out
}

/// One line per point, under a line of names. No field holds a comma or a quote.
pub fn csv(s: &Sweep) -> String {
    let mut out = String::from(
        "kernel,strategy,threads,chunk_bytes,boot_cpu_ns,nodes_ns,total_ns,low_ns,high_ns,bound_by,\
         label\n",
    );
    for p in &s.points {
        let chunk = p.chunk_bytes.map_or_else(String::new, |b| b.to_string());
        let _ = writeln!(
            out,
            "{},{},{},{chunk},{},{},{},{},{},{},modelled",
            p.kernel,
            p.strategy,
            p.threads,
            p.boot_cpu_ns,
            p.nodes_ns,
            p.total_ns,
            p.range_ns[0],
            p.range_ns[1],
            p.bound_by,
        );
    }
    out
}
