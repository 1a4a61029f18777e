//! Saving documents whole: a [`Target`] is either as it was, or holds all of the new text.
//!
//! Every save writes a temporary file in the same folder, syncs it, renames it over the
//! target and syncs the folder, so that neither a full disk, nor `kill -9`, nor a power cut
//! leaves half a record. [`FileError`] says what to do. Used by every verb that writes a
//! file; knows nothing of what is in it.

use serde::Serialize;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a file could not be saved. Whatever it held before is intact.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Somebody's work is in the way.
    #[error("{path}: is there already and stays as it is; name a new file or add --force",
        path = .0.display())]
    Exists(PathBuf),
    /// A folder where a file was expected.
    #[error("{path}: is a folder; name a file in it", path = .0.display())]
    IsFolder(PathBuf),
    /// No folder to put the file into.
    #[error("{path}: there is no folder {folder}; make it first or name a file elsewhere",
        path = .path.display(), folder = .folder.display())]
    NoFolder {
        /// The file.
        path: PathBuf,
        /// The folder that is missing.
        folder: PathBuf,
    },
    /// The system refused.
    #[error("{path}: {doing}: {why}; {remedy}", path = .path.display(), remedy = remedy(.why))]
    Io {
        /// The file.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        why: io::Error,
    },
}

impl FileError {
    /// Whether the command line is at fault rather than the system.
    pub const fn is_usage(&self) -> bool {
        !matches!(self, Self::Io { .. })
    }
}

/// What to do about an error of the system.
fn remedy(why: &io::Error) -> &'static str {
    match why.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "make room there or name a file on another disk"
        }
        ErrorKind::FileTooLarge => "raise the limit of file sizes (ulimit -f)",
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "name a file in a folder that you may write"
        }
        ErrorKind::InvalidFilename => "name it shorter",
        _ => "name a file elsewhere",
    }
}

/// A file that documents are saved to, each instead of the last.
#[derive(Debug)]
pub struct Target {
    /// As the user named it, for messages.
    named: PathBuf,
    /// Behind links.
    path: PathBuf,
    folder: PathBuf,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Must not be there at the first save.
    New,
    /// May be replaced.
    Replaced,
    /// A device or pipe: written into, for there is nothing to rename over.
    Special,
}

impl Target {
    /// Checks at once that `named` can be saved, so that nobody measures for an hour in
    /// vain: its folder is there and takes a file, and no file is in the way unless `force`.
    ///
    /// # Errors
    /// Whatever a save would fail with now.
    pub fn new(named: &Path, force: bool) -> Result<Self, FileError> {
        let named = named.to_owned();
        // A link is followed: renaming over it would leave what it points to behind.
        let path = fs::canonicalize(&named).unwrap_or_else(|_| named.clone());
        let kind = match fs::metadata(&named) {
            Ok(found) if found.is_dir() => return Err(FileError::IsFolder(named)),
            Ok(found) if found.is_file() && force => Kind::Replaced,
            Ok(found) if found.is_file() => return Err(FileError::Exists(named)),
            Ok(_) => Kind::Special,
            // A link to nothing.
            Err(_) if fs::symlink_metadata(&named).is_ok() => {
                return Err(FileError::Exists(named));
            }
            Err(_) => Kind::New,
        };
        let folder = match path.parent() {
            Some(folder) if folder.as_os_str().is_empty() => Path::new(".").to_owned(),
            Some(folder) => folder.to_owned(),
            None => return Err(FileError::IsFolder(named)),
        };
        let target = Self { named, path, folder, kind };
        if target.path.file_name().is_none() {
            return Err(FileError::IsFolder(target.named));
        }
        if kind != Kind::Special {
            target.check_folder()?;
            target.remove_leftovers();
        }
        Ok(target)
    }

    /// Saves `text` in place of whatever this target held.
    ///
    /// # Errors
    /// When the system refuses; no temporary file is left.
    pub fn save(&mut self, text: &str) -> Result<(), FileError> {
        if self.kind == Kind::Special {
            let opened = OpenOptions::new().write(true).open(&self.named);
            let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
            return written.map_err(|why| self.failed("writing it failed", why));
        }
        let temporary = Temporary::at(self.temporary_path());
        let made = temporary.create();
        let file = made.map_err(|why| self.failed("making a file beside it failed", why))?;
        self.keep_mode(&file);
        write_and_sync(&file, text).map_err(|why| self.failed("writing it failed", why))?;
        drop(file);
        self.put(&temporary)?;
        self.kind = Kind::Replaced;
        // The new text is in place: an error here must not read as if the old one were.
        sync_folder(&self.folder).map_err(|why| self.failed(UNSYNCED, why))
    }

