//! Tests of whole logs: captured boots, and bounds.

use super::*;
use crate::pfn::Nid;
use proptest::prelude::*;
use serde_json::Value;
use std::fs;
use std::io::BufReader;

fn read(text: &str) -> BootLog {
    BootLog::read("log", text.as_bytes()).unwrap()
}

/// A small log of our own with every kind of line.
const SAMPLE: &str = "\
[    0.000000] Linux version 6.1.0-sample (a@b) (x86_64-linux-gnu-gcc 12) #1 SMP
[    0.000000] Command line: root=/dev/sda1 memblock=debug page_poison=1
[    0.000000] BIOS-provided physical RAM map:
[    0.000000] BIOS-e820: [mem 0x0000000000001000-0x000000000009ffff] usable
[    0.000000] BIOS-e820: [mem 0x0000000000100000-0x000000003fffffff] usable
[    0.001000] ACPI: SRAT: Node 0 PXM 0 [mem 0x00000000-0x1fffffff]
[    0.001000] ACPI: SRAT: Node 1 PXM 1 [mem 0x20000000-0x3fffffff]
[    0.001000] MEMBLOCK configuration:
[    0.001000]  memory[0x0]\t[0x0000000000001000-0x000000003fffffff], 0x3ffff000 bytes flags: 0x0
[    0.001000]  reserved[0x0]\t[0x0000000000001000-0x000000000000ffff], 0xf000 bytes flags: 0x0
[    0.002000] NODE_DATA(0) allocated [mem 0x1ffd6000-0x1fffffff]
[    0.002000] Zone ranges:
[    0.002000]   DMA32    [mem 0x0000000000001000-0x000000003fffffff]
[    0.002000]   Normal   empty
[    0.002000] Early memory node ranges
[    0.002000]   node   0: [mem 0x0000000000001000-0x000000000009ffff]
[    0.002000]   node   0: [mem 0x0000000000100000-0x000000001fffffff]
[    0.002000]   node   1: [mem 0x0000000020000000-0x000000003fffffff]
[    0.002000] Initmem setup node 0 [mem 0x0000000000001000-0x000000001fffffff]
[    0.002000] On node 0 totalpages: 130975
[    0.003000]   DMA32 zone: 130975 pages, LIFO batch:63
[    0.010000] Dentry cache hash table entries: 131072 (order: 8, 1048576 bytes, linear)
[    0.010000] Memory: 1000000K/1048188K available (1K kernel code)
[    0.020000] rcu: RCU calculated value of scheduler-enlistment delay is 25 jiffies.
[    0.030000] smpboot: CPU0: Sample CPU (family: 0x6)
[    0.030000] .... node  #0, CPUs:      #1
[    0.030000] .... node  #1, CPUs:   #2 #3
[    0.030000] smp: Brought up 2 nodes, 4 CPUs
[    0.040000] node 0 deferred pages initialised in 0ms
[    0.040000] node 1 deferred pages initialised in 12ms
[    0.050000] memmap_init_zone_device initialised 65536 pages in 4ms
[    0.050000] HugeTLB: registered 2.00 MiB page size, pre-allocated 8 pages
";

#[test]
fn the_sample_gives_all_facts() {
    let log = read(SAMPLE);
    assert_eq!(log.boots.len(), 1);
    let boot = &log.boots[0];
    assert_eq!(boot.release.as_ref().unwrap().value, "6.1.0-sample");
    assert_eq!((boot.e820.len(), boot.srat.len(), boot.early.len()), (2, 2, 3));
    assert_eq!((boot.zones.len(), boot.zone_pages.len()), (2, 1));
    assert_eq!(boot.hz.as_ref().unwrap().value, 250);
    assert!(boot.memblock.memory().is_some());
    let evidence = evidence::evidence("log", boot).unwrap();
    assert_eq!(evidence.nodes[&Nid(0)].cpus.as_ref().unwrap().value, [0, 1]);
    assert_eq!(evidence.nodes[&Nid(1)].ranges.as_ref().unwrap().at.line, Some(18));
    let lines: Vec<_> = evidence.explained.iter().filter_map(|e| e.at.line).collect();
    assert!(lines.len() > 20 && lines.is_sorted());
}

