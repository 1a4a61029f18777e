//! What one page costs: steps of a plan, on a node, in a kernel era.
//!
//! [`PageCost`] is core time, bytes moved and lock time of one page;
//! [`worker_page`] and [`boot_page`] make one from a plan's steps. The equations are
//! explained in `docs/model.md`; every number is from [`super::constants`] or a class.

use super::constants as k;
use super::hardware::NodeHardware;
use super::queue::Demand;
use crate::kernel::KernelVersion;
use crate::plan::{BootPlan, Executor, Freeing, Grain, PageOp, Phase, PhaseName, Step, Work};

/// Kernel versions whose loops over pages cost alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Era {
    /// Up to 4.1: the boot CPU does everything.
    A,
    /// 4.2 to 4.14: zeroed by memblock.
    B,
    /// 4.15 to 5.1: zeroed by calls of memset, checks per page frame.
    C,
    /// 5.2 to 5.7: block by block.
    D,
    /// 5.8 to 6.3: the boot CPU sweeps regions; threads.
    E,
    /// 6.4 on: tail pages are not checked.
    F,
}

/// What changes costs and is not part of the plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `page_poison=1` or `init_on_free=1`: freed pages are written.
    pub poison: bool,
    /// A kernel with lockdep or KASAN.
    pub debug: bool,
    /// Bytes of a page, for poisoning.
    pub page_bytes: u64,
    /// Bytes of a struct page; 0 stands for the usual 64.
    pub struct_page_bytes: u64,
}

impl Options {
    /// Cache lines of a struct page on the way through an array of them.
    pub fn lines_per_page(&self) -> f64 {
        match self.struct_page_bytes {
            0 => 1.0,
            bytes => bytes as f64 / 64.0,
        }
    }
}

/// What one page costs its executor, without sharing anything.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PageCost {
    /// Time on one otherwise idle core, in ns.
    pub ns: f64,
    /// Bytes moved to and from memory.
    pub bytes: f64,
    /// The part of `ns` under the zone's lock.
    pub lock_ns: f64,
}

impl Era {
    /// The era of a version.
    pub fn of(version: KernelVersion) -> Self {
        let since = |major, minor| version >= KernelVersion::new(major, minor);
        match version {
            _ if since(6, 4) => Self::F,
            _ if since(5, 8) => Self::E,
            _ if since(5, 2) => Self::D,
            _ if since(4, 15) => Self::C,
            _ if since(4, 2) => Self::B,
            _ => Self::A,
        }
    }

    /// The workers' loop, without stores and freeing, in ns of core work.
    fn worker_loop_ns(self) -> f64 {
        match self {
            Self::C => k::LOOP_CORE_NS + k::PER_PFN_CHECKS_NS,
            _ => k::LOOP_CORE_NS,
        }
    }

    /// The boot CPU's sweep, without stores, in ns of core work.
    fn boot_loop_ns(self) -> f64 {
        match self {
            Self::A => k::BOOT_LOOP_A_NS,
            Self::B | Self::C => k::BOOT_LOOP_B_NS,
            Self::D => k::BOOT_LOOP_D_NS,
            Self::E | Self::F => k::BOOT_LOOP_E_NS,
        }
    }
}

impl PageCost {
    /// The demand on a node's stations.
    pub fn demand(&self, node: &NodeHardware) -> Demand {
        Demand {
            alone_ns: self.ns,
            bandwidth_ns: self.bytes / node.bytes_per_ns.max(f64::MIN_POSITIVE),
            lock_ns: self.lock_ns,
        }
    }

    /// The same work `factor` times as slow on its core.
    pub fn scaled(self, factor: f64) -> Self {
        Self { ns: self.ns * factor, ..self }
    }
}

/// One operation's line time (in lines of `w`), core work in ns, and bytes moved when
/// its lines are cold.
struct OpCost {
    lines: f64,
    core_ns: f64,
    bytes: f64,
}

fn op_cost(step: &Step, node: &NodeHardware) -> OpCost {
    let streams = step.store.as_deref().is_some_and(is_streaming);
    let (lines, bytes) = match streams {
        true => (node.nt_ratio, k::STREAMED_BYTES),
        false => (1.0, k::TEMPORAL_BYTES),
    };
    let cold = |lines: f64, core_ns: f64| OpCost { lines, core_ns, bytes: k::TEMPORAL_BYTES };
    match step.op {
        PageOp::Zero => OpCost { lines, core_ns: 0.0, bytes },
        PageOp::Fields => cold(k::FIELDS_LINE, k::FIELDS_CORE_NS),
        PageOp::MemsetFields => cold(1.0, k::NINE_STORES_CORE_NS + node.memset_call_ns),
        PageOp::NineStores => cold(1.0, k::NINE_STORES_CORE_NS),
        PageOp::ZeroLineFields => cold(1.0, k::ZERO_LINE_CORE_NS),
        PageOp::Compose => OpCost { lines, core_ns: k::COMPOSE_CORE_NS, bytes },
        PageOp::ComposeFreed(_) => {
            OpCost { lines, core_ns: k::COMPOSE_CORE_NS + k::COMPOSE_FREED_CORE_NS, bytes }
        }
        PageOp::MarkReserved => cold(k::BOOT_FREE_LINE, k::MARK_RESERVED_CORE_NS),
        PageOp::Free(_) => cold(k::FREE_COLD_LINE, k::FREE_COLD_CORE_NS),
    }
}

