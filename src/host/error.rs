//! What can go wrong between this program and this host.

use crate::units::Bytes;
#[cfg(feature = "hwloc")]
use hwlocality::errors::{HybridError, RawHwlocError};
use std::error::Error;
use std::io;

/// A failed request to the operating system or to hwloc.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// hwloc describes another machine, so that its bindings would do nothing.
    #[error(
        "hwloc describes another machine than this one because of {}; unset that to run here",
        .variables.join(", ")
    )]
    NotThisSystem {
        /// The environment variables that are set.
        variables: Vec<String>,
    },
    /// This program was built without hwloc.
    #[error(
        "binding threads and memory needs hwloc, and this program was built without it; build it \
         with its default features"
    )]
    WithoutHwloc,
    /// hwloc could not read the topology.
    #[error("hwloc cannot read the topology of this host: {0}")]
    Topology(#[source] Box<dyn Error + Send + Sync>),
    /// This process may not run on this CPU, or it does not exist.
    #[error("CPU {cpu} does not exist or this process may not use it; it may use {allowed}")]
    NoSuchCpu {
        /// The CPU asked for, by Linux's number.
        cpu: u32,
        /// The allowed CPUs, as ranges.
        allowed: String,
    },
    /// No CPUs were given where at least one is needed.
    #[error("no CPU was given to fault memory in on; give at least one")]
    NoCpus,
    /// This host has no such node.
    #[error("NUMA node {nid} does not exist on this host; it has {known}")]
    NoSuchNode {
        /// The node asked for.
        nid: u32,
        /// The nodes that exist, as ranges.
        known: String,
    },
    /// The node exists, but the cpuset of this process keeps its memory away.
    #[error(
        "this process may not use the memory of NUMA node {nid}, only that of {allowed}: its \
         cpuset (cpuset.mems) says so; widen that, or describe a smaller machine with -m"
    )]
    NodeNotAllowed {
        /// The node asked for.
        nid: u32,
        /// The nodes that may be used, as ranges.
        allowed: String,
    },
    /// The thread could not be bound to its CPU.
    #[error("binding a thread to CPU {cpu} failed: {source}")]
    Pin {
        /// The CPU asked for.
        cpu: u32,
        /// What hwloc or the kernel said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Binding said yes, but the thread is bound elsewhere.
    #[error("a thread was bound to CPU {cpu} but reads back as bound to {found}")]
    PinIgnored {
        /// The CPU asked for.
        cpu: u32,
        /// The binding read back, as ranges.
        found: String,
    },
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
    /// The arena would not fit the address space.
    #[error("{lines} lines of 64 bytes do not fit the address space")]
    TooLarge {
        /// The lines asked for.
        lines: usize,
    },
    /// The kernel gave no address range.
    #[error("cannot map {bytes} bytes: {source}; ask for less or raise the limit (ulimit -v)")]
    Map {
        /// The bytes asked for.
        bytes: usize,
        /// What the kernel said.
        source: io::Error,
    },
    /// The node cannot give what is to be bound to it; the kernel would end this process.
    #[error(
        "NUMA node {nid} can give {} and {} are to lie there; ask for less, or free memory on it",
        Bytes(*.free_bytes), Bytes(*.needed_bytes)
    )]
    NodeFull {
        /// The node asked for.
        nid: u32,
        /// Bytes that were to be bound to it.
        needed_bytes: u64,
        /// Bytes that it can give.
        free_bytes: u64,
    },
    /// The arena may already have pages, which binding would not move.
    #[error("memory must be bound to node {nid} before its first touch")]
    BindTooLate {
        /// The node asked for.
        nid: u32,
    },
    /// Binding memory is not permitted here (EPERM, ENOSYS): usually a container.
    #[error(
        "the kernel refuses to bind memory to node {nid}: {source}; a container's seccomp filter \
         usually does that (allow mbind and move_pages, or add CAP_SYS_NICE)"
    )]
    BindRefused {
        /// The node asked for.
        nid: u32,
        /// What the kernel said.
        source: io::Error,
    },
    /// Binding memory failed for another reason.
    #[error("binding memory to node {nid} failed: {source}")]
    Bind {
        /// The node asked for.
        nid: u32,
        /// What hwloc or the kernel said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Asking where memory is, is not permitted here (EPERM, ENOSYS).
    #[error("the kernel refuses to say where memory is: {0}; allow move_pages in the container")]
    LocateRefused(#[source] io::Error),
    /// Asking where memory is failed for another reason.
    #[error("asking where memory is failed: {0}")]
    Locate(#[source] Box<dyn Error + Send + Sync>),
    /// The kernel refused to move memory.
    #[error("mremap of {bytes} bytes failed: {source}")]
    Move {
        /// The bytes to move.
        bytes: usize,
        /// What the kernel said.
        source: io::Error,
    },
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// What came back from hwlocality, sorted by what a caller can do about it.
#[cfg(feature = "hwloc")]
pub(super) enum Cause {
    /// EPERM or ENOSYS: go on without.
    Refused(io::Error),
    /// Anything else.
    Other(Box<dyn Error + Send + Sync>),
}

#[cfg(feature = "hwloc")]
impl Cause {
    /// Sorts an error; `unsupported` says which of hwlocality's own errors stand for
    /// ENOSYS, which it translates.
    pub(super) fn of<E>(error: HybridError<E>, unsupported: impl FnOnce(&E) -> bool) -> Self
    where
        E: Error + Send + Sync + 'static,
    {
        match error {
            HybridError::Rust(error) if unsupported(&error) => {
                Self::Refused(io::Error::from_raw_os_error(libc::ENOSYS))
            }
            HybridError::Rust(error) => Self::Other(Box::new(error)),
            HybridError::Hwloc(error) => Self::of_raw(error),
        }
    }

    fn of_raw(error: RawHwlocError) -> Self {
        // hwlocality's own text shows the error number as a debug print.
        error.errno.map_or(Self::Other(Box::new(error)), |errno| Self::of_errno(errno.0))
    }

    fn of_errno(errno: i32) -> Self {
        let source = io::Error::from_raw_os_error(errno);
        if matches!(errno, libc::EPERM | libc::ENOSYS) {
            Self::Refused(source)
        } else {
            Self::Other(Box::new(source))
        }
    }

    /// The error as such, where refusal is nothing special.
    pub(super) fn into_source(self) -> Box<dyn Error + Send + Sync> {
        match self {
            Self::Refused(error) => Box::new(error),
            Self::Other(error) => error,
        }
    }
}

#[cfg(all(test, feature = "hwloc"))]
mod tests {
    use super::*;
    use hwlocality::memory::binding::MemoryBindingError;
    use hwlocality::memory::nodeset::NodeSet;

    #[test]
    fn refusal_is_told_from_failure() {
        assert!(matches!(Cause::of_errno(libc::EPERM), Cause::Refused(_)));
        assert!(matches!(Cause::of_errno(libc::ENOSYS), Cause::Refused(_)));
        let invalid = Cause::of_errno(libc::EINVAL);
        assert!(matches!(invalid, Cause::Other(_)));
        assert!(invalid.into_source().to_string().starts_with("Invalid argument"));
    }

    #[test]
    fn errors_of_hwlocality_itself_are_asked_about() {
        let unsupported = HybridError::Rust(MemoryBindingError::<NodeSet>::Unsupported);
        let asked = |error: &_| matches!(error, MemoryBindingError::Unsupported);
        assert!(matches!(Cause::of(unsupported, asked), Cause::Refused(_)));
        let area = HybridError::Rust(MemoryBindingError::<NodeSet>::BadArea);
        assert!(matches!(Cause::of(area, asked), Cause::Other(_)));
        let raw = RawHwlocError { api: "mbind", errno: None };
        assert!(matches!(Cause::of_raw(raw), Cause::Other(_)));
    }
}
