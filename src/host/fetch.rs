//! Asking for a line before it is written, without writing it.
//!
//! [`for_write`] is `prefetchw`: the line comes into the cache in a state that may be
//! written. It changes no memory, so any CPU may leave it out.

use super::line::Line;

/// Asks for every line of `lines`, to write it soon.
///
/// x86-64: `prefetchw`, which CPUs without it execute as nothing or as a plain
/// prefetch (all CPUs that run 64-bit Windows 8.1 or later have it). arm64: `prfm
/// pstl1keep`. Elsewhere nothing.
#[inline]
pub fn for_write(lines: &[Line]) {
    for line in lines {
        one(line);
    }
}

/// Whether [`for_write`] does anything on this architecture.
pub const fn exists() -> bool {
    cfg!(any(target_arch = "x86_64", target_arch = "aarch64"))
}

#[inline(always)]
fn one(line: &Line) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no effect on memory or registers, whatever the address.
    unsafe {
        core::arch::asm!("prefetchw [{line}]", line = in(reg) &raw const *line,
            options(nostack, preserves_flags, readonly));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        core::arch::asm!("prfm pstl1keep, [{line}]", line = in(reg) &raw const *line,
            options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = line;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_changes_nothing() {
        let lines = [Line::new([7; 8]); 100];
        for_write(&lines);
        for_write(&lines[..0]);
        assert!(lines.iter().all(|line| line.words() == [7; 8]));
    }
}
