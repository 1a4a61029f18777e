//! How many entries of which level a move takes.
//!
//! [`entries`] walks a move as the kernel does: an entry of the highest level that both
//! addresses are aligned to and that the rest still fills.

/// Bytes that one entry covers, from the lowest level up, with 4 KiB pages.
pub const LEVEL_BYTES: [u64; 3] = [4 << 10, 2 << 20, 1 << 30];

/// A level of page tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Page-table entries, of 4 KiB.
    Pte,
    /// Entries of a page middle directory, of 2 MiB.
    Pmd,
    /// Entries of a page upper directory, of 1 GiB.
    Pud,
}

impl Level {
    /// All levels, lowest first.
    pub const ALL: [Self; 3] = [Self::Pte, Self::Pmd, Self::Pud];

    /// Its name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pte => "pte",
            Self::Pmd => "pmd",
            Self::Pud => "pud",
        }
    }

    /// Bytes that one of its entries covers.
    pub const fn bytes(self) -> u64 {
        LEVEL_BYTES[self as usize]
    }
}

/// Entries moved per level, lowest first.
pub type Entries = [u64; 3];

/// What a kernel that can move entries up to `highest` moves, for whole pages
/// (`mm/mremap.c: move_page_tables`, v6.12).
///
/// ```text
///   old   ....|pte pte|  pmd  |  pmd  |pte|        both aligned alike to 2 MiB
///   new   ....|pte pte|  pmd  |  pmd  |pte|
/// ```
pub fn entries(old: u64, new: u64, bytes: u64, highest: Level) -> Entries {
    let mut moved = [0; 3];
    let mut at = 0;
    while at < bytes {
        let (level, step) = step(old.wrapping_add(at), new.wrapping_add(at), bytes - at, highest);
        moved[level as usize] += step.div_ceil(level.bytes());
        at += step;
    }
    moved
}

/// The next entry, or all page-table entries up to where a higher level may be next.
fn step(old: u64, new: u64, left: u64, highest: Level) -> (Level, u64) {
    for level in [Level::Pud, Level::Pmd] {
        let bytes = level.bytes();
        let aligned = old.is_multiple_of(bytes) && new.is_multiple_of(bytes);
        if level <= highest && aligned && left >= bytes {
            return (level, bytes);
        }
    }
    let to_next = |address: u64| LEVEL_BYTES[1] - address % LEVEL_BYTES[1];
    (Level::Pte, left.min(to_next(old)).min(to_next(new)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const K: u64 = 4 << 10;
    const M: u64 = 2 << 20;
    const G: u64 = 1 << 30;

    #[test]
    fn alignment_chooses_the_level() {
        assert_eq!(entries(4 * G, 8 * G, G, Level::Pud), [0, 0, 1]);
        assert_eq!(entries(4 * G, 8 * G, G, Level::Pmd), [0, 512, 0]);
        assert_eq!(entries(4 * G, 8 * G, G, Level::Pte), [512 * 512, 0, 0]);
        assert_eq!(entries(4 * G, 8 * G + M, G, Level::Pud), [0, 512, 0]);
        assert_eq!(entries(4 * G, 8 * G + K, G, Level::Pud), [512 * 512, 0, 0]);
        assert_eq!(entries(4 * G, 8 * G, 0, Level::Pud), [0; 3]);
    }

    /// ```text
    ///   1 GiB - 2 MiB - 4 KiB | pte | pmd |  pud  | pmd | pte pte |
    /// ```
    #[test]
    fn a_ragged_range_takes_entries_of_every_level() {
        let start = G - M - K;
        let bytes = K + M + G + M + 2 * K;
        assert_eq!(entries(start, start + 4 * G, bytes, Level::Pud), [3, 2, 1]);
    }

    proptest! {
        #[test]
        fn all_bytes_are_moved_once(old in 0u64..1 << 20, new in 0u64..1 << 20, pages in 0u64..5000,
                                    highest in 0usize..3) {
            let moved = entries(old * K, new * K, pages * K, Level::ALL[highest]);
            let bytes: u64 = moved.iter().zip(LEVEL_BYTES).map(|(n, b)| n * b).sum();
            prop_assert_eq!(bytes, pages * K);
        }
    }
}
