//! Moving memory to other addresses: by page-table entries, or by the tables' own.
//!
//! The alignment of source and target decides which level the kernel may use; how long
//! it takes tells which one it did use. [`entries`] counts what a move takes. A move of
//! memory that was never touched shows what the system call costs without entries.

pub mod entries;

use super::{Lab, LabError, Samples, published};
use crate::host::preempt;
use crate::host::remap::{Movable, PUD_BYTES};
use crate::record::lab::{Factors, Finding, LabPoint, LabRecord, factors};
use crate::stats::{median, paired_ratios, summarise};
use crate::units::{Bytes, MIB};
use crate::warning::Warning;
use entries::{Entries, Level, entries};

/// Other sizes that are moved beside the chosen one.
const SMALLER: [u64; 3] = [2 * MIB, 16 * MIB, 128 * MIB];
/// Without `--runs`, no round begins later than this.
const LIMIT_S: u64 = 15;
/// Pages that are faulted in before anybody is asked whether to stop.
const BATCH_PAGES: usize = 16384;

/// What the user chose.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Bytes to move; a multiple of 2 MiB. From 1 GiB on whole upper entries can move.
    pub size_bytes: u64,
}

/// One kind of move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    bytes: u64,
    /// The highest level that the alignment of both places admits.
    aligned_for: Level,
    /// Whether the memory has pages.
    touched: bool,
}

impl Case {
    /// The two places, as offsets from a multiple of 1 GiB, between which it moves.
    fn places(&self) -> [u64; 2] {
        let apart = self.bytes.next_multiple_of(PUD_BYTES as u64);
        match self.aligned_for {
            Level::Pud => [0, apart],
            Level::Pmd => [0, apart + Level::Pmd.bytes()],
            Level::Pte => [0, apart + Level::Pte.bytes()],
        }
    }

    fn entries(&self, highest: Level) -> Entries {
        let [old, new] = self.places();
        if self.touched { entries(old, new, self.bytes, highest) } else { [0; 3] }
    }

    fn factors(&self) -> Factors {
        factors([
            ("size_bytes", self.bytes.into()),
            ("aligned_for", self.aligned_for.name().into()),
            ("memory", if self.touched { "base pages" } else { "untouched" }.into()),
        ])
    }
}

/// Runs the experiment.
///
/// # Errors
/// For options that cannot be met, too little memory, a kernel that refuses, and wrong
/// data.
pub fn run(lab: &Lab<'_>, options: &Options) -> Result<LabRecord, LabError> {
    super::check_multiple("--size", options.size_bytes, Level::Pmd.bytes())?;
    let sizes = sizes(options.size_bytes);
    let needed = sizes.iter().fold(0, |sum: u64, size| sum.saturating_add(*size));
    lab.check_memory("lab mremap", needed, "--size")?;
    let mut record = lab.record("mremap");
    record.settings = factors([("size_bytes", options.size_bytes.into())]);
    record.published = published::moving();
    let cases = cases(&sizes);
    let so_far = |samples: &Samples| {
        let mut record = record.clone();
        draw(&mut record, lab, &cases, samples, options.size_bytes);
        record
    };
    match lab.pinned(|| measure(lab, &cases, so_far)) {
        Ok(samples) => {
            record.head.complete = samples.complete;
            draw(&mut record, lab, &cases, &samples, options.size_bytes);
        }
        Err(error) if error.is_interrupt() => {}
        Err(other) => return Err(other),
    }
    Ok(record)
}

/// The size asked for and the smaller ones, largest first.
fn sizes(largest: u64) -> Vec<u64> {
    let mut sizes = vec![largest];
    sizes.extend(SMALLER.into_iter().rev().filter(|size| *size < largest));
    sizes
}

fn cases(sizes: &[u64]) -> Vec<Case> {
    let mut out = Vec::new();
    for &bytes in sizes {
        for aligned_for in Level::ALL.into_iter().filter(|level| level.bytes() <= bytes) {
            for touched in [true, false] {
                out.push(Case { bytes, aligned_for, touched });
            }
        }
    }
    out
}

