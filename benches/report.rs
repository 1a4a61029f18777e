//! Rate of the boot log reader, and the memory it needs.
//!
//! The size is 100 MB, or 2 MB with `PAGEINIT_BENCH_SMOKE`. The log is made up here:
//! boots of a small machine between lines that say nothing about memory. After the
//! measurement the peak memory of the process is printed; the log itself is made in
//! pieces and never held.

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use pageinit::machine::bootlog::BootLog;
use std::hint::black_box;
use std::io::{BufReader, Read};
use std::time::Duration;

/// One boot of the log, some 20 KiB.
fn boot() -> Vec<u8> {
    let mut text = String::from(
        "[    0.000000] Linux version 6.1.0-bench (a@b) (x86_64-linux-gnu-gcc 12) #1 SMP\n\
         [    0.000000] Command line: root=/dev/sda1 quiet\n",
    );
    for n in 0..40u64 {
        let (start, end) = (n << 30, ((n + 1) << 30) - 1);
        text += &format!("[    0.000000] BIOS-e820: [mem {start:#018x}-{end:#018x}] usable\n");
    }
    for n in 0..200 {
        text += &format!(
            "[    0.{n:06}] ACPI: SSDT 0x00000000{n:08X} 0002A0 (v02 BENCH  T{n} 00001000 X)\n"
        );
    }
    text += "[    0.500000] Early memory node ranges\n";
    for n in 0..40u64 {
        let (start, end) = (n << 30, ((n + 1) << 30) - 1);
        text += &format!("[    0.500000]   node   {}: [mem {start:#018x}-{end:#018x}]\n", n / 20);
    }
    text += "[    1.000000] smp: Brought up 2 nodes, 64 CPUs\n\
             [    1.500000] node 0 deferred pages initialised in 120ms\n\
             [    1.500000] node 1 deferred pages initialised in 124ms\n";
    text.into_bytes()
}

/// A boot again and again, up to a number of bytes.
struct Repeated {
    piece: Vec<u8>,
    at: usize,
    left: u64,
}

impl Read for Repeated {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let rest = self.piece.get(self.at..).unwrap_or_default();
        let count = out.len().min(rest.len()).min(usize::try_from(self.left).unwrap_or(0));
        out[..count].copy_from_slice(&rest[..count]);
        self.left -= count as u64;
        self.at = (self.at + count) % self.piece.len();
        Ok(count)
    }
}

fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn reading(c: &mut Criterion) {
    let is_smoke = std::env::var_os("PAGEINIT_BENCH_SMOKE").is_some();
    let bytes: u64 = if is_smoke { 2_000_000 } else { 100_000_000 };
    let mut group = c.benchmark_group("bootlog");
    group.throughput(Throughput::Bytes(bytes)).sampling_mode(SamplingMode::Flat).sample_size(10);
    group.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(100));
    let piece = boot();
    group.bench_function("read", |b| {
        b.iter(|| {
            let log = Repeated { piece: piece.clone(), at: 0, left: bytes };
            black_box(BootLog::read("bench", BufReader::new(log)).expect("it is text"))
        });
    });
    group.finish();
    if let Some(kib) = peak_kib() {
        println!("peak memory {} MiB", kib / 1024);
    }
}

criterion_group!(benches, reading);
criterion_main!(benches);
