//! `/proc/iomem` and `lsmem`: physical ranges.
//!
//! [`parse`] takes `System RAM` out of the resource tree, [`lsmem`] the online
//! blocks of util-linux's table in any of its forms (table, `--raw`, `--json`). Both
//! make an [`Evidence`] with ranges, of known or unknown node.

use super::MachineError;
use super::evidence::Evidence;
use super::text::dequoted;
use crate::pfn::{Nid, PfnRange, PhysRange, normalise};
use std::collections::BTreeMap;

/// Reads `/proc/iomem` of the input called `name`.
///
/// # Errors
///
/// There is no RAM, ranges overlap or run backwards, or all addresses are zero as
/// users without privileges see them (`kernel/resource.c: r_show`, v6.12).
pub fn parse(name: &str, text: &str) -> Result<Evidence, MachineError> {
    let mut out = Evidence::new(name, "/proc/iomem");
    let fail = |line: u64, problem: String| {
        Err(MachineError::content(name, usize::try_from(line).ok(), problem))
    };
    let mut found: Vec<(PhysRange, u64)> = Vec::new();
    for (line, number) in text.lines().zip(1u64..) {
        let Some((addresses, what)) = dequoted(line).split_once(" : ") else { continue };
        if !what.trim_start().starts_with("System RAM") {
            continue;
        }
        let Some((start, last)) = ends(addresses) else {
            return fail(number, format!("{addresses:?} is no range of addresses"));
        };
        if start == 0 && last == 0 {
            let why = "all addresses are zero, as users without privileges see them; read the file \
                       as root";
            return fail(number, why.into());
        }
        if last < start {
            return fail(number, format!("the range {addresses} runs backwards"));
        }
        found.push((PhysRange::new(start, last.saturating_add(1)), number));
    }
    found.sort();
    for pair in found.windows(2) {
        if let [(low, a), (high, b)] = pair
            && low.end > high.start
        {
            return fail(*b.max(a), format!("{high} overlaps {low} of line {a}"));
        }
    }
    let Some((_, first)) = found.first().copied() else {
        return fail(1, "there is no System RAM; expected the text of /proc/iomem".into());
    };
    out.ranges = Some(out.known(found.into_iter().map(|(range, _)| range).collect(), first));
    Ok(out)
}

/// `00100000-bffdffff`, both inclusive.
fn ends(text: &str) -> Option<(u64, u64)> {
    let (start, last) = text.trim().split_once('-')?;
    let hex = |digits: &str| {
        let digits = digits.trim().trim_start_matches("0x");
        u64::from_str_radix(digits, 16).ok()
    };
    Some((hex(start)?, hex(last)?))
}

/// A row of `lsmem`.
#[derive(Debug, Default)]
struct Row {
    range: Option<PhysRange>,
    is_offline: bool,
    nid: Option<Nid>,
}

/// Reads the text of `lsmem` of the input called `name`; several forms in one text
/// add up.
///
/// # Errors
///
/// There is no online memory.
pub fn lsmem(name: &str, text: &str) -> Result<Evidence, MachineError> {
    let mut out = Evidence::new(name, "lsmem");
    let mut ranges: BTreeMap<Option<Nid>, Vec<PfnRange>> = BTreeMap::new();
    let mut header: Vec<String> = Vec::new();
    let mut json = Row::default();
    let mut first = 0;
    for (line, number) in text.lines().zip(1u64..) {
        let line = dequoted(line);
        if line.starts_with("RANGE") {
            header = line.split_whitespace().map(String::from).collect();
            continue;
        }
        let row = if line.starts_with("0x") { table_row(line, &header) } else { None };
        let row = row.or_else(|| json_line(line, &mut json));
        let Some((range, row)) = row.and_then(|row| Some((row.range?, row))) else { continue };
        if !row.is_offline {
            first = if first == 0 { number } else { first };
            ranges.entry(row.nid).or_default().push(PfnRange::new(range.start, range.end));
        }
    }
    if ranges.is_empty() {
        let problem = "there is no range of memory that is online; expected the text of lsmem";
        return Err(MachineError::content(name, None, problem));
    }
    for (nid, found) in ranges {
        let found = normalise(found).iter().map(|r| PhysRange::new(r.start.0, r.end.0)).collect();
        let known = Some(out.known(found, first));
        match nid {
            Some(nid) => out.node(nid).ranges = known,
            None => out.ranges = known,
        }
    }
    if !out.nodes.is_empty() {
        // Forms with a NODE column say all that those without do.
        out.ranges = None;
    }
    Ok(out)
}

