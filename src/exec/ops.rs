//! The page operations, as they are really executed on struct pages.
//!
//! [`Ops`] carries out the steps of one [`crate::plan::Work`] on [`Piece`]s of
//! buffer. The writers that stand for compiled kernel code go through [`PageSink`],
//! so that a test can count their stores; everything streamed goes through the store
//! kernels of `host`.

use super::lists::{Chain, NodeLists, Run};
use crate::host::line::Line;
use crate::host::store::{ImageStore, Ramp, Store, memset_call};
use crate::kernel::buddy;
use crate::kernel::layout::ZoneKind;
use crate::kernel::struct_page::{
    COUNTS, FLAGS, LIST_POISON, LRU, PRIVATE, PageFormat, PageState, STRUCT_PAGE_BYTES,
};
use crate::pfn::{Nid, Pfn, PfnRange};
use crate::plan::{FreeMode, Freeing, Grain, PageOp};
use std::mem;

/// Contiguous struct pages of one zone, exclusively held.
#[derive(Debug)]
pub struct Piece<'a> {
    /// Which pages they describe.
    pub pages: PfnRange,
    /// Their zone.
    pub zone: ZoneKind,
    /// One line per page.
    pub lines: &'a mut [Line],
}

impl<'a> Piece<'a> {
    /// Takes the first `pages` off the piece.
    pub(super) fn split_off(&mut self, pages: u64) -> Piece<'a> {
        let count = usize::try_from(pages).unwrap_or(usize::MAX).min(self.lines.len());
        let (head, rest) = mem::take(&mut self.lines).split_at_mut(count);
        let at = self.pages.start.offset(count as u64);
        let range = PfnRange { start: self.pages.start, end: at };
        self.lines = rest;
        self.pages.start = at;
        Piece { pages: range, zone: self.zone, lines: head }
    }
}

/// A step whose store has been looked up.
#[derive(Clone, Copy, Debug)]
pub struct ReadyStep {
    /// The operation.
    pub op: PageOp,
    /// The store that zeroes, for operations that zero.
    pub zero: Store,
    /// The store that writes images, for operations that compose.
    pub image: ImageStore,
}

/// Everything that the operations on one node's pages need.
#[derive(Debug)]
pub struct Ops<'o, 'a> {
    /// How a struct page looks.
    pub format: PageFormat,
    /// How pages are freed.
    pub freeing: Freeing,
    /// The node.
    pub nid: Nid,
    /// The steps in order.
    pub steps: &'o [ReadyStep],
    /// How much one step covers.
    pub grain: Grain,
    /// The node's free lists.
    pub lists: &'o NodeLists<'a>,
}

/// Somebody who takes the stores of a struct page.
pub trait PageSink {
    /// One 8-byte store to word `W`.
    fn put_word<const W: usize>(&mut self, value: u64);
    /// One 4-byte store to the low half of word `W`.
    fn put_low_half<const W: usize>(&mut self, value: u32);
    /// One 4-byte store to the high half of word `W`.
    fn put_high_half<const W: usize>(&mut self, value: u32);
}

impl PageSink for Line {
    #[inline(always)]
    fn put_word<const W: usize>(&mut self, value: u64) {
        self.set_word::<W>(value);
    }

    #[inline(always)]
    fn put_low_half<const W: usize>(&mut self, value: u32) {
        self.set_low_half::<W>(value);
    }

    #[inline(always)]
    fn put_high_half<const W: usize>(&mut self, value: u32) {
        self.set_high_half::<W>(value);
    }
}

/// The field writes of `__init_single_page`: five stores, 32 bytes.
/// Source: `mm/mm_init.c: __init_single_page` (v6.12).
#[inline(always)]
pub fn write_fields(page: &mut impl PageSink, flags: u64, lru: u64) {
    page.put_word::<FLAGS>(flags);
    page.put_high_half::<COUNTS>(1);
    page.put_low_half::<COUNTS>(u32::MAX);
    page.put_word::<{ LRU[0] }>(lru);
    page.put_word::<{ LRU[1] }>(lru);
}

