//! Release strings: a version, a patch level and what a distribution added.
//!
//! [`Release`] parses what `uname -r` prints. Stable and distribution kernels carry
//! rules of later versions; [`Release::has`] answers for the ones known. Where only
//! a late release was read, the first one with a rule is recalled, and
//! `docs/kernel-eras.md` says so.

use super::version::{KernelVersion, VersionError};
use std::str::FromStr;

/// What `uname -r` says, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// Major and minor number.
    pub version: KernelVersion,
    /// The third number; for `X.Y.0-N-flavour` of a distribution, whose third number
    /// says nothing, the highest, because such kernels follow the stable series.
    pub patch: u32,
    /// The text as given.
    pub text: String,
}

/// Rules of later versions that went into stable series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backport {
    /// The early limit counts reserved memory (4.13).
    ReservedInLimit,
    /// The deferred phase leaves interrupts on (5.8).
    InterruptsOn,
    /// The early walk compares with the zone's end, not with the region's (5.11).
    ZoneEnd,
    /// Holes take node and zone of the region behind them (5.12).
    NeighbourHoles,
}

/// Series, and the first release in it that has a rule.
const BACKPORTS: [(Backport, KernelVersion, u32); 6] = [
    (Backport::ReservedInLimit, KernelVersion::new(4, 4), 155),
    (Backport::InterruptsOn, KernelVersion::new(5, 4), 47),
    (Backport::InterruptsOn, KernelVersion::new(5, 7), 3),
    (Backport::ZoneEnd, KernelVersion::new(5, 10), 5),
    (Backport::NeighbourHoles, KernelVersion::new(5, 10), 25),
    (Backport::NeighbourHoles, KernelVersion::new(5, 11), 8),
];

impl Release {
    /// The first release of a version, as it left mainline.
    pub fn mainline(version: KernelVersion) -> Self {
        Self { version, patch: 0, text: version.to_string() }
    }

    /// Whether a stable release of this series brought `rule` by now.
    pub fn has(&self, rule: Backport) -> bool {
        BACKPORTS
            .iter()
            .any(|&(b, series, first)| b == rule && series == self.version && self.patch >= first)
    }
}

impl FromStr for Release {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        let version = text.parse()?;
        let third = text.trim().splitn(3, '.').nth(2).unwrap_or("");
        let digits = third.split(|c: char| !c.is_ascii_digit()).next().unwrap_or("");
        let patch = digits.parse().unwrap_or(0);
        let behind = &third[digits.len()..];
        let follows_stable = patch == 0 && !digits.is_empty() && is_abi_number(behind);
        let patch = if follows_stable { u32::MAX } else { patch };
        Ok(Self { version, patch, text: text.trim().into() })
    }
}

/// Whether `-32-cloud-amd64` or the like follows: the number of a distribution's
/// binary interface. Release candidates (`-rc7`) have no number there.
fn is_abi_number(behind: &str) -> bool {
    behind.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(text: &str) -> Release {
        text.parse().unwrap()
    }

    #[test]
    fn a_distribution_follows_the_stable_series() {
        assert_eq!(release("6.12.117+deb13-cloud-amd64").patch, 117);
        assert_eq!(release("5.10.0-32-cloud-amd64").patch, u32::MAX);
        assert_eq!(release("5.10.0").patch, 0);
        assert_eq!(release("7.3.0-rc7").patch, 0);
        assert_eq!(release("7.3").patch, 0);
        assert_eq!(release("5.4.0-150-generic").version, KernelVersion::new(5, 4));
    }

    #[test]
    fn backports_begin_at_a_release_of_their_series() {
        assert!(!release("5.10.0").has(Backport::ZoneEnd));
        assert!(release("5.10.223").has(Backport::ZoneEnd));
        assert!(release("5.10.0-32-amd64").has(Backport::NeighbourHoles));
        assert!(!release("5.9.200").has(Backport::ZoneEnd));
        assert!(!release("4.4.0").has(Backport::ReservedInLimit));
    }
}
