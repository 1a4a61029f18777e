//! `pageinit lab`: the experiments beside the boot.

use super::bar::Bar;
use super::exit::{self, Failure};
use super::output;
use super::saving::{SaveArgs, save_and_show};
use crate::host::budget::MemoryBudget;
use crate::host::clock::Clock;
use crate::host::signal;
use crate::host::topology::HostTopology;
use crate::lab::{Lab, LabError, Limits, clear_huge, mremap, prefetch, pte_scan};
use crate::machine::{Machine, doctor, input};
use crate::progress::Progress;
use crate::record::lab::{CacheFacts, LabRecord};
use crate::report;
use crate::study::compare::{HostContext, host_facts};
use crate::study::room::HostRoom;
use crate::units::Bytes;
use clap::{Subcommand, value_parser};
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

const EXAMPLES: &str = "\
Examples:
  pageinit lab prefetch     does zeroing a struct page fetch it for the field writes
  pageinit lab clear-huge   how to clear a huge page: order, chunk, store, map/unmap pair
  pageinit lab mremap       what moving 1 GiB costs by entries of each level
  pageinit lab pte-scan     two ways of finding empty page-table entries, and live faults
docs/lab.md has a page for each: the question, how it is measured, how to read it.

Exit status: 0 ok, 1 failed, 2 usage, 5 wrong data, 6 no resources,
7 not supported here, 130 interrupted.";

const PREFETCH_EXAMPLES: &str = "\
Examples:
  pageinit lab prefetch
  pageinit lab prefetch --stores unrolled,libc-memset --threads 1 --runs 11 --json";

const CLEAR_HUGE_EXAMPLES: &str = "\
Examples:
  pageinit lab clear-huge
  pageinit lab clear-huge --stores unrolled,libc-memset --runs 100 --no-gigantic --json";

const MREMAP_EXAMPLES: &str = "\
Examples:
  pageinit lab mremap
  pageinit lab mremap --size 256MiB --runs 20 --json";

const PTE_SCAN_EXAMPLES: &str = "\
Examples:
  pageinit lab pte-scan
  pageinit lab pte-scan --size 64MiB --no-settings --json";

/// Arguments of `lab`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Debug, Subcommand)]
enum Experiment {
    /// Does zeroing a struct page just before filling it act as a prefetch?
    Prefetch(PrefetchArgs),
    /// How should a huge page be cleared: order, chunk, store, with the map/unmap pair?
    ClearHuge(ClearHugeArgs),
    /// What does mremap cost by page-table entries, and by entries of higher tables?
    Mremap(MremapArgs),
    /// Which way of finding empty page-table entries is faster?
    PteScan(PteScanArgs),
}

/// Arguments of every experiment.
#[derive(Debug, clap::Args)]
struct Common {
    /// Samples of every figure [default: the experiment's own]
    #[arg(long, value_parser = value_parser!(u32).range(1..=100_000))]
    runs: Option<u32>,
    /// Seed of the order of runs and of random patterns [default: from the clock]
    #[arg(long)]
    seed: Option<u64>,
    /// Write the record as one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    save: SaveArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = PREFETCH_EXAMPLES)]
struct PrefetchArgs {
    /// Struct pages to write [default: twice the largest cache, at least 64 MiB]
    #[arg(long, value_name = "SIZE")]
    buffer: Option<Bytes>,
    /// Stores that zero, separated by commas [default: all that this CPU has]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    stores: Vec<String>,
    /// Most threads; fewer are measured too [default: the CPUs of the node]
    #[arg(long, value_parser = value_parser!(u32).range(1..=65536))]
    threads: Option<u32>,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, clap::Args)]
#[command(after_help = CLEAR_HUGE_EXAMPLES)]
struct ClearHugeArgs {
    /// Buffer that is cleared in chunks, as in the discussion's table
    #[arg(long, value_name = "SIZE", default_value = "32MiB")]
    buffer: Bytes,
    /// Stores that clear, separated by commas [default: all that this CPU has]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    stores: Vec<String>,
    /// Do not clear 1 GiB
    #[arg(long)]
    no_gigantic: bool,
    /// Memory that is allocated and touched
    #[arg(long, value_name = "SIZE", default_value = "100MiB")]
    touch: Bytes,
    /// Change no setting of this system, not even for a while
    #[arg(long)]
    no_settings: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, clap::Args)]
