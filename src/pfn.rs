//! Addresses of physical memory and their ranges.
//!
//! [`Pfn`], [`Nid`] and [`SectionNr`] are numbers that must not be mixed up, so they
//! have named operations and no `+`. [`PfnRange`] and [`PhysRange`] are half-open:
//! `end` is the first value that no longer belongs to them. Everything above this
//! module speaks in these types; it uses nothing itself.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A page frame number: a physical address divided by the base page size.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Pfn(pub u64);

/// A NUMA node id as Linux numbers it; ids may have gaps.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Nid(pub u32);

/// The number of a memory section (128 MiB on x86_64).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct SectionNr(pub u64);

impl Pfn {
    /// The page frame `pages` further up; saturates at the highest number.
    pub const fn offset(self, pages: u64) -> Self {
        Self(self.0.saturating_add(pages))
    }

    /// Pages from `lower` up to this one; 0 when `lower` lies above.
    pub const fn pages_since(self, lower: Self) -> u64 {
        self.0.saturating_sub(lower.0)
    }

    /// The nearest multiple of `pages` at or below. `pages` must not be 0.
    pub const fn align_down(self, pages: u64) -> Self {
        Self(self.0 - self.0 % pages)
    }

    /// The nearest multiple of `pages` at or above; saturates. `pages` must not be 0.
    pub const fn align_up(self, pages: u64) -> Self {
        let rest = self.0 % pages;
        if rest == 0 { self } else { Self(self.0.saturating_add(pages - rest)) }
    }

    /// Whether this is a multiple of `pages`. `pages` must not be 0.
    pub const fn is_aligned(self, pages: u64) -> bool {
        self.0.is_multiple_of(pages)
    }

    /// The section this page frame lies in.
    pub const fn section(self, pages_per_section: u64) -> SectionNr {
        SectionNr(self.0 / pages_per_section)
    }
}

impl SectionNr {
    /// The following section.
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Pfn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Display for Nid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for SectionNr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Page frames `start..end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PfnRange {
    /// The first page frame.
    pub start: Pfn,
    /// The first page frame behind the range.
    pub end: Pfn,
}

/// Physical bytes `start..end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PhysRange {
    /// The first byte.
    pub start: u64,
    /// The first byte behind the range.
    pub end: u64,
}

impl PfnRange {
    /// The range `start..end`; empty when `end` does not lie above `start`.
    pub const fn new(start: u64, end: u64) -> Self {
        Self { start: Pfn(start), end: Pfn(end) }
    }

    /// How many page frames the range has.
    pub const fn pages(self) -> u64 {
        self.end.pages_since(self.start)
    }

    /// Whether the range has no page frame.
    pub const fn is_empty(self) -> bool {
        self.pages() == 0
    }

    /// What both ranges have in common, or `None`.
    pub fn intersect(self, other: Self) -> Option<Self> {
        let both = Self { start: self.start.max(other.start), end: self.end.min(other.end) };
        (!both.is_empty()).then_some(both)
    }

    /// Whether `pfn` lies in the range.
    pub fn contains(self, pfn: Pfn) -> bool {
        self.start <= pfn && pfn < self.end
    }
}

impl PhysRange {
    /// The range `start..end`; empty when `end` does not lie above `start`.
    pub const fn new(start: u64, end: u64) -> Self {
        Self { start, end }
    }

    /// How many bytes the range has.
    pub const fn bytes(self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Whether the range has no byte.
    pub const fn is_empty(self) -> bool {
        self.bytes() == 0
    }

    /// What both ranges have in common, or `None`.
    pub fn intersect(self, other: Self) -> Option<Self> {
        let both = Self { start: self.start.max(other.start), end: self.end.min(other.end) };
        (!both.is_empty()).then_some(both)
    }

    /// The pages that lie wholly inside, as Linux rounds memory (`PFN_UP` to `PFN_DOWN`).
    pub const fn whole_pages(self, page_bytes: u64) -> PfnRange {
        PfnRange::new(self.start.div_ceil(page_bytes), self.end / page_bytes)
    }

    /// The pages that are touched at all, as Linux rounds reservations.
    pub const fn touched_pages(self, page_bytes: u64) -> PfnRange {
        PfnRange::new(self.start / page_bytes, self.end.div_ceil(page_bytes))
    }
}

impl fmt::Display for PhysRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}..{:#x}", self.start, self.end)
    }
}

