//! What `memblock=debug` prints: the state of memblock, and `sparse_init`'s calls.
//!
//! [`Memblock`] follows the debug lines of `mm/memblock.c` (v6.12). It keeps the
//! dumps around `sparse_init`, the reservations in order and the calls of
//! `sparse_init` with their answers, so that the layout of that boot is known
//! exactly. Filled through [`super::parse`].

use super::boot::MAX_ITEMS;
use super::parse::{hex, number, range};
use crate::pfn::{Nid, PfnRange, PhysRange, normalise, subtract};

/// Operations that are kept; a machine of 256 nodes prints some ten thousand.
const MAX_OPS: usize = 20 * MAX_ITEMS;

/// A region of memblock's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRegion {
    /// The bytes.
    pub range: PhysRange,
    /// The node, where memblock knew it.
    pub nid: Option<Nid>,
    /// memblock's flags.
    pub flags: u64,
    /// The line.
    pub line: u64,
}

/// A call of a memblock allocation function within `sparse_init`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedAllocation {
    /// The function without `memblock_`, for example `alloc_exact_nid_raw`.
    pub call: String,
    /// Bytes asked for.
    pub bytes: u64,
    /// Alignment in bytes.
    pub align: u64,
    /// The node asked for; `None` for any.
    pub nid: Option<Nid>,
    /// The lowest address wanted.
    pub min_addr: u64,
    /// The limit; 0 and 1 mean the current limit.
    pub max_addr: u64,
    /// The function that asked.
    pub caller: String,
    /// What was given; `None` when the attempt failed.
    pub given: Option<PhysRange>,
    /// The line of the call.
    pub line: u64,
}

/// Memory that `sparse_init` gave back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedFree {
    /// How many allocations were made before.
    pub after: usize,
    /// The bytes.
    pub range: PhysRange,
    /// The line.
    pub line: u64,
}

/// The debug lines of one boot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memblock {
    /// `sparse_init`'s calls in order.
    pub allocations: Vec<LoggedAllocation>,
    /// What it gave back.
    pub frees: Vec<LoggedFree>,
    ops: Vec<(PhysRange, bool)>,
    before: Option<Dump>,
    after: Option<Dump>,
    phase: Phase,
    /// How many operations were logged when the last possible first call came.
    candidate: Option<usize>,
    in_dump: bool,
    sparse_at: Option<usize>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Dump {
    memory: Vec<MemoryRegion>,
    reserved: Vec<PhysRange>,
    at: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Before,
    Sparse,
    Done,
}

/// Functions whose allocations are part of `sparse_init`.
const SPARSE_CALLERS: [&str; 9] = [
    "sparse_init",
    "sparse_index_alloc",
    "sparse_init_nid",
    "vmemmap_alloc_block_zero",
    "vmemmap_populate_hugepages",
    "memmap_alloc",
    "__earlyonly_bootmem_alloc",
    "early_alloc_pgtable",
    "vmem_",
];

/// The wrapper that hides the first caller from 6.18 on.
const WRAPPER: &str = "__memblock_alloc_or_panic";

impl Memblock {
    /// Reads a debug line; `false` if `text` is none.
    pub(super) fn read(&mut self, text: &str, line: u64) -> bool {
        match text.as_bytes().first() {
            Some(b'm' | b'r' | b'_' | b'M' | b'p') => {}
            Some(b'Z' | b'O') if self.phase == Phase::Sparse => {
                let ends = text.starts_with("Zone ranges:") || text.starts_with("On node ");
                self.phase = if ends { Phase::Done } else { self.phase };
                return false;
            }
            _ => return false,
        }
        if text.starts_with("MEMBLOCK configuration:") {
            self.begin_dump();
            return true;
        }
        self.operation(text, line).is_some() || self.dump_line(text, line).is_some()
    }

    /// memblock's memory when `sparse_init` starts, if a dump shows it.
    pub fn memory(&self) -> Option<&[MemoryRegion]> {
        let dump = self.dump_before().or(self.after.as_ref())?;
        (!dump.memory.is_empty()).then_some(dump.memory.as_slice())
    }

