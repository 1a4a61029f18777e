//! Mangled inputs of every format: no panic, no hang, no growth.
//!
//! Seeded, so that a finding can be repeated. `PAGEINIT_MANGLED_RUNS` sets how many
//! inputs are tried; public files beside the project are mangled too where they are.

use pageinit::machine::bootlog::{self, BootLog};
use pageinit::machine::evidence::{Answers, complete};
use pageinit::machine::input::{Format, parse_text};
use pageinit::machine::sniff::sniff;
use pageinit::machine::xml;
use std::fs;

/// Own samples, as short as shows all parts of a format.
const SAMPLES: [&str; 8] = [
    "[    0.000000] Linux version 6.1.0 (x86_64-linux-gnu-gcc) #1\n\
     [    0.000000] Command line: page_poison=1\n\
     [    0.000000] BIOS-e820: [mem 0x0000000000001000-0x000000003fffffff] usable\n\
     [    0.000000] ACPI: SRAT: Node 1 PXM 1 [mem 0x20000000-0x3fffffff]\n\
     [    0.1]   node   0: [mem 0x0000000000001000-0x000000001fffffff]\n\
     [    0.1]   node   1: [mem 0x0000000020000000-0x000000003fffffff]\n\
     [    0.1] Initmem setup node 2 [<memory-less node>]\n\
     [    0.2] .... node  #0, CPUs:   #1 #2\n[    0.2] smp: Brought up 2 nodes, 4 CPUs\n\
     [    0.3] node 0 initialised, 8222140 pages in 160ms\n\
     [    0.3] node 1 deferred pages initialised in 4ms\n",
    "MEMBLOCK configuration:\n memory[0x0]\t[0x0-0x8fff], 0x9000 bytes on node 0 flags: 0x2\n\
     reserved[0x0]\t[0x0-0xfff], 0x1000 bytes flags: 0x0\n\
     memblock_reserve: [0x1000-0x1fff] f+0x1/0x2\n\
     memblock_alloc_try_nid: 64 bytes align=0x40 nid=-1 from=0x0 max_addr=0x0 sparse_init+0x6/0x2\n\
     memblock_reserve: [0x4000-0x4fff] memblock_alloc_range_nid+0x1/0x2\nZone ranges:\n",
    "available: 2 nodes (0-1)\nnode 0 cpus: 0 1\nnode 0 size: 2000 MB\nnode 1 cpus:\n\
     node 1 size: 2000 MB\nnode distances:\nnode   0   1\n  0:  10  20\n  1:  20  10\n",
    "Architecture: x86_64\nCPU(s): 4\nThread(s) per core: 2\nL2 cache: 1 MiB (2 instances)\n\
     NUMA node0 CPU(s): 0-3\n# CPU,Core,Socket,Node,,L1d\n0,0,0,0,,0\n1,0,0,0,,0\n",
    "RANGE SIZE STATE NODE\n0x0-0x7ffffff 128M online 0\n0x8000000-0xfffffff 128M offline 1\n",
    "00001000-0009ffff : System RAM\n00100000-3fffffff : System RAM\n  01000000-1ffffff : x\n",
    "arch = \"arm64\"\ndistances = { local = 10, remote = 20 }\n[[node]]\nid = 0\n\
     ranges = [[\"0\", \"2GiB\"]]\ncpus = \"0-3\"\n[[node]]\nid = 1\n\
     ranges = [[\"4GiB\", \"5GiB\"]]\n",
    "<?xml version=\"1.0\"?>\n<topology version=\"2.0\">\n\
     <object type=\"Machine\" os_index=\"0\">\n\
     <object type=\"NUMANode\" os_index=\"0\" local_memory=\"1\"/>\n </object>\n</topology>\n",
];

/// What is put in the place of numbers and words.
const PIECES: [&str; 14] = [
    "0",
    "-1",
    "18446744073709551615",
    "99999999999999999999",
    "0xffffffffffffffff",
    "4096",
    "\n",
    "\u{fffd}",
    "[mem",
    "node",
    "\0",
    "=",
    "> > ",
    "1023",
];

/// A generator that needs no crate (xorshift64, Marsaglia 2003).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit.max(1) as u64).unwrap_or(0)
    }
}

fn mangle(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() + 1);
        match random.below(7) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] = random.below(256) as u8,
            2 => {
                let piece = PIECES[random.below(PIECES.len())];
                bytes.splice(at..at, piece.bytes());
            }
            3 => {
                let end = (at + random.below(60)).min(bytes.len());
                bytes.drain(at..end);
            }
            4 => {
                let from = random.below(other.len());
                let end = (from + random.below(200)).min(other.len());
                bytes.splice(at..at, other[from..end].iter().copied());
            }
            5 => {
                // A number becomes an extreme one.
                let digits = bytes[at..].iter().take_while(|b| b.is_ascii_hexdigit()).count();
                let piece = PIECES[random.below(6)];
                bytes.splice(at..at + digits, piece.bytes());
            }
            _ => {
                let end = (at + random.below(300)).min(bytes.len());
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
        }
    }
}

fn samples() -> Vec<Vec<u8>> {
    let mut out: Vec<Vec<u8>> = SAMPLES.iter().map(|s| s.as_bytes().to_vec()).collect();
    let Ok(entries) = fs::read_dir("../shared/corpus") else { return out };
    let mut paths: Vec<_> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.sort();
    for path in paths.iter().filter(|p| !p.to_string_lossy().ends_with(".json")) {
        out.extend(fs::read(path).ok().filter(|bytes| bytes.len() < 30_000));
    }
    out
}

fn try_all(bytes: &[u8]) {
    // hwloc's C code checks sets of CPUs with assertions in debug builds, and trusts
    // them in others: what is well-formed XML but no topology is not for this test.
    let text = String::from_utf8_lossy(bytes);
    if sniff(bytes) == Some(Format::HwlocXml) {
        let _ = xml::scan(&text);
    } else {
        let _ = parse_text("mangled", bytes, None);
    }
    for format in
        [Format::Numactl, Format::Lscpu, Format::Lsmem, Format::Iomem, Format::MachineToml]
    {
        let _ = parse_text("mangled", bytes, Some(format));
    }
    let Ok(log) = BootLog::read("mangled", bytes) else { return };
    let mut facts = 0;
    for boot in &log.boots {
        facts += boot.init_times().len() + boot.serial_times().len();
        if let Ok(evidence) = bootlog::evidence::evidence("mangled", boot) {
            facts += evidence.explain().len();
            let _ = complete("mangled", &evidence, &Answers::default());
        }
    }
    // The shortest line that says anything has some 20 bytes and gives three facts.
    assert!(facts <= bytes.len() / 4 + 64, "{facts} facts of {} bytes", bytes.len());
}

#[test]
fn no_mangled_input_fails_badly() {
    let runs = std::env::var("PAGEINIT_MANGLED_RUNS").ok().and_then(|n| n.parse().ok());
    let samples = samples();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..runs.unwrap_or(1500) {
        let mut bytes = samples[random.below(samples.len())].clone();
        let other = samples[random.below(samples.len())].clone();
        mangle(&mut bytes, &other, &mut random);
        try_all(&bytes);
    }
}
