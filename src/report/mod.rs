//! Turning results into bytes; pure, no printing.
//!
//! [`compare`] is the table of a record, [`lab`] that of an experiment, [`strategies`]
//! the list of strategies and stores, [`machine`] a machine for people and as JSON.
//! `cli` prints what these return.

pub mod compare;
pub mod lab;
pub mod machine;
pub mod strategies;
