//! Files of `-o`: whole or untouched, and never somebody else's.

mod cli;

use cli::{Ran, pageinit};
use pageinit::record::any::AnyRecord;
use pageinit::record::sweep::Sweep;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

const SWEEP: [&str; 5] = ["sweep", "-m", "@2n-skylake-768g", "--threads", "1,2,4"];

fn run_in(dir: &Path, args: &[&str]) -> Ran {
    let output = pageinit().current_dir(dir).args(args).output().expect("the program starts");
    Ran::of(args, output)
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("the folder is readable").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Runs the program in a shell that limits the size of files to `blocks` of 512 bytes or
/// of 1 KiB, as the shell counts them.
fn run_limited(dir: &Path, blocks: u32, args: &[&str]) -> Ran {
    let line = format!("ulimit -f {blocks}; exec \"$0\" \"$@\"");
    let mut shell = Command::new("sh");
    shell.args(["-c", &line, env!("CARGO_BIN_EXE_pageinit")]).args(args);
    Ran::of(args, shell.current_dir(dir).output().expect("a shell"))
}

#[test]
fn a_record_is_saved_and_shown() {
    let dir = TempDir::new().expect("a folder");
    for (file, args) in [
        ("sweep.json", &SWEEP[..]),
        ("estimate.json", &["estimate", "-m", "@2n-skylake-768g"]),
        ("validate.json", &["validate"]),
    ] {
        let ran = run_in(dir.path(), &[args, &["-o", file]].concat()).ok();
        assert!(ran.stdout.contains(' ') && !ran.stdout.starts_with('{'), "{ran:?}");
        let text = fs::read_to_string(dir.path().join(file)).expect("the file is there");
        let read = AnyRecord::read(&text).expect("a record");
        assert!(read.head().complete);
    }
}

#[test]
fn what_is_saved_is_what_json_shows() {
    let dir = TempDir::new().expect("a folder");
    let ran = run_in(dir.path(), &[&SWEEP[..], &["--json", "-o", "a.json"]].concat()).ok();
    let saved = fs::read_to_string(dir.path().join("a.json")).expect("the file is there");
    assert_eq!(saved, ran.stdout);
}

#[test]
fn an_existing_file_is_left_alone_without_force() {
    let dir = TempDir::new().expect("a folder");
    let file = dir.path().join("mine");
    for args in [
        &SWEEP[..],
        &["calibrate"],
        &["capture"],
        &["compare"],
        &["lab", "prefetch"],
        &["validate"],
    ] {
        fs::write(&file, "work").expect("writable");
        let args = [args, &["-o", "mine"]].concat();
        run_in(dir.path(), &args).fails(2, &["mine", "is there already", "--force"]);
        assert_eq!(fs::read_to_string(&file).expect("readable"), "work");
    }
    run_in(dir.path(), &[&SWEEP[..], &["-o", "mine", "--force"]].concat()).ok();
    assert!(fs::read_to_string(&file).expect("readable").starts_with('{'));
}

#[test]
fn a_write_that_fails_says_so_and_leaves_everything_as_it_was() {
    let dir = TempDir::new().expect("a folder");
    fs::write(dir.path().join("old"), "work").expect("writable");
    let ran = run_limited(dir.path(), 2, &[&SWEEP[..], &["-o", "old", "--force"]].concat());
    assert_eq!(ran.status, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("old: writing it failed"), "{ran:?}");
    assert!(ran.stderr.contains("ulimit -f"), "{ran:?}");
    // What was computed is shown even so.
    assert!(ran.stdout.contains("setup-zero"), "{ran:?}");
    assert_eq!(fs::read_to_string(dir.path().join("old")).expect("readable"), "work");
    assert_eq!(names(dir.path()), ["old"]);
}

#[test]
fn a_folder_that_cannot_be_written_is_named_before_any_work() {
    let dir = TempDir::new().expect("a folder");
    let args = [&SWEEP[..], &["-o", "no/such/a.json"]].concat();
    run_in(dir.path(), &args).fails(2, &["no/such/a.json", "there is no folder"]);
    run_in(dir.path(), &[&SWEEP[..], &["-o", "."]].concat()).fails(2, &["is a folder"]);
    let args = [&SWEEP[..], &["-o", "/proc/a.json"]].concat();
    run_in(dir.path(), &args).fails(1, &["/proc/a.json", "name a file"]);
}

#[test]
fn a_full_device_is_an_error_and_a_null_device_is_none() {
    let dir = TempDir::new().expect("a folder");
    if Path::new("/dev/full").exists() {
        let ran = run_in(dir.path(), &[&SWEEP[..], &["-o", "/dev/full"]].concat()).ends_with(1);
        assert!(ran.stderr.contains("/dev/full: writing it failed"), "{ran:?}");
    }
    run_in(dir.path(), &[&SWEEP[..], &["-o", "/dev/null"]].concat()).ok();
}

/// More rounds than any test waits for.
const ENDLESS: [&[&str]; 3] = [
    &["compare", "-m", "@vm-2c", "--buffer", "8MiB", "--runs", "10000"],
    &["lab", "prefetch", "--buffer", "2MiB", "--runs", "100000"],
    &["sweep", "--measure", "-m", "@vm-2c", "--buffer", "8MiB", "--runs", "10000"],
];

/// Kills the program once `is_time` says so, and reads what it left, if anything.
fn left_by_a_kill(args: &[&str], is_time: impl Fn(&Path) -> bool) -> Option<AnyRecord> {
    let dir = TempDir::new().expect("a folder");
    let file = dir.path().join("a.json");
    let mut command = pageinit();
    command.current_dir(dir.path()).args(args).args(["-o", "a.json"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the program starts");
    let waited = (0..6000).find(|_| {
        thread::sleep(Duration::from_millis(20));
        is_time(&file) || child.try_wait().is_ok_and(|ended| ended.is_some())
    });
    child.kill().expect("the program can be killed");
    child.wait().expect("the program has ended");
    assert!(waited.is_some(), "{args:?} saved nothing within two minutes");
    let text = fs::read_to_string(file).ok()?;
    Some(AnyRecord::read(&text).unwrap_or_else(|why| panic!("{args:?}: {why}")))
}

#[test]
fn measurements_that_are_killed_leave_a_valid_record() {
    for args in ENDLESS {
        let early = left_by_a_kill(args, |_| true);
        assert!(early.is_none_or(|record| !record.head().complete), "{args:?}");
        let saved = left_by_a_kill(args, Path::exists);
        let saved = saved.unwrap_or_else(|| panic!("{args:?} saves while it runs"));
        assert!(!saved.head().complete, "{args:?}");
    }
}

/// A measured sweep of three points that is small everywhere.
const MEASURED: [&str; 14] = [
    "sweep",
    "--measure",
    "-m",
    "@vm-2c",
    "--buffer",
    "8MiB",
    "--runs",
    "2",
    "--threads",
    "1",
    "--strategy",
    "prezero,deferred,fused",
    "--kernel",
    "6.12",
];

fn sweep_in(dir: &Path) -> Sweep {
    let text = fs::read_to_string(dir.join("a.json")).expect("the file is there");
    serde_json::from_str(&text).expect("a record of a sweep")
}

#[test]
fn a_measured_sweep_has_samples_and_goes_on_with_what_is_missing() {
    let dir = TempDir::new().expect("a folder");
    run_in(dir.path(), &[&MEASURED[..], &["-o", "a.json"]].concat()).ok();
    let whole = sweep_in(dir.path());
    assert!(whole.head.complete && whole.points.len() == 3 && whole.host.is_some());
    for point in &whole.points {
        let measured = point.measured.as_ref().expect("samples");
        assert!(measured.verified && measured.samples_ns.len() == 2, "{point:?}");
        assert!(measured.executed_pages < measured.machine_pages);
        assert_eq!(serde_json::to_value(point.label).ok(), Some("scaled".into()));
    }
    // As a kill would have left it: one point missing, one with too few runs.
    let mut part = whole.clone();
    part.head.complete = false;
    part.points.remove(0);
    part.points[0].measured.as_mut().expect("samples").samples_ns.pop();
    let text = serde_json::to_string(&part).expect("JSON");
    fs::write(dir.path().join("a.json"), text).expect("writable");
    run_in(dir.path(), &["sweep", "--resume", "a.json"]).ok();
    let resumed = sweep_in(dir.path());
    assert!(resumed.head.complete && resumed.question == whole.question);
    assert_eq!(resumed.points[2], whole.points[2]);
    let runs = resumed.points.iter().map(|p| p.measured.as_ref().map(|m| m.samples_ns.len()));
    assert_eq!(runs.collect::<Vec<_>>(), [Some(2); 3]);
}

#[test]
fn what_this_host_cannot_run_is_listed() {
    let dir = TempDir::new().expect("a folder");
    let args = [
        &["sweep", "--measure", "-m", "@2n-skylake-768g", "--threads", "1,max"][..],
        &["--strategy", "deferred", "--kernel", "6.8,6.12", "--buffer", "8MiB", "--runs", "1"],
        &["--json"],
    ];
    let ran = run_in(dir.path(), &args.concat()).ok();
    let sweep: Sweep = serde_json::from_str(&ran.stdout).expect("a record of a sweep");
    let of = |threads: u32, kernel: &str| {
        let found = sweep.skipped.iter().find(|s| s.threads == threads && s.kernel == kernel);
        found.map(|s| s.reason.as_str())
    };
    assert_eq!(of(1, "6.8"), None);
    assert!(of(1, "6.12").is_some_and(|why| why.contains("the same plan as under Linux 6.8")));
    if thread::available_parallelism().is_ok_and(|cpus| cpus.get() < 52) {
        assert!(of(52, "6.8").is_some_and(|why| why.contains("CPUs that may be used")));
    }
}
