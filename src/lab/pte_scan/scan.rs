//! The two algorithms on page-table entries in memory.
//!
//! At an anonymous fault the kernel takes the highest allowed order whose aligned range
//! of entries around the fault is empty. [`by_ranges`] scans the range of every order
//! anew (`mm/memory.c: alloc_anon_folio` and `pte_range_none`, v6.12); [`by_first_set`]
//! remembers the first set entry that it met and skips ranges which that one decides
//! (the patch of September 2024, not taken). Both are generic over [`Ptes`], so that
//! the same code is timed and counted.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Entries of a page table with 4 KiB pages.
pub const TABLE_PTES: usize = 512;
/// A present, writable, accessed and dirty anonymous page on x86-64.
pub const SET: u64 = 0x8000_0000_0000_0067;

/// One page table.
pub trait Ptes {
    /// Whether entry `index` is empty. One read of memory.
    fn is_none(&self, index: usize) -> bool;
}

impl Ptes for [AtomicU64] {
    /// As `ptep_get_lockless`: a read that a compiler may neither merge nor widen.
    #[inline(always)]
    fn is_none(&self, index: usize) -> bool {
        self.get(index).is_none_or(|pte| pte.load(Ordering::Relaxed) == 0)
    }
}

/// A table whose reads are counted.
#[derive(Debug)]
pub struct Counted<'t> {
    ptes: &'t [AtomicU64],
    reads: Cell<u64>,
}

impl<'t> Counted<'t> {
    /// Counts from 0.
    pub const fn new(ptes: &'t [AtomicU64]) -> Self {
        Self { ptes, reads: Cell::new(0) }
    }

    /// Entries read since.
    pub fn reads(&self) -> u64 {
        self.reads.get()
    }
}

impl Ptes for Counted<'_> {
    fn is_none(&self, index: usize) -> bool {
        self.reads.set(self.reads.get() + 1);
        self.ptes.is_none(index)
    }
}

/// A set of orders as the kernel has it: bit `n` stands for order `n`.
pub type Orders = u32;

/// Orders 2 to `highest`; anonymous folios have no order 1.
pub const fn orders_to(highest: u32) -> Orders {
    ((1 << (highest + 1)) - 1) & !0b11
}

#[inline(always)]
const fn highest(orders: Orders) -> Option<u32> {
    orders.checked_ilog2()
}

/// How many entries from `start` on are empty, at most `count`. Out of line, so that
/// both algorithms scan with the very same instructions.
#[inline(never)]
fn empty_from(ptes: &(impl Ptes + ?Sized), start: usize, count: usize) -> usize {
    let mut at = 0;
    while at < count {
        if !ptes.is_none(start + at) {
            return at;
        }
        at += 1;
    }
    count
}

/// The order of a fault at `index`, or 0: every range is scanned anew.
#[inline(never)]
pub fn by_ranges(ptes: &(impl Ptes + ?Sized), index: usize, mut orders: Orders) -> u32 {
    while let Some(order) = highest(orders) {
        let count = 1 << order;
        let start = index & !(count - 1);
        if empty_from(ptes, start, count) == count {
            return order;
        }
        orders &= !(1 << order);
    }
    0
}

/// The same order, with the first set entry remembered.
///
/// ```text
///   order 3   . . . . . X ? ?     scanned up to X
///   order 2   . . . .             ends before X: known to be empty, not scanned
///   order 2           . X ? ?     holds X: known not to be, not scanned
///   order 1               ? ?     begins after X: must be scanned
/// ```
#[inline(never)]
pub fn by_first_set(ptes: &(impl Ptes + ?Sized), index: usize, mut orders: Orders) -> u32 {
    let mut first_set: Option<usize> = None;
    while let Some(order) = highest(orders) {
        let count = 1 << order;
        let start = index & !(count - 1);
        orders &= !(1 << order);
        match first_set {
            Some(set) if start + count <= set => return order,
            Some(set) if start <= set => {}
            _ => {
                let empty = empty_from(ptes, start, count);
                if empty == count {
                    return order;
                }
                first_set = Some(start + empty);
            }
        }
    }
    0
}

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// [`by_ranges`].
    Ranges,
    /// [`by_first_set`].
    FirstSet,
}

impl Algorithm {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Ranges, Self::FirstSet];

    /// Its name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ranges => "every-range",
            Self::FirstSet => "first-set",
        }
    }

    /// The order of a fault at `index`.
    #[inline(always)]
    pub fn order(self, ptes: &(impl Ptes + ?Sized), index: usize, orders: Orders) -> u32 {
        match self {
            Self::Ranges => by_ranges(ptes, index, orders),
            Self::FirstSet => by_first_set(ptes, index, orders),
        }
    }
}

/// Touches every page of `tables` in order: each empty entry is a fault, which fills the
/// range of its order. Returns how many faults each order had.
pub fn sweep(tables: &[AtomicU64], orders: Orders, algorithm: Algorithm) -> [u64; 10] {
    sweep_with(tables, orders, |ptes, index| algorithm.order(ptes, index, orders))
}

