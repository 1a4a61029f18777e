//! Does zeroing a struct page just before filling it act as a prefetch?
//!
//! Every [`Case`] writes the same fields into the same cold lines; what is varied is
//! what happens to a line before, and how far ahead. Three variants of each case,
//! without fields, with fields, and with the free pass after them, tell the costs of
//! the touches apart. [`passes`] has the loops.

pub mod passes;

use super::{
    Lab, LabError, Samples, beyond_caches_bytes, check_multiple, poison_cold, zeroes_faster,
};
use crate::host::line::Line;
use crate::host::store::{Store, StoreKind};
use crate::host::{fetch, topology::HostNode};
use crate::lab::{published, team};
use crate::record::lab::{Derived, Factors, Finding, LabPoint, LabRecord, factors};
use crate::stats::summarise;
use crate::units::{Bytes, MIB};
use passes::{Prepare, Then, expected, pass};

/// What the user chose.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Bytes of struct pages; `None` for twice the last-level cache, at least 64 MiB.
    pub buffer_bytes: Option<u64>,
    /// Names of stores; empty for all that this CPU has.
    pub stores: Vec<String>,
    /// Most threads; `None` for all CPUs of the node.
    pub threads: Option<u32>,
}

/// How far zeroing runs ahead of filling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distance {
    /// Its name in records.
    pub name: &'static str,
    /// In struct pages; `usize::MAX` for all.
    pub pages: usize,
}

/// The distances, from the struct page itself to everything.
pub const DISTANCES: [Distance; 5] = [
    Distance { name: "struct-page", pages: 1 },
    Distance { name: "4KiB", pages: 64 },
    Distance { name: "64KiB", pages: 1024 },
    Distance { name: "2MiB", pages: 32768 },
    Distance { name: "whole", pages: usize::MAX },
];

/// Runs below which an interval says nothing.
const FEWEST_RUNS: usize = 3;
/// Without `--runs`, no round begins later than this.
const LIMIT_S: u64 = 35;

/// One thing to time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    prepare: Prepare,
    distance: Distance,
    then: Then,
    threads: usize,
}

impl Case {
    /// A streaming store that ends every few lines with a fence: without field writes
    /// after it, it waits for each line to reach memory, and differences mean nothing.
    fn is_mostly_fences(&self) -> bool {
        self.prepare.kind() == "non-temporal" && self.distance.pages < DISTANCES[2].pages
    }

    /// How many of `lines` it works on: what waits for memory is a hundred times as
    /// slow, and a part of it says as much.
    fn lines(&self, lines: usize) -> usize {
        if self.is_mostly_fences() { lines.div_ceil(16) } else { lines }
    }
}

/// Runs the experiment.
///
/// # Errors
/// For options that cannot be met, too little memory, and wrong data.
pub fn run(lab: &Lab<'_>, options: &Options) -> Result<LabRecord, LabError> {
    let node = lab.node()?;
    let cases = cases(options, &node)?;
    let bytes = buffer_bytes(lab, options)?;
    let mut record = lab.record("prefetch");
    record.settings = factors([
        ("buffer_bytes", bytes.into()),
        ("nid", u64::from(node.nid).into()),
        ("kernel_store", Store::default_zero().name().into()),
    ]);
    record.published = published::zeroing();
    let mut arena = match lab.arena("lab prefetch", bytes, "--buffer") {
        Ok(arena) => arena,
        Err(error) if error.is_interrupt() => return Ok(record),
        Err(other) => return Err(other),
    };
    record.head.warnings.extend(zeroes_faster(lab.clock, arena.lines_mut()));
    let lines = arena.lines().len();
    let so_far = |samples: &Samples| {
        let mut record = record.clone();
        draw(&mut record, lab, &cases, samples, lines);
        record
    };
    let run_one =
        |at: usize| lab.undisturbed(|| run_one(lab, &node, arena.lines_mut(), &cases[at]));
    let samples = lab.rounds("runs", (cases.len(), lab.runs, LIMIT_S), run_one, so_far)?;
    record.head.complete = samples.complete;
    draw(&mut record, lab, &cases, &samples, lines);
    Ok(record)
}

fn buffer_bytes(lab: &Lab<'_>, options: &Options) -> Result<u64, LabError> {
    let Some(bytes) = options.buffer_bytes else {
        let usable_bytes = lab.budget.usable_bytes();
        return Ok(beyond_caches_bytes(lab.last_level_bytes(), usable_bytes).max(2 * MIB));
    };
    check_multiple("--buffer", bytes, 4096)?;
    Ok(bytes)
}

