//! From a boot to evidence for a machine.
//!
//! [`evidence`] takes the best source of memory that the log has: the early ranges,
//! memblock's dump, affinity cut with the firmware's map, the map alone, spans.
//! [`super::super::evidence`] makes the machine.

use super::boot::{Boot, MapRange, NodeRange};
use super::explain::explain;
use crate::machine::MachineError;
use crate::machine::evidence::Evidence;
use crate::machine::{EMULATED, GUEST};
use crate::pfn::{Nid, PhysRange};
use crate::warning::Warning;
use std::collections::BTreeMap;

/// What `boot` of the log called `input` says about the machine.
///
/// # Errors
///
/// The log contradicts itself.
pub fn evidence(input: &str, boot: &Boot) -> Result<Evidence, MachineError> {
    let mut out = Evidence::new(input, "boot log");
    if let Some(flaw) = &boot.flaw {
        let line = usize::try_from(flaw.line).ok();
        return Err(MachineError::content(input, line, flaw.value.clone()));
    }
    out.arch = boot.arch.as_ref().map(|f| out.known(f.value, f.line));
    let foreign = boot.foreign_arch.as_ref();
    out.foreign_arch = foreign.map(|f| out.known(f.value.clone(), f.line));
    out.page_bytes = boot.page_bytes.as_ref().map(|f| out.known(f.value, f.line));
    out.cpu_model = boot.cpu_model.as_ref().map(|f| out.known(f.value.clone(), f.line));
    out.kernel = boot.kernel().map(|f| out.known(f.value.clone(), f.line));
    out.cpu_count = boot.cpu_count.as_ref().map(|f| out.known(f.value, f.line));
    out.node_count = boot.node_count.as_ref().map(|f| out.known(f.value, f.line));
    out.smt = boot.smt.as_ref().map(|f| out.known(f.value, f.line));
    let total = boot.memory_line.as_ref().map(|f| (f.value.total_bytes, f.line));
    let total = total.or(boot.phys_bytes.as_ref().map(|f| (f.value, f.line)));
    out.total_bytes = total.map(|(bytes, line)| out.known(bytes, line));
    memory(&mut out, boot)?;
    for line in &boot.init {
        let pages = line.pages.map(|pages| out.known(pages, line.line));
        let node = out.node(line.nid);
        node.init_pages = node.init_pages.take().or(pages);
    }
    cpus(&mut out, boot);
    guest(&mut out, boot);
    doubts(&mut out, boot);
    out.explained = explain(input, boot);
    Ok(out)
}

/// The memory of nodes from the best source.
fn memory(out: &mut Evidence, boot: &Boot) -> Result<(), MachineError> {
    let by_memblock: Vec<NodeRange> = boot
        .memblock
        .memory()
        .unwrap_or_default()
        .iter()
        .map(|r| NodeRange { nid: r.nid.unwrap_or(Nid(0)), range: r.range, line: r.line })
        .collect();
    let spans: Vec<NodeRange> =
        boot.initmem.iter().filter(|r| !r.range.is_empty()).copied().collect();
    let affinity = affinity(boot);
    let sources = [&boot.early, &by_memblock, &affinity];
    let best = sources.into_iter().find(|list| !list.is_empty());
    let usable = usable(boot);
    if let Some(list) = best {
        nodes(out, list)?;
    } else if let Some(first) = usable.first().filter(|_| spans.len() < 2) {
        let line = first.line;
        let ranges = sorted(out, usable.iter().map(|r| (r.range, r.line)).collect())?;
        out.ranges = Some(out.known(ranges, line));
    } else if !spans.is_empty() {
        nodes(out, &spans)?;
        out.warnings.push(Warning::new(
            "spans-as-memory",
            "the log shows only where each node begins and ends; holes count as memory",
            "use a log with \"Early memory node ranges\"",
        ));
    }
    for item in boot.initmem.iter().filter(|r| r.range.is_empty()) {
        let none = out.known(Vec::new(), item.line);
        out.node(item.nid).ranges.get_or_insert(none);
    }
    let shows_all = boot.early.first().or(by_memblock.first()).or(spans.first());
    out.all_nodes = shows_all.map(|r| out.place(Some(r.line)));
    Ok(())
}

/// Gives each node its ranges.
fn nodes(out: &mut Evidence, list: &[NodeRange]) -> Result<(), MachineError> {
    // Two nodes must not share memory either, so that all ranges are checked at once.
    sorted(out, list.iter().map(|r| (r.range, r.line)).collect())?;
    let mut by_node: BTreeMap<Nid, Vec<NodeRange>> = BTreeMap::new();
    for item in list {
        by_node.entry(item.nid).or_default().push(*item);
    }
    for (nid, list) in by_node {
        let line = list.first().map_or(0, |r| r.line);
        let ranges = sorted(out, list.iter().map(|r| (r.range, r.line)).collect())?;
        let known = out.known(ranges, line);
        out.node(nid).ranges = Some(known);
    }
    Ok(())
}

