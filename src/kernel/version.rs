//! Kernel versions and the rules that changed between them.
//!
//! [`KernelVersion`] parses `6.12` as well as a distribution's release string.
//! [`KernelModel`] is the table of rules of one version; every other module of
//! `kernel`, and `plan`, asks it instead of comparing versions.

use super::cmdline::CommandLine;
use super::config::KernelConfig;
use super::release::{Backport, Release};
pub use super::rules::{
    DeferredWalk, DmesgLine, EarlyCounter, EarlyLimit, EarlyRule, FreeOrder, HelperPlace,
    HolesRule, ListEnd, SweepOrder, ZeroStyle,
};
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

/// The rules of one kernel version on one architecture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelModel {
    /// The version.
    pub version: KernelVersion,
    /// The release whose backports are in, or the version alone.
    pub release: String,
    /// The architecture.
    pub arch: Arch,
    /// The configuration.
    pub config: KernelConfig,
    /// Who zeroes.
    pub zero_style: ZeroStyle,
    /// When a worker frees.
    pub free_order: FreeOrder,
    /// Pages freed as one block: the largest block, or a pageblock in 4.9–6.3.
    pub frees_pageblocks: bool,
    /// Whether freeing looks at every page of a block a second time (up to 6.2).
    pub checks_tail_pages: bool,
    /// Whether a block larger than a pageblock is cut into pageblocks before it is
    /// merged again (6.12 on).
    pub splits_large_blocks: bool,
    /// How much of a node is early, in brief.
    pub early_limit: EarlyLimit,
    /// How much of a node is early, exactly.
    pub early_rule: EarlyRule,
    /// How long the count of early pages lives.
    pub early_counter: EarlyCounter,
    /// In which order the boot CPU sweeps.
    pub sweep_order: SweepOrder,
    /// Whether the early walk takes a region's end for the zone's (5.8 to 5.10.4):
    /// then only a node's last region can be deferred.
    pub region_bug: bool,
    /// What becomes of holes.
    pub holes: HolesRule,
    /// Whether an allocation may pull deferred sections forward (4.17 on).
    pub grows_on_demand: bool,
    /// What the deferred workers walk over.
    pub walk: DeferredWalk,
    /// Whether the deferred phase holds a lock with interrupts off (4.17 to 5.7).
    pub interrupts_off: bool,
    /// Where freed blocks are put.
    pub list_end: ListEnd,
    /// Whether a node is initialised by as many threads as it has CPUs.
    pub threads_by_cpus: bool,
    /// Whether a node is one padata job (6.18 on) or one per free range.
    pub one_job_per_node: bool,
    /// Whether padata cuts the work at all (5.8 on); before, a node has one thread.
    pub padata: bool,
    /// Where padata's helpers run.
    pub helper_place: HelperPlace,
    /// What the log says afterwards.
    pub dmesg_line: DmesgLine,
}

impl KernelModel {
    /// The mainline rules of `version` on `arch`, as a distribution configures it.
    pub fn new(version: KernelVersion, arch: Arch) -> Self {
        Self::of(&Release::mainline(version), arch, KernelConfig::distribution(version, arch))
    }

    /// The rules of a release such as `5.10.0-32-cloud-amd64`, its backports included.
    ///
    /// # Errors
    /// When the text names no version, or one outside the modelled range.
    pub fn from_release(text: &str, arch: Arch) -> Result<Self, VersionError> {
        let release: Release = text.parse()?;
        let config = KernelConfig::distribution(release.version, arch);
        Ok(Self::of(&release, arch, config))
    }

    /// The rules of a release in a given configuration.
    pub fn of(release: &Release, arch: Arch, config: KernelConfig) -> Self {
        let version = release.version;
        let since = |major, minor| version >= KernelVersion::new(major, minor);
        let early_rule = early_rule(release, arch, &config);
        let deferred = early_rule != EarlyRule::All;
        let padata = since(5, 8);
        let zone_end = since(5, 11) || release.has(Backport::ZoneEnd);
        Self {
            version,
            release: release.text.clone(),
            arch,
            config,
            zero_style: zero_style(version),
            free_order: free_order(version),
            frees_pageblocks: since(4, 9) && !since(6, 4),
            checks_tail_pages: !since(6, 3),
            splits_large_blocks: since(6, 12),
            early_limit: in_brief(early_rule),
            early_rule,
            early_counter: early_counter(version),
            sweep_order: sweep_order(version),
            region_bug: padata && !zone_end,
            holes: holes(release),
            grows_on_demand: deferred && since(4, 17),
            walk: match deferred {
                false => DeferredWalk::None,
                true if since(4, 15) => DeferredWalk::FreeRanges,
                true => DeferredWalk::MemoryRegions,
            },
            interrupts_off: since(4, 17) && !padata && !release.has(Backport::InterruptsOn),
            list_end: if since(5, 10) { ListEnd::Tail } else { ListEnd::Head },
            threads_by_cpus: since(6, 11) || (padata && arch == Arch::X86_64),
            one_job_per_node: since(6, 18),
            padata,
            helper_place: helper_place(version),
            dmesg_line: dmesg_line(version, deferred),
        }
    }

