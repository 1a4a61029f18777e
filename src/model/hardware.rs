//! What a machine's nodes can do, from its class and from what its input says.
//!
//! [`Hardware`] joins a [`Machine`] with its processor class: cores, memory rate and
//! line costs per node, distances as factors. What had to be assumed is in its
//! warnings. [`super::cost`] turns it into ns per page.

use super::constants as k;
use super::processors::{self, Class};
use crate::kernel::Layout;
use crate::machine::{Arch, Machine, Node};
use crate::pfn::Nid;
use crate::warning::Warning;
use std::collections::{BTreeMap, BTreeSet};

/// Whether a hypervisor stands between the kernel and its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Virt {
    /// The kernel has the machine to itself.
    BareMetal,
    /// The kernel is a guest.
    Guest,
}

/// The constants of thread scaling that are fitted; validation fits them anew with
/// one machine left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaling {
    /// [`k::EFFICIENCY`].
    pub efficiency: f64,
    /// [`k::SETTLE_MS_PER_THREAD`].
    pub settle_ms_per_thread: f64,
    /// [`k::GUEST_BANDWIDTH`].
    pub guest_bandwidth: f64,
}

impl Default for Scaling {
    fn default() -> Self {
        Self {
            efficiency: k::EFFICIENCY,
            settle_ms_per_thread: k::SETTLE_MS_PER_THREAD,
            guest_bandwidth: k::GUEST_BANDWIDTH,
        }
    }
}

/// What a machine's processors and memory can do.
#[derive(Clone, Debug, PartialEq)]
pub struct Hardware {
    /// The processors' class.
    pub class: &'static Class,
    /// Bare metal or guest.
    pub virt: Virt,
    /// The fitted constants in force.
    pub scaling: Scaling,
    /// Whether nodes reach each other through node controllers.
    pub controllers: bool,
    /// The nodes with memory, ascending by id.
    pub nodes: Vec<NodeHardware>,
    /// What was assumed.
    pub warnings: Vec<Warning>,
}

/// What one node can do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeHardware {
    /// The node.
    pub nid: Nid,
    /// Physical cores that work on it; 1 for a node without CPUs.
    pub cores: u32,
    /// Its hardware threads; 0 for a node without CPUs.
    pub hw_threads: u32,
    /// Memory rate that reads and writes together reach, in bytes per ns.
    pub bytes_per_ns: f64,
    /// One core, one local line, in ns.
    pub line_ns: f64,
    /// Factor on core-bound work.
    pub core_factor: f64,
    /// A streamed line as a share of a cold one.
    pub nt_ratio: f64,
    /// A line of this node's memmap from the boot CPU, in local lines.
    pub from_boot_cpu: f64,
    /// The same from this node's own workers.
    pub from_workers: f64,
    /// What a line's first touch costs a guest in addition, in ns.
    pub touch_ns: f64,
    /// What calling memset for one page costs beyond its stores; sparc64 has straight-line
    /// stores in its place from 4.15 on.
    pub memset_call_ns: f64,
}

impl Hardware {
    /// What is known and assumed about `machine`; `layout` says where its memmap lies.
    pub fn of(machine: &Machine, layout: &Layout, virt: Option<Virt>, scaling: Scaling) -> Self {
        let class = processors::classify(machine.cpu_model.as_deref());
        let guest = virt == Some(Virt::Guest)
            || (virt.is_none() && (class.is_generic_guest() || machine.is_guest()));
        let mut out = Self {
            class,
            virt: if guest { Virt::Guest } else { Virt::BareMetal },
            scaling,
            controllers: has_controllers(machine),
            nodes: Vec::new(),
            warnings: Vec::new(),
        };
        if !class.is_known() {
            out.warnings.push(unknown_processor(machine, class));
        }
        let with_layout = |n: &&Node| layout.nodes.iter().any(|l| l.nid == n.nid);
        for node in machine.nodes.iter().filter(with_layout) {
            let node = out.node_of(machine, layout, node);
            out.nodes.push(node);
        }
        out.warn_of_channels(machine);
        out
    }

    /// The node with this id.
    pub fn node(&self, nid: Nid) -> Option<&NodeHardware> {
        self.nodes.iter().find(|n| n.nid == nid)
    }

    /// Reads and writes together that a node's memory reaches, in bytes per ns.
    fn rate(&self, machine: &Machine, node: &Node) -> f64 {
        let class = self.class;
        let mts = node.mts.unwrap_or(class.mts);
        let channels = f64::from(node.channels.unwrap_or_else(|| channels(machine, class, node)));
        let guest = self.virt == Virt::Guest;
        let spread = if guest { self.scaling.guest_bandwidth } else { 1.0 };
        channels * class.channel_gb_s(mts) * self.scaling.efficiency * spread
    }

