//! `report` and `diff` as users call them: files, errors, exit statuses.

mod cli;

use cli::{Ran, pageinit, run};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use tempfile::TempDir;

const V1: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/records/compare-v1.json");
const ESTIMATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/records/estimate-v1.json");
const SWEEP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/records/sweep-v1.json");

fn v1() -> Value {
    serde_json::from_str(&fs::read_to_string(V1).expect("the fixture")).expect("JSON")
}

/// A file in the folder with this content.
fn file(dir: &TempDir, name: &str, content: &[u8]) -> String {
    let path = dir.path().join(name);
    fs::write(&path, content).expect("the temporary folder is writable");
    path.to_str().expect("a temporary path is UTF-8").to_owned()
}

/// The record with every run of a strategy's points `factor` times as long, and steady.
fn steady(dir: &TempDir, name: &str, factor: f64, strategy: &str) -> String {
    let mut record = v1();
    for point in record["points"].as_array_mut().expect("points") {
        let median = point["median_ns"].as_f64().expect("a number");
        let chosen = point["strategy"] == strategy;
        let ns = median * if chosen { factor } else { 1.0 };
        point["median_ns"] = json!(ns);
        point["samples_ns"] = json!(vec![ns as u64; 5]);
    }
    file(dir, name, record.to_string().as_bytes())
}

fn folder() -> TempDir {
    TempDir::new().expect("a temporary folder")
}

