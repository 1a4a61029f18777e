//! The constants of thread scaling, fitted anew without one machine.
//!
//! [`all`] leaves each swept machine out in turn, searches a grid for the constants that
//! suit the others best (least root mean square of log errors), and predicts the one
//! left out with them. The guest factor cannot be fitted without a guest: it is 1 then.

use super::gathered::{Machines, Swept, phase_ms};
use super::{StudyError, judged};
use crate::model::{Scaling, Virt};
use crate::record::validate::{LeftOutMachine, Validated};
use crate::stats;
use rayon::prelude::*;

/// Steps of the grid: shares of the peak rate, and ms per hardware thread.
const EFFICIENCIES: [f64; 3] = [0.62, 0.86, 0.01];
const SETTLES_MS: [f64; 3] = [0.20, 1.00, 0.05];

/// The errors of one machine at every point of the grid.
type Table = Vec<(Scaling, Vec<f64>)>;

/// Leaves every machine out once; nothing with fewer than two machines.
pub(super) fn all(
    machines: &Machines<'_>,
) -> Result<(Vec<Validated>, Vec<LeftOutMachine>), StudyError> {
    let mut swept = Vec::new();
    for (machine, posts_of) in machines {
        swept.extend(Swept::of(machine, posts_of)?);
    }
    if swept.len() < 2 {
        return Ok((Vec::new(), Vec::new()));
    }
    let tables: Vec<Table> = swept.iter().map(table).collect();
    let mut entries = Vec::new();
    let mut facts = vec![none_left_out(&swept, &tables)];
    for (left, machine) in swept.iter().enumerate() {
        let others = tables.iter().enumerate().filter(|(i, _)| *i != left).map(|(_, t)| t);
        let mut scaling = best(&others.collect::<Vec<_>>());
        let guests = swept.iter().enumerate().filter(|(_, s)| s.subject.virt == Some(Virt::Guest));
        if guests.filter(|(i, _)| *i != left).count() == 0 {
            scaling.guest_bandwidth = 1.0;
        }
        let own = predictions(machine, scaling);
        let errors: Vec<f64> = own.iter().filter_map(|e| e.error).map(f64::abs).collect();
        facts.push(LeftOutMachine {
            machine: machine.machine.into(),
            efficiency: scaling.efficiency,
            settle_ms_per_thread: scaling.settle_ms_per_thread,
            guest_bandwidth: scaling.guest_bandwidth,
            median: stats::median(&errors),
            worst: errors.iter().copied().fold(0.0, f64::max),
        });
        entries.extend(own);
    }
    Ok((entries, facts))
}

/// The fit on all machines, for comparison with the constants in force.
fn none_left_out(swept: &[Swept<'_>], tables: &[Table]) -> LeftOutMachine {
    let scaling = best(&tables.iter().collect::<Vec<_>>());
    let all = swept.iter().flat_map(|machine| predictions(machine, scaling));
    let errors: Vec<f64> = all.filter_map(|e| e.error).map(f64::abs).collect();
    LeftOutMachine {
        machine: "none".into(),
        efficiency: scaling.efficiency,
        settle_ms_per_thread: scaling.settle_ms_per_thread,
        guest_bandwidth: scaling.guest_bandwidth,
        median: stats::median(&errors),
        worst: errors.iter().copied().fold(0.0, f64::max),
    }
}

fn steps([from, to, by]: [f64; 3]) -> impl Iterator<Item = f64> {
    let count = ((to - from) / by).round() as u32;
    (0..=count).map(move |i| f64::from(i).mul_add(by, from))
}

fn table(machine: &Swept<'_>) -> Table {
    let grid: Vec<Scaling> = steps(EFFICIENCIES)
        .flat_map(|efficiency| {
            steps(SETTLES_MS).map(move |settle_ms_per_thread| Scaling {
                efficiency,
                settle_ms_per_thread,
                ..Scaling::default()
            })
        })
        .collect();
    grid.into_par_iter().map(|scaling| (scaling, log_errors(machine, scaling))).collect()
}

fn log_errors(machine: &Swept<'_>, scaling: Scaling) -> Vec<f64> {
    let predicted = machine.predict(Some(scaling));
    let pairs = machine.points.iter().zip(&predicted);
    pairs.filter_map(|((_, ms), p)| Some((phase_ms(p)? / ms).ln())).collect()
}

/// The grid point with the least sum of squares over all tables; the first of equals.
fn best(tables: &[&Table]) -> Scaling {
    let Some(first) = tables.first() else { return Scaling::default() };
    let sum = |index: usize| -> f64 {
        let rows = tables.iter().filter_map(|t| t.get(index));
        rows.flat_map(|(_, errors)| errors).map(|e| e * e).sum()
    };
    let order = (0..first.len()).min_by(|a, b| sum(*a).total_cmp(&sum(*b)));
    order.and_then(|i| first.get(i)).map_or_else(Scaling::default, |(scaling, _)| *scaling)
}

fn predictions(machine: &Swept<'_>, scaling: Scaling) -> Vec<Validated> {
    let predicted = machine.predict(Some(scaling));
    let pairs = machine.points.iter().zip(&predicted);
    let entry = |((threads, ms), p): (&(u32, f64), &crate::study::subject::Predicted)| {
        judged(Validated {
            id: machine.record.id.clone(),
            what: "deferred init, median of its machine's posts, machine left out".into(),
            group: Some("threads-left-out".into()),
            threads: Some(*threads),
            published_ms: Some(*ms),
            predicted_ms: phase_ms(p),
            anchor: Some("median of its one-thread times; constants of other machines".into()),
            class: Some(p.hardware.class.name.clone()),
            class_mark: Some(p.hardware.class.mark().name().into()),
            ..Validated::default()
        })
    };
    pairs.map(entry).collect()
}
