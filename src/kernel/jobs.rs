//! The jobs of a node's deferred phase, and how many threads do them.
//!
//! Up to 5.7 one thread walks a node; 5.8 to 6.17 make a padata job of every free
//! range, rounded up to a section (`mm/page_alloc.c: deferred_init_memmap`, v5.10);
//! from 6.18 the whole tail of the zone is one job. [`super::padata`] cuts them.

use super::padata::InitJob;
use super::version::KernelModel;
use crate::pfn::{Pfn, PfnRange};

/// Threads that initialise a node with so many CPUs online, at most
/// (`deferred_page_init_max_threads`). A node without CPUs has one.
pub fn max_threads(kernel: &KernelModel, cpus: u32) -> u32 {
    let by_cpus = kernel.padata && kernel.threads_by_cpus;
    if by_cpus { cpus.max(1) } else { 1 }
}

/// The tail of a zone that is to be initialised.
#[derive(Clone, Copy, Debug)]
pub struct Tail<'a> {
    /// `first_deferred_pfn`.
    pub first: Pfn,
    /// Where the zone ends.
    pub zone_end: Pfn,
    /// Free ranges of the node behind `first`, ascending, apart where regions of
    /// memory are, even if they touch.
    pub free: &'a [PfnRange],
    /// Pages of a section.
    pub pages_per_section: u64,
}

/// The jobs of `tail`, one after another.
pub fn jobs(kernel: &KernelModel, tail: Tail<'_>, max_threads: u32) -> Vec<InitJob> {
    let section = tail.pages_per_section;
    let job = |start: Pfn, end: Pfn| InitJob {
        start,
        size: end.align_up(section).pages_since(start),
        align: section,
        min_chunk: section,
        max_threads,
        numa_aware: false,
    };
    if kernel.one_job_per_node || !kernel.padata {
        let whole = job(tail.first, tail.zone_end);
        let idle = whole.size == 0 || (tail.free.is_empty() && !kernel.one_job_per_node);
        return if idle { Vec::new() } else { vec![whole] };
    }
    let mut out: Vec<InitJob> = Vec::new();
    let mut done = tail.first;
    for range in tail.free.iter().filter(|r| !r.is_empty()) {
        if range.end > done {
            let next = job(range.start.max(done), range.end);
            done = next.range().end;
            out.push(next);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::version::KernelVersion;
    use crate::machine::Arch;

    fn of(major: u32, minor: u32, free: &[PfnRange]) -> Vec<(u64, u64)> {
        let kernel = KernelModel::new(KernelVersion::new(major, minor), Arch::X86_64);
        let tail = Tail { first: Pfn(16), zone_end: Pfn(60), free, pages_per_section: 16 };
        jobs(&kernel, tail, 4).iter().map(|j| (j.start.0, j.range().end.0)).collect()
    }

    // section   16              32              48              64
    // free       [18 = 20) [24 ======== 35)  [40=44)    [52= 56)
    // 5.8 on     |--- 1 ------->|--- 2 -------->|--- 3 -------->|
    // 6.18 on   |--------------------- 1 ---------------------->|
    #[test]
    fn up_to_6_17_every_free_range_makes_a_job_unless_one_reached_it() {
        let free = [(18, 20), (24, 35), (40, 44), (52, 56)].map(|(s, e)| PfnRange::new(s, e));
        assert_eq!(of(6, 17, &free), [(18, 32), (32, 48), (52, 64)]);
        assert_eq!(of(6, 18, &free), [(16, 64)]);
        assert_eq!(of(5, 7, &free), [(16, 64)]);
    }

    #[test]
    fn a_tail_without_free_pages_makes_no_job_before_6_18() {
        assert_eq!(of(6, 12, &[]), []);
        assert_eq!(of(6, 18, &[]), [(16, 64)]);
    }

    #[test]
    fn threads_follow_version_architecture_and_cpus() {
        let at =
            |a, b, arch, cpus| max_threads(&KernelModel::new(KernelVersion::new(a, b), arch), cpus);
        assert_eq!(at(5, 7, Arch::X86_64, 32), 1);
        assert_eq!(at(5, 8, Arch::X86_64, 32), 32);
        assert_eq!(at(6, 8, Arch::Arm64, 32), 1);
        assert_eq!(at(6, 12, Arch::Arm64, 32), 32);
        assert_eq!(at(6, 12, Arch::X86_64, 0), 1, "a node without CPUs");
    }
}
