//! Ctrl-C, and limits of file sizes.
//!
//! The first SIGINT or SIGTERM only sets a flag, which long work reads through
//! [`interrupted`] so that it can leave a valid record. The second one ends the
//! process at once.

use std::sync::atomic::{AtomicBool, Ordering};

/// Set by the first signal. Reading and swapping it is async-signal-safe.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// The exit status of a process ended by Ctrl-C.
const INTERRUPTED_STATUS: i32 = 130;

/// Catches SIGINT and SIGTERM from now on, in the whole process.
pub fn catch_interrupt() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: all-zero is a valid `sigaction`: no flags, an empty mask.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        let handler: extern "C" fn(libc::c_int) = on_signal;
        action.sa_sigaction = handler as *const () as usize;
        // Calls that were waiting go on: whoever must stop asks `interrupted`.
        action.sa_flags = libc::SA_RESTART;
        // SAFETY: the handler does nothing but what signal-safety(7) allows. The
        // call cannot fail for these two signals.
        unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
    }
}

/// Whether SIGINT or SIGTERM has arrived since [`catch_interrupt`].
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Makes a write beyond the limit of file sizes an error that can be reported, instead of
/// SIGXFSZ, which ends the process and leaves a half-written file.
pub fn report_large_files() {
    // SAFETY: an ignored signal runs no code of ours.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

extern "C" fn on_signal(_signal: libc::c_int) {
    if INTERRUPTED.swap(true, Ordering::Relaxed) {
        // SAFETY: `_exit` is async-signal-safe and runs no destructors.
        unsafe { libc::_exit(INTERRUPTED_STATUS) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const CHILD: &str = "PAGEINIT_TEST_SIGNAL_CHILD";

    /// The flag is the whole process's, so the signals are raised in a process of
    /// their own: this test, started again.
    #[test]
    fn the_second_signal_ends_the_process() {
        if std::env::var_os(CHILD).is_some() {
            return in_child();
        }
        let name = "host::signal::tests::the_second_signal_ends_the_process";
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--test-threads=1"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&child.stdout);
        assert_eq!(child.status.code(), Some(INTERRUPTED_STATUS), "{output}");
        assert!(!interrupted());
    }

    fn in_child() {
        catch_interrupt();
        assert!(!interrupted());
        // SAFETY: raising a caught signal runs our handler and returns.
        unsafe { libc::raise(libc::SIGTERM) };
        assert!(interrupted());
        // SAFETY: as above; the handler ends the process this time.
        unsafe { libc::raise(libc::SIGINT) };
        unreachable!("the second signal was survived");
    }
}
