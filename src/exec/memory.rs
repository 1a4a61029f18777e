//! The buffer in which a machine's memmap is executed.
//!
//! [`Memory`] has one bound arena per host node that is used. Every node of the
//! executed machine gets an [`Area`] in one of them: its struct pages in page frame
//! order, without the holes, as many copies one after another as were asked for.
//! [`Mapping`] says which host node and CPUs stand for which node.

use super::lists::Chain;
use super::ops::Piece;
use super::{ExecError, Stop};
use crate::host::HostError;
use crate::host::arena::{Arena, Residency};
use crate::host::line::Line;
use crate::host::topology::HostTopology;
use crate::kernel::layout::ZoneKind;
use crate::pfn::{Nid, Pfn, PfnRange};
use crate::plan::Span;
use crate::progress::{Progress, Unit};
use crate::record::Placement;
use crate::warning::Warning;
use std::collections::BTreeMap;
use std::mem;
use std::time::Instant;

/// Which part of the host stands for one node of the executed machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The machine's node.
    pub nid: Nid,
    /// The host node whose memory holds its struct pages.
    pub host_nid: u32,
    /// The host CPUs its workers run on, in pinning order.
    pub cpus: Vec<u32>,
    /// Which nodes run at the same time: nodes of the same round do.
    pub round: u32,
}

/// One node's struct pages in the buffer.
#[derive(Clone, Debug)]
pub struct Area {
    /// Who works on them.
    pub mapping: Mapping,
    /// Its pages in the order of its lines.
    pub pages: PageMap,
    /// Lines of one copy.
    pub lines: usize,
    arena: usize,
    first_line: usize,
}

/// Pages in ascending order, laid out without the holes between them.
#[derive(Clone, Debug, Default)]
pub struct PageMap {
    ranges: Vec<PfnRange>,
    /// Pages before each range.
    before: Vec<u64>,
}

impl PageMap {
    /// The map of normalised `ranges`.
    pub fn new(ranges: Vec<PfnRange>) -> Self {
        let before = ranges.iter().scan(0, |sum, r| {
            let before = *sum;
            *sum += r.pages();
            Some(before)
        });
        Self { before: before.collect(), ranges }
    }

    /// The ranges, ascending.
    pub fn ranges(&self) -> &[PfnRange] {
        &self.ranges
    }

    /// The index of a page's line.
    pub fn line_index(&self, pfn: Pfn) -> Option<usize> {
        let at = self.ranges.partition_point(|r| r.end <= pfn);
        let range = self.ranges.get(at).filter(|r| r.contains(pfn))?;
        usize::try_from(self.before[at] + pfn.pages_since(range.start)).ok()
    }
}

/// What identifies a free list: area, copy, zone index, order.
pub type ListKey = (usize, usize, usize, u32);

/// All executed struct pages.
#[derive(Debug)]
pub struct Memory {
    /// The nodes' areas, ascending by node.
    pub areas: Vec<Area>,
    /// How often every area is laid out.
    pub copies: usize,
    /// The lists that the last run left.
    pub lists: BTreeMap<ListKey, Chain>,
    arenas: Vec<(u32, Arena)>,
}

/// How the first touch of the buffer went.
#[derive(Clone, Debug, Default)]
pub struct FirstTouch {
    /// How long it took, in ns.
    pub wall_ns: u64,
    /// Where the bytes really lie, by host node.
    pub placement: Vec<Placement>,
    /// What went not as asked.
    pub warnings: Vec<Warning>,
}

impl Memory {
    /// Maps the arenas for `nodes` (mapping and pages of each); touches nothing yet.
    ///
    /// # Errors
    /// When the address space cannot be had.
    pub fn map(nodes: Vec<(Mapping, Vec<PfnRange>)>, copies: usize) -> Result<Self, ExecError> {
        let mut lines_of: BTreeMap<u32, usize> = BTreeMap::new();
        let mut areas = Vec::with_capacity(nodes.len());
        for (mapping, pages) in nodes {
            let lines = usize::try_from(crate::pfn::total_pages(&pages)).unwrap_or(usize::MAX);
            let used = lines_of.entry(mapping.host_nid).or_default();
            let first_line = *used;
            *used = used.saturating_add(lines.saturating_mul(copies));
            let pages = PageMap::new(pages);
            areas.push(Area { mapping, pages, lines, arena: 0, first_line });
        }
        let mut arenas = Vec::new();
        for (host_nid, lines) in lines_of {
            arenas.push((host_nid, Arena::map(lines)?));
        }
        for area in &mut areas {
            let at = arenas.iter().position(|(nid, _)| *nid == area.mapping.host_nid);
            area.arena = at.unwrap_or(0);
        }
        Ok(Self { areas, copies, lists: BTreeMap::new(), arenas })
    }

    /// Bytes of all arenas.
    pub fn bytes(&self) -> u64 {
        self.arenas.iter().map(|(_, a)| mem::size_of_val(a.lines()) as u64).sum()
    }