    /// The same release in another configuration.
    pub fn with_config(&self, config: KernelConfig) -> Self {
        Self::of(&self.release(), self.arch, config)
    }

    /// The release, taken apart.
    pub fn release(&self) -> Release {
        Release::from_str(&self.release).unwrap_or(Release::mainline(self.version))
    }

    /// What a kernel command line changes: `early_page_ext` stops deferral, from 6.1
    /// on and with `CONFIG_PAGE_EXTENSION`. The other options change the machine.
    pub fn with_command_line(&self, line: &CommandLine) -> Self {
        let honoured = self.version >= KernelVersion::new(6, 1) && self.config.page_extension;
        let mut model = self.clone();
        if line.early_page_ext && honoured {
            model.early_rule = EarlyRule::All;
            model.early_limit = EarlyLimit::All;
            model.walk = DeferredWalk::None;
            model.grows_on_demand = false;
            model.dmesg_line = DmesgLine::None;
        }
        model
    }

    /// How this version's struct page looks in this configuration.
    pub fn page_format(&self) -> PageFormat {
        super::page_format::of(self)
    }
}

fn early_rule(release: &Release, arch: Arch, config: &KernelConfig) -> EarlyRule {
    let since = |major, minor| release.version >= KernelVersion::new(major, minor);
    if !config.deferred_struct_page_init || !may_defer(release.version, arch) {
        return EarlyRule::All;
    }
    match release.version {
        _ if since(5, 0) => EarlyRule::Section,
        _ if since(4, 17) => EarlyRule::SectionWithinSpan,
        _ if since(4, 13) || release.has(Backport::ReservedInLimit) => EarlyRule::WithReserved,
        _ if since(4, 12) => EarlyRule::WithReservedMixup,
        _ if since(4, 7) => EarlyRule::TwoGibOrShare,
        _ => EarlyRule::TwoGib,
    }
}

/// Whether `CONFIG_DEFERRED_STRUCT_PAGE_INIT` can be set (`mm/Kconfig` and, up to
/// 4.17, `ARCH_SUPPORTS_DEFERRED_STRUCT_PAGE_INIT`).
fn may_defer(version: KernelVersion, arch: Arch) -> bool {
    let since = |major, minor| version >= KernelVersion::new(major, minor);
    match arch {
        Arch::X86_64 => since(4, 2),
        Arch::Ppc64 => since(4, 7),
        Arch::S390x => since(4, 12),
        Arch::Arm64 | Arch::Riscv64 | Arch::Sparc64 => since(4, 18),
    }
}

fn in_brief(rule: EarlyRule) -> EarlyLimit {
    match rule {
        EarlyRule::All => EarlyLimit::All,
        EarlyRule::Section | EarlyRule::SectionWithinSpan => EarlyLimit::OneSection,
        _ => EarlyLimit::TwoGib,
    }
}

fn zero_style(version: KernelVersion) -> ZeroStyle {
    match version {
        v if v >= KernelVersion::new(5, 2) => ZeroStyle::NineStores,
        v if v >= KernelVersion::new(4, 15) => ZeroStyle::MemsetCall,
        _ => ZeroStyle::ByMemblock,
    }
}

fn free_order(version: KernelVersion) -> FreeOrder {
    match version {
        v if v >= KernelVersion::new(5, 2) => FreeOrder::PerBlock,
        v if v >= KernelVersion::new(4, 17) => FreeOrder::PerNode,
        v if v >= KernelVersion::new(4, 15) => FreeOrder::PerRange,
        _ => FreeOrder::PerBlock,
    }
}

fn early_counter(version: KernelVersion) -> EarlyCounter {
    match version {
        v if v >= KernelVersion::new(6, 9) => EarlyCounter::StaticHighest,
        v if v >= KernelVersion::new(4, 20) => EarlyCounter::Static,
        _ => EarlyCounter::PerZone,
    }
}

fn sweep_order(version: KernelVersion) -> SweepOrder {
    match version {
        v if v >= KernelVersion::new(5, 12) => SweepOrder::Regions,
        v if v >= KernelVersion::new(5, 8) => SweepOrder::ZoneRegions,
        _ => SweepOrder::Zones,
    }
}

fn holes(release: &Release) -> HolesRule {
    let since = |major, minor| release.version >= KernelVersion::new(major, minor);
    match release.version {
        _ if since(5, 12) || release.has(Backport::NeighbourHoles) => HolesRule::Neighbour,
        _ if since(5, 7) => HolesRule::NodeZero,
        _ if since(4, 20) => HolesRule::Zeroed,
        _ if since(4, 15) => HolesRule::ReservedZeroed,
        _ => HolesRule::Untouched,
    }
}

