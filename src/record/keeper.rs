//! Records saved while they grow, so that a kill leaves what was done by then.
//!
//! A [`Keeper`] has a [`Target`] and knows when it is time. Studies ask it between rounds
//! or blocks of points, never inside a timed region, and draw the record only then.

use super::file::{FileError, Target};
use serde::Serialize;
use std::time::{Duration, Instant};

/// How often records are saved unless somebody says otherwise.
pub const USUAL_INTERVAL: Duration = Duration::from_secs(1);

/// Saving may take one part in so many of the time.
const SHARE: u32 = 20;

/// Saves a record from time to time, and when it is complete.
#[derive(Debug)]
pub struct Keeper {
    target: Target,
    interval: Duration,
    /// When it became time; `None` when nobody asked since the last save.
    began: Option<Instant>,
    ended: Instant,
    cost: Duration,
}

impl Keeper {
    /// Saves to `target`, at most once in `interval` and rarer where that takes long. With
    /// an interval of 0 it is always time.
    pub fn new(target: Target, interval: Duration) -> Self {
        Self { target, interval, began: None, ended: Instant::now(), cost: Duration::ZERO }
    }

    /// Whether it is time to save. What is done from a yes to the end of [`Self::save`]
    /// counts as the cost of saving.
    pub fn is_time(&mut self) -> bool {
        let pause = self.interval.max(self.cost.saturating_mul(SHARE - 1));
        let yes = self.interval.is_zero() || self.ended.elapsed() >= pause;
        if yes {
            self.began = Some(Instant::now());
        }
        yes
    }

    /// Saves, also when it is not time: then the saving alone is the cost.
    ///
    /// # Errors
    /// When the system refuses; what was saved before is intact.
    pub fn save(&mut self, document: &impl Serialize) -> Result<(), FileError> {
        let began = self.began.take().unwrap_or_else(Instant::now);
        let saved = self.target.save_json(document);
        self.ended = Instant::now();
        self.cost = self.ended.duration_since(began);
        saved
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn keeper(dir: &TempDir, interval: Duration) -> Keeper {
        Keeper::new(Target::new(&dir.path().join("a.json"), false).unwrap(), interval)
    }

    #[test]
    fn it_is_time_once_in_an_interval_and_always_without_one() {
        let dir = TempDir::new().unwrap();
        assert!(!keeper(&dir, Duration::from_secs(3600)).is_time());
        let mut always = keeper(&dir, Duration::ZERO);
        for number in [1, 2] {
            assert!(always.is_time());
            always.save(&number).unwrap();
        }
        assert_eq!(std::fs::read_to_string(dir.path().join("a.json")).unwrap(), "2\n");
    }

    // What was done before a save that nobody was asked about is not its cost.
    #[test]
    fn a_save_out_of_turn_counts_alone() {
        let dir = TempDir::new().unwrap();
        let mut keeper = keeper(&dir, Duration::ZERO);
        assert!(keeper.is_time());
        keeper.began = Instant::now().checked_sub(Duration::from_secs(60));
        keeper.save(&1).unwrap();
        assert!(keeper.cost >= Duration::from_secs(60));
        keeper.save(&2).unwrap();
        assert!(keeper.cost < Duration::from_secs(60));
    }

    #[test]
    fn saving_that_takes_long_becomes_rare() {
        let dir = TempDir::new().unwrap();
        let mut slow = keeper(&dir, Duration::from_nanos(1));
        slow.cost = Duration::from_secs(3600);
        assert!(!slow.is_time());
    }
}