    /// Saves a document as JSON that people can read.
    ///
    /// # Errors
    /// As [`Self::save`].
    pub fn save_json(&mut self, document: &impl Serialize) -> Result<(), FileError> {
        let text = serde_json::to_string_pretty(document);
        let mut text = text.map_err(|why| self.failed("making its JSON failed", why.into()))?;
        text.push('\n');
        self.save(&text)
    }

    /// Gives the temporary file the target's name.
    fn put(&self, temporary: &Temporary) -> Result<(), FileError> {
        if self.kind == Kind::New {
            // A link never replaces what somebody else made in the meantime.
            match fs::hard_link(&temporary.path, &self.path) {
                Ok(()) => return Ok(()),
                Err(why) if why.kind() == ErrorKind::AlreadyExists => {
                    return Err(FileError::Exists(self.named.clone()));
                }
                // File systems without links: the check of `new` has to do.
                Err(_) => {}
            }
        }
        let renamed = fs::rename(&temporary.path, &self.path);
        renamed.map_err(|why| self.failed("replacing it failed", why))
    }

    fn check_folder(&self) -> Result<(), FileError> {
        if !self.folder.is_dir() {
            let (path, folder) = (self.named.clone(), self.folder.clone());
            return Err(FileError::NoFolder { path, folder });
        }
        let made = Temporary::at(self.temporary_path()).create();
        made.map(drop).map_err(|why| self.failed("making a file beside it failed", why))
    }

    /// A file that is replaced keeps its permissions; if it cannot, that harms nothing.
    fn keep_mode(&self, file: &File) {
        if let Ok(old) = fs::metadata(&self.path) {
            let _ = file.set_permissions(old.permissions());
        }
    }

    fn temporary_path(&self) -> PathBuf {
        self.folder.join(format!("{}{}{SUFFIX}", self.prefix(), std::process::id()))
    }

    fn prefix(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        format!(".{name}.")
    }

