//! Which entries are set before anybody asks.

use super::scan::{SET, TABLE_PTES};
use crate::stats::Rng;
use std::sync::atomic::AtomicU64;

/// A pattern of set entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// None.
    AllEmpty,
    /// The last page of every set of eight, 32 KiB: the discussion's benchmark.
    LastOfSet,
    /// The first entry of every table.
    FirstOfTable,
    /// This many of a hundred entries, at random.
    Random(u32),
}

/// All patterns.
pub const PATTERNS: [Pattern; 12] = [
    Pattern::AllEmpty,
    Pattern::LastOfSet,
    Pattern::FirstOfTable,
    Pattern::Random(1),
    Pattern::Random(10),
    Pattern::Random(20),
    Pattern::Random(30),
    Pattern::Random(40),
    Pattern::Random(50),
    Pattern::Random(60),
    Pattern::Random(75),
    Pattern::Random(90),
];

impl Pattern {
    /// Its name in records.
    pub fn name(self) -> String {
        match self {
            Self::AllEmpty => "all-empty".into(),
            Self::LastOfSet => "last-of-32KiB".into(),
            Self::FirstOfTable => "first-of-table".into(),
            Self::Random(percent) => format!("random-{percent}%"),
        }
    }

    fn is_set(self, at: usize, rng: &mut Rng) -> bool {
        match self {
            Self::AllEmpty => false,
            Self::LastOfSet => at % 8 == 7,
            Self::FirstOfTable => at.is_multiple_of(TABLE_PTES),
            Self::Random(percent) => rng.below(100) < percent as usize,
        }
    }
}

/// Tables with the pattern; the same for the same seed.
pub fn fill(pattern: Pattern, tables: usize, seed: u64) -> Vec<AtomicU64> {
    let mut rng = Rng::new(seed);
    let entries = tables.saturating_mul(TABLE_PTES);
    (0..entries)
        .map(|at| AtomicU64::new(if pattern.is_set(at, &mut rng) { SET } else { 0 }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn patterns_set_what_they_say() {
        let count = |pattern| {
            let ptes = fill(pattern, 20, 3);
            ptes.iter().filter(|p| p.load(Ordering::Relaxed) != 0).count()
        };
        assert_eq!(count(Pattern::AllEmpty), 0);
        assert_eq!(count(Pattern::LastOfSet), 20 * 64);
        assert_eq!(count(Pattern::FirstOfTable), 20);
        let half = count(Pattern::Random(50));
        assert!((4800..5440).contains(&half), "{half} of 10240");
    }
}
