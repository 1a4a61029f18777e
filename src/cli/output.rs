//! Where texts go: data to stdout, talk to stderr.

use super::exit::Failure;
use crate::record::Tool;
use crate::warning::Warning;
use serde::Serialize;
use serde_json::Value;
use std::io::{self, Write};

/// Writes data to stdout.
pub(super) fn data(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Writes one JSON document to stdout.
pub(super) fn json(document: &impl Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_string_pretty(document).map_err(io::Error::from)?;
    text.push('\n');
    data(&text)
}

/// A document with what every document begins with, in that order.
#[derive(Debug, Serialize)]
pub(super) struct Document<'d> {
    schema: &'d str,
    tool: Tool,
    argv: Vec<String>,
    complete: bool,
    warnings: &'d [Warning],
    #[serde(flatten)]
    body: Value,
}

/// Puts what every document begins with in front of `body`, an object.
pub(super) fn document<'d>(schema: &'d str, warnings: &'d [Warning], body: Value) -> Document<'d> {
    Document { schema, tool: Tool::this(), argv: argv(), complete: true, warnings, body }
}

/// The command line as it was given.
pub(super) fn argv() -> Vec<String> {
    std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect()
}

/// Says something to people; a closed stderr is no reason to fail.
pub(super) fn talk(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Shows warnings to people.
pub(super) fn warn(warnings: &[Warning]) {
    for warning in warnings {
        talk(&format!("warning: {warning}"));
    }
}
