//! Trees of small files: this host's, a captured folder, or a tarball.
//!
//! [`Files`] is what the readers of `/sys` and `/proc` need. A [`Path`] is trusted,
//! [`Folder`] is not: it follows no link out of itself, reads no special file and
//! remembers the first thing it had to refuse. [`Held`] is a tarball in memory;
//! nothing of it is ever written to a disk.

use super::MachineError;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Component, Path, PathBuf};

/// Where a tree of `/sys` has its nodes.
pub const NODES: &str = "sys/devices/system/node";

/// The largest file that is read; those of sysfs have at most a few pages.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// What a tarball may hold, unpacked.
const MAX_TAR_BYTES: u64 = 256 << 20;

/// What is kept of it; the trees of the largest machines need a tenth.
const MAX_HELD_BYTES: usize = 32 << 20;

/// How many entries a tarball or folder may have.
const MAX_ENTRIES: usize = 200_000;

/// Small text files by path, without a `/` in front.
pub trait Files {
    /// The text of a file, if it can be read.
    fn text(&self, path: &str) -> Option<String>;

    /// The numbers N of the entries `prefixN` of a directory, ascending.
    fn numbers(&self, directory: &str, prefix: &str) -> Vec<u32>;
}

impl Files for Path {
    fn text(&self, path: &str) -> Option<String> {
        fs::read(self.join(path)).ok().map(|b| String::from_utf8_lossy(&b).into_owned())
    }

    fn numbers(&self, directory: &str, prefix: &str) -> Vec<u32> {
        let Ok(entries) = fs::read_dir(self.join(directory)) else { return Vec::new() };
        let names =
            entries.take(MAX_ENTRIES).filter_map(|e| e.ok()?.file_name().into_string().ok());
        numbers_of(names, prefix)
    }
}

fn numbers_of(names: impl Iterator<Item = String>, prefix: &str) -> Vec<u32> {
    let mut numbers: Vec<u32> =
        names.filter_map(|name| name.strip_prefix(prefix)?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// A folder of unknown origin.
#[derive(Debug)]
pub struct Folder {
    /// The folder itself, without links.
    root: PathBuf,
    /// Where its nodes are, below `root`.
    nodes: PathBuf,
    problem: RefCell<Option<String>>,
}

impl Folder {
    /// Opens a captured tree: the folder above `sys`, the one above that, `sys`
    /// itself, or a copy of `/sys/devices/system/node`.
    ///
    /// # Errors
    ///
    /// The folder cannot be read, or holds no node.
    pub fn open(path: &Path) -> Result<Self, MachineError> {
        let unreadable = |problem: String| MachineError::Unreadable { path: path.into(), problem };
        let root = fs::canonicalize(path).map_err(|e| unreadable(e.to_string()))?;
        let mut places: Vec<PathBuf> = vec![NODES.into(), "devices/system/node".into(), "".into()];
        let entries = fs::read_dir(&root).map_err(|e| unreadable(e.to_string()))?;
        let mut below: Vec<PathBuf> =
            entries.take(1000).filter_map(|e| Some(PathBuf::from(e.ok()?.file_name()))).collect();
        below.sort();
        places.extend(below.iter().map(|name| name.join(NODES)));
        let has_node = |place: &PathBuf| {
            let names = root.join(place);
            !names.numbers("", "node").is_empty()
        };
        let nodes = places.into_iter().find(has_node).ok_or_else(|| {
            let what = "is a directory without a node; expected a copy of /sys/devices/system/node \
                        or a tree with sys/devices/system/node in it";
            unreadable(what.into())
        })?;
        Ok(Self { root, nodes, problem: RefCell::default() })
    }

    /// What had to be refused, if anything.
    pub fn problem(&self) -> Option<String> {
        self.problem.borrow().clone()
    }

    /// The real place of `path`, if it lies in this folder.
    fn resolve(&self, path: &str) -> Option<PathBuf> {
        let wanted = match path.strip_prefix(NODES) {
            Some(rest) => self.root.join(&self.nodes).join(rest.trim_start_matches('/')),
            None => {
                let above = self.nodes.to_str()?.strip_suffix(NODES)?;
                self.root.join(above).join(path)
            }
        };
        match fs::canonicalize(&wanted) {
            Ok(real) if real.starts_with(&self.root) => Some(real),
            Ok(_) => self.refuse(&wanted, "leads out of the tree"),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                None
            }
            Err(error) => self.refuse(&wanted, &error.to_string()),
        }
    }

    fn refuse<T>(&self, path: &Path, why: &str) -> Option<T> {
        let shown = path.strip_prefix(&self.root).unwrap_or(path);
        let text = format!("{}: {why}", shown.display());
        self.problem.borrow_mut().get_or_insert(text);
        None
    }
}

impl Files for Folder {
    fn text(&self, path: &str) -> Option<String> {
        let real = self.resolve(path)?;
        let kind = fs::metadata(&real).ok()?;
        if !kind.is_file() {
            return self.refuse(&real, "is no regular file");
        }
        let mut bytes = Vec::new();
        let read =
            fs::File::open(&real).and_then(|f| f.take(MAX_FILE_BYTES).read_to_end(&mut bytes));
        match read {
            Ok(_) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) => self.refuse(&real, &error.to_string()),
        }
    }

    fn numbers(&self, directory: &str, prefix: &str) -> Vec<u32> {
        self.resolve(directory).map(|real| real.numbers("", prefix)).unwrap_or_default()
    }
}

