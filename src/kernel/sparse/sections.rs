//! Which sections are present, and who owns them.
//!
//! A section is present when any whole page of memory lies in it; it belongs to the
//! node of the lowest region that touches it (`mm/sparse.c: memory_present`).

use super::Batch;
use crate::kernel::memblock::RegionSet;
use crate::kernel::sparse_rules::ReleaseRules;
use crate::pfn::Nid;
use serde::{Deserialize, Serialize};

/// Present sections `start..end` of one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SectionRun {
    /// The first section's number.
    pub start: u64,
    /// The number behind the last.
    pub end: u64,
    /// The owner.
    pub nid: Nid,
}

/// All present sections, ascending, runs of one owner joined.
pub fn present_sections(memory: &RegionSet, rules: &ReleaseRules) -> Vec<SectionRun> {
    let pages = rules.pages_per_section();
    let mut out: Vec<SectionRun> = Vec::new();
    for region in memory.iter() {
        let pfns = region.range().whole_pages(rules.page_bytes);
        let nid = region.nid.unwrap_or_default();
        let taken = out.last().map_or(0, |r| r.end);
        let start = (pfns.start.0 / pages).max(taken);
        let end = pfns.end.0.div_ceil(pages);
        if pfns.is_empty() || start >= end {
            continue;
        }
        match out.last_mut() {
            Some(last) if last.end == start && last.nid == nid => last.end = end,
            _ => out.push(SectionRun { start, end, nid }),
        }
    }
    out
}

/// Runs of the same owner in a row; `sparse_init` handles each at once.
pub(super) fn batches(sections: &[SectionRun]) -> Vec<Batch<'_>> {
    let by_owner = sections.chunk_by(|a, b| a.nid == b.nid);
    let batch = |runs: &'_ [SectionRun]| (runs[0].nid, runs.iter().map(|r| r.end - r.start).sum());
    by_owner
        .map(|runs| {
            let (nid, sections) = batch(runs);
            Batch { nid, runs, sections }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::memblock::{MemblockFlags, Region};
    use crate::kernel::sparse_rules::Platform;
    use crate::kernel::version::KernelModel;
    use crate::machine::Arch;

    // sections  |  0  |  1  |  2  |  3  |  4  |  5  |  6  |      of 128 MiB
    // node 0    [========)              [=====)
    // node 1             [==)                       [=)
    // owner        0     0     -     -     0     -     1
    #[test]
    fn a_shared_section_belongs_to_the_lower_node() {
        let mib = |n: u64| n << 20;
        let mut memory = RegionSet::default();
        for (start, end, nid) in [(0, 192, 0), (192, 256, 1), (512, 640, 0), (768, 800, 1)] {
            let nid = Some(Nid(nid));
            memory.insert(Region::new(mib(start), mib(end), nid, MemblockFlags::NONE));
        }
        let kernel = KernelModel::from_release("6.12", Arch::X86_64).expect("known");
        let rules = ReleaseRules::new(&kernel, 4096, Platform::default());
        let sections = present_sections(&memory, &rules);
        let run = |start, end, nid| SectionRun { start, end, nid: Nid(nid) };
        assert_eq!(sections, [run(0, 2, 0), run(4, 5, 0), run(6, 7, 1)]);
        let batches = batches(&sections);
        assert_eq!(batches.iter().map(|b| b.sections).collect::<Vec<_>>(), [3, 1]);
    }
}
