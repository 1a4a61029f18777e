//! `pageinit diff`: two records, faster, slower or inconclusive.

use super::exit::{self, Failure};
use super::{output, report};
use crate::record::diff::Verdict;
use crate::report::diff::text;
use crate::study::diff::{Side, diff};
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  pageinit diff before.json after.json
  pageinit diff before.json after.json --threshold 2% --all
  pageinit diff before.json after.json --strict --json

Rows of both records are matched by strategy, store, threads, free, phase and node (or what
else tells them apart) and divided, B ÷ A, per struct page. A row is slower when the 95 %
interval of its ratio lies wholly above 1 + threshold, faster when it lies wholly below
1 ÷ (1 + threshold), else inconclusive. An interval covers the spread within both records, not
what differs from one start of the program to the next: measure twice to see that.

All is slower when the total of one strategy is, else faster when that of one is. Predictions
have no runs and are compared exactly; in records of lab and calibrate the median ratio of all
rows decides.

Exit status: 0 faster or inconclusive, 4 slower, 1 not comparable; with --strict 3 when the
verdict is inconclusive, which no difference above the threshold is, too.";

/// Arguments of `diff`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The record to compare with; - is stdin
    #[arg(value_name = "A")]
    before: PathBuf,
    /// The record that is faster or slower
    #[arg(value_name = "B")]
    after: PathBuf,
    /// Smaller differences do not count
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = threshold)]
    threshold: f64,
    /// Show rows without a certain difference too
    #[arg(long)]
    all: bool,
    /// Exit with 3 when the verdict is inconclusive
    #[arg(long)]
    strict: bool,
    /// Write one JSON document
    #[arg(long)]
    json: bool,
}

fn threshold(text: &str) -> Result<f64, String> {
    let wanted = "expected a percentage such as 5% or 2.5%, from 0% to 1000%";
    let number = text.trim().strip_suffix('%').ok_or(wanted)?;
    let percent: f64 = number.trim().parse().map_err(|_| wanted)?;
    if (0.0..=1000.0).contains(&percent) { Ok(percent / 100.0) } else { Err(wanted.into()) }
}

/// Compares two records.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let sources = report::read_all(&[args.before.clone(), args.after.clone()])?;
    let [a, b] = &sources[..] else {
        return Err(Failure::usage("diff needs two records"));
    };
    let found = diff(
        Side { name: &a.name, record: &a.record },
        Side { name: &b.name, record: &b.record },
        args.threshold,
        &output::argv(),
    )
    .map_err(|error| Failure::new(exit::FAILED, error.to_string()))?;
    if args.json {
        output::json(&found)?;
    } else {
        output::warn(&found.head.warnings);
        output::data(&text(&found, args.all))?;
    }
    Ok(match found.verdict {
        Verdict::Slower => ExitCode::from(exit::SLOWER),
        Verdict::Inconclusive if args.strict => ExitCode::from(exit::UNTRUSTWORTHY),
        Verdict::Faster | Verdict::Inconclusive => ExitCode::SUCCESS,
    })
}
