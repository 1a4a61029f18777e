//! What changed from version to version: buffers, ways to populate, callers.

use super::{BufferRule, Callers, Platform, Populate, since};
use crate::kernel::config::KernelConfig;
use crate::kernel::memblock::MemblockRules;
use crate::kernel::version::KernelVersion;
use crate::machine::Arch;

pub(super) fn memblock_rules(
    version: KernelVersion,
    arch: Arch,
    page_bytes: u64,
    config: &KernelConfig,
) -> MemblockRules {
    let places = config.nr_cpus.min(1 << 16) as usize;
    let newer_arm64 = arch == Arch::Arm64 && since(version, 6, 1);
    MemblockRules {
        page_bytes,
        smp_cache_bytes: smp_cache_bytes(arch),
        drops_min_addr_first: !since(version, 5, 2),
        reserved_carry_nid: since(version, 6, 17),
        bottom_up_floor: None,
        // The command line says so, see `MemoryMap::memblock`.
        movable_node: false,
        memory_places: if newer_arm64 { 1024 } else { 128 },
        reserved_places: if newer_arm64 { 128 + places + 1 } else { 128 },
    }
}

pub(super) fn smp_cache_bytes(arch: Arch) -> u64 {
    match arch {
        Arch::S390x => 256,
        Arch::Ppc64 => 128,
        _ => 64,
    }
}

pub(super) fn buffer_rule(version: KernelVersion, arch: Arch) -> BufferRule {
    match version {
        v if since(v, 7, 2) => BufferRule::None,
        v if since(v, 4, 19) => {
            BufferRule::SparseBuffer { exact: since(v, 5, 7), frees_skipped: since(v, 5, 4) }
        }
        _ if arch == Arch::X86_64 => BufferRule::PerRun,
        _ => BufferRule::None,
    }
}

pub(super) fn populate(
    version: KernelVersion,
    arch: Arch,
    page_bytes: u64,
    platform: &Platform,
) -> Populate {
    match arch {
        Arch::X86_64 => Populate::HugePages,
        Arch::Arm64 if page_bytes == 4096 => Populate::HugePages,
        Arch::Riscv64 if since(version, 6, 7) => Populate::HugePages,
        Arch::Arm64 | Arch::Riscv64 => Populate::BasePages,
        Arch::Ppc64 if platform.hash_mmu => {
            Populate::PpcHash { block_bytes: platform.hash_vmemmap_bytes }
        }
        Arch::Ppc64 => Populate::PpcRadix { keeps_list: !since(version, 6, 6) },
        Arch::S390x => Populate::S390 {
            segments: platform.s390_edat1,
            from_buffer: since(version, 6, 4) && !since(version, 7, 2),
        },
        Arch::Sparc64 => Populate::Sparc,
    }
}

pub(super) fn callers(version: KernelVersion, arch: Arch) -> Callers {
    let x86 = arch == Arch::X86_64;
    let early = if since(version, 7, 1) { "memmap_alloc" } else { "__earlyonly_bootmem_alloc" };
    Callers {
        root: match version {
            v if since(v, 6, 17) => "__memblock_alloc_or_panic",
            v if since(v, 5, 9) => "sparse_init",
            _ => "memory_present",
        },
        usage: if since(version, 4, 19) {
            "sparse_init_nid"
        } else {
            "sparse_early_usemaps_alloc_node"
        },
        buffer: match version {
            v if !since(v, 4, 19) => "sparse_mem_maps_populate_node",
            v if x86 || !since(v, 5, 15) => "sparse_init_nid",
            _ => "memmap_alloc",
        },
        table: match arch {
            Arch::X86_64 => "vmemmap_alloc_block_zero",
            _ => early,
        },
        block: match version {
            v if x86 && since(v, 7, 2) => "vmemmap_populate_hugepages",
            _ if x86 => "vmemmap_alloc_block",
            _ => early,
        },
    }
}
