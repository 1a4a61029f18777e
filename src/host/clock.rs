//! The ruler: one clock, whose precision is known before the first sample.
//!
//! [`Clock`] reads CLOCK_MONOTONIC_RAW, which no time daemon slews while a
//! measurement runs. [`Clock::measure`] finds its resolution and the cost of a
//! call; records carry both as [`ClockFacts`].

use serde::{Deserialize, Serialize};

/// What is known about the clock of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockFacts {
    /// Which clock, in POSIX's words.
    pub kind: String,
    /// The smallest step seen between two readings, at least 1.
    pub resolution_ns: u64,
    /// What one reading costs, rounded up, at least 1.
    pub overhead_ns: u64,
}

/// A measured clock.
#[derive(Clone, Debug)]
pub struct Clock {
    facts: ClockFacts,
}

/// Readings per batch: long against the resolution, short against a time slice.
const BATCH: u64 = 1000;
/// Batches: a few may be disturbed, the quickest one was not.
const BATCHES: u64 = 20;

impl Clock {
    /// Finds resolution and overhead, in about a millisecond.
    pub fn measure() -> Self {
        Self { facts: measure_with("CLOCK_MONOTONIC_RAW", raw_ns) }
    }

    /// Nanoseconds since an arbitrary point, never going back.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        raw_ns()
    }

    /// Kind, resolution and overhead.
    pub fn facts(&self) -> &ClockFacts {
        &self.facts
    }
}

/// Measures any clock: of tests too.
fn measure_with(kind: &str, mut now_ns: impl FnMut() -> u64) -> ClockFacts {
    let mut resolution_ns = u64::MAX;
    let mut batch_ns = u64::MAX;
    for _ in 0..BATCHES {
        let start = now_ns();
        let mut last = start;
        for _ in 0..BATCH {
            let now = now_ns();
            if now > last {
                resolution_ns = resolution_ns.min(now - last);
            }
            last = now;
        }
        batch_ns = batch_ns.min(last.saturating_sub(start));
    }
    if resolution_ns == u64::MAX {
        // A clock so coarse that it stood still throughout: wait for its next tick.
        resolution_ns = next_tick_ns(&mut now_ns);
    }
    let overhead_ns = batch_ns.div_ceil(BATCH).max(1);
    ClockFacts { kind: kind.into(), resolution_ns, overhead_ns }
}

/// One step of a clock that is coarser than a batch.
fn next_tick_ns(now_ns: &mut impl FnMut() -> u64) -> u64 {
    let start = now_ns();
    // Bounded, so that a clock that stands still cannot hang the program.
    (0..10_000_000u64).map(|_| now_ns()).find(|&now| now > start).map_or(1, |now| now - start)
}

/// The raw monotonic clock.
#[inline]
fn raw_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writes. The call can only fail for an unknown
    // clock, and Linux has had this one since 2.6.28.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, &raw mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that costs `call` ns to read and steps by `step` ns.
    fn fake(call: u64, step: u64) -> impl FnMut() -> u64 {
        let mut now = 0;
        move || {
            now += call;
            now / step * step
        }
    }

    #[test]
    fn a_fine_clock_costs_more_than_it_steps() {
        let facts = measure_with("fake", fake(25, 1));
        assert_eq!((facts.resolution_ns, facts.overhead_ns), (25, 25));
    }

    #[test]
    fn a_coarse_clock_shows_its_step() {
        let facts = measure_with("fake", fake(20, 100));
        assert_eq!((facts.resolution_ns, facts.overhead_ns), (100, 20));
        let jiffies = measure_with("fake", fake(20, 4_000_000));
        assert_eq!((jiffies.resolution_ns, jiffies.overhead_ns), (4_000_000, 1));
    }

    #[test]
    fn a_clock_that_stands_still_ends() {
        assert_eq!(measure_with("fake", || 7).resolution_ns, 1);
    }

    #[test]
    fn the_real_clock_never_goes_back() {
        let clock = Clock::measure();
        assert!(clock.facts().resolution_ns >= 1 && clock.facts().overhead_ns >= 1);
        let readings: Vec<u64> = (0..1000).map(|_| clock.now_ns()).collect();
        assert!(readings.is_sorted());
    }
}
