//! A scrubbed copy of a host's `/sys` and `/proc`, for reports and tests.
//!
//! [`capture`] collects only what [`super::sysfs_tree`] reads, and writes every
//! value anew from the numbers it parsed: names of hosts and users, serials,
//! hardware addresses, UUIDs and kernel pointers have no way in. [`write`] puts the
//! files below a folder that must not hold anything yet.

use super::cpulist;
use super::tree::{Files, NODES};
use crate::pfn::PhysRange;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

/// Texts by path.
pub type Captured = BTreeMap<String, String>;

/// Collects the files from a tree, for example `Path::new("/")`; `arch` is a name as
/// `uname -m` prints it.
pub fn capture(files: &(impl Files + ?Sized), arch: &str) -> Captured {
    let mut out = Captured::new();
    out.insert("proc/sys/kernel/arch".into(), format!("{arch}\n"));
    if let Some(release) = files.text("proc/sys/kernel/osrelease").and_then(|r| release(&r)) {
        out.insert("proc/sys/kernel/osrelease".into(), release + "\n");
    }
    if let Some(model) = files.text("proc/cpuinfo").and_then(|info| model(&info)) {
        out.insert("proc/cpuinfo".into(), format!("model name\t: {model}\n"));
    }
    nodes(files, &mut out);
    blocks(files, &mut out);
    let cpus = list(files, "sys/devices/system/cpu/online");
    if let Some(ids) = cpus {
        topology(files, &ids, &mut out);
        let text = cpulist::format(&ids) + "\n";
        out.insert("sys/devices/system/cpu/online".into(), text);
    }
    if let Some(text) = files.text("proc/zoneinfo").map(|text| zoneinfo(&text)) {
        out.insert("proc/zoneinfo".into(), text);
    }
    let ram = files.text("proc/iomem").map(|text| iomem(&text)).unwrap_or_default();
    if !ram.is_empty() {
        out.insert("proc/iomem".into(), ram);
    }
    out.retain(|_, text| !text.is_empty());
    out
}

/// Writes the files below `folder`, which is made if it is not there.
///
/// # Errors
///
/// The folder holds something already, or a file cannot be written.
pub fn write(folder: &Path, captured: &Captured) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    if fs::read_dir(folder)?.next().is_some() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the folder is not empty"));
    }
    for (path, text) in captured {
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)?;
    }
    Ok(())
}

/// `major.minor.patch` and what a distribution appends; a self-built kernel's own
/// suffix may be a name, so that only known shapes stay.
pub fn release(text: &str) -> Option<String> {
    let text = text.trim();
    let numbers: String = text.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    let rest = text.get(numbers.len()..)?;
    let known =
        ["generic", "amd64", "arm64", "cloud", "el", "fc", "deb", "azure", "aws", "default"];
    let is_plain = rest.chars().all(|c| c.is_ascii_alphanumeric() || "+-._".contains(c));
    let is_known = is_plain && known.iter().any(|word| rest.contains(word));
    Some(if is_known { text.to_string() } else { numbers })
}

