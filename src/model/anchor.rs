//! Anchors: a time that a machine is known to have taken, which replaces its class.
//!
//! [`Anchor`] parses `node0=7200ms/128312523`; [`factors`] finds the factors on costs and
//! memory rate that make the model agree with it, and refuses times that cannot be.

use super::hardware::{Hardware, NodeHardware};
use super::run::{WorkRun, deferred_alone};
use super::setup::Setup;
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
        "anchor of node {nid}: {ns_per_page:.3} ns per page is less than the {least_ns:.3} ns that \
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
    /// More threads than the node has CPUs.
    #[error(
        "anchor of node {nid}: {threads} threads are more than its {cpus} CPUs; write @{cpus} or \
         less"
    )]
    TooManyThreads {
        /// The node.
        nid: Nid,
        /// What the anchor says.
        threads: u32,
        /// What the node has; one thread stands in for none.
        cpus: u32,
    },
    /// A time that no node of this class takes with so many threads.
    #[error(
        "anchor of node {nid}: {threads} threads take {least_ms:.3} to {most_ms:.3} ms for its \
         {pages} pages, by this machine's processors and memory, and not {time_ms:.3} ms; check \
         time, pages, threads, channels and mts, or give the time of one thread"
    )]
    NotExplained {
        /// The node.
        nid: Nid,
        /// The anchor's threads.
        threads: u32,
        /// Its pages.
        pages: u64,
        /// Its time.
        time_ms: f64,
        /// The least that the model reaches.
        least_ms: f64,
        /// The most.
        most_ms: f64,
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

/// What an anchor makes of its node, in factors on what the class says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factors {
    /// On all costs of a worker: above 1 is slower.
    pub costs: f64,
    /// On the memory rate: above 1 is faster.
    pub rate: f64,
}

impl Factors {
    /// How much slower than its class the node is, whatever the reason.
    pub fn slowness(self) -> f64 {
        self.costs / self.rate
    }
}

/// How far costs and memory rate of a node with several workers may be from its class.
const MOST_FACTOR: f64 = 64.0;

/// The factors with which `plan` takes the anchor's time on the anchor's node.
///
/// The time of one thread tells of costs alone. That of many tells of the memory as far
/// as it is busy: a deviation from the class is put down to both, each in proportion.
///
/// # Errors
/// When the plan has no such node, the node not as many CPUs, its memory cannot be that
/// fast, or no factor explains the time.
pub fn factors(
    anchor: &Anchor,
    plan: &BootPlan,
    hardware: &Hardware,
    setup: &Setup,
) -> Result<Factors, AnchorError> {
    let of = (anchor.nid, anchor.threads);
    let plain = Setup { scales: Vec::new(), rates: Vec::new(), ..setup.clone() };
    let Some(node) = hardware.node(anchor.nid) else {
        return Err(AnchorError::NoNode(anchor.nid));
    };
    let cpus = node.hw_threads.max(1);
    if anchor.threads > cpus {
        let (nid, threads) = of;
        return Err(AnchorError::TooManyThreads { nid, threads, cpus });
    }
    let Some(by_class) = deferred_alone(plan, hardware, &plain, of).filter(|w| w.pages > 0) else {
        return Err(AnchorError::NoNode(anchor.nid));
    };
    let ns_per_page = anchor.time_ns / anchor.pages as f64;
    let peak = node.bytes_per_ns / hardware.scaling.efficiency.max(f64::MIN_POSITIVE);
    let least_ns = by_class.page.bytes / peak;
    if ns_per_page < least_ns {
        return Err(AnchorError::AboveBandwidth { nid: anchor.nid, ns_per_page, least_ns });
    }
    if by_class.workers < 2 {
        return Ok(of_one_worker(ns_per_page, &by_class, node));
    }
    // What the memory's share of the time is takes that share of the deviation.
    let share = by_class.bandwidth_use.clamp(0.0, 1.0);
    let split = |slower: f64| Factors {
        costs: slower.powf(1.0 - share),
        rate: slower.powf(-share).min(1.0 / hardware.scaling.efficiency),
    };
    let with = |slower: f64| {
        let Factors { costs, rate } = split(slower);
        let (scales, rates) = (vec![(anchor.nid, costs)], vec![(anchor.nid, rate)]);
        let setup = Setup { scales, rates, ..plain.clone() };
        let done = deferred_alone(plan, hardware, &setup, of);
        done.map_or(0.0, |work| work.end_ns() / work.pages.max(1) as f64)
    };
    // Where the larger of both factors reaches its limit.
    let most = MOST_FACTOR.powf(1.0 / share.max(1.0 - share));
    match bisect(with, ns_per_page, most) {
        Ok(slower) => Ok(split(slower)),
        Err([least, most]) => Err(not_explained(anchor, [least, most])),
    }
}

/// One worker's costs are its time; memory that is slower than that is not.
fn of_one_worker(ns_per_page: f64, by_class: &WorkRun, node: &NodeHardware) -> Factors {
    let bandwidth_ns = by_class.page.demand(node).bandwidth_ns;
    Factors {
        costs: ns_per_page / by_class.page.ns.max(f64::MIN_POSITIVE),
        rate: (bandwidth_ns / ns_per_page).max(1.0),
    }
}

fn not_explained(anchor: &Anchor, ns_per_page: [f64; 2]) -> AnchorError {
    let [least_ms, most_ms] = ns_per_page.map(|ns| ns * anchor.pages as f64 / 1e6);
    AnchorError::NotExplained {
        nid: anchor.nid,
        threads: anchor.threads,
        pages: anchor.pages,
        time_ms: anchor.time_ns / 1e6,
        least_ms,
        most_ms,
    }
}

/// Where a rising function of a factor up to `most` reaches `wanted`, or what it reaches at
/// both ends.
fn bisect(with: impl Fn(f64) -> f64, wanted: f64, most: f64) -> Result<f64, [f64; 2]> {
    let (mut low, mut high) = (1.0 / most, most);
    let ends = [with(low), with(high)];
    if wanted < ends[0] || wanted > ends[1] {
        return Err(ends);
    }
    for _ in 0..50 {
        let middle = (low * high).sqrt();
        if with(middle) < wanted { low = middle } else { high = middle }
    }
    Ok((low * high).sqrt())
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
        assert!((bisect(|x| 3.0 * x, 6.0, 8.0).unwrap() - 2.0).abs() < 1e-9);
        assert_eq!(bisect(|x| x, 100.0, 64.0), Err([1.0 / 64.0, 64.0]));
    }
}
