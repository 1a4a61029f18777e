//! Public logs and topologies, file by file: the machine that is described, or a
//! question that names what is missing.
//!
//! The files lie beside the project and are not part of it; without them the tests
//! say so and pass.

use pageinit::machine::bootlog::{BootLog, Caveat};
use pageinit::machine::evidence::Answers;
use pageinit::machine::input::Request;
use pageinit::machine::{Machine, MachineError};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

const FOLDER: &str = "../shared/corpus";

fn index() -> Vec<Value> {
    match fs::read_to_string(format!("{FOLDER}/INDEX.json")) {
        Ok(text) => serde_json::from_str(&text).unwrap(),
        Err(_) => {
            eprintln!("{FOLDER} is not there; this test does nothing");
            Vec::new()
        }
    }
}

/// What a file describes.
enum Expected {
    Machine(Facts),
    /// Words of the error or question.
    Asks(&'static str),
    /// The boot to choose, after which it is a machine.
    Boot(usize, Facts),
}

/// Nodes, CPUs (0: unknown), memory in MiB, page size in KiB, kernel.
struct Facts {
    nids: &'static [u32],
    cpus: usize,
    mib: u64,
    page_kib: u64,
    kernel: Option<&'static str>,
}

const fn machine(
    nids: &'static [u32],
    cpus: usize,
    mib: u64,
    page_kib: u64,
    kernel: Option<&'static str>,
) -> Expected {
    Expected::Machine(Facts { nids, cpus, mib, page_kib, kernel })
}

const TO_7: &[u32] = &[0, 1, 2, 3, 4, 5, 6, 7];
const TO_3: &[u32] = &[0, 1, 2, 3];
const TO_23: &[u32] =
    &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23];

/// What the file of an id holds.
fn expected(id: &str) -> Expected {
    let memory = Expected::Asks("--memory-per-node");
    match id {
        "A03" => machine(&[0, 8], 32, 65_536, 4, Some("6.2.0-rc6-P9")),
        "A04" => machine(&[0, 8], 32, 65_536, 4, Some("6.6.0-rc7-P9")),
        "A06" => machine(&[0], 8, 16_382, 4, Some("5.18.0-rc3")),
        "A09" => machine(&[0], 8, 32_549, 4, Some("5.10.0-1-amd64")),
        "A11" => machine(&[0], 6, 3920, 4, Some("6.17.4")),
        "A13" => machine(&[0], 4, 15_979, 4, Some("6.11.0-rc4")),
        "A14" => machine(&[0], 32, 32_513, 4, Some("6.18.0-rc5")),
        "A19" => machine(&[0], 1, 256, 4, Some("5.7.0-rc4+")),
        "A21" => machine(&[0], 1, 1024, 64, Some("6.16.0-02450")),
        "A22" => machine(&[0], 8, 16_264, 4, Some("5.7.0-01787")),
        "A23" => {
            let kernel = Some("5.11.0-1025-azure");
            Expected::Boot(2, Facts { nids: &[0, 3], cpus: 0, mib: 1279, page_kib: 4, kernel })
        }
        "A24" => machine(TO_7, 48, 1_035_213, 4, Some("5.19.0-rc2+")),
        "A26" => machine(TO_3, 0, 131_071, 4, Some("5.10.42")),
        "A29" => machine(&[0, 1], 0, 771_072, 4, None),
        "A33" => machine(&[0, 1], 88, 62_152, 4, None),
        "A35" | "A37" => memory,
        "A39" | "A41" => Expected::Asks("--page-size"),
        "A45" | "A50" => Expected::Asks("--boot"),
        "B01" => machine(TO_23, 384, 761_458, 4, None),
        "B04" | "B05" => machine(&[0], 4, 2919, 4, None),
        "B07" => machine(TO_7, 64, 128_914, 4, None),
        "B09" => machine(&[0, 1], 16, 62_464, 4, None),
        "B12" => machine(&[0, 1, 4, 5, 8, 9, 12, 13], 256, 504_320, 4, None),
        "B14" => machine(&[0, 8, 250, 251, 252, 253, 254, 255], 32, 349_768, 4, None),
        "B16" => machine(&[0, 1, 2, 33, 34, 45, 72, 73], 48, 98_301, 4, None),
        "B18" => machine(&[1], 8, 65_536, 4, None),
        "B20" => machine(TO_3, 96, 516_088, 4, None),
        "B21" | "B23" | "B36" => memory,
        "B25" => Expected::Asks("Loongson"),
        "B27" => machine(&[0], 0, 16_384, 4, None),
        "B29" => machine(&[0], 0, 16_128, 4, None),
        "B32" => machine(TO_3, 80, 1_032_072, 4, None),
        "B33" => machine(TO_7, 256, 515_755, 4, None),
        "B38" => machine(TO_3, 16, 15_647, 4, None),
        "C01" => Expected::Asks("--page-size"),
        _ => Expected::Asks("none of the inputs that are known"),
    }
}

