//! The JSON of a layout, streamed: nothing is built up, whatever its length.
//!
//! [`Body`] holds references and writes the lists item by item. Lists of single items
//! come from runs that are spread out while they are written; `compact` writes the runs
//! themselves, with `count` and `step`.

use super::LayoutView;
use crate::kernel::config::KernelConfig;
use crate::kernel::layout::{NodeLayout, ZoneSpan};
use crate::kernel::memblock::Region;
use crate::kernel::padata::{InitJob, chunks};
use crate::kernel::place::MemblockDump;
use crate::kernel::sparse::{FreeRecord, MemmapRun, Request, RequestRun, Succession};
use crate::kernel::version::KernelModel;
use crate::machine::Arch;
use crate::pfn::{PfnRange, total_pages};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// What follows the head of the document.
#[derive(Debug, serde::Serialize)]
pub struct Body<'a> {
    machine: &'a str,
    arch: Arch,
    page_bytes: u64,
    struct_page_bytes: u64,
    pages_per_section: u64,
    vmemmap_base: u64,
    kernel: &'a KernelModel,
    config: &'a KernelConfig,
    notes: &'a [String],
    memblock: Memblock<'a>,
    sparse_init: Listed<'a>,
    sparse_init_frees: &'a [FreeRecord],
    memmap: Extents<'a>,
    zones: &'a [ZoneSpan],
    nodes: Nodes<'a>,
}

#[derive(Debug, serde::Serialize)]
struct Memblock<'a> {
    before: Dump<'a>,
    after: Dump<'a>,
}

#[derive(Debug, serde::Serialize)]
struct Dump<'a> {
    memory: &'a [Region],
    reserved: &'a [Region],
}

impl<'a> Dump<'a> {
    fn of(dump: &'a MemblockDump) -> Self {
        Self { memory: &dump.memory, reserved: &dump.reserved }
    }
}

/// The body of `view`; `compact` joins runs.
pub fn body<'a>(view: &LayoutView<'a>, compact: bool) -> Body<'a> {
    let (layout, placement) = (view.layout, view.placement);
    Body {
        machine: &layout.machine,
        arch: layout.arch,
        page_bytes: layout.page_bytes,
        struct_page_bytes: view.input.rules.struct_page_bytes,
        pages_per_section: layout.pages_per_section,
        vmemmap_base: view.input.rules.vmemmap_base,
        kernel: &layout.kernel,
        config: &layout.kernel.config,
        notes: view.notes,
        memblock: Memblock {
            before: Dump::of(&placement.before),
            after: Dump::of(&placement.after),
        },
        sparse_init: Listed { runs: placement.requests.runs(), compact },
        sparse_init_frees: &placement.frees,
        memmap: Extents {
            runs: &placement.memmap,
            section_bytes: view.input.rules.section_memmap_bytes().max(1),
            compact,
        },
        zones: &layout.zones,
        nodes: Nodes { nodes: &layout.nodes, compact },
    }
}

/// Requests of `sparse_init`.
#[derive(Debug)]
struct Listed<'a> {
    runs: &'a [RequestRun],
    compact: bool,
}

impl Serialize for Listed<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.compact {
            let items = self.runs.iter().map(|run| RequestItem::of(run.first, run));
            return to.collect_seq(items);
        }
        let single = |request| RequestItem { request, count: 1, step: 0 };
        to.collect_seq(self.runs.iter().flat_map(RequestRun::iter).map(single))
    }
}

/// One request, or a run of them, in the form of `fixtures/boots`.
struct RequestItem {
    request: Request,
    count: u64,
    step: i64,
}

impl RequestItem {
    fn of(request: Request, run: &RequestRun) -> Self {
        Self { request, count: run.count, step: run.step }
    }
}

impl Serialize for RequestItem {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let r = &self.request;
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("call", r.call)?;
        map.serialize_entry("bytes", &r.bytes)?;
        map.serialize_entry("align", &r.align)?;
        // As in captured boots, -1 is any node.
        map.serialize_entry("nid", &r.nid.map_or(-1, |nid| i64::from(nid.0)))?;
        map.serialize_entry("min_addr", &r.min_addr)?;
        map.serialize_entry("max_addr", &r.max_addr)?;
        map.serialize_entry("caller", r.caller)?;
        map.serialize_entry("start", &r.start)?;
        map.serialize_entry("end", &r.start.map(|start| start.saturating_add(r.bytes)))?;
        if self.count > 1 {
            map.serialize_entry("count", &self.count)?;
            map.serialize_entry("step", &self.step)?;
        }
        map.end()
    }
}

/// The memmap's extents, one per section, or per run.
#[derive(Debug)]
struct Extents<'a> {
    runs: &'a [MemmapRun],
    section_bytes: u64,
    compact: bool,
}

