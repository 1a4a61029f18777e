//! The loops of the prefetch experiment: prepare, fill, free.
//!
//! [`pass`] prepares a stretch of lines, fills it, and goes on; a compiler barrier
//! keeps the two from being merged, as a compiler would merge zeroing and filling of
//! one struct page. [`expected`] is what a pass must leave.

use crate::host::fetch;
use crate::host::line::Line;
use crate::host::store::{Store, StoreKind};
use std::sync::atomic::{Ordering, compiler_fence};

/// What happens to a line before its fields are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prepare {
    /// Nothing.
    Nothing,
    /// Eight 8-byte zero stores in the same loop, as `mm_zero_struct_page`.
    Inline,
    /// `prefetchw`: fetched for writing, not written.
    Prefetchw,
    /// Zeroed by a store kernel. A non-temporal one ends every stretch with a fence.
    Zero(Store),
}

impl Prepare {
    /// Its name in records.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Inline => "inline",
            Self::Prefetchw => "prefetchw",
            Self::Zero(store) => store.name(),
        }
    }

    /// Where it leaves the line, in a word.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Nothing => "none",
            Self::Prefetchw => "prefetch",
            Self::Inline => "temporal",
            Self::Zero(store) if store.kind() == StoreKind::Temporal => "temporal",
            Self::Zero(_) => "non-temporal",
        }
    }

    const fn zeroes(&self) -> bool {
        matches!(self, Self::Inline | Self::Zero(_))
    }
}

/// What follows the preparation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Nothing.
    Nothing,
    /// The field writes.
    Fields,
    /// The field writes, then the free pass over every 64 KiB of struct pages.
    FieldsAndFree,
}

impl Then {
    /// Its name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Fields => "fields",
            Self::FieldsAndFree => "fields+free",
        }
    }
}

/// Struct pages that are initialised, then freed, at a time: a block of the largest
/// order (`mm/mm_init.c: deferred_init_maxorder`, v6.12).
pub const BLOCK_PAGES: usize = 1024;

/// Node and zone bits as on node 1; what they are does not matter.
const FLAGS: u64 = 0x0007_ffff_c000_0000;
const RESERVED: u64 = 1 << 13;
/// Where x86-64 has struct page 0; `lru` lies eight bytes further.
const FIRST_LRU: u64 = 0xffff_ea00_0000_0008;

/// Prepares, fills and frees `lines`, of which the first is struct page `first`.
pub fn pass(
    lines: &mut [Line],
    first: usize,
    prepare: &Prepare,
    distance_pages: usize,
    then: Then,
) {
    match prepare {
        Prepare::Nothing => stretches(lines, first, distance_pages, then, |_| ()),
        Prepare::Inline => stretches(lines, first, 1, then, zero_words),
        Prepare::Prefetchw => {
            stretches(lines, first, distance_pages, then, |l| fetch::for_write(l));
        }
        Prepare::Zero(store) => stretches(lines, first, distance_pages, then, |l| store.zero(l)),
    }
}

/// Zeroing ahead of blocks covers several of them, zeroing within a block a part.
#[inline(always)]
fn stretches(
    lines: &mut [Line],
    first: usize,
    distance: usize,
    then: Then,
    prepare: impl Fn(&mut [Line]),
) {
    let mut at = first;
    for stretch in lines.chunks_mut(distance.max(BLOCK_PAGES)) {
        let ahead = distance >= BLOCK_PAGES;
        if ahead {
            prepare(stretch);
            compiler_fence(Ordering::SeqCst);
        }
        for block in stretch.chunks_mut(BLOCK_PAGES) {
            if ahead {
                fill(block, at, then);
            } else {
                within_block(block, at, distance.max(1), then, &prepare);
            }
            if then == Then::FieldsAndFree {
                free_pass(block);
            }
            at += block.len();
        }
    }
}

#[inline(always)]
fn within_block(
    block: &mut [Line],
    first: usize,
    distance: usize,
    then: Then,
    prepare: &impl Fn(&mut [Line]),
) {
    let mut at = first;
    for part in block.chunks_mut(distance) {
        prepare(part);
        compiler_fence(Ordering::SeqCst);
        fill(part, at, then);
        at += part.len();
    }
}

#[inline(always)]
fn zero_words(lines: &mut [Line]) {
    for line in lines {
        line.set_word::<7>(0);
        line.set_word::<6>(0);
        line.set_word::<5>(0);
        line.set_word::<4>(0);
        line.set_word::<3>(0);
        line.set_word::<2>(0);
        line.set_word::<1>(0);
        line.set_word::<0>(0);
    }
}

/// The five field stores of `__init_single_page`, 32 of 64 bytes.
#[inline(always)]
fn fill(lines: &mut [Line], first: usize, then: Then) {
    if then == Then::Nothing {
        return;
    }
    let mut lru = FIRST_LRU.wrapping_add(64 * first as u64);
    for line in lines {
        line.set_word::<0>(FLAGS);
        line.set_high_half::<6>(1);
        line.set_low_half::<6>(u32::MAX);
        line.set_word::<1>(lru);
        line.set_word::<2>(lru);
        lru = lru.wrapping_add(64);
    }
}

/// The second touch of boot: `__free_pages_core` clears a flag and the count.
pub fn free_pass(lines: &mut [Line]) {
    for line in lines {
        let flags = line.word::<0>();
        line.set_word::<0>(flags & !RESERVED);
        line.set_high_half::<6>(0);
    }
}

/// What the free pass makes of a struct page.
pub const fn freed(words: [u64; 8]) -> [u64; 8] {
    let mut words = words;
    words[0] &= !RESERVED;
    words[6] &= 0xffff_ffff;
    words
}

/// What struct page `at` holds after a pass over memory filled with 0xff.
pub fn expected(at: usize, prepare: &Prepare, then: Then) -> [u64; 8] {
    let mut words = if prepare.zeroes() { [0; 8] } else { [u64::MAX; 8] };
    if then != Then::Nothing {
        let lru = FIRST_LRU.wrapping_add(64 * at as u64);
        let count = if then == Then::FieldsAndFree { 0 } else { 1 << 32 };
        (words[0], words[1], words[2]) = (FLAGS, lru, lru);
        words[6] = count | u64::from(u32::MAX);
    }
    words
}
