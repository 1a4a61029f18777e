//! Stores that every CPU has: plain Rust, word by word, and the C library's.

use super::generic::{self, Vector};
use super::{Entry, StoreKind};
use crate::host::line::Line;

/// The stores of this file, in the order of the table.
pub(super) static STORES: &[Entry] = &[
    Entry {
        name: "portable",
        kind: StoreKind::Temporal,
        needs: "nothing",
        about: "what the compiler makes of assigning whole lines",
        detect: || true,
        zero: portable_zero,
        images: Some(portable_images),
    },
    Entry {
        name: "unrolled",
        kind: StoreKind::Temporal,
        needs: "nothing",
        about: "eight 8-byte stores to a line, as mm_zero_struct_page makes them",
        detect: || true,
        zero: unrolled_zero,
        images: Some(unrolled_images),
    },
    Entry {
        name: "libc-memset",
        kind: StoreKind::Temporal,
        needs: "nothing",
        about: "the C library's memset, which chooses by CPU and by size",
        detect: || true,
        zero: libc_memset,
        images: None,
    },
];

/// # Safety
/// None needed: `unsafe` only for the table's type.
unsafe fn portable_zero(lines: &mut [Line]) {
    lines.fill(Line::default());
}

/// # Safety
/// None needed: `unsafe` only for the table's type.
unsafe fn portable_images(lines: &mut [Line], first: &[u64; 8], step: &[u64; 8]) {
    let mut image = *first;
    for line in lines {
        *line = Line::new(image);
        for (word, by) in image.iter_mut().zip(step) {
            *word = word.wrapping_add(*by);
        }
    }
}

/// # Safety
/// None needed: `unsafe` only for the table's type.
unsafe fn libc_memset(lines: &mut [Line]) {
    // SAFETY: the pointer and the length are those of an exclusive slice, and a
    // line of zero bytes is a valid line.
    unsafe { lines.as_mut_ptr().write_bytes(0, lines.len()) };
}

/// One word, stored volatile: the compiler may not join it with its neighbours.
#[derive(Clone, Copy)]
struct Word(u64);

impl Vector for Word {
    #[inline(always)]
    unsafe fn load(words: *const u64) -> Self {
        // SAFETY: the caller's pointer is valid for one word.
        Self(unsafe { words.read() })
    }

    #[inline(always)]
    unsafe fn add(self, step: Self) -> Self {
        Self(self.0.wrapping_add(step.0))
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u64) {
        // SAFETY: the caller's pointer is valid and aligned for one word.
        unsafe { to.write_volatile(self.0) }
    }
}

/// # Safety
/// None needed: `unsafe` only for the table's type.
unsafe fn unrolled_zero(lines: &mut [Line]) {
    // SAFETY: every CPU stores words, and eight words are a line.
    unsafe { generic::zero::<Word, 8>(lines) }
}

/// # Safety
/// None needed: `unsafe` only for the table's type.
unsafe fn unrolled_images(lines: &mut [Line], first: &[u64; 8], step: &[u64; 8]) {
    // SAFETY: every CPU stores words, and eight words are a line.
    unsafe { generic::images::<Word, 8>(lines, first, step) }
}
