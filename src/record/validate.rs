//! The record of a validation: predictions held against published figures.
//!
//! [`Validation`] lists every figure with its prediction or the reason why it has none,
//! then statistics per group. `study` fills it, `report` renders it.

use super::Head;
use serde::{Deserialize, Serialize};

/// The schema of records of `validate`.
pub const VALIDATE_SCHEMA: &str = "pageinit/validate/1";

/// All predictions of one set of figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Validation {
    /// What every document begins with.
    #[serde(flatten)]
    pub head: Head,
    /// Where the figures came from.
    pub figures: String,
    /// Fields of the file that are not known here.
    pub unknown_fields: u64,
    /// How many constants of thread scaling were fitted on published figures.
    pub fitted_thread_constants: u64,
    /// How many constants in all were.
    pub fitted_constants: u64,
    /// Every constant.
    pub constants: Vec<ConstantFacts>,
    /// Every figure, and what is drawn from several.
    pub records: Vec<Validated>,
    /// Statistics of each group.
    pub groups: Vec<GroupStats>,
    /// How many figures lie in their ranges.
    pub ranges: Vec<RangeStats>,
    /// The fitted constants with one machine left out.
    pub left_out_machines: Vec<LeftOutMachine>,
    /// Which second of an anchored saving comes from where.
    pub seconds: Vec<Seconds>,
}

/// One constant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConstantFacts {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// `FIT`, `DERIVED` or `PRIOR`.
    pub mark: String,
    /// Where it comes from.
    pub origin: String,
}

/// One figure and its prediction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Validated {
    /// The publication.
    pub id: String,
    /// What was timed, in the author's words, or what is drawn from several figures.
    pub what: String,
    /// The group whose statistics it counts in; null for those that count in none.
    pub group: Option<String>,
    /// Threads per node.
    pub threads: Option<u32>,
    /// The published time in ms; a ratio where the group says so.
    pub published_ms: Option<f64>,
    /// The prediction in the same unit.
    pub predicted_ms: Option<f64>,
    /// Predicted ÷ published − 1.
    pub error: Option<f64>,
    /// The prediction's range.
    pub range_ms: Option<[f64; 2]>,
    /// Whether the published time lies in it.
    pub in_range: Option<bool>,
    /// What the prediction rests on: `class`, or what anchors it.
    pub anchor: Option<String>,
    /// The processor's class, where it was used.
    pub class: Option<String>,
    /// What the class's row rests on; `FIT` has seen published init times.
    pub class_mark: Option<String>,
    /// The prediction repeats its anchor and counts in no statistic.
    pub by_construction: bool,
    /// Why there is no prediction.
    pub left_out: Option<String>,
}

/// Absolute errors of one group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GroupStats {
    /// The group.
    pub name: String,
    /// What it holds, for people.
    pub title: String,
    /// How many predictions.
    pub n: u64,
    /// Median of the absolute errors, as a share.
    pub median: f64,
    /// Their 90th percentile, interpolated.
    pub p90: f64,
    /// The largest.
    pub worst: f64,
    /// The share within a factor of 1.4 either way.
    pub within_factor_1_4: f64,
}

/// How well ranges hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RangeStats {
    /// `anchored`, `blind`, `devices` or `boot-logs`.
    pub name: String,
    /// How many figures have a range.
    pub n: u64,
    /// The share of figures that lie in theirs.
    pub covered: f64,
    /// Median of high ÷ low.
    pub median_width: f64,
}

/// The fit with one machine left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LeftOutMachine {
    /// The machine that was left out.
    pub machine: String,
    /// Fitted on the others.
    pub efficiency: f64,
    /// Fitted on the others.
    pub settle_ms_per_thread: f64,
    /// 1 where no other machine is a guest.
    pub guest_bandwidth: f64,
    /// Median absolute error on the machine left out.
    pub median: f64,
    /// The largest.
    pub worst: f64,
}

/// A part of an anchored saving.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Seconds {
    /// The publication.
    pub id: String,
    /// What part.
    pub part: String,
    /// Seconds; negative where it is subtracted.
    pub seconds: f64,
    /// Where they come from.
    pub from: String,
}
