//! Sizes, times and rates as people write and read them.
//!
//! Sizes are binary and carry a unit (`64GiB`, `64G`); rates are decimal (GB/s =
//! 10⁹ bytes per second). JSON never uses these texts: it carries plain integers.

use std::fmt;
use std::str::FromStr;

/// One mebibyte.
pub const MIB: u64 = 1 << 20;
/// One gibibyte.
pub const GIB: u64 = 1 << 30;
/// One tebibyte.
pub const TIB: u64 = 1 << 40;

/// A number of bytes that prints and parses with a binary unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// Why a text is not a size.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SizeError {
    /// The number has no unit.
    #[error("{0:?} has no unit; write for example {0}MiB, {0}GiB or {0}TiB")]
    NoUnit(String),
    /// The unit is a decimal one, which would be guessed at.
    #[error("{0:?} has a decimal unit; sizes are binary, write {1}")]
    Decimal(String, String),
    /// Not a number with a unit.
    #[error("{0:?} is not a size; write for example 512MiB, 64GiB or 1.5TiB")]
    Syntax(String),
    /// The value does not fit in 64 bits.
    #[error("{0:?} is too large; the largest size is 16383PiB")]
    TooLarge(String),
}

const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

impl FromStr for Bytes {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let trimmed = text.trim();
        let cut = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.'));
        let (number, unit) = trimmed.split_at(cut.unwrap_or(trimmed.len()));
        let number: &str = number.trim();
        if number.is_empty() || number.parse::<f64>().is_err() {
            return Err(SizeError::Syntax(text.into()));
        }
        let unit = unit.trim();
        if unit.is_empty() {
            return Err(SizeError::NoUnit(text.into()));
        }
        let shift = shift_of(unit).ok_or_else(|| bad_unit(text, number, unit))?;
        scaled(number, shift).map(Bytes).ok_or_else(|| SizeError::TooLarge(text.into()))
    }
}

/// The power of two that a unit stands for.
fn shift_of(unit: &str) -> Option<u32> {
    let lower = unit.to_ascii_lowercase();
    let at = ["b", "k", "m", "g", "t", "p"]
        .iter()
        .position(|short| lower == *short || (*short != "b" && lower == format!("{short}ib")))?;
    u32::try_from(at * 10).ok()
}

fn bad_unit(text: &str, number: &str, unit: &str) -> SizeError {
    let lower = unit.to_ascii_lowercase();
    let binary = UNITS[1..].iter().find(|u| lower == format!("{}b", u[..1].to_ascii_lowercase()));
    match binary {
        Some(u) => SizeError::Decimal(text.into(), format!("{number}{u}")),
        None => SizeError::Syntax(text.into()),
    }
}

fn scaled(number: &str, shift: u32) -> Option<u64> {
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(1 << shift);
    }
    let value = number.parse::<f64>().ok()? * (1u64 << shift) as f64;
    (value < u64::MAX as f64).then_some(value as u64)
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut value = self.0 as f64;
        let mut at = 0;
        while value >= 1024.0 && at + 1 < UNITS.len() {
            value /= 1024.0;
            at += 1;
        }
        let digits = if value.fract() == 0.0 { 0 } else { 1 };
        f.pad(&format!("{value:.digits$} {}", UNITS[at]))
    }
}

/// A time as people read it: `7.2 ns`, `431 µs`, `1.25 s`, with three digits.
pub fn time(ns: f64) -> String {
    let (value, unit) = match ns.abs() {
        v if v < 1e3 => (ns, "ns"),
        v if v < 1e6 => (ns / 1e3, "µs"),
        v if v < 1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// A number with about three significant digits and no exponent.
pub fn three_digits(value: f64) -> String {
    match value.abs() {
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Bytes in a time, as decimal gigabytes per second; 0 when `ns` is 0.
pub fn gb_per_s(bytes: u64, ns: f64) -> f64 {
    if ns > 0.0 { bytes as f64 / ns } else { 0.0 }
}

/// A count with thin groups of three digits: `6 291 456`.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parsing_never_panics(text in ".*") {
            let _ = text.parse::<Bytes>();
        }

        #[test]
        fn whole_numbers_keep_their_value(n in 0u64..1 << 20, k in 0usize..5) {
            let unit = ["B", "K", "MiB", "g", "TiB"][k];
            prop_assert_eq!(format!("{n}{unit}").parse(), Ok(Bytes(n << (10 * k))));
        }
    }

    #[test]
    fn a_size_needs_a_binary_unit() {
        assert_eq!("1.5T".parse(), Ok(Bytes(3 << 39)));
        assert!(matches!("8".parse::<Bytes>(), Err(SizeError::NoUnit(_))));
        let decimal = "64GB".parse::<Bytes>().unwrap_err().to_string();
        assert!(decimal.contains("64GiB"), "{decimal}");
        assert!(matches!("99999999P".parse::<Bytes>(), Err(SizeError::TooLarge(_))));
        assert!("-1G".parse::<Bytes>().is_err());
    }

    #[test]
    fn numbers_print_for_people() {
        assert_eq!(Bytes(3 << 39).to_string(), "1.5 TiB");
        assert_eq!(time(1234.0), "1.23 µs");
        assert_eq!(time(86_400_000.0), "86.4 ms");
        assert_eq!(grouped(6_291_456), "6 291 456");
    }
}
