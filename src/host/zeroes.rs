//! Processors that write lines of zeroes faster than other data: [`advantage`] measures
//! it, [`warning`] says it. There a pass of zeroes tells little of other stores.

use super::clock::Clock;
use crate::stats::median;
use crate::warning::Warning;

/// Above this, zeroing looks clearly cheaper than any other stores.
const NOTABLE: f64 = 1.25;
const ROUNDS: usize = 5;

/// How many times as fast zeroes are stored as other data: `fill` fills the same memory
/// with a word past the caches; the median of a few fills in turn.
///
/// # Errors
/// What `fill` says.
pub fn advantage<E>(clock: &Clock, mut fill: impl FnMut(u64) -> Result<(), E>) -> Result<f64, E> {
    let mut timed = |word| {
        let began = clock.now_ns();
        fill(word)?;
        Ok(clock.now_ns().saturating_sub(began) as f64)
    };
    let mut ratios = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let (other, zeroes) = (timed(u64::MAX)?, timed(0)?);
        ratios.push(other / zeroes.max(1.0));
    }
    Ok(median(&ratios))
}

/// What a reader must know where zeroes are notably faster; `consequence` is what that
/// flatters.
pub fn warning(advantage: f64, consequence: &str) -> Option<Warning> {
    (advantage > NOTABLE).then(|| {
        let text =
            format!("this processor writes zeroes {advantage:.1} times as fast as other data");
        Warning::new("zeroes-faster", text, consequence)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_notable_advantage_is_said() {
        assert_eq!(warning(1.1, "x"), None);
        let said = warning(2.21, "flatters x").unwrap().to_string();
        assert!(said.contains("2.2 times") && said.contains("flatters x"), "{said}");
    }

    #[test]
    fn both_kinds_of_data_are_filled_in_turn_and_errors_end_it() {
        let clock = Clock::measure();
        let mut words = Vec::new();
        let done = advantage(&clock, |word| {
            words.push(word);
            if words.len() < 4 { Ok(()) } else { Err("stop") }
        });
        assert_eq!((done, words), (Err("stop"), vec![u64::MAX, 0, u64::MAX, 0]));
    }
}
