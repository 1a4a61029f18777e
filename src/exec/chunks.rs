//! The chunks of a node's jobs, and what its workers share while they take them.
//!
//! [`cut`] distributes pieces over chunks as padata would hand them out. A
//! [`NodeTask`] has one queue per job: the next job begins when the last chunk of the
//! one before is finished, as each `padata_do_multithreaded` call joins its workers.

use super::fill::filled;
use super::lists::NodeLists;
use super::ops::Piece;
use crate::host::barrier::SpinBarrier;
use crate::kernel::padata;
use crate::pfn::PfnRange;
use crate::plan::Work;
use crossbeam::queue::ArrayQueue;
use std::mem;

/// Pieces that one worker takes at once.
#[derive(Debug)]
pub struct Chunk<'a> {
    /// The copy of the memmap they belong to.
    pub copy: usize,
    /// The pieces, ascending.
    pub pieces: Vec<Piece<'a>>,
}

/// The chunks of one job.
#[derive(Debug)]
pub struct JobQueue<'a> {
    /// What is still to be taken.
    pub queue: ArrayQueue<Chunk<'a>>,
    /// Left by a worker when all of the node's workers have arrived.
    pub finished: SpinBarrier,
}

/// Everything that the workers of one node share.
#[derive(Debug)]
pub struct NodeTask<'a> {
    /// The index of the node's area.
    pub area: usize,
    /// The free lists, copy by copy.
    pub lists: Vec<NodeLists<'a>>,
    /// The jobs, one after another.
    pub jobs: Vec<JobQueue<'a>>,
    /// Workers of the node.
    pub threads: u32,
}

impl<'a> NodeTask<'a> {
    /// A task whose jobs have these chunks.
    pub fn new(
        area: usize,
        lists: Vec<NodeLists<'a>>,
        jobs: Vec<Vec<Chunk<'a>>>,
        threads: u32,
    ) -> Self {
        let job = |chunks| JobQueue {
            queue: filled(chunks),
            finished: SpinBarrier::new(threads as usize),
        };
        Self { area, lists, jobs: jobs.into_iter().map(job).collect(), threads }
    }
}

/// Distributes pieces over the chunks of the work's jobs; each with its job's index.
pub fn cut<'a>(pieces: Vec<Piece<'a>>, work: &Work) -> Vec<(usize, Vec<Piece<'a>>)> {
    let mut borders = borders(work).into_iter().peekable();
    let (mut out, mut chunk, mut job) = (Vec::new(), Vec::new(), 0);
    for mut piece in pieces {
        while !piece.lines.is_empty() {
            // Pages that no job covers would be lost: they join the chunk before.
            let end = match borders.peek() {
                Some((border, _)) if border.end <= piece.pages.start => {
                    borders.next();
                    if !chunk.is_empty() {
                        out.push((job, mem::take(&mut chunk)));
                    }
                    continue;
                }
                Some((border, of_job)) => {
                    job = *of_job;
                    border.end.min(piece.pages.end)
                }
                None => piece.pages.end,
            };
            chunk.push(piece.split_off(end.pages_since(piece.pages.start)));
        }
    }
    if !chunk.is_empty() {
        out.push((job, chunk));
    }
    out
}

/// All chunks of all jobs, ascending, with the index of their job.
fn borders(work: &Work) -> Vec<(PfnRange, usize)> {
    let mut borders = Vec::new();
    for (index, job) in work.jobs.iter().enumerate() {
        match work.chunk_pages {
            Some(pages) => {
                let chunks = padata::chunks_of(job.range(), pages, false);
                borders.extend(chunks.map(|chunk| (chunk, index)));
            }
            None => borders.extend(padata::chunks(job).map(|chunk| (chunk, index))),
        }
    }
    borders.sort();
    borders
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::line::Line;
    use crate::kernel::layout::ZoneKind;
    use crate::kernel::padata::InitJob;
    use crate::pfn::{Nid, Pfn};
    use crate::plan::Grain;

    fn job(start: u64, size: u64) -> InitJob {
        let (align, min_chunk) = (10, 10);
        InitJob { start: Pfn(start), size, align, min_chunk, max_threads: 2, numa_aware: false }
    }

    // pfn     5     10         20    25   30        40
    // free    [===============|======)    [=========)
    // job 0   [=============================)              chunks 5..10 10..20 20..30
    // job 1                                [=========)      chunks 30..40
    #[test]
    fn chunks_belong_to_their_job_and_none_is_lost() {
        let mut lines = vec![Line::default(); 40];
        let (first, second) = lines.split_at_mut(20);
        let piece = |start, end, lines| Piece {
            pages: PfnRange::new(start, end),
            zone: ZoneKind::Normal,
            lines,
        };
        let pieces = vec![piece(5, 25, first), piece(30, 40, &mut second[..10])];
        let work = Work {
            nid: Nid(0),
            spans: Vec::new(),
            steps: Vec::new(),
            grain: Grain::Block,
            jobs: vec![job(5, 25), job(30, 10)],
            chunk_pages: None,
        };
        let found: Vec<(usize, u64, u64)> = cut(pieces, &work)
            .iter()
            .map(|(job, p)| (*job, p[0].pages.start.0, p[p.len() - 1].pages.end.0))
            .collect();
        assert_eq!(found, [(0, 5, 10), (0, 10, 20), (0, 20, 25), (1, 30, 40)]);
    }
}
