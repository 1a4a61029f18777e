//! Views of fixed records against fixed texts, and CSV read back.
//!
//! `PAGEINIT_BLESS=1 cargo test --test report_views` writes the texts anew; read what
//! changed before it is committed. The records themselves are never written again: every
//! form that was ever released loads for ever.

use pageinit::record::any::AnyRecord;
use pageinit::report::csv::joined;
use pageinit::report::sheet::{Cell, Sheet};
use pageinit::report::source::Source;
use pageinit::report::view::{Choice, View, render};
use pageinit::stats::Rng;
use pageinit::study::diff::{DiffError, Side, diff};
use proptest::prelude::*;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// Every record of the fixtures, by name.
fn sources() -> Vec<Source> {
    let folder = fs::read_dir(fixtures().join("records")).expect("the fixtures are there");
    let mut paths: Vec<PathBuf> = folder.map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    let read = |path: &PathBuf| {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let text = fs::read_to_string(path).expect("a record is text");
        Source::read(&name, &text).unwrap_or_else(|why| panic!("{name} {why}"))
    };
    paths.iter().map(read).collect()
}

fn shown(view: View, sources: &[Source]) -> String {
    render(view, sources, Choice::default()).expect("the view suits the record")
}

/// Compares with the fixed text, or writes it.
fn check(name: &str, text: &str) {
    let path = fixtures().join("golden/report").join(name);
    if std::env::var_os("PAGEINIT_BLESS").is_some() {
        fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        return fs::write(&path, text).expect("writable");
    }
    let wanted = fs::read_to_string(&path).unwrap_or_default();
    if let Some((at, line)) =
        text.lines().enumerate().find(|(at, l)| wanted.lines().nth(*at) != Some(l))
    {
        let was = wanted.lines().nth(at).unwrap_or("nothing");
        panic!("{name}:{}:\nwanted {was}\nfound  {line}", at + 1);
    }
    assert_eq!(text, wanted, "{name}");
}

fn extension(view: View) -> &'static str {
    if view == View::Markdown { "md" } else { view.name() }
}

#[test]
fn every_record_of_the_fixtures_loads() {
    let sources = sources();
    let kinds: Vec<String> = sources.iter().map(|s| s.record.kind()).collect();
    for kind in ["compare", "estimate", "sweep", "validate", "calibrate", "lab mremap"] {
        assert!(kinds.iter().any(|known| known == kind), "no record of {kind} in {kinds:?}");
    }
    assert!(sources.iter().all(|s| s.record.head().complete));
}

#[test]
fn views_are_as_they_were() {
    for source in sources() {
        let stem = source.name.trim_end_matches(".json").to_owned();
        // Pictures, pages and traces have fixed texts in report_pictures.rs.
        let drawn = [View::Svg, View::Html, View::Trace];
        let suits = |view: &View| view.suits(&source.record) && !drawn.contains(view);
        for view in View::ALL.into_iter().filter(suits) {
            let text = shown(view, std::slice::from_ref(&source));
            check(&format!("{stem}.{}", extension(view)), &text);
        }
    }
}

#[test]
fn a_node_without_cpus_at_the_end_of_the_chain_stands_out() {
    let all = sources();
    for name in ["estimate-v1.json", "compare-v1-nodes.json"] {
        let own: Vec<Source> = all.iter().filter(|s| s.name == name).cloned().collect();
        let text = shown(View::CriticalChain, &own);
        assert!(text.contains(" HAS NO CPU: one worker on another node does its "), "{text}");
        assert!(text.contains("ALL OTHER NODES WAIT FOR NODE "), "{text}");
        assert!(text.contains("slack: node"), "{text}");
        assert!(shown(View::Blame, &own).contains(", no CPU │"));
    }
}

#[test]
fn figures_carry_their_label_in_every_view() {
    for source in sources() {
        for view in View::ALL.into_iter().filter(|view| view.suits(&source.record)) {
            // A heading may begin with the label.
            let text = shown(view, std::slice::from_ref(&source)).to_lowercase();
            let labelled = ["measured", "scaled", "modelled"].iter().any(|l| text.contains(l));
            assert!(labelled, "{} of {}", view.name(), source.name);
        }
    }
}

