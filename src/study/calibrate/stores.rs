//! What the store kernels, the two passes and the first touch cost on this host.
//!
//! [`measure`] takes one buffer per node with memory and runs every store over it, from
//! the node's own CPUs with 1, 2, 4 … and all threads, and from every other node's CPUs
//! with one thread and all; then the init pass and the free pass on cold and on warm
//! lines. What is left in memory is compared after every run. Neighbours: [`super`];
//! [`Lab`], which shuffles and limits the rounds; [`crate::lab::prefetch::passes`], which
//! has the passes.

use crate::host::Arena;
use crate::host::error::HostError;
use crate::host::line::Line;
use crate::host::store::{Store, StoreKind};
use crate::host::topology::HostNode;
use crate::lab::prefetch::passes::{BLOCK_PAGES, Prepare, Then, expected, free_pass, freed, pass};
use crate::lab::{Lab, LabError, poison_cold, team};
use crate::progress::Unit;
use crate::record::calibration::{FirstTouch, PassRate, StoreRate};
use crate::stats::summarise;
use crate::warning::Warning;

/// Bytes of struct pages of the passes on warm lines: they fit into any second-level cache.
const WARM_LINES: usize = 2 * BLOCK_PAGES;
/// So often a warm pass is repeated within a sample, so that the clock can tell.
const WARM_REPEATS: usize = 32;

/// What is stored where it shall not be zeroes: not what memory holds before.
const IMAGE: [u64; 8] = [0x5a5a_5a5a_5a5a_5a5a; 8];

/// What is needed to measure.
pub(super) struct Bench<'b> {
    /// Host, seed, rounds and interruption.
    pub lab: Lab<'b>,
    /// Bytes of the buffer on each node.
    pub buffer_bytes: u64,
    /// No round of a series begins later than this many seconds after its first.
    pub limit_s: u64,
}

/// What was measured.
#[derive(Debug, Default)]
pub(super) struct Rates {
    pub stores: Vec<StoreRate>,
    pub passes: Vec<PassRate>,
    pub first_touch: Vec<FirstTouch>,
    /// What could not be measured.
    pub warnings: Vec<Warning>,
    /// Whether nobody ended it.
    pub complete: bool,
}

/// One thing to time over a node's buffer.
#[derive(Clone, Copy, Debug)]
struct Case<'n> {
    from: &'n HostNode,
    threads: usize,
    store: Store,
    /// Struct page images instead of zeroes.
    images: bool,
}

impl Case<'_> {
    /// What is stored, as records say it.
    const fn data(&self) -> &'static str {
        if self.images { "images" } else { "zeroes" }
    }
}

/// Measures all nodes that have memory.
///
/// # Errors
/// What the host layer says, and wrong data; an interruption is none.
pub(super) fn measure(bench: &Bench<'_>) -> Result<Rates, LabError> {
    let nodes = bench.lab.topo.nodes();
    let mut out = Rates { complete: true, ..Rates::default() };
    for node in nodes.iter().filter(|node| node.local_bytes > 0) {
        if !out.complete {
            break;
        }
        match on_node(bench, node, &nodes, &mut out) {
            Err(error) if error.is_interrupt() => out.complete = false,
            ended => ended?,
        }
    }
    Ok(out)
}

fn on_node(
    bench: &Bench<'_>,
    node: &HostNode,
    nodes: &[HostNode],
    out: &mut Rates,
) -> Result<(), LabError> {
    let lines = usize::try_from(bench.buffer_bytes / 64).unwrap_or(usize::MAX);
    let mut arena = match Arena::map_on(bench.lab.topo, lines, node.nid) {
        Err(full @ HostError::NodeFull { .. }) => {
            out.warnings.push(not_measured(node.nid, &full));
            return Ok(());
        }
        mapped => mapped?,
    };
    // The memory of a node without CPUs is written from the others.
    let with_cpus = || nodes.iter().filter(|n| !n.cpus.is_empty());
    let near = if node.cpus.is_empty() { with_cpus().next() } else { Some(node) };
    let Some(near) = near else { return Ok(()) };
    out.first_touch.push(first_touch(bench, node, near, &mut arena)?);
    let cases: Vec<Case<'_>> =
        with_cpus().flat_map(|from| cases(from, from.nid == node.nid)).collect();
    let lines = arena.lines_mut();
    let (rates, complete) = stores(bench, node, &cases, lines)?;
    out.stores.extend(rates);
    out.complete &= complete;
    if complete && near.nid == node.nid {
        let (rates, complete) = passes(bench, near, lines)?;
        out.passes.extend(rates);
        out.complete &= complete;
    }
    Ok(())
}

fn not_measured(nid: u32, full: &HostError) -> Warning {
    let text = format!("stores and passes on node {nid} are not measured: {full}");
    Warning::new("node-full", text, "free memory on that node and calibrate again")
}

