//! The forms in which records can be shown: [`View`] and [`render`].
//!
//! To add a view: a variant with its name and sentence, a line in [`View::suits`] and an
//! arm in [`render`]. The command line lists what is here.

use super::pictures::{self, Kind, PictureError};
use super::source::Source;
use super::{blame, chain, csv, html, markdown, table, trace};
use crate::record::any::AnyRecord;

/// One form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// Text tables.
    Table,
    /// Phases by the time they take.
    Blame,
    /// What the end waited for.
    CriticalChain,
    /// Comma-separated values.
    Csv,
    /// Markdown tables.
    Markdown,
    /// A picture.
    Svg,
    /// A page with pictures and tables.
    Html,
    /// Trace events of timelines.
    Trace,
}

/// What to show of the records; empty lists mean everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choice<'c> {
    /// Titles of tables, for views of tables.
    pub tables: &'c [String],
    /// Strategies, for views of boots.
    pub strategies: &'c [String],
    /// The kind of picture; `None` for the first that there is.
    pub picture: Option<Kind>,
}

/// Why records cannot be shown so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// The view makes no sense for a kind of record.
    #[error("{name}: a record of {kind} {why}, so there is no {view} of it; there are {views}")]
    Unsuited {
        /// The record's file.
        name: String,
        /// What it is.
        kind: String,
        /// What it lacks.
        why: &'static str,
        /// The view that was asked for.
        view: &'static str,
        /// The views that do make sense.
        views: String,
    },
    /// No record has such a table.
    #[error("no table is called {wanted:?}; there are {known}")]
    NoTable {
        /// What was asked for.
        wanted: String,
        /// The titles.
        known: String,
    },
    /// No record has such a strategy.
    #[error("no boot in the records has the strategy {wanted:?}; there are {known}")]
    NoStrategy {
        /// What was asked for.
        wanted: String,
        /// The names.
        known: String,
    },
    /// No record has such a picture.
    #[error(transparent)]
    NoPicture(#[from] PictureError),
    /// No record has a timeline.
    #[error(transparent)]
    NoTrace(#[from] trace::NoTrace),
}

impl View {
    /// All views.
    pub const ALL: [Self; 8] = [
        Self::Table,
        Self::Blame,
        Self::CriticalChain,
        Self::Csv,
        Self::Markdown,
        Self::Svg,
        Self::Html,
        Self::Trace,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Blame => "blame",
            Self::CriticalChain => "critical-chain",
            Self::Csv => "csv",
            Self::Markdown => "markdown",
            Self::Svg => "svg",
            Self::Html => "html",
            Self::Trace => "trace",
        }
    }

    /// What it shows, in one sentence.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Table => "What the verb itself shows to people",
            Self::Blame => "Phases of the boot, the longest first",
            Self::CriticalChain => {
                "What the end waited for, phase by phase, and every node's slack"
            }
            Self::Csv => "Every number, one table for programs",
            Self::Markdown => "Every table but single runs, for mails and wikis",
            Self::Svg => "A picture: timelines, curves over threads, or physical memory",
            Self::Html => "One page with pictures and tables, for a browser, without network",
            Self::Trace => "Timelines for Perfetto and chrome://tracing",
        }
    }

    /// Whether it makes sense for a record.
    pub const fn suits(self, record: &AnyRecord) -> bool {
        match self {
            Self::Table | Self::Csv | Self::Markdown | Self::Html => true,
            Self::Svg => !matches!(record, AnyRecord::Lab(_)),
            Self::Blame | Self::CriticalChain | Self::Trace => has_boots(record),
        }
    }
}

/// Whether a record has the phases of whole boots.
const fn has_boots(record: &AnyRecord) -> bool {
    matches!(record, AnyRecord::Compare(_) | AnyRecord::Estimate(_))
}

/// The records in one form.
///
/// # Errors
/// A record that the view makes no sense for, and choices that match nothing.
pub fn render(view: View, sources: &[Source], choice: Choice<'_>) -> Result<String, ViewError> {
    for source in sources {
        check(view, source)?;
    }
    match view {
        View::Table => Ok(table::text(sources)),
        View::Blame => blame::text(sources, choice.strategies),
        View::CriticalChain => chain::text(sources, choice.strategies),
        View::Csv => csv::text(sources, choice.tables),
        View::Markdown => markdown::text(sources, choice.tables),
        View::Svg => Ok(pictures::file(sources, choice.picture, choice.strategies)?),
        View::Html => Ok(html::page(sources, choice.strategies)),
        View::Trace => Ok(trace::text(sources, choice.strategies)?),
    }
}

fn check(view: View, source: &Source) -> Result<(), ViewError> {
    if view.suits(&source.record) {
        return Ok(());
    }
    let views = View::ALL.into_iter().filter(|v| v.suits(&source.record));
    Err(ViewError::Unsuited {
        name: source.name.clone(),
        kind: source.record.kind(),
        why: match view {
            View::Svg => "has nothing that is drawn",
            _ => "has no phases of one boot",
        },
        view: view.name(),
        views: views.map(View::name).collect::<Vec<_>>().join(", "),
    })
}

/// The tables of all records that were chosen by title, each with the index of its
/// record; those across records have none.
pub(super) fn chosen_tables(
    tables: Vec<(Option<usize>, super::sheet::Sheet)>,
    wanted: &[String],
) -> Result<Vec<(Option<usize>, super::sheet::Sheet)>, ViewError> {
    for title in wanted {
        if !tables.iter().any(|(_, sheet)| sheet.title == *title) {
            let mut known: Vec<String> =
                tables.iter().map(|(_, sheet)| format!("{:?}", sheet.title)).collect();
            let mut seen = std::collections::HashSet::new();
            known.retain(|title| seen.insert(title.clone()));
            return Err(ViewError::NoTable { wanted: title.clone(), known: known.join(", ") });
        }
    }
    let keep = |sheet: &super::sheet::Sheet| wanted.is_empty() || wanted.contains(&sheet.title);
    Ok(tables.into_iter().filter(|(_, sheet)| keep(sheet)).collect())
}
