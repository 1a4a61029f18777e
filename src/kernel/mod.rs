//! What Linux does with a machine's memory at boot, version by version.
//!
//! [`KernelModel`] holds the rules of one version, [`BootInput`] applies them to a
//! [`crate::machine::Machine`] or a captured boot and gives a [`Layout`]: zones, the
//! memmap's extents, early and deferred pages, padata jobs per node or free range.
//! [`padata`] cuts jobs into chunks, [`struct_page`] knows the bytes of a struct
//! page, [`buddy`] which block heads the freed pages form. Pure functions; no I/O.

pub mod boot;
pub mod buddy;
pub mod cmdline;
pub mod config;
pub mod deferral;
pub mod early;
pub mod effects;
pub mod jobs;
pub mod layout;
pub mod memblock;
pub mod memory_map;
pub mod notes;
pub mod oracle;
pub mod padata;
pub mod page_format;
pub mod place;
pub mod release;
pub mod rules;
pub mod sparse;
pub mod sparse_rules;
pub mod struct_page;
pub mod version;
pub mod zones;

pub use boot::{BootInput, layout};
pub use layout::Layout;
pub use version::{KernelModel, KernelVersion};
