//! The calibration file: what one host's stores and passes really cost.
//!
//! [`Calibration`] carries measured ns per struct page for every strategy and phase at
//! one thread per node and at all of them. `calibrate` writes it, `estimate
//! --calibration` reads it.

use super::{Head, HostFacts, Label};
use serde::{Deserialize, Serialize};

/// The schema of calibration files.
pub const CALIBRATION_SCHEMA: &str = "pageinit/calibration/1";

/// What was measured on one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// What every document begins with.
    #[serde(flatten)]
    pub head: Head,
    /// Always `measured`.
    pub label: Label,
    /// The host.
    pub host: HostFacts,
    /// The kernel version whose rules were executed.
    pub kernel: String,
    /// Threads per node of the second series; 1 when there was none.
    pub most_threads: u32,
    /// The rates.
    pub rates: Vec<Rate>,
}

/// One phase of one strategy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// The strategy.
    pub strategy: String,
    /// The phase.
    pub phase: String,
    /// Whether pages were freed.
    pub free: bool,
    /// Threads per node.
    pub threads: u32,
    /// Time of a node's team per struct page.
    pub ns_per_page: f64,
}
