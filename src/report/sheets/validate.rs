//! The tables of a validation: modelled against published figures.

use super::{digits, maybe, share, small, with_note, words, yes};
use crate::record::validate::{Validated, Validation};
use crate::report::sheet::{Cell, Sheet};

pub(super) fn sheets(v: &Validation) -> Vec<Sheet> {
    vec![groups(v), records(v), left_out(v), ranges(v), machines(v), seconds(v), constants(v)]
}

fn records(v: &Validation) -> Sheet {
    let columns = [
        ("record", "id"),
        ("what", "what"),
        ("group", "group"),
        ("anchored on", "anchor"),
        ("class", "class"),
        ("mark", "class_mark"),
        ("in range", "in_range"),
        ("by construction", "by_construction"),
        ("threads", "threads"),
        ("published", "published_ms"),
        ("modelled", "modelled_ms"),
        ("error", "error_share"),
        ("low", "low_ms"),
        ("high", "high_ms"),
    ];
    let mut sheet = Sheet::new("Modelled against published", &columns, 8);
    let row = |r: &Validated| {
        let text = |value: &Option<String>| maybe(value.clone(), words);
        vec![
            words(&*r.id),
            words(&*r.what),
            text(&r.group),
            text(&r.anchor),
            text(&r.class),
            text(&r.class_mark),
            maybe(r.in_range, yes),
            yes(r.by_construction),
            maybe(r.threads, small),
            maybe(r.published_ms, digits),
            maybe(r.predicted_ms, digits),
            maybe(r.error, signed),
            maybe(r.range_ms, |range| digits(range[0])),
            maybe(r.range_ms, |range| digits(range[1])),
        ]
    };
    sheet.rows = v.records.iter().filter(|r| r.left_out.is_none()).map(row).collect();
    with_note(sheet, "in ms; rows that rest on a ratio are ratios without a unit")
}

fn signed(error: f64) -> Cell {
    Cell::number(error, format!("{:+.1} %", error * 100.0))
}

fn left_out(v: &Validation) -> Sheet {
    let columns = [
        ("record", "id"),
        ("what", "what"),
        ("why", "left_out"),
        ("threads", "threads"),
        ("published", "published_ms"),
    ];
    let mut sheet = Sheet::new("Published, left out", &columns, 3);
    let row = |r: &Validated| {
        let why = maybe(r.left_out.clone(), words);
        let figures = [maybe(r.threads, small), maybe(r.published_ms, digits)];
        [vec![words(&*r.id), words(&*r.what), why], figures.to_vec()].concat()
    };
    sheet.rows = v.records.iter().filter(|r| r.left_out.is_some()).map(row).collect();
    sheet
}

fn groups(v: &Validation) -> Sheet {
    let columns = [
        ("group", "group"),
        ("what", "title"),
        ("n", "n"),
        ("median", "median_share"),
        ("90 %", "p90_share"),
        ("worst", "worst_share"),
        ("within ×1.4", "within_factor_1_4_share"),
    ];
    let mut sheet = Sheet::new("Absolute errors of modelled times", &columns, 2);
    let row = |g: &crate::record::validate::GroupStats| {
        vec![
            words(&*g.name),
            words(&*g.title),
            super::count(g.n),
            share(g.median),
            share(g.p90),
            share(g.worst),
            share(g.within_factor_1_4),
        ]
    };
    sheet.rows = v.groups.iter().map(row).collect();
    with_note(sheet, format!("against {}", v.figures))
}

fn ranges(v: &Validation) -> Sheet {
    let columns = [
        ("ranges", "name"),
        ("n", "n"),
        ("covered", "covered_share"),
        ("median high ÷ low", "median_width"),
    ];
    let mut sheet = Sheet::new("Modelled ranges", &columns, 1);
    let row = |r: &crate::record::validate::RangeStats| {
        vec![words(&*r.name), super::count(r.n), share(r.covered), digits(r.median_width)]
    };
    sheet.rows = v.ranges.iter().map(row).collect();
    sheet
}

fn machines(v: &Validation) -> Sheet {
    let columns = [
        ("without", "machine"),
        ("efficiency", "efficiency"),
        ("settling", "settle_ms_per_thread"),
        ("guest factor", "guest_bandwidth"),
        ("median error", "median_share"),
        ("worst error", "worst_share"),
    ];
    let mut sheet = Sheet::new("Modelled with one machine left out", &columns, 1);
    let row = |m: &crate::record::validate::LeftOutMachine| {
        vec![
            words(&*m.machine),
            digits(m.efficiency),
            digits(m.settle_ms_per_thread),
            digits(m.guest_bandwidth),
            share(m.median),
            share(m.worst),
        ]
    };
    sheet.rows = v.left_out_machines.iter().map(row).collect();
    with_note(sheet, "constants fitted on the others, errors on the one left out")
}

fn seconds(v: &Validation) -> Sheet {
    let columns = [("record", "id"), ("part", "part"), ("from", "from"), ("seconds", "seconds_s")];
    let mut sheet = Sheet::new("Where an anchored saving comes from", &columns, 3);
    let row = |s: &crate::record::validate::Seconds| {
        let shown = Cell::number(s.seconds, format!("{:+.2} s", s.seconds));
        vec![words(&*s.id), words(&*s.part), words(&*s.from), shown]
    };
    sheet.rows = v.seconds.iter().map(row).collect();
    sheet
}

fn constants(v: &Validation) -> Sheet {
    let columns = [
        ("constant", "name"),
        ("unit", "unit"),
        ("mark", "mark"),
        ("origin", "origin"),
        ("value", "value"),
    ];
    let mut sheet = Sheet::new("Constants of the model", &columns, 4);
    let row = |c: &crate::record::validate::ConstantFacts| {
        let texts = [&c.name, &c.unit, &c.mark, &c.origin].map(|text| words(text.as_str()));
        [texts.to_vec(), vec![digits(c.value)]].concat()
    };
    sheet.rows = v.constants.iter().map(row).collect();
    sheet
}
