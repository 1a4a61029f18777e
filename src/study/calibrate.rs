//! Measuring this host for predictions: every strategy's phases, one thread and all.
//!
//! [`calibrate`] runs `compare` with one thread per node and with all CPUs of the
//! smallest node, and keeps ns per page of each phase; [`stores`] measures what lies
//! below. [`phases`] turns a calibration into costs for the model: with one thread
//! nothing is shared, and what many threads lose against it is put down to memory
//! bandwidth.

mod stores;

use super::StudyError;
use super::compare::{HostContext, Inputs, Options, compare_teams};
use super::figures::TeamRates;
use crate::exec::Stop;
use crate::kernel::KernelModel;
use crate::lab::{Lab, Limits, beyond_caches_bytes};
use crate::machine::Machine;
use crate::model::constants as k;
use crate::model::queue::{Curve, Demand};
use crate::model::setup::CalibratedPhase;
use crate::pfn::Nid;
use crate::plan::PhaseName;
use crate::progress::Progress;
use crate::record::calibration::{CALIBRATION_SCHEMA, Calibration, Rate};
use crate::record::{Head, HostFacts, Label};
use crate::units::{Bytes, MIB};
use crate::warning::Warning;

/// The phases that are told apart.
const PHASES: [PhaseName; 6] = [
    PhaseName::MemblockZero,
    PhaseName::SetupZero,
    PhaseName::EarlyInit,
    PhaseName::EarlyFree,
    PhaseName::DeferredZero,
    PhaseName::DeferredInit,
];

/// Measures. The order of runs follows from `options.seed`; `options.threads` is not used.
///
/// # Errors
/// As `compare`.
pub fn calibrate(
    machine: &Machine,
    kernel: &KernelModel,
    host: &HostContext,
    options: &Options,
    progress: &dyn Progress,
    stop: Stop<'_>,
) -> Result<Calibration, StudyError> {
    let nodes = &host.room.nodes;
    let cpus = nodes.iter().map(|n| n.cpus.len()).filter(|n| *n > 0).min().unwrap_or(1);
    let most_threads = u32::try_from(cpus).unwrap_or(u32::MAX);
    let with = |threads| Options { threads: Some(threads), ..options.clone() };
    let own: Vec<Nid> = nodes.iter().filter(|n| !n.cpus.is_empty()).map(|n| Nid(n.nid)).collect();
    let run = |threads| {
        let inputs = Inputs { machine, kernel, host, options: &with(threads) };
        compare_teams(&inputs, &own, progress, stop)
    };
    let (one, teams) = run(1)?;
    let mut rates = rates(&teams);
    let mut warnings = one.head.warnings.clone();
    let mut complete = one.head.complete;
    if most_threads > 1 && complete {
        let (all, teams) = run(most_threads)?;
        rates.extend(self::rates(&teams));
        complete = all.head.complete;
        let said = |w: &Warning| warnings.iter().any(|known| known.code == w.code);
        let new: Vec<Warning> = all.head.warnings.into_iter().filter(|w| !said(w)).collect();
        warnings.extend(new);
    }
    let limits = Limits::default();
    let mut below = stores::Rates::default();
    if complete {
        let lab = lab(host, &one.host, options, (progress, stop), &limits);
        let buffer_bytes = buffer_bytes(host)?;
        below = stores::measure(&stores::Bench { lab, buffer_bytes, limit_s: NODE_LIMIT_S })?;
        complete = below.complete;
        warnings.append(&mut below.warnings);
    }
    warnings
        .extend(limits.warning("intervals are wider there; fewer stores would be no calibration"));
    warnings.extend(not_shown(nodes.len(), most_threads));
    Ok(Calibration {
        head: Head {
            complete,
            ..Head::new(CALIBRATION_SCHEMA, &options.argv).with_warnings(warnings)
        },
        label: Label::Measured,
        host: one.host,
        kernel: kernel.version.to_string(),
        most_threads,
        rates,
        stores: below.stores,
        passes: below.passes,
        first_touch: below.first_touch,
    })
}

/// Seconds after which a node's series end early.
const NODE_LIMIT_S: u64 = 10;

/// What experiments share, for the series below the strategies.
fn lab<'l>(
    host: &'l HostContext,
    facts: &'l HostFacts,
    options: &'l Options,
    (progress, stop): (&'l dyn Progress, Stop<'l>),
    limits: &'l Limits,
) -> Lab<'l> {
    Lab {
        topo: &host.topo,
        clock: &host.clock,
        budget: &host.room.budget,
        host: facts,
        caches: &[],
        argv: &options.argv,
        doubts: &[],
        runs: options.runs,
        // However many are asked for: a calibration ends within two minutes.
        runs_are_default: true,
        limits,
        seed: options.seed,
        progress,
        stop,
        keep: None,
    }
}

/// A buffer that no cache holds, where that fits.
fn buffer_bytes(host: &HostContext) -> Result<u64, StudyError> {
    let usable_bytes = host.room.budget.usable_bytes();
    match beyond_caches_bytes(host.room.machine.last_level_cache_bytes(), usable_bytes) {
        0 => Err(StudyError::NoMemory {
            what: "measuring stores".into(),
            needed: Bytes(4 * 2 * MIB),
            free: Bytes(usable_bytes),
            limit: "free memory".into(),
        }),
        bytes => Ok(bytes),
    }
}

/// What a host of this shape cannot tell.
fn not_shown(nodes: usize, threads: u32) -> Vec<Warning> {
    let mut out = Vec::new();
    if nodes < 2 {
        let text = "this host has one node: remote memory could not be measured";
        out.push(Warning::new("one-node", text, "remote factors stay those of the model"));
    }
    if threads < 8 {
        let text = format!("{threads} CPUs per node do not fill a node's memory bandwidth");
        out.push(Warning::new("few-cpus", text, "predictions of more threads are extrapolated"));
    }
    out
}

