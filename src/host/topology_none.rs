//! The topology of a program without hwloc: there is none.
//!
//! Stands in for `topology.rs` where the feature `hwloc` is off, with the same
//! functions. [`HostTopology::load`] always fails, so that no value exists and
//! nothing is ever bound or pinned.

use super::error::HostError;
use std::convert::Infallible;

/// The machine that this program runs on; never made without hwloc.
#[derive(Debug)]
pub struct HostTopology {
    never: Infallible,
}

/// A NUMA node of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostNode {
    /// Linux's number of the node.
    pub nid: u32,
    /// Linux's numbers of its allowed CPUs in pinning order.
    pub cpus: Vec<u32>,
    /// Memory on this node in bytes.
    pub local_bytes: u64,
}

impl HostTopology {
    /// Says that binding needs hwloc.
    ///
    /// # Errors
    /// [`HostError::WithoutHwloc`], always.
    pub fn load() -> Result<Self, HostError> {
        Err(HostError::WithoutHwloc)
    }

    /// The CPUs that this process may use.
    pub fn allowed_cpus(&self) -> Vec<u32> {
        match self.never {}
    }

    /// All nodes.
    pub fn nodes(&self) -> Vec<HostNode> {
        match self.never {}
    }

    /// Binds the calling thread.
    ///
    /// # Errors
    /// None, as there is no value to call it on.
    pub fn pin_thread(&self, _cpu: u32) -> Result<(), HostError> {
        match self.never {}
    }

    pub(super) fn check_node(&self, _nid: u32) -> Result<(), HostError> {
        match self.never {}
    }

    pub(super) fn bind_area(&self, _area: &[u8], _nid: u32) -> Result<(), HostError> {
        match self.never {}
    }

    pub(super) fn locate(&self, _part: &[u8], _nid: u32) -> Result<(bool, bool), HostError> {
        match self.never {}
    }
}
