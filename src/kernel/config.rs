//! The options of a kernel configuration that change the memory layout.
//!
//! [`KernelConfig`] starts as a distribution's and takes changes from `KEY=VALUE`
//! pairs ([`KernelConfig::apply_pair`], strict) or from the text of a
//! `/boot/config-*` file ([`KernelConfig::apply_file`], which skips what is not
//! known here). The defaults are those of Debian's kernels in the captured boots.

use super::version::KernelVersion;
use crate::machine::Arch;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Options by their Kconfig names in lower case; booleans say "is set".
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelConfig {
    /// Struct pages are initialised in parallel, per node.
    pub deferred_struct_page_init: bool,
    /// Nodes are numbered with so many bits; 0 without NUMA.
    pub nodes_shift: u32,
    /// CPUs the kernel was built for.
    pub nr_cpus: u32,
    /// The flags hold a last CPU and process.
    pub numa_balancing: bool,
    /// A struct page has a word for memory cgroups.
    pub memcg: bool,
    /// `mem_section` is 32 bytes, and `early_page_ext` is known.
    pub page_extension: bool,
    /// Timer ticks per second: the resolution of times in the log.
    pub hz: u32,
    /// Levels of page tables that the kernel can use.
    pub pgtable_levels: u32,
    /// Memory can be added and removed at run time.
    pub memory_hotremove: bool,
    /// Pageblocks can be isolated.
    pub memory_isolation: bool,
    /// The flags hold a generation (6.1 on).
    pub lru_gen: bool,
    /// Tag-based KASAN: eight bits of the flags hold a tag.
    pub kasan_sw_tags: bool,
    /// Hardware tag-based KASAN: likewise.
    pub kasan_hw_tags: bool,
    /// Generic KASAN: shadow memory is allocated at boot.
    pub kasan_generic: bool,
    /// There is a zone for 16 MiB, 1 GiB, 2 GiB or 4 GiB devices.
    pub zone_dma: bool,
    /// There is a zone for 32-bit devices.
    pub zone_dma32: bool,
    /// There is a zone for device memory.
    pub zone_device: bool,
    /// `numa=fake=` is known.
    pub numa_emu: bool,
    /// Huge pages can give back their struct pages.
    pub hugetlb_page_optimize_vmemmap: bool,
    /// They do so unless told otherwise.
    pub hugetlb_page_optimize_vmemmap_default_on: bool,
    /// Memory survives kexec with hand-over.
    pub kexec_handover: bool,
    /// Raw memblock allocations are poisoned.
    pub debug_vm: bool,
    /// Order of the largest buddy block, where the architecture lets choose; 0 else.
    /// As in Kconfig it is exclusive up to 6.3.
    pub arch_force_max_order: u32,
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ConfigError {
    /// Not of the form `KEY=VALUE`.
    #[error("{0:?} is not an option; write KEY=VALUE, for example NODES_SHIFT=8")]
    Syntax(String),
    /// A key that changes nothing here.
    #[error("the option {key} is not known here; known are {known}")]
    Unknown {
        /// The key without `CONFIG_`.
        key: String,
        /// All known keys.
        known: String,
    },
    /// A value outside what Linux allows.
    #[error("CONFIG_{key}={value}: expected {expected}")]
    Value {
        /// The key without `CONFIG_`.
        key: &'static str,
        /// What was given.
        value: String,
        /// What would do.
        expected: String,
    },
    /// One of the above in a file.
    #[error("line {line}: {error}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong there.
        error: Box<ConfigError>,
    },
}

enum Kind {
    Flag(fn(&mut KernelConfig) -> &mut bool),
    /// With the least and the greatest value.
    Number(fn(&mut KernelConfig) -> &mut u32, u32, u32),
}

struct Key {
    name: &'static str,
    kind: Kind,
}

macro_rules! flag {
    ($name:literal, $field:ident) => {
        Key { name: $name, kind: Kind::Flag(|c| &mut c.$field) }
    };
}

