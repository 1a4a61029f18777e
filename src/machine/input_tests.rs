//! Tests of all front ends together: right and wrong inputs.

use super::*;
use crate::pfn::Nid;
use crate::units::GIB;
use crate::warning::Origin;
use proptest::prelude::*;
use std::fmt::Write;
use std::fs;
use std::sync::OnceLock;

fn failure(spec: &str) -> String {
    let error = load(spec, None).unwrap_err();
    assert!(!error.is_usage(), "{error}");
    error.to_string()
}

fn usage(spec: &str) -> String {
    let error = load(spec, None).unwrap_err();
    assert!(error.is_usage(), "{error}");
    error.to_string()
}

/// Text of a shared file, or `None` with a notice where there is none.
fn shared(name: &str) -> Option<String> {
    let path = format!("../shared/corpus/{name}");
    match fs::read(&path) {
        Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        Err(_) => {
            eprintln!("{path} is not there; this test does nothing");
            None
        }
    }
}

/// XML of a synthetic topology, as hwloc itself writes it.
fn exported(synthetic: &str) -> String {
    use hwlocality::topology::export::xml::XMLExportFlags;
    let topology = hwlocality::Topology::builder().from_synthetic(synthetic).unwrap();
    topology.build().unwrap().export_xml(XMLExportFlags::empty()).unwrap().to_string()
}

/// XML of a small topology.
fn xml() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| exported("pack:2 [numa(memory=2GiB)] l2:1(size=1MiB) core:2 pu:2"))
}

#[test]
fn xml_that_hwloc_writes_gives_the_same_machine() {
    for text in [
        "pack:2 [numa(memory=2GiB)] l2:1(size=1MiB) core:2 pu:2",
        "[numa(memory=1GiB)][numa(memory=5GiB)] die:2 core:2 pu:1",
        "pack:2 core:2 [numa(memory=1GiB)] pu:1",
        "pack:3 [numa(memory=1GiB indexes=8,3,700)] group:2 l1i:1 l1:1 core:1 pu:4",
        "[numa(memory=1GiB)] pu:1",
    ] {
        let (direct, xml) = (load(text, None).unwrap(), exported(text));
        let read = parse_text("x", xml.as_bytes(), None).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(read.nodes, direct.nodes, "{text}");
        assert_eq!((read.cpus, read.caches), (direct.cpus, direct.caches), "{text}");
    }
}

#[test]
fn xml_of_this_host_is_read() {
    use hwlocality::topology::export::xml::XMLExportFlags;
    let topology = hwloc::topology_of_host().unwrap();
    let xml = topology.export_xml(XMLExportFlags::empty()).unwrap().to_string();
    let machine = parse_text("x", xml.as_bytes(), None).unwrap();
    assert_eq!(machine.cpus, host::load().unwrap().cpus);
    assert!(!machine.is_this_host && machine.kernel_release.is_some());
}

#[test]
fn synthetic_strings() {
    let machine = load("pack:2 [numa(memory=2GiB)] l2:2(size=1MiB) core:1 pu:2", None).unwrap();
    assert_eq!((machine.nodes.len(), machine.cpus.len(), machine.smt()), (2, 8, 2));
    assert_eq!(machine.memory_bytes(), 4 * GIB);
    assert_eq!((machine.caches[0].bytes, machine.caches[0].shared_by_cpus), (1 << 20, 2));
    assert_eq!(machine.nodes[1].memory[1].start, 4 * GIB);
    assert_eq!(machine.source.memory_ranges.origin, Origin::Assumed);
    assert_eq!(machine.source.distances.origin, Origin::Assumed);
    let codes: Vec<_> = machine.warnings.iter().map(|w| w.code.as_str()).collect();
    assert_eq!(codes, ["assumed-architecture", "assumed-ranges"]);
}

#[test]
fn nodes_with_the_same_cpus_share_none() {
    let machine = load("[numa(memory=1GiB)][numa(memory=5GiB)] core:2 pu:1", None).unwrap();
    assert_eq!(machine.nodes[0].cpus, [0, 1]);
    assert!(machine.nodes[1].cpus.is_empty() && machine.nodes[1].memory_bytes() == 5 * GIB);
}

/// hwloc's own check of a finished topology, which debug builds of the binding run
/// unless told otherwise, aborts on the second string; Cargo.toml tells otherwise.
#[test]
fn indexes_that_hwloc_cannot_order_are_usage_errors() {
    assert!(usage("[numa(memory=1GiB)] pu:4(indexes=0,0,1,2)").contains("3 of 4 CPUs"));
    let node = "[numa(memory=1GiB indexes=4,2)]";
    let text = format!("[numa(memory=1GiB)] group:2 {node} l3:1 pu:4(indexes=2*2:3*2)");
    assert!(usage(&text).contains("check the indexes"));
}

