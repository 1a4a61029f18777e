//! The rows of records that can be held against each other: [`Row`].

use crate::record::Label;
use crate::record::Record;
use crate::record::any::AnyRecord;
use crate::record::calibration::Calibration;
use crate::record::estimate::Estimate;
use crate::record::lab::{Factors, LabRecord, factors};
use crate::record::sweep::Sweep;

/// One time with what tells it apart.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    /// What tells it apart.
    pub(super) key: Factors,
    /// The same as one text: keys are sorted by name, so that equal ones have equal texts.
    pub(super) id: String,
    /// What `ns` is of: `struct-page`, `whole`, or an experiment's unit.
    pub(super) per: String,
    /// How it came about.
    pub(super) label: Label,
    /// The median or the prediction.
    pub(super) ns: f64,
    /// Single runs, in the same unit.
    pub(super) samples_ns: Vec<f64>,
    /// Struct pages of the machine; 0 where that means nothing.
    pub(super) pages: u64,
    /// Whether the verdict on all looks at it.
    pub(super) decides: bool,
}

/// The rows of a record, each key once.
pub(super) fn rows(record: &AnyRecord) -> Vec<Row> {
    let all = match record {
        AnyRecord::Compare(record) => compare(record),
        AnyRecord::Estimate(record) => estimate(record),
        AnyRecord::Sweep(record) => sweep(record),
        AnyRecord::Calibration(record) => calibration(record),
        AnyRecord::Lab(record) => lab(record),
        AnyRecord::Validate(_) => Vec::new(),
    };
    let mut out: Vec<Row> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for row in all {
        let id = format!("{:?}", row.key);
        if seen.insert(id.clone()) {
            out.push(Row { id, ..row });
        }
    }
    out
}

fn compare(record: &Record) -> Vec<Row> {
    let row = |p: &crate::record::Point| {
        let free = if p.free { "yes" } else { "no" };
        let mut key = factors([
            ("strategy", (&*p.strategy).into()),
            ("threads", u64::from(p.threads).into()),
            ("free", free.into()),
            ("phase", (&*p.phase).into()),
        ]);
        key.extend(p.store.iter().map(|store| ("store".to_owned(), (&**store).into())));
        key.extend(p.nid.map(|nid| ("nid".to_owned(), u64::from(nid).into())));
        let pages = p.executed_pages.max(1) as f64;
        Row {
            key,
            id: String::new(),
            per: "struct-page".into(),
            label: p.label,
            ns: p.median_ns / pages,
            samples_ns: p.samples_ns.iter().map(|&ns| ns as f64 / pages).collect(),
            pages: p.scaled_pages,
            decides: p.phase == "total" && !p.strategy.starts_with("probe-"),
        }
    };
    record.points.iter().map(row).collect()
}

fn predicted(key: Factors, label: Label, ns: u64, decides: bool) -> Row {
    let (per, ns) = ("whole".into(), ns as f64);
    Row { key, id: String::new(), per, label, ns, samples_ns: Vec::new(), pages: 0, decides }
}

/// The total whatever its strategy: that is what two predictions are made for.
fn estimate(e: &Estimate) -> Vec<Row> {
    let mut out = vec![predicted(factors([("phase", "total".into())]), e.label, e.total_ns, true)];
    out.extend(e.phases.iter().map(|p| {
        let key = factors([("phase", (&*p.phase).into())]);
        predicted(key, e.label, p.end_ns.saturating_sub(p.start_ns), false)
    }));
    out.extend(e.nodes.iter().map(|n| {
        let nid = u64::from(n.nid).into();
        let key = factors([("phase", "longest of the node".into()), ("nid", nid)]);
        predicted(key, e.label, n.wall_ns, false)
    }));
    out.extend(e.savings.iter().map(|s| {
        let key = factors([("strategy", (&*s.strategy).into()), ("kernel", (&*s.kernel).into())]);
        predicted(key, e.label, s.total_ns, false)
    }));
    out
}

fn sweep(s: &Sweep) -> Vec<Row> {
    let row = |p: &crate::record::sweep::SweepPoint| {
        let mut key = factors([
            ("kernel", (&*p.kernel).into()),
            ("strategy", (&*p.strategy).into()),
            ("threads", u64::from(p.threads).into()),
        ]);
        let mut add = |name: &str, value: Option<u64>| {
            key.extend(value.map(|value| (name.to_owned(), value.into())));
        };
        add("chunk_bytes", p.chunk_bytes);
        add("nodes", p.nodes.map(u64::from));
        add("memory_bytes", p.memory_bytes);
        add("page_bytes", p.page_bytes);
        let Some(m) = &p.measured else { return predicted(key, p.label, p.total_ns, true) };
        let pages = m.executed_pages.max(1) as f64;
        Row {
            key,
            id: String::new(),
            per: "struct-page".into(),
            label: Label::Measured,
            ns: m.median_ns / pages,
            samples_ns: m.samples_ns.iter().map(|&ns| ns as f64 / pages).collect(),
            pages: m.machine_pages,
            decides: true,
        }
    };
    s.points.iter().map(row).collect()
}

fn calibration(c: &Calibration) -> Vec<Row> {
    let row = |r: &crate::record::calibration::Rate| Row {
        key: factors([
            ("strategy", (&*r.strategy).into()),
            ("phase", (&*r.phase).into()),
            ("free", if r.free { "yes" } else { "no" }.into()),
            ("threads", u64::from(r.threads).into()),
        ]),
        id: String::new(),
        per: "struct-page".into(),
        label: c.label,
        ns: r.ns_per_page,
        samples_ns: Vec::new(),
        pages: 0,
        decides: true,
    };
    c.rates.iter().map(row).chain(stores(c)).chain(passes(c)).collect()
}

/// Stores per 64 bytes, the size of a struct page. What `estimate` uses decides; these say
/// more about it.
fn stores(c: &Calibration) -> impl Iterator<Item = Row> {
    c.stores.iter().map(|s| {
        let structs = s.bytes.max(64) as f64 / 64.0;
        Row {
            key: factors([
                ("store", (&*s.store).into()),
                ("data", (&*s.data).into()),
                ("cpu_nid", u64::from(s.cpu_nid).into()),
                ("memory_nid", u64::from(s.memory_nid).into()),
                ("threads", u64::from(s.threads).into()),
            ]),
            id: String::new(),
            per: "struct-page".into(),
            label: c.label,
            ns: s.median_ns / structs,
            samples_ns: s.samples_ns.iter().map(|&ns| ns as f64 / structs).collect(),
            pages: 0,
            decides: false,
        }
    })
}

fn passes(c: &Calibration) -> impl Iterator<Item = Row> {
    c.passes.iter().map(|p| Row {
        key: factors([
            ("pass", (&*p.pass).into()),
            ("temperature", (&*p.temperature).into()),
            ("nid", u64::from(p.nid).into()),
        ]),
        id: String::new(),
        per: "struct-page".into(),
        label: c.label,
        ns: p.ns_per_page.median,
        samples_ns: Vec::new(),
        pages: 0,
        decides: false,
    })
}

fn lab(record: &LabRecord) -> Vec<Row> {
    let row = |p: &crate::record::lab::LabPoint| {
        let mut key = p.factors.clone();
        key.insert("part".into(), (&*p.part).into());
        let count = p.count.max(1) as f64;
        Row {
            key,
            id: String::new(),
            per: p.per.clone(),
            label: p.label,
            ns: p.each_ns(),
            samples_ns: p.samples_ns.iter().map(|&ns| ns as f64 / count).collect(),
            pages: 0,
            decides: true,
        }
    };
    record.points.iter().map(row).collect()
}
