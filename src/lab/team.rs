//! Pinned threads that start together, timed from the first start to the last end.

use crate::host::barrier::SpinBarrier;
use crate::host::clock::Clock;
use crate::host::error::HostError;
use crate::host::preempt;
use crate::host::topology::HostTopology;
use std::thread;

/// Start, end, and how often the CPU was taken away.
type Span = (u64, u64, u64);

/// Runs `work` on one share per CPU at the same time. Returns the wall time in
/// ns and how often the kernel took a CPU away meanwhile. Shares beyond the CPUs are left out.
///
/// # Errors
/// When a thread cannot be started or pinned; others may have worked by then.
pub fn timed<S: Send>(
    topo: &HostTopology,
    clock: &Clock,
    cpus: &[u32],
    shares: Vec<S>,
    work: impl Fn(S) + Sync,
) -> Result<(u64, u64), HostError> {
    let barrier = SpinBarrier::new(cpus.len().min(shares.len()));
    let seat = |cpu: u32, share: S| {
        let pinned = topo.pin_thread(cpu);
        // Also when pinning failed, or the others would wait for ever.
        barrier.wait();
        pinned?;
        let before = preempt::switches();
        let began = clock.now_ns();
        work(share);
        let ended = clock.now_ns();
        Ok((began, ended, preempt::switches().saturating_sub(before)))
    };
    let spans: Vec<Result<Span, HostError>> = thread::scope(|scope| {
        let mut threads = Vec::new();
        for (&cpu, share) in cpus.iter().zip(shares) {
            let seat = &seat;
            let started = thread::Builder::new().spawn_scoped(scope, move || seat(cpu, share));
            if started.is_err() {
                barrier.arrive();
            }
            threads.push(started.map_err(HostError::Thread));
        }
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(|thread| thread.and_then(join)).collect()
    });
    let spans: Vec<Span> = spans.into_iter().collect::<Result<_, _>>()?;
    let began = spans.iter().map(|span| span.0).min().unwrap_or(0);
    let ended = spans.iter().map(|span| span.1).max().unwrap_or(0);
    Ok((ended.saturating_sub(began), spans.iter().map(|span| span.2).sum()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_share_is_worked_on_and_a_missing_cpu_is_an_error() {
        let (topo, clock) = (HostTopology::load().unwrap(), Clock::measure());
        let cpus = topo.allowed_cpus();
        let mut memory = vec![0; cpus.len()];
        let shares: Vec<&mut i32> = memory.iter_mut().collect();
        assert!(timed(&topo, &clock, &cpus, shares, |share| *share += 1).is_ok());
        assert!(memory.iter().all(|&n| n == 1));
        let failed = timed(&topo, &clock, &[cpus[0], u32::MAX], vec![1, 2], |_| ());
        assert!(matches!(failed, Err(HostError::NoSuchCpu { .. })));
    }
}
