//! The checks of `pageinit doctor` for people.

use super::grid::grid;
use std::fmt::Write;

/// One check as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// `good`, `doubtful` or `unknown`.
    pub state: &'static str,
    /// What was looked at.
    pub title: String,
    /// What was found.
    pub found: String,
    /// The warning's code.
    pub code: String,
    /// What to do; empty where nothing is doubtful.
    pub remedy: String,
}

/// A table, then what to do about each doubtful row.
pub fn text(rows: &[Row]) -> String {
    let mut table = grid(["state", "what", "found"], 3);
    for row in rows {
        table.add_row([row.state, &row.title, &row.found]);
    }
    let mut out = format!("{table}\n");
    for row in rows.iter().filter(|row| !row.remedy.is_empty()) {
        let _ = writeln!(out, "{} [{}]: {}", row.title, row.code, row.remedy);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubtful_rows_have_their_remedy_below() {
        let row = |state, remedy: &str| Row {
            state,
            title: "load".into(),
            found: "much".into(),
            code: "busy-host".into(),
            remedy: remedy.into(),
        };
        let shown = text(&[row("good", "")]);
        assert!(shown.contains("load") && !shown.contains("busy-host"), "{shown}");
        let shown = text(&[row("doubtful", "wait")]);
        assert!(shown.ends_with("load [busy-host]: wait\n"), "{shown}");
    }
}
