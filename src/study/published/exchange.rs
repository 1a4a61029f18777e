//! The JSON form in which published figures are exchanged.
//!
//! A list of records (or an object with one under `records`) with `id`, `source`,
//! `machine`, `kernel`, `config` and `measurements`. What a measurement times stands in
//! its words only; `words` tells from them. A record alone is a list of one, and what
//! cannot be read of a record spoils no other.

use super::loose::{count, real, words};
use super::salvage::{Salvaged, salvage};
use super::words::{Context, kind_of, page_kib, pages_of_sizes};
use super::{Described, Fields, Figure, Figures, FiguresError, Kind, Published, field_error};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Record {
    #[serde(default, deserialize_with = "words")]
    id: Option<String>,
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
    #[serde(default, deserialize_with = "count")]
    nodes: Option<u32>,
    #[serde(default, deserialize_with = "count")]
    cpus_per_node: Option<u32>,
    #[serde(default, deserialize_with = "count")]
    cores_per_node: Option<u32>,
    #[serde(default, deserialize_with = "count")]
    smt: Option<u32>,
    #[serde(default, deserialize_with = "real")]
    memory_per_node_gib: Option<f64>,
    #[serde(default, deserialize_with = "real")]
    total_memory_gib: Option<f64>,
    #[serde(default, deserialize_with = "words")]
    page_size: Option<String>,
    virt: Option<String>,
    virt_assumed: Option<String>,
    #[serde(default, deserialize_with = "real")]
    pmem_per_node_tib: Option<f64>,
    #[serde(default, deserialize_with = "real")]
    pmem_total_tib: Option<f64>,
}

#[derive(Deserialize)]
struct Measurement {
    what: String,
    #[serde(default, deserialize_with = "count")]
    threads: Option<u32>,
    #[serde(default, deserialize_with = "real")]
    time_ms: Option<f64>,
    #[serde(default, deserialize_with = "real")]
    stddev_ms: Option<f64>,
    #[serde(default, deserialize_with = "count")]
    pages: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    pages_derived: Option<u64>,
    invalid: Option<bool>,
    #[serde(default, deserialize_with = "real")]
    gb_per_s: Option<f64>,
}

const JSON: Fields = Fields {
    record: &[
        "id",
        "title",
        "source",
        "flag",
        "kernel",
        "config",
        "notes",
        "machine",
        "measurements",
    ],
    machine: &["page_size", "virt_assumed", "pmem_per_node_tib", "pmem_total_tib"],
    figures: "measurements",
    figure: &[
        "what",
        "threads",
        "time_ms",
        "stddev_ms",
        "pages",
        "pages_derived",
        "invalid",
        "gb_per_s",
    ],
};

/// Reads the form.
pub(super) fn parse(name: &str, text: &str) -> Result<Figures, FiguresError> {
    let at = |error: &serde_json::Error| byte_of(text, error.line(), error.column());
    let wrong = |error: serde_json::Error| field_error(name, text, at(&error), error.to_string());
    let shape = || {
        let message = "expected a list of records, or an object with `records`".into();
        field_error(name, text, 0, message)
    };
    let (values, form) =
        records_of(serde_json::from_str(text).map_err(wrong)?).ok_or_else(shape)?;
    if !values.is_empty() && !values.iter().any(Value::is_object) {
        return Err(shape());
    }
    let unknown_fields = values.iter().map(|record| JSON.unknown(record)).sum();
    let typed = match form {
        Form::List => serde_json::from_str::<Vec<Record>>(text),
        Form::Wrapped => serde_json::from_str::<Wrapped>(text).map(|w| w.records),
        Form::Alone => serde_json::from_str::<Record>(text).map(|record| vec![record]),
    };
    match typed {
        Ok(records) => Ok(Figures {
            records: records.into_iter().zip(1..).map(|(r, n)| published(r, n)).collect(),
            unknown_fields,
            problem: None,
        }),
        Err(error) => {
            let records = values.iter().zip(1..).map(|(v, n)| readable(v, n)).collect();
            Ok(Figures { records, unknown_fields, problem: Some(wrong(error)) })
        }
    }
}

/// How the records lie in the document.
enum Form {
    List,
    Wrapped,
    Alone,
}

/// The records of a document, if it is of this form.
fn records_of(document: Value) -> Option<(Vec<Value>, Form)> {
    match document {
        Value::Array(values) => Some((values, Form::List)),
        Value::Object(mut fields) => match fields.remove("records") {
            Some(Value::Array(values)) => Some((values, Form::Wrapped)),
            None if fields.contains_key("id") || fields.contains_key("measurements") => {
                Some((vec![Value::Object(fields)], Form::Alone))
            }
            _ => None,
        },
        _ => None,
    }
}

/// What can be read of the `number`-th record.
fn readable(value: &Value, number: usize) -> Published {
    if let Ok(record) = Record::deserialize(value) {
        return published(record, number);
    }
    match salvage::<Record, Measurement>(value, "measurements", number) {
        Salvaged::Figures(record, figures) => {
            let context = context_of(&record);
            let each = figures.into_iter().map(|f| match f {
                Ok(measurement) => figure(measurement, &context),
                Err(unread) => unread,
            });
            Published { figures: each.collect(), ..published(*record, number) }
        }
        Salvaged::Name(id, figures) => Published { id, figures, ..Published::default() },
    }
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

fn context_of(record: &Record) -> Context {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    let page_kib = record.machine.as_ref().and_then(|m| m.page_size.as_deref()).map(page_kib);
    let pmem = record.machine.as_ref().and_then(|m| {
        let total = || Some(m.pmem_total_tib? / f64::from(m.nodes.filter(|nodes| *nodes > 0)?));
        m.pmem_per_node_tib.or_else(total)
    });
    Context::of(&text(&record.title), &text(&record.config), page_kib).with_node_tib(pmem)
}

/// The `number`-th record; that is its name where it has none.
fn published(record: Record, number: usize) -> Published {
    let context = context_of(&record);
    let machine = record.machine.unwrap_or_default();
    let figures = record.measurements.into_iter().flatten().map(|m| figure(m, &context)).collect();
    let words = [record.config, record.title, record.notes];
    Published {
        id: record.id.unwrap_or_else(|| format!("record {number}")),
        source: record.source.unwrap_or_default(),
        kernel: record.kernel.unwrap_or_default(),
        config: words.into_iter().flatten().collect::<Vec<_>>().join("; "),
        machine: Described {
            cpu: machine.cpu,
            arch: machine.arch,
            nodes: machine.nodes,
            cpus_per_node: machine.cpus_per_node,
            cores_per_node: machine.cores_per_node,
            smt: machine.smt,
            memory_per_node_gib: machine.memory_per_node_gib,
            total_memory_gib: machine.total_memory_gib,
            page_kib: machine.page_size.as_deref().map(page_kib),
            virt: machine.virt.or(machine.virt_assumed),
        },
        figures,
    }
}

fn figure(m: Measurement, context: &Context) -> Figure {
    let kind = match m.time_ms {
        None if m.gb_per_s.is_some() => Kind::Rate,
        _ => kind_of(&m.what, context),
    };
    Figure {
        kind,
        ms: m.time_ms,
        threads: m.threads,
        sd_ms: m.stddev_ms,
        pages: m.pages.or(m.pages_derived).or_else(|| pages_of_sizes(kind, &m.what, context)),
        invalid: m.invalid.unwrap_or(false),
        unread: false,
        what: m.what,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
