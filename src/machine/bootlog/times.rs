//! How long nodes took, and why the printed number may mislead.
//!
//! [`Boot::init_times`] gives one [`InitTime`] per line that a kernel printed, with
//! its [`Caveat`]s; [`Boot::serial_times`] does the same for kernels without
//! deferred initialisation, from the stamps around their zone lines.

use super::boot::{Boot, InitForm, Sign};
use crate::pfn::{Nid, total_pages};
use std::fmt;

/// A reason to read a printed time with care.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Caveat {
    /// `0ms`: less than one tick.
    BelowTick,
    /// A few ticks only, so that the time is one of several.
    FewTicks,
    /// The tick stood still: interrupts were off (4.17 to 5.7, one or two CPUs).
    StalledTick,
    /// Every freed page was filled with a pattern.
    PagePoison,
    /// Every freed page was zeroed.
    InitOnFree,
    /// An instrumented or debugging kernel.
    DebugKernel,
    /// The line has no count of pages; the rate uses all pages of the node.
    PagesOfNode,
    /// The time is a difference of two stamps, not printed by the kernel.
    FromStamps,
}

/// What a log says about the initialisation of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct InitTime {
    /// The node.
    pub nid: Nid,
    /// The zone, where the time is of one zone only.
    pub zone: Option<String>,
    /// Pages that were initialised, where the line tells.
    pub pages: Option<u64>,
    /// All pages of the node, where the log tells.
    pub node_pages: Option<u64>,
    /// Milliseconds.
    pub ms: f64,
    /// Nanoseconds per page; `None` where pages or time say nothing.
    pub ns_per_page: Option<f64>,
    /// Milliseconds of a tick, where the log tells.
    pub step_ms: Option<f64>,
    /// CPUs of the node, where the log tells.
    pub node_cpus: Option<u32>,
    /// What to keep in mind.
    pub caveats: Vec<Caveat>,
    /// The form of the line; `None` for a time from stamps.
    pub form: Option<InitForm>,
    /// The line.
    pub line: u64,
}

/// From here on a time of one tick for a node is impossible.
const MILLIONS: u64 = 1_000_000;

/// No thread initialises a struct page of 64 bytes faster than in 2 ns, and a time may be
/// one tick too short: the smallest one that is printed is half of the truth at most.
/// Kernels that print this form use one thread for a node.
const IMPOSSIBLE_NS_PER_PAGE: f64 = 1.0;

/// A zone of fewer pages says nothing through stamps.
const LEAST_STAMPED_PAGES: u64 = 65_536;

impl Boot {
    /// One time for each line that the kernel printed, in its order.
    pub fn init_times(&self) -> Vec<InitTime> {
        self.init.iter().map(|line| self.init_time(line)).collect()
    }

    fn init_time(&self, line: &super::boot::InitLine) -> InitTime {
        let node_pages = self.pages_of(line.nid);
        let ms = line.ms as f64;
        let pages = line.pages.or(node_pages);
        let step_ms = self.step_ms();
        let mut caveats = Vec::new();
        let rate = pages.filter(|&p| p > 0).map(|p| ms * 1e6 / p as f64);
        let is_stalled = line.ms > 0
            && line.form == InitForm::Pages
            && line.pages.is_some_and(|p| p >= MILLIONS)
            && rate.is_some_and(|r| r < IMPOSSIBLE_NS_PER_PAGE);
        if line.ms == 0 {
            caveats.push(Caveat::BelowTick);
        } else if is_stalled {
            caveats.push(Caveat::StalledTick);
        } else if step_ms.is_some_and(|step| ms < 10.0 * step) {
            caveats.push(Caveat::FewTicks);
        }
        let is_known = line.ms > 0 && !is_stalled;
        if line.pages.is_none() && rate.is_some() && is_known {
            caveats.push(Caveat::PagesOfNode);
        }
        self.add_signs(&mut caveats);
        InitTime {
            nid: line.nid,
            zone: None,
            pages: line.pages,
            node_pages,
            ms,
            ns_per_page: rate.filter(|_| is_known),
            step_ms,
            node_cpus: self.cpus_of(line.nid),
            caveats,
            form: Some(line.form),
            line: line.line,
        }
    }

