//! The struct pages of captured boots against the model's images.
//!
//! What a page should look like is decided without looking at it: from reservations,
//! from dumped heads of free blocks that cover it, from zones and nodes. The counts per
//! boot are committed in `fixtures/golden/struct-pages.txt`; the test fails when they
//! change, for better or worse. After a change that is meant, run
//! `BLESS=1 cargo test --test struct_pages` and commit the file.

mod boot_facts;

use boot_facts::Boot;
use pageinit::kernel::deferral;
use pageinit::kernel::layout::ZoneKind;
use pageinit::kernel::struct_page::{
    BootmemUse, COUNTS, FLAGS, INDEX, LRU, PageFormat, PageState, PageWords, counts,
};
use pageinit::pfn::{Nid, Pfn, PfnRange, PhysRange};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

/// Where the counts are committed.
fn golden() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/golden/struct-pages.txt")
}

/// What a page is known to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Reserved,
    Marked(BootmemUse),
    Gigantic { head: bool },
    Head(u32),
    InFreeBlock,
    Other,
}

/// The outcome for one page.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// All 64 bytes, or for a head all but the links of the free list.
    Exact,
    /// Not decided by facts; its place bits are right, and whether it equals a free page.
    Placed { as_free: bool },
    /// Something else, for a reason that the facts give.
    Excused(&'static str),
    /// Wrong.
    Unexplained(String),
}

struct Judge<'a> {
    boot: &'a Boot,
    format: PageFormat,
    reserved: Vec<PfnRange>,
    heads: Vec<(Pfn, u32)>,
    memmap: Vec<(PfnRange, u64)>,
    node_data: Vec<(Nid, PfnRange)>,
    released: Vec<(String, PfnRange)>,
    holes: Vec<(Nid, PfnRange)>,
    gigantic: bool,
}

fn find(ranges: &[PfnRange], pfn: Pfn) -> bool {
    ranges.iter().any(|r| r.contains(pfn))
}

/// Which section's memmap lies in which pages (x86_64 only, where they are marked).
/// Sections are served in ascending order, 2 MiB each, buffer after buffer.
fn memmap_pages(boot: &Boot) -> Vec<(PfnRange, u64)> {
    let pages_per_section = boot.pages_per_section();
    let mut sections: Vec<u64> = Vec::new();
    for region in boot.memory() {
        let last = region.range.end.align_up(pages_per_section).section(pages_per_section).0;
        sections.extend(region.range.start.section(pages_per_section).0..last);
    }
    sections.dedup();
    let piece = 2 << 20;
    let pieces = boot.allocations().into_iter().filter(|a| a.bytes.is_multiple_of(piece));
    let starts = pieces.flat_map(|a| (a.range.start..a.range.end).step_by(piece as usize));
    let pages = |start: u64| PhysRange::new(start, start + piece).whole_pages(boot.page_bytes);
    starts.map(pages).zip(sections).collect()
}

fn released(boot: &Boot) -> Vec<(String, PfnRange)> {
    let text = include_str!("../fixtures/golden/released-areas.txt");
    let hex = |t: &str| u64::from_str_radix(t.trim_start_matches("0x"), 16).unwrap();
    let mut out = Vec::new();
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        if let [id, kind, start, end] = line.split(' ').collect::<Vec<_>>()[..]
            && id == boot.id
        {
            let range = PhysRange::new(hex(start), hex(end)).touched_pages(boot.page_bytes);
            out.push((kind.to_owned(), range));
        }
    }
    out
}

impl<'a> Judge<'a> {
    fn new(boot: &'a Boot, pages: &[(Pfn, PageWords)]) -> Self {
        let format = boot.format();
        let reserved = boot.reserved_pages();
        let heads = pages
            .iter()
            .filter(|(pfn, _)| !find(&reserved, *pfn))
            .filter_map(|(pfn, words)| Some((*pfn, format.free_head_order(*words)?)))
            .collect();
        let nodes = deferral::split(&boot.split_input(), &boot.model());
        let holes = nodes.iter().flat_map(|n| n.early.holes.iter().map(|h| (n.nid, *h)));
        Self {
            boot,
            format,
            reserved,
            heads,
            memmap: memmap_pages(boot),
            node_data: boot.node_data(),
            released: released(boot),
            holes: holes.collect(),
            gigantic: boot.json["cmdline"].as_str().is_some_and(|c| c.contains("hugepages=")),
        }
    }

    /// Node and zone: of the memory it is, or of the hole.
    fn place(&self, pfn: Pfn) -> Option<(Nid, ZoneKind)> {
        let memory = self.boot.memory();
        let of_memory = memory.iter().find(|m| m.range.contains(pfn)).map(|m| m.nid);
        let of_hole = self.holes.iter().find(|(_, h)| h.contains(pfn)).map(|(n, _)| *n);
        let nid = of_memory.or(of_hole)?;
        let zones = self.boot.zones();
        let zone = zones.iter().find(|z| z.nid == nid && z.range().contains(pfn))?;
        Some((nid, zone.zone))
    }

