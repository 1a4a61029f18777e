//! hwloc's formats in a program without hwloc: refused in words.
//!
//! Stands in for `hwloc.rs` where the feature `hwloc` is off.

use super::{Machine, MachineError};

/// Says that hwloc is missing.
///
/// # Errors
/// [`MachineError::WithoutHwloc`], always.
pub fn from_xml(name: &str, _text: &str) -> Result<Machine, MachineError> {
    Err(MachineError::WithoutHwloc { what: format!("{name}: hwloc XML") })
}

/// Says that hwloc is missing.
///
/// # Errors
/// [`MachineError::WithoutHwloc`], always; a wrong string is refused as such.
pub fn from_synthetic(text: &str) -> Result<Machine, MachineError> {
    let bad = |problem: String| MachineError::Synthetic { text: text.into(), problem };
    super::synthetic::check(text).map_err(bad)?;
    Err(MachineError::WithoutHwloc { what: format!("the synthetic topology {text:?}") })
}
