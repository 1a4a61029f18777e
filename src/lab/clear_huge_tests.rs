//! Tests of the clearing experiment.

use super::*;
use crate::lab::bench_of_tests::with_lab;

#[test]
fn every_cell_clears_all_and_nothing_else() {
    let mut cells = page_cells(&Store::available());
    cells.extend(table_cells(PAGE_BYTES));
    for cell in cells {
        let mut lines = vec![Line::new([u64::MAX; 8]); cell.lines() + 2];
        let pair = Pair::default();
        let end = lines.len() - 1;
        clear(&cell, &cell.order(), &mut lines[1..end], &pair);
        assert!(lines[1..end].iter().all(|line| line.words() == [0; 8]), "{}", cell.describe());
        assert_eq!((lines[0].words()[0], lines[end].words()[0]), (u64::MAX, u64::MAX));
        assert!(pair.is_balanced());
    }
}

#[test]
fn a_line_left_over_is_wrong_data() {
    let store = Store::named("broken-for-tests").unwrap();
    let cell = Cell { store, ..page_cells(&[Store::default_zero()])[0] };
    let lines = vec![Line::default(); cell.lines()];
    with_lab(&|| false, |lab| {
        let done = run_one(&lab, &cell, &mut lines.clone(), 0);
        assert!(matches!(done, Err(LabError::WrongData { .. })), "{done:?}");
    });
    let cell = Cell { store: Store::default_zero(), ..cell };
    with_lab(&|| false, |lab| assert!(run_one(&lab, &cell, &mut lines.clone(), 1).is_ok()));
}

fn small() -> Options {
    Options {
        buffer_bytes: PAGE_BYTES,
        stores: vec![Store::default_zero().name().into()],
        gigantic: false,
        touch_bytes: 1 << 20,
        settings: false,
    }
}

#[test]
fn a_small_run_has_all_parts_and_an_interrupted_one_none() {
    let record = with_lab(&|| false, |lab| run(&lab, &small()).unwrap());
    assert!(record.head.complete);
    for part in ["table", "page", "touch"] {
        assert!(record.part(part).all(|p| p.samples_ns.len() == 2 && p.verified), "{part}");
        assert!(record.part(part).count() >= 2, "{part}");
    }
    assert!(record.derived.iter().any(|d| d.what == "without_pair_ratio"));
    assert_eq!(record.findings.len(), 2);
    assert_eq!(record.published.len(), 5 * 3 * 2 + 4);
    let record = with_lab(&|| true, |lab| run(&lab, &small()).unwrap());
    assert!(!record.head.complete && record.points.is_empty());
}

#[test]
fn sizes_must_be_whole_pages() {
    let fails = |options| with_lab(&|| false, |lab| run(&lab, &options).unwrap_err().to_string());
    let text = fails(Options { buffer_bytes: 3 << 20, ..small() });
    assert!(text.contains("--buffer 3MiB") && text.contains("4MiB"), "{text}");
    assert!(fails(Options { touch_bytes: 1000, ..small() }).contains("--touch"));
    assert!(fails(Options { touch_bytes: 1 << 52, ..small() }).contains("smaller --touch"));
}
