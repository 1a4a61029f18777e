//! Filling the whole buffer: before every run, and to learn what zeroes cost here.

use super::memory::{Memory, cpus_of};
use super::team::run_team;
use super::{ExecError, Stop, go_on};
use crate::host::clock::Clock;
use crate::host::store::{ImageStore, Store, StoreKind};
use crate::host::topology::HostTopology;
use crate::host::zeroes;
use crossbeam::queue::ArrayQueue;

/// So that nothing is zero by luck and every line is cold, as at boot.
pub(super) fn poison(
    memory: &mut Memory,
    topo: &HostTopology,
    stop: Stop<'_>,
) -> Result<(), ExecError> {
    fill(memory, topo, u64::MAX, stop)
}

/// Fills the whole buffer with one word past the caches, by all CPUs of each node.
fn fill(
    memory: &mut Memory,
    topo: &HostTopology,
    word: u64,
    stop: Stop<'_>,
) -> Result<(), ExecError> {
    const SLICE_LINES: usize = (8 << 20) / 64;
    let store = best_image(StoreKind::NonTemporal)?;
    for (host_nid, lines) in memory.arenas_mut() {
        let cpus = cpus_of(topo, host_nid);
        let queue = filled(lines.chunks_mut(SLICE_LINES).collect());
        let seats: Vec<(u32, ())> = cpus.into_iter().map(|cpu| (cpu, ())).collect();
        run_team(topo, &seats, |()| {
            while !stop()
                && let Some(slice) = queue.pop()
            {
                store.write_images(slice, [word; 8], [0; 8]);
            }
        })?;
    }
    go_on(stop)
}

/// How many times as fast as other data this host writes zeroes past the caches:
/// the median of a few fills in turn. Some processors treat lines of zeroes apart, and
/// then a pass of zeroes says little about other stores.
///
/// # Errors
/// When threads cannot be started or pinned, and when `stop` says so.
pub fn zero_advantage(
    memory: &mut Memory,
    topo: &HostTopology,
    clock: &Clock,
    stop: Stop<'_>,
) -> Result<f64, ExecError> {
    zeroes::advantage(clock, |word| fill(memory, topo, word, stop))
}

/// A queue that holds `items` and is full.
pub(super) fn filled<T>(items: Vec<T>) -> ArrayQueue<T> {
    let queue = ArrayQueue::new(items.len().max(1));
    for item in items {
        // The queue has room for every item, so none comes back.
        let _ = queue.push(item);
    }
    queue
}

/// The widest store of a kind that writes images.
pub(super) fn best_image(kind: StoreKind) -> Result<ImageStore, ExecError> {
    let store = Store::best_image(kind);
    store.as_image().ok_or(ExecError::NoImageStore { kind })
}
