//! The nine strategies: who zeroes, who fills, with which stores.
//!
//! A [`Strategy`] is a function from a [`Layout`] to a [`BootPlan`] and nothing
//! else: [`Strategy::plan`]. [`Strategy::store_role`] says which store can be chosen.

use super::{BootPlan, Executor, FreeMode, Freeing, Grain, PageOp, Phase, PhaseName};
use super::{Span, Step, Work};
use crate::kernel::layout::{Layout, NodeLayout};
use crate::kernel::version::{FreeOrder, ZeroStyle};
use crate::pfn::{self, Nid, PfnRange};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A policy of initialising struct pages at boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Everything on the boot CPU, zeroed by memblock.
    Serial,
    /// Everything on the boot CPU, zeroed page by page.
    SerialInline,
    /// Zeroed by memblock on the boot CPU, filled by the nodes' threads.
    Prezero,
    /// Zeroed and filled page by page by the nodes' threads.
    Deferred,
    /// Zeroed by the nodes' threads in a pass of its own, then filled.
    SetupZero,
    /// Not zeroed: every field is written.
    NoZero,
    /// Zeroed block by block, each filled right after.
    Block,
    /// The finished image is stored whole.
    Fused,
    /// The finished image, as it is after freeing, is stored past the caches.
    FusedNt,
}

/// Which store of a strategy can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreRole {
    /// None: the stores are part of what the strategy is.
    Fixed,
    /// The one that zeroes.
    Zero,
    /// The one that writes finished images into the cache.
    TemporalImage,
    /// The one that writes finished images past the caches.
    NonTemporalImage,
}

impl Strategy {
    /// All strategies, in the order in which tables list them.
    pub const ALL: [Self; 9] = [
        Self::Serial,
        Self::SerialInline,
        Self::Prezero,
        Self::Deferred,
        Self::SetupZero,
        Self::NoZero,
        Self::Block,
        Self::Fused,
        Self::FusedNt,
    ];

    /// The name on the command line and in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Serial => "serial",
            Self::SerialInline => "serial-inline",
            Self::Prezero => "prezero",
            Self::Deferred => "deferred",
            Self::SetupZero => "setup-zero",
            Self::NoZero => "no-zero",
            Self::Block => "block",
            Self::Fused => "fused",
            Self::FusedNt => "fused-nt",
        }
    }

    /// The strategy of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.name() == name)
    }

    /// What the strategy stands for, in one sentence.
    pub const fn stands_for(self) -> &'static str {
        match self {
            Self::Serial => "no deferred initialisation: before 4.2, or configured off",
            Self::SerialInline => "no deferred initialisation, 4.15 and later",
            Self::Prezero => "4.2 to 4.14: the base of the discussion of 2017",
            Self::Deferred => "4.15 and later: the fix of 2017, threads by kernel version",
            Self::SetupZero => "alternative of 2017: zero when the memmap is mapped",
            Self::NoZero => "alternative of 2017: write every field, zero nothing",
            Self::Block => "zeroing ahead, one cache-sized block at a time",
            Self::Fused => "template copy: one whole store per struct page",
            Self::FusedNt => "proposals of 2026: stream the state after freeing",
        }
    }

    /// Who zeroes, in a few words.
    pub const fn who_zeroes(self) -> &'static str {
        match self {
            Self::Serial | Self::Prezero => "boot CPU, in memblock",
            Self::SerialInline => "boot CPU, page by page",
            Self::Deferred => "node threads, page by page",
            Self::SetupZero => "boot CPU early pages, node threads the rest",
            Self::NoZero | Self::Fused | Self::FusedNt => "nobody",
            Self::Block => "node threads, block by block",
        }
    }

    /// Who fills, in a few words.
    pub const fn who_fills(self) -> &'static str {
        match self {
            Self::Serial | Self::SerialInline => "boot CPU",
            _ => "node threads",
        }
    }

    /// Which of the strategy's stores can be chosen.
    pub const fn store_role(self) -> StoreRole {
        match self {
            Self::Serial | Self::Prezero | Self::SetupZero | Self::Block => StoreRole::Zero,
            Self::SerialInline | Self::Deferred | Self::NoZero => StoreRole::Fixed,
            Self::Fused => StoreRole::TemporalImage,
            Self::FusedNt => StoreRole::NonTemporalImage,
        }
    }

    /// The plan of this strategy on `layout`.
    ///
    /// `store` names the store kernel for the strategy's [`StoreRole`]; `free` adds
    /// the hand-over to the buddy allocator. All strategies end in the same bytes.
    pub fn plan(self, layout: &Layout, store: Option<&str>, free: bool) -> BootPlan {
        let maker = Maker { strategy: self, layout, store, free };
        let mut phases = match self {
            Self::Serial | Self::SerialInline => maker.serial(),
            _ => maker.parallel(),
        };
        phases.retain(|p| p.pages() > 0);
        maker.finish(self.name(), phases)
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What the phases of one plan are made from.
pub(super) struct Maker<'a> {
    /// The strategy.
    pub(super) strategy: Strategy,
    /// The layout that says which pages there are.
    pub(super) layout: &'a Layout,
    /// The chosen store.
    pub(super) store: Option<&'a str>,
    /// Whether pages are freed.
    pub(super) free: bool,
}

