//! `pageinit estimate`: what a machine would take, in virtual time.

use super::exit::{self, Failure};
use super::inputs::MachineArgs;
use super::kernel_args::{Chosen, KernelArgs};
use super::output;
use super::reading;
use super::saving::{SaveArgs, save_and_show};
use super::what_if_args::WhatIfArgs;
use crate::kernel::KernelModel;
use crate::machine::Machine;
use crate::machine::assume::arch_of;
use crate::model::setup::CalibratedPhase;
use crate::model::{Anchor, Virt};
use crate::pfn::Nid;
use crate::plan::Strategy;
use crate::record::any::AnyRecord;
use crate::record::estimate::{Estimate, NodeEstimate};
use crate::report;
use crate::study::StudyError;
use crate::study::calibrate::phases;
use crate::study::estimate::{Question, WhatIf, estimate, what_if};
use crate::units::Bytes;
use crate::warning::Warning;
use clap::ValueEnum;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  pageinit estimate -m @2n-skylake-768g --kernel 5.10
  pageinit estimate -m @16n-hp-12t --kernel 4.14 --strategy prezero
  pageinit estimate -m @2n-skylake-768g --threads 13 --anchor node0=1718ms/100663296 --json
  dmesg | pageinit estimate -m -
  pageinit estimate -m @2n-skylake-768g --kernel 6.12 --cmdline 'init_on_free=1 movablecore=25%'
  pageinit estimate -m @2n-skylake-768g --kernel 6.6 --hugepages 1GiB:500 --hvo on
  pageinit estimate -m @2n-skylake-768g --hotplug 1TiB --device-memory 1TiB
  pageinit estimate -m @2n-skylake-768g --kernel 5.4 --fake-numa 16 --init-on-free
  pageinit estimate -m @2n-skylake-768g --kexec --kdump 512MiB";

/// Files beyond this size are no calibrations.
const MOST_BYTES: u64 = 4 << 20;

/// Arguments of `estimate`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    kernel: KernelArgs,
    /// Strategy [default: what that version does]
    #[arg(long, value_name = "NAME")]
    strategy: Option<String>,
    /// Memory that one chunk describes, instead of padata's rule
    #[arg(long, value_name = "SIZE")]
    chunk: Option<Bytes>,
    /// What a node's deferred phase really took, as node0=7200ms/128312523, with @4 for
    /// 4 threads; may be repeated
    #[arg(long, value_name = "ANCHOR")]
    anchor: Vec<String>,
    /// Costs measured by `calibrate`, instead of the processor's class
    #[arg(long, value_name = "FILE", conflicts_with = "anchor")]
    calibration: Option<PathBuf>,
    /// Exit with 3 when the calibration is of another architecture
    #[arg(long)]
    strict: bool,
    /// Whether the kernel is a guest [default: by the processor's name]
    #[arg(long, value_enum)]
    virt: Option<VirtArg>,
    /// Initialise only, without handing pages to the buddy allocator
    #[arg(long)]
    no_free: bool,
    /// Write the lines that such a kernel would print, instead of a report
    #[arg(long = "as", value_enum, value_name = "FORM", conflicts_with = "json")]
    form: Option<Form>,
    /// Write one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    save: SaveArgs,
    // Last: its heading would hold for whatever follows.
    #[command(flatten)]
    what_if: WhatIfArgs,
}

/// Other forms of the result.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Form {
    /// The kernel's own lines, with times as its timer shows them
    Dmesg,
}

/// Bare metal or guest.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum VirtArg {
    /// The kernel has the machine to itself
    BareMetal,
    /// A hypervisor gives the kernel its memory
    Guest,
}

impl VirtArg {
    /// For the model.
    pub(super) const fn virt(self) -> Virt {
        match self {
            Self::BareMetal => Virt::BareMetal,
            Self::Guest => Virt::Guest,
        }
    }
}

