//! The model's errors against published figures must not get worse.
//!
//! `fixtures/golden/validate.json` holds them as they were when the model was last
//! changed on purpose; `PAGEINIT_BLESS=1 cargo test --test validate` writes it anew.

use pageinit::record::validate::{GroupStats, RangeStats, Validated, Validation};
use pageinit::study::published;
use pageinit::study::validate::validate;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs;
use std::sync::LazyLock;

const GOLDEN: &str = "fixtures/golden/validate.json";

/// Errors may grow by so much, as a share: rounding of pages, not of the model.
const SLACK: f64 = 0.005;

#[derive(Serialize, Deserialize)]
struct Golden {
    groups: Vec<GroupStats>,
    ranges: Vec<RangeStats>,
}

/// Predicting everything, and fitting three times, takes a while without optimisation.
static ONCE: LazyLock<Validation> = LazyLock::new(fresh);

fn builtin() -> &'static Validation {
    &ONCE
}

fn fresh() -> Validation {
    validate("the built-in figures", &published::builtin(), Vec::new())
        .expect("all can be laid out")
}

fn group<'a>(groups: &'a [GroupStats], name: &str) -> &'a GroupStats {
    groups.iter().find(|g| g.name == name).unwrap_or_else(|| panic!("no group {name}"))
}

#[test]
fn errors_do_not_get_worse() {
    let now = builtin();
    if std::env::var_os("PAGEINIT_BLESS").is_some() {
        let golden = Golden { groups: now.groups.clone(), ranges: now.ranges.clone() };
        let text = serde_json::to_string_pretty(&golden).expect("plain data");
        fs::write(GOLDEN, text + "\n").expect("the fixture can be written");
    }
    let text = fs::read_to_string(GOLDEN).expect("the fixture is there");
    let golden: Golden = serde_json::from_str(&text).expect("the fixture parses");
    for was in &golden.groups {
        let is = group(&now.groups, &was.name);
        assert!(is.n >= was.n, "{}: {} predictions of {}", was.name, is.n, was.n);
        for (what, is, was) in [
            ("median", is.median, was.median),
            ("p90", is.p90, was.p90),
            ("worst", is.worst, was.worst),
        ] {
            assert!(is <= was + SLACK, "{what} grew from {was:.4} to {is:.4}");
        }
    }
    for was in &golden.ranges {
        let is = now.ranges.iter().find(|r| r.name == was.name).expect("every kind of range");
        assert!(is.covered + SLACK >= was.covered, "{}: {:?}", was.name, is);
        assert!(is.median_width <= was.median_width + SLACK, "{}: {:?}", was.name, is);
    }
}

#[test]
fn the_wanted_accuracy_is_reached() {
    let now = builtin();
    let anchored = group(&now.groups, "threads-anchored");
    assert!(anchored.median <= 0.03 && anchored.p90 <= 0.10, "{anchored:?}");
    let left_out = group(&now.groups, "threads-left-out");
    assert!(left_out.median <= 0.07 && left_out.p90 <= 0.22, "{left_out:?}");
    let blind = group(&now.groups, "one-thread-blind");
    assert!(blind.within_factor_1_4 >= 0.8, "{blind:?}");
    let ladder = group(&now.groups, "kernel-ladder");
    assert!(ladder.worst <= 0.15, "{ladder:?}");
    for range in &now.ranges {
        // Most of the devices' machines are not described at all.
        let (least, most) = match range.name.as_str() {
            "anchored" => (0.8, 1.25),
            "devices" => (0.75, 2.6),
            _ => (0.8, 2.0),
        };
        assert!(range.covered >= least && range.median_width <= most, "{range:?}");
    }
    let devices = group(&now.groups, "device-memory");
    assert!(devices.n >= 18 && devices.median <= 0.25, "{devices:?}");
    let ratios = group(&now.groups, "device-ratios");
    assert!(ratios.n == 3 && ratios.worst <= 0.25, "{ratios:?}");
    assert_eq!(now.fitted_thread_constants, 3);
}

