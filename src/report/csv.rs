//! Records as one table of comma-separated values (RFC 4180, lines ending in LF).
//!
//! All tables are laid into one: the columns `record`, `complete` and `table` say where a
//! row belongs, the others are those of all tables, each once; a row fills its own. A
//! program reads it at once and keeps the rows of one `table`. Numbers are raw, in the
//! unit that their column's name ends with.

use super::sheet::{Cell, Sheet};
use super::source::Source;
use super::view::{ViewError, chosen_tables};
use super::{sheets, summary};

/// The columns that say where a row belongs.
const WHERE: [&str; 3] = ["record", "complete", "table"];

/// All tables of all records, or those with these titles.
///
/// # Errors
/// A title that no table has.
pub fn text(sources: &[Source], titles: &[String]) -> Result<String, ViewError> {
    let mut tables: Vec<(Option<usize>, Sheet)> =
        summary::sheets(sources).into_iter().map(|sheet| (None, sheet)).collect();
    for (at, source) in sources.iter().enumerate() {
        let own = [source.sheet(), source.warnings()].into_iter();
        let all = own.chain(sheets::sheets(&source.record)).chain(sheets::samples(&source.record));
        tables.extend(all.map(|sheet| (Some(at), sheet)));
    }
    let tables = chosen_tables(tables, titles)?;
    let rows = tables.iter().map(|(at, sheet)| {
        let source = at.and_then(|at| sources.get(at));
        (source.map(|s| (s.name.as_str(), s.record.head().complete)), sheet)
    });
    Ok(joined(&rows.collect::<Vec<_>>()))
}

/// Tables, each with the name of its record and whether that is complete.
type Placed<'s> = (Option<(&'s str, bool)>, &'s Sheet);

/// The tables in one, under the names of all their columns.
pub fn joined(tables: &[Placed<'_>]) -> String {
    let mut names: Vec<&str> = WHERE.to_vec();
    let mut places = std::collections::HashMap::new();
    for (at, name) in WHERE.iter().enumerate() {
        places.insert(*name, at);
    }
    for column in tables.iter().flat_map(|(_, sheet)| &sheet.columns) {
        places.entry(&*column.name).or_insert_with(|| {
            names.push(&column.name);
            names.len() - 1
        });
    }
    let mut out = String::new();
    line(&mut out, names.iter().map(|name| text_field(name)));
    for (record, sheet) in tables {
        for row in &sheet.rows {
            let mut fields = vec![String::new(); names.len()];
            if let Some((name, complete)) = record {
                fields[0] = text_field(name);
                fields[1] = if *complete { "yes" } else { "NO" }.into();
            }
            fields[2] = text_field(&sheet.title);
            for (column, cell) in sheet.columns.iter().zip(row) {
                if let Some(field) = places.get(&*column.name).and_then(|&at| fields.get_mut(at)) {
                    *field = self::field(cell);
                }
            }
            line(&mut out, fields.into_iter());
        }
    }
    out
}

fn line(out: &mut String, fields: impl Iterator<Item = String>) {
    for (at, field) in fields.enumerate() {
        if at > 0 {
            out.push(',');
        }
        out.push_str(&field);
    }
    out.push('\n');
}

fn field(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => text_field(text),
        Cell::Number { value, .. } if value.is_finite() => value.to_string(),
        Cell::Number { .. } | Cell::Empty => String::new(),
    }
}

/// A text as a field: quoted where needed, and behind an apostrophe where a spreadsheet
/// would take it for a formula and compute what a stranger wrote.
fn text_field(text: &str) -> String {
    let guard = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{guard}{}\"", text.replace('"', "\"\""))
    } else {
        format!("{guard}{text}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_and_no_formula_is_left() {
        assert_eq!(text_field("a,\"b\"\n"), "\"a,\"\"b\"\"\n\"");
        assert_eq!(text_field("@vm-2c"), "'@vm-2c");
        assert_eq!(text_field("=1+1,\"x\""), "\"'=1+1,\"\"x\"\"\"");
        for start in ["+", "-", "\t", "\r"] {
            assert!(text_field(&format!("{start}x")).contains(&format!("'{start}x")));
        }
        assert_eq!(field(&Cell::number(-5.0, "-5 ns")), "-5", "a number stays one");
        assert_eq!(field(&Cell::number(6_291_456.5, "")), "6291456.5");
        assert_eq!(field(&Cell::number(f64::NAN, "?")), "");
    }

    #[test]
    fn rows_of_different_tables_share_columns_by_name() {
        let mut first = Sheet::new("first", &[("a", "a"), ("n", "n_ns")], 1);
        first.rows.push(vec!["x".into(), Cell::number(1.5, "1.5 ns")]);
        let mut second = Sheet::new("second", &[("n", "n_ns"), ("b", "b")], 0);
        second.rows.push(vec![Cell::number(2.0, "2 ns"), Cell::Empty]);
        let text = joined(&[(Some(("r", true)), &first), (Some(("s", false)), &second)]);
        let wanted = "record,complete,table,a,n_ns,b\nr,yes,first,x,1.5,\ns,NO,second,,2,\n";
        assert_eq!(text, wanted);
    }
}
