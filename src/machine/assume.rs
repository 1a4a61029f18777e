//! What is filled in where an input is silent: addresses, page size, architecture.
//!
//! hwloc and most descriptions know how much memory a node has, not where.
//! [`place`] lays such nodes one after another and says so in the machine's
//! `source` and warnings. [`section_bytes`] and [`default_page_bytes`] are Linux's
//! own values. Used by every front end; knows no input format.

use super::{Arch, Machine, Node, Source};
use crate::pfn::{Nid, PhysRange};
use crate::units::{Bytes, GIB, MIB};
use crate::warning::{Origin, Warning};

/// The first byte that is no physical address (52 bits, as x86_64 and arm64 have).
pub const PHYS_LIMIT: u64 = 1 << 52;

/// Where x86 firmware leaves room for devices: RAM ends here and goes on at 4 GiB.
const X86_HOLE: PhysRange = PhysRange::new(3 * GIB, 4 * GIB);

/// The rule of [`place`], for `source`.
const RULE: &str = "nodes one after another from address 0, starting on memory sections";

/// Bytes of a memory section (`SECTION_SIZE_BITS` of each architecture's
/// `sparsemem.h`, v6.12).
///
/// arm64 has 128 MiB with pages of 4 and 16 KiB and 512 MiB with 64 KiB.
pub const fn section_bytes(arch: Arch, page_bytes: u64) -> u64 {
    match arch {
        Arch::Arm64 if page_bytes >= 65_536 => 512 * MIB,
        Arch::X86_64 | Arch::Arm64 | Arch::Riscv64 | Arch::S390x => 128 * MIB,
        Arch::Ppc64 => 16 * MIB,
        Arch::Sparc64 => GIB,
    }
}

/// The base page size that distributions build for `arch`.
pub const fn default_page_bytes(arch: Arch) -> u64 {
    match arch {
        Arch::Ppc64 => 65_536,
        Arch::Sparc64 => 8192,
        _ => 4096,
    }
}

/// The architecture that a name of `uname -m`, hwloc or Debian means.
pub fn arch_of(name: &str) -> Option<Arch> {
    Some(match name.trim().to_ascii_lowercase().as_str() {
        "x86_64" | "amd64" | "x86-64" => Arch::X86_64,
        "aarch64" | "arm64" => Arch::Arm64,
        "ppc64" | "ppc64le" | "ppc64el" | "powerpc64" | "powerpc64le" => Arch::Ppc64,
        "s390x" => Arch::S390x,
        "riscv64" => Arch::Riscv64,
        "sparc64" | "sun4u" | "sun4v" => Arch::Sparc64,
        _ => return None,
    })
}

/// The total does not fit below [`PHYS_LIMIT`].
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("node {nid} with {size} does not fit below {limit}, the end of physical addresses",
    size = Bytes(*.bytes), limit = Bytes(PHYS_LIMIT))]
pub struct TooMuchMemory {
    /// The node.
    pub nid: Nid,
    /// Its memory in bytes.
    pub bytes: u64,
}

/// Gives every node of the machine as many bytes as `bytes_of` says, rounded down
/// to whole pages, one node after another in the order of `machine.nodes`.
///
/// Sets `source.memory_ranges` and adds the warning `assumed-ranges`.
pub fn place(machine: &mut Machine, bytes_of: impl Fn(&Node) -> u64) -> Result<(), TooMuchMemory> {
    let section = section_bytes(machine.arch, machine.page_bytes);
    let mut next = 0;
    for node in &mut machine.nodes {
        let bytes = bytes_of(node);
        let pages = bytes / machine.page_bytes.max(1);
        let whole = pages.saturating_mul(machine.page_bytes);
        let ranges = ranges_from(next, whole, machine.arch);
        let end = ranges.as_ref().map(|r| r.last().map_or(next, |last| last.end));
        let end = end.and_then(|end: u64| end.checked_next_multiple_of(section));
        let too_much = TooMuchMemory { nid: node.nid, bytes };
        next = end.filter(|&end| end <= PHYS_LIMIT).ok_or(too_much)?;
        node.memory = ranges.unwrap_or_default();
    }
    machine.source.memory_ranges = Source::new(Origin::Assumed, RULE);
    machine.warnings.push(Warning::new(
        "assumed-ranges",
        format!("only sizes of memory are known, addresses are assumed: {RULE}"),
        "give ranges in a machine file where the real ones matter",
    ));
    Ok(())
}