#[test]
fn node_ids_may_have_gaps() {
    let machine = load("pack:2 [numa(memory=1GiB indexes=8,3)] pu:1", None).unwrap();
    assert_eq!(machine.nodes.iter().map(|n| n.nid.0).collect::<Vec<_>>(), [3, 8]);
    assert_eq!(machine.node(Nid(8)).unwrap().cpus, [0]);
    assert!(usage("[numa(memory=1GiB indexes=5000)] pu:1").contains("1023"));
}

#[test]
fn wrong_synthetic_strings_are_usage_errors() {
    assert!(usage("pack:2 core:8").contains("has to be pu"));
    assert!(usage("pack:x").contains("not a number"));
    assert!(usage("").contains("no level"));
    assert!(usage("pack:2 core:8 pu:2").contains("[numa(memory=512GiB)]"));
    assert!(usage("hosts").contains("hosts"));
    assert!(usage("[numa(memory=4096TiB)] pu:1").contains("does not fit"));
    assert!(usage("@nothing-like-it").contains("@vm-2c"));
}

#[test]
fn files_are_told_by_their_content() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_string()
    };
    let toml = "arch = \"arm64\"\n[nodes]\ncount = 2\nmemory = \"1GiB\"\n";
    let machine = load(&write("a.xml", toml.as_bytes()), None).unwrap();
    assert_eq!(machine.nodes.len(), 2);
    let machine = load(&write("b", xml().as_bytes()), None).unwrap();
    assert_eq!((machine.nodes.len(), machine.cpus.len()), (2, 8));
    assert!(failure(&write("c.toml", b"")).contains("is empty"));
    assert!(failure(&write("d", b"\x7fELF\0")).contains("binary"));
    assert!(failure(&write("e", b"\xff\xfea\0")).contains("UTF-16"));
    assert!(failure(&write("f", b"<svg xmlns='a'/>")).contains("<svg>"));
    assert!(failure(&write("g", b"arhc = 'x'\n")).contains("g:1: "));
    assert!(failure(dir.path().to_str().unwrap()).contains("is a directory"));
}

#[test]
fn what_looks_like_a_path_is_a_missing_file() {
    for spec in ["no/such", "machine.toml", "Topo.XML", "boot.log", "x.json", "a.txt"] {
        assert!(failure(spec).contains("no such file"), "{spec}");
    }
    let forced = load("pu:1", Some(Format::MachineToml)).unwrap_err();
    assert!(matches!(forced, MachineError::NoSuchFile { .. }));
    assert!(load("vm-2c", Some(Format::Library)).is_ok());
    let text = b" [numa(memory=1GiB)] pu:1\n";
    assert!(parse_text("-", text, Some(Format::Synthetic)).is_ok());
}

#[test]
fn hwloc_xml_of_real_machines() {
    for (name, nodes, cpus, arch) in [
        ("B01_hwloc_24node_12group_xeon_192pu.xml", 24, 384, "x86_64"),
        ("B04_hwloc_cxlmem_dax_v2.xml", 1, 4, "x86_64"),
        ("B05_hwloc_cxlmem_dax_v3.xml", 1, 4, "x86_64"),
        ("B07_hwloc_8node_opteron6276.xml", 8, 64, "x86_64"),
        ("B09_hwloc_ppc64_2node.xml", 2, 16, "x86_64"),
    ] {
        let Some(text) = shared(name) else { return };
        let machine = parse_text(name, text.as_bytes(), None).unwrap();
        let got = (machine.nodes.len(), machine.cpus.len(), machine.arch.to_string());
        assert_eq!(got, (nodes, cpus, arch.to_string()), "{name}");
        assert!(machine.memory_bytes() > 2 * GIB, "{name}");
        assert!(nodes < 8 || machine.distances.is_some(), "{name}");
    }
}

#[test]
fn distances_are_placed_by_node_and_not_by_row() {
    let Some(text) = shared("B07_hwloc_8node_opteron6276.xml") else { return };
    let machine = parse_text("b07", text.as_bytes(), None).unwrap();
    let table = machine.distances.clone().unwrap();
    assert!((0..8).all(|i| table[i][i] == 10));
    assert_eq!(machine.kernel_release.as_deref(), Some("4.1.0-2-amd64"));
    // The tree lists nodes 0, 1, 6, 7, 4, 5, 2, 3; the matrix has them by id.
    assert_eq!(table[2], [16, 22, 10, 16, 16, 16, 16, 16]);
    assert_eq!(table[6], [16, 22, 16, 22, 16, 22, 10, 16]);
    assert_eq!(machine.distance(Nid(6), Nid(3)), 22);
}