/// Whether a store goes past the caches, by the names that `host` gives its stores.
pub fn is_streaming(store: &str) -> bool {
    store == "movnti" || store.ends_with("-nt") || store == "stnp"
}

/// One page of `work` on one of the node's own workers.
pub fn worker_page(plan: &BootPlan, phase: &Phase, work: &Work, on: &At<'_>) -> PageCost {
    let era = Era::of(plan.kernel);
    let mut cost = steps_cost(work, on, on.node.from_workers, &plan.freeing, false);
    if phase.name == PhaseName::DeferredInit {
        cost.ns += era.worker_loop_ns() * on.node.core_factor;
    }
    finish(cost, plan, phase, on, frees(work))
}

/// One page of `work` on the boot CPU.
pub fn boot_page(plan: &BootPlan, phase: &Phase, work: &Work, on: &At<'_>) -> PageCost {
    let era = Era::of(plan.kernel);
    let mut cost = steps_cost(work, on, on.node.from_boot_cpu, &plan.freeing, true);
    let marks = work.steps.iter().all(|s| s.op == PageOp::MarkReserved);
    if phase.name == PhaseName::EarlyInit && !marks {
        cost.ns += era.boot_loop_ns() * on.node.core_factor;
    }
    finish(cost, plan, phase, on, frees(work))
}

/// Where and under which options a page is worked on.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    /// The node whose page it is.
    pub node: &'a NodeHardware,
    /// What else changes costs.
    pub options: Options,
}

fn frees(work: &Work) -> bool {
    work.steps.iter().any(|s| matches!(s.op, PageOp::Free(_) | PageOp::ComposeFreed(_)))
}

fn steps_cost(work: &Work, on: &At<'_>, reach: f64, freeing: &Freeing, boot: bool) -> PageCost {
    let (node, mut cost) = (on.node, PageCost::default());
    let per_page = on.options.lines_per_page();
    for (index, step) in work.steps.iter().enumerate() {
        // Within a block of 64 KiB of struct pages the next step finds hot lines, but
        // not after a store past the caches.
        let before = index.checked_sub(1).and_then(|i| work.steps.get(i));
        let streamed = before.is_some_and(|s| s.store.as_deref().is_some_and(is_streaming));
        let hot = before.is_some() && work.grain == Grain::Block && !streamed;
        let mut op = op_cost(step, node);
        if matches!(step.op, PageOp::Free(_)) && (hot || boot) {
            op.core_ns = match (hot, freeing.checks_tail_pages) {
                (false, _) => k::BOOT_FREE_CORE_NS,
                (true, true) => k::FREE_HOT_CHECKED_NS,
                (true, false) => k::FREE_HOT_NS,
            };
            op.lines = k::BOOT_FREE_LINE;
        }
        if !hot {
            cost.ns += op.lines * node.line_ns * reach * per_page;
            cost.bytes += op.bytes * per_page;
        }
        // Setting all of it takes more stores; freeing touches two words whatever its size.
        let stores = if sets_all(step.op) { per_page } else { 1.0 };
        cost.ns += op.core_ns * node.core_factor * stores;
    }
    if frees(work) && !boot {
        cost.lock_ns = k::ZONE_LOCK_NS / freeing.unit_pages.max(1) as f64;
    }
    cost
}

/// Whether an operation writes every word of a struct page.
const fn sets_all(op: PageOp) -> bool {
    !matches!(op, PageOp::Free(_) | PageOp::MarkReserved | PageOp::Fields)
}

/// Adds a guest's first touch and poisoning.
fn finish(
    mut cost: PageCost,
    plan: &BootPlan,
    phase: &Phase,
    on: &At<'_>,
    frees: bool,
) -> PageCost {
    if touches_first(plan, phase.name) {
        cost.ns += on.node.touch_ns * on.options.lines_per_page();
    }
    if frees && on.options.poison {
        let lines = on.options.page_bytes as f64 / 64.0;
        cost.ns += k::POISON_LINE * on.node.line_ns * lines;
        cost.bytes += k::TEMPORAL_BYTES * lines;
    }
    let factor = if on.options.debug { k::DEBUG_FACTOR } else { 1.0 };
    cost.scaled(factor)
}

/// Whether a phase is the first that touches its struct pages.
fn touches_first(plan: &BootPlan, name: PhaseName) -> bool {
    let has = |wanted: PhaseName| plan.phases.iter().any(|p| p.name == wanted);
    match name {
        PhaseName::MemblockZero | PhaseName::SetupZero | PhaseName::DeferredZero => true,
        PhaseName::EarlyInit => !has(PhaseName::MemblockZero) && !has(PhaseName::SetupZero),
        PhaseName::DeferredInit => !has(PhaseName::MemblockZero) && !has(PhaseName::DeferredZero),
        PhaseName::EarlyFree => false,
    }
}

/// The cost of a page of `work`, whoever does it.
pub fn page(plan: &BootPlan, phase: &Phase, work: &Work, on: &At<'_>) -> PageCost {
    match phase.executor {
        Executor::BootCpu => boot_page(plan, phase, work, on),
        Executor::NodeThreads => worker_page(plan, phase, work, on),
    }
}
