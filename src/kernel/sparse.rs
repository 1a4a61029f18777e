//! `sparse_init`: section tables, usage maps and the memmap itself.
//!
//! [`sparse_init`] asks a [`Memblock`] for everything that Linux asks for, in its
//! order, and returns a [`SparseOutcome`]: the [`Requests`] with their answers, what was
//! given back, and where each piece of the memmap lies. The order by version
//! (`mm/sparse.c`): section roots; then per run of sections a usage map, a buffer
//! (4.19–7.1), and page tables and pieces as `vmemmap_populate` needs them. Up to 4.18
//! all usage maps come first. Rules are in [`super::sparse_rules`]. Not modelled:
//! sections below gigantic pages that HugeTLB prepares itself (6.15 on, when its
//! vmemmap optimisation is on).

mod populate;
mod requests;
mod sections;

pub use requests::{FreeRecord, MemmapRun, Request, RequestRun, Requests, Succession};
pub use sections::{SectionRun, present_sections};

use super::layout::Backing;
use super::memblock::{AllocRequest, ArrayFull, Memblock};
use super::sparse_rules::{BufferRule, ReleaseRules};
use crate::pfn::{Nid, PhysRange};
use std::collections::BTreeMap;

/// What `sparse_init` did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SparseOutcome {
    /// Every call of memblock's allocation functions, in order.
    pub requests: Requests,
    /// What was given back.
    pub frees: Vec<FreeRecord>,
    /// Where the memmap lies, ascending by section.
    pub memmap: Vec<MemmapRun>,
    /// Present sections with their owner.
    pub sections: Vec<SectionRun>,
}

/// Why `sparse_init` could not finish. Linux panics, or drops the sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SparseError {
    /// No memory for something that `sparse_init` needs.
    #[error("no room for {bytes} bytes of {what}: the machine is too small to hold its own memmap")]
    NoRoom {
        /// What was to be allocated.
        what: &'static str,
        /// How many bytes.
        bytes: u64,
    },
    /// memblock could not keep track of a reservation.
    #[error(transparent)]
    ArrayFull(#[from] ArrayFull),
}

/// Runs `sparse_init` on `memblock`. `pgdat` says where each node's `pglist_data` lies;
/// for a node it does not name, the last byte of the node is taken.
///
/// # Errors
/// When something does not fit.
pub fn sparse_init(
    memblock: &mut Memblock,
    rules: &ReleaseRules,
    pgdat: &BTreeMap<Nid, u64>,
) -> Result<SparseOutcome, SparseError> {
    sparse_init_in(true, memblock, rules, pgdat)
}

/// [`sparse_init`] with equal steps done at once, or each by itself: the same outcome.
pub(super) fn sparse_init_in(
    in_runs: bool,
    memblock: &mut Memblock,
    rules: &ReleaseRules,
    pgdat: &BTreeMap<Nid, u64>,
) -> Result<SparseOutcome, SparseError> {
    let sections = present_sections(memblock.memory(), rules);
    let min_addr = rules.memmap_min_addr(memblock.memory().first_byte().unwrap_or(0));
    let mut run = SparseInit {
        memblock,
        rules,
        pgdat,
        min_addr,
        requests: Requests::default(),
        frees: Vec::new(),
        memmap: Vec::new(),
        buffer: None,
        tables: vec![None; rules.tables.len()],
        populated_end: None,
        list_entries_left: 0,
        in_runs,
    };
    run.section_roots(&sections)?;
    let batches = sections::batches(&sections);
    if rules.has_batch_arrays() {
        run.all_usage_maps_first(&batches)?;
    } else {
        for batch in &batches {
            run.usage_map(batch)?;
            run.batch(batch)?;
        }
    }
    Ok(SparseOutcome { requests: run.requests, frees: run.frees, memmap: run.memmap, sections })
}

/// The state of a running `sparse_init`.
struct SparseInit<'a> {
    memblock: &'a mut Memblock,
    rules: &'a ReleaseRules,
    pgdat: &'a BTreeMap<Nid, u64>,
    /// `__pa(MAX_DMA_ADDRESS)`.
    min_addr: u64,
    requests: Requests,
    frees: Vec<FreeRecord>,
    memmap: Vec<MemmapRun>,
    /// The unused rest of the current buffer.
    buffer: Option<PhysRange>,
    /// Per level the number of the table that exists; ascending, so the last is enough.
    tables: Vec<Option<u64>>,
    /// The virtual address up to which the memmap is mapped.
    populated_end: Option<u64>,
    /// ppc64 hash: entries left in the current page of the list of blocks.
    list_entries_left: u64,
    /// Whether equal steps may be done at once.
    in_runs: bool,
}

/// Consecutive present sections of one owner; absent ones in between do not count.
struct Batch<'a> {
    nid: Nid,
    runs: &'a [SectionRun],
    sections: u64,
}

