//! What of a record can be predicted at all.
//!
//! [`sift`] takes out what no machine or clock can have shown, each with its reason, so
//! that one odd record or figure spoils no other; [`subject_of`] makes a machine of the
//! rest, with the kernel, architecture and nodes that the author's words mean.

use super::{Reason, left_out};
use crate::kernel::KernelVersion;
use crate::kernel::version::{NEWEST, OLDEST};
use crate::machine::{Arch, assume};
use crate::plan::Strategy;
use crate::record::validate::Validated;
use crate::study::published::{
    Described, Figure, Kind, Published, kernel_in_words, kernel_of_figure, node_in_words,
};
use crate::study::subject::Subject;
use crate::units::GIB;

/// A phase of a boot that takes longer than a week is none.
const MOST_MS: f64 = 7.0 * 86_400e3;

/// As many threads as no node has.
const MOST_THREADS: u32 = 8192;

/// The record without what cannot be so, and an entry for each figure taken out.
pub(super) fn sift(record: &Published) -> (Published, Vec<Validated>) {
    let of_record = machine_reason(record);
    let mut kept = Published { figures: Vec::new(), ..record.clone() };
    let mut out = Vec::new();
    for figure in &record.figures {
        let own = figure.unread.then_some(Reason::NotUnderstood);
        match own.or(of_record).or_else(|| figure_reason(record, figure)) {
            Some(reason) => out.push(left_out(record, &figure.what, figure.ms, reason)),
            None => kept.figures.push(figure.clone()),
        }
    }
    (kept, out)
}

/// Why the described machine is none.
fn machine_reason(record: &Published) -> Option<Reason> {
    let m = &record.machine;
    let zero_or_beyond = |n: Option<u32>, most: u32| n.is_some_and(|n| n == 0 || n > most);
    let odd_gib = |gib: Option<f64>| {
        let most = (assume::PHYS_LIMIT >> 1) as f64 / GIB as f64;
        gib.is_some_and(|gib| !(gib > 0.0 && gib <= most))
    };
    let counts = zero_or_beyond(m.nodes, 1024)
        || zero_or_beyond(m.cpus_per_node, MOST_THREADS)
        || zero_or_beyond(m.cores_per_node, MOST_THREADS)
        || zero_or_beyond(m.smt, 16)
        || m.cores_per_node.zip(m.cpus_per_node).is_some_and(|(cores, cpus)| cores > cpus);
    match () {
        _ if m.stated_arch().is_none() => Some(Reason::ArchUnknown),
        _ if m.page_kib == Some(0) => Some(Reason::NotUnderstood),
        _ if counts || odd_gib(m.memory_per_node_gib) || odd_gib(m.total_memory_gib) => {
            Some(Reason::Impossible)
        }
        // A page size that the architecture has not, or less memory than a section.
        _ => {
            let Some(subject) = subject_of(record) else {
                let stated = m.memory_per_node_gib.or(m.total_memory_gib).is_some();
                return stated.then_some(Reason::Impossible);
            };
            let built = subject.prepare(NEWEST, Strategy::Deferred, None);
            built.is_err().then_some(Reason::Impossible)
        }
    }
}

/// Why a figure cannot have been measured on that machine.
fn figure_reason(record: &Published, figure: &Figure) -> Option<Reason> {
    let ms = figure.ms.filter(|_| !figure.invalid)?;
    let m = &record.machine;
    let nodes = m.nodes.unwrap_or(1024);
    let deferred = matches!(figure.kind, Kind::DeferredNode | Kind::DeferredSlowest);
    let no_node = figure.kind == Kind::DeferredNode
        && node_in_words(&figure.what).is_some_and(|nid| nid >= nodes);
    let most = m.cpus_per_node.unwrap_or(MOST_THREADS).min(MOST_THREADS);
    let too_many = deferred && figure.threads.is_some_and(|threads| threads > most);
    let no_time = !(ms > 0.0 && ms <= MOST_MS) && figure.kind != Kind::Saving;
    let page_bytes = page_bytes(m);
    let no_pages = figure.pages.is_some_and(|pages| {
        pages == 0 || pages.checked_mul(page_bytes).is_none_or(|b| b > assume::PHYS_LIMIT)
    });
    (no_node || too_many || no_time || !ms.is_finite() || no_pages).then_some(Reason::Impossible)
}

fn page_bytes(m: &Described) -> u64 {
    let usual = assume::default_page_bytes(m.stated_arch().unwrap_or(Arch::X86_64));
    m.page_kib.map_or(usual, |kib| kib.saturating_mul(1024)).max(1)
}

/// The machine, with memory also where only counts of pages are printed.
pub(super) fn subject_of(record: &Published) -> Option<Subject> {
    let m = &record.machine;
    let memory_per_node_gib = m.memory_per_node_gib.or_else(|| printed_gib(record));
    let machine = Described { memory_per_node_gib, ..m.clone() };
    Subject::of(&Published { machine, ..record.clone() })
}

/// Memory of a node that a printed count of pages stands for, where no other is stated
/// and no node's own count is printed. The memmap and the early part lie beside them.
fn printed_gib(record: &Published) -> Option<f64> {
    let m = &record.machine;
    let by_node = record.figures.iter().any(|f| f.kind == Kind::DeferredNode && f.pages.is_some());
    if m.total_memory_gib.is_some() || by_node {
        return None;
    }
    let own = |f: &&Figure| {
        matches!(f.kind, Kind::DeferredSlowest | Kind::Sweep | Kind::FreeAll | Kind::BootZero)
            && !f.invalid
    };
    let (kind, pages) = record
        .figures
        .iter()
        .filter(own)
        .find_map(|f| Some((f.kind, f.pages.filter(|p| *p > 0)?)))?;
    let nodes = match kind {
        Kind::DeferredSlowest => 1.0,
        _ => f64::from(m.nodes.unwrap_or(1).max(1)),
    };
    let gib = pages as f64 * page_bytes(m) as f64 / GIB as f64;
    Some(gib * (1.0 + 1.0 / 60.0) / nodes + 2.0)
}

/// The kernel of a figure: its own words go before its record's.
///
/// # Errors
/// The reason why there is none: no number, or none with rules. Posts on top of `oldest`
/// and later are taken for what became of them.
pub(super) fn version_of(
    record: &Published,
    figure: &Figure,
    oldest: KernelVersion,
) -> Result<KernelVersion, Reason> {
    let stated = kernel_of_figure(&figure.what).or_else(|| kernel_in_words(&record.kernel));
    let stated = stated.ok_or(Reason::KernelUnknown)?;
    match oldest <= stated && stated <= NEWEST {
        true => Ok(stated.max(OLDEST)),
        false => Err(Reason::KernelRange),
    }
}