    /// Bytes of the buffer that lie in 2 MiB pages, where the kernel tells.
    pub fn huge_page_bytes(&self) -> Option<u64> {
        self.arenas.iter().map(|(_, a)| a.huge_page_bytes()).sum()
    }

    /// Binds every arena to its node, faults it in there, and reads back where it lies.
    ///
    /// A refused binding (as in containers) is a warning, and placement is then unknown.
    ///
    /// # Errors
    /// When memory runs out, binding fails otherwise, or `stop` says so.
    pub fn fault_in(
        &mut self,
        topo: &HostTopology,
        progress: &dyn Progress,
        stop: Stop<'_>,
    ) -> Result<FirstTouch, ExecError> {
        let mut out = FirstTouch::default();
        progress.begin("first touch", self.bytes(), Unit::Bytes);
        let started = Instant::now();
        for (host_nid, arena) in &mut self.arenas {
            let bound = bound(arena.bind(topo, *host_nid), &mut out.warnings)?;
            let cpus = cpus_of(topo, *host_nid);
            arena.fault_in(topo, &cpus, &|bytes| progress.advance(bytes), stop)?;
            out.placement.push(placement(arena, topo, *host_nid, bound, &mut out.warnings)?);
        }
        out.wall_ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        progress.end();
        Ok(out)
    }

    /// The struct pages of every area, copy by copy, as exclusive slices.
    pub fn copies_mut(&mut self) -> Vec<Vec<&mut [Line]>> {
        let mut rest: Vec<(usize, &mut [Line])> =
            self.arenas.iter_mut().map(|(_, a)| (0, a.lines_mut())).collect();
        let mut out = Vec::with_capacity(self.areas.len());
        // Areas of one arena were laid out in this very order.
        for area in &self.areas {
            let (_, lines) = &mut rest[area.arena];
            let mut copies = Vec::with_capacity(self.copies);
            for _ in 0..self.copies {
                let (copy, left) = mem::take(lines).split_at_mut(area.lines);
                *lines = left;
                copies.push(copy);
            }
            out.push(copies);
        }
        out
    }

    /// The struct pages of every area, copy by copy, for reading.
    pub fn copies(&self) -> Vec<Vec<&[Line]>> {
        let copy = |area: &Area, copy: usize| {
            let from = area.first_line + copy * area.lines;
            &self.arenas[area.arena].1.lines()[from..from + area.lines]
        };
        let all = |area: &Area| (0..self.copies).map(|c| copy(area, c)).collect();
        self.areas.iter().map(all).collect()
    }

    /// All arenas with the host node they lie on.
    pub fn arenas_mut(&mut self) -> impl Iterator<Item = (u32, &mut [Line])> {
        self.arenas.iter_mut().map(|(nid, arena)| (*nid, arena.lines_mut()))
    }
}

/// Whether an arena is bound, from what came of binding it: `false`, with a warning,
/// when this system does not allow binding.
fn bound(result: Result<(), HostError>, warnings: &mut Vec<Warning>) -> Result<bool, ExecError> {
    match result {
        Ok(()) => Ok(true),
        Err(error @ HostError::BindRefused { .. }) => {
            let remedy = "allow mbind (in containers: its seccomp profile); figures go on \
                          with unknown placement";
            warnings.push(Warning::new("bind-refused", error.to_string(), remedy));
            Ok(false)
        }
        Err(other) => Err(other.into()),
    }
}

fn placement(
    arena: &Arena,
    topo: &HostTopology,
    host_nid: u32,
    bound: bool,
    warnings: &mut Vec<Warning>,
) -> Result<Placement, ExecError> {
    let bytes = mem::size_of_val(arena.lines()) as u64;
    // Where unbound pages lie now says nothing about where they will lie: the kernel
    // may move them.
    let found = if bound { located(arena.residency(topo, host_nid), warnings) } else { None };
    let found = found.map(|on_node| on_node.min(bytes));
    match found {
        Some(on_node) if bound && on_node < bytes => {
            Err(ExecError::Misplaced { nid: host_nid, bytes, on_node_bytes: on_node })
        }
        _ => Ok(Placement { host_nid, bytes, bound, on_node_bytes: found }),
    }
}

/// Bytes on the node, from what came of asking; unknown, with a warning, on failure.
fn located(result: Result<Residency, HostError>, warnings: &mut Vec<Warning>) -> Option<u64> {
    match result {
        Ok(residency) => Some(residency.on_node_bytes),
        Err(error) => {
            let remedy = "allow move_pages to have placement read back";
            warnings.push(Warning::new("placement-unknown", error.to_string(), remedy));
            None
        }
    }
}

/// The CPUs that touch and check an arena: its node's, or all there are.
pub fn cpus_of(topo: &HostTopology, host_nid: u32) -> Vec<u32> {
    let nodes = topo.nodes();
    let own = nodes.iter().find(|n| n.nid == host_nid).map(|n| n.cpus.clone());
    own.filter(|cpus| !cpus.is_empty()).unwrap_or_else(|| topo.allowed_cpus())
}

