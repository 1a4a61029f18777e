//! From a log with `memblock=debug` to the facts of a captured boot.
//!
//! [`facts`] makes the [`BootFacts`] from which `kernel` lays out exactly that boot. A
//! log says nothing of the kernel's configuration: a distribution's is taken, but for
//! what the size of the section root array gives away.

use super::boot::Boot;
use super::memblock::{LoggedAllocation, Memblock};
use crate::machine::facts::{AllocationFact, BootFacts, FreeFact, MemoryFact};
use crate::machine::facts::{NodeDataFact, NodeFact};
use crate::machine::{Arch, Machine};
use crate::pfn::Nid;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The facts of `boot`, whose machine is `machine`; `None` unless the log shows memory
/// and reservations as they stood before `sparse_init`, and the kernel's release, or where
/// it leaves too much open: then reservations are assumed like any machine's.
pub fn facts(boot: &Boot, machine: &Machine) -> Option<BootFacts> {
    let memory = boot.memblock.memory()?;
    let kernel = boot.kernel()?.value.clone();
    let root = root(boot, machine, &kernel)?;
    if is_open(boot, machine, root) {
        return None;
    }
    let vmcoreinfo = vmcoreinfo(boot, machine.arch, root);
    let memblock_memory = memory.iter().map(|m| MemoryFact {
        start: m.range.start,
        end: m.range.end,
        nid: m.nid,
        flags: u32::try_from(m.flags).unwrap_or(u32::MAX),
    });
    let nodes = machine.nodes.iter().map(|n| NodeFact {
        nid: n.nid,
        cpus: n.cpus.clone(),
        distance: machine.nodes.iter().map(|to| machine.distance(n.nid, to.nid)).collect(),
        mem_total_kib: n.memory_bytes() >> 10,
    });
    let node_data = boot.node_data.iter().map(|n| NodeDataFact { nid: n.nid, range: n.range });
    // Threads end in any order.
    let deferred: BTreeSet<Nid> = boot.init.iter().map(|line| line.nid).collect();
    Some(BootFacts {
        id: machine.name.clone(),
        arch: machine.arch,
        page_bytes: machine.page_bytes,
        struct_page_bytes: 64,
        kernel,
        cmdline: boot.cmdline.as_ref().map(|c| c.value.clone()).unwrap_or_default(),
        config: config(boot, machine.arch, root),
        memblock_memory: memblock_memory.collect(),
        reserved_before_sparse: boot.memblock.reserved_before_sparse()?,
        node_data: node_data.collect(),
        vmemmap_base: vmemmap_base(machine, boot),
        vmcoreinfo,
        allocations: allocations(&boot.memblock),
        frees: Some(frees(&boot.memblock)),
        zones: Vec::new(),
        nodes: nodes.collect(),
        deferred_nodes: deferred.into_iter().collect(),
        struct_pages: Vec::new(),
        vmemmap_map: Vec::new(),
    })
}

/// `MAX_PHYSMEM_BITS` and `SECTION_SIZE_BITS` that kernels of an architecture have
/// (`sparsemem.h` of each); `release` is the kernel's.
fn geometries(arch: Arch, page_bytes: u64, release: &str) -> Vec<(u32, u32)> {
    let mut numbers = release.split(['.', '-']).map(|n| n.parse().unwrap_or(0));
    let version: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let arm64 = match page_bytes {
        _ if version < (5, 12) => 30,
        65_536 => 29,
        _ => 27,
    };
    match arch {
        Arch::X86_64 => vec![(46, 27), (52, 27)],
        Arch::Arm64 => vec![(48, arm64), (52, arm64)],
        Arch::Ppc64 if version < (4, 20) => vec![(46, 24)],
        Arch::Ppc64 => vec![(51, 24)],
        Arch::Riscv64 => vec![(56, 27)],
        Arch::S390x if version < (6, 14) => vec![(46, 28)],
        Arch::S390x => vec![(46, 27)],
        Arch::Sparc64 => vec![(53, 30)],
    }
}

/// What the size of the section root array gives away: how many bits addresses have, and
/// whether `CONFIG_PAGE_EXTENSION` makes an entry twice as large. A page holds the entries
/// of one root (`mm/sparse.c: memory_present`, v6.12).
fn root(boot: &Boot, machine: &Machine, release: &str) -> Option<(u32, bool)> {
    let root = boot.memblock.allocations.iter().find(|a| a.nid.is_none())?.bytes;
    let bytes = |bits: u32, section: u32, entry: u64| {
        let roots = (1u64 << bits.saturating_sub(section)).checked_mul(entry)?;
        roots.checked_div(machine.page_bytes)?.checked_mul(8)
    };
    let known = geometries(machine.arch, machine.page_bytes, release);
    known.into_iter().find_map(|(bits, section)| match root {
        _ if bytes(bits, section, 16) == Some(root) => Some((bits, false)),
        _ if bytes(bits, section, 32) == Some(root) => Some((bits, true)),
        _ => None,
    })
}

