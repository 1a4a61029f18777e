//! What lies where in physical memory: [`Memory`], drawn from the `memory` of a record.

use crate::record::any::AnyRecord;
use crate::record::memory::{MemmapPlace, MemoryFacts, NodeMemory};
use crate::report::sheet::{Cell, Sheet};
use crate::report::source::{Source, version};
use crate::units::{Bytes, grouped};

/// Nodes of one picture at most.
pub const MOST_NODES: usize = 64;

/// The physical memory of a machine under one kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    /// Machine and kernel.
    pub title: String,
    /// How to read it, and what was left out.
    pub notes: Vec<String>,
    /// One strip for each node.
    pub strips: Vec<Strip>,
}

/// One node.
#[derive(Clone, Debug, PartialEq)]
pub struct Strip {
    /// The node.
    pub nid: u32,
    /// The first byte that is shown.
    pub start: u64,
    /// The first byte behind what is shown.
    pub end: u64,
    /// First page frame and byte of the deferred part.
    pub first_deferred: Option<(u64, u64)>,
    /// What is there, layer by layer; pieces of one layer ascend.
    pub pieces: Vec<Piece>,
}

/// One range of a strip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// What it is.
    pub what: What,
    /// The first byte.
    pub start: u64,
    /// The first byte behind it.
    pub end: u64,
    /// A zone's name, or whose memmap it is.
    pub name: String,
    /// How many ranges were merged into it.
    pub ranges: u64,
}

/// A layer of a strip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// Struct pages by the boot CPU.
    Early,
    /// Struct pages by the node's threads.
    Deferred,
    /// The memmap itself.
    Memmap,
    /// A zone.
    Zone,
}

impl What {
    /// For people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Early => "early: struct pages by the boot CPU",
            Self::Deferred => "deferred: struct pages by the node's threads",
            Self::Memmap => "memmap",
            Self::Zone => "zone",
        }
    }
}

impl Piece {
    /// What it says when pointed at.
    pub fn says(&self, nid: u32) -> String {
        let several = match self.ranges {
            0 | 1 => String::new(),
            ranges => format!(" in {ranges} ranges"),
        };
        let name = if self.name.is_empty() { String::new() } else { format!(" {}", self.name) };
        format!(
            "node {nid}, {}{name}: {:#x} to {:#x}, {}{several}",
            self.what.name(),
            self.start,
            self.end,
            Bytes(self.end.saturating_sub(self.start)),
        )
    }
}

impl Memory {
    /// The memory of a record; `None` where it says nothing about it.
    pub fn of(source: &Source) -> Option<Self> {
        let (facts, machine, kernel) = match &source.record {
            AnyRecord::Compare(r) => (r.memory.as_ref()?, &r.machine.name, &r.kernel),
            AnyRecord::Estimate(e) => (e.memory.as_ref()?, &e.machine.name, &e.kernel),
            _ => return None,
        };
        let kernel = version(kernel).unwrap_or_else(|| "of unknown version".into());
        let mut notes =
            vec!["a place in the model's layout; every strip has the same scale".to_owned()];
        if facts.left_out_ranges > 0 {
            let count = grouped(facts.left_out_ranges);
            notes.push(format!("the record leaves out {count} ranges, the shortest"));
        }
        let nodes = facts.nodes.len();
        if nodes > MOST_NODES {
            notes.push(format!("the first {MOST_NODES} of {nodes} nodes"));
        }
        let strips: Vec<Strip> =
            facts.nodes.iter().take(MOST_NODES).filter_map(|n| strip(facts, n)).collect();
        let title = format!("Physical memory of {machine}, Linux {kernel}");
        (!strips.is_empty()).then_some(Self { title, notes, strips })
    }

    /// The bytes of the longest strip.
    pub fn longest(&self) -> u64 {
        self.strips.iter().map(|s| s.end.saturating_sub(s.start)).max().unwrap_or(0).max(1)
    }

    /// The same with neighbours of one layer merged that are nearer than `least_bytes`
    /// and shorter.
    pub fn thin(mut self, least_bytes: u64) -> Self {
        let count = |m: &Self| m.strips.iter().map(|s| s.pieces.len()).sum::<usize>();
        let before = count(&self);
        for strip in &mut self.strips {
            strip.pieces = merged(std::mem::take(&mut strip.pieces), least_bytes);
        }
        let after = count(&self);
        if after < before {
            self.notes.push(format!(
                "{before} ranges drawn as {after}: neighbours too narrow to be seen are merged"
            ));
        }
        self
    }

    /// Every range as a row.
    pub fn sheet(&self) -> Sheet {
        let columns = [
            ("what", "what"),
            ("name", "name"),
            ("node", "nid"),
            ("start", "start_byte"),
            ("end", "end_byte"),
            ("size", "size_bytes"),
        ];
        let mut sheet = Sheet::new(&format!("Drawn: {}", self.title), &columns, 2);
        let address = |value: u64| Cell::number(value as f64, format!("{value:#x}"));
        for strip in &self.strips {
            let row = |(what, name, start, end): (&str, &str, u64, u64)| {
                let bytes = end.saturating_sub(start);
                vec![
                    what.into(),
                    Cell::Text(name.into()),
                    Cell::number(f64::from(strip.nid), strip.nid.to_string()),
                    address(start),
                    address(end),
                    Cell::number(bytes as f64, Bytes(bytes).to_string()),
                ]
            };
            let pieces = strip.pieces.iter();
            let pieces = pieces.map(|p| (p.what.name(), &*p.name, p.start, p.end));
            sheet.rows.extend(pieces.map(row));
            let first = strip.first_deferred.map(|(pfn, at)| (format!("pfn {pfn:#x}"), at));
            sheet
                .rows
                .extend(first.iter().map(|(name, at)| row(("first_deferred_pfn", name, *at, *at))));
        }
        sheet
    }
}

