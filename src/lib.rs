//! `pageinit` runs, and models, the work that Linux does at boot to allocate and
//! initialise its array of `struct page` on machines with many NUMA nodes.
//!
//! A [`machine::Machine`] says what a computer is, a [`kernel::Layout`] what Linux
//! places where on it, a [`plan::BootPlan`] who initialises what and when, and a
//! [`record::Record`] what came out. Layers point one way, from [`cli`] down to
//! [`pfn`] and [`units`]; `tests/tidy.rs` holds them to it and DESIGN.md explains
//! them.

pub mod cli;
pub mod exec;
pub mod host;
pub mod kernel;
pub mod machine;
pub mod model;
pub mod nearest;
pub mod pfn;
pub mod plan;
pub mod progress;
pub mod record;
pub mod report;
pub mod stats;
pub mod study;
pub mod units;
pub mod warning;
