//! A captured `/sys` tree, as a folder or a tarball, becomes evidence.
//!
//! [`folder`] and [`tarball`] read nodes, sizes, CPUs, distances and, where they were
//! captured, memory blocks, zones and topology. Uses [`super::tree`] for the files
//! and [`super::sysfs`] for what it has in common with this host.

use super::assume::arch_of;
use super::evidence::{Evidence, Known, Place};
use super::text::size;
use super::tree::{Files, Folder, Held, NODES};
use super::{Arch, Cpu, MachineError, cpulist, sysfs};
use crate::pfn::Nid;
use crate::warning::Warning;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;

/// Reads a captured tree in a folder.
///
/// # Errors
///
/// There is no node, a value is damaged, or a link leads out of the tree or in a circle.
pub fn folder(path: &Path) -> Result<Evidence, MachineError> {
    let folder = Folder::open(path)?;
    let evidence = evidence(&path.display().to_string(), &folder)?;
    match folder.problem() {
        Some(problem) => Err(MachineError::Unreadable { path: path.into(), problem }),
        None => Ok(evidence),
    }
}

/// Reads a captured tree in a tarball called `name`.
///
/// # Errors
///
/// As [`Held::read_tar`], or a value is damaged.
pub fn tarball(name: &str, bytes: impl Read, is_gzip: bool) -> Result<Evidence, MachineError> {
    evidence(name, &Held::read_tar(name, bytes, is_gzip)?)
}

/// Reads the tree of this host, which is trusted.
///
/// # Errors
///
/// `/sys` shows no node.
pub fn this_host(root: &Path) -> Result<Evidence, MachineError> {
    evidence("", root)
}

fn evidence(name: &str, files: &(impl Files + ?Sized)) -> Result<Evidence, MachineError> {
    let mut out = Evidence::new(name, "sysfs tree");
    let at = |path: &str| Place { input: format!("{name}/{path}"), line: None };
    identity(&mut out, files, &at);
    let online = read(files, name, "sys/devices/system/cpu/online", list)?;
    let ids = sysfs::node_ids(files);
    for &nid in &ids {
        let directory = format!("{NODES}/node{nid}");
        let path = format!("{directory}/cpulist");
        let mut cpus = read(files, name, &path, list)?.map(|ids| (ids, at(&path)));
        if cpus.is_none() {
            let path = format!("{directory}/cpumap");
            cpus = read(files, name, &path, mask)?.map(|ids| (ids, at(&path)));
        }
        let path = format!("{directory}/meminfo");
        let bytes = read(files, name, &path, |text| total_of(text, nid))?.flatten();
        let path_of_row = format!("{directory}/distance");
        if let Some(count) = read(files, name, &path_of_row, distances_of)?
            && count != ids.len()
        {
            out.warnings.push(other_nodes(&path_of_row, count, ids.len()));
        }
        let node = out.node(nid);
        node.bytes = bytes.map(|value| Known { value, at: at(&path) });
        node.cpus = cpus.map(|(mut ids, at)| {
            if let Some(online) = &online {
                ids.retain(|id| online.binary_search(id).is_ok());
            }
            Known { value: ids, at }
        });
    }
    out.all_nodes = Some(at(NODES));
    let page_bytes = page_bytes(&out, files);
    if let Some(memory) = sysfs::memory(files, page_bytes.unwrap_or(4096)) {
        for (nid, ranges) in memory.ranges {
            out.node(nid).ranges = Some(Known { value: ranges, at: at(&memory.from) });
        }
        let silent = out.nodes.values_mut().filter(|n| n.ranges.is_none());
        silent.for_each(|n| n.ranges = Some(Known { value: Vec::new(), at: at(NODES) }));
        out.warnings.extend(memory.warnings);
    }
    out.page_bytes = page_bytes.map(|value| Known { value, at: at("proc/zoneinfo") });
    let table = sysfs::distances(files);
    out.distances = table.map(|value| Known { value, at: at(NODES) });
    out.cpus = topology(&out, files).map(|value| Known { value, at: at("sys/devices/system/cpu") });
    Ok(out)
}