#[test]
fn the_named_cases_are_reached() {
    let now = builtin();
    let error = |id: &str, what: &str| {
        let found = now.records.iter().find(|r| r.id == id && r.what.starts_with(what));
        found.and_then(|r| r.error).unwrap_or_else(|| panic!("{id}, {what}: no error"))
    };
    assert!(error("waiman-12tb-v4", "slowest").abs() <= 0.15);
    assert!(error("waiman-12tb-v4", "mean").abs() <= 0.15);
    assert!(error("tatashin-zeroing-x86", "saving per TB, from").abs() <= 0.10);
    let sparc = |e: f64| (-0.5..=1.0).contains(&e);
    assert!(sparc(error("tatashin-zeroing-sparc32t", "saving: boot, zeroing as in sparc-m7")));
    assert!(sparc(error("tatashin-zeroing-sparc32t", "saving: boot, zeroing as in tatashin-v11")));
}

#[test]
fn the_same_figures_give_the_same_bytes() {
    let text = |v: &Validation| serde_json::to_string(v).expect("plain data");
    assert_eq!(text(builtin()), text(&fresh()));
}

const DEFERRED: &str = "deferred init (slowest node)";

/// A record of a Skylake machine with two nodes, as such files write it; `machine` and
/// `figures` are what differs.
fn record(id: &str, kernel: &str, machine: Value, figures: Value) -> Value {
    let mut all = json!({"cpu": "Intel Xeon Platinum 8167M (Skylake)", "arch": "x86_64",
        "nodes": 2, "cpus_per_node": 52, "smt": 2, "memory_per_node_gib": 384,
        "page_size": "4K", "virt": "bare metal"});
    for (field, value) in machine.as_object().into_iter().flatten() {
        all[field] = value.clone();
    }
    json!({"id": id, "title": id, "source": "s", "machine": all, "kernel": kernel,
        "config": "", "measurements": figures, "notes": ""})
}

/// One figure of the slowest node.
fn slowest(threads: u32, ms: f64) -> Value {
    json!({"what": DEFERRED, "threads": threads, "time_ms": ms})
}

fn validated(records: &[Value]) -> Validation {
    let text = serde_json::to_string(records).expect("plain data");
    let figures = published::parse("mine.json", &text).expect("a file of figures");
    validate("mine.json", &figures, Vec::new()).expect("no record spoils the others")
}

/// The entry of one figure: of that record, time and words.
fn entry<'v>(v: &'v Validation, id: &str, what: &str, ms: f64) -> &'v Validated {
    let own = |r: &&Validated| {
        r.id == id && r.what == what && r.published_ms == Some(ms) && r.group.is_none_or_post()
    };
    v.records.iter().find(own).unwrap_or_else(|| panic!("{id}, {what}: no entry"))
}

/// Whether an entry is a figure's own, not drawn from several.
trait Own {
    fn is_none_or_post(&self) -> bool;
}

impl Own for Option<String> {
    fn is_none_or_post(&self) -> bool {
        let own = [
            "threads-anchored-posts",
            "boot-cpu-blind",
            "device-memory",
            "added-memory",
            "gigantic-pages",
        ];
        self.as_deref().is_none_or(|group| own.contains(&group))
    }
}

fn predicted(v: &Validation, id: &str, what: &str, ms: f64) -> f64 {
    let entry = entry(v, id, what, ms);
    entry.predicted_ms.unwrap_or_else(|| panic!("{id}, {what}: {:?}", entry.left_out))
}

fn reason(v: &Validation, id: &str, what: &str, ms: f64) -> String {
    let text = entry(v, id, what, ms).left_out.clone().unwrap_or_default();
    text.split(':').next().unwrap_or_default().to_owned()
}

fn near(a: f64, b: f64, share: f64) -> bool {
    (a / b - 1.0).abs() < share
}

