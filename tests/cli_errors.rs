//! Every wrong call ends in its exit status with one message that says what to do.

mod cli;

use cli::{Ran, pageinit, run, small, warning_codes};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn file(dir: &TempDir, name: &str, content: &[u8]) -> PathBuf {
    let path = dir.path().join(name);
    fs::write(&path, content).expect("the temporary folder is writable");
    path
}

fn machine(path: &Path) -> Ran {
    run(&["machine", "-m", path.to_str().expect("a temporary path is UTF-8")])
}

#[test]
fn files_that_cannot_be_read_are_named() {
    run(&["machine", "-m", "no-such.xml"]).fails(1, &["no-such.xml: no such file", "expected"]);
    let empty = TempDir::new().expect("a temporary folder");
    machine(empty.path()).fails(1, &[&empty.path().to_string_lossy()]);
    // Reading it fails even for root.
    run(&["machine", "-m", "/proc/self/mem"]).fails(1, &["/proc/self/mem: "]);
    run(&["compare", "-m", "no/such.toml"]).fails(1, &["no/such.toml: no such file"]);
}

#[test]
fn logs_that_are_not_there_are_no_machines() {
    let dir = TempDir::new().expect("a temporary folder");
    let logs = "node 0 initialised, 9 pages in 9ms\n".repeat(3);
    let logs = file(&dir, "three.log", logs.as_bytes()).display().to_string();
    let times = |boot| run(&["machine", "-m", &logs, "--init-times", "--boot", boot]);
    times("4").fails(2, &["three.log holds 3 boots", "--boot N"]);
    times("3").ok();
    run(&["validate", "--boot-log", "nofile"]).fails(1, &["nofile: no such file", "a boot log"]);
}

#[test]
fn files_with_other_content_are_named_with_the_line() {
    let dir = TempDir::new().expect("a temporary folder");
    let hwloc = "<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n\
                 <topology version=\"2.0\">\n<object type=\"Machine\"";
    for (name, content, parts) in [
        ("empty.xml", "", ["empty.xml", "is empty"]),
        ("other.xml", "<?xml version=\"1.0\"?>\n<svg/>", ["other.xml:2: ", "lstopo"]),
        ("cut.xml", hwloc, ["cut.xml:4: ", "not complete"]),
        ("broken.toml", "name = 3\n[[node", ["broken.toml:2", ""]),
        ("other.toml", "[package]\nname = \"x\"\n", ["other.toml", ""]),
    ] {
        machine(&file(&dir, name, content.as_bytes())).fails(1, &parts);
    }
    machine(&file(&dir, "binary.toml", b"\x7fELF\0\0\xff")).fails(1, &["binary.toml"]);
}

#[test]
fn machines_that_are_wrongly_named_are_usage_errors() {
    run(&["machine", "-m", "pack:2 [numa"]).fails(2, &["pack:2 [numa", "write for example"]);
    run(&["machine", "-m", "nonsense"]).fails(2, &["nonsense", "write for example"]);
    run(&["machine", "-m", ""]).fails(2, &["write for example"]);
    run(&["machine", "-m", "@vm-2"]).fails(2, &["@vm-2", "did you mean @vm-2c?", "@16n-hp-12t"]);
    run(&["machine", "-m", "@qqqqqqqq"]).fails(2, &["@qqqqqqqq", "there are: @"]);
}

#[test]
fn unknown_arguments_are_named() {
    run(&["machine", "--jsn"]).fails(2, &["'--jsn'", "'--json'"]);
    run(&["comparee"]).fails(2, &["'comparee'", "'compare'"]);
    run(&["compare", "--format", "yaml"]).fails(2, &["'yaml'", "--format", "synthetic"]);
}

#[test]
fn values_out_of_range_are_named_with_their_flag() {
    for (flag, value, remedy) in [
        ("--buffer", "8", "8MiB"),
        ("--buffer", "64GB", "write 64GiB"),
        ("--buffer", "1KiB", "KiB or more"),
        ("--buffer", "many", "write for example"),
        ("--threads", "0", "1..=65536"),
        ("--runs", "0", "1..=10000"),
        ("--runs", "three", "--help"),
        ("--seed", "x", "--help"),
        ("--chunk", "3MiB", "multiple"),
        ("--chunk", "0MiB", "multiple"),
        ("--kernel", "3.10", "from 4.1"),
        ("--kernel", "abc", "write for example"),
    ] {
        run(&["compare", flag, value]).fails(2, &[flag, remedy]);
    }
}

#[test]
fn unknown_strategies_and_stores_get_suggestions() {
    small(&["--strategies", "defered"]).fails(2, &["defered", "\"deferred\"?", "fused-nt"]);
    small(&["--strategies", ""]).fails(2, &["no strategy is called \"\"", "prezero"]);
    small(&["--stores", "portabel"]).fails(2, &["portabel", "\"portable\"?", "unrolled"]);
    small(&["--strategies", "deferred", "--stores", "portable"])
        .fails(2, &["portable fits none of deferred", "pageinit strategies"]);
}

