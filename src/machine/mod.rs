//! What a computer is: nodes, CPUs, memory, distances, caches.
//!
//! [`Machine`] is plain data without I/O. The submodules make one out of an input:
//! [`host`] (this computer), [`hwloc`] (hwloc XML and synthetic strings), [`mod@file`]
//! (machine TOML, written by [`to_toml`]), [`library`] (the built-in `@name`s),
//! [`from_facts`] (captured boots), [`bootlog`], [`numactl`], [`lscpu`], [`iomem`] and
//! [`sysfs_tree`] (texts and trees that people have, which leave gaps: they make
//! [`evidence`]).
//! [`input`] finds out which of them an argument means. [`assume`] places memory of
//! which only sizes are known, [`check`] holds every front end to the same rules.
//! [`limits`] says how much of this host may be used, [`doctor`] whether it is fit for
//! measuring.
//! `kernel` turns a machine into a layout; `host` (the layer) binds and pins.

pub mod assume;
pub mod bootlog;
pub mod capture;
pub mod check;
pub mod cpulist;
pub mod doctor;
pub mod error;
pub mod evidence;
pub mod facts;
pub mod file;
pub mod from_facts;
#[cfg(feature = "hwloc")]
pub mod host;
#[cfg(not(feature = "hwloc"))]
#[path = "host_none.rs"]
pub mod host;
#[cfg(feature = "hwloc")]
pub mod hwloc;
#[cfg(not(feature = "hwloc"))]
#[path = "hwloc_none.rs"]
pub mod hwloc;
pub mod input;
pub mod iomem;
pub mod library;
pub mod limits;
pub mod lscpu;
pub mod numactl;
pub mod sniff;
pub mod synthetic;
pub mod sysfs;
pub mod sysfs_tree;
pub mod text;
pub mod to_toml;
pub mod tree;
pub mod xml;
mod xml_objects;
mod xml_write;

pub use error::MachineError;
pub use input::{Format, load};

use crate::pfn::{Nid, PhysRange};
use crate::warning::{Origin, Warning};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// A processor architecture of which Linux's memory layout is known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arch {
    /// 64-bit x86.
    X86_64,
    /// 64-bit ARM.
    Arm64,
    /// 64-bit POWER, little-endian.
    Ppc64,
    /// IBM Z.
    S390x,
    /// 64-bit RISC-V.
    Riscv64,
    /// 64-bit SPARC.
    Sparc64,
}

/// A computer as far as the initialisation of struct pages depends on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// What the user called it: `host`, `@2n-skylake-768g`, a file name.
    pub name: String,
    /// One line for people, for example `2 × Xeon Platinum 8167M`.
    pub title: String,
    /// The processor architecture.
    pub arch: Arch,
    /// The base page size in bytes.
    pub page_bytes: u64,
    /// NUMA nodes in ascending id order; at least one.
    pub nodes: Vec<Node>,
    /// Logical CPUs in ascending id order; empty where the input names none.
    pub cpus: Vec<Cpu>,
    /// SLIT distances, row and column in the order of `nodes`; `None` if unknown.
    pub distances: Option<Vec<Vec<u32>>>,
    /// Caches of the first CPU, innermost first.
    pub caches: Vec<Cache>,
    /// The processor's model name where known.
    pub cpu_model: Option<String>,
    /// The running kernel's release, where the input tells.
    pub kernel_release: Option<String>,
    /// Whether it is the computer this program runs on.
    pub is_this_host: bool,
    /// What memblock knew, where the input is a captured boot: memory, reservations and
    /// node data make its layout exact instead of assumed.
    #[serde(skip)]
    pub boot: Option<Arc<facts::BootFacts>>,
    /// Where the facts came from, for people and for `machine --json`.
    pub source: Sources,
    /// What had to be assumed or looked doubtful.
    pub warnings: Vec<Warning>,
}

/// One NUMA node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// The node's id.
    pub nid: Nid,
    /// Physical memory, ascending, disjoint; empty on a memoryless node.
    pub memory: Vec<PhysRange>,
    /// Logical CPU ids, ascending; empty on a CPU-less node.
    pub cpus: Vec<u32>,
    /// Memory channels where known.
    pub channels: Option<u32>,
    /// Transfers per second of a channel in millions, where known.
    pub mts: Option<u32>,
}

/// One logical CPU (hardware thread).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// The id Linux uses.
    pub id: u32,
    /// The node it belongs to.
    pub nid: Nid,
    /// A number that SMT siblings share; unique within the machine.
    pub core: u32,
    /// The socket.
    pub package: u32,
}

/// One cache of the first CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    /// 1 for L1.
    pub level: u32,
    /// Size in bytes.
    pub bytes: u64,
    /// Line size in bytes, where known.
    pub line_bytes: Option<u32>,
    /// How many logical CPUs share it.
    pub shared_by_cpus: u32,
}

/// Where each group of facts came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sources {
    /// Node ids, CPUs and caches.
    pub topology: Source,
    /// How many bytes each node has.
    pub memory_bytes: Source,
    /// At which physical addresses they lie.
    pub memory_ranges: Source,
    /// The SLIT.
    pub distances: Source,
}

