//! Published figures: what people have measured and printed on the lists.
//!
//! [`builtin`] gives the project's own set from `fixtures/published/`, typed;
//! [`parse`] reads that form (TOML) or the form in which such figures are exchanged
//! (JSON, a list of records with `measurements`), where [`Kind`] follows from the words
//! of each measurement. Unknown fields are counted, wrong types name line and field.

mod exchange;

use serde::Deserialize;

/// A set of records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// The records, in the order of the file.
    pub records: Vec<Published>,
    /// Fields that are not known here, and were ignored.
    pub unknown_fields: u64,
}

/// One publication about one machine.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Published {
    /// A stable name.
    pub id: String,
    /// Who published it, where and when.
    #[serde(default)]
    pub source: String,
    /// The kernel, in the author's words.
    #[serde(default)]
    pub kernel: String,
    /// Its configuration, in the author's words.
    #[serde(default)]
    pub config: String,
    /// The machine.
    #[serde(default)]
    pub machine: Described,
    /// What was measured.
    #[serde(default, rename = "figure")]
    pub figures: Vec<Figure>,
}

/// A machine as far as the publication describes it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Described {
    /// Processor or machine, in the author's words.
    pub cpu: Option<String>,
    /// As `uname -m` writes it.
    pub arch: Option<String>,
    /// NUMA nodes.
    pub nodes: Option<u32>,
    /// Hardware threads of a node.
    pub cpus_per_node: Option<u32>,
    /// Cores of a node.
    pub cores_per_node: Option<u32>,
    /// Hardware threads of a core.
    pub smt: Option<u32>,
    /// Memory of a node in GiB.
    pub memory_per_node_gib: Option<f64>,
    /// Memory of the machine in GiB.
    pub total_memory_gib: Option<f64>,
    /// The base page size in KiB.
    pub page_kib: Option<u64>,
    /// `bare metal`, or what says that it is a guest.
    pub virt: Option<String>,
}

/// One printed figure.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Figure {
    /// What was timed, for the model.
    pub kind: Kind,
    /// What was timed, in the author's words.
    pub what: String,
    /// The time in ms.
    pub ms: Option<f64>,
    /// Threads per node; 0 is the kernel without the change.
    pub threads: Option<u32>,
    /// The standard deviation in ms.
    pub sd_ms: Option<f64>,
    /// Struct pages, printed or counted from the memory.
    pub pages: Option<u64>,
    /// Whether the author or a defect makes it void.
    #[serde(default)]
    pub invalid: bool,
}

/// What a figure times, as far as the model can tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// One node's deferred phase.
    DeferredNode,
    /// The slowest node's deferred phase, or an average node's.
    DeferredSlowest,
    /// The whole boot.
    Boot,
    /// What a change saved of the boot.
    Saving,
    /// The boot CPU zeroes the memmap.
    BootZero,
    /// What zeroing adds to each node's threads.
    NodeZeroExtra,
    /// The boot CPU initialises every page.
    Sweep,
    /// The boot CPU frees every page.
    FreeAll,
    /// What an author expected.
    Expectation,
    /// Struct pages of device memory.
    Device,
    /// Something else.
    #[default]
    Other,
}

/// Why a file of figures cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FiguresError {
    /// Not JSON or TOML, or a field of the wrong type.
    #[error("{name}, line {line}, field {field}: {message}")]
    Field {
        /// The file.
        name: String,
        /// Counted from 1.
        line: usize,
        /// The nearest field's name.
        field: String,
        /// What is wrong, and what was expected.
        message: String,
    },
    /// Nothing in it.
    #[error("{0} holds no record; expected a list of records with id, machine and measurements")]
    Empty(String),
}

impl Published {
    /// Whether it comes from a guest; `None` where the author does not say.
    pub fn is_guest(&self) -> Option<bool> {
        let virt = self.machine.virt.as_deref()?.to_ascii_lowercase();
        let guest = ["guest", "vm", "kvm", "xen", "hyper", "cloud", "wsl"];
        Some(guest.iter().any(|word| virt.contains(word)))
    }
}

