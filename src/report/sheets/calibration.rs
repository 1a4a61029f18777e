//! The tables of a calibration.

use super::{bytes, count, digits, facts, host, maybe, ns, small, whole_ns, with_note, words, yes};
use crate::record::calibration::{Calibration, FirstTouch, PassRate, Rate, StoreRate};
use crate::report::sheet::{Cell, Sheet};

pub(super) fn sheets(c: &Calibration) -> Vec<Sheet> {
    let series = vec![("kernel", words(&*c.kernel)), ("most_threads", small(c.most_threads))];
    let series = facts("Series", series);
    vec![rates(c), stores(c), passes(c), first_touch(c), series, host(&c.host)]
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
            c.label.name().into(),
            small(r.threads),
            digits(r.ns_per_page),
        ]
    };
    sheet.rows = c.rates.iter().map(row).collect();
    with_note(sheet, "time of a node's team, or of the boot CPU, per struct page")
}

/// What tells stores apart.
const STORE: [(&str, &str); 7] = [
    ("store", "store"),
    ("kind", "kind"),
    ("data", "data"),
    ("label", "label"),
    ("CPUs of node", "cpu_nid"),
    ("memory of node", "memory_nid"),
    ("threads", "threads"),
];

fn store(c: &Calibration, s: &StoreRate) -> Vec<Cell> {
    vec![
        words(&*s.store),
        words(&*s.kind),
        words(&*s.data),
        c.label.name().into(),
        small(s.cpu_nid),
        small(s.memory_nid),
        small(s.threads),
    ]
}

fn stores(c: &Calibration) -> Sheet {
    let columns = [
        ("buffer", "buffer_bytes"),
        ("runs", "runs"),
        ("median", "median_ns"),
        ("low", "low_ns"),
        ("high", "high_ns"),
        ("rate", "bytes_per_s"),
    ];
    let mut sheet = Sheet::new("Stores", &[&STORE[..], &columns].concat(), 4);
    let row = |s: &StoreRate| {
        let rate = Cell::number(s.bytes_per_s, format!("{:.1} GB/s", s.bytes_per_s / 1e9));
        let figures = [
            bytes(s.bytes),
            count(s.samples_ns.len() as u64),
            ns(s.median_ns),
            ns(s.ci95_ns[0]),
            ns(s.ci95_ns[1]),
            rate,
        ];
        [store(c, s), figures.to_vec()].concat()
    };
    sheet.rows = c.stores.iter().map(row).collect();
    with_note(sheet, "bytes stored at the median, reads for ownership not counted")
}

fn passes(c: &Calibration) -> Sheet {
    let columns = [
        ("pass", "pass"),
        ("lines", "temperature"),
        ("label", "label"),
        ("node", "nid"),
        ("struct pages", "pages"),
        ("ns/page", "per_page_ns"),
        ("low", "low_per_page_ns"),
        ("high", "high_per_page_ns"),
    ];
    let mut sheet = Sheet::new("Passes", &columns, 3);
    let row = |p: &PassRate| {
        let texts = [&p.pass, &p.temperature].map(|text| words(text.as_str())).to_vec();
        let figures = [p.ns_per_page.median, p.ns_per_page.ci95[0], p.ns_per_page.ci95[1]];
        let middle = vec![c.label.name().into(), small(p.nid), count(p.pages)];
        [texts, middle, figures.map(digits).to_vec()].concat()
    };
    sheet.rows = c.passes.iter().map(row).collect();
    with_note(sheet, "one thread on its node's memory; low and high are 95 % intervals")
}

fn first_touch(c: &Calibration) -> Sheet {
    let columns = [
        ("label", "label"),
        ("node", "nid"),
        ("threads", "threads"),
        ("buffer", "buffer_bytes"),
        ("in 2 MiB pages", "huge_page_bytes"),
        ("time", "took_ns"),
    ];
    let mut sheet = Sheet::new("First touch", &columns, 1);
    let row = |f: &FirstTouch| {
        let (nid, threads) = (small(f.nid), small(f.threads));
        let (all, huge) = (bytes(f.bytes), maybe(f.huge_page_bytes, bytes));
        vec![c.label.name().into(), nid, threads, all, huge, whole_ns(f.wall_ns)]
    };
    sheet.rows = c.first_touch.iter().map(row).collect();
    sheet
}

pub(super) fn samples(c: &Calibration) -> Sheet {
    let columns = [("run", "run"), ("time", "sample_ns")];
    let mut sheet = Sheet::new("Samples", &[&STORE[..], &columns].concat(), 4);
    for s in &c.stores {
        for (run, &sample) in (1..).zip(&s.samples_ns) {
            sheet.rows.push([store(c, s), vec![count(run), whole_ns(sample)]].concat());
        }
    }
    sheet
}
