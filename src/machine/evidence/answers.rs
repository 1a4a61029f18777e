//! What the user says against what inputs say.
//!
//! [`check`] refuses an answer that contradicts a fact: answers fill gaps. A processor's
//! name may be given anew with a warning, as guests often hide it. Used by
//! [`super::complete`].

use super::combine::is_about;
use super::{Answers, Evidence, Place, total};
use crate::machine::MachineError;
use crate::units::Bytes;
use crate::warning::Warning;

type Outcome<T> = Result<T, MachineError>;

/// Compares `answers` with the facts; page sizes are not, because they are varied.
///
/// # Errors
///
/// An answer contradicts what an input states.
pub(super) fn check(
    evidence: &Evidence,
    answers: &Answers,
    warnings: &mut Vec<Warning>,
) -> Outcome<()> {
    if let (Some(known), Some(given)) = (&evidence.arch, answers.arch)
        && known.value != given
    {
        let given = format!("--arch says {given}");
        return Err(differ("the architecture", &known.at, known.value.to_string(), given));
    }
    if let Some(each) = answers.cpus_per_node {
        cpus(evidence, each)?;
    }
    if let Some(bytes) = answers.memory_per_node_bytes {
        memory(evidence, bytes)?;
    }
    if let (Some(known), Some(given)) = (&evidence.cpu_model, &answers.cpu_model)
        && words(&known.value) != words(given)
    {
        let text = format!("{} says {}; --cpu-model {given} is used", known.at, known.value);
        let remedy = "leave --cpu-model out where the input is right";
        warnings.push(Warning::new("cpu-model-differs", text, remedy));
    }
    Ok(())
}

fn words(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn differ(what: &str, at: &Place, known: String, given: String) -> MachineError {
    let first = format!("{at} says {known}");
    MachineError::Contradiction { what: what.into(), first, second: given }
}

/// `--cpus-per-node` where the CPUs of all nodes, or their sum, are known.
fn cpus(evidence: &Evidence, each: u32) -> Outcome<()> {
    let given = format!("--cpus-per-node says {each}");
    let lists: Option<Vec<_>> =
        evidence.nodes.iter().map(|(nid, n)| Some((nid, n.cpus.as_ref()?))).collect();
    if let Some(lists) = lists.filter(|lists| !lists.is_empty()) {
        let other = lists.iter().find(|(_, known)| {
            !known.value.is_empty() && known.value.len() as u64 != u64::from(each)
        });
        return match other {
            Some((nid, known)) => {
                let what = format!("the number of CPUs of node {nid}");
                Err(differ(&what, &known.at, known.value.len().to_string(), given))
            }
            None => Ok(()),
        };
    }
    let Some(count) = &evidence.cpu_count else { return Ok(()) };
    let listed = evidence.nodes.values().filter_map(|n| n.cpus.as_ref());
    let listed: u64 = listed.map(|k| k.value.len() as u64).sum();
    let by_nodes = evidence.nodes.values().filter(|n| n.cpus.is_none()).count() as u64;
    let unknown = match evidence.nodes.is_empty() {
        true => evidence.node_count.as_ref().map_or(1, |k| u64::from(k.value)),
        false => by_nodes,
    };
    let all = listed + unknown.saturating_mul(u64::from(each));
    if all == u64::from(count.value) {
        return Ok(());
    }
    let given = format!("--cpus-per-node {each} makes {all}");
    Err(differ("the number of CPUs", &count.at, count.value.to_string(), given))
}

/// `--memory-per-node` where the sizes of all nodes are known.
fn memory(evidence: &Evidence, bytes: u64) -> Outcome<()> {
    let size = |node: &super::NodeEvidence| {
        let ranges = node.ranges.as_ref().map(|k| (total(&k.value), k.at.clone()));
        ranges.or(node.bytes.as_ref().map(|k| (k.value, k.at.clone())))
    };
    let sizes: Option<Vec<_>> =
        evidence.nodes.iter().map(|(nid, node)| Some((nid, size(node)?))).collect();
    let sizes = sizes.unwrap_or_default();
    let other = sizes.iter().find(|(_, (own, _))| *own > 0 && !is_about(*own, bytes));
    let Some((nid, (own, at))) = other else { return Ok(()) };
    let given = format!("--memory-per-node says {}", Bytes(bytes));
    Err(differ(&format!("the memory of node {nid}"), at, Bytes(*own).to_string(), given))
}