/// One memory for every size, with and without pages, and all rounds of moves.
fn measure(
    lab: &Lab<'_>,
    cases: &[Case],
    so_far: impl Fn(&Samples) -> LabRecord,
) -> Result<Samples, LabError> {
    let mut memories: Vec<(u64, bool, Movable)> = Vec::new();
    for case in cases {
        if memories
            .iter()
            .any(|(bytes, touched, _)| (*bytes, *touched) == (case.bytes, case.touched))
        {
            continue;
        }
        let bytes = usize::try_from(case.bytes).unwrap_or(usize::MAX);
        let reach = bytes.next_multiple_of(PUD_BYTES).saturating_mul(2).saturating_add(PUD_BYTES);
        let mut memory = Movable::map(bytes, reach)?;
        if case.touched {
            fault_in(lab, &mut memory)?;
        }
        memories.push((case.bytes, case.touched, memory));
    }
    let run_one = |at: usize| {
        let case = &cases[at];
        let same = |m: &&mut (u64, bool, Movable)| (m.0, m.1) == (case.bytes, case.touched);
        match memories.iter_mut().find(same) {
            Some((_, _, memory)) => lab.undisturbed(|| move_and_back(lab, case, memory)),
            None => Ok(0),
        }
    };
    lab.rounds("moves", (cases.len(), lab.runs, LIMIT_S), run_one, so_far)
}

fn fault_in(lab: &Lab<'_>, memory: &mut Movable) -> Result<(), LabError> {
    let pages = memory.pages();
    for start in (0..pages).step_by(BATCH_PAGES) {
        if (lab.stop)() {
            return Err(crate::host::HostError::Interrupted.into());
        }
        memory.write_pages(start..(start + BATCH_PAGES).min(pages), lab.seed);
    }
    Ok(())
}

/// Moves to the case's second place, timed, compares the contents, and moves back.
fn move_and_back(lab: &Lab<'_>, case: &Case, memory: &mut Movable) -> Result<(u64, u64), LabError> {
    let [home, there] = case.places().map(|place| usize::try_from(place).unwrap_or(usize::MAX));
    let before = preempt::switches();
    let ns = memory.move_to(there, lab.clock)?;
    let switches = preempt::switches().saturating_sub(before);
    if case.touched
        && let Some(page) = memory.first_wrong_page(lab.seed)
    {
        let what = format!("moving {} by {} entries", Bytes(case.bytes), case.aligned_for.name());
        let found = format!("page {page} does not hold its number");
        return Err(LabError::WrongData { what, found });
    }
    memory.move_to(home, lab.clock)?;
    Ok((ns, switches))
}

fn draw(record: &mut LabRecord, lab: &Lab<'_>, cases: &[Case], samples: &Samples, size_bytes: u64) {
    for (case, times) in cases.iter().zip(&samples.of_case) {
        let level = used(cases, samples, case);
        let moved = case.entries(level.unwrap_or(case.aligned_for));
        let count = moved.iter().sum::<u64>().max(1);
        let mut factors = case.factors();
        if case.touched {
            factors.insert("used".into(), level.map_or("unclear", Level::name).into());
        }
        let per = ("page-table-entry", count);
        let point = LabPoint::measured("moves", factors, per, times, lab.seed);
        record.points.extend(point.map(|mut point| {
            for (level, moved) in Level::ALL.into_iter().zip(moved) {
                point.counts.insert(format!("{}_entries", level.name()), moved);
            }
            point
        }));
    }
    record.findings = findings(cases, samples, size_bytes, lab.seed);
    record.head.warnings.extend(too_low(cases, samples, size_bytes));
}

/// Which level a case's time says was used: a move that is aligned for nothing but
/// page-table entries certainly moved those, so it is the measure.
fn used(cases: &[Case], samples: &Samples, case: &Case) -> Option<Level> {
    let time = |aligned_for, touched| {
        let wanted = Case { aligned_for, touched, ..*case };
        let at = cases.iter().position(|case| *case == wanted)?;
        let times: Vec<f64> = samples.of_case.get(at)?.iter().map(|&ns| ns as f64).collect();
        (!times.is_empty()).then(|| median(&times))
    };
    let by_ptes = time(Level::Pte, true)? - time(Level::Pte, false)?;
    let this = time(case.aligned_for, true)? - time(case.aligned_for, false)?;
    let call = time(Level::Pte, false)?;
    level_of(this, by_ptes, call, case.aligned_for)
}

/// The level that fits a time net of the system call. An entry of a middle directory
/// stands for 512 below it and costs more than one of them, so less than a third of the
/// time means a higher level, and less than a three-hundredth the highest; no level is
/// used that the alignment does not admit. `None` where the call costs so much that
/// the difference says little.
fn level_of(this_ns: f64, by_ptes_ns: f64, call_ns: f64, admitted: Level) -> Option<Level> {
    if by_ptes_ns < 8.0 * call_ns {
        return None;
    }
    let level = match this_ns / by_ptes_ns {
        share if share > 1.0 / 3.0 => Level::Pte,
        share if share > 1.0 / 300.0 => Level::Pmd,
        _ => Level::Pud,
    };
    Some(level.min(admitted))
}

