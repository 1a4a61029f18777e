//! Turning results into bytes; pure, no printing.
//!
//! [`compare`] is the table of a record, [`strategies`] the list of strategies and
//! stores, [`machine`] a machine and [`layout`] a layout for people and as JSON;
//! [`estimate`], [`sweep`] and [`validate`] show predictions, and say so. `cli` prints
//! what these return.

pub mod compare;
pub mod estimate;
pub mod layout;
pub mod machine;
pub mod strategies;
pub mod sweep;
pub mod validate;
