//! What kind of input a text is, by looking at its beginning.
//!
//! [`sniff`] takes the first [`SAMPLE_BYTES`] and counts lines that only one format
//! has. Used by [`super::input`], which reads the whole with the format found.

use super::Format;
use super::bootlog;
use super::text::dequoted;

/// How much of an input is looked at.
pub const SAMPLE_BYTES: usize = 256 * 1024;

/// The format of an input that begins with `bytes`; `None` if nothing tells.
pub fn sniff(bytes: &[u8]) -> Option<Format> {
    if bytes.starts_with(b"\x1f\x8b") || bytes.get(257..262) == Some(b"ustar") {
        return Some(Format::Tarball);
    }
    let text = String::from_utf8_lossy(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes));
    let start = text.trim_start();
    let is_level =
        start.strip_prefix('<').is_some_and(|t| t.starts_with(|c: char| c.is_ascii_digit()));
    if start.starts_with('<') && !is_level {
        return Some(Format::HwlocXml);
    }
    // `lsmem --json` and `lscpu --json` are objects too, with a list of their own name.
    if start.starts_with('{') && start.contains("\"memblock_memory\"") {
        return Some(Format::Facts);
    }
    let mut scores = Scores::default();
    text.lines().take(20_000).for_each(|line| scores.line(line));
    scores.best(bytes)
}

/// Lines that speak for each format.
#[derive(Default)]
struct Scores {
    toml: u32,
    numactl: u32,
    lscpu: u32,
    lsmem: u32,
    iomem: u32,
}

impl Scores {
    fn line(&mut self, line: &str) {
        let text = dequoted(line);
        let mut words = text.split_whitespace();
        let pair = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let third = words.next().unwrap_or("");
        if (pair.0 == "available:" && third.starts_with("node"))
            || (pair.0 == "node" && matches!(third, "cpus:" | "size:"))
        {
            self.numactl += 1;
        } else if text.starts_with("# CPU,")
            || text.starts_with("CPU(s):")
            || text.starts_with("Thread(s) per core:")
            || (text.starts_with("NUMA node") && text.contains("CPU(s):"))
        {
            self.lscpu += 1;
        } else if (pair.0 == "RANGE" && pair.1 == "SIZE")
            || text.starts_with("Memory block size:")
            || text.starts_with("\"range\":")
        {
            self.lsmem += 1;
        } else if is_iomem(text) {
            self.iomem += 1;
        } else if is_toml(line.trim()) {
            self.toml += 1;
        }
    }

    /// The one with most lines; a boot log if it holds any fact of one.
    fn best(&self, bytes: &[u8]) -> Option<Format> {
        let counts = [
            (self.numactl, Format::Numactl),
            (self.lscpu, Format::Lscpu),
            (self.lsmem, Format::Lsmem),
            (self.iomem, Format::Iomem),
        ];
        let best =
            counts.into_iter().max_by_key(|(count, _)| *count).filter(|(count, _)| *count > 0);
        if let Some((_, format)) = best
            && best.is_some_and(|(count, _)| count > 2 || self.toml == 0)
        {
            // A boot log may quote one of these tools; it has many more lines.
            return if self.is_log(bytes) { Some(Format::BootLog) } else { Some(format) };
        }
        if self.is_log(bytes) {
            return Some(Format::BootLog);
        }
        (self.toml > 0).then_some(Format::MachineToml)
    }

    fn is_log(&self, bytes: &[u8]) -> bool {
        bootlog::BootLog::read("", bytes).is_ok_and(|log| !log.boots.is_empty())
    }
}

/// `00100000-bffdffff : System RAM`.
fn is_iomem(text: &str) -> bool {
    let Some((range, _)) = text.split_once(" : ") else { return false };
    let Some((start, end)) = range.split_once('-') else { return false };
    let is_hex = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_hexdigit());
    is_hex(start) && is_hex(end)
}

/// `[[node]]` or `key = value`.
fn is_toml(text: &str) -> bool {
    if let Some(inner) = text.strip_prefix("[[").and_then(|t| t.strip_suffix("]]")) {
        return inner.bytes().all(|b| b.is_ascii_lowercase());
    }
    let Some((key, value)) = text.split_once('=') else { return text == "[nodes]" };
    let key = key.trim();
    let is_key = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let value = value.trim_start();
    is_key && value.starts_with(|c: char| "\"'[{".contains(c) || c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_their_lines() {
        for (text, format) in [
            ("<?xml version=\"1.0\"?>", Format::HwlocXml),
            ("\u{feff} <topology>", Format::HwlocXml),
            ("<6>[    0.1] node 0 deferred pages initialised in 4ms", Format::BootLog),
            ("> [    0.1] Linux version 6.1.0 (a)", Format::BootLog),
            ("kswapd 0 initialised 5 pages in 6ms", Format::BootLog),
            ("# x\narch = \"x86_64\"\n[[node]]\n", Format::MachineToml),
            ("available: 1 nodes (0)\nnode 0 cpus: 0\n", Format::Numactl),
            ("$ numactl -H\n> node 0 size: 5 MB\n", Format::Numactl),
            ("CPU(s):  8\nNUMA node0 CPU(s): 0-7\n", Format::Lscpu),
            ("RANGE    SIZE  STATE\n", Format::Lsmem),
            ("00000000-00000fff : Reserved\n", Format::Iomem),
            ("\x1f", Format::MachineToml),
        ] {
            let found = sniff(text.as_bytes());
            if text.len() > 1 {
                assert_eq!(found, Some(format), "{text}");
            } else {
                assert_eq!(found, None);
            }
        }
        assert_eq!(sniff(b"\x1f\x8b\x08"), Some(Format::Tarball));
        assert_eq!(sniff(b"just some words\nabout boots\n"), None);
    }
}
