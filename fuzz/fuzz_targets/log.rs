//! A boot log in any form.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pageinit_fuzz::log(bytes));
