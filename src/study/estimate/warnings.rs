//! What is to be kept in mind of an estimate.
//!
//! [`of`] gathers what input, layout and hardware assumed, and adds what the question
//! itself makes doubtful: extrapolation, anchors that disagree, options without effect.

use super::{Case, Question, Ran};
use crate::machine::Machine;
use crate::model::range::extrapolation;
use crate::plan::Strategy;
use crate::record::estimate::Logged;
use crate::warning::Warning;

/// Anchors of one machine may differ so much, as a factor, before a word is said.
const LIKE_NODES: f64 = 2.0;

/// Everything to be said about this boot; `question` is without the changes of what-ifs.
pub(super) fn of(
    machine: &Machine,
    ran: &Ran,
    question: &Question,
    logged: &[Logged],
) -> Vec<Warning> {
    let (case, threads) = (&ran.case, ran.threads());
    let mut out = machine.warnings.clone();
    out.extend(case.layout.warnings.iter().cloned());
    out.extend(case.hardware.warnings.iter().cloned());
    if let Some(why) = extrapolation(case.layout.kernel.version, case.layout.arch, threads) {
        let text = format!("extrapolated: {why}");
        out.push(Warning::new("extrapolated", text, "the range is wider; an --anchor helps"));
    }
    out.extend(few_cpus(case, threads));
    out.extend(anchors_differ(case));
    out.extend(nothing_deferred(case, question));
    out.extend(fake_twice(question));
    out.extend(log_disagrees(logged));
    out
}

fn few_cpus(case: &Case, threads: u32) -> Option<Warning> {
    let most = case.beyond_calibration(threads)?;
    let text = format!(
        "the calibration measured up to {most} threads a node, and {threads} are predicted: what \
         a node's memory takes from them is the processor class's, not measured"
    );
    let remedy = "the range is wider; calibrate on a host with as many CPUs a node";
    Some(Warning::new("few-cpus", text, remedy))
}

/// All nodes of a machine are of one class, so their anchors should be near each other.
fn anchors_differ(case: &Case) -> Option<Warning> {
    let slowness = |nid| case.setup.scale_of(nid) / case.setup.rate_of(nid);
    let all = || case.setup.scales.iter().map(|(nid, _)| (slowness(*nid), *nid));
    let fastest = all().min_by(|a, b| a.0.total_cmp(&b.0))?;
    let slowest = all().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let ratio = slowest.0 / fastest.0;
    (ratio > LIKE_NODES).then(|| {
        let text = format!(
            "by its anchor a page of node {} costs {ratio:.1} times as much as one of node {}, \
             though their processors are the same",
            slowest.1, fastest.1
        );
        Warning::new("anchors-differ", text, "check times, pages and threads of both")
    })
}

/// A strategy of deferred initialisation, where this kernel defers nothing.
fn nothing_deferred(case: &Case, question: &Question) -> Option<Warning> {
    let strategy = question.strategy?;
    let serial = matches!(strategy, Strategy::Serial | Strategy::SerialInline);
    if serial || case.layout.nodes.iter().any(|n| !n.deferred.is_empty()) {
        return None;
    }
    let text = format!(
        "nothing is deferred by Linux {} with this configuration, command line and memory: \
         --strategy {} leaves all struct pages to the boot CPU",
        case.layout.kernel.version,
        strategy.name()
    );
    let remedy = "it takes 4.2 or later, CONFIG_DEFERRED_STRUCT_PAGE_INIT and enough memory";
    Some(Warning::new("nothing-deferred", text, remedy))
}

fn fake_twice(question: &Question) -> Option<Warning> {
    let asked = question.what_if.fake_numa?;
    question.line.as_ref().and_then(|line| line.numa_fake.as_ref())?;
    let text = format!("--fake-numa {asked} takes the place of numa=fake= on the command line");
    Some(Warning::new("fake-numa-twice", text, "give one of both"))
}

/// A time of the log that lies outside of its range: something assumed does not hold.
pub(super) fn log_disagrees(logged: &[Logged]) -> Option<Warning> {
    let other = |row: &Logged| row.caveats.iter().any(|code| code.starts_with("other-"));
    let row = logged.iter().find(|row| row.in_range == Some(false) && !other(row))?;
    let (ms, predicted_ms) = (row.logged_ms?, row.predicted_ms?);
    let [low, high] = row.range_ms?;
    let text = format!(
        "{ms:.1} ms by line {} of the log are {:.1} times the prediction of {predicted_ms:.2} ms, \
         which is outside its range of {low:.2} to {high:.2} ms: something that is assumed of this \
         machine does not hold",
        row.line,
        ms / predicted_ms,
    );
    let anchor = match (row.what.as_str(), row.nid, row.pages) {
        ("deferred-init", Some(nid), Some(pages)) => {
            let threads = row.workers.filter(|n| *n > 1).map_or(String::new(), |n| format!("@{n}"));
            format!(", or --anchor node{nid}={ms}ms/{pages}{threads}")
        }
        _ => String::new(),
    };
    let remedy = format!("give cpu_model, and the channels that are populated{anchor}");
    Some(Warning::new("log-disagrees", text, remedy))
}
