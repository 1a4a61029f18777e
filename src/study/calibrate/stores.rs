//! What the store kernels, the two passes and the first touch cost on this host.
//!
//! [`measure`] takes one buffer per node with memory and runs every store over it, from
//! the node's own CPUs with 1, 2, 4 … and all threads, and from every other node's CPUs
//! with one thread and all; then the init pass and the free pass on cold and on warm
//! lines. Order is shuffled in every round. Neighbours: [`super`], and
//! [`crate::lab::prefetch::passes`], which has the passes.

use crate::host::Arena;
use crate::host::clock::Clock;
use crate::host::error::HostError;
use crate::host::line::Line;
use crate::host::store::{Store, StoreKind};
use crate::host::topology::{HostNode, HostTopology};
use crate::lab::prefetch::passes::{BLOCK_PAGES, Prepare, Then, free_pass, pass};
use crate::lab::{poison_cold, team};
use crate::progress::{Progress, Unit};
use crate::record::calibration::{FirstTouch, PassRate, StoreRate};
use crate::stats::{Rng, summarise};

/// Bytes of struct pages of the passes on warm lines: they fit into any second-level cache.
const WARM_LINES: usize = 2 * BLOCK_PAGES;
/// So often a warm pass is repeated within a sample, so that the clock can tell.
const WARM_REPEATS: usize = 32;

/// What is needed to measure.
pub(super) struct Bench<'b> {
    /// For pinning and binding.
    pub topo: &'b HostTopology,
    /// For timing.
    pub clock: &'b Clock,
    /// Bytes of the buffer on each node.
    pub buffer_bytes: u64,
    /// Rounds.
    pub runs: u32,
    /// Seed of the order and of the intervals.
    pub seed: u64,
    /// No round begins later than this many seconds after the first of its node.
    pub limit_s: u64,
    /// Told how far the work is.
    pub progress: &'b dyn Progress,
    /// Ends the work.
    pub stop: &'b (dyn Fn() -> bool + Sync),
}

