//! Boot logs: what kernels say about memory while they boot, in any form people
//! send it.
//!
//! [`BootLog::read`] reads a log of any length in a stream: [`lines`] cuts it, the
//! private modules clean and join lines and split boots, [`parse`] reads facts into
//! [`Boot`]s. [`times`] makes [`InitTime`]s with their caveats, [`evidence`] turns a
//! boot into evidence for a machine, [`explain`] lists every fact with its line. [`quoted`]
//! finds a `numactl -H` text in the same file.

pub mod boot;
mod clean;
mod collect;
mod cpu_lists;
pub mod evidence;
pub mod explain;
pub mod facts;
mod join;
pub mod lines;
pub mod memblock;
mod parse;
pub mod quoted;
mod stamps;
pub mod times;

pub use boot::{Boot, Fact, InitForm, Sign};
pub use times::{Caveat, InitTime};

use super::MachineError;
use collect::Collector;
use join::Joiner;
use lines::LineReader;
use quoted::Quoted;
use std::io::BufRead;

/// Everything that a log says, boot by boot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BootLog {
    /// The boots in the order of the file; those without any fact are left out.
    pub boots: Vec<Boot>,
    /// Physical lines of the input.
    pub lines: u64,
    /// Boots beyond those that are kept.
    pub dropped_boots: u64,
    /// A `numactl -H` text in the same file.
    pub numactl: Quoted,
}

/// So many NUL bytes in one line are no damage of a serial line, but another format.
const MOST_NULS: usize = 8;

impl BootLog {
    /// Reads a log. `name` is for errors.
    ///
    /// Memory stays bounded whatever the length: a line keeps
    /// [`lines::MAX_LINE_BYTES`], lists of facts have limits of their own.
    ///
    /// # Errors
    ///
    /// The input cannot be read, or is no text.
    pub fn read(name: &str, input: impl BufRead) -> Result<Self, MachineError> {
        let mut reader = LineReader::new(input);
        let mut joiner = Joiner::default();
        let mut collector = Collector::default();
        let mut numactl = Quoted::default();
        let mut lines = 0;
        loop {
            let failed = |e: std::io::Error| MachineError::content(name, None, e.to_string());
            let Some(line) = reader.next_line().map_err(failed)? else { break };
            lines = line.number;
            check(name, line.bytes, line.number)?;
            let text = match std::str::from_utf8(line.bytes) {
                Ok(text) => std::borrow::Cow::Borrowed(text),
                Err(_) => String::from_utf8_lossy(line.bytes),
            };
            numactl.take(&text, line.number);
            joiner.push(&text, line.number, &mut |message| collector.take(&message));
        }
        joiner.flush(&mut |message| collector.take(&message));
        let (boots, dropped_boots) = collector.finish();
        Ok(Self { boots, lines, dropped_boots, numactl })
    }
}

/// Refuses what is no text.
fn check(name: &str, line: &[u8], number: u64) -> Result<(), MachineError> {
    let wrong = |problem: &str| {
        Err(MachineError::content(name, usize::try_from(number).ok(), problem.to_owned()))
    };
    if number == 1 && (line.starts_with(b"\xff\xfe") || line.starts_with(b"\xfe\xff")) {
        return wrong("is UTF-16 text; convert it to UTF-8, for example with iconv");
    }
    // Most lines have none, which a search for one byte tells fastest.
    if line.contains(&0) && line.iter().filter(|&&b| b == 0).count() >= MOST_NULS {
        return wrong("has NUL bytes: this is a binary file or UTF-16, expected a boot log");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
