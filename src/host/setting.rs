//! Settings of the kernel that are changed for a while and put back whatever happens.
//!
//! A [`SettingGuard`] remembers what stood in the files it changes. It puts that back
//! when it goes out of scope: at a normal end, an error, a first Ctrl-C or a panic. For
//! an end that runs no code of ours (a second Ctrl-C, SIGKILL, the out-of-memory
//! killer) a child process waits on a pipe: when this process dies the pipe closes, and
//! the child writes the old values back.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Why a setting could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    /// The file could not be read.
    #[error("cannot read the setting {}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The file could not be written.
    #[error("cannot write the setting {}: {source}; this needs root", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The child that puts settings back could not be started.
    #[error("cannot start a shell that would put settings back if this program is killed: {0}")]
    Keeper(#[source] io::Error),
}

/// Waits until its input ends, whatever signals come, then writes each value into its
/// file: `$1` is the first file, `$2` its value, and so on.
const KEEPER: &str = "trap '' INT TERM HUP QUIT PIPE; cat >/dev/null; \
                      while [ $# -gt 1 ]; do printf %s \"$2\" >\"$1\"; shift 2; done";

/// Settings as they were, to be put back.
#[derive(Debug)]
pub struct SettingGuard {
    before: Vec<(PathBuf, String)>,
    keeper: Option<Child>,
}

impl SettingGuard {
    /// Reads the files and starts the child that puts them back if this process dies.
    /// Changes nothing yet.
    ///
    /// # Errors
    /// [`SettingError::Read`] and [`SettingError::Keeper`].
    pub fn save(paths: &[PathBuf]) -> Result<Self, SettingError> {
        let mut before = Vec::with_capacity(paths.len());
        for path in paths {
            before.push((path.clone(), read(path)?));
        }
        let mut command = Command::new("/bin/sh");
        command.args(["-c", KEEPER, "sh"]);
        for (path, value) in &before {
            command.arg(path).arg(value);
        }
        // A process group of its own: Ctrl-C on the terminal does not reach it.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let keeper = command.process_group(0).spawn().map_err(SettingError::Keeper)?;
        Ok(Self { before, keeper: Some(keeper) })
    }

    /// Writes a new value into one of the saved files.
    ///
    /// # Errors
    /// [`SettingError::Write`]; other settings stay changed until the guard goes.
    pub fn set(&self, path: &Path, value: &str) -> Result<(), SettingError> {
        write(path, value)
    }

    /// Puts everything back and says which files do not hold what they held.
    pub fn restore(mut self) -> Vec<PathBuf> {
        self.put_back();
        let differs = |(path, value): &&(PathBuf, String)| {
            read(path).is_ok_and(|now| now != *value) || read(path).is_err()
        };
        self.before.iter().filter(differs).map(|(path, _)| path.clone()).collect()
    }

    /// The reverse order: a setting that others follow is put back last.
    fn put_back(&mut self) {
        let Some(mut keeper) = self.keeper.take() else { return };
        for (path, value) in self.before.iter().rev() {
            // A failure is found by `restore`; the others still have to be put back.
            let _ = write(path, value);
        }
        // Its input ends; it writes the same once more and is gone.
        drop(keeper.stdin.take());
        let _ = keeper.wait();
    }
}

impl Drop for SettingGuard {
    fn drop(&mut self) {
        self.put_back();
    }
}

/// Whether a setting could be changed: asks the kernel without changing anything.
pub fn may_write(path: &Path) -> bool {
    fs::OpenOptions::new().write(true).open(path).is_ok()
}

/// The value of a setting: the word in brackets of `always [madvise] never`, or the
/// whole text where nothing is in brackets.
///
/// # Errors
/// [`SettingError::Read`].
pub fn read(path: &Path) -> Result<String, SettingError> {
    let text = fs::read_to_string(path)
        .map_err(|source| SettingError::Read { path: path.into(), source })?;
    Ok(chosen(&text).to_owned())
}

