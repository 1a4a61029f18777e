//! Parts that ended with fewer samples than meant: [`Limits`], which `super::Lab` tells.

use crate::warning::Warning;
use std::sync::{Mutex, PoisonError};

/// A part that its time limit ended.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shortened {
    /// The part.
    part: String,
    /// Samples that every point of it has.
    runs: u32,
    /// Samples that were meant.
    meant: u32,
}

/// Parts that their time limits ended, for a warning; threads may add to it.
#[derive(Debug, Default)]
pub struct Limits(Mutex<Vec<Shortened>>);

impl Limits {
    pub(super) fn note(&self, part: &str, runs: u32, meant: u32) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        list.push(Shortened { part: part.into(), runs, meant });
    }

    /// What a reader must know of the points with fewer samples.
    pub fn warning(&self, remedy: &str) -> Option<Warning> {
        let list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let each = list.iter().map(|s| format!("{} of {} in {:?}", s.runs, s.meant, s.part));
        let each = each.collect::<Vec<_>>().join(", ");
        (!list.is_empty()).then(|| {
            Warning::new(
                "fewer-runs",
                format!("time limits left points with fewer samples: {each}"),
                remedy,
            )
        })
    }
}