/// What was measured.
#[derive(Debug, Default)]
pub(super) struct Rates {
    pub stores: Vec<StoreRate>,
    pub passes: Vec<PassRate>,
    pub first_touch: Vec<FirstTouch>,
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

/// Measures all nodes that have memory.
///
/// # Errors
/// What the host layer says; an interruption is none.
pub(super) fn measure(bench: &Bench<'_>) -> Result<Rates, HostError> {
    let nodes = bench.topo.nodes();
    let mut out = Rates { complete: true, ..Rates::default() };
    for node in nodes.iter().filter(|node| node.local_bytes > 0) {
        match on_node(bench, node, &nodes, &mut out) {
            Err(HostError::Interrupted) => {
                out.complete = false;
                break;
            }
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
) -> Result<(), HostError> {
    let lines = usize::try_from(bench.buffer_bytes / 64).unwrap_or(usize::MAX);
    let mut arena = Arena::map(lines)?;
    match arena.bind(bench.topo, node.nid) {
        Ok(()) | Err(HostError::BindRefused { .. }) => {}
        Err(other) => return Err(other),
    }
    // The memory of a node without CPUs is written from the others.
    let with_cpus = || nodes.iter().filter(|n| !n.cpus.is_empty());
    let near = if node.cpus.is_empty() { with_cpus().next() } else { Some(node) };
    let Some(near) = near else { return Ok(()) };
    out.first_touch.push(first_touch(bench, node, near, &mut arena)?);
    let cases: Vec<Case<'_>> =
        with_cpus().flat_map(|from| cases(from, from.nid == node.nid)).collect();
    out.stores.extend(stores(bench, node, &cases, arena.lines_mut())?);
    if near.nid == node.nid {
        out.passes.extend(passes(bench, near, arena.lines_mut())?);
    }
    Ok(())
}

fn first_touch(
    bench: &Bench<'_>,
    node: &HostNode,
    near: &HostNode,
    arena: &mut Arena,
) -> Result<FirstTouch, HostError> {
    bench.progress.begin("first touch", bench.buffer_bytes, Unit::Bytes);
    let began = bench.clock.now_ns();
    let done = |bytes| bench.progress.advance(bytes);
    let touched = arena.fault_in(bench.topo, &near.cpus, &done, bench.stop);
    let wall_ns = bench.clock.now_ns().saturating_sub(began);
    bench.progress.end();
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

fn stores(
    bench: &Bench<'_>,
    node: &HostNode,
    cases: &[Case<'_>],
    lines: &mut [Line],
) -> Result<Vec<StoreRate>, HostError> {
    let what = format!("stores on node {}", node.nid);
    let samples = rounds(bench, &what, cases.len(), |at| {
        let case = &cases[at];
        let share = lines.len().div_ceil(case.threads).max(1);
        let shares = lines.chunks_mut(share).collect();
        let write = |part: &mut [Line]| match case.store.as_image().filter(|_| case.images) {
            Some(store) => store.write_images(part, [u64::MAX; 8], [0; 8]),
            None => case.store.zero(part),
        };
        Ok(team::timed(bench.topo, bench.clock, &case.from.cpus, shares, write)?.0)
    })?;
    let bytes = size_of_val(lines) as u64;
    let rate = |(case, samples_ns): (&Case<'_>, Vec<u64>)| {
        let times: Vec<f64> = samples_ns.iter().map(|&ns| ns as f64).collect();
        let time = summarise(&times, bench.seed);
        StoreRate {
            store: case.store.name().into(),
            kind: case.store.kind().to_string(),
            data: if case.images { "images" } else { "zeroes" }.into(),
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
    Ok(cases.iter().zip(samples).filter(|(_, s)| !s.is_empty()).map(rate).collect())
}

/// The passes, in the order of the samples below.
const PASSES: [(&str, &str); 4] =
    [("init", "cold"), ("init", "warm"), ("free", "cold"), ("free", "warm")];

/// Field writes and the free pass of one thread, on lines in memory and in the cache.
fn passes(
    bench: &Bench<'_>,
    node: &HostNode,
    lines: &mut [Line],
) -> Result<Vec<PassRate>, HostError> {
    let what = format!("passes on node {}", node.nid);
    let few = WARM_LINES.min(lines.len());
    let samples = rounds(bench, &what, PASSES.len(), |at| {
        let (name, temperature) = PASSES[at];
        let warm = temperature == "warm";
        let work = |part: &mut [Line]| match name {
            "init" => pass(part, 0, &Prepare::Nothing, 1, Then::Fields),
            _ => free_pass(part),
        };
        let (part, repeats) = match warm {
            true => (lines.get_mut(..few).unwrap_or_default(), WARM_REPEATS),
            false => (&mut *lines, 1),
        };
        if warm {
            work(part);
        } else {
            poison_cold(part);
        }
        let repeat = |part: &mut [Line]| (0..repeats).for_each(|_| work(part));
        let cpus = node.cpus.get(..1).unwrap_or_default();
        Ok(team::timed(bench.topo, bench.clock, cpus, vec![part], repeat)?.0)
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
            ns_per_page: summarise(&each, bench.seed),
        }
    };
    Ok(PASSES.iter().zip(samples).filter(|(_, s)| !s.is_empty()).map(rate).collect())
}

/// Runs `count` cases once per round in a new order each, and returns their times.
fn rounds(
    bench: &Bench<'_>,
    what: &str,
    count: usize,
    mut run_one: impl FnMut(usize) -> Result<u64, HostError>,
) -> Result<Vec<Vec<u64>>, HostError> {
    let mut samples = vec![Vec::new(); count];
    let mut rng = Rng::new(bench.seed);
    bench.progress.begin(what, u64::from(bench.runs) * count as u64, Unit::Runs);
    let ends = bench.clock.now_ns().saturating_add(bench.limit_s.saturating_mul(1_000_000_000));
    let mut one_round = || {
        let mut order: Vec<usize> = (0..count).collect();
        rng.shuffle(&mut order);
        for case in order {
            if (bench.stop)() {
                return Err(HostError::Interrupted);
            }
            samples[case].push(run_one(case)?);
            bench.progress.advance(1);
        }
        Ok(())
    };
    let mut result = one_round();
    for _ in 1..bench.runs {
        if result.is_err() || bench.clock.now_ns() > ends {
            break;
        }
        result = one_round();
    }
    bench.progress.end();
    result.map(|()| samples)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;

    #[test]
    fn every_store_both_passes_and_the_first_touch_are_measured() {
        let topo = HostTopology::load().unwrap();
        let bench = Bench {
            topo: &topo,
            clock: &Clock::measure(),
            buffer_bytes: 1 << 20,
            runs: 2,
            seed: 1,
            limit_s: 9,
            progress: &Silent,
            stop: &|| false,
        };
        let found = measure(&bench).unwrap();
        assert!(found.complete);
        let nodes = topo.nodes().iter().filter(|n| n.local_bytes > 0).count();
        assert_eq!(found.first_touch.len(), nodes);
        for store in Store::available() {
            let of = |r: &&StoreRate| r.store == store.name() && r.cpu_nid == r.memory_nid;
            let zeroes = found.stores.iter().filter(of).find(|r| r.data == "zeroes").unwrap();
            assert_eq!((zeroes.samples_ns.len(), zeroes.bytes), (2, 1 << 20));
            let images = found.stores.iter().filter(of).any(|r| r.data == "images");
            assert_eq!(images, store.writes_images());
        }
        assert!(found.passes.len() >= PASSES.len());
        assert!(found.passes.iter().all(|p| p.ns_per_page.median > 0.0));
        let stopped = measure(&Bench { stop: &|| true, ..bench }).unwrap();
        assert!(!stopped.complete && stopped.stores.is_empty());
    }
}