fn helper_place(version: KernelVersion) -> HelperPlace {
    match version {
        v if v >= KernelVersion::new(7, 1) => HelperPlace::CacheShard,
        v if v >= KernelVersion::new(6, 6) => HelperPlace::Cache,
        v if v >= KernelVersion::new(5, 8) => HelperPlace::Node,
        _ => HelperPlace::None,
    }
}

fn dmesg_line(version: KernelVersion, deferred: bool) -> DmesgLine {
    match version {
        _ if !deferred => DmesgLine::None,
        v if v >= KernelVersion::new(5, 8) => DmesgLine::TimeOnly,
        _ => DmesgLine::WithPages,
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

    #[test]
    fn the_early_limit_took_six_forms() {
        let at = |a, b| KernelModel::new(KernelVersion::new(a, b), Arch::X86_64).early_rule;
        use EarlyRule::*;
        let table = [
            ((4, 1), All),
            ((4, 2), TwoGib),
            ((4, 9), TwoGibOrShare),
            ((4, 12), WithReservedMixup),
            ((4, 14), WithReserved),
            ((4, 15), WithReserved),
            ((4, 18), SectionWithinSpan),
            ((5, 0), Section),
            ((7, 3), Section),
        ];
        for ((a, b), rule) in table {
            assert_eq!(at(a, b), rule, "{a}.{b}");
        }
        let stable = KernelModel::from_release("4.4.155", Arch::X86_64).unwrap();
        assert_eq!(stable.early_rule, WithReserved);
    }

    #[test]
    fn a_release_brings_its_backports() {
        let mainline = KernelModel::new(KernelVersion::new(5, 10), Arch::X86_64);
        assert!(mainline.region_bug && mainline.holes == HolesRule::NodeZero);
        let debian = KernelModel::from_release("5.10.0-32-cloud-amd64", Arch::X86_64).unwrap();
        assert!(!debian.region_bug && debian.holes == HolesRule::Neighbour);
        assert_eq!(debian.version, KernelVersion::new(5, 10));
        let stable = KernelModel::from_release("5.4.286", Arch::X86_64).unwrap();
        assert!(!stable.interrupts_off);
        assert!(KernelModel::new(KernelVersion::new(5, 4), Arch::X86_64).interrupts_off);
    }

    #[test]
    fn a_configuration_or_command_line_can_switch_deferral_off() {
        let model = KernelModel::new(KernelVersion::new(6, 1), Arch::X86_64);
        let mut config = model.config.clone();
        config.deferred_struct_page_init = false;
        let off = model.with_config(config);
        assert_eq!((off.early_limit, off.walk), (EarlyLimit::All, DeferredWalk::None));
        let line: CommandLine = "early_page_ext".parse().unwrap();
        let ext = model.with_command_line(&line);
        assert_eq!((ext.early_rule, ext.dmesg_line), (EarlyRule::All, DmesgLine::None));
        let older = KernelModel::new(KernelVersion::new(5, 10), Arch::X86_64);
        assert_eq!(older.with_command_line(&line), older);
    }

    #[test]
    fn the_log_line_lost_its_pages_when_padata_came() {
        let line = |a, b| KernelModel::new(KernelVersion::new(a, b), Arch::X86_64).dmesg_line;
        let text = |a, b| line(a, b).text(crate::pfn::Nid(1), 7, 12);
        assert_eq!(text(4, 1), None);
        assert_eq!(text(5, 7).unwrap(), "node 1 initialised, 7 pages in 12ms");
        assert_eq!(text(5, 8).unwrap(), "node 1 deferred pages initialised in 12ms");
    }

    #[test]
    fn pageblocks_were_the_unit_of_freeing_for_a_while() {
        let pageblocks =
            |a, b| KernelModel::new(KernelVersion::new(a, b), Arch::X86_64).frees_pageblocks;
        assert_eq!(
            [(4, 4), (4, 9), (6, 1), (6, 4)].map(|(a, b)| pageblocks(a, b)),
            [false, true, true, false]
        );
    }

    #[test]
    fn architectures_got_deferral_one_by_one() {
        let at = |a, b, arch| KernelModel::new(KernelVersion::new(a, b), arch).early_limit;
        assert_eq!(at(4, 4, Arch::Ppc64), EarlyLimit::All);
        assert_eq!(at(4, 9, Arch::Ppc64), EarlyLimit::TwoGib);
        assert_eq!(at(4, 14, Arch::Arm64), EarlyLimit::All);
        assert_eq!(at(6, 12, Arch::Arm64), EarlyLimit::OneSection);
    }
}