/// A tree in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    texts: BTreeMap<String, String>,
    /// Names in a directory.
    names: BTreeMap<String, BTreeSet<String>>,
}

impl Held {
    /// Reads a tarball, packed with gzip or not. `name` is for errors.
    ///
    /// Symbolic links are not followed, hard links are; only files below `sys` and `proc`
    /// or of nodes count.
    ///
    /// # Errors
    ///
    /// The archive is damaged or too large, a path is absolute or has `..`, links run
    /// in a circle or out of the archive, or there is no node.
    pub fn read_tar(name: &str, bytes: impl Read, is_gzip: bool) -> Result<Self, MachineError> {
        let plain: Box<dyn Read + '_> = match is_gzip {
            true => Box::new(flate2::read::MultiGzDecoder::new(bytes)),
            false => Box::new(bytes),
        };
        let fail = |problem: String| MachineError::content(name, None, problem);
        let mut archive = tar::Archive::new(plain.take(MAX_TAR_BYTES));
        let mut files = Vec::new();
        let mut links = BTreeMap::new();
        let mut held_bytes = 0;
        let damaged = |e: std::io::Error| fail(format!("the archive cannot be read: {e}"));
        for (count, entry) in archive.entries().map_err(damaged)?.enumerate() {
            let mut entry = entry.map_err(damaged)?;
            let path = safe(&entry.path().map_err(damaged)?).map_err(fail)?;
            if count > MAX_ENTRIES {
                return Err(fail(format!("the archive has more than {MAX_ENTRIES} entries")));
            }
            let kind = entry.header().entry_type();
            let mut text = Vec::new();
            if kind.is_symlink() || kind.is_hard_link() {
                let target = entry.link_name().map_err(damaged)?.unwrap_or_default().into_owned();
                if kind.is_hard_link() {
                    text = linked(&path, &target, &files).map_err(fail)?;
                } else {
                    links.insert(path.clone(), target);
                }
            }
            if kind.is_file() && is_of_interest(&path) {
                entry.by_ref().take(MAX_FILE_BYTES).read_to_end(&mut text).map_err(damaged)?;
            }
            held_bytes += text.len() + path.len();
            if held_bytes > MAX_HELD_BYTES {
                return Err(fail("the archive unpacks to more than any captured tree".into()));
            }
            files.push((path, String::from_utf8_lossy(&text).into_owned()));
        }
        circles(&links).map_err(fail)?;
        Self::of(files).ok_or_else(|| {
            fail("the archive holds no node; expected sys/devices/system/node/node0 in it".into())
        })
    }

    /// A tree from paths and texts, moved so that its nodes lie in [`NODES`].
    fn of(files: Vec<(String, String)>) -> Option<Self> {
        let base = files.iter().find_map(|(path, _)| {
            let (directory, _file) = path.rsplit_once('/')?;
            let (base, node) = directory.rsplit_once('/').unwrap_or(("", directory));
            let is_node = node.strip_prefix("node").is_some_and(|n| n.parse::<u32>().is_ok());
            (is_node && !base.ends_with("hugepages")).then(|| base.to_string())
        })?;
        let above = base.strip_suffix(NODES).map(str::to_string);
        let mut tree = Self::default();
        for (path, text) in files {
            let inside = match &above {
                Some(above) => path.strip_prefix(above.as_str()).map(str::to_string),
                None => path
                    .strip_prefix(&base)
                    .map(|rest| format!("{NODES}/{}", rest.trim_start_matches('/'))),
            };
            if let Some(inside) = inside {
                tree.insert(&inside, text);
            }
        }
        Some(tree)
    }

    fn insert(&mut self, path: &str, text: String) {
        let mut at = path;
        while let Some((directory, name)) = at.rsplit_once('/') {
            self.names.entry(directory.into()).or_default().insert(name.into());
            at = directory;
        }
        if !text.is_empty() {
            self.texts.insert(path.into(), text);
        }
    }
}

