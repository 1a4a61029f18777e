//! The model's errors against published figures must not get worse.
//!
//! `fixtures/golden/validate.json` holds them as they were when the model was last
//! changed on purpose; `PAGEINIT_BLESS=1 cargo test --test validate` writes it anew.

use pageinit::record::validate::{GroupStats, RangeStats, Validation};
use pageinit::study::published;
use pageinit::study::validate::validate;
use serde::{Deserialize, Serialize};
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
