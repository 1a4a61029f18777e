//! Cutting a layout down to what a buffer can hold.
//!
//! A memmap that does not fit is executed through a window: [`window`] keeps the
//! same share of every kind of page on every node, in whole blocks, so that phases
//! keep their proportions and can be scaled one by one. `study` says which share
//! was executed and labels what it scales.

use crate::kernel::Layout;
use crate::kernel::layout::NodeLayout;
use crate::kernel::padata::InitJob;
use crate::pfn::{self, Pfn, PfnRange};
use crate::plan::strategies::all_pages;

/// The share of a layout that is executed.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// The layout with only the executed pages in it.
    pub layout: Layout,
    /// Struct pages to execute.
    pub executed_pages: u64,
    /// Struct pages of the whole machine.
    pub total_pages: u64,
}

/// The buffer cannot hold even one block of every kind of page.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("a window needs room for at least {least_pages} struct pages of {machine}")]
pub struct TooSmall {
    /// The machine.
    pub machine: String,
    /// The struct pages of the smallest window.
    pub least_pages: u64,
}

/// The struct pages of all nodes.
pub fn layout_pages(layout: &Layout) -> u64 {
    layout.nodes.iter().map(|n| pfn::total_pages(&all_pages(n))).sum()
}

/// Keeps at most `max_pages` struct pages, in the same proportion everywhere.
///
/// # Errors
/// When not even one block of each kind of page fits.
pub fn window(layout: &Layout, max_pages: u64) -> Result<Window, TooSmall> {
    let total_pages = layout_pages(layout);
    if total_pages <= max_pages {
        let layout = layout.clone();
        return Ok(Window { layout, executed_pages: total_pages, total_pages });
    }
    // Rounding up to whole blocks may overshoot: try smaller shares.
    let mut least_pages = u64::MAX;
    for tenth in (0..=10).rev() {
        let share = max_pages as f64 / total_pages as f64 * f64::from(tenth) / 10.0;
        let cut = cut_layout(layout, share);
        let executed_pages = layout_pages(&cut);
        least_pages = least_pages.min(executed_pages);
        if executed_pages <= max_pages {
            return Ok(Window { layout: cut, executed_pages, total_pages });
        }
    }
    Err(TooSmall { machine: layout.machine.clone(), least_pages })
}

fn cut_layout(layout: &Layout, share: f64) -> Layout {
    let mut out = layout.clone();
    let (block, section) = (layout.max_order_pages, layout.pages_per_section);
    for node in &mut out.nodes {
        cut_node(node, share, block, section);
    }
    out
}

fn cut_node(node: &mut NodeLayout, share: f64, block: u64, section: u64) {
    // Freed and other early pages apart: each must keep its share.
    let kept = keep(&pfn::subtract(&node.early.sweep, &node.early_free), share, block);
    node.early_free = keep(&node.early_free, share, block);
    node.early.sweep = pfn::normalise([kept, node.early_free.clone()].concat());
    node.early.reserved = keep(&node.early.reserved, share, block);
    node.early.holes = keep(&node.early.holes, share, block);
    // Whole sections where they fit, because chunks are whole sections.
    let deferred_pages = pfn::total_pages(&node.deferred);
    let unit = if (deferred_pages as f64 * share) as u64 >= section { section } else { block };
    node.deferred = keep(&node.deferred, share, unit);
    node.pg_reserved = pfn::intersect(&node.pg_reserved, &all_pages(node));
    node.jobs = node.jobs.iter().filter_map(|j| cut_job(j, &node.deferred)).collect();
}

/// The first ranges that make up `share` of the pages, in whole multiples of `unit`.
fn keep(ranges: &[PfnRange], share: f64, unit: u64) -> Vec<PfnRange> {
    let all = pfn::total_pages(ranges);
    let mut left = ((all as f64 * share) as u64 / unit).max(1) * unit;
    let mut kept = Vec::new();
    for range in ranges {
        if left == 0 {
            break;
        }
        let pages = range.pages().min(left);
        kept.push(PfnRange { start: range.start, end: range.start.offset(pages) });
        left -= pages;
    }
    kept
}

/// The job that covers what is left of its pages.
fn cut_job(job: &InitJob, deferred: &[PfnRange]) -> Option<InitJob> {
    let left = pfn::intersect(&[job.range()], deferred);
    let end: Pfn = left.last()?.end.align_up(job.align.max(1)).min(job.range().end);
    Some(InitJob { size: end.pages_since(job.start), ..*job })
}

#[cfg(test)]
mod tests {
    use super::*;

    //        0          600   1000            5000
    // node   [==========)     [===============)          10 % in blocks of 100
    // kept   [====)  460 pages in all: 400 of them
    #[test]
    fn a_share_is_kept_from_the_bottom_in_whole_blocks() {
        let ranges = [PfnRange::new(0, 600), PfnRange::new(1000, 5000)];
        assert_eq!(keep(&ranges, 0.1, 100), [PfnRange::new(0, 400)]);
        assert_eq!(keep(&ranges, 0.2, 100), [PfnRange::new(0, 600), PfnRange::new(1000, 1300)]);
    }

    #[test]
    fn a_job_ends_with_the_last_page_that_is_left() {
        let job = InitJob {
            start: Pfn(1024),
            size: 8192,
            align: 1024,
            min_chunk: 1024,
            max_threads: 2,
            numa_aware: false,
        };
        let cut = cut_job(&job, &[PfnRange::new(1024, 2500)]);
        assert_eq!(cut.map(|j| j.size), Some(2048));
        assert_eq!(cut_job(&job, &[]), None);
    }
}