/// `__init_single_page` as a compiler merges it from v5.2 on: nine stores that write
/// each of the 64 bytes once.
#[inline(always)]
pub fn write_all_fields(page: &mut impl PageSink, flags: u64, lru: u64) {
    page.put_word::<3>(0);
    page.put_word::<4>(0);
    page.put_word::<PRIVATE>(0);
    page.put_word::<7>(0);
    write_fields(page, flags, lru);
}

/// Eight zero stores, then the field writes, with nothing merged.
#[inline(always)]
pub fn write_zeroes_then_fields(page: &mut impl PageSink, flags: u64, lru: u64) {
    page.put_word::<7>(0);
    page.put_word::<6>(0);
    page.put_word::<5>(0);
    page.put_word::<4>(0);
    page.put_word::<3>(0);
    page.put_word::<2>(0);
    page.put_word::<1>(0);
    page.put_word::<0>(0);
    write_fields(page, flags, lru);
}

impl<'a> Ops<'_, 'a> {
    /// Does all steps to the pieces of one chunk.
    pub fn run(&self, pieces: Vec<Piece<'a>>) {
        match self.grain {
            Grain::Block => pieces.into_iter().for_each(|p| self.run_blocks(p)),
            Grain::Range => pieces.into_iter().for_each(|p| self.run_piece(p)),
            Grain::Chunk => self.run_chunk(pieces),
        }
    }

    fn run_blocks(&self, mut piece: Piece<'a>) {
        let block_pages = self.freeing.max_order_pages;
        // A single step gains nothing from blocks and may stream across them.
        if self.steps.len() == 1 {
            return self.run_piece(piece);
        }
        while !piece.lines.is_empty() {
            let next = piece.pages.start.offset(1).align_up(block_pages);
            let pages = next.pages_since(piece.pages.start);
            let block = piece.split_off(pages);
            self.run_piece(block);
        }
    }

    fn run_piece(&self, mut piece: Piece<'a>) {
        let Some((last, before)) = self.steps.split_last() else { return };
        for step in before {
            self.write(step, &mut piece);
        }
        self.finish(last, piece);
    }

    fn run_chunk(&self, mut pieces: Vec<Piece<'a>>) {
        let Some((last, before)) = self.steps.split_last() else { return };
        for step in before {
            for piece in &mut pieces {
                self.write(step, piece);
            }
        }
        pieces.into_iter().for_each(|p| self.finish(last, p));
    }

    /// The last step: the only one that may give lines away to the free lists.
    fn finish(&self, step: &ReadyStep, mut piece: Piece<'a>) {
        match step.op {
            PageOp::Free(mode) => self.free(mode, piece),
            PageOp::ComposeFreed(mode) => self.compose_freed(step, mode, piece),
            _ => self.write(step, &mut piece),
        }
    }

    fn write(&self, step: &ReadyStep, piece: &mut Piece<'_>) {
        let flags = self.format.flags(self.nid, piece.zone);
        let lru = self.format.lru_address(piece.pages.start);
        match step.op {
            PageOp::Zero => step.zero.zero(piece.lines),
            PageOp::Fields => each_page(piece.lines, lru, |p, lru| write_fields(p, flags, lru)),
            PageOp::MemsetFields => each_page(piece.lines, lru, |p, lru| {
                memset_call(p);
                write_fields(p, flags, lru);
            }),
            PageOp::NineStores => {
                each_page(piece.lines, lru, |p, lru| write_all_fields(p, flags, lru));
            }
            PageOp::ZeroLineFields => {
                each_page(piece.lines, lru, |p, lru| write_zeroes_then_fields(p, flags, lru));
            }
            PageOp::Compose => {
                let ramp = self.ramp(piece, PageState::Initialised);
                step.image.write_images(piece.lines, ramp.first, ramp.step);
            }
            PageOp::MarkReserved => mark_reserved(piece.lines, self.format.reserved_mask),
            // Links give lines away: only `finish` can do these, and plans put them last.
            PageOp::Free(_) | PageOp::ComposeFreed(_) => {}
        }
    }

    /// The images of consecutive pages in one state.
    fn ramp(&self, piece: &Piece<'_>, state: PageState) -> Ramp {
        let first = self.format.image(piece.pages.start, self.nid, piece.zone, state);
        let mut step = [0; 8];
        step[LRU[0]] = STRUCT_PAGE_BYTES;
        step[LRU[1]] = STRUCT_PAGE_BYTES;
        Ramp { first, step }
    }

    fn free(&self, mode: FreeMode, mut piece: Piece<'a>) {
        let max = self.freeing.max_order_pages;
        let unit_pages = match mode {
            FreeMode::AtBoot => u64::MAX,
            FreeMode::ByUnit => self.freeing.unit_pages,
        };
        // Two whole pageblocks that are buddies end as one block, so what is linked
        // are the final blocks; which pages keep a mark depends on the units.
        let whole_blocks: Vec<_> = buddy::blocks(piece.pages, max).collect();
        for block in whole_blocks {
            let whole = mode == FreeMode::AtBoot || block.pages() >= unit_pages;
            let mut part = piece.split_off(block.pages());
            self.free_pages(part.lines);
            if !whole {
                leave_list_poison(&mut part);
            }
            self.link_head(part, block.order);
        }
    }

    /// `__free_pages_core` and `free_pages_prepare` over the pages of one block.
    fn free_pages(&self, lines: &mut [Line]) {
        let keep = !self.format.reserved_mask;
        for line in lines.iter_mut() {
            let flags = line.word::<FLAGS>();
            line.set_word::<FLAGS>(flags & keep);
            line.set_high_half::<COUNTS>(0);
        }
        if self.freeing.checks_tail_pages {
            let keep = !self.format.prep_mask;
            for line in lines.iter_mut().skip(1) {
                let flags = line.word::<FLAGS>();
                line.set_word::<FLAGS>(flags & keep);
            }
        }
    }

    fn link_head(&self, part: Piece<'a>, order: u32) {
        let Some(head) = part.lines.first_mut() else { return };
        head.set_word::<PRIVATE>(u64::from(order));
        head.set_low_half::<COUNTS>(self.format.buddy_mark);
        self.lists.push(part.zone, order, part.pages.start, head);
    }

    fn compose_freed(&self, step: &ReadyStep, mode: FreeMode, mut piece: Piece<'a>) {
        let max = self.freeing.max_order_pages;
        let ragged = piece.pages.start.align_up(max).pages_since(piece.pages.start);
        let front = piece.split_off(ragged.min(piece.pages.pages()));
        self.compose_ragged(step, mode, front);
        let whole = piece.pages.pages() / max * max;
        let middle = piece.split_off(whole);
        self.compose_blocks(step, middle);
        self.compose_ragged(step, mode, piece);
    }

    /// Less than a largest block: images first, then the few heads and marks.
    fn compose_ragged(&self, step: &ReadyStep, mode: FreeMode, mut piece: Piece<'a>) {
        let ramp = self.ramp(&piece, PageState::Free);
        step.image.write_images(piece.lines, ramp.first, ramp.step);
        for block in buddy::blocks(piece.pages, self.freeing.max_order_pages) {
            let mut part = piece.split_off(block.pages());
            if mode == FreeMode::ByUnit && block.pages() < self.freeing.unit_pages {
                leave_list_poison(&mut part);
            }
            self.link_head(part, block.order);
        }
    }

    /// Whole blocks: heads are composed with their links, so no line is touched again.
    fn compose_blocks(&self, step: &ReadyStep, piece: Piece<'a>) {
        let max = self.freeing.max_order_pages;
        let (order, count) = (max.trailing_zeros(), piece.pages.pages() / max);
        if count == 0 {
            return;
        }
        let body = self.ramp(&piece, PageState::Free);
        let mut head = self.ramp(&piece, PageState::FreeHead(order));
        let stride = max * STRUCT_PAGE_BYTES;
        head.first[LRU[0]] = head.first[LRU[0]].wrapping_add(stride);
        head.first[LRU[1]] = head.first[LRU[1]].wrapping_sub(stride);
        head.step = body.step.map(|s| s.wrapping_mul(max));
        let period = usize::try_from(max).unwrap_or(usize::MAX);
        step.image.write_blocks(piece.lines, head, body, period);

        let last = piece.pages.start.offset((count - 1) * max);
        let chain = Chain { first: piece.pages.start, last, count };
        let mut heads = piece.lines.iter_mut().step_by(period);
        let Some(first) = heads.next() else { return };
        let run = Run { zone: piece.zone, order, chain, first, last: heads.last() };
        self.lists.append(run);
    }
}

