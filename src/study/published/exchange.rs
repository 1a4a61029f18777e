//! The JSON form in which published figures are exchanged.
//!
//! A list of records (or an object with one under `records`) with `id`, `source`,
//! `machine`, `kernel`, `config` and `measurements`. What a measurement times stands in
//! its words only; [`kind_of`] tells from them.

use super::{Described, Figure, Figures, FiguresError, Kind, Published, field_error};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(untagged)]
enum Shape {
    List(Vec<Value>),
    Object { records: Vec<Value> },
}

#[derive(Deserialize)]
struct Record {
    id: String,
    title: Option<String>,
    source: Option<String>,
    kernel: Option<String>,
    config: Option<String>,
    notes: Option<String>,
    machine: Option<Machine>,
    measurements: Option<Vec<Measurement>>,
}

#[derive(Default, Deserialize)]
struct Machine {
    cpu: Option<String>,
    arch: Option<String>,
    nodes: Option<u32>,
    cpus_per_node: Option<u32>,
    cores_per_node: Option<u32>,
    smt: Option<u32>,
    memory_per_node_gib: Option<f64>,
    total_memory_gib: Option<f64>,
    page_size: Option<String>,
    virt: Option<String>,
    virt_assumed: Option<String>,
}

#[derive(Deserialize)]
struct Measurement {
    what: String,
    threads: Option<u32>,
    time_ms: Option<f64>,
    stddev_ms: Option<f64>,
    pages: Option<u64>,
    pages_derived: Option<u64>,
    invalid: Option<bool>,
}

const RECORD: [&str; 9] =
    ["id", "title", "source", "flag", "kernel", "config", "notes", "machine", "measurements"];
const MACHINE: [&str; 11] = [
    "cpu",
    "arch",
    "nodes",
    "cpus_per_node",
    "cores_per_node",
    "smt",
    "memory_per_node_gib",
    "total_memory_gib",
    "page_size",
    "virt",
    "virt_assumed",
];
const MEASUREMENT: [&str; 7] =
    ["what", "threads", "time_ms", "stddev_ms", "pages", "pages_derived", "invalid"];

/// Reads the form.
pub(super) fn parse(name: &str, text: &str) -> Result<Figures, FiguresError> {
    let at = |error: &serde_json::Error| byte_of(text, error.line(), error.column());
    let wrong = |error: serde_json::Error| field_error(name, text, at(&error), error.to_string());
    let values = match serde_json::from_str::<Shape>(text) {
        Ok(Shape::List(values) | Shape::Object { records: values }) => values,
        Err(_) => {
            // The untagged form hides where; what is no JSON at all says it itself.
            serde_json::from_str::<Value>(text).map_err(wrong)?;
            let message = "expected a list of records, or an object with `records`".into();
            return Err(field_error(name, text, 0, message));
        }
    };
    let records: Vec<Record> = match text.trim_start().starts_with('[') {
        true => serde_json::from_str(text).map_err(wrong)?,
        false => serde_json::from_str::<Wrapped>(text).map_err(wrong)?.records,
    };
    let unknown_fields = values.iter().map(unknown_in_record).sum();
    Ok(Figures { records: records.into_iter().map(published).collect(), unknown_fields })
}

#[derive(Deserialize)]
struct Wrapped {
    records: Vec<Record>,
}

/// The byte of a line and column, both counted from 1.
fn byte_of(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    start + column.saturating_sub(1)
}

fn unknown_in_record(record: &Value) -> u64 {
    let parts = record.get("measurements").and_then(Value::as_array);
    let parts = parts.into_iter().flatten().map(|m| unknown(m, &MEASUREMENT));
    let machine = record.get("machine").map_or(0, |m| unknown(m, &MACHINE));
    unknown(record, &RECORD) + machine + parts.sum::<u64>()
}

fn unknown(value: &Value, known: &[&str]) -> u64 {
    let keys = value.as_object().into_iter().flat_map(|o| o.keys());
    keys.filter(|key| !known.contains(&key.as_str())).count() as u64
}

fn published(record: Record) -> Published {
    let machine = record.machine.unwrap_or_default();
    let title = record.title.unwrap_or_default();
    let notes = record.notes.unwrap_or_default();
    let config = record.config.unwrap_or_default();
    let device = is_device(&format!("{title} {config}").to_ascii_lowercase());
    let figures: Vec<Figure> =
        record.measurements.into_iter().flatten().map(|m| figure(m, device)).collect();
    Published {
        id: record.id,
        source: record.source.unwrap_or_default(),
        kernel: record.kernel.unwrap_or_default(),
        config: format!("{config} {notes}").trim().to_owned(),
        machine: Described {
            cpu: machine.cpu,
            arch: machine.arch,
            nodes: machine.nodes,
            cpus_per_node: machine.cpus_per_node,
            cores_per_node: machine.cores_per_node,
            smt: machine.smt,
            memory_per_node_gib: machine.memory_per_node_gib,
            total_memory_gib: machine.total_memory_gib,
            page_kib: machine.page_size.as_deref().and_then(page_kib),
            virt: machine.virt.or(machine.virt_assumed),
        },
        figures,
    }
}

