//! `pageinit completions`: what a shell needs to complete this program's arguments.

use super::exit::Failure;
use super::{Cli, output};
use clap::CommandFactory;
use clap_complete::Shell;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  pageinit completions bash
  pageinit completions fish

Where they go: bash ~/.local/share/bash-completion/completions/pageinit, zsh _pageinit in a folder
of fpath, fish ~/.config/fish/completions/pageinit.fish.";

/// Arguments of `completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The shell
    shell: Shell,
}

/// Writes the completions to stdout.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "pageinit", &mut text);
    output::bytes(&text)?;
    Ok(ExitCode::SUCCESS)
}