/// The project's own set.
pub fn builtin() -> Figures {
    const FILES: [(&str, &str); 5] = [
        ("padata.toml", include_str!("../../fixtures/published/padata.toml")),
        ("zeroing.toml", include_str!("../../fixtures/published/zeroing.toml")),
        ("large-machines.toml", include_str!("../../fixtures/published/large-machines.toml")),
        ("page-init.toml", include_str!("../../fixtures/published/page-init.toml")),
        ("devices.toml", include_str!("../../fixtures/published/devices.toml")),
    ];
    let mut all = Figures::default();
    // A file that does not parse gives nothing; a test below holds them to parsing.
    for figures in FILES.iter().filter_map(|(name, text)| parse(name, text).ok()) {
        all.records.extend(figures.records);
        all.unknown_fields += figures.unknown_fields;
    }
    all
}

/// Reads a file of figures in either form.
///
/// # Errors
/// When it is neither, a field has a wrong type, or there is no record in it.
pub fn parse(name: &str, text: &str) -> Result<Figures, FiguresError> {
    let json = text.trim_start().starts_with(['[', '{']) && !text.trim_start().starts_with("[[");
    let figures = match json {
        true => exchange::parse(name, text)?,
        false => parse_toml(name, text)?,
    };
    if figures.records.is_empty() {
        return Err(FiguresError::Empty(name.into()));
    }
    Ok(figures)
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    record: Vec<Published>,
}

fn parse_toml(name: &str, text: &str) -> Result<Figures, FiguresError> {
    let file: File = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |s| s.start);
        field_error(name, text, at, error.message().to_owned())
    })?;
    Ok(Figures { records: file.record, unknown_fields: 0 })
}

/// An error at a byte of the text, with its line and the field before it.
fn field_error(name: &str, text: &str, at: usize, message: String) -> FiguresError {
    let at = (0..=at.min(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    FiguresError::Field { name: name.into(), line, field: field_before(text, at), message }
}

/// The key of the value at a byte: `"key":` or `key =`.
fn field_before(text: &str, at: usize) -> String {
    let rest_of_line = text[at..].find('\n').map_or(text.len(), |i| at + i);
    let line_start = text[..at].rfind('\n').map_or(0, |i| i + 1);
    let line = &text[line_start..rest_of_line];
    let json = text[..at].rfind("\":").and_then(|end| {
        let start = text[..end].rfind('"')?;
        Some(&text[start + 1..end])
    });
    let toml = line.split_once('=').map(|(key, _)| key.trim());
    json.or(toml).unwrap_or("?").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_projects_own_files_parse() {
        let all = builtin();
        let has = |id: &str| all.records.iter().any(|r| r.id == id);
        assert!(all.records.len() >= 25, "{}", all.records.len());
        assert!(has("padata-v3-skylake") && has("sparc-m7-zeroing") && has("waiman-12tb-v4"));
        assert!(has("duyck-v7") && all.unknown_fields == 0);
        for record in &all.records {
            assert!(!record.source.is_empty() && !record.figures.is_empty(), "{}", record.id);
        }
    }

    #[test]
    fn a_wrong_type_names_line_and_field() {
        let toml = "[[record]]\nid = \"x\"\n[[record.figure]]\nkind = \"boot\"\nwhat = \"b\"\n\
                    ms = \"long\"\n";
        let error = parse("mine.toml", toml).unwrap_err().to_string();
        assert!(error.contains("mine.toml, line 6, field ms"), "{error}");
        let json = "[\n {\"id\": \"x\",\n  \"measurements\": [\n   {\"what\": \"boot\",\n    \
                    \"threads\": \"many\"}]}\n]";
        let error = parse("mine.json", json).unwrap_err().to_string();
        assert!(error.contains("mine.json, line 5, field threads"), "{error}");
        assert!(parse("x", "{\"a\":").unwrap_err().to_string().contains("line 1"));
        assert_eq!(parse("x", ""), Err(FiguresError::Empty("x".into())));
        assert_eq!(parse("x", "[]"), Err(FiguresError::Empty("x".into())));
    }

    #[test]
    fn guests_are_told_from_bare_metal() {
        let virt = |text: &str| {
            let machine = Described { virt: Some(text.into()), ..Described::default() };
            Published { machine, ..Published::default() }.is_guest()
        };
        assert_eq!(
            (virt("kvm guest"), virt("VM"), virt("bare metal")),
            (Some(true), Some(true), Some(false))
        );
        assert_eq!(Published::default().is_guest(), None);
    }
}
