//! From one message to facts of a [`Boot`].
//!
//! [`message`] offers a message to the parsers of all topics, one file each: [`ident`]
//! (release, command line, page size), [`ranges`] (maps, nodes, zones), [`cpus`],
//! [`platform`] (hardware, hypervisors), [`init`] (times, huge pages) and [`signs`].
//! [`super::memblock`] reads the debug lines. [`number`] and the like are their common
//! words.

mod cpus;
mod ident;
mod init;
mod platform;
mod ranges;
mod signs;

pub(super) use init::init_line;

use super::boot::Boot;
use super::join::Message;
use crate::pfn::PhysRange;

/// Reads a message into `boot`.
pub(super) fn message(boot: &mut Boot, message: &Message<'_>) {
    let text = message.text;
    boot.has_stamps |= message.has_stamp;
    if let Some(seconds) = message.seconds
        && let Some(zone) = boot.zone_pages.last_mut()
    {
        zone.next_seconds.get_or_insert(seconds);
    }
    let _ = boot.memblock.read(text, message.line)
        || ranges::read(boot, message)
        || init::read(boot, text, message.line)
        || cpus::read(boot, text, message.line)
        || platform::read(boot, text, message.line)
        || ident::read(boot, text, message.line)
        || signs::read(boot, text, message.line);
}

/// A decimal number at the beginning of `text`, and what follows.
pub(super) fn number(text: &str) -> Option<(u64, &str)> {
    let text = text.trim_start();
    let end = text.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    digits.parse().ok().map(|n| (n, rest))
}

/// A hexadecimal number with `0x`, and what follows.
pub(super) fn hex(text: &str) -> Option<(u64, &str)> {
    let text = text.trim_start();
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    let end = digits.bytes().position(|b| !b.is_ascii_hexdigit()).unwrap_or(digits.len());
    let (digits, rest) = digits.split_at_checked(end)?;
    u64::from_str_radix(digits, 16).ok().map(|n| (n, rest))
}

/// `0x1000-0xfff`, with an inclusive end as the kernel prints it, as a half-open
/// range, and what follows. `0x0-0xffffffffffffffff` saturates; a wrapped range
/// (the end below the start) is none.
pub(super) fn range(text: &str) -> Option<(PhysRange, &str)> {
    let (start, rest) = hex(text)?;
    let (last, rest) = hex(rest.trim_start().strip_prefix('-')?)?;
    (start <= last).then(|| (PhysRange::new(start, last.saturating_add(1)), rest))
}

/// Whether `text` has a range that ends before it begins, which no kernel prints.
pub(super) fn is_wrapped(text: &str) -> bool {
    let ends = || {
        let (start, rest) = hex(text.trim_start().strip_prefix("[mem")?)?;
        Some((start, hex(rest.trim_start().strip_prefix('-')?)?.0))
    };
    ends().is_some_and(|(start, last)| start > last)
}

/// `[mem 0x1000-0xfff]`.
pub(super) fn mem_range(text: &str) -> Option<(PhysRange, &str)> {
    let rest = text.trim_start().strip_prefix("[mem")?;
    let (range, rest) = range(rest)?;
    rest.trim_start().strip_prefix(']').map(|rest| (range, rest))
}

#[cfg(test)]
pub(super) fn boot_of(text: &str) -> Boot {
    let mut boot = Boot::default();
    for (line, number) in text.lines().zip(1u64..) {
        message(
            &mut boot,
            &Message { text: line.trim(), line: number, seconds: None, has_stamp: false },
        );
    }
    boot
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges() {
        assert_eq!(number(" 12ms"), Some((12, "ms")));
        assert_eq!(number("x"), None);
        assert_eq!(number("99999999999999999999"), None);
        let (found, rest) = mem_range("[mem 0x1000-0x1fff] on").unwrap();
        assert_eq!((found, rest), (PhysRange::new(0x1000, 0x2000), " on"));
        assert!(range("0x2000-0x1fff").is_none());
        assert_eq!(range("0x0-0xffffffffffffffff").unwrap().0.end, u64::MAX);
    }
}