/// `4K`, `8 KiB`, `64k` in KiB.
fn page_kib(text: &str) -> Option<u64> {
    let cut = text.trim().find(|c: char| !c.is_ascii_digit()).unwrap_or(text.trim().len());
    text.trim().get(..cut)?.parse().ok()
}

fn figure(m: Measurement, device: bool) -> Figure {
    let kind = kind_of(&m.what, device);
    Figure {
        kind,
        what: m.what,
        ms: m.time_ms,
        threads: m.threads,
        sd_ms: m.stddev_ms,
        pages: m.pages.or(m.pages_derived),
        invalid: m.invalid.unwrap_or(false),
    }
}

fn is_device(text: &str) -> bool {
    let words = ["pmem", "zone_device", "nvdimm", "dax", "devmap", "namespace"];
    words.iter().any(|word| text.contains(word))
}

/// What a measurement times, by its words.
fn kind_of(what: &str, device: bool) -> Kind {
    let text = what.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let of_node = text.strip_prefix("node ").is_some_and(|r| r.starts_with(char::is_numeric));
    match () {
        _ if device || is_device(&text) || has(&["hugetlb", "mremap", "hmm", "nouveau"]) => {
            Kind::Device
        }
        _ if has(&["expected", "estimate"]) => Kind::Expectation,
        _ if has(&["saving", "saved", "improvement"]) => Kind::Saving,
        _ if has(&["additional per-node"]) => Kind::NodeZeroExtra,
        _ if of_node => Kind::DeferredNode,
        _ if has(&["deferred init", "deferred page init", "initialised", "after patch"]) => {
            Kind::DeferredSlowest
        }
        _ if has(&["common-iterator"]) => Kind::DeferredSlowest,
        _ if has(&["memset of", "memset in memblock", "zeroing of the memmap"]) => Kind::BootZero,
        _ if has(&["memmap_init"]) => Kind::Sweep,
        _ if has(&["free_all_bootmem", "memblock_free_all"]) => Kind::FreeAll,
        _ if has(&["boot"]) || is_memory_size(&text) => Kind::Boot,
        _ => Kind::Other,
    }
}

/// Words such as `8 TB (128 nodes) before`, which authors use for whole boots.
fn is_memory_size(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let number = words.next().is_some_and(|w| w.parse::<f64>().is_ok());
    number && words.next().is_some_and(|w| w == "tb" || w == "tib")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_what_was_timed() {
        let expect = [
            ("deferred init (slowest node)", Kind::DeferredSlowest),
            ("node 15 deferred init (kswapd)", Kind::DeferredNode),
            ("node 0, after", Kind::DeferredNode),
            ("kernel boot", Kind::Boot),
            ("8 TB (128 nodes) before", Kind::Boot),
            ("boot saving (RFC text)", Kind::Saving),
            ("single-thread memset of vmemmap for 1 TB (16 GiB of struct page)", Kind::BootZero),
            ("additional per-node time when zeroing is done in the threads", Kind::NodeZeroExtra),
            ("after patch 2 (drop meminit_pfn_in_nid)", Kind::DeferredSlowest),
            ("pmem memmap 3 TB/node, before series", Kind::Device),
            ("memmap_init_zone, before", Kind::Sweep),
            ("stosb 16MB", Kind::Other),
        ];
        for (what, kind) in expect {
            assert_eq!(kind_of(what, false), kind, "{what}");
        }
    }

    #[test]
    fn unknown_fields_are_counted_not_refused() {
        let text = r#"{"records": [{"id": "x", "colour": 1, "machine": {"cpu": null, "hat": 2},
            "measurements": [{"what": "kernel boot", "time_ms": 5, "speedup_pct": 1.5}]}]}"#;
        let figures = parse("x", text).unwrap();
        assert_eq!((figures.records.len(), figures.unknown_fields), (1, 3));
        assert_eq!(figures.records[0].figures[0].ms, Some(5.0));
    }

    #[test]
    fn the_shared_figures_are_read() {
        let Ok(text) = std::fs::read_to_string("../shared/reference/published-figures.json") else {
            eprintln!("not read: ../shared/reference/published-figures.json is absent");
            return;
        };
        let figures = parse("published-figures.json", &text).unwrap();
        assert_eq!(figures.records.len(), 43);
        let kinds = figures.records.iter().flat_map(|r| &r.figures);
        assert!(kinds.filter(|f| f.kind == Kind::DeferredSlowest).count() >= 72);
    }
}