/// The processor's name without anything but words.
fn model(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    let name = line.split_once(':')?.1;
    let allowed = |c: &char| c.is_ascii_alphanumeric() || " ()-@./+".contains(*c);
    let name: String = name.chars().filter(allowed).take(80).collect();
    let words: Vec<&str> = name.split_whitespace().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

fn list(files: &(impl Files + ?Sized), path: &str) -> Option<Vec<u32>> {
    cpulist::parse(files.text(path)?.trim()).ok()
}

fn nodes(files: &(impl Files + ?Sized), out: &mut Captured) {
    for nid in files.numbers(NODES, "node") {
        let directory = format!("{NODES}/node{nid}");
        let ids = list(files, &format!("{directory}/cpulist")).unwrap_or_default();
        out.insert(format!("{directory}/cpulist"), cpulist::format(&ids) + "\n");
        let row = files.text(&format!("{directory}/distance")).unwrap_or_default();
        let row: Option<Vec<u32>> = row.split_whitespace().map(|d| d.parse().ok()).collect();
        let row: Vec<String> = row.unwrap_or_default().iter().map(u32::to_string).collect();
        if !row.is_empty() {
            out.insert(format!("{directory}/distance"), row.join(" ") + "\n");
        }
        let info = files.text(&format!("{directory}/meminfo")).unwrap_or_default();
        let total = info.lines().find_map(|line| line.split_once("MemTotal:"));
        let kib = total.and_then(|(_, rest)| rest.split_whitespace().next()?.parse::<u64>().ok());
        if let Some(kib) = kib {
            let text = format!("Node {nid} MemTotal: {kib} kB\n");
            out.insert(format!("{directory}/meminfo"), text);
        }
        for block in files.numbers(&directory, "memory") {
            out.insert(format!("{directory}/memory{block}/state"), "online\n".into());
        }
    }
}

fn blocks(files: &(impl Files + ?Sized), out: &mut Captured) {
    let memory = "sys/devices/system/memory";
    let size = files.text(&format!("{memory}/block_size_bytes"));
    let Some(size) = size.and_then(|s| u64::from_str_radix(s.trim(), 16).ok()) else { return };
    out.insert(format!("{memory}/block_size_bytes"), format!("{size:x}\n"));
    for block in files.numbers(memory, "memory") {
        let state = files.text(&format!("{memory}/memory{block}/state"));
        let is_online = state.is_none_or(|state| state.trim() != "offline");
        let state = if is_online { "online\n" } else { "offline\n" };
        out.insert(format!("{memory}/memory{block}/state"), state.into());
        if !is_online {
            // A block that is offline belongs to its node all the same.
            let suffix = format!("/memory{block}/state");
            let linked = |path: &&String| path.starts_with(NODES) && path.ends_with(&suffix);
            if let Some(path) = out.keys().find(linked).cloned() {
                out.insert(path, state.into());
            }
        }
    }
}

fn topology(files: &(impl Files + ?Sized), ids: &[u32], out: &mut Captured) {
    for id in ids {
        let directory = format!("sys/devices/system/cpu/cpu{id}/topology");
        for file in ["core_id", "physical_package_id"] {
            let path = format!("{directory}/{file}");
            let number = files.text(&path).and_then(|text| text.trim().parse::<i64>().ok());
            if let Some(number) = number {
                out.insert(path, format!("{number}\n"));
            }
        }
    }
}

/// The nodes, zones and their limits.
fn zoneinfo(text: &str) -> String {
    let keys = ["spanned", "present", "managed", "start_pfn:"];
    let mut out = String::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["Node", nid, "zone", zone] => {
                let nid = nid.trim_end_matches(',').parse::<u32>();
                let zones = ["DMA", "DMA32", "Normal", "Movable", "Device", "HighMem"];
                if let (Ok(nid), true) = (nid, zones.contains(zone)) {
                    out += &format!("Node {nid}, zone {zone:>8}\n");
                }
            }
            [key, number] if keys.contains(key) => {
                if let Ok(number) = number.parse::<u64>() {
                    out += &format!("        {key} {number}\n");
                }
            }
            _ => {}
        }
    }
    out
}

