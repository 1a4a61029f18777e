//! `estimate`, `sweep` and `validate` as a user meets them: data, errors, statuses.

use serde_json::Value;
use std::fs;
use std::process::{Command, Output};

fn pageinit(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pageinit"));
    command.args(args).output().expect("the program can be started")
}

fn json(args: &[&str]) -> Value {
    let output = pageinit(args);
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn refused(args: &[&str], code: i32) -> String {
    let output = pageinit(args);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {}", text(&output.stderr));
    assert!(output.stdout.is_empty());
    text(&output.stderr)
}

const SKYLAKE: [&str; 5] = ["estimate", "-m", "@2n-skylake-768g", "--kernel", "5.10"];

#[test]
fn an_estimate_has_every_promised_field() {
    let e = json(&[&SKYLAKE[..], &["--json"]].concat());
    let first = ["schema", "tool", "argv", "complete", "warnings"];
    assert!(first.iter().all(|key| e.get(key).is_some()));
    assert_eq!((&e["schema"], &e["label"]), (&"pageinit/estimate/1".into(), &"modelled".into()));
    assert!(e["total_ns"].is_u64() && e["range_ns"][1].as_u64() > e["total_ns"].as_u64());
    let span = &e["timeline"][0];
    for key in ["phase", "executor", "nid", "worker", "start_ns", "end_ns", "pages", "bytes"] {
        assert!(!span[key].is_null(), "{key}: {span}");
    }
    let saving = &e["savings"][0];
    assert!(saving["saved_ns"].is_i64() && saving["strategy"].is_string());
    assert!(e["bound_by"].is_string() && e["anchor"]["kind"] == "class");
}

#[test]
fn the_same_question_has_the_same_answer() {
    let args = [&SKYLAKE[..], &["--json"]].concat();
    assert_eq!(pageinit(&args).stdout, pageinit(&args).stdout);
}

#[test]
fn tables_say_that_they_are_modelled() {
    let sweep = ["sweep", "-m", "@2n-skylake-768g", "--kernel", "5.10", "--threads", "1,26"];
    for args in [&SKYLAKE[..], &sweep] {
        assert!(text(&pageinit(args).stdout).contains("modelled"), "{args:?}");
    }
    let csv = pageinit(&[&sweep[..], &["--csv"]].concat()).stdout;
    let lines: Vec<String> = text(&csv).lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 5);
    assert!(lines[1].ends_with(",modelled") && lines[0].starts_with("kernel,strategy,threads"));
}

#[test]
fn kernels_print_their_own_lines() {
    let lines = |version| {
        let args = ["estimate", "-m", "@2n-skylake-768g", "--kernel", version, "--as", "dmesg"];
        text(&pageinit(&args).stdout)
    };
    assert!(lines("5.10").contains("deferred pages initialised in"));
    assert!(lines("4.14").contains("node 0 initialised, "));
    assert_eq!(lines("4.1"), "");
}

#[test]
fn what_cannot_be_met_is_refused_with_a_remedy() {
    let with = |more: &[&str]| refused(&[&SKYLAKE[..], more].concat(), 2);
    assert!(with(&["--threads", "53"]).contains("use at most 52"));
    assert!(with(&["--strategy", "magic"]).contains("no strategy is called"));
    assert!(with(&["--anchor", "node0=-1ms/5"]).contains("above 0"));
    assert!(with(&["--anchor", "node0=1ms/100000000"]).contains("its memory needs"));
    let twice = ["--anchor", "node0=2s/100000000", "--anchor", "node0=3s/100000000"];
    assert!(with(&twice).contains("two anchors"));
    assert!(with(&["--anchor", "node7=2s/100000000"]).contains("defers no pages"));
    assert!(with(&["--anchor", "node0=nans/5"]).contains("not an anchor"));
    assert!(with(&["--anchor", "node0=2s/100000000@0"]).contains("above 0"));
    assert!(with(&["--chunk", "3MiB"]).contains("largest buddy block"));
    let sweep = |more: &[&str]| refused(&[&["sweep", "-m", "@2n-skylake-768g"], more].concat(), 2);
    assert!(sweep(&["--threads", "1..10000000"]).contains("--max-points"));
    assert!(sweep(&["--threads", "9..3"]).contains("is empty"));
    assert!(sweep(&["--threads", ","]).contains("not a value"));
    assert!(sweep(&["--threads", "64"]).contains("use at most 52"));
}

