//! What the fuzz targets share: the bound on memory, and the way from an input to a
//! layout.
//!
//! A target reads an input as a user's file is read ([`machine`], [`log`], …) and goes on
//! with whatever came out ([`follow`]), because a panic behind the parser is one as well.

use pageinit::kernel::notes::notes;
use pageinit::kernel::version::NEWEST;
use pageinit::kernel::{BootInput, KernelModel};
use pageinit::machine::bootlog::{self, Boot, BootLog};
use pageinit::machine::evidence::{Answers, Evidence, combine, complete};
use pageinit::machine::input::{Format, parse_text};
use pageinit::machine::sniff::sniff;
use pageinit::machine::to_toml::to_toml;
use pageinit::machine::{Machine, file, iomem, library, lscpu, numactl};
use pageinit::record::calibration::Calibration;
use pageinit::report;
use pageinit::study::calibrate::phases;
use pageinit::study::estimate::{Question, estimate};
use pageinit::study::published;
use pageinit::study::validate::validate;
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// How much memory may grow with an input: `times` its length and `fixed_bytes`.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    /// Bytes for each byte of the input.
    pub times: usize,
    /// Bytes whatever the length.
    pub fixed_bytes: usize,
}

/// Our own readers: ten times the text. The fixed part are tables of at most 65,536 CPUs
/// and 1024 nodes, which a range such as `0-1023` names in six bytes. A table of distances
/// has 1024 x 1024 numbers of 4 bytes, and is held twice while it is copied.
pub const TEXT: Growth = Growth { times: 10, fixed_bytes: 24 << 20 };

/// The boot log reader alone has no such tables, but lines of 8 KiB in a few buffers, and
/// up to 65,536 CPUs of 4 bytes.
pub const LOG: Growth = Growth { times: 10, fixed_bytes: 1 << 20 };

/// The readers of `numactl -H` and its like: 65,536 CPUs of 4 bytes in a few lists that
/// grow by doubling, and 1024 nodes of some 400 bytes.
pub const LISTS: Growth = Growth { times: 10, fixed_bytes: 2 << 20 };

/// TOML and JSON with optional fields. `toml` keeps tokens, events and values of the whole
/// file with their places, some 70 bytes for a number of two digits; a record of figures
/// has a few hundred bytes even where the file says `{"id":""}`. The files are limited to
/// 8 and 4 MiB for that.
pub const STRUCTURED: Growth = Growth { times: 100, fixed_bytes: 24 << 20 };

/// A layout grows with the machine, not with the text: larger machines are not tried, and
/// what one takes is fixed.
pub const LAYOUT: Growth = Growth { times: 10, fixed_bytes: 64 << 20 };
const MOST_MEMORY_BYTES: u64 = 16 << 40;

/// Runs `work` and holds its memory against the bound for so much input.
///
/// # Panics
/// When it took more.
pub fn bounded<T>(what: &str, input_bytes: usize, rule: Growth, work: impl FnOnce() -> T) -> T {
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    let out = work();
    let grown = MEMORY.peak_usage().saturating_sub(before);
    let most = rule.times * input_bytes + rule.fixed_bytes;
    assert!(grown <= most, "{what}: {grown} bytes for {input_bytes} of input, more than {most}");
    out
}

/// Reads an input of the given format, or of that which it looks like, up to its layout.
pub fn machine(bytes: &[u8], format: Option<Format>) {
    let read = || parse_text("fuzz", bytes, format);
    let is_toml = format.or_else(|| sniff(bytes)) == Some(Format::MachineToml);
    let rule = if is_toml { STRUCTURED } else { TEXT };
    match bounded("reading", bytes.len(), rule, read) {
        Ok(machine) => follow(&machine, bytes.len()),
        Err(error) => drop(error.to_string()),
    }
}

/// Reads a text that leaves gaps, and then as [`machine`] does.
pub fn text(bytes: &[u8], format: Format) {
    let text = String::from_utf8_lossy(bytes);
    drop(bounded("the text", bytes.len(), LISTS, || evidence(&text, format)));
    machine(bytes, Some(format));
}

fn evidence(text: &str, format: Format) -> Option<Evidence> {
    let found = match format {
        Format::Numactl => numactl::parse("fuzz", text),
        Format::Lscpu => lscpu::parse("fuzz", text),
        Format::Lsmem => iomem::lsmem("fuzz", text),
        Format::Iomem => iomem::parse("fuzz", text),
        _ => {
            let log = BootLog::read("fuzz", text.as_bytes()).ok()?;
            bootlog::evidence::evidence("fuzz", log.boots.first()?)
        }
    };
    found.ok()
}

