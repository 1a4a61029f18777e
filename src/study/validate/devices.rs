//! Struct pages of device memory against published times.
//!
//! [`of`] predicts one figure by class alone, [`ratios`] what a proposal makes of the
//! time before it. A first bind also maps the memmap, which is not modelled.

use super::entries::{Step, era_by_words};
use super::sift;
use super::{Reason, StudyError, judged, left_out};
use crate::kernel::KernelVersion;
use crate::kernel::version::OLDEST;
use crate::model::added::{Store, device_page};
use crate::model::range::{Basis, Range, extrapolation};
use crate::plan::Strategy;
use crate::record::validate::Validated;
use crate::study::published::{Described, Figure, Kind, Published};
use crate::study::subject::{Change, Subject};

/// A printed time of fewer ms is a few ticks of any timer.
const LEAST_MS: f64 = 5.0;

/// Memory that is taken where an author does not state any: costs do not depend on it.
const SOME_GIB: f64 = 64.0;

/// One figure.
pub(super) fn of(record: &Published, figure: &Figure) -> Result<Validated, StudyError> {
    let out = |reason| Ok(left_out(record, &figure.what, figure.ms, reason));
    let Some(pages) = figure.pages else { return out(Reason::PagesUnknown) };
    if figure.what.contains("compound") {
        return out(Reason::ChangeUnknown);
    }
    if figure.what.contains("first") {
        return out(Reason::FirstBind);
    }
    if figure.ms.is_some_and(|ms| ms < LEAST_MS) {
        return out(Reason::FewSteps);
    }
    let version = match sift::version_of(record, figure, OLDEST) {
        Ok(version) => version,
        Err(reason) => return out(reason),
    };
    let Some((ns, known)) = page_ns(record, figure, version)? else { return out(Reason::Phase) };
    let ns = ns * pages as f64;
    // One thread on a node's lines, as its workers are.
    let range = Range::of(known.basis, known.far, 0.0, ns);
    Ok(judged(Validated {
        id: record.id.clone(),
        what: figure.what.clone(),
        group: Some("device-memory".into()),
        threads: Some(1),
        published_ms: figure.ms,
        predicted_ms: Some(ns / 1e6),
        range_ms: Some([range.low_ns / 1e6, range.high_ns / 1e6]),
        anchor: Some("class".into()),
        class: Some(known.class.0),
        class_mark: Some(known.class.1),
        ..Validated::default()
    }))
}

/// What a prediction rests on.
struct Known {
    basis: Basis,
    far: bool,
    class: (String, String),
}

/// One page by the record's processor; `None` without a machine.
fn page_ns(
    record: &Published,
    figure: &Figure,
    stated: KernelVersion,
) -> Result<Option<(f64, Known)>, StudyError> {
    let Some(subject) = subject_of(record) else { return Ok(None) };
    let version = match era_by_words(record, stated, &figure.what) {
        Some(Step::Blocks) => KernelVersion::new(5, 2),
        _ => stated,
    };
    let predicted = subject.predict(version, Strategy::Deferred, &Change::default())?;
    let hardware = &predicted.hardware;
    let Some(node) = hardware.nodes.first() else { return Ok(None) };
    let page = device_page(version, node, subject.options, store_of(&figure.what));
    let class = (hardware.class.name.clone(), hardware.class.mark().name().to_owned());
    let far = extrapolation(version, subject.machine.arch, 1).is_some();
    Ok(Some((page.ns, Known { basis: Basis::of(hardware, false), far, class })))
}

/// The described machine, with some memory where none is stated.
pub(super) fn subject_of(record: &Published) -> Option<Subject> {
    if let Some(subject) = sift::subject_of(record) {
        return Some(subject);
    }
    let machine = Described { memory_per_node_gib: Some(SOME_GIB), ..record.machine.clone() };
    sift::subject_of(&Published { machine, ..record.clone() })
}

/// How the author's words say that struct pages are written.
fn store_of(what: &str) -> Store {
    match what {
        _ if what.contains("template") => Store::Template,
        _ if what.contains("full series") => Store::Streamed,
        _ => Store::Fields,
    }
}

/// What each proposal of a record leaves of its base, binding the same device again.
pub(super) fn ratios(record: &Published) -> Result<Vec<Validated>, StudyError> {
    let again = |f: &&Figure| f.kind == Kind::Device && f.what.contains("rebind");
    let device = |f: &Figure| f.what.split(',').next().unwrap_or("").replace(" (2M)", "");
    let figures: Vec<&Figure> = record.figures.iter().filter(again).collect();
    let mut out = Vec::new();
    for base in figures.iter().filter(|f| f.what.contains(" base,")) {
        let own = |f: &&&Figure| device(f) == device(base) && !f.what.contains(" base,");
        for other in figures.iter().filter(own) {
            let (Some(base_ms), Some(ms)) = (base.ms, other.ms) else { continue };
            let Ok(version) = sift::version_of(record, base, OLDEST) else { continue };
            let pages = (page_ns(record, base, version)?, page_ns(record, other, version)?);
            let (Some(was), Some(is)) = pages else { continue };
            out.push(judged(Validated {
                id: record.id.clone(),
                what: format!("ratio: {} to {}", base.what, other.what),
                group: Some("device-ratios".into()),
                threads: Some(1),
                published_ms: Some(ms / base_ms),
                predicted_ms: Some(is.0 / was.0),
                anchor: Some("ratio".into()),
                class: Some(was.1.class.0),
                class_mark: Some(was.1.class.1),
                ..Validated::default()
            }));
        }
    }
    Ok(out)
}
