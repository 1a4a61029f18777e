//! Turning results into bytes; pure, no printing.
//!
//! A record that was read back is a [`source::Source`], and [`view`] shows any number of
//! them as text tables, CSV, Markdown, [`blame`] or [`chain`], as [`pictures`] in SVG, as
//! a page of [`html`] or as a [`trace`]; [`sheets`] are the numbers that views share.
//! [`compare`] is the table of a record, [`lab`] that of an experiment, [`strategies`]
//! the list of strategies and stores, [`machine`] a machine and [`layout`] a layout for
//! people and as JSON, [`init_times`] what logs say; [`estimate`], [`sweep`] and
//! [`validate`] show predictions, and say so. `cli` prints what these return.

pub mod blame;
pub mod chain;
pub mod compare;
pub mod csv;
pub mod diff;
pub mod doctor;
pub mod estimate;
mod grid;
pub mod html;
pub mod init_times;
pub mod lab;
pub mod layout;
pub mod machine;
pub mod markdown;
mod phases;
pub mod pictures;
pub mod sheet;
pub mod sheets;
pub mod source;
pub mod strategies;
mod summary;
pub mod sweep;
pub mod table;
pub mod trace;
pub mod validate;
pub mod view;
