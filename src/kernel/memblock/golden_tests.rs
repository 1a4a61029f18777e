//! Answers of the real memblock, replayed.
//!
//! `fixtures/golden/memblock-golden.txt` holds random layouts and allocations with
//! the addresses that the allocator of 6.1, 6.12 and 7.3 gave. The environment
//! variable `PAGEINIT_MEMBLOCK_VECTORS` names another file in the same form.

use super::{AllocRequest, Memblock, MemblockFlags, MemblockRules, Region};
use crate::pfn::{Nid, PhysRange};

const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/golden/memblock-golden.txt");

fn number(text: &str) -> u64 {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.unwrap_or_else(|_| panic!("{text:?} is not a number"))
}

fn node(text: &str) -> Option<Nid> {
    (text != "-1").then(|| Nid(number(text) as u32))
}

fn fresh(places: usize) -> Memblock {
    let (memory_places, reserved_places) = (places, places);
    Memblock::new(MemblockRules { memory_places, reserved_places, ..Default::default() })
}

/// The recording had room for any number of regions: no array was ever doubled.
const MANY: usize = 1 << 20;

/// Applies one line; `Some(matches)` where it has an answer.
fn apply(mb: &mut Memblock, line: &str) -> Option<bool> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let arg = |i: usize| number(words[i]);
    let range = |i: usize| PhysRange::new(arg(i), arg(i) + arg(i + 1));
    match words[0] {
        "reset" => *mb = fresh(words.get(1).map_or(MANY, |w| number(w) as usize)),
        "resize" => mb.allow_resize(),
        "add" => {
            let flags = MemblockFlags(arg(4) as u32);
            let (r, nid) = (range(1), node(words[3]));
            mb.add(Region::new(r.start, r.end, nid, flags)).expect("room");
        }
        "limit" => mb.set_current_limit(arg(1)),
        "res" => mb.reserve(range(1)).expect("room"),
        "free" => mb.free(range(1)).expect("room"),
        "hotplug" => mb.mark(range(1), MemblockFlags::HOTPLUG),
        "bottomup" => mb.set_bottom_up(arg(1) == 1),
        "raw" | "exact" | "zero" => {
            let request = AllocRequest {
                bytes: arg(1),
                align: arg(2),
                min_addr: arg(3),
                max_addr: arg(4),
                nid: node(words[5]),
                exact_nid: words[0] == "exact",
            };
            let expected = (words[7] != "FAIL").then(|| number(words[7]));
            return Some(mb.alloc(&request) == expected);
        }
        other => panic!("unknown operation {other:?}"),
    }
    None
}

#[test]
fn memblock_answers_every_recorded_vector() {
    let file = std::env::var("PAGEINIT_MEMBLOCK_VECTORS").unwrap_or_else(|_| COMMITTED.into());
    let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{file}: {e}"));
    let (mut total, mut right, mut first_wrong) = (0, 0, None);
    let mut mb = fresh(MANY);
    for (i, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(matches) = apply(&mut mb, line) {
            total += 1;
            right += usize::from(matches);
            if !matches && first_wrong.is_none() {
                first_wrong = Some(format!("line {}: {line}", i + 1));
            }
        }
    }
    println!("memblock vectors: {right} of {total} from {file}");
    assert!(total > 0, "{file} has no vectors");
    assert_eq!(first_wrong, None, "first wrong answer");
}