/// Cuts one copy of an area into the pieces that `spans` name.
///
/// `pages` are the area's pages in the order of its lines; both lists ascend, and
/// every span lies inside the pages.
pub fn carve<'a>(lines: &'a mut [Line], pages: &PageMap, spans: &[Span]) -> Vec<Piece<'a>> {
    let mut rest = lines;
    let mut pieces = Vec::with_capacity(spans.len());
    let mut spans = spans.iter().copied().peekable();
    for &range in pages.ranges() {
        let mut at = range.start;
        while let Some(span) = spans.next_if(|s| s.pages.start < range.end) {
            let end = span.pages.end.min(range.end);
            drop_lines(&mut rest, span.pages.start.pages_since(at));
            let lines = take_lines(&mut rest, end.pages_since(span.pages.start));
            let pages = PfnRange { start: span.pages.start, end };
            pieces.push(Piece { pages, zone: span.zone, lines });
            at = end;
        }
        drop_lines(&mut rest, range.end.pages_since(at));
    }
    pieces
}

fn take_lines<'a>(rest: &mut &'a mut [Line], pages: u64) -> &'a mut [Line] {
    let count = usize::try_from(pages).unwrap_or(usize::MAX).min(rest.len());
    let (head, left) = mem::take(rest).split_at_mut(count);
    *rest = left;
    head
}

fn drop_lines(rest: &mut &mut [Line], pages: u64) {
    take_lines(rest, pages);
}

/// The zone with this index.
pub fn zone_at(index: usize) -> ZoneKind {
    [ZoneKind::Dma, ZoneKind::Dma32, ZoneKind::Normal, ZoneKind::Movable][index % 4]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: u64, end: u64) -> Span {
        Span { pages: PfnRange::new(start, end), zone: ZoneKind::Normal }
    }

    // pages   10        14     20          26
    // area    [=========)      [===========)        lines 0..4, 4..10
    // spans      [12,14)       [21,22) [24,26)
    #[test]
    fn carving_finds_the_lines_of_spans_across_holes() {
        let pages = PageMap::new(vec![PfnRange::new(10, 14), PfnRange::new(20, 26)]);
        let mut lines: Vec<Line> = (0..10).map(|_| Line::default()).collect();
        for (i, line) in lines.iter_mut().enumerate() {
            line.set_word::<0>(i as u64);
        }
        let pieces = carve(&mut lines, &pages, &[span(12, 14), span(21, 22), span(24, 26)]);
        let firsts: Vec<u64> = pieces.iter().map(|p| p.lines[0].word::<0>()).collect();
        assert_eq!(firsts, [2, 5, 8]);
        assert_eq!(pieces.iter().map(|p| p.lines.len()).collect::<Vec<_>>(), [2, 1, 2]);
        assert_eq!(pages.line_index(Pfn(24)), Some(8));
        assert_eq!(pages.line_index(Pfn(15)), None);
    }

    #[test]
    fn a_refused_binding_is_a_warning_and_any_other_failure_an_error() {
        let mut warnings = Vec::new();
        let source = || std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        assert!(bound(Ok(()), &mut warnings).unwrap() && warnings.is_empty());
        let refused = HostError::BindRefused { nid: 3, source: source() };
        assert!(!bound(Err(refused), &mut warnings).unwrap());
        assert_eq!(warnings.len(), 1);
        assert_eq!(warnings[0].code, "bind-refused");
        assert!(warnings[0].message.contains("node 3"), "{}", warnings[0]);
        let failed = HostError::Bind { nid: 3, source: source().into() };
        assert!(bound(Err(failed), &mut warnings).is_err());
        assert_eq!(warnings.len(), 1);
    }

    #[test]
    fn unbound_memory_is_used_and_its_placement_unknown() {
        let topo = HostTopology::load().unwrap();
        let nid = topo.nodes().first().unwrap().nid;
        let mut arena = Arena::map(4096).unwrap();
        arena.fault_in(&topo, &cpus_of(&topo, nid), &|_| {}, &|| false).unwrap();
        let mut warnings = Vec::new();
        let place = placement(&arena, &topo, nid, false, &mut warnings).unwrap();
        let bytes = 4096 * 64;
        assert_eq!(place, Placement { host_nid: nid, bytes, bound: false, on_node_bytes: None });
    }

    #[test]
    fn a_refused_question_leaves_placement_unknown() {
        let mut warnings = Vec::new();
        let there = Residency { bytes: 128, on_node_bytes: 64 };
        assert_eq!(located(Ok(there), &mut warnings), Some(64));
        let source = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        assert_eq!(located(Err(HostError::LocateRefused(source)), &mut warnings), None);
        assert_eq!(warnings[0].code, "placement-unknown");
    }
}
