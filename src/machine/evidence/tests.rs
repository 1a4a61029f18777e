//! Tests of several inputs together, and of what is asked for or assumed.

use super::super::bootlog::BootLog;
use super::super::{MachineError, bootlog, iomem, lscpu, numactl};
use super::*;
use crate::units::{GIB, MIB};
use crate::warning::Origin;
use proptest::prelude::*;

const LOG: &str = "Linux version 6.1.0 (x86_64-linux-gnu-gcc) #1\n\
    Early memory node ranges\n  node   0: [mem 0x0000000000001000-0x000000007fffffff]\n\
    node   1: [mem 0x0000000080000000-0x00000000ffffffff]\n\
    smp: Brought up 2 nodes, 4 CPUs\n";

const NUMACTL: &str = "available: 2 nodes (0-1)\nnode 0 cpus: 0 2\nnode 0 size: 2000 MB\n\
    node 1 cpus: 1 3\nnode 1 size: 2010 MB\nnode distances:\nnode   0   1\n\
    0:  10  30\n  1:  30  10\n";

fn log(text: &str) -> Evidence {
    let log = BootLog::read("boot.log", text.as_bytes()).unwrap();
    bootlog::evidence::evidence("boot.log", &log.boots[0]).unwrap()
}

fn numa(text: &str) -> Evidence {
    numactl::parse("numa.txt", text).unwrap()
}

fn whole(inputs: Vec<Evidence>, answers: &Answers) -> Result<Machine, MachineError> {
    complete("m", &combine(inputs)?, answers)
}

fn codes(machine: &Machine) -> Vec<&str> {
    machine.warnings.iter().map(|w| w.code.as_str()).collect()
}

// MiB      0      2048   4096
// node 0   |======|             CPUs 0, 2: the log knows the memory,
// node 1          |======|      CPUs 1, 3: numactl the CPUs
#[test]
fn inputs_fill_each_others_gaps_in_any_order() {
    let both = [vec![log(LOG), numa(NUMACTL)], vec![numa(NUMACTL), log(LOG)]];
    for inputs in both {
        let machine = whole(inputs, &Answers::default()).unwrap();
        assert_eq!(machine.nodes[1].memory, [PhysRange::new(2 * GIB, 4 * GIB)]);
        assert_eq!(machine.nodes[1].cpus, [1, 3]);
        assert_eq!(machine.distance(Nid(0), Nid(1)), 30);
        assert_eq!(machine.kernel_release.as_deref(), Some("6.1.0"));
        assert_eq!(codes(&machine), ["no-stamps", "assumed-cores"]);
        assert_eq!(machine.source.memory_ranges.origin, Origin::Read);
    }
    let evidence = combine(vec![log(LOG), numa(NUMACTL)]).unwrap();
    let places: Vec<String> = evidence.explain().iter().map(|e| e.at.to_string()).collect();
    assert!(places.contains(&"boot.log:4".into()) && places.contains(&"numa.txt:4".into()));
}

// Shared out in whole sections, such a size once went beyond all numbers.
#[test]
fn memory_up_to_the_last_address_is_refused_and_no_panic() {
    let ranges = iomem::parse("iomem", "0-fffffffffffffffe : System RAM\n").unwrap();
    let sizes = NUMACTL.replace("2000", "17592186044415").replace("2010", "1");
    let error = whole(vec![numa(&sizes), ranges], &Answers::default()).unwrap_err();
    assert!(error.to_string().contains("reaches beyond"), "{error}");
}

// A node's pages are summed up before anything asks whether its ranges overlap.
#[test]
fn a_damaged_log_with_endless_ranges_has_times() {
    let range = "node   0: [mem 0x0000000000000000-0xffffffffffffffff]\n";
    let text = format!("{LOG}{}node 0 initialised, 9 pages in 9ms\n", range.repeat(5000));
    let log = BootLog::read("boot.log", text.as_bytes()).unwrap();
    assert_eq!(log.boots[0].init_times()[0].node_pages, Some(u64::MAX));
}