impl fmt::Display for PfnRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pfn {:#x}..{:#x}", self.start.0, self.end.0)
    }
}

/// The pages of all `ranges` together; at most `u64::MAX`, as a damaged log may show
/// thousands of ranges that reach over all addresses.
pub fn total_pages(ranges: &[PfnRange]) -> u64 {
    ranges.iter().fold(0, |sum, r| sum.saturating_add(r.pages()))
}

/// Sorts the ranges and joins those that touch or overlap; drops empty ones.
pub fn normalise(mut ranges: Vec<PfnRange>) -> Vec<PfnRange> {
    ranges.retain(|r| !r.is_empty());
    ranges.sort();
    let mut out: Vec<PfnRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match out.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => out.push(range),
        }
    }
    out
}

/// The parts of `from` that no range of `cut` covers. Both must be normalised.
pub fn subtract(from: &[PfnRange], cut: &[PfnRange]) -> Vec<PfnRange> {
    let mut out = Vec::new();
    let mut first = 0;
    for &range in from {
        while first < cut.len() && cut[first].end <= range.start {
            first += 1;
        }
        let mut start = range.start;
        for hole in cut[first..].iter().take_while(|c| c.start < range.end) {
            if hole.start > start {
                out.push(PfnRange { start, end: hole.start });
            }
            start = start.max(hole.end);
        }
        if start < range.end {
            out.push(PfnRange { start, end: range.end });
        }
    }
    out
}

/// What both lists cover. Both must be normalised.
pub fn intersect(a: &[PfnRange], b: &[PfnRange]) -> Vec<PfnRange> {
    let (mut i, mut j) = (0, 0);
    let mut out = Vec::new();
    while i < a.len() && j < b.len() {
        out.extend(a[i].intersect(b[j]));
        if a[i].end <= b[j].end {
            i += 1;
        } else {
            j += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ranges() -> impl Strategy<Value = Vec<PfnRange>> {
        prop::collection::vec((0u64..120, 0u64..20), 0..12)
            .prop_map(|v| normalise(v.iter().map(|&(s, n)| PfnRange::new(s, s + n)).collect()))
    }

    fn members(r: &[PfnRange]) -> Vec<u64> {
        r.iter().flat_map(|r| r.start.0..r.end.0).collect()
    }

    proptest! {
        #[test]
        fn set_operations_agree_with_sets(a in ranges(), b in ranges()) {
            let (ma, mb) = (members(&a), members(&b));
            let minus: Vec<u64> = ma.iter().copied().filter(|x| !mb.contains(x)).collect();
            let both: Vec<u64> = ma.iter().copied().filter(|x| mb.contains(x)).collect();
            prop_assert_eq!(members(&subtract(&a, &b)), minus);
            prop_assert_eq!(members(&intersect(&a, &b)), both);
        }
    }

    //        0x0fff  0x1000      0x2fff   0x3000
    // memory    [=====|===========|========)        whole pages: pfn 1..3
    #[test]
    fn memory_rounds_inward_and_reservations_outward() {
        let bytes = PhysRange::new(0xfff, 0x3001);
        assert_eq!(bytes.whole_pages(4096), PfnRange::new(1, 3));
        assert_eq!(bytes.touched_pages(4096), PfnRange::new(0, 4));
    }

    #[test]
    fn alignment_is_by_multiples() {
        assert_eq!(Pfn(1025).align_up(1024), Pfn(2048));
        assert_eq!(Pfn(1025).align_down(1024), Pfn(1024));
        assert_eq!(Pfn(2048).align_up(1024), Pfn(2048));
        assert_eq!(Pfn(40000).section(32768), SectionNr(1));
    }
}
