//! The known name that a wrong one was probably meant to be.
//!
//! [`nearest`] serves every message that suggests a name: of machines, of stores and
//! of strategies.

/// A longer name is no slip of the pen, and the command line may be huge.
const LONGEST_CHARS: usize = 64;

/// The one of `known` that `name` is probably meant to be, if any is near.
///
/// Near is a name that differs in few letters, whatever their case; else one that
/// holds `name`, or that `name` holds. Of names equally near the first counts.
pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let name: Vec<char> = name.to_lowercase().chars().take(LONGEST_CHARS + 1).collect();
    if name.is_empty() || name.len() > LONGEST_CHARS {
        return None;
    }
    let text: String = name.iter().collect();
    let known: Vec<&str> = known.into_iter().collect();
    let slips = known.iter().map(|known| (edits(&name, known), *known));
    let slips = slips.filter(|(edits, known)| *edits <= known.len() / 4 + 1);
    let slip = slips.min_by_key(|(edits, _)| *edits).map(|(_, known)| known);
    let part = || known.iter().find(|k| k.contains(&text) || text.contains(**k)).copied();
    slip.or_else(part)
}

/// Insertions, deletions and replacements that turn `from` into `to` (Levenshtein).
fn edits(from: &[char], to: &str) -> usize {
    // Row i holds the edits from the first i letters to every beginning of `to`.
    let mut row: Vec<usize> = (0..=to.chars().count()).collect();
    for (i, a) in from.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in to.chars().enumerate() {
            let replaced = diagonal + usize::from(*a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KNOWN: [&str; 6] = ["fused", "fused-nt", "deferred", "no-zero", "avx2", "2n-skylake"];

    fn chars(text: &str) -> Vec<char> {
        text.chars().collect()
    }

    #[test]
    fn slips_and_parts_find_their_name() {
        for (name, meant) in [
            ("defered", "deferred"),
            ("FUSED-NTT", "fused-nt"),
            ("fuse", "fused"),
            ("avx3", "avx2"),
            ("skylake", "2n-skylake"),
            ("zero", "no-zero"),
        ] {
            assert_eq!(nearest(name, KNOWN), Some(meant), "{name}");
        }
    }

    #[test]
    fn nothing_near_gives_nothing() {
        for name in ["", "something-else", "qq", &"x".repeat(100_000)] {
            assert_eq!(nearest(name, KNOWN), None);
        }
        assert_eq!(nearest("fused", []), None);
    }

    #[test]
    fn edits_are_those_of_the_textbook() {
        assert_eq!(edits(&chars("kitten"), "sitting"), 3);
        assert_eq!(edits(&chars(""), "abc"), 3);
        assert_eq!(edits(&chars("abc"), ""), 3);
    }

    proptest! {
        #[test]
        fn edits_are_symmetric_and_bounded(a in ".{0,12}", b in ".{0,12}") {
            let (there, back) = (edits(&chars(&a), &b), edits(&chars(&b), &a));
            prop_assert_eq!(there, back);
            prop_assert!(there <= a.chars().count().max(b.chars().count()));
            prop_assert_eq!(there == 0, a == b);
        }

        #[test]
        fn any_name_is_answered(name in ".*") {
            let _ = nearest(&name, KNOWN);
        }
    }
}