    /// Gives nodes that exist for the kernel alone what they have of `real`: fake nodes
    /// of one real node share its cores and memory, and a node merged of several
    /// (`numa=off`) has all of theirs, at their mean distance. `origins` says which real
    /// node each node's memory is on.
    pub fn share(&mut self, real: &Machine, origins: &BTreeMap<Nid, Nid>) {
        let boot = real.nodes.first().map(|n| n.nid).unwrap_or_default();
        let with_memory: Vec<&Node> = real.nodes.iter().filter(|n| !n.memory.is_empty()).collect();
        if let ([_], true) = (self.nodes.as_slice(), with_memory.len() > 1 && origins.len() == 1) {
            self.merge(real, boot, &with_memory);
            return;
        }
        for at in 0..self.nodes.len() {
            let own = self.nodes[at].nid;
            let origin = origins.get(&own).copied().unwrap_or(own);
            let same = origins.values().filter(|o| **o == origin).count().max(1);
            let Some(node) = real.node(origin).filter(|_| same > 1) else { continue };
            let count = u32::try_from(same).unwrap_or(u32::MAX);
            let reach = self.remote_factor(real, boot, origin);
            let (rate, cores) = (self.rate(real, node), cores(real, node));
            let hardware = &mut self.nodes[at];
            hardware.bytes_per_ns = rate / f64::from(count);
            hardware.cores = (cores / count).max(1);
            hardware.from_boot_cpu = reach;
        }
    }

    fn merge(&mut self, real: &Machine, boot: Nid, nodes: &[&Node]) {
        let count = nodes.len().max(1) as f64;
        let rate = nodes.iter().map(|n| self.rate(real, n)).sum();
        let far: f64 = nodes.iter().map(|n| self.remote_factor(real, boot, n.nid)).sum();
        let all_cores = nodes.iter().map(|n| cores(real, n)).sum();
        for hardware in &mut self.nodes {
            hardware.bytes_per_ns = rate;
            hardware.cores = all_cores;
            hardware.from_boot_cpu = far / count;
            hardware.from_workers = far / count;
        }
    }

    fn node_of(&self, machine: &Machine, layout: &Layout, node: &Node) -> NodeHardware {
        let class = self.class;
        let guest = self.virt == Virt::Guest;
        let boot = machine.nodes.first().map_or(node.nid, |n| n.nid);
        let workers = machine.nearest_with_cpus(node.nid).map_or(node.nid, |n| n.nid);
        NodeHardware {
            nid: node.nid,
            cores: cores(machine, node),
            hw_threads: u32::try_from(node.cpus.len()).unwrap_or(u32::MAX),
            bytes_per_ns: self.rate(machine, node),
            line_ns: class.w_line_ns,
            core_factor: class.core_factor,
            nt_ratio: class.nt_ratio,
            from_boot_cpu: self.reach(machine, layout, boot, node.nid),
            from_workers: self.reach(machine, layout, workers, node.nid),
            touch_ns: match (guest, class.is_known()) {
                (false, _) => 0.0,
                (true, true) => k::GUEST_TOUCH_NAMED_NS,
                (true, false) => k::GUEST_TOUCH_NS,
            },
            memset_call_ns: if machine.arch == Arch::Sparc64 { 0.0 } else { k::MEMSET_CALL_NS },
        }
    }

    /// A line of `nid`'s memmap from a CPU of `from`, over all of its extents.
    fn reach(&self, machine: &Machine, layout: &Layout, from: Nid, nid: Nid) -> f64 {
        let extents = layout.memmap.iter().filter(|e| e.nid == nid);
        let (mut bytes, mut sum) = (0.0, 0.0);
        for extent in extents {
            let size = extent.end.saturating_sub(extent.start) as f64;
            bytes += size;
            sum += size * self.remote_factor(machine, from, extent.on_nid);
        }
        if bytes > 0.0 { sum / bytes } else { self.remote_factor(machine, from, nid) }
    }

    fn remote_factor(&self, machine: &Machine, from: Nid, to: Nid) -> f64 {
        let distance = machine.distance(from, to);
        if from == to || distance <= 10 {
            return 1.0;
        }
        let by_slit = (f64::from(distance) / 10.0).powf(k::REMOTE_EXPONENT);
        match machine.nodes.len() {
            _ if machine.arch == Arch::Sparc64 => k::REMOTE_SPARC.min(by_slit.max(1.0)),
            ..=3 => k::REMOTE_TWO_SOCKETS.min(by_slit.max(1.0)),
            _ if self.controllers => by_slit * k::REMOTE_CONTROLLER,
            _ => by_slit,
        }
    }

    fn warn_of_channels(&mut self, machine: &Machine) {
        let assumed = machine.nodes.iter().any(|n| n.channels.is_none() || n.mts.is_none());
        if assumed {
            let rate = self.nodes.first().map_or(0.0, |n| n.bytes_per_ns / self.scaling.efficiency);
            let text = format!(
                "memory channels or their rate are not known; assumed {rate:.0} GB/s peak a node \
                 from class {}",
                self.class.name
            );
            let remedy = "give channels and mts in a machine file";
            self.warnings.push(Warning::new("assumed-channels", text, remedy));
        }
    }
}

fn unknown_processor(machine: &Machine, class: &Class) -> Warning {
    let name = machine.cpu_model.as_deref().unwrap_or("not given");
    let text = format!("the processor ({name}) has no class of its own; {} is assumed", class.name);
    Warning::new("unknown-processor", text, "the range is wide; give --anchor or cpu_model")
}

