//! Where texts go: data to stdout, talk to stderr.

use super::exit::Failure;
use crate::record::Head;
use crate::warning::Warning;
use serde::Serialize;
use serde_json::ser::Formatter;
use std::io::{self, Write};

/// Writes data to stdout.
pub(super) fn data(text: &str) -> Result<(), Failure> {
    bytes(text.as_bytes())
}

/// Writes data that was made elsewhere to stdout.
pub(super) fn bytes(data: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(data)?;
    Ok(out.flush()?)
}

/// Writes one JSON document to stdout.
pub(super) fn json(document: &impl Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_string_pretty(document).map_err(io::Error::from)?;
    text.push('\n');
    data(&text)
}

/// Writes one JSON document to stdout while it is made: long lists never lie in memory.
pub(super) fn stream(
    schema: &str,
    warnings: &[Warning],
    body: &impl Serialize,
) -> Result<(), Failure> {
    let out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let mut json = serde_json::Serializer::with_formatter(out, Lines::default());
    document(schema, warnings, body).serialize(&mut json).map_err(io::Error::from)?;
    let mut out = json.into_inner();
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

/// A document with what every document begins with, in that order.
#[derive(Debug, Serialize)]
pub(super) struct Document<B> {
    #[serde(flatten)]
    head: Head,
    #[serde(flatten)]
    body: B,
}

/// JSON with one line per field of the document and per item of its lists.
#[derive(Default)]
struct Lines {
    depth: usize,
}

/// Lists deeper than this stay on one line.
const MOST_LINE_DEPTH: usize = 4;

impl Lines {
    fn separate<W: ?Sized + Write>(&self, to: &mut W, first: bool, lines: bool) -> io::Result<()> {
        if !first {
            to.write_all(b",")?;
        }
        if lines {
            to.write_all(b"\n")?;
        }
        Ok(())
    }
}

impl Formatter for Lines {
    fn begin_array<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.depth += 1;
        to.write_all(b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.depth -= 1;
        to.write_all(b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.separate(to, first, self.depth <= MOST_LINE_DEPTH)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.depth += 1;
        to.write_all(b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.depth -= 1;
        to.write_all(if self.depth == 0 { b"\n}" } else { b"}" })
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.separate(to, first, self.depth == 1)
    }
}

/// Puts what every document begins with in front of `body`, an object.
pub(super) fn document<B>(schema: &str, warnings: &[Warning], body: B) -> Document<B> {
    Document { head: Head::new(schema, &argv()).with_warnings(warnings.to_vec()), body }
}

/// The command line as it was given.
pub(super) fn argv() -> Vec<String> {
    std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect()
}

/// Says something to people; a closed stderr is no reason to fail.
pub(super) fn talk(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Shows warnings to people.
pub(super) fn warn(warnings: &[Warning]) {
    for warning in warnings {
        talk(&format!("warning: {warning}"));
    }
}