/// What lies in a folder, without links.
fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("readable");
    let mut names: Vec<String> =
        entries.map(|e| e.expect("readable").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn what_is_no_record_is_named() {
    let dir = folder();
    let text = fs::read_to_string(V1).expect("the fixture");
    let cases: [(&str, Vec<u8>, &str); 6] = [
        ("cut.json", text.as_bytes()[..text.len() / 2].to_vec(), "is not whole JSON (EOF"),
        ("newer.json", text.replace("compare/1", "compare/9").into(), "update it"),
        ("fio.json", b"{\"fio version\": \"fio-3.38\"}".to_vec(), "has no \"schema\""),
        ("plan.json", b"{\"schema\": \"pageinit/plan/1\"}".to_vec(), "expected a record of"),
        ("binary.json", b"\x7fELF\0\xff\xfe".to_vec(), "is not text"),
        ("empty.json", vec![], "is empty"),
    ];
    for (name, content, part) in cases {
        let path = file(&dir, name, &content);
        run(&["report", &path]).fails(1, &[&path, part]);
        run(&["report", V1, &path, "--as", "csv"]).fails(1, &[&path, part]);
        run(&["diff", V1, &path]).fails(1, &[&path, part]);
    }
    run(&["report", "no-such.json"]).fails(1, &["no-such.json: no such file", "record"]);
    run(&["report", "/"]).fails(1, &["/: "]);
    run(&["report"]).fails(2, &["RECORD"]);
    run(&["report", "-", "-"]).fails(2, &["stdin", "once"]);
}

#[test]
fn views_and_choices_that_do_not_fit_are_usage_errors() {
    run(&["report", SWEEP, "--as", "blame"]).fails(2, &[SWEEP, "table, csv, markdown"]);
    run(&["report", V1, "--as", "pdf"]).fails(2, &["'pdf'", "critical-chain"]);
    run(&["report", V1, "--as", "blame", "--strategy", "x"]).fails(2, &["\"x\"", "fused-nt"]);
    run(&["report", V1, "--as", "csv", "--table", "x"]).fails(2, &["\"x\"", "\"Samples\""]);
    run(&["report", V1, "--strategy", "serial"]).fails(2, &["--strategy is for"]);
    run(&["report", V1, "--table", "Host"]).fails(2, &["--table is for"]);
    run(&["report", V1, "--force"]).fails(2, &["--output"]);
}

#[test]
fn choices_choose() {
    let one = run(&["report", V1, "--as", "critical-chain", "--strategy", "deferred"]).ok().stdout;
    assert_eq!(one.matches("all struct pages @").count(), 1, "{one}");
    let csv = run(&["report", V1, "--as", "csv", "--table", "Host"]).ok().stdout;
    assert!(csv.starts_with("record,complete,table,fact,value\n"), "{csv}");
    assert!(csv.lines().skip(1).all(|line| line.contains(",yes,Host,")), "{csv}");
}

#[test]
fn a_record_is_read_from_stdin() {
    let mut child = pageinit()
        .args(["report", "-", "--as", "blame"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let text = fs::read(ESTIMATE).expect("the fixture");
    child.stdin.take().expect("a pipe").write_all(&text).expect("it reads");
    let ran = Ran::of(&["report", "-"], child.wait_with_output().expect("it ends")).ok();
    assert!(ran.stdout.starts_with("file          stdin\n"), "{ran:?}");
}

#[test]
fn files_are_written_whole_or_not_at_all() {
    let dir = folder();
    let out = dir.path().join("out.csv");
    let path = out.to_str().expect("UTF-8");
    let wanted = run(&["report", V1, "--as", "csv"]).ok().stdout;
    assert_eq!(run(&["report", V1, "--as", "csv", "-o", path]).ok().stdout, "");
    assert_eq!(fs::read_to_string(&out).expect("written"), wanted);
    run(&["report", V1, "-o", path]).fails(2, &[path, "--force"]);
    run(&["report", SWEEP, "--as", "blame", "-o", path, "--force"]).fails(2, &["sweep"]);
    assert_eq!(fs::read_to_string(&out).expect("still there"), wanted);
    run(&["report", SWEEP, "-o", path, "--force"]).ok();
    assert_ne!(fs::read_to_string(&out).expect("replaced"), wanted);
    assert_eq!(names(dir.path()), ["out.csv"], "nothing is left beside it");
    run(&["report", V1, "-o", "no/such/out.csv"]).fails(2, &["no/such/out.csv", "no folder"]);
    let folder = dir.path().to_str().expect("UTF-8");
    run(&["report", V1, "-o", folder, "--force"]).fails(2, &[folder, "folder"]);
    // A link stays one, and what it names is replaced.
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&out, &link).expect("a link");
    run(&["report", V1, "--as", "csv", "-o", link.to_str().expect("UTF-8"), "--force"]).ok();
    assert_eq!(fs::read_to_string(&out).expect("replaced"), wanted);
    assert!(link.is_symlink());
}

#[test]
fn a_full_disk_is_said() {
    run(&["report", V1, "-o", "/dev/full"]).fails(1, &["/dev/full", "space"]);
}

#[test]
fn names_with_markup_and_controls_do_no_harm() {
    let dir = folder();
    let mut record = v1();
    let evil = "=cmd|' /C x'!A0 <b>|x</b>\u{1b}]0;title\u{7}\u{1b}[31m\nline\u{9b}1m";
    record["machine"]["name"] = evil.into();
    record["host"]["cpu_model"] = evil.into();
    record["points"][0]["strategy"] = evil.into();
    record["warnings"][0]["message"] = evil.into();
    let path = file(&dir, "evil.json", record.to_string().as_bytes());
    for view in ["table", "blame", "critical-chain", "csv", "markdown"] {
        let text = run(&["report", &path, "--as", view]).ok().stdout;
        let harmful = |c: char| c.is_control() && c != '\n';
        assert!(!text.contains(harmful), "{view}: {text:?}");
        assert!(text.contains("\u{fffd}[31m\u{fffd}line") || view == "markdown", "{view}: {text}");
    }
    let csv = run(&["report", &path, "--as", "csv"]).ok().stdout;
    assert!(csv.contains(",'=cmd|") && !csv.contains(",=cmd"), "{csv}");
    let markdown = run(&["report", &path, "--as", "markdown"]).ok().stdout;
    assert!(!markdown.contains("<b>") && markdown.contains("\\<b\\>\\|x\\</b\\>"), "{markdown}");
    let diff = run(&["diff", V1, &path]).ok().stdout;
    assert!(!diff.contains('\u{1b}') && diff.contains("host.cpu_model: A Example CPU"), "{diff}");
}

#[test]
fn the_exit_status_of_diff_is_the_verdict() {
    let dir = folder();
    let a = steady(&dir, "a.json", 1.0, "");
    let slower = steady(&dir, "slower.json", 1.2, "fused");
    let little = steady(&dir, "little.json", 1.02, "fused");
    let text = run(&["diff", &a, &slower]).ends_with(4).stdout;
    assert!(text.contains("B is slower than A by more than 5 %."), "{text}");
    let text = run(&["diff", &slower, &a, "--strict"]).ok().stdout;
    assert!(text.contains("B is faster than A by more than 5 %."), "{text}");
    let text = run(&["diff", &a, &little]).ok().stdout;
    assert!(text.contains("There is no difference above 5 %."), "{text}");
    run(&["diff", &a, &little, "--strict"]).ends_with(3);
    run(&["diff", &a, &little, "--threshold", "1%"]).ends_with(4);
    run(&["diff", &a, &slower, "--threshold", "25%"]).ok();
    for wrong in ["5", "-1%", "x%", "NaN%", "inf%"] {
        let flag = format!("--threshold={wrong}");
        run(&["diff", &a, &slower, &flag]).fails(2, &["percentage such as 5%"]);
    }
}

#[test]
fn diff_writes_one_document() {
    let dir = folder();
    let slower = steady(&dir, "slower.json", 3.0, "serial");
    let ran = run(&["diff", V1, &slower, "--json"]);
    assert_eq!(ran.stderr, "");
    let document = ran.json();
    assert_eq!(document["schema"], "pageinit/diff/1");
    assert_eq!(document["label"], "measured");
    let rows = document["rows"].as_array().expect("rows");
    assert_eq!(rows.iter().filter(|row| row["decides"] == true).count(), 9);
    for row in rows {
        let (low, high) = (&row["ci95"][0], &row["ci95"][1]);
        let ratio = row["ratio"].as_f64().expect("a ratio");
        assert!(low.as_f64() <= Some(ratio) && Some(ratio) <= high.as_f64(), "{row}");
    }
}

#[test]
fn records_that_cannot_be_compared_are_told_apart() {
    run(&["diff", V1, ESTIMATE]).fails(1, &["of compare", "of estimate"]);
    let same = run(&["diff", ESTIMATE, ESTIMATE]).ok().stdout;
    assert!(same.contains("A, modelled") && same.contains("no difference above 5 %"), "{same}");
}
