//! Finding out what an argument means, and reading it.
//!
//! [`load`] is what `-m MACHINE` does, [`parse_text`] the same for text that comes
//! from elsewhere, for example standard input. The formats themselves are in
//! [`super::file`], [`super::hwloc`], [`super::host`] and [`super::library`].

use super::{Machine, MachineError, file, from_facts, host, hwloc, library, text};
use std::path::Path;

/// The kinds of input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// This host.
    Host,
    /// A machine of the built-in library.
    Library,
    /// hwloc XML.
    HwlocXml,
    /// An hwloc synthetic string.
    Synthetic,
    /// Machine TOML.
    MachineToml,
    /// A captured boot in JSON.
    Facts,
}

/// What a name that is not there must end in to be a file and no synthetic string.
const ENDINGS: [&str; 5] = [".xml", ".toml", ".json", ".log", ".txt"];

/// Reads the machine that `spec` names, or takes it for what `forced` says.
///
/// `host` is this host and `@NAME` a built-in machine. Else it is a file, if there
/// is one, of which the content decides; else an error, if it looks like a path;
/// else a synthetic string.
pub fn load(spec: &str, forced: Option<Format>) -> Result<Machine, MachineError> {
    match forced.or_else(|| named(spec)) {
        Some(Format::Host) => host::load(),
        Some(Format::Library) => library::load(spec),
        Some(Format::Synthetic) => hwloc::from_synthetic(spec),
        Some(format @ (Format::HwlocXml | Format::MachineToml | Format::Facts)) => {
            load_file(spec, Some(format))
        }
        None if looks_like_path(spec) => load_file(spec, None),
        None => hwloc::from_synthetic(spec),
    }
}

/// Reads a machine from text of a file or of a stream called `name`.
///
/// Without `forced` the text decides: one that begins with `<` is XML, with `{` a
/// captured boot, any other is TOML. A forced synthetic string may stand in a file as
/// well; the formats that are no text are taken as not forced.
pub fn parse_text(
    name: &str,
    bytes: &[u8],
    forced: Option<Format>,
) -> Result<Machine, MachineError> {
    let text = text::as_text(name, bytes)?;
    let found = match text.trim_start().bytes().next() {
        Some(b'<') => Format::HwlocXml,
        Some(b'{') => Format::Facts,
        _ => Format::MachineToml,
    };
    match forced {
        Some(Format::Synthetic) => hwloc::from_synthetic(text.trim()),
        Some(Format::HwlocXml) => hwloc::from_xml(name, &text),
        Some(Format::MachineToml) => file::parse(name, &text),
        Some(Format::Facts) => from_facts::parse(name, &text),
        Some(Format::Host | Format::Library) | None => match found {
            Format::HwlocXml => hwloc::from_xml(name, &text),
            Format::Facts => from_facts::parse(name, &text),
            _ => file::parse(name, &text),
        },
    }
}

fn named(spec: &str) -> Option<Format> {
    match spec {
        "host" => Some(Format::Host),
        _ if spec.starts_with('@') => Some(Format::Library),
        _ => None,
    }
}

fn looks_like_path(spec: &str) -> bool {
    let lower = spec.to_ascii_lowercase();
    spec.contains('/') || ENDINGS.iter().any(|e| lower.ends_with(e)) || Path::new(spec).exists()
}

fn load_file(spec: &str, forced: Option<Format>) -> Result<Machine, MachineError> {
    let bytes = text::read(Path::new(spec))?;
    parse_text(spec, &bytes, forced)
}

#[cfg(test)]
#[path = "input_tests.rs"]
mod tests;