/// Rates as a calibration has them; the mean where a strategy ran with several stores.
fn rates(teams: &[TeamRates]) -> Vec<Rate> {
    let mut out: Vec<(Rate, f64)> = Vec::new();
    let all = teams.iter().flat_map(|team| team.phases.iter().map(move |phase| (team, phase)));
    for (team, phase) in all {
        let rate = Rate {
            strategy: team.strategy.clone(),
            phase: phase.phase.to_string(),
            free: team.free,
            threads: team.threads,
            ns_per_page: phase.ns_per_page,
        };
        let same = |(r, _): &&mut (Rate, f64)| r.strategy == rate.strategy && r.phase == rate.phase;
        match out.iter_mut().find(same) {
            Some((known, count)) => {
                *count += 1.0;
                known.ns_per_page += (phase.ns_per_page - known.ns_per_page) / *count;
            }
            None => out.push((rate, 1.0)),
        }
    }
    out.into_iter().map(|(rate, _)| rate).collect()
}

/// More rates than all strategies and phases have, and more threads than a node has; the
/// model computes its curves thread by thread.
const MOST_RATES: usize = 1000;
const MOST_THREADS: u32 = 4096;

/// A calibration as costs for the model, and warnings where it does not fit.
///
/// # Errors
/// When a rate is not a positive number, or there are more rates or threads than possible.
pub fn phases(calibration: &Calibration) -> Result<Vec<CalibratedPhase>, StudyError> {
    let threads = calibration.rates.iter().map(|r| r.threads).max().unwrap_or(0);
    if threads > MOST_THREADS || calibration.rates.len() > MOST_RATES {
        return Err(StudyError::Usage(format!(
            "the calibration has {} rates and {threads} threads, and not more than {MOST_RATES} \
             and {MOST_THREADS} are possible; measure it again",
            calibration.rates.len()
        )));
    }
    let mut out = Vec::new();
    for one in calibration.rates.iter().filter(|r| r.threads == 1) {
        let usable = |ns: f64| ns.is_finite() && ns > 0.0;
        if !usable(one.ns_per_page) {
            return Err(StudyError::Usage(format!(
                "the calibration says {} ns per page for {} of {}; measure it again",
                one.ns_per_page, one.phase, one.strategy
            )));
        }
        let Some(phase) = PHASES.into_iter().find(|p| p.to_string() == one.phase) else { continue };
        let many = calibration.rates.iter().find(|r| {
            r.threads > 1
                && (&r.strategy, &r.phase, r.free) == (&one.strategy, &one.phase, one.free)
        });
        let many = many.filter(|r| usable(r.ns_per_page));
        // The boot CPU works alone in both series: their mean is steadier.
        let by_nodes = matches!(phase, PhaseName::DeferredZero | PhaseName::DeferredInit);
        let (alone_ns, bandwidth_ns) = match many {
            Some(r) if by_nodes => {
                (one.ns_per_page, shared_ns(one.ns_per_page, r.ns_per_page, r.threads))
            }
            Some(r) => (f64::midpoint(one.ns_per_page, r.ns_per_page), 0.0),
            None => (one.ns_per_page, 0.0),
        };
        out.push(CalibratedPhase {
            strategy: one.strategy.clone(),
            phase,
            free: one.free,
            alone_ns,
            bandwidth_ns,
            most_threads: many.map_or(1, |r| r.threads),
        });
    }
    Ok(out)
}

/// How much of a page's time is at the shared station, so that `threads` of them take
/// `many_ns` per page: 0 where they do not disturb each other.
fn shared_ns(alone_ns: f64, many_ns: f64, threads: u32) -> f64 {
    let with = |bandwidth_ns: f64| {
        let demand = Demand { alone_ns, bandwidth_ns, lock_ns: 0.0 };
        1.0 / Curve::new(demand, threads, threads, k::SMT_GAIN).throughput(threads)
    };
    let (mut low, mut high) = (0.0, alone_ns);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if with(middle) < many_ns { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    // A curve of four billion threads would not fit into memory.
    #[test]
    fn impossible_threads_and_endless_rates_are_refused() {
        let text = include_str!("../../fuzz/seeds/calibration/two-threads");
        let read = |text: &str| serde_json::from_str::<Calibration>(text).unwrap();
        assert_eq!(phases(&read(text)).unwrap().len(), 2);
        let huge = text.replace("\"threads\": 2", "\"threads\": 4294967295");
        let error = phases(&read(&huge)).unwrap_err().to_string();
        assert!(error.contains("3 rates and 4294967295 threads"), "{error}");
        let mut many = read(text);
        many.rates = vec![many.rates[0].clone(); MOST_RATES + 1];
        assert!(phases(&many).unwrap_err().to_string().contains("1001 rates"));
    }

    #[test]
    fn the_shared_part_makes_many_threads_take_their_time() {
        for wanted in [5.2, 6.0, 9.0] {
            let shared = shared_ns(10.0, wanted, 2);
            let demand = Demand { alone_ns: 10.0, bandwidth_ns: shared, lock_ns: 0.0 };
            let got = 1.0 / Curve::new(demand, 2, 2, 0.4).throughput(2);
            assert!((got - wanted).abs() < 1e-6, "{wanted}: {got}");
        }
        assert!(shared_ns(10.0, 4.0, 2) < 1e-6, "faster than twice: nothing is shared");
    }

    #[test]
    fn hosts_say_what_they_cannot_show() {
        let codes: Vec<String> = not_shown(1, 2).into_iter().map(|w| w.code).collect();
        assert_eq!(codes, ["one-node", "few-cpus"]);
        assert!(not_shown(2, 16).is_empty());
    }
}
