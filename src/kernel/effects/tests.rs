//! Command lines against captured boots, and on machines with several nodes.

use super::*;
use crate::kernel::boot::BootInput;
use crate::machine::facts::BootFacts;
use crate::machine::from_facts;
use crate::pfn::PhysRange;
use std::path::Path;
use std::sync::Arc;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn facts(id: &str) -> BootFacts {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/boots");
    BootFacts::read(&dir.join(format!("{id}.json"))).expect("a fixture")
}

/// The machine of a captured boot, without what memblock knew.
fn machine(id: &str) -> Machine {
    Machine { boot: None, ..from_facts::machine(id, Arc::new(facts(id))).expect("a machine") }
}

fn kernel(release: &str) -> KernelModel {
    KernelModel::from_release(release, Arch::X86_64).expect("modelled")
}

fn affected(machine: &Machine, release: &str, line: &str) -> Affected {
    apply(machine, &kernel(release), &line.parse().expect("valid"))
}

fn memory(machine: &Machine) -> Vec<(u32, Vec<(u64, u64)>)> {
    let mib = |r: &PhysRange| (r.start / MIB, r.end / MIB);
    machine.nodes.iter().map(|n| (n.nid.0, n.memory.iter().map(mib).collect())).collect()
}

// The host of the captured boots with four fake nodes has the memory of 6.12's, which
// has no emulation: 16 GiB around the hole, 4 CPUs.
#[test]
fn four_fake_nodes_are_those_of_the_captured_boot() {
    let captured = facts("6.1_n1-fake4");
    let line = "numa=fake=4".parse().expect("valid");
    let fake = apply(&machine("6.12_n1-fake4"), &kernel("6.1"), &line);
    let ours: Vec<_> = fake
        .machine
        .nodes
        .iter()
        .flat_map(|n| n.memory.iter().map(|r| (r.start, r.end, Some(n.nid))))
        .collect();
    let real: Vec<_> = captured.memblock_memory.iter().map(|m| (m.start, m.end, m.nid)).collect();
    assert_eq!(ours, real);
    for (ours, real) in fake.machine.nodes.iter().zip(&captured.nodes) {
        assert_eq!(ours.cpus, real.cpus);
    }
    let rows: Vec<_> = captured.nodes.iter().map(|n| n.distance.clone()).collect();
    assert_eq!(fake.machine.distances, Some(rows));
    assert!(fake.origins.values().all(|real| *real == Nid(0)));
}

// GiB     0   2   4     8    both nodes have 4 GiB, node 0 around the hole
// real    000 01111 1
// fake    002 21133 3        turn by turn, 2 GiB each
#[test]
fn fake_nodes_take_turns_on_real_ones_and_keep_their_cpus() {
    let fake = affected(&machine("6.12_n2-8g"), "6.1", "numa=fake=4");
    assert_eq!(fake.machine.memory_bytes(), machine("6.12_n2-8g").memory_bytes());
    let starts: Vec<u64> =
        fake.machine.nodes.iter().map(|n| n.memory[0].start.div_ceil(GIB)).collect();
    assert_eq!(starts, [1, 5, 2, 7], "the lowest starts in the first GiB");
    let real: Vec<u32> = fake.origins.values().map(|n| n.0).collect();
    assert_eq!(real, [0, 1, 0, 1]);
    for node in &fake.machine.nodes {
        let cpus = if fake.origins[&node.nid] == Nid(0) { [0, 1] } else { [2, 3] };
        assert_eq!(node.cpus, cpus, "node {}", node.nid);
    }
}

#[test]
fn fake_nodes_need_the_option_and_room() {
    let real = machine("6.12_n1-4g");
    let without = affected(&real, "6.12", "numa=fake=4");
    assert_eq!(without.machine, real);
    assert_eq!(without.notes[0].code, "option-ignored");
    let crowded = affected(&real, "6.1", "numa=fake=1000");
    assert_eq!(crowded.notes[0].code, "numa-fake-failed");
    let sized = affected(&real, "6.1", "numa=fake=1G");
    assert!(sized.machine.nodes.len() >= 3 && sized.notes[0].code == "recalled");
    let halves = affected(&real, "6.1", "numa=fake=2U");
    assert_eq!(halves.machine.nodes.len(), 2);
    assert_eq!(halves.machine.memory_bytes(), real.memory_bytes());
}