/// All cases: every store on one thread, a few on more.
fn cases(options: &Options, node: &HostNode) -> Result<Vec<Case>, LabError> {
    let stores = if options.stores.is_empty() {
        Store::available()
    } else {
        options.stores.iter().map(|name| Store::named(name)).collect::<Result<_, _>>()?
    };
    let mut out = Vec::new();
    for threads in thread_counts(options, node)? {
        let few = [
            Store::default_zero(),
            Store::best_image(StoreKind::Temporal),
            Store::best_image(StoreKind::NonTemporal),
        ];
        let mut prepares = vec![Prepare::Nothing, Prepare::Inline];
        prepares.extend(fetch::exists().then_some(Prepare::Prefetchw));
        let chosen = stores.iter().filter(|s| threads == 1 || few.contains(s));
        prepares.extend(chosen.map(|store| Prepare::Zero(*store)));
        for prepare in prepares {
            out.extend(cases_of(prepare, threads));
        }
    }
    Ok(out)
}

fn cases_of(prepare: Prepare, threads: usize) -> Vec<Case> {
    let distances = match prepare {
        // Without a pass ahead there is no distance.
        Prepare::Nothing | Prepare::Inline => &DISTANCES[..1],
        Prepare::Prefetchw | Prepare::Zero(_) => &DISTANCES[..],
    };
    let mut out = Vec::new();
    for &distance in distances {
        for then in [Then::Nothing, Then::Fields, Then::FieldsAndFree] {
            let case = Case { prepare, distance, then, threads };
            // Differences from these would mean nothing.
            let alone = prepare == Prepare::Nothing && then == Then::Nothing;
            if !alone && (!case.is_mostly_fences() || then == Then::Fields) {
                out.push(case);
            }
        }
    }
    out
}

/// 1, 2, 4 … and the largest.
fn thread_counts(options: &Options, node: &HostNode) -> Result<Vec<usize>, LabError> {
    let most = options.threads.map_or(node.cpus.len(), |t| t as usize);
    if most == 0 || most > node.cpus.len() {
        return Err(LabError::Usage(format!(
            "--threads {most}: node {} has {} CPUs that may be used",
            node.nid,
            node.cpus.len()
        )));
    }
    let mut counts: Vec<usize> =
        std::iter::successors(Some(1), |n| Some(n * 2)).take_while(|n| *n < most).collect();
    counts.push(most);
    Ok(counts)
}

/// Makes every line cold, times one case, and compares every byte.
fn run_one(
    lab: &Lab<'_>,
    node: &HostNode,
    lines: &mut [Line],
    case: &Case,
) -> Result<(u64, u64), LabError> {
    let lines = lines.get_mut(..case.lines(lines.len())).unwrap_or_default();
    poison_cold(lines);
    let share = share_lines(lines.len(), case.threads);
    let mut first = 0;
    let mut shares = Vec::new();
    for part in lines.chunks_mut(share) {
        let length = part.len();
        shares.push((first, part));
        first += length;
    }
    let time = team::timed(lab.topo, lab.clock, &node.cpus, shares, |(first, part)| {
        pass(part, first, &case.prepare, case.distance.pages, case.then);
    })?;
    check(lines, case)?;
    Ok(time)
}

/// Lines of each thread's share, rounded up so that no thread is left over.
fn share_lines(lines: usize, threads: usize) -> usize {
    lines.div_ceil(threads).max(1)
}

fn check(lines: &[Line], case: &Case) -> Result<(), LabError> {
    let wrong = |(at, line): (usize, &Line)| {
        let wanted = expected(at, &case.prepare, case.then);
        (line.words() != wanted).then(|| (at, line.words(), wanted))
    };
    match lines.iter().enumerate().find_map(wrong) {
        None => Ok(()),
        Some((at, found, wanted)) => Err(LabError::WrongData {
            what: format!("{} at {}", case.prepare.name(), case.distance.name),
            found: format!("struct page {at} is {found:x?}, expected {wanted:x?}"),
        }),
    }
}

fn factors_of(case: &Case, lines: usize) -> Factors {
    let share = share_lines(lines, case.threads);
    let distance_bytes = (case.distance.pages.min(share) * 64) as u64;
    let mut out = factors([
        ("prepare", case.prepare.name().into()),
        ("kind", case.prepare.kind().into()),
        ("then", case.then.name().into()),
        ("threads", (case.threads as u64).into()),
    ]);
    if !matches!(case.prepare, Prepare::Nothing) {
        out.insert("distance".into(), case.distance.name.into());
        out.insert("distance_bytes".into(), distance_bytes.into());
    }
    out
}