#[test]
fn what_ifs_stand_in_a_table_and_in_the_document() {
    let flags =
        ["--fake-numa", "4", "--init-on-free", "--threads-per-node", "4", "--hotplug", "4GiB"];
    let e = json(&[&SKYLAKE[..], &flags, &["--json"]].concat());
    let rows = e["what_ifs"].as_array().expect("a list");
    let names: Vec<&str> = rows.iter().filter_map(|r| r["name"].as_str()).collect();
    let expected = [
        "base",
        "fake-numa",
        "init-on-free",
        "threads-per-node",
        "together",
        "hotplug-serial",
        "hotplug-threads",
        "hotplug-parallel",
    ];
    assert_eq!(names, expected);
    assert!(rows[0]["saved_ns"].is_null() && rows[0]["total_ns"].is_u64());
    assert_eq!(rows[4]["total_ns"], e["total_ns"], "the timeline is the boot with all changes");
    let against = rows[1]["against_ns"].as_i64().zip(rows[1]["total_ns"].as_i64());
    assert_eq!(against.map(|(a, t)| a - t), rows[1]["saved_ns"].as_i64());
    assert_eq!(e["machine"]["nodes"].as_array().map(Vec::len), Some(4));
    let text = text(&pageinit(&[&SKYLAKE[..], &flags].concat()).stdout);
    assert!(text.contains("What if (modelled)") && text.contains("4 fake nodes"), "{text}");
    let plain = json(&[&SKYLAKE[..], &["--json"]].concat());
    assert_eq!(plain["what_ifs"].as_array().map(Vec::len), Some(0));
}

#[test]
fn what_ifs_that_cannot_be_are_refused() {
    let with = |more: &[&str]| refused(&[&SKYLAKE[..], more].concat(), 2);
    assert!(with(&["--fake-numa", "1"]).contains("2 to 1024"));
    assert!(with(&["--page-size", "64KiB"]).contains("x86_64 has 4 KiB"));
    assert!(with(&["--struct-page-bytes", "65"]).contains("56, 64, 72"));
    assert!(with(&["--hugepages", "1GiB"]).contains("1GiB:500"));
    assert!(with(&["--hugepages", "2MiB:8"]).contains("gigantic"));
    assert!(with(&["--hvo", "on"]).contains("--hugepages"));
    assert!(with(&["--hotplug", "100MiB"]).contains("memory block"));
    assert!(with(&["--hotplug", "64"]).contains("64GiB"), "a size needs its unit");
    assert!(with(&["--kdump", "1TiB"]).contains("at most"));
    assert!(with(&["--threads-per-node", "53"]).contains("use at most 52"));
    assert!(with(&["--threads-per-node", "0"]).contains("1..=65536"));
    assert!(with(&["--cmdline", "numa=fake=none"]).contains("number of nodes"));
    assert!(with(&["--config", "NODES_SHIFT=99"]).contains("from 0 to 10"));
}

#[test]
fn an_architecture_that_has_other_pages_is_asked_about_them() {
    let e = json(&[
        "estimate",
        "-m",
        "@arm64-64k",
        "--kernel",
        "6.12",
        "--page-size",
        "4KiB",
        "--json",
    ]);
    let of = |at: usize, key: &str| e["what_ifs"][at][key].as_u64();
    assert_eq!(e["what_ifs"][1]["name"], "page-size");
    assert_eq!(of(1, "memmap_bytes"), of(0, "memmap_bytes").map(|bytes| bytes * 16));
    assert_eq!(e["machine"]["page_bytes"], 4096);
}

#[test]
fn an_anchor_scales_what_is_added_later_too() {
    let ns = |anchor: &[&str]| {
        let args = [&SKYLAKE[..], &["--device-memory", "1GiB", "--json"], anchor].concat();
        json(&args)["what_ifs"][1]["total_ns"].as_f64().unwrap_or(0.0)
    };
    let slow = ns(&["--anchor", "node0=4000ms/100000000"]);
    assert!(slow > 1.5 * ns(&[]), "{slow}");
}

