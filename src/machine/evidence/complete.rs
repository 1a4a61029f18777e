//! From evidence to a machine: what is missing is asked for or assumed.
//!
//! [`complete`] never guesses silently: a size that no input tells is a question
//! (an error that names the flag), everything else is assumed with a warning.

use super::{Answers, Evidence, NodeEvidence, cpu_lists, total};
use crate::machine::assume::{default_page_bytes, place, section_bytes};
use crate::machine::check::{finish, title};
use crate::machine::{Arch, Cpu, Machine, MachineError, Node, Source, Sources};
use crate::pfn::{Nid, PhysRange};
use crate::warning::{Origin, Warning};
use std::collections::{BTreeMap, BTreeSet};

type Outcome<T> = Result<T, MachineError>;

/// Makes the machine that the inputs describe, called `name`.
///
/// # Errors
///
/// The memory of a node is not known, or the facts are of no possible machine.
pub fn complete(name: &str, evidence: &Evidence, answers: &Answers) -> Outcome<Machine> {
    let mut warnings = evidence.warnings.clone();
    super::answers::check(evidence, answers, &mut warnings)?;
    let arch = arch(evidence, answers, &mut warnings)?;
    let page_bytes = answers
        .page_bytes
        .or(evidence.page_bytes.as_ref().map(|k| k.value))
        .unwrap_or(default_page_bytes(arch));
    let from = format!("{} {}", evidence.kind, evidence.input);
    let read = || Source::new(Origin::Read, from.clone());
    let mut machine = Machine {
        name: name.into(),
        title: String::new(),
        arch,
        page_bytes,
        nodes: node_ids(evidence, answers).into_iter().map(empty).collect(),
        cpus: Vec::new(),
        distances: None,
        caches: evidence.caches.clone(),
        cpu_model: answers
            .cpu_model
            .clone()
            .or(evidence.cpu_model.as_ref().map(|k| k.value.clone())),
        kernel_release: evidence.kernel.as_ref().map(|k| k.value.clone()),
        is_this_host: evidence.is_this_host,
        boot: None,
        source: Sources {
            topology: read(),
            memory_bytes: read(),
            memory_ranges: read(),
            distances: Source::new(Origin::Assumed, "10 on a node, 20 between nodes"),
        },
        warnings,
    };
    for node in &mut machine.nodes {
        let known = evidence.nodes.get(&node.nid).map(|n| n.channels);
        (node.channels, node.mts) = known.unwrap_or_default();
    }
    memory(&mut machine, evidence, answers)?;
    cpus(&mut machine, evidence, answers)?;
    distances(&mut machine, evidence);
    sources(&mut machine, evidence);
    let flawed =
        |flaw: crate::machine::check::Flaw| MachineError::content(name, None, flaw.to_string());
    let mut machine = finish(machine).map_err(flawed)?;
    machine.title = title(&machine);
    Ok(machine)
}

fn empty(nid: Nid) -> Node {
    Node { nid, memory: Vec::new(), cpus: Vec::new(), channels: None, mts: None }
}

fn missing(evidence: &Evidence, what: impl Into<String>, flag: &str) -> MachineError {
    MachineError::Missing { input: evidence.input.clone(), what: what.into(), flag: flag.into() }
}

fn arch(evidence: &Evidence, answers: &Answers, warnings: &mut Vec<Warning>) -> Outcome<Arch> {
    if let Some(arch) = answers.arch.or(evidence.arch.as_ref().map(|k| k.value)) {
        return Ok(arch);
    }
    if let Some(foreign) = &evidence.foreign_arch {
        let line = foreign.at.line.unwrap_or(0);
        let what = format!("line {line} names {}, which is not modelled", foreign.value);
        return Err(missing(evidence, what, "--arch NAME to take it for another one"));
    }
    let only_pages = evidence.nodes.values().any(|n| n.init_pages.is_some())
        && evidence.nodes.values().all(|n| n.ranges.is_none() && n.bytes.is_none())
        && evidence.total_bytes.is_none()
        && evidence.ranges.is_none();
    let sized = answers.page_bytes.is_some() || answers.memory_per_node_bytes.is_some();
    if only_pages && evidence.page_bytes.is_none() && !sized {
        let what =
            "it counts pages and does not say how large a page is, nor on which architecture";
        return Err(missing(evidence, what, "--arch NAME or --page-size SIZE"));
    }
    warnings.push(Warning::new(
        "assumed-architecture",
        "the input names no architecture, x86_64 is assumed",
        "say which with --arch, and --page-size where pages are not of the usual size",
    ));
    Ok(Arch::X86_64)
}

fn node_ids(evidence: &Evidence, _answers: &Answers) -> Vec<Nid> {
    let mut ids: Vec<Nid> = evidence.nodes.keys().copied().collect();
    if ids.is_empty() {
        let count = evidence.node_count.as_ref().map_or(1, |k| k.value).clamp(1, 1024);
        ids = (0..count).map(Nid).collect();
    }
    ids
}

