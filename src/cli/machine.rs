//! `pageinit machine`: a machine from any input.

use super::exit::Failure;
use super::inputs::MachineArgs;
use super::output;
use crate::host::budget::MemoryBudget;
use crate::machine::limits::{self, Limits};
use crate::machine::{Machine, library};
use crate::report;
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  pageinit machine
  pageinit machine -m list
  pageinit machine -m @8n-cxl-4.5t
  pageinit machine -m 'pack:2 [numa(memory=512GiB)] core:8 pu:2' --json";

/// Arguments of `machine`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    machine: MachineArgs,
    /// Write one JSON document
    #[arg(long)]
    json: bool,
}

/// Shows the machine.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    if args.machine.machine == "list" {
        return list(args.json);
    }
    let machine = args.machine.load()?;
    let limits = host_limits(&machine)?;
    if args.json {
        let body = report::machine::json(&machine, limits.as_ref());
        output::json(&output::document("pageinit/machine/1", &machine.warnings, body))?;
    } else {
        output::warn(&machine.warnings);
        output::data(&report::machine::text(&machine, limits.as_ref()))?;
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
