//! Mangled inputs of every format: no panic, no hang, no growth.
//!
//! The short and repeatable brother of the fuzz targets in `fuzz/`. Seeded, so that a
//! finding can be repeated. `PAGEINIT_MANGLED_RUNS` sets how many inputs are tried; public
//! files beside the project are mangled too where they are.

use pageinit::kernel::{KernelModel, layout};
use pageinit::machine::Machine;
use pageinit::machine::bootlog::{self, BootLog};
use pageinit::machine::evidence::{Answers, complete};
use pageinit::machine::input::{Format, parse_text};
use pageinit::machine::to_toml::to_toml;
use pageinit::record::calibration::Calibration;
use pageinit::report;
use pageinit::study::calibrate::phases;
use pageinit::study::published;
use pageinit::study::validate::validate;
use std::fs;

/// Larger machines take longer to lay out; what is mangled into their size is left there.
const MOST_MEMORY_BYTES: u64 = 1 << 40;

/// Own samples, as short as shows all parts of a format; the fuzz targets start from them.
const SAMPLES: [&str; 14] = [
    include_str!("../fuzz/seeds/log/boot"),
    include_str!("../fuzz/seeds/log/memblock"),
    include_str!("../fuzz/seeds/numactl/two-nodes"),
    include_str!("../fuzz/seeds/lscpu/four-cpus"),
    include_str!("../fuzz/seeds/lsmem/two-blocks"),
    include_str!("../fuzz/seeds/iomem/two-ranges"),
    include_str!("../fuzz/seeds/toml/two-nodes"),
    include_str!("../fuzz/seeds/toml/uniform"),
    include_str!("../fuzz/seeds/xml/one-cpu"),
    include_str!("../fuzz/seeds/xml/two-nodes"),
    include_str!("../fuzz/seeds/figures/record.json"),
    include_str!("../fuzz/seeds/figures/record.toml"),
    include_str!("../fuzz/seeds/calibration/two-threads"),
    include_str!("../fixtures/boots/6.12_n2-odd.json"),
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
    let texts = [Format::Numactl, Format::Lscpu, Format::Lsmem, Format::Iomem];
    let others = [Format::MachineToml, Format::HwlocXml, Format::Facts];
    let forced = texts.into_iter().chain(others).map(Some);
    for format in forced.chain([None]) {
        if let Ok(machine) = parse_text("mangled", bytes, format) {
            follow(&machine);
        }
    }
    try_log(bytes);
    let text = String::from_utf8_lossy(bytes);
    if let Ok(figures) = published::parse("mangled", &text)
        && figures.records.len() < 3
    {
        let _ = validate("mangled", &figures, Vec::new());
    }
    if let Ok(found) = serde_json::from_str::<Calibration>(&text) {
        let _ = phases(&found);
    }
}

/// A panic behind the parser is one as well: the machine is shown, written, read again
/// and laid out.
fn follow(machine: &Machine) {
    assert!(!report::machine::text(machine, None).is_empty());
    let written = to_toml(machine);
    let again = parse_text("written", written.as_bytes(), Some(Format::MachineToml));
    assert!(again.is_ok(), "{again:?} of\n{written}");
    if machine.memory_bytes() <= MOST_MEMORY_BYTES {
        let own = machine.kernel_release.as_deref().unwrap_or("6.12");
        let kernel = KernelModel::from_release(own, machine.arch);
        let _ = kernel.map(|kernel| layout(machine, &kernel));
    }
}

fn try_log(bytes: &[u8]) {
    let Ok(log) = BootLog::read("mangled", bytes) else { return };
    let mut facts = 0;
    for boot in &log.boots {
        facts += boot.init_times().len() + boot.serial_times().len();
        if let Ok(evidence) = bootlog::evidence::evidence("mangled", boot) {
            facts += evidence.explain().len();
            if let Ok(machine) = complete("mangled", &evidence, &Answers::default()) {
                follow(&machine);
            }
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
    for _ in 0..runs.unwrap_or(10_000) {
        let mut bytes = samples[random.below(samples.len())].clone();
        let other = samples[random.below(samples.len())].clone();
        mangle(&mut bytes, &other, &mut random);
        try_all(&bytes);
    }
}
