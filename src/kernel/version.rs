//! Kernel versions and the rules that changed between them.
//!
//! [`KernelVersion`] parses `6.12` as well as a distribution's release string.
//! [`KernelModel`] is the table of rules of one version; every other module of
//! `kernel`, and `plan`, asks it instead of comparing versions.

use super::struct_page::PageFormat;
use crate::machine::Arch;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A kernel version from 4.1 to 7.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct KernelVersion {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
}

/// The oldest version with rules here.
pub const OLDEST: KernelVersion = KernelVersion::new(4, 1);
/// The newest version with rules here.
pub const NEWEST: KernelVersion = KernelVersion::new(7, 3);

/// Why a text does not name a kernel version.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum VersionError {
    /// No `MAJOR.MINOR` at its start.
    #[error("{0:?} is not a kernel version; write for example 6.12 or 5.10.0-32-amd64")]
    Syntax(String),
    /// Outside the range that is modelled.
    #[error("kernel {0} is not modelled; versions from {OLDEST} to {NEWEST} are")]
    Range(String),
}

impl KernelVersion {
    /// The version `major.minor`.
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }
}

impl FromStr for KernelVersion {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        let syntax = || VersionError::Syntax(text.into());
        let (major, rest) = text.trim().split_once('.').ok_or_else(syntax)?;
        let minor = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or("");
        let version =
            Self::new(major.parse().map_err(|_| syntax())?, minor.parse().map_err(|_| syntax())?);
        if version < OLDEST || version > NEWEST {
            return Err(VersionError::Range(text.into()));
        }
        Ok(version)
    }
}

impl fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Who sets the words of a struct page to zero, and with which instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ZeroStyle {
    /// memblock zeroes the whole memmap on the boot CPU (up to 4.14).
    ByMemblock,
    /// `__init_single_page` calls memset, then writes the fields (4.15–5.1).
    MemsetCall,
    /// `mm_zero_struct_page` expands to stores that the compiler merges with the
    /// field writes: nine stores in all (5.2 on).
    NineStores,
}

/// In which order a deferred worker initialises and frees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FreeOrder {
    /// Every block right after it was initialised (up to 4.14, 5.2 on).
    PerBlock,
    /// A whole free range, then the same range again (4.15).
    PerRange,
    /// The whole node, then the whole node again (4.18–5.1).
    PerNode,
}

/// How many pages of a node's last zone are early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EarlyLimit {
    /// All of them: there is no deferred initialisation.
    All,
    /// 2 GiB and what belongs to it in that version.
    TwoGib,
    /// One section.
    OneSection,
}

/// The rules of one kernel version on one architecture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelModel {
    /// The version.
    pub version: KernelVersion,
    /// The architecture.
    pub arch: Arch,
    /// Who zeroes.
    pub zero_style: ZeroStyle,
    /// When a worker frees.
    pub free_order: FreeOrder,
    /// Pages freed as one block: the largest block, or a pageblock in 4.9–6.3.
    pub frees_pageblocks: bool,
    /// Whether freeing looks at every page of a block a second time (up to 6.2).
    pub checks_tail_pages: bool,
    /// How much of a node is early.
    pub early_limit: EarlyLimit,
    /// Whether a node is initialised by as many threads as it has CPUs.
    pub threads_by_cpus: bool,
    /// Whether a node is one padata job (6.18 on) or one per free range.
    pub one_job_per_node: bool,
}

impl KernelModel {
    /// The mainline rules of `version` on `arch`.
    pub fn new(version: KernelVersion, arch: Arch) -> Self {
        let since = |major, minor| version >= KernelVersion::new(major, minor);
        Self {
            version,
            arch,
            zero_style: match version {
                _ if since(5, 2) => ZeroStyle::NineStores,
                _ if since(4, 15) => ZeroStyle::MemsetCall,
                _ => ZeroStyle::ByMemblock,
            },
            free_order: match version {
                _ if since(5, 2) => FreeOrder::PerBlock,
                _ if since(4, 17) => FreeOrder::PerNode,
                _ if since(4, 15) => FreeOrder::PerRange,
                _ => FreeOrder::PerBlock,
            },
            frees_pageblocks: since(4, 9) && !since(6, 4),
            checks_tail_pages: !since(6, 3),
            early_limit: match version {
                _ if since(4, 17) => EarlyLimit::OneSection,
                _ if since(4, 2) => EarlyLimit::TwoGib,
                _ => EarlyLimit::All,
            },
            threads_by_cpus: since(6, 11) || (since(5, 8) && arch == Arch::X86_64),
            one_job_per_node: since(6, 18),
        }
    }

    /// How this version's struct page looks in a distribution's configuration
    /// (`NODES_SHIFT` 10, four zones and `ZONE_DEVICE`, 8192 CPUs).
    pub fn page_format(&self) -> PageFormat {
        let since = |major, minor| self.version >= KernelVersion::new(major, minor);
        let reserved_bit = if since(6, 12) { 13 } else { 12 };
        let buddy_mark = match self.version {
            _ if since(6, 12) => 0xf000_0000,
            _ => !0x80u32,
        };
        PageFormat {
            vmemmap_base: 0xffff_ea00_0000_0000,
            node_shift: 54,
            zone_shift: 51,
            cpupid_mask: 0x0007_ffff_c000_0000,
            reserved_mask: 1 << reserved_bit,
            prep_mask: (1 << 22) - 1,
            buddy_mark,
            zone_numbers: [0, 1, 2, 3],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn release_strings_name_a_version() {
        assert_eq!("5.10.0-32-cloud-amd64".parse(), Ok(KernelVersion::new(5, 10)));
        assert_eq!("7.3-rc7".parse(), Ok(NEWEST));
        assert!(matches!("3.10".parse::<KernelVersion>(), Err(VersionError::Range(_))));
        assert!(matches!("linux".parse::<KernelVersion>(), Err(VersionError::Syntax(_))));
    }

    #[test]
    fn the_era_table_changes_where_linux_changed() {
        let at = |a, b| KernelModel::new(KernelVersion::new(a, b), Arch::X86_64);
        assert_eq!(at(4, 14).zero_style, ZeroStyle::ByMemblock);
        assert_eq!(at(5, 1).zero_style, ZeroStyle::MemsetCall);
        assert!(!at(5, 7).threads_by_cpus && at(5, 8).threads_by_cpus);
        assert!(!KernelModel::new(KernelVersion::new(6, 8), Arch::Arm64).threads_by_cpus);
        assert!(at(6, 1).frees_pageblocks && !at(6, 4).frees_pageblocks);
    }
}