/// Where one group of facts came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Read, given or assumed.
    pub origin: Origin,
    /// The file, interface or rule.
    pub from: String,
}

impl Source {
    /// A source from its two parts.
    pub fn new(origin: Origin, from: impl Into<String>) -> Self {
        Self { origin, from: from.into() }
    }
}

impl Node {
    /// The node's memory in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.memory.iter().fold(0, |sum, r| sum.saturating_add(r.bytes()))
    }
}

/// The code of the warning that a machine is a guest.
pub(crate) const GUEST: &str = "guest";

/// The code of the warning that software imitates a machine's processors.
pub(crate) const EMULATED: &str = "emulated";

impl Machine {
    /// Whether its input shows that a hypervisor stands below the kernel.
    pub fn is_guest(&self) -> bool {
        self.warnings.iter().any(|w| w.code == GUEST) || self.is_emulated()
    }

    /// Whether its input shows that software imitates the processors, so that no time of
    /// it is that of a real one.
    pub fn is_emulated(&self) -> bool {
        self.warnings.iter().any(|w| w.code == EMULATED)
    }

    /// A machine of which nothing is known but its nodes' memory: ids from 0 on.
    ///
    /// For models and tests; front ends fill in the rest and pass [`check::finish`].
    pub fn of_ranges(
        name: &str,
        arch: Arch,
        page_bytes: u64,
        nodes: impl IntoIterator<Item = Vec<PhysRange>>,
    ) -> Self {
        let given = || Source::new(Origin::Given, name);
        let node = |(nid, memory)| Node {
            nid: Nid(nid),
            memory,
            cpus: Vec::new(),
            channels: None,
            mts: None,
        };
        Self {
            name: name.into(),
            title: name.into(),
            arch,
            page_bytes,
            nodes: (0..).zip(nodes).map(node).collect(),
            cpus: Vec::new(),
            distances: None,
            caches: Vec::new(),
            cpu_model: None,
            kernel_release: None,
            is_this_host: false,
            boot: None,
            source: Sources {
                topology: given(),
                memory_bytes: given(),
                memory_ranges: given(),
                distances: given(),
            },
            warnings: Vec::new(),
        }
    }

    /// All memory in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.nodes.iter().fold(0, |sum, n| sum.saturating_add(n.memory_bytes()))
    }

    /// The node with this id.
    pub fn node(&self, nid: Nid) -> Option<&Node> {
        self.nodes.iter().find(|n| n.nid == nid)
    }

    /// The SLIT distance between two nodes; 10 and 20 where the table is unknown.
    pub fn distance(&self, from: Nid, to: Nid) -> u32 {
        let at = |nid| self.nodes.iter().position(|n| n.nid == nid);
        let known = self.distances.as_ref().and_then(|d| {
            let row: &Vec<u32> = d.get(at(from)?)?;
            row.get(at(to)?).copied()
        });
        known.unwrap_or(if from == to { 10 } else { 20 })
    }

    /// The largest cache of the first CPU in bytes; 0 where unknown.
    pub fn last_level_cache_bytes(&self) -> u64 {
        self.caches.iter().map(|c| c.bytes).max().unwrap_or(0)
    }

    /// Hardware threads per core; 1 where CPUs are unknown.
    pub fn smt(&self) -> u32 {
        let mut cores: Vec<u32> = self.cpus.iter().map(|c| c.core).collect();
        cores.sort_unstable();
        cores.dedup();
        let per_core = self.cpus.len().checked_div(cores.len()).unwrap_or(1);
        u32::try_from(per_core).unwrap_or(1)
    }

    /// The node nearest to `nid` by SLIT that has CPUs; itself if it has some.
    pub fn nearest_with_cpus(&self, nid: Nid) -> Option<&Node> {
        let with_cpus = self.nodes.iter().filter(|n| !n.cpus.is_empty());
        with_cpus.min_by_key(|n| (n.nid != nid, self.distance(nid, n.nid), n.nid))
    }
}

impl Arch {
    /// The architecture this program was compiled for, if it is one of ours.
    pub const fn of_this_program() -> Option<Self> {
        if cfg!(target_arch = "x86_64") {
            Some(Self::X86_64)
        } else if cfg!(target_arch = "aarch64") {
            Some(Self::Arm64)
        } else if cfg!(target_arch = "powerpc64") {
            Some(Self::Ppc64)
        } else if cfg!(target_arch = "s390x") {
            Some(Self::S390x)
        } else if cfg!(target_arch = "riscv64") {
            Some(Self::Riscv64)
        } else if cfg!(target_arch = "sparc64") {
            Some(Self::Sparc64)
        } else {
            None
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::X86_64 => "x86_64",
            Self::Arm64 => "arm64",
            Self::Ppc64 => "ppc64",
            Self::S390x => "s390x",
            Self::Riscv64 => "riscv64",
            Self::Sparc64 => "sparc64",
        })
    }
}
