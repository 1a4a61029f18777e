//! `pageinit sweep`: figures over machines, threads, chunks, strategies and kernels.
//!
//! [`Args`] are the arguments, [`axes`] what they vary, [`resume`] the record to go on
//! from.

mod axes;
mod resume;

use super::bar::Bar;
use super::compare::host_context;
use super::estimate::VirtArg;
use super::exit::{self, Failure};
use super::inputs::InputArgs;
use super::output;
use super::saving::save_and_show;
use crate::host::signal;
use crate::machine::Machine;
use crate::model::Anchor;
use crate::progress::Progress;
use crate::record::file::Target;
use crate::record::keeper::Keeper;
use crate::record::sweep::Sweep;
use crate::report;
use crate::study::StudyError;
use crate::study::estimate::Question;
use crate::study::sweep::{Control, Measure, sweep};
use crate::units::Bytes;
use clap::value_parser;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const EXAMPLES: &str = "\
Examples:
  pageinit sweep -m @2n-skylake-768g --threads 1,2,4..max
  pageinit sweep -m @16n-hp-12t --strategy prezero,deferred --kernel 4.14,6.12 --threads 1..max*2
  pageinit sweep -m @2n-skylake-768g --threads max --chunk 128MiB..8GiB*2 --csv
  pageinit sweep -m @2n-skylake-768g --nodes 1..16*2 --memory 1TiB..8TiB*2 -o growth.json
  pageinit sweep --resume growth.json   go on where that one stopped
  pageinit sweep -m @vm-2c --threads 1 --strategy deferred,fused-nt --measure --runs 3

Values are lists of numbers and ranges: 4..16 counts by one, 4..16+4 by four, 1..64*2
doubles, and max stands for the CPUs of a node, the nodes or the memory of the machine.
--nodes N makes N equal nodes like the first one with CPUs and memory, each as large as
that; nodes beyond the machine's own are as far apart as its farthest ones or as those of
so large machines usually are. --memory shares its size among the nodes as theirs is, in
whole memory sections. Addresses are assumed then.

A sweep with -o FILE saves what it has once a second, so that Ctrl-C, a kill or a power
cut leaves a valid record with \"complete\": false. --resume FILE keeps the combinations
that FILE has and does the rest; when the sweep is predicted the file becomes the same, byte
for byte, as if nothing had happened. Give the same arguments, or none: then those of the
record hold. Its argv stays that of the first run.";

/// Arguments of `sweep`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    machine: InputArgs,
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
    /// Equal nodes, instead of the machine's own
    #[arg(long, value_name = "VALUES")]
    nodes: Option<String>,
    /// All memory, as sizes and ranges, instead of the machine's own
    #[arg(long, value_name = "VALUES")]
    memory: Option<String>,
    /// Base page sizes that the architecture has: 4KiB, 16KiB, 64KiB on arm64, 4KiB and
    /// 64KiB on ppc64; the first one also holds where the input does not say
    #[arg(long, value_name = "VALUES")]
    page_size: Option<String>,
    /// What a node's deferred phase really took, as node0=7200ms/128312523
    #[arg(long, value_name = "ANCHOR", conflicts_with = "measure")]
    anchor: Vec<String>,
    /// Whether the kernel is a guest [default: by the processor's name]
    #[arg(long, value_enum)]
    virt: Option<VirtArg>,
    /// Initialise only, without handing pages to the buddy allocator
    #[arg(long)]
    no_free: bool,
    /// Run the combinations for real on this host, as compare does
    #[arg(long)]
    measure: bool,
    /// Rounds of runs, with --measure
    #[arg(
        long, default_value_t = 5, requires = "measure",
        value_parser = value_parser!(u32).range(1..=10_000)
    )]
    runs: u32,
    /// Seed of the order of runs, with --measure [default: from the clock]
    #[arg(long, requires = "measure")]
    seed: Option<u64>,
    /// Buffer for the struct pages, with --measure [default: the whole memmap where it fits]
    #[arg(long, value_name = "SIZE", requires = "measure")]
    buffer: Option<Bytes>,
    /// Refuse to do more points than this
    #[arg(long, value_name = "COUNT", default_value_t = 100_000)]
    max_points: u64,
    /// Write one JSON document
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Write the points as comma-separated values
    #[arg(long)]
    csv: bool,
    /// Save the record as JSON in this new file, whatever else is shown
    #[arg(short, long, value_name = "FILE", conflicts_with = "resume")]
    output: Option<PathBuf>,
    /// Replace FILE if it is there
    #[arg(long, requires = "output", conflicts_with = "resume")]
    force: bool,
    /// Go on with the record in this file, and save there
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Seconds between saves of what there is so far; 0 saves as often as possible
    #[arg(
        long, value_name = "SECONDS", default_value_t = 1,
        value_parser = value_parser!(u32).range(..=86_400)
    )]
    save_every: u32,
}

