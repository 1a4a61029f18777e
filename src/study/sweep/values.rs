//! Lists and ranges on the command line: `1,2,4..max`, `4..max/node`, `1..64*2`.
//!
//! [`Values`] is parsed without being expanded, so that a range of millions can be
//! counted and refused before it takes any memory.

/// Items of a list, each a number or a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values(Vec<Item>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Item {
    from: u64,
    to: u64,
    step: Step,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Plus(u64),
    Times(u64),
}

/// Why a list is none.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ValuesError {
    /// Not a number or range.
    #[error("{0:?} is not a value; write for example 1,2,4..max, 4..16+4 or 1..64*2")]
    Syntax(String),
    /// A range that holds nothing.
    #[error("the range {0:?} is empty: its end lies below its start")]
    Empty(String),
    /// A step that leads nowhere.
    #[error("the range {0:?} never ends: add at least 1, or multiply by at least 2")]
    Endless(String),
}

impl Values {
    /// Parses a list. `max` stands for `most`, `unit` reads one number.
    ///
    /// # Errors
    /// When an item is no number or range, or a range is empty.
    pub fn parse(
        text: &str,
        most: u64,
        unit: impl Fn(&str) -> Option<u64>,
    ) -> Result<Self, ValuesError> {
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        let items: Vec<Item> =
            items.map(|item| parse_item(item, most, &unit)).collect::<Result<_, _>>()?;
        if items.is_empty() { Err(ValuesError::Syntax(text.into())) } else { Ok(Self(items)) }
    }

    /// How many values there are, duplicates included.
    pub fn count(&self) -> u128 {
        self.0.iter().map(|item| item.count()).sum()
    }

    /// All values, ascending, each once.
    pub fn all(&self) -> Vec<u64> {
        let mut all: Vec<u64> = self.0.iter().flat_map(|item| item.values()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

impl Item {
    fn count(self) -> u128 {
        match self.step {
            Step::Plus(by) => u128::from((self.to - self.from) / by) + 1,
            Step::Times(_) => self.values().count() as u128,
        }
    }

    fn values(self) -> impl Iterator<Item = u64> {
        let next = move |value: &u64| {
            let next = match self.step {
                Step::Plus(by) => value.checked_add(by),
                Step::Times(by) => value.checked_mul(by),
            };
            next.filter(|next| *next <= self.to)
        };
        std::iter::successors(Some(self.from), next)
    }
}

fn parse_item(
    item: &str,
    most: u64,
    unit: &impl Fn(&str) -> Option<u64>,
) -> Result<Item, ValuesError> {
    let syntax = || ValuesError::Syntax(item.into());
    let number = |text: &str| match text.trim().trim_end_matches("/node") {
        "max" => Some(most),
        other => unit(other),
    };
    let Some((from, rest)) = item.split_once("..") else {
        let value = number(item).ok_or_else(syntax)?;
        return Ok(Item { from: value, to: value, step: Step::Plus(1) });
    };
    let cut = rest.find(['*', '+']).unwrap_or(rest.len());
    let (to, step) = rest.split_at(cut);
    let from = number(from).ok_or_else(syntax)?;
    let to = number(to).ok_or_else(syntax)?;
    let step = match (step.get(..1), step.get(1..)) {
        (Some("*"), Some(by)) => Step::Times(by.trim().parse().map_err(|_| syntax())?),
        (Some("+"), Some(by)) => Step::Plus(unit(by.trim()).ok_or_else(syntax)?),
        _ => Step::Plus(1),
    };
    match step {
        _ if to < from => Err(ValuesError::Empty(item.into())),
        Step::Plus(0) | Step::Times(0 | 1) => Err(ValuesError::Endless(item.into())),
        Step::Times(_) if from == 0 => Err(ValuesError::Endless(item.into())),
        _ => Ok(Item { from, to, step }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Values, ValuesError> {
        Values::parse(text, 8, |t| t.parse().ok())
    }

    #[test]
    fn lists_and_ranges() {
        let all = |text| parse(text).unwrap().all();
        assert_eq!(all("1,2,4..max"), [1, 2, 4, 5, 6, 7, 8]);
        assert_eq!(all("6..max/node"), [6, 7, 8]);
        assert_eq!(all("1..64*2"), [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(all("4..16+4, 8"), [4, 8, 12, 16]);
        assert_eq!(all("max"), [8]);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        assert!(matches!(parse(""), Err(ValuesError::Syntax(_))));
        assert!(matches!(parse("a..b"), Err(ValuesError::Syntax(_))));
        assert!(matches!(parse("8..4"), Err(ValuesError::Empty(_))));
        assert!(matches!(parse("1..8*1"), Err(ValuesError::Endless(_))));
        assert!(matches!(parse("0..8*2"), Err(ValuesError::Endless(_))));
    }

    #[test]
    fn a_huge_range_is_counted_without_being_made() {
        assert_eq!(parse("1..18446744073709551615").unwrap().count(), u128::from(u64::MAX));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,20}") {
            let _ = parse(&text);
        }

        #[test]
        fn counts_are_right(from in 1u64..50, more in 0u64..50, by in 1u64..9) {
            let values = parse(&format!("{from}..{}+{by}", from + more)).unwrap();
            prop_assert_eq!(values.count(), values.all().len() as u128);
        }
    }
}
