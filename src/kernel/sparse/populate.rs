//! `vmemmap_populate`: page tables and pieces of the memmap, section by section.
//!
//! Virtual addresses only ascend during boot, so whether a table or a piece exists
//! already is known from the last one made.

use super::{Backing, MemmapRun, Request, SectionRun, SparseError, SparseInit, Succession};
use crate::kernel::memblock::{ALLOC_ANYWHERE, AllocRequest};
use crate::kernel::sparse_rules::{BufferRule, Populate, TableLevel};
use crate::pfn::{Nid, PhysRange};

/// `sizeof(struct vmemmap_backing)` of ppc64.
const LIST_ENTRY_BYTES: u64 = 24;

impl SparseInit<'_> {
    /// Maps the struct pages of consecutive sections, section by section as Linux does:
    /// addresses only ascend, so that a run is the same as its sections.
    pub(super) fn populate_run(&mut self, run: &SectionRun, nid: Nid) -> Result<(), SparseError> {
        let rules = self.rules;
        let bytes = rules.section_memmap_bytes();
        let at = |section: u64| rules.vmemmap_base.wrapping_add(section.wrapping_mul(bytes));
        let section = PhysRange::new(at(run.start), at(run.end));
        match rules.populate {
            Populate::HugePages => self.each_huge(section, nid),
            Populate::BasePages => {
                self.each(section, rules.page_bytes, |s, at| s.base_page(at, nid))
            }
            Populate::PpcRadix { keeps_list } => {
                self.each(section, rules.pmd_bytes, |s, at| s.ppc_radix(at, nid, keeps_list))
            }
            Populate::PpcHash { block_bytes } => {
                self.each(section, block_bytes, |s, at| s.ppc_hash(at, nid, block_bytes))
            }
            Populate::S390 { segments, from_buffer } => {
                let piece = if segments { rules.pmd_bytes } else { rules.page_bytes };
                self.each(section, piece, |s, at| s.s390(at, nid, piece, from_buffer))
            }
            Populate::Sparc => self.each(section, rules.pmd_bytes, |s, at| s.sparc(at, nid)),
        }
    }

    /// [`SparseInit::huge`] for every PMD that touches `sections`; what is certain to come
    /// out alike is done at once.
    fn each_huge(&mut self, sections: PhysRange, nid: Nid) -> Result<(), SparseError> {
        let bytes = self.rules.pmd_bytes;
        let mut at = sections.start - sections.start % bytes;
        at = at.max(self.populated_end.unwrap_or(0));
        while at < sections.end {
            self.huge(at, nid)?;
            at = at.saturating_add(bytes);
            if self.in_runs {
                let more = self.more_huge(at, sections.end, nid);
                at = at.saturating_add(more * bytes);
            }
            self.populated_end = Some(at);
        }
        Ok(())
    }

    /// Maps PMDs from `at` on like the one before, until a table is missing, the buffer
    /// is used up or memblock's answers move elsewhere; says how many.
    fn more_huge(&mut self, at: u64, end: u64, nid: Nid) -> u64 {
        let bytes = self.rules.pmd_bytes;
        let lowest = self.rules.tables.len().checked_sub(2).and_then(|l| self.rules.tables.get(l));
        let covers = lowest.map_or(1, |table| table.covers_bytes);
        let under_table = (covers - at % covers) % covers / bytes;
        let most = under_table.min(end.saturating_sub(at).div_ceil(bytes));
        let last = self.memmap.last().filter(|run| run.backing == Backing::Pmd);
        let Some(last) = last.map(MemmapRun::last_piece) else { return 0 };
        let (start, succession, count) = match self.buffer {
            Some(buffer) if buffer.start.is_multiple_of(bytes) => {
                let count = most.min(buffer.bytes() / bytes);
                self.buffer = Some(PhysRange::new(buffer.start + count * bytes, buffer.end));
                (buffer.start, Succession::Ascending, count)
            }
            Some(_) => return 0,
            None => {
                let count = self.repeat_block(last, bytes, most, nid);
                (last - count * bytes, Succession::Descending, count)
            }
        };
        if count > 0 {
            self.record_run(at, nid, (start, bytes, count), (Backing::Pmd, succession));
        }
        count
    }

    /// Asks for blocks below `last` as long as they are sure to lie there.
    fn repeat_block(&mut self, last: u64, bytes: u64, most: u64, nid: Nid) -> u64 {
        let request = self.block_request(bytes, Some(nid));
        let asked = self.requests.last();
        let Some(asked) = asked.filter(|a| a.start == Some(last) && a.bytes == bytes) else {
            return 0;
        };
        let count = self.memblock.repeat_below(&request, last, most);
        if count > 0 {
            let next = Request { start: Some(last - bytes), ..asked };
            self.requests.push_run(next, count, -(bytes as i64));
        }
        count
    }

    /// Calls `map` for every piece of `bytes` that touches `section` and is not mapped
    /// yet, with its virtual address.
    fn each(
        &mut self,
        section: PhysRange,
        bytes: u64,
        mut map: impl FnMut(&mut Self, u64) -> Result<(), SparseError>,
    ) -> Result<(), SparseError> {
        let mut at = section.start - section.start % bytes;
        at = at.max(self.populated_end.unwrap_or(0));
        while at < section.end {
            map(self, at)?;
            at = at.saturating_add(bytes);
            self.populated_end = Some(at);
        }
        Ok(())
    }

    /// `vmemmap_populate_hugepages`, one PMD.
    fn huge(&mut self, at: u64, nid: Nid) -> Result<(), SparseError> {
        let bytes = self.rules.pmd_bytes;
        let levels = self.rules.tables.len().saturating_sub(1);
        self.make_tables(at, levels, Some(nid))?;
        if let Some(start) = self.piece_from_buffer_or_memblock(bytes, Some(nid))? {
            self.record(at, nid, start, bytes, Backing::Pmd);
            return Ok(());
        }
        let pages = bytes / self.rules.page_bytes;
        (0..pages).try_for_each(|i| self.base_page(at + i * self.rules.page_bytes, nid))
    }

    /// `vmemmap_populate_address`.
    fn base_page(&mut self, at: u64, nid: Nid) -> Result<(), SparseError> {
        let bytes = self.rules.page_bytes;
        self.make_tables(at, self.rules.tables.len(), Some(nid))?;
        self.mapped_piece(at, nid, Some(nid), bytes, Backing::BasePages)
    }

    fn ppc_radix(&mut self, at: u64, nid: Nid, keeps_list: bool) -> Result<(), SparseError> {
        let bytes = self.rules.pmd_bytes;
        if keeps_list {
            self.mapped_piece(at, nid, Some(nid), bytes, Backing::Pmd)?;
            self.list_entry(nid)?;
            // radix__vmemmap_create_mapping: tables go to the node of the block.
            let on_nid = self.memmap.last().map_or(nid, |run| run.on_nid);
            return self.make_radix_tables(at, on_nid);
        }
        self.make_radix_tables(at, nid)?;
        self.mapped_piece(at, nid, Some(nid), bytes, Backing::Pmd)
    }

    fn ppc_hash(&mut self, at: u64, nid: Nid, bytes: u64) -> Result<(), SparseError> {
        let base = bytes <= self.rules.page_bytes;
        let backing = if base { Backing::BasePages } else { Backing::Pmd };
        self.mapped_piece(at, nid, Some(nid), bytes, backing)?;
        self.list_entry(nid)
    }

    /// s390 asks for table pages and pieces without naming a node.
    fn s390(
        &mut self,
        at: u64,
        nid: Nid,
        piece: u64,
        from_buffer: bool,
    ) -> Result<(), SparseError> {
        let base = piece == self.rules.page_bytes;
        let last = self.rules.tables.len().saturating_sub(1);
        for level in 0..last + usize::from(base) {
            let caller = if level < last { "vmem_alloc_pages" } else { "vmem_pte_alloc" };
            self.make_own_table(at, level, caller)?;
        }
        let backing = if base { Backing::BasePages } else { Backing::Pmd };
        let start = if from_buffer {
            self.piece_from_buffer_or_memblock(piece, None)?
        } else {
            self.piece_from_memblock(piece, None)
        };
        let start = start.ok_or(SparseError::NoRoom { what: "memmap", bytes: piece })?;
        self.record(at, nid, start, piece, backing);
        Ok(())
    }

    fn sparc(&mut self, at: u64, nid: Nid) -> Result<(), SparseError> {
        let bytes = self.rules.pmd_bytes;
        self.make_tables(at, self.rules.tables.len(), Some(nid))?;
        let start = self.piece_from_memblock(bytes, Some(nid));
        let start = start.ok_or(SparseError::NoRoom { what: "memmap", bytes })?;
        self.record(at, nid, start, bytes, Backing::Pmd);
        Ok(())
    }

    /// A piece of the memmap, or the end: there is nothing smaller to fall back to.
    fn mapped_piece(
        &mut self,
        at: u64,
        owner: Nid,
        nid: Option<Nid>,
        bytes: u64,
        backing: Backing,
    ) -> Result<(), SparseError> {
        let start = self.piece_from_buffer_or_memblock(bytes, nid)?;
        let start = start.ok_or(SparseError::NoRoom { what: "memmap", bytes })?;
        self.record(at, owner, start, bytes, backing);
        Ok(())
    }

    /// `vmemmap_alloc_block_buf`.
    fn piece_from_buffer_or_memblock(
        &mut self,
        bytes: u64,
        nid: Option<Nid>,
    ) -> Result<Option<u64>, SparseError> {
        match self.piece_from_buffer(bytes)? {
            Some(start) => Ok(Some(start)),
            None => Ok(self.piece_from_memblock(bytes, nid)),
        }
    }

    /// `sparse_buffer_alloc`: aligned to its own size, from the front of the buffer.
    fn piece_from_buffer(&mut self, bytes: u64) -> Result<Option<u64>, SparseError> {
        let Some(buffer) = self.buffer else { return Ok(None) };
        let start = buffer.start.next_multiple_of(bytes);
        if start + bytes > buffer.end {
            return Ok(None);
        }
        self.buffer = Some(PhysRange::new(start + bytes, buffer.end));
        if let BufferRule::SparseBuffer { frees_skipped: true, .. } = self.rules.buffer {
            self.give_back(PhysRange::new(buffer.start, start))?;
        }
        Ok(Some(start))
    }

    /// `vmemmap_alloc_block`: aligned to its own size, on another node if need be.
    fn piece_from_memblock(&mut self, bytes: u64, nid: Option<Nid>) -> Option<u64> {
        self.ask(self.block_request(bytes, nid), self.rules.memmap_call(), self.rules.callers.block)
    }

    fn block_request(&self, bytes: u64, nid: Option<Nid>) -> AllocRequest {
        AllocRequest {
            bytes,
            align: bytes,
            min_addr: self.min_addr,
            max_addr: self.rules.memmap_max_addr,
            nid,
            exact_nid: false,
        }
    }

    /// The first table of each of the top `levels` that `at` needs and that is not there.
    fn make_tables(&mut self, at: u64, levels: usize, nid: Option<Nid>) -> Result<(), SparseError> {
        for level in 0..levels.min(self.tables.len()) {
            if let Some(table) = self.missing_table(at, level) {
                let request = self.block_request(table.table_bytes, nid);
                let caller = self.rules.callers.table;
                self.ask(request, self.rules.memmap_call(), caller)
                    .ok_or(SparseError::NoRoom { what: "page tables", bytes: request.bytes })?;
            }
        }
        Ok(())
    }

    /// ppc64 radix, `early_alloc_pgtable`: zeroed, without limits.
    fn make_radix_tables(&mut self, at: u64, nid: Nid) -> Result<(), SparseError> {
        for level in 0..self.tables.len() {
            if let Some(table) = self.missing_table(at, level) {
                let request = AllocRequest {
                    min_addr: 0,
                    max_addr: ALLOC_ANYWHERE,
                    ..self.block_request(table.table_bytes, Some(nid))
                };
                self.ask(request, "alloc_try_nid", "early_alloc_pgtable")
                    .ok_or(SparseError::NoRoom { what: "page tables", bytes: request.bytes })?;
            }
        }
        Ok(())
    }

    /// s390: zeroed, on any node.
    fn make_own_table(
        &mut self,
        at: u64,
        level: usize,
        caller: &'static str,
    ) -> Result<(), SparseError> {
        let Some(table) = self.missing_table(at, level) else { return Ok(()) };
        let bytes = table.table_bytes;
        let request = AllocRequest { min_addr: 0, max_addr: 0, ..self.block_request(bytes, None) };
        let start = self.ask(request, "alloc_try_nid", caller);
        start.map(|_| ()).ok_or(SparseError::NoRoom { what: "page tables", bytes })
    }

    /// The table of `level` that covers `at`, if it must be made; it then counts as made.
    fn missing_table(&mut self, at: u64, level: usize) -> Option<TableLevel> {
        let table = *self.rules.tables.get(level)?;
        let made = self.tables.get_mut(level)?;
        let number = at / table.covers_bytes;
        (made.replace(number) != Some(number)).then_some(table)
    }

    /// ppc64, `vmemmap_list_alloc`: an entry for a block, a new page when one is full.
    fn list_entry(&mut self, nid: Nid) -> Result<(), SparseError> {
        if self.list_entries_left == 0 {
            let bytes = self.rules.page_bytes;
            self.piece_from_memblock(bytes, Some(nid))
                .ok_or(SparseError::NoRoom { what: "list of memmap blocks", bytes })?;
            self.list_entries_left = bytes / LIST_ENTRY_BYTES;
        }
        self.list_entries_left -= 1;
        Ok(())
    }

    fn record(&mut self, at: u64, nid: Nid, start: u64, bytes: u64, backing: Backing) {
        self.record_run(at, nid, (start, bytes, 1), (backing, Succession::Ascending));
    }

    /// Notes `count` pieces of `bytes` from the virtual address `at` on, which lie from
    /// the physical `start` on.
    fn record_run(
        &mut self,
        at: u64,
        nid: Nid,
        (start, bytes, count): (u64, u64, u64),
        (backing, succession): (Backing, Succession),
    ) {
        let map_start = at.wrapping_sub(self.rules.vmemmap_base);
        let piece = MemmapRun {
            map_start,
            map_end: map_start.wrapping_add(bytes * count),
            nid,
            on_nid: self.memblock.nid_of(start).unwrap_or(nid),
            backing,
            piece_bytes: bytes,
            start,
            end: start + bytes * count,
            succession: if count == 1 { Succession::Ascending } else { succession },
        };
        MemmapRun::push(&mut self.memmap, piece);
    }
}
