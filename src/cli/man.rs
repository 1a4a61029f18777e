//! `pageinit man`: manual pages, made from the same texts as `--help`.

use super::exit::Failure;
use super::{Cli, output};
use crate::nearest::nearest;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  pageinit man
  pageinit man compare
  pageinit man lab prefetch

To read one: pageinit man compare | man -l -";

/// Arguments of `man`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The verb, or a verb and its part [default: the program]
    #[arg(value_name = "VERB", num_args = 0..=2)]
    verb: Vec<String>,
}

/// Writes one page to stdout.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let mut all = Cli::command();
    all.build();
    let mut page = all;
    for name in &args.verb {
        let found = page.find_subcommand(name).cloned();
        page = found.ok_or_else(|| unknown(&page, name))?;
    }
    let mut text = Vec::new();
    Man::new(page).render(&mut text)?;
    output::bytes(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn unknown(page: &Command, name: &str) -> Failure {
    let names: Vec<&str> = page.get_subcommands().map(Command::get_name).collect();
    let hint = match nearest(name, names.iter().copied()) {
        Some(near) => format!("did you mean {near:?}?"),
        None if names.is_empty() => "it has no parts".into(),
        None => format!("there are {}", names.join(", ")),
    };
    Failure::usage(format!("{:?} has no {name:?}; {hint}", page.get_name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every verb's page, with the examples that its --help has.
    #[test]
    fn pages_have_what_help_has() {
        let mut all = Cli::command();
        all.build();
        for verb in all.get_subcommands().filter(|verb| verb.get_name() != "help") {
            let mut text = Vec::new();
            Man::new(verb.clone()).render(&mut text).unwrap();
            let text = String::from_utf8(text).unwrap().replace('\\', "").replace("*(Aq", "'");
            let help = verb.get_after_help().unwrap().to_string();
            let examples = help.lines().filter(|line| line.starts_with("  pageinit "));
            assert!(examples.clone().count() > 0, "{} has no examples", verb.get_name());
            for example in examples {
                assert!(text.contains(example.trim()), "{}: {example}", verb.get_name());
            }
        }
    }
}
