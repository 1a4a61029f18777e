//! What boots: command line, configuration and size of struct pages applied.
//!
//! [`boot`] lays out the machine that a kernel with a command line sees and says what
//! its nodes can do; [`options`] what else changes the cost of a page.

use super::{Question, StudyError};
use crate::kernel::boot::BootInput;
use crate::kernel::cmdline::CommandLine;
use crate::kernel::memory_map::ReservedRegion;
use crate::kernel::{KernelModel, KernelVersion, Layout, effects};
use crate::machine::Machine;
use crate::machine::bootlog::Sign;
use crate::model::{Hardware, Options, Scaling};
use crate::pfn::{self, PfnRange, PhysRange};

/// From this version on struct pages of a gigantic page's tails are not initialised with
/// the other reserved pages (`mm/hugetlb.c`, `MEMBLOCK_RSRV_NOINIT`).
pub(super) const SKIPS_TAILS: KernelVersion = KernelVersion::new(6, 7);

/// Layout and hardware of the machine as the question's command line makes it.
pub(super) fn boot(
    machine: &Machine,
    kernel: &KernelModel,
    question: &Question,
) -> Result<(Layout, Hardware), StudyError> {
    let line = question.line.as_ref();
    let affected = line.map(|line| effects::apply(machine, kernel, line));
    let booting = affected.as_ref().map_or(machine, |a| &a.machine);
    let mut input = BootInput::of_machine(booting, kernel, line)?;
    input.map.warnings.extend(affected.iter().flat_map(|a| a.notes.clone()));
    if let Some(bytes) = question.struct_page_bytes {
        input = input.with_struct_page_bytes(bytes);
    }
    if let Some(range) = question.crash_bytes.and_then(|bytes| crash_range(booting, bytes)) {
        input.map.reserved.push(ReservedRegion::plain(range));
    }
    let (mut layout, _) = input.boot()?;
    if kernel.version >= SKIPS_TAILS {
        leave_tails(&mut layout);
    }
    let mut hardware = Hardware::of(booting, &layout, question.virt, Scaling::default());
    if let Some(affected) = &affected {
        hardware.share(machine, &affected.origins);
    }
    Ok((layout, hardware))
}

/// Where a crash kernel's memory goes, as `crashkernel=SIZE,high` takes it: the top.
fn crash_range(machine: &Machine, bytes: u64) -> Option<PhysRange> {
    let ranges = machine.nodes.iter().flat_map(|n| &n.memory);
    let last = ranges.filter(|r| r.bytes() >= bytes).max_by_key(|r| r.end)?;
    Some(PhysRange::new(last.end - bytes, last.end))
}

/// Takes the tails of gigantic pages from what the boot CPU initialises with the
/// reserved pages. A head in a hundred thousand pages is not worth keeping apart.
fn leave_tails(layout: &mut Layout) {
    let pages: Vec<PfnRange> =
        layout.gigantic.iter().map(|r| r.whole_pages(layout.page_bytes)).collect();
    for node in layout.nodes.iter_mut().filter(|_| !pages.is_empty()) {
        node.early.reserved = pfn::subtract(&node.early.reserved, &pages);
        node.pg_reserved = pfn::subtract(&node.pg_reserved, &pages);
    }
}

/// The question's options with those of command line, configuration and layout.
pub(super) fn options(
    machine: &Machine,
    layout: &Layout,
    line: Option<&CommandLine>,
    question: &Question,
) -> Options {
    let config = &layout.kernel.config;
    let writes = |l: &CommandLine| l.init_on_free == Some(true) || l.page_poison == Some(true);
    let seen = |signs: &[Sign]| {
        question.log.as_deref().is_some_and(|log| signs.iter().any(|sign| log.has(*sign)))
    };
    let writes_seen = seen(&[Sign::PagePoison, Sign::InitOnFree]);
    let debug_seen = seen(&[Sign::Kasan, Sign::Kmsan, Sign::Lockdep, Sign::DebugPagealloc]);
    // Hardware tags cost next to nothing; shadow memory is checked by every access.
    let shadow = config.kasan_generic || config.kasan_sw_tags;
    Options {
        poison: question.options.poison || line.is_some_and(writes) || writes_seen,
        debug: question.options.debug || shadow || debug_seen,
        page_bytes: machine.page_bytes,
        struct_page_bytes: layout.struct_page_bytes,
    }
}
