//! Comparing all executed memory with the kernel layer's oracle.
//!
//! [`verify`] reads every byte after a run, in parallel and outside the timed
//! region: fields against [`crate::kernel::oracle`], and the free lists by walking
//! them. A block head's list pointers depend on the order of threads, so they are
//! not compared but followed.

use super::lists::{Chain, sentinel};
use super::memory::{ListKey, Memory, PageMap, zone_at};
use crate::host::line::Line;
use crate::kernel::buddy;
use crate::kernel::layout::Layout;
use crate::kernel::oracle::{BlockSizes, Fate, FateSpan, expected_page, fates};
use crate::kernel::struct_page::{LRU, PageFormat, PageState, PageWords, STRUCT_PAGE_BYTES};
use crate::pfn::{Pfn, PfnRange};
use crate::plan::{BootPlan, PageOp};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// What a run should have left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// The final state of the layout, as every strategy must reach it.
    Final,
    /// What this single operation leaves of deferred pages filled with 0xff.
    OnlyOp(PageOp),
}

/// The first difference that was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// A struct page has other bytes.
    #[error(
        "struct page of pfn {pfn} (node {nid}, copy {copy}) is {found:016x?}, \
         expected {expected:016x?}"
    )]
    Page {
        /// The page.
        pfn: Pfn,
        /// Its node.
        nid: u32,
        /// In which copy.
        copy: usize,
        /// What is there.
        found: Box<PageWords>,
        /// What should be.
        expected: Box<PageWords>,
    },
    /// A free list is not well formed.
    #[error("free list of node {nid}, zone {zone:?}, order {order}, copy {copy}: {what}")]
    List {
        /// The node.
        nid: u32,
        /// The zone.
        zone: crate::kernel::layout::ZoneKind,
        /// The order.
        order: u32,
        /// In which copy.
        copy: usize,
        /// What is wrong with it.
        what: String,
    },
}

/// Compares all of `memory` with what `layout` and `expect` say.
///
/// # Errors
/// The first page or list that differs.
pub fn verify(
    memory: &Memory,
    layout: &Layout,
    plan: &BootPlan,
    expect: Expect,
) -> Result<(), Mismatch> {
    let checker = Checker { format: &plan.format, sizes: sizes(plan), expect };
    // A probe frees nothing, but its pages are those that would be freed by unit.
    let spans = fates(layout, plan.free || expect != Expect::Final);
    let copies = memory.copies();
    for (index, area) in memory.areas.iter().enumerate() {
        let nid = area.mapping.nid;
        let own: Vec<FateSpan> = spans.iter().copied().filter(|s| s.nid == nid).collect();
        for (copy, lines) in copies[index].iter().enumerate() {
            checker.pages(lines, &area.pages, &own, copy)?;
            if expect == Expect::Final && plan.free {
                let lists = lists_of(&memory.lists, index, copy);
                checker.lists(lines, &area.pages, &own, copy, &lists)?;
            }
        }
    }
    Ok(())
}

fn sizes(plan: &BootPlan) -> BlockSizes {
    let freeing = plan.freeing;
    BlockSizes { max_order_pages: freeing.max_order_pages, unit_pages: freeing.unit_pages }
}

fn lists_of(
    all: &BTreeMap<ListKey, Chain>,
    area: usize,
    copy: usize,
) -> BTreeMap<(usize, u32), Chain> {
    let own = all.iter().filter(|((a, c, _, _), _)| *a == area && *c == copy);
    own.map(|((_, _, zone, order), chain)| ((*zone, *order), *chain)).collect()
}

struct Checker<'c> {
    format: &'c PageFormat,
    sizes: BlockSizes,
    expect: Expect,
}

/// A part of a span that one thread checks, with its lines.
struct Part<'a> {
    span: FateSpan,
    pages: PfnRange,
    lines: &'a [Line],
}

/// Pages that one thread checks at a time; a multiple of every block size.
const PART_PAGES: u64 = 1 << 16;

