//! The memory model against 122 captured boots.
//!
//! From memory, reservations, node data, release, configuration and command line the
//! model must produce every request of `sparse_init` with its address, everything given
//! back, and every zone, without tolerance. `EXCEPTIONS` names boots that it does
//! not reproduce yet; the table may only shrink.

use pageinit::kernel::boot::BootInput;
use pageinit::kernel::layout::{Layout, ZoneKind};
use pageinit::kernel::place::Placement;
use pageinit::machine::facts::BootFacts;
use std::path::Path;

/// Boots that the model does not reproduce, with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[];

/// How many boots there are.
const BOOTS: usize = 122;

fn boots() -> Vec<BootFacts> {
    boots_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/boots"))
}

fn boots_in(dir: &Path) -> Vec<BootFacts> {
    let mut paths: Vec<_> = std::fs::read_dir(dir)
        .unwrap_or_else(|e| panic!("{}: {e}", dir.display()))
        .map(|entry| entry.expect("entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .collect();
    paths.sort();
    paths.iter().map(|p| BootFacts::read(p).unwrap_or_else(|e| panic!("{e}"))).collect()
}

fn booted(facts: &BootFacts) -> (Layout, Placement) {
    let input = BootInput::from_facts(facts).unwrap_or_else(|e| panic!("{}: {e}", facts.id));
    input.boot().unwrap_or_else(|e| panic!("{}: {e}", facts.id))
}

fn request_mismatch(facts: &BootFacts, placement: &Placement) -> Option<String> {
    let mut modelled = placement.requests.iter();
    for (i, real) in facts.allocations.iter().enumerate() {
        let Some(ours) = modelled.next() else {
            return Some(format!("request {i}: missing, expected {real:?}"));
        };
        let same = ours.call == real.call
            && (ours.bytes, ours.align, ours.nid) == (real.bytes, real.align, real.nid)
            && (ours.min_addr, ours.max_addr) == (real.min_addr, real.max_addr)
            && ours.caller == real.caller
            && ours.start == real.start;
        if !same {
            return Some(format!("request {i}:\n  real  {real:?}\n  model {ours:?}"));
        }
    }
    modelled.next().map(|extra| format!("request too many: {extra:?}"))
}

fn free_mismatch(facts: &BootFacts, placement: &Placement) -> Option<String> {
    let real = facts.frees.as_ref()?;
    let ours: Vec<_> = placement.frees.iter().map(|f| (f.after, f.start, f.end)).collect();
    let real: Vec<_> = real.iter().map(|f| (f.after, f.range.start, f.range.end)).collect();
    (ours != real).then(|| format!("frees: real {real:x?}, model {ours:x?}"))
}

fn zone_name(zone: ZoneKind) -> &'static str {
    match zone {
        ZoneKind::Dma => "DMA",
        ZoneKind::Dma32 => "DMA32",
        ZoneKind::Normal => "Normal",
        ZoneKind::Movable => "Movable",
    }
}

fn zone_mismatch(facts: &BootFacts, placement: &Placement) -> Option<String> {
    let real: Vec<_> = facts
        .zones
        .iter()
        .map(|z| (z.nid, z.zone.as_str(), z.start_pfn, z.spanned, z.present))
        .collect();
    let ours: Vec<_> = placement
        .zones
        .iter()
        .map(|z| (z.nid, zone_name(z.zone), z.start_pfn.0, z.spanned, z.present))
        .collect();
    (ours != real).then(|| format!("zones:\n  real  {real:?}\n  model {ours:?}"))
}

/// Where the guest's page tables say pieces of the memmap lie.
fn memmap_mismatch(facts: &BootFacts, placement: &Placement) -> Option<String> {
    for real in &facts.vmemmap_map {
        let offset = real.pfn * facts.struct_page_bytes;
        let ours = placement.memmap.iter().find_map(|run| run.address_of(offset));
        // The tables give the start of the mapping; the struct page may lie inside.
        let piece = placement.memmap.first().map_or(1, |run| run.piece_bytes);
        let ours = ours.map(|at| at - at % piece);
        if ours != Some(real.start) {
            return Some(format!("memmap: {real:x?}, model {ours:x?}"));
        }
    }
    None
}

/// Nodes of which a part was left to the deferred phase.
fn deferred_mismatch(facts: &BootFacts, layout: &Layout) -> Option<String> {
    let nodes = layout.nodes.iter().filter(|n| n.first_deferred_pfn.is_some());
    let ours: Vec<_> = nodes.map(|n| n.nid).collect();
    let real = &facts.deferred_nodes;
    (ours != *real).then(|| format!("deferred nodes: real {real:?}, model {ours:?}"))
}

#[test]
fn the_model_reproduces_every_captured_boot() {
    let mut boots = boots();
    assert_eq!(boots.len(), BOOTS, "boots in fixtures/boots");
    // A folder with captures that are not in the project (yet).
    if let Some(more) = std::env::var_os("PAGEINIT_BOOTS") {
        boots.extend(boots_in(Path::new(&more)));
    }
    let (mut requests, mut wrong) = (0, Vec::new());
    for facts in &boots {
        let (layout, placement) = booted(facts);
        let mismatch = request_mismatch(facts, &placement)
            .or_else(|| free_mismatch(facts, &placement))
            .or_else(|| zone_mismatch(facts, &placement))
            .or_else(|| memmap_mismatch(facts, &placement))
            .or_else(|| deferred_mismatch(facts, &layout));
        requests += facts.allocations.len();
        let expected = EXCEPTIONS.iter().any(|(id, _)| *id == facts.id);
        match mismatch {
            Some(what) if !expected => wrong.push(format!("{}: {what}", facts.id)),
            None if expected => wrong.push(format!("{}: now right, remove it", facts.id)),
            _ => {}
        }
    }
    println!("{} boots with {requests} requests, {} wrong", boots.len(), wrong.len());
    assert!(wrong.is_empty(), "{} boots:\n{}", wrong.len(), wrong.join("\n"));
}

/// From the console of an x86_64 boot alone, with nothing else said: the same requests
/// at the same addresses, and the same deferred nodes.
#[test]
fn logs_with_memblock_debug_are_laid_out_exactly() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/boots");
    let Ok(entries) = std::fs::read_dir(&dir) else {
        return eprintln!("notice: {} is not there; logs not tested", dir.display());
    };
    let (mut logs, mut wrong) = (0, Vec::new());
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let of_x86 = name.ends_with(".log") && name.starts_with(|c: char| c.is_ascii_digit());
        if !of_x86 {
            continue;
        }
        logs += 1;
        let machine = pageinit::machine::load(&path.to_string_lossy(), None).expect(&name);
        let Some(facts) = machine.boot.as_deref() else {
            wrong.push(format!("{name}: no facts"));
            continue;
        };
        let (layout, placement) = booted(facts);
        let mismatch = request_mismatch(facts, &placement)
            .or_else(|| free_mismatch(facts, &placement))
            .or_else(|| deferred_mismatch(facts, &layout));
        wrong.extend(mismatch.map(|what| format!("{name}: {what}")));
    }
    println!("{logs} logs, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "{} logs:\n{}", wrong.len(), wrong.join("\n"));
}
