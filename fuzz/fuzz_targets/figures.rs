//! A file of published figures, up to its predictions.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pageinit_fuzz::figures(bytes));
