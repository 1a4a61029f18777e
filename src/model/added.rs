//! Struct pages of memory that comes after boot: device memory and memory hotplug.
//!
//! [`device_page`] is one page of `memmap_init_zone_device`; [`hotplug`] adds memory
//! block by block, as Linux does it, or with threads, as it was proposed. Uses the costs
//! of a boot's pages; what is added to them are PRIOR constants. `docs/model.md` has the
//! equations.

use super::constants as k;
use super::cost::{Era, Options, PageCost};
use super::hardware::NodeHardware;
use super::queue::Curve;
use crate::kernel::KernelVersion;

/// How a struct page of device memory is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// Zeroed and filled field by field, as released kernels do.
    Fields,
    /// A template copied whole, as proposed in 2026.
    Template,
    /// The same past the caches.
    Streamed,
}

/// Memory that is added to one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Added {
    /// The kernel.
    pub version: KernelVersion,
    /// Bytes of memory.
    pub bytes: u64,
    /// Bytes of a memory block, the unit of `/sys/devices/system/memory`.
    pub block_bytes: u64,
    /// Bytes of a section, the least that one thread takes.
    pub section_bytes: u64,
    /// Whether the kernel fills a new memmap with a pattern first (`CONFIG_DEBUG_VM`).
    pub debug_vm: bool,
}

/// Who initialises added memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    /// One thread, block after block: every released kernel.
    One,
    /// So many within a block, block after block; a section at least each.
    InBlock(u32),
    /// So many on as many blocks.
    OverBlocks(u32),
}

/// What adding memory takes, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HotplugRun {
    /// Registering blocks, under a lock.
    pub register_ns: f64,
    /// Allocating, mapping and, where that is done, filling the memmap.
    pub map_ns: f64,
    /// Initialising struct pages and handing the memory over.
    pub pages_ns: f64,
    /// Struct pages.
    pub pages: u64,
    /// Threads that share the last part.
    pub workers: u32,
}

impl HotplugRun {
    /// All parts together.
    pub fn total_ns(&self) -> f64 {
        self.register_ns + self.map_ns + self.pages_ns
    }
}

/// One struct page of device memory on one thread, on lines of its own node that were
/// touched before (`mm/mm_init.c: memmap_init_zone_device`).
pub fn device_page(
    version: KernelVersion,
    node: &NodeHardware,
    options: Options,
    store: Store,
) -> PageCost {
    let size = options.lines_per_page();
    let (lines, core_ns, bytes) = match store {
        Store::Fields => {
            (1.0, fields_core_ns(version, node) + k::DEVICE_CORE_NS, k::TEMPORAL_BYTES)
        }
        Store::Template => (1.0, k::COMPOSE_CORE_NS, k::TEMPORAL_BYTES),
        Store::Streamed => (node.nt_ratio, k::COMPOSE_CORE_NS, k::STREAMED_BYTES),
    };
    let ns = lines * node.line_ns * size + (core_ns + k::LOOP_CORE_NS) * node.core_factor;
    let page = PageCost { ns, bytes: bytes * size, lock_ns: 0.0 };
    page.scaled(if options.debug { k::DEBUG_FACTOR } else { 1.0 })
}

/// Core work of zeroing and filling one struct page by that version.
fn fields_core_ns(version: KernelVersion, node: &NodeHardware) -> f64 {
    match Era::of(version) {
        Era::A | Era::B => k::FIELDS_CORE_NS,
        Era::C => k::NINE_STORES_CORE_NS + node.memset_call_ns,
        Era::D | Era::E | Era::F => k::NINE_STORES_CORE_NS,
    }
}

/// Adds memory to a running system and puts it online.
pub fn hotplug(
    node: &NodeHardware,
    options: Options,
    added: &Added,
    workers: Workers,
) -> HotplugRun {
    let page_bytes = options.page_bytes.max(1);
    let pages = added.bytes / page_bytes;
    let memmap_bytes = pages as f64 * 64.0 * options.lines_per_page();
    let blocks = added.bytes.div_ceil(added.block_bytes.max(1));
    let fills = u32::from(zeroes_first(added.version)) + u32::from(added.debug_vm);
    let fill_ns = f64::from(fills) * memmap_bytes / 64.0 * node.line_ns;
    let sections = added.block_bytes / added.section_bytes.max(1);
    let threads = match workers {
        Workers::One => 1,
        Workers::InBlock(threads) => u64::from(threads).min(sections).max(1) as u32,
        Workers::OverBlocks(threads) => u64::from(threads).min(blocks).max(1) as u32,
    };
    let page = hotplug_page(node, options, added);
    let curve = Curve::new(page.demand(node), threads, node.cores, k::SMT_GAIN);
    HotplugRun {
        register_ns: blocks as f64 * k::HOTPLUG_BLOCK_NS,
        map_ns: memmap_bytes / f64::from(2 << 20) * k::HOTPLUG_MAP_NS + fill_ns,
        pages_ns: pages as f64 / curve.throughput(threads).max(f64::MIN_POSITIVE),
        pages,
        workers: threads,
    }
}

