//! Pictures, pages and traces of fixed records, against golden files and against rules.
//!
//! `PAGEINIT_BLESS=1 cargo test --test report_pictures` writes the golden files anew.

#[path = "common/records.rs"]
mod records;

use pageinit::record::any::AnyRecord;
use pageinit::report::html::{MOST_BYTES, page};
use pageinit::report::pictures::{Kind, file};
use pageinit::report::source::Source;
use pageinit::report::trace;
use pageinit::warning::Warning;
use roxmltree::{Document, ParsingOptions};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> Source {
    let path = root().join("fixtures/records").join(name);
    let text = fs::read_to_string(&path).expect("the fixture is there");
    Source::read(name, &text).expect("the fixture is a record")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn estimate() -> Source {
    fixture("estimate-v1-memory.json")
}

fn compare() -> Source {
    fixture("compare-v1-memory.json")
}

#[track_caller]
fn golden(name: &str, made: &str) {
    let path = root().join("fixtures/golden/report").join(name);
    if std::env::var_os("PAGEINIT_BLESS").is_some() {
        fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        fs::write(&path, made).expect("writable");
    }
    let wanted = fs::read_to_string(&path).unwrap_or_default();
    if let Some((line, (made, wanted))) =
        made.lines().zip(wanted.lines()).enumerate().find(|(_, (a, b))| a != b)
    {
        panic!("{name}:{}: made {made:?}, golden {wanted:?}; PAGEINIT_BLESS=1 if meant", line + 1);
    }
    assert_eq!(made.len(), wanted.len(), "{name} has another length");
}

fn svg(sources: &[Source], kind: Kind) -> String {
    file(sources, Some(kind), &[]).expect("there is such a picture")
}

/// A page is HTML and well-formed XML at once, so that a parser can check it.
#[track_caller]
fn parsed(text: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    match Document::parse_with_options(text, options) {
        Ok(document) => document,
        Err(why) => panic!("{why} in {}", text.chars().take(3000).collect::<String>()),
    }
}

#[test]
fn pictures_pages_and_traces_are_as_before() {
    let both = [compare(), estimate()];
    golden("estimate.timeline.svg", &svg(&[estimate()], Kind::Timeline));
    golden("compare.timeline.svg", &svg(&[compare()], Kind::Timeline));
    golden("both.timeline.svg", &svg(&both, Kind::Timeline));
    golden("estimate.memory.svg", &svg(&[estimate()], Kind::Memory));
    golden("sweep.curves.svg", &svg(&[fixture("sweep-v1.json")], Kind::Sweep));
    golden("stores.curves.svg", &svg(&[fixture("calibration-v1-stores.json")], Kind::Sweep));
    golden("estimate.html", &page(&[estimate()], &[]));
    golden("both.html", &page(&both, &[]));
    golden("estimate.trace.json", &trace::text(&[estimate()], &[]).unwrap());
    golden("compare.trace.json", &trace::text(&[compare()], &[]).unwrap());
}

#[test]
fn every_kind_of_record_makes_a_well_formed_page() {
    for entry in fs::read_dir(root().join("fixtures/records")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let text = page(&[fixture(&name)], &[]);
        parsed(&text);
        assert!(text.contains("<table"), "{name}");
    }
}

#[test]
fn two_records_lie_on_one_time_axis() {
    let text = svg(&[compare(), estimate()], Kind::Timeline);
    assert_eq!(text.matches("time since the first phase began").count(), 1);
    let document = parsed(&text);
    let head = |needle: &str| {
        let texts = document.descendants().filter(|n| n.has_tag_name("text"));
        let texts = texts.filter(|n| n.attribute("class") == Some("head"));
        let mut found = texts.filter(|n| n.text().is_some_and(|t| t.contains(needle)));
        let node = found.next().unwrap_or_else(|| panic!("{needle} is not there"));
        node.attribute("y").unwrap().parse::<f64>().unwrap()
    };
    assert!(head("compare-v1-memory.json") < head("(modelled) · estimate-v1-memory.json"));
}

#[test]
fn what_is_measured_and_what_is_modelled_stands_in_the_picture() {
    assert!(svg(&[estimate()], Kind::Timeline).contains("Boot timeline (modelled)"));
    let compared = svg(&[compare()], Kind::Timeline);
    assert!(compared.contains("(scaled)") && compared.contains("medians of 3 runs"));
    assert!(svg(&[fixture("sweep-v1.json")], Kind::Sweep).contains("(modelled)"));
}

#[test]
fn a_picture_is_an_image_with_title_and_description() {
    for kind in [Kind::Timeline, Kind::Memory] {
        let text = svg(&[estimate()], kind);
        let document = parsed(&text);
        let svg = document.root_element();
        assert_eq!(svg.attribute("role"), Some("img"));
        let ids: Vec<&str> = svg.attribute("aria-labelledby").unwrap().split(' ').collect();
        for (id, tag) in ids.iter().zip(["title", "desc"]) {
            let named = svg.children().find(|n| n.attribute("id") == Some(id)).unwrap();
            assert!(named.has_tag_name(tag) || named.tag_name().name() == tag);
            assert!(named.text().is_some_and(|text| !text.is_empty()));
        }
    }
}

#[test]
fn every_drawn_number_stands_in_a_table_below_its_picture() {
    let text = page(&[compare(), estimate(), fixture("sweep-v1.json")], &[]);
    let document = parsed(&text);
    let named =
        |name: &'static str| document.descendants().filter(move |n| n.tag_name().name() == name);
    let mut figures = 0;
    for figure in named("figure") {
        figures += 1;
        let marks = figure.descendants().filter(|n| n.attribute("tabindex").is_some());
        let says: Vec<&str> = marks.filter_map(|m| m.first_element_child()?.text()).collect();
        let rows: Vec<String> = figure
            .descendants()
            .filter(|n| n.tag_name().name() == "tr")
            .map(|row| row.descendants().filter_map(|n| n.text()).collect::<Vec<_>>().join("|"))
            .collect();
        assert!(!says.is_empty() && rows.len() > says.len(), "{} marks", says.len());
        // A bar's times, a point's value: the last figure before the unit is looked for.
        for says in says {
            let value = says.split(": ").nth(1).unwrap_or(says);
            let value = value.split([';', ',']).next().unwrap_or(value);
            let value = value.split(" to ").next().unwrap_or(value).trim();
            assert!(rows.iter().any(|row| row.contains(value)), "{value:?} of {says:?}");
        }
    }
    assert!(figures >= 5, "{figures}");
}

/// A record whose every name tries to leave its place.
fn evil() -> Vec<Source> {
    const EVIL: &str = "</script><img src=x onerror=\"alert('1')\">&<b> ]]> -->";
    let (mut compare, mut estimate) = (compare(), estimate());
    compare.name = EVIL.into();
    if let AnyRecord::Compare(record) = &mut compare.record {
        record.machine.name = EVIL.into();
        record.host.cpu_model = Some(EVIL.into());
        record.head.warnings.push(Warning::new(EVIL, EVIL, EVIL));
        record.head.argv.push(EVIL.into());
        record.head.complete = false;
        for point in &mut record.points {
            point.store = Some(EVIL.into());
        }
        for plan in &mut record.plans {
            plan.stores = vec![EVIL.into()];
        }
    }
    if let AnyRecord::Estimate(record) = &mut estimate.record {
        record.strategy = EVIL.into();
        record.timeline.iter_mut().for_each(|span| span.phase = EVIL.into());
        if let Some(memory) = &mut record.memory {
            memory.zones.iter_mut().for_each(|zone| zone.zone = EVIL.into());
        }
    }
    vec![compare, estimate]
}

#[test]
fn names_with_markup_stay_texts_everywhere() {
    let sources = evil();
    let text = page(&sources, &[]);
    let document = parsed(&text);
    let count = |name: &str| {
        document.descendants().filter(|n| n.is_element() && n.tag_name().name() == name).count()
    };
    assert_eq!((count("script"), count("img"), count("b"), count("style")), (1, 0, 0, 1));
    assert_eq!(text.matches("</script>").count(), 1);
    for kind in [Kind::Timeline, Kind::Memory] {
        assert!(!svg(&sources, kind).contains("<img"));
        parsed(&svg(&sources, kind));
    }
    let trace: Value = serde_json::from_str(&trace::text(&sources, &[]).unwrap()).unwrap();
    assert!(trace["traceEvents"].as_array().is_some_and(|events| events.len() > 20));
}

#[test]
fn a_page_needs_nothing_from_elsewhere() {
    let text = page(&evil(), &[]);
    let document = parsed(&text);
    for node in document.descendants().filter(roxmltree::Node::is_element) {
        for attribute in node.attributes() {
            let is_link = ["href", "src", "action", "data"].contains(&attribute.name());
            assert!(!is_link || attribute.value().starts_with('#'), "{attribute:?}");
            assert!(!attribute.name().starts_with("on"), "{attribute:?}");
        }
    }
    assert!(text.contains("content=\"default-src 'none'; style-src 'unsafe-inline'; script-src"));
}

#[test]
fn incomplete_records_and_remedies_are_shown() {
    let text = page(&evil(), &[]);
    assert_eq!(text.matches("<strong>INCOMPLETE</strong>").count(), 1);
    let source = compare();
    let warning = &source.record.head().warnings[0];
    let text = page(std::slice::from_ref(&source), &[]);
    assert!(text.contains(&warning.code) && text.contains("Remedy:"), "{}", warning.code);
    assert!(!text.contains("INCOMPLETE"));
}

#[test]
fn a_page_of_many_records_or_points_stays_small_and_says_what_it_leaves_out() {
    let text = page(&records::many(1000), &[]);
    assert!(text.len() < MOST_BYTES, "{}", text.len());
    assert!(text.contains("only the first table of each is here"));
    assert!(text.contains("results/host-0999.json") && text.contains("(incomplete)"));
    let text = page(&[records::sweep(100_000)], &[]);
    assert!(text.len() < MOST_BYTES, "{}", text.len());
    assert!(text.contains("of 100000 rows, evenly spaced, the first and the last among them"));
    assert!(text.contains("lines; the tables and --as csv have all"));
    parsed(&text);
    let mut long = records::many(1000);
    for source in &mut long {
        if let AnyRecord::Compare(record) = &mut source.record {
            record.host.cpu_model = Some("<".repeat(100_000));
            record.head.argv = vec!["&".repeat(100_000); 3];
        }
    }
    let text = page(&long, &[]);
    assert!(text.len() < MOST_BYTES, "{}", text.len());
    assert!(text.contains("no room is left for this record"));
    parsed(&text);
    let text = page(&records::many(5000), &[]);
    assert!(text.len() < MOST_BYTES, "{}", text.len());
    assert!(text.contains("records have a section of their own"));
}

#[test]
fn what_cannot_be_drawn_says_why() {
    let why = |source: Source, kind| file(&[source], kind, &[]).unwrap_err().to_string();
    let old = why(fixture("estimate-v1.json"), Some(Kind::Memory));
    assert!(old.contains("no memory can be drawn") && old.contains("make them anew"), "{old}");
    let lab = why(fixture("lab-mremap-v1.json"), None);
    assert!(lab.contains("lab-mremap-v1.json: no picture can be drawn"), "{lab}");
    let trace = trace::text(&[fixture("sweep-v1.json")], &[]).unwrap_err().to_string();
    assert!(trace.contains("no timeline"), "{trace}");
    let none = file(&[compare()], Some(Kind::Timeline), &["serial".into()]).unwrap_err();
    assert!(none.to_string().contains("leave --strategy"), "{none}");
}

/// Holds a trace against what its readers demand.
#[track_caller]
fn check_trace(text: &str) -> Vec<Value> {
    let trace: Value = serde_json::from_str(text).unwrap();
    let events = trace["traceEvents"].as_array().unwrap().clone();
    let mut named: BTreeMap<&str, BTreeSet<(u64, u64)>> = BTreeMap::new();
    let mut spans: BTreeMap<(u64, u64), Vec<(f64, f64)>> = BTreeMap::new();
    for event in &events {
        let (pid, tid) = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
        let name = event["name"].as_str().unwrap();
        assert!(event["args"].is_object(), "{event}");
        match event["ph"].as_str().unwrap() {
            "M" => {
                let id = if name.starts_with("process") { (pid, 0) } else { (pid, tid) };
                assert!(named.entry(name).or_default().insert(id), "twice: {event}");
            }
            "X" => {
                let (ts, dur) = (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap());
                assert!(ts >= 0.0 && dur >= 0.0, "{event}");
                assert!(event["args"]["pages"].is_u64() && event["args"]["bytes"].is_u64());
                assert!(event["args"]["label"].is_string());
                spans.entry((pid, tid)).or_default().push((ts, ts + dur));
                assert!(named["process_name"].contains(&(pid, 0)), "{event}");
                assert!(named["thread_name"].contains(&(pid, tid)), "{event}");
            }
            "C" => {
                assert!(event["ts"].as_f64().unwrap() >= 0.0);
                assert!(event["args"]["GB/s"].as_f64().unwrap() >= 0.0, "{event}");
                assert!(named["process_name"].contains(&(pid, 0)), "{event}");
            }
            other => panic!("{other} is no event for every reader"),
        }
    }
    for (thread, mut spans) in spans {
        spans.sort_by(|a, b| a.0.total_cmp(&b.0));
        // µs as floats: a rounding of a thousandth of a ns is no overlap.
        assert!(spans.windows(2).all(|w| w[0].1 <= w[1].0 + 1e-6), "{thread:?} overlaps");
    }
    events
}

#[test]
fn traces_are_what_their_readers_demand() {
    let one = check_trace(&trace::text(&[estimate()], &[]).unwrap());
    let names: BTreeSet<&str> = one
        .iter()
        .filter(|e| e["name"] == "process_name")
        .map(|e| e["args"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, BTreeSet::from(["boot CPU", "node 0", "node 1"]));
    let node1 = one.iter().find(|e| e["args"]["name"] == "node 1").unwrap();
    assert_eq!(node1["pid"], 2, "nid + 1");
    let mut rates = one.iter().filter(|e| e["ph"] == "C" && e["pid"] == 2);
    assert!(rates.any(|e| e["args"]["GB/s"].as_f64().unwrap() > 0.0));
    let last = one.iter().rfind(|e| e["ph"] == "C" && e["pid"] == 2).unwrap();
    assert_eq!(last["args"]["GB/s"], 0.0, "at the end nothing is stored");
    check_trace(&trace::text(&[fixture("estimate-v1.json")], &[]).unwrap());
}

#[test]
fn timelines_of_one_trace_have_processes_of_their_own() {
    let both = check_trace(&trace::text(&[compare(), estimate()], &[]).unwrap());
    let names: Vec<&str> = both
        .iter()
        .filter(|e| e["name"] == "process_name")
        .map(|e| e["args"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names.len(), names.iter().collect::<BTreeSet<_>>().len(), "{names:?}");
    assert!(names.contains(&"estimate-v1-memory.json, deferred: node 0"), "{names:?}");
    let only = trace::text(&[compare()], &["deferred".into()]).unwrap();
    assert!(
        check_trace(&only).iter().all(|e| e["ph"] != "X" || e["args"]["strategy"] == "deferred")
    );
}
