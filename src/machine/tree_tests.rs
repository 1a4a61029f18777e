//! Tests of trees: what is read, and what is refused.

use super::super::sysfs::tests::{put, tree};
use super::*;
use std::os::unix::fs::symlink;

/// An archive whose paths are written as they are, safe or not.
fn archive(entries: &[(&str, Option<&str>, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, link, text) in entries {
        let mut header = tar::Header::new_gnu();
        header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_size(text.len() as u64);
        header.set_entry_type(tar::EntryType::Regular);
        if let Some(target) = link {
            let hard = target.strip_prefix("hard:");
            let kind = hard.map_or(tar::EntryType::Symlink, |_| tar::EntryType::Link);
            header.set_entry_type(kind);
            header.set_link_name_literal(hard.unwrap_or(target)).unwrap();
        }
        header.set_cksum();
        builder.append(&header, text.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap()
}

fn held(entries: &[(&str, Option<&str>, &str)]) -> Result<Held, String> {
    Held::read_tar("a.tar", archive(entries).as_slice(), false).map_err(|e| e.to_string())
}

#[test]
fn archives_are_read_wherever_the_tree_begins() {
    for head in ["", "./", "host/", "a/b/", "x/sys/devices/system/node/../"] {
        let meminfo = format!("{head}sys/devices/system/node/node3/meminfo");
        let release = format!("{head}proc/sys/kernel/osrelease");
        let found = held(&[(&meminfo, None, "Node 3"), (&release, None, "6.1")]);
        if head.contains("..") {
            assert!(found.unwrap_err().contains("has .."));
            continue;
        }
        let found = found.unwrap();
        assert_eq!(found.numbers(NODES, "node"), [3]);
        assert_eq!(found.text("sys/devices/system/node/node3/meminfo").unwrap(), "Node 3");
        assert_eq!(found.text("proc/sys/kernel/osrelease").unwrap(), "6.1");
    }
    let bare = held(&[("node0/meminfo", None, "Node 0"), ("node0/memory32/x", None, "")]).unwrap();
    assert_eq!(bare.text(&format!("{NODES}/node0/meminfo")).unwrap(), "Node 0");
    assert_eq!(bare.numbers(&format!("{NODES}/node0"), "memory"), [32]);
}

#[test]
fn hard_links_are_files() {
    let (first, second) = ("sys/devices/system/node/node0/x", "sys/devices/system/node/node1/x");
    let link = format!("hard:{first}");
    let found = held(&[(first, None, "Node 0"), (second, Some(&link), "")]).unwrap();
    assert_eq!(found.text(second).unwrap(), "Node 0");
    let error = held(&[(first, None, "x"), (second, Some("hard:nothing"), "")]).unwrap_err();
    assert!(error.contains(second) && error.contains("nothing"), "{error}");
}

#[test]
fn dangerous_archives_are_refused() {
    let node = ("sys/devices/system/node/node0/meminfo", None, "x");
    assert!(held(&[("/etc/passwd", None, "x"), node]).unwrap_err().contains("is absolute"));
    assert!(held(&[("a/../../b", None, "x"), node]).unwrap_err().contains("has .."));
    assert!(
        held(&[("a", Some("b"), ""), ("b", Some("a"), ""), node]).unwrap_err().contains("circle")
    );
    assert!(held(&[("a", Some("/etc"), ""), node]).unwrap_err().contains("leads out"));
    assert!(held(&[("a/b", Some("../../x"), ""), node]).unwrap_err().contains("leads out"));
    assert!(held(&[("a/b", Some("../c"), ""), node]).is_ok());
    assert!(held(&[("a", None, "x")]).unwrap_err().contains("no node"));
    let error = Held::read_tar("a.tgz", &b"\x1f\x8bgarbage"[..], true).unwrap_err().to_string();
    assert!(error.contains("cannot be read"), "{error}");
    let cut = &archive(&[node])[..600];
    assert!(Held::read_tar("a.tar", cut, false).is_err());
}

#[test]
fn folders_are_found_and_links_out_of_them_are_not_followed() {
    let dir = tree(&[(0, &[0]), (1, &[1])]);
    let sys = dir.path().join("sys");
    for path in [dir.path().to_path_buf(), sys.clone(), sys.join("devices/system/node")] {
        let folder = Folder::open(&path).unwrap();
        assert_eq!(folder.numbers(NODES, "node"), [0, 1], "{}", path.display());
        assert!(folder.text(&format!("{NODES}/node1/distance")).is_some());
    }
    let above = tempfile::tempdir().unwrap();
    put(&above, "host/sys/devices/system/node/node0/distance", "10");
    put(&above, "secret", "x");
    let node = above.path().join("host/sys/devices/system/node/node0");
    symlink("../../../../../../secret", node.join("meminfo")).unwrap();
    symlink("loop", node.join("loop")).unwrap();
    symlink("../node0", node.join("round")).unwrap();
    let folder = Folder::open(&above.path().join("host")).unwrap();
    assert_eq!(folder.text(&format!("{NODES}/node0/round/distance")).unwrap(), "10");
    assert!(folder.problem().is_none());
    assert_eq!(folder.text(&format!("{NODES}/node0/meminfo")), None);
    assert!(folder.problem().unwrap().contains("leads out of the tree"));
    let folder = Folder::open(above.path()).unwrap();
    assert_eq!(folder.text(&format!("{NODES}/node0/loop")), None);
    assert!(folder.problem().unwrap().contains("node0/loop"));
    assert!(Folder::open(&node).is_err());
}
