//! `pageinit schema`: JSON Schemas of the records.

use super::exit::Failure;
use super::output;
use crate::nearest::nearest;
use crate::record::schema::SCHEMAS;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  pageinit schema
  pageinit schema compare

Without a name it lists the names. Fields may be added within a version of a schema; what is there
keeps its meaning. Records of every earlier version can be read by every later program.";

/// Arguments of `schema`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The verb that makes the record
    #[arg(value_name = "VERB")]
    name: Option<String>,
}

/// Writes one schema, or the names of all.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let names: Vec<&str> = SCHEMAS.iter().map(|(name, _)| *name).collect();
    let Some(wanted) = &args.name else {
        output::data(&(names.join("\n") + "\n"))?;
        return Ok(ExitCode::SUCCESS);
    };
    let Some((_, text)) = SCHEMAS.iter().find(|(name, _)| name == wanted) else {
        let near = nearest(wanted, names.iter().copied());
        let hint = near.map(|near| format!("did you mean {near:?}? ")).unwrap_or_default();
        let known = names.join(", ");
        return Err(Failure::usage(format!("no record {wanted:?}; {hint}There are {known}")));
    };
    output::data(text)?;
    Ok(ExitCode::SUCCESS)
}
