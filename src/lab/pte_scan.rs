//! Finding the highest order whose page-table entries are empty.
//!
//! Three parts: `fault` asks for the order of single faults, `sweep` touches a gigabyte
//! page by page, both on arrays in memory with the two algorithms of [`scan`]; `live`
//! lets this kernel fault for real, where its settings may be changed.

pub mod live;
pub mod patterns;
pub mod scan;

use super::{Lab, LabError, Samples, check_multiple, published};
use crate::record::lab::{Derived, Factors, Finding, LabPoint, LabRecord, factors};
use crate::stats::{Rng, paired_ratios, summarise};
use crate::units::MIB;
use patterns::{PATTERNS, Pattern, fill};
use scan::{Algorithm, Counted, Orders, TABLE_PTES, counted_sweep, orders_to, sweep};
use std::sync::atomic::{AtomicU64, Ordering};

/// Tables that single faults fall into: enough for every pattern to be met in many
/// forms, few enough to stay in the caches as hot tables do.
const FAULT_TABLES: usize = 16;
/// Single faults of a sample.
const FAULTS: usize = 2048;
/// Without `--runs`, no round of either part begins later than this.
const LIMIT_S: u64 = 12;

/// What the user chose.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Bytes of memory whose tables are swept, a multiple of 2 MiB.
    pub size_bytes: u64,
    /// Bytes of the live part, a multiple of 2 MiB.
    pub live_bytes: u64,
    /// Whether settings of this system may be changed for a while.
    pub settings: bool,
}

/// One thing to time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    pattern: Pattern,
    highest: u32,
    algorithm: Algorithm,
}

impl Case {
    const fn orders(&self) -> Orders {
        orders_to(self.highest)
    }

    fn factors(&self) -> Factors {
        factors([
            ("pattern", self.pattern.name().as_str().into()),
            ("highest_order", u64::from(self.highest).into()),
            ("algorithm", self.algorithm.name().into()),
        ])
    }
}

/// Runs the experiment.
///
/// # Errors
/// For options that cannot be met, too little memory, and algorithms that disagree.
pub fn run(lab: &Lab<'_>, options: &Options) -> Result<LabRecord, LabError> {
    check_multiple("--size", options.size_bytes, 2 * MIB)?;
    check_multiple("--live-size", options.live_bytes, 2 * MIB)?;
    lab.check_memory("lab pte-scan", options.size_bytes / TABLE_PTES as u64, "--size")?;
    let mut record = lab.record("pte-scan");
    record.settings = factors([
        ("size_bytes", options.size_bytes.into()),
        ("live_bytes", options.live_bytes.into()),
    ]);
    record.published = published::scanning();
    record.head.complete = lab.pinned(|| {
        let complete = faults(lab, &mut record)? && sweeps(lab, options, &mut record)?;
        match complete.then(|| live::part(lab, options.live_bytes, options.settings, &mut record)) {
            None => Ok(false),
            Some(Err(error)) if error.is_interrupt() => Ok(false),
            Some(finished) => finished,
        }
    })?;
    Ok(record)
}

/// Every pattern, every algorithm, and the orders up to each of `highest`.
fn cases(highest: impl IntoIterator<Item = u32>) -> Vec<Case> {
    let mut out = Vec::new();
    for highest in highest {
        for pattern in PATTERNS {
            for algorithm in Algorithm::ALL {
                out.push(Case { pattern, highest, algorithm });
            }
        }
    }
    out
}

/// Single faults at random empty entries; nothing is filled.
fn faults(lab: &Lab<'_>, record: &mut LabRecord) -> Result<bool, LabError> {
    let cases = cases(2..=9);
    let tables: Vec<Vec<AtomicU64>> =
        PATTERNS.iter().map(|p| fill(*p, FAULT_TABLES, lab.seed)).collect();
    let at_random: Vec<Vec<usize>> = tables.iter().map(|t| places(t, lab.seed)).collect();
    let inputs = |case: &Case| {
        let at = PATTERNS.iter().position(|p| *p == case.pattern).unwrap_or(0);
        (tables[at].as_slice(), at_random[at].as_slice())
    };
    for case in &cases {
        let (tables, places) = inputs(case);
        agree(case, tables, places)?;
    }
    let run_one = |at: usize| {
        let (tables, places) = inputs(&cases[at]);
        lab.undisturbed(|| Ok::<_, LabError>(timed_faults(lab, &cases[at], tables, places)))
    };
    let per = |case: &Case| ("fault", inputs(case).1.len() as u64);
    let so_far = |samples: &Samples| with_times(record, "fault", (&cases, per), samples, lab);
    let samples = lab.rounds("faults", (cases.len(), lab.runs, LIMIT_S), run_one, so_far)?;
    for (case, times) in cases.iter().zip(&samples.of_case) {
        let (tables, places) = inputs(case);
        let reads: u64 = places.iter().map(|at| reads_of(case, tables, *at)).sum();
        let per = ("fault", places.len() as u64);
        let point = LabPoint::measured("fault", case.factors(), per, times, lab.seed);
        record.points.extend(point.map(|mut point| {
            point.counts.insert("pte_reads".into(), reads);
            point
        }));
    }
    record.derived.extend(ratios("fault_ratio", &cases, &samples, lab.seed));
    Ok(samples.complete)
}

