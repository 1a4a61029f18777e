//! Studies: run plans, pair the runs, draw figures from them, fill a record.
//!
//! [`compare()`] executes the boot strategies on this host. [`Candidate`] is one
//! strategy with one store, [`rounds`] runs them; [`setup`] decides buffer, window and mapping;
//! [`figures`] turns times into points, ratios and the prefetch effect; [`scale`]
//! multiplies rates up to whole machines and labels that; [`beside`] has published
//! ratios. Predictions: [`estimate`] one
//! machine, [`sweep`] many combinations, [`validate`] the [`published`] figures, each of
//! which [`subject`] turns into a machine; [`calibrate`] measures this host for them.
//! [`diff`] holds two records against each other.
//! Uses `exec` and `model` to run and `kernel` and `plan` to know what; shows nothing.

pub mod beside;
pub mod calibrate;
pub mod candidates;
pub mod compare;
pub mod diff;
pub mod estimate;
mod facts;
pub mod figures;
mod memory;
pub mod published;
pub mod room;
pub mod rounds;
pub mod scale;
pub mod setup;
pub mod subject;
pub mod sweep;
#[cfg(test)]
mod tests;
pub mod validate;

pub use candidates::Candidate;
pub use compare::{HostContext, Options, compare};

use crate::exec::ExecError;
use crate::exec::verify::Mismatch;
use crate::host::store::StoreError;
use crate::kernel::layout::LayoutError;
use crate::lab::LabError;
use crate::machine::MachineError;
use crate::model::anchor::AnchorError;
use crate::plan::window::TooSmall;
use crate::record::file::FileError;
use crate::units::Bytes;

/// Why a study ended without a usable record.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// An option that cannot be met; the text says what would be.
    #[error("{0}")]
    Usage(String),
    /// Not enough memory.
    #[error(
        "{what} needs {needed}, but only {free} may be used here ({limit}); use a smaller --buffer"
    )]
    NoMemory {
        /// What asked for it.
        what: String,
        /// How much it asked for.
        needed: Bytes,
        /// How much there is.
        free: Bytes,
        /// What sets the limit.
        limit: String,
    },
    /// The window does not fit.
    #[error(transparent)]
    Window(#[from] TooSmall),
    /// A store is unknown or missing.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The machine has no layout.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// A machine could not be loaded.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// An anchor cannot be used.
    #[error(transparent)]
    Anchor(#[from] AnchorError),
    /// Executing failed.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// A record could not be saved.
    #[error(transparent)]
    File(#[from] FileError),
    /// An experiment below the strategies failed.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// A run left other bytes than it should.
    #[error("{strategy} left wrong data in run {run}: {mismatch}")]
    WrongData {
        /// The strategy or probe.
        strategy: String,
        /// Which round, from 1.
        run: u32,
        /// What differs.
        mismatch: Box<Mismatch>,
    },
}

impl StudyError {
    /// Whether the user ended the work.
    pub const fn is_interrupt(&self) -> bool {
        matches!(self, Self::Exec(error) if error.is_interrupt())
    }
}
