//! How sure a prediction is: its range, and what the range means.
//!
//! [`Basis`] says what a prediction rests on; [`Range::of`] makes a range from it. The
//! widths are constants that validation holds against the published figures.

use super::constants as k;
use super::cost::Era;
use super::hardware::{Hardware, Virt};
use crate::kernel::KernelVersion;
use crate::machine::Arch;

/// What a prediction rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// A time of the same machine.
    Anchor,
    /// The processor's class.
    Class,
    /// The processor's class, in a guest.
    Guest,
    /// A default class.
    Unknown,
    /// A default class, in a guest.
    UnknownGuest,
}

/// Lowest and highest likely time, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The lower end.
    pub low_ns: f64,
    /// The upper end.
    pub high_ns: f64,
}

/// What the ranges mean, for people.
pub const MEANING: &str = "four in five of the published figures lie in their ranges";

impl Basis {
    /// What predictions for this hardware rest on.
    pub fn of(hardware: &Hardware, anchored: bool) -> Self {
        match (anchored, hardware.class.is_known(), hardware.virt) {
            (true, _, _) => Self::Anchor,
            (false, true, Virt::BareMetal) => Self::Class,
            (false, true, Virt::Guest) => Self::Guest,
            (false, false, Virt::BareMetal) => Self::Unknown,
            (false, false, Virt::Guest) => Self::UnknownGuest,
        }
    }

    /// Half the range, as a factor, for the nodes' threads.
    pub const fn factor(self) -> f64 {
        match self {
            Self::Anchor => k::RANGE_ANCHORED,
            Self::Class => k::RANGE_CLASS,
            Self::Guest => k::RANGE_GUEST,
            Self::Unknown => k::RANGE_UNKNOWN,
            Self::UnknownGuest => k::RANGE_UNKNOWN_GUEST,
        }
    }

    /// A word or two for tables and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Anchor => "anchor",
            Self::Class => "class",
            Self::Guest => "class-guest",
            Self::Unknown => "default",
            Self::UnknownGuest => "default-guest",
        }
    }
}

impl Range {
    /// The range of a time of which the boot CPU does `boot_ns` and the nodes `nodes_ns`.
    pub fn of(basis: Basis, extrapolated: bool, boot_ns: f64, nodes_ns: f64) -> Self {
        let more = if extrapolated { k::RANGE_EXTRAPOLATED } else { 1.0 };
        let nodes = basis.factor() * more;
        let boot = k::RANGE_BOOT_CPU.max(basis.factor()) * more;
        Self {
            low_ns: boot_ns / boot + nodes_ns / nodes,
            high_ns: boot_ns * boot + nodes_ns * nodes,
        }
    }

    /// The range widened by what a clock of `hz` ticks per second cannot show.
    pub fn with_ticks(self, hz: f64) -> Self {
        let tick_ns = 1e9 / hz.max(1.0);
        Self { low_ns: (self.low_ns - tick_ns).max(0.0), high_ns: self.high_ns + tick_ns }
    }

    /// Whether a time lies in it.
    pub fn holds(&self, ns: f64) -> bool {
        self.low_ns <= ns && ns <= self.high_ns
    }
}

/// Why a prediction leaves what published figures cover, if it does.
pub fn extrapolation(version: KernelVersion, arch: Arch, threads: u32) -> Option<&'static str> {
    match Era::of(version) {
        _ if arch != Arch::X86_64 && arch != Arch::Sparc64 => {
            Some("no published figure of this architecture")
        }
        Era::F => Some("no published figure of Linux 6.4 or later"),
        _ if threads > 64 => Some("no published figure with more than 64 threads per node"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_its_prediction_and_an_anchor_narrows_it() {
        let wide = Range::of(Basis::Class, false, 1e9, 1e9);
        let tight = Range::of(Basis::Anchor, false, 0.0, 2e9);
        assert!(wide.holds(2e9) && tight.holds(2e9));
        assert!(wide.high_ns - wide.low_ns > tight.high_ns - tight.low_ns);
        assert!(tight.high_ns / tight.low_ns < 1.25);
        assert!(!tight.holds(2.4e9) && tight.with_ticks(4.0).holds(2.4e9));
    }
}