#[test]
fn contradictions_show_both_places() {
    for (wrong, words) in [
        (NUMACTL.replace("2010", "9010"), ["the memory of node 1", "boot.log:4", "numa.txt:5"]),
        (NUMACTL.replace("1 3", "1 3 5"), ["the number of CPUs", "boot.log:5", "numa.txt:2"]),
        (NUMACTL.replace("(0-1)", "(0-2)"), ["nodes 0-1", "boot.log:3", "numa.txt:1"]),
    ] {
        let error = whole(vec![log(LOG), numa(&wrong)], &Answers::default()).unwrap_err();
        let error = error.to_string();
        assert!(words.iter().all(|w| error.contains(w)), "{error}");
    }
    let other = lscpu::parse("cpu.txt", "Architecture: aarch64\nCPU(s): 4\n").unwrap();
    let error = whole(vec![log(LOG), other], &Answers::default()).unwrap_err().to_string();
    assert!(error.contains("boot.log:1 says x86_64, but cpu.txt:1 says arm64"), "{error}");
    let swapped = NUMACTL.replace("cpus: 0 2", "cpus: 1 2").replace("cpus: 1 3", "cpus: 0 3");
    let error = whole(vec![numa(NUMACTL), numa(&swapped)], &Answers::default()).unwrap_err();
    assert!(error.to_string().contains("the CPUs of node 0"), "{error}");
}

#[test]
fn two_small_machines_are_not_one() {
    let numactl = |a: &str, b: &str| numa(&NUMACTL.replace("2000", a).replace("2010", b));
    let answers = Answers::default();
    let error = whole(vec![numactl("1200", "1500"), numactl("300", "500")], &answers).unwrap_err();
    assert!(error.to_string().contains("the memory of node 0"), "{error}");
    assert!(whole(vec![numactl("1200", "1500"), numactl("700", "1100")], &answers).is_ok());
}

// CPUs of node 2 alone are not known; node 1 has none.
#[test]
fn known_lists_of_cpus_stay_and_the_rest_is_filled_in() {
    let text = "available: 3 nodes (0-2)\nnode 0 cpus: 0 1 5\nnode 0 size: 2000 MB\n\
        node 1 cpus:\nnode 1 size: 2000 MB\nnode 2 size: 2000 MB\n";
    let cpus = |machine: &Machine| -> Vec<Vec<u32>> {
        machine.nodes.iter().map(|n| n.cpus.clone()).collect()
    };
    let machine = whole(vec![numa(text)], &Answers::default()).unwrap();
    assert_eq!(cpus(&machine), [vec![0, 1, 5], vec![], vec![]]);
    let warning = machine.warnings.iter().find(|w| w.code == "cpus-unknown").unwrap();
    assert!(warning.message.contains("which CPUs node 2 has"), "{warning:?}");
    let three = Answers { cpus_per_node: Some(3), ..Answers::default() };
    let machine = whole(vec![numa(text)], &three).unwrap();
    assert_eq!(cpus(&machine), [vec![0, 1, 5], vec![], vec![2, 3, 4]]);
    assert!(!codes(&machine).contains(&"cpus-unknown"));
    let mut counted = numa(text);
    counted.cpu_count = Some(counted.known(5, 1));
    let machine = whole(vec![counted], &Answers::default()).unwrap();
    assert_eq!(cpus(&machine)[2], [2, 3]);
    assert!(codes(&machine).contains(&"assumed-cpus"));
}

#[test]
fn a_part_of_a_list_stays_where_it_is() {
    let text = format!("{LOG}.... node  #0, CPUs:   #2\n");
    let machine = whole(vec![log(&text)], &Answers::default()).unwrap();
    assert_eq!((&*machine.nodes[0].cpus, &*machine.nodes[1].cpus), (&[0, 2][..], &[1, 3][..]));
}