#[test]
fn machines_and_kernels_that_differ_share_no_anchor() {
    let big = json!({"cpu": null, "nodes": 4, "memory_per_node_gib": null,
        "total_memory_gib": 6144});
    let small = json!({"cpu": null, "nodes": 4, "memory_per_node_gib": null,
        "total_memory_gib": 256});
    let a = record("a", "5.8", big, json!([slowest(1, 8000.0)]));
    let b = record("b", "5.8", small, json!([slowest(0, 400.0), slowest(16, 60.0)]));
    let both = validated(&[a, b.clone()]);
    let of_b = |v: &Validation| predicted(v, "b", DEFERRED, 60.0);
    assert_eq!(of_b(&both), of_b(&validated(&[b])));

    // Neither an older kernel nor a guest of the same name lends its time, also where the
    // record has none.
    let old = record("old", "4.20", json!({}), json!([slowest(1, 3750.0)]));
    let guest = record("guest", "5.8", json!({"virt": "VM"}), json!([slowest(1, 3000.0)]));
    let mine = record("mine", "5.8", json!({}), json!([slowest(13, 193.0)]));
    let alone = validated(std::slice::from_ref(&mine));
    let among = validated(&[old, guest, mine.clone()]);
    let of = |v: &Validation| predicted(v, "mine", DEFERRED, 193.0);
    assert_eq!(of(&among), of(&alone));
    // The same machine on such a kernel does.
    let same = record("same", "5.8", json!({}), json!([slowest(1, 2500.0)]));
    assert!(of(&validated(&[same, mine])) > 1.05 * of(&alone));
}

#[test]
fn a_records_own_time_goes_before_its_machines() {
    let post = |id: &str, ms: f64| {
        record(id, "5.8", json!({}), json!([slowest(1, ms), slowest(13, 193.0)]))
    };
    let (x, y) = (post("x", 1700.0), post("y", 3400.0));
    let (alone, both) = (validated(std::slice::from_ref(&y)), validated(&[x, y]));
    let of = |v: &Validation| predicted(v, "y", DEFERRED, 193.0);
    assert_eq!(of(&both), of(&alone));
}

#[test]
fn an_anchor_is_the_time_of_its_pages() {
    let of = |ms: f64, pages: u64| {
        let mut known = slowest(1, ms);
        known["pages"] = json!(pages);
        let mut wanted = slowest(13, 193.0);
        wanted["pages"] = json!(100_000_000);
        let v = validated(&[record("x", "5.8", json!({}), json!([known, wanted]))]);
        predicted(&v, "x", DEFERRED, 193.0)
    };
    assert!(near(of(170.0, 10_000_000), of(1700.0, 100_000_000), 0.001));
    // What more pages than a node has take is the time of all nodes.
    assert!(near(of(1700.0, 200_000_000), of(1700.0, 100_000_000), 0.01));
}

#[test]
fn kernels_are_found_among_other_numbers_or_left_out() {
    let of =
        |kernel: &str| validated(&[record("x", kernel, json!({}), json!([slowest(1, 1700.0)]))]);
    let ms = |kernel: &str| predicted(&of(kernel), "x", DEFERRED, 1700.0);
    assert_eq!(ms("RHEL 8.4 (4.18.0-305.el8)"), ms("4.18"));
    assert_eq!(ms("Oracle Linux 7.6, UEK5 4.14.35"), ms("4.14"));
    assert!(ms("4.18") > 1.5 * ms("6.12"), "a wrong version shows");
    for kernel in ["RHEL 7.9, 3.10.0-1160", "2.6.32", "3.10", "9.9"] {
        let why = reason(&of(kernel), "x", DEFERRED, 1700.0);
        assert_eq!(why, "kernel-not-modelled", "{kernel}");
    }
    assert_eq!(reason(&of("RHEL 7.9"), "x", DEFERRED, 1700.0), "kernel-unknown");
}