    /// Times of zones on a kernel that initialises all pages serially, from stamps.
    ///
    /// Empty where the kernel printed times of its own, or has no stamps.
    pub fn serial_times(&self) -> Vec<InitTime> {
        if !self.init.is_empty() || !self.has_stamps {
            return Vec::new();
        }
        let time = |zone: &super::boot::ZonePages| {
            let ms = (zone.next_seconds? - zone.seconds?) * 1e3;
            if zone.pages < LEAST_STAMPED_PAGES || ms < 1.0 {
                return None;
            }
            let mut caveats = vec![Caveat::FromStamps];
            self.add_signs(&mut caveats);
            Some(InitTime {
                nid: zone.nid,
                zone: Some(zone.zone.clone()),
                pages: Some(zone.pages),
                node_pages: self.pages_of(zone.nid),
                ms,
                ns_per_page: Some(ms * 1e6 / zone.pages as f64),
                step_ms: None,
                node_cpus: self.cpus_of(zone.nid),
                caveats,
                form: None,
                line: zone.line,
            })
        };
        self.zone_pages.iter().filter_map(time).collect()
    }

    fn step_ms(&self) -> Option<f64> {
        self.hz.as_ref().map(|hz| 1e3 / f64::from(hz.value))
    }

    fn add_signs(&self, caveats: &mut Vec<Caveat>) {
        let debug = [Sign::Kasan, Sign::Kmsan, Sign::Lockdep, Sign::DebugPagealloc];
        if self.has(Sign::PagePoison) {
            caveats.push(Caveat::PagePoison);
        }
        if self.has(Sign::InitOnFree) {
            caveats.push(Caveat::InitOnFree);
        }
        if debug.iter().any(|&sign| self.has(sign)) {
            caveats.push(Caveat::DebugKernel);
        }
    }

    /// Pages of a node by its early ranges, or by `totalpages` where that is more.
    fn pages_of(&self, nid: Nid) -> Option<u64> {
        let page_bytes = self.page_bytes.as_ref().map(|p| p.value).or_else(|| {
            let arch = self.arch.as_ref()?;
            Some(super::super::assume::default_page_bytes(arch.value))
        });
        let of_node = self.early.iter().filter(|r| r.nid == nid);
        let page_bytes = page_bytes?;
        let ranges: Vec<_> = of_node.map(|r| r.range.whole_pages(page_bytes)).collect();
        let by_ranges = total_pages(&ranges);
        let counted = self.total_pages.get(&nid).map_or(0, |f| f.value);
        Some(by_ranges.max(counted)).filter(|&pages| pages > 0)
    }

    fn cpus_of(&self, nid: Nid) -> Option<u32> {
        if let (Some(1), Some(all)) =
            (self.node_count.as_ref().map(|n| n.value), self.cpu_count.as_ref().map(|c| c.value))
        {
            return Some(all);
        }
        let lists = self.cpu_lists()?;
        u32::try_from(lists.get(&nid).map_or(0, |fact| fact.value.len())).ok()
    }
}

impl Caveat {
    /// A name for scripts.
    pub const fn code(self) -> &'static str {
        match self {
            Self::BelowTick => "below-tick",
            Self::FewTicks => "few-ticks",
            Self::StalledTick => "stalled-tick",
            Self::PagePoison => "page-poison",
            Self::InitOnFree => "init-on-free",
            Self::DebugKernel => "debug-kernel",
            Self::PagesOfNode => "pages-of-node",
            Self::FromStamps => "from-stamps",
        }
    }
}

impl fmt::Display for Caveat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BelowTick => "0ms means less than one tick of the timer",
            Self::FewTicks => "a few ticks only: one tick more or less is chance",
            Self::StalledTick => {
                "impossibly short: 4.17 to 5.7 initialise with interrupts off, and with one or \
                 two CPUs the tick stands still"
            }
            Self::PagePoison => "page_poison=1 fills every page that is freed",
            Self::InitOnFree => "init_on_free zeroes every page that is freed",
            Self::DebugKernel => "a debugging kernel (KASAN, lockdep or the like) is slower",
            Self::PagesOfNode => {
                "the line counts no pages; the rate uses all pages of the node, some early"
            }
            Self::FromStamps => "a difference of two stamps; a slow console adds to it",
        })
    }
}
