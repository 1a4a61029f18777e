//! The cells of the clearing experiment: what is cleared, how.

use super::order::{Direction, Pair, order};
use super::{PAGE_BYTES, SUBPAGE_BYTES, main_stores};
use crate::host::line::{LINE_BYTES, Line};
use crate::host::store::{Store, StoreKind};
use crate::record::lab::{Factors, factors};
use crate::units::GIB;

/// Chunks of the discussion's table.
const TABLE_CHUNKS: [u64; 5] = [4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];
/// Chunks of a page: with the kernel's store and the widest streaming one.
const ALL_CHUNKS: [u64; 7] = [4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20];
/// Chunks of a page with every store.
const SOME_CHUNKS: [u64; 2] = [4 << 10, 64 << 10];
/// Directions with chunks.
const CHUNKED: [Direction; 3] = [Direction::Forward, Direction::Reverse, Direction::Converging];

/// One way of clearing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The instruction.
    pub store: Store,
    /// The order.
    pub direction: Direction,
    /// Bytes that one call clears.
    pub chunk_bytes: u64,
    /// Bytes in all.
    pub bytes: u64,
    /// Whether every chunk is mapped and unmapped as before v5.11.
    pub pair: bool,
    /// Whether the memory was in the caches as far as it fits, or not at all.
    pub warm: bool,
}

impl Cell {
    /// What tells it apart.
    pub fn factors(&self) -> Factors {
        factors([
            ("store", self.store.name().into()),
            ("kind", self.store.kind().to_string().as_str().into()),
            ("direction", self.direction.name().into()),
            ("chunk_bytes", self.chunk_bytes.into()),
            ("bytes", self.bytes.into()),
            ("pair", if self.pair { "with" } else { "without" }.into()),
            ("temperature", if self.warm { "warm" } else { "cold" }.into()),
        ])
    }

    /// For a message.
    pub fn describe(&self) -> String {
        let (store, direction) = (self.store.name(), self.direction.name());
        format!("clearing {} bytes with {store}, {direction} by {}", self.bytes, self.chunk_bytes)
    }

    /// Lines in all.
    pub fn lines(&self) -> usize {
        usize::try_from(self.bytes).unwrap_or(usize::MAX) / LINE_BYTES
    }

    /// Lines of a chunk.
    fn chunk_lines(&self) -> usize {
        match self.direction {
            Direction::OneShot => self.lines(),
            _ => usize::try_from(self.chunk_bytes).unwrap_or(usize::MAX) / LINE_BYTES,
        }
    }

    /// The order of its chunks; the touched one lies at a third.
    pub fn order(&self) -> Vec<usize> {
        let count = self.lines() / self.chunk_lines().max(1);
        order(self.direction, count, count / 3)
    }
}

/// Clears the chunks in their order.
pub fn clear(cell: &Cell, chunks: &[usize], lines: &mut [Line], pair: &Pair) {
    let length = cell.chunk_lines();
    for &chunk in chunks {
        let at = chunk * length;
        let Some(part) = lines.get_mut(at..at + length) else { return };
        if cell.pair {
            pair.map();
            cell.store.zero(part);
            pair.unmap();
        } else {
            cell.store.zero(part);
        }
    }
}

/// Five chunk sizes, three directions, with the kernel's store. One-shot depends on no
/// chunk, but the discussion took it anew for each, and so shows its own noise.
pub fn table_cells(bytes: u64) -> Vec<Cell> {
    let directions = [Direction::OneShot, Direction::Forward, Direction::Reverse];
    let store = Store::default_zero();
    let cell = |chunk_bytes, direction| Cell {
        store,
        direction,
        chunk_bytes,
        bytes,
        pair: false,
        warm: true,
    };
    TABLE_CHUNKS.iter().flat_map(|&chunk| directions.map(|d| cell(chunk, d))).collect()
}

/// Every way of clearing one page.
pub fn page_cells(stores: &[Store]) -> Vec<Cell> {
    let mut out = Vec::new();
    for &store in stores {
        let chunks =
            if main_stores().contains(&store) { &ALL_CHUNKS[..] } else { &SOME_CHUNKS[..] };
        for warm in [false, true] {
            let cell = |direction, chunk_bytes, pair| Cell {
                store,
                direction,
                chunk_bytes,
                bytes: PAGE_BYTES,
                pair,
                warm,
            };
            out.push(cell(Direction::OneShot, PAGE_BYTES, false));
            for direction in CHUNKED {
                out.extend(chunks.iter().map(|&chunk| cell(direction, chunk, false)));
                out.push(cell(direction, SUBPAGE_BYTES, true));
            }
        }
    }
    out
}

/// A few ways of clearing 1 GiB, which no cache holds.
pub fn gigantic_cells() -> Vec<Cell> {
    let mut out = Vec::new();
    for store in main_stores() {
        let cell = |direction, chunk_bytes, pair| Cell {
            store,
            direction,
            chunk_bytes,
            bytes: GIB,
            pair,
            warm: false,
        };
        out.push(cell(Direction::OneShot, GIB, false));
        out.push(cell(Direction::Forward, SUBPAGE_BYTES, false));
        out.push(cell(Direction::Forward, SUBPAGE_BYTES, true));
    }
    // Where nothing streams, both are the same store.
    if out.iter().all(|cell| cell.store.kind() == StoreKind::Temporal) {
        out.truncate(3);
    }
    out
}
