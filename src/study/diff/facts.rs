//! What else differs between two records: hosts, machines, kernel rules, options.
//!
//! Facts are the records' own JSON, taken apart into names such as
//! `kernel.config.hz`; what changes from run to run without meaning is left out.

use crate::record::any::AnyRecord;
use crate::record::diff::Difference;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Facts that differ between any two runs, by the beginning of their names.
const VOLATILE: [&str; 9] = [
    "host.available_bytes",
    "host.clock_overhead_ns",
    "execution.placement",
    "execution.first_touch_ns",
    "execution.zero_advantage",
    "execution.overhead_share",
    "execution.boot_cpu_ran_on",
    "execution.mapping",
    "machine.memory_ranges_from",
];

/// Everything that is not the same, by name.
pub(super) fn differences(a: &AnyRecord, b: &AnyRecord) -> Vec<Difference> {
    let (mut a, mut b) = (facts(a), facts(b));
    let mut names: Vec<String> = a.keys().chain(b.keys()).cloned().collect();
    names.sort_unstable();
    names.dedup();
    let differing = names.into_iter().filter_map(|what| {
        let (a, b) = (a.remove(&what), b.remove(&what));
        (a != b).then_some(Difference { what, a, b })
    });
    differing.collect()
}

fn facts(record: &AnyRecord) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    let mut add = |name: &str, fact: Value| flatten(name, &fact, &mut out);
    add("tool", json(&record.head().tool));
    match record {
        AnyRecord::Compare(r) => {
            add("host", json(&r.host));
            add("machine", json(&r.machine));
            add("kernel", json(&r.kernel));
            add("execution", json(&r.execution));
            add("options.baseline", json(&r.baseline));
        }
        AnyRecord::Estimate(r) => {
            add("machine", json(&r.machine));
            add("kernel", json(&r.kernel));
            add("processor", json(&r.processor));
            add("anchor", json(&r.anchor));
            add("options.strategy", json(&r.strategy));
            add("options.threads", json(&r.threads));
            add("options.free", json(&r.free));
        }
        AnyRecord::Sweep(r) => {
            add("machine.name", json(&r.machine));
            add("machine.title", json(&r.title));
            add("processor.class", json(&r.class));
            add("host", json(&r.host));
        }
        AnyRecord::Validate(_) => {}
        AnyRecord::Calibration(r) => {
            add("host", json(&r.host));
            add("kernel", json(&r.kernel));
            add("options.most_threads", json(&r.most_threads));
        }
        AnyRecord::Lab(r) => {
            add("host", json(&r.host));
            add("caches", json(&r.caches));
            add("settings", json(&r.settings));
            add("options.runs", json(&r.runs));
        }
    }
    out.retain(|name, _| !VOLATILE.iter().any(|volatile| name.starts_with(volatile)));
    out
}

fn json(fact: &impl Serialize) -> Value {
    serde_json::to_value(fact).unwrap_or(Value::Null)
}

/// One entry per leaf; lists of plain values are one leaf, null is none.
fn flatten(name: &str, value: &Value, out: &mut BTreeMap<String, String>) {
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            for (field, value) in fields {
                flatten(&format!("{name}.{field}"), value, out);
            }
        }
        Value::Array(items) if items.iter().any(|i| i.is_object() || i.is_array()) => {
            for (at, item) in items.iter().enumerate() {
                flatten(&format!("{name}[{at}]"), item, out);
            }
        }
        Value::Array(items) => {
            let texts: Vec<String> = items.iter().map(plain).collect();
            out.insert(name.into(), texts.join(" "));
        }
        value => {
            out.insert(name.into(), plain(value));
        }
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_is_taken_apart() {
        let mut out = BTreeMap::new();
        let value = json!({"a": null, "b": [1, 2], "c": [{"d": "x"}], "e": {"f": 1.5}, "g": []});
        flatten("r", &value, &mut out);
        let wanted = [("r.b", "1 2"), ("r.c[0].d", "x"), ("r.e.f", "1.5"), ("r.g", "")];
        assert_eq!(out, wanted.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
    }
}
