//! Pinned workers that start together and take chunks from a queue.
//!
//! [`SpinBarrier`] lets a team start at once, [`run_team`] runs one closure on every
//! CPU of a list and hands back what each measured. Nothing here allocates or
//! blocks between the barrier and the end of the work.

use super::ExecError;
use crate::host::barrier::SpinBarrier;
use crate::host::topology::HostTopology;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Runs `work` once per entry of `seats` at the same time, pinned to the seat's CPU.
///
/// All threads pin themselves first and start together. The results come in the
/// order of the seats.
///
/// # Errors
/// When a thread cannot be started or pinned; then no work is done.
pub fn run_team<S: Sync, T: Send>(
    topo: &HostTopology,
    seats: &[(u32, S)],
    work: impl Fn(&S) -> T + Sync,
) -> Result<Vec<T>, ExecError> {
    let barrier = SpinBarrier::new(seats.len());
    let failed = AtomicUsize::new(0);
    let seat = |cpu: u32, given: &S| {
        let pinned = topo.pin_thread(cpu);
        if pinned.is_err() {
            failed.fetch_add(1, Ordering::AcqRel);
        }
        // Also when pinning failed, or the others would wait for ever.
        barrier.wait();
        pinned?;
        if failed.load(Ordering::Acquire) > 0 {
            return Err(ExecError::TeamBroken);
        }
        Ok(work(given))
    };
    let results: Vec<Result<T, ExecError>> = thread::scope(|scope| {
        let seat = &seat;
        let mut threads = Vec::with_capacity(seats.len());
        for (cpu, given) in seats {
            let builder = thread::Builder::new().name(format!("pageinit-{cpu}"));
            let started = builder.spawn_scoped(scope, move || seat(*cpu, given));
            if started.is_err() {
                failed.fetch_add(1, Ordering::AcqRel);
                barrier.arrive();
            }
            threads.push(started.map_err(ExecError::Spawn));
        }
        let joined = threads.into_iter().map(|thread| match thread {
            Ok(handle) => handle.join().unwrap_or(Err(ExecError::TeamBroken)),
            Err(cause) => Err(cause),
        });
        joined.collect()
    });
    first_cause(results)
}

/// All results, or the error that came first in kind: a cause before its echo.
fn first_cause<T>(results: Vec<Result<T, ExecError>>) -> Result<Vec<T>, ExecError> {
    let mut out = Vec::with_capacity(results.len());
    let mut echo = None;
    for result in results {
        match result {
            Ok(value) => out.push(value),
            Err(ExecError::TeamBroken) => echo = Some(ExecError::TeamBroken),
            Err(cause) => return Err(cause),
        }
    }
    echo.map_or(Ok(out), Err)
}
