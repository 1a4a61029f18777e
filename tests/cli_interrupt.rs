//! Ctrl-C at any moment leaves a valid record, soon.

mod cli;

use cli::{Ran, pageinit};
use pageinit::record::Record;
use pageinit::record::lab::LabRecord;
use std::fs::File;
use std::io::{Read, Seek};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// More rounds than any test waits for.
const ENDLESS: [&str; 5] = ["compare", "-m", "@2n-skylake-768g", "--runs", "10000"];

/// A program that has not ended by then hangs. Usually it takes a fraction of a second;
/// how long exactly depends on the machine and is no matter of a test.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running program that writes into a file, so that it never waits for a reader.
struct Running {
    args: Vec<String>,
    child: Child,
    stdout: File,
}

impl Running {
    /// Starts the program and waits until it catches SIGINT.
    fn start(args: &[&str]) -> Self {
        let stdout = tempfile::tempfile().expect("a temporary file");
        let mut command = pageinit();
        command.args(args).stderr(Stdio::piped());
        command.stdout(stdout.try_clone().expect("a second handle"));
        let child = command.spawn().expect("the program starts");
        while !catches_interrupt(child.id()) {
            thread::sleep(Duration::from_millis(1));
        }
        Self { args: args.iter().map(|&arg| arg.into()).collect(), child, stdout }
    }

    fn interrupt(&self) {
        // The shell's own `kill`: minimal systems have no program of that name.
        let order = format!("kill -s INT {}", self.child.id());
        let sent = Command::new("sh").args(["-c", &order]).status();
        assert!(sent.is_ok_and(|status| status.success()), "kill failed");
    }

    /// Waits for the end; a program that does not end in time is killed.
    fn end(mut self) -> Ran {
        let began = Instant::now();
        while self.child.try_wait().is_ok_and(|status| status.is_none()) {
            if began.elapsed() > PATIENCE {
                panic!("{:?} still runs {PATIENCE:?} after the signal", self.args);
            }
            thread::sleep(Duration::from_millis(5));
        }
        let status = self.child.wait().expect("the program has ended");
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        self.stdout.rewind().expect("a file can be rewound");
        self.stdout.read_to_end(&mut stdout).expect("a file can be read");
        if let Some(mut pipe) = self.child.stderr.take() {
            pipe.read_to_end(&mut stderr).expect("a pipe can be read");
        }
        Ran::of(&self.args, Output { status, stdout, stderr })
    }
}

impl Drop for Running {
    /// A test that fails must not leave an endless program behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether the process has its handler of SIGINT, the mask's bit 1.
fn catches_interrupt(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = mask.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
    mask.is_none_or(|mask| mask & 2 != 0)
}

/// Interrupts a comparison; checks that it leaves one incomplete document.
fn interrupted_after(delay: Duration, buffer: &str) -> Record {
    let running = Running::start(&[&ENDLESS[..], &["--json", "--buffer", buffer]].concat());
    thread::sleep(delay);
    running.interrupt();
    let ran = running.end().ends_with(130);
    assert_eq!(ran.stderr, "", "{:?}", ran.args);
    let record: Record = serde_json::from_str(&ran.stdout).expect("one valid record");
    assert!(!record.head.complete);
    record
}

#[test]
fn at_any_moment_one_incomplete_record_is_left() {
    for delay_ms in [0, 5, 30, 80, 200, 500, 1000] {
        let record = interrupted_after(Duration::from_millis(delay_ms), "64MiB");
        let runs = record.points.iter().map(|p| p.samples_ns.len()).max().unwrap_or(0);
        assert!(runs < 10_000);
        assert!(record.points.iter().all(|p| p.verified && !p.samples_ns.is_empty()));
    }
}

#[test]
fn during_the_first_touch_of_a_large_buffer_nothing_is_measured_yet() {
    let free = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let free = free.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let free_kib = free.and_then(|text| text.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    if free_kib.is_none_or(|kib| kib < 6 << 20) {
        return eprintln!("notice: less than 6 GiB are free; not tested");
    }
    let record = interrupted_after(Duration::from_millis(150), "3GiB");
    // A quick machine may be done with the touch by then.
    if record.execution.first_touch_ns.is_none() {
        assert!(record.points.is_empty() && record.ratios.is_empty());
        assert_eq!(record.execution.overhead_share, None);
    }
}

#[test]
fn people_get_the_table_of_what_was_done() {
    let running = Running::start(&[&ENDLESS[..], &["--buffer", "16MiB"]].concat());
    thread::sleep(Duration::from_millis(1500));
    running.interrupt();
    let ran = running.end().ends_with(130);
    let said = ["INCOMPLETE", "Nothing was measured"];
    assert!(said.iter().any(|text| ran.stdout.contains(text)), "{ran:?}");
}

#[test]
fn every_experiment_leaves_an_incomplete_record() {
    let experiments: [&[&str]; 4] = [
        &["prefetch", "--buffer", "4MiB"],
        &["clear-huge", "--buffer", "4MiB", "--no-gigantic", "--no-settings"],
        &["mremap", "--size", "64MiB"],
        &["pte-scan", "--size", "64MiB", "--no-settings"],
    ];
    for experiment in experiments {
        for delay_ms in [0, 40, 400] {
            let endless = ["--runs", "100000", "--json"];
            let running = Running::start(&[&["lab"], experiment, &endless].concat());
            thread::sleep(Duration::from_millis(delay_ms));
            running.interrupt();
            let ran = running.end().ends_with(130);
            assert_eq!(ran.stderr, "", "{:?}", ran.args);
            let record: LabRecord = serde_json::from_str(&ran.stdout).expect("one valid record");
            assert!(!record.head.complete);
            assert!(record.points.iter().all(|p| !p.samples_ns.is_empty()));
        }
    }
}
