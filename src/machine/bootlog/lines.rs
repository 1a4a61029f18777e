//! Lines of any length in bounded memory.
//!
//! [`LineReader`] hands out physical lines with their numbers and keeps at most
//! [`MAX_LINE_BYTES`] of each, so that neither a long log nor one endless line
//! needs memory. [`super::join`] puts wrapped lines together.

use std::io::{self, BufRead};

/// What is kept of a line. The kernel's longest command line has 4096 bytes.
pub const MAX_LINE_BYTES: usize = 8192;

/// Reads lines and forgets them again.
#[derive(Debug)]
pub struct LineReader<R> {
    input: R,
    buffer: Vec<u8>,
    number: u64,
}

/// A physical line without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawLine<'b> {
    /// The first [`MAX_LINE_BYTES`] of the line.
    pub bytes: &'b [u8],
    /// Counted from 1.
    pub number: u64,
    /// Whether the line goes on behind `bytes`.
    pub is_cut: bool,
}

impl<R: BufRead> LineReader<R> {
    /// A reader of `input`, which has its own buffer of constant size.
    pub fn new(input: R) -> Self {
        Self { input, buffer: Vec::with_capacity(MAX_LINE_BYTES), number: 0 }
    }

    /// The next line, or `None` at the end.
    pub fn next_line(&mut self) -> io::Result<Option<RawLine<'_>>> {
        self.buffer.clear();
        let (mut seen_any, mut is_cut) = (false, false);
        loop {
            let chunk = match self.input.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if chunk.is_empty() {
                break;
            }
            seen_any = true;
            let end = chunk.iter().position(|&byte| byte == b'\n');
            let part = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or(chunk);
            let room = MAX_LINE_BYTES - self.buffer.len();
            is_cut |= part.len() > room;
            self.buffer.extend_from_slice(part.get(..room).unwrap_or(part));
            let used = end.map_or(chunk.len(), |at| at + 1);
            self.input.consume(used);
            if end.is_some() {
                break;
            }
        }
        if !seen_any {
            return Ok(None);
        }
        self.number += 1;
        Ok(Some(RawLine { bytes: &self.buffer, number: self.number, is_cut }))
    }

    /// Bytes that the reader itself holds now, for tests of the bound.
    pub fn held_bytes(&self) -> usize {
        self.buffer.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, Read};

    fn lines(text: &str, capacity: usize) -> Vec<(u64, String)> {
        let mut reader = LineReader::new(BufReader::with_capacity(capacity, text.as_bytes()));
        let mut out = Vec::new();
        while let Some(line) = reader.next_line().unwrap() {
            out.push((line.number, String::from_utf8_lossy(line.bytes).into_owned()));
        }
        out
    }

    #[test]
    fn lines_are_the_same_whatever_the_chunks() {
        let text = "one\n\nthree\nlast";
        let expected: Vec<_> = text.lines().map(String::from).zip(1u64..).collect();
        for capacity in 1..8 {
            let got: Vec<_> = lines(text, capacity).into_iter().map(|(n, t)| (t, n)).collect();
            assert_eq!(got, expected);
        }
        assert!(lines("", 4).is_empty());
    }

    #[test]
    fn a_log_of_any_length_needs_no_memory() {
        let line = format!("{}\n", "y".repeat(97));
        let mut log: Box<dyn Read> = Box::new(io::empty());
        for part in 0..64 {
            let length = (1 << 20) + part;
            log = Box::new(log.chain(io::repeat(line.as_bytes()[part as usize]).take(length)));
            log = Box::new(log.chain(&b"\n"[..]));
        }
        let mut reader = LineReader::new(BufReader::new(log));
        let (mut lines, mut most) = (0, 0);
        while reader.next_line().unwrap().is_some() {
            lines += 1;
            most = most.max(reader.held_bytes());
        }
        assert_eq!(lines, 64);
        assert!(most <= MAX_LINE_BYTES, "{most}");
    }

    #[test]
    fn one_endless_line_needs_no_memory() {
        let endless = io::repeat(b'x').take(50 << 20);
        let mut reader = LineReader::new(BufReader::new(endless));
        let line = reader.next_line().unwrap().unwrap();
        assert!(line.is_cut && line.bytes.len() == MAX_LINE_BYTES);
        assert!(reader.held_bytes() <= MAX_LINE_BYTES);
        assert!(reader.next_line().unwrap().is_none());
    }
}
