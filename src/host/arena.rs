//! The memory that stores write: large, aligned, on a node of one's choice.
//!
//! An [`Arena`] is mapped, bound to a node while it has no pages, then faulted in
//! by threads pinned to that node's CPUs. [`Residency`] tells afterwards what ended
//! up where, because a binding that was granted is not yet memory in the right place.

use super::error::HostError;
use super::line::{LINE_BYTES, Line};
use super::node_memory::node_available_bytes;
use super::topology::HostTopology;
use memmap2::{Advice, MmapMut, MmapOptions};
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The alignment of an arena: a huge page of x86-64 and of arm64 with 4 KiB pages.
const HUGE_BYTES: usize = 2 << 20;
/// A page of an upper directory entry, and the number of its address bits.
const GIGANTIC_BYTES: usize = 1 << GIGANTIC_BITS;
const GIGANTIC_BITS: u8 = 30;
/// What a thread faults in before it looks up: some 10 ms of work.
const SLICE_BYTES: usize = 64 << 20;
/// hwloc's page index wraps above 4 GiB, and it allocates 12 bytes for every page
/// that it is asked about: 3 MiB for this much.
const QUERY_BYTES: usize = 1 << 30;

/// Anonymous private memory in lines, aligned to 2 MiB, huge pages asked for.
///
/// ```text
///   mapping  |  pad  |  lines … up to a multiple of 2 MiB  |  pad  |
///                    ^ start, a multiple of 2 MiB
/// ```
///
/// The pads keep neighbouring arenas from merging into one entry of smaps.
#[derive(Debug)]
pub struct Arena {
    map: MmapMut,
    start: usize,
    padded_bytes: usize,
    lines: usize,
    /// Whether a page may exist, after which binding would come too late.
    touched: bool,
}

/// Where the pages of an arena are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residency {
    /// Bytes of the arena.
    pub bytes: u64,
    /// Those of them on the node asked about.
    pub on_node_bytes: u64,
}

impl Arena {
    /// Address space for `lines` lines; memory comes with the first touch.
    ///
    /// # Errors
    /// [`HostError::TooLarge`] and [`HostError::Map`].
    pub fn map(lines: usize) -> Result<Arena, HostError> {
        let padded_bytes = lines
            .checked_mul(LINE_BYTES)
            .and_then(|bytes| bytes.max(1).checked_next_multiple_of(HUGE_BYTES))
            .ok_or(HostError::TooLarge { lines })?;
        let bytes =
            padded_bytes.checked_add(2 * HUGE_BYTES).ok_or(HostError::TooLarge { lines })?;
        let map = MmapOptions::new()
            .len(bytes)
            .no_reserve_swap()
            .map_anon()
            .map_err(|source| HostError::Map { bytes, source })?;
        // From 1 byte to HUGE_BYTES, so that there is a pad on both sides.
        let start = HUGE_BYTES - map.as_ptr().addr() % HUGE_BYTES;
        // A kernel without huge pages says no; `huge_page_bytes` tells what came of it.
        map.advise_range(Advice::HugePage, start, padded_bytes).ok();
        Ok(Arena { map, start, padded_bytes, lines, touched: false })
    }

    /// One page of 1 GiB out of the kernel's pool of such pages, already there and all
    /// zero. It comes from the node of the calling thread where that has one.
    ///
    /// # Errors
    /// [`HostError::Map`] where the pool has no free one, as a rule.
    pub fn map_gigantic() -> Result<Arena, HostError> {
        let error = |source| HostError::Map { bytes: GIGANTIC_BYTES, source };
        let map = MmapOptions::new()
            .len(GIGANTIC_BYTES)
            .huge(Some(GIGANTIC_BITS))
            .map_anon()
            .map_err(error)?;
        // A control group without room for it ends a process at its first touch, but
        // refuses this call. Kernels before 5.14 do not know it.
        match map.advise(Advice::PopulateWrite) {
            Err(why) if why.raw_os_error() != Some(libc::EINVAL) => return Err(error(why)),
            _ => {}
        }
        let lines = GIGANTIC_BYTES / LINE_BYTES;
        Ok(Arena { map, start: 0, padded_bytes: GIGANTIC_BYTES, lines, touched: true })
    }