impl Serialize for Extents<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.compact {
            let item = |run: &MemmapRun| self.item(run, (run.map_start, run.map_end), true);
            return to.collect_seq(self.runs.iter().map(item));
        }
        to.collect_seq(self.runs.iter().flat_map(|run| {
            let first = run.map_start / self.section_bytes;
            let end = run.map_end.div_ceil(self.section_bytes);
            (first..end).map(move |section| {
                let start = (section * self.section_bytes).max(run.map_start);
                let end = ((section + 1) * self.section_bytes).min(run.map_end);
                self.item(run, (start, end), false)
            })
        }))
    }
}

#[derive(serde::Serialize)]
struct ExtentItem {
    section_start: u64,
    section_end: u64,
    nid: u32,
    on_nid: u32,
    backing: crate::kernel::layout::Backing,
    start: u64,
    end: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    piece_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    succession: Option<Succession>,
}

impl Extents<'_> {
    /// The bytes `part` of the memmap, all in `run`.
    fn item(&self, run: &MemmapRun, part: (u64, u64), whole_run: bool) -> ExtentItem {
        let (start, end) = physical(run, part);
        ExtentItem {
            section_start: part.0 / self.section_bytes,
            section_end: part.1.div_ceil(self.section_bytes),
            nid: run.nid.0,
            on_nid: run.on_nid.0,
            backing: run.backing,
            start,
            end,
            piece_bytes: whole_run.then_some(run.piece_bytes),
            succession: whole_run.then_some(run.succession),
        }
    }
}

/// Where the part of a run lies. Parts of a piece ascend even in a descending run.
fn physical(run: &MemmapRun, (start, end): (u64, u64)) -> (u64, u64) {
    let at = |offset: u64| run.address_of(offset).unwrap_or(run.start);
    let piece = run.piece_bytes.max(1);
    // The first and the last piece that the part touches, as far as it touches them.
    let first_end = (start - (start - run.map_start) % piece + piece).min(end);
    let last_start = (end - 1 - (end - 1 - run.map_start) % piece).max(start);
    let low = at(start).min(at(last_start));
    let high = at(first_end - 1).max(at(end - 1)) + 1;
    (low, high)
}

/// Nodes with their work.
#[derive(Debug)]
struct Nodes<'a> {
    nodes: &'a [NodeLayout],
    compact: bool,
}

impl Serialize for Nodes<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.nodes.iter().map(|node| NodeItem { node, compact: self.compact }))
    }
}

struct NodeItem<'a> {
    node: &'a NodeLayout,
    compact: bool,
}

#[derive(serde::Serialize)]
struct EarlyCounts {
    sweep: u64,
    reserved: u64,
    holes: u64,
}

impl Serialize for NodeItem<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let node = self.node;
        let early = EarlyCounts {
            sweep: total_pages(&node.early.sweep),
            reserved: total_pages(&node.early.reserved),
            holes: total_pages(&node.early.holes),
        };
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("nid", &node.nid)?;
        map.serialize_entry("cpus", &node.cpus)?;
        map.serialize_entry("first_deferred_pfn", &node.first_deferred_pfn)?;
        map.serialize_entry("early", &early)?;
        map.serialize_entry("deferred_pages", &total_pages(&node.deferred))?;
        map.serialize_entry("threads", &node.max_threads)?;
        map.serialize_entry("jobs", &Jobs { jobs: &node.jobs, compact: self.compact })?;
        if !self.compact {
            map.serialize_entry("early_ranges", &EarlyRanges(node))?;
            map.serialize_entry("deferred_ranges", &Ranges(&node.deferred))?;
        }
        map.end()
    }
}

struct EarlyRanges<'a>(&'a NodeLayout);

impl Serialize for EarlyRanges<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let early = &self.0.early;
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("sweep", &Ranges(&early.sweep))?;
        map.serialize_entry("reserved", &Ranges(&early.reserved))?;
        map.serialize_entry("holes", &Ranges(&early.holes))?;
        map.end()
    }
}

/// Page frames as `start` and `end`.
struct Ranges<'a>(&'a [PfnRange]);

impl Serialize for Ranges<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0)
    }
}

struct Jobs<'a> {
    jobs: &'a [InitJob],
    compact: bool,
}

impl Serialize for Jobs<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.jobs.iter().map(|job| JobItem { job, compact: self.compact }))
    }
}

struct JobItem<'a> {
    job: &'a InitJob,
    compact: bool,
}

struct ChunkStarts<'a>(&'a InitJob);

impl Serialize for ChunkStarts<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(chunks(self.0).map(|chunk| chunk.start))
    }
}

impl Serialize for JobItem<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let job = self.job;
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("start_pfn", &job.start)?;
        map.serialize_entry("pages", &job.size)?;
        map.serialize_entry("workers", &job.workers())?;
        map.serialize_entry("chunk_pages", &job.chunk_pages())?;
        map.serialize_entry("chunks", &chunks(job).count())?;
        if !self.compact {
            map.serialize_entry("chunk_starts", &ChunkStarts(job))?;
        }
        map.end()
    }
}
