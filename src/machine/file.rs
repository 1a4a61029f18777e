//! Machine TOML: machines described by hand, and captured ones.
//!
//! [`parse`] reads the format; [`super::to_toml`] writes it, [`super::library`]
//! embeds some. A file has `arch` and nodes, either uniform ones in `[nodes]` or
//! single ones in `[[node]]`, or both:
//!
//! ```toml
//! title = "2 × Xeon Platinum 8167M"
//! source = "where the numbers come from"
//! arch = "x86_64"
//! page_size = "4KiB"              # default: the architecture's
//! cpu_model = "Intel(R) Xeon(R) Platinum 8167M CPU @ 2.00GHz"
//! channels = 6                    # memory channels of each node
//! mts = 2666                      # their million transfers per second
//! smt = 2                         # threads of a core
//! threads = "spread"              # siblings far apart (0,52) or "adjacent" (0,1)
//! distances = [[10, 21], [21, 10]]    # or { local = 10, remote = 21 }
//!
//! [[node]]
//! id = 0
//! memory = "384GiB"               # or ranges = [["0", "2GiB"], ["4GiB", "386GiB"]]
//! cpus = "0-25,52-77"             # or cores = ["0,52", "1,53"]
//!
//! [[node]]
//! id = 1
//! memory = "384GiB"
//! cpus = "26-51,78-103"
//! ```
//!
//! With `[nodes]`: `count`, `memory`, `cores`, `smt`, `nodes_per_package`,
//! `channels`, `mts`. Further keys: `kernel`, `packages = ["0-25,52-77", …]` and
//! `[[cache]]` with `level`, `size`, `line`, `shared_by`.

use super::MachineError;
use super::assume::{arch_of, default_page_bytes, place};
use super::check::{Flaw, finish, title};
use super::{Arch, Cache, Machine, Source, Sources};
use crate::pfn::{Nid, PhysRange};
use crate::units::Bytes;
use crate::warning::Origin;
use nodes::Collected;
use schema::{CacheToml, MachineToml};
use toml::Spanned;

mod nodes;
mod schema;

/// What is wrong, and at which byte of the text.
#[derive(Debug)]
struct Fault {
    offset: Option<usize>,
    problem: String,
}

type Outcome<T> = Result<T, Fault>;

impl From<Flaw> for Fault {
    fn from(flaw: Flaw) -> Self {
        Self { offset: None, problem: flaw.to_string() }
    }
}

/// A fault at a value of the text.
fn at<V>(value: &Spanned<V>, problem: impl Into<String>) -> Fault {
    Fault { offset: Some(value.span().start), problem: problem.into() }
}

/// Reads machine TOML. `name` becomes the machine's name and stands in errors.
pub fn parse(name: &str, text: &str) -> Result<Machine, MachineError> {
    build(name, text).map_err(|fault| {
        let before = fault.offset.and_then(|offset| text.get(..offset));
        let line = before.map(|before| 1 + before.matches('\n').count());
        MachineError::content(name, line, fault.problem)
    })
}

/// The largest file: 1024 nodes with all distances written out have some 5 MiB.
const MOST_BYTES: usize = 8 << 20;

fn build(name: &str, text: &str) -> Outcome<Machine> {
    // The parser keeps every token and value with its place, some 100 bytes for each byte.
    if text.len() > MOST_BYTES {
        let problem = "is larger than 8 MiB, which no machine TOML is".into();
        return Err(Fault { offset: None, problem });
    }
    let parsed: MachineToml = toml::from_str(text).map_err(|error| Fault {
        offset: error.span().map(|span| span.start),
        problem: format!("machine TOML: {}", error.message().trim_end()),
    })?;
    let arch = arch(&parsed)?;
    let page_bytes = page_bytes(&parsed, arch)?;
    let collected = nodes::collect(&parsed, arch)?;
    let caches: Result<Vec<_>, _> = parsed.cache.iter().map(cache).collect();
    let from = parsed.source.clone().unwrap_or_else(|| "machine file".into());
    let given = || Source::new(Origin::Given, from.clone());
    let assumed = Source::new(Origin::Assumed, "10 on a node, 20 between nodes");
    let distances = nodes::distances(&parsed, collected.nodes.len())?;
    let machine = Machine {
        name: name.into(),
        title: String::new(),
        arch,
        page_bytes,
        nodes: Vec::new(),
        cpus: Vec::new(),
        caches: caches?,
        cpu_model: parsed.cpu_model.clone(),
        kernel_release: parsed.kernel.clone(),
        is_this_host: false,
        boot: None,
        source: Sources {
            topology: given(),
            memory_bytes: given(),
            memory_ranges: given(),
            distances: if distances.is_some() { given() } else { assumed },
        },
        distances,
        warnings: Vec::new(),
    };
    complete(machine, collected, parsed.title)
}

