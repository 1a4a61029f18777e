//! Turns the console log of a boot with `memblock=debug` and what its guest showed into
//! the facts of `fixtures/boots/`. Used by `scripts/capture-boot.sh`.
//!
//! Usage: `boot_facts ID CONSOLE_LOG GUEST_TEXT KERNEL_CONFIG`, JSON on the standard
//! output. `GUEST_TEXT` has sections that begin with `@@ NAME`. x86_64 only.

use pageinit::pfn::PhysRange;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

/// Options of the kernel's configuration that the model or the reader needs.
const OPTIONS: [&str; 18] = [
    "NUMA_BALANCING",
    "MEMCG",
    "PGTABLE_LEVELS",
    "NR_CPUS",
    "X86_5LEVEL",
    "NUMA_EMU",
    "NODES_SHIFT",
    "HZ",
    "SPARSEMEM_VMEMMAP",
    "MEMORY_ISOLATION",
    "MEMORY_HOTREMOVE",
    "DEFERRED_STRUCT_PAGE_INIT",
    "LRU_GEN",
    "HUGETLB_PAGE_OPTIMIZE_VMEMMAP",
    "HUGETLB_PAGE_OPTIMIZE_VMEMMAP_DEFAULT_ON",
    "PAGE_EXTENSION",
    "KEXEC_HANDOVER",
    "DEBUG_VM",
];

type Problem = String;