/// Gives the nodes their memory.
fn memory(machine: &mut Machine, evidence: &Evidence, answers: &Answers) -> Outcome<()> {
    let known_ranges = |nid: Nid| evidence.nodes.get(&nid).and_then(|n| n.ranges.as_ref());
    if machine.nodes.iter().all(|n| known_ranges(n.nid).is_some()) {
        for node in &mut machine.nodes {
            node.memory = known_ranges(node.nid).map(|k| k.value.clone()).unwrap_or_default();
        }
        return Ok(());
    }
    if let (Some(all), [only]) = (&evidence.ranges, machine.nodes.as_mut_slice()) {
        only.memory = all.value.clone();
        return Ok(());
    }
    let sizes = sizes(machine, evidence, answers)?;
    if let Some(all) = &evidence.ranges {
        share_out(machine, &all.value, &sizes);
        return Ok(());
    }
    let too_much = |e: crate::machine::assume::TooMuchMemory| {
        MachineError::content(&evidence.input, None, e.to_string())
    };
    place(machine, |node| sizes.get(&node.nid).copied().unwrap_or(0)).map_err(too_much)
}

/// Bytes of each node, from whatever tells them.
fn sizes(
    machine: &mut Machine,
    evidence: &Evidence,
    answers: &Answers,
) -> Outcome<BTreeMap<Nid, u64>> {
    let mut sizes = BTreeMap::new();
    let mut unknown = Vec::new();
    for node in &machine.nodes {
        let known = evidence.nodes.get(&node.nid);
        let ranges = known.and_then(|n| n.ranges.as_ref()).map(|k| total(&k.value));
        let bytes = known.and_then(|n| n.bytes.as_ref()).map(|k| k.value);
        match ranges.or(bytes) {
            Some(bytes) => drop(sizes.insert(node.nid, bytes)),
            None => unknown.push(node.nid),
        }
    }
    if unknown.is_empty() {
        return Ok(sizes);
    }
    if let Some(bytes) = answers.memory_per_node_bytes {
        sizes.extend(unknown.iter().map(|&nid| (nid, bytes)));
        machine.source.memory_bytes = Source::new(Origin::Given, "--memory-per-node");
        return Ok(sizes);
    }
    let rest = evidence.total_bytes.as_ref().filter(|_| sizes.is_empty());
    let share = rest.map(|k| k.value / unknown.len() as u64);
    for &nid in &unknown {
        let pages = evidence.nodes.get(&nid).and_then(|n| n.init_pages.as_ref());
        let late = pages.map(|k| k.value.saturating_mul(machine.page_bytes));
        let bytes = share.or(late).ok_or_else(|| unknown_memory(evidence, &unknown))?;
        sizes.insert(nid, bytes);
    }
    assumed_sizes(machine, share.is_some(), unknown.len());
    Ok(sizes)
}

fn unknown_memory(evidence: &Evidence, unknown: &[Nid]) -> MachineError {
    let ids: Vec<u32> = unknown.iter().map(|n| n.0).collect();
    let ids = crate::machine::cpulist::format(&ids);
    let why = match &evidence.cut_off {
        Some(at) => {
            let line = at.line.unwrap_or(0);
            format!("the text ends in line {line} before it tells the memory of node {ids}")
        }
        None => format!("it does not say how much memory node {ids} has"),
    };
    missing(evidence, why, "--memory-per-node SIZE, or a further -m FILE that tells")
}

fn assumed_sizes(machine: &mut Machine, is_share: bool, nodes: usize) {
    if is_share && nodes == 1 {
        return;
    }
    let rule = match is_share {
        true => "all memory in equal parts",
        false => "the pages that were initialised late, without those before",
    };
    machine.source.memory_bytes = Source::new(Origin::Assumed, rule);
    machine.warnings.push(Warning::new(
        "assumed-sizes",
        format!("the memory of single nodes is not known; assumed: {rule}"),
        "give it with --memory-per-node",
    ));
}

/// Cuts ranges of unknown node into pieces in proportion to the nodes' sizes.
fn share_out(machine: &mut Machine, ranges: &[PhysRange], sizes: &BTreeMap<Nid, u64>) {
    let section = section_bytes(machine.arch, machine.page_bytes);
    let all: u128 = sizes.values().map(|&b| u128::from(b)).sum::<u128>().max(1);
    let whole = u128::from(total(ranges));
    let mut rest: Vec<PhysRange> = ranges.iter().rev().copied().collect();
    let last = machine.nodes.iter().rev().find(|n| sizes.get(&n.nid).is_some_and(|&b| b > 0));
    let last = last.map(|n| n.nid);
    for node in &mut machine.nodes {
        let own = u128::from(sizes.get(&node.nid).copied().unwrap_or(0));
        let mut wanted = u64::try_from(whole * own / all).unwrap_or(u64::MAX);
        if own == 0 {
            continue;
        }
        while let Some(range) = rest.pop() {
            let is_last = Some(node.nid) == last;
            let cut = match is_last {
                true => range.end,
                // Linux gives a section to one node: the border lies on one.
                false => {
                    let border = range.start.saturating_add(wanted);
                    let border = border.checked_next_multiple_of(section.max(1));
                    border.unwrap_or(u64::MAX).min(range.end)
                }
            };
            node.memory.push(PhysRange::new(range.start, cut));
            wanted = wanted.saturating_sub(cut - range.start);
            if cut < range.end {
                rest.push(PhysRange::new(cut, range.end));
            }
            if wanted == 0 && !is_last {
                break;
            }
        }
    }
    let rule = "ranges in the order of the nodes, in proportion to their sizes";
    machine.source.memory_ranges = Source::new(Origin::Assumed, rule);
    machine.warnings.push(Warning::new(
        "assumed-node-borders",
        format!("the input does not say which range is of which node; assumed: {rule}"),
        "add an input that tells, for example a boot log",
    ));
}

