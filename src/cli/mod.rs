//! The command line: one file per verb, and the only place that prints.
//!
//! [`run`] parses the arguments and calls a verb. [`Failure`] carries the exit
//! status ([`exit`]) and one message; [`output`] writes data to stdout and talk to
//! stderr; [`bar`] shows progress on a terminal.

mod bar;
mod calibrate;
mod capture;
mod compare;
mod completions;
mod diff;
mod doctor;
mod estimate;
mod exit;
mod inputs;
mod kernel_args;
mod lab;
mod layout;
mod machine;
mod man;
mod output;
mod reading;
mod report;
mod saving;
mod schema;
mod strategies;
mod sweep;
mod validate;
mod what_if_args;

use crate::host::signal;
use clap::{Parser, Subcommand};
use exit::Failure;
use std::process::ExitCode;

/// What Linux does at boot to initialise its struct pages: executed and measured.
#[derive(Debug, Parser)]
#[command(name = "pageinit", version, about, propagate_version = true)]
#[command(after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  pageinit compare                      measure all strategies on this host
  pageinit compare -m @2n-skylake-768g  the same for a machine you do not have
  pageinit layout --kernel 6.12         what Linux 6.12 places where on this host
  pageinit estimate -m @16n-hp-12t      predict it instead
  pageinit lab prefetch                 does zeroing fetch for the field writes
  pageinit report before.json           a record as tables
  pageinit diff before.json after.json  is the second faster or slower
  pageinit machine -m list              the built-in machines
  dmesg | pageinit machine -m -         the machine of a boot log
  pageinit strategies                   what the strategies stand for
  pageinit doctor                       is this host fit for measuring

Exit status: 0 ok, 1 failed, 2 usage, 3 untrustworthy (with --strict), 4 slower (diff),
5 wrong data, 6 no resources, 7 not supported here, 130 interrupted.";

#[derive(Debug, Subcommand)]
enum Verb {
    /// Show a machine: nodes, memory, CPUs, distances, caches, limits
    Machine(machine::Args),
    /// Show zones, memmap placement, early and deferred pages of a kernel version
    Layout(layout::Args),
    /// Write this host as a machine file, without names or serials
    Capture(capture::Args),
    /// Run the boot strategies for real, pinned per node, and compare them
    Compare(compare::Args),
    /// Measure this host for estimates
    Calibrate(calibrate::Args),
    /// Predict a machine's boot phases in virtual time
    Estimate(estimate::Args),
    /// Predict or measure over machines, threads, chunks, strategies, kernels; find the knee
    Sweep(sweep::Args),
    /// Hold the model's predictions against published figures
    Validate(validate::Args),
    /// Small real experiments beside the boot: prefetch, clear-huge, mremap, pte-scan
    Lab(lab::Args),
    /// Show records as tables, blame, critical-chain, CSV, Markdown, SVG, HTML or a trace
    Report(report::Args),
    /// Two records: faster, slower or inconclusive; the exit status is the verdict
    Diff(diff::Args),
    /// List the strategies and the stores they can use
    Strategies(strategies::Args),
    /// Is this host fit for measuring: reads, changes nothing
    Doctor(doctor::Args),
    /// Write JSON Schemas of the records
    Schema(schema::Args),
    /// Write completions for a shell
    Completions(completions::Args),
    /// Write manual pages
    Man(man::Args),
}

/// Parses the arguments, does what they say, and returns the exit status.
pub fn run() -> ExitCode {
    signal::report_large_files();
    let cli = Cli::parse();
    let done = match cli.verb {
        Verb::Machine(args) => machine::run(&args),
        Verb::Layout(args) => layout::run(&args),
        Verb::Capture(args) => capture::run(&args),
        Verb::Compare(args) => compare::run(&args),
        Verb::Calibrate(args) => calibrate::run(&args),
        Verb::Estimate(args) => estimate::run(&args),
        Verb::Sweep(args) => sweep::run(&args),
        Verb::Validate(args) => validate::run(&args),
        Verb::Lab(args) => lab::run(&args),
        Verb::Report(args) => report::run(&args),
        Verb::Diff(args) => diff::run(&args),
        Verb::Strategies(args) => strategies::run(&args),
        Verb::Doctor(args) => doctor::run(&args),
        Verb::Schema(args) => schema::run(&args),
        Verb::Completions(args) => completions::run(&args),
        Verb::Man(args) => man::run(&args),
    };
    match done {
        Ok(code) => code,
        Err(failure) => failed(&failure),
    }
}

fn failed(failure: &Failure) -> ExitCode {
    if let Some(message) = failure.message() {
        output::talk(&format!("error: {message}"));
    }
    failure.code()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