/// Up to 4.14 the memory of a new memmap is zeroed when it is allocated.
fn zeroes_first(version: KernelVersion) -> bool {
    Era::of(version) <= Era::B
}

/// One page: initialised with its block (`memmap_init_range`), and in a second pass over
/// the block handed over (`online_pages_range`).
fn hotplug_page(node: &NodeHardware, options: Options, added: &Added) -> PageCost {
    let size = options.lines_per_page();
    let checks = if Era::of(added.version) == Era::C { k::PER_PFN_CHECKS_NS } else { 0.0 };
    let single = match added.version >= KernelVersion::new(5, 1) {
        true => 0.0,
        false => k::HOTPLUG_FREE_SINGLE_NS,
    };
    let core_ns = fields_core_ns(added.version, node)
        + checks
        + k::LOOP_CORE_NS
        + k::FREE_COLD_CORE_NS
        + single;
    let lines = (1.0 + k::FREE_COLD_LINE) * size;
    let mut page = PageCost {
        ns: lines * node.line_ns + core_ns * node.core_factor,
        bytes: 2.0 * k::TEMPORAL_BYTES * size,
        lock_ns: 0.0,
    };
    if options.poison {
        let lines = options.page_bytes as f64 / 64.0;
        page.ns += k::POISON_LINE * node.line_ns * lines;
        page.bytes += k::TEMPORAL_BYTES * lines;
    }
    page.scaled(if options.debug { k::DEBUG_FACTOR } else { 1.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pfn::Nid;
    use crate::units::{GIB, MIB, TIB};

    fn node() -> NodeHardware {
        NodeHardware {
            nid: Nid(0),
            cores: 16,
            hw_threads: 32,
            bytes_per_ns: 100.0,
            line_ns: 10.0,
            core_factor: 1.0,
            nt_ratio: 0.5,
            from_boot_cpu: 1.0,
            from_workers: 1.0,
            touch_ns: 0.0,
            memset_call_ns: k::MEMSET_CALL_NS,
        }
    }

    fn options() -> Options {
        Options { page_bytes: 4096, ..Options::default() }
    }

    fn added(minor: u32, block_bytes: u64) -> Added {
        Added {
            version: KernelVersion::new(6, minor),
            bytes: TIB,
            block_bytes,
            section_bytes: 128 * MIB,
            debug_vm: false,
        }
    }

    // 10 + 2 + 1 + 1, then 10 + 0.5 + 1, then 5 + 0.5 + 1.
    #[test]
    fn a_template_saves_core_work_and_streaming_the_line() {
        let ns = |store| device_page(KernelVersion::new(6, 12), &node(), options(), store).ns;
        assert_eq!(
            (ns(Store::Fields), ns(Store::Template), ns(Store::Streamed)),
            (14.0, 11.5, 6.5)
        );
        let old = device_page(KernelVersion::new(4, 20), &node(), options(), Store::Fields);
        assert_eq!(old.ns, 23.5);
    }

    // 2^28 pages, each 1.5 lines of 10 ns, 2 + 1 + 3 ns of core work.
    #[test]
    fn a_terabyte_is_added_by_one_thread() {
        let run = hotplug(&node(), options(), &added(12, 2 * GIB), Workers::One);
        assert_eq!((run.pages, run.workers), (1 << 28, 1));
        assert!((run.pages_ns - 21.0 * f64::from(1 << 28)).abs() < 1.0, "{run:?}");
        assert!((run.register_ns - 512.0 * k::HOTPLUG_BLOCK_NS).abs() < 1e-6);
        assert!((run.map_ns - 8192.0 * k::HOTPLUG_MAP_NS).abs() < 1e-6);
    }

    // A block of one section is one thread's work however many there are.
    #[test]
    fn small_blocks_leave_nothing_to_share_within_a_block() {
        let of = |block, workers| hotplug(&node(), options(), &added(12, block), workers);
        assert_eq!(of(128 * MIB, Workers::InBlock(32)).workers, 1);
        assert_eq!(of(2 * GIB, Workers::InBlock(32)).workers, 16);
        assert_eq!(of(128 * MIB, Workers::OverBlocks(32)).workers, 32);
        let (one, many) = (of(2 * GIB, Workers::One), of(2 * GIB, Workers::InBlock(16)));
        assert!(many.pages_ns < one.pages_ns / 4.0 && many.register_ns == one.register_ns);
    }

    #[test]
    fn old_kernels_zero_first_and_free_page_by_page() {
        let run = |version| {
            let added = Added { version, ..added(12, 2 * GIB) };
            hotplug(&node(), options(), &added, Workers::One)
        };
        let (old, new) = (run(KernelVersion::new(4, 14)), run(KernelVersion::new(6, 1)));
        assert!(old.map_ns - new.map_ns > 10.0 * f64::from(1 << 28) - 1.0);
        assert!(old.pages_ns > new.pages_ns * 1.5);
    }
}