fn draw(record: &mut LabRecord, lab: &Lab<'_>, cases: &[Case], samples: &Samples, lines: usize) {
    for (case, samples) in cases.iter().zip(&samples.of_case) {
        let per = ("struct-page", case.lines(lines) as u64);
        let factors = factors_of(case, case.lines(lines));
        record.points.extend(LabPoint::measured("passes", factors, per, samples, lab.seed));
    }
    let drawn = Drawn { cases, samples, lines, seed: lab.seed };
    record.derived = drawn.derived();
    record.findings.extend(drawn.verdict(Prepare::Inline, DISTANCES[0], "zeroing-in-place"));
    let kernel = Prepare::Zero(Store::default_zero());
    record.findings.extend(drawn.verdict(kernel, DISTANCES[4], "zeroing-ahead"));
    record.findings.extend(drawn.verdict(Prepare::Prefetchw, DISTANCES[1], "fetching-ahead"));
}

/// Cases with their samples.
struct Drawn<'d> {
    cases: &'d [Case],
    samples: &'d Samples,
    lines: usize,
    seed: u64,
}

impl Drawn<'_> {
    fn of(&self, wanted: Case) -> &[u64] {
        let at = self.cases.iter().position(|case| *case == wanted);
        at.and_then(|at| self.samples.of_case.get(at)).map_or(&[], Vec::as_slice)
    }

    /// Differences per struct page, round by round.
    fn minus(&self, a: &[u64], b: &[u64]) -> Vec<f64> {
        let pages = self.lines.max(1) as f64;
        a.iter().zip(b).map(|(a, b)| (*a as f64 - *b as f64) / pages).collect()
    }

    fn cold(&self, threads: usize) -> &[u64] {
        let (prepare, distance) = (Prepare::Nothing, DISTANCES[0]);
        self.of(Case { prepare, distance, then: Then::Fields, threads })
    }

    /// What the field writes still cost after the preparation, as a share of what they
    /// cost on cold lines: one value per round.
    fn paid(&self, prepare: Prepare, distance: Distance, threads: usize) -> Vec<f64> {
        let of = |then| self.of(Case { prepare, distance, then, threads });
        let second = self.minus(of(Then::Fields), of(Then::Nothing));
        let cold = self.minus(self.cold(threads), &vec![0; self.cold(threads).len()]);
        second.iter().zip(&cold).filter(|(_, c)| **c > 0.0).map(|(s, c)| 1.0 - s / c).collect()
    }

    fn derived(&self) -> Vec<Derived> {
        let mut out = Vec::new();
        let apart = |case: &&Case| case.then == Then::Fields && !case.is_mostly_fences();
        for case in self.cases.iter().filter(apart) {
            let of = |then| self.of(Case { then, ..*case });
            let mut factors = factors_of(case, self.lines);
            factors.remove("then");
            let mut add = |what: &str, values: &[f64]| {
                out.extend(Derived::of(what, factors.clone(), values, self.seed));
            };
            add("free_ns", &self.minus(of(Then::FieldsAndFree), of(Then::Fields)));
            if case.prepare != Prepare::Nothing {
                add("adds_ns", &self.minus(of(Then::Fields), self.cold(case.threads)));
                add("second_touch_ns", &self.minus(of(Then::Fields), of(Then::Nothing)));
                add("paid_share", &self.paid(case.prepare, case.distance, case.threads));
            }
        }
        out
    }

    /// What one thread's figures say of a preparation.
    fn verdict(&self, prepare: Prepare, distance: Distance, what: &str) -> Option<Finding> {
        let paid = self.paid(prepare, distance, 1);
        if paid.is_empty() {
            return None;
        }
        let share = summarise(&paid, self.seed);
        let (code, says) = match share.ci95 {
            _ if paid.len() < FEWEST_RUNS => ("unclear", "cannot be judged from so few runs"),
            [low, _] if low >= 0.5 => ("prefetches", "acts as a prefetch on this processor"),
            [_, high] if high < 0.25 => ("no-prefetch", "does not act as a prefetch here"),
            _ => ("partly", "pays for a part of the field writes, or the figures are too noisy"),
        };
        let case = Case { prepare, distance, then: Then::Fields, threads: 1 };
        let adds = summarise(&self.minus(self.of(case), self.cold(1)), self.seed);
        let bytes = (distance.pages.min(self.lines) * 64) as u64;
        let text = format!(
            "{} ({}, {} ahead) {says}: both together take {:+.2} ns [{:+.2}, {:+.2}] per struct \
             page against field writes alone, and it pays for {:.0} % of the field writes on cold \
             lines",
            what.replace('-', " "),
            prepare.name(),
            Bytes(bytes),
            adds.median,
            adds.ci95[0],
            adds.ci95[1],
            share.median * 100.0,
        );
        Some(Finding { code: format!("{what}-{code}"), text, value: Some(share) })
    }
}

#[cfg(test)]
#[path = "prefetch_tests.rs"]
mod tests;
