//! The built-in machines, `@name` on the command line.
//!
//! [`names`] lists them and [`load`] reads one. They are machine TOML in `topology/`,
//! embedded in the binary; each says in a comment where its numbers come from and
//! which of them are assumed.

use super::{Machine, MachineError, file};
use crate::nearest::nearest;

/// The built-in files by name, in the order of the list for people: by architecture,
/// then from small to large.
const FILES: [(&str, &str); 18] = [
    ("vm-2c", include_str!("../../topology/vm-2c.toml")),
    ("laptop-16g", include_str!("../../topology/laptop-16g.toml")),
    ("1n-epyc7551-64g", include_str!("../../topology/1n-epyc7551-64g.toml")),
    ("2n-haswell-256g", include_str!("../../topology/2n-haswell-256g.toml")),
    ("2n-icelake-512g", include_str!("../../topology/2n-icelake-512g.toml")),
    ("2s-epyc-8n", include_str!("../../topology/2s-epyc-8n.toml")),
    ("2n-skylake-768g", include_str!("../../topology/2n-skylake-768g.toml")),
    ("8n-e7-8895v3-1t", include_str!("../../topology/8n-e7-8895v3-1t.toml")),
    ("4n-xeon8180", include_str!("../../topology/4n-xeon8180.toml")),
    ("2n-cascadelake-3t", include_str!("../../topology/2n-cascadelake-3t.toml")),
    ("8n-cxl-4.5t", include_str!("../../topology/8n-cxl-4.5t.toml")),
    ("16n-hp-12t", include_str!("../../topology/16n-hp-12t.toml")),
    ("16n-hp-24t", include_str!("../../topology/16n-hp-24t.toml")),
    ("1n-altra", include_str!("../../topology/1n-altra.toml")),
    ("arm64-64k", include_str!("../../topology/arm64-64k.toml")),
    ("16n-power-32t", include_str!("../../topology/16n-power-32t.toml")),
    ("1n-s390x", include_str!("../../topology/1n-s390x.toml")),
    ("32n-sparc-m6-32t", include_str!("../../topology/32n-sparc-m6-32t.toml")),
];

/// Every built-in machine's name, without `@`, and title.
pub fn names() -> Vec<(&'static str, String)> {
    let title = |name| load(name).map(|m| m.title).unwrap_or_default();
    FILES.iter().map(|&(name, _)| (name, title(name))).collect()
}

/// Reads the built-in machine of this name, with or without the `@`.
pub fn load(name: &str) -> Result<Machine, MachineError> {
    let bare = name.strip_prefix('@').unwrap_or(name);
    match FILES.iter().find(|(known, _)| *known == bare) {
        Some((known, text)) => file::parse(&format!("@{known}"), text),
        None => Err(MachineError::UnknownName {
            name: bare.into(),
            suggestion: nearest(bare, FILES.map(|(known, _)| known)).map(str::to_owned),
            known: FILES.iter().map(|(known, _)| format!("@{known}")).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Arch;
    use super::*;
    use crate::units::{GIB, TIB};

    // Typed from the sources that each file names, not from the files.
    const EXPECTED: [(&str, Arch, u64, usize, usize, u64); 18] = [
        ("vm-2c", Arch::X86_64, 4, 1, 2, 8 * GIB),
        ("laptop-16g", Arch::X86_64, 4, 1, 8, 16 * GIB),
        ("1n-epyc7551-64g", Arch::X86_64, 4, 1, 16, 64 * GIB),
        ("2n-haswell-256g", Arch::X86_64, 4, 2, 72, 256 * GIB),
        ("2n-icelake-512g", Arch::X86_64, 4, 2, 128, 512 * GIB),
        ("2s-epyc-8n", Arch::X86_64, 4, 8, 128, 512 * GIB),
        ("2n-skylake-768g", Arch::X86_64, 4, 2, 104, 768 * GIB),
        ("8n-e7-8895v3-1t", Arch::X86_64, 4, 8, 288, TIB),
        ("4n-xeon8180", Arch::X86_64, 4, 4, 224, 1536 * GIB),
        ("2n-cascadelake-3t", Arch::X86_64, 4, 2, 104, 3 * TIB),
        ("8n-cxl-4.5t", Arch::X86_64, 4, 8, 896, 4608 * GIB),
        ("16n-hp-12t", Arch::X86_64, 4, 16, 480, 12 * TIB),
        ("16n-hp-24t", Arch::X86_64, 4, 16, 480, 24 * TIB),
        ("1n-altra", Arch::Arm64, 4, 1, 32, 32 * GIB),
        ("arm64-64k", Arch::Arm64, 64, 2, 160, 512 * GIB),
        ("16n-power-32t", Arch::Ppc64, 64, 16, 1536, 32 * TIB),
        ("1n-s390x", Arch::S390x, 4, 1, 16, 512 * GIB),
        ("32n-sparc-m6-32t", Arch::Sparc64, 8, 32, 3072, 32 * TIB),
    ];

    #[test]
    fn every_machine_is_what_its_source_says() {
        assert_eq!(EXPECTED.len(), FILES.len());
        for (name, arch, page_kib, nodes, cpus, bytes) in EXPECTED {
            let machine = load(name).unwrap_or_else(|e| panic!("{name}: {e}"));
            let got = (machine.arch, machine.page_bytes >> 10, machine.nodes.len());
            assert_eq!(got, (arch, page_kib, nodes), "{name}");
            assert_eq!((machine.cpus.len(), machine.memory_bytes()), (cpus, bytes), "{name}");
            assert_eq!(machine.name, format!("@{name}"));
            assert!(nodes == 1 || machine.distances.is_some(), "{name}");
        }
    }

    #[test]
    fn every_file_says_where_its_numbers_come_from() {
        for (name, text) in FILES {
            assert!(text.starts_with("# ") && text.contains("ssumed"), "{name}");
            assert!(text.lines().all(|l| l.chars().count() <= 110), "{name}");
        }
    }

    #[test]
    fn details_of_the_sources() {
        let skylake = load("@2n-skylake-768g").unwrap();
        assert_eq!((skylake.smt(), skylake.nodes[1].memory_bytes()), (2, 384 * GIB));
        assert_eq!(skylake.nodes[0].cpus.len(), 52);
        let cxl = load("8n-cxl-4.5t").unwrap();
        assert!(cxl.nodes[7].cpus.is_empty() && cxl.nodes[7].memory_bytes() == TIB);
        assert_eq!(cxl.nearest_with_cpus(cxl.nodes[7].nid).unwrap().nid, cxl.nodes[0].nid);
        let epyc = load("2s-epyc-8n").unwrap();
        assert_eq!(epyc.cpus.iter().map(|c| c.package).max(), Some(1));
        assert_eq!(load("32n-sparc-m6-32t").unwrap().smt(), 8);
    }

    #[test]
    fn a_wrong_name_gets_the_nearest_one() {
        let suggestion = |name: &str| match load(name) {
            Err(MachineError::UnknownName { suggestion, known, .. }) => {
                assert_eq!(known.len(), FILES.len());
                suggestion
            }
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(suggestion("@2n-skylak-768g").as_deref(), Some("2n-skylake-768g"));
        assert_eq!(suggestion("skylake").as_deref(), Some("2n-skylake-768g"));
        assert_eq!(suggestion("@VM-2C").as_deref(), Some("vm-2c"));
        assert_eq!(suggestion("quite-something-else"), None);
        assert_eq!(suggestion("@"), None);
    }
}
