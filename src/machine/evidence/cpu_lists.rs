//! The CPUs of each node: as inputs list them, else as they are counted or given.
//!
//! [`lists`] keeps every list that an input states and fills in only the nodes of which
//! none is known. Used by [`super::complete`].

use super::{Answers, Evidence};
use crate::machine::cpulist::{self, MAX_CPU_ID};
use crate::machine::{Machine, MachineError};
use crate::pfn::Nid;
use crate::warning::Warning;
use std::collections::BTreeSet;

/// CPUs by node, in the order of `machine.nodes`; `None` where no input tells any.
///
/// # Errors
///
/// There are more CPUs than are possible.
pub(super) fn lists(
    machine: &mut Machine,
    evidence: &Evidence,
    answers: &Answers,
) -> Result<Option<Vec<Vec<u32>>>, MachineError> {
    let nodes: Vec<Nid> = machine.nodes.iter().map(|n| n.nid).collect();
    let list = |nid: &Nid| evidence.nodes.get(nid)?.cpus.as_ref().map(|k| k.value.clone());
    let known: Vec<Option<Vec<u32>>> = nodes.iter().map(list).collect();
    let listed = known.iter().flatten().map(Vec::len).sum::<usize>() as u64;
    let unknown: Vec<Nid> =
        nodes.iter().zip(&known).filter(|(_, k)| k.is_none()).map(|(n, _)| *n).collect();
    let counts = counts(evidence, answers, listed, unknown.len());
    let all = counts.iter().map(|&c| u64::from(c)).sum::<u64>() + listed;
    if all > u64::from(MAX_CPU_ID) + 1 {
        let problem = format!("{all} CPUs are more than {}", MAX_CPU_ID + 1);
        return Err(MachineError::content(&evidence.input, None, problem));
    }
    if counts.is_empty() && !unknown.is_empty() {
        machine.warnings.push(silent(&unknown, nodes.len()));
        if unknown.len() == nodes.len() {
            return Ok(None);
        }
    }
    let is_even = answers.cpus_per_node.is_none() && counts.iter().any(|&c| c > 0);
    if is_even && nodes.len() > 1 {
        machine.warnings.push(even(all, &unknown, nodes.len()));
    }
    Ok(Some(filled(evidence, &nodes, known, &counts)))
}

/// How many CPUs each node of an unknown list gets; empty where nothing tells.
fn counts(evidence: &Evidence, answers: &Answers, listed: u64, unknown: usize) -> Vec<u32> {
    if let Some(each) = answers.cpus_per_node {
        return vec![each; unknown];
    }
    let Some(count) = &evidence.cpu_count else { return Vec::new() };
    let rest = u64::from(count.value).saturating_sub(listed);
    let takers = (unknown as u64).max(1);
    let share = |at: u64| u32::try_from(rest / takers + u64::from(at < rest % takers));
    (0..unknown as u64).map(|at| share(at).unwrap_or(u32::MAX)).collect()
}

/// The known lists, and for the others the CPUs that they have at least and then those
/// that no node has, in ascending order.
fn filled(
    evidence: &Evidence,
    nodes: &[Nid],
    known: Vec<Option<Vec<u32>>>,
    counts: &[u32],
) -> Vec<Vec<u32>> {
    let part = |nid: &Nid| evidence.nodes.get(nid)?.some_cpus.as_ref().map(|k| k.value.clone());
    let mut taken: BTreeSet<u32> = known.iter().flatten().flatten().copied().collect();
    // A CPU that two inputs put on different nodes is of the one that lists all of its own.
    let mut parts: Vec<Vec<u32>> = Vec::new();
    for (nid, known) in nodes.iter().zip(&known) {
        let own = part(nid).filter(|_| known.is_none()).unwrap_or_default();
        parts.push(own.into_iter().filter(|id| taken.insert(*id)).collect());
    }
    let mut free = (0..=MAX_CPU_ID).filter(|id| !taken.contains(id));
    let mut counts = counts.iter();
    let mut fill = |(known, mut own): (Option<Vec<u32>>, Vec<u32>)| {
        known.unwrap_or_else(|| {
            let wanted = counts.next().map_or(0, |&count| count as usize);
            let missing = wanted.saturating_sub(own.len());
            own.extend(free.by_ref().take(missing));
            own.sort_unstable();
            own
        })
    };
    known.into_iter().zip(parts).map(&mut fill).collect()
}

fn silent(unknown: &[Nid], nodes: usize) -> Warning {
    let text = match unknown.len() == nodes {
        true => "the input does not say how many CPUs there are".to_owned(),
        false => format!("the input does not say which CPUs {} has; none is assumed", of(unknown)),
    };
    let remedy = "give --cpus-per-node, or a further -m FILE such as numactl -H or lscpu";
    Warning::new("cpus-unknown", text, remedy)
}

fn even(all: u64, unknown: &[Nid], nodes: usize) -> Warning {
    let text = match unknown.len() == nodes {
        true => format!(
            "the input counts {all} CPUs and does not say of each on which node it is; an even \
             share is assumed"
        ),
        false => format!(
            "the input counts {all} CPUs and does not say which of them {} has; an even share \
             of the rest is assumed",
            of(unknown)
        ),
    };
    Warning::new("assumed-cpus", text, "add an input that tells, for example numactl -H")
}

fn of(nodes: &[Nid]) -> String {
    let ids: Vec<u32> = nodes.iter().map(|n| n.0).collect();
    format!("node {}", cpulist::format(&ids))
}
