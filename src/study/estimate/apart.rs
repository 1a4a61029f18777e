//! What is no part of the boot that was asked for: memory that is added later, device
//! memory, the boot of a crash kernel, a boot by kexec.
//!
//! [`rows`] has a row for each, held against what Linux does today where the change is
//! one of how, and against nothing where it is one of what.

use super::what_if::{part, signed};
use super::{Question, Ran, StudyError, WhatIf, whole};
use crate::kernel::KernelModel;
use crate::machine::{Arch, Machine, Node};
use crate::model::added::{self, Added, Workers};
use crate::model::hardware::NodeHardware;
use crate::pfn::{Nid, PhysRange};
use crate::record::estimate::WhatIfRow;
use crate::units::{Bytes, GIB, MIB};

/// The least memory that a crash kernel is given.
const LEAST_CRASH_BYTES: u64 = 64 * MIB;

/// Rows of everything that is not this boot.
pub(super) fn rows(
    what_if: &WhatIf,
    machine: &Machine,
    kernel: &KernelModel,
    base: &Ran,
) -> Result<Vec<WhatIfRow>, StudyError> {
    let mut out = Vec::new();
    if let Some(bytes) = what_if.hotplug_bytes {
        out.extend(hotplug(bytes, machine, kernel, base)?);
    }
    if let Some(bytes) = what_if.device_bytes {
        out.extend(device(bytes, kernel, base)?);
    }
    if let Some(bytes) = what_if.kdump_bytes {
        out.push(capture(bytes, machine, kernel)?);
    }
    if what_if.kexec {
        out.push(kexec(base));
    }
    Ok(out)
}

/// The node that memory is added to: the first one with CPUs.
fn target(base: &Ran) -> Result<NodeHardware, StudyError> {
    let nodes = base.case.setup.on(&base.case.hardware).nodes;
    let node = nodes.iter().find(|n| n.hw_threads > 0).or(nodes.first());
    node.copied().ok_or_else(|| StudyError::Usage("the machine has no node with memory".into()))
}

/// `/sys/devices/system/memory/block_size_bytes`: on x86_64 2 GiB from 64 GiB of memory
/// on (`arch/x86/mm/init_64.c: probe_memory_block_size`, v6.12), else a section; guests
/// with odd ends of memory have smaller blocks.
fn block_bytes(machine: &Machine, section_bytes: u64) -> u64 {
    let large = machine.arch == Arch::X86_64 && machine.memory_bytes() >= 64 * GIB;
    if large { (2 * GIB).max(section_bytes) } else { section_bytes }
}

fn hotplug(
    bytes: u64,
    machine: &Machine,
    kernel: &KernelModel,
    base: &Ran,
) -> Result<Vec<WhatIfRow>, StudyError> {
    let layout = &base.case.layout;
    let section_bytes = layout.pages_per_section.saturating_mul(layout.page_bytes);
    let block_bytes = block_bytes(machine, section_bytes);
    if !bytes.is_multiple_of(block_bytes) {
        return Err(StudyError::Usage(format!(
            "--hotplug {} is not a multiple of a memory block of this machine, {}",
            Bytes(bytes),
            Bytes(block_bytes)
        )));
    }
    let node = target(base)?;
    let threads = node.hw_threads.max(1);
    let debug_vm = kernel.config.debug_vm;
    let added = Added { version: kernel.version, bytes, block_bytes, section_bytes, debug_vm };
    let serial = added::hotplug(&node, base.case.setup.options, &added, Workers::One);
    let serial_ns = whole(serial.total_ns());
    let (size, block) = (Bytes(bytes), Bytes(block_bytes));
    let ways = [
        ("hotplug-serial", Workers::One, "block after block by one thread, as Linux does"),
        ("hotplug-threads", Workers::InBlock(threads), "threads within each block, as proposed"),
        ("hotplug-parallel", Workers::OverBlocks(threads), "blocks side by side, as proposed"),
    ];
    let rows = ways.map(|(name, workers, how)| {
        let run = added::hotplug(&node, base.case.setup.options, &added, workers);
        let total_ns = whole(run.total_ns());
        let shared_ns = if run.workers > 1 { run.pages_ns } else { 0.0 };
        let range = base.range(run.total_ns() - shared_ns, shared_ns);
        WhatIfRow {
            name: name.into(),
            what: format!("{size} added to node {}, {how}", node.nid),
            total_ns: Some(total_ns),
            range_ns: Some([whole(range.low_ns), whole(range.high_ns)]),
            against_ns: (name != "hotplug-serial").then_some(serial_ns),
            saved_ns: (name != "hotplug-serial").then(|| signed(serial_ns, total_ns)),
            memmap_bytes: Some(run.pages.saturating_mul(layout.struct_page_bytes)),
            parts: vec![
                part("registering blocks", run.register_ns),
                part("allocating and mapping the memmap", run.map_ns),
                part("initialising and handing over", run.pages_ns),
            ],
            note: format!("blocks of {block}, {} thread(s); not a part of the boot", run.workers),
        }
    });
    Ok(rows.into())
}