/// A row of the table; without STATE all rows are online.
fn table_row(line: &str, header: &[String]) -> Option<Row> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = |name: &str| header.iter().position(|h| h == name).and_then(|i| words.get(i));
    let (start, last) = ends(words.first()?)?;
    Some(Row {
        range: (start <= last).then(|| PhysRange::new(start, last.saturating_add(1))),
        is_offline: at("STATE").is_some_and(|state| state.starts_with("offline")),
        nid: at("NODE").and_then(|n| n.parse().ok()).filter(|&n| n < 4096).map(Nid),
    })
}

/// A line of the JSON form, which has one key a line; a row ends with `}`.
fn json_line(line: &str, row: &mut Row) -> Option<Row> {
    if let Some((key, value)) = line.split_once("\":") {
        let value = value.trim().trim_end_matches(',').trim_matches('"');
        match key.trim().trim_start_matches('"') {
            "range" => {
                let ends = ends(value).filter(|(start, last)| start <= last);
                row.range = ends.map(|(s, l)| PhysRange::new(s, l.saturating_add(1)));
            }
            "state" => row.is_offline = value.starts_with("offline"),
            "node" => row.nid = value.parse().ok().filter(|&n| n < 4096).map(Nid),
            _ => {}
        }
        return None;
    }
    line.starts_with('}').then(|| std::mem::take(row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{GIB, MIB};
    use proptest::prelude::*;

    #[test]
    fn system_ram_of_the_resource_tree() {
        let text = "00000000-00000fff : Reserved\n00001000-0009ffff : System RAM\n\
                    00100000-3fffffff : System RAM\n  01000000-01ffffff : Kernel code\n\
                    100000000-17fffffff : System RAM (kmem)\n";
        let found = parse("i", text).unwrap().ranges.unwrap();
        assert_eq!((found.value.len(), found.at.line), (3, Some(2)));
        assert_eq!(found.value[2], PhysRange::new(4 * GIB, 6 * GIB));
    }

    #[test]
    fn wrong_trees_are_refused_with_lines() {
        let error = |text: &str| parse("i", text).unwrap_err().to_string();
        assert!(error("00000000-00000000 : System RAM\n").contains("as root"));
        assert!(error("0-1fff : System RAM\n1000-2fff : System RAM\n").starts_with("i:2:"));
        assert!(error("\n2000-1fff : System RAM\n").contains("i:2: the range"));
        assert!(error("x-y : System RAM\n").contains("no range"));
        assert!(error("0-1 : Reserved\n").contains("no System RAM"));
    }

    // MiB      0    128    256    384
    // node 0   |=====|
    // node 1         |offline|=====|
    #[test]
    fn all_forms_of_lsmem() {
        let table = "RANGE  SIZE STATE REMOVABLE BLOCK NODE ZONES\n\
            0x0000000000000000-0x0000000007ffffff 128M online yes 0 0 DMA32\n\
            0x0000000008000000-0x000000000fffffff 128M offline 1 1\n\
            0x0000000010000000-0x0000000017ffffff 128M online yes 2 1 Normal\n\n\
            Memory block size: 128M\n";
        let json = "{\n \"memory\": [\n {\n \"range\": \"0x0-0x7ffffff\",\n\
            \"state\": \"online\",\n\
            \"node\": 0\n },{\n \"range\": \"0x10000000-0x17ffffff\",\n \"state\": \"online\",\n\
            \"node\": 1\n }\n ]\n}\n";
        for text in [table.to_string(), json.to_string(), format!("{table}---\n{json}")] {
            let found = lsmem("l", &text).unwrap();
            let of = |nid| found.nodes[&Nid(nid)].ranges.as_ref().unwrap().value.clone();
            assert_eq!(of(0), [PhysRange::new(0, 128 * MIB)], "{text}");
            assert_eq!(of(1), [PhysRange::new(256 * MIB, 384 * MIB)], "{text}");
        }
        let plain = "RANGE SIZE\n0x0-0xbfffffff 3G\n";
        assert_eq!(lsmem("l", plain).unwrap().ranges.unwrap().value[0].end, 3 * GIB);
        assert!(lsmem("l", "RANGE SIZE\n").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read(
            text in "(0x[0-9a-f]{1,17}-0x[0-9a-f]{0,17} |System RAM|[ :\n{}\"]|range){0,20}",
        ) {
            let _ = parse("i", &text);
            let _ = lsmem("l", &text);
        }
    }
}
