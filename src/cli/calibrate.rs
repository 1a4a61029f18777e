//! `pageinit calibrate`: measure this host for predictions.

use super::bar::Bar;
use super::compare::host_context;
use super::exit::{self, Failure};
use super::inputs;
use super::output;
use super::saving;
use crate::host::signal;
use crate::machine::input;
use crate::study::calibrate::calibrate;
use crate::study::compare::Options;
use crate::units::Bytes;
use clap::value_parser;
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  pageinit calibrate -o this-host.json
  pageinit estimate -m host --calibration this-host.json";

/// Arguments of `calibrate`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Rules of this Linux version [default: the host's own]
    #[arg(long, value_name = "VERSION")]
    kernel: Option<String>,
    /// Rounds of runs for each number of threads
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Buffer for the struct pages [default: as for compare]
    #[arg(long, value_name = "SIZE")]
    buffer: Option<Bytes>,
    /// Seed of the order of runs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the calibration to this new file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace FILE if it is there
    #[arg(long, requires = "output")]
    force: bool,
}

/// Measures.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    signal::catch_interrupt();
    let target = saving::target(args.output.as_ref(), args.force)?;
    let machine = input::load("host", None)?;
    let (kernel, warnings) = inputs::kernel_model(&machine, args.kernel.as_deref())?;
    let options = Options {
        buffer_bytes: args.buffer.map(|size| size.0),
        free: true,
        runs: args.runs,
        seed: args.seed,
        argv: output::argv(),
        ..Options::default()
    };
    let host = host_context(&machine)?;
    let stop = signal::interrupted;
    let mut found = calibrate(&machine, &kernel, &host, &options, &Bar::default(), &stop)?;
    found.head.warnings.extend(warnings);
    output::warn(&found.head.warnings);
    match target {
        Some(mut file) => file.save_json(&found)?,
        None => output::json(&found)?,
    }
    Ok(if found.head.complete { ExitCode::SUCCESS } else { ExitCode::from(exit::INTERRUPTED) })
}
