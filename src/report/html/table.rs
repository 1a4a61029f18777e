//! Sheets as HTML tables that can be sorted, no longer than there is room.

use super::room::Budget;
use crate::report::pictures::svg::escape;
use crate::report::sheet::{Cell, Sheet};
use std::fmt::Write;

/// More rows than this are no longer read in a page, however much room there is.
const MOST_ROWS: usize = 2000;

/// Fewer rows than this are no table.
const LEAST_ROWS: usize = 3;

/// Longer texts are cut.
const MOST_CHARS: usize = 400;

/// A link from a cell of the first column.
pub(super) type Link<'l> = &'l dyn Fn(usize) -> Option<String>;

/// A table within `bytes`; rows in between are left out where they do not fit, and the
/// caption says so.
pub(super) fn table(sheet: &Sheet, id: &str, bytes: usize) -> String {
    linked(sheet, id, bytes, &|_| None)
}

/// The same with links from the first column, by row.
pub(super) fn linked(sheet: &Sheet, id: &str, bytes: usize, link: Link<'_>) -> String {
    let head = header(sheet);
    let frame = head.len() + 600;
    let sample = sheet.rows.first().map_or(1, |cells| row(cells, None).len() + 60);
    let fitting = bytes.saturating_sub(frame) / sample.max(1);
    let kept = chosen(sheet.rows.len(), fitting.clamp(LEAST_ROWS, MOST_ROWS));
    let mut budget = Budget::new(bytes.max(frame + sample * LEAST_ROWS * 2).saturating_sub(frame));
    let mut body = String::new();
    let mut shown = 0;
    for index in &kept {
        let Some(cells) = sheet.rows.get(*index) else { continue };
        let markup = row(cells, link(*index).as_deref());
        if !budget.take(markup.len()) {
            break;
        }
        body.push_str(&markup);
        shown += 1;
    }
    let caption = caption(sheet, shown, shown == kept.len());
    format!(
        "<div class=\"scroll\"><table id=\"{id}\"><caption>{caption}</caption>\n\
         {head}<tbody>\n{body}</tbody></table></div>\n"
    )
}

/// Which of `count` rows are shown: all, or evenly spaced with the first and the last.
fn chosen(count: usize, most: usize) -> Vec<usize> {
    if count <= most {
        return (0..count).collect();
    }
    let last = most.saturating_sub(1).max(1);
    let mut rows: Vec<usize> = (0..most).map(|i| i * (count - 1) / last).collect();
    rows.dedup();
    rows
}

fn caption(sheet: &Sheet, shown: usize, is_even: bool) -> String {
    let mut out = escape(&sheet.title);
    let count = sheet.rows.len();
    if shown < count {
        let which = match is_even {
            true => "evenly spaced, the first and the last among them",
            false => "from the first on",
        };
        let _ = write!(
            out,
            " <span class=\"cut\">{shown} of {count} rows, {which}; --as csv has all</span>"
        );
    }
    if let Some(note) = &sheet.note {
        let _ = write!(out, " <span class=\"note\">{}</span>", escape(note));
    }
    out
}

fn header(sheet: &Sheet) -> String {
    let mut out = String::from("<thead><tr>");
    for column in &sheet.columns {
        let class = if column.is_number { " class=\"n\"" } else { "" };
        let _ = write!(
            out,
            "<th scope=\"col\" aria-sort=\"none\"{class}><button type=\"button\" \
             title=\"{}\">{}</button></th>",
            escape(&column.name),
            escape(&column.title)
        );
    }
    out.push_str("</tr></thead>\n");
    out
}

fn row(cells: &[Cell], link: Option<&str>) -> String {
    let mut out = String::from("<tr>");
    for (index, cell) in cells.iter().enumerate() {
        let text = escape(&cut(cell.shown()));
        let text = match link {
            Some(target) if index == 0 => format!("<a href=\"#{target}\">{text}</a>"),
            _ => text,
        };
        let (open, close) = match index {
            0 => ("th scope=\"row\"", "th"),
            _ => ("td", "td"),
        };
        let value = match cell {
            Cell::Number { value, .. } => format!(" data-v=\"{value}\""),
            Cell::Text(_) | Cell::Empty => String::new(),
        };
        let _ = write!(out, "<{open}{value}>{text}</{close}>");
    }
    out.push_str("</tr>\n");
    out
}

/// A text of bearable length.
pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(MOST_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet(rows: usize) -> Sheet {
        let mut sheet = Sheet::new("t <&>", &[("who", "who"), ("takes", "took_ns")], 1);
        let cells = |i: usize| vec![Cell::Text(format!("r{i}")), Cell::number(i as f64, "x")];
        sheet.rows = (0..rows).map(cells).collect();
        sheet
    }

    #[test]
    fn rows_in_between_are_left_out_and_this_is_said() {
        assert_eq!(chosen(3, 5), [0, 1, 2]);
        assert_eq!(chosen(101, 5), [0, 25, 50, 75, 100]);
        let html = table(&sheet(100_000), "a", 10_000);
        assert!(html.len() < 10_000, "{}", html.len());
        assert!(html.contains("of 100000 rows, evenly spaced") && html.contains("r99999"));
        assert!(!table(&sheet(10), "a", 10_000).contains("class=\"cut\""));
        let least = table(&sheet(100), "a", 0);
        assert!(least.contains("3 of 100 rows"), "{least}");
    }

    #[test]
    fn a_long_row_does_not_break_the_room() {
        let mut long = sheet(1000);
        for cells in long.rows.iter_mut().skip(1) {
            cells[0] = Cell::Text("<".repeat(10_000));
        }
        let html = table(&long, "a", 20_000);
        assert!(html.len() < 22_000, "{}", html.len());
        assert!(html.contains("from the first on"));
    }

    #[test]
    fn cells_keep_their_numbers_for_sorting() {
        let html = table(&sheet(2), "a", 10_000);
        assert!(html.contains("<th scope=\"row\">r1</th><td data-v=\"1\">x</td>"), "{html}");
        assert!(html.contains("t &lt;&amp;&gt;") && html.contains("aria-sort=\"none\""));
        roxmltree::Document::parse(&html).unwrap();
    }
}