    /// The reservations when `sparse_init` starts, ascending; `None` where a dump or
    /// the calls are missing.
    ///
    /// Without a dump before it (arm64 and riscv64 up to 6.12), what the dump behind
    /// it has and no line explains was reserved before anything was logged.
    pub fn reserved_before_sparse(&self) -> Option<Vec<PhysRange>> {
        let sparse_at = self.sparse_at?;
        let logged = self.ops.get(..sparse_at)?;
        if let Some(dump) = self.dump_before() {
            return Some(replay(&dump.reserved, logged.get(dump.at..)?));
        }
        let dump = self.after.as_ref()?;
        let explained = replay(&[], self.ops.get(..dump.at)?);
        let silent = subtract(&as_pages(&dump.reserved), &as_pages(&explained));
        let early = replay(&[], logged);
        Some(as_bytes(&normalise([silent, as_pages(&early)].concat())))
    }

    /// The last dump before `sparse_init`. EFI dumps once before memory is known,
    /// which tells too little.
    fn dump_before(&self) -> Option<&Dump> {
        self.before.as_ref().filter(|dump| !dump.memory.is_empty())
    }

    fn is_complete(&self) -> bool {
        self.phase == Phase::Done && (self.dump_before().is_some() || self.after.is_some())
    }

    fn begin_dump(&mut self) {
        let dump = Dump { at: self.ops.len(), ..Dump::default() };
        match self.phase {
            Phase::Before => self.before = Some(dump),
            _ if self.dump_before().is_none() && self.after.is_none() => self.after = Some(dump),
            _ => return,
        }
        self.in_dump = true;
    }

    /// ` memory[0x0]  [0x1000-0x9efff], 0x9e000 bytes on node 0 flags: 0x0`.
    fn dump_line(&mut self, text: &str, line: u64) -> Option<()> {
        if !self.in_dump {
            return None;
        }
        let is_memory = text.starts_with("memory[");
        if !is_memory && !text.starts_with("reserved[") {
            // `memory size =`, `memory.cnt  =` and s390's `physmem[` belong to it.
            let inside = ["memory size", "memory.cnt", "reserved.cnt", "physmem"];
            self.in_dump = inside.iter().any(|head| text.starts_with(head));
            return self.in_dump.then_some(());
        }
        let (_, rest) = text.split_once(']')?;
        let (range, rest) = range(rest.trim_start().strip_prefix('[')?)?;
        // An empty list prints as one region of no bytes, which ends at -1.
        if rest.split_once(", ").and_then(|(_, size)| hex(size)).is_some_and(|(n, _)| n == 0) {
            return Some(());
        }
        let dump = if self.phase == Phase::Before { &mut self.before } else { &mut self.after };
        let dump = dump.as_mut()?;
        if is_memory && dump.memory.len() < MAX_ITEMS {
            let nid = rest.split_once("on node ").and_then(|(_, n)| number(n));
            let nid = nid.and_then(|(n, _)| u32::try_from(n).ok()).map(Nid);
            let flags = rest.split_once("flags: ").and_then(|(_, f)| hex(f)).map_or(0, |f| f.0);
            dump.memory.push(MemoryRegion { range, nid, flags, line });
        } else if dump.reserved.len() < MAX_ITEMS {
            dump.reserved.push(range);
        }
        Some(())
    }

    /// A line of memblock_reserve, memblock_phys_free or an allocation function.
    fn operation(&mut self, text: &str, line: u64) -> Option<()> {
        let text = text.trim_start_matches("__");
        let (call, rest) = text.strip_prefix("memblock_")?.split_once(": ")?;
        self.in_dump = false;
        if self.is_complete() {
            return Some(());
        }
        match call {
            "reserve" | "free" | "phys_free" => {
                let (range, _) = range(rest.trim_start().strip_prefix('[')?)?;
                self.change(range, call == "reserve", line);
            }
            _ if call.starts_with("alloc_") => self.allocation(call, rest, line)?,
            _ => {}
        }
        Some(())
    }