fn first_touch(
    bench: &Bench<'_>,
    node: &HostNode,
    near: &HostNode,
    arena: &mut Arena,
) -> Result<FirstTouch, LabError> {
    let lab = &bench.lab;
    lab.progress.begin("first touch", bench.buffer_bytes, Unit::Bytes);
    let began = lab.clock.now_ns();
    let done = |bytes| lab.progress.advance(bytes);
    let touched = arena.fault_in(lab.topo, &near.cpus, &done, lab.stop);
    let wall_ns = lab.clock.now_ns().saturating_sub(began);
    lab.progress.end();
    touched?;
    Ok(FirstTouch {
        nid: node.nid,
        threads: u32::try_from(near.cpus.len()).unwrap_or(u32::MAX),
        bytes: size_of_val(arena.lines()) as u64,
        huge_page_bytes: arena.huge_page_bytes(),
        wall_ns,
    })
}

/// Every store from the node's own CPUs; from others the three that matter.
fn cases(from: &HostNode, is_local: bool) -> Vec<Case<'_>> {
    let all = from.cpus.len();
    let mut counts: Vec<usize> =
        std::iter::successors(Some(1), |n| Some(n * 2)).take_while(|n| *n < all).collect();
    counts.push(all);
    if !is_local {
        counts.retain(|&n| n == 1 || n == all);
    }
    let few = [
        Store::default_zero(),
        Store::best_image(StoreKind::Temporal),
        Store::best_image(StoreKind::NonTemporal),
    ];
    let stores = Store::available().into_iter().filter(|s| is_local || few.contains(s));
    let mut out = Vec::new();
    for store in stores {
        for &threads in &counts {
            out.push(Case { from, threads, store, images: false });
            if store.writes_images() {
                out.push(Case { from, threads, store, images: true });
            }
        }
    }
    out
}

/// Rates of a series, and whether nobody ended it.
type Series<R> = (Vec<R>, bool);

