//! What one boot says, each fact with the line it came from.
//!
//! [`Boot`] is plain data, filled by [`super::parse`] and read by
//! [`super::evidence`], [`super::explain`] and the reports. [`Fact`] is a value and
//! its line. Lists are bounded by [`MAX_ITEMS`], so that a strange log cannot grow.

use super::memblock::Memblock;
use crate::machine::Arch;
use crate::pfn::{Nid, PhysRange};
use std::collections::BTreeMap;

/// The longest list that is kept of one boot; what follows is counted only.
pub const MAX_ITEMS: usize = 20_000;

/// A value and the physical line it was read from, counted from 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact<T> {
    /// The value.
    pub value: T,
    /// The line.
    pub line: u64,
}

impl<T> Fact<T> {
    /// A fact from its two parts.
    pub fn new(value: T, line: u64) -> Self {
        Self { value, line }
    }
}

/// A range of a firmware memory map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapRange {
    /// The bytes.
    pub range: PhysRange,
    /// The type in the kernel's words: `usable`, `reserved`, `ACPI data`.
    pub kind: String,
    /// The line.
    pub line: u64,
}

/// A range of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeRange {
    /// The node.
    pub nid: Nid,
    /// The bytes; empty for a node without memory.
    pub range: PhysRange,
    /// The line.
    pub line: u64,
}

/// A zone's limits over all nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneRange {
    /// `DMA`, `DMA32`, `Normal`, `Movable` or `Device`.
    pub zone: String,
    /// The bytes; empty for an empty zone.
    pub range: PhysRange,
    /// The line.
    pub line: u64,
}

/// A `Normal zone: N pages` line and the stamps around it.
#[derive(Clone, Debug, PartialEq)]
pub struct ZonePages {
    /// The node.
    pub nid: Nid,
    /// The zone.
    pub zone: String,
    /// Its pages.
    pub pages: u64,
    /// The line.
    pub line: u64,
    /// Its stamp in seconds, if it has one.
    pub seconds: Option<f64>,
    /// The stamp of the message behind it.
    pub next_seconds: Option<f64>,
}

/// Which of its four forms a kernel used for the time of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitForm {
    /// `kswapd N initialised P pages in Tms`, before 4.2 was released.
    KswapdPages,
    /// `kswapd N initialised deferred memory in Tms`, before that.
    Kswapd,
    /// `node N initialised, P pages in Tms`, 4.2 to 5.7.
    Pages,
    /// `node N deferred pages initialised in Tms`, 5.8 on.
    Deferred,
}

/// A line that tells how long a node's deferred part took.
#[derive(Clone, Debug, PartialEq)]
pub struct InitLine {
    /// The node.
    pub nid: Nid,
    /// Pages, where the form tells them.
    pub pages: Option<u64>,
    /// Milliseconds as printed, a difference of two tick counters.
    pub ms: u64,
    /// The form of the line.
    pub form: InitForm,
    /// The line.
    pub line: u64,
}

/// `memmap_init_zone_device initialised P pages in Tms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceInit {
    /// Pages.
    pub pages: u64,
    /// Milliseconds as printed.
    pub ms: u64,
    /// The line.
    pub line: u64,
}

/// A pool of huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HugePool {
    /// Bytes of one huge page.
    pub page_bytes: u64,
    /// How many were allocated at boot.
    pub pages: u64,
    /// The line.
    pub line: u64,
}

/// The `Memory:` line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLine {
    /// Free at that moment, in bytes.
    pub available_bytes: u64,
    /// All memory that memblock knows, in bytes.
    pub total_bytes: u64,
}

/// Something that makes initialisation slower than on an ordinary kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sign {
    /// `page_poison=1`: every freed page is filled.
    PagePoison,
    /// `init_on_free=1`: every freed page is zeroed.
    InitOnFree,
    /// The kernel address sanitizer.
    Kasan,
    /// Lock debugging.
    Lockdep,
    /// `debug_pagealloc=on`.
    DebugPagealloc,
    /// The kernel memory sanitizer.
    Kmsan,
}

