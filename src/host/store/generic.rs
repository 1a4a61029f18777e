//! The store loops, written once over a small trait.
//!
//! A [`Vector`] is one register with its way of reaching memory; an ISA file
//! supplies it and instantiates [`zero`] and [`images`] inside a function that has
//! the instruction enabled. Everything here is `inline(always)`, so that the
//! instruction ends up in that function's own loop.

use crate::host::line::Line;

/// One register's worth of a line, and how it is stored.
pub(super) trait Vector: Copy {
    /// The words at `words`, which need no alignment.
    ///
    /// # Safety
    /// `words` is valid for a read of this vector, and the CPU has the instruction.
    unsafe fn load(words: *const u64) -> Self;

    /// Word by word, wrapping.
    ///
    /// # Safety
    /// The CPU has the instruction.
    unsafe fn add(self, step: Self) -> Self;

    /// Stores all words at `to`, by exactly one instruction.
    ///
    /// # Safety
    /// `to` is valid for writes of this vector and aligned to its size, and the
    /// CPU has the instruction.
    unsafe fn store(self, to: *mut u64);

    /// Orders the stores before everything that follows; nothing for plain stores.
    ///
    /// # Safety
    /// The CPU has the instruction.
    #[inline(always)]
    unsafe fn fence() {}
}

/// Lines that one turn of the zeroing loop writes, so that loop control does not
/// compete with narrow stores.
const UNROLL: usize = 4;

/// Zeroes `lines`, `N` vectors to a line.
///
/// # Safety
/// The CPU has the instructions of `V`, and `N` vectors are exactly one line.
#[inline(always)]
pub(super) unsafe fn zero<V: Vector, const N: usize>(lines: &mut [Line]) {
    const { assert!(N * size_of::<V>() == size_of::<Line>()) };
    let zeros = [0u64; 8];
    // SAFETY: `zeros` is a whole line, hence at least one vector.
    let value = unsafe { V::load(zeros.as_ptr()) };
    let (blocks, rest) = lines.as_chunks_mut::<UNROLL>();
    for block in blocks {
        for line in block {
            // SAFETY: the caller vouches for the CPU and for `N`.
            unsafe { put::<V, N>(line, &[value; N]) };
        }
    }
    for line in rest {
        // SAFETY: as above.
        unsafe { put::<V, N>(line, &[value; N]) };
    }
    // SAFETY: the caller vouches for the CPU.
    unsafe { V::fence() };
}

/// Writes `first + i * step`, wrapping word by word, to line `i` of `lines`. The
/// image lives in `N` registers from the first line to the last. No fence at the end:
/// a caller may have more to write first.
///
/// # Safety
/// As for [`zero`].
#[inline(always)]
pub(super) unsafe fn images<V: Vector, const N: usize>(
    lines: &mut [Line],
    first: &[u64; 8],
    step: &[u64; 8],
) {
    // SAFETY: both are whole lines; the caller vouches for the rest.
    let (mut image, step) = unsafe { (spread::<V, N>(first), spread::<V, N>(step)) };
    for line in lines {
        // SAFETY: the caller vouches for the CPU and for `N`.
        unsafe { put::<V, N>(line, &image) };
        let mut i = 0;
        while i < N {
            // SAFETY: the caller vouches for the CPU.
            image[i] = unsafe { image[i].add(step[i]) };
            i += 1;
        }
    }
}

/// The eight words in `N` registers.
///
/// # Safety
/// As for [`zero`].
#[inline(always)]
unsafe fn spread<V: Vector, const N: usize>(words: &[u64; 8]) -> [V; N] {
    const { assert!(N * size_of::<V>() == size_of::<Line>()) };
    // A plain loop: a closure would be compiled without the enabled instructions.
    // SAFETY: part `i` lies inside the line, because `N` parts are one line.
    let mut parts = [unsafe { V::load(words.as_ptr()) }; N];
    let mut i = 1;
    while i < N {
        // SAFETY: as above.
        parts[i] = unsafe { V::load(words.as_ptr().add(i * (8 / N))) };
        i += 1;
    }
    parts
}

/// Stores `N` vectors to one line.
///
/// # Safety
/// As for [`zero`].
#[inline(always)]
unsafe fn put<V: Vector, const N: usize>(line: &mut Line, parts: &[V; N]) {
    let to: *mut u64 = (&raw mut *line).cast();
    let mut i = 0;
    while i < N {
        // SAFETY: part `i` lies inside the line, which is ours exclusively, and a
        // line's alignment is at least that of each part.
        unsafe { parts[i].store(to.add(i * (8 / N))) };
        i += 1;
    }
}
