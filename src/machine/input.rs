//! Finding out what arguments mean, and reading them.
//!
//! [`Request::load`] is what `-m MACHINE …` does: it reads every input, joins their
//! [`Evidence`] and completes the machine. [`load`] is the same for one input,
//! [`parse_text`] for text that comes from elsewhere. The formats themselves are in
//! the modules named in [`super`], [`super::sniff`] tells them apart.

use super::bootlog::{Boot, BootLog};
use super::evidence::{Answers, Evidence, Explained, combine, complete};
use super::numactl;
use super::{Machine, MachineError, file, from_facts, host, hwloc, iomem, library, lscpu};
use super::{sniff, sysfs_tree, text};
use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::path::Path;
use std::sync::Arc;

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
    /// A boot log in any form.
    BootLog,
    /// The text of `numactl -H`.
    Numactl,
    /// The text of `lscpu`.
    Lscpu,
    /// The text of `lsmem`.
    Lsmem,
    /// `/proc/iomem`.
    Iomem,
    /// A folder with a copy of `/sys`.
    SysfsTree,
    /// A tarball of one.
    Tarball,
}

/// Inputs of one machine, and what is said beside them.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The arguments of `-m`; `-` is standard input.
    pub specs: Vec<String>,
    /// What all of them are, instead of looking.
    pub format: Option<Format>,
    /// Which boot of a log with several, counted from 1.
    pub boot: Option<usize>,
    /// What the user says.
    pub answers: Answers,
}

/// A machine and where its facts came from.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The machine.
    pub machine: Machine,
    /// Every fact with its place; empty for an input that describes itself.
    pub explained: Vec<Explained>,
    /// The boot that was meant, where exactly one input is a boot log.
    pub boot: Option<Box<Boot>>,
}

/// What became of one input.
enum Content {
    Whole(Box<Machine>),
    Parts(Box<Evidence>),
    Log(BootLog),
}

/// What a name that is not there must end in to be a file and no synthetic string.
const ENDINGS: [&str; 9] =
    [".xml", ".toml", ".json", ".log", ".txt", ".tar", ".gz", ".tgz", ".dmesg"];

/// Reads the machine that `spec` names, or takes it for what `forced` says.
///
/// `host` is this host, `@NAME` a built-in machine and `-` standard input. Else it
/// is a file or folder, if there is one, of which the content decides; else an
/// error, if it looks like a path; else a synthetic string.
pub fn load(spec: &str, forced: Option<Format>) -> Result<Machine, MachineError> {
    let request = Request { specs: vec![spec.into()], format: forced, ..Request::default() };
    request.load().map(|loaded| loaded.machine)
}

/// Reads a machine from text of a file or of a stream called `name`.
///
/// Without `forced` the text decides. A forced synthetic string may stand in a file
/// as well; the formats that are no text are taken as not forced.
pub fn parse_text(
    name: &str,
    bytes: &[u8],
    forced: Option<Format>,
) -> Result<Machine, MachineError> {
    let content = read_content(name, bytes, forced)?;
    Request::default().finish(name, vec![(name.into(), content)]).map(|loaded| loaded.machine)
}

impl Request {
    /// Reads all inputs and makes the machine.
    ///
    /// # Errors
    ///
    /// An input cannot be read, two contradict each other, or something is missing
    /// that cannot be assumed.
    pub fn load(&self) -> Result<Loaded, MachineError> {
        let read = |spec: &String| Ok((spec.clone(), self.read(spec)?));
        let contents: Result<Vec<_>, MachineError> = self.specs.iter().map(read).collect();
        self.finish(&self.specs.join(" and "), contents?)
    }

    /// The boot logs among the inputs, whether they hold a machine or not.
    ///
    /// # Errors
    ///
    /// An input cannot be read, or none is a boot log.
    pub fn logs(&self) -> Result<Vec<(String, BootLog)>, MachineError> {
        let mut logs = Vec::new();
        for spec in &self.specs {
            if let Content::Log(log) = self.read(spec)? {
                logs.push((spec.clone(), log));
            }
        }
        if logs.is_empty() {
            let problem = "holds no boot log; expected one, as dmesg or journalctl -k print it";
            return Err(MachineError::content(&self.specs.join(" and "), None, problem));
        }
        Ok(logs)
    }

