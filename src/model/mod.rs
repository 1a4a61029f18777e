//! Boot plans in virtual time: what they would take on machines that are not here.
//!
//! [`Hardware`] says what a machine's processors and memory can do, from the table of
//! [`processors`] and the machine itself; [`cost`] what one page costs; [`queue`] how a
//! node's workers slow each other down; [`teams`] takes the chunks event by event;
//! [`anchor`] takes a known time for the class's costs, [`setup`] keeps what follows;
//! [`added`] and [`hugetlb`] what is no boot plan: memory added later, gigantic pages.
//! [`run()`] does a whole [`crate::plan::BootPlan`]. All numbers stand in [`constants`]
//! and the table, with their marks. Stands beside `exec`, which it does not know, and
//! never touches this host. `docs/model.md` explains the equations.

pub mod added;
pub mod anchor;
pub mod constants;
pub mod cost;
pub mod hardware;
pub mod hugetlb;
mod jobs;
pub mod processors;
pub mod queue;
pub mod range;
pub mod run;
pub mod setup;
pub mod teams;

pub use anchor::Anchor;
pub use cost::Options;
pub use hardware::{Hardware, Scaling, Virt};
pub use range::Range;
pub use run::{Bound, Run, run};
pub use setup::Setup;
