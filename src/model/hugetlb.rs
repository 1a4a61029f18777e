//! Gigantic pages at boot: what becomes of the struct pages behind them.
//!
//! [`gather`] is the pass of `hugetlb_init` over gigantic pages that memblock gave
//! ([`Pool`]): it makes tails of their struct pages, initialises them from 6.7 on, and
//! with HVO gives the memmap of all but the first few back. What the boot CPU does to the
//! same pages before, with the other reserved ones, is part of the layout and the plan.

use super::constants as k;
use super::cost::Options;
use super::hardware::{Hardware, NodeHardware};
use crate::kernel::KernelVersion;

/// Gigantic pages, spread evenly over the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// The kernel.
    pub version: KernelVersion,
    /// Bytes of a base page.
    pub page_bytes: u64,
    /// Bytes of a gigantic page.
    pub huge_bytes: u64,
    /// How many there are.
    pub huge_pages: u64,
    /// Whether the memmap behind them is given back (HVO).
    pub hvo: bool,
}

/// What gathering takes, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gathered {
    /// Struct pages that are written.
    pub pages: u64,
    /// Initialising them and making them tails.
    pub tails_ns: f64,
    /// Giving back their memmap.
    pub remap_ns: f64,
    /// Threads that share it.
    pub workers: u32,
    /// Bytes of memmap that are given back.
    pub given_back_bytes: u64,
}

impl Gathered {
    /// Both parts together.
    pub fn total_ns(&self) -> f64 {
        self.tails_ns + self.remap_ns
    }
}

/// The version that has HVO at all on x86_64.
pub const FIRST_HVO: KernelVersion = KernelVersion::new(5, 14);
/// From here on gathering initialises tails, and with HVO only the few that stay.
pub const LATE_TAILS: KernelVersion = KernelVersion::new(6, 7);
/// From here on a thread per node gathers (`mm/hugetlb.c: gather_bootmem_prealloc`).
pub const THREADED: KernelVersion = KernelVersion::new(6, 9);
/// From here on the memmap is shared before any page of it is written.
pub const SHARED_FIRST: KernelVersion = KernelVersion::new(6, 15);

/// The pass over all gigantic pages of `pool`.
pub fn gather(hardware: &Hardware, options: &Options, pool: &Pool) -> Gathered {
    let struct_bytes = (64.0 * options.lines_per_page()) as u64;
    let of_one = pool.huge_bytes / pool.page_bytes.max(1);
    let kept = (pool.page_bytes / struct_bytes.max(1)).min(of_one);
    let hvo = pool.hvo && pool.version >= FIRST_HVO;
    let late = pool.version >= LATE_TAILS;
    let each = if hvo && late { kept } else { of_one };
    let pages = each.saturating_mul(pool.huge_pages);
    let threaded = pool.version >= THREADED;
    let nodes: Vec<&NodeHardware> = hardware.nodes.iter().collect();
    let with_cpus = nodes.iter().filter(|n| n.hw_threads > 0).count().max(1);
    let workers = if threaded { with_cpus } else { 1 };
    let page_ns = mean(&nodes, |node| tail_ns(node, options, late, threaded));
    let memmap_pages = of_one.saturating_mul(struct_bytes) / pool.page_bytes.max(1);
    let given_back = if hvo { memmap_pages.saturating_sub(1) } else { 0 };
    let remaps = hvo && pool.version < SHARED_FIRST;
    let remap_ns = match remaps {
        true => given_back as f64 * k::HVO_PAGE_NS + k::HVO_HUGE_NS,
        false => 0.0,
    };
    Gathered {
        pages,
        tails_ns: pages as f64 * page_ns / workers as f64,
        remap_ns: remap_ns * pool.huge_pages as f64 / workers as f64,
        workers: u32::try_from(workers).unwrap_or(u32::MAX),
        given_back_bytes: given_back
            .saturating_mul(pool.page_bytes)
            .saturating_mul(pool.huge_pages),
    }
}

/// One struct page on its cold line.
fn tail_ns(node: &NodeHardware, options: &Options, initialises: bool, threaded: bool) -> f64 {
    let reach = if threaded { node.from_workers } else { node.from_boot_cpu };
    let init_ns = if initialises { k::NINE_STORES_CORE_NS } else { 0.0 };
    let core_ns = (init_ns + k::TAIL_CORE_NS + k::LOOP_CORE_NS) * node.core_factor;
    let debug = if options.debug { k::DEBUG_FACTOR } else { 1.0 };
    (node.line_ns * reach * options.lines_per_page() + core_ns) * debug
}

fn mean(nodes: &[&NodeHardware], of: impl Fn(&NodeHardware) -> f64) -> f64 {
    nodes.iter().map(|n| of(n)).sum::<f64>() / nodes.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{KernelModel, layout};
    use crate::machine::input;
    use crate::model::Scaling;
    use crate::units::GIB;

    fn gathered(minor: u32, hvo: bool) -> Gathered {
        let machine = input::load("@2n-skylake-768g", None).unwrap();
        let version = KernelVersion::new(6, minor);
        let kernel = KernelModel::new(version, machine.arch);
        let layout = layout(&machine, &kernel).unwrap();
        let hardware = Hardware::of(&machine, &layout, None, Scaling::default());
        let pool = Pool { version, page_bytes: 4096, huge_bytes: GIB, huge_pages: 500, hvo };
        gather(&hardware, &Options::default(), &pool)
    }

    #[test]
    fn with_hvo_all_but_the_first_page_of_memmap_is_given_back() {
        let pages = |minor, hvo| gathered(minor, hvo).pages;
        assert_eq!((pages(6, true), pages(6, false)), (500 << 18, 500 << 18));
        assert_eq!((pages(7, true), pages(7, false)), (500 * 64, 500 << 18));
        let given = gathered(7, true).given_back_bytes;
        assert_eq!(given, 500 * 4095 * 4096);
        assert_eq!(gathered(7, false).given_back_bytes, 0);
    }

    #[test]
    fn each_change_of_these_kernels_makes_it_faster() {
        let ns = |minor| gathered(minor, true).total_ns();
        assert!(ns(6) > 3.0 * ns(7) && ns(7) > 1.9 * ns(9) && ns(9) > 10.0 * ns(15));
    }
}
