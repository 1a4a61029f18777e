//! What a kernel command line makes of a machine before memblock places anything.
//!
//! [`apply`] gives the machine that boots: memory cut by `mem=` and `memmap=`, CPUs
//! left out by `nr_cpus=`, `maxcpus=`, `nosmp` and `nosmt`, nodes merged by `numa=off` or split
//! by `numa=fake=` (`numa_fake`). [`gigantic_pages`] reserves what `hugepages=` asks
//! for. Zones ([`super::zones`]) and the switch `early_page_ext`
//! ([`KernelModel::with_command_line`]) are read from the line where they matter.
//! What this kernel ignores is said in [`Affected::notes`].

mod gigantic;
mod memory;
mod numa_fake;

pub use gigantic::{before_sparse_init, gigantic_pages};

use super::cmdline::CommandLine;
use super::version::KernelModel;
use crate::machine::{Arch, Machine, Node};
use crate::pfn::Nid;
use crate::warning::Warning;
use std::collections::{BTreeMap, BTreeSet};

/// A machine as a kernel with a command line sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Affected {
    /// The machine that boots.
    pub machine: Machine,
    /// For each of its nodes the node that its memory really is on.
    pub origins: BTreeMap<Nid, Nid>,
    /// What was ignored or is not known for sure.
    pub notes: Vec<Warning>,
}

/// Applies `line` to `machine` as `kernel` would.
pub fn apply(machine: &Machine, kernel: &KernelModel, line: &CommandLine) -> Affected {
    let mut out = Affected {
        machine: machine.clone(),
        origins: machine.nodes.iter().map(|n| (n.nid, n.nid)).collect(),
        notes: ignored(kernel, line),
    };
    memory::limit(&mut out, kernel, line);
    bring_up_cpus(&mut out.machine, line);
    if line.numa_off && out.machine.nodes.len() > 1 {
        merge_nodes(&mut out);
    }
    if let Some(fake) = line.numa_fake.filter(|_| kernel.config.numa_emu && !line.numa_off) {
        numa_fake::split(&mut out, kernel, fake);
    }
    out
}

/// Options that this kernel does not know or does not honour.
fn ignored(kernel: &KernelModel, line: &CommandLine) -> Vec<Warning> {
    let mut out = Vec::new();
    let mut note = |text: &str, remedy: &str| {
        out.push(Warning::new("option-ignored", text, remedy));
    };
    if line.numa_fake.is_some() && !kernel.config.numa_emu {
        note(
            "numa=fake= does nothing: this kernel is built without CONFIG_NUMA_EMU",
            "use --config NUMA_EMU=y for one that has it",
        );
    }
    if line.early_page_ext
        && kernel.with_command_line(line).early_rule != super::rules::EarlyRule::All
    {
        note(
            "early_page_ext does not stop deferral here: that takes 6.1 or later with \
             CONFIG_PAGE_EXTENSION",
            "use --config PAGE_EXTENSION=y, or DEFERRED_STRUCT_PAGE_INIT=n",
        );
    }
    if !line.memmap.is_empty() && kernel.arch != Arch::X86_64 {
        note("memmap= is known on x86_64 alone", "use mem= elsewhere");
    }
    if line.possible_cpus.is_some() && kernel.arch != Arch::X86_64 {
        note("possible_cpus= is known on x86_64 alone", "use nr_cpus= elsewhere");
    }
    out
}

/// CPUs come up in the order of their numbers; with `nosmt` the first of each core.
fn bring_up_cpus(machine: &mut Machine, line: &CommandLine) {
    let most = match line.maxcpus {
        _ if line.nosmp => 1,
        Some(most) => most.max(1) as usize,
        None => usize::MAX,
    };
    let possible = line.possible_cpus.filter(|_| machine.arch == Arch::X86_64);
    let possible = [line.nr_cpus, possible].into_iter().flatten().min();
    let possible = possible.map_or(usize::MAX, |n| n as usize);
    if most.min(possible) == usize::MAX && !line.nosmt {
        return;
    }
    let mut cores = BTreeSet::new();
    // `kernel/smp.c: nrcpus`: the numbers beyond are none of any CPU.
    let all: BTreeSet<u32> = machine.nodes.iter().flat_map(|n| n.cpus.clone()).collect();
    let mut all: BTreeSet<u32> = all.into_iter().take(possible).collect();
    if line.nosmt {
        let siblings = machine.cpus.iter().filter(|c| !cores.insert(c.core));
        siblings.for_each(|c| {
            all.remove(&c.id);
        });
    }
    let online: BTreeSet<u32> = all.into_iter().take(most).collect();
    machine.cpus.retain(|c| online.contains(&c.id));
    for node in &mut machine.nodes {
        node.cpus.retain(|id| online.contains(id));
    }
}

/// `numa=off`: all memory and all CPUs are node 0's.
fn merge_nodes(out: &mut Affected) {
    let machine = &mut out.machine;
    let mut memory: Vec<_> = machine.nodes.iter().flat_map(|n| n.memory.clone()).collect();
    memory.sort();
    let mut cpus: Vec<u32> = machine.nodes.iter().flat_map(|n| n.cpus.clone()).collect();
    cpus.sort_unstable();
    machine.nodes = vec![Node { nid: Nid(0), memory, cpus, channels: None, mts: None }];
    machine.cpus.iter_mut().for_each(|c| c.nid = Nid(0));
    machine.distances = None;
    let first = out.origins.values().next().copied().unwrap_or_default();
    out.origins = BTreeMap::from([(Nid(0), first)]);
}

#[cfg(test)]
mod tests;
