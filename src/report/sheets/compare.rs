//! The tables of a comparison.

use super::{
    bytes, count, digits, facts, host, list, maybe, ns, share, small, whole_ns, with_note, words,
    yes,
};
use crate::kernel::struct_page::STRUCT_PAGE_BYTES;
use crate::record::{Point, Record};
use crate::report::compare::{is_probe, part_ns};
use crate::report::sheet::{Cell, Sheet};
use crate::stats::Summary;
use crate::units::gb_per_s;

pub(super) fn sheets(record: &Record) -> Vec<Sheet> {
    vec![
        strategies(record),
        points(record),
        whole(record),
        prefetch(record),
        published(record),
        scaled(record),
        plans(record),
        nodes(record),
        placement(record),
        execution(record),
        host(&record.host),
    ]
}

/// How figures of the whole machine came about: multiplied up, unless all of it ran.
fn how(record: &Record) -> &'static str {
    record.execution.whole_label().name()
}

fn strategies(record: &Record) -> Sheet {
    let columns = [
        ("strategy", "strategy"),
        ("store", "store"),
        ("label", "label"),
        ("threads", "threads"),
        ("boot CPU", "boot_cpu_ns"),
        ("node threads", "node_threads_ns"),
        ("sum", "total_ns"),
        ("ns/page", "per_page_ns"),
        ("GB/s", "gb_per_s"),
        ("ratio", "ratio"),
        ("ratio, low", "ratio_low"),
        ("ratio, high", "ratio_high"),
    ];
    let mut sheet = Sheet::new("Strategies", &columns, 3);
    let totals = record.points.iter().filter(|p| p.phase == "total" && !is_probe(p));
    sheet.rows = totals.map(|p| strategy(record, p)).collect();
    with_note(
        sheet,
        format!(
            "whole machine; ratio to {} run by run with its 95 % interval, below 1 is faster",
            record.baseline
        ),
    )
}

fn strategy(record: &Record, total: &Point) -> Vec<Cell> {
    let time = total.scaled_median_ns;
    let same = |r: &&crate::record::Ratio| r.strategy == total.strategy && r.store == total.store;
    let ratio = record.ratios.iter().find(same);
    vec![
        words(&*total.strategy),
        maybe(total.store.clone(), words),
        how(record).into(),
        small(total.threads),
        maybe(part_ns(record, total, "boot-cpu"), ns),
        maybe(part_ns(record, total, "deferred"), ns),
        ns(time),
        digits(time / total.scaled_pages.max(1) as f64),
        digits(gb_per_s(total.scaled_pages.saturating_mul(STRUCT_PAGE_BYTES), time)),
        maybe(ratio.map(|r| r.median), digits),
        maybe(ratio.map(|r| r.ci95[0]), digits),
        maybe(ratio.map(|r| r.ci95[1]), digits),
    ]
}

/// What tells points apart, and how many threads and which node.
const KEYS: [(&str, &str); 7] = [
    ("strategy", "strategy"),
    ("store", "store"),
    ("phase", "phase"),
    ("freed", "free"),
    ("label", "label"),
    ("threads", "threads"),
    ("node", "nid"),
];

fn key(point: &Point, label: &str) -> Vec<Cell> {
    vec![
        words(&*point.strategy),
        maybe(point.store.clone(), words),
        words(&*point.phase),
        yes(point.free),
        label.into(),
        small(point.threads),
        maybe(point.nid, small),
    ]
}

fn points(record: &Record) -> Sheet {
    let columns = [
        ("runs", "runs"),
        ("median", "median_ns"),
        ("low", "low_ns"),
        ("high", "high_ns"),
        ("executed pages", "executed_pages"),
        ("ns/page", "per_page_ns"),
        ("verified", "verified"),
    ];
    let mut sheet = Sheet::new("Executed pages", &[&KEYS[..], &columns].concat(), 5);
    let row = |p: &Point| {
        let figures = [
            count(p.samples_ns.len() as u64),
            ns(p.median_ns),
            ns(p.ci95_ns[0]),
            ns(p.ci95_ns[1]),
            count(p.executed_pages),
            digits(p.median_ns / p.executed_pages.max(1) as f64),
            yes(p.verified),
        ];
        [key(p, p.label.name()), figures.to_vec()].concat()
    };
    sheet.rows = record.points.iter().map(row).collect();
    with_note(sheet, "times of the pages that ran; low and high are the median's 95 % interval")
}

