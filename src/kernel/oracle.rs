//! What every struct page must look like after a run, told from the layout alone.
//!
//! [`fates`] says for each range how its pages end; [`expected_page`] gives the 64
//! bytes of one page, slowly and plainly. Neither knows strategies or plans: this is
//! what `exec` compares all executed memory with.

use super::buddy;
use super::layout::{Layout, NodeLayout, ZoneKind};
use super::struct_page::{PageFormat, PageState, PageWords};
use crate::pfn::{self, Nid, Pfn, PfnRange};

/// How the pages of a range end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Initialised, not freed.
    Initialised,
    /// Initialised and reserved.
    Reserved,
    /// Freed greedily in the largest blocks by `memblock_free_all`.
    FreedAtBoot,
    /// Freed by a deferred worker: whole units, ragged ends page by page.
    FreedByUnit,
}

/// Pages of one node and zone with the same fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FateSpan {
    /// The node.
    pub nid: Nid,
    /// The pages.
    pub pages: PfnRange,
    /// Their zone.
    pub zone: ZoneKind,
    /// How they end.
    pub fate: Fate,
}

/// The fate of every page of `layout`, each page once, by node.
pub fn fates(layout: &Layout, free: bool) -> Vec<FateSpan> {
    layout.nodes.iter().flat_map(|node| node_fates(layout, node, free)).collect()
}

fn node_fates(layout: &Layout, node: &NodeLayout, free: bool) -> Vec<FateSpan> {
    let early = [&node.early.sweep[..], &node.early.reserved, &node.early.holes].concat();
    let all = pfn::normalise([early, node.deferred.clone()].concat());
    let freed_at_boot = if free { node.early_free.clone() } else { Vec::new() };
    let freed_by_unit = if free { node.deferred.clone() } else { Vec::new() };
    let handed = pfn::normalise(
        [node.pg_reserved.clone(), freed_at_boot.clone(), freed_by_unit.clone()].concat(),
    );
    let kinds = [
        (Fate::Reserved, node.pg_reserved.clone()),
        (Fate::FreedAtBoot, freed_at_boot),
        (Fate::FreedByUnit, freed_by_unit),
        (Fate::Initialised, pfn::subtract(&all, &handed)),
    ];
    let mut spans = Vec::new();
    for (fate, pages) in kinds {
        let zoned = layout.zoned(node.nid, &pages);
        spans.extend(zoned.into_iter().map(|(pages, zone)| FateSpan {
            nid: node.nid,
            pages,
            zone,
            fate,
        }));
    }
    spans.sort_by_key(|s| s.pages);
    spans
}

/// The sizes that decide in which pieces pages are freed.
#[derive(Clone, Copy, Debug)]
pub struct BlockSizes {
    /// Pages of the largest buddy block.
    pub max_order_pages: u64,
    /// Pages of a worker's free unit.
    pub unit_pages: u64,
}

/// The state in which `pfn` of `span` ends.
pub fn state(span: &FateSpan, pfn: Pfn, sizes: BlockSizes) -> PageState {
    match span.fate {
        Fate::Initialised => PageState::Initialised,
        Fate::Reserved => PageState::Reserved,
        Fate::FreedAtBoot | Fate::FreedByUnit => freed_state(span, pfn, sizes),
    }
}

fn freed_state(span: &FateSpan, pfn: Pfn, sizes: BlockSizes) -> PageState {
    let block = buddy::blocks(span.pages, sizes.max_order_pages)
        .find(|b| b.head <= pfn && pfn.pages_since(b.head) < b.pages());
    if let Some(block) = block.filter(|b| b.head == pfn) {
        return PageState::FreeHead(block.order);
    }
    let unit_start = pfn.align_down(sizes.unit_pages);
    let unit = PfnRange { start: unit_start, end: unit_start.offset(sizes.unit_pages) };
    let ragged = unit.intersect(span.pages) != Some(unit);
    if span.fate == Fate::FreedByUnit && ragged && pfn.is_aligned(2) {
        return PageState::FreeMerged;
    }
    PageState::Free
}

/// The 64 bytes of `pfn` at the end, a block head's list pointers aside.
pub fn expected_page(
    format: &PageFormat,
    span: &FateSpan,
    pfn: Pfn,
    sizes: BlockSizes,
) -> PageWords {
    format.image(pfn, span.nid, span.zone, state(span, pfn, sizes))
}

#[cfg(test)]
mod tests {
    use super::*;

    // pfn      3            8                16      20
    // span     [ ragged unit | whole unit     | ragged )      unit 8, largest 16
    // blocks   3 | 4..8      | 8..16          | 16..20
    #[test]
    fn ragged_units_leave_marks_and_whole_ones_do_not() {
        let span = FateSpan {
            nid: Nid(0),
            pages: PfnRange::new(3, 20),
            zone: ZoneKind::Normal,
            fate: Fate::FreedByUnit,
        };
        let sizes = BlockSizes { max_order_pages: 16, unit_pages: 8 };
        let at = |pfn| state(&span, Pfn(pfn), sizes);
        assert_eq!(at(3), PageState::FreeHead(0));
        assert_eq!(at(4), PageState::FreeHead(2));
        assert_eq!(at(6), PageState::FreeMerged);
        assert_eq!(at(8), PageState::FreeHead(3));
        assert_eq!(at(10), PageState::Free);
        assert_eq!(at(18), PageState::FreeMerged);
    }
}