#[command(after_help = MREMAP_EXAMPLES)]
struct MremapArgs {
    /// Memory to move; from 1GiB on whole entries of the upper directory can move
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    size: Bytes,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, clap::Args)]
#[command(after_help = PTE_SCAN_EXAMPLES)]
struct PteScanArgs {
    /// Memory whose page tables are swept, as arrays
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    size: Bytes,
    /// Memory that is really touched in the live part
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    live_size: Bytes,
    /// Change no setting of this system, not even for a while: no live part
    #[arg(long)]
    no_settings: bool,
    #[command(flatten)]
    common: Common,
}

/// Runs one experiment.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    match &args.experiment {
        Experiment::Prefetch(args) => {
            let options = prefetch::Options {
                buffer_bytes: args.buffer.map(|size| size.0),
                stores: args.stores.clone(),
                threads: args.threads,
            };
            with_lab(&args.common, 5, |lab| prefetch::run(lab, &options))
        }
        Experiment::ClearHuge(args) => {
            let options = clear_huge::Options {
                buffer_bytes: args.buffer.0,
                stores: args.stores.clone(),
                gigantic: !args.no_gigantic,
                touch_bytes: args.touch.0,
                settings: !args.no_settings,
            };
            with_lab(&args.common, 48, |lab| clear_huge::run(lab, &options))
        }
        Experiment::Mremap(args) => {
            let options = mremap::Options { size_bytes: args.size.0 };
            with_lab(&args.common, 10, |lab| mremap::run(lab, &options))
        }
        Experiment::PteScan(args) => {
            let options = pte_scan::Options {
                size_bytes: args.size.0,
                live_bytes: args.live_size.0,
                settings: !args.no_settings,
            };
            with_lab(&args.common, 7, |lab| pte_scan::run(lab, &options))
        }
    }
}

/// Prepares what experiments share, runs one, and shows its record.
fn with_lab(
    common: &Common,
    default_runs: u32,
    experiment: impl FnOnce(&Lab<'_>) -> Result<LabRecord, LabError>,
) -> Result<ExitCode, Failure> {
    signal::catch_interrupt();
    let keeper = common.save.keeper()?;
    let machine = input::load("host", None)?;
    let caches = caches(&machine);
    let room = HostRoom::of_host(machine, MemoryBudget::read(Path::new("/"))?)?;
    let host = HostContext { topo: HostTopology::load()?, clock: Clock::measure(), room };
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    let clock_seed = since_1970.map_or(1, |d| u64::from(d.subsec_nanos()));
    let bar = Bar::default();
    let keep = keeper.map(Mutex::new);
    let doubts = doctor::warnings(host.clock.facts());
    let limits = Limits::default();
    let made = experiment(&Lab {
        topo: &host.topo,
        clock: &host.clock,
        budget: &host.room.budget,
        host: &host_facts(&host),
        caches: &caches,
        argv: &output::argv(),
        runs: common.runs.unwrap_or(default_runs),
        runs_are_default: common.runs.is_none(),
        seed: common.seed.unwrap_or(clock_seed),
        progress: &bar,
        doubts: &doubts,
        limits: &limits,
        stop: &signal::interrupted,
        keep: keep.as_ref(),
    });
    // Whatever ended early has left its bar on the terminal.
    bar.end();
    let mut record = made?;
    let remedy = "give --runs to have that many of every point, however long it takes";
    record.head.warnings.extend(limits.warning(remedy));
    let keeper = keep.map(|keep| keep.into_inner().unwrap_or_else(PoisonError::into_inner));
    save_and_show(keeper, &record, || show(&record, common.json))?;
    Ok(ExitCode::from(if record.head.complete { 0 } else { exit::INTERRUPTED }))
}

fn show(record: &LabRecord, json: bool) -> Result<(), Failure> {
    if json {
        return output::json(record);
    }
    output::warn(&record.head.warnings);
    output::data(&report::lab::text(record))
}

/// One entry per level, the first of each, smallest first.
fn caches(machine: &Machine) -> Vec<CacheFacts> {
    let of = |c: &crate::machine::Cache| CacheFacts { level: c.level, bytes: c.bytes };
    let mut caches: Vec<CacheFacts> = machine.caches.iter().map(of).collect();
    caches.sort_by_key(|cache| (cache.bytes, cache.level));
    caches.dedup_by_key(|cache| cache.level);
    caches
}
