//! `pageinit layout`: where Linux puts what, and who initialises it.

use super::exit::Failure;
use super::inputs::MachineArgs;
use super::kernel_args::{Chosen, KernelArgs};
use super::output;
use crate::kernel::notes::notes;
use crate::kernel::place::Placement;
use crate::kernel::{BootInput, Layout};
use crate::machine::Machine;
use crate::report::layout::{LayoutView, against, json, text};
use crate::warning::Warning;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  pageinit layout
  pageinit layout -m @2n-skylake-768g --kernel 5.10
  pageinit layout -m @8n-cxl-4.5t --kernel 6.12 --against 7.2
  pageinit layout --cmdline 'numa=fake=4 movablecore=25%' --kernel 6.1
  pageinit layout -m fixtures/boots/6.12_n2-8g.json --json";

/// Arguments of `layout`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    kernel: KernelArgs,
    /// Show what changes from --kernel to this version
    #[arg(long, value_name = "VERSION")]
    against: Option<String>,
    /// Write one JSON document with every region, request, extent and chunk
    #[arg(long)]
    json: bool,
    /// With --json: join runs of equal requests and extents, leave ranges and chunks out
    #[arg(long, requires = "json")]
    compact: bool,
}

/// One boot and what there is to say about it.
struct Booted {
    input: BootInput,
    layout: Layout,
    placement: Placement,
    notes: Vec<String>,
    warnings: Vec<Warning>,
}

impl Booted {
    fn new(machine: &Machine, chosen: Chosen) -> Result<Self, Failure> {
        let input = BootInput::from_machine(machine, &chosen.kernel, chosen.line.as_ref())?;
        let (layout, placement) = input.boot()?;
        let mut warnings = machine.warnings.clone();
        warnings.extend(chosen.warnings);
        warnings.extend(layout.warnings.iter().cloned());
        Ok(Self { notes: notes(&input), input, layout, placement, warnings })
    }

    fn view(&self) -> LayoutView<'_> {
        LayoutView {
            input: &self.input,
            layout: &self.layout,
            placement: &self.placement,
            notes: &self.notes,
        }
    }
}

/// Shows the layout, or what changes between two versions.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let machine = args.machine.load()?;
    let first = Booted::new(&machine, args.kernel.choose(&machine)?)?;
    if let Some(version) = &args.against {
        let second = args.kernel.choose_version(&machine, Some(version))?;
        return compare(args, &first, &Booted::new(&machine, second)?);
    }
    if args.json {
        let body = json::body(&first.view(), args.compact);
        output::stream("pageinit/layout/1", &first.warnings, &body)?;
    } else {
        output::warn(&first.warnings);
        output::data(&text(&first.view()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn compare(args: &Args, first: &Booted, second: &Booted) -> Result<ExitCode, Failure> {
    let mut warnings = first.warnings.clone();
    warnings.extend(second.warnings.iter().filter(|w| !first.warnings.contains(w)).cloned());
    if args.json {
        let body = against::json(&first.view(), &second.view());
        output::json(&output::document("pageinit/layout-changes/1", &warnings, body))?;
    } else {
        output::warn(&warnings);
        output::data(&against::text(&first.view(), &second.view()))?;
    }
    Ok(ExitCode::SUCCESS)
}
