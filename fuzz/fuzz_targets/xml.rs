//! hwloc XML: our own look at it, and what hwloc makes of what passes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pageinit::machine::input::Format;

fuzz_target!(|bytes: &[u8]| pageinit_fuzz::machine(bytes, Some(Format::HwlocXml)));