impl Checker<'_> {
    fn pages(
        &self,
        lines: &[Line],
        pages: &PageMap,
        spans: &[FateSpan],
        copy: usize,
    ) -> Result<(), Mismatch> {
        let parts: Vec<Part<'_>> =
            spans.iter().flat_map(|span| parts(span, lines, pages)).collect();
        let worst = parts.par_iter().find_map_first(|part| self.part(part));
        match worst {
            None => Ok(()),
            Some((pfn, found, expected)) => {
                let nid = spans.first().map_or(0, |s| s.nid.0);
                let (found, expected) = (Box::new(found), Box::new(expected));
                Err(Mismatch::Page { pfn, nid, copy, found, expected })
            }
        }
    }

    /// The first page of a part that differs.
    fn part(&self, part: &Part<'_>) -> Option<(Pfn, PageWords, PageWords)> {
        if let Expect::OnlyOp(op) = self.expect {
            let image = only_op(self.format, &part.span, part.pages.start, op)?;
            let step = if op == PageOp::Zero { 0 } else { STRUCT_PAGE_BYTES };
            return first_off_ramp(part.lines, part.pages.start, image, step);
        }
        match part.span.fate {
            Fate::Initialised | Fate::Reserved => self.uniform(part),
            Fate::FreedAtBoot | Fate::FreedByUnit => self.freed(part),
        }
    }

    /// Pages whose images differ in nothing but their own address.
    fn uniform(&self, part: &Part<'_>) -> Option<(Pfn, PageWords, PageWords)> {
        let image = expected_page(self.format, &part.span, part.pages.start, self.sizes);
        first_off_ramp(part.lines, part.pages.start, image, STRUCT_PAGE_BYTES)
    }

    /// Freed pages, block by block: the head apart, the rest in a row.
    fn freed(&self, part: &Part<'_>) -> Option<(Pfn, PageWords, PageWords)> {
        let span = &part.span;
        for block in buddy::blocks(part.pages, self.sizes.max_order_pages) {
            let from = usize::try_from(block.head.pages_since(part.pages.start)).ok()?;
            let lines = part.lines.get(from..)?;
            let head = expected_page(self.format, span, block.head, self.sizes);
            let found = lines.first()?.words();
            if without_lru(found) != without_lru(head) {
                return Some((block.head, found, head));
            }
            let plain = |pfn| self.format.image(pfn, span.nid, span.zone, PageState::Free);
            let image = plain(block.head.offset(1));
            let tail = lines.get(1..1 << block.order)?;
            let wrong = match self.ragged(span, block.head) {
                true => self.ragged_tail(span, tail, block.head.offset(1)),
                false => first_off_ramp(tail, block.head.offset(1), image, STRUCT_PAGE_BYTES),
            };
            if wrong.is_some() {
                return wrong;
            }
        }
        None
    }

    /// The rest of a block that was freed page by page, with marks on some of them.
    fn ragged_tail(
        &self,
        span: &FateSpan,
        tail: &[Line],
        first: Pfn,
    ) -> Option<(Pfn, PageWords, PageWords)> {
        tail.iter().zip(first.0..).map(|(line, pfn)| (line.words(), Pfn(pfn))).find_map(
            |(found, pfn)| {
                let expected = expected_page(self.format, span, pfn, self.sizes);
                (found != expected).then_some((pfn, found, expected))
            },
        )
    }

    /// Whether the unit around `pfn` was freed page by page.
    fn ragged(&self, span: &FateSpan, pfn: Pfn) -> bool {
        let start = pfn.align_down(self.sizes.unit_pages);
        let end = start.offset(self.sizes.unit_pages);
        span.fate == Fate::FreedByUnit && (start < span.pages.start || end > span.pages.end)
    }

    /// Walks every list and holds it against the blocks that must be on it.
    fn lists(
        &self,
        lines: &[Line],
        pages: &PageMap,
        spans: &[FateSpan],
        copy: usize,
        lists: &BTreeMap<(usize, u32), Chain>,
    ) -> Result<(), Mismatch> {
        let nid = spans.first().map_or(crate::pfn::Nid(0), |s| s.nid);
        let mut wanted: BTreeMap<(usize, u32), u64> = BTreeMap::new();
        for span in spans.iter().filter(|s| is_freed(s.fate)) {
            for block in buddy::blocks(span.pages, self.sizes.max_order_pages) {
                *wanted.entry((span.zone as usize, block.order)).or_default() += 1;
            }
        }
        let keys: std::collections::BTreeSet<_> =
            wanted.keys().chain(lists.keys()).copied().collect();
        for key in keys {
            let wrong = |what: String| Mismatch::List {
                nid: nid.0,
                zone: zone_at(key.0),
                order: key.1,
                copy,
                what,
            };
            let want = wanted.get(&key).copied().unwrap_or(0);
            let Some(chain) = lists.get(&key) else {
                return Err(wrong(format!("missing; {want} blocks belong on it")));
            };
            let end = sentinel(nid, zone_at(key.0), key.1);
            let seen = self.walk(lines, pages, *chain, end, key.1).map_err(wrong)?;
            if seen != want || chain.count != want {
                return Err(wrong(format!("{seen} blocks linked, {want} belong on it")));
            }
        }
        Ok(())
    }

    /// Follows a list from its first head to its end; counts the heads.
    ///
    /// Every step checks the way back, so no head can be on the list twice.
    fn walk(
        &self,
        lines: &[Line],
        pages: &PageMap,
        chain: Chain,
        end: u64,
        order: u32,
    ) -> Result<u64, String> {
        let (mut at, mut before, mut seen) = (chain.first, end, 0);
        loop {
            let line = pages.line_index(at).and_then(|i| lines.get(i));
            let words = line.ok_or_else(|| format!("leads to pfn {at} outside"))?.words();
            let head_mark = words[crate::kernel::struct_page::COUNTS];
            if head_mark != u64::from(self.format.buddy_mark)
                || words[crate::kernel::struct_page::PRIVATE] != u64::from(order)
            {
                return Err(format!("pfn {at} on it is not the head of such a block"));
            }
            if words[LRU[1]] != before {
                return Err(format!("pfn {at} does not point back to where the list came from"));
            }
            seen += 1;
            if words[LRU[0]] == end {
                return if at == chain.last { Ok(seen) } else { Err(format!("ends at pfn {at}")) };
            }
            before = self.format.lru_address(at);
            let next = self.format.pfn_of_lru(words[LRU[0]]);
            at = next.ok_or_else(|| format!("pfn {at} points to no struct page"))?;
            if seen > chain.count {
                return Err("longer than the blocks that were linked".into());
            }
        }
    }
}

