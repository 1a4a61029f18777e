//! The split of captured boots: which nodes had deferred pages, and how much memory
//! was available before they came.

mod boot_facts;

use boot_facts::Boot;
use pageinit::kernel::deferral::split;
use pageinit::pfn::{PhysRange, total_pages};
use std::path::Path;

#[test]
fn nodes_with_deferred_pages_are_those_of_the_log() {
    let mut compared = 0;
    for boot in boot_facts::all() {
        let nodes = split(&boot.split_input(), &boot.model());
        let model: Vec<u32> =
            nodes.iter().filter(|n| n.first_deferred_pfn.is_some()).map(|n| n.nid.0).collect();
        assert_eq!(model, boot.deferred_nodes(), "{}", boot.id);
        compared += 1;
    }
    eprintln!("{compared} boots compared");
}

/// A boot's page ranges and available KiB at its `Memory:` line.
fn available(boot: &Boot) -> Option<(u64, Vec<PhysRange>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/golden/available");
    let text = std::fs::read_to_string(folder.join(format!("{}.txt", boot.id))).ok()?;
    let page = |t: &str| u64::from_str_radix(t.trim_start_matches("0x"), 16).unwrap() * 4096;
    let (mut kib, mut reserved) = (0, Vec::new());
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        match line.split_once(' ').unwrap() {
            ("available_kib", n) => kib = n.parse().unwrap(),
            (start, end) => reserved.push(PhysRange::new(page(start), page(end))),
        }
    }
    Some((kib, reserved))
}

/// Pages that `preallocate_vmalloc_pages` takes between the frees and the line: a table
/// for every entry of the top level in the vmalloc area, which has 32 TiB or, with five
/// levels, 12800 TiB (`arch/x86/mm/init_64.c: mem_init`, v5.10).
fn vmalloc_tables(boot: &Boot) -> u64 {
    let five_levels = boot.id.ends_with("la57") && boot.model().config.pgtable_levels == 5;
    if five_levels { 12800 / 256 } else { 32 * 2 }
}

/// In x86_64 kernels 5.10 and 6.1 the line comes before the deferred phase: what is
/// available then is what the boot CPU freed, to the page.
#[test]
fn early_free_pages_explain_the_available_memory() {
    let mut compared = 0;
    for boot in boot_facts::all() {
        let Some((kib, reserved)) = available(&boot) else { continue };
        let mut input = boot.split_input();
        input.reserved = reserved;
        let nodes = split(&input, &boot.model());
        let model: u64 = nodes.iter().map(|n| total_pages(&n.early_free) * 4).sum();
        assert_eq!(model - vmalloc_tables(&boot) * 4, kib, "{}", boot.id);
        compared += 1;
    }
    eprintln!("{compared} boots compared");
}
