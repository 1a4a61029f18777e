//! The tables of an estimate; every time is modelled.

use super::{
    bytes, count, digits, facts, maybe, ns, share, small, whole_ns, with_note, words, yes,
};
use crate::record::estimate::Estimate;
use crate::report::sheet::{Cell, Sheet};
use crate::units::time;

pub(super) fn sheets(e: &Estimate) -> Vec<Sheet> {
    vec![
        phases(e),
        nodes(e),
        what_ifs(e),
        logged(e),
        savings(e),
        total(e),
        machine_nodes(e),
        timeline(e),
    ]
}

fn what_ifs(e: &Estimate) -> Sheet {
    let columns = [
        ("what", "what_if"),
        ("in words", "what"),
        ("made of", "parts"),
        ("note", "note"),
        ("label", "label"),
        ("takes", "total_ns"),
        ("low", "low_ns"),
        ("high", "high_ns"),
        ("against", "against_ns"),
        ("saves", "saved_ns"),
        ("memmap", "memmap_bytes"),
    ];
    let mut sheet = Sheet::new("What if", &columns, 5);
    let row = |w: &crate::record::estimate::WhatIfRow| {
        let parts = w.parts.iter().map(|p| format!("{} {}", p.part, time(p.ns as f64)));
        vec![
            words(&*w.name),
            words(&*w.what),
            words(parts.collect::<Vec<_>>().join(", ")),
            words(&*w.note),
            e.label.name().into(),
            maybe(w.total_ns, whole_ns),
            maybe(w.range_ns, |r| whole_ns(r[0])),
            maybe(w.range_ns, |r| whole_ns(r[1])),
            maybe(w.against_ns, whole_ns),
            maybe(w.saved_ns, |saved| ns(saved as f64)),
            maybe(w.memmap_bytes, bytes),
        ]
    };
    sheet.rows = e.what_ifs.iter().map(row).collect();
    with_note(sheet, "each against the boot without it; negative where it costs")
}

fn logged(e: &Estimate) -> Sheet {
    let columns = [
        ("what", "what"),
        ("caveats", "caveats"),
        ("left out", "left_out"),
        ("label of predictions", "label"),
        ("line", "line"),
        ("node", "nid"),
        ("struct pages", "pages"),
        ("workers", "workers"),
        ("logged, ms", "logged_ms"),
        ("tick, ms", "step_ms"),
        ("predicted, ms", "predicted_ms"),
        ("low, ms", "low_ms"),
        ("high, ms", "high_ms"),
        ("error", "error_share"),
    ];
    let mut sheet = Sheet::new("Against the log's own times", &columns, 4);
    let row = |l: &crate::record::estimate::Logged| {
        vec![
            words(&*l.what),
            words(l.caveats.join(" ")),
            words(l.left_out.clone().unwrap_or_default()),
            e.label.name().into(),
            count(l.line),
            maybe(l.nid, small),
            maybe(l.pages, count),
            maybe(l.workers, small),
            maybe(l.logged_ms, digits),
            maybe(l.step_ms, digits),
            maybe(l.predicted_ms, digits),
            maybe(l.range_ms, |r| digits(r[0])),
            maybe(l.range_ms, |r| digits(r[1])),
            maybe(l.error, share),
        ]
    };
    sheet.rows = e.logged.iter().map(row).collect();
    with_note(sheet, "logged times were read from the log, predictions are modelled")
}

fn phases(e: &Estimate) -> Sheet {
    let columns = [
        ("phase", "phase"),
        ("by", "executor"),
        ("label", "label"),
        ("start", "start_ns"),
        ("end", "end_ns"),
        ("takes", "took_ns"),
        ("struct pages", "pages"),
        ("slowest node", "slowest_nid"),
    ];
    let mut sheet = Sheet::new("Phases", &columns, 3);
    let row = |p: &crate::record::estimate::PhaseFacts| {
        vec![
            words(&*p.phase),
            words(&*p.executor),
            e.label.name().into(),
            whole_ns(p.start_ns),
            whole_ns(p.end_ns),
            whole_ns(p.end_ns.saturating_sub(p.start_ns)),
            count(p.pages),
            maybe(p.slowest_nid, small),
        ]
    };
    sheet.rows = e.phases.iter().map(row).collect();
    sheet
}