fn main() -> ExitCode {
    match facts() {
        Ok(facts) => {
            let written = writeln!(std::io::stdout(), "{}", lines(&facts));
            if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(problem) => {
            let _ = writeln!(std::io::stderr(), "boot_facts: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// JSON with a line for every field and for every item of a list.
fn lines(facts: &Value) -> String {
    let item = |value: &Value| value.to_string();
    let field = |(name, value): (&String, &Value)| match value {
        Value::Array(items) if !items.is_empty() => {
            let items: Vec<String> = items.iter().map(item).collect();
            format!(" {name:?}: [\n  {}\n ]", items.join(",\n  "))
        }
        other => format!(" {name:?}: {other}"),
    };
    let fields: Vec<String> = facts.as_object().into_iter().flatten().map(field).collect();
    format!("{{\n{}\n}}", fields.join(",\n"))
}

fn facts() -> Result<Value, Problem> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [id, log, guest, config] = args.as_slice() else {
        return Err("usage: boot_facts ID CONSOLE_LOG GUEST_TEXT KERNEL_CONFIG".into());
    };
    let read = |path: &String| {
        let bytes = std::fs::read(path).map_err(|e| format!("{path}: {e}"))?;
        Ok::<_, Problem>(String::from_utf8_lossy(&bytes).replace('\r', ""))
    };
    let boot = Log::parse(&read(log)?)?;
    let guest = sections(&read(guest)?);
    let config = config_facts(&read(config)?);
    let part = |name: &str| guest.get(name).map_or("", String::as_str).trim();
    Ok(json!({
        "id": id,
        "arch": "x86_64",
        "page_bytes": 4096,
        "struct_page_bytes": 64,
        "kernel": part("release"),
        "cmdline": part("cmdline"),
        "config": config,
        "memblock_memory": boot.memory,
        "reserved_before_sparse": boot.reserved,
        "node_data": boot.node_data,
        "sparse_init_allocations": boot.allocations,
        "zones": zones(part("zoneinfo")),
        "nodes": nodes(part("nodes"))?,
        "deferred_nodes": boot.deferred_nodes,
        "struct_pages": struct_pages(part("struct_pages"))?,
    }))
}

/// What the console log tells.
#[derive(Default)]
struct Log {
    memory: Vec<Value>,
    reserved: Vec<Value>,
    node_data: Vec<Value>,
    allocations: Vec<Value>,
    deferred_nodes: Vec<u64>,
}

/// One memblock call: where it stands and what it asked for.
struct Call<'l> {
    line: usize,
    json: Value,
    caller: &'l str,
}

impl Log {
    fn parse(text: &str) -> Result<Self, Problem> {
        // The time stamp goes; what it has in brackets varies.
        let lines: Vec<&str> =
            text.lines().map(|l| l.split_once("] ").map_or(l, |p| p.1)).collect();
        let calls: Vec<Call<'_>> =
            lines.iter().enumerate().filter_map(|(i, line)| call(i, line)).collect();
        // The section roots are asked for by various callers, their first user by this one.
        let first = calls.iter().position(|c| c.caller == "sparse_index_alloc");
        let first = first.and_then(|at| at.checked_sub(1));
        let first = first.ok_or("no call of sparse_index_alloc; boot with memblock=debug")?;
        let zones = lines.iter().position(|l| l.starts_with("Zone ranges:")).unwrap_or(usize::MAX);
        let begin = calls[first].line;
        let inside = |c: &&Call<'_>| {
            c.line == begin || (is_sparse(c.caller) && (begin > zones || c.line < zones))
        };
        let ours: Vec<&Call<'_>> = calls[first..].iter().take_while(inside).collect();
        let mut log = Self::before(&lines[..begin])?;
        for call in ours {
            let mut json = call.json.clone();
            let answer = lines.get(call.line + 1).and_then(|l| reservation(l));
            json["start"] = json!(answer.map(|r| r.start));
            json["end"] = json!(answer.map(|r| r.end));
            log.allocations.push(json);
        }
        log.node_data = lines.iter().filter_map(|l| node_data(l)).collect();
        log.deferred_nodes = lines.iter().filter_map(|l| deferred_node(l)).collect();
        log.deferred_nodes.sort_unstable();
        Ok(log)
    }

    /// Memory and reservations: the last list that was printed, and what came after it.
    fn before(lines: &[&str]) -> Result<Self, Problem> {
        let dump = lines.iter().rposition(|l| l.starts_with("MEMBLOCK configuration:"));
        let after = &lines[dump.ok_or("no list of memblock's regions in the log")?..];
        let mut log = Self::default();
        let mut reserved: Vec<PhysRange> = Vec::new();
        for line in after {
            if let Some(region) = line.trim_start().strip_prefix("memory[") {
                log.memory.push(memory(region).ok_or_else(|| format!("not a region: {line}"))?);
            } else if let Some(region) = line.trim_start().strip_prefix("reserved[") {
                reserved.extend(range_in(region));
            } else if let Some(range) = reservation(line) {
                reserved.push(range);
            } else if line.starts_with("memblock_phys_free:") || line.starts_with("memblock_free:")
            {
                let gone = range_in(line).ok_or_else(|| format!("no range: {line}"))?;
                reserved = without(&reserved, gone);
            }
        }
        let json = |r: &PhysRange| json!({ "start": r.start, "end": r.end });
        log.reserved = merged(reserved).iter().map(json).collect();
        Ok(log)
    }
}

fn is_sparse(caller: &str) -> bool {
    ["sparse", "vmemmap", "memory_present", "__populate", "__earlyonly"]
        .iter()
        .any(|prefix| caller.starts_with(prefix))
}

fn merged(mut ranges: Vec<PhysRange>) -> Vec<PhysRange> {
    ranges.sort_by_key(|r| r.start);
    let mut out: Vec<PhysRange> = Vec::new();
    for range in ranges {
        match out.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => out.push(range),
        }
    }
    out
}

fn without(ranges: &[PhysRange], gone: PhysRange) -> Vec<PhysRange> {
    let pieces = ranges.iter().flat_map(|r| {
        [
            PhysRange { start: r.start, end: r.end.min(gone.start).max(r.start) },
            PhysRange { start: r.start.max(gone.end).min(r.end), end: r.end },
        ]
    });
    pieces.filter(|r| r.start < r.end).collect()
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok()
}

/// The first `[0x…-0x…]` of a line, whose end is inclusive.
fn range_in(line: &str) -> Option<PhysRange> {
    let at = line.find("[0x")?;
    let (inside, _) = line.get(at + 1..)?.split_once(']')?;
    let (start, last) = inside.split_once('-')?;
    Some(PhysRange { start: hex(start)?, end: hex(last)?.checked_add(1)? })
}

fn reservation(line: &str) -> Option<PhysRange> {
    let rest = line.trim_start_matches('_').strip_prefix("memblock_reserve:")?;
    range_in(rest)
}

/// `0x0]  [0x…-0x…], 0x… bytes on node 0 flags: 0x0`.
fn memory(region: &str) -> Option<Value> {
    let range = range_in(region)?;
    let after = |word: &str| region.split_once(word).map(|(_, rest)| rest.trim());
    let nid = after("on node ").and_then(|r| r.split(' ').next()?.parse::<u32>().ok());
    let flags = after("flags: ").unwrap_or("0x0");
    Some(json!({ "start": range.start, "end": range.end, "nid": nid, "flags": flags }))
}

/// `memblock_alloc_x: 4096 bytes align=0x40 nid=0 from=0x… max_addr=0x… caller+0x1/0x2`.
fn call<'l>(line: usize, text: &'l str) -> Option<Call<'l>> {
    let (call, rest) = text.strip_prefix("memblock_")?.split_once(": ")?;
    let words: Vec<&'l str> = rest.split(' ').collect();
    let [bytes, "bytes", align, nid, from, max_addr, caller] = words[..] else { return None };
    let caller = caller.split(['+', '.']).next()?;
    let json = json!({
        "call": call,
        "bytes": bytes.parse::<u64>().ok()?,
        "align": hex(align.strip_prefix("align=")?)?,
        "nid": nid.strip_prefix("nid=")?.parse::<i64>().ok()?,
        "min_addr": hex(from.strip_prefix("from=")?)?,
        "max_addr": hex(max_addr.strip_prefix("max_addr=")?)?,
        "caller": caller,
    });
    Some(Call { line, json, caller })
}