impl SparseInit<'_> {
    fn ask(
        &mut self,
        request: AllocRequest,
        call: &'static str,
        caller: &'static str,
    ) -> Option<u64> {
        let start = self.memblock.alloc(&request);
        self.requests.push(Request {
            call,
            bytes: request.bytes,
            align: request.align,
            nid: request.nid,
            min_addr: request.min_addr,
            max_addr: request.max_addr,
            caller,
            start,
        });
        start
    }

    /// `memblock_alloc` and `memblock_alloc_node`: zeroed, cache line aligned.
    fn ask_zeroed(
        &mut self,
        bytes: u64,
        nid: Option<Nid>,
        caller: &'static str,
    ) -> Result<u64, SparseError> {
        let request = AllocRequest {
            bytes,
            align: self.rules.memblock.smp_cache_bytes,
            min_addr: 0,
            max_addr: 0,
            nid,
            exact_nid: false,
        };
        let start = self.ask(request, "alloc_try_nid", caller);
        start.ok_or(SparseError::NoRoom { what: caller, bytes })
    }

    fn give_back(&mut self, range: PhysRange) -> Result<(), SparseError> {
        if range.is_empty() {
            return Ok(());
        }
        let after = self.requests.len();
        self.frees.push(FreeRecord { after, start: range.start, end: range.end });
        Ok(self.memblock.free(range)?)
    }

    /// `memory_present` and `sparse_index_alloc`: both levels of the section table.
    fn section_roots(&mut self, sections: &[SectionRun]) -> Result<(), SparseError> {
        let rules = self.rules;
        let per_root = (rules.page_bytes / rules.mem_section_bytes.max(1)).max(1);
        if rules.root_array_is_allocated {
            let sections = 1u64 << rules.physmem_bits.saturating_sub(rules.section_bits);
            self.ask_zeroed(sections.div_ceil(per_root) * 8, None, rules.callers.root)?;
        }
        let mut next_root = 0;
        for run in sections {
            let first = (run.start / per_root).max(next_root);
            next_root = (run.end - 1) / per_root + 1;
            for _ in first..next_root {
                let bytes = per_root * rules.mem_section_bytes;
                self.ask_zeroed(bytes, Some(run.nid), "sparse_index_alloc")?;
            }
        }
        Ok(())
    }

    /// `sparse_early_usemaps_alloc_pgdat_section`: one block for a batch.
    fn usage_map(&mut self, batch: &Batch) -> Result<(), SparseError> {
        let bytes = batch.sections * self.rules.usage_bytes;
        let caller = self.rules.callers.usage;
        if !self.rules.usage_near_pgdat {
            self.ask_zeroed(bytes, Some(batch.nid), caller)?;
            return Ok(());
        }
        let section = self.rules.section_bytes();
        let pgdat = self.pgdat_of(batch.nid);
        let goal = pgdat - pgdat % section;
        let request = AllocRequest {
            bytes,
            align: self.rules.memblock.smp_cache_bytes,
            min_addr: goal,
            max_addr: goal + section,
            // early_pfn_to_nid: the node at the section's start, the first in a hole.
            nid: Some(self.memblock.nid_of(goal).unwrap_or_default()),
            exact_nid: false,
        };
        let anywhere = AllocRequest { max_addr: 0, ..request };
        self.ask(request, "alloc_try_nid", caller)
            .or_else(|| self.ask(anywhere, "alloc_try_nid", caller))
            .map(|_| ())
            .ok_or(SparseError::NoRoom { what: "usage maps", bytes })
    }

    fn pgdat_of(&self, nid: Nid) -> u64 {
        let top = || {
            let regions = self.memblock.memory().iter().rev();
            regions.filter(|r| r.nid == Some(nid)).map(|r| r.end - 1).next()
        };
        self.pgdat.get(&nid).copied().or_else(top).unwrap_or(0)
    }

    /// `sparse_init_nid` without its usage map.
    fn batch(&mut self, batch: &Batch) -> Result<(), SparseError> {
        self.open_buffer(batch);
        for run in batch.runs {
            self.populate_run(run, batch.nid)?;
        }
        match self.buffer.take() {
            Some(rest) => self.give_back(rest),
            None => Ok(()),
        }
    }

    /// `sparse_buffer_init`, up to 4.18 the start of `sparse_mem_maps_populate_node`.
    fn open_buffer(&mut self, batch: &Batch) {
        let section = self.rules.section_map_size();
        let (align, exact) = match self.rules.buffer {
            BufferRule::None => return,
            BufferRule::PerRun => (self.rules.pmd_bytes, false),
            BufferRule::SparseBuffer { exact: true, .. } => (section, true),
            BufferRule::SparseBuffer { exact: false, .. } => (self.rules.page_bytes, false),
        };
        let request = AllocRequest {
            bytes: batch.sections.saturating_mul(section),
            align,
            min_addr: self.min_addr,
            max_addr: self.rules.memmap_max_addr,
            nid: Some(batch.nid),
            exact_nid: exact,
        };
        let call = if exact { "alloc_exact_nid_raw" } else { self.rules.memmap_call() };
        let start = self.ask(request, call, self.rules.callers.buffer);
        self.buffer = start.map(|s| PhysRange::new(s, s + request.bytes));
    }

    /// Up to 4.18: two temporary arrays of pointers, one per possible section, and all
    /// usage maps before the first memmap.
    fn all_usage_maps_first(&mut self, batches: &[Batch]) -> Result<(), SparseError> {
        let sections = 1u64 << self.rules.physmem_bits.saturating_sub(self.rules.section_bits);
        let bytes = sections * 8;
        let usage = self.ask_zeroed(bytes, None, "sparse_init")?;
        for batch in batches {
            self.usage_map(batch)?;
        }
        let maps = match self.rules.buffer {
            BufferRule::PerRun => Some(self.ask_zeroed(bytes, None, "sparse_init")?),
            _ => None,
        };
        for batch in batches {
            self.batch(batch)?;
        }
        for array in maps.into_iter().chain([usage]) {
            self.give_back(PhysRange::new(array, array + bytes))?;
        }
        Ok(())
    }
}

impl ReleaseRules {
    /// Up to 4.18 `sparse_init` keeps temporary arrays of all sections.
    fn has_batch_arrays(&self) -> bool {
        !super::sparse_rules::since(self.version, 4, 19)
    }

    /// Up to 4.14 memblock zeroes the memmap; later nobody does, at this point.
    fn memmap_call(&self) -> &'static str {
        if super::sparse_rules::since(self.version, 4, 15) {
            "alloc_try_nid_raw"
        } else {
            "alloc_try_nid"
        }
    }
}
