//! Pictures of records: data first, then SVG.
//!
//! [`timeline`], [`curves`] and [`memory`] take what a picture shows out of records,
//! small enough to be drawn; the `draw_*` modules turn that into SVG with [`svg`]. A
//! [`Picture`] is one of the three; [`Kind`] names them. Every picture gives its numbers
//! as tables, too, so that none stands in a drawing alone.

mod boots;
pub mod curves;
mod draw_curves;
mod draw_memory;
mod draw_timeline;
pub mod memory;
mod series;
mod stack;
pub mod svg;
pub mod timeline;

use super::sheet::Sheet;
use super::source::Source;
use curves::Curves;
use memory::Memory;
use svg::Place;
use timeline::Timeline;

pub use stack::{PictureError, file};

/// What a picture shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Who did what when.
    Timeline,
    /// Time and bandwidth over threads.
    Sweep,
    /// What lies where.
    Memory,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Timeline, Self::Sweep, Self::Memory];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Timeline => "timeline",
            Self::Sweep => "sweep",
            Self::Memory => "memory",
        }
    }

    /// What it shows, in one sentence.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Timeline => "Who did what when, of compare and estimate",
            Self::Sweep => "Time and bandwidth over threads, with knees",
            Self::Memory => "Nodes, zones, memmap, early and deferred pages",
        }
    }
}

/// One picture, ready to be drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Picture {
    /// Timelines on one axis.
    Timeline(Vec<Timeline>),
    /// Curves over the same threads.
    Curves(Curves),
    /// One machine's memory.
    Memory(Memory),
}

impl Picture {
    /// The pictures of one kind of some records; no strategies means all of them.
    pub fn of(kind: Kind, sources: &[&Source], strategies: &[String]) -> Vec<Self> {
        match kind {
            Kind::Timeline => {
                let all = sources.iter().flat_map(|source| Timeline::of(source, strategies));
                let all = draw_timeline::drawable(all.collect());
                if all.is_empty() { Vec::new() } else { vec![Self::Timeline(all)] }
            }
            Kind::Sweep => Curves::of(sources).into_iter().map(Self::Curves).collect(),
            Kind::Memory => {
                let all = sources.iter().filter_map(|source| Memory::of(source));
                all.map(|m| Self::Memory(draw_memory::drawable(m))).collect()
            }
        }
    }

    /// As SVG, with sentences below it.
    pub fn draw(&self, place: Place, remarks: &[String]) -> String {
        match self {
            Self::Timeline(timelines) => draw_timeline::draw(timelines, place, remarks),
            Self::Curves(curves) => draw_curves::draw(curves, place, remarks),
            Self::Memory(memory) => draw_memory::draw(memory, place, remarks),
        }
    }

    /// Every number that is drawn.
    pub fn sheets(&self) -> Vec<Sheet> {
        match self {
            Self::Timeline(timelines) => timelines.iter().map(Timeline::sheet).collect(),
            Self::Curves(curves) => curves.sheets(),
            Self::Memory(memory) => vec![memory.sheet()],
        }
    }
}
