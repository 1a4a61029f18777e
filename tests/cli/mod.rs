//! What the tests of the command line share: running the program and judging it.

#![allow(dead_code, reason = "every test binary uses a part of it")]

use serde_json::Value;
use std::ffi::OsStr;
use std::fmt;
use std::process::{Command, Output, Stdio};

/// The program, with an environment in which hwloc describes this host.
pub(crate) fn pageinit() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pageinit"));
    for variable in ["HWLOC_SYNTHETIC", "HWLOC_XMLFILE", "HWLOC_FSROOT", "HWLOC_THISSYSTEM"] {
        command.env_remove(variable);
    }
    command.stdin(Stdio::null());
    command
}

/// What one call of the program left.
pub(crate) struct Ran {
    pub(crate) args: Vec<String>,
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A record is long: its beginning is enough for a message.
impl fmt::Debug for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { args, status, stdout, stderr } = self;
        let shown: String = stdout.chars().take(6000).collect();
        write!(f, "pageinit {args:?} ended with {status:?}\nstdout: {shown}\nstderr: {stderr}")
    }
}

impl Ran {
    pub(crate) fn of(args: &[impl AsRef<OsStr>], output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
        let ran = Self {
            args: args.iter().map(|a| a.as_ref().to_string_lossy().into_owned()).collect(),
            status: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        };
        assert!(!ran.stderr.contains("panicked"), "{ran:?}");
        ran
    }

    /// Checks that the call worked.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        self.ends_with(0)
    }

    #[track_caller]
    pub(crate) fn ends_with(self, status: i32) -> Self {
        assert_eq!(self.status, Some(status), "{self:?}");
        self
    }

    /// Checks that stderr has one error of this status, whose text holds `parts`, and
    /// that there is no data.
    #[track_caller]
    pub(crate) fn fails(self, status: i32, parts: &[&str]) {
        assert_eq!(self.status, Some(status), "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        assert_eq!(self.stderr.matches("error: ").count(), 1, "{self:?}");
        for part in parts {
            assert!(self.stderr.contains(part), "{part:?} is missing in {self:?}");
        }
    }

    /// Stdout as one JSON document.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let parsed = serde_json::from_str(&self.stdout);
        parsed.unwrap_or_else(|error| panic!("no JSON document: {error}; {self:?}"))
    }
}

/// Runs the program.
pub(crate) fn run(args: &[&str]) -> Ran {
    let output = pageinit().args(args).output().expect("the program starts");
    Ran::of(args, output)
}

/// A small comparison that is still windowed: two rounds of 8 MiB.
pub(crate) const SMALL: [&str; 7] = ["compare", "-m", "@vm-2c", "--runs", "2", "--buffer", "8MiB"];

/// Runs a small comparison with more arguments.
pub(crate) fn small(args: &[&str]) -> Ran {
    run(&[&SMALL, args].concat())
}

/// The codes of a document's warnings.
pub(crate) fn warning_codes(document: &Value) -> Vec<&str> {
    let warnings = document["warnings"].as_array().expect("warnings are a list");
    warnings.iter().filter_map(|w| w["code"].as_str()).collect()
}
