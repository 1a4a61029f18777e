//! `pageinit layout` through the binary: captured boots, options, bad input.

use pageinit::machine::facts::BootFacts;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn boot(id: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/boots/{id}.json"))
}

fn run(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pageinit"));
    command.arg("layout").args(args).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(args: &[&str]) -> Value {
    let out = run(args);
    assert!(out.status.success(), "{args:?}: {}", text(&out.stderr));
    serde_json::from_slice(&out.stdout).expect("one valid document")
}

fn of_boot(id: &str, more: &[&str]) -> Value {
    let path = boot(id).display().to_string();
    json(&[&["-m", &path, "--json"], more].concat())
}

/// The fields of a request as the fixture has them.
fn requests(facts: &BootFacts) -> Vec<Value> {
    let item = |a: &pageinit::machine::facts::AllocationFact| {
        serde_json::json!({
            "call": a.call,
            "bytes": a.bytes,
            "align": a.align,
            "nid": a.nid.map_or(-1, |n| i64::from(n.0)),
            "min_addr": a.min_addr,
            "max_addr": a.max_addr,
            "caller": a.caller,
            "start": a.start,
            "end": a.start.map(|s| s + a.bytes),
        })
    };
    facts.allocations.iter().map(item).collect()
}

#[test]
fn captured_boots_come_out_as_they_were() {
    for id in [
        "5.10_n2-odd",
        "6.1_n1-fake4",
        "6.1_n1-nodefer",
        "6.12_n2-2holes",
        "6.18_n1-hp1g",
        "7.3_n4-uneven",
        "arm64-16k-6.12_n2-8g",
        "arm64-6.12_n2-efi",
        "ppc64el-64k-6.12_n2-8g-hash",
        "riscv64-6.12_n4-uneven",
        "s390x-6.12_n1-4g",
    ] {
        let facts = BootFacts::read(&boot(id)).expect("a fixture");
        let document = of_boot(id, &[]);
        assert_eq!(document["schema"], "pageinit/layout/1");
        assert_eq!(document["kernel"]["release"], facts.kernel.as_str());
        let ours = document["sparse_init"].as_array().expect("a list");
        assert_eq!(*ours, requests(&facts), "{id}");
        let zones = document["zones"].as_array().expect("a list");
        let real = facts.zones.iter().map(|z| {
            serde_json::json!({
                "nid": z.nid, "zone": z.zone, "start_pfn": z.start_pfn,
                "spanned": z.spanned, "present": z.present,
            })
        });
        assert_eq!(*zones, real.collect::<Vec<_>>(), "{id}");
        let nodes = document["nodes"].as_array().expect("a list");
        let deferred: Vec<u64> = nodes
            .iter()
            .filter(|n| !n["first_deferred_pfn"].is_null())
            .filter_map(|n| n["nid"].as_u64())
            .collect();
        let real: Vec<u64> = facts.deferred_nodes.iter().map(|n| n.0.into()).collect();
        assert_eq!(deferred, real, "{id}");
    }
}

/// Spreads a compact list of requests out again.
fn spread(runs: &Value) -> Vec<Value> {
    let mut out = Vec::new();
    for run in runs.as_array().expect("a list") {
        let step = run["step"].as_i64().unwrap_or(0);
        for i in 0..run["count"].as_i64().unwrap_or(1) {
            let mut one = run.clone();
            let map = one.as_object_mut().expect("an object");
            map.remove("count");
            map.remove("step");
            for key in ["start", "end"] {
                if let Some(at) = run[key].as_u64() {
                    map.insert(key.into(), at.wrapping_add_signed(step * i).into());
                }
            }
            out.push(one);
        }
    }
    out
}

#[test]
fn the_compact_form_says_the_same() {
    for id in ["7.2_n2-8g", "s390x-6.12_n1-4g"] {
        let (whole, compact) = (of_boot(id, &[]), of_boot(id, &["--compact"]));
        assert_eq!(spread(&compact["sparse_init"]), *whole["sparse_init"].as_array().unwrap());
        assert!(compact["memmap"].as_array().unwrap().len() < 10);
        assert_eq!(whole["zones"], compact["zones"]);
    }
}

// One extent per section; together they are the memmap, and none overlaps another.
#[test]
fn extents_per_section_are_disjoint_and_complete() {
    for id in ["6.12_n2-8g", "7.2_n2-8g", "arm64-16k-6.12_n2-8g", "ppc64el-64k-6.12_n2-8g"] {
        let document = of_boot(id, &[]);
        let number = |v: &Value, key: &str| v[key].as_u64().expect("a number");
        let extents = document["memmap"].as_array().expect("a list");
        let mut places: Vec<(u64, u64)> =
            extents.iter().map(|e| (number(e, "start"), number(e, "end"))).collect();
        places.sort_unstable();
        assert!(places.windows(2).all(|w| w[0].1 <= w[1].0), "{id}");
        for extent in extents {
            let sections = number(extent, "section_end") - number(extent, "section_start");
            assert_eq!(sections, 1, "{id}");
        }
        let compact = of_boot(id, &["--compact"]);
        let bytes = |list: &Value| -> u64 {
            list.as_array().unwrap().iter().map(|e| number(e, "end") - number(e, "start")).sum()
        };
        assert_eq!(bytes(&document["memmap"]), bytes(&compact["memmap"]), "{id}");
    }
}

#[test]
fn chunks_start_where_padata_cuts() {
    let document = of_boot("6.18_n8-64g", &[]);
    let job = &document["nodes"][7]["jobs"][0];
    let starts = job["chunk_starts"].as_array().expect("a list");
    assert_eq!(job["chunks"].as_u64(), Some(starts.len() as u64));
    assert_eq!(starts[0], job["start_pfn"]);
    let chunk = job["chunk_pages"].as_u64().expect("a number");
    assert!(starts[1..].iter().all(|s| s.as_u64().unwrap().is_multiple_of(chunk)));
}

#[test]
fn people_get_a_drawing_and_tables() {
    let path = boot("6.12_n4-uneven").display().to_string();
    let out = text(&run(&["-m", &path]).stdout);
    for part in ["Physical memory", "░░░█", "Zones", "first deferred", "ascending", "captured:"]
    {
        assert!(out.contains(part), "{part:?} is missing in\n{out}");
    }
    let drawn: Vec<&str> = out.lines().filter(|l| l.contains('░')).collect();
    assert!(drawn.iter().all(|l| l.chars().count() <= 100), "{drawn:?}");
}

#[test]
fn two_versions_differ_where_linux_changed() {
    let path = boot("6.12_n2-8g").display().to_string();
    let args = ["-m", path.as_str(), "--kernel", "6.12", "--against", "7.2", "--json"];
    let changes = json(&args);
    let what: Vec<&str> =
        changes["changes"].as_array().unwrap().iter().filter_map(|c| c["what"].as_str()).collect();
    for expected in ["rules.one_job_per_node", "memmap.extent_0.order", "sparse_init.requests"] {
        assert!(what.contains(&expected), "{expected} is not among {what:?}");
    }
    let same = run(&["-m", &path, "--kernel", "6.12", "--against", "6.12"]);
    assert!(text(&same.stdout).contains("nothing changes"));
}

#[test]
fn options_change_the_layout() {
    let path = boot("6.12_n1-4g").display().to_string();
    let nodes = |more: &[&str]| {
        let args = [&["-m", path.as_str(), "--json", "--compact"], more].concat();
        json(&args)["nodes"].as_array().expect("a list").clone()
    };
    assert!(nodes(&["--config", "DEFERRED_STRUCT_PAGE_INIT=n"])[0]["first_deferred_pfn"].is_null());
    let fake = nodes(&["--cmdline", "numa=fake=2", "--config", "NUMA_EMU=y"]);
    assert_eq!(fake.len(), 2);
    assert_eq!(nodes(&["--cmdline", "maxcpus=1"])[0]["threads"], 1);
    let file = tempfile::NamedTempFile::new().expect("a scratch file");
    std::fs::write(file.path(), "CONFIG_NODES_SHIFT=10\nCONFIG_ZONE_DMA32=y\n").expect("written");
    let config = file.path().display().to_string();
    assert!(nodes(&["--config", &config])[0]["first_deferred_pfn"].is_null());
}

#[test]
fn bad_input_is_named_and_refused() {
    let path = boot("6.12_n1-4g").display().to_string();
    let toml = |body: &str| {
        let file = tempfile::Builder::new().suffix(".toml").tempfile().expect("a scratch file");
        std::fs::write(file.path(), body).expect("written");
        file
    };
    let page =
        toml("arch = \"x86_64\"\npage_size = \"8KiB\"\n[[node]]\nid = 0\nmemory = \"4GiB\"\n");
    let page = page.path().display().to_string();
    let cases: [(&[&str], i32, &str); 9] = [
        (&["-m", &path, "--kernel", "3.10"], 2, "3.10"),
        (&["-m", &path, "--against", "9.9"], 2, "9.9"),
        (&["-m", &path, "--config", "NODES_SHIFT=11"], 2, "NODES_SHIFT"),
        (&["-m", &path, "--config", "/no/such/file"], 2, "/no/such/file"),
        (&["-m", &path, "--cmdline", "mem=none"], 2, "mem=none"),
        (&["-m", &path, "--cmdline", "mem=64K"], 1, "6.12_n1-4g"),
        (&["-m", &path, "--cmdline", "hugepagesz=1G hugepages=7:1"], 1, "node 7"),
        (&["-m", &path, "--compact"], 2, "--json"),
        (&["-m", &page], 1, "8192"),
    ];
    for (args, code, part) in cases {
        let out = run(args);
        let message = text(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{args:?}: {message}");
        assert!(message.contains(part), "{args:?}: {message}");
        assert!(out.stdout.is_empty(), "{args:?}");
    }
}
