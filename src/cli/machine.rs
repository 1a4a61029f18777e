//! `pageinit machine`: a machine from any input, and what its log says.

use super::exit::Failure;
use super::inputs::MachineArgs;
use super::output;
use crate::host::budget::MemoryBudget;
use crate::kernel::{KernelModel, KernelVersion, jobs};
use crate::machine::bootlog::{Boot, BootLog};
use crate::machine::limits::{self, Limits};
use crate::machine::{Arch, Machine, library};
use crate::report;
use crate::report::init_times::BootTimes;
use crate::warning::Warning;
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  pageinit machine
  pageinit machine -m list
  pageinit machine -m @8n-cxl-4.5t
  pageinit machine -m 'pack:2 [numa(memory=512GiB)] core:8 pu:2' --json
  dmesg | pageinit machine -m - --explain
  pageinit machine -m boot.log -m numactl.txt
  pageinit machine -m boot.log --init-times";

/// Arguments of `machine`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    machine: MachineArgs,
    /// Tell for every fact which line of which input it came from
    #[arg(long, conflicts_with = "init_times")]
    explain: bool,
    /// Show how long nodes took to initialise, as a boot log says; needs no whole machine
    #[arg(long)]
    init_times: bool,
    /// Write one JSON document
    #[arg(long)]
    json: bool,
}

/// Shows the machine.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    if args.machine.input.machine == ["list"] {
        return list(args.json);
    }
    if args.init_times {
        return init_times(args);
    }
    let loaded = args.machine.load_explained()?;
    let machine = &loaded.machine;
    let limits = host_limits(machine)?;
    if args.json {
        let mut body = report::machine::json(machine, limits.as_ref());
        if let (true, Some(body)) = (args.explain, body.as_object_mut()) {
            let explained = report::machine::explained_json(machine, &loaded.explained);
            body.insert("explain".into(), explained);
        }
        output::json(&output::document("pageinit/machine/1", &machine.warnings, body))?;
    } else {
        output::warn(&machine.warnings);
        let text = match args.explain {
            true => report::machine::explained_text(machine, &loaded.explained),
            false => report::machine::text(machine, limits.as_ref()),
        };
        output::data(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Lists the built-in machines.
fn list(as_json: bool) -> Result<ExitCode, Failure> {
    if as_json {
        let machine = |(name, title)| json!({ "name": format!("@{name}"), "title": title });
        let machines: Vec<Value> = library::names().into_iter().map(machine).collect();
        let body = json!({ "machines": machines });
        output::json(&output::document("pageinit/machines/1", &[], body))?;
    } else {
        output::data(&report::machine::library_table())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What may be used of this host; nothing for other machines.
fn host_limits(machine: &Machine) -> Result<Option<Limits>, Failure> {
    if !machine.is_this_host {
        return Ok(None);
    }
    let root = Path::new("/");
    let mut limits = limits::read(root);
    let budget = MemoryBudget::read(root)?;
    limits.mem_available_bytes = Some(budget.available_bytes);
    limits.cgroup_limit_bytes = budget.cgroup_limit_bytes;
    Ok(Some(limits))
}

/// Shows what the logs say about initialisation; what is missing is a warning.
fn init_times(args: &Args) -> Result<ExitCode, Failure> {
    let request = args.machine.request();
    let logs = request.logs()?;
    let mut warnings = Vec::new();
    let mut boots = Vec::new();
    for (name, log) in &logs {
        if request.boot.is_some() && !log.boots.is_empty() {
            request.one(name, log)?;
        }
        add_log(name, log, request.boot, &mut boots, &mut warnings);
    }
    if args.json {
        // The first list is what most readers want: all times in one.
        let times: Vec<_> = boots.iter().flat_map(report::init_times::rows_json).collect();
        let body = json!({
            "init_times": times,
            "boots": boots.iter().map(report::init_times::boot_json).collect::<Vec<_>>(),
        });
        output::json(&output::document("pageinit/init-times/1", &warnings, body))?;
    } else {
        output::warn(&warnings);
        output::data(&report::init_times::text(&boots))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Adds the boots of a log, or the one that is `wanted`.
fn add_log(
    name: &str,
    log: &BootLog,
    wanted: Option<usize>,
    boots: &mut Vec<BootTimes>,
    warnings: &mut Vec<Warning>,
) {
    let numbered = log.boots.iter().zip(1..);
    for (boot, number) in numbered.filter(|&(_, n)| wanted.is_none_or(|wanted| wanted == n)) {
        let times = if boot.init.is_empty() { boot.serial_times() } else { boot.init_times() };
        if times.is_empty() {
            let text = format!("{name}, boot {number}: no line tells how long a node took");
            let remedy = "the log has to reach the line after \"smp: Brought up\"";
            warnings.push(Warning::new("no-init-times", text, remedy));
        }
        if boot.kernel().is_none() {
            let text = format!("{name}, boot {number}: the log does not name the kernel");
            warnings.push(Warning::new("no-kernel", text, "threads per node are not known"));
        }
        let threads = times.iter().map(|time| threads(boot, time.node_cpus)).collect();
        boots.push(BootTimes {
            input: name.into(),
            number,
            summary: boot.summary(),
            release: boot.kernel().map(|r| r.value.clone()),
            times,
            threads,
            devices: boot.device_init.iter().map(|d| (d.pages, d.ms, d.line)).collect(),
        });
    }
    if log.boots.is_empty() {
        let text = format!("{name}: no line of a kernel's boot was found");
        warnings.push(Warning::new("no-boot", text, "give the output of dmesg or journalctl -k"));
    }
    if log.dropped_boots > 0 {
        let text = format!("{name}: {} more boots are not shown", log.dropped_boots);
        warnings.push(Warning::new("many-boots", text, "split the file"));
    }
}

/// Threads that this kernel uses on a node, where kernel and CPUs are known.
fn threads(boot: &Boot, node_cpus: Option<u32>) -> Option<u32> {
    let release = boot.kernel()?;
    let version: KernelVersion = release.value.parse().ok()?;
    let arch = boot.arch.as_ref().map_or(Arch::X86_64, |a| a.value);
    let model = KernelModel::new(version, arch);
    // Where the number of CPUs plays no part, it need not be known.
    let (few, many) = (jobs::max_threads(&model, 1), jobs::max_threads(&model, 2));
    if few == many { Some(few) } else { Some(jobs::max_threads(&model, node_cpus?)) }
}