/// Places the nodes' memory and applies the rules of all machines.
fn complete(mut machine: Machine, parts: Collected, named: Option<String>) -> Outcome<Machine> {
    machine.nodes = parts.nodes;
    machine.cpus = parts.cpus;
    if let Some(sizes) = parts.sizes {
        machine.nodes.sort_by_key(|n| n.nid);
        let size = |nid: Nid| sizes.get(&nid).copied().unwrap_or(0);
        place(&mut machine, |n| size(n.nid))
            .map_err(|e| Fault { offset: None, problem: e.to_string() })?;
    }
    let mut machine = finish(machine)?;
    machine.title = named.unwrap_or_else(|| title(&machine));
    Ok(machine)
}

fn arch(parsed: &MachineToml) -> Outcome<Arch> {
    let name = parsed.arch.get_ref();
    let known = "x86_64, arm64, ppc64, s390x, riscv64 and sparc64";
    arch_of(name)
        .ok_or_else(|| at(&parsed.arch, format!("arch = {name:?} is not known; there are {known}")))
}

fn page_bytes(parsed: &MachineToml, arch: Arch) -> Outcome<u64> {
    let Some(text) = &parsed.page_size else { return Ok(default_page_bytes(arch)) };
    let bytes = size("page_size", text)?;
    match bytes {
        4096 | 8192 | 16_384 | 65_536 => Ok(bytes),
        _ => Err(at(text, "page_size has to be 4KiB, 8KiB, 16KiB or 64KiB")),
    }
}

fn cache(parsed: &CacheToml) -> Outcome<Cache> {
    Ok(Cache {
        level: parsed.level,
        bytes: size("size", &parsed.size)?,
        line_bytes: parsed.line,
        shared_by_cpus: parsed.shared_by,
    })
}

/// A size with a binary unit under `key`.
fn size(key: &str, text: &Spanned<String>) -> Outcome<u64> {
    let parsed: Result<Bytes, _> = text.get_ref().parse();
    parsed.map(|b| b.0).map_err(|e| at(text, format!("{key}: {e}")))
}

/// An address: a size, a hexadecimal number, or 0.
fn address(text: &str) -> Option<u64> {
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok();
    }
    if text.trim() == "0" { Some(0) } else { text.parse().ok().map(|b: Bytes| b.0) }
}

/// `[["0", "2GiB"], ["4GiB", "386GiB"]]`, ascending and half-open.
fn ranges(id: Nid, lists: &Spanned<Vec<Spanned<Vec<String>>>>) -> Outcome<Vec<PhysRange>> {
    let mut out: Vec<PhysRange> = Vec::new();
    for pair in lists.get_ref() {
        let wrong = |problem: &str| {
            Err(at(pair, format!("ranges of node {id}: {:?} {problem}", pair.get_ref())))
        };
        let [start, end] = pair.get_ref().as_slice() else {
            return wrong("is not a pair; write [\"4GiB\", \"386GiB\"]");
        };
        let (Some(start), Some(end)) = (address(start), address(end)) else {
            return wrong("has no address; write for example \"4GiB\", \"0x100000\" or \"0\"");
        };
        if start >= end {
            return wrong("has its end not above its start");
        }
        if out.last().is_some_and(|last| last.end > start) {
            return wrong("begins below the end of the range before it");
        }
        out.push(PhysRange::new(start, end));
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
