//! One cache line, which is one `struct page`.
//!
//! [`Line`] gives word-wise stores that the compiler must execute as written: it
//! may neither merge, drop nor vectorise them. That is how a field-by-field
//! initialisation stays one. Whole runs of lines are written by
//! [`store`](super::store).

/// Bytes in a line: `sizeof(struct page)` on 64-bit Linux without extra debugging,
/// and the cache line of all CPUs that the project supports.
pub const LINE_BYTES: usize = 64;

/// 64 bytes, aligned to 64, as eight words; every bit pattern is valid.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line([u64; 8]);

const _: () = assert!(size_of::<Line>() == LINE_BYTES && align_of::<Line>() == LINE_BYTES);

impl Line {
    /// A line with these words.
    pub const fn new(words: [u64; 8]) -> Self {
        Self(words)
    }

    /// All eight words.
    pub fn words(&self) -> [u64; 8] {
        self.0
    }

    /// Word `W` (0..=7), read by exactly one 8-byte load.
    #[inline(always)]
    pub fn word<const W: usize>(&self) -> u64 {
        const { assert!(W < 8, "a line has the words 0 to 7") };
        // SAFETY: a reference to one of our own words is valid for a read.
        unsafe { (&raw const self.0[W]).read_volatile() }
    }

    /// Writes word `W` (0..=7) by exactly one 8-byte store.
    #[inline(always)]
    pub fn set_word<const W: usize>(&mut self, value: u64) {
        const { assert!(W < 8, "a line has the words 0 to 7") };
        // SAFETY: the word is ours, exclusively, and aligned to 8 bytes.
        unsafe { (&raw mut self.0[W]).write_volatile(value) }
    }

    /// Writes bits 0 to 31 of word `W` (0..=7) by exactly one 4-byte store.
    #[inline(always)]
    pub fn set_low_half<const W: usize>(&mut self, value: u32) {
        self.set_half::<W>(value, cfg!(target_endian = "big"));
    }

    /// Writes bits 32 to 63 of word `W` (0..=7) by exactly one 4-byte store.
    #[inline(always)]
    pub fn set_high_half<const W: usize>(&mut self, value: u32) {
        self.set_half::<W>(value, cfg!(target_endian = "little"));
    }

    /// Writes the first or the second four bytes of word `W`.
    #[inline(always)]
    fn set_half<const W: usize>(&mut self, value: u32, second: bool) {
        const { assert!(W < 8, "a line has the words 0 to 7") };
        let word: *mut u32 = (&raw mut self.0[W]).cast();
        // SAFETY: both halves lie inside the word, which is ours exclusively.
        unsafe { word.add(usize::from(second)).write_volatile(value) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn halves_land_in_their_word_alone() {
        let mut line = Line::new([u64::MAX; 8]);
        line.set_low_half::<3>(0x1122_3344);
        assert_eq!(line.words()[3], 0xffff_ffff_1122_3344);
        line.set_high_half::<3>(0x5566_7788);
        assert_eq!(line.words()[3], 0x5566_7788_1122_3344);
        assert!((0..8).filter(|&w| w != 3).all(|w| line.words()[w] == u64::MAX));
    }

    proptest! {
        #[test]
        fn a_word_reads_back(words: [u64; 8], value: u64) {
            let mut line = Line::new(words);
            line.set_word::<7>(value);
            prop_assert_eq!(line.word::<7>(), value);
            prop_assert_eq!(&line.words()[..7], &words[..7]);
            prop_assert_eq!(line.word::<0>(), words[0]);
        }
    }
}