#[test]
fn the_sample_means_the_same_in_any_dress() {
    let plain = read(SAMPLE);
    fn bare(line: &str) -> &str {
        line.split_once("] ").unwrap().1
    }
    let bare_text: String = SAMPLE.lines().map(|l| format!("{}\n", bare(l))).collect();
    type Dress = fn(&str) -> String;
    let dresses: [(&str, Dress); 13] = [
        ("quoted", |l| format!("> > {l}")),
        ("level", |l| format!("<6>{l}")),
        ("journald", |l| format!("Feb 03 00:24:02 h kernel: {}", bare(l))),
        ("caller", |l| l.replacen("] ", "] [    T0] ", 1)),
        ("file", |l| format!("a/b.log:{l}")),
        ("serial", |l| format!("\x1b[0m{l}\r")),
        ("short-monotonic", |l| l.replacen("] ", "] host kernel: ", 1)),
        ("dmesg -d", |l| l.replacen("] ", " <    0.000000>] ", 1)),
        ("dmesg iso", |l| format!("2026-06-05T10:00:00,123456+00:00 {}", bare(l))),
        ("short-unix", |l| format!("1780000000.123456 host kernel: {}", bare(l))),
        ("short-full", |l| format!("Fri 2026-06-05 10:00:00 UTC host kernel: {}", bare(l))),
        ("console", |l| format!("[2026-06-05 10:00:00.123] {}", bare(l))),
        ("cat -n", |l| format!("    17\t{l}")),
    ];
    let facts = |log: &BootLog| {
        let mut boot = log.boots[0].clone();
        boot.has_stamps = true;
        boot.zone_pages.clear();
        boot
    };
    assert_eq!(facts(&read(&bare_text)), facts(&plain));
    for (name, dress) in dresses {
        let text: String = SAMPLE.lines().map(|l| format!("{}\n", dress(l))).collect();
        let log = read(&text);
        assert_eq!(log.boots.len(), 1, "{name}");
        assert_eq!(facts(&log), facts(&plain), "{name}");
    }
}

#[test]
fn times_come_with_their_caveats() {
    let times = read(SAMPLE).boots[0].init_times();
    assert_eq!(times[0].caveats, [Caveat::BelowTick, Caveat::PagePoison]);
    assert_eq!(times[0].ns_per_page, None);
    assert_eq!((times[1].step_ms, times[1].node_cpus), (Some(4.0), Some(2)));
    let expected = [Caveat::FewTicks, Caveat::PagesOfNode, Caveat::PagePoison];
    assert_eq!(times[1].caveats, expected);
    let stalled = read("node 0 initialised, 32170688 pages in 1ms\n").boots[0].init_times();
    assert_eq!((stalled[0].caveats[0], stalled[0].ns_per_page), (Caveat::StalledTick, None));
    for pages in [1_500_000, 4_000_000] {
        let text = format!("Linux version 4.19.0\nnode 0 initialised, {pages} pages in 1ms\n");
        assert_eq!(read(&text).boots[0].init_times()[0].caveats, [Caveat::StalledTick], "{pages}");
    }
    let honest = read("node 0 initialised, 32203456 pages in 894ms\n").boots[0].init_times();
    assert!(honest[0].caveats.is_empty() && honest[0].ns_per_page.unwrap() > 27.0);
}

#[test]
fn serial_times_come_from_stamps() {
    let text = "[    0.026352]   node   0: [mem 0x0000000000001000-0x0000005ebfffffff]\n\
                [    0.026352] On node 0 totalpages: 98304000\n\
                [    0.026352]   Normal zone: 98304000 pages, LIFO batch:63\n\
                [    3.216339] Initmem setup node 1 [mem 0x5ec0000000-0xbd3fffffff]\n";
    let times = read(text).boots[0].serial_times();
    assert_eq!(times.len(), 1);
    assert!((times[0].ns_per_page.unwrap() - 32.45).abs() < 0.01);
    assert!(read(SAMPLE).boots[0].serial_times().is_empty());
}