fn nodes(e: &Estimate) -> Sheet {
    let columns = [
        ("label", "label"),
        ("node", "nid"),
        ("workers", "workers"),
        ("struct pages", "pages"),
        ("takes", "took_ns"),
        ("ns/page alone", "alone_per_page_ns"),
        ("moved", "moved_bytes"),
        ("memory busy", "bandwidth_share"),
        ("lock busy", "lock_share"),
    ];
    let mut sheet = Sheet::new("Nodes' longest phase", &columns, 1);
    let row = |n: &crate::record::estimate::NodeEstimate| {
        vec![
            e.label.name().into(),
            small(n.nid),
            small(n.workers),
            count(n.pages),
            whole_ns(n.wall_ns),
            digits(n.page_ns),
            bytes(n.moved_bytes),
            share(n.bandwidth_use),
            share(n.lock_use),
        ]
    };
    sheet.rows = e.nodes.iter().map(row).collect();
    with_note(sheet, "the longest phase of each node's threads")
}

fn savings(e: &Estimate) -> Sheet {
    let columns = [
        ("strategy", "strategy"),
        ("kernel", "kernel"),
        ("label", "label"),
        ("takes", "total_ns"),
        ("saved by this one", "saved_ns"),
    ];
    let mut sheet = Sheet::new("Against other strategies and kernels", &columns, 3);
    let row = |s: &crate::record::estimate::Saving| {
        vec![
            words(&*s.strategy),
            words(&*s.kernel),
            e.label.name().into(),
            whole_ns(s.total_ns),
            ns(s.saved_ns as f64),
        ]
    };
    sheet.rows = e.savings.iter().map(row).collect();
    sheet
}

fn total(e: &Estimate) -> Sheet {
    let (m, p) = (&e.machine, &e.processor);
    facts(
        "Estimate",
        vec![
            ("label", e.label.name().into()),
            ("total_ns", whole_ns(e.total_ns)),
            ("low_ns", whole_ns(e.range_ns[0])),
            ("high_ns", whole_ns(e.range_ns[1])),
            ("range_meaning", words(&*e.range_meaning)),
            ("bound_by", words(&*e.bound_by)),
            ("rests_on", words(format!("{}: {}", e.anchor.kind, e.anchor.from))),
            ("machine", words(&*m.name)),
            ("machine_title", words(&*m.title)),
            ("machine_arch", words(&*m.arch)),
            ("page_bytes", bytes(m.page_bytes)),
            ("machine_memory_bytes", bytes(m.memory_bytes)),
            ("memory_ranges_from", words(&*m.memory_ranges_from)),
            ("strategy", words(&*e.strategy)),
            ("threads", small(e.threads)),
            ("free", yes(e.free)),
            ("processor_class", words(&*p.class)),
            ("processor_mark", words(&*p.mark)),
            ("processor_source", words(&*p.source)),
            ("virt", words(&*p.virt)),
            ("cold_line_ns", digits(p.line_ns)),
            (
                "node_bytes_per_s",
                Cell::number(p.node_bytes_per_s as f64, {
                    format!("{:.1} GB/s", p.node_bytes_per_s as f64 / 1e9)
                }),
            ),
        ],
    )
}

fn machine_nodes(e: &Estimate) -> Sheet {
    let columns = [
        ("node", "nid"),
        ("memory", "memory_bytes"),
        ("CPUs", "cpu_count"),
        ("early pages", "early_pages"),
        ("deferred pages", "deferred_pages"),
        ("kernel's threads", "kernel_threads"),
    ];
    let mut sheet = Sheet::new("Nodes of the machine", &columns, 0);
    let row = |n: &crate::record::NodeFacts| {
        vec![
            small(n.nid),
            bytes(n.memory_bytes),
            small(n.cpu_count),
            count(n.early_pages),
            count(n.deferred_pages),
            small(n.kernel_threads),
        ]
    };
    sheet.rows = e.machine.nodes.iter().map(row).collect();
    sheet
}

fn timeline(e: &Estimate) -> Sheet {
    let columns = [
        ("phase", "phase"),
        ("by", "executor"),
        ("label", "label"),
        ("node", "nid"),
        ("worker", "worker"),
        ("start", "start_ns"),
        ("end", "end_ns"),
        ("struct pages", "pages"),
        ("size", "memmap_bytes"),
    ];
    let mut sheet = Sheet::new("Timeline", &columns, 3);
    let row = |s: &crate::record::estimate::TimelineSpan| {
        vec![
            words(&*s.phase),
            words(&*s.executor),
            e.label.name().into(),
            small(s.nid),
            small(s.worker),
            whole_ns(s.start_ns),
            whole_ns(s.end_ns),
            count(s.pages),
            bytes(s.bytes),
        ]
    };
    sheet.rows = e.timeline.iter().map(row).collect();
    with_note(sheet, "what every worker did; node is the one whose struct pages these are")
}
