//! Progress of long work, without knowing who shows it.
//!
//! `study` and `exec` report to a [`Progress`]; `cli` alone knows what a terminal is
//! and implements it there. [`Silent`] is the double for tests and for `--quiet`.

/// Somebody who wants to know how far long work is.
///
/// Implementations must return at once and must not start threads that tick by
/// themselves: calls come from between timed regions, never from inside one.
pub trait Progress: Sync {
    /// A stage of `total` units begins; `what` names it for people.
    fn begin(&self, what: &str, total: u64, unit: Unit);
    /// `done` more units of the current stage are finished.
    fn advance(&self, done: u64);
    /// The current stage has ended.
    fn end(&self);
}

/// What a stage counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes of a buffer.
    Bytes,
    /// Runs of a strategy.
    Runs,
}

/// Shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _what: &str, _total: u64, _unit: Unit) {}
    fn advance(&self, _done: u64) {}
    fn end(&self) {}
}
