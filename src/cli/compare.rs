//! `pageinit compare`: run the boot strategies for real.

use super::bar::Bar;
use super::exit::{self, Failure};
use super::inputs::{self, MachineArgs};
use super::kernel_args::{Chosen, KernelArgs};
use super::output;
use super::saving::{SaveArgs, save_and_show};
use crate::host::budget::MemoryBudget;
use crate::host::clock::Clock;
use crate::host::signal;
use crate::host::topology::HostTopology;
use crate::kernel::KernelModel;
use crate::kernel::effects;
use crate::machine::{Machine, input};
use crate::progress::Progress;
use crate::record::Record;
use crate::report;
use crate::study::compare::{HostContext, Options, compare_and_keep, plans};
use crate::study::room::HostRoom;
use crate::units::Bytes;
use crate::warning::Warning;
use clap::value_parser;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

const EXAMPLES: &str = "\
Examples:
  pageinit compare
  pageinit compare --strategies prezero,deferred,fused-nt --runs 11 --json
  pageinit compare -m @2n-skylake-768g --kernel 5.10 --buffer 1GiB
  pageinit compare --strategies fused-nt --stores movnti,avx512-nt --threads 1
  pageinit compare --cmdline 'numa=fake=4' --kernel 6.1
  pageinit compare --show-plan";

/// Warnings that make figures untrustworthy, for `--strict`.
const DOUBTS: [&str; 5] =
    ["bind-refused", "placement-unknown", "buffer-in-cache", "no-huge-pages", "worker-moved"];
/// Those of the doctor's doubts that spoil figures.
const HOST_DOUBTS: [&str; 6] =
    ["slow-clock", "frequency-governor", "busy-host", "cpu-quota", "stolen-time", "numa-balancing"];

/// Arguments of `compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    kernel: KernelArgs,
    /// Strategies, separated by commas [default: all nine]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    strategies: Vec<String>,
    /// Stores to try in the strategies they fit [default: each strategy's own]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    stores: Vec<String>,
    /// Threads per node [default: what that kernel would use, at most the CPUs there are]
    #[arg(long, value_parser = value_parser!(u32).range(1..=65536))]
    threads: Option<u32>,
    /// Allow more threads than CPUs
    #[arg(long)]
    oversubscribe: bool,
    /// Memory that one chunk describes, instead of padata's rule
    #[arg(long, value_name = "SIZE")]
    chunk: Option<Bytes>,
    /// Buffer for the struct pages [default: the whole memmap where it fits]
    #[arg(long, value_name = "SIZE")]
    buffer: Option<Bytes>,
    /// Hand pages to the buddy allocator (the default)
    #[arg(long, overrides_with = "no_free")]
    free: bool,
    /// Initialise only
    #[arg(long, overrides_with = "free")]
    no_free: bool,
    /// Rounds of runs
    #[arg(long, default_value_t = 7, value_parser = value_parser!(u32).range(1..=10000))]
    runs: u32,
    /// Seed of the order of runs [default: from the clock]
    #[arg(long)]
    seed: Option<u64>,
    /// Write the plans as JSON and run nothing
    #[arg(long, conflicts_with_all = ["output", "strict"])]
    show_plan: bool,
    /// Exit with 3 when a warning makes the figures untrustworthy
    #[arg(long)]
    strict: bool,
    /// Write the record as one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    save: SaveArgs,
}

/// Compares the strategies.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    signal::catch_interrupt();
    let mut keeper = args.save.keeper()?;
    let machine = args.machine.load()?;
    let Chosen { kernel, line, mut warnings } = args.kernel.choose(&machine)?;
    let mut options = options(args, &machine)?;
    let machine = match line {
        Some(line) => {
            let affected = effects::apply(&machine, &kernel, &line);
            warnings.extend(affected.notes);
            options.origins = affected.origins;
            options.line = Some(line);
            affected.machine
        }
        None => machine,
    };
    if args.show_plan {
        return show_plan(&machine, &kernel, &options, &warnings);
    }
    let host = host_context(&machine)?;
    let bar = Bar::default();
    let stop = signal::interrupted;
    let compared =
        compare_and_keep(&machine, &kernel, &host, &options, &bar, &stop, keeper.as_mut());
    // Whatever ended early has left its bar on the terminal.
    bar.end();
    let mut record = compared?;
    record.head.warnings.append(&mut warnings);
    save_and_show(keeper, &record, || show(args, &record))?;
    Ok(verdict(&record, args.strict))
}

