//! Warnings that travel with results.
//!
//! A [`Warning`] has a code that scripts may match, a sentence that says what was
//! seen, and a remedy. Every layer may make one; `cli` shows them on stderr and
//! records carry them. [`Origin`] marks where a number of a machine came from.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Something that a reader of a result must know, without stopping the work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Warning {
    /// Stable, in kebab case, for example `no-huge-pages`.
    pub code: String,
    /// One sentence: what was found.
    pub message: String,
    /// What to do about it, or an empty string when nothing helps.
    pub remedy: String,
}

impl Warning {
    /// A warning from its three parts.
    pub fn new(code: &str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.message, self.code)?;
        if !self.remedy.is_empty() {
            write!(f, "; {}", self.remedy)?;
        }
        Ok(())
    }
}

/// Where a fact about a machine came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Read from the machine or the input itself.
    Read,
    /// Written by hand in a machine file, with its source there.
    Given,
    /// Not in the input: filled in by a stated rule.
    Assumed,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Given => "given",
            Self::Assumed => "assumed",
        })
    }
}