#[test]
fn files_of_figures_are_read_or_refused_by_line_and_field() {
    let dir = tempfile::tempdir().expect("a scratch folder");
    let path = dir.path().join("figures.json");
    let file = path.to_str().expect("a plain path");
    let figures = r#"[{"id": "mine", "kernel": "5.4", "hat": 1,
  "machine": {"cpu": "AMD EPYC 7551", "arch": "x86_64", "nodes": 1, "memory_per_node_gib": 64},
  "measurements": [{"what": "node 0 deferred init", "threads": 1, "time_ms": 250.0},
    {"what": "kernel boot", "threads": 1, "time_ms": 900.0}]}]"#;
    fs::write(&path, figures).expect("the scratch file");
    let v = json(&["validate", "--figures", file, "--json"]);
    assert_eq!(
        (v["unknown_fields"].as_u64(), v["fitted_thread_constants"].as_u64()),
        (Some(1), Some(3))
    );
    assert!(v["records"][0]["error"].as_f64().is_some_and(|e| e.abs() < 0.4), "{}", v["records"]);
    assert_eq!(v["records"][0]["anchor"], "class");
    assert!(v["records"][1]["left_out"].as_str().is_some_and(|r| r.starts_with("whole-boot")));
    fs::write(&path, figures.replace("\"nodes\": 1", "\"nodes\": \"one\"")).expect("again");
    assert!(refused(&["validate", "--figures", file], 1).contains("line 2, field nodes"));
    fs::write(&path, "[1").expect("again");
    assert!(refused(&["validate", "--figures", file], 1).contains("line 1"));
    assert!(refused(&["validate", "--figures", "/no/such/file"], 1).contains("/no/such/file"));
}

#[test]
fn a_calibration_replaces_the_class_and_its_architecture_is_checked() {
    let dir = tempfile::tempdir().expect("a scratch folder");
    let path = dir.path().join("calibration.json");
    let file = path.to_str().expect("a plain path");
    let rate = |phase: &str, threads: u32, ns: f64| {
        serde_json::json!({"strategy": "deferred", "phase": phase, "free": true,
            "threads": threads, "ns_per_page": ns})
    };
    let calibration = |arch: &str| {
        let document = serde_json::json!({
            "schema": "pageinit/calibration/1", "tool": {"name": "pageinit", "version": "0"},
            "argv": [], "complete": true, "warnings": [], "label": "measured",
            "host": {"cpu_model": null, "arch": arch, "kernel_release": null, "allowed_cpus": [],
                "memory_bytes": null, "available_bytes": null, "cgroup_limit_bytes": null,
                "last_level_cache_bytes": null, "clock": "", "clock_resolution_ns": 1,
                "clock_overhead_ns": 1, "stores": []},
            "kernel": "6.12", "most_threads": 2,
            "rates": [rate("early-init", 1, 11.0), rate("early-free", 1, 3.0),
                rate("deferred-init", 1, 20.0), rate("deferred-init", 2, 12.0)],
        });
        fs::write(&path, document.to_string()).expect("the scratch file");
    };
    let args = |threads: &'static str| {
        [
            "estimate",
            "-m",
            "@vm-2c",
            "--kernel",
            "6.12",
            "--calibration",
            file,
            "--threads",
            threads,
            "--json",
            "--strict",
        ]
        .map(str::to_owned)
    };
    let node_ns = |threads| {
        let args = args(threads);
        let e = json(&args.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(e["anchor"]["kind"], "calibration");
        let node = &e["nodes"][0];
        node["wall_ns"].as_f64().unwrap_or(0.0) / node["pages"].as_f64().unwrap_or(1.0)
    };
    calibration("x86_64");
    assert!((node_ns("1") - 20.0).abs() < 0.01);
    assert!((node_ns("2") - 12.0).abs() < 0.5, "{}", node_ns("2"));
    calibration("aarch64");
    let args = args("1");
    let output = pageinit(&args.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stdout).contains("other-architecture"));
    // Without --strict the answer is given, with a warning that cannot be missed.
    let args = ["estimate", "-m", "@vm-2c", "--kernel", "6.12", "--calibration", file];
    let output = pageinit(&args);
    assert_eq!(output.status.code(), Some(0));
    let warning = "the calibration is of aarch64, the machine is x86_64";
    assert!(text(&output.stderr).contains(warning), "{}", text(&output.stderr));
    let both = [&args[..], &["--anchor", "node0=1s/100000"]].concat();
    assert!(refused(&both, 2).contains("cannot be used with"));
}