// memmap=64M$… of the captured boots with two holes.
#[test]
fn memmap_takes_memory_away() {
    let mut whole = machine("6.12_n2-2holes");
    let range = |start, end| PhysRange::new(start * GIB, end * GIB);
    whole.nodes[0].memory.splice(2.., [range(4, 7)]);
    whole.nodes[1].memory = vec![range(7, 13)];
    let line = "memmap=64M$0x120000000,64M$0x160000000";
    let cut = affected(&whole, "6.12", line).machine;
    let captured = facts("6.12_n2-2holes");
    let mut ours: Vec<_> =
        cut.nodes.iter().flat_map(|n| n.memory.iter().map(|r| (r.start, r.end))).collect();
    ours.sort_unstable();
    let real: Vec<_> = captured.memblock_memory.iter().map(|m| (m.start, m.end)).collect();
    assert_eq!(ours, real);
}

#[test]
fn mem_is_an_address_on_x86_and_an_amount_elsewhere() {
    let real = machine("6.12_n1-4g");
    let cut = affected(&real, "6.12", "mem=4608M").machine;
    let ranges = [(0, 0), (1, 3071), (4096, 4608)];
    assert_eq!(memory(&cut), [(0, ranges.to_vec())]);
    let mut other = real;
    other.arch = Arch::Ppc64;
    let kernel = KernelModel::from_release("6.12", Arch::Ppc64).expect("modelled");
    let cut = apply(&other, &kernel, &"mem=2G".parse().expect("valid")).machine;
    assert_eq!(cut.memory_bytes(), 2 * GIB);
    let grown = affected(&machine("6.12_n1-4g"), "6.12", "memmap=1G@5G").machine;
    assert_eq!(memory(&grown)[0].1.last(), Some(&(5120, 6144)));
}

#[test]
fn fewer_cpus_and_one_node() {
    let real = machine("6.12_n4-uneven");
    let cpus = |line| -> Vec<usize> {
        affected(&real, "6.12", line).machine.nodes.iter().map(|n| n.cpus.len()).collect()
    };
    assert_eq!(cpus(""), [1, 2, 4, 1]);
    assert_eq!(cpus("maxcpus=2"), [1, 1, 0, 0]);
    assert_eq!(cpus("nr_cpus=4"), [1, 2, 1, 0]);
    assert_eq!(cpus("nr_cpus=0"), [1, 2, 4, 1]);
    assert_eq!(cpus("possible_cpus=3 maxcpus=5"), [1, 2, 0, 0]);
    assert_eq!(cpus("nosmp"), [1, 0, 0, 0]);
    assert_eq!(cpus("numa=off"), [8]);
}

// 6.18 took its four pages before the memmap, at 12 GiB; 6.12 takes them behind it.
#[test]
fn gigantic_pages_lie_where_the_captured_boot_has_them() {
    let line: CommandLine = "hugepagesz=1G hugepages=4".parse().expect("valid");
    let input = |id: &str, release: &str| {
        BootInput::from_machine(&machine(id), &kernel(release), Some(&line)).expect("valid")
    };
    let early = input("6.18_n1-hp1g", "6.18");
    let found = early.map.reserved.iter().any(|r| (r.start, r.end) == (12 * GIB, 16 * GIB));
    assert!(found, "{:x?}", early.map.reserved);
    let late = input("6.12_n1-hp1g", "6.12");
    let (layout, placement) = late.boot().expect("fits");
    assert!(!placement.after.reserved.iter().any(|r| r.end - r.start >= 4 * GIB));
    let reserved: u64 = layout.nodes.iter().map(|n| crate::pfn::total_pages(&n.pg_reserved)).sum();
    assert!(reserved > 4 * GIB / 4096);
}

#[test]
fn options_that_do_nothing_are_said() {
    let real = machine("6.12_n1-4g");
    for (release, line) in [("6.12", "early_page_ext"), ("5.10", "early_page_ext")] {
        assert_eq!(affected(&real, release, line).notes[0].code, "option-ignored", "{release}");
    }
    assert!(affected(&real, "6.1", "early_page_ext").notes.is_empty());
    assert!(affected(&real, "6.1", "possible_cpus=1").notes.is_empty());
    let kernel = KernelModel::from_release("6.12", Arch::Ppc64).expect("modelled");
    let line = "possible_cpus=1".parse().expect("valid");
    let notes = apply(&Machine { arch: Arch::Ppc64, ..real }, &kernel, &line).notes;
    assert!(notes.iter().any(|n| n.message.contains("possible_cpus=")), "{notes:?}");
}
