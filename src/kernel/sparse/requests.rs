//! The log of `sparse_init`: requests, what was freed, where the memmap lies.
//!
//! From 7.2 on a large machine makes half a million equal requests whose answers
//! differ by 2 MiB. [`Requests`] and [`MemmapRun`] keep such series as one item.

use crate::kernel::layout::Backing;
use crate::pfn::{Nid, PfnRange};
use serde::{Deserialize, Serialize};

/// One call of a memblock allocation function, with the fields that
/// `memblock=debug` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Request {
    /// The function without `memblock_`.
    pub call: &'static str,
    /// How many bytes.
    pub bytes: u64,
    /// The alignment in bytes.
    pub align: u64,
    /// The node, `None` for any.
    pub nid: Option<Nid>,
    /// The lowest address wanted.
    pub min_addr: u64,
    /// The limit; 0 and 1 mean the current limit.
    pub max_addr: u64,
    /// The function that asked.
    pub caller: &'static str,
    /// The answer; `None` when the attempt failed.
    pub start: Option<u64>,
}

/// `count` requests that differ in their answer alone, each `step` bytes further on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RequestRun {
    /// The first of them.
    pub first: Request,
    /// How many.
    pub count: u64,
    /// From one answer to the next, in bytes; 0 for a single request.
    pub step: i64,
}

/// Requests in order, stored as runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Requests {
    runs: Vec<RequestRun>,
    len: usize,
}

impl RequestRun {
    /// Every single request, in order.
    pub fn iter(&self) -> impl Iterator<Item = Request> {
        (0..self.count).map(|i| self.at(i))
    }

    /// The `i`-th request of the run.
    fn at(&self, i: u64) -> Request {
        let offset = self.step.wrapping_mul(i as i64);
        Request { start: self.first.start.map(|s| s.wrapping_add_signed(offset)), ..self.first }
    }

    fn try_extend(&mut self, request: &Request) -> bool {
        if (Request { start: self.first.start, ..*request }) != self.first {
            return false;
        }
        let step = match (self.at(self.count - 1).start, request.start) {
            (Some(last), Some(this)) => this.wrapping_sub(last) as i64,
            (None, None) => 0,
            _ => return false,
        };
        if self.count > 1 && step != self.step {
            return false;
        }
        self.step = step;
        self.count += 1;
        true
    }
}

impl Requests {
    pub(super) fn push(&mut self, request: Request) {
        self.len += 1;
        if self.runs.last_mut().is_some_and(|run| run.try_extend(&request)) {
            return;
        }
        self.runs.push(RequestRun { first: request, count: 1, step: 0 });
    }

    /// Appends `request` and `count - 1` more, each answer `step` bytes from the last.
    pub(super) fn push_run(&mut self, request: Request, count: u64, step: i64) {
        let all = RequestRun { first: request, count, step };
        for i in 0..count {
            self.push(all.at(i));
            let Some(run) = self.runs.last_mut().filter(|r| r.count > 1 && r.step == step) else {
                continue;
            };
            // What is left continues this run.
            run.count += count - 1 - i;
            self.len += usize::try_from(count - 1 - i).unwrap_or(usize::MAX);
            return;
        }
    }

    /// The last request.
    pub(super) fn last(&self) -> Option<Request> {
        self.runs.last().map(|run| run.at(run.count.saturating_sub(1)))
    }

    /// How many requests there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The runs, in order.
    pub fn runs(&self) -> &[RequestRun] {
        &self.runs
    }

    /// Every single request, in order.
    pub fn iter(&self) -> impl Iterator<Item = Request> {
        self.runs.iter().flat_map(RequestRun::iter)
    }
}

/// A reservation that `sparse_init` gave back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FreeRecord {
    /// How many requests were made before.
    pub after: usize,
    /// The first byte.
    pub start: u64,
    /// The first byte behind it.
    pub end: u64,
}

/// In which direction the pieces of a run follow each other in physical memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Succession {
    /// Like the page frames they describe.
    Ascending,
    /// Against them: the rule from 7.2 on.
    Descending,
}

/// Pieces of the memmap that follow each other without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemmapRun {
    /// The first byte, counted from the struct page of pfn 0.
    pub map_start: u64,
    /// The first byte behind the run, counted likewise.
    pub map_end: u64,
    /// The node that owns the sections.
    pub nid: Nid,
    /// The node on which this piece of the memmap lies.
    pub on_nid: Nid,
    /// How the pieces are mapped.
    pub backing: Backing,
    /// The size of a piece in bytes.
    pub piece_bytes: u64,
    /// First physical byte.
    pub start: u64,
    /// First physical byte behind the run.
    pub end: u64,
    /// Whether later pieces lie higher or lower.
    pub succession: Succession,
}

