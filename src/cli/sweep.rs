//! `pageinit sweep`: predictions over threads, chunks, strategies and kernels.

use super::bar::Bar;
use super::estimate::{VirtArg, strategy};
use super::exit::Failure;
use super::inputs::{self, MachineArgs};
use super::output;
use super::saving::{SaveArgs, save_and_show};
use crate::kernel::KernelModel;
use crate::machine::Machine;
use crate::model::Anchor;
use crate::record::sweep::Sweep;
use crate::report;
use crate::study::StudyError;
use crate::study::estimate::Question;
use crate::study::sweep::values::Values;
use crate::study::sweep::{Axes, check_points, most_threads, sweep};
use crate::units::Bytes;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  pageinit sweep -m @2n-skylake-768g --threads 1,2,4..max
  pageinit sweep -m @16n-hp-12t --strategy prezero,deferred --kernel 4.14,6.12 --threads 1..max*2
  pageinit sweep -m @2n-skylake-768g --threads max --chunk 128MiB..8GiB*2 --csv

Values are lists of numbers and ranges: 4..16 counts by one, 4..16+4 by four, 1..64*2
doubles, and max stands for the CPUs of a node.";

/// Arguments of `sweep`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    machine: MachineArgs,
    /// Threads per node
    #[arg(long, value_name = "VALUES", default_value = "1..max*2,max")]
    threads: String,
    /// Strategies, separated by commas
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAMES",
        default_value = "setup-zero,deferred"
    )]
    strategy: Vec<String>,
    /// Linux versions, separated by commas [default: the machine's own, else the newest]
    #[arg(long, value_delimiter = ',', value_name = "VERSIONS")]
    kernel: Vec<String>,
    /// Memory that one chunk describes, as sizes and ranges; auto is padata's rule
    #[arg(long, value_name = "VALUES", default_value = "auto")]
    chunk: String,
    /// What a node's deferred phase really took, as node0=7200ms/128312523
    #[arg(long, value_name = "ANCHOR")]
    anchor: Vec<String>,
    /// Whether the kernel is a guest [default: by the processor's name]
    #[arg(long, value_enum)]
    virt: Option<VirtArg>,
    /// Initialise only, without handing pages to the buddy allocator
    #[arg(long)]
    no_free: bool,
    /// Refuse to predict more points than this
    #[arg(long, value_name = "COUNT", default_value_t = 100_000)]
    max_points: u64,
    /// Write one JSON document
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Write the points as comma-separated values
    #[arg(long)]
    csv: bool,
    #[command(flatten)]
    save: SaveArgs,
}

/// Predicts all combinations.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let target = args.save.target()?;
    let machine = args.machine.load()?;
    let anchors = args.anchor.iter().map(|text| text.parse::<Anchor>());
    let question = Question {
        free: !args.no_free,
        virt: args.virt.map(VirtArg::virt),
        anchors: anchors.collect::<Result<Vec<_>, _>>().map_err(StudyError::from)?,
        argv: output::argv(),
        ..Question::default()
    };
    let record = sweep(&machine, &axes(args, &machine)?, &question, &Bar::default())?;
    save_and_show(target, &record, || show(args, &record))?;
    Ok(ExitCode::SUCCESS)
}

fn show(args: &Args, record: &Sweep) -> Result<(), Failure> {
    if args.json {
        return output::json(record);
    }
    output::warn(&record.head.warnings);
    match args.csv {
        true => output::data(&report::sweep::csv(record)),
        false => output::data(&report::sweep::text(record)),
    }
}

fn axes(args: &Args, machine: &Machine) -> Result<Axes, Failure> {
    let usage =
        |flag: &str, error: &dyn std::fmt::Display| Failure::usage(format!("--{flag}: {error}"));
    let most = u64::from(most_threads(machine));
    let threads = Values::parse(&args.threads, most, |text| text.parse().ok().filter(|n| *n > 0))
        .map_err(|e| usage("threads", &e))?;
    let (auto, chunks) = chunks(&args.chunk).map_err(|e| usage("chunk", &e))?;
    let strategies =
        args.strategy.iter().map(|name| strategy(name)).collect::<Result<Vec<_>, _>>()?;
    let kernels = kernels(args, machine)?;
    let chunk_count = chunks.as_ref().map_or(0, Values::count) + u128::from(auto);
    let fixed = (strategies.len() as u128).saturating_mul(kernels.len() as u128);
    let points = fixed.saturating_mul(threads.count()).saturating_mul(chunk_count);
    // Before any range is expanded: it may hold millions.
    check_points(points, args.max_points)?;
    let thread_counts = threads.all().into_iter();
    let sizes = chunks.map(|c| c.all()).unwrap_or_default().into_iter();
    let pages = sizes.map(|bytes| super::estimate::chunk_pages(Bytes(bytes), machine));
    let mut chunk_pages: Vec<Option<u64>> = if auto { vec![None] } else { Vec::new() };
    chunk_pages.extend(pages.collect::<Result<Vec<_>, _>>()?.into_iter().map(Some));
    Ok(Axes {
        kernels,
        strategies,
        threads: thread_counts.map(|t| u32::try_from(t).unwrap_or(u32::MAX)).collect(),
        chunks: chunk_pages,
    })
}

/// Whether padata's own rule is among them, and the sizes.
fn chunks(text: &str) -> Result<(bool, Option<Values>), crate::study::sweep::values::ValuesError> {
    let items: Vec<&str> = text.split(',').map(str::trim).collect();
    let sizes: Vec<&str> = items.iter().copied().filter(|item| *item != "auto").collect();
    let auto = sizes.len() < items.len();
    if auto && sizes.is_empty() {
        return Ok((true, None));
    }
    let size = |text: &str| text.parse::<Bytes>().ok().map(|b| b.0);
    Ok((auto, Some(Values::parse(&sizes.join(","), 0, size)?)))
}

fn kernels(args: &Args, machine: &Machine) -> Result<Vec<KernelModel>, Failure> {
    if args.kernel.is_empty() {
        return Ok(vec![inputs::kernel_model(machine, None)?.0]);
    }
    let models = args.kernel.iter().map(|text| inputs::kernel_model(machine, Some(text.trim())));
    models.map(|model| Ok(model?.0)).collect()
}
