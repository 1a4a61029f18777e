//! The JSON form of captured boots.
//!
//! Two forms are read: as captured, and compact. In the compact form a run of equal
//! allocations is one item with `count` and `step`, and equal struct pages are one
//! item with all their `pfns`; the word `lru` stands for the address of the page's own
//! `lru` field.

use super::{
    AllocationFact, BootFacts, FreeFact, MemoryFact, NodeDataFact, NodeFact, StructPageFact,
    VmemmapFact, ZoneFact,
};
use crate::machine::Arch;
use crate::pfn::{Nid, PhysRange};
use serde::Deserialize;
use std::collections::BTreeMap;

/// A field's name and what is wrong with it.
type Problem = (&'static str, String);

/// More allocations than any boot makes; longer runs are an error, not a full memory.
const MAX_ALLOCATIONS: u64 = 1 << 22;

/// The bases of x86_64 without KASLR, for four and five levels (`page_64_types.h`).
const X86_VMEMMAP: [u64; 2] = [0xffff_ea00_0000_0000, 0xffd4_0000_0000_0000];

#[derive(Deserialize)]
pub(super) struct RawFacts {
    id: String,
    arch: String,
    page_bytes: u64,
    struct_page_bytes: u64,
    kernel: String,
    cmdline: String,
    config: Option<BTreeMap<String, serde_json::Value>>,
    config_nearest: Option<BTreeMap<String, serde_json::Value>>,
    memblock_memory: Vec<RawMemory>,
    reserved_before_sparse: Vec<PhysRange>,
    #[serde(default)]
    node_data: Vec<RawNodeData>,
    #[serde(default)]
    vmcoreinfo: BTreeMap<String, String>,
    vmemmap_base: Option<String>,
    sparse_init_allocations: Vec<RawAllocation>,
    sparse_init_frees: Option<Vec<RawFree>>,
    zones: Vec<RawZone>,
    #[serde(default)]
    nodes: Vec<RawNode>,
    #[serde(default)]
    deferred_nodes: Vec<Nid>,
    #[serde(default)]
    struct_pages: Vec<RawStructPage>,
    #[serde(default)]
    vmemmap_map: Vec<(u64, u64, u32)>,
}

#[derive(Deserialize)]
struct RawMemory {
    start: u64,
    end: u64,
    nid: Option<Nid>,
    flags: String,
}

#[derive(Deserialize)]
struct RawNodeData {
    nid: Nid,
    start: u64,
    end: u64,
}

#[derive(Deserialize)]
struct RawAllocation {
    call: String,
    bytes: u64,
    align: u64,
    nid: i64,
    min_addr: u64,
    max_addr: u64,
    caller: String,
    start: Option<u64>,
    count: Option<u64>,
    step: Option<i64>,
}

#[derive(Deserialize)]
struct RawFree {
    after: usize,
    start: u64,
    end: u64,
}

#[derive(Deserialize)]
struct RawZone {
    nid: Nid,
    zone: String,
    start_pfn: u64,
    spanned: u64,
    present: u64,
    managed: u64,
}

#[derive(Deserialize)]
struct RawNode {
    nid: Nid,
    cpulist: String,
    distance: Vec<u32>,
    mem_total_kib: u64,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawStructPage {
    Group { words: Vec<String>, pfns: Vec<u64> },
    Single(Vec<serde_json::Value>),
}

/// A number as text, `0x` hexadecimal or decimal.
pub(super) fn hex_or_decimal(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

impl RawFacts {
    pub(super) fn into_facts(self) -> Result<BootFacts, Problem> {
        if !self.page_bytes.is_power_of_two() || self.page_bytes < 4096 {
            let problem = format!("{} is not a page size; expected 4096 to 65536", self.page_bytes);
            return Err(("page_bytes", problem));
        }
        if !(32..=256).contains(&self.struct_page_bytes) {
            let problem = format!("{} is not plausible; expected 64", self.struct_page_bytes);
            return Err(("struct_page_bytes", problem));
        }
        let vmemmap_base = self.vmemmap_base.as_deref().map(base_of).transpose()?;
        let mut facts = BootFacts {
            arch: arch(&self.arch)?,
            id: self.id,
            page_bytes: self.page_bytes,
            struct_page_bytes: self.struct_page_bytes,
            kernel: self.kernel,
            cmdline: self.cmdline,
            config: self.config.or(self.config_nearest).unwrap_or_default(),
            memblock_memory: self.memblock_memory.iter().map(memory).collect::<Result<_, _>>()?,
            reserved_before_sparse: self.reserved_before_sparse,
            node_data: self.node_data.iter().map(node_data).collect(),
            vmcoreinfo: self.vmcoreinfo,
            vmemmap_base,
            allocations: allocations(self.sparse_init_allocations)?,
            frees: self.sparse_init_frees.map(|f| f.iter().map(free).collect()),
            zones: self.zones.into_iter().map(zone).collect(),
            nodes: self.nodes.into_iter().map(node).collect::<Result<_, _>>()?,
            deferred_nodes: self.deferred_nodes,
            struct_pages: Vec::new(),
            vmemmap_map: self.vmemmap_map.into_iter().map(mapping).collect(),
        };
        let base = vmemmap_base.unwrap_or(X86_VMEMMAP[usize::from(facts.uses_five_levels())]);
        for item in &self.struct_pages {
            struct_pages(item, base, facts.struct_page_bytes, &mut facts.struct_pages)?;
        }
        Ok(facts)
    }
}

fn arch(name: &str) -> Result<Arch, Problem> {
    Ok(match name {
        "x86_64" => Arch::X86_64,
        "arm64" => Arch::Arm64,
        "ppc64" | "ppc64el" => Arch::Ppc64,
        "s390x" => Arch::S390x,
        "riscv64" => Arch::Riscv64,
        "sparc64" => Arch::Sparc64,
        other => return Err(("arch", format!("{other:?} is not known; write for example x86_64"))),
    })
}

fn base_of(text: &str) -> Result<u64, Problem> {
    hex_or_decimal(text).ok_or_else(|| ("vmemmap_base", format!("{text:?} is not an address")))
}

fn memory(raw: &RawMemory) -> Result<MemoryFact, Problem> {
    let flags = hex_or_decimal(&raw.flags).and_then(|f| u32::try_from(f).ok());
    let flags = flags
        .ok_or_else(|| ("memblock_memory", format!("flags {:?} are not a number", raw.flags)))?;
    Ok(MemoryFact { start: raw.start, end: raw.end, nid: raw.nid, flags })
}

fn node_data(raw: &RawNodeData) -> NodeDataFact {
    NodeDataFact { nid: raw.nid, range: PhysRange::new(raw.start, raw.end) }
}

fn free(raw: &RawFree) -> FreeFact {
    FreeFact { after: raw.after, range: PhysRange::new(raw.start, raw.end) }
}

fn zone(raw: RawZone) -> ZoneFact {
    let RawZone { nid, zone, start_pfn, spanned, present, managed } = raw;
    ZoneFact { nid, zone, start_pfn, spanned, present, managed }
}

fn mapping((pfn, start, level): (u64, u64, u32)) -> VmemmapFact {
    VmemmapFact { pfn, start, level }
}

/// Spreads runs out to single allocations.
fn allocations(raw: Vec<RawAllocation>) -> Result<Vec<AllocationFact>, Problem> {
    let mut out = Vec::new();
    for run in raw {
        let count = run.count.unwrap_or(1);
        if count > MAX_ALLOCATIONS {
            return Err(("sparse_init_allocations", format!("a run of {count} is too long")));
        }
        let step = run.step.unwrap_or(0);
        let nid = u32::try_from(run.nid).ok().map(Nid);
        let mut start = run.start;
        for _ in 0..count {
            out.push(AllocationFact {
                call: run.call.clone(),
                bytes: run.bytes,
                align: run.align,
                nid,
                min_addr: run.min_addr,
                max_addr: run.max_addr,
                caller: run.caller.clone(),
                start,
            });
            start = start.map(|s| s.wrapping_add_signed(step));
        }
    }
    Ok(out)
}

fn node(raw: RawNode) -> Result<NodeFact, Problem> {
    let cpus = cpulist(&raw.cpulist)
        .ok_or_else(|| ("nodes", format!("{:?} is not a CPU list", raw.cpulist)))?;
    let RawNode { nid, distance, mem_total_kib, .. } = raw;
    Ok(NodeFact { nid, cpus, distance, mem_total_kib })
}

/// `0-1,4` as the kernel writes CPU lists.
fn cpulist(text: &str) -> Option<Vec<u32>> {
    let mut out = Vec::new();
    for part in text.trim().split(',').filter(|p| !p.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last > 1 << 16 {
            return None;
        }
        out.extend(first..=last);
    }
    Some(out)
}

fn struct_pages(
    item: &RawStructPage,
    base: u64,
    page_bytes: u64,
    out: &mut Vec<StructPageFact>,
) -> Result<(), Problem> {
    let bad = |what: &str| ("struct_pages", format!("{what}; expected a pfn and eight words"));
    let (texts, pfns): (Vec<&str>, Vec<u64>) = match item {
        RawStructPage::Group { words, pfns } => {
            (words.iter().map(String::as_str).collect(), pfns.clone())
        }
        RawStructPage::Single(values) => {
            let pfn = values.first().and_then(serde_json::Value::as_u64);
            let words = values.iter().skip(1).filter_map(serde_json::Value::as_str).collect();
            (words, vec![pfn.ok_or_else(|| bad("an item without pfn"))?])
        }
    };
    for pfn in pfns {
        let lru = base.wrapping_add(pfn.wrapping_mul(page_bytes)).wrapping_add(8);
        let word = |t: &&str| match *t {
            "lru" => Some(lru),
            hex => u64::from_str_radix(hex, 16).ok(),
        };
        let words: Option<Vec<u64>> = texts.iter().map(word).collect();
        let words = words.and_then(|w| <[u64; 8]>::try_from(w).ok());
        out.push(StructPageFact { pfn, words: words.ok_or_else(|| bad("bad words"))? });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{BootFacts, FactsError};
    use super::*;
    use std::path::Path;

    fn boots() -> Vec<std::path::PathBuf> {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/boots");
        let entries = std::fs::read_dir(&dir).expect("fixtures/boots");
        let mut out: Vec<_> = entries.map(|e| e.expect("entry").path()).collect();
        out.retain(|p| p.extension().is_some_and(|e| e == "json"));
        out.sort();
        out
    }

    #[test]
    fn all_captured_boots_are_read() {
        let boots = boots();
        assert_eq!(boots.len(), 122);
        for path in boots {
            let facts = BootFacts::read(&path).unwrap_or_else(|e| panic!("{e}"));
            assert!(!facts.memblock_memory.is_empty() && !facts.zones.is_empty());
            assert!(facts.allocations.len() > 3);
        }
    }

    // The compact form must say what the captured one says.
    #[test]
    fn compact_boots_equal_the_captured_ones() {
        let captured = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/boots");
        if !captured.is_dir() {
            println!("no captured boots beside the project: nothing compared");
            return;
        }
        for path in boots() {
            let name = path.file_name().expect("name");
            let mut compact = BootFacts::read(&path).expect("compact");
            let mut full = BootFacts::read(&captured.join(name)).expect("captured");
            full.vmcoreinfo.retain(|k, _| compact.vmcoreinfo.contains_key(k));
            compact.struct_pages.sort_by_key(|p| p.pfn);
            full.struct_pages.sort_by_key(|p| p.pfn);
            assert!(compact == full, "{name:?} differs");
        }
    }

    #[test]
    fn bad_files_name_the_place() {
        let at = Path::new("x.json");
        let error = BootFacts::parse("{\n\"id\": 3}", at).unwrap_err();
        assert!(matches!(error, FactsError::Json { line: 2, .. }), "{error}");
        let missing = BootFacts::read(Path::new("no/such.json")).unwrap_err();
        assert!(missing.to_string().contains("no/such.json"));
        assert_eq!(cpulist("0-2,5"), Some(vec![0, 1, 2, 5]));
        assert_eq!(cpulist("0-4000000000"), None);
    }

    #[test]
    fn runs_and_groups_are_spread_out() {
        let text = r#"{"id":"t","arch":"ppc64el","page_bytes":65536,"struct_page_bytes":64,
            "kernel":"6.12","cmdline":"","config":null,"config_nearest":{"A":1},
            "memblock_memory":[{"start":0,"end":65536,"nid":null,"flags":"0x4"}],
            "reserved_before_sparse":[],"vmemmap_base":"0x1000","zones":[],
            "sparse_init_allocations":[{"call":"c","bytes":8,"align":8,"nid":-1,"min_addr":0,
              "max_addr":0,"caller":"f","start":100,"end":108,"count":3,"step":-8}],
            "struct_pages":[{"words":["1","lru","lru","0","0","0","ff","0"],"pfns":[0,2]}]}"#;
        let facts = BootFacts::parse(text, Path::new("t.json")).expect("parses");
        let starts: Vec<_> = facts.allocations.iter().map(|a| a.start).collect();
        assert_eq!(starts, [Some(100), Some(92), Some(84)]);
        assert_eq!(facts.struct_pages[1].words, [1, 0x1088, 0x1088, 0, 0, 0, 0xff, 0]);
        assert_eq!(facts.config_number("A"), Some(1));
    }
}