/// What `parse` makes of a file; `None` where it is not there. What it refuses is an
/// error of a captured tree, called `name`, and nothing known of this host, which has none.
fn read<T>(
    files: &(impl Files + ?Sized),
    name: &str,
    path: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, MachineError> {
    match files.text(path).map(|text| parse(text.trim())) {
        Some(Ok(value)) => Ok(Some(value)),
        Some(Err(problem)) if !name.is_empty() => {
            Err(MachineError::content(&format!("{name}/{path}"), None, problem))
        }
        _ => Ok(None),
    }
}

fn list(text: &str) -> Result<Vec<u32>, String> {
    cpulist::parse(text).map_err(|e| e.to_string())
}

fn mask(text: &str) -> Result<Vec<u32>, String> {
    cpus_of_mask(text)
        .ok_or_else(|| "is no mask of CPUs; expected words such as 00000000,0000000f".into())
}

/// How many distances a node has; the table is made by [`sysfs::distances`].
fn distances_of(text: &str) -> Result<usize, String> {
    let mut count = 0;
    for word in text.split_whitespace() {
        let _: u32 = word.parse().map_err(|_| format!("{word:?} is no distance"))?;
        count += 1;
    }
    Ok(count)
}

fn other_nodes(path: &str, count: usize, nodes: usize) -> Warning {
    let text = format!(
        "{path} holds {count} distances, and the tree has {nodes} nodes; distances are not used"
    );
    Warning::new("distances-of-other-nodes", text, "capture all of /sys/devices/system/node")
}

/// Release, architecture and processor.
fn identity(out: &mut Evidence, files: &(impl Files + ?Sized), at: &impl Fn(&str) -> Place) {
    let release = "proc/sys/kernel/osrelease";
    out.kernel = sysfs::kernel_release(files).map(|value| Known { value, at: at(release) });
    let path = "proc/sys/kernel/arch";
    let arch = files.text(path).and_then(|name| arch_of(&name));
    out.arch = arch.map(|value| Known { value, at: at(path) });
    let path = "proc/cpuinfo";
    let Some(info) = files.text(path) else { return };
    let field = |name: &str| {
        info.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim().to_string())
        })
    };
    let arch = if field("vendor_id").is_some_and(|v| v.contains("S390")) {
        Some(Arch::S390x)
    } else if field("flags").is_some() || field("vendor_id").is_some() {
        Some(Arch::X86_64)
    } else if field("CPU implementer").is_some() {
        Some(Arch::Arm64)
    } else if field("cpu").is_some_and(|v| v.starts_with("POWER")) {
        Some(Arch::Ppc64)
    } else if field("isa").is_some_and(|v| v.starts_with("rv64")) {
        Some(Arch::Riscv64)
    } else {
        None
    };
    out.arch = out.arch.take().or(arch.map(|value| Known { value, at: at(path) }));
    let model = field("model name").or_else(|| field("cpu")).filter(|m| !m.is_empty());
    out.cpu_model = model.map(|value| Known { value, at: at(path) });
}

/// `Node 0 MemTotal:       58458112 kB`, which has to be of node `nid`.
fn total_of(meminfo: &str, nid: Nid) -> Result<Option<u64>, String> {
    let Some((head, bytes)) = meminfo.lines().find_map(|line| line.split_once("MemTotal:")) else {
        return Ok(None);
    };
    let other = head.trim().strip_prefix("Node ").filter(|n| n.trim() != nid.to_string());
    if let Some(other) = other {
        return Err(format!("is of node {}, and stands under node {nid}", other.trim()));
    }
    let bytes = bytes.trim();
    size(bytes).map(Some).ok_or_else(|| format!("{bytes:?} is no size of memory"))
}

/// The CPUs of a mask such as `00000000,0000ffff`, highest word first.
fn cpus_of_mask(mask: &str) -> Option<Vec<u32>> {
    let mut ids = Vec::new();
    for (word, base) in mask.trim().rsplit(',').zip((0u32..).step_by(32)) {
        let bits = u32::from_str_radix(word.trim(), 16).ok()?;
        if base > cpulist::MAX_CPU_ID {
            return None;
        }
        ids.extend((0..32).filter(|bit| bits & (1 << bit) != 0).map(|bit| base + bit));
    }
    Some(ids)
}

/// The page size with which the pages of `zoneinfo` make what `meminfo` says.
fn page_bytes(out: &Evidence, files: &(impl Files + ?Sized)) -> Option<u64> {
    let zones = files.text("proc/zoneinfo")?;
    let managed = zones.lines().filter_map(|line| line.trim().strip_prefix("managed"));
    let pages: u64 = managed.filter_map(|n| n.trim().parse::<u64>().ok()).sum();
    let bytes: u64 = out.nodes.values().filter_map(|n| Some(n.bytes.as_ref()?.value)).sum();
    let page = bytes.checked_div(pages)?;
    [4096u64, 8192, 16_384, 65_536].into_iter().min_by_key(|known| known.abs_diff(page))
}

