//! The record of a difference: two records row by row, and a verdict.
//!
//! [`Diff`] matches rows of two records by what tells them apart and holds the ratio B ÷ A
//! of their times, with an interval where both have single runs. `study` fills it,
//! `report` renders it.

use super::lab::Factors;
use super::{Head, Label};
use serde::{Deserialize, Serialize};

/// The schema of differences.
pub const DIFF_SCHEMA: &str = "pageinit/diff/1";

/// Whether B is faster than A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// B takes less time, by more than the threshold.
    Faster,
    /// B takes more time, by more than the threshold.
    Slower,
    /// Neither is certain.
    Inconclusive,
}

impl Verdict {
    /// Its name in records and texts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// Two records against each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Diff {
    /// What every document begins with.
    #[serde(flatten)]
    pub head: Head,
    /// The kind of both records, such as `compare`.
    pub kind: String,
    /// The record that B is divided by.
    pub a: String,
    /// The record that is divided.
    pub b: String,
    /// How the times of both came about.
    pub label: Label,
    /// The share that a difference must exceed, such as 0.05.
    pub threshold: f64,
    /// The verdict on all.
    pub verdict: Verdict,
    /// How the verdict came about.
    pub rule: String,
    /// Rows in both.
    pub rows: Vec<DiffRow>,
    /// What tells rows apart that only A has.
    pub only_in_a: Vec<Factors>,
    /// What tells rows apart that only B has.
    pub only_in_b: Vec<Factors>,
    /// What else differs: hosts, machines, kernel rules, options, versions.
    pub differences: Vec<Difference>,
}

/// One row in both records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DiffRow {
    /// What tells it apart.
    pub key: Factors,
    /// What `a_ns` and `b_ns` are of: `struct-page`, `whole`, or an experiment's unit.
    pub per: String,
    /// A's median or prediction.
    pub a_ns: f64,
    /// B's.
    pub b_ns: f64,
    /// B ÷ A; below 1 is faster. Null where A is 0.
    pub ratio: Option<f64>,
    /// The ratio's 95 % bootstrap interval; null where not both have enough single runs.
    pub ci95: Option<[f64; 2]>,
    /// The verdict on this row.
    pub verdict: Verdict,
    /// The interval, or the ratio of a prediction, lies wholly within the threshold.
    pub within_threshold: bool,
    /// Whether the verdict on all looks at this row.
    pub decides: bool,
}

/// Something that is not the same in both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Difference {
    /// Where: `host.cpu_model`, `kernel.config.hz`, `options.free`.
    pub what: String,
    /// A's; null where it has none.
    pub a: Option<String>,
    /// B's; null where it has none.
    pub b: Option<String>,
}
