//! A first look at hwloc's synthetic topology strings, before hwloc gets them.
//!
//! hwloc says only "invalid" about a wrong string, takes minutes over a large one
//! and checks some numbers with assertions. [`check`] reads the grammar
//! (hwloc 2.9, "Synthetic topologies"), says in words what is wrong and counts
//! before anything is built. [`super::hwloc`] builds what passes.

/// The most logical CPUs that a synthetic string may ask for.
pub const MAX_PUS: u64 = 16_384;

/// How to write one, for error messages.
pub const EXAMPLE: &str = "write for example 'pack:2 [numa(memory=512GiB)] core:26 pu:2'";

const TYPES: [&str; 14] = [
    "pu", "core", "pack", "package", "socket", "sock", "die", "numa", "numanode", "node", "group",
    "tile", "module", "cluster",
];

/// What a synthetic string asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Logical CPUs.
    pub pus: u64,
    /// Memory nodes that are written out; 0 where hwloc adds one by itself.
    pub nodes: u64,
}

/// Checks a synthetic string; the error says what is wrong and how to write it.
pub fn check(text: &str) -> Result<Asked, String> {
    let mut reader =
        Reader { rest: text, pus: 1, nodes: 0, levels: 0, last: "", has_memory: false };
    reader.run().map_err(|problem| format!("{problem}; {EXAMPLE}"))?;
    Ok(Asked { pus: reader.pus, nodes: reader.nodes })
}

fn is_node(word: &str) -> bool {
    matches!(word.to_ascii_lowercase().as_str(), "numa" | "numanode" | "node")
}

struct Reader<'t> {
    rest: &'t str,
    /// Objects of the innermost level so far.
    pus: u64,
    nodes: u64,
    levels: usize,
    /// The innermost level's type, empty where none is written.
    last: &'t str,
    has_memory: bool,
}

type Step = Result<(), String>;

impl<'t> Reader<'t> {
    fn run(&mut self) -> Step {
        self.attributes("")?;
        loop {
            self.rest = self.rest.trim_start_matches(' ');
            if self.rest.is_empty() {
                break;
            } else if self.rest.starts_with('[') {
                self.attached()?;
            } else {
                self.level()?;
            }
        }
        if self.levels == 0 {
            return Err("there is no level with CPUs".into());
        }
        if !matches!(self.last, "" | "pu") {
            return Err(format!("the last level is {}, it has to be pu", self.last));
        }
        if !self.has_memory {
            return Err("no node has memory; write [numa(memory=512GiB)]".into());
        }
        Ok(())
    }

    /// `[numa(memory=…)]`: a memory node at the level before it.
    fn attached(&mut self) -> Step {
        self.rest = self.rest.get(1..).unwrap_or("");
        let name = self.take(|c| c.is_ascii_alphanumeric());
        if !is_node(name) {
            return Err(format!("[{name}…] is not a memory node; only [numa…] is"));
        }
        self.nodes = self.nodes.saturating_add(self.pus);
        self.attributes("numa")?;
        self.rest =
            self.rest.strip_prefix(']').ok_or("a `[` has no `]` behind the node's attributes")?;
        Ok(())
    }

    /// `core:8`, or only `8`.
    fn level(&mut self) -> Step {
        let word = self.take(|c| c.is_ascii_alphanumeric());
        if word.is_empty() {
            let odd = self.rest.chars().next().unwrap_or(' ');
            return Err(format!("{odd:?} begins neither a level nor a node"));
        }
        let number = if let Some(rest) = self.rest.strip_prefix(':') {
            check_type(word)?;
            self.last = word;
            self.rest = rest;
            self.take(|c| c.is_ascii_alphanumeric())
        } else if word.bytes().all(|b| b.is_ascii_digit()) {
            self.last = "";
            word
        } else {
            return Err(format!("{word:?} has no number; write {word}:N"));
        };
        self.count(number, word)?;
        if is_node(self.last) {
            self.nodes = self.nodes.saturating_add(self.pus);
        }
        self.attributes(self.last)
    }

    fn count(&mut self, number: &str, word: &str) -> Step {
        let plain = !number.starts_with('0') && number.bytes().all(|b| b.is_ascii_digit());
        let count = number.parse().ok().filter(|&n: &u64| n > 0 && plain);
        let Some(count) = count else {
            return Err(format!("{number:?} of {word:?} is not a number of at least 1"));
        };
        self.pus = self.pus.saturating_mul(count);
        self.levels += 1;
        if self.pus > MAX_PUS {
            return Err(format!("more than {MAX_PUS} CPUs are asked for"));
        }
        // hwloc has room for 128 levels; no machine has more than a dozen.
        if self.levels > 32 { Err("there are more than 32 levels".into()) } else { Ok(()) }
    }