fn chosen(text: &str) -> &str {
    let word = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    word.map_or_else(|| text.trim(), |(word, _)| word)
}

fn write(path: &Path, value: &str) -> Result<(), SettingError> {
    fs::write(path, value).map_err(|source| SettingError::Write { path: path.into(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::{Duration, Instant};
    use tempfile::TempDir;

    /// Two settings as sysfs shows them.
    fn tree() -> (TempDir, PathBuf, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        fs::write(&a, "always inherit madvise [never]\n").unwrap();
        fs::write(&b, "always [madvise] never\n").unwrap();
        (dir, a, b)
    }

    fn values(a: &Path, b: &Path) -> (String, String) {
        (read(a).unwrap(), read(b).unwrap())
    }

    #[test]
    fn settings_are_put_back_at_the_end_and_after_an_error() {
        let (dir, a, b) = tree();
        let guard = SettingGuard::save(&[a.clone(), b.clone()]).unwrap();
        guard.set(&a, "always").unwrap();
        guard.set(&b, "never").unwrap();
        assert_eq!(values(&a, &b), ("always".into(), "never".into()));
        assert!(guard.set(dir.path(), "x").is_err(), "a folder cannot be written");
        assert_eq!(guard.restore(), [] as [PathBuf; 0]);
        assert_eq!(values(&a, &b), ("never".into(), "madvise".into()));
    }

    #[test]
    fn settings_are_put_back_after_a_panic() {
        let (_dir, a, b) = tree();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let guard = SettingGuard::save(&[a.clone(), b.clone()]).unwrap();
            guard.set(&a, "always").unwrap();
            std::panic::resume_unwind(Box::new("a test"));
        }));
        assert!(panicked.is_err());
        assert_eq!(values(&a, &b), ("never".into(), "madvise".into()));
    }

    #[test]
    fn what_cannot_be_put_back_is_named() {
        let (_dir, a, b) = tree();
        let guard = SettingGuard::save(&[a.clone(), b.clone()]).unwrap();
        fs::remove_file(&a).unwrap();
        fs::create_dir(&a).unwrap();
        assert_eq!(guard.restore(), [a]);
        assert_eq!(read(&b).unwrap(), "madvise");
    }

    #[test]
    fn a_missing_setting_is_named_and_nothing_is_changed() {
        let (dir, a, _) = tree();
        let missing = dir.path().join("missing");
        let text = SettingGuard::save(&[a, missing]).unwrap_err().to_string();
        assert!(text.contains("missing"), "{text}");
        assert!(!may_write(&dir.path().join("missing")) && !may_write(dir.path()));
    }

    const CHILD: &str = "PAGEINIT_TEST_SETTING_CHILD";

    /// A process that is killed runs no code: this test, started again, is killed.
    #[test]
    fn settings_are_put_back_when_the_process_is_killed() {
        if let Some(folder) = std::env::var_os(CHILD) {
            let path = Path::new(&folder).join("a");
            let guard = SettingGuard::save(std::slice::from_ref(&path)).unwrap();
            guard.set(&path, "always").unwrap();
            std::thread::sleep(Duration::from_secs(60));
            return;
        }
        let (dir, a, _) = tree();
        let name = "host::setting::tests::settings_are_put_back_when_the_process_is_killed";
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name])
            .env(CHILD, dir.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        wait_for(&a, "always");
        child.kill().unwrap();
        child.wait().unwrap();
        wait_for(&a, "never");
    }

    /// `never` is also what stands there before: the file then has no brackets.
    fn wait_for(path: &Path, value: &str) {
        let began = Instant::now();
        while fs::read_to_string(path).unwrap_or_default() != value {
            assert!(began.elapsed() < Duration::from_secs(30), "{value} never came");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn the_word_in_brackets_is_the_value() {
        assert_eq!(chosen("always inherit [madvise] never\n"), "madvise");
        assert_eq!(chosen("17\n"), "17");
        assert_eq!(chosen("odd ] text ["), "odd ] text [");
    }
}
