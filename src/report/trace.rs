//! Timelines in the trace event format that Chrome and Perfetto read.
//!
//! Only `M`, `X` and `C` events, which every reader knows. A node is a process (pid is
//! its nid + 1) and a worker a thread of it; the boot CPU is a process of its own behind
//! the nodes. Every further timeline has pids of its own. Times are in µs. A counter per
//! node shows the struct pages stored, in GB/s.

use super::pictures::timeline::{Bar, Timeline, Who};
use super::source::{Source, complete};
use crate::units::gb_per_s;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Why there is no trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{names}: no timeline in it; traces are made of records of compare and estimate, and of \
     strategies that they have"
)]
pub struct NoTrace {
    /// The records' files.
    names: String,
}

/// The trace of some records, one event per line; no strategies means all of them.
///
/// # Errors
/// When no record has a timeline.
pub fn text(sources: &[Source], strategies: &[String]) -> Result<String, NoTrace> {
    let all = sources.iter().flat_map(|source| Timeline::of(source, strategies));
    let timelines: Vec<Timeline> = all.collect();
    if timelines.is_empty() {
        let names: Vec<&str> = sources.iter().map(|source| &*source.name).take(5).collect();
        return Err(NoTrace { names: names.join(", ") });
    }
    let mut events = Vec::new();
    let mut first_pid = 0;
    for timeline in &timelines {
        let prefix = match timelines.len() {
            1 => String::new(),
            _ => format!("{}, {}: ", timeline.source, timeline.strategy),
        };
        first_pid = Trace { timeline, prefix, first_pid }.events(&mut events);
    }
    let lines: Vec<String> = events.iter().map(Value::to_string).collect();
    let labels: Vec<Value> = timelines
        .iter()
        .map(|t| json!({"title": t.title, "label": t.label, "notes": t.notes}))
        .collect();
    let records: Vec<Value> = sources
        .iter()
        .map(|source| {
            let head = source.record.head();
            json!({"name": source.name, "complete": complete(head.complete),
                "warnings": head.warnings})
        })
        .collect();
    let other = json!({"made_by": "pageinit", "timelines": labels, "records": records});
    Ok(format!(
        "{{\"displayTimeUnit\": \"ms\",\n\"otherData\": {other},\n\"traceEvents\": [\n{}\n]}}\n",
        lines.join(",\n")
    ))
}

/// One timeline with pids from `first_pid` + 1 on.
struct Trace<'t> {
    timeline: &'t Timeline,
    prefix: String,
    first_pid: u64,
}