const fn is_freed(fate: Fate) -> bool {
    matches!(fate, Fate::FreedAtBoot | Fate::FreedByUnit)
}

/// Cuts a span into parts for threads, with the lines that belong to them.
fn parts<'a>(
    span: &FateSpan,
    lines: &'a [Line],
    pages: &'a PageMap,
) -> impl Iterator<Item = Part<'a>> {
    let span = *span;
    // A span may cross ranges of the area that touch in no page frame.
    let ranges = pages.ranges().iter().filter_map(move |r| r.intersect(span.pages));
    ranges.flat_map(move |range| {
        let cut = crate::kernel::padata::chunks_of(range, PART_PAGES, false);
        cut.filter_map(move |part| {
            let from = pages.line_index(part.start)?;
            let to = from + usize::try_from(part.pages()).ok()?;
            Some(Part { span, pages: part, lines: lines.get(from..to)? })
        })
    })
}

/// The first line that is not `image` with its list pointers advanced by `lru_step`.
///
/// Differences are gathered over a batch of lines before anything branches on them:
/// this reads all memory after every run, and must do so at memory speed.
fn first_off_ramp(
    lines: &[Line],
    first: Pfn,
    mut image: PageWords,
    lru_step: u64,
) -> Option<(Pfn, PageWords, PageWords)> {
    const BATCH: usize = 64;
    let mut at = first;
    for batch in lines.chunks(BATCH) {
        let begin = image;
        let mut differences = 0;
        for line in batch {
            let found = line.words();
            differences |= (0..8).fold(0, |bits, w| bits | (found[w] ^ image[w]));
            step_lru(&mut image, lru_step);
        }
        if differences != 0 {
            return first_difference_in(batch, at, begin, lru_step);
        }
        at = at.offset(batch.len() as u64);
    }
    None
}

/// The first of a few lines that differs.
fn first_difference_in(
    lines: &[Line],
    first: Pfn,
    mut image: PageWords,
    lru_step: u64,
) -> Option<(Pfn, PageWords, PageWords)> {
    for (line, pfn) in lines.iter().zip(first.0..) {
        let found = line.words();
        if found != image {
            return Some((Pfn(pfn), found, image));
        }
        step_lru(&mut image, lru_step);
    }
    None
}

/// What a single operation leaves of a page that was filled with 0xff.
/// `None` where the operation did not come: only deferred pages get one.
fn only_op(format: &PageFormat, span: &FateSpan, pfn: Pfn, op: PageOp) -> Option<PageWords> {
    if span.fate != Fate::FreedByUnit {
        return None;
    }
    let image = format.image(pfn, span.nid, span.zone, PageState::Initialised);
    Some(match op {
        PageOp::Zero => [0; 8],
        PageOp::Fields => {
            let mut words = [u64::MAX; 8];
            for w in [0, LRU[0], LRU[1], crate::kernel::struct_page::COUNTS] {
                words[w] = image[w];
            }
            words
        }
        _ => image,
    })
}

fn step_lru(image: &mut PageWords, lru_step: u64) {
    for w in LRU {
        image[w] = image[w].wrapping_add(lru_step);
    }
}

fn without_lru(mut words: PageWords) -> PageWords {
    for w in LRU {
        words[w] = 0;
    }
    words
}
