//! Lists of CPU ids as Linux writes them: `0-25,52-77`.
//!
//! [`parse`] reads a list and [`format()`] writes one. Used by [`super::file`],
//! [`super::limits`], [`super::sysfs`] and the reports; uses nothing itself.

/// The highest CPU id that is taken; far above `NR_CPUS` of any distribution.
pub const MAX_CPU_ID: u32 = 65_535;

/// Why a text is not a list of CPUs.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CpuListError {
    /// A part is neither a number nor a range of two numbers.
    #[error("{0:?} is neither a CPU number nor a range; write for example 0-25,52-77")]
    Syntax(String),
    /// A range runs backwards.
    #[error("the range {0} runs backwards; write the lower number first")]
    Backwards(String),
    /// A number is too large.
    #[error("CPU {0} is above {MAX_CPU_ID}, the highest that is supported")]
    TooLarge(String),
    /// A CPU stands in the list twice.
    #[error("CPU {0} stands in the list twice")]
    Twice(u32),
}

/// Reads a list of CPU ids, in ascending order and without repetition.
///
/// Spaces around parts are allowed, and an empty text is an empty list, as
/// `/sys/devices/system/node/node1/cpulist` of a CPU-less node is.
pub fn parse(text: &str) -> Result<Vec<u32>, CpuListError> {
    let mut ids = Vec::new();
    if text.trim().is_empty() {
        return Ok(ids);
    }
    for part in text.split(',') {
        let (first, last) = part_bounds(part.trim())?;
        ids.extend(first..=last);
        // Overlapping ranges would otherwise let a short text ask for endless memory.
        if ids.len() > 2 * MAX_CPU_ID as usize {
            return Err(CpuListError::Twice(first));
        }
    }
    ids.sort_unstable();
    match ids.windows(2).find(|pair| pair.first() == pair.last()) {
        Some(pair) => Err(CpuListError::Twice(pair.first().copied().unwrap_or(0))),
        None => Ok(ids),
    }
}

fn part_bounds(part: &str) -> Result<(u32, u32), CpuListError> {
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    let bounds = (number(first.trim(), part)?, number(last.trim(), part)?);
    if bounds.0 > bounds.1 {
        return Err(CpuListError::Backwards(part.into()));
    }
    Ok(bounds)
}

fn number(digits: &str, part: &str) -> Result<u32, CpuListError> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(CpuListError::Syntax(part.into()));
    }
    let id: Option<u32> = digits.parse().ok().filter(|&id| id <= MAX_CPU_ID);
    id.ok_or_else(|| CpuListError::TooLarge(digits.into()))
}

/// Writes ascending ids as a list; an empty list is an empty text.
pub fn format(ids: &[u32]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut rest = ids;
    while let Some((&first, tail)) = rest.split_first() {
        let follow =
            tail.iter().zip(1u32..).take_while(|&(&id, n)| Some(id) == first.checked_add(n));
        let (length, last) = follow.fold((0, first), |(length, _), (&id, _)| (length + 1, id));
        parts.push(if length == 0 { first.to_string() } else { format!("{first}-{last}") });
        rest = tail.get(length..).unwrap_or(&[]);
    }
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn written_lists_read_back(ids in prop::collection::btree_set(0u32..300, 0..40)) {
            let ids: Vec<u32> = ids.into_iter().collect();
            prop_assert_eq!(parse(&format(&ids)), Ok(ids));
        }

        #[test]
        fn any_text_is_read_without_panic(text in "[0-9,\\- ]{0,20}|.*") {
            let _ = parse(&text);
        }
    }

    #[test]
    fn ranges_are_inclusive() {
        assert_eq!(parse("0-2,7\n"), Ok(vec![0, 1, 2, 7]));
        assert_eq!(parse(" "), Ok(vec![]));
        assert_eq!(format(&[0, 1, 2, 7, 9, 10]), "0-2,7,9-10");
    }

    #[test]
    fn errors_say_what_is_wrong() {
        assert_eq!(parse("5-2"), Err(CpuListError::Backwards("5-2".into())));
        assert_eq!(parse("0-4,3"), Err(CpuListError::Twice(3)));
        assert_eq!(parse("0-99999999999"), Err(CpuListError::TooLarge("99999999999".into())));
        assert_eq!(parse("1,,2"), Err(CpuListError::Syntax(String::new())));
        assert_eq!(parse("0x1"), Err(CpuListError::Syntax("0x1".into())));
    }
}
