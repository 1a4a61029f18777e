//! What the program writes: data to stdout, talk to stderr, documents of one form.

mod cli;

use cli::{Ran, pageinit, run, small, warning_codes};
use pageinit::plan::Strategy;
use pageinit::record::{Label, Point, Record};
use std::process::Stdio;

/// The keys of a pretty-printed document's top level, in order.
fn top_keys(text: &str) -> Vec<&str> {
    let keys = text.lines().filter_map(|line| line.strip_prefix("  \"")?.split('"').next());
    keys.collect()
}

#[track_caller]
fn is_a_document(ran: &Ran, schema: &str) {
    let document = ran.json();
    let first = ["schema", "tool", "argv", "complete", "warnings"];
    assert_eq!(top_keys(&ran.stdout)[..5], first, "{:?}", ran.args);
    assert_eq!(document["schema"], schema);
    assert_eq!(document["tool"]["name"], "pageinit");
    assert_eq!(document["complete"], true);
    let argv = document["argv"].as_array().expect("argv is a list");
    assert!(argv[1..].iter().eq(ran.args.iter()), "{argv:?}");
    assert!(ran.stdout.ends_with("}\n"));
}

#[test]
fn every_verb_writes_one_document_that_begins_alike() {
    let machine = run(&["machine", "--json"]).ok();
    is_a_document(&machine, "pageinit/machine/1");
    is_a_document(&run(&["machine", "-m", "@8n-cxl-4.5t", "--json"]).ok(), "pageinit/machine/1");
    is_a_document(&run(&["machine", "-m", "list", "--json"]).ok(), "pageinit/machines/1");
    is_a_document(&run(&["strategies", "--json"]).ok(), "pageinit/strategies/1");
    is_a_document(&small(&["--json"]).ok(), "pageinit/compare/1");
    is_a_document(&small(&["--show-plan"]).ok(), "pageinit/plan/1");
}

#[test]
fn with_json_nothing_is_said_beside_the_document() {
    let ran = small(&["--json"]).ok();
    assert_eq!(ran.stderr, "");
    assert!(warning_codes(&ran.json()).contains(&"windowed"));
}

fn record(ran: &Ran) -> Record {
    serde_json::from_str(&ran.stdout).expect("a record")
}

#[track_caller]
fn is_a_whole_point(point: &Point, runs: usize) {
    assert!(point.verified, "{point:?}");
    assert_eq!((point.samples_ns.len(), point.label), (runs, Label::Measured), "{point:?}");
    assert!(point.executed_pages > 0 && point.scaled_pages >= point.executed_pages, "{point:?}");
    assert!(point.samples_ns.iter().all(|&ns| ns > 0), "{point:?}");
    let [low, high] = point.ci95_ns;
    assert!(low <= point.median_ns && point.median_ns <= high, "{point:?}");
}

#[test]
fn a_record_has_all_strategies_verified_and_paired() {
    let args = ["compare", "--json", "--runs", "5", "--buffer", "16MiB", "-m", "@vm-2c"];
    let ran = run(&args).ok();
    let record = record(&ran);
    assert!(record.head.complete);
    for strategy in Strategy::ALL.map(Strategy::name) {
        let own: Vec<&Point> = record.points.iter().filter(|p| p.strategy == strategy).collect();
        assert!(own.iter().any(|p| p.phase == "total"), "{strategy}");
        own.into_iter().for_each(|point| is_a_whole_point(point, 5));
        let ratio = record.ratios.iter().find(|r| r.strategy == strategy).expect("a ratio");
        assert!(ratio.ci95[0] <= ratio.median && ratio.median <= ratio.ci95[1], "{ratio:?}");
    }
    let exec = &record.execution;
    for place in exec.placement.iter().filter(|p| p.bound) {
        assert_eq!(place.on_node_bytes, Some(place.bytes), "{place:?}");
    }
    assert_eq!(exec.placement.iter().map(|p| p.bytes).sum::<u64>(), exec.buffer_bytes);
    assert!(exec.overhead_share.is_some_and(|share| (0.0..1.0).contains(&share)), "{exec:?}");
    assert!(record.prefetch.is_some() && record.scaled.len() == 3);

    let again = serde_json::to_string_pretty(&record).expect("it serialises") + "\n";
    assert!(again == ran.stdout, "reading and writing a record changes it");
}

/// Records of every released form load for ever: this file is never regenerated.
#[test]
fn a_record_of_version_1_loads() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/records/compare-v1.json");
    let text = std::fs::read_to_string(path).expect("the fixture is there");
    let record: Record = serde_json::from_str(&text).expect("version 1 is readable");
    assert_eq!(record.head.schema, "pageinit/compare/1");
    assert_eq!((record.head.complete, record.execution.runs), (true, 5));
    assert!(record.points.iter().all(|p| p.verified && p.samples_ns.len() == 5));
    assert_eq!(record.ratios.len(), Strategy::ALL.len());
    let table = pageinit::report::compare::text(&record);
    assert!(Strategy::ALL.iter().all(|s| table.contains(s.name())), "{table}");
}