fn request(path: &str, boot: Option<usize>) -> Request {
    Request { specs: vec![path.into()], boot, ..Request::default() }
}

fn check(path: &str, machine: &Machine, facts: &Facts) {
    let nids: Vec<u32> = machine.nodes.iter().map(|n| n.nid.0).collect();
    assert_eq!(nids, facts.nids, "{path}");
    assert_eq!(machine.cpus.len(), facts.cpus, "{path}");
    let mib = machine.memory_bytes() >> 20;
    assert!(mib.abs_diff(facts.mib) <= 1, "{path}: {mib} MiB and not {}", facts.mib);
    assert_eq!(machine.page_bytes >> 10, facts.page_kib, "{path}");
    if let Some(kernel) = facts.kernel {
        let found = machine.kernel_release.as_deref().unwrap_or("");
        assert!(found.starts_with(kernel), "{path}: {found}");
    }
    let is_assumed = machine.warnings.iter().any(|w| w.code == "cpus-unknown");
    assert!(facts.cpus > 0 || is_assumed || path.ends_with("xml"), "{path}");
}

/// The files of an entry that are inputs.
fn inputs(entry: &Value) -> Vec<String> {
    let files = entry["files"].as_array().unwrap().iter().filter_map(Value::as_str);
    let inputs = files.filter(|f| !f.ends_with(".flat.txt"));
    inputs.map(|f| format!("{FOLDER}/{f}")).collect()
}

#[test]
fn every_file_gives_its_machine_or_asks_for_what_is_missing() {
    for entry in index() {
        for path in inputs(&entry) {
            if path.ends_with(".xml") && cfg!(not(feature = "hwloc")) {
                continue;
            }
            let loaded = request(&path, None).load();
            match (expected(entry["id"].as_str().unwrap()), loaded) {
                (Expected::Machine(facts), Ok(loaded)) => check(&path, &loaded.machine, &facts),
                (Expected::Asks(words), Err(error)) => {
                    assert!(error.to_string().contains(words), "{error}");
                    assert!(error.to_string().contains(path.as_str()), "{error}");
                }
                (Expected::Boot(boot, facts), Err(MachineError::SeveralBoots { .. })) => {
                    let loaded = request(&path, Some(boot)).load().unwrap();
                    check(&path, &loaded.machine, &facts);
                }
                (_, Ok(loaded)) => panic!("{path}: {}", loaded.machine.title),
                (_, Err(error)) => panic!("{error}"),
            }
        }
    }
}

#[test]
fn every_time_of_the_index_is_found() {
    let mut found = 0;
    for entry in index().iter().filter(|e| e["kind"] == "bootlog") {
        let path = inputs(entry).remove(0);
        let log = BootLog::read(&path, fs::read(&path).unwrap().as_slice()).unwrap();
        let times: Vec<_> = log.boots.iter().flat_map(|b| b.init_times()).collect();
        let lines = entry["init_lines"].as_array().unwrap();
        assert_eq!(times.len(), lines.len(), "{path}");
        for (time, line) in times.iter().zip(lines) {
            assert_eq!(u64::from(time.nid.0), line["node"], "{path}");
            assert_eq!(time.ms, line["ms"].as_f64().unwrap(), "{path}");
            assert_eq!(time.pages, line["pages"].as_u64(), "{path}");
            found += 1;
        }
    }
    assert!(found == 0 || found == 69, "{found}");
}

