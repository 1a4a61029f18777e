//! How to clear a huge page: in one go or by subpages, in which order, with which
//! store, with and without the old map/unmap pair; and what a page fault pays for it.
//!
//! Four parts: `table` repeats the discussion's five rows on one buffer; `page` clears
//! one 2 MiB page in every way; `gigantic` does 1 GiB; `touch` allocates and touches
//! 100 MiB with huge pages off, asked for, and on. [`order`] has orders and the pair.

pub mod cells;
pub mod order;
mod touch;

pub(in crate::lab) use touch::not_restored;

use super::{Lab, LabError, Samples, check_multiple, poison_cold, published, zeroes_faster};
use crate::host::line::Line;
use crate::host::store::{Store, StoreKind};
use crate::host::{Arena, preempt, thp};
use crate::record::lab::{Derived, Finding, LabPoint, LabRecord, factors};
use crate::stats::{paired_ratios, summarise};
use crate::units::{Bytes, GIB, MIB};
use crate::warning::Warning;
use cells::{Cell, clear, gigantic_cells, page_cells, table_cells};
use order::{Direction, Pair};

/// Bytes of a huge page.
pub const PAGE_BYTES: u64 = 2 * MIB;
/// Bytes of a subpage.
pub const SUBPAGE_BYTES: u64 = 4096;
/// Most runs of the parts that take long.
const FEW_RUNS: u32 = 5;

/// What the user chose.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of the buffer of the discussion's table.
    pub buffer_bytes: u64,
    /// Names of stores; empty for all that this CPU has.
    pub stores: Vec<String>,
    /// Whether 1 GiB is cleared too.
    pub gigantic: bool,
    /// Bytes that are allocated and touched.
    pub touch_bytes: u64,
    /// Whether the system's setting of huge pages may be changed for a while.
    pub settings: bool,
}

/// Runs the experiment.
///
/// # Errors
/// For options that cannot be met, too little memory, and wrong data.
pub fn run(lab: &Lab<'_>, options: &Options) -> Result<LabRecord, LabError> {
    check_multiple("--buffer", options.buffer_bytes, PAGE_BYTES)?;
    check_multiple("--touch", options.touch_bytes, SUBPAGE_BYTES)?;
    lab.check_memory("lab clear-huge", options.touch_bytes, "--touch")?;
    let stores = stores(options)?;
    let mut record = lab.record("clear-huge");
    record.settings = factors([
        ("buffer_bytes", options.buffer_bytes.into()),
        ("touch_bytes", options.touch_bytes.into()),
        ("kernel_store", Store::default_zero().name().into()),
    ]);
    record.published = published::clearing();
    let finished = parts(lab, options, &stores, &mut record);
    match finished {
        Ok(complete) => record.head.complete = complete,
        Err(error) if error.is_interrupt() => {}
        Err(other) => return Err(other),
    }
    findings(&mut record, lab.seed);
    Ok(record)
}

fn stores(options: &Options) -> Result<Vec<Store>, LabError> {
    if options.stores.is_empty() {
        return Ok(Store::available());
    }
    Ok(options.stores.iter().map(|name| Store::named(name)).collect::<Result<_, _>>()?)
}

/// All parts in order; whether all of them were finished.
fn parts(
    lab: &Lab<'_>,
    options: &Options,
    stores: &[Store],
    record: &mut LabRecord,
) -> Result<bool, LabError> {
    let bytes = options.buffer_bytes;
    let mut arena = lab.arena("lab clear-huge", bytes, "--buffer")?;
    record.head.warnings.extend(no_huge_pages(&arena, bytes));
    record.head.warnings.extend(zeroes_faster(lab.clock, arena.lines_mut()));
    let table = table_cells(bytes);
    let complete = part(lab, record, ("table", lab.runs, 8), &table, arena.lines_mut())?
        && part(lab, record, ("page", lab.runs, 16), &page_cells(stores), arena.lines_mut())?;
    drop(arena);
    Ok(complete
        && gigantic(lab, options, record)?
        && lab.pinned(|| touch::part(lab, options, record))?)
}

