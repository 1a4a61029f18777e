//! Whether the kernel took the CPU away from a thread, and on which one it is.
//!
//! On a busy machine a time slice of another process is longer than many samples.
//! [`switches`] before and after a sample tells whether one lies in between.

/// How often the calling thread had to leave its CPU against its will since it began.
pub fn switches() -> u64 {
    // SAFETY: all-zero is a valid `rusage`, plain numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is valid for writes; RUSAGE_THREAD exists since Linux 2.6.26.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    u64::try_from(usage.ru_nivcsw).unwrap_or(0)
}

/// The CPU that the calling thread is on at this moment, where the kernel tells.
pub fn running_on() -> Option<u32> {
    // SAFETY: only asks for a number.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_never_goes_back() {
        let first = switches();
        assert!(switches() >= first);
    }
}