macro_rules! number {
    ($name:literal, $field:ident, $least:literal, $most:literal) => {
        Key { name: $name, kind: Kind::Number(|c| &mut c.$field, $least, $most) }
    };
}

/// Every option known here. `NODES_SHIFT` above 10 does not fit the flags anywhere.
const KEYS: [Key; 23] = [
    flag!("DEFERRED_STRUCT_PAGE_INIT", deferred_struct_page_init),
    number!("NODES_SHIFT", nodes_shift, 0, 10),
    number!("NR_CPUS", nr_cpus, 1, 65536),
    flag!("NUMA_BALANCING", numa_balancing),
    flag!("MEMCG", memcg),
    flag!("PAGE_EXTENSION", page_extension),
    number!("HZ", hz, 24, 1200),
    number!("PGTABLE_LEVELS", pgtable_levels, 2, 5),
    flag!("MEMORY_HOTREMOVE", memory_hotremove),
    flag!("MEMORY_ISOLATION", memory_isolation),
    flag!("LRU_GEN", lru_gen),
    flag!("KASAN_SW_TAGS", kasan_sw_tags),
    flag!("KASAN_HW_TAGS", kasan_hw_tags),
    flag!("KASAN_GENERIC", kasan_generic),
    flag!("ZONE_DMA", zone_dma),
    flag!("ZONE_DMA32", zone_dma32),
    flag!("ZONE_DEVICE", zone_device),
    flag!("NUMA_EMU", numa_emu),
    flag!("HUGETLB_PAGE_OPTIMIZE_VMEMMAP", hugetlb_page_optimize_vmemmap),
    flag!("HUGETLB_PAGE_OPTIMIZE_VMEMMAP_DEFAULT_ON", hugetlb_page_optimize_vmemmap_default_on),
    flag!("KEXEC_HANDOVER", kexec_handover),
    flag!("DEBUG_VM", debug_vm),
    number!("ARCH_FORCE_MAX_ORDER", arch_force_max_order, 0, 20),
];

impl KernelConfig {
    /// What a distribution builds for `arch`. Debian's kernels of the captured boots
    /// (5.10 to 7.3) are the model; older ones are taken to be alike, with the option
    /// for deferred initialisation set wherever the version has it.
    pub fn distribution(version: KernelVersion, arch: Arch) -> Self {
        let since = |major, minor| version >= KernelVersion::new(major, minor);
        let numa = arch != Arch::S390x;
        let (nodes_shift, nr_cpus) = sizes(version, arch);
        Self {
            deferred_struct_page_init: since(4, 2),
            nodes_shift,
            nr_cpus,
            numa_balancing: numa && arch != Arch::Sparc64,
            memcg: true,
            page_extension: page_extension(version, arch),
            hz: 250,
            pgtable_levels: pgtable_levels(version, arch),
            memory_hotremove: !matches!(arch, Arch::Sparc64),
            memory_isolation: true,
            lru_gen: since(6, 1),
            kasan_sw_tags: false,
            kasan_hw_tags: false,
            kasan_generic: false,
            zone_dma: matches!(arch, Arch::X86_64 | Arch::Arm64 | Arch::S390x),
            zone_dma32: matches!(arch, Arch::X86_64 | Arch::Arm64 | Arch::Riscv64),
            zone_device: zone_device(version, arch),
            numa_emu: version == KernelVersion::new(6, 1) && arch == Arch::X86_64,
            hugetlb_page_optimize_vmemmap: match arch {
                Arch::X86_64 => since(5, 14),
                Arch::Riscv64 => since(6, 7),
                _ => false,
            },
            hugetlb_page_optimize_vmemmap_default_on: false,
            kexec_handover: false,
            debug_vm: false,
            arch_force_max_order: 0,
        }
    }