/// The ranges in ascending order, or an error with both lines where two overlap.
fn sorted(out: &Evidence, mut list: Vec<(PhysRange, u64)>) -> Result<Vec<PhysRange>, MachineError> {
    list.sort_by_key(|(range, _)| (range.start, range.end));
    list.dedup_by_key(|(range, _)| *range);
    for pair in list.windows(2) {
        if let [(low, a), (high, b)] = pair
            && low.end > high.start
        {
            let problem = format!("memory {low} of line {a} overlaps {high} of line {b}");
            let line = usize::try_from(*a.max(b)).ok();
            return Err(MachineError::content(&out.input, line, problem));
        }
    }
    Ok(list.into_iter().map(|(range, _)| range).collect())
}

/// RAM of the firmware's map: after `mem=` and `memmap=` where they were used.
fn usable(boot: &Boot) -> Vec<&MapRange> {
    let maps = [&boot.user_map, &boot.e820, &boot.efi_map];
    let map = maps.into_iter().find(|map| !map.is_empty());
    // `mm/memblock.c` gets these types (`drivers/firmware/efi/efi-init.c: is_usable_memory`).
    let kinds = [
        "usable",
        "Conventional Memory",
        "Conventional",
        "Loader Code",
        "Loader Data",
        "Boot Code",
        "Boot Data",
        "Persistent Memory",
    ];
    let is_ram = |r: &&MapRange| kinds.contains(&r.kind.as_str());
    map.into_iter().flatten().filter(is_ram).collect()
}

/// The affinity table cut with the firmware's map.
fn affinity(boot: &Boot) -> Vec<NodeRange> {
    let usable = usable(boot);
    let mut out = Vec::new();
    for node in &boot.srat {
        let cut = usable.iter().filter_map(|r| r.range.intersect(node.range));
        out.extend(cut.map(|range| NodeRange { range, ..*node }).take(super::boot::MAX_ITEMS));
        if out.len() > super::boot::MAX_ITEMS {
            break;
        }
    }
    out
}

/// CPUs of nodes, where the log lists all; else those that it lists, as a part.
fn cpus(out: &mut Evidence, boot: &Boot) {
    let Some(count) = boot.cpu_count.as_ref() else { return };
    let Some(lists) = boot.cpu_lists() else {
        for (nid, fact) in boot.listed_cpus() {
            let known = out.known(fact.value, fact.line);
            out.node(nid).some_cpus = Some(known);
        }
        return;
    };
    let without = out.known(Vec::new(), count.line);
    for nid in lists.keys() {
        out.node(*nid);
    }
    let mut known: BTreeMap<Nid, _> =
        lists.into_iter().map(|(nid, fact)| (nid, out.known(fact.value, fact.line))).collect();
    for (nid, node) in &mut out.nodes {
        let own = known.remove(nid);
        node.cpus = Some(own.unwrap_or_else(|| without.clone()));
    }
}

/// Whether the machine is real: the warnings are what [`Machine::is_guest`] and
/// [`Machine::is_emulated`] look at.
///
/// [`Machine::is_guest`]: crate::machine::Machine::is_guest
/// [`Machine::is_emulated`]: crate::machine::Machine::is_emulated
fn guest(out: &mut Evidence, boot: &Boot) {
    if let Some(emulated) = &boot.emulated {
        out.warnings.push(Warning::new(
            EMULATED,
            format!(
                "line {} names {}: software imitates the processor, and times are not those of \
                 any real one",
                emulated.line, emulated.value
            ),
            "its layout is right; for times use a log of a real processor",
        ));
    } else if let Some(guest) = &boot.guest {
        out.warnings.push(Warning::new(
            GUEST,
            format!("line {} says that this is a guest: {}", guest.line, guest.value),
            "`estimate --virt bare-metal` takes it for a real machine",
        ));
    }
}

/// What looks incomplete.
fn doubts(out: &mut Evidence, boot: &Boot) {
    let page_bytes = out.page_bytes.as_ref().map_or(4096, |k| k.value);
    for (nid, counted) in &boot.total_pages {
        let ranges = out.nodes.get(nid).and_then(|n| n.ranges.as_ref());
        let Some(ranges) = ranges else { continue };
        let found: u64 = ranges.value.iter().map(|r| r.whole_pages(page_bytes).pages()).sum();
        if found.abs_diff(counted.value) > counted.value / 1000 {
            out.warnings.push(Warning::new(
                "ranges-incomplete",
                format!(
                    "node {nid}: the ranges hold {found} pages, line {} counts {}",
                    counted.line, counted.value
                ),
                "the beginning of the list may be cut off; use the whole log",
            ));
        }
    }
    let has_init = !boot.init.is_empty() || !boot.early.is_empty();
    if has_init && !boot.has_stamps {
        out.warnings.push(Warning::new(
            "no-stamps",
            "the log has no time stamps, or all are zero: no time can be taken from them",
            "",
        ));
    }
    if boot.dropped > 0 {
        out.warnings.push(Warning::new(
            "too-many-facts",
            format!("{} lines beyond all reason were not kept", boot.dropped),
            "check that this is a boot log",
        ));
    }
}
