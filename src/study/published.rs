//! Published figures: what people have measured and printed on the lists.
//!
//! [`builtin`] gives the project's own set from `fixtures/published/`, typed;
//! [`parse`] reads that form (TOML) or the form in which such figures are exchanged
//! (JSON, a list of records with `measurements`), where [`Kind`] follows from the words
//! of each measurement. Unknown fields are counted; what cannot be read is kept as
//! [`Figure::unread`], and [`Figures::problem`] names line and field of the first.

mod exchange;
mod kernels;
mod loose;
mod salvage;
mod words;

pub(crate) use kernels::{kernel_in_words, kernel_of_figure};
pub(crate) use words::{gigantic_in_words, node_in_words};

use crate::machine::{Arch, assume};
use salvage::{Salvaged, salvage};
use serde::Deserialize;
use serde_json::Value;

/// A set of records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// The records, in the order of the file.
    pub records: Vec<Published>,
    /// Fields that are not known here, and were ignored.
    pub unknown_fields: u64,
    /// The first thing that could not be read, if only a part of the records.
    pub problem: Option<FiguresError>,
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
    /// The base page size in KiB; 0 where the author's words are no size.
    pub page_kib: Option<u64>,
    /// `bare metal`, or what says that it is a guest.
    pub virt: Option<String>,
}

impl Described {
    /// The architecture: x86_64 where the author says nothing, `None` for one without rules.
    pub(crate) fn stated_arch(&self) -> Option<Arch> {
        let words = self.arch.as_deref().unwrap_or_default().trim().to_ascii_lowercase();
        let word = words.split(|c: char| c.is_whitespace() || c == ',').next().unwrap_or_default();
        match word {
            "" | "x86" | "x64" | "intel64" | "em64t" => Some(Arch::X86_64),
            word => assume::arch_of(word),
        }
    }

    /// The processor or machine, unless the author's words are empty.
    pub(crate) fn stated_cpu(&self) -> Option<&str> {
        self.cpu.as_deref().filter(|cpu| !cpu.trim().is_empty())
    }
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
    /// Whether it could not be read, or its record could not.
    #[serde(skip)]
    pub unread: bool,
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
    /// Struct pages that are reserved.
    Reserved,
    /// Memory that is added to a running system.
    Hotplug,
    /// Huge pages are gathered.
    Huge,
    /// A bandwidth, not a time.
    Rate,
    /// Something else.
    #[default]
    Other,
}

/// Why a file of figures cannot be used.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
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
        let text = self.machine.virt.as_deref()?.to_ascii_lowercase();
        let words: Vec<&str> =
            text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty()).collect();
        let has = |of: &[&str]| words.iter().any(|word| of.contains(word));
        match () {
            _ if has(&["none"]) || words == ["no"] => Some(false),
            _ if has(&["guest", "vm", "vms", "virtual", "virtualised", "virtualized", "domu"]) => {
                Some(!has(&["no", "not", "non", "without"]))
            }
            // A provider's bare metal is no guest.
            _ if has(&["bare", "baremetal", "metal", "physical", "native", "host"]) => Some(false),
            _ if has(&["kvm", "qemu", "xen", "vmware", "cloud", "wsl", "wsl2", "ec2"]) => {
                Some(true)
            }
            _ if text.contains("hyper") => Some(true),
            _ => None,
        }
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
        all.problem = all.problem.or(figures.problem);
    }
    all
}

/// Reads a file of figures in either form. A record that cannot be read stays, with
/// figures that are [`Figure::unread`].
///
/// # Errors
/// When it is neither form, there is no record in it, or nothing of any can be read.
pub fn parse(name: &str, text: &str) -> Result<Figures, FiguresError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let json = text.trim_start().starts_with(['[', '{']) && !text.trim_start().starts_with("[[");
    let figures = match json {
        true => exchange::parse(name, text)?,
        false => parse_toml(name, text)?,
    };
    if figures.records.is_empty() {
        return Err(FiguresError::Empty(name.into()));
    }
    let mut all = figures.records.iter().flat_map(|r| &r.figures);
    match &figures.problem {
        Some(problem) if all.all(|f| f.unread) => Err(problem.clone()),
        _ => Ok(figures),
    }
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    record: Vec<Published>,
}

/// The names of the fields that a form of figures files has.
struct Fields {
    record: &'static [&'static str],
    /// Beyond [`MACHINE`].
    machine: &'static [&'static str],
    /// Under which name a record has its figures.
    figures: &'static str,
    figure: &'static [&'static str],
}

/// What both forms say of a machine.
const MACHINE: [&str; 9] = [
    "cpu",
    "arch",
    "nodes",
    "cpus_per_node",
    "cores_per_node",
    "smt",
    "memory_per_node_gib",
    "total_memory_gib",
    "virt",
];

impl Fields {
    /// How many fields of a record are not known.
    fn unknown(&self, record: &Value) -> u64 {
        let figures = record.get(self.figures).and_then(Value::as_array).into_iter().flatten();
        let machine = [&MACHINE, self.machine].concat();
        unknown(record, self.record)
            + record.get("machine").map_or(0, |m| unknown(m, &machine))
            + figures.map(|figure| unknown(figure, self.figure)).sum::<u64>()
    }
}