    /// Applies one `KEY=VALUE`, with or without `CONFIG_`; values are y, m, n or a number.
    ///
    /// # Errors
    /// When the key is not known here, or the value is not one for it.
    pub fn apply_pair(&mut self, pair: &str) -> Result<(), ConfigError> {
        let (key, value) =
            pair.split_once('=').ok_or_else(|| ConfigError::Syntax(pair.trim().into()))?;
        self.set(bare(key), value.trim())
    }

    /// Applies the text of a `/boot/config-*` file. Such a file is complete: a flag
    /// that it does not name is off, and so is NUMA without `NODES_SHIFT`.
    ///
    /// # Errors
    /// When a known key has a value that it cannot have; the line is named.
    pub fn apply_file(&mut self, text: &str) -> Result<(), ConfigError> {
        for key in &KEYS {
            if let Kind::Flag(field) = key.kind {
                *field(self) = false;
            }
        }
        self.nodes_shift = 0;
        for (index, line) in text.lines().enumerate() {
            let at_line = |error| ConfigError::Line { line: index + 1, error: Box::new(error) };
            self.apply_line(line.trim()).map_err(at_line)?;
        }
        Ok(())
    }

    /// Applies what is known of a captured boot's configuration; null options do not
    /// exist in its version, and options that change nothing here are skipped.
    ///
    /// # Errors
    /// When a known key has a value that it cannot have.
    pub fn apply_facts(&mut self, config: &BTreeMap<String, Value>) -> Result<(), ConfigError> {
        for (key, value) in config {
            let value = match value {
                Value::Bool(set) => String::from(if *set { "y" } else { "n" }),
                Value::Null => continue,
                other => other.to_string(),
            };
            match self.set(bare(key), &value) {
                Err(ConfigError::Unknown { .. }) => {}
                other => other?,
            }
        }
        Ok(())
    }

    fn apply_line(&mut self, line: &str) -> Result<(), ConfigError> {
        let unset = line.strip_prefix("# ").and_then(|l| l.strip_suffix(" is not set"));
        let (key, value) = match (unset, line.split_once('=')) {
            (Some(key), _) => (bare(key), "n"),
            (None, Some((key, value))) if !line.starts_with('#') => (bare(key), value.trim()),
            _ => return Ok(()),
        };
        match self.set(key, value) {
            Err(ConfigError::Unknown { .. }) => Ok(()),
            other => other,
        }
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), ConfigError> {
        let key = KEYS.iter().find(|k| k.name == name).ok_or_else(|| unknown(name))?;
        let wrong =
            |expected: String| ConfigError::Value { key: key.name, value: value.into(), expected };
        match key.kind {
            Kind::Flag(field) => {
                *field(self) = flag_of(value).ok_or_else(|| wrong("y or n".into()))?;
            }
            Kind::Number(field, least, most) => {
                let number = number_of(value).filter(|n| (least..=most).contains(n));
                let range = || wrong(format!("a number from {least} to {most}"));
                *field(self) = number.ok_or_else(range)?;
            }
        }
        Ok(())
    }

    /// Bits that hold a CPU number (`NR_CPUS_BITS`).
    pub fn nr_cpus_bits(&self) -> u32 {
        self.nr_cpus.max(1).next_power_of_two().trailing_zeros()
    }
}

fn bare(key: &str) -> &str {
    let key = key.trim();
    key.strip_prefix("CONFIG_").unwrap_or(key)
}

fn unknown(name: &str) -> ConfigError {
    let known: Vec<&str> = KEYS.iter().map(|k| k.name).collect();
    ConfigError::Unknown { key: name.into(), known: known.join(", ") }
}

fn flag_of(value: &str) -> Option<bool> {
    match value {
        "y" | "m" => Some(true),
        "n" => Some(false),
        _ => None,
    }
}

fn number_of(value: &str) -> Option<u32> {
    match value.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None if value == "n" => Some(0),
        None => value.parse().ok(),
    }
}