/// The record without its last rounds, with a warning of its own.
fn interrupted(source: &Source) -> Source {
    let mut source = source.clone();
    let head = match &mut source.record {
        AnyRecord::Compare(r) => &mut r.head,
        AnyRecord::Estimate(r) => &mut r.head,
        AnyRecord::Sweep(r) => &mut r.head,
        AnyRecord::Validate(r) => &mut r.head,
        AnyRecord::Calibration(r) => &mut r.head,
        AnyRecord::Lab(r) => &mut r.head,
    };
    head.complete = false;
    head.warnings = vec![pageinit::warning::Warning::new("odd-code", "it was odd", "look again")];
    source
}

#[test]
fn incomplete_records_and_warnings_are_shown_in_every_view() {
    for source in sources().iter().map(interrupted) {
        for view in View::ALL.into_iter().filter(|view| view.suits(&source.record)) {
            let text = shown(view, std::slice::from_ref(&source));
            let plain = text.replace('\\', "");
            for part in ["NO: it was interrupted", "odd-code", "it was odd", "look again"] {
                assert!(plain.contains(part), "{part} in {} of {}", view.name(), source.name);
            }
        }
    }
}

#[test]
fn several_records_of_a_kind_have_one_table_across_them() {
    let all = sources();
    let mut two: Vec<Source> =
        all.iter().filter(|s| s.record.kind() == "compare").cloned().collect();
    for view in [View::Table, View::Csv, View::Markdown] {
        assert!(shown(view, &two).contains("All records of compare"), "{}", view.name());
        assert!(!shown(view, &two[..1]).contains("All records"), "{}", view.name());
    }
    two.extend(all.iter().filter(|s| s.record.kind() == "sweep").cloned());
    assert_eq!(shown(View::Table, &two).matches("All records of ").count(), 1);
    for (view, source) in
        [View::Table, View::Markdown].iter().flat_map(|v| two.iter().map(move |s| (v, s)))
    {
        assert!(shown(*view, &two).contains(&source.name), "{} is named", source.name);
    }
}

#[test]
fn views_that_make_no_sense_name_those_that_do() {
    for source in sources().iter().filter(|s| !View::Blame.suits(&s.record)) {
        let both = [source.clone()];
        let why = render(View::CriticalChain, &both, Choice::default()).expect_err("no boot");
        let text = why.to_string();
        assert!(text.starts_with(&source.name) && text.contains("table, csv, markdown"), "{text}");
    }
}

#[test]
fn csv_of_many_records_has_one_header_and_raw_samples() {
    let all = sources();
    let text = shown(View::Csv, &all);
    let rows = parse(&text);
    let width = rows[0].len();
    assert!(rows.iter().all(|row| row.len() == width));
    let mut names = rows[0].clone();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), width, "no column twice");
    let at = |name: &str| rows[0].iter().position(|n| n == name).expect("the column is there");
    let (table, sample) = (at("table"), at("sample_ns"));
    let runs: Vec<&Vec<String>> = rows.iter().filter(|row| row[table] == "Samples").collect();
    assert!(runs.len() > 100);
    assert!(runs.iter().all(|row| row[sample].parse::<u64>().is_ok_and(|ns| ns > 0)));
}

/// Replaces one number in ten by an odd one.
fn odd(value: &mut Value, rng: &mut Rng) {
    const ODD: [f64; 4] = [0.0, -1.0, 1e300, 1e-300];
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| odd(item, rng)),
        Value::Object(fields) => fields.values_mut().for_each(|item| odd(item, rng)),
        Value::Number(number) if rng.below(10) == 0 => {
            *value = match number.is_u64() {
                true => [0, u64::from(u32::MAX), u64::MAX][rng.below(3)].into(),
                false => ODD[rng.below(ODD.len())].into(),
            };
        }
        _ => {}
    }
}

