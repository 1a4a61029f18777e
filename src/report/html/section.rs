//! The part of a page that shows one record: facts, warnings, pictures, tables.

use super::overview::how;
use super::room::Budget;
use super::table::{cut, table};
use crate::report::pictures::svg::{Place, escape};
use crate::report::pictures::{Kind, Picture};
use crate::report::sheet::Sheet;
use crate::report::sheets::sheets;
use crate::report::source::Source;
use std::fmt::Write;

/// With less room than this a record has no pictures.
const LEAST_FOR_PICTURES: usize = 30_000;

/// With less room than this a record has its first table only.
const LEAST_FOR_TABLES: usize = 12_000;

/// Warnings of one record at most, and with little room.
const MOST_WARNINGS: usize = 200;
const FEW_WARNINGS: usize = 2;

/// Pictures of the page so far: each needs a number of its own.
pub(super) struct Pictures<'p> {
    /// Strategies that are drawn; none means all.
    pub(super) strategies: &'p [String],
    /// How many there are already.
    pub(super) count: usize,
}

/// Record number `index`, counted from 1, in about `bytes`.
pub(super) fn section(
    source: &Source,
    index: usize,
    bytes: usize,
    pictures: &mut Pictures<'_>,
) -> String {
    let id = format!("r{index}");
    let mut out = heading(source, &id);
    out += &warnings(source, bytes);
    let mut budget = Budget::new(bytes.saturating_sub(out.len() + 200));
    if bytes >= LEAST_FOR_PICTURES {
        let drawn = drawings(source, &id, budget.share(5) * 3, pictures);
        budget.spend(drawn.len());
        out += &drawn;
    }
    out += &tables(source, &id, bytes, budget);
    out += "</section>\n";
    out
}

fn heading(source: &Source, id: &str) -> String {
    let head = source.record.head();
    let mut out = format!(
        "<section id=\"{id}\" aria-labelledby=\"{id}h\">\n<h2 id=\"{id}h\">{}</h2>\n\
         <p class=\"badges\"><span class=\"badge\">{}</span> <span class=\"badge\">{}</span>",
        escape(&cut(&source.name)),
        escape(&source.record.kind()),
        how(&source.record),
    );
    out += " <a href=\"#summary\">to the summary</a></p>\n";
    if !head.complete {
        out += "<p class=\"incomplete\" role=\"note\"><strong>INCOMPLETE</strong>: it was \
                interrupted; less was done than asked for.</p>\n";
    }
    out += "<dl>\n";
    for (name, text) in source.facts() {
        let _ = writeln!(out, "<dt>{name}</dt><dd>{}</dd>", escape(&cut(&text)));
    }
    out += "</dl>\n";
    out
}

fn warnings(source: &Source, bytes: usize) -> String {
    let all = &source.record.head().warnings;
    if all.is_empty() {
        return String::new();
    }
    let most = if bytes < LEAST_FOR_TABLES { FEW_WARNINGS } else { MOST_WARNINGS };
    let mut out = format!("<h3>Warnings ({})</h3>\n<ul class=\"warnings\">\n", all.len());
    for warning in all.iter().take(most) {
        let _ = write!(
            out,
            "<li>{} <code>{}</code>",
            escape(&cut(&warning.message)),
            escape(&cut(&warning.code))
        );
        if !warning.remedy.is_empty() {
            let _ = write!(out, " <em>Remedy:</em> {}", escape(&cut(&warning.remedy)));
        }
        out += "</li>\n";
    }
    if all.len() > most {
        let _ = writeln!(out, "<li class=\"cut\">{} more: see --as table</li>", all.len() - most);
    }
    out += "</ul>\n";
    out
}

/// The record's pictures, each with its numbers below it, as far as there is room.
fn drawings(source: &Source, id: &str, bytes: usize, pictures: &mut Pictures<'_>) -> String {
    let mut out = String::new();
    let mut budget = Budget::new(bytes);
    for kind in Kind::ALL {
        for picture in Picture::of(kind, &[source], pictures.strategies) {
            if matches!(&picture, Picture::Curves(curves) if !curves.has_lines()) {
                continue;
            }
            out += &within(&picture, kind, id, &mut budget, pictures);
        }
    }
    if out.is_empty() { out } else { format!("<h3>Pictures</h3>\n{out}") }
}

/// One picture, or a sentence that says why it is missing.
fn within(
    picture: &Picture,
    kind: Kind,
    id: &str,
    budget: &mut Budget,
    pictures: &mut Pictures<'_>,
) -> String {
    pictures.count += 1;
    let markup = figure(picture, &format!("{id}g{}", pictures.count), pictures.count);
    if budget.take(markup.len()) {
        return markup;
    }
    let name = kind.name();
    format!(
        "<p class=\"cut\">The picture {name} is too large for this page; --as svg \
         --picture {name} draws it.</p>\n"
    )
}

/// A picture with its numbers.
pub(super) fn figure(picture: &Picture, id: &str, number: usize) -> String {
    let mut out = String::from("<figure>\n<div class=\"scroll drawing\">");
    out += &picture.draw(Place::Page(number), &[]);
    out += "</div>\n<figcaption>Point at a mark, or Tab into the picture and use the arrow \
            keys, to read its values.</figcaption>\n\
            <details><summary>Numbers of this picture</summary>\n";
    for (index, sheet) in picture.sheets().iter().enumerate() {
        out += &table(sheet, &format!("{id}t{index}"), usize::MAX / 4);
    }
    out += "</details>\n</figure>\n";
    out
}

fn tables(source: &Source, id: &str, bytes: usize, mut budget: Budget) -> String {
    let mut all = sheets(&source.record);
    let left_out = match bytes < LEAST_FOR_TABLES {
        true => all.split_off(all.len().min(1)),
        false => Vec::new(),
    };
    let mut out = String::new();
    if !all.is_empty() {
        out += "<h3>Tables</h3>\n";
    }
    let count = all.len();
    for (index, sheet) in all.iter().enumerate() {
        let markup = table(sheet, &format!("{id}t{index}"), budget.share(count - index));
        budget.spend(markup.len());
        out += &markup;
    }
    if !left_out.is_empty() {
        let names: Vec<String> = left_out.iter().map(named).collect();
        let _ = writeln!(
            out,
            "<p class=\"cut\">With so many records only the first table of each is here. Left \
             out: {}. A report of fewer records has them, --as csv has all.</p>",
            names.join(", ")
        );
    }
    out
}

fn named(sheet: &Sheet) -> String {
    format!("{} ({} rows)", escape(&cut(&sheet.title)), sheet.rows.len())
}
