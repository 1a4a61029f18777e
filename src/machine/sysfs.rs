//! What `/sys` and `/proc` say about this host's memory and nodes.
//!
//! [`memory`] finds the physical ranges of each node, [`distances`] the SLIT and
//! [`kernel_release`] the running kernel. All take the root of the file system, so
//! that tests give them a small tree. [`super::host`] joins this with hwloc.

use super::tree::Files;
use crate::pfn::{Nid, Pfn, PfnRange, PhysRange, intersect, normalise, total_pages};
use crate::units::Bytes;
use crate::warning::Warning;
use std::collections::BTreeMap;

/// Physical memory by node, and where it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostMemory {
    /// Whole pages, ascending and disjoint, also between nodes.
    pub ranges: BTreeMap<Nid, Vec<PhysRange>>,
    /// The files, for `source`.
    pub from: String,
    /// What did not fit together.
    pub warnings: Vec<Warning>,
}

type ByNode = BTreeMap<Nid, Vec<PfnRange>>;

/// Finds the memory of each node under `root`, or `None` where nothing tells.
///
/// Memory blocks and their links to nodes are the base. Zones bound each node, so
/// that a block of two nodes is cut, and `/proc/iomem` refines both where it shows
/// addresses. Without blocks (no memory hotplug in the kernel) zones alone serve.
pub fn memory(root: &(impl Files + ?Sized), page_bytes: u64) -> Option<HostMemory> {
    let zones = zoneinfo(&read(root, "proc/zoneinfo").unwrap_or_default());
    let ram = iomem(&read(root, "proc/iomem").unwrap_or_default(), page_bytes);
    let blocks = blocks(root, page_bytes);
    let block_pages = blocks.as_ref().map_or(32_768, |(pages, _)| *pages);
    let mut from = Vec::new();
    let mut by_node = if let Some((_, by_node)) = blocks {
        from.push("/sys/devices/system/memory");
        by_node
    } else {
        zones.iter().map(|(&nid, zones)| (nid, spans(zones))).collect()
    };
    if !zones.is_empty() {
        from.push("/proc/zoneinfo");
        for (nid, ranges) in &mut by_node {
            let bounds = zones.get(nid).map(|z| spans(z)).unwrap_or_default();
            *ranges = intersect(ranges, &bounds);
        }
    }
    let mut warnings = Vec::new();
    refine(&mut by_node, ram, &mut from, &mut warnings);
    separate(&mut by_node, &mut warnings);
    compare(&by_node, &zones, (block_pages, page_bytes), &mut warnings);
    let ranges = by_node.into_iter().map(|(nid, r)| (nid, in_bytes(&r, page_bytes)));
    let ranges: BTreeMap<_, _> = ranges.collect();
    let found = ranges.values().any(|r: &Vec<PhysRange>| !r.is_empty());
    found.then(|| HostMemory { ranges, from: from.join(", "), warnings })
}

/// The SLIT, rows and columns in ascending order of the nodes that are online.
pub fn distances(root: &(impl Files + ?Sized)) -> Option<(Vec<Nid>, Vec<Vec<u32>>)> {
    let nids = node_ids(root);
    let row = |nid: &Nid| {
        let text = read(root, &format!("sys/devices/system/node/node{nid}/distance"))?;
        let row: Result<Vec<u32>, _> = text.split_whitespace().map(str::parse).collect();
        row.ok().filter(|row| row.len() == nids.len())
    };
    let table: Option<Vec<_>> = nids.iter().map(row).collect();
    table.filter(|t| !t.is_empty()).map(|table| (nids, table))
}

/// The ids of the nodes that are online, ascending; empty without NUMA.
pub fn node_ids(root: &(impl Files + ?Sized)) -> Vec<Nid> {
    root.numbers("sys/devices/system/node", "node").into_iter().map(Nid).collect()
}

/// The running kernel's release.
pub fn kernel_release(root: &(impl Files + ?Sized)) -> Option<String> {
    let text = read(root, "proc/sys/kernel/osrelease")?;
    Some(text.trim().to_string()).filter(|t| !t.is_empty())
}

/// The text of a small file under `root`, if it can be read.
pub(super) fn read(root: &(impl Files + ?Sized), path: &str) -> Option<String> {
    root.text(path)
}

/// The block size in pages, and the pages of all online blocks by node.
fn blocks(root: &(impl Files + ?Sized), page_bytes: u64) -> Option<(u64, ByNode)> {
    let memory = "sys/devices/system/memory";
    let size = read(root, "sys/devices/system/memory/block_size_bytes")?;
    let pages = u64::from_str_radix(size.trim(), 16).ok()?.checked_div(page_bytes)?;
    if pages == 0 {
        return None;
    }
    let online = |block: &u32| {
        let state = read(root, &format!("{memory}/memory{block}/state"));
        state.is_none_or(|state| matches!(state.trim(), "online" | "going-offline"))
    };
    let range = |block: u32| {
        let start = u64::from(block).checked_mul(pages)?;
        Some(PfnRange::new(start, start.checked_add(pages)?))
    };
    let of = |directory: &str| {
        let blocks = root.numbers(directory, "memory").into_iter().filter(online);
        normalise(blocks.filter_map(range).collect())
    };
    let node = |nid: &Nid| of(&format!("sys/devices/system/node/node{nid}"));
    let mut by_node: ByNode = node_ids(root).iter().map(|nid| (*nid, node(nid))).collect();
    if by_node.values().all(Vec::is_empty) {
        // A kernel without NUMA links no block to a node.
        by_node.insert(Nid(0), of(memory));
    }
    by_node.values().any(|r| !r.is_empty()).then_some((pages, by_node))
}

