//! Files of `-o`: whole or untouched, and never somebody else's.

mod cli;

use cli::{Ran, pageinit};
use std::fs;
use std::path::Path;
use std::process::Command;
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
        let read = pageinit::record::any::AnyRecord::read(&text).expect("a record");
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
