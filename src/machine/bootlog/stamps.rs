//! Time stamps in front of a line, in brackets or not.
//!
//! [`bracket`] reads `[    1.234567]` and what else stands in brackets there,
//! [`wall_clock`] the stamps of journald, `dmesg --time-format iso` and programs that
//! record consoles. Used by [`super::clean`].

/// What a pair of brackets holds.
pub(super) enum Bracket {
    /// Seconds since boot.
    Seconds(f64),
    /// A difference to the line before.
    Difference,
    /// Wall-clock time, or a caller id.
    Other,
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn decimal(text: &str) -> bool {
    text.split_once('.').is_some_and(|(a, b)| digits(a) && digits(b))
}

/// `[    1.234567]`, `[    1.234567 <    0.000010>]`, `[  +0.000010]`, `[Jun21 23:09]`,
/// `[Mon Jun  5 10:00:00 2023]`, `[2023-06-05 10:00:00.123]`, `[   T12]`.
pub(super) fn bracket(text: &str) -> Option<(Bracket, &str)> {
    let window = text.as_bytes().get(..text.len().min(48))?;
    let inside = window.strip_prefix(b"[")?;
    let close = inside.iter().position(|&b| b == b']')? + 1;
    let inner = text.get(1..close)?.trim();
    let rest = text.get(close + 1..)?;
    let (inner, has_delta) = without_delta(inner);
    if decimal(inner) {
        return Some((Bracket::Seconds(inner.parse().ok()?), rest));
    }
    let Some(first) = inner.as_bytes().first() else {
        return has_delta.then_some((Bracket::Difference, rest));
    };
    if matches!(first, b'+' | b'-') && decimal(inner.get(1..)?.trim()) {
        return Some((Bracket::Difference, rest));
    }
    let is_other = match first {
        b'T' | b'C' if inner.len() <= 8 => digits(inner.get(1..)?),
        b'A'..=b'Z' => inner.len() >= 10 && inner.contains(':') && inner.contains(' '),
        b'0'..=b'9' => date_and_clock(inner).or_else(|| clock(inner)) == Some(""),
        _ => false,
    };
    is_other.then_some((Bracket::Other, rest))
}

/// What `dmesg -d` adds: `1.234567 <    0.000010>`.
fn without_delta(inner: &str) -> (&str, bool) {
    let parts = inner.strip_suffix('>').and_then(|i| i.rsplit_once('<'));
    match parts.filter(|(_, delta)| decimal(delta.trim().trim_start_matches('-'))) {
        Some((stamp, _)) => (stamp.trim_end(), true),
        None => (inner, false),
    }
}

/// Removes a stamp without brackets and the blank behind it: `Feb 03 00:24:02`,
/// `2024-02-03T00:24:02,123456+00:00`, `2024-02-03 00:24:02.123`,
/// `Sat 2024-02-03 00:24:02 UTC`, `1706919842.123456`.
pub(super) fn wall_clock(text: &str) -> Option<&str> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    let (first, rest) = text.split_once(' ')?;
    if MONTHS.contains(&first) {
        let (day, after) = rest.trim_start().split_once(' ')?;
        return clock(after).filter(|_| digits(day))?.strip_prefix(' ');
    }
    if DAYS.contains(&first) {
        // `journalctl -o short-full` always names the zone of time.
        let (_zone, after) = date_and_clock(rest)?.strip_prefix(' ')?.split_once(' ')?;
        return Some(after);
    }
    let is_unix = |t: &str| {
        t.split_once('.').is_some_and(|(s, part)| {
            digits(s) && (9..=11).contains(&s.len()) && digits(part) && part.len() == 6
        })
    };
    if is_unix(first) {
        return Some(rest);
    }
    let after = date_and_clock(text)?.strip_prefix(' ')?;
    let zone = ["UTC ", "GMT "].into_iter().find_map(|zone| after.strip_prefix(zone));
    Some(zone.unwrap_or(after))
}

/// `2024-02-03T00:24:02,123456+00:00` or with a blank in the middle; gives the rest.
fn date_and_clock(text: &str) -> Option<&str> {
    let (date, rest) = text.split_at_checked(10)?;
    let is_digit_or = |(at, b): (usize, u8)| match at {
        4 | 7 => b == b'-' || b == b'/',
        _ => b.is_ascii_digit(),
    };
    let is_date = date.bytes().enumerate().all(is_digit_or);
    clock(rest.strip_prefix(['T', ' ']).filter(|_| is_date)?)
}

/// `00:24:02` with a fraction and an offset, where they are there; gives the rest.
fn clock(text: &str) -> Option<&str> {
    let (clock, mut rest) = text.split_at_checked(8)?;
    let is_digit_or = |(at, b): (usize, u8)| match at {
        2 | 5 => b == b':',
        _ => b.is_ascii_digit(),
    };
    if !clock.bytes().enumerate().all(is_digit_or) {
        return None;
    }
    let is_digit = |c: char| c.is_ascii_digit();
    if let Some(fraction) = rest.strip_prefix(['.', ',']) {
        rest = fraction.trim_start_matches(is_digit);
    }
    if let Some(offset) = rest.strip_prefix(['+', '-']) {
        rest = offset.trim_start_matches(|c: char| is_digit(c) || c == ':');
    }
    Some(rest.strip_prefix('Z').unwrap_or(rest))
}