fn device(bytes: u64, kernel: &KernelModel, base: &Ran) -> Result<Vec<WhatIfRow>, StudyError> {
    let (node, layout) = (target(base)?, &base.case.layout);
    let pages = bytes / layout.page_bytes;
    let options = base.case.setup.options;
    let ways = [
        ("device-memory", added::Store::Fields, "page by page, as Linux does"),
        ("device-memory-template", added::Store::Template, "a template copied, as proposed"),
        ("device-memory-streamed", added::Store::Streamed, "a template streamed, as proposed"),
    ];
    let of = |store| added::device_page(kernel.version, &node, options, store).ns * pages as f64;
    let plain_ns = whole(of(added::Store::Fields));
    let rows = ways.map(|(name, store, how)| {
        let ns = of(store);
        let range = base.range(0.0, ns);
        let is_plain = store == added::Store::Fields;
        WhatIfRow {
            name: name.into(),
            what: format!("{} of device memory, {how}", Bytes(bytes)),
            total_ns: Some(whole(ns)),
            range_ns: Some([whole(range.low_ns), whole(range.high_ns)]),
            against_ns: (!is_plain).then_some(plain_ns),
            saved_ns: (!is_plain).then(|| signed(plain_ns, whole(ns))),
            memmap_bytes: Some(pages.saturating_mul(layout.struct_page_bytes)),
            parts: vec![part("memmap_init_zone_device", ns)],
            note: "one thread, memmap in memory and touched before; mapping it is not in it".into(),
        }
    });
    Ok(rows.into())
}

/// The boot of a crash kernel in the memory that was set aside, with one CPU.
fn capture(bytes: u64, machine: &Machine, kernel: &KernelModel) -> Result<WhatIfRow, StudyError> {
    let ranges = machine.nodes.iter().flat_map(|n| &n.memory);
    let largest = ranges.clone().map(|r| r.bytes()).max().unwrap_or(0);
    let whole_pages = bytes.is_multiple_of(machine.page_bytes);
    if bytes < LEAST_CRASH_BYTES || bytes > largest / 2 || !whole_pages {
        return Err(StudyError::Usage(format!(
            "--kdump {}: a crash kernel gets whole pages, at least {} and here at most {}",
            Bytes(bytes),
            Bytes(LEAST_CRASH_BYTES),
            Bytes(largest / 2)
        )));
    }
    let end = ranges.filter(|r| r.bytes() >= bytes).map(|r| r.end).max().unwrap_or(bytes);
    let small = crash_machine(machine, PhysRange::new(end - bytes, end));
    let question = Question { free: true, ..Question::default() };
    let ran = Ran::new(&small, kernel, &question, None)?;
    let ns = ran.run.total_ns();
    let range = ran.range(ns, 0.0);
    Ok(WhatIfRow {
        name: "kdump-capture".into(),
        what: format!("the crash kernel's own boot, {} and one CPU", Bytes(bytes)),
        total_ns: Some(whole(ns)),
        range_ns: Some([whole(range.low_ns), whole(range.high_ns)]),
        memmap_bytes: Some(bytes / machine.page_bytes * ran.case.layout.struct_page_bytes),
        parts: vec![part("struct pages", ns)],
        note: "as with nr_cpus=1; reading the dead kernel's memory is not in it".into(),
        ..WhatIfRow::default()
    })
}

fn crash_machine(machine: &Machine, range: PhysRange) -> Machine {
    let owner =
        machine.nodes.iter().find(|n| n.memory.iter().any(|r| r.intersect(range).is_some()));
    let cpu = machine.cpus.first().cloned();
    let id = cpu.as_ref().map_or(0, |c| c.id);
    let mut small = machine.clone();
    small.boot = None;
    small.distances = None;
    small.nodes = vec![Node {
        nid: Nid(0),
        memory: vec![range],
        cpus: vec![id],
        channels: owner.and_then(|n| n.channels),
        mts: owner.and_then(|n| n.mts),
    }];
    small.cpus = cpu.into_iter().collect();
    small.cpus.iter_mut().for_each(|c| c.nid = Nid(0));
    small
}

/// Struct pages are initialised as after power-on: memory holds what the last kernel
/// left, and every kernel writes all of it that it reads.
fn kexec(base: &Ran) -> WhatIfRow {
    let total_ns = whole(base.run.total_ns());
    WhatIfRow {
        name: "kexec".into(),
        what: "the same boot by kexec".into(),
        total_ns: Some(total_ns),
        against_ns: Some(total_ns),
        saved_ns: Some(0),
        note:
            "struct pages take the same: no kernel relies on memory being zero at its start. What \
               kexec leaves out, firmware with its memory test, is not modelled; this share stays"
                .into(),
        ..WhatIfRow::default()
    }
}
