//! Gigantic pages of a boot: what can be asked for, and the pass over them.
//!
//! [`HugePool`] is what `--hugepages` asks for. [`gathered`] is the pass of the kernel
//! over what command line and flags set aside, and [`append`] puts it behind the phases
//! of a boot: struct pages are initialised before `hugetlb_init` runs.

use super::{Case, StudyError, whole};
use crate::machine::{Arch, Machine};
use crate::model::hugetlb::{self, Gathered, Pool};
use crate::plan::Executor;
use crate::record::estimate::{Estimate, PhaseFacts, TimelineSpan};
use crate::study::facts::executor_name;
use crate::units::{Bytes, GIB, MIB};

/// The name of the pass in records.
const PHASE: &str = "gather-gigantic";

/// Gigantic pages to allocate at boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HugePool {
    /// Bytes of one.
    pub page_bytes: u64,
    /// How many.
    pub pages: u64,
}

/// Huge pages that the buddy allocator cannot give, in bytes, ascending: as each
/// architecture's `arch_hugetlb_valid_size` has them (recalled).
const fn gigantic_sizes(arch: Arch, page_bytes: u64) -> &'static [u64] {
    match (arch, page_bytes) {
        (Arch::X86_64 | Arch::Riscv64, _) => &[GIB],
        (Arch::Arm64, 65_536) => &[512 * MIB, 16 * GIB],
        (Arch::Arm64, _) => &[32 * MIB, GIB],
        (Arch::Ppc64, _) => &[GIB, 16 * GIB],
        (Arch::S390x, _) => &[2 * GIB],
        (Arch::Sparc64, _) => &[256 * MIB, 2 * GIB, 16 * GIB],
    }
}

pub(super) fn check_pool(
    pool: HugePool,
    machine: &Machine,
    page_bytes: u64,
) -> Result<(), StudyError> {
    let wrong = |text: String| Err(StudyError::Usage(text));
    let size = Bytes(pool.page_bytes);
    let sizes = gigantic_sizes(machine.arch, page_bytes);
    if !sizes.contains(&pool.page_bytes) {
        let sizes: Vec<String> = sizes.iter().map(|b| Bytes(*b).to_string()).collect();
        return wrong(format!(
            "--hugepages {size}:{}: {} with pages of {} has gigantic pages of {}; smaller ones \
             come from the buddy allocator, after struct pages are initialised",
            pool.pages,
            machine.arch,
            Bytes(page_bytes),
            sizes.join(" and ")
        ));
    }
    let bytes = pool.page_bytes.checked_mul(pool.pages);
    let have = machine.memory_bytes();
    if pool.pages == 0 || bytes.is_none_or(|bytes| bytes > have) {
        let most = have / pool.page_bytes;
        return wrong(format!(
            "--hugepages {size}:{}: the machine has {}, room for 1 to {most}",
            pool.pages,
            Bytes(have)
        ));
    }
    Ok(())
}

/// The pass over gigantic pages, where this boot has any.
pub(super) fn gathered(case: &Case) -> Option<Gathered> {
    let (layout, setup) = (&case.layout, &case.setup);
    let line = case.line.as_ref()?;
    let huge_bytes = line.hugepages.iter().filter_map(|h| h.page_bytes).max()?;
    let bytes: u64 = layout.gigantic.iter().map(|r| r.bytes()).sum();
    (bytes > 0).then(|| {
        hugetlb::gather(
            &setup.on(&case.hardware),
            &setup.options,
            &Pool {
                version: layout.kernel.version,
                page_bytes: layout.page_bytes,
                huge_bytes,
                huge_pages: bytes / huge_bytes.max(1),
                hvo: gives_back(case),
            },
        )
    })
}

/// Whether this boot gives back the memmap of huge pages, by command line or else by
/// configuration. A struct page must divide a base page for that
/// (`mm/hugetlb_vmemmap.c: hugetlb_vmemmap_optimizable_size`, recalled).
pub(super) fn gives_back(case: &Case) -> bool {
    let config = &case.layout.kernel.config;
    let asked = case.line.as_ref().and_then(|line| line.hugetlb_free_vmemmap);
    config.hugetlb_page_optimize_vmemmap
        && case.layout.struct_page_bytes.is_power_of_two()
        && asked.unwrap_or(config.hugetlb_page_optimize_vmemmap_default_on)
}

/// The time of the pass in ns; 0 without gigantic pages.
pub(super) fn gather_ns(case: &Case) -> f64 {
    gathered(case).map_or(0.0, |g| g.total_ns())
}

/// Puts the pass at the end of a boot: `estimate` ends where it begins.
pub(super) fn append(estimate: &mut Estimate, case: &Case) {
    let Some(gathered) = gathered(case) else { return };
    let gather_ns = whole(gathered.total_ns());
    let start_ns = estimate.phases.last().map_or(0, |p| p.end_ns);
    let end_ns = start_ns.saturating_add(gather_ns);
    let with_cpus = case.hardware.nodes.iter().filter(|n| n.hw_threads > 0);
    let threaded = gathered.workers > 1;
    let nids: Vec<u32> = match threaded {
        true => with_cpus.map(|n| n.nid.0).collect(),
        false => with_cpus.map(|n| n.nid.0).take(1).collect(),
    };
    let executor = if threaded { Executor::NodeThreads } else { Executor::BootCpu };
    let executor = executor_name(executor);
    let pages = gathered.pages / nids.len().max(1) as u64;
    estimate.timeline.extend(nids.iter().map(|nid| TimelineSpan {
        phase: PHASE.into(),
        executor: executor.into(),
        nid: *nid,
        worker: 0,
        start_ns,
        end_ns,
        pages,
        bytes: pages.saturating_mul(case.layout.struct_page_bytes),
    }));
    let longest = estimate.phases.iter().map(|p| p.end_ns - p.start_ns).max();
    if Some(gather_ns) > longest {
        estimate.bound_by = "gigantic-pages".into();
    }
    estimate.phases.push(PhaseFacts {
        phase: PHASE.into(),
        executor: executor.into(),
        start_ns,
        end_ns,
        pages: gathered.pages,
        slowest_nid: None,
    });
}
