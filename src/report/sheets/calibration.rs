//! The tables of a calibration.

use super::{digits, facts, host, small, with_note, words, yes};
use crate::record::calibration::{Calibration, Rate};
use crate::report::compare::label;
use crate::report::sheet::Sheet;

pub(super) fn sheets(c: &Calibration) -> Vec<Sheet> {
    let series = vec![("kernel", words(&*c.kernel)), ("most_threads", small(c.most_threads))];
    vec![rates(c), facts("Series", series), host(&c.host)]
}

fn rates(c: &Calibration) -> Sheet {
    let columns = [
        ("strategy", "strategy"),
        ("phase", "phase"),
        ("freed", "free"),
        ("label", "label"),
        ("threads", "threads"),
        ("ns/page", "per_page_ns"),
    ];
    let mut sheet = Sheet::new("Rates", &columns, 4);
    let row = |r: &Rate| {
        vec![
            words(&*r.strategy),
            words(&*r.phase),
            yes(r.free),
            label(c.label).into(),
            small(r.threads),
            digits(r.ns_per_page),
        ]
    };
    sheet.rows = c.rates.iter().map(row).collect();
    with_note(sheet, "time of a node's team, or of the boot CPU, per struct page")
}