#[test]
fn answers_that_contradict_an_input_are_refused() {
    let given = |answers: Answers| whole(vec![log(LOG), numa(NUMACTL)], &answers);
    let arch = |arch| given(Answers { arch: Some(arch), ..Answers::default() });
    let cpus = |n| given(Answers { cpus_per_node: Some(n), ..Answers::default() });
    let memory = |n| given(Answers { memory_per_node_bytes: Some(n), ..Answers::default() });
    for (refused, words) in [
        (arch(Arch::Arm64), "boot.log:1 says x86_64, but --arch says arm64"),
        (cpus(3), "numa.txt:2 says 2, but --cpus-per-node says 3"),
        (memory(9 * GIB), "says 2.0 GiB, but --memory-per-node says 9 GiB"),
    ] {
        let error = refused.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let count = Answers { cpus_per_node: Some(3), ..Answers::default() };
    let error = whole(vec![log(LOG)], &count).unwrap_err().to_string();
    assert!(error.contains("boot.log:5 says 4, but --cpus-per-node 3 makes 6"), "{error}");
    for equal in [arch(Arch::X86_64), cpus(2), memory(2 * GIB)] {
        assert_eq!(codes(&equal.unwrap()), ["no-stamps", "assumed-cores"]);
    }
}

#[test]
fn a_processors_name_may_be_given_anew_with_a_warning() {
    let text = format!("{LOG}smpboot: CPU0: QEMU Virtual CPU (family: 0xf)\n");
    let named = |name: &str| {
        let answers = Answers { cpu_model: Some(name.into()), ..Answers::default() };
        whole(vec![log(&text)], &answers).unwrap()
    };
    let machine = named("Xeon Platinum 8167M");
    assert_eq!(machine.cpu_model.as_deref(), Some("Xeon Platinum 8167M"));
    assert!(codes(&machine).contains(&"cpu-model-differs"));
    assert!(!codes(&named("QEMU virtual CPU")).contains(&"cpu-model-differs"));
}

#[test]
fn sources_name_the_input_that_tells() {
    let machine = whole(vec![log(LOG), numa(NUMACTL)], &Answers::default()).unwrap();
    assert_eq!(machine.source.distances.from, "numa.txt");
    assert_eq!(machine.source.memory_ranges.from, "boot.log");
    assert_eq!(machine.source.topology.from, "numactl -H numa.txt and boot log boot.log");
    let machine = whole(vec![numa(NUMACTL)], &Answers::default()).unwrap();
    assert_eq!(machine.source.distances.from, "numactl -H numa.txt");
}

#[test]
fn siblings_come_from_lscpu() {
    let text = "CPU(s): 4\nThread(s) per core: 2\nNUMA node0 CPU(s): 0,2\nNUMA node1 CPU(s): 1,3\n";
    let cpu = lscpu::parse("cpu.txt", text).unwrap();
    let machine = whole(vec![log(LOG), cpu], &Answers::default()).unwrap();
    assert_eq!((machine.smt(), machine.cpus.len()), (2, 4));
    assert_eq!(machine.cpus[0].core, machine.cpus[2].core);
}

// MiB      0    1024   3072       5120
// iomem    |=====|      |==========|
// node 0   |=====|      |==|            by share
// node 1                   |=======|
#[test]
fn ranges_without_nodes_are_shared_out() {
    let tree = format!("00000000-{:x} : System RAM\n", GIB - 1);
    let tree = tree + &format!("{:x}-{:x} : System RAM\n", 3 * GIB, 5 * GIB - 1);
    let ram = iomem::parse("iomem", &tree).unwrap();
    let sizes = NUMACTL.replace("2000", "1400").replace("2010", "1400");
    let machine = whole(vec![ram, numa(&sizes)], &Answers::default()).unwrap();
    let memory: Vec<_> = machine.nodes.iter().map(|n| n.memory.clone()).collect();
    let cut = 3 * GIB + 512 * MIB;
    assert_eq!(memory[0], [PhysRange::new(0, GIB), PhysRange::new(3 * GIB, cut)]);
    assert_eq!(memory[1], [PhysRange::new(cut, 5 * GIB)]);
    assert!(codes(&machine).contains(&"assumed-node-borders"));
    // A range that begins within a section: the border is on one all the same.
    let tree = format!("{:x}-{:x} : System RAM\n", MIB, 4 * GIB - 1);
    let ram = iomem::parse("iomem", &tree).unwrap();
    let machine = whole(vec![ram, numa(NUMACTL)], &Answers::default()).unwrap();
    assert!(machine.nodes[1].memory[0].start.is_multiple_of(128 * MIB));
}

#[test]
fn what_is_missing_is_asked_for_by_name() {
    let text = "smp: Brought up 2 nodes, 4 CPUs\nnode 0 deferred pages initialised in 4ms\n";
    let asks = |text: &str, answers: &Answers| {
        let error = whole(vec![log(text)], answers).unwrap_err();
        assert!(error.is_usage(), "{error}");
        error.to_string()
    };
    assert!(asks(text, &Answers::default()).contains("--memory-per-node"));
    let pages = "node 0 initialised, 262144 pages in 4ms\n";
    assert!(asks(pages, &Answers::default()).contains("--page-size"));
    let sized = Answers { page_bytes: Some(65_536), ..Answers::default() };
    let machine = whole(vec![log(pages)], &sized).unwrap();
    assert_eq!((machine.memory_bytes(), machine.page_bytes), (16 * GIB, 65_536));
    assert!(codes(&machine).contains(&"assumed-sizes"));
    let answers = Answers {
        memory_per_node_bytes: Some(GIB),
        cpus_per_node: Some(3),
        cpu_model: Some("Given".into()),
        arch: Some(Arch::Arm64),
        ..Answers::default()
    };
    let machine = whole(vec![log("node 2 deferred pages initialised in 4ms\n")], &answers).unwrap();
    assert_eq!((machine.nodes[0].nid, machine.cpus.len(), machine.arch), (Nid(2), 3, Arch::Arm64));
    assert_eq!(machine.cpu_model.as_deref(), Some("Given"));
}

#[test]
fn a_complete_machine_can_be_added_to() {
    let text = "arch = \"x86_64\"\n[[node]]\nid = 0\nmemory = \"2GiB\"\ncpus = \"0,2\"\n\
                [[node]]\nid = 1\nmemory = \"2GiB\"\ncpus = \"1,3\"\n";
    let machine = super::super::file::parse("m.toml", text).unwrap();
    let whole = whole(vec![Evidence::of_machine(&machine), log(LOG)], &Answers::default()).unwrap();
    assert_eq!(whole.nodes[0].memory, [PhysRange::new(0x1000, 2 * GIB)]);
    assert_eq!(whole.kernel_release.as_deref(), Some("6.1.0"));
}

proptest! {
    #[test]
    fn shared_out_memory_is_all_there(
        sizes in prop::collection::vec(0u64..9000, 1..5),
        ranges in prop::collection::vec((1u64..40, 1u64..40), 1..6),
    ) {
        let mut text = String::new();
        for (nid, mib) in sizes.iter().enumerate() {
            text += &format!("node {nid} cpus: {nid}\nnode {nid} size: {mib} MB\n");
        }
        let (mut at, mut tree) = (0u64, String::new());
        for (gap, length) in ranges {
            at += gap * 64 * MIB;
            let end = at + length * 64 * MIB;
            tree += &format!("{at:x}-{:x} : System RAM\n", end - 1);
            at = end;
        }
        let ram = iomem::parse("i", &tree).unwrap();
        let bytes = total(&ram.ranges.as_ref().unwrap().value);
        let mut evidence = numa(&text);
        evidence.ranges = ram.ranges;
        if let Ok(machine) = complete("m", &evidence, &Answers::default()) {
            prop_assert_eq!(machine.memory_bytes(), bytes);
        }
    }
}
