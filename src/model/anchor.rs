//! Anchors: a time that a machine is known to have taken, which replaces its class.
//!
//! [`Anchor`] parses `node0=7200ms/128312523`; [`scale`] finds the factor on the class's
//! costs that makes the model agree with it, and refuses times that cannot be.

use super::hardware::Hardware;
use super::queue::Curve;
use super::run::{Setup, deferred_page};
use super::{constants as k, cost::PageCost};
use crate::pfn::Nid;
use crate::plan::BootPlan;
use std::fmt;
use std::str::FromStr;

/// What one node's deferred phase took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Anchor {
    /// The node.
    pub nid: Nid,
    /// What its line in the log says, in ns.
    pub time_ns: f64,
    /// Struct pages that were initialised.
    pub pages: u64,
    /// Threads that did it.
    pub threads: u32,
}

/// Why an anchor cannot be used.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum AnchorError {
    /// Not of the form.
    #[error(
        "{0:?} is not an anchor; write node0=7200ms/128312523, with @4 behind it for 4 threads"
    )]
    Syntax(String),
    /// A time that is not positive, or no pages.
    #[error("anchor {0:?}: time, pages and threads have to be above 0")]
    NotPositive(String),
    /// The machine or plan has no such node.
    #[error("anchor of node {0}: the machine defers no pages of that node")]
    NoNode(Nid),
    /// Faster than the memory.
    #[error(
        "anchor of node {nid}: {ns_per_page:.2} ns per page is less than the {least_ns:.2} ns that \
         its memory needs; check time, pages, channels and mts"
    )]
    AboveBandwidth {
        /// The node.
        nid: Nid,
        /// What the anchor says.
        ns_per_page: f64,
        /// What the bytes of one page take at the peak rate.
        least_ns: f64,
    },
    /// Two anchors of one node.
    #[error("node {0} has two anchors; give one")]
    Twice(Nid),
}

impl FromStr for Anchor {
    type Err = AnchorError;

    fn from_str(text: &str) -> Result<Self, AnchorError> {
        let syntax = || AnchorError::Syntax(text.into());
        let (node, rest) = text.trim().split_once('=').ok_or_else(syntax)?;
        let nid = node.strip_prefix("node").and_then(|n| n.parse().ok()).ok_or_else(syntax)?;
        let (rest, threads) = match rest.split_once('@') {
            Some((rest, threads)) => (rest, threads.parse().map_err(|_| syntax())?),
            None => (rest, 1),
        };
        let (time, pages) = rest.split_once('/').ok_or_else(syntax)?;
        let anchor = Self {
            nid: Nid(nid),
            time_ns: time_ns(time).ok_or_else(syntax)?,
            pages: pages.parse().map_err(|_| syntax())?,
            threads,
        };
        let positive = anchor.time_ns > 0.0 && anchor.pages > 0 && anchor.threads > 0;
        if positive { Ok(anchor) } else { Err(AnchorError::NotPositive(text.into())) }
    }
}

impl fmt::Display for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node{}={}ms/{}", self.nid, self.time_ns / 1e6, self.pages)?;
        if self.threads > 1 { write!(f, "@{}", self.threads) } else { Ok(()) }
    }
}

/// A time with its unit.
fn time_ns(text: &str) -> Option<f64> {
    let cut = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(cut);
    let factor = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    let value: f64 = number.trim().parse().ok()?;
    value.is_finite().then_some(value * factor)
}

/// The factor on the costs of the anchor's node with which `plan` takes the anchor's time.
///
/// # Errors
/// When the plan has no such node, or its memory cannot be that fast.
pub fn scale(
    anchor: &Anchor,
    plan: &BootPlan,
    hardware: &Hardware,
    setup: &Setup,
) -> Result<f64, AnchorError> {
    let plain = Setup { scales: Vec::new(), ..setup.clone() };
    let page = deferred_page(plan, hardware, &plain, anchor.nid);
    let (Some(page), Some(node)) = (page, hardware.node(anchor.nid)) else {
        return Err(AnchorError::NoNode(anchor.nid));
    };
    let ns_per_page = anchor.time_ns / anchor.pages as f64;
    let peak = node.bytes_per_ns / hardware.scaling.efficiency.max(f64::MIN_POSITIVE);
    let least_ns = page.bytes / peak;
    if ns_per_page < least_ns {
        return Err(AnchorError::AboveBandwidth { nid: anchor.nid, ns_per_page, least_ns });
    }
    if anchor.threads == 1 {
        return Ok(ns_per_page / page.ns);
    }
    let with = |scale: f64| {
        let demand = PageCost { ns: page.ns * scale, ..page }.demand(node);
        let curve = Curve::new(demand, anchor.threads, node.cores, k::SMT_GAIN);
        1.0 / curve.throughput(anchor.threads)
    };
    Ok(bisect(with, ns_per_page))
}

/// Where a rising function of a factor from 1/64 to 64 reaches `wanted`.
fn bisect(with: impl Fn(f64) -> f64, wanted: f64) -> f64 {
    let (mut low, mut high) = (1.0 / 64.0, 64.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if with(middle) < wanted { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_as_people_write_them() {
        let anchor: Anchor = "node0=7200ms/128312523".parse().unwrap();
        assert_eq!((anchor.nid, anchor.time_ns, anchor.pages), (Nid(0), 7.2e9, 128_312_523));
        assert_eq!(anchor.to_string(), "node0=7200ms/128312523");
        let many: Anchor = "node3=0.5s/1000@8".parse().unwrap();
        assert_eq!((many.threads, many.time_ns), (8, 5e8));
    }

    #[test]
    fn wrong_anchors_say_what_would_do() {
        let error = |text: &str| text.parse::<Anchor>().unwrap_err().to_string();
        assert!(error("7200ms").contains("node0=7200ms/128312523"));
        assert!(error("node0=7200/128").contains("node0=7200ms"), "no unit");
        assert!(error("node0=-5ms/128").contains("above 0"));
        assert!(error("node0=5ms/0").contains("above 0"));
        assert!(error("nodeX=5ms/10").contains("not an anchor"));
        assert!("node0=infs/10".parse::<Anchor>().is_err());
    }

    #[test]
    fn bisection_finds_the_factor() {
        assert!((bisect(|x| 3.0 * x, 6.0) - 2.0).abs() < 1e-9);
    }
}