    fn known(&self, pfn: Pfn) -> Known {
        if find(&self.reserved, pfn) {
            if let Some((_, section)) = self.memmap.iter().find(|(r, _)| r.contains(pfn)) {
                return Known::Marked(BootmemUse::Memmap(*section));
            }
            if let Some((nid, _)) = self.node_data.iter().find(|(_, r)| r.contains(pfn)) {
                return Known::Marked(BootmemUse::NodeData(*nid));
            }
            if let Some(block) = self.gigantic_block(pfn) {
                return Known::Gigantic { head: block.start == pfn };
            }
            return Known::Reserved;
        }
        let covers =
            |&&(head, order): &&(Pfn, u32)| head <= pfn && pfn.pages_since(head) < 1 << order;
        match self.heads.iter().find(covers) {
            Some((head, order)) if *head == pfn => Known::Head(*order),
            Some(_) => Known::InFreeBlock,
            None => Known::Other,
        }
    }

    fn judge(&self, pfn: Pfn, words: PageWords) -> Verdict {
        let Some((nid, zone)) = self.place(pfn) else {
            return Verdict::Unexplained("no zone".into());
        };
        let image = |state| self.format.kernel_image(pfn, nid, zone, state);
        match self.known(pfn) {
            Known::Reserved if words == image(PageState::Reserved) => Verdict::Exact,
            Known::Marked(what) if words == self.format.marked_image(pfn, nid, zone, what) => {
                Verdict::Exact
            }
            Known::Reserved | Known::Marked(_) => self.reserved_otherwise(pfn, words),
            Known::Gigantic { head: is_head } => {
                let pages = (1 << 30) / self.boot.page_bytes;
                let wanted = self.format.gigantic_image(pfn, nid, zone, pages);
                match is_head {
                    true => head(wanted, self.format.from_kernel(words)),
                    false if words == wanted => Verdict::Exact,
                    false => Verdict::Unexplained(format!("gigantic {words:x?}")),
                }
            }
            Known::Head(order) => {
                let wanted = self.format.from_kernel(image(PageState::FreeHead(order)));
                head(wanted, self.format.from_kernel(words))
            }
            Known::InFreeBlock => {
                let wanted = [PageState::Free, PageState::FreeMerged].map(image);
                in_free_block(words, wanted)
            }
            Known::Other => self.other(pfn, nid, zone, words),
        }
    }

    /// The gigantic page that holds `pfn`: in boots that asked for such, a whole GiB that
    /// is reserved before the memmap is allocated.
    fn gigantic_block(&self, pfn: Pfn) -> Option<PfnRange> {
        let gib = (1 << 30) / self.boot.page_bytes;
        let start = pfn.align_down(gib);
        let block = PfnRange { start, end: start.offset(gib) };
        let inside = |r: &PfnRange| r.start <= block.start && block.end <= r.end;
        (self.gigantic && self.reserved.iter().any(inside)).then_some(block)
    }

    /// A page whose reservation did not last until the struct pages were read.
    fn reserved_otherwise(&self, pfn: Pfn, words: PageWords) -> Verdict {
        let kind = self.released.iter().find(|(_, r)| r.contains(pfn)).map(|(k, _)| k.as_str());
        match kind {
            Some("freed") => Verdict::Excused("reservation freed later"),
            Some("cma") => Verdict::Excused("contiguous memory area"),
            Some("init") => Verdict::Excused("kernel init memory freed"),
            _ => Verdict::Unexplained(format!("reserved {words:x?}")),
        }
    }

    fn other(&self, pfn: Pfn, nid: Nid, zone: ZoneKind, words: PageWords) -> Verdict {
        let free = self.format.kernel_image(pfn, nid, zone, PageState::Free);
        let mask = self.format.place_mask();
        if words[FLAGS] & mask == free[FLAGS] & mask {
            return Verdict::Placed { as_free: words == free };
        }
        Verdict::Unexplained(format!("flags {:x?}", words[FLAGS]))
    }
}

/// A head's links depend on the free list; the index may keep the migratetype that the
/// per-CPU lists store there.
fn head(wanted: PageWords, words: PageWords) -> Verdict {
    let same = |skip: &[usize]| (0..8).all(|i| skip.contains(&i) || words[i] == wanted[i]);
    match () {
        () if same(&LRU) => Verdict::Exact,
        () if same(&[LRU[0], LRU[1], INDEX]) && words[INDEX] < 8 => {
            Verdict::Excused("freed again: migratetype in index")
        }
        () => Verdict::Unexplained(format!("head {words:x?}")),
    }
}

fn in_free_block(words: PageWords, [free, merged]: [PageWords; 2]) -> Verdict {
    match () {
        () if words == free => Verdict::Exact,
        () if words == merged => Verdict::Excused("once a head, merged later"),
        () => Verdict::Unexplained(format!("in a free block {words:x?}")),
    }
}