/// 1 GiB, where it fits: a page of the kernel's pool if one is free, else huge pages.
fn gigantic(lab: &Lab<'_>, options: &Options, record: &mut LabRecord) -> Result<bool, LabError> {
    if !options.gigantic {
        return Ok(true);
    }
    let (mut arena, backing) = match gigantic_page(lab)? {
        Some(page) => (page, "hugetlb-1gib"),
        None => match lab.arena("clearing 1 GiB", GIB, "--buffer") {
            Ok(arena) => {
                record.head.warnings.push(no_gigantic_page());
                (arena, "huge-pages")
            }
            Err(LabError::NoMemory { usable_bytes, .. }) => {
                let text = format!("1 GiB is not cleared: {} are free", Bytes(usable_bytes));
                let remedy = "free memory, or leave that part out with --no-gigantic";
                record.head.warnings.push(Warning::new("no-gigantic", text, remedy));
                return Ok(true);
            }
            Err(other) => return Err(other),
        },
    };
    record.settings.insert("gigantic_backing".into(), backing.into());
    let runs = lab.runs.min(FEW_RUNS);
    part(lab, record, ("gigantic", runs, 6), &gigantic_cells(), arena.lines_mut())
}

/// A page of the pool, if one is free on the node that clears it: one from elsewhere would
/// say more about the way there.
fn gigantic_page(lab: &Lab<'_>) -> Result<Option<Arena>, LabError> {
    let nid = lab.node()?.nid;
    lab.pinned(|| {
        let Ok(page) = Arena::map_gigantic() else { return Ok(None) };
        let is_near = page.residency(lab.topo, nid).is_ok_and(|r| r.on_node_bytes == r.bytes);
        let one_node = lab.topo.nodes().len() == 1;
        Ok((is_near || one_node).then_some(page))
    })
}

fn no_gigantic_page() -> Warning {
    Warning::new(
        "no-gigantic-page",
        "no page of 1 GiB is free on this node: 1 GiB of 2 MiB pages is cleared instead",
        "echo 1 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages (as root; best soon \
         after boot)",
    )
}

