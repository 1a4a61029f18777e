//! Three small plans that take the prefetch effect apart.
//!
//! Each does one thing to the deferred pages and frees nothing. `study` runs them
//! between the strategies: the cost of the field writes on cold lines, of eight zero
//! stores alone, and of both one after the other on the same line.

use super::strategies::{Maker, step};
use super::{BootPlan, Grain, PageOp, PhaseName, Step, Strategy};
use crate::kernel::Layout;
use serde::{Deserialize, Serialize};

/// One of the three measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Probe {
    /// The field writes on lines that no cache holds.
    FieldsCold,
    /// Eight zero stores per line and nothing else.
    ZeroOnly,
    /// Eight zero stores, then the field writes, line by line.
    ZeroThenFields,
}

impl Probe {
    /// All probes.
    pub const ALL: [Self; 3] = [Self::FieldsCold, Self::ZeroOnly, Self::ZeroThenFields];

    /// The name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FieldsCold => "probe-fields-cold",
            Self::ZeroOnly => "probe-zero-only",
            Self::ZeroThenFields => "probe-zero-then-fields",
        }
    }

    /// The one operation of the probe.
    pub const fn op(self) -> PageOp {
        match self {
            Self::FieldsCold => PageOp::Fields,
            Self::ZeroOnly => PageOp::Zero,
            Self::ZeroThenFields => PageOp::ZeroLineFields,
        }
    }

    /// The plan: one phase over the deferred pages of all nodes.
    pub fn plan(self, layout: &Layout) -> BootPlan {
        // The strategy only names a plan's maker; a probe uses none of its rules.
        let maker = Maker { strategy: Strategy::Deferred, layout, store: None, free: false };
        let step = match self {
            Self::ZeroOnly => Step { op: self.op(), store: Some("unrolled".into()) },
            _ => step(self.op()),
        };
        let phase = maker.node_phase(PhaseName::DeferredInit, vec![step], Grain::Block);
        maker.finish(self.name(), vec![phase])
    }
}
