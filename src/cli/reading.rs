//! Reading what earlier runs wrote: [`text`] reads a file, a pipe or stdin up to a size,
//! [`record`] makes a record of it.

use super::exit::{self, Failure};
use crate::record::any::{AnyRecord, ReadError};
use crate::units::Bytes;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// The largest record that is read. Reports of sweeps with 100 000 points are a third.
pub(super) const MOST_RECORD_BYTES: u64 = 256 << 20;

/// Whether a path stands for stdin.
pub(super) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The text of a file, or of stdin for `-`; `what` is what is expected in it.
///
/// Bytes are counted while they are read: a pipe or a device has no size to ask for.
pub(super) fn text(path: &Path, most_bytes: u64, what: &str) -> Result<String, Failure> {
    let failed = |why: String| failed(path, &why);
    let unreadable = |error: io::Error| match error.kind() {
        ErrorKind::NotFound => failed(format!("no such file; expected {what}")),
        _ => failed(format!("{error}; expected {what}")),
    };
    let stream: Box<dyn Read> = match is_stdin(path) {
        true => Box::new(io::stdin().lock()),
        false => Box::new(File::open(path).map_err(unreadable)?),
    };
    let mut bytes = Vec::new();
    stream.take(most_bytes + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > most_bytes {
        return Err(failed(format!("is larger than {}; expected {what}", Bytes(most_bytes))));
    }
    if bytes.is_empty() {
        return Err(failed(format!("is empty; expected {what}")));
    }
    String::from_utf8(bytes).map_err(|_| failed(format!("is not text; expected {what}")))
}

/// A record of the kind that `pick` takes; `what` is what is expected.
pub(super) fn record<R>(
    path: &Path,
    most_bytes: u64,
    what: &str,
    pick: impl FnOnce(AnyRecord) -> Result<R, AnyRecord>,
) -> Result<R, Failure> {
    let text = text(path, most_bytes, what)?;
    let read = AnyRecord::read(&text).map_err(|why| unusable(path, &why, what))?;
    pick(read)
        .map_err(|other| failed(path, &format!("is {:?}; expected {what}", other.head().schema)))
}

fn unusable(path: &Path, why: &ReadError, what: &str) -> Failure {
    failed(path, &format!("{why}; expected {what}"))
}

/// A failure that names the file.
pub(super) fn failed(path: &Path, why: &str) -> Failure {
    let name = if is_stdin(path) { "stdin".into() } else { path.display().to_string() };
    let clean = crate::report::source::clean;
    Failure::new(exit::FAILED, format!("{}: {}", clean(&name), clean(why)))
}
