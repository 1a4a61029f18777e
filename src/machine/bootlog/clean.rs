//! What stands in front of a kernel message: stamps, prefixes, quotes.
//!
//! [`clean`] takes one physical line apart: `> ` of mails, names of files as grep
//! writes them, `<6>`, `kern  :info  :`, `/dev/kmsg` fields, journald and syslog
//! heads, time stamps of all forms ([`super::stamps`]) and caller ids.
//! [`without_escapes`] removes what terminals add. Used by [`super::join`].

use super::stamps::{Bracket, bracket, wall_clock};
use std::borrow::Cow;

/// A line without what stands in front of its message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cleaned<'l> {
    /// The message; blanks at its end are kept, they tell where a line was wrapped.
    pub(super) text: &'l str,
    /// The line without quotes, with its stamp.
    pub(super) unquoted: &'l str,
    /// Seconds since boot, where the stamp says so.
    pub(super) seconds: Option<f64>,
    /// Whether it has a stamp at all, of whatever form, that is not zero.
    pub(super) has_stamp: bool,
    /// Whether something in front marks the beginning of a message.
    pub(super) is_marked: bool,
    /// Whether the line is of another program than the kernel.
    pub(super) is_foreign: bool,
}

/// Removes escape sequences of terminals, and what a carriage return overwrote.
pub(super) fn without_escapes(line: &str) -> Cow<'_, str> {
    let line = line.trim_end_matches('\r');
    if !line.bytes().any(|b| b == 0x1b || b == b'\r' || b == 0) {
        return Cow::Borrowed(line);
    }
    let line = line.rsplit('\r').next().unwrap_or(line);
    let mut out = String::with_capacity(line.len());
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' if chars.next_if_eq(&'[').is_some() => {
                // A control sequence ends with a letter (ECMA-48, 5.4).
                while chars.next().is_some_and(|c| !('@'..='~').contains(&c)) {}
            }
            '\x1b' | '\0' => {}
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Takes a line apart.
pub(super) fn clean(line: &str) -> Cleaned<'_> {
    let unquoted = without_quotes(line);
    let mut out = Cleaned {
        text: unquoted,
        unquoted,
        seconds: None,
        has_stamp: false,
        is_marked: false,
        is_foreign: false,
    };
    // Each kind of prefix stands at most once or twice, so that eight rounds suffice.
    for _ in 0..8 {
        let Some(rest) = step(&mut out) else { break };
        out.text = rest;
        out.is_marked = true;
    }
    out
}

/// Removes one prefix, if there is one.
fn step<'l>(out: &mut Cleaned<'l>) -> Option<&'l str> {
    let text = out.text.trim_start();
    match text.bytes().next()? {
        b'[' => {
            let (found, rest) = bracket(text)?;
            match found {
                Bracket::Seconds(seconds) => out.seconds = Some(seconds),
                Bracket::Difference => out.has_stamp = true,
                Bracket::Other => {}
            }
            out.has_stamp |= out.seconds.is_some_and(|s| s > 0.0);
            // `journalctl -k -o short-monotonic` names the host behind such a stamp.
            Some(host(rest.trim_start(), out).unwrap_or(rest))
        }
        b'<' => priority(text),
        b'k' => kernel_word(text),
        b'0'..=b'9' => kmsg(text)
            .or_else(|| head(text, out))
            .or_else(|| line_number(text))
            .or_else(|| file_name(text)),
        _ => head(text, out).or_else(|| file_name(text)),
    }
}

/// Removes `> ` and `>>>>> ` of mails, and blanks in front.
fn without_quotes(line: &str) -> &str {
    let mut rest = line.trim_start();
    while let Some(inner) = rest.strip_prefix('>') {
        rest = inner.trim_start();
    }
    rest
}

/// `<6>`.
fn priority(text: &str) -> Option<&str> {
    let (inner, rest) = text.get(1..)?.split_once('>')?;
    let is_number = (1..=4).contains(&inner.len()) && inner.bytes().all(|b| b.is_ascii_digit());
    is_number.then_some(rest)
}

/// `kern  :info  : ` of `dmesg -x`, and `kernel: ` of consoles.
fn kernel_word(text: &str) -> Option<&str> {
    if let Some(rest) = text.strip_prefix("kernel:") {
        return Some(rest);
    }
    let level = text.strip_prefix("kern")?.trim_start().strip_prefix(':')?;
    let (name, rest) = level.split_once(':')?;
    let name = name.trim();
    (name.len() <= 7 && name.bytes().all(|b| b.is_ascii_lowercase())).then_some(rest)
}

/// `6,123,456789,-;text` of `/dev/kmsg`.
fn kmsg(text: &str) -> Option<&str> {
    let (fields, rest) = text.split_once(';')?;
    let numbers = fields.split(',').take_while(|f| f.bytes().all(|b| b.is_ascii_digit())).count();
    (fields.len() < 60 && numbers >= 3).then_some(rest)
}

/// What stands behind a stamp that journald, syslog or a logger of consoles wrote:
/// `host kernel: `, `host sshd[1]: `, or the message itself.
fn host<'l>(text: &'l str, out: &mut Cleaned<'l>) -> Option<&'l str> {
    let (host, rest) = text.split_once(' ')?;
    let is_host = (1..=255).contains(&host.len())
        && host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'));
    // A message may have a colon after its second word too, as `Zone ranges:` has.
    let (program, message) = rest.split_once(':').filter(|(p, _)| p.len() <= 64 && is_host)?;
    let has_pid = || {
        let pid = program.strip_suffix(']').and_then(|p| p.rsplit_once('['));
        pid.is_some_and(|(name, pid)| {
            let digits = !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit());
            digits && !name.contains(char::is_whitespace)
        })
    };
    if program != "kernel" && !has_pid() {
        return None;
    }
    out.is_foreign = program != "kernel";
    Some(message.strip_prefix(' ').unwrap_or(message))
}

