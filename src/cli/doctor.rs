//! `pageinit doctor`: is this host fit for measuring?

use super::exit::{self, Failure};
use super::output;
use crate::host::Clock;
use crate::machine::doctor::{Check, State, examine};
use crate::report;
use crate::warning::Warning;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  pageinit doctor
  pageinit doctor --json

It reads and changes nothing. What it finds doubtful is in the warnings of every record that is
measured here, under the same codes. What cannot be read is unknown, which is not bad.

Exit status: 0; with --strict 3 if anything is doubtful.";

/// Arguments of `doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Exit with 3 if anything is doubtful
    #[arg(long)]
    strict: bool,
    /// Write one JSON document
    #[arg(long)]
    json: bool,
}

/// Examines this host.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let checks = examine(Path::new("/"), Clock::measure().facts());
    if args.json {
        let warnings: Vec<Warning> = checks.iter().filter_map(Check::warning).collect();
        let body = json!({ "checks": checks });
        output::json(&output::document("pageinit/doctor/1", &warnings, body))?;
    } else {
        output::data(&report::doctor::text(&rows(&checks)))?;
    }
    let doubtful = checks.iter().any(|check| check.state == State::Doubtful);
    Ok(ExitCode::from(if args.strict && doubtful { exit::UNTRUSTWORTHY } else { 0 }))
}

fn rows(checks: &[Check]) -> Vec<report::doctor::Row> {
    let row = |check: &Check| report::doctor::Row {
        state: match check.state {
            State::Good => "good",
            State::Doubtful => "doubtful",
            State::Unknown => "unknown",
        },
        title: check.title.into(),
        found: check.found.clone(),
        code: check.code.into(),
        remedy: check.remedy.clone(),
    };
    checks.iter().map(row).collect()
}
