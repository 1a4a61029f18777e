//! How padata cuts a multithreaded job into chunks.
//!
//! [`InitJob`] has the fields of the kernel's `struct padata_mt_job`, [`chunks`]
//! follows `kernel/padata.c: padata_do_multithreaded` and `padata_mt_helper`
//! (v5.8 to v7.3). `exec` hands the chunks out; `model` does so in virtual time.

use crate::pfn::{Pfn, PfnRange};
use serde::{Deserialize, Serialize};

/// One call of `padata_do_multithreaded`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InitJob {
    /// The first page frame.
    pub start: Pfn,
    /// Page frames of the job, holes included.
    pub size: u64,
    /// Chunks start at multiples of this many pages.
    pub align: u64,
    /// The smallest chunk in pages.
    pub min_chunk: u64,
    /// Workers at most, the calling thread included.
    pub max_threads: u32,
    /// Whether workers are spread over nodes; false for struct pages.
    pub numa_aware: bool,
}

/// Chunks per worker that padata aims at (`load_balance_factor`).
const LOAD_BALANCE_FACTOR: u64 = 4;

impl InitJob {
    /// The page frames of the job.
    pub fn range(&self) -> PfnRange {
        PfnRange { start: self.start, end: self.start.offset(self.size) }
    }

    /// Workers that really take part: at most one per smallest chunk.
    pub fn workers(&self) -> u32 {
        let smallest = self.min_chunk.max(self.align).max(1);
        let most = u32::try_from((self.size / smallest).max(1)).unwrap_or(u32::MAX);
        most.min(self.max_threads.max(1))
    }

    /// Pages of a whole chunk; a single worker takes the job in one piece.
    pub fn chunk_pages(&self) -> u64 {
        let workers = u64::from(self.workers());
        if workers == 1 {
            return self.size;
        }
        let fair = self.size / (workers * LOAD_BALANCE_FACTOR);
        fair.max(self.min_chunk).max(1).next_multiple_of(self.align.max(1))
    }
}

/// The chunks of a job in the order in which they are handed out.
///
/// Their borders are multiples of the chunk size in page frame numbers, so the
/// first chunk is short where the job starts unaligned.
pub fn chunks(job: &InitJob) -> impl Iterator<Item = PfnRange> {
    chunks_of(job.range(), job.chunk_pages(), job.workers() == 1)
}

/// Cuts `range` at multiples of `chunk_pages`, or not at all when `whole`.
pub fn chunks_of(range: PfnRange, chunk_pages: u64, whole: bool) -> impl Iterator<Item = PfnRange> {
    let mut start = range.start;
    std::iter::from_fn(move || {
        if start >= range.end {
            return None;
        }
        let next = start.offset(1).align_up(chunk_pages.max(1)).min(range.end);
        let chunk = PfnRange { start, end: if whole { range.end } else { next } };
        start = chunk.end;
        Some(chunk)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECTION: u64 = 32768;

    fn job(start: u64, size: u64, max_threads: u32) -> InitJob {
        InitJob {
            start: Pfn(start),
            size,
            align: SECTION,
            min_chunk: SECTION,
            max_threads,
            numa_aware: false,
        }
    }

    // A node of 64 GiB at 66 GiB whose first section is early, 32 threads:
    //   66 GiB+128 MiB        66.5 GiB      67 GiB                130 GiB
    //   [ 384 MiB, short      | 512 MiB     | …  128 chunks …     )
    #[test]
    fn the_worked_example_of_a_64_gib_node() {
        let job = job((66 << 18) + SECTION, 16_744_448, 32);
        assert_eq!(job.chunk_pages(), 131_072);
        let all: Vec<PfnRange> = chunks(&job).collect();
        assert_eq!(all.len(), 128);
        assert_eq!(all[0].pages(), 98_304);
    }

    #[test]
    fn more_threads_make_smaller_chunks() {
        let start = (66 << 18) + SECTION;
        let expect = [(2, 8192, 9), (4, 4096, 17), (8, 2048, 32), (16, 1024, 64), (64, 256, 256)];
        for (threads, mib, count) in expect {
            let job = job(start, 16_744_448, threads);
            assert_eq!(job.chunk_pages() >> 8, mib, "{threads} threads");
            assert_eq!(chunks(&job).count(), count, "{threads} threads");
        }
    }

    proptest! {
        #[test]
        fn chunks_cover_the_job_once(start in 0u64..1 << 22, size in 0u64..1 << 24, t in 1u32..64) {
            let job = job(start, size, t);
            let mut at = job.start;
            for chunk in chunks(&job) {
                prop_assert_eq!(chunk.start, at);
                prop_assert!(!chunk.is_empty() && chunk.pages() <= job.chunk_pages().max(size));
                at = chunk.end;
            }
            prop_assert_eq!(at, job.range().end);
        }
    }
}
