//! Who does what when at boot: [`BootPlan`], and the strategies that make one.
//!
//! A plan is data. Its phases follow each other as at boot; each is done by the
//! boot CPU or by the threads of every node at once, and says for each node which
//! pages get which [`PageOp`]s in which chunks. [`strategies`] turns a
//! [`crate::kernel::Layout`] into a plan, [`window`] cuts a layout down to what a
//! buffer can hold. `exec` runs a plan for real; a model can run it in virtual time.

pub mod probes;
pub mod strategies;
pub mod window;

use crate::kernel::layout::ZoneKind;
use crate::kernel::padata::InitJob;
use crate::kernel::struct_page::PageFormat;
use crate::kernel::version::KernelVersion;
use crate::pfn::{Nid, PfnRange};
use serde::{Deserialize, Serialize};
use std::fmt;

pub use strategies::Strategy;

/// Everything that is done to the memmap of one machine, in boot order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BootPlan {
    /// The strategy's name, or a probe's.
    pub strategy: String,
    /// The machine's name.
    pub machine: String,
    /// The kernel whose rules hold.
    pub kernel: KernelVersion,
    /// Whether pages are handed to the buddy allocator.
    pub free: bool,
    /// How a struct page looks.
    pub format: PageFormat,
    /// How pages are freed.
    pub freeing: Freeing,
    /// The phases, one after another.
    pub phases: Vec<Phase>,
}

/// The constants of the free pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Freeing {
    /// Pages of the largest buddy block.
    pub max_order_pages: u64,
    /// Pages that a deferred worker frees as one block.
    pub unit_pages: u64,
    /// Whether freeing visits every page of a block a second time to check it.
    pub checks_tail_pages: bool,
}

/// Work that must be finished before the next phase begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// What the phase is called.
    pub name: PhaseName,
    /// Who does it.
    pub executor: Executor,
    /// The work, node by node; the boot CPU does it in this order.
    pub work: Vec<Work>,
}

/// The phases that strategies are made of, in boot order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseName {
    /// memblock zeroes what it hands out for the memmap.
    MemblockZero,
    /// The memmap of early pages is zeroed when it is mapped.
    SetupZero,
    /// The boot CPU initialises its pages.
    EarlyInit,
    /// The boot CPU frees its pages (`memblock_free_all`).
    EarlyFree,
    /// The nodes' threads zero in a pass of its own.
    DeferredZero,
    /// The nodes' threads initialise and free.
    DeferredInit,
}

/// Who does a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Executor {
    /// The boot CPU alone.
    BootCpu,
    /// The threads of each node, all nodes at the same time.
    NodeThreads,
}

/// The work of one phase on the pages of one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// The node whose struct pages these are.
    pub nid: Nid,
    /// The pages, ascending.
    pub spans: Vec<Span>,
    /// What is done to them, in this order.
    pub steps: Vec<Step>,
    /// How much one step covers before the next begins.
    pub grain: Grain,
    /// How the pages are handed out to threads; empty for the boot CPU.
    pub jobs: Vec<InitJob>,
    /// Pages of a chunk where the user overrides padata's rule.
    pub chunk_pages: Option<u64>,
}

/// Pages of one zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The pages.
    pub pages: PfnRange,
    /// Their zone.
    pub zone: ZoneKind,
}

/// One operation, and the store it is done with where that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The operation.
    pub op: PageOp,
    /// The name of a store kernel.
    pub store: Option<String>,
}

/// What is done to each struct page of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PageOp {
    /// Set all 64 bytes to zero.
    Zero,
    /// Write the fields of `__init_single_page` (32 bytes) over zeroes.
    Fields,
    /// Call memset for the page, then write the fields (4.15–5.1).
    MemsetFields,
    /// Write every word once with nine stores (5.2 on).
    NineStores,
    /// Eight zero stores for the page, then the fields: nothing merged.
    ZeroLineFields,
    /// Store the finished image whole.
    Compose,
    /// Store the image as it is after freeing, and link block heads.
    ComposeFreed(FreeMode),
    /// Set `PG_reserved`.
    MarkReserved,
    /// Free to the buddy allocator and link block heads.
    Free(FreeMode),
}

/// How a range is cut into blocks when it is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FreeMode {
    /// Greedily into the largest blocks (`memblock_free_all`).
    AtBoot,
    /// Whole units as one block, ragged ends page by page (`deferred_free_pages`).
    ByUnit,
}

/// How much one step covers before the next step follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grain {
    /// A block of the largest buddy order.
    Block,
    /// A contiguous range within a chunk.
    Range,
    /// All pages of a chunk.
    Chunk,
}

impl Work {
    /// The struct pages that this work covers.
    pub fn pages(&self) -> u64 {
        self.spans.iter().map(|s| s.pages.pages()).sum()
    }

    /// The threads that its jobs would use at most; 1 for the boot CPU.
    pub fn threads(&self) -> u32 {
        self.jobs.iter().map(InitJob::workers).max().unwrap_or(1)
    }
}

impl Phase {
    /// The struct pages covered. Marking reserved ones visits pages a second time
    /// that were initialised in the same phase, so it does not count.
    pub fn pages(&self) -> u64 {
        self.counted().map(Work::pages).sum()
    }

    /// The struct pages of one node.
    pub fn pages_of(&self, nid: Nid) -> u64 {
        self.counted().filter(|w| w.nid == nid).map(Work::pages).sum()
    }

    fn counted(&self) -> impl Iterator<Item = &Work> {
        let marks_only = |w: &Work| w.steps.iter().all(|s| s.op == PageOp::MarkReserved);
        self.work.iter().filter(move |w| !marks_only(w))
    }
}

impl BootPlan {
    /// The stores that the plan uses, each once, in order of first use.
    pub fn stores(&self) -> Vec<&str> {
        let works = self.phases.iter().flat_map(|p| &p.work);
        let mut names: Vec<&str> = Vec::new();
        for name in works.flat_map(|w| &w.steps).filter_map(|s| s.store.as_deref()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

impl fmt::Display for PhaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MemblockZero => "memblock-zero",
            Self::SetupZero => "setup-zero",
            Self::EarlyInit => "early-init",
            Self::EarlyFree => "early-free",
            Self::DeferredZero => "deferred-zero",
            Self::DeferredInit => "deferred-init",
        })
    }
}
