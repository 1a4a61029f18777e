//! `/proc/iomem`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pageinit::machine::input::Format;

fuzz_target!(|bytes: &[u8]| pageinit_fuzz::text(bytes, Format::Iomem));