/// Options of the configuration that show in the log. Where `no5lvl` stands on the command
/// line, the number of levels that the kernel was built with does not: the distribution's
/// is taken.
fn config(boot: &Boot, arch: Arch, root: (u32, bool)) -> BTreeMap<String, Value> {
    let line = boot.cmdline.as_ref().map_or("", |c| c.value.as_str());
    let mut out = BTreeMap::from([("PAGE_EXTENSION".to_owned(), json!(root.1))]);
    let levels = if root.0 == 52 { 5 } else { 4 };
    if arch == Arch::X86_64 && (levels == 5 || !line.split_whitespace().any(|w| w == "no5lvl")) {
        out.insert("PGTABLE_LEVELS".into(), json!(levels));
    }
    out
}

/// What vmcoreinfo would say, as far as the log shows it.
fn vmcoreinfo(boot: &Boot, arch: Arch, root: (u32, bool)) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    if arch != Arch::Arm64 {
        return out;
    }
    out.insert("NUMBER(MAX_PHYSMEM_BITS)".into(), root.0.to_string());
    if let Some(start) = linear_start(boot) {
        out.insert("NUMBER(PHYS_OFFSET)".into(), format!("{start:#x}"));
    }
    out
}

/// Where arm64 has the memmap with pages of 16 KiB and 52 bits of addresses
/// (`arch/arm64/include/asm/memory.h: VMEMMAP_START`, v6.12); elsewhere it is the usual place.
fn vmemmap_base(machine: &Machine, boot: &Boot) -> Option<u64> {
    if machine.arch != Arch::Arm64 || machine.page_bytes != 16_384 {
        return None;
    }
    let start = 0u64.wrapping_sub((1 << 30) + (1 << 44) - (1 << 38));
    let pages = linear_start(boot)? >> 14;
    Some(start.wrapping_sub(pages.wrapping_mul(64)))
}

/// arm64: where the linear map begins, from where on memory for the memmap is asked for.
fn linear_start(boot: &Boot) -> Option<u64> {
    let callers = ["vmemmap_alloc_block_zero", "__earlyonly_bootmem_alloc", "memmap_alloc"];
    let is_memmap = |caller: &str| callers.contains(&caller) || caller.starts_with("vmemmap_");
    let own = |a: &&LoggedAllocation| a.nid.is_some() && is_memmap(&a.caller);
    boot.memblock.allocations.iter().find(own).map(|a| a.min_addr)
}

/// Whether the log leaves open what a layout depends on. Of hash MMUs and of IBM Z the
/// captured boots ran in an emulator without large pages, and real machines have them.
/// arm64 is known with the pages and address bits of the captured boots.
fn is_open(boot: &Boot, machine: &Machine, root: (u32, bool)) -> bool {
    let line = boot.cmdline.as_ref().map_or("", |c| c.value.as_str());
    let is_emulated_hash =
        boot.guest.is_some() && line.split_whitespace().any(|w| w == "disable_radix");
    let segment = |a: &LoggedAllocation| a.caller.starts_with("vmem_") && a.bytes >= 1 << 20;
    match machine.arch {
        Arch::Arm64 => !matches!((machine.page_bytes, root.0), (4096, 48) | (16_384, 52)),
        Arch::Ppc64 => boot.has_hash_mmu && !is_emulated_hash,
        Arch::S390x => boot.memblock.allocations.iter().any(segment),
        Arch::Sparc64 => true,
        _ => false,
    }
}

/// Gives fake nodes of one real node the CPUs of that node, all of them to each
/// (`mm/numa_emulation.c: numa_add_cpu`, v6.12).
pub fn share_cpus(boot: &Boot, machine: &mut Machine) {
    let real: BTreeSet<Nid> = boot.srat.iter().map(|r| r.nid).collect();
    if !boot.has_fake_nodes || real.len() > 1 {
        return;
    }
    let all: Vec<u32> = machine.cpus.iter().map(|c| c.id).collect();
    machine.nodes.iter_mut().for_each(|n| n.cpus.clone_from(&all));
}

fn allocations(memblock: &Memblock) -> Vec<AllocationFact> {
    let fact = |a: &LoggedAllocation| AllocationFact {
        call: a.call.clone(),
        bytes: a.bytes,
        align: a.align,
        nid: a.nid,
        min_addr: a.min_addr,
        max_addr: a.max_addr,
        caller: a.caller.clone(),
        start: a.given.map(|g| g.start),
    };
    memblock.allocations.iter().map(fact).collect()
}

fn frees(memblock: &Memblock) -> Vec<FreeFact> {
    memblock.frees.iter().map(|f| FreeFact { after: f.after, range: f.range }).collect()
}
