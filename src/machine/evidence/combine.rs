//! Several inputs about one machine.
//!
//! [`combine`] lets each fill the gaps of the others. Where two say different
//! things, one of them is of another machine: an error that names both places.

use super::{Evidence, Known, NodeEvidence, Place, total};
use crate::machine::{Arch, MachineError, cpulist};
use crate::pfn::{Nid, PhysRange};
use crate::units::{Bytes, GIB};
use std::fmt::Display;

type Outcome<T> = Result<T, MachineError>;

/// Joins the evidence of all inputs; an earlier one wins where two agree roughly.
///
/// # Errors
///
/// Two inputs contradict each other.
pub fn combine(inputs: Vec<Evidence>) -> Outcome<Evidence> {
    let mut inputs = inputs.into_iter();
    let mut whole = inputs.next().unwrap_or_default();
    for other in inputs {
        add(&mut whole, other)?;
    }
    Ok(whole)
}

fn add(whole: &mut Evidence, other: Evidence) -> Outcome<()> {
    same("the architecture", &whole.arch, &other.arch)?;
    same("the page size", &whole.page_bytes, &other.page_bytes)?;
    same("the kernel", &whole.kernel, &other.kernel)?;
    same("threads per core", &whole.smt, &other.smt)?;
    same("the number of CPUs", &cpu_count(whole), &cpu_count(&other))?;
    // ARM's processors have no name of their own; programs call one by different ones.
    let is_arm = [&whole.arch, &other.arch].into_iter().flatten().any(|a| a.value == Arch::Arm64);
    if !is_arm {
        model(&whole.cpu_model, &other.cpu_model)?;
    }
    nodes(whole, &other)?;
    distances(whole, &other)?;
    for (nid, node) in other.nodes {
        let own = whole.nodes.entry(nid).or_default();
        add_node(nid, own, node)?;
    }
    fill(&mut whole.arch, other.arch);
    fill(&mut whole.foreign_arch, other.foreign_arch);
    fill(&mut whole.page_bytes, other.page_bytes);
    fill(&mut whole.cpu_model, other.cpu_model);
    fill(&mut whole.kernel, other.kernel);
    fill(&mut whole.smt, other.smt);
    fill(&mut whole.cpu_count, other.cpu_count);
    fill(&mut whole.node_count, other.node_count);
    fill(&mut whole.cpus, other.cpus);
    fill(&mut whole.distances, other.distances);
    fill(&mut whole.total_bytes, other.total_bytes);
    fill(&mut whole.all_nodes, other.all_nodes);
    fill(&mut whole.cut_off, other.cut_off);
    // Ranges without nodes matter only where no input knows the nodes of ranges.
    sizes("all memory", &bytes_of(whole), &whole_bytes(&other.ranges))?;
    fill(&mut whole.ranges, other.ranges);
    whole.is_this_host |= other.is_this_host;
    if whole.caches.is_empty() {
        whole.caches = other.caches;
    }
    // `complete` writes the first input's name behind this.
    whole.kind = format!("{} {} and {}", other.kind, other.input, whole.kind);
    whole.warnings.extend(other.warnings);
    whole.explained.extend(other.explained);
    Ok(())
}

fn fill<T>(slot: &mut Option<T>, value: Option<T>) {
    if slot.is_none() {
        *slot = value;
    }
}

fn differ(what: &str, (a, at): (String, &Place), (b, bt): (String, &Place)) -> MachineError {
    MachineError::Contradiction {
        what: what.into(),
        first: format!("{at} says {a}"),
        second: format!("{bt} says {b}"),
    }
}

fn same<T: PartialEq + Display>(
    what: &str,
    a: &Option<Known<T>>,
    b: &Option<Known<T>>,
) -> Outcome<()> {
    match (a, b) {
        (Some(a), Some(b)) if a.value != b.value => {
            Err(differ(what, (a.value.to_string(), &a.at), (b.value.to_string(), &b.at)))
        }
        _ => Ok(()),
    }
}