/// `Feb 03 00:24:02 host kernel: `, `2024-02-03T00:24:02+0000 host kernel: ` and other
/// stamps without brackets.
fn head<'l>(text: &'l str, out: &mut Cleaned<'l>) -> Option<&'l str> {
    let rest = wall_clock(text)?;
    Some(host(rest, out).unwrap_or(rest))
}

/// The number that `cat -n` and `less -N` put in front of a line.
fn line_number(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    if let Some(rest) = rest.strip_prefix('\t') {
        return Some(rest);
    }
    let stamp = rest.strip_prefix(' ').map(str::trim_start)?;
    bracket(stamp).map(|_| stamp)
}

/// `dmesg.txt:` and `dmesg.txt:12:` in front of a stamp.
fn file_name(text: &str) -> Option<&str> {
    let at = text.find(":[")?;
    let name = text.get(..at)?;
    let rest = text.get(at + 1..)?;
    let is_name = (1..=200).contains(&name.len()) && !name.contains(char::is_whitespace);
    (is_name && bracket(rest).is_some()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(line: &str) -> &str {
        clean(line).text.trim_start()
    }

    #[test]
    fn prefixes_of_all_kinds_are_removed() {
        for line in [
            "Zone ranges:",
            "[    0.012345] Zone ranges:",
            "[   12.3] [      T0] Zone ranges:",
            "[    0.000000][    T0] Zone ranges:",
            "[  +0.000010] Zone ranges:",
            "[  -2.325462] Zone ranges:",
            "[Jun21 23:09] Zone ranges:",
            "[Mon Jun  5 10:00:00 2023] Zone ranges:",
            "<6>[    0.1] [    T1] Zone ranges:",
            "> > <6>Zone ranges:",
            ">>> [    0.1] Zone ranges:",
            "   [    0.1] Zone ranges:",
            "kern  :info  : [    0.1] Zone ranges:",
            "kernel: Zone ranges:",
            "6,123,456789,-;Zone ranges:",
            "[    0.000000 <    0.000000>] Zone ranges:",
            "[<    0.000000>] Zone ranges:",
            "[    1.234567] host-1.example.org kernel: Zone ranges:",
            "2026-06-05T10:00:00,123456+00:00 Zone ranges:",
            "kern  :info  : 2026-06-05T10:00:00,123456+00:00 Zone ranges:",
            "1780000000.123456 host kernel: Zone ranges:",
            "Fri 2026-06-05 10:00:00 UTC host kernel: Zone ranges:",
            "2026-06-05 10:00:00 Zone ranges:",
            "2026-06-05 10:00:00.123 [    0.1] Zone ranges:",
            "[2026-06-05 10:00:00.123] Zone ranges:",
            "[2026-06-05T10:00:00Z] [    0.1] Zone ranges:",
            "[10:00:00.123] [    0.1] Zone ranges:",
            "Jun 05 10:00:00 [    0.1] Zone ranges:",
            "     1\t[    0.1] Zone ranges:",
            "     1\tZone ranges:",
            "     17 [    0.1] Zone ranges:",
            "Feb 03 00:24:02 host kernel: Zone ranges:",
            "Feb  3 00:24:02 host kernel: [    0.1] Zone ranges:",
            "2024-02-03T00:24:02+0000 host kernel: Zone ranges:",
            "a/log.txt:[    0.1] Zone ranges:",
            "log.txt:17:[    0.1] Zone ranges:",
        ] {
            assert_eq!(text(line), "Zone ranges:", "{line}");
        }
    }

    #[test]
    fn what_is_no_prefix_stays() {
        for line in ["[mem 0x0-0xfff]", "[<memory-less node>]", "node   0: [mem 0x0-0x1]", "a: b"]
            .into_iter()
            .chain(["[0000:00:01.0] x", "0 1 2", "Fri is a day", "2026 is a year", "1.5 x"])
            .chain(["host kernel: x", "May be", "2026-06-05 x", "12 [mem 0x0-0x1]"])
        {
            assert_eq!(clean(line).text, line);
            assert!(!clean(line).is_marked);
        }
        assert_eq!(clean("[    7.250000] x").seconds, Some(7.25));
        let foreign = clean("Feb 03 00:24:02 host systemd[1]: node 0 initialised");
        assert!(foreign.is_foreign && foreign.is_marked);
        let foreign = clean("[    7.25] host systemd[1]: node 0 initialised");
        assert!(foreign.is_foreign && foreign.seconds == Some(7.25));
        assert!(!clean("2026-06-05 10:00:00 Zone ranges:").is_foreign);
    }

    #[test]
    fn terminals_leave_nothing() {
        assert_eq!(without_escapes("\x1b[0m\x1b[2Jtext\x1b[01;01H\r"), "text");
        assert_eq!(without_escapes("50%\r100%\rdone"), "done");
        assert_eq!(without_escapes("plain"), "plain");
        assert_eq!(without_escapes("\x1b["), "");
    }

    proptest! {
        #[test]
        fn any_line_is_cleaned(line in "[\\[\\]<>+0-9.:,; kern\\x1bTJu]{0,40}|.{0,60}") {
            let line = without_escapes(&line);
            let cleaned = clean(&line);
            prop_assert!(line.ends_with(cleaned.text));
        }
    }
}
