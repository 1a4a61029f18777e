//! The tables that `validate` shows to people.

use super::grid::grid;
use crate::record::validate::{Validated, Validation};
use comfy_table::Table;
use std::fmt::Write;

/// The whole report: every record, then groups, ranges, constants.
pub fn text(v: &Validation) -> String {
    let what = if v.figures.starts_with("boot logs") { "" } else { "published figures: " };
    let mut out = format!("Modelled against {what}{}\n\n", v.figures);
    let _ = writeln!(out, "{}", records(&v.records));
    out.push_str(&left_out(&v.records));
    out.push_str(&groups(v));
    out.push_str(&leave_one_out(v));
    out.push_str(&seconds(v));
    let _ = writeln!(
        out,
        "\n{} constants of thread scaling are FIT on published figures ({} of all {}); classes \
         marked FIT have seen published init times.",
        v.fitted_thread_constants,
        v.fitted_constants,
        v.constants.len()
    );
    out
}

fn records(records: &[Validated]) -> Table {
    let header =
        ["record", "what", "threads", "anchored on", "published", "predicted", "error", "in range"];
    let mut table = grid(header, 4);
    for r in records.iter().filter(|r| r.left_out.is_none()) {
        let number = |n: Option<f64>| n.map_or_else(|| "-".into(), |n| show(n, r));
        let anchor = match (r.anchor.as_deref(), &r.class, &r.class_mark) {
            (Some("class"), Some(class), Some(mark)) => format!("class {class} ({mark})"),
            (Some(anchor), _, _) => anchor.into(),
            _ => "-".into(),
        };
        table.add_row([
            r.id.clone(),
            r.what.clone(),
            r.threads.map_or_else(|| "-".into(), |t| t.to_string()),
            anchor,
            number(r.published_ms),
            number(r.predicted_ms),
            match (r.by_construction, r.error) {
                (true, _) => "by construction".into(),
                (_, Some(e)) => format!("{:+.1} %", e * 100.0),
                _ => "-".into(),
            },
            r.in_range.map_or("-", |inside| if inside { "yes" } else { "no" }).into(),
        ]);
    }
    table
}

/// Ratios have no unit, times are in ms.
fn show(number: f64, record: &Validated) -> String {
    match record.anchor.as_deref() {
        Some("ratio") => format!("{number:.3}"),
        _ if number < 100.0 => format!("{number:.1} ms"),
        _ => format!("{number:.0} ms"),
    }
}

/// Reasons with the records that they hold for.
fn left_out(records: &[Validated]) -> String {
    let mut reasons: Vec<(&str, usize, Vec<&str>)> = Vec::new();
    for r in records {
        let Some(reason) = r.left_out.as_deref() else { continue };
        let at = reasons.iter().position(|(known, _, _)| *known == reason);
        let at = at.unwrap_or_else(|| {
            reasons.push((reason, 0, Vec::new()));
            reasons.len() - 1
        });
        if let Some((_, count, ids)) = reasons.get_mut(at) {
            *count += 1;
            if !ids.contains(&r.id.as_str()) {
                ids.push(&r.id);
            }
        }
    }
    let mut out = String::new();
    if !reasons.is_empty() {
        out.push_str("Left out:\n");
    }
    for (reason, count, ids) in reasons {
        let _ = writeln!(out, "  {count} figures, {reason}\n      {}", ids.join(", "));
    }
    out
}

fn groups(v: &Validation) -> String {
    let header = ["group", "what", "n", "median", "90 %", "worst", "within ×1.4"];
    let mut table = grid(header, 2);
    for g in &v.groups {
        table.add_row([
            g.name.clone(),
            g.title.clone(),
            g.n.to_string(),
            percent(g.median),
            percent(g.p90),
            percent(g.worst),
            format!("{:.0} %", g.within_factor_1_4 * 100.0),
        ]);
    }
    let mut out = format!("\nAbsolute errors:\n{table}\n");
    for r in &v.ranges {
        let _ = writeln!(
            out,
            "ranges, {}: {:.0} % of {} figures lie in theirs; median high ÷ low {:.2}",
            r.name,
            r.covered * 100.0,
            r.n,
            r.median_width
        );
    }
    out
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn leave_one_out(v: &Validation) -> String {
    let mut out = String::new();
    if !v.left_out_machines.is_empty() {
        out.push_str("\nOne machine left out, constants fitted on the others:\n");
    }
    for m in &v.left_out_machines {
        let _ = writeln!(
            out,
            "  without {}: efficiency {:.2}, settling {:.2} ms per hardware thread, guest factor \
             {:.2}; its errors: median {}, worst {}",
            m.machine,
            m.efficiency,
            m.settle_ms_per_thread,
            m.guest_bandwidth,
            percent(m.median),
            percent(m.worst)
        );
    }
    out
}

fn seconds(v: &Validation) -> String {
    let mut out = String::new();
    if !v.seconds.is_empty() {
        out.push_str("\nWhich second of an anchored saving comes from where:\n");
    }
    for s in &v.seconds {
        let _ = writeln!(out, "  {}: {:+.2} s {} ({})", s.id, s.seconds, s.part, s.from);
    }
    out
}
