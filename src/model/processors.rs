//! The table of processor classes: from a model name to what its memory does.
//!
//! [`classify`] finds the row for a name as Linux prints it or as people write it;
//! [`default_class`] stands in for unknown ones. The table is
//! `topology/processors.toml`, embedded here, with the source and mark of every row.

use super::constants::Mark;
use serde::Deserialize;
use std::sync::LazyLock;

/// One processor class.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// Its name here, for example `intel-skx`.
    pub name: String,
    /// Patterns of model names.
    models: Vec<String>,
    /// Patterns of code names, tried after all models.
    #[serde(default)]
    names: Vec<String>,
    /// Memory channels of a node with the usual setting of nodes per socket.
    pub channels_per_node: u32,
    /// Nodes of a socket with that setting.
    pub nodes_per_socket: u32,
    /// Transfers per second and channel, in millions.
    pub mts: u32,
    /// Bytes of one transfer.
    pub channel_bytes: u32,
    /// Cores of the largest socket.
    pub cores: u32,
    /// Hardware threads of a core.
    pub smt: u32,
    /// One core takes a cold line, writes it, and has it written back, in ns.
    pub w_line_ns: f64,
    /// Cost of core-bound work; 1 is a Xeon of 2014 to 2017.
    pub core_factor: f64,
    /// A line stored past the caches, as a share of `w_line_ns`.
    pub nt_ratio: f64,
    /// `FIT`, `DERIVED` or `PRIOR`.
    mark: String,
    /// Where the row comes from.
    pub source: String,
    /// Years, and what else there is to know.
    pub note: String,
}

#[derive(Deserialize)]
struct Table {
    class: Vec<Class>,
}

/// The class for processors that no row fits; its range is wide.
const UNKNOWN: &str = "unknown-server";
/// The class for guests whose hypervisor hides the processor.
const GENERIC_GUEST: &str = "generic-vm";
/// The class for SPARC processors of unknown kind.
const UNKNOWN_SPARC: &str = "sparc-unknown";

// A table that does not parse gives no classes; a test below holds it to parsing.
static CLASSES: LazyLock<Vec<Class>> = LazyLock::new(|| {
    let text = include_str!("../../topology/processors.toml");
    toml::from_str::<Table>(text).map(|t| t.class).unwrap_or_default()
});

/// The whole table.
pub fn classes() -> &'static [Class] {
    &CLASSES
}

impl Class {
    /// What the row rests on.
    pub fn mark(&self) -> Mark {
        Mark::named(&self.mark).unwrap_or(Mark::Prior)
    }

    /// Whether the processor itself is known, not only a default for it.
    pub fn is_known(&self) -> bool {
        ![UNKNOWN, GENERIC_GUEST, UNKNOWN_SPARC].contains(&self.name.as_str())
    }

    /// Whether the name says that a hypervisor hides the processor.
    pub fn is_generic_guest(&self) -> bool {
        self.name == GENERIC_GUEST
    }

    /// Peak memory rate of one channel in GB/s, which is bytes per ns.
    pub fn channel_gb_s(&self, mts: u32) -> f64 {
        f64::from(mts) * f64::from(self.channel_bytes) / 1000.0
    }
}

/// The class that a model name or a description means; the default where none does.
pub fn classify(name: Option<&str>) -> &'static Class {
    let Some(name) = name.map(normalise).filter(|n| !n.is_empty()) else { return default_class() };
    let fits = |patterns: &[String]| patterns.iter().any(|p| found(p, &name));
    let by_model = || CLASSES.iter().find(|c| fits(&c.models));
    by_model().or_else(|| CLASSES.iter().find(|c| fits(&c.names))).unwrap_or_else(default_class)
}

/// The class of processors of which nothing is known.
pub fn default_class() -> &'static Class {
    static NOTHING: LazyLock<Class> = LazyLock::new(|| Class {
        name: UNKNOWN.into(),
        models: Vec::new(),
        names: Vec::new(),
        channels_per_node: 6,
        nodes_per_socket: 1,
        mts: 2666,
        channel_bytes: 8,
        cores: 24,
        smt: 2,
        w_line_ns: 9.0,
        core_factor: 1.0,
        nt_ratio: 0.5,
        mark: "PRIOR".into(),
        source: "stated default".into(),
        note: "nothing known".into(),
    });
    CLASSES.iter().find(|c| c.name == UNKNOWN).unwrap_or(&NOTHING)
}

/// Lower case, without marks and filler words, single spaces.
fn normalise(name: &str) -> String {
    let mut text = name.to_ascii_lowercase();
    for mark in ["(r)", "(tm)", "(c)", "™", "®"] {
        text = text.replace(mark, " ");
    }
    let words = text.split_whitespace().filter(|w| !["cpu", "processor", "intel"].contains(w));
    words.collect::<Vec<_>>().join(" ").replace("- ", "-")
}

/// Whether the pattern fits somewhere in the name, from word border to word border.
fn found(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let border = |at: usize| {
        let before = at.checked_sub(1).and_then(|i| name.get(i));
        !before.is_some_and(u8::is_ascii_alphanumeric)
    };
    (0..name.len()).filter(|at| border(*at)).any(|at| fits(pattern, &name[at..]))
}