fn stores(
    bench: &Bench<'_>,
    node: &HostNode,
    cases: &[Case<'_>],
    lines: &mut [Line],
) -> Result<Series<StoreRate>, LabError> {
    let lab = &bench.lab;
    let what = format!("stores on node {}", node.nid);
    let sizes = (cases.len(), lab.runs, bench.limit_s);
    let samples = lab
        .rounds_alone(&what, sizes, |at| lab.undisturbed(|| store_once(lab, &cases[at], lines)))?;
    let bytes = size_of_val(lines) as u64;
    let rate = |(case, samples_ns): (&Case<'_>, Vec<u64>)| {
        let times: Vec<f64> = samples_ns.iter().map(|&ns| ns as f64).collect();
        let time = summarise(&times, lab.seed);
        StoreRate {
            store: case.store.name().into(),
            kind: case.store.kind().to_string(),
            data: case.data().into(),
            cpu_nid: case.from.nid,
            memory_nid: node.nid,
            threads: u32::try_from(case.threads).unwrap_or(u32::MAX),
            bytes,
            bytes_per_s: bytes as f64 * 1e9 / time.median.max(1.0),
            median_ns: time.median,
            ci95_ns: time.ci95,
            samples_ns,
        }
    };
    let with_runs = cases.iter().zip(samples.of_case).filter(|(_, s)| !s.is_empty());
    Ok((with_runs.map(rate).collect(), samples.complete))
}

/// Makes every line cold, stores, and compares every byte.
fn store_once(lab: &Lab<'_>, case: &Case<'_>, lines: &mut [Line]) -> Result<(u64, u64), LabError> {
    poison_cold(lines);
    let share = lines.len().div_ceil(case.threads).max(1);
    let shares = lines.chunks_mut(share).collect();
    let write = |part: &mut [Line]| match case.store.as_image().filter(|_| case.images) {
        Some(store) => store.write_images(part, IMAGE, [0; 8]),
        None => case.store.zero(part),
    };
    let time = team::timed(lab.topo, lab.clock, &case.from.cpus, shares, write)?;
    let wanted = if case.images { IMAGE } else { [0; 8] };
    check(lines, || format!("storing {} with {}", case.data(), case.store.name()), |_| wanted)?;
    Ok(time)
}

fn check(
    lines: &[Line],
    what: impl Fn() -> String,
    wanted: impl Fn(usize) -> [u64; 8],
) -> Result<(), LabError> {
    match lines.iter().enumerate().find(|(at, line)| line.words() != wanted(*at)) {
        None => Ok(()),
        Some((at, line)) => Err(LabError::WrongData {
            what: what(),
            found: format!("line {at} is {:x?}, expected {:x?}", line.words(), wanted(at)),
        }),
    }
}

/// The passes, in the order of the samples below.
const PASSES: [(&str, &str); 4] =
    [("init", "cold"), ("init", "warm"), ("free", "cold"), ("free", "warm")];

/// Field writes and the free pass of one thread, on lines in memory and in the cache.
fn passes(
    bench: &Bench<'_>,
    node: &HostNode,
    lines: &mut [Line],
) -> Result<Series<PassRate>, LabError> {
    let lab = &bench.lab;
    let what = format!("passes on node {}", node.nid);
    let sizes = (PASSES.len(), lab.runs, bench.limit_s);
    let few = WARM_LINES.min(lines.len());
    let samples = lab.rounds_alone(&what, sizes, |at| {
        let (name, temperature) = PASSES[at];
        let part = if temperature == "warm" { &mut lines[..few] } else { &mut *lines };
        lab.undisturbed(|| pass_once(lab, node, part, (name, temperature == "warm")))
    })?;
    let rate = |(&(name, temperature), samples_ns): (&(&str, &str), Vec<u64>)| {
        let pages = if temperature == "warm" { few * WARM_REPEATS } else { lines.len() };
        let each = |&ns: &u64| ns as f64 / pages.max(1) as f64;
        let each: Vec<f64> = samples_ns.iter().map(each).collect();
        PassRate {
            pass: name.into(),
            temperature: temperature.into(),
            nid: node.nid,
            pages: pages as u64,
            ns_per_page: summarise(&each, lab.seed),
        }
    };
    let with_runs = PASSES.iter().zip(samples.of_case).filter(|(_, s)| !s.is_empty());
    Ok((with_runs.map(rate).collect(), samples.complete))
}

/// Times one pass over lines that hold 0xff, before a free pass initialised ones, and
/// compares what is left.
fn pass_once(
    lab: &Lab<'_>,
    node: &HostNode,
    lines: &mut [Line],
    (name, is_warm): (&str, bool),
) -> Result<(u64, u64), LabError> {
    poison_cold(lines);
    let work = |part: &mut [Line]| match name {
        "init" => pass(part, 0, &Prepare::Nothing, 1, Then::Fields),
        _ => free_pass(part),
    };
    if is_warm {
        work(lines);
    }
    let repeats = if is_warm { WARM_REPEATS } else { 1 };
    let repeat = |part: &mut [Line]| (0..repeats).for_each(|_| work(part));
    let cpus = node.cpus.get(..1).unwrap_or_default();
    let time = team::timed(lab.topo, lab.clock, cpus, vec![&mut *lines], repeat)?;
    check(
        lines,
        || format!("the {name} pass"),
        |at| match name {
            "init" => expected(at, &Prepare::Nothing, Then::Fields),
            _ => freed([u64::MAX; 8]),
        },
    )?;
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::bench_of_tests::with_lab;

    const BYTES: u64 = 1 << 20;

    fn small(lab: Lab<'_>) -> Bench<'_> {
        Bench { lab, buffer_bytes: BYTES, limit_s: 9 }
    }

    #[test]
    fn every_store_both_passes_and_the_first_touch_are_measured() {
        let found = with_lab(&|| false, |lab| measure(&small(lab)).unwrap());
        assert!(found.complete);
        let nodes = with_lab(&|| false, |lab| lab.topo.nodes());
        assert_eq!(found.first_touch.len(), nodes.iter().filter(|n| n.local_bytes > 0).count());
        for store in Store::available() {
            let of = |r: &&StoreRate| r.store == store.name() && r.cpu_nid == r.memory_nid;
            let zeroes = found.stores.iter().filter(of).find(|r| r.data == "zeroes").unwrap();
            assert_eq!((zeroes.samples_ns.len(), zeroes.bytes), (2, BYTES));
            let images = found.stores.iter().filter(of).any(|r| r.data == "images");
            assert_eq!(images, store.writes_images());
        }
        assert!(found.passes.len() >= PASSES.len());
        assert!(found.passes.iter().all(|p| p.ns_per_page.median > 0.0));
        let stopped = with_lab(&|| true, |lab| measure(&small(lab)).unwrap());
        assert!(!stopped.complete && stopped.stores.is_empty());
    }

    #[test]
    fn a_store_that_leaves_lines_out_is_wrong_data() {
        with_lab(&|| false, |lab| {
            let from = &lab.node().unwrap();
            let mut lines = vec![Line::default(); 4096];
            let store = Store::named("broken-for-tests").unwrap();
            let broken = Case { from, threads: 1, store, images: false };
            let done = store_once(&lab, &broken, &mut lines);
            assert!(matches!(done, Err(LabError::WrongData { .. })), "{done:?}");
            let whole = Case { store: Store::default_zero(), ..broken };
            assert!(store_once(&lab, &whole, &mut lines).is_ok());
        });
    }
}