/// `NODE_DATA(0) allocated [mem 0x…-0x…]`.
fn node_data(line: &str) -> Option<Value> {
    let (nid, rest) = line.strip_prefix("NODE_DATA(")?.split_once(')')?;
    let range = range_in(&rest.replace("[mem ", "["))?;
    Some(json!({ "nid": nid.parse::<u32>().ok()?, "start": range.start, "end": range.end }))
}

/// `node 0 deferred pages initialised in 28ms`.
fn deferred_node(line: &str) -> Option<u64> {
    let (nid, rest) = line.strip_prefix("node ")?.split_once(' ')?;
    rest.starts_with("deferred pages initialised").then(|| nid.parse().ok())?
}

fn sections(text: &str) -> BTreeMap<String, String> {
    let parts = text.split("@@ ").filter_map(|part| part.split_once('\n'));
    parts.map(|(name, body)| (name.to_owned(), body.to_owned())).collect()
}

fn config_facts(text: &str) -> Map<String, Value> {
    let value = |name: &&str| {
        let key = format!("CONFIG_{name}=");
        let off = format!("# CONFIG_{name} is not set");
        let line = text.lines().find(|l| l.starts_with(&key) || **l == off);
        match line.map(|l| l.strip_prefix(&key)) {
            Some(Some("y" | "m")) => json!(true),
            Some(Some(number)) => number.parse::<u64>().map_or(json!(number), |n| json!(n)),
            Some(None) => json!(false),
            None => Value::Null,
        }
    };
    OPTIONS.iter().map(|name| ((*name).to_owned(), value(name))).collect()
}

fn zones(text: &str) -> Vec<Value> {
    let mut zones: Vec<Map<String, Value>> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match (words.as_slice(), zones.last_mut()) {
            (["Node", nid, "zone", zone], _) => {
                let nid: Option<u32> = nid.trim_end_matches(',').parse().ok();
                zones.push(Map::from_iter([
                    ("nid".to_owned(), json!(nid)),
                    ("zone".to_owned(), json!(zone)),
                ]));
            }
            ([name @ ("spanned" | "present" | "managed" | "start_pfn:"), number], Some(zone)) => {
                let number: Option<u64> = number.parse().ok();
                zone.insert(name.trim_end_matches(':').to_owned(), json!(number));
            }
            _ => {}
        }
    }
    let populated = |zone: &Map<String, Value>| zone.get("present").is_some_and(|p| *p != 0);
    zones.into_iter().filter(populated).map(Value::Object).collect()
}

/// Lines `nid|cpulist|distances|MemTotal in KiB`.
fn nodes(text: &str) -> Result<Vec<Value>, Problem> {
    let node = |line: &str| {
        let parts: Vec<&str> = line.split('|').collect();
        let [nid, cpulist, distance, total] = parts[..] else { return None };
        let distance: Option<Vec<u32>> =
            distance.split_whitespace().map(|d| d.parse().ok()).collect();
        Some(json!({
            "nid": nid.parse::<u32>().ok()?,
            "cpulist": cpulist,
            "distance": distance?,
            "mem_total_kib": total.parse::<u64>().ok()?,
        }))
    };
    text.lines().map(|l| node(l).ok_or_else(|| format!("not a node: {l}"))).collect()
}

/// Lines `pfn base word…`: equal pages become one item, the page's own address `lru`.
fn struct_pages(text: &str) -> Result<Vec<Value>, Problem> {
    let mut groups: Vec<(Vec<String>, Vec<u64>)> = Vec::new();
    for line in text.lines() {
        let bad = || format!("not a struct page: {line}");
        let mut words = line.split_whitespace();
        let pfn: u64 = words.next().and_then(|w| w.parse().ok()).ok_or_else(bad)?;
        let base = words.next().and_then(hex).ok_or_else(bad)?;
        let own = base.wrapping_add(pfn.wrapping_mul(64)).wrapping_add(8);
        let word = |w: &str| hex(w).map(|w| if w == own { "lru".into() } else { format!("{w:x}") });
        let words: Vec<String> = words.map(word).collect::<Option<_>>().ok_or_else(bad)?;
        if words.len() != 8 {
            return Err(bad());
        }
        match groups.iter_mut().find(|(known, _)| *known == words) {
            Some((_, pfns)) => pfns.push(pfn),
            None => groups.push((words, vec![pfn])),
        }
    }
    Ok(groups.into_iter().map(|(words, pfns)| json!({ "words": words, "pfns": pfns })).collect())
}