/// Calls `write` for every page with the address of its `lru`.
#[inline(always)]
fn each_page(lines: &mut [Line], first_lru: u64, write: impl Fn(&mut Line, u64)) {
    let mut lru = first_lru;
    for line in lines {
        write(line, lru);
        lru = lru.wrapping_add(STRUCT_PAGE_BYTES);
    }
}

fn mark_reserved(lines: &mut [Line], mask: u64) {
    for line in lines {
        let flags = line.word::<FLAGS>();
        line.set_word::<FLAGS>(flags | mask);
    }
}

/// What page-by-page merging leaves on even pages that were heads for a while.
fn leave_list_poison(part: &mut Piece<'_>) {
    let start = part.pages.start;
    for (i, line) in part.lines.iter_mut().enumerate().skip(1) {
        if Pfn(start.0 + i as u64).is_aligned(2) {
            line.set_word::<{ LRU[0] }>(LIST_POISON[0]);
            line.set_word::<{ LRU[1] }>(LIST_POISON[1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts stores and remembers which bytes they wrote how often.
    struct Counter {
        stores: u32,
        writes_per_byte: [u32; 64],
    }

    impl Default for Counter {
        fn default() -> Self {
            Self { stores: 0, writes_per_byte: [0; 64] }
        }
    }

    impl Counter {
        fn store(&mut self, at: usize, bytes: usize) {
            self.stores += 1;
            self.writes_per_byte[at..at + bytes].iter_mut().for_each(|n| *n += 1);
        }
    }

    impl PageSink for Counter {
        fn put_word<const W: usize>(&mut self, _value: u64) {
            self.store(8 * W, 8);
        }
        fn put_low_half<const W: usize>(&mut self, _value: u32) {
            self.store(8 * W, 4);
        }
        fn put_high_half<const W: usize>(&mut self, _value: u32) {
            self.store(8 * W + 4, 4);
        }
    }

    #[test]
    fn the_merged_form_is_nine_stores_that_write_every_byte_once() {
        let mut page = Counter::default();
        write_all_fields(&mut page, 1, 2);
        assert_eq!(page.stores, 9);
        assert_eq!(page.writes_per_byte, [1; 64]);
    }

    #[test]
    fn the_fields_alone_are_five_stores_and_half_the_line() {
        let mut page = Counter::default();
        write_fields(&mut page, 1, 2);
        assert_eq!(page.stores, 5);
        assert_eq!(page.writes_per_byte.iter().sum::<u32>(), 32);
    }

    #[test]
    fn zeroing_first_writes_the_fields_twice() {
        let mut page = Counter::default();
        write_zeroes_then_fields(&mut page, 1, 2);
        assert_eq!(page.stores, 13);
        assert_eq!(page.writes_per_byte.iter().sum::<u32>(), 96);
    }
}
