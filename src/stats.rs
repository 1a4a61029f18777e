//! Statistics of repeated runs: medians, bootstrap intervals, paired ratios.
//!
//! [`Summary`] is a median with its 95 % interval. [`Rng`] is a small seeded
//! generator, so that an order of runs and an interval can be repeated from the seed
//! that a record carries. Only `study` draws conclusions from these.

use serde::{Deserialize, Serialize};

/// Resamples of a bootstrap interval.
const RESAMPLES: usize = 2000;

/// A median and the interval that holds it with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Summary {
    /// The median, in the unit of the samples.
    pub median: f64,
    /// Lower and upper end of the percentile bootstrap interval of the median.
    pub ci95: [f64; 2],
}

/// The median; the mean of the middle two for an even count; 0 for no samples.
pub fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    median_of_sorted(&sorted)
}

fn median_of_sorted(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    match n {
        0 => 0.0,
        _ if n % 2 == 1 => sorted[n / 2],
        _ => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

/// The median with a percentile bootstrap interval; `seed` makes it repeatable.
pub fn summarise(samples: &[f64], seed: u64) -> Summary {
    let center = median(samples);
    if samples.len() < 2 {
        return Summary { median: center, ci95: [center, center] };
    }
    let mut rng = Rng::new(seed);
    let mut scratch = Vec::new();
    let medians = (0..RESAMPLES).map(|_| resampled_median(samples, &mut rng, &mut scratch));
    Summary { median: center, ci95: interval(medians.collect()).unwrap_or([center; 2]) }
}

/// The median of as many samples, drawn with replacement.
fn resampled_median(samples: &[f64], rng: &mut Rng, scratch: &mut Vec<f64>) -> f64 {
    scratch.clear();
    scratch.extend((0..samples.len()).map(|_| samples[rng.below(samples.len())]));
    // Not sorted: with hundreds of samples that would take most of a report's time.
    let n = scratch.len();
    let (below, upper, _) = scratch.select_nth_unstable_by(n / 2, f64::total_cmp);
    match n % 2 {
        1 => *upper,
        _ => f64::midpoint(below.iter().copied().fold(f64::NEG_INFINITY, f64::max), *upper),
    }
}

/// The 2.5 and 97.5 percentiles; `None` of nothing.
fn interval(mut values: Vec<f64>) -> Option<[f64; 2]> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    Some([0.025, 0.975].map(|share| values[(last as f64 * share).round() as usize]))
}

/// Mean and sample standard deviation; no deviation for fewer than two samples.
pub fn mean_sd(samples: &[f64]) -> (f64, Option<f64>) {
    let count = samples.len() as f64;
    if samples.is_empty() {
        return (0.0, None);
    }
    let mean = samples.iter().sum::<f64>() / count;
    let squares: f64 = samples.iter().map(|s| (s - mean) * (s - mean)).sum();
    (mean, (samples.len() > 1).then(|| (squares / (count - 1.0)).sqrt()))
}

/// The ratio of the medians `time ÷ baseline` of runs that do not belong together, with a
/// percentile bootstrap interval: both are resampled, each from its own runs.
///
/// `None` for no samples and where the baseline's median is not above 0. Resamples whose
/// baseline is 0 are left out.
pub fn ratio_of_medians(time: &[f64], baseline: &[f64], seed: u64) -> Option<Summary> {
    let center = median(time) / median(baseline);
    if time.is_empty() || baseline.is_empty() || !center.is_finite() {
        return None;
    }
    let mut rng = Rng::new(seed);
    let mut scratch = Vec::new();
    let mut resampled = |samples| resampled_median(samples, &mut rng, &mut scratch);
    let ratios = (0..RESAMPLES).map(|_| resampled(time) / resampled(baseline));
    let ci95 = interval(ratios.filter(|ratio| ratio.is_finite()).collect())?;
    Some(Summary { median: center, ci95 })
}

/// The ratios `time ÷ baseline` of runs that belong together, pair by pair.
///
/// Pairs beyond the shorter list and pairs with a baseline of 0 are left out.
pub fn paired_ratios(time: &[f64], baseline: &[f64]) -> Vec<f64> {
    time.iter().zip(baseline).filter(|(_, b)| **b > 0.0).map(|(t, b)| t / b).collect()
}

/// A small, seeded generator of pseudo-random numbers (SplitMix64).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The generator that `seed` stands for.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 for a bound of 0.
    pub const fn below(&mut self, bound: usize) -> usize {
        ((self.next_u64() as u128 * bound as u128) >> 64) as usize
    }

    /// Puts `items` into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_count_lies_between() {
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!(median(&[9.0, 1.0, 5.0]), 5.0);
        assert_eq!(median(&[]), 0.0);
    }

    #[test]
    fn the_interval_holds_the_median_and_widens_with_noise() {
        let tight: Vec<f64> = (0..11).map(|i| 100.0 + f64::from(i) * 0.1).collect();
        let wide: Vec<f64> = (0..11).map(|i| 100.0 + f64::from(i) * 10.0).collect();
        let (t, w) = (summarise(&tight, 1), summarise(&wide, 1));
        assert!(t.ci95[0] <= t.median && t.median <= t.ci95[1]);
        assert!(w.ci95[1] - w.ci95[0] > 10.0 * (t.ci95[1] - t.ci95[0]));
        assert_eq!(summarise(&wide, 1), w, "the same seed gives the same interval");
    }

    #[test]
    fn a_resamples_median_is_that_of_its_sorted_values() {
        let samples: Vec<f64> = (0..9).map(|i| f64::from(i * i)).collect();
        for count in 1..=samples.len() {
            let (mut one, mut other) = (Rng::new(5), Rng::new(5));
            for _ in 0..50 {
                let samples = &samples[..count];
                let drawn: Vec<f64> = (0..count).map(|_| samples[other.below(count)]).collect();
                assert_eq!(resampled_median(samples, &mut one, &mut Vec::new()), median(&drawn));
            }
        }
    }

    #[test]
    fn ratios_are_taken_run_by_run() {
        assert_eq!(paired_ratios(&[2.0, 9.0], &[1.0, 3.0]), [2.0, 3.0]);
        assert_eq!(paired_ratios(&[2.0], &[0.0]), [] as [f64; 0]);
    }

    #[test]
    fn a_ratio_of_medians_has_the_spread_of_both() {
        let steady = vec![100.0; 7];
        let noisy: Vec<f64> = (0..7).map(|i| 190.0 + f64::from(i) * 5.0).collect();
        let of = |a: &[f64], b: &[f64]| ratio_of_medians(a, b, 1);
        assert_eq!(of(&steady, &steady).unwrap(), Summary { median: 1.0, ci95: [1.0, 1.0] });
        let ratio = of(&noisy, &steady).unwrap();
        assert_eq!(ratio.median, 2.05);
        assert!(ratio.ci95[0] < 2.0 && ratio.ci95[1] > 2.1, "{ratio:?}");
        let both = of(&noisy, &noisy).unwrap();
        let width = |s: Summary| (s.ci95[1] - s.ci95[0]) / s.median;
        assert!(width(both) > 1.2 * width(ratio), "{both:?} {ratio:?}");
        assert_eq!((of(&[], &steady), of(&steady, &[]), of(&steady, &[0.0])), (None, None, None));
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..50).collect();
        Rng::new(7).shuffle(&mut items);
        assert_ne!(items, (0..50).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<_>>());
    }
}