/// `bytes` from `start` upwards, around x86's hole; `None` when addresses run out.
fn ranges_from(start: u64, bytes: u64, arch: Arch) -> Option<Vec<PhysRange>> {
    let (hole_start, hole_end) = match arch {
        Arch::X86_64 => (X86_HOLE.start, X86_HOLE.end),
        _ => (0, 0),
    };
    let below = hole_start.saturating_sub(start).min(bytes);
    let above = bytes - below;
    let high = start.saturating_add(below).max(if above > 0 { hole_end } else { 0 });
    let parts = [
        PhysRange::new(start, start.checked_add(below)?),
        PhysRange::new(high, high.checked_add(above)?),
    ];
    Some(parts.into_iter().filter(|r| !r.is_empty()).collect())
}

#[cfg(test)]
mod tests {
    use super::super::check::tests::blank;
    use super::*;
    use proptest::prelude::*;

    fn placed(arch: Arch, page_bytes: u64, sizes: &[u64]) -> Result<Machine, TooMuchMemory> {
        let mut machine = blank(arch, page_bytes, sizes.len());
        place(&mut machine, |n| sizes[n.nid.0 as usize])?;
        Ok(machine)
    }

    // GiB     0     2  3  4     5     6
    // node 0  |=====|                       2 GiB below the hole
    // node 1        |==|  |=====|           2 GiB, cut by it
    // node 2                    |=====|     1 GiB above it
    #[test]
    fn x86_memory_goes_around_the_hole() {
        let machine = placed(Arch::X86_64, 4096, &[2 * GIB, 2 * GIB, GIB]).unwrap();
        let got: Vec<_> = machine.nodes.iter().map(|n| n.memory.clone()).collect();
        let range = |s: u64, e: u64| PhysRange::new(s * GIB, e * GIB);
        assert_eq!(got[0], [range(0, 2)]);
        assert_eq!(got[1], [range(2, 3), range(4, 5)]);
        assert_eq!(got[2], [range(5, 6)]);
        assert_eq!(machine.source.memory_ranges.origin, Origin::Assumed);
        assert_eq!(machine.warnings[0].code, "assumed-ranges");
    }

    #[test]
    fn other_architectures_have_no_hole_and_their_own_sections() {
        let machine = placed(Arch::Arm64, 65_536, &[5 * GIB + MIB, GIB]).unwrap();
        assert_eq!(machine.nodes[0].memory, [PhysRange::new(0, 5 * GIB + MIB)]);
        let start = 5 * GIB + 512 * MIB;
        assert_eq!(machine.nodes[1].memory, [PhysRange::new(start, start + GIB)]);
    }

    #[test]
    fn memory_ends_with_the_physical_addresses() {
        assert!(placed(Arch::S390x, 4096, &[PHYS_LIMIT]).is_ok());
        assert!(placed(Arch::X86_64, 4096, &[PHYS_LIMIT]).is_err());
        assert!(placed(Arch::X86_64, 4096, &[u64::MAX, 1]).is_err());
    }

    proptest! {
        #[test]
        fn nodes_keep_their_whole_pages_and_do_not_overlap(
            sizes in prop::collection::vec(0u64..10 * GIB, 1..6), x86: bool,
        ) {
            let arch = if x86 { Arch::X86_64 } else { Arch::Ppc64 };
            let machine = placed(arch, default_page_bytes(arch), &sizes).unwrap();
            let mut end = 0;
            for (node, size) in machine.nodes.iter().zip(&sizes) {
                prop_assert_eq!(node.memory_bytes(), size - size % machine.page_bytes);
                if let Some(first) = node.memory.first() {
                    prop_assert!(first.start.is_multiple_of(section_bytes(arch, 4096)));
                }
                for range in &node.memory {
                    prop_assert!(range.start >= end && !range.is_empty());
                    prop_assert!(arch != Arch::X86_64 || range.intersect(X86_HOLE).is_none());
                    end = range.end;
                }
            }
        }
    }
}