    /// `(memory=1GiB indexes=3,1)`, if it follows.
    fn attributes(&mut self, level: &str) -> Step {
        let Some(rest) = self.rest.strip_prefix('(') else { return Ok(()) };
        let (inside, rest) = rest.split_once(')').ok_or("a `(` has no `)`")?;
        self.rest = rest;
        for attribute in inside.split(' ').filter(|a| !a.is_empty()) {
            match attribute.split_once('=') {
                Some(("memory" | "size" | "memorysidecachesize", value)) => {
                    let bytes = size(value)?;
                    self.has_memory |= attribute.starts_with("memory=") && bytes > 0;
                }
                Some(("indexes", value)) => check_indexes(value)?,
                _ => {
                    return Err(format!(
                        "unknown attribute {attribute:?} of {level:?}; there are memory=, size= \
                         and indexes="
                    ));
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, belongs: impl Fn(char) -> bool) -> &'t str {
        let length = self.rest.find(|c| !belongs(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }
}

fn check_type(word: &str) -> Step {
    let lower = word.to_ascii_lowercase();
    let plain = lower.trim_end_matches(|c: char| c.is_ascii_digit());
    let cache = lower.strip_prefix('l').is_some_and(|rest| {
        let kind = rest.strip_prefix(|c| ('1'..='5').contains(&c));
        kind.is_some_and(|k| matches!(k.trim_end_matches("cache"), "" | "d" | "i" | "u"))
    });
    if cache || TYPES.contains(&lower.as_str()) || plain == "group" {
        return Ok(());
    }
    Err(format!("unknown level {word:?}; there are pack, die, numa, l3, core, pu and group"))
}

/// A size as hwloc reads it: a plain number of bytes, or with a unit of two or
/// three letters.
fn size(value: &str) -> Result<u64, String> {
    let digits = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    let (number, unit) = value.split_at(digits);
    let unit_bytes: Option<u64> = match unit.to_ascii_lowercase().as_str() {
        "" => Some(1),
        "kb" => Some(1000),
        "mb" => Some(1_000_000),
        "gb" => Some(1_000_000_000),
        "tb" => Some(1_000_000_000_000),
        "kib" => Some(1 << 10),
        "mib" => Some(1 << 20),
        "gib" => Some(1 << 30),
        "tib" => Some(1 << 40),
        _ => None,
    };
    let octal = number.len() > 1 && number.starts_with('0');
    let number: Option<u64> = number.parse().ok().filter(|_| !octal);
    let bytes = number.zip(unit_bytes).and_then(|(n, u)| n.checked_mul(u));
    bytes.filter(|&b| b <= super::assume::PHYS_LIMIT).ok_or_else(|| {
        format!("{value:?} is not a size up to 4096TiB; write for example 512MiB, 64GiB or 2TiB")
    })
}

/// `3,1,2` or `2*4:1*2`, with numbers that hwloc can multiply.
///
/// Loops over type names (`numa:core`) are refused: hwloc 2.9 aborts on some of them.
fn check_indexes(value: &str) -> Step {
    let wrong =
        || format!("indexes={value} is neither a list such as 0,2,1,3 nor loops like 2*4:1*2");
    let small = |n: &str| {
        let plain = !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
        plain && n.parse().is_ok_and(|n: u64| n < MAX_PUS)
    };
    let is_list = value.split(',').all(small);
    let positive = |n: &str| small(n) && !n.starts_with('0');
    let is_loops = value.split(':').count() <= 4
        && value.split(':').all(|l| {
            l.split_once('*').is_some_and(|(step, count)| positive(step) && positive(count))
        });
    if is_list || is_loops { Ok(()) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn problem(text: &str) -> String {
        check(text).unwrap_err()
    }

    #[test]
    fn common_strings_pass() {
        for text in [
            "pack:2 [numa(memory=512GiB)] core:26 pu:2",
            "numa:2(memory=1GiB) core:2 pu:2",
            "[numa(memory=1)][numa(memory=2)] pu:2",
            "pack:2 [numa(memory=1GiB indexes=5,3)] l3:1(size=32MB) L1dCache:4 core:1 2",
            "Package:2 [NUMANode(memory=1073741824)] pu:2(indexes=2*2:1*2)",
        ] {
            assert!(check(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn what_is_asked_for_is_counted() {
        let asked = check("[numa(memory=1)] pack:2 [numa(memory=1)] core:3 pu:2").unwrap();
        assert_eq!(asked, Asked { pus: 12, nodes: 3 });
        assert_eq!(check("numa:2(memory=1) pu:2").unwrap(), Asked { pus: 4, nodes: 2 });
    }

    #[test]
    fn errors_say_what_to_write() {
        assert!(problem("pack:2 core:8").contains("it has to be pu"));
        assert!(problem("pack:x").contains("not a number"));
        assert!(problem("").contains("no level"));
        assert!(problem("pack:2 core:4 pu:2").contains("[numa(memory=512GiB)]"));
        assert!(problem("[numa(memory=1T)] pu:2").contains("2TiB"));
        assert!(problem("[numa(memory=1GiB)] pu:16385").contains("16384"));
        assert!(problem("[numa(memory=1GiB)] pack:99999 core:99999 pu:9").contains("16384"));
        assert!(problem("hots").contains("has no number"));
        assert!(problem("[numa(memory=1GiB color=red)] pu:1").contains("color"));
        assert!(problem("[numa(memory=1GiB) pu:1").contains("no `]`"));
        assert!(problem("[numa(memory=1GiB)] pu:1(indexes=numa)").contains("neither a list"));
        assert!(problem("disk:2 pu:1").contains("unknown level"));
        for text in ["pu:0", "pack:2 core:8"] {
            assert!(problem(text).contains(EXAMPLE));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_checked_without_panic(text in "[a-z0-9:()\\[\\]= *,é]{0,40}|.*") {
            let _ = check(&text);
        }
    }
}
