//! Running a [`BootPlan`] for real, on pinned threads and bound memory.
//!
//! [`Memory`] holds the buffer; [`run`] fills it with 0xff past the caches, executes
//! a plan and returns what every phase, node and worker took as [`RunTimes`];
//! [`verify`] compares all of it with the kernel layer's oracle. Neither plans nor
//! decides: `study` does. The virtual-time counterpart would be `model`, which this
//! module does not know.

pub mod chunks;
pub mod fill;
pub mod lists;
pub mod memory;
pub mod ops;
pub mod phase;
pub mod team;
#[cfg(test)]
mod tests;
pub mod times;
pub mod verify;

pub use fill::zero_advantage;
pub use memory::{Mapping, Memory};
pub use phase::{run, run_until};
pub use times::{PhaseTime, RunTimes, WorkerSpan};

use crate::host::HostError;
use crate::host::store::{StoreError, StoreKind};
use crate::pfn::Nid;

/// Asked between pieces of long work; `true` ends it.
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// Why a plan could not be executed.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// The host layer failed.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A store of the plan is not to be had.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No store of that kind writes whole images here.
    #[error("this CPU has no {kind} store that writes whole struct pages")]
    NoImageStore {
        /// The kind asked for.
        kind: StoreKind,
    },
    /// A thread could not be started.
    #[error("a worker thread could not be started: {0}; use fewer threads or raise the limit")]
    Spawn(std::io::Error),
    /// Another worker of the team failed first.
    #[error("a worker failed before the team started")]
    TeamBroken,
    /// Memory is bound but lies elsewhere.
    #[error(
        "{on_node_bytes} of {bytes} bytes lie on node {nid} although all are bound to it; \
         free memory there or use a smaller --buffer"
    )]
    Misplaced {
        /// The host node.
        nid: u32,
        /// Bytes of the arena.
        bytes: u64,
        /// Bytes that lie where they should.
        on_node_bytes: u64,
    },
    /// The plan names a node that the memory has no area for.
    #[error("the plan works on node {0}, for which no memory was mapped")]
    UnknownNode(Nid),
}

impl ExecError {
    /// Whether the user ended the work.
    pub const fn is_interrupt(&self) -> bool {
        matches!(self, Self::Host(HostError::Interrupted))
    }
}

/// An error once `stop` says so.
pub(crate) fn go_on(stop: Stop<'_>) -> Result<(), ExecError> {
    if stop() { Err(HostError::Interrupted.into()) } else { Ok(()) }
}
