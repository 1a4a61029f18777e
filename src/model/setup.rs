//! What is known of a boot beyond its plan and its hardware.
//!
//! [`Setup`] holds options, the factors of anchors and measured costs
//! ([`CalibratedPhase`]). [`Setup::on`] makes of a class's hardware the one that anchors
//! say it is. [`super::anchor`] finds the factors, [`super::run`] uses all of it.

use super::cost::Options;
use super::hardware::Hardware;
use crate::pfn::Nid;
use crate::plan::PhaseName;

/// What is known beyond plan and hardware.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Setup {
    /// Poisoning, debugging, page size.
    pub options: Options,
    /// Factors by which anchors make nodes slower or faster than their class; nodes that
    /// are not named take the mean of those that are.
    pub scales: Vec<(Nid, f64)>,
    /// Factors by which anchors make the memory of nodes faster or slower, likewise.
    pub rates: Vec<(Nid, f64)>,
    /// Measured costs, which replace the class's where strategy and phase are the same.
    pub calibrated: Vec<CalibratedPhase>,
}

/// What one phase of one strategy was measured to cost.
#[derive(Clone, Debug, PartialEq)]
pub struct CalibratedPhase {
    /// The strategy.
    pub strategy: String,
    /// The phase.
    pub phase: PhaseName,
    /// Whether pages are freed.
    pub free: bool,
    /// One page on one worker, in ns.
    pub alone_ns: f64,
    /// The part of it that a node's workers share, in ns.
    pub bandwidth_ns: f64,
    /// The workers of a node with which that part was measured; more of them share what
    /// the class says of the node's memory.
    pub most_threads: u32,
}

impl Setup {
    /// The factor on a node's costs.
    pub fn scale_of(&self, nid: Nid) -> f64 {
        factor_of(&self.scales, nid)
    }

    /// The factor on a node's memory rate.
    pub fn rate_of(&self, nid: Nid) -> f64 {
        factor_of(&self.rates, nid)
    }

    /// The hardware with the factors of anchors on costs and memory rates.
    pub fn on(&self, hardware: &Hardware) -> Hardware {
        let mut out = self.rated(hardware);
        for node in &mut out.nodes {
            let scale = self.scale_of(node.nid);
            node.line_ns *= scale;
            node.core_factor *= scale;
        }
        out
    }

    /// The hardware with the factors on memory rates alone.
    pub fn rated(&self, hardware: &Hardware) -> Hardware {
        let mut out = hardware.clone();
        out.nodes.iter_mut().for_each(|node| node.bytes_per_ns *= self.rate_of(node.nid));
        out
    }

    /// The workers of a node up to which costs were measured, where any were.
    pub fn calibrated_threads(&self) -> Option<u32> {
        self.calibrated.iter().map(|c| c.most_threads).max()
    }
}

/// A node's own factor, or the mean of those that there are.
fn factor_of(factors: &[(Nid, f64)], nid: Nid) -> f64 {
    let own = factors.iter().find(|(n, _)| *n == nid).map(|(_, factor)| *factor);
    own.unwrap_or_else(|| {
        let sum: f64 = factors.iter().map(|(_, factor)| factor).sum();
        if factors.is_empty() { 1.0 } else { sum / factors.len() as f64 }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_without_a_factor_take_the_mean() {
        let setup = Setup {
            scales: vec![(Nid(0), 1.0), (Nid(1), 2.0)],
            rates: vec![(Nid(1), 0.5)],
            ..Setup::default()
        };
        assert_eq!([0, 1, 2].map(|nid| setup.scale_of(Nid(nid))), [1.0, 2.0, 1.5]);
        assert_eq!([0, 1].map(|nid| setup.rate_of(Nid(nid))), [0.5, 0.5]);
        assert_eq!(Setup::default().scale_of(Nid(7)), 1.0);
    }
}
