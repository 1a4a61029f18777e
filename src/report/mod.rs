//! Turning results into bytes; pure, no printing.
//!
//! [`compare`] is the table of a record, [`lab`] that of an experiment, [`strategies`]
//! the list of strategies and stores, [`machine`] a machine and [`layout`] a layout for
//! people and as JSON, [`init_times`] what logs say; [`estimate`], [`sweep`] and
//! [`validate`] show predictions, and say so. `cli` prints what these return.

pub mod compare;
pub mod doctor;
pub mod estimate;
mod grid;
pub mod init_times;
pub mod lab;
pub mod layout;
pub mod machine;
pub mod sheet;
pub mod strategies;
pub mod sweep;
pub mod validate;
