//! Reading an input file: whole, bounded, and as text.
//!
//! [`open`] and [`read_all`] give the bytes of a file and [`as_text`] makes text of bytes, from a
//! file or from standard input. Both refuse what no front end could read, with
//! words for people. Used by [`super::input`].

use super::MachineError;
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// The largest input that is read.
pub const MAX_INPUT_BYTES: u64 = 64 << 20;

/// Opens a file for reading.
pub fn open(path: &Path) -> Result<fs::File, MachineError> {
    let unreadable =
        |problem: &str| MachineError::Unreadable { path: path.into(), problem: problem.into() };
    let from_io = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => MachineError::NoSuchFile { path: path.into() },
        ErrorKind::PermissionDenied => unreadable("permission denied; make the file readable"),
        _ => unreadable(&error.to_string()),
    };
    let kind = fs::metadata(path).map_err(from_io)?.file_type();
    if kind.is_dir() {
        return Err(unreadable("is a directory; expected a file"));
    }
    fs::File::open(path).map_err(from_io)
}

/// Reads a stream of at most [`MAX_INPUT_BYTES`]. `name` is for errors.
pub fn read_all(name: &str, stream: impl Read) -> Result<Vec<u8>, MachineError> {
    let unreadable = |problem: String| MachineError::Unreadable { path: name.into(), problem };
    let mut bytes = Vec::new();
    let read = stream.take(MAX_INPUT_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|e| unreadable(e.to_string()))?;
    if bytes.len() as u64 > MAX_INPUT_BYTES {
        return Err(unreadable("is larger than 64 MiB, which no machine description is".into()));
    }
    Ok(bytes)
}

/// Makes text of bytes: drops a byte order mark and replaces what is not UTF-8.
///
/// hwloc's XML may hold firmware strings in any encoding, so that a stray byte is
/// no reason to refuse a file; NUL bytes and UTF-16 are. `name` is for errors.
pub fn as_text(name: &str, bytes: &[u8]) -> Result<String, MachineError> {
    let wrong = |problem: &str| Err(MachineError::content(name, None, problem));
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return wrong("is UTF-16 text; convert it to UTF-8, for example with iconv");
    }
    if bytes.contains(&0) {
        return wrong("is a binary file; expected a text that describes a machine");
    }
    let text = String::from_utf8_lossy(bytes).into_owned();
    if text.trim().is_empty() {
        return wrong("is empty; expected a text that describes a machine");
    }
    Ok(text)
}

/// A line without the `> ` of mails and the blanks around it.
pub(super) fn dequoted(line: &str) -> &str {
    let mut rest = line.trim();
    while let Some(inner) = rest.strip_prefix('>') {
        rest = inner.trim_start();
    }
    rest
}

/// A size as other programs print it: `128M`, `15.6G`, `1.00 GiB`, `58458112 kB`.
/// All units are binary, as in the kernel and in util-linux; without one it is bytes.
pub fn size(text: &str) -> Option<u64> {
    let text = text.trim();
    let cut = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(cut)?;
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        "p" | "pb" | "pib" => 50,
        _ => return None,
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(1 << shift);
    }
    let value = number.parse::<f64>().ok()? * (1u64 << shift) as f64;
    (value < (1u64 << 63) as f64).then_some(value as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem_of(bytes: &[u8]) -> String {
        as_text("f", bytes).unwrap_err().to_string()
    }

    #[test]
    fn what_is_not_text_is_refused_in_words() {
        assert!(problem_of(b"\xff\xfe<\0").contains("UTF-16"));
        assert!(problem_of(b"\x7fELF\0\0").contains("binary"));
        assert!(problem_of(b" \n").contains("empty"));
        assert_eq!(as_text("f", b"\xef\xbb\xbfa\xff").unwrap(), "a\u{fffd}");
    }

    #[test]
    fn sizes_of_other_programs() {
        assert_eq!(size("128M"), Some(128 << 20));
        assert_eq!(size(" 1.50 GiB"), Some(3 << 29));
        assert_eq!(size("58458112 kB"), Some(58_458_112 << 10));
        assert_eq!(size("0B"), Some(0));
        assert_eq!(size("7"), Some(7));
        for wrong in ["", "x", "1.2.3G", "5Q", "99999999999999P"] {
            assert_eq!(size(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn directories_and_missing_files_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let error = open(dir.path()).unwrap_err();
        assert!(error.to_string().contains("is a directory"), "{error}");
        let error = open(&dir.path().join("nothing.xml")).unwrap_err();
        assert!(matches!(error, MachineError::NoSuchFile { .. }), "{error}");
    }

    #[test]
    fn a_huge_file_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("huge");
        fs::File::create(&path).unwrap().set_len(MAX_INPUT_BYTES + 1).unwrap();
        let file = open(&path).unwrap();
        assert!(read_all("huge", file).unwrap_err().to_string().contains("64 MiB"));
    }
}
