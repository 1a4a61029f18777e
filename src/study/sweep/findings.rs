//! What the points of a sweep show together: knees, best chunks, the cost of a pass.
//!
//! Everything is drawn per machine (nodes, memory, page size) and kernel: figures of
//! different machines are never compared.

use crate::plan::Strategy;
use crate::record::sweep::{BestChunk, Knee, MachineShape, SetupZero, SweepPoint};
use std::collections::HashMap;

/// More threads have to gain at least this share to pay.
const LEAST_GAIN: f64 = 0.05;

/// From this ratio on the second pass counts.
const NOTABLE_RATIO: f64 = 1.05;

/// What points of one series share: all but the threads.
type Key<'p> = (MachineShape, &'p str, &'p str, Option<u64>);

/// Points that differ in threads only, ascending in threads.
pub(super) struct Series<'p> {
    all: Vec<Vec<&'p SweepPoint>>,
    by_key: HashMap<Key<'p>, usize>,
}

impl<'p> Series<'p> {
    /// The series of `points`, in order of their first points.
    pub(super) fn of(points: &'p [SweepPoint]) -> Self {
        let mut out = Self { all: Vec::new(), by_key: HashMap::new() };
        for point in points {
            let key =
                (point.shape(), point.kernel.as_str(), point.strategy.as_str(), point.chunk_bytes);
            let at = *out.by_key.entry(key).or_insert(out.all.len());
            match out.all.get_mut(at) {
                Some(series) => series.push(point),
                None => out.all.push(vec![point]),
            }
        }
        out
    }

    /// Where more threads stop paying.
    pub(super) fn knees(&self) -> Vec<Knee> {
        let with_nodes = |s: &&Vec<&SweepPoint>| s.len() > 1 && s.iter().any(|p| p.nodes_ns > 0);
        self.all.iter().filter(with_nodes).filter_map(|s| knee(s)).collect()
    }

    /// The time of `setup-zero` over that of `deferred`, where both are known.
    pub(super) fn setup_zero(&self) -> Vec<SetupZero> {
        let is_own = |s: &&Vec<&SweepPoint>| {
            s.first().is_some_and(|p| p.strategy == Strategy::SetupZero.name())
        };
        self.all.iter().filter(is_own).filter_map(|own| self.against_deferred(own)).collect()
    }

    fn against_deferred(&self, own: &[&SweepPoint]) -> Option<SetupZero> {
        let first = own.first()?;
        let deferred = Strategy::Deferred.name();
        let key = (first.shape(), first.kernel.as_str(), deferred, first.chunk_bytes);
        let other = self.all.get(*self.by_key.get(&key)?)?;
        let ratio = |zero: &&SweepPoint| {
            let deferred = other.iter().find(|p| p.threads == zero.threads && p.nodes_ns > 0)?;
            Some((zero.threads, zero.nodes_ns as f64 / deferred.nodes_ns as f64))
        };
        let ratios: Vec<(u32, f64)> = own.iter().filter_map(ratio).collect();
        let last_above = ratios.iter().rposition(|(_, ratio)| *ratio >= NOTABLE_RATIO);
        let from = last_above.map_or(0, |at| at + 1);
        Some(SetupZero {
            shape: first.shape(),
            kernel: first.kernel.clone(),
            chunk_bytes: first.chunk_bytes,
            negligible_from: ratios.get(from).map(|(threads, _)| *threads),
            ratios,
        })
    }
}

/// The fewest threads that no larger count beats by [`LEAST_GAIN`]. Settling is left out:
/// it passes where all CPUs have a thread, whatever more threads bring until there.
fn knee(series: &[&SweepPoint]) -> Option<Knee> {
    let working_ns = |p: &SweepPoint| p.nodes_ns.saturating_sub(p.settle_ns);
    let least_ns = series.iter().map(|p| p.nodes_ns).min()?;
    let mut least_later = vec![u64::MAX; series.len()];
    let mut least = u64::MAX;
    for (at, point) in series.iter().enumerate().rev() {
        least_later[at] = least;
        least = least.min(working_ns(point));
    }
    let pays =
        |now: &SweepPoint, later: u64| (later as f64) < working_ns(now) as f64 * (1.0 - LEAST_GAIN);
    let both = series.iter().zip(least_later);
    let found = both.into_iter().find(|(point, later)| !pays(point, *later))?.0;
    Some(Knee {
        shape: found.shape(),
        kernel: found.kernel.clone(),
        strategy: found.strategy.clone(),
        chunk_bytes: found.chunk_bytes,
        threads: found.threads,
        nodes_ns: found.nodes_ns,
        least_ns,
    })
}