    /// Address space for `lines` lines whose memory will come from node `nid` alone, where
    /// the kernel permits binding.
    ///
    /// # Errors
    /// As [`Arena::map`] and [`Arena::bind`], other than [`HostError::BindRefused`].
    pub fn map_on(topo: &HostTopology, lines: usize, nid: u32) -> Result<Arena, HostError> {
        let mut arena = Arena::map(lines)?;
        match arena.bind(topo, nid) {
            Ok(()) | Err(HostError::BindRefused { .. }) => Ok(arena),
            Err(other) => Err(other),
        }
    }

    /// Makes all pages come from node `nid` alone. Only before the first touch: that
    /// is, before [`Arena::lines_mut`] and [`Arena::fault_in`].
    ///
    /// # Errors
    /// [`HostError::BindRefused`] where the kernel does not permit it (one may go on
    /// without), [`HostError::NoSuchNode`], [`HostError::NodeNotAllowed`],
    /// [`HostError::NodeFull`], [`HostError::BindTooLate`], [`HostError::Bind`].
    pub fn bind(&mut self, topo: &HostTopology, nid: u32) -> Result<(), HostError> {
        topo.check_node(nid)?;
        if self.touched {
            return Err(HostError::BindTooLate { nid });
        }
        let needed_bytes = self.padded_bytes as u64;
        match node_available_bytes(Path::new("/"), nid) {
            Some(free_bytes) if needed_bytes > free_bytes => {
                return Err(HostError::NodeFull { nid, needed_bytes, free_bytes });
            }
            _ => {}
        }
        let area = self.map.get(self.start..self.start + self.padded_bytes).unwrap_or_default();
        topo.bind_area(area, nid)
    }

    /// Touches every page, in slices of 64 MiB, from one thread pinned to each of
    /// `cpus`. Calls `done(bytes)` after each slice, from any of these threads, and
    /// asks `stop` before each. The first word of every page becomes 0.
    ///
    /// The kernel ends the process when memory does not suffice: ask
    /// [`MemoryBudget`](super::budget::MemoryBudget) first, and where several arenas are
    /// bound to one node, [`node_available_bytes`] for their sum.
    ///
    /// # Errors
    /// [`HostError::Interrupted`], [`HostError::NoCpus`], [`HostError::Thread`], and
    /// what [`HostTopology::pin_thread`] says.
    pub fn fault_in(
        &mut self,
        topo: &HostTopology,
        cpus: &[u32],
        done: &(dyn Fn(u64) + Sync),
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), HostError> {
        if cpus.is_empty() {
            return Err(HostError::NoCpus);
        }
        let page_lines = page_bytes() / LINE_BYTES;
        let slices = Mutex::new(self.lines_mut().chunks_mut(SLICE_BYTES / LINE_BYTES));
        let work = |cpu: u32| -> Result<(), HostError> {
            topo.pin_thread(cpu)?;
            loop {
                if stop() {
                    return Err(HostError::Interrupted);
                }
                let slice = slices.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some(slice) = slice else { return Ok(()) };
                slice.iter_mut().step_by(page_lines).for_each(|line| line.set_word::<0>(0));
                done(size_of_val(slice) as u64);
            }
        };
        on_each(cpus, &work)
    }

    /// All lines, for reading; untouched ones are zero.
    pub fn lines(&self) -> &[Line] {
        let first: *const Line = self.map.as_ptr().wrapping_add(self.start).cast();
        // SAFETY: `start` is a multiple of 64 from the address space's zero, and
        // `lines * 64 <= padded_bytes` bytes from it lie in the mapping, which is
        // readable and initialised (zero pages) and which `self` borrows.
        unsafe { std::slice::from_raw_parts(first, self.lines) }
    }

    /// All lines, for writing. Binding is no longer possible after this.
    pub fn lines_mut(&mut self) -> &mut [Line] {
        self.touched = true;
        let first: *mut Line = self.map.as_mut_ptr().wrapping_add(self.start).cast();
        // SAFETY: as in `lines`; `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(first, self.lines) }
    }

