//! Captured boots: what a kernel printed and what its running guest showed.
//!
//! [`BootFacts`] is read from a JSON file (`fixtures/boots/*.json`; the README there
//! describes every field and how the facts are captured). It is plain data: `kernel`
//! turns it into a memory map and compares its model with the recorded answers.
//! Unknown fields are ignored. The JSON form itself is in `raw`.

mod raw;

use super::Arch;
use crate::pfn::{Nid, PhysRange};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// One captured boot. Addresses and sizes are bytes, ranges half-open.
#[derive(Clone, Debug, PartialEq)]
pub struct BootFacts {
    /// A name, for example `6.12_n2-8g`.
    pub id: String,
    /// The architecture.
    pub arch: Arch,
    /// The base page size.
    pub page_bytes: u64,
    /// `sizeof(struct page)`.
    pub struct_page_bytes: u64,
    /// The release (`uname -r`).
    pub kernel: String,
    /// The kernel command line.
    pub cmdline: String,
    /// The kernel's configuration, or the nearest known one, options without `CONFIG_`.
    pub config: BTreeMap<String, serde_json::Value>,
    /// memblock's memory when `sparse_init` starts, ascending.
    pub memblock_memory: Vec<MemoryFact>,
    /// memblock's reservations at that moment, ascending.
    pub reserved_before_sparse: Vec<PhysRange>,
    /// Where each node's `pglist_data` lies; empty where the kernel does not say.
    pub node_data: Vec<NodeDataFact>,
    /// Symbols of `/sys/kernel/vmcoreinfo`, where they were read.
    pub vmcoreinfo: BTreeMap<String, String>,
    /// The virtual address of the struct page of pfn 0, where it was read.
    pub vmemmap_base: Option<u64>,
    /// The memblock calls of `sparse_init` in order.
    pub allocations: Vec<AllocationFact>,
    /// What `sparse_init` gave back; `None` where it was not recorded.
    pub frees: Option<Vec<FreeFact>>,
    /// Populated zones.
    pub zones: Vec<ZoneFact>,
    /// Nodes of the running guest.
    pub nodes: Vec<NodeFact>,
    /// Nodes that printed how long their deferred part took.
    pub deferred_nodes: Vec<Nid>,
    /// Struct pages read in the running guest.
    pub struct_pages: Vec<StructPageFact>,
    /// Where the guest's page tables say pieces of the memmap lie.
    pub vmemmap_map: Vec<VmemmapFact>,
}

/// A region of memblock's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryFact {
    /// The first byte.
    pub start: u64,
    /// The first byte behind it.
    pub end: u64,
    /// The node; `None` on a kernel without NUMA.
    pub nid: Option<Nid>,
    /// memblock's flags.
    pub flags: u32,
}

/// Where a node's `pglist_data` lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeDataFact {
    /// The node.
    pub nid: Nid,
    /// The bytes.
    pub range: PhysRange,
}

/// One call of a memblock allocation function, and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocationFact {
    /// The function without `memblock_`, for example `alloc_exact_nid_raw`.
    pub call: String,
    /// How many bytes were asked for.
    pub bytes: u64,
    /// The alignment in bytes.
    pub align: u64,
    /// The node asked for; `None` for any.
    pub nid: Option<Nid>,
    /// The lowest address wanted.
    pub min_addr: u64,
    /// The limit; 0 and 1 mean the current limit.
    pub max_addr: u64,
    /// The function that asked.
    pub caller: String,
    /// The address; `None` when the attempt failed.
    pub start: Option<u64>,
}

/// A reservation given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeFact {
    /// How many allocations were made before.
    pub after: usize,
    /// The bytes.
    pub range: PhysRange,
}

/// A populated zone (`/proc/zoneinfo`). All numbers are pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneFact {
    /// The node.
    pub nid: Nid,
    /// `DMA`, `DMA32`, `Normal` or `Movable`.
    pub zone: String,
    /// The first page frame.
    pub start_pfn: u64,
    /// Pages from the first to the last.
    pub spanned: u64,
    /// Pages that exist.
    pub present: u64,
    /// Pages of the buddy allocator.
    pub managed: u64,
}

/// A node of the running guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFact {
    /// The node.
    pub nid: Nid,
    /// Its online CPUs.
    pub cpus: Vec<u32>,
    /// Its row of the distance table.
    pub distance: Vec<u32>,
    /// `MemTotal` in KiB.
    pub mem_total_kib: u64,
}

/// A struct page, read in the running guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StructPageFact {
    /// The page frame.
    pub pfn: u64,
    /// Its eight 64-bit words in the guest's byte order.
    pub words: [u64; 8],
}

/// One mapped piece of the memmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VmemmapFact {
    /// The first page frame it describes.
    pub pfn: u64,
    /// Where it lies.
    pub start: u64,
    /// The level of its entry: 0 for base pages, 1 for PMD.
    pub level: u32,
}

/// Why a file holds no boot facts.
#[derive(Debug, thiserror::Error)]
pub enum FactsError {
    /// The file cannot be read.
    #[error("{path}: {source}; give a captured boot in JSON")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Not JSON, or a field is missing or of the wrong type.
    #[error("{path}: line {line}: {problem}; see fixtures/boots/README.md for the fields")]
    Json {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong there.
        problem: String,
    },
    /// A field has a value that makes no sense.
    #[error("{path}: field {field}: {problem}")]
    Field {
        /// The file.
        path: PathBuf,
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
    },
}

impl BootFacts {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// See [`FactsError`].
    pub fn read(path: &Path) -> Result<Self, FactsError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| FactsError::Read { path: path.into(), source })?;
        Self::parse(&text, path)
    }

    /// Parses a file's text; `path` is for error messages.
    ///
    /// # Errors
    /// See [`FactsError`].
    pub fn parse(text: &str, path: &Path) -> Result<Self, FactsError> {
        let raw: raw::RawFacts = serde_json::from_str(text).map_err(|e| FactsError::Json {
            path: path.into(),
            line: e.line(),
            problem: e.to_string(),
        })?;
        raw.into_facts().map_err(|(field, problem)| FactsError::Field {
            path: path.into(),
            field,
            problem,
        })
    }

    /// A number of the configuration; `None` where it is absent or not a number.
    pub fn config_number(&self, option: &str) -> Option<u64> {
        self.config.get(option)?.as_u64()
    }

    /// A number of vmcoreinfo, decimal or `0x` hexadecimal.
    pub fn vmcore_number(&self, symbol: &str) -> Option<u64> {
        raw::hex_or_decimal(self.vmcoreinfo.get(symbol)?)
    }

    /// Whether five page-table levels are in use on x86_64: the kernel has them and the
    /// command line does not forbid them. That the processor has LA57 is taken for
    /// granted, because every captured boot without it says `no5lvl`.
    pub fn uses_five_levels(&self) -> bool {
        self.arch == Arch::X86_64
            && self.config_number("PGTABLE_LEVELS") == Some(5)
            && !self.cmdline.split_whitespace().any(|w| w == "no5lvl")
    }
}