/// The record with the times of a part that is not finished; without counts.
fn with_times(
    record: &LabRecord,
    part: &str,
    (cases, per): (&[Case], impl Fn(&Case) -> (&'static str, u64)),
    samples: &Samples,
    lab: &Lab<'_>,
) -> LabRecord {
    let both = cases.iter().zip(&samples.of_case);
    let point = |(case, times): (&Case, &Vec<u64>)| {
        LabPoint::measured(part, case.factors(), per(case), times, lab.seed)
    };
    let mut record = record.clone();
    record.points.extend(both.filter_map(point));
    record
}

/// Random empty entries of the tables; none where all are set.
fn places(tables: &[AtomicU64], seed: u64) -> Vec<usize> {
    let empty: Vec<usize> =
        (0..tables.len()).filter(|at| tables[*at].load(Ordering::Relaxed) == 0).collect();
    let mut rng = Rng::new(seed);
    let count = if empty.is_empty() { 0 } else { FAULTS };
    (0..count).filter_map(|_| empty.get(rng.below(empty.len())).copied()).collect()
}

/// The table that an entry lies in, and its index there.
fn table_of(tables: &[AtomicU64], at: usize) -> (&[AtomicU64], usize) {
    let start = at / TABLE_PTES * TABLE_PTES;
    (tables.get(start..start + TABLE_PTES).unwrap_or_default(), at % TABLE_PTES)
}

fn timed_faults(lab: &Lab<'_>, case: &Case, tables: &[AtomicU64], places: &[usize]) -> (u64, u64) {
    let orders = case.orders();
    let of = |at: &usize| {
        let (table, index) = table_of(tables, *at);
        case.algorithm.order(table, index, orders)
    };
    lab.timed(|| std::hint::black_box(places.iter().map(of).sum::<u32>())).0
}

fn reads_of(case: &Case, tables: &[AtomicU64], at: usize) -> u64 {
    let (table, index) = table_of(tables, at);
    let counted = Counted::new(table);
    std::hint::black_box(case.algorithm.order(&counted, index, case.orders()));
    counted.reads()
}

/// Both algorithms must choose the same order everywhere.
fn agree(case: &Case, tables: &[AtomicU64], places: &[usize]) -> Result<(), LabError> {
    for &at in places {
        let (table, index) = table_of(tables, at);
        let [a, b] = Algorithm::ALL.map(|alg| alg.order(table, index, case.orders()));
        if a != b {
            let what = format!("a fault in {}", case.pattern.name());
            let found = format!("entry {at}: order {a} by every range, {b} by the first set one");
            return Err(LabError::WrongData { what, found });
        }
    }
    Ok(())
}

/// Whole sweeps; all orders but 2 MiB as published, and all.
fn sweeps(lab: &Lab<'_>, options: &Options, record: &mut LabRecord) -> Result<bool, LabError> {
    let cases = cases([8, 9]);
    let tables = usize::try_from(options.size_bytes / (2 * MIB)).unwrap_or(usize::MAX);
    let mut chosen: Vec<Option<[u64; 10]>> = vec![None; cases.len()];
    let run_one = |at: usize| {
        let other = chosen.get(at ^ 1).copied().flatten();
        lab.undisturbed(|| {
            let (time, faults) = timed_sweep(lab, &cases[at], tables, other)?;
            chosen[at] = Some(faults);
            Ok::<_, LabError>(time)
        })
    };
    let per = |_: &Case| ("page", (tables * TABLE_PTES) as u64);
    let so_far = |samples: &Samples| with_times(record, "sweep", (&cases, per), samples, lab);
    let samples = lab.rounds("sweeps", (cases.len(), lab.runs, LIMIT_S), run_one, so_far)?;
    for (case, times) in cases.iter().zip(&samples.of_case) {
        let per = ("page", (tables * TABLE_PTES) as u64);
        let point = LabPoint::measured("sweep", case.factors(), per, times, lab.seed);
        let ptes = fill(case.pattern, tables, lab.seed);
        let (faults, reads) = counted_sweep(&ptes, case.orders(), case.algorithm);
        record.points.extend(point.map(|mut point| {
            point.counts.insert("pte_reads".into(), reads);
            point.counts.insert("faults".into(), faults.iter().sum());
            point
        }));
    }
    record.derived.extend(ratios("sweep_ratio", &cases, &samples, lab.seed));
    record.findings.extend(verdict(record, lab.seed));
    Ok(samples.complete)
}

/// One sweep: its time with how often it was disturbed, and its faults by order, which
/// must be those of the other algorithm and leave every entry set.
fn timed_sweep(
    lab: &Lab<'_>,
    case: &Case,
    tables: usize,
    other: Option<[u64; 10]>,
) -> Result<((u64, u64), [u64; 10]), LabError> {
    let ptes = fill(case.pattern, tables, lab.seed);
    let (time, faults) = lab.timed(|| sweep(&ptes, case.orders(), case.algorithm));
    let all_set = ptes.iter().all(|pte| pte.load(Ordering::Relaxed) != 0);
    if !all_set || other.is_some_and(|other| other != faults) {
        let found = format!("faults by order {faults:?}, by the other algorithm {other:?}");
        return Err(LabError::WrongData { what: case.pattern.name(), found });
    }
    Ok((time, faults))
}

/// Remembering the first set entry against scanning every range, run by run.
fn ratios(what: &str, cases: &[Case], samples: &Samples, seed: u64) -> Vec<Derived> {
    let times = |at: usize| {
        let times = samples.of_case.get(at).map_or(&[][..], Vec::as_slice);
        times.iter().map(|&ns| ns as f64).collect::<Vec<f64>>()
    };
    let mut out = Vec::new();
    for (at, case) in cases.iter().enumerate().filter(|(_, c)| c.algorithm == Algorithm::FirstSet) {
        let mut factors = case.factors();
        factors.remove("algorithm");
        let ratios = paired_ratios(&times(at), &times(at ^ 1));
        out.extend(Derived::of(what, factors, &ratios, seed));
    }
    out
}

/// The pattern of the discussion's benchmark.
fn verdict(record: &LabRecord, seed: u64) -> Option<Finding> {
    let of = |algorithm: Algorithm| {
        record.part("sweep").find(|p| {
            p.has("pattern", Pattern::LastOfSet.name().as_str())
                && p.has("highest_order", 8)
                && p.has("algorithm", algorithm.name())
        })
    };
    let (every, first) = (of(Algorithm::Ranges)?, of(Algorithm::FirstSet)?);
    let times = |p: &LabPoint| p.samples_ns.iter().map(|&ns| ns as f64).collect::<Vec<f64>>();
    let value = summarise(&paired_ratios(&times(first), &times(every)), seed);
    let reads = |p: &LabPoint| p.counts.get("pte_reads").copied().unwrap_or(0) as f64;
    let text = format!(
        "remembering the first set entry reads {:.2} of the entries and takes {:.2} of the time \
         of scanning every range (arrays in memory, last page of every 32 KiB set); published, \
         whole faults: 1.06 of the time, a regression",
        reads(first) / reads(every).max(1.0),
        value.median
    );
    Some(Finding { code: "first-set".into(), text, value: Some(value) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::bench_of_tests::with_lab;

    fn small() -> Options {
        Options { size_bytes: 4 * MIB, live_bytes: 2 * MIB, settings: false }
    }

    #[test]
    fn a_small_run_has_both_parts_and_says_what_the_live_part_needs() {
        let record = with_lab(&|| false, |lab| run(&lab, &small()).unwrap());
        assert!(record.head.complete);
        assert_eq!(record.part("fault").count(), 8 * PATTERNS.len() * 2);
        assert_eq!(record.part("sweep").count(), 2 * PATTERNS.len() * 2);
        assert!(record.head.warnings.iter().any(|w| w.code == "no-live-part"));
        assert!(record.findings.iter().any(|f| f.code == "first-set"));
        let empty = |p: &&LabPoint| p.has("pattern", "all-empty") && p.has("highest_order", 9);
        for point in record.part("sweep").filter(empty) {
            // Two tables, each one fault that reads all of its entries.
            assert_eq!((point.counts["faults"], point.counts["pte_reads"]), (2, 1024));
        }
    }

    #[test]
    fn an_interrupted_run_is_not_complete() {
        let record = with_lab(&|| true, |lab| run(&lab, &small()).unwrap());
        assert!(!record.head.complete && record.points.is_empty());
    }

    #[test]
    fn sizes_are_checked() {
        let fails =
            |options| with_lab(&|| false, |lab| run(&lab, &options).unwrap_err().to_string());
        assert!(fails(Options { size_bytes: 4096, ..small() }).contains("--size 4KiB"));
        assert!(fails(Options { live_bytes: 1, ..small() }).contains("--live-size 1B"));
        assert!(fails(Options { size_bytes: 1 << 62, ..small() }).contains("smaller --size"));
    }
}