    /// How much of the arena is on node `nid`. A slice of pages that has only some
    /// pages yet counts as if it had all: ask after [`Arena::fault_in`].
    ///
    /// Takes about 20 ms per GiB, and several times as long where nodes alternate.
    ///
    /// # Errors
    /// [`HostError::LocateRefused`] where the kernel does not permit it (one may go
    /// on without), [`HostError::NoSuchNode`], [`HostError::Locate`].
    pub fn residency(&self, topo: &HostTopology, nid: u32) -> Result<Residency, HostError> {
        topo.check_node(nid)?;
        let bytes = self.lines * LINE_BYTES;
        let area = self.map.get(self.start..self.start + bytes).unwrap_or_default();
        let mut locate = |range: Range<usize>| -> Result<Location, HostError> {
            let part = area.get(range).unwrap_or_default();
            let (here, elsewhere) = topo.locate(part, nid)?;
            Ok(Location { here, elsewhere })
        };
        let mut on_node_bytes = 0;
        for start in (0..bytes).step_by(QUERY_BYTES) {
            let range = start..bytes.min(start.saturating_add(QUERY_BYTES));
            on_node_bytes += bytes_here(range, page_bytes(), &mut locate)?;
        }
        Ok(Residency { bytes: bytes as u64, on_node_bytes })
    }

    /// Bytes of the arena that are on transparent huge pages, or `None` where
    /// /proc/self/smaps cannot be read.
    pub fn huge_page_bytes(&self) -> Option<u64> {
        let start = self.map.as_ptr().addr() + self.start;
        let smaps = std::fs::read_to_string("/proc/self/smaps").ok()?;
        Some(huge_bytes_within(&smaps, start..start + self.padded_bytes))
    }
}

/// Where the pages of some range are.
#[derive(Clone, Copy)]
struct Location {
    here: bool,
    elsewhere: bool,
}

/// Bytes of `range` that are here, by halving every part that is on several nodes.
/// Only what was touched by several nodes is ever looked at page by page.
fn bytes_here(
    range: Range<usize>,
    page_bytes: usize,
    locate: &mut impl FnMut(Range<usize>) -> Result<Location, HostError>,
) -> Result<u64, HostError> {
    let location = locate(range.clone())?;
    let length = range.len();
    if !location.here {
        return Ok(0);
    }
    if !location.elsewhere || length <= page_bytes {
        return Ok(length as u64);
    }
    let middle = range.start + (length / 2).next_multiple_of(page_bytes);
    let low = bytes_here(range.start..middle, page_bytes, locate)?;
    Ok(low
        + if middle < range.end { bytes_here(middle..range.end, page_bytes, locate)? } else { 0 })
}

/// Runs `work` on a thread for each CPU; the first error, after all have ended. An
/// interruption counts least: it may be the consequence of another error.
fn on_each(
    cpus: &[u32],
    work: &(dyn Fn(u32) -> Result<(), HostError> + Sync),
) -> Result<(), HostError> {
    std::thread::scope(|scope| {
        let spawn = |&cpu: &u32| std::thread::Builder::new().spawn_scoped(scope, move || work(cpu));
        let threads: Vec<_> = cpus.iter().map(spawn).collect();
        let mut result = Ok(());
        for thread in threads {
            let ended = match thread.map_err(HostError::Thread) {
                Ok(thread) => {
                    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                }
                Err(error) => Err(error),
            };
            if matches!(result, Ok(()) | Err(HostError::Interrupted)) && ended.is_err() {
                result = ended;
            }
        }
        result
    })
}

/// The size of a base page of this kernel, at least one line.
pub(super) fn page_bytes() -> usize {
    // SAFETY: only asks for a number.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096).max(LINE_BYTES)
}

/// Sums `AnonHugePages` over the mappings of an smaps text that lie in `range`.
fn huge_bytes_within(smaps: &str, range: Range<usize>) -> u64 {
    let mut inside = false;
    let mut kib = 0u64;
    for line in smaps.lines() {
        if let Some(value) = line.strip_prefix("AnonHugePages:") {
            let value = value.trim().trim_end_matches("kB").trim().parse().unwrap_or(0);
            kib = kib.saturating_add(if inside { value } else { 0 });
        } else if let Some(mapping) = address_range(line) {
            inside = range.start <= mapping.start && mapping.end <= range.end;
        }
    }
    kib.saturating_mul(1024)
}

/// The range at the start of a mapping's first line, `7f00-7f80 rw-p …`.
fn address_range(line: &str) -> Option<Range<usize>> {
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    Some(usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?)
}

#[cfg(all(test, feature = "hwloc"))]
#[path = "arena_tests.rs"]
mod tests;
