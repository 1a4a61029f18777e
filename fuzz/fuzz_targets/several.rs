//! Several texts about one machine, joined.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pageinit_fuzz::several(bytes));