#[test]
fn a_store_that_this_cpu_lacks_is_not_supported() {
    let listed = run(&["strategies", "--json"]).ok().json();
    let stores = listed["stores"].as_array().expect("a list of stores");
    let Some(lacking) = stores.iter().find(|s| s["available"] == false) else {
        return eprintln!("notice: this CPU has every store; not tested");
    };
    let (name, needs) = (lacking["store"].as_str(), lacking["needs"].as_str());
    let parts = [name.expect("a name"), needs.expect("a feature"), "it has portable"];
    small(&["--stores", parts[0]]).fails(7, &parts);
}

#[test]
fn more_threads_than_cpus_need_permission() {
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let threads = (cpus + 1).to_string();
    small(&["--threads", &threads]).fails(2, &["--threads", &threads, "CPUs", "--oversubscribe"]);
    let args = ["--strategies", "deferred", "--oversubscribe", "--json", "--threads", &threads];
    let most = |ran: &Ran| {
        let record = ran.json();
        let phases = record["plans"][0]["phases"].as_array().expect("phases").clone();
        phases.iter().filter_map(|phase| phase["threads"].as_u64()).max()
    };
    // The window has 64 such chunks, and a thread without one is not started.
    let fine = small(&[&args[..], &["--chunk", "4MiB"]].concat()).ok();
    assert_eq!(most(&fine), Some((cpus + 1).min(64)), "{fine:?}");
    let coarse = small(&args).ok();
    let idle = warning_codes(&coarse.json()).contains(&"idle-threads");
    assert_eq!(idle, most(&coarse) < Some(cpus + 1), "{coarse:?}");
}

#[test]
fn a_buffer_beyond_the_memory_says_how_much_there_is() {
    run(&["compare", "--buffer", "900TiB"])
        .fails(6, &["--buffer needs 900 TiB", "only", "MemAvailable", "use a smaller --buffer"]);
}

#[test]
fn hwloc_made_to_describe_another_machine_is_refused() {
    for verb in ["compare", "machine"] {
        let output = pageinit().arg(verb).env("HWLOC_SYNTHETIC", "pack:2 core:2 pu:2").output();
        let ran = Ran::of(&[verb], output.expect("the program starts"));
        ran.fails(7, &["hwloc", "another machine", "HWLOC_SYNTHETIC", "unset"]);
    }
}

/// A control group of this test, with a memory limit; removed when it is dropped.
struct Group(PathBuf);

impl Group {
    /// `None` where this process may not make one.
    fn new(limit_bytes: u64) -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let path_of = |line: &str| line.rsplit(':').next().map(|p| p.trim_matches('/').to_owned());
        let v1 = own.lines().find(|l| l.contains(":memory:")).and_then(path_of);
        let v2 = own.lines().find(|l| l.starts_with("0::")).and_then(path_of);
        let mount = Path::new("/sys/fs/cgroup");
        let places = [
            (v1.map(|p| mount.join("memory").join(p)), "memory.limit_in_bytes"),
            (v2.map(|p| mount.join(p)), "memory.max"),
        ];
        places.into_iter().find_map(|(parent, limit)| {
            let group = Self(parent?.join(format!("pageinit-test-{}", std::process::id())));
            fs::create_dir(&group.0).ok()?;
            // Without the controller the kernel has not made this file: `write` would
            // then fail, and the folder goes again.
            fs::write(group.0.join(limit), limit_bytes.to_string()).ok()?;
            Some(group)
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_cgroup_limit_is_respected_and_named() {
    let Some(group) = Group::new(256 << 20) else {
        return eprintln!("notice: no control group can be made here; not tested");
    };
    let script = r#"echo $$ > "$1/cgroup.procs" && shift && exec "$@""#;
    let program = env!("CARGO_BIN_EXE_pageinit");
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", script, "sh"]).arg(&group.0).arg(program);
    let output = shell.args(["compare", "--buffer", "512MiB"]).output().expect("sh starts");
    let ran = Ran::of(&["compare"], output);
    if ran.stderr.contains("cgroup.procs") {
        return eprintln!("notice: this process may not join a control group; not tested");
    }
    ran.fails(6, &["--buffer needs 512 MiB", "the cgroup's memory limit is 256 MiB"]);
}

// node 0: CPUs and memory   node 1: memory   node 2: CPUs
const ODD_NODES: &str = r#"
title = "a node without CPUs and one without memory"
arch = "x86_64"
[[node]]
id = 0
memory = "4GiB"
cpus = "0-1"
[[node]]
id = 1
memory = "4GiB"
[[node]]
id = 2
cpus = "2-3"
"#;

#[test]
fn nodes_without_cpus_or_without_memory_are_executed() {
    let dir = TempDir::new().expect("a temporary folder");
    let odd = file(&dir, "odd.toml", ODD_NODES.as_bytes());
    let odd = odd.to_str().expect("a temporary path is UTF-8");
    let shown = run(&["machine", "-m", odd, "--json"]).ok().json();
    assert_eq!(shown["nodes"].as_array().map(Vec::len), Some(3));
    let args = ["compare", "-m", odd, "--runs", "2", "--buffer", "8MiB", "--json"];
    let record = run(&args).ok().json();
    let nodes = record["machine"]["nodes"].as_array().expect("nodes");
    assert_eq!(nodes.len(), 2, "only nodes with memory have struct pages: {nodes:?}");
    assert_eq!(nodes[1]["cpu_count"], 0);
    assert_eq!(record["complete"], true);
}
