//! Records as Markdown with tables (GitHub's form), for mails, issues and wikis.
//!
//! Every table but single runs. Names come from users: whatever Markdown or HTML would
//! take for markup is escaped.

use super::sheet::Sheet;
use super::source::Source;
use super::view::{ViewError, chosen_tables};
use super::{sheets, summary};
use std::fmt::Write;

/// All tables of all records, or those with these titles.
///
/// # Errors
/// A title that no table has.
pub fn text(sources: &[Source], titles: &[String]) -> Result<String, ViewError> {
    let mut tables: Vec<(Option<usize>, Sheet)> =
        summary::sheets(sources).into_iter().map(|sheet| (None, sheet)).collect();
    for (at, source) in sources.iter().enumerate() {
        tables.extend(sheets::sheets(&source.record).into_iter().map(|sheet| (Some(at), sheet)));
    }
    let tables = chosen_tables(tables, titles)?;
    let mut out = String::new();
    for (_, across) in tables.iter().filter(|(at, _)| at.is_none()) {
        out.push_str(&section(across, 1));
    }
    for (at, source) in sources.iter().enumerate() {
        out.push_str(&heading(source));
        for (_, own) in tables.iter().filter(|(of, _)| *of == Some(at)) {
            out.push_str(&section(own, 2));
        }
    }
    Ok(out.trim_end().to_owned() + "\n")
}

/// Where a record comes from, and its warnings.
fn heading(source: &Source) -> String {
    let mut out = format!("# {}\n\n", escaped(&source.name));
    if !source.record.head().complete {
        out.push_str("**INCOMPLETE**\n\n");
    }
    for (name, text) in source.facts() {
        let _ = writeln!(out, "- {}: {}", escaped(name), escaped(&text));
    }
    for warning in &source.record.head().warnings {
        let _ = writeln!(out, "- **warning**: {}", escaped(&warning.to_string()));
    }
    out.push('\n');
    out
}

fn section(sheet: &Sheet, level: usize) -> String {
    let mut out = format!("{} {}\n\n", "#".repeat(level), escaped(&sheet.title));
    if let Some(note) = &sheet.note {
        let _ = writeln!(out, "{}\n", escaped(note));
    }
    out.push_str(&table(sheet));
    out.push('\n');
    out
}

/// One table, without its title.
pub fn table(sheet: &Sheet) -> String {
    let mut out = row(sheet.columns.iter().map(|c| escaped(&c.title)));
    out.push_str(&row(sheet
        .columns
        .iter()
        .map(|c| (if c.is_number { "--:" } else { ":--" }).into())));
    for cells in &sheet.rows {
        out.push_str(&row(cells.iter().map(|cell| escaped(cell.shown()))));
    }
    out
}

fn row(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

/// A text that Markdown shows as it is.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '&' | '|' | '~' | '#' | '!' | '$' => {
                out.extend(['\\', c]);
            }
            '\n' | '\r' | '\t' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sheet::Cell;

    #[test]
    fn markup_in_names_is_shown_as_it_is() {
        let evil = "a|b <script>x</script> **c** [d](e) `f`\n# g &amp; _h_";
        let shown = "a\\|b \\<script\\>x\\</script\\> \\*\\*c\\*\\* \\[d\\](e) \\`f\\` \
                     \\# g \\&amp; \\_h\\_";
        assert_eq!(escaped(evil), shown);
    }

    #[test]
    fn numbers_stand_to_the_right() {
        let mut sheet = Sheet::new("t", &[("name", "name"), ("ns", "n_ns")], 1);
        sheet.rows.push(vec!["x|y".into(), Cell::number(1.0, "1.00 ns")]);
        assert_eq!(table(&sheet), "| name | ns |\n| :-- | --: |\n| x\\|y | 1.00 ns |\n");
    }
}