    fn read(&self, spec: &str) -> Result<Content, MachineError> {
        let whole = |machine: Machine| Content::Whole(Box::new(machine));
        match self.format.or_else(|| named(spec)) {
            Some(Format::Host) => host::load().map(whole),
            Some(Format::Library) => library::load(spec).map(whole),
            None if spec == "-" => read_stream("-", std::io::stdin().lock(), None),
            Some(format) if spec == "-" => read_stream("-", std::io::stdin().lock(), Some(format)),
            Some(Format::Synthetic) => hwloc::from_synthetic(spec).map(whole),
            Some(format) => read_file(spec, Some(format)),
            None if looks_like_path(spec) => read_file(spec, None),
            None => hwloc::from_synthetic(spec).map(whole),
        }
    }

    fn finish(&self, name: &str, contents: Vec<(String, Content)>) -> Result<Loaded, MachineError> {
        if let [(_, Content::Whole(machine))] = contents.as_slice()
            && self.answers == Answers::default()
        {
            let machine = (**machine).clone();
            return Ok(Loaded { machine, explained: Vec::new(), boot: None });
        }
        let (mut evidence, mut boots) = (Vec::new(), Vec::new());
        for (spec, content) in contents {
            match content {
                Content::Whole(machine) => evidence.push(Evidence::of_machine(&machine)),
                Content::Parts(parts) => evidence.push(*parts),
                Content::Log(log) => {
                    let boot = self.one(&spec, &log)?;
                    boots.push(Box::new(boot.clone()));
                    evidence.push(super::bootlog::evidence::evidence(&spec, boot)?);
                    // A mail may hold both: as if the two were files of their own.
                    if !log.numactl.is_empty() {
                        evidence.push(numactl::parse_lines(&spec, log.numactl.lines())?);
                    }
                }
            }
        }
        let boot = boots.pop().filter(|_| boots.is_empty());
        let evidence = combine(evidence)?;
        let mut machine = complete(name, &evidence, &self.answers)?;
        boot.iter().for_each(|boot| super::bootlog::facts::share_cpus(boot, &mut machine));
        let facts = boot.as_ref().filter(|boot| is_of(name, boot, &machine));
        let facts = facts.and_then(|boot| super::bootlog::facts::facts(boot, &machine));
        machine.boot = facts.map(Arc::new);
        Ok(Loaded { machine, explained: evidence.explain(), boot })
    }

    /// The machine of one boot of the log called `name`.
    ///
    /// # Errors
    ///
    /// The boot contradicts itself, or something is missing that cannot be assumed.
    pub fn of_boot(&self, name: &str, boot: &Boot) -> Result<Machine, MachineError> {
        let evidence = combine(vec![super::bootlog::evidence::evidence(name, boot)?])?;
        let mut machine = complete(name, &evidence, &self.answers)?;
        super::bootlog::facts::share_cpus(boot, &mut machine);
        Ok(machine)
    }

    /// The boot of a log that is meant.
    ///
    /// # Errors
    ///
    /// The log holds none, or several and none of them is chosen.
    pub fn one<'l>(&self, input: &str, log: &'l BootLog) -> Result<&'l Boot, MachineError> {
        let several = || MachineError::SeveralBoots {
            input: input.into(),
            boots: log.boots.iter().take(20).map(Boot::summary).collect(),
        };
        match (log.boots.as_slice(), self.boot) {
            ([], _) => {
                let problem = "there is no line that a kernel prints about memory, nodes or CPUs";
                Err(MachineError::content(input, None, problem))
            }
            ([only], None) => Ok(only),
            (_, None) => Err(several()),
            (boots, Some(number)) => {
                number.checked_sub(1).and_then(|i| boots.get(i)).ok_or_else(several)
            }
        }
    }
}