impl Maker<'_> {
    /// Wraps phases into a plan.
    pub(super) fn finish(&self, name: &str, phases: Vec<Phase>) -> BootPlan {
        let kernel = &self.layout.kernel;
        let unit_pages = match kernel.frees_pageblocks {
            true => self.layout.pageblock_pages,
            false => self.layout.max_order_pages,
        };
        BootPlan {
            strategy: name.into(),
            machine: self.layout.machine.clone(),
            kernel: kernel.version,
            free: self.free,
            format: self.layout.format,
            freeing: Freeing {
                max_order_pages: self.layout.max_order_pages,
                unit_pages,
                checks_tail_pages: kernel.checks_tail_pages,
            },
            phases,
        }
    }

    /// Phases when the boot CPU does everything.
    fn serial(&self) -> Vec<Phase> {
        let init = match self.strategy {
            Strategy::Serial => PageOp::Fields,
            _ => self.inline_init(),
        };
        let mut phases = Vec::new();
        if self.strategy == Strategy::Serial {
            phases.push(self.boot_phase(PhaseName::MemblockZero, |n| {
                vec![self.boot_work(n.nid, &all_pages(n), vec![self.stored(PageOp::Zero)])]
            }));
        }
        phases.push(self.boot_phase(PhaseName::EarlyInit, |n| {
            vec![
                self.boot_work(n.nid, &all_pages(n), vec![step(init)]),
                self.boot_work(n.nid, &n.pg_reserved, vec![step(PageOp::MarkReserved)]),
            ]
        }));
        if self.free {
            // The ragged ends of what would be deferred are freed page by page here
            // too: all strategies must end in the same bytes.
            phases.push(self.boot_phase(PhaseName::EarlyFree, |n| {
                let at_boot = vec![step(PageOp::Free(FreeMode::AtBoot))];
                let by_unit = vec![step(PageOp::Free(FreeMode::ByUnit))];
                vec![
                    self.boot_work(n.nid, &n.early_free, at_boot),
                    self.boot_work(n.nid, &n.deferred, by_unit),
                ]
            }));
        }
        phases
    }

    /// Phases when the nodes' threads do their share.
    fn parallel(&self) -> Vec<Phase> {
        let mut phases = Vec::new();
        match self.strategy {
            Strategy::Prezero => phases.push(self.boot_phase(PhaseName::MemblockZero, |n| {
                vec![self.boot_work(n.nid, &all_pages(n), vec![self.stored(PageOp::Zero)])]
            })),
            Strategy::SetupZero => phases.push(self.boot_phase(PhaseName::SetupZero, |n| {
                vec![self.boot_work(n.nid, &early_pages(n), vec![self.stored(PageOp::Zero)])]
            })),
            _ => {}
        }
        phases.push(self.boot_phase(PhaseName::EarlyInit, |n| self.early_init(n)));
        let freed_already = self.strategy == Strategy::FusedNt;
        if self.free && !freed_already {
            phases.push(self.boot_phase(PhaseName::EarlyFree, |n| {
                let steps = vec![step(PageOp::Free(FreeMode::AtBoot))];
                vec![self.boot_work(n.nid, &n.early_free, steps)]
            }));
        }
        if self.strategy == Strategy::SetupZero {
            let steps = vec![self.stored(PageOp::Zero)];
            phases.push(self.node_phase(PhaseName::DeferredZero, steps, Grain::Chunk));
        }
        let (steps, grain) = self.deferred_steps();
        phases.push(self.node_phase(PhaseName::DeferredInit, steps, grain));
        phases
    }

    /// What the boot CPU does to a node's early pages before anything is freed.
    fn early_init(&self, node: &NodeLayout) -> Vec<Work> {
        let early = early_pages(node);
        let mark = vec![step(PageOp::MarkReserved)];
        let marked = self.boot_work(node.nid, &node.pg_reserved, mark);
        if self.strategy == Strategy::FusedNt && self.free {
            let freed = PageOp::ComposeFreed(FreeMode::AtBoot);
            let kept = pfn::subtract(&early, &node.early_free);
            return vec![
                self.boot_work(node.nid, &kept, vec![self.stored(PageOp::Compose)]),
                self.boot_work(node.nid, &node.early_free, vec![self.stored(freed)]),
                marked,
            ];
        }
        vec![self.boot_work(node.nid, &early, self.early_steps()), marked]
    }

    fn early_steps(&self) -> Vec<Step> {
        match self.strategy {
            Strategy::Prezero | Strategy::SetupZero => vec![step(PageOp::Fields)],
            Strategy::Block => vec![self.stored(PageOp::Zero), step(PageOp::Fields)],
            Strategy::Fused | Strategy::FusedNt => vec![self.stored(PageOp::Compose)],
            Strategy::NoZero => vec![step(PageOp::NineStores)],
            _ => vec![step(self.inline_init())],
        }
    }

    /// What a worker does to deferred pages, and how much at a time.
    fn deferred_steps(&self) -> (Vec<Step>, Grain) {
        if self.strategy == Strategy::FusedNt && self.free {
            let op = PageOp::ComposeFreed(FreeMode::ByUnit);
            return (vec![self.stored(op)], Grain::Chunk);
        }
        let mut steps = self.early_steps();
        if self.free {
            steps.push(step(PageOp::Free(FreeMode::ByUnit)));
        }
        let grain = match (self.strategy, self.layout.kernel.free_order) {
            (Strategy::Block, _) | (_, FreeOrder::PerBlock) => Grain::Block,
            (_, FreeOrder::PerRange) => Grain::Range,
            (_, FreeOrder::PerNode) => Grain::Chunk,
        };
        (steps, grain)
    }

    /// How this kernel version zeroes inside `__init_single_page`. Versions that
    /// zero in memblock lend themselves to the comparison with the later form.
    fn inline_init(&self) -> PageOp {
        match self.layout.kernel.zero_style {
            ZeroStyle::MemsetCall => PageOp::MemsetFields,
            ZeroStyle::NineStores | ZeroStyle::ByMemblock => PageOp::NineStores,
        }
    }

    fn stored(&self, op: PageOp) -> Step {
        Step { op, store: self.store.map(str::to_owned) }
    }

    fn boot_phase(&self, name: PhaseName, work: impl Fn(&NodeLayout) -> Vec<Work>) -> Phase {
        let mut all: Vec<Work> = self.layout.nodes.iter().flat_map(work).collect();
        all.retain(|w| w.pages() > 0);
        Phase { name, executor: Executor::BootCpu, work: all }
    }

    fn boot_work(&self, nid: Nid, pages: &[PfnRange], steps: Vec<Step>) -> Work {
        let grain = Grain::Block;
        let spans = self.spans(nid, pages);
        Work { nid, spans, steps, grain, jobs: Vec::new(), chunk_pages: None }
    }

    /// One phase in which every node's threads do `steps` to its deferred pages.
    pub(super) fn node_phase(&self, name: PhaseName, steps: Vec<Step>, grain: Grain) -> Phase {
        let nodes = self.layout.nodes.iter().filter(|n| !n.deferred.is_empty());
        let work = nodes.map(|n| Work {
            nid: n.nid,
            spans: self.spans(n.nid, &n.deferred),
            steps: steps.clone(),
            grain,
            jobs: n.jobs.clone(),
            chunk_pages: None,
        });
        Phase { name, executor: Executor::NodeThreads, work: work.collect() }
    }

    fn spans(&self, nid: Nid, pages: &[PfnRange]) -> Vec<Span> {
        let zoned = self.layout.zoned(nid, pages);
        zoned.into_iter().map(|(pages, zone)| Span { pages, zone }).collect()
    }
}

/// An operation without a choice of store.
pub(super) fn step(op: PageOp) -> Step {
    Step { op, store: None }
}

/// What the boot CPU initialises on a node when initialisation is deferred.
pub fn early_pages(node: &NodeLayout) -> Vec<PfnRange> {
    let early = &node.early;
    pfn::normalise([early.sweep.clone(), early.reserved.clone(), early.holes.clone()].concat())
}

/// Every page of a node that has a struct page to initialise.
pub fn all_pages(node: &NodeLayout) -> Vec<PfnRange> {
    pfn::normalise([early_pages(node), node.deferred.clone()].concat())
}
