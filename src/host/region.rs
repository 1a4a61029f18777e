//! Fresh anonymous memory, page by page: for experiments on faults.
//!
//! A [`Region`] has no pages before it is touched. Whether it may get huge ones is its
//! [`HugePages`]; [`Region::touch`] writes one byte per page and so pays every fault.

use super::error::HostError;
use memmap2::{Advice, MmapMut, MmapOptions};
use std::ops::Range;

/// What is asked of the kernel for a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HugePages {
    /// Nothing: the system's setting decides.
    Unasked,
    /// `MADV_HUGEPAGE`.
    Asked,
    /// `MADV_NOHUGEPAGE`.
    Refused,
}

/// The alignment: what the largest transparent huge page of x86-64 and of arm64 with
/// 4 KiB pages needs.
const ALIGN_BYTES: usize = 2 << 20;

/// Anonymous private memory, aligned to 2 MiB, without pages yet.
#[derive(Debug)]
pub struct Region {
    map: MmapMut,
    start: usize,
    bytes: usize,
}

impl Region {
    /// Address space for `bytes` bytes.
    ///
    /// # Errors
    /// [`HostError::Map`] when the kernel gives no address range.
    pub fn map(bytes: usize, huge: HugePages) -> Result<Self, HostError> {
        let whole = bytes.saturating_add(2 * ALIGN_BYTES);
        let failed = |source| HostError::Map { bytes, source };
        let map = MmapOptions::new().len(whole).no_reserve_swap().map_anon().map_err(failed)?;
        let start = map.as_ptr().addr().next_multiple_of(ALIGN_BYTES) - map.as_ptr().addr();
        // A kernel without huge pages knows neither: then there is nothing to refuse.
        match huge {
            HugePages::Unasked => {}
            HugePages::Asked => _ = map.advise_range(Advice::HugePage, start, bytes),
            HugePages::Refused => _ = map.advise_range(Advice::NoHugePage, start, bytes),
        }
        Ok(Self { map, start, bytes })
    }

    /// Its bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Asks for huge pages from now on, or refuses them; existing pages stay.
    pub fn advise(&self, huge: HugePages) {
        let advice = match huge {
            HugePages::Unasked => return,
            HugePages::Asked => Advice::HugePage,
            HugePages::Refused => Advice::NoHugePage,
        };
        let _ = self.map.advise_range(advice, self.start, self.bytes);
    }

    /// Writes `value` into the first byte of every `step_bytes` of `range`, ascending;
    /// what lies beyond the region is left out.
    pub fn touch(&mut self, range: Range<usize>, step_bytes: usize, value: u8) {
        let end = range.end.min(self.bytes);
        let area = self.map.get_mut(self.start..self.start + end).unwrap_or_default();
        for byte in area.iter_mut().skip(range.start).step_by(step_bytes.max(1)) {
            // SAFETY: a reference to a byte of ours is valid for a write. Volatile: the
            // fault is the point, so the store may not be left out.
            unsafe { (&raw mut *byte).write_volatile(value) };
        }
    }

    /// Whether every byte from each `step_bytes` on is `value` and the rest are 0.
    pub fn holds(&self, step_bytes: usize, value: u8) -> bool {
        let area = self.map.get(self.start..self.start + self.bytes).unwrap_or_default();
        area.chunks(step_bytes.max(1)).all(|page| {
            let (first, rest) = page.split_first().unwrap_or((&value, &[]));
            *first == value && rest.iter().fold(0, |sum, byte| sum | byte) == 0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_zero_but_for_what_was_touched() {
        for huge in [HugePages::Unasked, HugePages::Asked, HugePages::Refused] {
            let mut region = Region::map(3 << 20, huge).unwrap();
            assert!(region.holds(4096, 0) && !region.holds(4096, 9));
            region.touch(0..usize::MAX, 4096, 9);
            assert!(region.holds(4096, 9) && !region.holds(8192, 9));
            region.touch(4096..8192, 1, 1);
            assert!(!region.holds(4096, 9));
            region.advise(huge);
        }
        assert!(Region::map(usize::MAX - 4096, HugePages::Unasked).is_err());
    }
}