impl Trace<'_> {
    /// Adds its events; returns the last pid that it may use.
    fn events(&self, out: &mut Vec<Value>) -> u64 {
        let nids = self.timeline.lanes.iter().filter_map(|lane| nid(lane.who));
        let bars = self.timeline.bars().filter_map(|(_, bar)| bar.nid);
        let most = nids.chain(bars).max().unwrap_or(0);
        let boot = self.first_pid + u64::from(most) + 2;
        let mut named: BTreeMap<u64, String> = BTreeMap::new();
        for lane in &self.timeline.lanes {
            let (pid, name) = match nid(lane.who) {
                Some(nid) => (self.pid(nid), format!("{}node {nid}", self.prefix)),
                None => (boot, format!("{}boot CPU", self.prefix)),
            };
            named.entry(pid).or_insert(name);
        }
        for (pid, _) in self.rates() {
            let nid = pid - self.first_pid - 1;
            named.entry(pid).or_insert_with(|| format!("{}node {nid}", self.prefix));
        }
        for (pid, name) in &named {
            // The boot CPU comes first, whatever its pid.
            let index = if *pid == boot { self.first_pid } else { *pid };
            out.push(meta("process_name", *pid, None, &json!({"name": name})));
            out.push(meta("process_sort_index", *pid, None, &json!({"sort_index": index})));
        }
        self.spans(boot, out);
        self.counters(out);
        boot
    }

    fn pid(&self, nid: u32) -> u64 {
        self.first_pid + u64::from(nid) + 1
    }

    fn spans(&self, boot: u64, out: &mut Vec<Value>) {
        for lane in &self.timeline.lanes {
            let pid = nid(lane.who).map_or(boot, |nid| self.pid(nid));
            let (tid, name) = thread(lane.who);
            out.push(meta("thread_name", pid, Some(tid), &json!({"name": name})));
            out.push(meta("thread_sort_index", pid, Some(tid), &json!({"sort_index": tid})));
            let mut free_from_ns = 0.0;
            for bar in &lane.bars {
                // A viewer nests spans that overlap; one executor does one thing at a time.
                let start_ns = bar.start_ns.max(free_from_ns);
                let end_ns = bar.end_ns.max(start_ns);
                free_from_ns = end_ns;
                out.push(self.span((pid, tid), bar, start_ns, end_ns));
            }
        }
    }

    fn span(&self, (pid, tid): (u64, u64), bar: &Bar, start_ns: f64, end_ns: f64) -> Value {
        let mut args = Map::new();
        args.insert("pages".into(), bar.pages.into());
        args.insert("bytes".into(), bar.bytes.into());
        args.insert("label".into(), self.timeline.label.into());
        args.insert("strategy".into(), self.timeline.strategy.clone().into());
        args.extend(bar.nid.map(|nid| ("nid".to_owned(), nid.into())));
        json!({
            "ph": "X", "name": bar.phase, "cat": self.timeline.label, "pid": pid, "tid": tid,
            "ts": start_ns / 1e3, "dur": (end_ns - start_ns) / 1e3, "args": args,
        })
    }

    /// Per process of a node its changes of rate: when, and by how many GB/s.
    fn rates(&self) -> BTreeMap<u64, Vec<(f64, f64)>> {
        let mut out: BTreeMap<u64, Vec<(f64, f64)>> = BTreeMap::new();
        for (who, bar) in self.timeline.bars() {
            let Some(nid) = nid(who).or(bar.nid) else { continue };
            let rate = gb_per_s(bar.bytes, bar.end_ns - bar.start_ns);
            if rate > 0.0 {
                let changes = out.entry(self.pid(nid)).or_default();
                changes.extend([(bar.start_ns, rate), (bar.end_ns, -rate)]);
            }
        }
        out
    }

    fn counters(&self, out: &mut Vec<Value>) {
        for (pid, mut changes) in self.rates() {
            changes.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (mut rate, mut running) = (0.0, 0);
            for (at, (when, change)) in changes.iter().enumerate() {
                running += if *change > 0.0 { 1 } else { -1 };
                // Sums of floats do not end at 0 by themselves.
                rate = if running == 0 { 0.0 } else { rate + change };
                let is_last_then = changes.get(at + 1).is_none_or(|next| next.0 > *when);
                if is_last_then {
                    let args = json!({"GB/s": (rate * 1e3f64).round() / 1e3});
                    out.push(json!({
                        "ph": "C", "name": "struct pages stored", "pid": pid, "tid": 0,
                        "ts": when / 1e3, "args": args,
                    }));
                }
            }
        }
    }
}

fn meta(name: &str, pid: u64, tid: Option<u64>, args: &Value) -> Value {
    json!({"ph": "M", "name": name, "pid": pid, "tid": tid.unwrap_or(0), "args": args})
}

const fn nid(who: Who) -> Option<u32> {
    match who {
        Who::BootCpu => None,
        Who::Worker { nid, .. } | Who::Node { nid, .. } => Some(nid),
    }
}

/// A thread's id within its process, and its name.
fn thread(who: Who) -> (u64, String) {
    match who {
        Who::BootCpu => (1, "boot CPU".into()),
        Who::Worker { worker, .. } => (u64::from(worker) + 1, format!("worker {worker}")),
        Who::Node { workers: 0, .. } => (1, "all workers".into()),
        Who::Node { workers, .. } => (1, format!("{workers} workers")),
    }
}
