//! Whatever the input looks like.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pageinit_fuzz::machine(bytes, None));