#[test]
fn what_is_no_text_is_refused() {
    for (bytes, words) in [
        (&b"\xff\xfeL\0i\0n\0"[..], "UTF-16"),
        (b"ok\nL\0i\0n\0u\0x\0 \0v\0e\0r\0s\0", "log:2: has NUL bytes"),
    ] {
        let error = BootLog::read("log", bytes).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn overlapping_and_foreign_logs_are_errors_with_lines() {
    let text = "  node   0: [mem 0x0-0x1fffff]\n  node   1: [mem 0x100000-0x2fffff]\n";
    let error = evidence::evidence("log", &read(text).boots[0]).unwrap_err().to_string();
    assert!(error.starts_with("log:2:") && error.contains("line 1"), "{error}");
}

/// Facts of all captured boots, or nothing with a notice.
fn captured() -> Vec<(String, Value, BootLog)> {
    let Ok(entries) = fs::read_dir("../shared/boots") else {
        eprintln!("../shared/boots is not there; this test does nothing");
        return Vec::new();
    };
    let mut out = Vec::new();
    for path in entries.filter_map(|e| Some(e.ok()?.path())) {
        if path.extension().is_none_or(|e| e != "log") {
            continue;
        }
        let json = fs::read_to_string(path.with_extension("json")).unwrap();
        let log = BufReader::new(fs::File::open(&path).unwrap());
        let name = path.display().to_string();
        let log = BootLog::read(&name, log).unwrap();
        out.push((name, serde_json::from_str(&json).unwrap(), log));
    }
    assert_eq!(out.len(), 122);
    out
}

fn pairs(value: &Value) -> Vec<(u64, u64)> {
    let list = value.as_array().into_iter().flatten();
    list.map(|r| (r["start"].as_u64().unwrap(), r["end"].as_u64().unwrap())).collect()
}

fn with_nids(value: &Value) -> Vec<(Option<u64>, u64, u64)> {
    let list = value.as_array().into_iter().flatten();
    list.map(|r| (r["nid"].as_u64(), r["start"].as_u64().unwrap(), r["end"].as_u64().unwrap()))
        .collect()
}

fn of_ranges(list: &[boot::NodeRange]) -> Vec<(Option<u64>, u64, u64)> {
    list.iter().map(|r| (Some(u64::from(r.nid.0)), r.range.start, r.range.end)).collect()
}

#[test]
fn captured_boots_say_the_same_as_their_facts() {
    for (name, facts, log) in captured() {
        assert_eq!(log.boots.len(), 1, "{name}");
        let boot = &log.boots[0];
        assert_eq!(boot.release.as_ref().unwrap().value, facts["kernel"], "{name}");
        let cmdline = facts["cmdline"].as_str().unwrap().trim();
        assert_eq!(boot.cmdline.as_ref().unwrap().value, cmdline, "{name}");
        let arch = facts["arch"].as_str().unwrap().replace("ppc64el", "ppc64");
        assert_eq!(boot.arch.as_ref().unwrap().value.to_string(), arch, "{name}");
        assert_eq!(boot.page_bytes.as_ref().unwrap().value, facts["page_bytes"], "{name}");
        assert_eq!(
            boot.hz.as_ref().unwrap().value,
            facts["config"]["HZ"].as_u64().unwrap_or(250) as u32
        );
        let map = |list: &[boot::MapRange]| -> Vec<(u64, u64)> {
            list.iter().map(|r| (r.range.start, r.range.end)).collect()
        };
        assert_eq!(map(&boot.e820), pairs(&facts["e820"]), "{name}");
        assert_eq!(map(&boot.user_map), pairs(&facts["e820_user"]), "{name}");
        if facts.get("srat").is_some() {
            assert_eq!(of_ranges(&boot.srat), with_nids(&facts["srat"]), "{name}");
        }
        assert_eq!(of_ranges(&boot.early), with_nids(&facts["node_memory"]), "{name}");
        let zones = facts["zone_ranges"].as_object().unwrap();
        let found: Vec<_> = boot.zones.iter().filter(|z| !z.range.is_empty()).collect();
        assert_eq!(found.len(), zones.len(), "{name}");
        for zone in found {
            let pair = serde_json::json!([zone.range.start, zone.range.end]);
            assert_eq!(zones[&zone.zone], pair, "{name}");
        }
        let done: Vec<_> = boot.init.iter().map(|i| u64::from(i.nid.0)).collect();
        let mut expected: Vec<_> = facts["deferred_nodes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|n| n.as_u64().unwrap())
            .collect();
        let mut done = done;
        done.sort_unstable();
        expected.sort_unstable();
        assert_eq!(done, expected, "{name}");
    }
}

#[test]
fn captured_boots_have_memblock_as_their_facts() {
    for (name, facts, log) in captured() {
        let log = &log.boots[0].memblock;
        let memory: Vec<_> = log
            .memory()
            .unwrap_or_else(|| panic!("{name}"))
            .iter()
            .map(|r| (r.nid.map(|n| u64::from(n.0)), r.range.start, r.range.end))
            .collect();
        assert_eq!(memory, with_nids(&facts["memblock_memory"]), "{name}");
        let reserved = log.reserved_before_sparse().unwrap();
        let reserved: Vec<_> = reserved.iter().map(|r| (r.start, r.end)).collect();
        assert_eq!(reserved, pairs(&facts["reserved_before_sparse"]), "{name}");
        let calls = facts["sparse_init_allocations"].as_array().unwrap();
        assert_eq!(log.allocations.len(), calls.len(), "{name}");
        for (call, fact) in log.allocations.iter().zip(calls) {
            let got = serde_json::json!({
                "call": call.call, "bytes": call.bytes, "align": call.align,
                "nid": call.nid.map_or(-1, |n| i64::from(n.0)),
                "min_addr": call.min_addr, "max_addr": call.max_addr, "caller": call.caller,
                "start": call.given.map(|g| g.start), "end": call.given.map(|g| g.end),
            });
            let same = got
                .as_object()
                .unwrap()
                .iter()
                .all(|(key, value)| fact.get(key).unwrap_or(&Value::Null) == value);
            assert!(same, "{name}:{}: {got} is not {fact}", call.line);
        }
        if let Some(frees) = facts.get("sparse_init_frees").and_then(Value::as_array) {
            let got: Vec<_> =
                log.frees.iter().map(|f| (f.after as u64, f.range.start, f.range.end)).collect();
            let number = |f: &Value, key: &str| f[key].as_u64().unwrap();
            let expected: Vec<_> = frees
                .iter()
                .map(|f| (number(f, "after"), number(f, "start"), number(f, "end")))
                .collect();
            assert_eq!(got, expected, "{name}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = BootLog::read("x", bytes.as_slice());
    }

    #[test]
    fn a_damaged_log_never_fails_badly(
        cut in 0usize..3000, at in 0usize..3000, byte in any::<u8>(), twice: bool,
    ) {
        let mut bytes = SAMPLE.as_bytes().to_vec();
        let at = at % bytes.len();
        bytes[at] = byte;
        bytes.truncate(bytes.len() - cut % bytes.len());
        if twice {
            bytes.extend_from_within(..);
        }
        let Ok(log) = BootLog::read("x", bytes.as_slice()) else { return Ok(()) };
        for boot in &log.boots {
            let _ = boot.init_times();
            let _ = boot.serial_times();
            if let Ok(evidence) = evidence::evidence("x", boot) {
                let answers = crate::machine::evidence::Answers::default();
                let _ = crate::machine::evidence::complete("x", &evidence, &answers);
                prop_assert!(evidence.explain().len() < 200);
            }
        }
    }

    #[test]
    fn shuffled_lines_never_fail_badly(order in prop::collection::vec(0usize..33, 0..60)) {
        let lines: Vec<&str> = SAMPLE.lines().collect();
        let picked = order.iter().filter_map(|&i| lines.get(i));
        let text: String = picked.map(|l| format!("{l}\n")).collect();
        let log = read(&text);
        for boot in &log.boots {
            let _ = evidence::evidence("x", boot).map(|e| {
                crate::machine::evidence::complete("x", &e, &Default::default())
            });
        }
    }
}
