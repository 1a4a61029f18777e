//! Gigantic huge pages, which memblock has to give (`mm/hugetlb.c:
//! __alloc_bootmem_huge_page`).

use crate::kernel::cmdline::{CommandLine, HugeCount, HugePages};
use crate::kernel::memblock::{AllocRequest, Memblock};
use crate::kernel::sparse_rules::ReleaseRules;
use crate::kernel::version::KernelVersion;
use crate::pfn::{Nid, PhysRange};
use std::collections::BTreeSet;

/// Whether they are allocated before the memmap is: captured after it in 6.12 and
/// before it from 6.18 on; that 6.15 changed it is recalled.
pub fn before_sparse_init(version: KernelVersion) -> bool {
    version >= KernelVersion::new(6, 15)
}

/// Allocates every page larger than the largest buddy block that `line` asks for, and
/// returns them ascending and joined, with the number of pages that found no room.
///
/// Pages that are asked for without a node go to the nodes in turn.
pub fn gigantic_pages(
    memblock: &mut Memblock,
    rules: &ReleaseRules,
    line: &CommandLine,
) -> (Vec<PhysRange>, u64) {
    let largest = rules.max_order_pages() * rules.page_bytes;
    let nodes: BTreeSet<Nid> =
        memblock.memory().iter().map(|r| r.nid.unwrap_or_default()).collect();
    let nodes: Vec<Nid> = nodes.into_iter().collect();
    let (mut pages, mut missing) = (Vec::new(), 0);
    for HugePages { page_bytes, count } in &line.hugepages {
        let Some(bytes) = page_bytes.filter(|bytes| *bytes > largest) else { continue };
        let total = memblock.memory().iter().fold(0u64, |s, r| s.saturating_add(r.end - r.start));
        let most = total / bytes;
        match count {
            HugeCount::Total(count) => {
                let taken = (0..(*count).min(most)).map_while(|i| {
                    let turn = nodes.get((i % nodes.len().max(1) as u64) as usize)?;
                    take(memblock, bytes, *turn, false)
                });
                let taken: Vec<PhysRange> = taken.collect();
                missing += count - taken.len() as u64;
                pages.extend(taken);
            }
            HugeCount::PerNode(list) => {
                for &(nid, count) in list {
                    let taken = (0..count.min(most))
                        .map_while(|_| take(memblock, bytes, Nid(nid), true))
                        .collect::<Vec<PhysRange>>();
                    missing += count - taken.len() as u64;
                    pages.extend(taken);
                }
            }
        }
    }
    (joined(pages), missing)
}

fn take(memblock: &mut Memblock, bytes: u64, nid: Nid, exact_nid: bool) -> Option<PhysRange> {
    let request =
        AllocRequest { bytes, align: bytes, min_addr: 0, max_addr: 0, nid: Some(nid), exact_nid };
    let start = memblock.alloc(&request)?;
    Some(PhysRange::new(start, start.saturating_add(bytes)))
}

fn joined(mut pages: Vec<PhysRange>) -> Vec<PhysRange> {
    pages.sort();
    let mut out: Vec<PhysRange> = Vec::new();
    for page in pages {
        match out.last_mut() {
            Some(last) if last.end == page.start => last.end = page.end,
            _ => out.push(page),
        }
    }
    out
}
