//! Arguments that several verbs share, and what they stand for.

use super::exit::Failure;
use crate::kernel::KernelModel;
use crate::kernel::boot;
use crate::kernel::version::NEWEST;
use crate::machine::input::{self, Format};
use crate::machine::{Arch, Machine};
use crate::warning::Warning;
use clap::{Args, ValueEnum};

/// `-m` and `--format`.
#[derive(Debug, Args)]
pub(super) struct MachineArgs {
    /// host, @NAME (see `machine -m list`), an hwloc XML or machine TOML file, a captured
    /// boot in JSON, or an hwloc synthetic string
    #[arg(short, long, value_name = "MACHINE", default_value = "host")]
    pub(super) machine: String,
    /// What MACHINE is, instead of finding out by looking
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(super) format: Option<FormatArg>,
}

/// The formats by name.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum FormatArg {
    /// This host
    Host,
    /// A built-in machine
    Library,
    /// hwloc XML
    Xml,
    /// An hwloc synthetic string
    Synthetic,
    /// Machine TOML
    Toml,
    /// A captured boot in JSON
    Facts,
}

impl MachineArgs {
    /// Loads the machine.
    pub(super) fn load(&self) -> Result<Machine, Failure> {
        let forced = self.format.map(|format| match format {
            FormatArg::Host => Format::Host,
            FormatArg::Library => Format::Library,
            FormatArg::Xml => Format::HwlocXml,
            FormatArg::Synthetic => Format::Synthetic,
            FormatArg::Toml => Format::MachineToml,
            FormatArg::Facts => Format::Facts,
        });
        Ok(input::load(&self.machine, forced)?)
    }
}

/// The kernel rules for a machine: those of `--kernel`, else of the machine's own
/// kernel where it is known and modelled, else the newest.
pub(super) fn kernel_model(
    machine: &Machine,
    wanted: Option<&str>,
) -> Result<(KernelModel, Vec<Warning>), Failure> {
    let (release, named) = match (wanted, machine.kernel_release.as_deref()) {
        (Some(text), _) => (text.to_owned(), true),
        (None, Some(own)) => (own.to_owned(), false),
        (None, None) => (NEWEST.to_string(), false),
    };
    match KernelModel::from_release(&release, machine.arch) {
        Ok(model) => Ok((of_captured_boot(machine, model)?, Vec::new())),
        Err(error) if named => Err(Failure::usage(format!("--kernel {release}: {error}"))),
        Err(error) => {
            let text = format!("{error}; the rules of {NEWEST} are used");
            let warning = Warning::new("kernel-not-modelled", text, "name one with --kernel");
            Ok((KernelModel::new(NEWEST, machine.arch), vec![warning]))
        }
    }
}

/// `model` in the configuration of the boot it was captured with, if it is its kernel.
fn of_captured_boot(machine: &Machine, model: KernelModel) -> Result<KernelModel, Failure> {
    match &machine.boot {
        Some(facts) if facts.kernel == model.release => Ok(boot::kernel_of_facts(facts)?),
        _ => Ok(model),
    }
}

/// The architecture of this program, for what is executed here.
pub(super) fn host_arch() -> Result<Arch, Failure> {
    let text = "this program runs on a processor architecture that it has no rules for";
    Arch::of_this_program().ok_or_else(|| Failure::new(super::exit::NOT_SUPPORTED, text))
}
