//! Saving records in files: `-o FILE` and `--force`.
//!
//! [`SaveArgs`] are the arguments; [`save_and_show`] writes a finished document by
//! [`crate::record::file`], whole or not at all; studies save unfinished ones themselves.

use super::exit::Failure;
use crate::record::file::Target;
use crate::record::keeper::{Keeper, USUAL_INTERVAL};
use serde::Serialize;
use std::path::PathBuf;

/// Arguments of every verb that makes a record.
#[derive(Debug, clap::Args)]
pub(super) struct SaveArgs {
    /// Save the record as JSON in this new file, whatever else is shown
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Replace FILE if it is there
    #[arg(long, requires = "output")]
    pub(super) force: bool,
}

impl SaveArgs {
    /// What saves to the file, which is checked before any work is done for it.
    pub(super) fn keeper(&self) -> Result<Option<Keeper>, Failure> {
        let target = target(self.output.as_ref(), self.force)?;
        Ok(target.map(|target| Keeper::new(target, USUAL_INTERVAL)))
    }
}

/// The file of `-o` in verbs that write there instead of stdout.
pub(super) fn target(output: Option<&PathBuf>, force: bool) -> Result<Option<Target>, Failure> {
    Ok(output.map(|path| Target::new(path, force)).transpose()?)
}

/// Saves a document where a file was named, and shows it. A reader that closes stdout
/// early does not cost the file, and a full disk does not cost what stdout shows.
pub(super) fn save_and_show(
    keeper: Option<Keeper>,
    document: &impl Serialize,
    show: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let saved = keeper.map(|mut keeper| keeper.save(document)).transpose();
    let shown = show();
    saved?;
    shown
}