fn findings(cases: &[Case], samples: &Samples, bytes: u64, seed: u64) -> Vec<Finding> {
    let of = |aligned_for| {
        let wanted = Case { bytes, aligned_for, touched: true };
        let at = cases.iter().position(|case| *case == wanted);
        let times = at.and_then(|at| samples.of_case.get(at)).map_or(&[][..], Vec::as_slice);
        times.iter().map(|&ns| ns as f64).collect::<Vec<f64>>()
    };
    let mut out = Vec::new();
    for level in [Level::Pmd, Level::Pud] {
        let ratios = paired_ratios(&of(Level::Pte), &of(level));
        if ratios.is_empty() {
            continue;
        }
        let value = summarise(&ratios, seed);
        let beside = if level == Level::Pmd { "; published on arm64, 1 GiB: 8 times" } else { "" };
        let text = format!(
            "{} aligned for {} entries move {:.0} times as fast as by page-table entries{beside}",
            Bytes(bytes),
            level.name(),
            value.median,
        );
        let code = format!("{}-speedup", level.name());
        out.push(Finding { code, text, value: Some(value) });
    }
    out
}

/// Said when the kernel used a lower level than the alignment admits.
fn too_low(cases: &[Case], samples: &Samples, bytes: u64) -> Vec<Warning> {
    let mut out = Vec::new();
    for case in cases.iter().filter(|case| case.touched && case.bytes == bytes) {
        let Some(level) = used(cases, samples, case) else { continue };
        if level < case.aligned_for {
            let (wanted, found) = (case.aligned_for.name(), level.name());
            out.push(Warning::new(
                "level-not-used",
                format!(
                    "{} aligned for {wanted} entries took as long as a move by {found} entries",
                    Bytes(bytes)
                ),
                "moving by pmd entries came with Linux 5.0 on x86-64 and 5.11 on arm64, by pud \
                 entries with 5.11",
            ));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::bench_of_tests::with_lab;
    use crate::units::GIB;

    #[test]
    fn places_have_the_alignment_that_the_level_needs() {
        let moved =
            |aligned_for| Case { bytes: GIB, aligned_for, touched: true }.entries(Level::Pud);
        assert_eq!(moved(Level::Pte), [262_144, 0, 0]);
        assert_eq!(moved(Level::Pmd), [0, 512, 0]);
        assert_eq!(moved(Level::Pud), [0, 0, 1]);
        let untouched = Case { bytes: GIB, aligned_for: Level::Pud, touched: false };
        assert_eq!(untouched.entries(Level::Pud), [0, 0, 0]);
        assert_eq!(cases(&sizes(4 * MIB)).len(), 2 * 2 * 2);
        assert_eq!(sizes(GIB), [GIB, 128 * MIB, 16 * MIB, 2 * MIB]);
    }

    #[test]
    fn times_tell_the_level() {
        // The figures of the discussion, and of an x86-64 host.
        let level = |this, pte, admitted| level_of(this, pte, 1e3, admitted);
        assert_eq!(level(1_134_313.0, 9_100_885.0, Level::Pmd), Some(Level::Pmd));
        assert_eq!(level(77_000.0, 3e6, Level::Pmd), Some(Level::Pmd));
        assert_eq!(level(1_000.0, 3e6, Level::Pud), Some(Level::Pud));
        assert_eq!(level(1_000.0, 3e6, Level::Pmd), Some(Level::Pmd));
        assert_eq!(level(77_000.0, 3e6, Level::Pud), Some(Level::Pmd));
        // A kernel without move_pmd.
        assert_eq!(level(2.9e6, 3e6, Level::Pud), Some(Level::Pte));
        // Too small to tell.
        assert_eq!(level_of(7_400.0, 14_500.0, 6_400.0, Level::Pmd), None);
    }

    #[test]
    fn a_small_run_moves_and_verifies_and_an_interrupted_one_measures_nothing() {
        let options = Options { size_bytes: 4 * MIB };
        let record = with_lab(&|| false, |lab| run(&lab, &options).unwrap());
        assert!(record.head.complete && record.points.len() == 8);
        let ptes = record.points.iter().filter(|p| p.has("aligned_for", "pte"));
        assert!(
            ptes.filter(|p| p.has("memory", "base pages")).all(|p| p.counts["pte_entries"] > 0)
        );
        let record = with_lab(&|| true, |lab| run(&lab, &options).unwrap());
        assert!(!record.head.complete && record.points.is_empty());
    }

    #[test]
    fn sizes_are_checked() {
        let fails = |size_bytes| {
            with_lab(&|| false, |lab| run(&lab, &Options { size_bytes }).unwrap_err().to_string())
        };
        assert!(fails(4096).contains("--size 4KiB") && fails(0).contains("2MiB"));
        assert!(fails(u64::MAX / (2 << 20) * (2 << 20)).contains("smaller --size"));
        assert!(fails(1 << 50).contains("smaller --size"));
    }
}
