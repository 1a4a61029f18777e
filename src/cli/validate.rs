//! `pageinit validate`: predictions against published figures.

use super::exit::Failure;
use super::output;
use super::reading;
use super::saving::{SaveArgs, save_and_show};
use crate::machine::MachineError;
use crate::machine::input::{Format, Request};
use crate::report;
use crate::study::published::{self, Figures};
use crate::study::validate::{boot_logs, empty, validate};
use clap::ValueEnum;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  pageinit validate
  pageinit validate --figures my-figures.json --json
  pageinit validate --boot-log boot.log
  pageinit validate --boot-log boot.log --anchor first-node
  dmesg | pageinit validate --boot-log - --json";

/// Files beyond this size are no lists of figures; one takes up to 100 times its size.
const MOST_BYTES: u64 = 4 << 20;

/// Arguments of `validate`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Figures to predict, as JSON or TOML [default: the built-in ones]
    #[arg(long, value_name = "FILE")]
    figures: Option<PathBuf>,
    /// Boot logs to predict blind, line by line, instead of the built-in figures; - is
    /// standard input
    #[arg(long, value_name = "FILE", num_args = 1..)]
    boot_log: Vec<String>,
    /// Take the first node that a boot times as known, and predict the rest from it
    #[arg(long, value_enum, value_name = "WHAT", requires = "boot_log")]
    anchor: Option<AnchorArg>,
    /// Write one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    save: SaveArgs,
}

/// What of a log is taken as known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AnchorArg {
    /// The first node of each boot
    FirstNode,
}

/// Predicts and compares.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let keeper = args.save.keeper()?;
    let mut record = match (&args.figures, args.boot_log.is_empty()) {
        (Some(path), _) => validate(&path.display().to_string(), &read(path)?, output::argv())?,
        (None, true) => validate("the built-in figures", &published::builtin(), output::argv())?,
        (None, false) => {
            let name = format!("boot logs: {}", args.boot_log.join(", "));
            empty(&name, &Figures::default(), output::argv())
        }
    };
    if !args.boot_log.is_empty() {
        let specs = args.boot_log.clone();
        let format = Some(Format::BootLog);
        let logs = Request { specs, format, ..Request::default() }.logs().map_err(not_a_log)?;
        boot_logs::add(&mut record, &logs, args.anchor == Some(AnchorArg::FirstNode))?;
    }
    save_and_show(keeper, &record, || {
        if args.json {
            return output::json(&record);
        }
        output::warn(&record.head.warnings);
        output::data(&report::validate::text(&record))
    })?;
    Ok(ExitCode::SUCCESS)
}

/// A missing file is no machine that could be written in another way.
fn not_a_log(error: MachineError) -> Failure {
    match error {
        MachineError::NoSuchFile { path } => {
            let text = format!("{}: no such file; expected a boot log, or -", path.display());
            Failure::new(super::exit::FAILED, text)
        }
        other => other.into(),
    }
}

fn read(path: &Path) -> Result<Figures, Failure> {
    let text = reading::text(path, MOST_BYTES, "published figures as TOML or JSON")?;
    Ok(published::parse(&path.display().to_string(), &text)?)
}