/// Names of processors differ in blanks and in what follows them.
fn model(a: &Option<Known<String>>, b: &Option<Known<String>>) -> Outcome<()> {
    let (Some(a), Some(b)) = (a, b) else { return Ok(()) };
    let words = |text: &str| -> String {
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let (x, y) = (words(&a.value), words(&b.value));
    if x.starts_with(&y) || y.starts_with(&x) {
        return Ok(());
    }
    Err(differ("the processor", (a.value.clone(), &a.at), (b.value.clone(), &b.at)))
}

/// CPUs that an input counts or lists completely.
fn cpu_count(evidence: &Evidence) -> Option<Known<u32>> {
    let lists: Option<Vec<_>> = evidence.nodes.values().map(|n| n.cpus.as_ref()).collect();
    let lists = lists.filter(|l| evidence.all_nodes.is_some() && !l.is_empty());
    evidence.cpu_count.clone().or_else(|| {
        let lists = lists?;
        let count = lists.iter().map(|l| l.value.len()).sum::<usize>();
        Some(Known { value: u32::try_from(count).ok()?, at: lists.first()?.at.clone() })
    })
}

/// Two inputs that both show all nodes have to show the same ones.
fn nodes(a: &Evidence, b: &Evidence) -> Outcome<()> {
    let (Some(at), Some(bt)) = (&a.all_nodes, &b.all_nodes) else { return Ok(()) };
    let ids = |e: &Evidence| -> Vec<u32> { e.nodes.keys().map(|n| n.0).collect() };
    let (x, y) = (ids(a), ids(b));
    if x == y {
        return Ok(());
    }
    let text = |ids: &[u32]| format!("nodes {}", cpulist::format(ids));
    Err(differ("the nodes", (text(&x), at), (text(&y), bt)))
}

fn distances(a: &Evidence, b: &Evidence) -> Outcome<()> {
    let (Some(x), Some(y)) = (&a.distances, &b.distances) else { return Ok(()) };
    if x.value == y.value {
        return Ok(());
    }
    let text = |table: &[Vec<u32>]| format!("{:?}", table.first().unwrap_or(&Vec::new()));
    let (first, second) = (text(&x.value.1), text(&y.value.1));
    Err(differ("the distances", (first, &x.at), (second, &y.at)))
}

fn add_node(nid: Nid, own: &mut NodeEvidence, other: NodeEvidence) -> Outcome<()> {
    if let (Some(a), Some(b)) = (&own.cpus, &other.cpus)
        && a.value != b.value
    {
        let text = |ids: &[u32]| match ids.is_empty() {
            true => "none".to_string(),
            false => cpulist::format(ids),
        };
        let what = format!("the CPUs of node {nid}");
        return Err(differ(&what, (text(&a.value), &a.at), (text(&b.value), &b.at)));
    }
    let what = format!("the memory of node {nid}");
    sizes(&what, &whole_bytes(&own.ranges), &whole_bytes(&other.ranges))?;
    sizes(&what, &own.bytes, &other.bytes)?;
    sizes(&what, &whole_bytes(&own.ranges), &other.bytes)?;
    sizes(&what, &own.bytes, &whole_bytes(&other.ranges))?;
    fill(&mut own.ranges, other.ranges);
    fill(&mut own.bytes, other.bytes);
    fill(&mut own.cpus, other.cpus);
    fill(&mut own.some_cpus, other.some_cpus);
    fill(&mut own.init_pages, other.init_pages);
    fill(&mut own.channels.0, other.channels.0);
    fill(&mut own.channels.1, other.channels.1);
    Ok(())
}

fn whole_bytes(ranges: &Option<Known<Vec<PhysRange>>>) -> Option<Known<u64>> {
    let known = ranges.as_ref()?;
    Some(Known { value: total(&known.value), at: known.at.clone() })
}

/// All memory of the nodes together, where each node's is known.
fn bytes_of(evidence: &Evidence) -> Option<Known<u64>> {
    let of_node = |n: &NodeEvidence| whole_bytes(&n.ranges).or_else(|| n.bytes.clone());
    let all: Option<Vec<Known<u64>>> = evidence.nodes.values().map(of_node).collect();
    let all = all?;
    let at = all.first()?.at.clone();
    Some(Known { value: all.iter().fold(0, |sum, k| sum.saturating_add(k.value)), at })
}

/// Whether two sizes in bytes can be of the same memory.
pub(super) fn is_about(a: u64, b: u64) -> bool {
    let most = a.max(b);
    let allowed = (most / 8).saturating_add((most / 2).min(GIB));
    a.abs_diff(b) <= allowed && (a == 0) == (b == 0)
}

/// Sizes agree up to what the kernel keeps for itself (its image, the struct pages,
/// `crashkernel=`) and what whole memory blocks add: an eighth and a gibibyte, or half
/// of small ones.
fn sizes(what: &str, a: &Option<Known<u64>>, b: &Option<Known<u64>>) -> Outcome<()> {
    let (Some(a), Some(b)) = (a, b) else { return Ok(()) };
    if is_about(a.value, b.value) {
        return Ok(());
    }
    let text = |bytes: u64| Bytes(bytes).to_string();
    Err(differ(what, (text(a.value), &a.at), (text(b.value), &b.at)))
}