/// Whether what memblock said in `boot` is true of `machine`: another input or an answer
/// may have filled gaps, but its nodes and their memory are still the log's.
fn is_of(name: &str, boot: &Boot, machine: &Machine) -> bool {
    let answers = Answers { arch: Some(machine.arch), ..Answers::default() };
    let Ok(own) = (Request { answers, ..Request::default() }).of_boot(name, boot) else {
        return false;
    };
    let memory =
        |m: &Machine| -> Vec<_> { m.nodes.iter().map(|n| (n.nid, n.memory.clone())).collect() };
    own.page_bytes == machine.page_bytes && memory(&own) == memory(machine)
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

fn read_file(spec: &str, forced: Option<Format>) -> Result<Content, MachineError> {
    let path = Path::new(spec);
    if path.is_dir() {
        return match forced {
            None | Some(Format::SysfsTree) => {
                sysfs_tree::folder(path).map(|parts| Content::Parts(Box::new(parts)))
            }
            Some(_) => Err(MachineError::Unreadable {
                path: path.into(),
                problem: "is a directory; only sysfs-tree can be one".into(),
            }),
        };
    }
    let file: File = text::open(path)?;
    read_stream(spec, file, forced)
}

/// Reads a stream: the beginning decides, a log is then read on piece by piece.
fn read_stream(
    name: &str,
    mut stream: impl Read,
    forced: Option<Format>,
) -> Result<Content, MachineError> {
    let unreadable = |e: std::io::Error| MachineError::content(name, None, e.to_string());
    let mut head = Vec::new();
    let sample = sniff::SAMPLE_BYTES as u64;
    stream.by_ref().take(sample).read_to_end(&mut head).map_err(unreadable)?;
    let is_whole = (head.len() as u64) < sample;
    let found = forced.or_else(|| sniff::sniff(&head));
    if found.is_none() {
        // Refuses what is no text before anything endless is read.
        text::as_text(name, &head)?;
    }
    let rest = Cursor::new(head).chain(stream);
    match found {
        Some(Format::BootLog) => BootLog::read(name, BufReader::new(rest)).map(Content::Log),
        Some(Format::Tarball) => tarball(name, rest),
        // No format but a log begins with so much that says nothing.
        None if !is_whole => BootLog::read(name, BufReader::new(rest)).map(Content::Log),
        found => read_content(name, &text::read_all(name, rest)?, found),
    }
}

fn tarball(name: &str, bytes: impl Read) -> Result<Content, MachineError> {
    let mut bytes = BufReader::new(bytes);
    let head = std::io::BufRead::fill_buf(&mut bytes);
    let is_gzip = head.is_ok_and(|head| head.starts_with(b"\x1f\x8b"));
    sysfs_tree::tarball(name, bytes, is_gzip).map(|parts| Content::Parts(Box::new(parts)))
}

/// Reads an input that is in memory.
fn read_content(name: &str, bytes: &[u8], forced: Option<Format>) -> Result<Content, MachineError> {
    let forced = forced.filter(|f| !matches!(f, Format::Host | Format::Library));
    if forced.or_else(|| sniff::sniff(bytes)) == Some(Format::Tarball) {
        return tarball(name, bytes);
    }
    let text = text::as_text(name, bytes)?;
    let found = forced.or_else(|| sniff::sniff(text.as_bytes()));
    let whole = |machine: Machine| Content::Whole(Box::new(machine));
    let parts = |evidence: Evidence| Content::Parts(Box::new(evidence));
    match found {
        Some(Format::Synthetic) => hwloc::from_synthetic(text.trim()).map(whole),
        Some(Format::HwlocXml) => hwloc::from_xml(name, &text).map(whole),
        Some(Format::MachineToml) => file::parse(name, &text).map(whole),
        Some(Format::Facts) => from_facts::parse(name, &text).map(whole),
        Some(Format::BootLog) => BootLog::read(name, text.as_bytes()).map(Content::Log),
        Some(Format::Numactl) => numactl::parse(name, &text).map(parts),
        Some(Format::Lscpu) => lscpu::parse(name, &text).map(parts),
        Some(Format::Lsmem) => iomem::lsmem(name, &text).map(parts),
        Some(Format::Iomem) => iomem::parse(name, &text).map(parts),
        Some(Format::SysfsTree) => Err(MachineError::Unreadable {
            path: name.into(),
            problem: "is no directory; a sysfs tree is one, or a tarball".into(),
        }),
        _ => Err(MachineError::content(
            name,
            None,
            "is none of the inputs that are known: machine TOML, hwloc XML, a captured boot in \
             JSON, a boot log, the text of numactl -H, lscpu, lsmem or /proc/iomem, a sysfs \
             tree or its tarball; say which with --format if it is one",
        )),
    }
}

#[cfg(all(test, feature = "hwloc"))]
#[path = "input_tests.rs"]
mod tests;
