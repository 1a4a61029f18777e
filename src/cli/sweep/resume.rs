//! The record that a sweep goes on from, and whose arguments hold.

use super::{Args, Sweep};
use crate::cli::exit::Failure;
use crate::cli::{Cli, Verb, reading};
use crate::record::any::AnyRecord;
use clap::Parser;
use std::ffi::OsString;
use std::path::Path;

/// Reads the record; nothing where there is no file yet: a sweep that was killed early
/// begins anew.
pub(super) fn read(path: &Path) -> Result<Option<Sweep>, Failure> {
    if !path.exists() {
        return Ok(None);
    }
    let what = "a record of sweep, as -o wrote it";
    reading::record(path, reading::MOST_RECORD_BYTES, what, |read| match read {
        AnyRecord::Sweep(sweep) => Ok(Some(*sweep)),
        other => Err(other),
    })
}

/// Whether the command line asks for nothing of its own: then the record's holds.
pub(super) fn is_alone() -> bool {
    let mut rest = std::env::args_os().skip(2);
    while let Some(arg) = rest.next() {
        match arg.to_string_lossy().as_ref() {
            "--resume" | "--save-every" => drop(rest.next()),
            "--json" | "--csv" => {}
            other if other.starts_with("--resume=") || other.starts_with("--save-every=") => {}
            _ => return false,
        }
    }
    true
}

/// The arguments that made a record.
pub(super) fn arguments_of(path: &Path, kept: &Sweep) -> Result<Args, Failure> {
    let failed = |text: &str| Failure::usage(format!("{}: {text}", path.display()));
    match Cli::try_parse_from(kept.head.argv.iter().map(OsString::from)) {
        Ok(Cli { verb: Verb::Sweep(args) }) => Ok(args),
        _ => Err(failed("its \"argv\" is no sweep's; give the arguments beside --resume")),
    }
}

/// Nothing to go on from, and nothing asked for.
pub(super) fn nothing_there(path: &Path) -> Failure {
    let path = path.display();
    Failure::usage(format!("{path}: is not there; give the sweep's arguments beside --resume"))
}

/// A command line as that of an undisturbed sweep: `--resume FILE` is its `-o FILE`.
pub(super) fn as_output(argv: Vec<String>) -> Vec<String> {
    let written = |arg: String| match arg.strip_prefix("--resume") {
        Some("") => "-o".into(),
        Some(rest) if rest.starts_with('=') => format!("--output{rest}"),
        _ => arg,
    };
    argv.into_iter().map(written).collect()
}
