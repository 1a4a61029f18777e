//! `numa=fake=`: nodes that exist for the kernel alone.
//!
//! [`split`] follows `arch/x86/mm/numa_emulation.c` (v6.1; from 6.12 on
//! `mm/numa_emulation.c`). The form with a count was captured (6.1, four nodes of one);
//! the forms with a size and with `U` are recalled.

use super::Affected;
use crate::kernel::cmdline::NumaFake;
use crate::kernel::version::KernelModel;
use crate::machine::{Machine, Node};
use crate::pfn::{Nid, PhysRange};
use crate::warning::Warning;
use std::collections::BTreeMap;

/// Fake nodes are cut in steps of this many bytes (`FAKE_NODE_MIN_SIZE`).
const STEP: u64 = 32 << 20;

/// The end of `ZONE_DMA32`.
const DMA32_END: u64 = 1 << 32;

/// A part of a real node that may have holes (`struct numa_memblk`).
#[derive(Clone, Copy, Debug)]
struct Block {
    nid: Nid,
    range: PhysRange,
}

/// A fake node's share of a real one.
struct Piece {
    fake: u32,
    real: Nid,
    range: PhysRange,
}

/// Replaces the nodes of the machine by fake ones.
pub(super) fn split(out: &mut Affected, kernel: &KernelModel, fake: NumaFake) {
    let most = 1u32 << kernel.config.nodes_shift.min(10);
    let mut emulation = Emulation {
        memory: memory_of(&out.machine),
        blocks: blocks_of(&out.machine),
        pieces: Vec::new(),
        next: 0,
    };
    let done = match fake {
        NumaFake::Nodes(count) => emulation.by_count(count.min(most)),
        NumaFake::Bytes(bytes) => emulation.by_size(bytes, most),
        NumaFake::PerNode(count) => emulation.per_node(count.min(most), most),
    };
    if !done || emulation.pieces.is_empty() {
        out.notes.push(Warning::new(
            "numa-fake-failed",
            "numa=fake= does nothing: a node would have less than 32 MiB",
            "ask for fewer nodes",
        ));
        return;
    }
    if !matches!(fake, NumaFake::Nodes(_)) {
        out.notes.push(Warning::new(
            "recalled",
            "numa=fake= with a size or with U is recalled, not captured",
            "check with the log of a boot",
        ));
    }
    rebuild(out, &emulation.pieces);
    if out.machine.nodes.len() > 1 {
        out.notes.push(Warning::new(
            "fake-nodes-share-cpus",
            "fake nodes of one real node share all its CPUs, so that their threads compete",
            "this is what the kernel does; read totals, not single nodes",
        ));
    }
}

fn memory_of(machine: &Machine) -> Vec<PhysRange> {
    let mut out: Vec<_> = machine.nodes.iter().flat_map(|n| n.memory.clone()).collect();
    out.sort();
    out
}

/// `numa_cleanup_meminfo`: ranges of a node join when no other node lies between. The
/// lowest block starts at 0, as in the firmware's tables and in the node that stands in
/// for missing ones.
fn blocks_of(machine: &Machine) -> Vec<Block> {
    let mut all: Vec<Block> = Vec::new();
    for node in &machine.nodes {
        all.extend(node.memory.iter().map(|&range| Block { nid: node.nid, range }));
    }
    all.sort_by_key(|b| b.range);
    let mut out: Vec<Block> = Vec::new();
    for block in all {
        match out.last_mut() {
            Some(last) if last.nid == block.nid => last.range.end = block.range.end,
            _ => out.push(block),
        }
    }
    if let Some(first) = out.first_mut() {
        first.range.start = 0;
    }
    out
}

struct Emulation {
    memory: Vec<PhysRange>,
    /// What is not given away yet; a block that is used up goes.
    blocks: Vec<Block>,
    pieces: Vec<Piece>,
    next: u32,
}

impl Emulation {
    /// Bytes of memory in `start..end`: its length less `mem_hole_size`.
    fn present(&self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        let window = PhysRange::new(start, end);
        self.memory.iter().filter_map(|r| r.intersect(window)).map(PhysRange::bytes).sum()
    }

    fn all_bytes(&self) -> u64 {
        self.memory.iter().map(|r| r.bytes()).sum()
    }

    /// The real nodes that still have a block, ascending.
    fn real_nodes(&self) -> Vec<Nid> {
        let mut out: Vec<Nid> = self.blocks.iter().map(|b| b.nid).collect();
        out.sort();
        out.dedup();
        out
    }

