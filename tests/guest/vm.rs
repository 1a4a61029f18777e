//! Starting `scripts/numa-vm.sh` and taking its output apart; what a guest must look like.

use pageinit::record::Record;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// One guest: its nodes as Linux numbers them, which is those with CPUs first.
pub(crate) struct Topology {
    /// MiB and CPUs of each node.
    pub(crate) nodes: &'static [(u64, u32)],
    /// The SLIT; empty for the usual one.
    pub(crate) distances: &'static [&'static [u32]],
}

/// What one command in the guest left.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Step {
    /// The JSON document of a command that succeeded.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.status, 0, "{self:?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// The record of a comparison that succeeded.
    pub(crate) fn record(&self) -> Record {
        serde_json::from_value(self.json()).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// Fails unless the command ended with `status` and said all of `words`.
    pub(crate) fn expect_error(&self, status: i32, words: &[&str]) {
        assert_eq!(self.status, status, "{self:?}");
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} is missing: {self:?}");
        }
    }
}

impl Topology {
    /// The CPUs of a node.
    pub(crate) fn cpus(&self, nid: u32) -> Vec<u32> {
        let before: u32 = self.nodes.iter().take(nid as usize).map(|(_, cpus)| cpus).sum();
        let count = self.nodes.get(nid as usize).map_or(0, |(_, cpus)| *cpus);
        (before..before + count).collect()
    }

    /// The distance between two nodes.
    pub(crate) fn distance(&self, from: usize, to: usize) -> u32 {
        let usual = if from == to { 10 } else { 20 };
        self.distances.get(from).and_then(|row| row.get(to)).copied().unwrap_or(usual)
    }

    /// Boots the guest, runs the named scripts one after another, and hands back what each
    /// left.
    pub(crate) fn run(&self, steps: &[(&str, &str)]) -> BTreeMap<String, Step> {
        self.run_with("", steps)
    }

    /// The same with more words on the kernel's command line.
    pub(crate) fn run_with(&self, append: &str, steps: &[(&str, &str)]) -> BTreeMap<String, Step> {
        let nodes: Vec<String> =
            self.nodes.iter().map(|(mib, cpus)| format!("{}:{cpus}", size(*mib))).collect();
        let mut command = Command::new("scripts/numa-vm.sh");
        command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")));
        command.args(["--timeout", "150", "--nodes", &nodes.join(",")]);
        if !self.distances.is_empty() {
            let row = |row: &&[u32]| row.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
            let rows: Vec<String> = self.distances.iter().map(row).collect();
            command.args(["--distances", &rows.join(";")]);
        }
        if !append.is_empty() {
            command.args(["--append", append]);
        }
        let output = command.args(["--", &script(steps)]).output().expect("numa-vm.sh runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "numa-vm.sh: {}\n{errors}", output.status);
        parse(&output.stdout)
    }
}

fn size(mib: u64) -> String {
    if mib == 0 { "0".into() } else { format!("{mib}M") }
}

/// Runs every step in a shell of its own and frames what it leaves by counts of bytes.
fn script(steps: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (name, step) in steps {
        let _ = write!(
            text,
            "(\n{step}\n) >/tmp/o 2>/tmp/e; s=$?\n\
             echo \"@@ {name} $s $(wc -c </tmp/o) $(wc -c </tmp/e)\"; cat /tmp/o /tmp/e\n"
        );
    }
    text
}

fn parse(mut rest: &[u8]) -> BTreeMap<String, Step> {
    let mut steps = BTreeMap::new();
    while !rest.is_empty() {
        let end = rest.iter().position(|b| *b == b'\n').expect("a line of counts");
        let line = String::from_utf8_lossy(&rest[..end]).into_owned();
        let words: Vec<&str> = line.split(' ').collect();
        let ["@@", name, status, stdout, stderr] = words[..] else { panic!("{line}") };
        let count = |text: &str| text.parse::<usize>().expect("a count");
        let (stdout, stderr) = (count(stdout), count(stderr));
        let text = |from: usize, bytes: usize| {
            String::from_utf8_lossy(&rest[from..from + bytes]).into_owned()
        };
        let begin = end + 1;
        let step = Step {
            status: status.parse().expect("a status"),
            stdout: text(begin, stdout),
            stderr: text(begin + stdout, stderr),
        };
        rest = &rest[begin + stdout + stderr..];
        steps.insert(name.to_owned(), step);
    }
    steps
}