#[test]
fn truncated_and_edited_xml_is_refused() {
    let half = xml().len() / 2;
    let cut = &xml()[..xml()[..half].rfind('\n').unwrap()];
    let error = parse_text("cut.xml", cut.as_bytes(), None).unwrap_err().to_string();
    assert!(error.starts_with("cut.xml:") && error.contains("not complete"), "{error}");
    let future = xml().replacen("version=\"2.0\"", "version=\"9.0\"", 1);
    let error = parse_text("new.xml", future.as_bytes(), None).unwrap_err().to_string();
    assert!(error.contains("format 9.0"), "{error}");
    // A comment is XML, but not for hwloc's own small parser.
    let remark = xml().replacen("<object ", "<!-- mine --><object ", 1);
    if let Err(error) = parse_text("remark.xml", remark.as_bytes(), None) {
        assert!(error.to_string().contains("hwloc cannot read"), "{error}");
    }
}

#[test]
fn a_machine_of_256_nodes_and_2048_cpus() {
    let machine = load("pack:256 [numa(memory=64GiB)] core:4 pu:2", None).unwrap();
    assert_eq!((machine.nodes.len(), machine.cpus.len()), (256, 2048));
    let mut text = String::from("arch = \"x86_64\"\nsmt = 2\n");
    for id in 0..256 {
        let (first, second) = (4 * id, 1024 + 4 * id);
        let cpus = format!("{first}-{},{second}-{}", first + 3, second + 3);
        let _ = write!(text, "[[node]]\nid = {id}\nmemory = \"64GiB\"\ncpus = \"{cpus}\"\n");
    }
    let machine = parse_text("m", text.as_bytes(), None).unwrap();
    assert_eq!((machine.nodes.len(), machine.cpus.len(), machine.smt()), (256, 2048, 2));
}

// A mail with a log and, below it, what `numactl -H` says of the same machine.
#[test]
fn an_exact_log_stays_exact_when_its_gaps_are_filled() {
    let log = "../shared/boots/6.12_n4-uneven.log";
    if !std::path::Path::new(log).exists() {
        return eprintln!("{log} is not there; this test does nothing");
    }
    let dir = tempfile::tempdir().unwrap();
    let numactl = dir.path().join("n.txt").display().to_string();
    let text = "available: 4 nodes (0-3)\nnode 0 size: 1988 MB\nnode 1 size: 5983 MB\n\
                node 2 size: 4030 MB\nnode 3 size: 3023 MB\nnode distances:\nnode 0 1 2 3\n\
                0: 10 20 20 20\n1: 20 10 20 20\n2: 20 20 10 20\n3: 20 20 20 10\n";
    fs::write(&numactl, text).unwrap();
    let specs = vec![log.to_string(), numactl];
    let loaded = Request { specs, ..Request::default() }.load().unwrap();
    assert_eq!(loaded.machine.distance(Nid(0), Nid(3)), 20);
    assert!(loaded.machine.boot.is_some());
    let answers = Answers { cpu_model: Some("Foo".into()), ..Answers::default() };
    let request = Request { specs: vec![log.into()], answers, ..Request::default() };
    assert!(request.load().unwrap().machine.boot.is_some());
}

