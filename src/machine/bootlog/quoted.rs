//! A `numactl -H` text in the same file as a log.
//!
//! People put both into one mail. [`Quoted`] keeps the lines that belong to such a text,
//! with their numbers, for [`crate::machine::numactl`]; nothing else is looked at.

use crate::machine::text::dequoted;

/// The longest text that is kept: as long as lists of 65,536 CPUs are.
const MAX_BYTES: usize = 512 * 1024;

/// Lines of a `numactl -H` text, in runs that stand together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quoted {
    /// The first line of each run, counted from 1, and its text.
    runs: Vec<(u64, String)>,
    bytes: usize,
    /// The line behind the last one that was kept.
    next: u64,
    is_open: bool,
    has_node: bool,
}

impl Quoted {
    /// Looks at a physical line.
    pub(super) fn take(&mut self, line: &str, number: u64) {
        let text = dequoted(line);
        let begins = begins(text);
        self.is_open = begins || (self.is_open && goes_on(text));
        if !self.is_open || self.bytes + text.len() >= MAX_BYTES {
            return;
        }
        self.has_node |= begins && text.starts_with("node ") && !text.starts_with("node distances");
        if self.runs.is_empty() || self.next != number {
            self.runs.push((number, String::new()));
        }
        self.next = number.saturating_add(1);
        if let Some((_, run)) = self.runs.last_mut() {
            run.push_str(text);
            run.push('\n');
        }
        self.bytes += text.len() + 1;
    }

    /// The lines and their numbers; none where no node has CPUs or a size.
    pub fn lines(&self) -> impl Iterator<Item = (&str, u64)> {
        let runs = self.runs.iter().filter(|_| self.has_node);
        runs.flat_map(|(first, run)| run.lines().zip(*first..))
    }

    /// Whether there is no such text.
    pub fn is_empty(&self) -> bool {
        !self.has_node
    }
}

/// Whether only `numactl -H` prints such a line: `available: 2 nodes (0-1)`,
/// `node 0 cpus: 0 1`, `node 0 size: 2000 MB`, `node distances:`.
fn begins(text: &str) -> bool {
    if let Some(rest) = text.strip_prefix("available: ") {
        return rest.contains(" nodes (") || rest.contains(" node (");
    }
    let Some(rest) = text.strip_prefix("node ") else { return false };
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
    ["cpus:", "size:", "distances:"].iter().any(|word| rest.starts_with(word))
}

/// Whether a line may stand inside such a text: CPUs that did not fit, distances.
fn goes_on(text: &str) -> bool {
    text.is_empty() || text.starts_with("node ") || text.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<(String, u64)> {
        let mut quoted = Quoted::default();
        text.lines().zip(1u64..).for_each(|(line, number)| quoted.take(line, number));
        quoted.lines().map(|(line, number)| (line.into(), number)).collect()
    }

    #[test]
    fn only_lines_of_numactl_are_kept_with_their_numbers() {
        let found = lines(
            "[    0.1]   node   0: [mem 0x0-0xfff]\n> available: 1 nodes (0)\n> node 0 cpus: 0\n\
             > 1 2\nHello\n7 apples\nnode 0 initialised, 5 pages in 6ms\nnode 0 size: 5 MB\n",
        );
        let expected = [
            ("available: 1 nodes (0)", 2),
            ("node 0 cpus: 0", 3),
            ("1 2", 4),
            ("node 0 size: 5 MB", 8),
        ];
        assert_eq!(found, expected.map(|(line, number)| (line.to_string(), number)));
        assert!(lines("available: 2 nodes (0-1)\nnode distances:\nnode 0 1\n").is_empty());
        assert!(lines("node 0 deferred pages initialised in 4ms\n").is_empty());
    }

    #[test]
    fn what_is_kept_has_a_bound() {
        let mut quoted = Quoted::default();
        (1..200_000).for_each(|number| quoted.take("node 0 size: 5 MB", number));
        assert!(quoted.bytes <= MAX_BYTES && quoted.lines().count() > 10_000);
    }
}