/// All CPUs with cores and packages, where the tree has them.
fn topology(out: &Evidence, files: &(impl Files + ?Sized)) -> Option<Vec<Cpu>> {
    let mut cores: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    let mut cpus = Vec::new();
    let mut packages = BTreeSet::new();
    for (nid, node) in &out.nodes {
        for &id in &node.cpus.as_ref()?.value {
            let directory = format!("sys/devices/system/cpu/cpu{id}/topology");
            let number =
                |file: &str| files.text(&format!("{directory}/{file}"))?.trim().parse().ok();
            let package: i64 = number("physical_package_id")?;
            let package = u32::try_from(package).unwrap_or(0);
            let core: i64 = number("core_id")?;
            let next = u32::try_from(cores.len()).unwrap_or(u32::MAX);
            let key = (package, u32::try_from(core).unwrap_or(0));
            let core = *cores.entry(key).or_insert(next);
            packages.insert(package);
            cpus.push(Cpu { id, nid: Nid(nid.0), core, package });
        }
    }
    (!cpus.is_empty()).then_some(cpus)
}

#[cfg(test)]
mod tests {
    use super::super::sysfs::tests::{put, tree};
    use super::*;
    use crate::pfn::PhysRange;
    use crate::units::{GIB, MIB};

    #[test]
    fn masks_and_lists() {
        assert_eq!(cpus_of_mask("00000001,80000003\n").unwrap(), [0, 1, 31, 32]);
        assert_eq!(cpus_of_mask("0000"), Some(vec![]));
        assert_eq!(cpus_of_mask("xyz"), None);
        assert_eq!(cpus_of_mask(&"1,".repeat(3000)), None);
    }

    #[test]
    fn damaged_values_are_errors_with_the_file() {
        for (file, text, words) in [
            ("node0/cpulist", "abc", "neither a CPU number"),
            ("node0/cpulist", "3-0", "backwards"),
            ("node0/cpulist", "0-4294967295", "above"),
            ("node0/cpumap", "xyz", "no mask"),
            ("node0/meminfo", "Node 7 MemTotal: 1048576 kB", "node 7"),
            ("node0/meminfo", "Node 0 MemTotal: -5 kB", "\"-5 kB\" is no size"),
            ("node0/distance", "abc", "no distance"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            put(&dir, &format!("{NODES}/node0/meminfo"), "Node 0 MemTotal: 1048576 kB\n");
            put(&dir, &format!("{NODES}/{file}"), text);
            let error = folder(dir.path()).unwrap_err().to_string();
            assert!(error.contains(file) && error.contains(words), "{error}");
        }
        let dir = tempfile::tempdir().unwrap();
        put(&dir, &format!("{NODES}/node0/distance"), "10 20");
        let found = folder(dir.path()).unwrap();
        assert_eq!(found.warnings[0].code, "distances-of-other-nodes");
    }

    #[test]
    fn an_old_tree_has_sizes_masks_and_distances() {
        let dir = tempfile::tempdir().unwrap();
        for (nid, mask, distance) in [(0, "f", "10 40"), (8, "f0", "40 10")] {
            put(&dir, &format!("{NODES}/node{nid}/cpumap"), &format!("00000000,{mask}\n"));
            put(&dir, &format!("{NODES}/node{nid}/distance"), distance);
            let text = format!("Node {nid} MemTotal:  1048576 kB\nNode {nid} MemFree: 1 kB\n");
            put(&dir, &format!("{NODES}/node{nid}/meminfo"), &text);
        }
        put(&dir, "sys/devices/system/cpu/online", "0-3,6-7\n");
        put(&dir, "proc/cpuinfo", "processor\t: 0\ncpu\t\t: POWER9, altivec\n");
        let found = folder(dir.path()).unwrap();
        assert_eq!(found.arch.as_ref().unwrap().value, Arch::Ppc64);
        let node = &found.nodes[&Nid(8)];
        assert_eq!(node.bytes.as_ref().unwrap().value, GIB);
        assert_eq!(node.cpus.as_ref().unwrap().value, [6, 7]);
        assert!(node.bytes.as_ref().unwrap().at.input.ends_with("node8/meminfo"));
        assert_eq!(found.distances.unwrap().value.1, [[10, 40], [40, 10]]);
    }

    // MiB      0    128  256  384
    // node 0   |=====|
    // node 2         |=====|=====|
    #[test]
    fn memory_blocks_give_ranges() {
        let dir = tree(&[(0, &[0]), (2, &[1, 2])]);
        for cpu in 0..2 {
            let path = format!("sys/devices/system/cpu/cpu{cpu}/topology");
            put(&dir, &format!("{path}/core_id"), "5\n");
            put(&dir, &format!("{path}/physical_package_id"), &format!("{cpu}\n"));
        }
        put(&dir, &format!("{NODES}/node0/cpulist"), "0-1\n");
        put(&dir, &format!("{NODES}/node2/cpulist"), "\n");
        let found = folder(dir.path()).unwrap();
        let ranges = &found.nodes[&Nid(2)].ranges.as_ref().unwrap().value;
        assert_eq!(*ranges, [PhysRange::new(128 * MIB, 384 * MIB)]);
        let cpus = found.cpus.unwrap().value;
        assert_eq!((cpus[0].core, cpus[1].core, cpus[1].package), (0, 1, 1));
    }
}
