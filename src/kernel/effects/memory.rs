//! Memory that the command line takes away or adds: `mem=` and `memmap=`.

use super::Affected;
use crate::kernel::cmdline::{CommandLine, Memmap, MemmapKind};
use crate::kernel::version::KernelModel;
use crate::machine::{Arch, Machine};
use crate::pfn::PhysRange;
use crate::warning::Warning;

/// Applies the options in Linux's order: `memmap=` as it stands on the line, then `mem=`.
pub(super) fn limit(out: &mut Affected, kernel: &KernelModel, line: &CommandLine) {
    let x86 = kernel.arch == Arch::X86_64;
    for part in line.memmap.iter().filter(|_| x86) {
        match part.kind {
            MemmapKind::Usable => add(out, part),
            MemmapKind::Limit => cut_above(&mut out.machine, part.bytes),
            // Reserved, protected and ACPI memory is no RAM to memblock.
            _ => remove(&mut out.machine, range_of(part)),
        }
    }
    match line.mem_bytes {
        // e820__range_remove: an address.
        Some(limit) if x86 => cut_above(&mut out.machine, limit),
        // memblock_enforce_memory_limit: an amount.
        Some(bytes) => cut_above_amount(&mut out.machine, bytes),
        None => {}
    }
}

fn range_of(part: &Memmap) -> PhysRange {
    PhysRange::new(part.start, part.start.saturating_add(part.bytes))
}

fn remove(machine: &mut Machine, hole: PhysRange) {
    for node in &mut machine.nodes {
        node.memory = node.memory.iter().flat_map(|r| without(*r, hole)).collect();
    }
}

/// What is left of `range` below and above `hole`.
fn without(range: PhysRange, hole: PhysRange) -> impl Iterator<Item = PhysRange> {
    let below = PhysRange::new(range.start, range.end.min(hole.start).max(range.start));
    let above = PhysRange::new(range.start.max(hole.end).min(range.end), range.end);
    let outside = range.intersect(hole).is_none();
    let parts = if outside { [Some(range), None] } else { [Some(below), Some(above)] };
    parts.into_iter().flatten().filter(|r| !r.is_empty())
}

fn cut_above(machine: &mut Machine, limit: u64) {
    remove(machine, PhysRange::new(limit, u64::MAX));
}

/// Keeps the lowest `bytes` of memory, wherever they lie.
fn cut_above_amount(machine: &mut Machine, bytes: u64) {
    let mut all: Vec<PhysRange> = machine.nodes.iter().flat_map(|n| n.memory.clone()).collect();
    all.sort();
    let mut left = bytes;
    for range in all {
        if range.bytes() > left {
            cut_above(machine, range.start.saturating_add(left));
            return;
        }
        left -= range.bytes();
    }
}

/// Adds memory where none is, to the node whose memory lies below it.
fn add(out: &mut Affected, part: &Memmap) {
    let mut new = vec![range_of(part)];
    for range in out.machine.nodes.iter().flat_map(|n| &n.memory) {
        new = new.into_iter().flat_map(|piece| without(piece, *range)).collect();
    }
    for piece in new {
        let below = |ranges: &[PhysRange]| {
            ranges.iter().map(|r| r.start).filter(|start| *start <= piece.start).max()
        };
        let owner = out.machine.nodes.iter_mut().max_by_key(|n| below(&n.memory));
        if let Some(node) = owner {
            node.memory.push(piece);
            node.memory.sort();
        }
        out.notes.push(Warning::new(
            "memory-added",
            format!("memmap= adds {piece}; the node below gets it, which is recalled"),
            "check with the log of a boot",
        ));
    }
}