/// One boot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Boot {
    /// The first line of the file that belongs to it.
    pub first_line: u64,
    /// The last one.
    pub last_line: u64,
    /// The release (`uname -r`).
    pub release: Option<Fact<String>>,
    /// The release in the name of the kernel's image on the command line.
    pub image_release: Option<Fact<String>>,
    /// The kernel command line.
    pub cmdline: Option<Fact<String>>,
    /// The architecture.
    pub arch: Option<Fact<Arch>>,
    /// An architecture that is not modelled, by the name the log gives.
    pub foreign_arch: Option<Fact<String>>,
    /// The base page size in bytes.
    pub page_bytes: Option<Fact<u64>>,
    /// Timer ticks per second.
    pub hz: Option<Fact<u32>>,
    /// The processor's name.
    pub cpu_model: Option<Fact<String>>,
    /// CPUs that were brought up.
    pub cpu_count: Option<Fact<u32>>,
    /// Nodes that have them.
    pub node_count: Option<Fact<u32>>,
    /// Threads per core.
    pub smt: Option<Fact<u32>>,
    /// CPUs of nodes, where the log lists them.
    pub node_cpus: BTreeMap<Nid, Fact<Vec<u32>>>,
    /// The node of each CPU in the affinity table (`SRAT: PXM`), in its order.
    pub srat_cpus: Vec<Fact<Nid>>,
    /// What says that a hypervisor stands below the kernel.
    pub guest: Option<Fact<String>>,
    /// The processor that software imitates, such as `QEMU TCG CPU`.
    pub emulated: Option<Fact<String>>,
    /// Whether the kernel made nodes of its own (`numa=fake=`).
    pub has_fake_nodes: bool,
    /// ppc64: whether the hash MMU is in use.
    pub has_hash_mmu: bool,
    /// The first line that cannot be true.
    pub flaw: Option<Fact<String>>,
    /// The firmware's map (`BIOS-e820:`).
    pub e820: Vec<MapRange>,
    /// The map after `mem=` and `memmap=` (`user:`).
    pub user_map: Vec<MapRange>,
    /// The EFI map (`efi: mem00:`).
    pub efi_map: Vec<MapRange>,
    /// Memory affinity (`SRAT: Node`).
    pub srat: Vec<NodeRange>,
    /// `Early memory node ranges`.
    pub early: Vec<NodeRange>,
    /// `Initmem setup node`, the span of each node.
    pub initmem: Vec<NodeRange>,
    /// `NODE_DATA`, where each node's `pglist_data` lies.
    pub node_data: Vec<NodeRange>,
    /// `Zone ranges`.
    pub zones: Vec<ZoneRange>,
    /// `On node N totalpages`.
    pub total_pages: BTreeMap<Nid, Fact<u64>>,
    /// `Normal zone: N pages`.
    pub zone_pages: Vec<ZonePages>,
    /// The `Memory:` line.
    pub memory_line: Option<Fact<MemoryLine>>,
    /// `phys_mem_size` and its like.
    pub phys_bytes: Option<Fact<u64>>,
    /// What `memblock=debug` prints.
    pub memblock: Memblock,
    /// Lines with the time of a node.
    pub init: Vec<InitLine>,
    /// Lines with the time of device memory.
    pub device_init: Vec<DeviceInit>,
    /// Pools of huge pages.
    pub huge_pools: Vec<HugePool>,
    /// What makes this kernel slow.
    pub signs: Vec<Fact<Sign>>,
    /// Whether a stamp other than zero was seen.
    pub has_stamps: bool,
    /// Items that did not fit into the lists.
    pub dropped: u64,
    /// CPUs in `node_cpus`, of all nodes together.
    pub(super) listed_cpus: usize,
    /// The node whose list of CPUs goes on in lines of its own.
    pub(super) listing_nid: Option<Nid>,
    /// The node that zone lines belong to now.
    pub(super) current_nid: Option<Nid>,
}

impl Boot {
    /// Whether the boot holds nothing at all.
    pub fn is_empty(&self) -> bool {
        let empty = Self {
            first_line: self.first_line,
            last_line: self.last_line,
            has_stamps: self.has_stamps,
            current_nid: self.current_nid,
            listed_cpus: self.listed_cpus,
            listing_nid: self.listing_nid,
            ..Self::default()
        };
        *self == empty
    }

    /// One line about the boot, for people who have to choose.
    pub fn summary(&self) -> String {
        let release = self.kernel().map_or("unknown kernel", |r| r.value.as_str());
        let mut nids: Vec<u32> = self.early.iter().chain(&self.initmem).map(|r| r.nid.0).collect();
        nids.extend(self.init.iter().map(|i| i.nid.0));
        nids.sort_unstable();
        nids.dedup();
        let nodes = match nids.is_empty() {
            true => String::new(),
            false => format!(", nodes {}", crate::machine::cpulist::format(&nids)),
        };
        format!("lines {} to {}, {release}{nodes}", self.first_line, self.last_line)
    }

    /// The release, as the kernel says it or else as its image is called.
    pub fn kernel(&self) -> Option<&Fact<String>> {
        self.release.as_ref().or(self.image_release.as_ref())
    }

    /// Whether the memory of nodes is known.
    pub(super) fn has_layout(&self) -> bool {
        !(self.early.is_empty() && self.initmem.is_empty() && self.node_data.is_empty())
    }

    /// Adds to a list unless it is full.
    pub(super) fn add<T>(dropped: &mut u64, list: &mut Vec<T>, item: T) {
        if list.len() < MAX_ITEMS {
            list.push(item);
        } else {
            *dropped += 1;
        }
    }

    /// Sets a fact that is not known yet; the first line counts.
    pub(super) fn set<T>(slot: &mut Option<Fact<T>>, value: T, line: u64) {
        slot.get_or_insert(Fact { value, line });
    }

    /// Remembers a sign once.
    pub(super) fn sign(&mut self, sign: Sign, line: u64) {
        if !self.signs.iter().any(|s| s.value == sign) {
            self.signs.push(Fact::new(sign, line));
        }
    }

    /// The sign, if it was seen.
    pub fn has(&self, sign: Sign) -> bool {
        self.signs.iter().any(|s| s.value == sign)
    }
}