#[test]
fn a_log_and_numactl_in_one_text_are_two_inputs() {
    let log = "Hello,\n> [    0.000000] Linux version 6.1.0 (x86_64-linux-gnu-gcc) #1\n\
               > [    0.1] Early memory node ranges\n\
               > [    0.1]   node   0: [mem 0x0000000000001000-0x000000007fffffff]\n\
               > [    0.1]   node   1: [mem 0x0000000080000000-0x00000000ffffffff]\n";
    let numactl = "available: 2 nodes (0-1)\nnode 0 cpus: 0 2\nnode 0 size: 1990 MB\n\
                   node 1 cpus: 1 3\nnode 1 size: 2000 MB\nnode distances:\n\
                   node   0   1\n  0:  10  17\n  1:  17  10\n";
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        fs::write(dir.path().join(name), text).unwrap();
        dir.path().join(name).display().to_string()
    };
    let request = |specs| Request { specs, ..Request::default() };
    let apart = request(vec![write("a.log", log), write("b.txt", numactl)]).load().unwrap();
    let together = request(vec![write("mail.txt", &format!("{log}\n{numactl}-- \nme\n"))]);
    let together = together.load().unwrap();
    assert_eq!(together.machine.nodes, apart.machine.nodes);
    assert_eq!(together.machine.distances, Some(vec![vec![10, 17], vec![17, 10]]));
    assert_eq!(together.machine.nodes[1].cpus, [1, 3]);
    assert_eq!(together.machine.nodes[1].memory[0].start, 2 * GIB);
    let cpus = together.explained.iter().find(|e| e.fact == "CPUs of node 0").unwrap();
    assert_eq!(cpus.at.line, Some(8), "{cpus:?}");
    let other = numactl.replace("size: 2000 MB", "size: 90000 MB");
    let error = parse_text("m", format!("{log}{other}").as_bytes(), None).unwrap_err();
    let places = "m:5 says 2 GiB, but m:10 says 87.9 GiB";
    assert!(error.to_string().contains(places), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn hwloc_never_fails_badly_on_short_strings(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "pu:2", "core:3", "pack:2", "numa:2", "[numa(memory=1GiB)]", "2", "l2:1(size=1MB)",
                "[numa(memory=5 indexes=2,1)]", "(memory=1GiB)", "group:2", "pu:4(indexes=2*2:1*2)",
                "die:1", "numa:3(memory=7TB)", "pu:2(indexes=core)", "[numa]", " ", "(", ")", ":",
                "pu:4(indexes=0,0,1)", "tile:2", "l1i:1", "indexes=numa:pack",
                "pu:6(indexes=numa:core)",
            ]),
            0..6,
        ),
        glue in "[ ]?",
    ) {
        let _ = load(&parts.join(&glue), None);
    }

    #[test]
    fn hwloc_takes_or_refuses_every_string_that_passes_the_check(
        levels in prop::collection::vec(
            (
                prop::sample::select(vec![
                    "pack", "die", "numa", "group", "core", "l1", "l2", "l3", "l1i", "tile", "",
                ]),
                1u32..5,
                prop::sample::select(vec![
                    "", "", "(memory=1GiB)", "(size=1MiB)", " [numa(memory=1GiB)]", "[numa]",
                    " [numa(memory=3 indexes=4,2,1,3)]", "(indexes=1,0)",
                    "(memory=1TB indexes=7,8)",
                ]),
            ),
            0..5,
        ),
        pus in 1u32..9,
        loops in prop::option::of(prop::collection::vec((1u32..9, 1u32..9), 1..4)),
    ) {
        let mut text = String::from("[numa(memory=1GiB)] ");
        for (kind, count, behind) in levels {
            let colon = if kind.is_empty() { "" } else { ":" };
            let _ = write!(text, "{kind}{colon}{count}{behind} ");
        }
        let _ = write!(text, "pu:{pus}");
        if let Some(loops) = loops {
            let loops: Vec<_> = loops.iter().map(|(a, b)| format!("{a}*{b}")).collect();
            let _ = write!(text, "(indexes={})", loops.join(":"));
        }
        prop_assert!(super::super::synthetic::check(&text).is_ok());
        let _ = load(&text, None);
    }

    #[test]
    fn random_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let _ = parse_text("bytes", &bytes, None);
        let _ = load(&String::from_utf8_lossy(&bytes), Some(Format::Synthetic));
    }

    #[test]
    fn truncated_xml_never_reaches_hwloc(cut in 0usize..6000) {
        let cut = cut.min(xml().trim_end().len() - 1);
        prop_assert!(parse_text("cut", &xml().as_bytes()[..cut], Some(Format::HwlocXml)).is_err());
    }

    #[test]
    fn edited_xml_never_crashes_hwloc(
        edits in prop::collection::vec((100usize..60_000, "[0-9a-fx,_-]"), 1..4),
    ) {
        // More than 32 CPUs, so that sets have several words.
        static BASE: OnceLock<String> = OnceLock::new();
        let base = BASE.get_or_init(|| exported("pack:2 [numa(memory=2GiB)] core:10 pu:2"));
        let mut text: Vec<char> = base.chars().collect();
        for (at, with) in edits {
            let at = at % text.len();
            if let Some(new) = with.chars().next().filter(|_| !"<>/=\"\n".contains(text[at])) {
                text[at] = new;
            }
        }
        let text: String = text.into_iter().collect();
        let _ = parse_text("edited", text.as_bytes(), Some(Format::HwlocXml));
    }
}
