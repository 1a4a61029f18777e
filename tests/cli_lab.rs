//! The experiments end to end: records, tables, bad input.

mod cli;

use cli::{Ran, run, warning_codes};
use pageinit::record::lab::LabRecord;
use serde_json::Value;

/// Every experiment, as small as it goes, without changing settings of this system.
const SMALL: [&[&str]; 4] = [
    &["lab", "prefetch", "--buffer", "1MiB", "--stores", "portable,libc-memset"],
    &[
        "lab",
        "clear-huge",
        "--buffer",
        "2MiB",
        "--touch",
        "1MiB",
        "--stores",
        "portable",
        "--no-gigantic",
        "--no-settings",
    ],
    &["lab", "mremap", "--size", "4MiB"],
    &["lab", "pte-scan", "--size", "2MiB", "--live-size", "2MiB", "--no-settings"],
];

fn small(args: &[&str], more: &[&str]) -> Ran {
    run(&[args, &["--runs", "2", "--seed", "11"], more].concat())
}

#[test]
fn records_begin_like_all_documents_and_load_again() {
    for args in SMALL {
        let ran = small(args, &["--json"]).ok();
        let document = ran.json();
        assert_eq!(document["schema"], format!("pageinit/lab-{}/1", args[1]));
        assert_eq!((&document["seed"], &document["runs"]), (&Value::from(11), &Value::from(2)));
        let mut at = 0;
        for key in ["schema", "tool", "argv", "complete", "warnings"] {
            let found = ran.stdout.find(&format!("\n  \"{key}\":")).expect("the key is there");
            assert!(found > at || at == 0, "{key} stands too early");
            at = found;
        }
        let record: LabRecord = serde_json::from_str(&ran.stdout).expect("a record");
        assert!(record.head.complete && !record.points.is_empty() && !record.published.is_empty());
        assert!(record.points.iter().all(|p| p.verified && p.samples_ns.len() == 2));
        assert_eq!(serde_json::to_value(&record).expect("JSON"), document);
    }
}

#[test]
fn tables_have_own_and_published_figures_under_their_labels() {
    for args in SMALL {
        let ran = small(args, &[]).ok();
        for text in ["measured", "published", "On this host:", "compared with what it should"] {
            assert!(ran.stdout.contains(text), "{text:?} is missing in {ran:?}");
        }
        assert!(!ran.stdout.contains("INCOMPLETE"), "{ran:?}");
    }
}

#[test]
fn what_settings_would_be_needed_for_is_said() {
    let codes = |args| {
        let document = small(args, &["--json"]).ok().json();
        warning_codes(&document).iter().map(|code| (*code).to_owned()).collect::<Vec<_>>()
    };
    assert!(codes(SMALL[3]).contains(&"no-live-part".to_owned()));
    // Where huge pages are on for everybody nothing is missing.
    let enabled = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    if !enabled.is_ok_and(|text| text.contains("[always]")) {
        assert!(codes(SMALL[1]).contains(&"no-huge-pages-on".to_owned()));
    }
}

#[test]
fn bad_sizes_and_names_are_usage_errors() {
    let fails = |args: &[&str], parts: &[&str]| {
        run(&[&["lab"], args].concat()).fails(2, parts);
    };
    fails(&["prefetch", "--buffer", "5000B"], &["--buffer 5000B", "multiple of 4KiB"]);
    fails(&["prefetch", "--buffer", "64MB"], &["64MiB"]);
    fails(&["prefetch", "--stores", "portabel"], &["portabel", "did you mean \"portable\"?"]);
    fails(&["prefetch", "--threads", "60000"], &["--threads 60000"]);
    fails(&["prefetch", "--runs", "0"], &["--runs"]);
    fails(&["clear-huge", "--buffer", "3MiB"], &["--buffer 3MiB", "4MiB"]);
    fails(&["clear-huge", "--touch", "100B"], &["--touch 100B"]);
    fails(&["mremap", "--size", "4KiB"], &["--size 4KiB", "2MiB"]);
    fails(&["pte-scan", "--size", "1MiB"], &["--size 1MiB"]);
    fails(&["pte-scann"], &["pte-scan"]);
}

#[test]
fn more_memory_than_there_is_is_no_resource() {
    for (args, flag) in [
        (["prefetch", "--buffer", "512TiB"], "--buffer"),
        (["clear-huge", "--buffer", "512TiB"], "--buffer"),
        (["clear-huge", "--touch", "512TiB"], "--touch"),
        (["mremap", "--size", "512TiB"], "--size"),
    ] {
        run(&[&["lab"], &args[..]].concat()).fails(6, &["free", &format!("smaller {flag}")]);
    }
}

/// A setting is changed by a run that may, and put back even when it is killed. Only
/// where a test may do that: as root, and with `PAGEINIT_TEST_SETTINGS` set.
#[test]
fn settings_are_put_back_when_the_live_part_is_killed() {
    const FOLDER: &str = "/sys/kernel/mm/transparent_hugepage";
    let read =
        |size: &str| std::fs::read_to_string(format!("{FOLDER}/hugepages-{size}kB/enabled")).ok();
    let allowed = std::env::var_os("PAGEINIT_TEST_SETTINGS").is_some();
    let Some(before) = read("64").filter(|_| allowed) else {
        return eprintln!("notice: settings of this system may not be changed; not tested");
    };
    let args = ["lab", "pte-scan", "--size", "2MiB", "--live-size", "1GiB", "--runs", "40"];
    let mut child = cli::pageinit()
        .args(args)
        .args(["--seed", "1"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("the program starts");
    let wait = |wanted: &dyn Fn() -> bool| {
        (0..3000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            wanted()
        })
    };
    let changed = wait(&|| read("64").is_some_and(|now| now != before));
    child.kill().expect("a child can be killed");
    child.wait().expect("a child ends");
    assert!(changed, "the live part was not reached");
    assert!(wait(&|| read("64").as_ref() == Some(&before)), "the setting was not put back");
}