#[test]
fn no_number_makes_a_view_panic() {
    let folder = fs::read_dir(fixtures().join("records")).expect("the fixtures are there");
    let mut read = 0;
    for path in folder.map(|entry| entry.expect("readable").path()) {
        let text = fs::read_to_string(&path).expect("a record is text");
        for seed in 0..20 {
            let mut value: Value = serde_json::from_str(&text).expect("a record is JSON");
            odd(&mut value, &mut Rng::new(seed));
            // Some numbers do not fit their fields.
            let Ok(source) = Source::read("odd", &value.to_string()) else { continue };
            read += 1;
            for view in View::ALL.into_iter().filter(|view| view.suits(&source.record)) {
                assert!(!shown(view, &[source.clone(), source.clone()]).is_empty());
            }
            let side = Side { name: "odd", record: &source.record };
            let found = match diff(side, side, 0.05, &[]) {
                // A validation has errors, not times.
                Err(DiffError::NoTimes(_)) if source.record.kind() == "validate" => continue,
                found => found.expect("a record can be compared with itself"),
            };
            assert!(!pageinit::report::diff::text(&found, true).is_empty());
        }
    }
    assert!(read > 5, "only {read} could be read");
}

/// A small reader of RFC 4180, with LF between lines.
fn parse(text: &str) -> Vec<Vec<String>> {
    let mut rows = vec![];
    let (mut row, mut field) = (vec![], String::new());
    let mut chars = text.chars().peekable();
    let mut quoted = false;
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut field)),
            '\n' if !quoted => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            c => field.push(c),
        }
    }
    assert!(!quoted && row.is_empty() && field.is_empty(), "the text ends with a whole line");
    rows
}

/// What a field holds for a cell.
fn field(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) if text.starts_with(['=', '+', '-', '@', '\t', '\r']) => {
            format!("'{text}")
        }
        Cell::Text(text) => text.clone(),
        Cell::Number { value, .. } => value.to_string(),
        Cell::Empty => String::new(),
    }
}

fn cell() -> impl Strategy<Value = Cell> {
    prop_oneof![
        "[-=+@\t\r\n\",a|' é]{0,6}".prop_map(Cell::Text),
        (-1e12f64..1e12).prop_map(|n| Cell::number(n, "shown")),
        any::<u32>().prop_map(|n| Cell::number(f64::from(n), "shown")),
        Just(Cell::Empty),
    ]
}

fn sheet() -> impl Strategy<Value = Sheet> {
    let names = proptest::sample::subsequence(vec!["a", "b_ns", "c,\"d\"", "=e", "f"], 1..5);
    names.prop_flat_map(|names| {
        let width = names.len();
        let rows = proptest::collection::vec(proptest::collection::vec(cell(), width), 0..5);
        rows.prop_map(move |rows| {
            let columns: Vec<(&str, &str)> = names.iter().map(|n| (*n, *n)).collect();
            Sheet { rows, ..Sheet::new("t", &columns, 0) }
        })
    })
}

proptest! {
    #[test]
    fn csv_parses_back_to_the_same_cells(first in sheet(), second in sheet()) {
        let text = joined(&[(Some(("r,1", true)), &first), (None, &second)]);
        let rows = parse(&text);
        prop_assert_eq!(rows.len(), 1 + first.rows.len() + second.rows.len());
        let place = |name: &str| {
            let name = field(&Cell::from(name));
            rows[0].iter().position(|n| *n == name).expect("every column is in the header")
        };
        let of = |sheet: &Sheet| {
            sheet.rows.iter().map(|row| (sheet.clone(), row.clone())).collect::<Vec<_>>()
        };
        let cells = [of(&first), of(&second)].concat();
        for ((sheet, wanted), found) in cells.iter().zip(&rows[1..]) {
            prop_assert_eq!(found.len(), rows[0].len());
            for (column, cell) in sheet.columns.iter().zip(wanted) {
                prop_assert_eq!(&found[place(&column.name)], &field(cell));
            }
        }
        for row in &rows[1..=first.rows.len()] {
            prop_assert_eq!(&row[..3], ["r,1", "yes", "t"]);
        }
    }

    #[test]
    fn no_text_that_is_read_reaches_a_terminal_with_controls(name in any::<String>()) {
        let clean = pageinit::report::source::clean(&name);
        prop_assert!(!clean.chars().any(char::is_control));
        prop_assert_eq!(clean.chars().count(), name.chars().count());
    }
}