/// Several texts about one machine, with a 0x01 between them.
pub fn several(bytes: &[u8]) {
    let parts = bytes.split(|byte| *byte == 1).take(4);
    let known = parts.filter_map(|part| {
        evidence(&String::from_utf8_lossy(part), sniff(part).unwrap_or(Format::BootLog))
    });
    let known: Vec<Evidence> = known.collect();
    let full = || complete("fuzz", &combine(known)?, &Answers::default());
    if let Ok(machine) = bounded("joining", bytes.len(), TEXT, full) {
        follow(&machine, bytes.len());
    }
}

/// Reads a boot log, and its first boots up to their layout.
pub fn log(bytes: &[u8]) {
    let read = || BootLog::read("fuzz", bytes);
    let Ok(log) = bounded("the log", bytes.len(), LOG, read) else { return };
    if bytes.len() % 16 == 0 {
        // The fixed part hides what a short text does: the same log many times over.
        let long = bytes.repeat((1 << 20) / bytes.len().max(4096));
        drop(bounded("a long log", long.len(), LOG, || BootLog::read("fuzz", &long[..])));
    }
    for boot in log.boots.iter().take(2) {
        of_boot(boot, bytes.len());
    }
    if log.boots.len() == 1 {
        machine(bytes, Some(Format::BootLog));
    }
}

fn of_boot(boot: &Boot, input_bytes: usize) {
    let work = || {
        let times = boot.init_times().len() + boot.serial_times().len();
        (times, boot.summary(), bootlog::evidence::evidence("fuzz", boot))
    };
    let (_, _, found) = bounded("a boot", input_bytes, TEXT, work);
    let Ok(evidence) = found else { return };
    bounded("facts", input_bytes, TEXT, || evidence.explain());
    let answers = Answers { memory_per_node_bytes: Some(1 << 30), ..Answers::default() };
    let full = || complete("fuzz", &evidence, &answers);
    // A machine that needs no answer is followed by the caller.
    let is_whole = complete("fuzz", &evidence, &Answers::default()).is_ok();
    let Ok(machine) = bounded("filling gaps", input_bytes, TEXT, full) else { return };
    if !is_whole {
        follow(&machine, input_bytes);
    }
}

/// Shows a machine, writes it as TOML and reads that, and lays its memory out.
///
/// # Panics
/// When the TOML that was written is not read.
pub fn follow(machine: &Machine, input_bytes: usize) {
    bounded("showing", input_bytes, TEXT, || report::machine::text(machine, None));
    let written = bounded("writing", input_bytes, TEXT, || to_toml(machine));
    let again = bounded("again", written.len(), STRUCTURED, || file::parse("written", &written));
    if let Err(error) = again {
        panic!("a machine that was written is not read: {error}\n{written}");
    }
    if machine.memory_bytes() <= MOST_MEMORY_BYTES {
        bounded("the layout", input_bytes, LAYOUT, || layout(machine));
    }
}

/// The layout under the machine's own kernel, else under the newest.
fn layout(machine: &Machine) -> usize {
    let own = machine.kernel_release.as_deref();
    let own = own.and_then(|release| KernelModel::from_release(release, machine.arch).ok());
    let kernel = own.unwrap_or_else(|| KernelModel::new(NEWEST, machine.arch));
    let Ok(input) = BootInput::from_machine(machine, &kernel, None) else { return 0 };
    let Ok((layout, placement)) = input.boot() else { return 0 };
    let notes = notes(&input);
    let (input, layout, placement) = (&input, &layout, &placement);
    let view = report::layout::LayoutView { input, layout, placement, notes: &notes };
    report::layout::text(&view).len()
}

/// Reads published figures and predicts each of them.
pub fn figures(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let read = || published::parse("fuzz", text);
    let Ok(figures) = bounded("figures", bytes.len(), STRUCTURED, read) else { return };
    if figures.records.len() <= 4 {
        let _ = validate("fuzz", &figures, Vec::new());
    }
}

/// Reads a calibration as `estimate --calibration` does.
pub fn calibration(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let read = || serde_json::from_str::<Calibration>(text);
    let Ok(found) = bounded("a calibration", bytes.len(), STRUCTURED, read) else { return };
    let Ok(calibrated) = phases(&found) else { return };
    let machine = library::load("@vm-2c").expect("it is built in");
    let kernel = KernelModel::new(NEWEST, machine.arch);
    let question = Question { calibrated, free: true, ..Question::default() };
    if let Ok(found) = estimate(&machine, &kernel, &question) {
        drop(report::estimate::text(&found));
    }
}
