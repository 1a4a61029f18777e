//! Everything that touches this host: memory, threads, clock, signals and stores.
//!
//! The only part of the project that may use `unsafe`. It knows no plan and no
//! machine description: [`mod@line`] is what stores write, [`store`] the instructions
//! that write it, [`arena`] the memory they write to, [`topology`] which CPU and
//! which node, [`clock`] the ruler. [`signal`] and [`budget`] keep long runs polite.
//! Every safe function here is sound whatever its caller does.
#![allow(unsafe_code)]

pub mod arena;
pub mod barrier;
pub mod budget;
pub mod cgroup;
pub mod clock;
pub mod error;
pub mod fetch;
pub mod line;
pub mod node_memory;
pub mod preempt;
pub mod region;
pub mod remap;
pub mod setting;
pub mod signal;
pub mod store;
pub mod thp;
#[cfg(feature = "hwloc")]
pub mod topology;
#[cfg(not(feature = "hwloc"))]
#[path = "topology_none.rs"]
pub mod topology;
pub mod zeroes;

pub use arena::{Arena, Residency};
pub use budget::MemoryBudget;
pub use clock::Clock;
pub use error::HostError;
pub use line::Line;
pub use store::{ImageStore, Store, StoreError, StoreInfo, StoreKind};
pub use topology::{HostNode, HostTopology};
