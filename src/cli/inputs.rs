//! Arguments that several verbs share, and what they stand for.

use super::exit::Failure;
use crate::kernel::KernelModel;
use crate::kernel::boot;
use crate::kernel::version::NEWEST;
use crate::machine::assume::arch_of;
use crate::machine::evidence::Answers;
use crate::machine::input::{Format, Loaded, Request};
use crate::machine::{Arch, Machine};
use crate::units::Bytes;
use crate::warning::Warning;
use clap::{Args, ValueEnum, value_parser};

/// `-m`, `--format`, and what inputs may leave out, with one page size.
#[derive(Debug, Args)]
pub(super) struct MachineArgs {
    #[command(flatten)]
    pub(super) input: InputArgs,
    /// Base page size, where the input does not say; where it does, `estimate` tells what
    /// this one would change
    #[arg(long, value_name = "SIZE", value_parser = parse_page_size)]
    page_size: Option<Bytes>,
}

/// The same where page sizes are varied.
#[derive(Debug, Args)]
pub(super) struct InputArgs {
    /// host, @NAME (see `machine -m list`), an hwloc synthetic string, - for stdin, or a
    /// file: boot log, numactl -H, lscpu, lsmem, /proc/iomem, machine TOML, hwloc XML, a
    /// captured boot in JSON, a sysfs tree or its tarball. Several inputs fill each
    /// other's gaps
    #[arg(short, long, value_name = "MACHINE", default_value = "host")]
    pub(super) machine: Vec<String>,
    /// What MACHINE is, instead of finding out by looking
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(super) format: Option<FormatArg>,
    /// Which boot, where a log holds several
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    boot: Option<u32>,
    /// Architecture, where the input does not say
    #[arg(long, value_name = "NAME", value_parser = parse_arch)]
    arch: Option<Arch>,
    /// Memory of each node whose size the input does not say. An answer that contradicts
    /// an input is an error
    #[arg(long, value_name = "SIZE")]
    memory_per_node: Option<Bytes>,
    /// CPUs of each node of which the input does not say them
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=4096))]
    cpus_per_node: Option<u32>,
    /// Processor's name, where the input does not say, or hides it (with a warning)
    #[arg(long, value_name = "TEXT")]
    cpu_model: Option<String>,
}

fn parse_arch(text: &str) -> Result<Arch, String> {
    let known = "x86_64, arm64, ppc64, s390x, riscv64 and sparc64";
    arch_of(text).ok_or_else(|| format!("there are {known}"))
}

fn parse_page_size(text: &str) -> Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|e: crate::units::SizeError| e.to_string())?;
    let is_known = matches!(size.0, 4096 | 8192 | 16_384 | 65_536);
    is_known.then_some(size).ok_or_else(|| "there are 4KiB, 8KiB, 16KiB and 64KiB".into())
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
    /// A boot log: dmesg, journalctl -k, a console or a mail with one
    Log,
    /// The text of numactl -H
    Numactl,
    /// The text of lscpu
    Lscpu,
    /// The text of lsmem
    Lsmem,
    /// The text of /proc/iomem
    Iomem,
    /// A folder with a copy of /sys
    SysfsTree,
    /// A tarball of one
    Tarball,
}

impl From<FormatArg> for Format {
    fn from(format: FormatArg) -> Self {
        match format {
            FormatArg::Host => Self::Host,
            FormatArg::Library => Self::Library,
            FormatArg::Xml => Self::HwlocXml,
            FormatArg::Synthetic => Self::Synthetic,
            FormatArg::Toml => Self::MachineToml,
            FormatArg::Facts => Self::Facts,
            FormatArg::Log => Self::BootLog,
            FormatArg::Numactl => Self::Numactl,
            FormatArg::Lscpu => Self::Lscpu,
            FormatArg::Lsmem => Self::Lsmem,
            FormatArg::Iomem => Self::Iomem,
            FormatArg::SysfsTree => Self::SysfsTree,
            FormatArg::Tarball => Self::Tarball,
        }
    }
}

impl MachineArgs {
    /// Loads the machine.
    pub(super) fn load(&self) -> Result<Machine, Failure> {
        Ok(self.load_explained()?.machine)
    }

    /// Loads the machine, with the place of every fact.
    pub(super) fn load_explained(&self) -> Result<Loaded, Failure> {
        Ok(self.request().load()?)
    }

    /// Loads the machine, and gives back `--page-size` where the input itself says
    /// another one: then it asks what that would change.
    pub(super) fn load_with_page_size(&self) -> Result<(Loaded, Option<u64>), Failure> {
        let mut request = self.request();
        let asked = request.answers.page_bytes;
        // Standard input can be read once; what it says of pages stays as it is.
        if asked.is_none() || request.specs.iter().any(|spec| spec == "-") {
            let loaded = request.load()?;
            let other = asked.filter(|bytes| *bytes != loaded.machine.page_bytes);
            return Ok((loaded, other));
        }
        request.answers.page_bytes = None;
        match request.load() {
            Ok(loaded) => {
                let other = asked.filter(|bytes| *bytes != loaded.machine.page_bytes);
                Ok((loaded, other))
            }
            Err(_) => Ok((self.request().load()?, None)),
        }
    }

    /// What the arguments ask for.
    pub(super) fn request(&self) -> Request {
        self.input.request(self.page_size.map(|b| b.0))
    }
}

impl InputArgs {
    /// Loads the machine.
    pub(super) fn load(&self, page_bytes: Option<u64>) -> Result<Machine, Failure> {
        Ok(self.request(page_bytes).load()?.machine)
    }

    fn request(&self, page_bytes: Option<u64>) -> Request {
        Request {
            specs: self.machine.clone(),
            format: self.format.map(Format::from),
            boot: self.boot.and_then(|n| usize::try_from(n).ok()),
            answers: Answers {
                arch: self.arch,
                page_bytes,
                memory_per_node_bytes: self.memory_per_node.map(|b| b.0),
                cpus_per_node: self.cpus_per_node,
                cpu_model: self.cpu_model.clone(),
            },
        }
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
