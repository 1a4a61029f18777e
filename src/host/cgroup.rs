//! The control groups of this process: [`folders`], of both versions.

use std::fs;
use std::path::{Path, PathBuf};

/// A version of control groups, which decides the names of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// One hierarchy for each controller.
    V1,
    /// One for all.
    V2,
}

/// The folders of this process's groups for `controller` and of all groups above them,
/// below `<root>/sys/fs/cgroup`; from the mount downwards. Some may not exist.
pub fn folders(root: &Path, controller: &str) -> Vec<(Version, PathBuf)> {
    let mount = root.join("sys/fs/cgroup");
    let text = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let mut out = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let mut add = |version, mount: PathBuf| {
            out.extend(downwards(&mount, path).map(|folder| (version, folder)));
        };
        if controllers.is_empty() {
            // Where both versions are mounted, version 2 stands one folder below.
            add(Version::V2, mount.clone());
            add(Version::V2, mount.join("unified"));
        } else if controllers.split(',').any(|name| name == controller) {
            add(Version::V1, mount.join(controller));
        }
    }
    out
}

/// From `mount` down to `path` below it. In a container the path may be the host's and
/// not exist here: then only the mount's own files are found, and they are the
/// container's.
fn downwards(mount: &Path, path: &str) -> impl Iterator<Item = PathBuf> {
    let mut names: Vec<String> =
        path.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    // Outside the process's namespace: such a path says nothing below this mount.
    if names.iter().any(|name| name == "..") {
        names.clear();
    }
    let mount = mount.to_owned();
    (0..=names.len()).map(move |depth| {
        names.iter().take(depth).fold(mount.clone(), |folder, name| folder.join(name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, controller: &str) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc/self")).unwrap();
        fs::write(root.path().join("proc/self/cgroup"), text).unwrap();
        let top = root.path().join("sys/fs/cgroup");
        let found = folders(root.path(), controller);
        found.iter().map(|(_, f)| f.strip_prefix(&top).unwrap().display().to_string()).collect()
    }

    #[test]
    fn groups_and_all_above_them_are_found() {
        assert_eq!(of("0::/a/b\n", "cpu"), ["", "a", "a/b", "unified", "unified/a", "unified/a/b"]);
        assert_eq!(of("4:cpu,cpuacct:/x\n", "cpu"), ["cpu", "cpu/x"]);
        assert_eq!(of("4:cpu,cpuacct:/x\n", "memory"), [""; 0]);
        assert_eq!(of("0::/../../x\n", "cpu"), ["", "unified"]);
    }
}