#[test]
fn one_odd_record_or_figure_is_left_out_alone() {
    let odd = [
        (json!({"page_size": "64K"}), "impossible"),
        (json!({"page_size": "2M"}), "impossible"),
        (json!({"page_size": "0K"}), "not-understood"),
        (json!({"memory_per_node_gib": 0.001}), "impossible"),
        (json!({"memory_per_node_gib": -5}), "impossible"),
        (json!({"memory_per_node_gib": 1e12}), "impossible"),
        (json!({"nodes": 1_000_000}), "impossible"),
        (json!({"nodes": 1024, "memory_per_node_gib": 1e6}), "impossible"),
        (json!({"cpus_per_node": 0}), "impossible"),
        (json!({"cores_per_node": 60}), "impossible"),
        (json!({"arch": "mips64"}), "arch-not-modelled"),
        (json!({"nodes": "two"}), "not-understood"),
    ];
    let good = || record("good", "5.7", json!({}), json!([slowest(1, 1700.0)]));
    let usual = predicted(&validated(&[good()]), "good", DEFERRED, 1700.0);
    for (machine, why) in odd {
        let bad = record("bad", "5.7", machine.clone(), json!([slowest(1, 1700.0)]));
        let v = validated(&[good(), bad]);
        assert_eq!(predicted(&v, "good", DEFERRED, 1700.0), usual);
        assert_eq!(reason(&v, "bad", DEFERRED, 1700.0), why, "{machine}");
    }
    let arm = json!({"arch": "arm64", "cpu": "Ampere Altra Q80-30", "page_size": "4096",
        "cpus_per_node": 80, "smt": 1});
    let v = validated(&[record("arm", "6.12", arm, json!([slowest(1, 1700.0)]))]);
    assert!(predicted(&v, "arm", DEFERRED, 1700.0) > 100.0, "4096 are bytes");
}

#[test]
fn what_no_clock_has_shown_is_left_out_and_anchors_nothing() {
    let alone = record("x", "5.8", json!({}), json!([slowest(13, 193.0)]));
    let usual = predicted(&validated(&[alone]), "x", DEFERRED, 193.0);
    for ms in [0.0, -5.0, 1e300] {
        let v = validated(&[record(
            "x",
            "5.8",
            json!({}),
            json!([slowest(1, ms), slowest(13, 193.0)]),
        )]);
        assert_eq!(reason(&v, "x", DEFERRED, ms), "impossible");
        assert_eq!(predicted(&v, "x", DEFERRED, 193.0), usual, "{ms}");
    }
    let odd = [
        slowest(500, 100.0),
        json!({"what": "node 7 deferred init", "threads": 1, "time_ms": 900.0}),
        json!({"what": "node 0 deferred init", "threads": 1, "time_ms": 900.0, "pages": 0}),
        json!({"what": "deferred init", "threads": -1, "time_ms": 900.0}),
    ];
    for figure in odd {
        let what = figure["what"].as_str().unwrap_or_default().to_owned();
        let ms = figure["time_ms"].as_f64().unwrap_or_default();
        let v = validated(&[record("x", "5.8", json!({}), json!([slowest(1, 1700.0), figure]))]);
        let why = reason(&v, "x", &what, ms);
        assert!(why == "impossible" || why == "not-understood", "{what}: {why}");
        assert!(predicted(&v, "x", DEFERRED, 1700.0) > 0.0);
    }
}

#[test]
fn before_and_after_mean_the_change_that_is_about() {
    let figures = json!([
        {"what": "deferred init", "threads": 1, "time_ms": 3750.0},
        {"what": "deferred init, before irq fix", "threads": 1, "time_ms": 3700.0},
        {"what": "deferred init, after irq fix", "threads": 1, "time_ms": 3600.0}]);
    let mut other = record("x", "4.17", json!({}), figures);
    let v = validated(std::slice::from_ref(&other));
    let usual = predicted(&v, "x", "deferred init", 3750.0);
    assert_eq!(predicted(&v, "x", "deferred init, after irq fix", 3600.0), usual);
    assert!(v.groups.iter().all(|g| g.name != "kernel-ladder"));
    // The series of 4.20 to 5.2, by its name.
    other["source"] = json!("[mm PATCH v6 0/7] Deferred page init improvements");
    let v = validated(&[other]);
    assert!(predicted(&v, "x", "deferred init, after irq fix", 3600.0) < 0.6 * usual);
}