fn whole(record: &Record) -> Sheet {
    let columns = [
        ("median", "median_ns"),
        ("pages", "pages"),
        ("ns/page", "per_page_ns"),
        ("GB/s", "gb_per_s"),
    ];
    let mut sheet = Sheet::new("Whole machine", &[&KEYS[..], &columns].concat(), 5);
    let row = |p: &Point| {
        let figures = [
            ns(p.scaled_median_ns),
            count(p.scaled_pages),
            digits(p.scaled_median_ns / p.scaled_pages.max(1) as f64),
            digits(gb_per_s(p.scaled_pages.saturating_mul(STRUCT_PAGE_BYTES), p.scaled_median_ns)),
        ];
        [key(p, how(record)), figures.to_vec()].concat()
    };
    sheet.rows = record.points.iter().map(row).collect();
    with_note(sheet, "the same for all pages of the machine, phase by phase")
}

fn prefetch(record: &Record) -> Sheet {
    let columns = [
        ("figure", "figure"),
        ("label", "label"),
        ("threads", "threads"),
        ("median", "median_ns"),
        ("low", "low_ns"),
        ("high", "high_ns"),
    ];
    let mut sheet = Sheet::new("Prefetch effect", &columns, 2);
    let Some(p) = &record.prefetch else { return sheet };
    let row = |(name, s): (&str, &Summary)| {
        let (how, threads) = (p.label.name().into(), small(p.threads));
        vec![name.into(), how, threads, ns(s.median), ns(s.ci95[0]), ns(s.ci95[1])]
    };
    let figures = [
        ("field writes on cold lines", &p.fields_cold_ns),
        ("zeroing alone", &p.zero_only_ns),
        ("zeroing, then field writes", &p.zero_then_fields_ns),
        ("field writes on lines just zeroed", &p.fields_warm_ns),
        ("what zeroing in place adds", &p.inline_zero_adds_ns),
    ];
    sheet.rows = figures.into_iter().map(row).collect();
    with_note(sheet, "per struct page and node, with 95 % intervals")
}

fn published(record: &Record) -> Sheet {
    let columns = [
        ("publication", "publication"),
        ("what was timed", "what"),
        ("there", "machine"),
        ("strategy", "strategy"),
        ("store", "store"),
        ("divided by", "baseline"),
        ("label", "label"),
        ("published", "published_ratio"),
        ("here", "measured_ratio"),
        ("low", "low_ratio"),
        ("high", "high_ratio"),
        ("threads", "threads"),
        ("freed", "free"),
    ];
    let mut sheet = Sheet::new("Beside published figures", &columns, 7);
    let row = |p: &crate::record::PublishedRatio| {
        vec![
            words(&*p.id),
            words(&*p.what),
            words(&*p.machine),
            words(&*p.strategy),
            maybe(p.store.clone(), words),
            words(&*p.baseline),
            "measured".into(),
            digits(p.published),
            digits(p.measured),
            digits(p.ci95[0]),
            digits(p.ci95[1]),
            small(p.threads),
            yes(p.free),
        ]
    };
    sheet.rows = record.published.iter().map(row).collect();
    with_note(sheet, "ratios of the threads' phase; there one thread, and nothing was freed")
}

fn scaled(record: &Record) -> Sheet {
    let columns = [
        ("machine", "machine"),
        ("what it is", "title"),
        ("strategy", "strategy"),
        ("store", "store"),
        ("label", "label"),
        ("memory", "memory_bytes"),
        ("boot CPU", "boot_cpu_ns"),
        ("node threads", "node_threads_ns"),
        ("sum", "total_ns"),
        ("saved", "saved_ns"),
    ];
    let mut sheet = Sheet::new("At these rates", &columns, 5);
    for machine in &record.scaled {
        let row = |r: &crate::record::ScaledRow| {
            vec![
                words(&*machine.machine),
                words(&*machine.title),
                words(&*r.strategy),
                maybe(r.store.clone(), words),
                machine.label.name().into(),
                bytes(machine.memory_bytes),
                ns(r.boot_cpu_ns),
                ns(r.deferred_ns),
                ns(r.total_ns),
                maybe(r.saved_ns, ns),
            ]
        };
        sheet.rows.extend(machine.rows.iter().map(row));
        sheet.note = Some(machine.rule.clone());
    }
    sheet
}

