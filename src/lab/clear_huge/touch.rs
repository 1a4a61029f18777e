//! Allocate and touch: what a page fault pays for clearing.
//!
//! As in the discussion 100 MB are mapped and one byte of every page is written; here
//! with huge pages refused, asked for, and switched on for everybody.

use super::{Options, SUBPAGE_BYTES};
use crate::host::error::HostError;
use crate::host::region::{HugePages, Region};
use crate::host::setting::{self, SettingGuard};
use crate::host::thp;
use crate::lab::{Lab, LabError, Samples};
use crate::record::lab::{LabPoint, LabRecord, factors};
use crate::warning::Warning;
use std::path::{Path, PathBuf};

/// One way of asking for huge pages.
type Mode = (&'static str, HugePages);

const MODES: [Mode; 3] = [
    ("off", HugePages::Refused),
    ("madvise", HugePages::Asked),
    // Under the setting `always` only.
    ("on", HugePages::Unasked),
];

/// Runs the part; whether it was finished.
pub(super) fn part(
    lab: &Lab<'_>,
    options: &Options,
    record: &mut LabRecord,
) -> Result<bool, LabError> {
    let (guard, on) = switch_on(options, record);
    let modes = if on { &MODES[..] } else { &MODES[..2] };
    let bytes = usize::try_from(options.touch_bytes).unwrap_or(usize::MAX);
    let mut huge_faults = [0; MODES.len()];
    let points = |samples: &Samples| -> Vec<Option<LabPoint>> {
        let both = modes.iter().zip(&samples.of_case);
        let point = |(mode, samples): (&Mode, &Vec<u64>)| {
            let factors = factors([("huge_pages", mode.0.into())]);
            LabPoint::measured("touch", factors, ("buffer", 1), samples, lab.seed)
        };
        both.map(point).collect()
    };
    let so_far = |samples: &Samples| {
        let mut record = record.clone();
        record.points.extend(points(samples).into_iter().flatten());
        record
    };
    let run_one = |at: usize| {
        let before = thp::vmstat(Path::new("/"), "thp_fault_alloc");
        let ns = lab.undisturbed(|| touch(lab, bytes, modes[at]))?;
        let after = thp::vmstat(Path::new("/"), "thp_fault_alloc");
        huge_faults[at] = after.zip(before).map_or(0, |(a, b)| a.saturating_sub(b));
        Ok::<_, LabError>(ns)
    };
    let samples = lab.rounds("touch", (modes.len(), lab.runs, 10), run_one, so_far);
    put_back(guard, record);
    let samples = samples?;
    for (point, huge) in points(&samples).into_iter().zip(huge_faults) {
        record.points.extend(point.map(|mut point| {
            point.counts.insert("last_run_huge_faults".into(), huge);
            point
        }));
    }
    Ok(samples.complete)
}

/// Maps and touches; unmapping is not timed.
fn touch(lab: &Lab<'_>, bytes: usize, (name, huge): Mode) -> Result<(u64, u64), LabError> {
    let step = SUBPAGE_BYTES as usize;
    let (time, region) = lab.timed(|| {
        let mut region = Region::map(bytes, huge)?;
        region.touch(0..bytes, step, 0x5a);
        Ok::<_, HostError>(region)
    });
    let region = region?;
    if !region.holds(step, 0x5a) {
        let found = "a page does not hold its byte and zeroes".into();
        return Err(LabError::WrongData { what: format!("touching, huge pages {name}"), found });
    }
    Ok(time)
}

/// Switches huge pages on for everybody, if that may be; whether they are on.
fn switch_on(options: &Options, record: &mut LabRecord) -> (Option<SettingGuard>, bool) {
    let path = PathBuf::from(thp::ENABLED);
    if setting::read(&path).is_ok_and(|value| value == "always") {
        return (None, true);
    }
    let refused = if !options.settings {
        "--no-settings forbids it".to_owned()
    } else {
        match SettingGuard::save(std::slice::from_ref(&path)) {
            Ok(guard) => match guard.set(&path, "always") {
                Ok(()) => return (Some(guard), true),
                Err(error) => error.to_string(),
            },
            Err(error) => error.to_string(),
        }
    };
    let text = format!("huge pages are not switched on for everybody: {refused}");
    record.head.warnings.push(Warning::new(
        "no-huge-pages-on",
        text,
        format!("write always to {} to measure that row", thp::ENABLED),
    ));
    (None, false)
}

fn put_back(guard: Option<SettingGuard>, record: &mut LabRecord) {
    for path in guard.map(SettingGuard::restore).unwrap_or_default() {
        record.head.warnings.push(not_restored(&path));
    }
}

/// What is said when a setting could not be put back.
pub(in crate::lab) fn not_restored(path: &Path) -> Warning {
    Warning::new(
        "setting-not-restored",
        format!("{} does not hold what it held before", path.display()),
        "write its old value back by hand",
    )
}
