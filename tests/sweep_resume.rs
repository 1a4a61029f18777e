//! A sweep that is killed at any moment goes on to the same file, byte for byte.

mod cli;

use cli::{Ran, pageinit};
use pageinit::record::any::AnyRecord;
use pageinit::record::sweep::Sweep;
use pageinit::stats::Rng;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How often the sweep is killed.
const KILLS: usize = 50;

/// How long an undisturbed sweep shall take at least, so that kills find it at work.
const LEAST: Duration = Duration::from_millis(300);

/// A program that has not ended by then hangs.
const PATIENCE: Duration = Duration::from_secs(120);

const FILE: &str = "sweep.json";

/// Folders in which the same command line makes the same record.
struct Place {
    dir: TempDir,
    most_chunks: u32,
}

impl Place {
    fn new(most_chunks: u32) -> Self {
        Self { dir: TempDir::new().expect("a temporary folder"), most_chunks }
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join(FILE)
    }

    /// The sweep, saved as often as possible, to `-o` or `--resume`.
    fn command(&self, flag: &str) -> Command {
        let chunks = format!("128MiB..{}MiB+128MiB", 128 * self.most_chunks);
        let mut command = pageinit();
        command.current_dir(self.dir.path());
        command.args(["sweep", "-m", "@16n-hp-12t", "--kernel", "6.12"]);
        command.args(["--threads", "1..max", "--chunk", &chunks, "--save-every", "0"]);
        command.args([flag, FILE]);
        command
    }

    fn start(&self, flag: &str) -> Child {
        let quiet = || Stdio::null();
        self.command(flag).stdout(quiet()).stderr(quiet()).spawn().expect("the program starts")
    }

    /// Goes on with the record's own arguments, saved once; from the beginning without one.
    fn go_on(&self) {
        if !self.file().exists() {
            self.finish("--resume");
            return;
        }
        let alone = ["sweep", "--resume", FILE, "--save-every", "3600", "--csv"];
        let output = pageinit().current_dir(self.dir.path()).args(alone).output();
        Ran::of(&alone, output.expect("the program starts")).ok();
    }

    fn finish(&self, flag: &str) -> Ran {
        let output = self.command(flag).output().expect("the program starts");
        Ran::of(&["sweep", flag], output).ok()
    }

    /// The record that is there; `None` without a file. Anything else is a failure.
    #[track_caller]
    fn saved(&self) -> Option<Sweep> {
        let text = fs::read_to_string(self.file()).ok()?;
        match AnyRecord::read(&text) {
            Ok(AnyRecord::Sweep(sweep)) => Some(*sweep),
            other => panic!("no record of a sweep: {other:?}"),
        }
    }
}

/// A sweep that is long enough to be disturbed, how long it takes, and its file.
fn undisturbed() -> (u32, Duration, &'static [u8]) {
    static FOUND: OnceLock<(u32, Duration, Vec<u8>)> = OnceLock::new();
    let (most_chunks, took, bytes) = FOUND.get_or_init(long_enough);
    (*most_chunks, *took, bytes)
}

/// Tests of this file one after another: each would disturb the others' timing.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn long_enough() -> (u32, Duration, Vec<u8>) {
    let mut most_chunks = 2;
    loop {
        let place = Place::new(most_chunks);
        let began = Instant::now();
        place.finish("-o");
        let took = began.elapsed();
        if took >= LEAST || most_chunks >= 128 {
            let bytes = fs::read(place.file()).expect("the sweep has saved its record");
            return (most_chunks, took, bytes);
        }
        most_chunks += most_chunks.div_ceil(2);
    }
}

/// Names of a folder's files.
fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("the folder is readable").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_sweep_killed_at_any_moment_goes_on_to_the_same_file() {
    let _alone = alone();
    let (most_chunks, took, whole) = undisturbed();
    let mut rng = Rng::new(20_261_130);
    let (mut absent, mut partial) = (0, 0);
    for kill in 0..KILLS {
        let place = Place::new(most_chunks);
        let mut child = place.start("-o");
        let delay = took.mul_f64(rng.below(1000) as f64 / 1000.0);
        thread::sleep(delay);
        child.kill().expect("the program can be killed");
        child.wait().expect("the program has ended");
        let saved = place.saved();
        absent += usize::from(saved.is_none());
        partial += usize::from(saved.is_some_and(|sweep| !sweep.head.complete));
        // With the same arguments and without any, in turn.
        if kill % 4 == 0 {
            place.finish("--resume");
        } else {
            place.go_on();
        }
        let bytes = fs::read(place.file()).expect("the record is there");
        assert!(bytes == whole, "kill {kill} after {delay:?} left another record");
        assert_eq!(names(place.dir.path()), [FILE]);
    }
    // What kills met depends on the machine; that they met nothing would be no test.
    assert!(absent + partial > 0, "no kill met a sweep at work");
    eprintln!(
        "{KILLS} kills within {took:?}: {absent} before the first save, {partial} in between"
    );
}