#[test]
fn the_table_names_measured_and_scaled() {
    let tiny = "title = \"tiny\"\narch = \"x86_64\"\n[nodes]\ncount = 1\nmemory = \"512MiB\"\n\
                cores = 2\n";
    let dir = tempfile::TempDir::new().expect("a temporary folder");
    let path = dir.path().join("small.toml");
    std::fs::write(&path, tiny).expect("the temporary folder is writable");
    let machine = path.to_str().expect("a temporary path is UTF-8");
    let few = ["--runs", "2", "--buffer", "16MiB"];
    let whole = run(&[&["compare", "--cmdline", "mem=512M"], &few[..]].concat()).ok();
    let header = |ran: &Ran, word: &str| {
        let line = ran.stdout.lines().find(|l| l.contains("[95 %]")).expect("a header");
        line.matches(word).count()
    };
    assert_eq!((header(&whole, "measured"), header(&whole, "scaled")), (3, 0), "{whole:?}");
    assert!(whole.stdout.contains("2 copies of the memmap"), "{}", whole.stdout);
    // A part of this host's memmap, and all of another machine's.
    let part = small(&[]).ok();
    let other = run(&[&["compare", "-m", machine], &few[..]].concat()).ok();
    for ran in [&part, &other] {
        assert_eq!((header(ran, "measured"), header(ran, "scaled")), (0, 3), "{ran:?}");
    }
    for ran in [&whole, &part, &other] {
        assert!(ran.stdout.contains("At these rates, scaled"));
        assert!(ran.stdout.contains("verified byte by byte after every run"));
        assert!(!ran.stdout.contains("warning:"), "talk on stdout: {}", ran.stdout);
        let is_talk = |line: &str| line.starts_with("warning: ");
        assert!(ran.stderr.lines().all(is_talk), "data on stderr: {}", ran.stderr);
    }
}

#[test]
fn other_machines_run_through_a_window_on_host_nodes_and_say_so() {
    for machine in ["@2n-skylake-768g", "pack:2 [numa(memory=512GiB)] core:8 pu:2"] {
        let args = ["compare", "-m", machine, "--buffer", "64MiB", "--runs", "2"];
        let strategies = ["--strategies", "prezero,fused-nt"];
        let people = run(&[&args, &strategies[..]].concat()).ok();
        assert!(people.stdout.contains("of the memmap through a window"), "{people:?}");
        assert!(people.stdout.contains("nodes on this host's nodes: 0 on "), "{people:?}");
        for code in ["[windowed]", "[not-this-host]"] {
            assert!(people.stderr.contains(code), "{people:?}");
        }
        let ran = run(&[&args, &strategies[..], &["--json"]].concat()).ok();
        let codes = ran.json();
        assert!(["windowed", "not-this-host"].iter().all(|c| warning_codes(&codes).contains(c)));
        let record = record(&ran);
        let exec = &record.execution;
        assert!(exec.executed_share > 0.0 && exec.executed_share < 0.02, "{exec:?}");
        assert!(exec.buffer_bytes <= 64 << 20 && exec.mapping.len() == 2, "{exec:?}");
        let total = record.points.iter().find(|p| p.phase == "total").expect("a total");
        assert_eq!(total.scaled_pages, exec.memmap_bytes / 64);
    }
}

#[test]
fn strict_ends_with_3_on_doubtful_figures() {
    let in_cache = small(&["--json"]).ok();
    let codes = in_cache.json();
    if !warning_codes(&codes).contains(&"buffer-in-cache") {
        return eprintln!("notice: the size of this host's caches is unknown; not tested");
    }
    let strict = small(&["--json", "--strict"]).ends_with(3);
    assert_eq!(strict.json()["complete"], true, "the record is there all the same");
}

#[test]
fn a_reader_that_closes_stdout_early_is_no_failure() {
    for args in [
        &["strategies"][..],
        &["machine", "-m", "list"],
        &["machine"],
        &["machine", "--json"],
        &[&cli::SMALL[..], &["--json"]].concat(),
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = pageinit();
        command.args(args).stdout(writer).stderr(Stdio::piped());
        let ran = Ran::of(args, command.output().expect("the program starts")).ok();
        assert_eq!(ran.stderr, "", "{args:?}");
    }
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = pageinit().args(["compare", "--help"]).stdout(writer).output();
    Ran::of(&["--help"], output.expect("the program starts")).ok();
}

/// A full disk, unlike a closed pipe, is one.
#[test]
fn a_full_disk_is_a_failure() {
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else {
        return eprintln!("notice: no /dev/full; not tested");
    };
    let output = pageinit().arg("strategies").stdout(full).output().expect("the program starts");
    Ran::of(&["strategies"], output).fails(1, &["writing the output failed"]);
}

/// Refusing mbind as a container's seccomp filter does.
#[test]
fn a_refused_binding_is_a_warning_and_the_run_goes_on() {
    let inject = ["-f", "-o", "/dev/null", "-e", "trace=mbind", "-e", "inject=mbind:error=EPERM"];
    let works = std::process::Command::new("strace").args(inject).arg("true").output();
    if !works.is_ok_and(|output| output.status.success()) {
        return eprintln!("notice: strace cannot trace here; not tested");
    }
    let args = [&cli::SMALL[..], &["--strategies", "prezero", "--json"]].concat();
    let mut command = std::process::Command::new("strace");
    command.args(inject).arg(env!("CARGO_BIN_EXE_pageinit")).args(&args);
    let ran = Ran::of(&args, command.output().expect("strace starts")).ok();
    assert!(warning_codes(&ran.json()).contains(&"bind-refused"), "{ran:?}");
    let record = record(&ran);
    assert!(record.head.complete);
    assert!(record.execution.placement.iter().all(|p| !p.bound && p.on_node_bytes.is_none()));
}
