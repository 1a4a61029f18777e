//! Boot logs against their prediction: `estimate -m LOG` and `validate --boot-log`.
//!
//! The logs of the first tests are made up. Those of the last one lie beside the project
//! and are not part of it; without them it says so and passes.

mod cli;

use cli::run;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// A made-up boot: 8 GiB on one node with 4 CPUs.
const LOG: &str = "\
[    0.000000] Linux version 5.10.0-9-amd64 (b@c) (gcc) #1 SMP
[    0.000000] Command line: BOOT_IMAGE=/boot/vmlinuz-5.10.0-9-amd64 ro mem=9G numa=fake=2
[    0.000000] BIOS-provided physical RAM map:
[    0.001000] Early memory node ranges
[    0.001000]   node   0: [mem 0x0000000000001000-0x000000000009ffff]
[    0.001000]   node   0: [mem 0x0000000000100000-0x00000000bfffffff]
[    0.001000]   node   0: [mem 0x0000000100000000-0x000000023fffffff]
[    0.010000] rcu: RCU calculated value of scheduler-enlistment delay is 25 jiffies.
[    0.100000] smpboot: CPU0: Intel(R) Xeon(R) Gold 6154 CPU @ 3.00GHz (family: 0x6, model: 0x55)
[    0.200000] smp: Brought up 1 node, 4 CPUs
[    0.260000] node 0 deferred pages initialised in 44ms
[    0.300000] HugeTLB: registered 1.00 GiB page size, pre-allocated 2 pages
[    9.000000] memmap_init_zone_device initialised 2097152 pages in 40ms
";

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&run(args).ok().stdout).expect("one JSON document")
}

fn file(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    fs::write(&path, text).expect("a temporary file");
    path.display().to_string()
}

#[test]
fn an_estimate_stands_beside_the_logs_own_times() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let log = file(dir.path(), "boot.log", LOG);
    let e = json(&["estimate", "-m", &log, "--json"]);
    let rows = e["logged"].as_array().expect("a list");
    let what: Vec<&str> = rows.iter().filter_map(|r| r["what"].as_str()).collect();
    assert_eq!(what, ["deferred-init", "hugetlb", "zone-device"]);
    assert_eq!(
        (&rows[0]["nid"], &rows[0]["logged_ms"], &rows[0]["line"]),
        (&0.into(), &44.0.into(), &11.into())
    );
    let (error, predicted) = (rows[0]["error"].as_f64(), rows[0]["predicted_ms"].as_f64());
    assert!((predicted.expect("a time") / 44.0 - 1.0 - error.expect("an error")).abs() < 1e-9);
    assert_eq!(rows[0]["caveats"], serde_json::json!(["pages-of-node"]));
    assert!(rows[1]["logged_ms"].is_null() && rows[1]["predicted_ms"].as_f64() > Some(0.0));
    assert!(rows[1]["left_out"].as_str().is_some_and(|r| r.starts_with("no-time")));
    // The log's kernel is taken; what made its memory is not applied a second time.
    assert_eq!(e["kernel"]["release"], "5.10.0-9-amd64");
    assert_eq!(e["machine"]["nodes"].as_array().map(Vec::len), Some(1));
    let text = run(&["estimate", "-m", &log]).ok().stdout;
    assert!(text.contains("Against the log's own times") && text.contains("44.0 ms"), "{text}");
}

#[test]
fn guests_are_estimated_as_guests_and_imitated_processors_not_validated() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let dmi = "[    0.000000] DMI: QEMU Standard PC (Q35 + ICH9, 2009), BIOS 1\n";
    let guest = file(dir.path(), "guest.log", &format!("{dmi}{LOG}"));
    let tcg = LOG.replace("Intel(R) Xeon(R) Gold 6154 CPU @ 3.00GHz", "AMD QEMU TCG CPU");
    let tcg = file(dir.path(), "tcg.log", &tcg);
    for (log, code) in [(&guest, "guest"), (&tcg, "emulated")] {
        let e = json(&["estimate", "-m", log, "--json"]);
        assert_eq!(e["processor"]["virt"], "guest", "{log}");
        assert!(cli::warning_codes(&e).contains(&code), "{log}");
    }
    let real = json(&["estimate", "-m", &guest, "--virt", "bare-metal", "--json"]);
    assert_eq!(real["processor"]["virt"], "bare-metal");
    let rows = |log: &str| json(&["validate", "--boot-log", log, "--json"])["records"].clone();
    let reason = rows(&tcg)[0]["left_out"].as_str().unwrap_or_default().to_owned();
    assert!(reason.starts_with("emulated"), "{reason}");
    let is_own = |r: &Value| r["id"] == "guest.log" && r["left_out"].is_null();
    assert!(rows(&guest).as_array().is_some_and(|all| all.iter().any(is_own)));
}