fn sizes(version: KernelVersion, arch: Arch) -> (u32, u32) {
    let new = version >= KernelVersion::new(6, 12);
    match arch {
        Arch::X86_64 => (10, 8192),
        Arch::Arm64 => (4, if new { 512 } else { 256 }),
        Arch::Ppc64 => (8, 2048),
        Arch::S390x => (0, 256),
        Arch::Riscv64 => (2, 128),
        Arch::Sparc64 => (5, 256),
    }
}

fn pgtable_levels(version: KernelVersion, arch: Arch) -> u32 {
    let since = |major, minor| version >= KernelVersion::new(major, minor);
    match arch {
        Arch::X86_64 if since(6, 1) => 5,
        Arch::Arm64 if since(6, 12) => 5,
        Arch::S390x if since(4, 13) => 5,
        Arch::Riscv64 if since(5, 17) => 5,
        _ => 4,
    }
}

/// In Debian's cloud kernels the option is off; of x86_64 and arm64, 6.1 for x86_64
/// alone was captured as a kernel for all uses.
fn page_extension(version: KernelVersion, arch: Arch) -> bool {
    match arch {
        Arch::X86_64 => version == KernelVersion::new(6, 1),
        Arch::Arm64 => false,
        _ => true,
    }
}

fn zone_device(version: KernelVersion, arch: Arch) -> bool {
    let since = |major, minor| version >= KernelVersion::new(major, minor);
    match arch {
        Arch::X86_64 => since(4, 5),
        Arch::Arm64 => since(6, 12),
        Arch::Ppc64 => since(4, 13),
        Arch::S390x | Arch::Riscv64 => since(6, 12),
        Arch::Sparc64 => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> KernelConfig {
        KernelConfig::distribution(KernelVersion::new(6, 12), Arch::X86_64)
    }

    #[test]
    fn pairs_are_strict() {
        let mut c = config();
        c.apply_pair("NODES_SHIFT=6").unwrap();
        c.apply_pair("CONFIG_NUMA_BALANCING=n").unwrap();
        c.apply_pair(" HZ = 0x3e8 ").unwrap();
        assert_eq!((c.nodes_shift, c.numa_balancing, c.hz), (6, false, 1000));
        assert_eq!(c.apply_pair("HZ"), Err(ConfigError::Syntax("HZ".into())));
        let unknown = c.apply_pair("NODES_SHFT=6").unwrap_err().to_string();
        assert!(unknown.contains("NODES_SHFT is not known") && unknown.contains("NODES_SHIFT, "));
        let wrong = c.apply_pair("MEMCG=yes").unwrap_err().to_string();
        assert_eq!(wrong, "CONFIG_MEMCG=yes: expected y or n");
        let range = c.apply_pair("NR_CPUS=0").unwrap_err().to_string();
        assert_eq!(range, "CONFIG_NR_CPUS=0: expected a number from 1 to 65536");
    }

    #[test]
    fn a_file_is_complete_and_full_of_other_options() {
        let mut c = config();
        let text = "#\n# Memory\n#\nCONFIG_FOO=\"a b\"\nCONFIG_NR_CPUS=64\n\
                    # CONFIG_MEMCG is not set\nCONFIG_ZONE_DMA32=y\nCONFIG_NODES_SHIFT=3\n";
        c.apply_file(text).unwrap();
        assert_eq!((c.nr_cpus, c.nodes_shift, c.hz), (64, 3, 250));
        assert!(!c.memcg && c.zone_dma32 && !c.lru_gen && !c.deferred_struct_page_init);
        let wrong = c.apply_file("\nCONFIG_NR_CPUS=many\n").unwrap_err().to_string();
        assert!(wrong.starts_with("line 2: CONFIG_NR_CPUS=many"), "{wrong}");
    }

    #[test]
    fn bits_of_a_cpu_number_round_up() {
        let bits = |nr_cpus| KernelConfig { nr_cpus, ..config() }.nr_cpus_bits();
        assert_eq!((bits(1), bits(2), bits(8192), bits(5000)), (0, 1, 13, 13));
    }
}
