//! Results as bytes: tables for people and JSON for programs. Pure functions.
//!
//! [`machine`] shows a machine. `cli` prints what these functions return.

pub mod machine;
