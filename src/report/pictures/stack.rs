//! One SVG file of one or several records: [`file`].
//!
//! What is drawn follows from the records' kinds, or is chosen. Timelines share one
//! axis; other pictures stand below each other.

use super::svg::{Canvas, Place, escape, number};
use super::{Kind, Picture};
use crate::report::source::{Source, complete};
use std::collections::HashSet;

/// Pictures in one file at most.
const MOST_PICTURES: usize = 50;

/// Incomplete records and warnings named below a picture at most.
const MOST_REMARKS: usize = 24;

/// Why there is no picture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PictureError {
    /// The records have no such picture.
    #[error("{names}: no {kind} can be drawn; {hint}")]
    Nothing {
        /// The records' files.
        names: String,
        /// What was asked for, or `picture`.
        kind: &'static str,
        /// What to do.
        hint: &'static str,
    },
}

/// All records in one picture. Without a `kind` it is the first of timeline, sweep and
/// memory that there is.
///
/// # Errors
/// When the records have no such picture.
pub fn file(
    sources: &[Source],
    kind: Option<Kind>,
    strategies: &[String],
) -> Result<String, PictureError> {
    let own: Vec<&Source> = sources.iter().collect();
    let kinds = kind.map_or(Kind::ALL.to_vec(), |kind| vec![kind]);
    let found = kinds.iter().map(|kind| Picture::of(*kind, &own, strategies));
    let pictures = found.into_iter().find(|pictures| !pictures.is_empty());
    let pictures = pictures.ok_or_else(|| nothing(sources, kind))?;
    let remarks = remarks(sources);
    match &pictures[..] {
        [one] => Ok(one.draw(Place::File, &remarks)),
        many => Ok(stacked(many, &remarks)),
    }
}

/// What a reader of the picture must know of its records.
fn remarks(sources: &[Source]) -> Vec<String> {
    let mut out = Vec::new();
    // The same warning of several records is said once, of the first.
    let mut seen = HashSet::new();
    for source in sources {
        let head = source.record.head();
        let of = if sources.len() > 1 { format!("{}, ", source.name) } else { String::new() };
        if !head.complete {
            out.push(format!("{of}complete: {}", complete(false)));
        }
        for warning in &head.warnings {
            if seen.insert((&warning.code, &warning.message)) {
                out.push(format!("{of}warning: {warning}"));
            }
        }
    }
    if out.len() > MOST_REMARKS {
        let more = out.len() - MOST_REMARKS;
        // What is incomplete must be seen before any warning.
        out.sort_by_key(|remark| !remark.contains(complete(false)));
        out.truncate(MOST_REMARKS);
        out.push(format!("{more} more remarks: see --as table"));
    }
    out
}

fn nothing(sources: &[Source], kind: Option<Kind>) -> PictureError {
    let names: Vec<&str> = sources.iter().map(|source| &*source.name).take(5).collect();
    PictureError::Nothing {
        names: names.join(", "),
        kind: kind.map_or("picture", Kind::name),
        hint: match kind {
            Some(Kind::Timeline) => {
                "timelines are drawn from records of compare and estimate; leave --strategy \
                 and --picture out to see what there is"
            }
            Some(Kind::Sweep) => {
                "curves are drawn from records of sweep, compare, calibrate and validate"
            }
            Some(Kind::Memory) => {
                "memory is drawn from records of compare and estimate that say where it lies: \
                 make them anew with this version"
            }
            None => "use --as table, csv, markdown or html",
        },
    }
}

/// Pictures below each other, in one that is as high as all of them.
fn stacked(pictures: &[Picture], remarks: &[String]) -> String {
    let mut y = 0.0;
    let mut width: f64 = 1.0;
    let mut body = String::new();
    for (index, picture) in pictures.iter().take(MOST_PICTURES).enumerate() {
        let is_last = index + 1 == pictures.len().min(MOST_PICTURES);
        let svg = picture.draw(Place::Page(index + 1), if is_last { remarks } else { &[] });
        let (w, h) = size(&svg);
        let at = number(y);
        // Marks are reached by the keyboard in pages only; here they are drawn.
        let svg = svg.replace(" tabindex=\"0\"", "").replace(" tabindex=\"-1\"", "");
        body += &svg.replacen("<svg ", &format!("<svg x=\"0\" y=\"{at}\" "), 1);
        y += h + 16.0;
        width = width.max(w);
    }
    let title = format!("{} pictures", pictures.len());
    let mut canvas = Canvas::new(Place::File, width);
    if pictures.len() > MOST_PICTURES {
        y += 20.0;
        let note = format!("the first {MOST_PICTURES} of {} pictures", pictures.len());
        canvas.raw(&format!("<text x=\"10\" y=\"{}\">{}</text>", number(y), escape(&note)));
    }
    canvas.raw(&body);
    canvas.finish(y + 8.0, &title, "One picture below the other.")
}

/// The size that a picture gives itself.
fn size(svg: &str) -> (f64, f64) {
    let of = |name: &str| {
        let from = svg.find(&format!(" {name}=\""))? + name.len() + 3;
        let text = svg.get(from..)?;
        text.get(..text.find('"')?)?.parse().ok()
    };
    (of("width").unwrap_or(960.0), of("height").unwrap_or(300.0))
}
