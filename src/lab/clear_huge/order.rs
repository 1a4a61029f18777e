//! In which order the parts of a buffer are cleared, and the old map/unmap pair.
//!
//! [`order`] lists the chunks of a buffer in one of four [`Direction`]s; [`Pair`] is
//! what `kmap_atomic` and `kunmap_atomic` did around every subpage where all memory is
//! mapped anyway.

use std::sync::atomic::{AtomicU32, Ordering, compiler_fence};

/// The order of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The whole buffer by one call.
    OneShot,
    /// From low to high addresses.
    Forward,
    /// From high to low addresses.
    Reverse,
    /// From both ends towards the touched chunk, which comes last
    /// (`mm/memory.c: process_huge_page`, v6.12; `clear_huge_page` since v4.14).
    Converging,
}

impl Direction {
    /// All directions.
    pub const ALL: [Self; 4] = [Self::OneShot, Self::Forward, Self::Reverse, Self::Converging];

    /// Its name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OneShot => "one-shot",
            Self::Forward => "forward",
            Self::Reverse => "reverse",
            Self::Converging => "converging",
        }
    }
}

/// The indices of `count` chunks in order; `touched` is where the fault was.
pub fn order(direction: Direction, count: usize, touched: usize) -> Vec<usize> {
    match direction {
        Direction::OneShot | Direction::Forward => (0..count).collect(),
        Direction::Reverse => (0..count).rev().collect(),
        Direction::Converging => converging(count, touched.min(count.saturating_sub(1))),
    }
}

/// What lies outside a window around the touched chunk first, then the window from both
/// ends in turn, so that the touched chunk comes last.
///
/// ```text
///   touched 2 of 8 | 0 1 2 3 | 4 5 6 7     7 6 5 4 first, then 0 3 1 2
///                    window
/// ```
fn converging(count: usize, touched: usize) -> Vec<usize> {
    let mut out = Vec::with_capacity(count);
    let (base, half) = if 2 * touched <= count {
        out.extend((2 * touched..count).rev());
        (0, touched)
    } else {
        out.extend(0..2 * touched - count);
        (2 * touched - count, count - touched)
    };
    for at in 0..half {
        out.extend([base + at, base + 2 * half - 1 - at]);
    }
    out
}

/// The preemption and the page-fault counter of a CPU.
///
/// Up to v5.10 `kmap_atomic` on a machine without highmem was `preempt_disable` and
/// `pagefault_disable`, `kunmap_atomic` the reverse: each changes a counter and is a
/// compiler barrier (`include/linux/highmem.h`). Four barriers for each subpage.
#[derive(Debug, Default)]
pub struct Pair {
    preempt: AtomicU32,
    pagefault: AtomicU32,
}

impl Pair {
    /// Maps, which is to say: counts and stands in the compiler's way.
    #[inline(always)]
    pub fn map(&self) {
        step(&self.preempt, 1);
        compiler_fence(Ordering::SeqCst);
        step(&self.pagefault, 1);
        compiler_fence(Ordering::SeqCst);
    }

    /// Unmaps.
    #[inline(always)]
    pub fn unmap(&self) {
        compiler_fence(Ordering::SeqCst);
        step(&self.pagefault, u32::MAX);
        compiler_fence(Ordering::SeqCst);
        step(&self.preempt, u32::MAX);
    }

    /// Whether every map was unmapped.
    pub fn is_balanced(&self) -> bool {
        self.preempt.load(Ordering::Relaxed) == 0 && self.pagefault.load(Ordering::Relaxed) == 0
    }
}

/// A load, an addition and a store: the kernel's counters are not atomic either.
#[inline(always)]
fn step(counter: &AtomicU32, by: u32) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// ```text
    ///   chunk     0 1 2 3 4 5 6 7        0 1 2 3 4 5 6 7
    ///   touched       ^                            ^
    ///   visited   5 7 8 6 4 3 2 1        1 2 3 5 7 8 6 4
    /// ```
    #[test]
    fn converging_ends_at_the_touched_chunk() {
        assert_eq!(order(Direction::Converging, 8, 2), [7, 6, 5, 4, 0, 3, 1, 2]);
        assert_eq!(order(Direction::Converging, 8, 5), [0, 1, 2, 7, 3, 6, 4, 5]);
        assert_eq!(order(Direction::Converging, 1, 0), [0]);
        assert_eq!(order(Direction::Converging, 4, 99), [0, 1, 2, 3]);
        assert_eq!(order(Direction::Converging, 0, 0), [0usize; 0]);
    }

    #[test]
    fn the_other_directions_are_plain() {
        assert_eq!(order(Direction::Forward, 3, 1), [0, 1, 2]);
        assert_eq!(order(Direction::Reverse, 3, 1), [2, 1, 0]);
    }

    #[test]
    fn a_pair_is_balanced_only_when_it_is_closed() {
        let pair = Pair::default();
        pair.map();
        assert!(!pair.is_balanced());
        pair.unmap();
        assert!(pair.is_balanced());
    }

    proptest! {
        #[test]
        fn every_chunk_is_visited_once(count in 0usize..600, touched: usize, d in 0usize..4) {
            let direction = Direction::ALL[d];
            let mut visited = order(direction, count, touched % count.max(1));
            if direction == Direction::Converging && count > 0 {
                prop_assert_eq!(visited.last(), Some(&(touched % count)));
            }
            visited.sort_unstable();
            prop_assert_eq!(visited, (0..count).collect::<Vec<_>>());
        }
    }
}