/// Whether a pattern fits the start of a text and ends on a word border there.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let Some((&first, rest)) = pattern.split_first() else {
        return !text.first().is_some_and(u8::is_ascii_alphanumeric);
    };
    if first == b'*' {
        return (0..=text.len()).any(|skip| fits(rest, &text[skip..]));
    }
    let Some((&letter, left)) = text.split_first() else { return false };
    let same = match first {
        b'#' => letter.is_ascii_digit(),
        b'?' => letter.is_ascii_alphanumeric(),
        _ => letter == first,
    };
    same && fits(rest, left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_table_parses_and_every_row_is_sane() {
        assert!(classes().len() > 60, "{}", classes().len());
        for class in classes() {
            let name = &class.name;
            assert!(Mark::named(&class.mark).is_some(), "{name}: {}", class.mark);
            assert!(class.w_line_ns > 1.0 && class.w_line_ns < 40.0, "{name}");
            assert!(class.core_factor > 0.2 && class.core_factor < 4.0, "{name}");
            assert!(class.nt_ratio > 0.1 && class.nt_ratio < 1.5, "{name}");
            assert!(class.channels_per_node > 0 && class.cores > 0 && class.smt > 0, "{name}");
            assert!(!class.source.is_empty() && !class.note.is_empty(), "{name}");
        }
    }

    #[test]
    fn names_as_linux_and_people_write_them() {
        let expect = [
            ("Intel(R) Xeon(R) Platinum 8167M CPU @ 2.00GHz", "intel-skx"),
            ("Intel Xeon Platinum 8270CL (Skylakex 6:85:7), Oracle X8-2", "intel-clx"),
            ("Intel(R) Xeon(R) CPU E5-2699 v3 @ 2.30GHz", "intel-hsw-ep"),
            ("Intel(R) Xeon(R) CPU E5-2680 0 @ 2.70GHz", "intel-snb-ep"),
            ("Intel(R) Xeon(R) CPU E7-8895 v3 @ 2.60GHz", "intel-hsw-ex"),
            ("Intel(R) Xeon(R) CPU E7- 4870 @ 2.40GHz", "intel-nehalem-ex"),
            ("Intel Ivy Bridge-EX (E7 v2), HP 16-socket", "intel-ivb-ex"),
            ("HP Superdome2 16s x86 (DragonHawk)", "intel-ivb-ex"),
            ("Intel(R) Xeon(R) Platinum 8380H CPU @ 2.90GHz", "intel-cpx"),
            ("Intel(R) Xeon(R) Platinum 8358 CPU @ 2.60GHz", "intel-icx"),
            ("INTEL(R) XEON(R) PLATINUM 8592+", "intel-emr"),
            ("Intel(R) Xeon(R) 6980P", "intel-gnr-ap"),
            ("Intel(R) Xeon(R) CPU @ 2.20GHz", "generic-vm"),
            ("Intel(R) Xeon(R) Processor @ 2.60GHz", "generic-vm"),
            ("QEMU Virtual CPU version 2.5+", "generic-vm"),
            ("AMD EPYC Processor (with IBPB)", "generic-vm"),
            ("AMD EPYC 7551 32-Core Processor", "amd-zen1-epyc"),
            ("AMD EPYC 7742 64-Core Processor", "amd-zen2-epyc"),
            ("AMD EPYC 7763 64-Core Processor", "amd-zen3-epyc"),
            ("AMD EPYC 9654 96-Core Processor", "amd-zen4-epyc"),
            ("AMD EPYC 9755 128-Core Processor", "amd-zen5-epyc"),
            ("AMD Milan", "amd-zen3-epyc"),
            ("AMD Ryzen 9 5950X 16-Core Processor", "amd-ryzen-zen3"),
            ("AMD Ryzen Threadripper 3990X 64-Core Processor", "amd-threadripper"),
            ("Intel(R) Core(TM) i7-6700K CPU @ 4.00GHz", "intel-client-skl"),
            ("12th Gen Intel(R) Core(TM) i7-12700K", "intel-client-adl"),
            ("Intel Core i7-1165G7 @ 2.80GHz (Tiger Lake laptop)", "intel-client-adl"),
            ("Intel Ice Lake server", "intel-icx"),
            ("SPARC M6 3600 MHz", "sparc-m6"),
            ("SPARC-M7", "sparc-m7"),
            ("SPARC (32 nodes)", "sparc-unknown"),
            ("POWER9, altivec supported", "power9"),
            ("SGI UV", "unknown-server"),
            ("", "unknown-server"),
        ];
        for (name, class) in expect {
            assert_eq!(classify(Some(name)).name, class, "{name}");
        }
        assert_eq!(classify(None).name, "unknown-server");
    }

    proptest! {
        #[test]
        fn any_name_has_a_class(name in ".{0,60}") {
            prop_assert!(!classify(Some(&name)).name.is_empty());
        }
    }
}