impl MemmapRun {
    /// The page frames whose struct pages lie at least partly in the run.
    pub fn pfns(&self, struct_page_bytes: u64) -> PfnRange {
        let bytes = struct_page_bytes.max(1);
        PfnRange::new(self.map_start / bytes, self.map_end.div_ceil(bytes))
    }

    /// The physical address of the byte `map_offset` of the memmap, if it is here.
    pub fn address_of(&self, map_offset: u64) -> Option<u64> {
        if map_offset < self.map_start || map_offset >= self.map_end {
            return None;
        }
        let into = map_offset - self.map_start;
        Some(match self.succession {
            Succession::Ascending => self.start + into,
            Succession::Descending => {
                let piece = into / self.piece_bytes;
                self.end - (piece + 1) * self.piece_bytes + into % self.piece_bytes
            }
        })
    }

    fn goes(&self, succession: Succession) -> bool {
        self.succession == succession || self.end - self.start == self.piece_bytes
    }

    /// The address of the piece that was appended last.
    pub(super) fn last_piece(&self) -> u64 {
        match self.succession {
            Succession::Ascending => self.end - self.piece_bytes,
            Succession::Descending => self.start,
        }
    }

    /// Appends `piece`, a run itself, if it continues this run.
    fn try_extend(&mut self, piece: &Self) -> bool {
        let alike = piece.map_start == self.map_end
            && (piece.nid, piece.on_nid) == (self.nid, self.on_nid)
            && (piece.backing, piece.piece_bytes) == (self.backing, self.piece_bytes);
        let both = |way| self.goes(way) && piece.goes(way);
        if alike && both(Succession::Ascending) && piece.start == self.end {
            (self.end, self.succession) = (piece.end, Succession::Ascending);
        } else if alike && both(Succession::Descending) && piece.end == self.start {
            (self.start, self.succession) = (piece.start, Succession::Descending);
        } else {
            return false;
        }
        self.map_end = piece.map_end;
        true
    }

    /// Appends `piece` to `runs`.
    pub(super) fn push(runs: &mut Vec<Self>, piece: Self) {
        if !runs.last_mut().is_some_and(|last| last.try_extend(&piece)) {
            runs.push(piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn request(start: Option<u64>) -> Request {
        Request {
            call: "alloc_try_nid_raw",
            bytes: 8,
            align: 8,
            nid: None,
            min_addr: 0,
            max_addr: 0,
            caller: "f",
            start,
        }
    }

    proptest! {
        #[test]
        fn runs_spread_out_to_what_was_pushed(
            starts in prop::collection::vec(prop::option::of(0u64..6), 0..40),
        ) {
            let mut all = Requests::default();
            starts.iter().for_each(|&s| all.push(request(s)));
            let back: Vec<_> = all.iter().map(|r| r.start).collect();
            prop_assert_eq!(all.len(), starts.len());
            prop_assert_eq!(back, starts);
        }

        #[test]
        fn runs_may_be_pushed_at_once(
            before in prop::collection::vec(0u64..6, 0..4),
            first in 0u64..6,
            count in 1u64..6,
            step in -1i64..2,
        ) {
            let first = first + 6;
            let (mut single, mut at_once) = (Requests::default(), Requests::default());
            for &start in &before {
                single.push(request(Some(start)));
                at_once.push(request(Some(start)));
            }
            for i in 0..count as i64 {
                single.push(request(Some(first.wrapping_add_signed(step * i))));
            }
            at_once.push_run(request(Some(first)), count, step);
            prop_assert_eq!(single, at_once);
        }

        // Whatever the order of pieces, each byte is found where its piece was put.
        #[test]
        fn every_byte_of_a_run_is_found(places in prop::collection::vec(0u64..8, 1..12)) {
            let mut runs = Vec::new();
            for (i, &place) in places.iter().enumerate() {
                let map_start = i as u64 * 16;
                MemmapRun::push(&mut runs, MemmapRun {
                    map_start,
                    map_end: map_start + 16,
                    nid: Nid(0),
                    on_nid: Nid(0),
                    backing: Backing::BasePages,
                    piece_bytes: 16,
                    start: place * 16,
                    end: place * 16 + 16,
                    succession: Succession::Ascending,
                });
            }
            for (i, &place) in places.iter().enumerate() {
                let offset = i as u64 * 16 + 5;
                let found: Vec<u64> = runs.iter().filter_map(|r| r.address_of(offset)).collect();
                prop_assert_eq!(found, vec![place * 16 + 5]);
            }
        }
    }
}