#[test]
fn options_of_the_logs_command_line_that_cost_time_are_taken() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let plain = file(dir.path(), "plain.log", LOG);
    let slow = file(dir.path(), "slow.log", &LOG.replace(" ro ", " ro init_on_free=1 "));
    let ms =
        |log: &str| json(&["estimate", "-m", log, "--json"])["logged"][0]["predicted_ms"].as_f64();
    assert!(ms(&slow) > ms(&plain).map(|ms| ms * 10.0));
    let caveats = &json(&["estimate", "-m", &slow, "--json"])["logged"][0]["caveats"];
    assert!(caveats.as_array().is_some_and(|c| c.contains(&"init-on-free".into())), "{caveats}");
    // A line of one's own replaces the log's.
    let args = ["estimate", "-m", &plain, "--cmdline", "init_on_free=1", "--json"];
    assert_eq!(json(&args)["logged"][0]["predicted_ms"].as_f64(), ms(&slow));
    let other = json(&["estimate", "-m", &plain, "--kernel", "6.12", "--json"]);
    let caveats = other["logged"][0]["caveats"].as_array().expect("a list").clone();
    assert!(caveats.contains(&"other-kernel".into()), "{caveats:?}");
}

#[test]
fn a_log_without_a_kernel_is_dated_by_its_lines() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let text = LOG
        .replace("Linux version 5.10.0-9-amd64 (b@c) (gcc) #1 SMP", "x86/fpu: x")
        .replace("BOOT_IMAGE=/boot/vmlinuz-5.10.0-9-amd64 ", "")
        .replace("node 0 deferred pages initialised in", "node 0 initialised, 1900000 pages in");
    let log = file(dir.path(), "old.log", &text);
    let e = json(&["estimate", "-m", &log, "--json"]);
    assert_eq!(e["kernel"]["version"], serde_json::json!({"major": 5, "minor": 7}));
    assert_eq!(e["logged"][0]["pages"], 1_900_000);
    let codes: Vec<&str> = e["warnings"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|w| w["code"].as_str())
        .collect();
    assert!(codes.contains(&"kernel-by-lines"), "{codes:?}");
}

/// The rows of `validate --boot-log` on one text.
fn validated(text: &str) -> Value {
    let dir = tempfile::tempdir().expect("a temporary folder");
    json(&["validate", "--boot-log", &file(dir.path(), "a.log", text), "--json"])
}

#[test]
fn logs_are_predicted_blind_with_statistics() {
    let v = validated(LOG);
    let rows = v["records"].as_array().expect("a list");
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert_eq!((&rows[0]["id"], &rows[0]["anchor"]), (&"a.log".into(), &"class".into()));
    assert_eq!(
        (&rows[0]["group"], &rows[1]["group"]),
        (&"boot-logs".into(), &"boot-logs-device".into())
    );
    let groups: Vec<&str> =
        v["groups"].as_array().expect("a list").iter().filter_map(|g| g["name"].as_str()).collect();
    assert_eq!(groups, ["boot-logs", "boot-logs-device"]);
    assert_eq!(v["ranges"][0]["name"], "boot-logs");
}

