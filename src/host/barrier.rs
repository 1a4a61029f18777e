//! A barrier for pinned teams that start at once: [`SpinBarrier`].

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// A barrier that is left within nanoseconds: waiting threads spin.
///
/// With more threads than CPUs, spinning would keep others from arriving, so a
/// waiting thread gives its CPU away now and then.
#[derive(Debug)]
pub struct SpinBarrier {
    missing: AtomicUsize,
}

impl SpinBarrier {
    /// A barrier for `threads`, to be used once.
    pub const fn new(threads: usize) -> Self {
        Self { missing: AtomicUsize::new(threads) }
    }

    /// Counts one thread as arrived without waiting for the others.
    pub fn arrive(&self) {
        self.missing.fetch_sub(1, Ordering::AcqRel);
    }

    /// Returns when all threads have arrived.
    pub fn wait(&self) {
        self.arrive();
        let mut spins = 0_u32;
        while self.missing.load(Ordering::Acquire) > 0 {
            spins = spins.wrapping_add(1);
            if spins.is_multiple_of(4096) {
                thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_passes_the_barrier_before_the_last_arrives() {
        let barrier = SpinBarrier::new(4);
        let arrived = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    arrived.fetch_add(1, Ordering::SeqCst);
                    barrier.wait();
                    assert_eq!(arrived.load(Ordering::SeqCst), 4);
                });
            }
        });
    }
}