/// `System RAM` where addresses are shown; nothing else of the tree.
fn iomem(text: &str) -> String {
    let range = |line: &str| {
        let (range, what) = line.split_once(" : ")?;
        let (start, last) = range.trim().split_once('-')?;
        let start = u64::from_str_radix(start, 16).ok()?;
        let end = u64::from_str_radix(last, 16).ok()?.checked_add(1)?;
        let is_ram = what.starts_with("System RAM") && end > 1;
        is_ram.then(|| PhysRange::new(start, end))
    };
    let ranges = text.lines().filter_map(range);
    ranges.map(|r| format!("{:08x}-{:08x} : System RAM\n", r.start, r.end - 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::sysfs::tests::{put, tree};
    use super::super::sysfs_tree;
    use super::*;
    use crate::pfn::Nid;

    /// A host whose files are full of what must not get out.
    fn talkative() -> tempfile::TempDir {
        let dir = tree(&[(0, &[0, 1]), (1, &[2])]);
        let secret = "secret-host 52:54:00:12:34:56 ffff888012345678 alice";
        put(&dir, "proc/sys/kernel/osrelease", "6.1.0-alice-laptop\n");
        put(&dir, "proc/sys/kernel/hostname", secret);
        put(&dir, "proc/version", secret);
        put(&dir, "sys/class/dmi/id/product_uuid", "c0ffee00-1234-5678-9abc-def012345678\n");
        put(&dir, "sys/devices/system/cpu/online", "0-1\n");
        let cpuinfo =
            "processor\t: 0\nmodel name\t: Sample  CPU @ 2.00GHz\nserial\t: 0123456789ab\n";
        put(&dir, "proc/cpuinfo", cpuinfo);
        let iomem = "00000000-0fffffff : System RAM\n  01000000-01ffffff : Kernel code\n\
                     10000000-17ffffff : System RAM\n20000000-20000fff : secret-host\n";
        put(&dir, "proc/iomem", iomem);
        let zones = "Node 0, zone   Normal\n  pages free 1\n spanned 65536\n present 65536\n \
                     managed 65000\n start_pfn:  0\n\
                     Node 1, zone   Normal\n spanned 32768\n present 32768\n managed 32000\n \
                     start_pfn:  65536\n";
        put(&dir, "proc/zoneinfo", zones);
        for (nid, list, kib) in [(0, "0", 260_000), (1, "1", 128_000)] {
            put(&dir, &format!("{NODES}/node{nid}/cpulist"), list);
            let text = format!("Node {nid} MemTotal: {kib} kB\nNode {nid} Owner: {secret}\n");
            put(&dir, &format!("{NODES}/node{nid}/meminfo"), &text);
        }
        dir
    }

    #[test]
    fn nothing_personal_is_captured() {
        let captured = capture(talkative().path(), "x86_64");
        let all: String = captured.iter().map(|(path, text)| format!("{path} {text}")).collect();
        for secret in ["secret", "alice", "laptop", "52:54", "ffff8880", "c0ffee", "0123456789ab"] {
            assert!(!all.contains(secret), "{secret} in\n{all}");
        }
        assert_eq!(captured["proc/sys/kernel/osrelease"], "6.1.0\n");
        assert_eq!(captured["proc/cpuinfo"], "model name\t: Sample CPU @ 2.00GHz\n");
    }

    #[test]
    fn what_is_captured_reads_the_same() {
        let host = talkative();
        let copy = tempfile::tempdir().unwrap();
        let captured = capture(host.path(), "x86_64");
        write(copy.path(), &captured).unwrap();
        let found = sysfs_tree::folder(copy.path()).unwrap();
        let original = sysfs_tree::folder(host.path()).unwrap();
        assert_eq!(found.nodes.len(), 2);
        for (nid, node) in &found.nodes {
            let other = &original.nodes[nid];
            let value = |n: &super::super::evidence::NodeEvidence| {
                (n.ranges.clone().map(|k| k.value), n.bytes.clone().map(|k| k.value))
            };
            assert_eq!(value(node), value(other));
        }
        assert_eq!(found.page_bytes.unwrap().value, 4096);
        assert_eq!(found.nodes[&Nid(1)].cpus.as_ref().unwrap().value, [1]);
        assert!(write(copy.path(), &captured).is_err());
    }

    #[test]
    fn releases_of_distributions_stay() {
        assert_eq!(release("6.12.117+deb13-cloud-amd64\n").unwrap(), "6.12.117+deb13-cloud-amd64");
        assert_eq!(release("5.15.0-91-generic").unwrap(), "5.15.0-91-generic");
        assert_eq!(release("6.9.0-bob").unwrap(), "6.9.0");
    }
}
