//! Records of the experiments beside the boot.
//!
//! A [`LabRecord`] has one shape for all experiments: [`LabPoint`]s are told apart by
//! their `part` and by factors such as `store` or `chunk_bytes`; [`Published`] are
//! figures of others, never mixed with own ones; a [`Finding`] is what follows. `lab`
//! fills it, `report` renders it.

use super::{Head, HostFacts, Label};
use crate::stats::{self, Summary};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The record of one experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LabRecord {
    /// What every document begins with.
    #[serde(flatten)]
    pub head: Head,
    /// When the run began, in seconds since 1970.
    pub started_unix_s: u64,
    /// The seed of the order of runs, of random patterns and of the intervals.
    pub seed: u64,
    /// Samples per point that were asked for.
    pub runs: u32,
    /// The computer that measured.
    pub host: HostFacts,
    /// Its caches, smallest first.
    pub caches: Vec<CacheFacts>,
    /// Sizes and choices of the experiment, by name with the unit last.
    pub settings: BTreeMap<String, Factor>,
    /// The figures.
    pub points: Vec<LabPoint>,
    /// Figures drawn from several points, round by round.
    pub derived: Vec<Derived>,
    /// What follows from them for this host.
    pub findings: Vec<Finding>,
    /// Figures that others published: other machines, other kernels.
    pub published: Vec<Published>,
}

/// One kind of cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CacheFacts {
    /// 1 for L1.
    pub level: u32,
    /// Size in bytes.
    pub bytes: u64,
}

/// What tells points apart: a name or a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Factor {
    /// A number, in the unit that the factor's name ends with.
    Number(u64),
    /// A name.
    Name(String),
}

impl From<u64> for Factor {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Factor {
    fn from(name: &str) -> Self {
        Self::Name(name.into())
    }
}

/// Factors by name.
pub type Factors = BTreeMap<String, Factor>;

/// Factors from pairs.
pub fn factors<const N: usize>(pairs: [(&str, Factor); N]) -> Factors {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// One figure: repeated times of one thing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LabPoint {
    /// The part of the experiment.
    pub part: String,
    /// What was varied.
    pub factors: Factors,
    /// How the samples came about.
    pub label: Label,
    /// What one sample covers: `struct-page`, `page-table-entry`, `fault`, `buffer`.
    pub per: String,
    /// How many of them; `*_ns` divided by it is a time for one.
    pub count: u64,
    /// One time per run, in order of the rounds.
    pub samples_ns: Vec<u64>,
    /// The samples' median.
    pub median_ns: f64,
    /// Its 95 % bootstrap interval.
    pub ci95_ns: [f64; 2],
    /// The samples' mean.
    pub mean_ns: f64,
    /// Their standard deviation, null for fewer than two.
    pub sd_ns: Option<f64>,
    /// What was counted beside the time, by name with the unit last.
    pub counts: BTreeMap<String, u64>,
    /// Whether what a run left in memory was compared with what it should leave.
    pub verified: bool,
}

impl LabPoint {
    /// A measured point; `None` without samples.
    pub fn measured(
        part: &str,
        factors: Factors,
        (per, count): (&str, u64),
        samples_ns: &[u64],
        seed: u64,
    ) -> Option<Self> {
        if samples_ns.is_empty() {
            return None;
        }
        let samples: Vec<f64> = samples_ns.iter().map(|&ns| ns as f64).collect();
        let Summary { median, ci95 } = stats::summarise(&samples, seed);
        let (mean_ns, sd_ns) = stats::mean_sd(&samples);
        Some(Self {
            part: part.into(),
            factors,
            label: Label::Measured,
            per: per.into(),
            count,
            samples_ns: samples_ns.to_vec(),
            median_ns: median,
            ci95_ns: ci95,
            mean_ns,
            sd_ns,
            counts: BTreeMap::new(),
            verified: true,
        })
    }

    /// Whether a factor has this value.
    pub fn has(&self, name: &str, value: impl Into<Factor>) -> bool {
        self.factors.get(name) == Some(&value.into())
    }

    /// The median for one of what a sample covers, in ns.
    pub fn each_ns(&self) -> f64 {
        self.median_ns / self.count.max(1) as f64
    }

    /// A factor that is a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.factors.get(name)? {
            Factor::Number(number) => Some(*number),
            Factor::Name(_) => None,
        }
    }

    /// A factor that is a name; empty where there is none.
    pub fn name(&self, name: &str) -> &str {
        match self.factors.get(name) {
            Some(Factor::Name(text)) => text,
            _ => "",
        }
    }
}

/// A figure that needs several points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Derived {
    /// What it is, with its unit last: `second_touch_ns`, `paid_share`.
    pub what: String,
    /// What was varied.
    pub factors: Factors,
    /// Its median with the 95 % bootstrap interval.
    pub value: Summary,
}

impl Derived {
    /// From one value per round; `None` without values.
    pub fn of(what: &str, factors: Factors, values: &[f64], seed: u64) -> Option<Self> {
        let value = stats::summarise(values, seed);
        (!values.is_empty()).then(|| Self { what: what.into(), factors, value })
    }

    /// Whether a factor has this value.
    pub fn has(&self, name: &str, value: impl Into<Factor>) -> bool {
        self.factors.get(name) == Some(&value.into())
    }
}

/// What an experiment says about this host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Finding {
    /// Stable, in kebab case.
    pub code: String,
    /// One sentence.
    pub text: String,
    /// The figure behind it, if it is one: a ratio or a share.
    pub value: Option<Summary>,
}

/// A figure that somebody else published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Published {
    /// The part of the experiment that it belongs to.
    pub part: String,
    /// What was varied.
    pub factors: Factors,
    /// The machine.
    pub platform: String,
    /// The mean, or the only figure given, in ns.
    pub mean_ns: f64,
    /// The standard deviation, null where none was given.
    pub sd_ns: Option<f64>,
    /// How many samples, null where not given.
    pub samples: Option<u64>,
    /// Where and when.
    pub source: String,
}

impl LabRecord {
    /// The points of a part.
    pub fn part<'r>(&'r self, part: &'r str) -> impl Iterator<Item = &'r LabPoint> {
        self.points.iter().filter(move |point| point.part == part)
    }

    /// A setting that is a number.
    pub fn setting(&self, name: &str) -> Option<u64> {
        match self.settings.get(name)? {
            Factor::Number(number) => Some(*number),
            Factor::Name(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_has_mean_median_and_deviation() {
        let of = |samples: &[u64]| {
            let factors = factors([("chunk_bytes", 4096.into()), ("store", "avx2".into())]);
            LabPoint::measured("table", factors, ("buffer", 2), samples, 1)
        };
        assert_eq!(of(&[]), None);
        let point = of(&[2, 4, 9]).unwrap();
        assert_eq!((point.mean_ns, point.median_ns, point.each_ns()), (5.0, 4.0, 2.0));
        assert!((point.sd_ns.unwrap() - 13f64.sqrt()).abs() < 1e-9);
        assert_eq!(of(&[7]).unwrap().sd_ns, None);
        assert_eq!((point.number("chunk_bytes"), point.name("store")), (Some(4096), "avx2"));
        assert_eq!((point.number("store"), point.name("nothing")), (None, ""));
    }

    #[test]
    fn factors_are_plain_values_in_json() {
        let text = serde_json::to_string(&factors([("a", 5.into()), ("b", "x".into())]));
        assert_eq!(text.unwrap(), r#"{"a":5,"b":"x"}"#);
    }
}