/// One line of the committed file, and what is unexplained.
fn line(boot: &Boot) -> (String, Vec<String>) {
    let pages = boot.struct_pages();
    let judge = Judge::new(boot, &pages);
    let (mut exact, mut placed, mut as_free) = (BTreeMap::new(), 0, 0);
    let mut excused: BTreeMap<&str, u32> = BTreeMap::new();
    let mut unexplained = Vec::new();
    for &(pfn, words) in &pages {
        match judge.judge(pfn, words) {
            Verdict::Exact => {
                let kind = match judge.known(pfn) {
                    Known::Marked(_) | Known::Reserved => "reserved",
                    Known::Head(_) => "heads",
                    Known::Gigantic { .. } => "gigantic",
                    _ => "free",
                };
                *exact.entry(kind).or_insert(0u32) += 1;
            }
            Verdict::Placed { as_free: free } => {
                placed += 1;
                as_free += u32::from(free);
            }
            Verdict::Excused(reason) => *excused.entry(reason).or_default() += 1,
            Verdict::Unexplained(why) => {
                unexplained.push(format!("{} pfn {}: {why}", boot.id, pfn.0));
            }
        }
    }
    let mut out = format!("{}: pages {}", boot.id, pages.len());
    for kind in ["reserved", "free", "heads", "gigantic"] {
        let _ = write!(out, ", {kind} {}", exact.get(kind).copied().unwrap_or(0));
    }
    let _ = write!(out, ", others {placed} ({as_free} as free)");
    for (reason, count) in &excused {
        let _ = write!(out, ", excused {count} ({reason})");
    }
    let _ = write!(out, ", unexplained {}", unexplained.len());
    (out, unexplained)
}

#[test]
fn struct_pages_of_captured_boots_equal_the_model() {
    let boots = boot_facts::all();
    if boots.is_empty() {
        return;
    }
    let (lines, wrong): (Vec<String>, Vec<Vec<String>>) = boots.iter().map(line).unzip();
    let found = format!(
        "# Struct pages of captured boots: equal to the model's 64 bytes (reserved, free) or\n\
         # to all but list links (heads); others only by node, zone and last CPU bits.\n{}\n",
        lines.join("\n")
    );
    eprintln!("{found}{}", wrong.concat().join("\n"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(golden(), &found).unwrap();
    }
    let committed = std::fs::read_to_string(golden()).unwrap_or_default();
    assert!(
        found == committed,
        "counts differ from fixtures/golden/struct-pages.txt; if that is meant, run \
         BLESS=1 cargo test --test struct_pages and commit the file\n{}",
        difference(&committed, &found)
    );
    assert!(wrong.concat().is_empty(), "unexplained pages:\n{}", wrong.concat().join("\n"));
}

fn difference(committed: &str, found: &str) -> String {
    let minus = committed.lines().filter(|l| !found.contains(l)).map(|l| format!("- {l}\n"));
    let plus = found.lines().filter(|l| !committed.contains(l)).map(|l| format!("+ {l}\n"));
    minus.chain(plus).collect()
}

/// The test above can fail: a wrong bit anywhere is seen.
#[test]
fn a_wrong_byte_is_unexplained() {
    let boots = boot_facts::all();
    let Some(boot) = boots.iter().find(|b| b.id == "6.12_n2-8g") else { return };
    let pages = boot.struct_pages();
    let judge = Judge::new(boot, &pages);
    let mut seen = 0;
    for &(pfn, words) in &pages {
        if judge.judge(pfn, words) != Verdict::Exact || judge.known(pfn) != Known::Reserved {
            continue;
        }
        seen += 1;
        for bit in 0..512 {
            let mut changed = words;
            changed[bit / 64] ^= 1 << (bit % 64);
            let verdict = judge.judge(pfn, changed);
            assert!(matches!(verdict, Verdict::Unexplained(_)), "bit {bit} of {pfn}");
        }
    }
    assert!(seen > 0);
    let reserved = judge.format.image(Pfn(1), Nid(0), ZoneKind::Dma, PageState::Reserved);
    assert_eq!(reserved[COUNTS], counts(1, u32::MAX));
}

/// The defaults of a distribution's configuration are those of the captured kernels.
#[test]
fn default_configurations_are_those_of_the_captured_kernels() {
    for boot in boot_facts::all() {
        let release = boot.json["kernel"].as_str().unwrap();
        let model = pageinit::kernel::KernelModel::from_release(release, boot.arch).unwrap();
        let mut captured = boot.config(model.config.clone());
        // The choice of a largest block differs with the page size, which a version and
        // an architecture do not say; so does page_ext on arm64.
        captured.arch_force_max_order = model.config.arch_force_max_order;
        if boot.page_bytes == 16384 {
            captured.page_extension = model.config.page_extension;
            captured.pgtable_levels = model.config.pgtable_levels;
        }
        assert_eq!(captured, model.config, "{}", boot.id);
    }
}