#[test]
fn reasons_say_what_is_missing() {
    let figures = json!([
        {"what": "stosb 16MB", "threads": 1, "time_ms": null, "gb_per_s": 17.35},
        {"what": "memblock_free_all, after boot", "threads": 1, "time_ms": 900.0},
        {"what": "memmap_init_reserved_pages(), before", "threads": 1, "time_ms": 67.0},
        {"what": "hugetlb init, HVO, before", "threads": 1, "time_ms": 3900.0},
        {"what": "vmemmap zeroing, boot CPU", "threads": 1, "time_ms": 5000.0},
        {"what": "deferred struct page init", "threads": null, "time_ms": 901.0},
        {"what": "page_alloc_init_late", "threads": 1, "time_ms": 902.0},
        {"what": "pgdatinit1", "threads": 1, "time_ms": 903.0}]);
    let machine = json!({"cpus_per_node": null, "smt": null, "cpu": "Intel Xeon 8167M"});
    let v = validated(&[
        record("new", "6.12", machine, figures.clone()),
        record("old", "4.14", json!({}), figures),
    ]);
    let rate = v.records.iter().find(|r| r.what == "stosb 16MB").and_then(|r| r.left_out.clone());
    assert!(rate.is_some_and(|why| why.starts_with("a-rate")));
    assert!(predicted(&v, "new", "memblock_free_all, after boot", 900.0) > 0.0);
    assert_eq!(reason(&v, "new", "memmap_init_reserved_pages(), before", 67.0), "reserved-pages");
    assert_eq!(reason(&v, "new", "hugetlb init, HVO, before", 3900.0), "huge-pages");
    assert_eq!(reason(&v, "new", "deferred struct page init", 901.0), "no-cpus");
    assert!(predicted(&v, "new", "page_alloc_init_late", 902.0) > 0.0);
    assert!(predicted(&v, "new", "pgdatinit1", 903.0) > 0.0);
    assert!(predicted(&v, "old", "deferred struct page init", 901.0) > 0.0);
    assert!(predicted(&v, "old", "vmemmap zeroing, boot CPU", 5000.0) > 0.0);
}

#[test]
fn a_change_that_came_with_a_kernel_is_predicted_by_its_rules() {
    let figures = json!([
        {"what": "deferred init, before", "threads": null, "time_ms": 900.0},
        {"what": "deferred init, after", "threads": null, "time_ms": 100.0}]);
    let arm = json!({"arch": "arm64", "cpu": "Ampere Altra Q80-30", "cpus_per_node": 80, "smt": 1});
    let mut post = record("x", "6.10-rc1", arm, figures);
    let of = |post: &Value| {
        let v = validated(std::slice::from_ref(post));
        let before = predicted(&v, "x", "deferred init, before", 900.0);
        before / predicted(&v, "x", "deferred init, after", 100.0)
    };
    assert_eq!(of(&post), 1.0);
    post["title"] = json!("use node's number of cpus in deferred_page_init_max_threads");
    assert!(of(&post) > 4.0, "from 6.11 on every architecture takes all CPUs of a node");
}

#[test]
fn added_memory_and_gigantic_pages_are_predicted_where_words_count_them() {
    let figures = json!([
        {"what": "memory hotplug of 1 TiB", "threads": 1, "time_ms": 5000.0},
        {"what": "memory hotplug", "threads": 1, "time_ms": 5001.0},
        {"what": "hugetlb init 500 x 1G pages, before", "threads": 1, "time_ms": 3900.0},
        {"what": "hugetlb init 500 x 1G pages, after", "threads": 1, "time_ms": 1300.0}]);
    let mut post = record("x", "6.8", json!({}), figures);
    let v = validated(std::slice::from_ref(&post));
    let ms = predicted(&v, "x", "memory hotplug of 1 TiB", 5000.0);
    // 268 million pages of 10 to 100 ns.
    assert!((2.7e3..27e3).contains(&ms), "{ms}");
    assert_eq!(reason(&v, "x", "memory hotplug", 5001.0), "hotplug");
    let (before, after) =
        ("hugetlb init 500 x 1G pages, before", "hugetlb init 500 x 1G pages, after");
    let ms = predicted(&v, "x", before, 3900.0);
    assert!((1.3e3..13e3).contains(&ms), "{ms}");
    assert_eq!(reason(&v, "x", after, 1300.0), "change-unknown");
    post["source"] = json!("[PATCH v6] hugetlb: parallelize hugetlb page init on boot");
    let v = validated(&[post]);
    // Two nodes share it, each on its own memory.
    assert!(predicted(&v, "x", after, 1300.0) < 0.6 * ms);
}
