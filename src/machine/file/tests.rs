//! Tests of machine TOML: what it means, and what its errors say.

use super::*;
use crate::units::GIB;
use proptest::prelude::*;

const TWO: &str = r#"title = "two"
arch = "x86_64"
smt = 2
channels = 6
[[node]]
id = 1
ranges = [["0x100000000", "6GiB"]]
cpus = "2-3,6-7"
[[node]]
id = 0
ranges = [["0", "2GiB"], ["3GiB", "4GiB"]]
cpus = "0-1,4-5"
channels = 8
"#;

fn error(text: &str) -> String {
    parse("m.toml", text).unwrap_err().to_string()
}

fn with(old: &str, new: &str) -> String {
    assert!(TWO.contains(old));
    TWO.replacen(old, new, 1)
}

// GiB      0     2     3     4        6
// node 0   |=====|     |=====|
// node 1                     |========|
#[test]
fn nodes_with_ranges() {
    let machine = parse("m.toml", TWO).unwrap();
    assert_eq!((machine.title.as_str(), machine.page_bytes), ("two", 4096));
    assert_eq!(machine.nodes[0].memory.len(), 2);
    assert_eq!(machine.nodes[1].memory, [PhysRange::new(4 * GIB, 6 * GIB)]);
    assert_eq!((machine.nodes[0].channels, machine.nodes[1].channels), (Some(8), Some(6)));
    assert_eq!(machine.smt(), 2);
    let siblings = |id: usize| machine.cpus[id].core;
    assert!(siblings(0) == siblings(4) && siblings(0) != siblings(1));
    assert_eq!(machine.cpus[7].package, 1);
    assert!(machine.warnings.is_empty() && machine.distances.is_none());
}

#[test]
fn uniform_nodes_and_one_more() {
    let text = "arch = \"sparc64\"\ndistances = { local = 10, remote = 20 }\n\
        [nodes]\ncount = 3\nmemory = \"1TiB\"\ncores = 2\nsmt = 4\nnodes_per_package = 2\n\
        [[node]]\nid = 7\nmemory = \"2TiB\"\n";
    let machine = parse("m.toml", text).unwrap();
    assert_eq!(machine.memory_bytes(), 5 << 40);
    assert_eq!((machine.page_bytes, machine.nodes.len(), machine.cpus.len()), (8192, 4, 24));
    assert_eq!(machine.nodes[2].cpus, (16..24).collect::<Vec<_>>());
    assert!(machine.nodes[3].nid == Nid(7) && machine.nodes[3].cpus.is_empty());
    assert_eq!(machine.cpus.iter().map(|c| c.package).max(), Some(1));
    assert_eq!(machine.distance(Nid(0), Nid(7)), 20);
    assert_eq!(machine.warnings[0].code, "assumed-ranges");
}

#[test]
fn errors_name_file_line_key_and_value() {
    for (old, new, line, words) in [
        ("smt = 2", "smtt = 2", 3, "smtt"),
        ("smt = 2", "smt = 0", 3, "smt = 0"),
        ("smt = 2", "smt = 3", 8, "do not divide"),
        ("x86_64", "vax", 2, "vax"),
        ("title = \"two\"", "page_size = \"5KiB\"", 1, "4KiB"),
        ("title = \"two\"", "page_size = \"4KB\"", 1, "decimal"),
        ("id = 0", "id = 1", 10, "twice"),
        ("id = 0", "id = 1024", 10, "1023"),
        ("id = 0", "id = -1", 10, "-1"),
        ("\"3GiB\", \"4GiB\"", "\"4GiB\", \"3GiB\"", 11, "end not above"),
        ("\"3GiB\", \"4GiB\"", "\"1GiB\", \"4GiB\"", 11, "begins below"),
        ("\"3GiB\", \"4GiB\"", "\"3GiB\", \"5GiB\"", 11, "overlap"),
        ("\"3GiB\", \"4GiB\"", "\"3GiB\"", 11, "not a pair"),
        ("\"3GiB\", \"4GiB\"", "\"3\", \"4GiB\"", 11, "no address"),
        ("0-1,4-5", "0-2,4", 12, "CPU 2 is in node 1"),
        ("0-1,4-5", "0-1,x", 12, "\"x\""),
        ("channels = 8", "memory = \"1GiB\"", 13, "give one of them"),
        ("channels = 8", "cores = [\"0\"]", 13, "give one of them"),
        ("title = \"two\"", "distances = [[10]]", 1, "2 rows of 2"),
        ("title = \"two\"", "distances = [[10, 0], [20, 10]]", 1, "1..=255"),
        ("title = \"two\"", "packages = [\"0-6\"]", 1, "CPU 7 is in none"),
        ("title = \"two\"", "packages = [\"0-8\"]", 1, "CPU 8 is in no node"),
        ("[[node]]", "[[node]", 5, "TOML"),
    ] {
        let text = error(&with(old, new));
        let begin = match words {
            "overlap" | "give one of them" => "m.toml:",
            _ => &format!("m.toml:{line}: "),
        };
        assert!(text.starts_with(begin) && text.contains(words), "{new}: {text}");
    }
}

#[test]
fn a_machine_needs_nodes_and_memory() {
    assert!(error("arch = \"arm64\"\n").contains("there is no node"));
    assert!(error("title = \"x\"\n").contains("arch"));
    assert!(error("arch = \"arm64\"\n[[node]]\nid = 0\ncpus = \"0\"\n").contains("any memory"));
    let mixed = with("ranges = [[\"0\", \"2GiB\"], [\"3GiB\", \"4GiB\"]]", "memory = \"1GiB\"");
    assert!(error(&mixed).contains("everywhere"));
    let many = "arch = \"x86_64\"\n[nodes]\ncount = 1024\nmemory = \"1GiB\"\ncores = 4000\n";
    assert!(error(many).contains("more than 65536"));
    let huge = "arch = \"x86_64\"\n[nodes]\ncount = 1024\nmemory = \"16TiB\"\n";
    assert!(error(huge).contains("does not fit"));
}

// The limit leaves room for the largest machine there can be.
#[test]
fn a_file_beyond_all_machines_is_not_parsed() {
    let row = format!("[{}],", "255, ".repeat(1024));
    let distances = format!("distances = [{}]\n", row.repeat(1024));
    let nodes = "[nodes]\ncount = 1024\nmemory = \"1GiB\"\ncores = 64\n";
    let text = format!("arch = \"x86_64\"\n{distances}{nodes}");
    assert_eq!(parse("m.toml", &text).unwrap().distance(Nid(0), Nid(1023)), 255);
    let padded = format!("{text}#{}", " ".repeat(4 << 20));
    assert!(error(&padded).contains("larger than 8 MiB"));
}

proptest! {
    #[test]
    fn any_text_is_read_without_panic(
        text in ".*",
        cut in 0usize..300,
        word in "[a-z0-9=\"\\[\\]\n]{0,9}",
    ) {
        let _ = parse("m.toml", &text);
        let cut = cut.min(TWO.len());
        let _ = parse("m.toml", &format!("{}{word}{}", &TWO[..cut], &TWO[cut..]));
    }
}
