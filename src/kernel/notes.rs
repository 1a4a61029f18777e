//! What a layout rests on: rules that are recalled, and things that are not modelled.
//!
//! [`notes`] picks the sentences of `docs/kernel-eras.md` that concern one boot, so that
//! its output can say them.

use super::boot::BootInput;
use super::cmdline::Core;
use super::version::{EarlyRule, HolesRule, KernelVersion};
use crate::machine::Arch;

/// Versions of which boots were captured, by architecture.
const CAPTURED: [(Arch, &[(u32, u32)]); 5] = [
    (Arch::X86_64, &[(5, 10), (6, 1), (6, 12), (6, 18), (7, 1), (7, 2), (7, 3)]),
    (Arch::Arm64, &[(6, 1), (6, 12), (7, 1), (7, 3)]),
    (Arch::Ppc64, &[(6, 12)]),
    (Arch::S390x, &[(6, 12)]),
    (Arch::Riscv64, &[(6, 12)]),
];

/// What is recalled or not modelled, for people; empty when nothing applies.
pub fn notes(input: &BootInput) -> Vec<String> {
    let kernel = &input.kernel;
    let version = kernel.version;
    let since = |major, minor| version >= KernelVersion::new(major, minor);
    let mut out = vec![captured(kernel.arch, version)];
    let mut note = |applies: bool, text: &str| {
        if applies {
            out.push(text.to_owned());
        }
    };
    note(
        matches!(
            kernel.early_rule,
            EarlyRule::TwoGibOrShare | EarlyRule::WithReserved | EarlyRule::SectionWithinSpan
        ),
        "early limit: read in the sources of neighbouring versions, its first release recalled",
    );
    note(
        kernel.region_bug,
        "5.8 to 5.10.4 defer only a node's last region; that 5.10.5 repaired it is recalled",
    );
    note(
        kernel.holes == HolesRule::Neighbour && !since(5, 12),
        "holes follow the rule of 5.12 by backport; nodes whose memory alternates may differ",
    );
    note(
        kernel.early_rule != EarlyRule::All && !since(4, 5),
        "not modelled: 4.2 and 4.4 never free the last run of each region",
    );
    note(!since(4, 2), "not modelled: 4.1 marks every page reserved and takes the mark away later");
    note(
        !since(5, 8) && since(4, 2),
        "not modelled: pages without memory that the sweep over a zone's span meets (up to 5.7)",
    );
    note(
        kernel.grows_on_demand,
        "not modelled: sections that an early allocation pulls out of the deferred part",
    );
    note(
        input.line.kernelcore == Some(Core::Mirror),
        "kernelcore=mirror: the sweep's skipping of mirrored regions is not modelled",
    );
    note(
        since(6, 7) && !input.line.hugepages.is_empty(),
        "gigantic pages count as reserved whole; from 6.7 HugeTLB initialises all but the first \
         struct page of each later",
    );
    out
}

fn captured(arch: Arch, version: KernelVersion) -> String {
    let list = CAPTURED.iter().find(|(a, _)| *a == arch).map_or(&[][..], |(_, list)| *list);
    let same = list.iter().any(|&(major, minor)| version == KernelVersion::new(major, minor));
    if same {
        return format!("captured: boots of Linux {version} on {arch} agree with these rules");
    }
    format!(
        "not captured: no boot of Linux {version} on {arch} was compared; its rules are read in \
         sources, or recalled where docs/kernel-eras.md says m"
    )
}