impl Files for Held {
    fn text(&self, path: &str) -> Option<String> {
        self.texts.get(path).cloned()
    }

    fn numbers(&self, directory: &str, prefix: &str) -> Vec<u32> {
        let names = self.names.get(directory).into_iter().flatten().cloned();
        numbers_of(names, prefix)
    }
}

/// The text of the file that a hard link means, which stands before it in the archive.
fn linked(path: &str, target: &Path, files: &[(String, String)]) -> Result<Vec<u8>, String> {
    if !is_of_interest(path) {
        return Ok(Vec::new());
    }
    let target = safe(target)?;
    let found = files.iter().rev().take(MAX_ENTRIES).find(|(own, _)| *own == target);
    let absent = || format!("{path} is a hard link to {target}, which is not in the archive");
    Ok(found.ok_or_else(absent)?.1.clone().into_bytes())
}

/// Whether a file may say something about nodes, CPUs or memory.
fn is_of_interest(path: &str) -> bool {
    path.contains("devices/system/") || path.contains("proc/") || path.contains("node")
}

/// A path of an archive as text, or why it is refused.
fn safe(path: &Path) -> Result<String, String> {
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => parts.push(part.to_string_lossy().into_owned()),
            Component::CurDir => {}
            Component::ParentDir => return Err(format!("the path {} has ..", path.display())),
            Component::RootDir | Component::Prefix(_) => {
                return Err(format!("the path {} is absolute", path.display()));
            }
        }
    }
    Ok(parts.join("/"))
}

/// Refuses links that lead out of the archive or, followed, come to no end.
fn circles(links: &BTreeMap<String, PathBuf>) -> Result<(), String> {
    const MOST_LINKS: usize = 40;
    for start in links.keys() {
        let mut at = start.clone();
        for step in 0.. {
            let Some(target) = links.get(&at) else { break };
            if step == MOST_LINKS {
                return Err(format!("the link {start} leads in a circle"));
            }
            let mut parts: Vec<String> = at.split('/').map(String::from).collect();
            parts.pop();
            for part in target.components() {
                match part {
                    Component::Normal(part) => parts.push(part.to_string_lossy().into_owned()),
                    Component::ParentDir if parts.pop().is_some() => {}
                    Component::CurDir => {}
                    _ => return Err(format!("the link {at} leads out of the archive")),
                }
            }
            at = parts.join("/");
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
