//! A calibration, up to the costs that a prediction takes from it.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pageinit_fuzz::calibration(bytes));