/// Predicts.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let keeper = args.save.keeper()?;
    let (loaded, page_bytes) = args.machine.load_with_page_size()?;
    let (machine, log) = (&loaded.machine, loaded.boot.as_deref());
    let Chosen { kernel, line, mut warnings } = args.kernel.choose_with_log(machine, log)?;
    let what_if = WhatIf { page_bytes, ..args.what_if.what_if() };
    warnings.extend(what_if::warnings(&what_if, &kernel, args.calibration.is_some()));
    let (question, doubts) = question(args, machine)?;
    let question = Question { line, what_if, log: loaded.boot.clone(), ..question };
    let mut record = estimate(machine, &kernel, &question)?;
    let doubtful = !doubts.is_empty() && args.strict;
    record.head.warnings.extend(warnings.into_iter().chain(doubts));
    save_and_show(keeper, &record, || show(args, &kernel, &record))?;
    Ok(if doubtful { ExitCode::from(exit::UNTRUSTWORTHY) } else { ExitCode::SUCCESS })
}

fn show(args: &Args, kernel: &KernelModel, record: &Estimate) -> Result<(), Failure> {
    if args.json {
        return output::json(record);
    }
    output::warn(&record.head.warnings);
    match args.form {
        Some(Form::Dmesg) => output::data(&dmesg(kernel, record)),
        None => output::data(&report::estimate::text(record)),
    }
}

/// The measured phases of a calibration, and what makes it doubtful for this machine.
fn calibrated(
    path: &Path,
    machine: &Machine,
) -> Result<(Vec<CalibratedPhase>, Vec<Warning>), Failure> {
    let what = "a calibration, as calibrate wrote it";
    let found = reading::record(path, MOST_BYTES, what, |read| match read {
        AnyRecord::Calibration(found) => Ok(found),
        other => Err(other),
    })?;
    let mut doubts = Vec::new();
    if arch_of(&found.host.arch) != Some(machine.arch) {
        let text = format!(
            "the calibration is of {}, the machine is {}: its costs say little about it",
            found.host.arch, machine.arch
        );
        doubts.push(Warning::new("other-architecture", text, "calibrate on a like machine"));
    }
    Ok((phases(&found)?, doubts))
}

/// The lines of `deferred_init_memmap`, in the order in which nodes end. Kernels count
/// timer ticks, so times are whole ticks.
fn dmesg(kernel: &KernelModel, record: &Estimate) -> String {
    let tick_ms = u64::from(1000 / kernel.config.hz.clamp(1, 1000));
    let mut nodes: Vec<_> = record.nodes.iter().collect();
    nodes.sort_by_key(|n| (n.wall_ns, n.nid));
    let line = |n: &&NodeEstimate| {
        let ms = n.wall_ns / 1_000_000 / tick_ms * tick_ms;
        kernel.dmesg_line.text(Nid(n.nid), n.pages, ms)
    };
    nodes.iter().filter_map(line).map(|line| line + "\n").collect()
}

fn question(args: &Args, machine: &Machine) -> Result<(Question, Vec<Warning>), Failure> {
    let (calibrated, doubts) = match &args.calibration {
        Some(path) => calibrated(path, machine)?,
        None => (Vec::new(), Vec::new()),
    };
    let anchors = args.anchor.iter().map(|text| text.parse::<Anchor>());
    let anchors = anchors.collect::<Result<Vec<_>, _>>().map_err(StudyError::from)?;
    let question = Question {
        calibrated,
        strategy: args.strategy.as_deref().map(strategy).transpose()?,
        chunk_pages: args.chunk.map(|size| chunk_pages(size, machine)).transpose()?,
        free: !args.no_free,
        virt: args.virt.map(VirtArg::virt),
        anchors,
        argv: output::argv(),
        ..Question::default()
    };
    Ok((question, doubts))
}

/// The strategy of a name.
pub(super) fn strategy(name: &str) -> Result<Strategy, Failure> {
    Strategy::named(name).ok_or_else(|| {
        let names = Strategy::ALL.map(Strategy::name).join(", ");
        Failure::usage(format!("no strategy is called {name:?}; there are {names}"))
    })
}

/// Pages that one chunk describes; chunks are whole largest blocks.
pub(super) fn chunk_pages(size: Bytes, machine: &Machine) -> Result<u64, Failure> {
    let block_bytes = 1024 * machine.page_bytes;
    if size.0 == 0 || !size.0.is_multiple_of(block_bytes) {
        return Err(Failure::usage(format!(
            "--chunk {size} is not a multiple of the largest buddy block, {}",
            Bytes(block_bytes)
        )));
    }
    Ok(size.0 / machine.page_bytes)
}