#[test]
fn a_sweep_killed_again_and_again_goes_on_to_the_same_file() {
    let _alone = alone();
    let (most_chunks, took, whole) = undisturbed();
    let place = Place::new(most_chunks);
    let mut points = 0;
    for _ in 0..5 {
        let mut child = place.start("--resume");
        thread::sleep(took.mul_f64(0.4));
        child.kill().expect("the program can be killed");
        child.wait().expect("the program has ended");
        let now = place.saved().map_or(0, |sweep| sweep.points.len());
        assert!(now >= points, "{now} points after {points}");
        points = now;
    }
    // Without arguments those of the record hold, once there is one.
    if points > 0 {
        let alone = ["sweep", "--resume", FILE, "--csv"];
        let output = pageinit().current_dir(place.dir.path()).args(alone).output();
        Ran::of(&alone, output.expect("the program starts")).ok();
    } else {
        place.finish("--resume");
    }
    assert!(fs::read(place.file()).expect("the record is there") == whole);
}

#[test]
fn an_interrupted_sweep_ends_with_130_and_goes_on() {
    let _alone = alone();
    let (most_chunks, took, whole) = undisturbed();
    let place = Place::new(most_chunks);
    let mut met = false;
    for part in [0.2, 0.4, 0.6] {
        let _ = fs::remove_file(place.file());
        let child = place.start("-o");
        thread::sleep(took.mul_f64(part));
        let order = format!("kill -s INT {}", child.id());
        let _ = Command::new("sh").args(["-c", &order]).status();
        let ended = wait(child);
        // Before its handler is there, the signal's own action ends the program.
        let Some(status) = ended.status.code() else { continue };
        assert!([0, 130].contains(&status), "{ended:?}");
        let saved = place.saved().expect("a sweep that ends has saved its record");
        assert_eq!(saved.head.complete, status == 0);
        met |= status == 130;
        place.finish("--resume");
        assert!(fs::read(place.file()).expect("the record is there") == whole);
    }
    if !met {
        eprintln!("notice: no signal met a sweep at work");
    }
}

fn wait(mut child: Child) -> Output {
    let began = Instant::now();
    while child.try_wait().is_ok_and(|status| status.is_none()) {
        if began.elapsed() > PATIENCE {
            let _ = child.kill();
            panic!("still runs {PATIENCE:?} after the signal");
        }
        thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().expect("the program has ended")
}

#[test]
fn only_the_same_question_is_resumed() {
    let _alone = alone();
    let place = Place::new(2);
    place.finish("-o");
    let run = |args: &[&str]| {
        let output = pageinit().current_dir(place.dir.path()).args(args).output();
        Ran::of(args, output.expect("the program starts"))
    };
    let sweep = ["sweep", "-m", "@16n-hp-12t", "--kernel", "6.12", "--resume", FILE];
    let before = fs::read(place.file()).expect("the record is there");
    run(&[&sweep[..], &["--threads", "1..9"]].concat())
        .fails(2, &["of another sweep", "its threads: ", "now [1,2,3", "argv"]);
    let others = ["sweep", "-m", "@2n-skylake-768g", "--kernel", "6.12", "--resume", FILE];
    run(&others).fails(2, &["its machine is another than @2n-skylake-768g"]);
    run(&["sweep", "--resume", "none.json"]).fails(2, &["none.json", "is not there"]);
    fs::write(place.dir.path().join("half.json"), &before[..before.len() / 2]).expect("writable");
    run(&["sweep", "--resume", "half.json"]).fails(1, &["half.json", "is not whole JSON"]);
    assert!(fs::read(place.file()).expect("the record is there") == before);
    // One that is complete is shown and left alone.
    let modified = fs::metadata(place.file()).and_then(|m| m.modified()).expect("a time");
    assert!(run(&["sweep", "--resume", FILE]).ok().stdout.contains("knee of"));
    let now = fs::metadata(place.file()).and_then(|m| m.modified()).expect("a time");
    assert_eq!(now, modified);
}
