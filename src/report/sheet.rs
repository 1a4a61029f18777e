//! A table as data: [`Sheet`], [`Column`], [`Cell`].
//!
//! Every view that shows rows and columns renders sheets: text tables, CSV, Markdown
//! and the tables of HTML, so that all of them show the same numbers. A number keeps
//! its value beside the form that people read.

/// One table.
#[derive(Clone, Debug, PartialEq)]
pub struct Sheet {
    /// What it shows; unique within one record.
    pub title: String,
    /// How to read it, or what it leaves out.
    pub note: Option<String>,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows, each with one cell per column.
    pub rows: Vec<Vec<Cell>>,
}

/// One column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// For people, with the unit where all cells share one: `median`, `threads`.
    pub title: String,
    /// For programs: snake case, its last word the unit: `median_ns`.
    pub name: String,
    /// Whether it holds numbers, which stand to the right.
    pub is_number: bool,
}

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A number in the unit of its column's name, and how people read it.
    Number {
        /// The number.
        value: f64,
        /// For people, such as `1.25 s`.
        shown: String,
    },
    /// Nothing is known.
    Empty,
}

impl Sheet {
    /// An empty table; columns are pairs of title and name, numbers where `numbers_from`
    /// says.
    pub fn new(title: &str, columns: &[(&str, &str)], numbers_from: usize) -> Self {
        let column = |(index, (title, name)): (usize, &(&str, &str))| Column {
            title: (*title).into(),
            name: (*name).into(),
            is_number: index >= numbers_from,
        };
        Self {
            title: title.into(),
            note: None,
            columns: columns.iter().enumerate().map(column).collect(),
            rows: Vec::new(),
        }
    }
}

impl Cell {
    /// A number with its form for people.
    pub fn number(value: f64, shown: impl Into<String>) -> Self {
        Self::Number { value, shown: shown.into() }
    }

    /// What people read.
    pub fn shown(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Number { shown, .. } => shown,
            Self::Empty => "",
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}
