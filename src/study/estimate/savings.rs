//! What other strategies and other kernels would take for the same boot.
//!
//! [`savings`] fills the table of an estimate: every strategy under the kernel that was
//! asked about, then kernels as they are, each with its own strategy.

use super::{Case, Question, what_if::signed, whole};
use crate::kernel::version::NEWEST;
use crate::kernel::{KernelModel, KernelVersion};
use crate::machine::Machine;
use crate::plan::Strategy;
use crate::record::estimate::Saving;
use crate::study::validate::usual_strategy;
use rayon::prelude::*;

/// Versions that savings are shown against: the last ones before something changed.
const LANDMARKS: [KernelVersion; 9] = [
    KernelVersion::new(4, 1),
    KernelVersion::new(4, 14),
    KernelVersion::new(5, 1),
    KernelVersion::new(5, 7),
    KernelVersion::new(5, 10),
    KernelVersion::new(6, 1),
    KernelVersion::new(6, 8),
    KernelVersion::new(6, 12),
    NEWEST,
];

/// Every strategy under this kernel, then the kernels' own strategies. Gigantic pages
/// are in all of them, as they are in the total.
pub(super) fn savings(
    machine: &Machine,
    case: &Case,
    question: &Question,
    total_ns: u64,
) -> Vec<Saving> {
    let version = case.layout.kernel.version;
    let row = |strategy: Strategy, version: KernelVersion, other_ns: u64| Saving {
        strategy: strategy.name().into(),
        kernel: version.to_string(),
        total_ns: other_ns,
        saved_ns: signed(other_ns, total_ns),
    };
    let total_of = |case: &Case, strategy, threads| {
        let plan = case.plan(strategy, threads, question.chunk_pages, question.free);
        whole(case.total_ns(&case.run(&plan)))
    };
    let strategies = Strategy::ALL
        .par_iter()
        .map(|strategy| row(*strategy, version, total_of(case, *strategy, question.threads)));
    let kernels = LANDMARKS.par_iter().filter_map(|landmark| {
        let mut kernel = KernelModel::new(*landmark, machine.arch);
        kernel.config.numa_emu |= case.layout.kernel.config.numa_emu;
        let other = Case::new(machine, &kernel, question).ok()?;
        let other = Case { setup: case.setup.clone(), ..other };
        let strategy = usual_strategy(*landmark);
        let threads = question.threads.filter(|_| *landmark == version || has_threads(&other));
        Some(row(strategy, *landmark, total_of(&other, strategy, threads)))
    });
    strategies.chain(kernels).collect()
}

/// Whether this kernel shares a node's work among threads: one that does not is shown as
/// it is, also where threads were asked for.
fn has_threads(case: &Case) -> bool {
    case.layout.nodes.iter().any(|n| n.max_threads > 1)
}
