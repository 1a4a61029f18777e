//! What every document begins with: [`Head`], and the program that made it, [`Tool`].
//!
//! All records of [`super`] carry a head; documents that are no records, such as those
//! of `machine --json`, begin with the same fields in the same order.

use crate::warning::Warning;
use serde::{Deserialize, Serialize};

/// The first fields of every document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Head {
    /// Name and version of the document's form, such as `pageinit/compare/1`.
    pub schema: String,
    /// The program.
    pub tool: Tool,
    /// The command line that made it.
    pub argv: Vec<String>,
    /// Whether all that was asked for was done.
    pub complete: bool,
    /// What a reader must know.
    pub warnings: Vec<Warning>,
}

impl Head {
    /// A head of a document that this program makes, complete until something says
    /// otherwise.
    pub fn new(schema: impl Into<String>, argv: &[String]) -> Self {
        Self {
            schema: schema.into(),
            tool: Tool::this(),
            argv: argv.to_vec(),
            complete: true,
            warnings: Vec::new(),
        }
    }

    /// The same, not complete until something says so.
    pub fn unfinished(schema: impl Into<String>, argv: &[String]) -> Self {
        Self { complete: false, ..Self::new(schema, argv) }
    }

    /// The same with what a reader must know.
    pub fn with_warnings(self, warnings: Vec<Warning>) -> Self {
        Self { warnings, ..self }
    }
}

/// The program that made a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Tool {
    /// `pageinit`.
    pub name: String,
    /// Its version.
    pub version: String,
}

impl Tool {
    /// This program.
    pub fn this() -> Self {
        Self { name: env!("CARGO_PKG_NAME").into(), version: env!("CARGO_PKG_VERSION").into() }
    }
}