fn log_of(id: &str) -> Option<BootLog> {
    let entry = index().into_iter().find(|e| e["id"] == id)?;
    let path = inputs(&entry).remove(0);
    Some(BootLog::read(&path, fs::read(&path).unwrap().as_slice()).unwrap())
}

#[test]
fn traps_of_single_files_are_seen() {
    let caveats = |id: &str| -> BTreeSet<Caveat> {
        let log = log_of(id).unwrap();
        log.boots.iter().flat_map(|b| b.init_times()).flat_map(|t| t.caveats).collect()
    };
    if index().is_empty() {
        return;
    }
    assert!(caveats("A03").contains(&Caveat::PagePoison));
    assert!(caveats("A21").contains(&Caveat::DebugKernel));
    assert!(caveats("A24").contains(&Caveat::DebugKernel));
    assert!(caveats("A45").contains(&Caveat::StalledTick));
    assert!(caveats("A06").contains(&Caveat::FewTicks));
    assert!(!caveats("A22").contains(&Caveat::StalledTick));
    let rate = |id: &str, n: usize| log_of(id).unwrap().boots[0].init_times()[n].ns_per_page;
    assert!((rate("A03", 0).unwrap() - 376.0).abs() < 1.0);
    assert!((rate("A39", 1).unwrap() - 17.1).abs() < 0.1);
    let serial = log_of("A29").unwrap().boots[0].serial_times();
    let rates: Vec<_> = serial.iter().filter_map(|t| t.ns_per_page).map(f64::round).collect();
    assert_eq!(rates, [37.0, 32.0, 35.0]);
}

#[test]
fn holes_are_no_pages() {
    for (id, pages) in [("A14", 8_323_328), ("A26", 33_554_384)] {
        let Some(entry) = index().into_iter().find(|e| e["id"] == id) else { return };
        let machine = request(&inputs(&entry)[0], None).load().unwrap().machine;
        assert_eq!(machine.memory_bytes() / machine.page_bytes, pages, "{id}");
    }
}

#[test]
fn what_is_missing_can_be_given() {
    for entry in index() {
        let id = entry["id"].as_str().unwrap().to_string();
        let wanted = ["A35", "A37", "A39", "B21", "B23", "B25", "B36"];
        if !wanted.contains(&id.as_str()) {
            continue;
        }
        let path = inputs(&entry).remove(0);
        // The others name their architecture, or it may be assumed.
        let is_asked = matches!(id.as_str(), "A39" | "B25");
        let answers = Answers {
            arch: is_asked.then_some(pageinit::machine::Arch::Ppc64),
            memory_per_node_bytes: Some(1 << 30),
            ..Answers::default()
        };
        let request = Request { specs: vec![path.clone()], answers, ..Request::default() };
        let machine = request.load().unwrap_or_else(|e| panic!("{e}")).machine;
        assert!(machine.memory_bytes() >= machine.nodes.len() as u64 >> 30, "{path}");
    }
}

#[test]
fn flat_copies_of_trees_agree_with_the_tarballs() {
    let Ok(entries) = fs::read_dir(FOLDER) else { return };
    let paths: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    for path in paths.iter().filter(|p| p.to_string_lossy().ends_with(".flat.txt")) {
        let flat = fs::read_to_string(path).unwrap();
        let tar = path.to_string_lossy().replace(".flat.txt", ".tar.gz");
        let machine = request(&tar, None).load().unwrap().machine;
        let totals = flat.lines().filter(|l| l.starts_with("Node ") && l.contains(" MemTotal:"));
        let kib: u64 =
            totals.map(|l| l.split_whitespace().nth(3).unwrap().parse::<u64>().unwrap()).sum();
        assert_eq!(machine.memory_bytes() >> 10, kib, "{tar}");
    }
}