/// Runs the cells of one part on `lines` and adds their points.
fn part(
    lab: &Lab<'_>,
    record: &mut LabRecord,
    (name, runs, limit_s): (&'static str, u32, u64),
    cells: &[Cell],
    lines: &mut [Line],
) -> Result<bool, LabError> {
    let cpu = lab.node()?.cpus.first().copied().unwrap_or(0);
    let mut turn = 0;
    // On a thread of its own, so that pinning it leaves the main thread as it was.
    let so_far = &*record;
    let samples = std::thread::scope(|scope| {
        let work = || {
            lab.topo.pin_thread(cpu)?;
            let run_one = |at: usize| {
                turn += 1;
                lab.undisturbed(|| run_one(lab, &cells[at], lines, turn))
            };
            let so_far = |samples: &Samples| {
                let mut record = so_far.clone();
                record.points.extend(points(name, cells, samples, lab.seed));
                record
            };
            lab.rounds(name, (cells.len(), runs, limit_s), run_one, so_far)
        };
        scope.spawn(work).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    record.points.extend(points(name, cells, &samples, lab.seed));
    if name == "page" {
        record.derived.extend(pair_ratios(cells, &samples, lab.seed));
    }
    Ok(samples.complete)
}

/// Fills the place with 0xff, cold or warm, clears it, and compares every byte. A page
/// is another one in every run, so that a badly placed one decides nothing.
fn run_one(
    lab: &Lab<'_>,
    cell: &Cell,
    lines: &mut [Line],
    turn: usize,
) -> Result<(u64, u64), LabError> {
    let length = cell.lines();
    let places = (lines.len() / length.max(1)).max(1);
    let place = turn % places * length;
    let lines = lines.get_mut(place..place + length).unwrap_or_default();
    match cell.warm {
        true => lines.fill(Line::new([u64::MAX; 8])),
        false => poison_cold(lines),
    }
    let pair = Pair::default();
    let chunks = cell.order();
    let before = preempt::switches();
    let began = lab.clock.now_ns();
    clear(cell, &chunks, lines, &pair);
    let ns = lab.clock.now_ns().saturating_sub(began);
    let switches = preempt::switches().saturating_sub(before);
    let left = lines.iter().position(|line| line.words() != [0; 8]);
    if let Some(at) = left.or((!pair.is_balanced()).then_some(0)) {
        let found = format!("line {at} of {length} is not zero");
        return Err(LabError::WrongData { what: cell.describe(), found });
    }
    Ok((ns, switches))
}

fn points<'p>(
    name: &'p str,
    cells: &'p [Cell],
    samples: &'p Samples,
    seed: u64,
) -> impl Iterator<Item = LabPoint> + use<'p> {
    let both = cells.iter().zip(&samples.of_case);
    both.filter_map(move |(cell, samples)| {
        LabPoint::measured(name, cell.factors(), ("buffer", 1), samples, seed)
    })
}

/// Time without the pair by time with it, run by run.
fn pair_ratios(cells: &[Cell], samples: &Samples, seed: u64) -> Vec<Derived> {
    let of = |wanted: &Cell| {
        let at = cells.iter().position(|cell| cell == wanted);
        let samples = at.and_then(|at| samples.of_case.get(at)).map_or(&[][..], Vec::as_slice);
        samples.iter().map(|&ns| ns as f64).collect::<Vec<f64>>()
    };
    let mut out = Vec::new();
    for with in cells.iter().filter(|cell| cell.pair) {
        let without = Cell { pair: false, ..*with };
        let ratios = paired_ratios(&of(&without), &of(with));
        let mut factors = with.factors();
        factors.remove("pair");
        out.extend(Derived::of("without_pair_ratio", factors, &ratios, seed));
    }
    out
}

fn no_huge_pages(arena: &Arena, bytes: u64) -> Option<Warning> {
    let huge = arena.huge_page_bytes()?;
    (huge.saturating_mul(10) < bytes.saturating_mul(9)).then(|| {
        Warning::new(
            "no-huge-pages",
            format!("only {} of {} lie in huge pages", Bytes(huge), Bytes(bytes)),
            format!("allow them in {} (madvise or always)", thp::ENABLED),
        )
    })
}

/// What the figures say of this processor.
fn findings(record: &mut LabRecord, seed: u64) {
    let kernel = Store::default_zero().name();
    let pair = record.derived.iter().find(|d| {
        d.what == "without_pair_ratio" && d.has("store", kernel) && d.has("direction", "forward")
    });
    let mut found = Vec::new();
    found.extend(pair.map(|d| Finding {
        code: "pair".into(),
        text: format!(
            "without the map/unmap pair a 2 MiB page is cleared in {:.2} of the time with it \
             ({kernel}, forward, {}); published: 0.37 on arm64",
            d.value.median,
            if d.has("temperature", "warm") { "warm" } else { "cold" },
        ),
        value: Some(d.value),
    }));
    found.extend(reverse_finding(record, seed));
    record.findings.extend(found);
}

/// How much slower the reverse order is at 4 KiB, where the discussion saw 5 times.
fn reverse_finding(record: &LabRecord, seed: u64) -> Option<Finding> {
    let of = |direction: Direction| {
        let same = |p: &&LabPoint| {
            p.has("direction", direction.name()) && p.has("chunk_bytes", SUBPAGE_BYTES)
        };
        let point = record.part("table").find(same)?;
        Some(point.samples_ns.iter().map(|&ns| ns as f64).collect::<Vec<f64>>())
    };
    let ratios = paired_ratios(&of(Direction::Reverse)?, &of(Direction::Forward)?);
    let value = summarise(&ratios, seed);
    let text = format!(
        "chunks of 4 KiB in reverse order take {:.2} times as long as forward; published: 5.19 \
         on arm64, 0.98 on x86-64",
        value.median
    );
    Some(Finding { code: "reverse".into(), text, value: Some(value) })
}

/// The stores that are tried in every chunk size.
pub(crate) fn main_stores() -> [Store; 2] {
    [Store::default_zero(), Store::best_image(StoreKind::NonTemporal)]
}

#[cfg(test)]
#[path = "clear_huge_tests.rs"]
mod tests;