fn show(args: &Args, record: &Record) -> Result<(), Failure> {
    if args.json {
        return output::json(record);
    }
    output::warn(&record.head.warnings);
    output::data(&report::compare::text(record))
}

fn verdict(record: &Record, strict: bool) -> ExitCode {
    let doubtful = |w: &Warning| [&DOUBTS[..], &HOST_DOUBTS].concat().contains(&w.code.as_str());
    if !record.head.complete {
        ExitCode::from(exit::INTERRUPTED)
    } else if strict && record.head.warnings.iter().any(doubtful) {
        ExitCode::from(exit::UNTRUSTWORTHY)
    } else {
        ExitCode::SUCCESS
    }
}

fn options(args: &Args, machine: &Machine) -> Result<Options, Failure> {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    let clock_seed = since_1970.map_or(1, |d| u64::from(d.subsec_nanos()));
    Ok(Options {
        strategies: args.strategies.clone(),
        stores: args.stores.clone(),
        threads: args.threads,
        oversubscribe: args.oversubscribe,
        chunk_pages: args.chunk.map(|size| chunk_pages(size, machine)).transpose()?,
        buffer_bytes: args.buffer.map(|size| size.0),
        free: !args.no_free,
        runs: args.runs,
        seed: args.seed.unwrap_or(clock_seed),
        argv: output::argv(),
        line: None,
        origins: BTreeMap::new(),
    })
}

/// Chunks must be whole largest blocks, or two workers would share one.
fn chunk_pages(size: Bytes, machine: &Machine) -> Result<u64, Failure> {
    const BLOCK_PAGES: u64 = 1024;
    let block_bytes = BLOCK_PAGES * machine.page_bytes;
    if size.0 == 0 || !size.0.is_multiple_of(block_bytes) {
        return Err(Failure::usage(format!(
            "--chunk {size} is not a multiple of the largest buddy block, {}",
            Bytes(block_bytes)
        )));
    }
    Ok(size.0 / machine.page_bytes)
}

/// What is known about this host, for executing on it.
pub(super) fn host_context(machine: &Machine) -> Result<HostContext, Failure> {
    inputs::host_arch()?;
    let topo = HostTopology::load()?;
    Ok(HostContext { topo, clock: Clock::measure(), room: host_room(machine)? })
}

/// What is known about this host, for plans that are not executed.
fn host_room(machine: &Machine) -> Result<HostRoom, Failure> {
    let host = match machine.is_this_host {
        true => machine.clone(),
        false => input::load("host", None)?,
    };
    Ok(HostRoom::of_host(host, MemoryBudget::read(Path::new("/"))?)?)
}

fn show_plan(
    machine: &Machine,
    kernel: &KernelModel,
    options: &Options,
    warnings: &[Warning],
) -> Result<ExitCode, Failure> {
    let candidates = plans(machine, kernel, &host_room(machine)?, options)?;
    let strategies = candidates.iter().filter(|c| c.probe.is_none());
    let plans: Vec<_> = strategies.map(|c| &c.executed).collect();
    let body = json!({ "kernel": kernel, "plans": plans });
    output::json(&output::document("pageinit/plan/1", warnings, body))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Clock;
    use crate::machine::doctor;

    /// Doubts of the host come from the doctor: a code that it no longer has would mind
    /// nothing.
    #[test]
    fn doubts_of_the_host_are_codes_of_the_doctor() {
        let checks = doctor::examine(Path::new("/"), Clock::measure().facts());
        for code in HOST_DOUBTS {
            assert!(checks.iter().any(|check| check.code == code), "{code}");
        }
    }
}