/// The chunk with the least total, per machine, kernel and strategy.
pub(super) fn best_chunks(points: &[SweepPoint]) -> Vec<BestChunk> {
    let mut out: Vec<BestChunk> = Vec::new();
    let mut by_key: HashMap<(MachineShape, &str, &str), usize> = HashMap::new();
    for p in points {
        let at = *by_key.entry((p.shape(), &p.kernel, &p.strategy)).or_insert(out.len());
        if out.get(at).is_some_and(|known| known.total_ns <= p.total_ns) {
            continue;
        }
        let best = BestChunk {
            shape: p.shape(),
            kernel: p.kernel.clone(),
            strategy: p.strategy.clone(),
            chunk_bytes: p.chunk_bytes,
            threads: p.threads,
            total_ns: p.total_ns,
        };
        match out.get_mut(at) {
            Some(known) => *known = best,
            None => out.push(best),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Label;

    fn point(nodes: u32, strategy: &str, threads: u32, nodes_ns: u64) -> SweepPoint {
        SweepPoint {
            kernel: "6.12".into(),
            strategy: strategy.into(),
            threads,
            chunk_bytes: None,
            total_ns: nodes_ns + 10,
            boot_cpu_ns: 10,
            nodes_ns,
            node_bytes: None,
            settle_ns: 0,
            range_ns: [nodes_ns, nodes_ns],
            bound_by: String::new(),
            nodes: Some(nodes),
            memory_bytes: Some(1 << 40),
            page_bytes: Some(4096),
            label: Label::Modelled,
            measured: None,
        }
    }

    #[test]
    fn knees_are_drawn_per_machine() {
        let points = [
            point(2, "deferred", 1, 1000),
            point(2, "deferred", 2, 980),
            point(4, "deferred", 1, 500),
            point(4, "deferred", 2, 250),
            point(4, "deferred", 4, 249),
        ];
        let knees = Series::of(&points).knees();
        let found: Vec<_> = knees.iter().map(|k| (k.shape.nodes, k.threads, k.least_ns)).collect();
        assert_eq!(found, [(Some(2), 1, 980), (Some(4), 2, 249)]);
    }

    // With every CPU in use nothing settles: the last point gains by that alone.
    #[test]
    fn a_knee_is_no_matter_of_settling() {
        let times = [(1, 1000, 0), (2, 525, 25), (3, 524, 25), (4, 498, 0)];
        let points = times.map(|(threads, nodes_ns, settle_ns)| SweepPoint {
            settle_ns,
            ..point(2, "deferred", threads, nodes_ns)
        });
        let knees = Series::of(&points).knees();
        assert_eq!((knees[0].threads, knees[0].nodes_ns, knees[0].least_ns), (2, 525, 498));
    }

    #[test]
    fn ratios_pair_the_same_machine_and_threads() {
        let points = [
            point(2, "setup-zero", 1, 1500),
            point(2, "setup-zero", 2, 612),
            point(2, "deferred", 1, 1000),
            point(2, "deferred", 2, 600),
            point(4, "setup-zero", 1, 700),
        ];
        let ratios = Series::of(&points).setup_zero();
        assert_eq!(ratios.len(), 1);
        assert_eq!(ratios[0].ratios, [(1, 1.5), (2, 1.02)]);
        assert_eq!(ratios[0].negligible_from, Some(2));
    }

    #[test]
    fn the_best_chunk_is_the_first_of_equals() {
        let mut points = [point(2, "deferred", 1, 9), point(2, "deferred", 2, 9)];
        points[1].chunk_bytes = Some(1 << 27);
        let best = best_chunks(&points);
        assert_eq!((best.len(), best[0].chunk_bytes), (1, None));
        points[1].total_ns -= 1;
        assert_eq!(best_chunks(&points)[0].chunk_bytes, Some(1 << 27));
    }
}
