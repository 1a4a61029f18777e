//! What the end of a boot waited for, as `systemd-analyze critical-chain` shows it.
//!
//! Phases follow each other, so that all of them are on the chain; within a phase of the
//! nodes' threads only the node that ends last is. What every other node has to spare is
//! its slack. A node without CPUs on the chain, and one that all others wait for, are
//! said in words.

use super::blame::title;
use super::phases::{Boot, NodeEnd, Took, chosen};
use super::source::Source;
use super::table::heading;
use super::view::ViewError;
use crate::units::{grouped, time};
use std::fmt::Write;

/// A node is said to be waited for when all others wait longer than this share of the
/// phase.
const WAIT_SHARE: f64 = 0.1;

/// Columns after which a list of nodes goes on in the next line.
const WIDTH: usize = 96;

/// All boots of all records, or those of some strategies.
///
/// # Errors
/// A strategy that no record has.
pub fn text(sources: &[Source], strategies: &[String]) -> Result<String, ViewError> {
    let parts = chosen(sources, strategies)?.into_iter().map(|(source, boots)| {
        let mut out = heading(source);
        out.push_str(
            "\n@ is when a phase begins, + is what it takes; what comes last stands first.\n",
        );
        for boot in &boots {
            out.push('\n');
            out.push_str(&chain(boot));
        }
        if boots.is_empty() {
            out.push_str("\nNo boot is in it.\n");
        }
        out
    });
    Ok(parts.collect::<Vec<_>>().join("\n"))
}

fn chain(boot: &Boot) -> String {
    let mut out = format!("{}\n", title(boot));
    if let Some(note) = boot.note {
        let _ = writeln!(out, "{note}");
    }
    let _ = writeln!(out, "all struct pages @{}", time(boot.total_ns));
    for (depth, phase) in boot.phases.iter().rev().enumerate() {
        let indent = "  ".repeat(depth);
        let (start, took) = (time(phase.start_ns), time(phase.took_ns));
        let _ = writeln!(out, "{indent}└─{} @{start} +{took}, {}", phase.phase, who(phase));
        let is_first = depth + 1 == boot.phases.len();
        let rail = if is_first { "  " } else { "│ " };
        for line in about_nodes(phase) {
            let _ = writeln!(out, "{indent}  {rail}{line}");
        }
    }
    out
}

fn who(phase: &Took) -> String {
    match (phase.ends.first(), phase.executor.as_str()) {
        (Some(NodeEnd { nid, worker: Some(worker), .. }), _) => {
            format!("node {nid} ends last, with its worker {worker}")
        }
        (Some(NodeEnd { nid, .. }), _) => format!("node {nid} ends last"),
        (None, "boot-cpu") => "the boot CPU".into(),
        (None, other) => other.into(),
    }
}

fn about_nodes(phase: &Took) -> Vec<String> {
    let mut lines = Vec::new();
    let Some((last, others)) = phase.ends.split_first() else { return lines };
    if last.is_cpuless {
        lines.push(format!(
            "NODE {} HAS NO CPU: one worker on another node does its {} struct pages",
            last.nid,
            grouped(last.pages)
        ));
    }
    let Some(second) = others.first() else { return lines };
    let wait_ns = last.took_ns - second.took_ns;
    let share = if phase.took_ns > 0.0 { wait_ns / phase.took_ns } else { 0.0 };
    if share > WAIT_SHARE {
        let (nid, wait) = (last.nid, time(wait_ns));
        let percent = share * 100.0;
        lines.push(format!(
            "ALL OTHER NODES WAIT FOR NODE {nid}: {wait} at least, {percent:.0} % of the phase"
        ));
    }
    lines.extend(slack(last, others));
    lines
}

/// Nodes with what they have to spare, the tightest first; equal ones together.
fn slack(last: &NodeEnd, others: &[NodeEnd]) -> Vec<String> {
    let mut groups: Vec<(String, Vec<u32>)> = Vec::new();
    for node in others {
        let spare = time(last.took_ns - node.took_ns);
        match groups.iter_mut().find(|(known, _)| *known == spare) {
            Some((_, nids)) => nids.push(node.nid),
            None => groups.push((spare, vec![node.nid])),
        }
    }
    let item = |(spare, mut nids): (String, Vec<u32>)| {
        nids.sort_unstable();
        let plural = if nids.len() == 1 { "" } else { "s" };
        format!("node{plural} {} {spare}", super::sheets::ranges(&nids).join(","))
    };
    wrapped("slack: ", groups.into_iter().map(item))
}

fn wrapped(first: &str, items: impl Iterator<Item = String>) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for item in items {
        match lines.last_mut() {
            Some(line) if line.chars().count() + item.chars().count() + 2 <= WIDTH => {
                let _ = write!(line, "; {item}");
            }
            Some(_) => lines.push(format!("{}{item}", " ".repeat(first.len()))),
            None => lines.push(format!("{first}{item}")),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(nid: u32, took_ns: f64) -> NodeEnd {
        NodeEnd { nid, took_ns, worker: None, pages: 1000, is_cpuless: false }
    }

    fn phase(ends: Vec<NodeEnd>) -> Took {
        Took {
            phase: "deferred-init".into(),
            executor: "node-threads".into(),
            start_ns: 0.0,
            took_ns: ends.first().map_or(0.0, |end| end.took_ns),
            pages: 1,
            ends,
            parts: Vec::new(),
        }
    }

    #[test]
    fn a_node_that_others_wait_for_is_said_in_words() {
        let waits = |second_ns| about_nodes(&phase(vec![end(3, 100.0), end(0, second_ns)]));
        assert_eq!(waits(91.0), ["slack: node 0 9.00 ns"]);
        let lines = waits(80.0);
        assert_eq!(
            lines[0],
            "ALL OTHER NODES WAIT FOR NODE 3: 20.0 ns at least, 20 % of the phase"
        );
        assert!(about_nodes(&phase(vec![end(0, 5.0)])).is_empty(), "nobody waits");
        assert!(about_nodes(&phase(vec![])).is_empty());
    }

    #[test]
    fn a_node_without_cpus_stands_out_only_where_it_ends_last() {
        let without = |took_ns| NodeEnd { is_cpuless: true, ..end(7, took_ns) };
        let lines = about_nodes(&phase(vec![without(100.0), end(0, 99.0)]));
        assert!(lines[0].starts_with("NODE 7 HAS NO CPU: one worker"), "{lines:?}");
        let lines = about_nodes(&phase(vec![end(0, 100.0), without(99.0)]));
        assert_eq!(lines, ["slack: node 7 1.00 ns"]);
    }

    #[test]
    fn equal_slack_is_joined_and_long_lists_wrap() {
        let mut ends: Vec<NodeEnd> = (0..4).map(|nid| end(nid, 50.0)).collect();
        ends.insert(0, end(9, 60.0));
        assert_eq!(slack(&ends[0], &ends[1..]), ["slack: nodes 0-3 10.0 ns"]);
        let many: Vec<NodeEnd> = (0..40).map(|nid| end(nid, 500.0 - f64::from(nid))).collect();
        let lines = slack(&many[0], &many[1..]);
        assert!(lines.len() > 3 && lines.iter().all(|l| l.chars().count() <= WIDTH), "{lines:?}");
        assert_eq!(lines.concat().matches("node").count(), 39);
    }
}
