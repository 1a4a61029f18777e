//! What comes after struct pages are there: memory that is added, pages that are gathered.
//!
//! [`hotplug`] predicts adding memory to a running system, [`huge`] the pass over gigantic
//! pages at boot; both by class alone, where the words say how much.

use super::devices::subject_of;
use super::entries::{described, is_after_change};
use super::{Reason, StudyError, judged, left_out, sift};
use crate::kernel::KernelVersion;
use crate::kernel::version::OLDEST;
use crate::machine::Arch;
use crate::model::added::{self, Added, Workers};
use crate::model::hugetlb::{self, Pool};
use crate::model::range::{Basis, Range, extrapolation};
use crate::plan::Strategy;
use crate::record::validate::Validated;
use crate::study::published::{Figure, Published, gigantic_in_words};
use crate::study::subject::{Change, Predicted};
use crate::units::GIB;

/// The record's machine as it runs with that kernel.
fn machine_of(record: &Published, version: KernelVersion) -> Result<Option<Predicted>, StudyError> {
    let Some(subject) = subject_of(record) else { return Ok(None) };
    subject.predict(version, Strategy::Deferred, &Change::default()).map(Some)
}

fn entry(
    record: &Published,
    figure: &Figure,
    predicted: &Predicted,
    version: KernelVersion,
    (group, ns): (&str, f64),
) -> Validated {
    let arch = predicted.layout.kernel.arch;
    let far = extrapolation(version, arch, 1).is_some();
    let range = Range::of(Basis::of(&predicted.hardware, false), far, ns, 0.0);
    judged(Validated {
        group: Some(group.into()),
        predicted_ms: Some(ns / 1e6),
        range_ms: Some([range.low_ns / 1e6, range.high_ns / 1e6]),
        anchor: Some("class".into()),
        ..described(record, &figure.what, figure.ms, predicted)
    })
}

/// Memory that is added, block after block by one thread.
pub(super) fn hotplug(record: &Published, figure: &Figure) -> Result<Validated, StudyError> {
    let out = |reason| Ok(left_out(record, &figure.what, figure.ms, reason));
    let Some(pages) = figure.pages else { return out(Reason::Hotplug) };
    let version = match sift::version_of(record, figure, OLDEST) {
        Ok(version) => version,
        Err(reason) => return out(reason),
    };
    if is_after_change(&figure.what) || figure.what.contains("parallel") {
        return out(Reason::ChangeUnknown);
    }
    let Some(predicted) = machine_of(record, version)? else { return out(Reason::MemoryUnknown) };
    let Some(node) = predicted.hardware.nodes.first() else { return out(Reason::Phase) };
    let layout = &predicted.layout;
    let section_bytes = layout.pages_per_section.saturating_mul(layout.page_bytes);
    // x86_64 with 64 GiB and more has blocks of 2 GiB (arch/x86/mm/init_64.c:
    // probe_memory_block_size).
    let bytes = pages.saturating_mul(layout.page_bytes);
    let large = layout.kernel.arch == Arch::X86_64 && bytes >= 64 * GIB;
    let block_bytes = if large { (2 * GIB).max(section_bytes) } else { section_bytes };
    let added = Added { version, bytes, block_bytes, section_bytes, debug_vm: false };
    let options = crate::model::Options { page_bytes: layout.page_bytes, ..Default::default() };
    let run = added::hotplug(node, options, &added, Workers::One);
    Ok(entry(record, figure, &predicted, version, ("added-memory", run.total_ns())))
}

/// The version that gathers with a thread per node, and how its series is called.
const THREADED_SERIES: &str = "parallelize hugetlb";

/// Gigantic pages that are gathered at boot.
pub(super) fn huge(record: &Published, figure: &Figure) -> Result<Validated, StudyError> {
    let out = |reason| Ok(left_out(record, &figure.what, figure.ms, reason));
    let Some((huge_bytes, huge_pages)) = gigantic_in_words(&figure.what) else {
        return out(Reason::Huge);
    };
    let stated = match sift::version_of(record, figure, OLDEST) {
        Ok(version) => version,
        Err(reason) => return out(reason),
    };
    let about = format!("{} {}", record.source, record.config).to_ascii_lowercase();
    let version = match is_after_change(&figure.what) {
        false => stated,
        true if about.contains(THREADED_SERIES) => stated.max(hugetlb::THREADED),
        true => return out(Reason::ChangeUnknown),
    };
    let Some(predicted) = machine_of(record, version)? else { return out(Reason::MemoryUnknown) };
    let page_bytes = predicted.layout.page_bytes;
    let hvo = figure.what.to_ascii_lowercase().contains("hvo");
    let pool = Pool { version, page_bytes, huge_bytes, huge_pages, hvo };
    let options = crate::model::Options { page_bytes, ..Default::default() };
    let ns = hugetlb::gather(&predicted.hardware, &options, &pool).total_ns();
    Ok(entry(record, figure, &predicted, version, ("gigantic-pages", ns)))
}
