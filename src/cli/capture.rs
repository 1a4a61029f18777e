//! `pageinit capture`: this host as a file to send or keep.

use super::exit::Failure;
use super::{inputs, output, saving};
use crate::machine::{capture, input, to_toml};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  pageinit capture > my-machine.toml
  pageinit capture --output with-tree.toml --tree my-machine
  pageinit machine -m my-machine.toml

Neither holds a host name, serial number, hardware address, UUID, user name or kernel
pointer. Run as root for exact addresses of memory.";

/// Arguments of `capture`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Write the machine TOML to this new file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace FILE if it is there
    #[arg(long, requires = "output")]
    force: bool,
    /// Also write a scrubbed copy of /sys and /proc to this new or empty folder
    #[arg(long, value_name = "FOLDER")]
    tree: Option<PathBuf>,
}

/// Describes this host.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let target = saving::target(args.output.as_ref(), args.force)?;
    let mut machine = input::load("host", None)?;
    machine.kernel_release =
        machine.kernel_release.as_deref().and_then(capture::release).filter(|r| !r.is_empty());
    let text = to_toml::to_toml(&machine);
    let arch = inputs::host_arch()?.to_string();
    if let Some(folder) = &args.tree {
        let captured = capture::capture(Path::new("/"), &arch);
        capture::write(folder, &captured).map_err(|e| failed(folder, &e))?;
    }
    output::warn(&machine.warnings);
    match target {
        Some(mut file) => file.save(&text)?,
        None => output::data(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    let message = format!("{}: {error}; name a new file or folder", path.display());
    Failure::new(super::exit::FAILED, message)
}