/// Node controllers: x86 machines with very far nodes, or of more than 16 sockets where
/// distances are not known. Many nodes alone say nothing: sockets can be split.
fn has_controllers(machine: &Machine) -> bool {
    let far = machine.distances.iter().flatten().flatten().any(|d| *d >= 50);
    let sockets: BTreeSet<u32> = machine.cpus.iter().map(|c| c.package).collect();
    let many = machine.distances.is_none() && sockets.len() > 16;
    machine.arch == Arch::X86_64 && machine.nodes.len() > 8 && (far || many)
}

/// A socket's channels divided among as many nodes as it has here.
fn channels(machine: &Machine, class: &Class, node: &Node) -> u32 {
    let of_socket = class.channels_per_node.saturating_mul(class.nodes_per_socket);
    let own = machine.cpus.iter().find(|c| c.nid == node.nid).map(|c| c.package);
    let Some(package) = own else { return class.channels_per_node };
    let same = machine.cpus.iter().filter(|c| c.package == package);
    let nodes: BTreeSet<Nid> = same.map(|c| c.nid).collect();
    match nodes.len() {
        // One node a socket may be a machine that does not tell its sockets.
        0 | 1 => class.channels_per_node,
        n => (of_socket / u32::try_from(n).unwrap_or(1)).max(1),
    }
}

fn cores(machine: &Machine, node: &Node) -> u32 {
    let own = machine.cpus.iter().filter(|c| c.nid == node.nid);
    let cores: BTreeSet<u32> = own.map(|c| c.core).collect();
    match cores.len() {
        0 => u32::try_from(node.cpus.len()).unwrap_or(1).max(1),
        n => u32::try_from(n).unwrap_or(u32::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{KernelModel, KernelVersion, layout};
    use crate::machine::input;

    fn hardware(name: &str) -> Hardware {
        let machine = input::load(name, None).unwrap();
        let kernel = KernelModel::new(KernelVersion::new(6, 12), machine.arch);
        let layout = layout(&machine, &kernel).unwrap();
        Hardware::of(&machine, &layout, None, Scaling::default())
    }

    #[test]
    fn a_named_machine_has_its_class_and_rates() {
        let skylake = hardware("@2n-skylake-768g");
        assert_eq!(skylake.class.name, "intel-skx");
        let node = skylake.nodes[1];
        assert_eq!((node.cores, node.hw_threads), (26, 52));
        assert!((node.bytes_per_ns - 6.0 * 2.666 * 8.0 * k::EFFICIENCY).abs() < 1e-9);
        assert_eq!((skylake.nodes[0].from_boot_cpu, node.from_boot_cpu), (1.0, 1.5));
        assert!(skylake.warnings.is_empty(), "{:?}", skylake.warnings);
    }

    #[test]
    fn a_node_without_cpus_is_reached_from_the_nearest_one() {
        let cxl = hardware("@8n-cxl-4.5t");
        let last = cxl.nodes[7];
        assert_eq!((last.hw_threads, last.cores), (0, 1));
        assert!(last.from_workers > 1.0, "{last:?}");
    }

    // Two nodes in two each, then two in one.
    #[test]
    fn fake_nodes_share_and_merged_nodes_join() {
        let machine = input::load("@2n-skylake-768g", None).unwrap();
        let kernel = KernelModel::new(KernelVersion::new(6, 12), machine.arch);
        let real = hardware("@2n-skylake-768g");
        let with = |text: &str| {
            let mut kernel = kernel.clone();
            kernel.config.numa_emu = true;
            let affected = crate::kernel::effects::apply(&machine, &kernel, &text.parse().unwrap());
            let layout = layout(&affected.machine, &kernel).unwrap();
            let mut own = Hardware::of(&affected.machine, &layout, None, Scaling::default());
            own.share(&machine, &affected.origins);
            own.nodes
        };
        let fake = with("numa=fake=4");
        assert_eq!(fake.len(), 4);
        let all: f64 = fake.iter().map(|n| n.bytes_per_ns).sum();
        let of_all: f64 = real.nodes.iter().map(|n| n.bytes_per_ns).sum();
        assert!((all - of_all).abs() < 1e-6, "{all} {of_all}");
        assert!(fake.iter().all(|n| n.cores == 13 && n.hw_threads == 52));
        let far: Vec<f64> = fake.iter().map(|n| n.from_boot_cpu).collect();
        assert_eq!(far.iter().filter(|r| **r == 1.5).count(), 2, "{far:?}");
        let one = with("numa=off");
        assert_eq!((one.len(), one[0].cores), (1, 52));
        assert!((one[0].bytes_per_ns - of_all).abs() < 1e-6 && one[0].from_workers == 1.25);
    }

    #[test]
    fn what_is_not_known_is_said() {
        let codes = |h: &Hardware| h.warnings.iter().map(|w| w.code.clone()).collect::<Vec<_>>();
        let vm = hardware("node:2(memory=8GiB) core:4 pu:1");
        assert_eq!(codes(&vm), ["unknown-processor", "assumed-channels"]);
        assert!(vm.nodes[0].bytes_per_ns > 10.0);
    }
}