fn plans(record: &Record) -> Sheet {
    let columns = [
        ("strategy", "strategy"),
        ("phase", "phase"),
        ("executor", "executor"),
        ("operations", "ops"),
        ("stores", "stores"),
        ("threads", "threads"),
        ("executed pages", "executed_pages"),
        ("machine's pages", "machine_pages"),
    ];
    let mut sheet = Sheet::new("Plans", &columns, 5);
    for plan in &record.plans {
        let row = |p: &crate::record::PlanPhaseFacts| {
            vec![
                words(&*plan.strategy),
                words(&*p.phase),
                words(&*p.executor),
                words(p.ops.join(" ")),
                words(plan.stores.join(" ")),
                small(p.threads),
                count(p.executed_pages),
                count(p.machine_pages),
            ]
        };
        sheet.rows.extend(plan.phases.iter().map(row));
    }
    with_note(sheet, "phases in boot order; pages per copy of the memmap")
}

fn nodes(record: &Record) -> Sheet {
    let columns = [
        ("pinned to CPUs", "pinned_cpus"),
        ("ran on CPUs", "ran_on_cpus"),
        ("node", "nid"),
        ("memory", "memory_bytes"),
        ("CPUs", "cpu_count"),
        ("early pages", "early_pages"),
        ("deferred pages", "deferred_pages"),
        ("kernel's threads", "kernel_threads"),
        ("host's node", "host_nid"),
        ("round", "round"),
    ];
    let mut sheet = Sheet::new("Nodes", &columns, 2);
    let row = |n: &crate::record::NodeFacts| {
        let stand_in = record.execution.mapping.iter().find(|m| m.nid == n.nid);
        vec![
            maybe(stand_in, |m| list(&m.cpus)),
            maybe(stand_in, |m| list(&m.ran_on)),
            small(n.nid),
            bytes(n.memory_bytes),
            small(n.cpu_count),
            count(n.early_pages),
            count(n.deferred_pages),
            small(n.kernel_threads),
            maybe(stand_in, |m| small(m.host_nid)),
            maybe(stand_in, |m| small(m.round)),
        ]
    };
    sheet.rows = record.machine.nodes.iter().map(row).collect();
    with_note(sheet, "nodes of the same round ran at the same time")
}

fn placement(record: &Record) -> Sheet {
    let columns = [
        ("bound", "bound"),
        ("host's node", "host_nid"),
        ("buffer", "buffer_bytes"),
        ("found there", "on_node_bytes"),
    ];
    let mut sheet = Sheet::new("Placement", &columns, 1);
    let row = |p: &crate::record::Placement| {
        vec![yes(p.bound), small(p.host_nid), bytes(p.bytes), maybe(p.on_node_bytes, bytes)]
    };
    sheet.rows = record.execution.placement.iter().map(row).collect();
    sheet
}

fn execution(record: &Record) -> Sheet {
    let (e, m) = (&record.execution, &record.machine);
    facts(
        "Execution",
        vec![
            ("machine", words(&*m.name)),
            ("machine_title", words(&*m.title)),
            ("machine_arch", words(&*m.arch)),
            ("page_bytes", bytes(m.page_bytes)),
            ("machine_memory_bytes", bytes(m.memory_bytes)),
            ("memory_ranges_from", words(&*m.memory_ranges_from)),
            ("memmap_bytes", bytes(e.memmap_bytes)),
            ("buffer_bytes", bytes(e.buffer_bytes)),
            ("executed_share", share(e.executed_share)),
            ("copies", count(e.copies)),
            ("runs", small(e.runs)),
            ("seed", Cell::Text(record.seed.to_string())),
            ("started_unix_s", Cell::Text(record.started_unix_s.to_string())),
            ("free", yes(e.free)),
            ("first_touch_ns", maybe(e.first_touch_ns, whole_ns)),
            ("huge_page_bytes", maybe(e.huge_page_bytes, bytes)),
            ("boot_cpu_ran_on", list(&e.boot_cpu_ran_on)),
            ("zero_advantage", maybe(e.zero_advantage, digits)),
            ("overhead_share", maybe(e.overhead_share, share)),
        ],
    )
}

pub(super) fn samples(record: &Record) -> Sheet {
    let columns = [("run", "run"), ("time", "sample_ns"), ("pages", "executed_pages")];
    let mut sheet = Sheet::new("Samples", &[&KEYS[..], &columns].concat(), 5);
    for p in &record.points {
        for (run, &sample) in (1..).zip(&p.samples_ns) {
            let figures = [count(run), whole_ns(sample), count(p.executed_pages)];
            sheet.rows.push([key(p, p.label.name()), figures.to_vec()].concat());
        }
    }
    sheet
}