    /// `split_nodes_interleave`: so many nodes in all, turn by turn over the real ones.
    fn by_count(&mut self, count: u32) -> bool {
        let share = self.all_bytes() / u64::from(count.max(1));
        let size = share - share % STEP;
        if size == 0 {
            return false;
        }
        let larger = (share % STEP) * u64::from(count) / STEP;
        while !self.blocks.is_empty() {
            for nid in self.real_nodes() {
                let first = size + if u64::from(self.next) < larger { STEP } else { 0 };
                self.take(nid, first, size, count);
            }
        }
        true
    }

    /// `split_nodes_size_interleave`: nodes of at least `bytes`.
    fn by_size(&mut self, bytes: u64, most: u32) -> bool {
        let least = (self.all_bytes() / u64::from(most)).next_multiple_of(STEP);
        let size = bytes.max(least) / STEP * STEP;
        if size == 0 {
            return false;
        }
        while !self.blocks.is_empty() {
            for nid in self.real_nodes() {
                self.take(nid, size, size, most);
            }
        }
        true
    }

    /// `split_nodes_size_interleave_uniform`: every block in `count` parts by address,
    /// holes included.
    fn per_node(&mut self, count: u32, most: u32) -> bool {
        for block in std::mem::take(&mut self.blocks) {
            let size = block.range.bytes() / u64::from(count.max(1)) / STEP * STEP;
            if size == 0 {
                return false;
            }
            for i in 0..u64::from(count) {
                let start = block.range.start + i * size;
                let end = if i + 1 == u64::from(count) { block.range.end } else { start + size };
                self.give(block.nid, PhysRange::new(start, end), most);
            }
        }
        true
    }

    /// One fake node from the first block of `nid`: `first` bytes by address, more
    /// while less than `size` is memory, and the rest where that is too small.
    fn take(&mut self, nid: Nid, first: u64, size: u64, count: u32) {
        let Some(at) = self.blocks.iter().position(|b| b.nid == nid) else { return };
        let PhysRange { start, end: limit } = self.blocks[at].range;
        let mut end = start.saturating_add(first);
        while self.present(start, end) < size {
            end += STEP;
            if end > limit {
                end = limit;
                break;
            }
        }
        if end < DMA32_END && self.present(end, DMA32_END) < STEP {
            end = DMA32_END;
        }
        if self.present(end, limit) < size {
            end = limit;
        }
        let end = end.min(limit);
        self.give(nid, PhysRange::new(start, end), count);
        self.blocks[at].range.start = end;
        if end >= limit {
            self.blocks.remove(at);
        }
    }

    fn give(&mut self, real: Nid, range: PhysRange, count: u32) {
        let fake = self.next % count.max(1);
        self.next = self.next.saturating_add(1);
        self.pieces.push(Piece { fake, real, range });
    }
}

/// Makes nodes of the pieces; each has all CPUs of the real node of its first piece
/// (`numa_add_cpu`), and its distances.
fn rebuild(out: &mut Affected, pieces: &[Piece]) {
    let real = out.machine.clone();
    let mut nodes: BTreeMap<u32, Node> = BTreeMap::new();
    let mut origins = BTreeMap::new();
    for piece in pieces {
        let Some(from) = real.node(piece.real) else { continue };
        let nid = Nid(piece.fake);
        origins.entry(nid).or_insert(piece.real);
        let inside = from.memory.iter().filter_map(|r| r.intersect(piece.range));
        let inside: Vec<PhysRange> = inside.filter(|r| !r.is_empty()).collect();
        let fresh = || Node { nid, memory: Vec::new(), cpus: from.cpus.clone(), ..from.clone() };
        nodes.entry(piece.fake).or_insert_with(fresh).memory.extend(inside);
    }
    nodes.values_mut().for_each(|n| n.memory.sort());
    out.machine.nodes = nodes.into_values().collect();
    let row = |a: Nid| origins.values().map(|b| real.distance(a, *b)).collect::<Vec<u32>>();
    out.machine.distances = Some(origins.values().map(|a| row(*a)).collect());
    let first_fake = |nid: Nid| origins.iter().find(|(_, r)| **r == nid).map(|(f, _)| *f);
    for cpu in &mut out.machine.cpus {
        cpu.nid = first_fake(cpu.nid).unwrap_or(cpu.nid);
    }
    let whose = |n: Nid| origins.get(&n).and_then(|r| out.origins.get(r)).copied().unwrap_or(n);
    out.origins = origins.keys().map(|n| (*n, whose(*n))).collect();
}
