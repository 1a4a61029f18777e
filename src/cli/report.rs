//! `pageinit report`: records as tables, lists, CSV, Markdown, pictures and traces.

use super::exit::Failure;
use super::output;
use super::reading::{self, is_stdin};
use super::saving::target;
use crate::report::pictures::Kind;
use crate::report::source::Source;
use crate::report::view::{Choice, View, render};
use clap::ValueEnum;
use clap::builder::PossibleValue;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  pageinit report before.json
  pageinit report before.json --as critical-chain --strategy deferred
  pageinit report fixtures/records/estimate-v1.json --as blame
  pageinit report before.json after.json --as csv -o both.csv
  pageinit report before.json --as csv --table Samples
  pageinit report before.json after.json --as markdown
  pageinit report before.json after.json --as html -o report.html
  pageinit report fixtures/records/estimate-v1.json --as svg -o timeline.svg
  pageinit report fixtures/records/sweep-v1.json --as svg --picture sweep -o curves.svg
  pageinit report fixtures/records/estimate-v1.json --as trace -o boot.trace.json

A record is what --json wrote, or a calibration file. Records of many hosts make one report:
each under where it comes from, and those of one kind in one table first.

--as csv writes one table with one header: `record`, `complete` and `table` say where a row
belongs, and a row fills the columns of its table. Numbers are raw, in the unit that the
column's name ends with. A text that a spreadsheet would compute has an apostrophe before it.

--as blame, critical-chain and trace are of records of compare and estimate. --as svg draws
timelines of these, one above the other on one time axis; curves of sweep, compare, calibrate
and validate; and the memory of compare and estimate. --as html has all of them with their
numbers in one file that needs no network. Open a trace in ui.perfetto.dev or chrome://tracing.";

/// Arguments of `report`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Files with records; - is stdin
    #[arg(required = true, value_name = "RECORD")]
    records: Vec<PathBuf>,
    /// The form
    #[arg(long = "as", value_enum, value_name = "VIEW", default_value_t = View::Table)]
    view: View,
    /// Only boots with this strategy, for blame, critical-chain and pictures; may be repeated
    #[arg(long, value_name = "NAME")]
    strategy: Vec<String>,
    /// Only tables with this title, for csv and markdown; may be repeated
    #[arg(long = "table", value_name = "TITLE")]
    tables: Vec<String>,
    /// What to draw, for svg; without it what the first record has
    #[arg(long, value_enum, value_name = "KIND")]
    picture: Option<Kind>,
    /// Write to this file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if there is one
    #[arg(long, requires = "output")]
    force: bool,
}

impl ValueEnum for View {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()).help(self.about()))
    }
}

impl ValueEnum for Kind {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()).help(self.about()))
    }
}

/// Shows records.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    check(args)?;
    let target = target(args.output.as_ref(), args.force)?;
    let sources = read_all(&args.records)?;
    let (tables, strategies) = (&args.tables, &args.strategy);
    let choice = Choice { tables, strategies, picture: args.picture };
    let text =
        render(args.view, &sources, choice).map_err(|error| Failure::usage(error.to_string()))?;
    match target {
        Some(mut target) => target.save(&text)?,
        None => output::data(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses choices that the view would ignore.
fn check(args: &Args) -> Result<(), Failure> {
    let of_tables = matches!(args.view, View::Csv | View::Markdown);
    if !args.strategy.is_empty() && (of_tables || args.view == View::Table) {
        return Err(Failure::usage(
            "--strategy is for --as blame, critical-chain, svg, html and trace",
        ));
    }
    if !args.tables.is_empty() && !of_tables {
        return Err(Failure::usage("--table is for --as csv and --as markdown"));
    }
    if args.picture.is_some() && args.view != View::Svg {
        return Err(Failure::usage("--picture is for --as svg"));
    }
    Ok(())
}

/// Reads records in their order.
pub(super) fn read_all(paths: &[PathBuf]) -> Result<Vec<Source>, Failure> {
    if paths.iter().filter(|path| is_stdin(path)).count() > 1 {
        return Err(Failure::usage("- stands for stdin, which can be read only once"));
    }
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Result<Source, Failure> {
    let text = reading::text(path, reading::MOST_RECORD_BYTES, A_RECORD)?;
    let name = if is_stdin(path) { "stdin".into() } else { path.to_string_lossy().into_owned() };
    Source::read(&name, &text).map_err(|error| reading::failed(path, &error.to_string()))
}

/// What is expected in a file.
const A_RECORD: &str = "a record, as --json or -o wrote it";
