//! Saving records in files: `-o FILE` and `--force`.
//!
//! [`SaveArgs`] are the arguments; [`save`] and [`save_and_show`] write a document by
//! [`crate::record::file`], whole or not at all.

use super::exit::Failure;
use crate::record::file::Target;
use serde::Serialize;
use std::io;
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
    /// The file, checked before any work is done for it.
    pub(super) fn target(&self) -> Result<Option<Target>, Failure> {
        target(self.output.as_ref(), self.force)
    }
}

/// The file of `-o` in verbs that write there instead of stdout.
pub(super) fn target(output: Option<&PathBuf>, force: bool) -> Result<Option<Target>, Failure> {
    Ok(output.map(|path| Target::new(path, force)).transpose()?)
}

/// Saves a document where a file was named, and shows it. A reader that closes stdout
/// early does not cost the file, and a full disk does not cost what stdout shows.
pub(super) fn save_and_show(
    target: Option<Target>,
    document: &impl Serialize,
    show: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let saved = save(target, document);
    let shown = show();
    saved.and(shown)
}

/// Saves a document where a file was named.
pub(super) fn save(target: Option<Target>, document: &impl Serialize) -> Result<(), Failure> {
    let Some(mut target) = target else { return Ok(()) };
    let mut text = serde_json::to_string_pretty(document).map_err(io::Error::from)?;
    text.push('\n');
    Ok(target.save(&text)?)
}
