//! What every struct page must look like after a run, told from the layout alone.
//!
//! [`fates`] says for each range how its pages end; [`expected_page`] gives the 64
//! bytes of one page, slowly and plainly. Neither knows strategies or plans: this is
//! what `exec` compares all executed memory with.

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
    let (head, order) = block_around(span.pages, pfn, sizes.max_order_pages);
    if head == pfn {
        return PageState::FreeHead(order);
    }
    let unit_start = pfn.align_down(sizes.unit_pages);
    let unit = PfnRange { start: unit_start, end: unit_start.offset(sizes.unit_pages) };
    let ragged = unit.intersect(span.pages) != Some(unit);
    if span.fate == Fate::FreedByUnit && ragged && pfn.is_aligned(2) {
        return PageState::FreeMerged;
    }
    PageState::Free
}

/// The block that `pfn` ends in: the largest aligned one around it inside the free
/// range, because buddies merge as long as they can.
fn block_around(free: PfnRange, pfn: Pfn, max_order_pages: u64) -> (Pfn, u32) {
    let orders = (0..=max_order_pages.trailing_zeros()).rev();
    let mut blocks = orders.map(|order| (pfn.align_down(1 << order), order));
    let inside =
        |(head, order): &(Pfn, u32)| free.start <= *head && head.offset(1 << *order) <= free.end;
    blocks.find(inside).unwrap_or((pfn, 0))
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
    use std::collections::BTreeMap;

    #[test]
    fn the_block_around_a_page_is_the_one_that_merging_makes() {
        for (start, end) in [(0, 64), (3, 61), (8, 9), (17, 40)] {
            let free = PfnRange::new(start, end);
            for block in crate::kernel::buddy::blocks(free, 16) {
                for pfn in block.head.0..block.head.0 + block.pages() {
                    let found = block_around(free, Pfn(pfn), 16);
                    assert_eq!(found, (block.head, block.order), "{pfn} in {free}");
                }
            }
        }
    }

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

    /// The kernel's merging, played through one page at a time.
    fn played(piece: PfnRange, max_order: u32) -> BTreeMap<u64, PageState> {
        let mut heads: BTreeMap<u64, u32> = BTreeMap::new();
        let mut state: BTreeMap<u64, PageState> = BTreeMap::new();
        for page in piece.start.0..piece.end.0 {
            let (mut head, mut order) = (page, 0);
            state.insert(page, PageState::Free);
            while order < max_order && heads.get(&(head ^ (1 << order))) == Some(&order) {
                let buddy = head ^ (1 << order);
                heads.remove(&buddy);
                state.insert(buddy, PageState::FreeMerged);
                head = head.min(buddy);
                order += 1;
            }
            heads.insert(head, order);
            state.insert(head, PageState::FreeHead(order));
        }
        state
    }

    #[test]
    fn states_equal_the_merging_played_through() {
        // One unit larger than all ranges: everything is freed page by page.
        let sizes = BlockSizes { max_order_pages: 32, unit_pages: 128 };
        for start in 1..40 {
            for end in start + 1..72 {
                let (nid, zone, fate) = (Nid(0), ZoneKind::Normal, Fate::FreedByUnit);
                let span = FateSpan { nid, pages: PfnRange::new(start, end), zone, fate };
                for (page, expected) in played(span.pages, 5) {
                    assert_eq!(state(&span, Pfn(page), sizes), expected, "{page} in {span:?}");
                }
            }
        }
    }
}