    fn change(&mut self, range: PhysRange, is_reserve: bool, line: u64) {
        if self.phase == Phase::Sparse {
            if let (true, Some(last)) = (is_reserve, self.allocations.last_mut()) {
                last.given.get_or_insert(range);
            } else if !is_reserve && self.frees.len() < MAX_ITEMS {
                self.frees.push(LoggedFree { after: self.allocations.len(), range, line });
            }
        } else if let (true, Some(last)) = (is_reserve, self.allocations.last_mut())
            && self.candidate.is_some()
        {
            last.given.get_or_insert(range);
        }
        if self.ops.len() < MAX_OPS {
            self.ops.push((range, is_reserve));
        }
    }

    /// `16384 bytes align=0x40 nid=-1 from=0x0 max_addr=0x0 sparse_init+0x6d/0x220`.
    fn allocation(&mut self, call: &str, rest: &str, line: u64) -> Option<()> {
        let (bytes, rest) = number(rest)?;
        let field = |name: &str| rest.split_once(name).map(|(_, value)| value);
        let caller = rest.split_whitespace().last()?.split('+').next()?;
        let caller = caller.split('.').next()?;
        let nid = field("nid=").and_then(number).and_then(|(n, _)| u32::try_from(n).ok());
        let item = LoggedAllocation {
            call: call.chars().take(40).collect(),
            bytes,
            align: hex(field("align=")?)?.0,
            nid: nid.map(Nid),
            min_addr: hex(field("from=")?)?.0,
            max_addr: hex(field("max_addr=")?)?.0,
            caller: caller.chars().take(60).collect(),
            given: None,
            line,
        };
        self.place(item);
        Some(())
    }

    /// Decides whether an allocation is one of `sparse_init`.
    fn place(&mut self, item: LoggedAllocation) {
        let is_own = SPARSE_CALLERS.iter().any(|own| match own.ends_with('_') {
            true => item.caller.starts_with(own),
            false => item.caller == *own,
        });
        match self.phase {
            Phase::Before if item.caller == WRAPPER => {
                // Perhaps the root table of `sparse_init`: its next call will tell.
                self.candidate = Some(self.ops.len());
                self.allocations = vec![item];
            }
            Phase::Before
                if item.caller == "sparse_init" || item.caller == "sparse_index_alloc" =>
            {
                if item.caller == "sparse_init" || self.candidate.is_none() {
                    self.allocations.clear();
                    self.candidate = Some(self.ops.len());
                }
                self.sparse_at = self.candidate;
                self.phase = Phase::Sparse;
                self.allocations.push(item);
            }
            Phase::Before => {
                self.candidate = None;
                self.allocations.clear();
            }
            Phase::Sparse if is_own && self.allocations.len() < MAX_OPS => {
                self.allocations.push(item);
            }
            Phase::Sparse => self.phase = Phase::Done,
            Phase::Done => {}
        }
    }

    /// Forgets a call that turned out not to be `sparse_init`'s.
    pub(super) fn finish(&mut self) {
        if self.sparse_at.is_none() {
            self.allocations.clear();
        }
    }
}

/// The ranges after reserving and freeing in order.
fn replay(start: &[PhysRange], ops: &[(PhysRange, bool)]) -> Vec<PhysRange> {
    let mut state = normalise(as_pages(start));
    // Reservations between two frees are joined at once: one pass for each would be
    // quadratic in the thousands of page tables that arm64 reserves.
    let mut added: Vec<PfnRange> = Vec::new();
    for &(range, is_reserve) in ops {
        let range = PfnRange::new(range.start, range.end);
        if is_reserve {
            added.push(range);
            continue;
        }
        state.append(&mut added);
        state = subtract(&normalise(state), &[range]);
    }
    state.append(&mut added);
    as_bytes(&normalise(state))
}

/// Bytes as if they were page frames, for the arithmetic of ranges.
fn as_pages(ranges: &[PhysRange]) -> Vec<PfnRange> {
    ranges.iter().map(|r| PfnRange::new(r.start, r.end)).collect()
}

