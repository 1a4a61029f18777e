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
    /// `N` of a distribution's `X.Y.0-N-flavour`.
    pub build: Option<u32>,
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
    /// A section's usage map has an `rcu_head` (6.8).
    UsageRcuHead,
    /// s390x: tables of base pages fill a whole page (6.17).
    WholePageTables,
}

/// Series, the first release in it that has a rule, and Debian's first `.0-N` of the
/// series with it where builds without are about.
const BACKPORTS: [(Backport, KernelVersion, u32, Option<u32>); 14] = [
    (Backport::ReservedInLimit, KernelVersion::new(4, 4), 155, None),
    (Backport::InterruptsOn, KernelVersion::new(5, 4), 47, None),
    (Backport::InterruptsOn, KernelVersion::new(5, 7), 3, None),
    (Backport::ZoneEnd, KernelVersion::new(5, 10), 5, None),
    (Backport::NeighbourHoles, KernelVersion::new(5, 10), 25, None),
    (Backport::NeighbourHoles, KernelVersion::new(5, 11), 8, None),
    (Backport::UsageRcuHead, KernelVersion::new(5, 10), 210, Some(29)),
    (Backport::UsageRcuHead, KernelVersion::new(5, 15), 149, None),
    (Backport::UsageRcuHead, KernelVersion::new(6, 1), 76, Some(18)),
    (Backport::UsageRcuHead, KernelVersion::new(6, 6), 15, None),
    (Backport::UsageRcuHead, KernelVersion::new(6, 7), 3, None),
    (Backport::WholePageTables, KernelVersion::new(6, 12), 42, None),
    (Backport::WholePageTables, KernelVersion::new(6, 15), 10, None),
    (Backport::WholePageTables, KernelVersion::new(6, 16), 1, None),
];

impl Release {
    /// The first release of a version, as it left mainline.
    pub fn mainline(version: KernelVersion) -> Self {
        Self { version, patch: 0, build: None, text: version.to_string() }
    }

    /// Whether a stable release of this series brought `rule` by now.
    pub fn has(&self, rule: Backport) -> bool {
        let named = BACKPORTS.iter().find(|(b, series, ..)| *b == rule && *series == self.version);
        named.is_some_and(|&(_, _, patch, build)| match (self.build, build) {
            (Some(own), Some(first)) => own >= first,
            _ => self.patch >= patch,
        })
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
        let build = abi_number(behind).filter(|_| patch == 0 && !digits.is_empty());
        let patch = if build.is_some() { u32::MAX } else { patch };
        Ok(Self { version, patch, build, text: text.trim().into() })
    }
}

/// 32 in `-32-cloud-amd64`: the number of a distribution's binary interface. Release
/// candidates (`-rc7`) have no number there.
fn abi_number(behind: &str) -> Option<u32> {
    let rest = behind.strip_prefix('-')?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
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
        assert!(!release("5.10.0-8-amd64").has(Backport::UsageRcuHead));
        assert!(release("5.10.0-29-amd64").has(Backport::UsageRcuHead));
    }
}