/// Gives the machine its CPUs.
fn cpus(machine: &mut Machine, evidence: &Evidence, answers: &Answers) -> Outcome<()> {
    if let Some(known) = &evidence.cpus {
        machine.cpus = known.value.clone();
        return Ok(());
    }
    let Some(lists) = cpu_lists::lists(machine, evidence, answers)? else { return Ok(()) };
    let nodes: Vec<Nid> = machine.nodes.iter().map(|n| n.nid).collect();
    let smt = evidence.smt.as_ref().map(|k| k.value);
    if smt.is_none() && lists.iter().map(Vec::len).sum::<usize>() > 1 {
        machine.warnings.push(Warning::new(
            "assumed-cores",
            "the input does not say which CPUs are threads of one core; each counts as a core",
            "add an lscpu text with a further -m",
        ));
    }
    machine.cpus = cores(machine.arch, &nodes, &lists, smt.unwrap_or(1) as usize);
    Ok(())
}

/// Cores of CPUs: siblings lie far apart on x86_64, arm64 and riscv64, side by side
/// elsewhere.
fn cores(arch: Arch, nodes: &[Nid], lists: &[Vec<u32>], smt: usize) -> Vec<Cpu> {
    let is_spread = matches!(arch, Arch::X86_64 | Arch::Arm64 | Arch::Riscv64);
    let mut cpus = Vec::new();
    let mut first = 0;
    for (&nid, ids) in nodes.iter().zip(lists) {
        let smt = if smt > 0 && ids.len().is_multiple_of(smt) { smt } else { 1 };
        let cores = ids.len() / smt;
        for (rank, &id) in ids.iter().enumerate() {
            let own = if is_spread { rank % cores.max(1) } else { rank / smt };
            let core = u32::try_from(first + own).unwrap_or(u32::MAX);
            cpus.push(Cpu { id, nid, core, package: nid.0 });
        }
        first += cores;
    }
    cpus
}

fn distances(machine: &mut Machine, evidence: &Evidence) {
    let Some(known) = &evidence.distances else { return };
    let (rows, table) = &known.value;
    let pick = |nid: Nid| rows.iter().position(|&r| r == nid);
    let order: Option<Vec<usize>> = machine.nodes.iter().map(|n| pick(n.nid)).collect();
    let Some(order) = order else { return };
    let row = |&i: &usize| -> Option<Vec<u32>> {
        let row = table.get(i)?;
        order.iter().map(|&j| row.get(j).copied()).collect()
    };
    machine.distances = order.iter().map(row).collect();
    if machine.distances.is_some() {
        machine.source.distances = Source::new(Origin::Read, known.at.input.clone());
    }
}

/// Says from which of several inputs each group of facts is.
fn sources(machine: &mut Machine, evidence: &Evidence) {
    let own = |n: &NodeEvidence| {
        let at = n.ranges.as_ref().map(|k| &k.at).or(n.bytes.as_ref().map(|k| &k.at));
        at.map(|at| at.input.clone())
    };
    let all = evidence.ranges.as_ref().map(|k| k.at.input.clone());
    let ranges = evidence.nodes.values().filter_map(|n| Some(n.ranges.as_ref()?.at.input.clone()));
    let of_ranges: BTreeSet<String> = ranges.chain(all.clone()).collect();
    let of_bytes: BTreeSet<String> = evidence.nodes.values().filter_map(own).chain(all).collect();
    let set = |source: &mut Source, inputs: BTreeSet<String>| {
        // One input alone is called by its kind too.
        if source.origin == Origin::Read && !inputs.is_empty() && evidence.is_combined() {
            source.from = inputs.into_iter().collect::<Vec<_>>().join(" and ");
        }
    };
    set(&mut machine.source.memory_ranges, of_ranges);
    set(&mut machine.source.memory_bytes, of_bytes);
    if let (Some(known), false) = (&evidence.distances, evidence.is_combined()) {
        machine.source.distances.from = format!("{} {}", evidence.kind, known.at.input);
    }
}