fn as_bytes(ranges: &[PfnRange]) -> Vec<PhysRange> {
    ranges.iter().map(|r| PhysRange::new(r.start.0, r.end.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::parse::boot_of;
    use super::*;

    fn ranges(list: &[PhysRange]) -> Vec<(u64, u64)> {
        list.iter().map(|r| (r.start, r.end)).collect()
    }

    const CALL: &str =
        "memblock_alloc_try_nid: 16384 bytes align=0x40 nid=-1 from=0x0 max_addr=0x0";

    //            0x0    0x1000  0x2000  0x3000  0x4000  0x5000
    // dump       |=======|
    // reserve            |=======|
    // free           |=======|
    // sparse                                     |=======|
    #[test]
    fn reservations_are_followed_up_to_sparse_init() {
        let boot = boot_of(&format!(
            "MEMBLOCK configuration:\n memory size = 0x9000 reserved size = 0x1000\n\
             memory.cnt  = 0x1\n memory[0x0]\t[0x0-0x8fff], 0x9000 bytes on node 0 flags: 0x2\n\
             reserved.cnt  = 0x1\n reserved[0x0]\t[0x0-0xfff], 0x1000 bytes flags: 0x0\n\
             __memblock_reserve: [0x1000-0x1fff] nid=-1 flags=20 f+0x1/0x2\n\
             memblock_phys_free: [0x800-0x17ff] f+0x1/0x2\n{CALL} sparse_init+0x6d/0x220\n\
             memblock_reserve: [0x4000-0x4fff] memblock_alloc_range_nid+0x1/0x2\n\
             memblock_alloc_exact_nid_raw: 64 bytes align=0x40 nid=1 from=0x0 max_addr=0x1 \
             vmemmap_alloc_block_zero.constprop.0+0x11/0x50\n\
             memblock_free: [0x4800-0x4fff] sparse_buffer_fini+0x1/0x2\n\
             Zone ranges:\n{CALL} vmem_pte_alloc+0x1/0x2\n"
        ));
        let log = boot.memblock;
        assert_eq!(ranges(&log.reserved_before_sparse().unwrap()), [(0, 0x800), (0x1800, 0x2000)]);
        let memory = log.memory().unwrap();
        assert_eq!((memory[0].nid, memory[0].flags, memory[0].line), (Some(Nid(0)), 2, 4));
        let calls: Vec<_> = log.allocations.iter().map(|a| (a.caller.as_str(), a.nid)).collect();
        assert_eq!(calls, [("sparse_init", None), ("vmemmap_alloc_block_zero", Some(Nid(1)))]);
        assert_eq!(log.allocations[0].given, Some(PhysRange::new(0x4000, 0x5000)));
        assert_eq!(log.allocations[1].given, None);
        assert_eq!((log.frees.len(), log.frees[0].after), (1, 2));
    }

    #[test]
    fn a_wrapped_first_call_is_found_by_the_second() {
        let boot = boot_of(&format!(
            "MEMBLOCK configuration:\n memory[0x0]\t[0x0-0xfff], 0x1000 bytes flags: 0x0\n\
             {CALL} {WRAPPER}+0x1/0x2\n\
             memblock_reserve: [0x0-0xff] memblock_alloc_range_nid+0x1/0x2\n\
             {CALL} {WRAPPER}+0x1/0x2\n\
             memblock_reserve: [0x100-0x1ff] memblock_alloc_range_nid+0x1/0x2\n\
             {CALL} sparse_index_alloc+0x1/0x2\n"
        ));
        let log = boot.memblock;
        assert_eq!(ranges(&log.reserved_before_sparse().unwrap()), [(0, 0x100)]);
        assert_eq!(log.allocations.len(), 2);
        assert_eq!(log.allocations[0].given, Some(PhysRange::new(0x100, 0x200)));
    }

    #[test]
    fn a_late_dump_tells_what_was_silent() {
        let boot = boot_of(&format!(
            "memblock_reserve: [0x100-0x1ff] f+0x1/0x2\n{CALL} sparse_init+0x1/0x2\n\
             memblock_reserve: [0x200-0x2ff] memblock_alloc_range_nid+0x1/0x2\nZone ranges:\n\
             MEMBLOCK configuration:\n reserved[0x0]\t[0x0-0x2ff], 0x300 bytes flags: 0x0\n"
        ));
        let found = boot.memblock.reserved_before_sparse().unwrap();
        assert_eq!(ranges(&found), [(0, 0x200)]);
    }
}