/// The same with counted reads: what [`sweep`] returns, and the reads.
pub fn counted_sweep(
    tables: &[AtomicU64],
    orders: Orders,
    algorithm: Algorithm,
) -> ([u64; 10], u64) {
    let mut reads = 0;
    let faults = sweep_with(tables, orders, |ptes, index| {
        let counted = Counted::new(ptes);
        let order = algorithm.order(&counted, index, orders);
        reads += counted.reads();
        order
    });
    (faults, reads)
}

#[inline(always)]
fn sweep_with(
    tables: &[AtomicU64],
    orders: Orders,
    mut choose: impl FnMut(&[AtomicU64], usize) -> u32,
) -> [u64; 10] {
    let mut faults = [0; 10];
    for table in tables.chunks(TABLE_PTES) {
        let mut index = 0;
        while index < table.len() {
            if !table.is_none(index) {
                index += 1;
                continue;
            }
            let order = if orders == 0 { 0 } else { choose(table, index) };
            let count = 1 << order;
            let start = index & !(count - 1);
            table.iter().skip(start).take(count).for_each(|p| p.store(SET, Ordering::Relaxed));
            if let Some(of_order) = faults.get_mut(order as usize) {
                *of_order += 1;
            }
            index = start + count;
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(set: impl Fn(usize) -> bool) -> Vec<AtomicU64> {
        (0..TABLE_PTES).map(|at| AtomicU64::new(if set(at) { SET } else { 0 })).collect()
    }

    /// The definition, without any algorithm.
    fn oracle(ptes: &[AtomicU64], index: usize, orders: Orders) -> u32 {
        let fits = |order: &u32| {
            let count = 1usize << order;
            let start = index / count * count;
            orders & (1 << order) != 0 && (start..start + count).all(|at| ptes.is_none(at))
        };
        (0..10).rev().find(fits).unwrap_or(0)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn both_choose_the_order_of_the_definition(
            bits in prop::collection::vec(any::<u64>(), 8), thin in 0u32..8,
            index in 0usize..TABLE_PTES, orders in 0u32..1024,
        ) {
            // `thin` halves the share of set entries again and again.
            let set = |at: usize| (0..=thin).all(|turn| {
                bits[(at / 64 + turn as usize) % 8].rotate_left(turn * 11) >> (at % 64) & 1 == 1
            });
            let ptes = table(set);
            let wanted = oracle(&ptes, index, orders & !1);
            prop_assert_eq!(by_ranges(&ptes[..], index, orders & !1), wanted);
            prop_assert_eq!(by_first_set(&ptes[..], index, orders & !1), wanted);
        }

        #[test]
        fn sweeps_fill_alike_and_remembering_never_reads_more(
            seed in prop::collection::vec(any::<bool>(), TABLE_PTES), highest in 2u32..10,
        ) {
            let swept = Algorithm::ALL.map(|algorithm| {
                let ptes = table(|at| seed[at]);
                let (faults, reads) = counted_sweep(&ptes, orders_to(highest), algorithm);
                assert!(ptes.iter().all(|p| p.load(Ordering::Relaxed) == SET));
                (faults, reads)
            });
            prop_assert_eq!(swept[0].0, swept[1].0);
            prop_assert!(swept[1].1 <= swept[0].1);
        }
    }

    /// ```text
    ///   pages 0 1 2 3  4 5 6 7     7 is set: four pages by one fault, three by three
    ///         . . . .  . . . X
    /// ```
    #[test]
    fn the_last_page_of_eight_leaves_one_block_of_four() {
        for algorithm in Algorithm::ALL {
            let ptes = table(|at| at % 8 == 7);
            let faults = sweep(&ptes, orders_to(8), algorithm);
            assert_eq!(faults, [3 * 64, 0, 64, 0, 0, 0, 0, 0, 0, 0], "{algorithm:?}");
        }
    }

    #[test]
    fn an_empty_table_is_one_fault_of_the_highest_order() {
        let ptes = table(|_| false);
        assert_eq!(by_first_set(&ptes[..], 77, orders_to(9)), 9);
        assert_eq!(by_ranges(&ptes[..], 77, orders_to(8)), 8);
        assert_eq!(by_ranges(&ptes[..], 77, 0), 0);
        assert_eq!(orders_to(4), 0b11100);
    }

    #[test]
    fn remembering_saves_reads() {
        let ptes = table(|at| at == 100);
        let reads = |algorithm: Algorithm, index| {
            let counted = Counted::new(&ptes);
            assert_eq!(algorithm.order(&counted, index, orders_to(9)), 0b0);
            counted.reads()
        };
        // Entry 101 shares every range from order 2 on with the set one.
        assert_eq!(reads(Algorithm::FirstSet, 101), 101);
        assert_eq!(reads(Algorithm::Ranges, 101), 3 * 101 + 37 + 3 * 5 + 1);
    }
}