/// Does all combinations.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    signal::catch_interrupt();
    let Some(path) = &args.resume else { return run_with(args, args, None) };
    let kept = resume::read(path)?;
    if !resume::is_alone() {
        return run_with(args, args, kept);
    }
    let own = match &kept {
        Some(kept) => resume::arguments_of(path, kept)?,
        None => return Err(resume::nothing_there(path)),
    };
    run_with(&own, args, kept)
}

/// Does the sweep that `asked` describes; `shown` says how it is saved and shown.
fn run_with(asked: &Args, shown: &Args, kept: Option<Sweep>) -> Result<ExitCode, Failure> {
    let mut keeper = keeper(shown)?;
    let machine = axes::machine(asked)?;
    let anchors = asked.anchor.iter().map(|text| text.parse::<Anchor>());
    let question = Question {
        free: !asked.no_free,
        virt: asked.virt.map(VirtArg::virt),
        anchors: anchors.collect::<Result<Vec<_>, _>>().map_err(StudyError::from)?,
        argv: resume::as_output(output::argv()),
        ..Question::default()
    };
    let axes = axes::axes(asked, &machine)?;
    let host = asked.measure.then(|| host_context(&machine)).transpose()?;
    let measure = host.as_ref().map(|host| Measure {
        host,
        runs: asked.runs,
        seed: seed(asked, kept.as_ref()),
        buffer_bytes: asked.buffer.map(|size| size.0),
    });
    let bar = Bar::default();
    let stop = signal::interrupted;
    let was_complete = kept.as_ref().is_some_and(|kept| kept.head.complete);
    let control = Control { progress: &bar, stop: &stop, keep: keeper.as_mut(), kept, measure };
    let done = sweep(&machine, &axes, &question, control);
    // Whatever ended early has left its bar on the terminal.
    bar.end();
    let record = done?;
    // A record that was complete needs no saving.
    let keeper = keeper.filter(|_| !was_complete);
    save_and_show(keeper, &record, || show(shown, &record))?;
    Ok(verdict(&record))
}

fn verdict(record: &Sweep) -> ExitCode {
    if !record.head.complete {
        ExitCode::from(exit::INTERRUPTED)
    } else if record.points.is_empty() {
        ExitCode::from(exit::NO_RESOURCES)
    } else {
        ExitCode::SUCCESS
    }
}

/// What saves the record: to the file of `-o`, or to the one that is resumed.
fn keeper(args: &Args) -> Result<Option<Keeper>, Failure> {
    let (path, replace) = match (&args.output, &args.resume) {
        (Some(path), _) => (path, args.force),
        (None, Some(path)) => (path, true),
        (None, None) => return Ok(None),
    };
    let interval = Duration::from_secs(args.save_every.into());
    Ok(Some(Keeper::new(Target::new(path, replace)?, interval)))
}

/// The seed asked for, else that of the record to go on from, else one from the clock.
fn seed(args: &Args, kept: Option<&Sweep>) -> u64 {
    let before = kept.and_then(|kept| kept.question.as_ref()?.seed);
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    let clock_seed = since_1970.map_or(1, |d| u64::from(d.subsec_nanos()));
    args.seed.or(before).unwrap_or(clock_seed)
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