#[test]
fn the_first_node_of_a_boot_can_anchor_the_others() {
    let range = "[    0.001] node   1: [mem 0x0000000240000000-0x000000043fffffff]";
    let line = "[    0.270000] node 1 deferred pages initialised in 66ms";
    let two = LOG
        .replace("000000023fffffff]\n", &format!("000000023fffffff]\n{range}\n"))
        .replace("Brought up 1 node, 4 CPUs", "Brought up 2 nodes, 4 CPUs")
        .replace("[    0.300000]", &format!("{line}\n[    0.300000]"))
        .replace("5.10.0-9-amd64", "5.4.0");
    let dir = tempfile::tempdir().expect("a temporary folder");
    let log = file(dir.path(), "two.log", &two);
    let args = ["validate", "--boot-log", &log, "--anchor", "first-node", "--json"];
    let v = json(&args);
    let rows = v["records"].as_array().expect("a list");
    assert_eq!(
        (&rows[0]["by_construction"], &rows[1]["by_construction"]),
        (&true.into(), &false.into())
    );
    let predicted = rows[0]["predicted_ms"].as_f64().expect("a time");
    assert!((predicted / 44.0 - 1.0).abs() < 0.02, "{predicted}");
    assert_eq!(rows[1]["group"], "boot-logs-anchored");
    assert_eq!(rows[1]["anchor"], "node 0 of the same boot");
    let n: u64 =
        v["groups"].as_array().expect("a list").iter().filter_map(|g| g["n"].as_u64()).sum();
    assert_eq!(n, 2, "node 1 and the device: {}", v["groups"]);
}

#[test]
fn every_log_that_says_too_little_has_its_reason() {
    let why = |text: &str| {
        let rows = validated(text)["records"].clone();
        let first = rows[0]["left_out"].as_str().unwrap_or("none").to_owned();
        first.split(':').next().unwrap_or("").to_owned()
    };
    assert_eq!(why("no kernel at all\n"), "no-boot");
    assert_eq!(why(&LOG.replace("initialised", "seen")), "no-times");
    assert_eq!(why(&LOG.replace("in 44ms", "in 0ms")), "below-a-step");
    assert_eq!(why(&LOG.replace("5.10.0-9-amd64", "3.10.0")), "kernel-not-modelled");
    assert_eq!(why(&LOG.replace("Brought up 1 node, 4 CPUs", "x")), "no-cpus");
    assert_eq!(why(&LOG.replace("[mem 0x", "[gap 0x")), "machine-incomplete");
    assert_eq!(
        why(&LOG.replace("rcu: RCU", "KernelAddressSanitizer initialized\n[ 0.02] rcu: RCU")),
        "debug-kernel"
    );
    let stalled = LOG
        .replace("5.10.0-9-amd64", "5.4.0-1-amd64")
        .replace("deferred pages initialised in 44ms", "initialised, 5000000 pages in 1ms")
        .replace("000000023fffffff", "000000083fffffff")
        .replace("is 25 jiffies", "is 100 jiffies");
    assert_eq!(why(&stalled), "stalled-tick");
}

#[test]
fn every_boot_of_a_log_stands_by_itself() {
    let v = validated(&format!("{LOG}{LOG}"));
    let ids: Vec<&str> =
        v["records"].as_array().expect("a list").iter().filter_map(|r| r["id"].as_str()).collect();
    assert_eq!(ids, ["a.log, boot 1", "a.log, boot 1", "a.log, boot 2", "a.log, boot 2"]);
}

#[test]
fn every_log_of_the_corpus_gives_rows_or_a_reason() {
    let Ok(folder) = fs::read_dir("../shared/corpus") else {
        return eprintln!("../shared/corpus is not there; this test does nothing");
    };
    let mut logs: Vec<String> = folder
        .filter_map(|entry| Some(entry.ok()?.path().display().to_string()))
        .filter(|path| path.rsplit('/').next().is_some_and(|name| name.starts_with('A')))
        .collect();
    logs.sort();
    let paths: Vec<&str> = logs.iter().map(String::as_str).collect();
    let v = json(&[&["validate", "--json", "--boot-log"], &paths[..]].concat());
    let rows = v["records"].as_array().expect("a list");
    for path in paths {
        let name = path.rsplit('/').next().unwrap_or(path);
        let own = |r: &&Value| r["id"].as_str().is_some_and(|id| id.starts_with(name));
        let mut own = rows.iter().filter(own).peekable();
        assert!(own.peek().is_some(), "{name} has no row");
        for row in own {
            let has_error = row["error"].is_f64() && row["predicted_ms"].is_f64();
            assert!(has_error != row["left_out"].is_string(), "{row}");
        }
    }
    let predicted = rows.iter().filter(|r| r["left_out"].is_null()).count();
    assert!(predicted >= 10, "{predicted}");
}