    /// Removes what killed processes left beside this file.
    fn remove_leftovers(&self) {
        let prefix = self.prefix();
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let pid = name.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(SUFFIX));
            let pid = pid.and_then(|digits| digits.parse::<u32>().ok());
            let is_dead = |pid: u32| !Path::new("/proc").join(pid.to_string()).exists();
            // A process of another host or container has no entry there, but writes fast.
            let is_old = || {
                let changed = entry.metadata().and_then(|found| found.modified()).ok();
                changed.and_then(|at| at.elapsed().ok()).is_some_and(|age| age > LEFTOVER_AGE)
            };
            if pid.is_some_and(is_dead) && is_old() {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    fn failed(&self, doing: &'static str, why: io::Error) -> FileError {
        FileError::Io { path: self.named.clone(), doing, why }
    }
}

/// What failed when the file is new but its name may not last.
const UNSYNCED: &str = "its new text is in place, but syncing its folder failed";
/// Temporary files that nobody wrote to for so long are nobody's.
const LEFTOVER_AGE: Duration = Duration::from_secs(60);

/// What temporary files end in, after the process's id.
const SUFFIX: &str = ".pageinit-tmp";

/// A temporary file, which is gone when this is dropped.
struct Temporary {
    path: PathBuf,
}

impl Temporary {
    const fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Only this process makes files of this name: one that is there is its own, or that
    /// of a dead process with the same id.
    fn create(&self) -> io::Result<File> {
        OpenOptions::new().write(true).create(true).truncate(true).open(&self.path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn write_and_sync(mut file: &File, text: &str) -> io::Result<()> {
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// The new name lasts only when the folder is on the disk, too.
fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        // Some file systems cannot do it, and folders may be writable but not readable.
        Err(why) if [ErrorKind::InvalidInput, ErrorKind::Unsupported].contains(&why.kind()) => {
            Ok(())
        }
        Err(why) if why.kind() == ErrorKind::PermissionDenied => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use tempfile::TempDir;

    fn names(folder: &Path) -> Vec<String> {
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let mut all: Vec<String> = fs::read_dir(folder).unwrap().flatten().map(name).collect();
        all.sort();
        all
    }

    #[test]
    fn a_file_is_made_and_replaced_whole() {
        let dir = TempDir::new().unwrap();
        let file = dir.path().join("a.json");
        let mut target = Target::new(&file, false).unwrap();
        assert!(!file.exists());
        target.save("first and long").unwrap();
        target.save("second").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "second");
        assert_eq!(names(dir.path()), ["a.json"]);
    }

    #[test]
    fn somebodys_file_is_left_alone_without_force() {
        let dir = TempDir::new().unwrap();
        let file = dir.path().join("a.json");
        fs::write(&file, "work").unwrap();
        let error = Target::new(&file, false).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("--force"), "{error}");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        Target::new(&file, true).unwrap().save("new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_file_made_in_the_meantime_is_not_replaced() {
        let dir = TempDir::new().unwrap();
        let file = dir.path().join("a.json");
        let mut target = Target::new(&file, false).unwrap();
        fs::write(&file, "theirs").unwrap();
        assert!(matches!(target.save("ours"), Err(FileError::Exists(_))));
        assert_eq!(fs::read_to_string(&file).unwrap(), "theirs");
        assert_eq!(names(dir.path()), ["a.json"]);
    }

    #[test]
    fn what_is_no_file_is_named() {
        let dir = TempDir::new().unwrap();
        let text = |path: &Path| Target::new(path, true).unwrap_err().to_string();
        assert!(text(dir.path()).contains("is a folder"));
        assert!(text(Path::new("/")).contains("is a folder"));
        assert!(text(Path::new("")).contains("is a folder"));
        assert!(text(&dir.path().join("no/a.json")).contains("there is no folder"));
        symlink("nowhere/at/all", dir.path().join("link")).unwrap();
        assert!(text(&dir.path().join("link")).contains("is there already"));
    }

    #[test]
    fn a_link_is_followed() {
        let dir = TempDir::new().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::write(&real, "old").unwrap();
        symlink(&real, &link).unwrap();
        Target::new(&link, true).unwrap().save("new").unwrap();
        assert_eq!(fs::read_to_string(&real).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    // Root may write anywhere, so a folder that is gone stands for all refusals.
    #[test]
    fn a_refused_save_leaves_nothing_behind() {
        let dir = TempDir::new().unwrap();
        let folder = dir.path().join("folder");
        fs::create_dir(&folder).unwrap();
        let mut target = Target::new(&folder.join("a.json"), false).unwrap();
        fs::remove_dir(&folder).unwrap();
        let error = target.save("text").unwrap_err();
        assert!(!error.is_usage() && error.to_string().contains("a.json"), "{error}");
        assert_eq!(names(dir.path()), [""; 0]);
    }

    #[test]
    fn a_full_device_is_said() {
        let Ok(mut full) = Target::new(Path::new("/dev/full"), false) else { return };
        let error = full.save("text").unwrap_err().to_string();
        assert!(error.contains("/dev/full") && error.contains("make room"), "{error}");
        Target::new(Path::new("/dev/null"), false).unwrap().save("text").unwrap();
        assert!(Path::new("/dev/null").exists());
    }

    #[test]
    fn what_killed_processes_left_is_removed() {
        let dir = TempDir::new().unwrap();
        // No process has this id: it is above the largest that Linux gives.
        let dead = dir.path().join(format!(".a.json.4194399{SUFFIX}"));
        let other = dir.path().join(format!(".b.json.4194399{SUFFIX}"));
        let mine = dir.path().join(".a.json.notes");
        let young = dir.path().join(format!(".a.json.4194398{SUFFIX}"));
        for file in [&dead, &other, &mine, &young] {
            fs::write(file, "half").unwrap();
        }
        let long_ago = std::time::SystemTime::now() - 2 * LEFTOVER_AGE;
        for file in [&dead, &other, &mine] {
            OpenOptions::new().write(true).open(file).unwrap().set_modified(long_ago).unwrap();
        }
        Target::new(&dir.path().join("a.json"), false).unwrap();
        assert_eq!([dead.exists(), other.exists(), mine.exists()], [false, true, true]);
        assert!(young.exists(), "another container's process may be writing it");
    }
}
