//! Reading a record of any kind back: [`AnyRecord`] and [`ReadError`].
//!
//! The first field of a document, `schema`, says what it is. Records of every earlier
//! schema version load; one of a later version is an error that says so.

use super::calibration::{CALIBRATION_SCHEMA, Calibration};
use super::estimate::{ESTIMATE_SCHEMA, Estimate};
use super::lab::LabRecord;
use super::sweep::{SWEEP_SCHEMA, Sweep};
use super::validate::{VALIDATE_SCHEMA, Validation};
use super::{COMPARE_SCHEMA, Head, Record};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A record of any kind.
#[derive(Clone, Debug, PartialEq)]
pub enum AnyRecord {
    /// Of `compare`.
    Compare(Box<Record>),
    /// Of `estimate`.
    Estimate(Box<Estimate>),
    /// Of `sweep`.
    Sweep(Box<Sweep>),
    /// Of `validate`.
    Validate(Box<Validation>),
    /// Of `calibrate`.
    Calibration(Box<Calibration>),
    /// Of `lab`.
    Lab(Box<LabRecord>),
}

/// Why a text is not a record that can be read here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Not JSON, or cut off.
    #[error("is not whole JSON ({0}); a record is what --json wrote")]
    Json(String),
    /// JSON without a head.
    #[error("has no \"schema\"; a record of this program begins with one")]
    NoSchema,
    /// Of another program, or a document that is no record.
    #[error("is {0:?}; expected a record of compare, estimate, sweep, validate, calibrate or lab")]
    Foreign(String),
    /// Of a later version of this program.
    #[error(
        "has schema {found:?}; this version of the program reads {known:?} and earlier: update it"
    )]
    Newer {
        /// What the document says.
        found: String,
        /// What is known here.
        known: String,
    },
    /// The right schema but other fields.
    #[error("is no valid {schema}: {why}")]
    Fields {
        /// What the document says.
        schema: String,
        /// What is wrong, with its line.
        why: String,
    },
}

/// Schemas that can be read, each in its latest version; `lab` has one per experiment.
const KNOWN: [&str; 9] = [
    COMPARE_SCHEMA,
    ESTIMATE_SCHEMA,
    SWEEP_SCHEMA,
    VALIDATE_SCHEMA,
    CALIBRATION_SCHEMA,
    "pageinit/lab-prefetch/1",
    "pageinit/lab-clear-huge/1",
    "pageinit/lab-mremap/1",
    "pageinit/lab-pte-scan/1",
];

#[derive(Deserialize)]
struct SchemaOnly {
    schema: Option<String>,
}

impl AnyRecord {
    /// Reads a record.
    ///
    /// # Errors
    /// What is wrong with the text; the caller adds the file's name.
    pub fn read(text: &str) -> Result<Self, ReadError> {
        let head: SchemaOnly =
            serde_json::from_str(text).map_err(|why| ReadError::Json(why.to_string()))?;
        let schema = head.schema.ok_or(ReadError::NoSchema)?;
        known(&schema)?;
        match schema.split('/').nth(1).unwrap_or_default() {
            "compare" => fields(text, schema).map(Self::Compare),
            "estimate" => fields(text, schema).map(Self::Estimate),
            "sweep" => fields(text, schema).map(Self::Sweep),
            "validate" => fields(text, schema).map(Self::Validate),
            "calibration" => fields(text, schema).map(Self::Calibration),
            _ => fields(text, schema).map(Self::Lab),
        }
    }

    /// The verb whose record it is, with the experiment for `lab`: `compare`, `lab mremap`.
    pub fn kind(&self) -> String {
        let name = self.head().schema.split('/').nth(1).unwrap_or_default();
        match self {
            Self::Calibration(_) => "calibrate".into(),
            Self::Lab(_) => name.replacen("lab-", "lab ", 1),
            _ => name.into(),
        }
    }

    /// What it begins with.
    pub fn head(&self) -> &Head {
        match self {
            Self::Compare(record) => &record.head,
            Self::Estimate(record) => &record.head,
            Self::Sweep(record) => &record.head,
            Self::Validate(record) => &record.head,
            Self::Calibration(record) => &record.head,
            Self::Lab(record) => &record.head,
        }
    }
}

fn fields<T: DeserializeOwned>(text: &str, schema: String) -> Result<Box<T>, ReadError> {
    serde_json::from_str(text)
        .map(Box::new)
        .map_err(|why| ReadError::Fields { schema, why: why.to_string() })
}

/// Whether this version reads the schema: same name, and no later version.
fn known(schema: &str) -> Result<(), ReadError> {
    let (name, version) = schema.rsplit_once('/').unwrap_or((schema, ""));
    let latest = KNOWN.iter().find(|k| k.rsplit_once('/').is_some_and(|(n, _)| n == name));
    let foreign = || ReadError::Foreign(schema.to_owned());
    let latest = latest.ok_or_else(foreign)?;
    let newest: u32 = latest.rsplit('/').next().and_then(|v| v.parse().ok()).unwrap_or(0);
    match version.parse::<u32>() {
        Ok(found) if (1..=newest).contains(&found) => Ok(()),
        Ok(found) if found > newest => {
            Err(ReadError::Newer { found: schema.to_owned(), known: (*latest).to_owned() })
        }
        _ => Err(foreign()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = include_str!("../../fixtures/records/compare-v1.json");

    #[test]
    fn a_record_of_compare_is_read() {
        let read = AnyRecord::read(V1).unwrap();
        assert!(matches!(&read, AnyRecord::Compare(r) if !r.points.is_empty()));
        assert_eq!(read.head().schema, COMPARE_SCHEMA);
    }

    #[test]
    fn what_is_no_record_says_why() {
        let why = |text: &str| AnyRecord::read(text).unwrap_err();
        assert!(matches!(why(&V1[..V1.len() / 2]), ReadError::Json(_)));
        assert!(matches!(why("{}"), ReadError::NoSchema));
        let other = |schema: &str| why(&format!("{{\"schema\": {schema:?}}}"));
        assert!(matches!(other("pageinit/plan/1"), ReadError::Foreign(_)));
        assert!(matches!(other("fio/3"), ReadError::Foreign(_)));
        assert!(matches!(other("pageinit/compare/0"), ReadError::Foreign(_)));
        assert!(matches!(other("pageinit/compare/2"), ReadError::Newer { .. }));
        assert!(matches!(other("pageinit/compare/1"), ReadError::Fields { .. }));
    }
}
