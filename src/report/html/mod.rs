//! Records as one page of HTML: [`page`].
//!
//! The page is self-contained: no network, no other file. It begins with a table of all
//! records; every record has a section with facts, warnings, pictures and tables. It
//! stays under [`MOST_BYTES`] whatever it is given: records share the room, and what is
//! left out is said where it is missing. The markup is well-formed XML as well.

mod overview;
mod room;
mod section;
mod table;

use super::pictures::svg::escape;
use super::pictures::{Kind, Picture};
use super::source::Source;
use super::summary;
use room::Budget;
use section::{Pictures, figure, section};
use std::fmt::Write;
use table::{cut, linked, table};

/// A page is never larger.
pub const MOST_BYTES: usize = 5_000_000;

/// What records may use; the rest is for the frame, style and script, and for the names
/// of records for which no room is left.
const FOR_RECORDS: usize = 4_100_000;

/// A section that is worth having needs about this much.
const LEAST_SECTION: usize = 1_800;

const STYLE: &str = include_str!("page.css");
const PICTURE_STYLE: &str = include_str!("../pictures/picture.css");
const SCRIPT: &str = include_str!("page.js");

/// The page of some records; no strategies means all of them.
pub fn page(sources: &[Source], strategies: &[String]) -> String {
    let mut pictures = Pictures { strategies, count: 0 };
    let mut budget = Budget::new(FOR_RECORDS);
    let shown = sources.len().min(FOR_RECORDS / 2 / LEAST_SECTION);
    let summary = overall(sources, shown, budget.share(4), &mut pictures);
    let navigation = navigation(sources, shown);
    budget.spend(summary.len() + navigation.len());
    let mut sections = String::new();
    for (index, source) in sources.iter().take(shown).enumerate() {
        let share = budget.share(shown - index);
        let markup = section(source, index + 1, share, &mut pictures);
        // What must be said of a record can be longer than its share.
        match budget.take(markup.len()) {
            true => sections += &markup,
            false => sections += &stub(source, index + 1),
        }
    }
    let mut out = head(&title(sources));
    let _ = write!(
        out,
        "<body>\n<a class=\"skip\" href=\"#main\">Skip to the records</a>\n\
         <header><h1>{}</h1>\n<p>{}</p></header>\n{navigation}<main id=\"main\">\n{summary}\
         {sections}</main>\n<footer><p>Made by <code>pageinit report --as html</code>. \
         <code>--as csv</code> has every number.</p></footer>\n\
         <div id=\"tip\" role=\"tooltip\" hidden=\"hidden\"></div>\n\
         <script>//<![CDATA[\n{SCRIPT}//]]></script>\n</body>\n</html>\n",
        escape(&title(sources)),
        escape(&hosts(sources)),
    );
    out
}

/// A record for which there is no room.
fn stub(source: &Source, index: usize) -> String {
    let name: String = source.name.chars().take(60).collect();
    format!(
        "<section id=\"r{index}\"><h2>{}</h2><p class=\"cut\">no room is left for this record; \
         a report of fewer records has it</p></section>\n",
        escape(&name)
    )
}

fn title(sources: &[Source]) -> String {
    match sources {
        [one] => format!("{} of {}", one.record.kind(), cut(&one.name)),
        many => format!("{} records of pageinit", many.len()),
    }
}

/// Which computers measured.
fn hosts(sources: &[Source]) -> String {
    let mut names: Vec<&str> =
        sources.iter().filter_map(Source::host).map(super::source::cpu_model).collect();
    names.sort_unstable();
    names.dedup();
    match names[..] {
        [] => "Nothing here was measured: all figures are predictions or publications.".into(),
        [one] => format!("Measured on {}.", cut(one)),
        ref many => {
            let first: Vec<String> = many.iter().take(8).map(|name| cut(name)).collect();
            let more = if many.len() > 8 { " and more" } else { "" };
            format!("Measured on {} kinds of host: {}{more}.", many.len(), first.join("; "))
        }
    }
}

fn head(title: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n\
         <meta charset=\"utf-8\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n<title>{}</title>\n\
         <style>/*<![CDATA[*/\n{PICTURE_STYLE}{STYLE}/*]]>*/</style>\n</head>\n",
        escape(title)
    )
}

fn navigation(sources: &[Source], shown: usize) -> String {
    if sources.len() < 2 {
        return String::new();
    }
    let open = if sources.len() <= 12 { " open=\"open\"" } else { "" };
    let mut out = format!(
        "<nav aria-label=\"Records\"><details{open}><summary>{} records</summary>\n\
         <div class=\"list\"><a href=\"#summary\">Summary</a>\n<ol>\n",
        sources.len()
    );
    for (index, source) in sources.iter().take(shown).enumerate() {
        let name: String = source.name.chars().take(60).collect();
        let mark = if source.record.head().complete { "" } else { " (incomplete)" };
        let _ = writeln!(out, "<li><a href=\"#r{}\">{}</a>{mark}</li>", index + 1, escape(&name));
    }
    out += "</ol></div></details></nav>\n";
    out
}

/// The summary: every record, the records of each kind, and curves across records.
fn overall(sources: &[Source], shown: usize, bytes: usize, pictures: &mut Pictures<'_>) -> String {
    let mut out = String::from(
        "<section id=\"summary\" aria-labelledby=\"summaryh\">\n<h2 id=\"summaryh\">Summary</h2>\n",
    );
    if shown < sources.len() {
        let _ = writeln!(
            out,
            "<p class=\"cut\">Only the first {shown} of {} records have a section of their own; \
             --as csv has all.</p>",
            sources.len()
        );
    }
    let sheet = overview::sheet(sources);
    let link = |row: usize| (row < shown).then(|| format!("r{}", row + 1));
    out += &linked(&sheet, "all", bytes / 2, &link);
    let kinds = summary::sheets(sources);
    let share = bytes / 2 / kinds.len().max(1);
    for (index, sheet) in kinds.iter().enumerate() {
        out += &table(sheet, &format!("kind{index}"), share);
    }
    out += &across(sources, pictures);
    out += "</section>\n";
    out
}

/// Curves that only several records together have.
fn across(sources: &[Source], pictures: &mut Pictures<'_>) -> String {
    if !(2..=200).contains(&sources.len()) {
        return String::new();
    }
    let alike = |source: &&Source| {
        sources.iter().filter(|other| other.record.kind() == source.record.kind()).count() > 1
    };
    let own: Vec<&Source> = sources.iter().filter(alike).collect();
    let mut out = String::new();
    for picture in Picture::of(Kind::Sweep, &own, &[]) {
        if matches!(&picture, Picture::Curves(curves) if curves.has_lines()) {
            pictures.count += 1;
            let markup = figure(&picture, &format!("all{}", pictures.count), pictures.count);
            if out.len() + markup.len() < FOR_RECORDS / 5 {
                out += &markup;
            }
        }
    }
    out
}
