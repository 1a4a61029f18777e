//! The command line: one file per verb, and the only place that prints.
//!
//! [`run`] parses the arguments and calls a verb. [`Failure`] carries the exit
//! status ([`exit`]) and one message; [`output`] writes data to stdout and talk to
//! stderr; [`bar`] shows progress on a terminal.

mod bar;
mod compare;
mod exit;
mod inputs;
mod lab;
mod machine;
mod output;
mod strategies;

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
  pageinit lab prefetch                 does zeroing fetch for the field writes
  pageinit machine -m list              the built-in machines
  pageinit strategies                   what the strategies stand for

Exit status: 0 ok, 1 failed, 2 usage, 3 untrustworthy (with --strict),
5 wrong data, 6 no resources, 7 not supported here, 130 interrupted.";

#[derive(Debug, Subcommand)]
enum Verb {
    /// Show a machine: nodes, memory, CPUs, distances, caches, limits
    Machine(machine::Args),
    /// Run the boot strategies for real, pinned per node, and compare them
    Compare(compare::Args),
    /// Small real experiments beside the boot: prefetch, clear-huge, mremap, pte-scan
    Lab(lab::Args),
    /// List the strategies and the stores they can use
    Strategies(strategies::Args),
}

/// Parses the arguments, does what they say, and returns the exit status.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.verb {
        Verb::Machine(args) => machine::run(&args),
        Verb::Compare(args) => compare::run(&args),
        Verb::Lab(args) => lab::run(&args),
        Verb::Strategies(args) => strategies::run(&args),
    };
    match done {
        Ok(code) => code,
        Err(failure) => report(&failure),
    }
}

fn report(failure: &Failure) -> ExitCode {
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