const TOML: Fields = Fields {
    record: &["id", "source", "kernel", "config", "machine", "figure"],
    machine: &["page_kib"],
    figures: "figure",
    figure: &["kind", "what", "ms", "threads", "sd_ms", "pages", "invalid"],
};

fn parse_toml(name: &str, text: &str) -> Result<Figures, FiguresError> {
    let wrong = |error: toml::de::Error| {
        let at = error.span().map_or(0, |s| s.start);
        field_error(name, text, at, error.message().to_owned())
    };
    let document: toml::Table = toml::from_str(text).map_err(wrong)?;
    // As JSON, one walk serves both forms.
    let document = serde_json::to_value(document).unwrap_or_default();
    let records = document.get("record").and_then(Value::as_array).cloned().unwrap_or_default();
    let unknown_fields =
        unknown(&document, &["record"]) + records.iter().map(|r| TOML.unknown(r)).sum::<u64>();
    match toml::from_str::<File>(text) {
        Ok(file) => Ok(Figures { records: file.record, unknown_fields, problem: None }),
        Err(error) => {
            let records = records.iter().zip(1..).map(|(v, n)| readable(v, n)).collect();
            Ok(Figures { records, unknown_fields, problem: Some(wrong(error)) })
        }
    }
}

/// How many fields of an object are not among those that are known.
fn unknown(value: &Value, known: &[&str]) -> u64 {
    let keys = value.as_object().into_iter().flat_map(|o| o.keys());
    keys.filter(|key| !known.contains(&key.as_str())).count() as u64
}

/// What can be read of the `number`-th record of a TOML file.
fn readable(value: &Value, number: usize) -> Published {
    if let Ok(record) = Published::deserialize(value) {
        return record;
    }
    match salvage::<Published, Figure>(value, "figure", number) {
        Salvaged::Figures(record, figures) => {
            let figures = figures.into_iter().map(|f| f.unwrap_or_else(|unread| unread)).collect();
            Published { figures, ..*record }
        }
        Salvaged::Name(id, figures) => Published { id, figures, ..Published::default() },
    }
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
    fn one_record_that_cannot_be_read_spoils_no_other() {
        let good = r#"{"id": "good", "measurements": [{"what": "deferred init", "time_ms": 5}]}"#;
        let odd = [
            (
                r#"{"id": "x", "machine": {"nodes": "two"}, "measurements": [{"what": "y"}]}"#,
                "nodes",
            ),
            (r#"{"id": "x", "measurements": [{"what": "y", "threads": -1}]}"#, "threads"),
            (r#"{"id": "x", "measurements": 5}"#, "measurements"),
            ("5", ""),
        ];
        for (record, field) in odd {
            let figures = parse("mine.json", &format!("[\n{good},\n{record}\n]")).unwrap();
            let unread = |i: usize| figures.records[i].figures.iter().all(|f| f.unread);
            assert!(!unread(0) && unread(1) && figures.records.len() == 2, "{record}");
            let problem = figures.problem.unwrap().to_string();
            assert!(problem.starts_with("mine.json, line 3"), "{problem}");
            assert!(problem.contains(field), "{problem}");
        }
        let toml = "[[record]]\nid = \"a\"\n[[record.figure]]\nkind = \"boot\"\nwhat = \"b\"\n\
                    [[record]]\nid = \"b\"\nmachine.nodes = \"two\"\n";
        let figures = parse("mine.toml", toml).unwrap();
        assert!(figures.records[1].figures[0].unread && !figures.records[0].figures[0].unread);
        assert!(figures.problem.unwrap().to_string().contains("line 8, field machine.nodes"));
    }

    #[test]
    fn a_byte_order_mark_and_a_record_alone_are_read() {
        let alone = r#"{"id": "x", "measurements": [{"what": "kernel boot", "time_ms": 5}]}"#;
        let nameless = r#"[{"measurements": []}, {"id": 5}]"#;
        let names: Vec<String> =
            parse("x", nameless).unwrap().records.into_iter().map(|r| r.id).collect();
        assert_eq!(names, ["record 1", "5"]);
        for text in [format!("\u{feff}[{alone}]"), alone.into(), format!("\u{feff}{alone}")] {
            assert_eq!(parse("x", &text).unwrap().records[0].id, "x", "{text}");
        }
        assert!(
            parse("x", r#"{"colour": 5}"#).unwrap_err().to_string().contains("list of records")
        );
    }

    #[test]
    fn unknown_fields_of_toml_are_counted() {
        let toml = "colour = 1\n[[record]]\nid = \"x\"\nhat = 2\n[record.machine]\ncpus = 4\n\
                    [[record.figure]]\nkind = \"boot\"\nwhat = \"b\"\nthreds = 4\n";
        assert_eq!(parse("x", toml).unwrap().unknown_fields, 4);
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
        let native = ["bare-metal cloud instance", "not a VM", "none", "KVM host"].map(virt);
        assert_eq!(native, [Some(false); 4]);
        let guests = ["cloud", "Hyper-V", "a guest on a bare-metal host", "WSL2"].map(virt);
        assert_eq!(guests, [Some(true); 4]);
        assert_eq!((virt("not stated"), virt("emulated NVDIMM")), (None, None));
        assert_eq!(Published::default().is_guest(), None);
    }
}
