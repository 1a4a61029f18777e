//! What a node's workers are given: chunks of a work, and the curve they run at.
//!
//! [`jobs_of`] cuts a plan's work as padata does, for [`super::teams`]; [`Curves`] keeps
//! one [`Curve`] for all nodes that are alike.

use super::constants as k;
use super::queue::{Curve, Demand};
use super::teams::Job;
use crate::kernel::padata;
use crate::plan::Work;
use std::sync::Arc;

/// Curves by what they are made from: most nodes of a machine are alike.
#[derive(Default)]
pub(super) struct Curves(Vec<(Demand, u32, u32, Arc<Curve>)>);

impl Curves {
    /// The curve of so many workers on so many cores.
    pub(super) fn get(&mut self, demand: Demand, workers: u32, cores: u32) -> Arc<Curve> {
        let same = |(d, w, c, _): &&(Demand, u32, u32, Arc<Curve>)| {
            (*d, *w, *c) == (demand, workers, cores)
        };
        if let Some((_, _, _, curve)) = self.0.iter().find(same) {
            return Arc::clone(curve);
        }
        let curve = Arc::new(Curve::new(demand, workers, cores, k::SMT_GAIN));
        self.0.push((demand, workers, cores, Arc::clone(&curve)));
        curve
    }
}

/// The jobs of a work with the pages of each chunk. Pages that no job covers are done
/// by one worker at the end.
pub(super) fn jobs_of(work: &Work) -> Vec<Job> {
    let mut spans = work.spans.iter().map(|s| s.pages).peekable();
    let mut out = Vec::with_capacity(work.jobs.len());
    // Where the next span begins after parts of it were handed out.
    let mut done = 0;
    for job in &work.jobs {
        let workers = job.workers();
        let chunk_pages = work.chunk_pages.unwrap_or_else(|| job.chunk_pages());
        let mut chunks = Vec::new();
        for chunk in padata::chunks_of(job.range(), chunk_pages, workers == 1) {
            let mut pages = 0;
            while let Some(span) = spans.peek() {
                let start = span.start.0.max(done);
                pages += span.end.0.min(chunk.end.0).saturating_sub(start);
                done = chunk.end.0.min(span.end.0).max(done);
                if span.end > chunk.end {
                    break;
                }
                spans.next();
            }
            if pages > 0 {
                chunks.push(pages);
            }
        }
        out.push(Job { workers, chunks });
    }
    let left: u64 = spans.map(|s| s.end.0.saturating_sub(s.start.0.max(done))).sum();
    if left > 0 {
        out.push(Job { workers: 1, chunks: vec![left] });
    }
    out
}