/// A populated zone of `/proc/zoneinfo`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Zone {
    start_pfn: u64,
    spanned: u64,
    present: u64,
}

/// The zones of each node (`mm/vmstat.c: zoneinfo_show_print`, v6.12).
fn zoneinfo(text: &str) -> BTreeMap<Nid, Vec<Zone>> {
    let mut zones: BTreeMap<Nid, Vec<Zone>> = BTreeMap::new();
    let mut current = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("Node ") {
            let nid = rest.split(',').next().and_then(|n| n.trim().parse().ok()).map(Nid);
            nid.iter().for_each(|&n| zones.entry(n).or_default().push(Zone::default()));
            current = nid;
            continue;
        }
        let mut words = line.split_whitespace();
        let (Some(key), Some(value)) = (words.next(), words.next()) else { continue };
        let Some(zone) = current.and_then(|n| zones.get_mut(&n)?.last_mut()) else { continue };
        let field = match key {
            "spanned" => &mut zone.spanned,
            "present" => &mut zone.present,
            "start_pfn:" => &mut zone.start_pfn,
            _ => continue,
        };
        *field = value.parse().unwrap_or(0);
    }
    zones.values_mut().for_each(|z| z.retain(|z| z.spanned > 0));
    zones.retain(|_, z| !z.is_empty());
    zones
}

fn spans(zones: &[Zone]) -> Vec<PfnRange> {
    let span =
        |z: &Zone| PfnRange { start: Pfn(z.start_pfn), end: Pfn(z.start_pfn).offset(z.spanned) };
    normalise(zones.iter().map(span).collect())
}

/// `System RAM` of `/proc/iomem` in whole pages.
///
/// A user without `CAP_SYS_ADMIN` sees every address as zero
/// (`kernel/resource.c: r_show`, v6.12); that is no information and gives an empty
/// list, as a file that cannot be read does.
fn iomem(text: &str, page_bytes: u64) -> Vec<PfnRange> {
    let range = |line: &str| {
        let (addresses, what) = line.split_once(" : ")?;
        let (start, last) = addresses.trim().split_once('-')?;
        let start = u64::from_str_radix(start, 16).ok()?;
        let end = u64::from_str_radix(last, 16).ok()?.checked_add(1)?;
        let is_ram = what.starts_with("System RAM") && end > 1;
        is_ram.then(|| PhysRange::new(start, end).whole_pages(page_bytes))
    };
    normalise(text.lines().filter_map(range).collect())
}

fn refine(
    by_node: &mut ByNode,
    ram: Vec<PfnRange>,
    from: &mut Vec<&str>,
    warnings: &mut Vec<Warning>,
) {
    if ram.is_empty() {
        return;
    }
    let refined: ByNode = by_node.iter().map(|(nid, r)| (*nid, intersect(r, &ram))).collect();
    let pages = |by_node: &ByNode| by_node.values().map(|r| total_pages(r)).sum::<u64>();
    if pages(&refined) >= pages(by_node) / 2 {
        *by_node = refined;
        from.push("/proc/iomem");
        return;
    }
    warnings.push(Warning::new(
        "iomem-differs",
        "System RAM of /proc/iomem covers less than half of the memory blocks and is not used",
        "compare /proc/iomem with /sys/devices/system/memory",
    ));
}

/// Gives what two nodes claim to the one that begins lower.
fn separate(by_node: &mut ByNode, warnings: &mut Vec<Warning>) {
    let mut all: Vec<(PfnRange, Nid)> =
        by_node.iter().flat_map(|(nid, r)| r.iter().map(|&r| (r, *nid))).collect();
    all.sort();
    by_node.values_mut().for_each(Vec::clear);
    let mut end = Pfn(0);
    let mut shared = false;
    for (range, nid) in all {
        shared |= range.start < end;
        let own = PfnRange { start: range.start.max(end), end: range.end };
        end = end.max(range.end);
        if !own.is_empty() {
            by_node.entry(nid).or_default().push(own);
        }
    }
    if shared {
        warnings.push(Warning::new(
            "shared-memory-block",
            "a memory block belongs to two nodes; its pages are counted to the lower one",
            "run as a user who may read /proc/iomem and /proc/zoneinfo",
        ));
    }
}

/// Warns where a node's ranges and its zones' present pages differ by more than a
/// block.
fn compare(
    by_node: &ByNode,
    zones: &BTreeMap<Nid, Vec<Zone>>,
    (block_pages, page_bytes): (u64, u64),
    warnings: &mut Vec<Warning>,
) {
    for (nid, zones) in zones {
        let present: u64 = zones.iter().fold(0, |sum, z| sum.saturating_add(z.present));
        let found = by_node.get(nid).map_or(0, |r| total_pages(r));
        if found.abs_diff(present) > block_pages {
            let size = |pages: u64| Bytes(pages.saturating_mul(page_bytes));
            let message = format!(
                "node {nid}: the ranges hold {}, /proc/zoneinfo counts {} as present",
                size(found),
                size(present)
            );
            let remedy = "holes may be missing; read the ranges as a user who sees /proc/iomem";
            warnings.push(Warning::new("memory-ranges-differ", message, remedy));
        }
    }
}

fn in_bytes(ranges: &[PfnRange], page_bytes: u64) -> Vec<PhysRange> {
    let bytes = |pfn: Pfn| pfn.0.saturating_mul(page_bytes);
    ranges.iter().map(|r| PhysRange::new(bytes(r.start), bytes(r.end))).collect()
}

#[cfg(test)]
#[path = "sysfs_tests.rs"]
pub(super) mod tests;