/// One node's strip; `None` without memory.
fn strip(facts: &MemoryFacts, node: &NodeMemory) -> Option<Strip> {
    let bytes = |pfn: u64| pfn.saturating_mul(facts.page_bytes.max(1));
    let range = |what: What| {
        move |r: &[u64; 2]| Piece {
            what,
            start: bytes(r[0]),
            end: bytes(r[1].max(r[0])),
            name: String::new(),
            ranges: 1,
        }
    };
    let start = node.ranges_pfn.iter().map(|r| bytes(r[0])).min()?;
    let end = node.ranges_pfn.iter().map(|r| bytes(r[1])).max()?;
    let mut pieces: Vec<Piece> = node.early_pfn.iter().map(range(What::Early)).collect();
    pieces.extend(node.deferred_pfn.iter().map(range(What::Deferred)));
    let on_node = facts.memmap.iter().filter(|m| m.on_nid == node.nid);
    pieces.extend(on_node.map(memmap));
    let zones = facts.zones.iter().filter(|zone| zone.nid == node.nid);
    pieces.extend(zones.map(|zone| Piece {
        name: zone.zone.clone(),
        ..range(What::Zone)(&[zone.start_pfn, zone.end_pfn])
    }));
    for piece in &mut pieces {
        piece.start = piece.start.clamp(start, end.max(start));
        piece.end = piece.end.clamp(start, end.max(start));
    }
    pieces.retain(|piece| piece.start < piece.end);
    let first_deferred = node.first_deferred_pfn.map(|pfn| (pfn, bytes(pfn)));
    (start < end).then_some(Strip { nid: node.nid, start, end, first_deferred, pieces })
}

fn memmap(place: &MemmapPlace) -> Piece {
    Piece {
        what: What::Memmap,
        start: place.start,
        end: place.end,
        name: format!("of node {}, {}", place.nid, place.backing),
        ranges: 1,
    }
}

fn merged(pieces: Vec<Piece>, least_bytes: u64) -> Vec<Piece> {
    let mut out: Vec<Piece> = Vec::new();
    for piece in pieces {
        let is_short = |p: &Piece| p.end.saturating_sub(p.start) < least_bytes;
        match out.last_mut() {
            Some(last)
                if last.what == piece.what
                    && last.name == piece.name
                    && is_short(last)
                    && is_short(&piece)
                    && piece.start.saturating_sub(last.end) < least_bytes =>
            {
                last.end = last.end.max(piece.end);
                last.ranges += piece.ranges;
            }
            _ => out.push(piece),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::memory::ZoneFacts;

    // pfn   0  1         10  12        20
    // node 0: EE..........DDDD          early 0..2, deferred 10..12 and 13..20
    fn facts() -> MemoryFacts {
        MemoryFacts {
            page_bytes: 4096,
            nodes: vec![NodeMemory {
                nid: 0,
                ranges_pfn: vec![[0, 20]],
                first_deferred_pfn: Some(10),
                early_pfn: vec![[0, 2]],
                deferred_pfn: vec![[10, 12], [13, 20]],
            }],
            zones: vec![ZoneFacts { nid: 0, zone: "DMA".into(), start_pfn: 0, end_pfn: 20 }],
            memmap: vec![MemmapPlace {
                nid: 1,
                on_nid: 0,
                backing: "pmd".into(),
                start: 8192,
                end: 1 << 40,
            }],
            left_out_ranges: 0,
        }
    }

    #[test]
    fn a_strip_has_every_layer_inside_its_node() {
        let strip = strip(&facts(), &facts().nodes[0]).unwrap();
        let seen: Vec<(What, u64, u64)> =
            strip.pieces.iter().map(|p| (p.what, p.start / 4096, p.end / 4096)).collect();
        let expected = [
            (What::Early, 0, 2),
            (What::Deferred, 10, 12),
            (What::Deferred, 13, 20),
            (What::Memmap, 2, 20),
            (What::Zone, 0, 20),
        ];
        assert_eq!(seen, expected);
        assert_eq!(strip.first_deferred, Some((10, 40960)));
        let says = strip.pieces[3].says(0);
        assert!(says.starts_with("node 0, memmap of node 1, pmd: 0x2000 to"), "{says}");
    }

    #[test]
    fn neighbours_of_one_layer_are_merged() {
        let strip = strip(&facts(), &facts().nodes[0]).unwrap();
        let memory = Memory { title: "t".into(), notes: vec![], strips: vec![strip] };
        let thin = memory.clone().thin(8 * 4096);
        assert_eq!(thin.strips[0].pieces[1].ranges, 2);
        assert_eq!((thin.notes.len(), memory.clone().thin(4096) == memory), (1, true));
    }
}
