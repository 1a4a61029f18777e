//! `lscpu`: CPUs, cores, packages, nodes and caches; no memory.
//!
//! [`parse`] reads the summary and the first table of `lscpu -p` in a text. Makes an
//! [`Evidence`] that other inputs have to add memory to.

use super::assume::arch_of;
use super::evidence::{Evidence, Known};
use super::text::{dequoted, size};
use super::{Arch, Cache, Cpu, MachineError, check::MAX_NID, cpulist};
use crate::pfn::Nid;
use std::collections::BTreeMap;

/// Reads the text of the input called `name`.
///
/// # Errors
///
/// A list of CPUs is none, or the text has no CPU.
pub fn parse(name: &str, text: &str) -> Result<Evidence, MachineError> {
    let mut reader = Reader { out: Evidence::new(name, "lscpu"), ..Reader::default() };
    for (line, number) in text.lines().zip(1u64..) {
        let line = dequoted(line);
        if let Some(header) = line.strip_prefix("# CPU,") {
            reader.header(header);
        } else if line.starts_with(|c: char| c.is_ascii_digit()) && line.contains(',') {
            reader.row(line, number);
        } else if let Some((key, value)) = line.split_once(':') {
            reader.key(key.trim(), value.trim(), number)?;
        }
    }
    reader.finish()
}

#[derive(Default)]
struct Reader {
    out: Evidence,
    online: Option<Vec<u32>>,
    columns: Vec<String>,
    tables: u32,
    rows: Vec<(Cpu, bool)>,
    rows_at: u64,
    caches: Vec<(u32, u64, u64)>,
}

impl Reader {
    fn key(&mut self, key: &str, value: &str, line: u64) -> Result<(), MachineError> {
        let first_word = value.split_whitespace().next().unwrap_or("");
        let number = first_word.parse::<u32>().ok().filter(|&n| n > 0 && n <= 65_536);
        match key {
            "Architecture" | "Vendor ID" | "Model name" => self.identity(key, value, line),
            "CPU(s)" => {
                let count = number.map(|n| self.out.known(n, line));
                self.out.cpu_count = self.out.cpu_count.take().or(count);
            }
            "Thread(s) per core" => {
                let smt = number.map(|n| self.out.known(n, line));
                self.out.smt = self.out.smt.take().or(smt);
            }
            "On-line CPU(s) list" => self.online = self.online.take().or(self.list(value, line)?),
            _ if key.starts_with("NUMA node") && key.ends_with(" CPU(s)") => {
                let id = key.strip_prefix("NUMA node").and_then(|k| k.strip_suffix(" CPU(s)"));
                let id = id.and_then(|id| id.parse().ok()).filter(|&id| id <= MAX_NID);
                let list = self.list(value, line)?;
                if let (Some(id), Some(list)) = (id, list) {
                    let known = self.out.known(list, line);
                    let own = &mut self.out.node(Nid(id)).cpus;
                    if own.is_none() {
                        *own = Some(known);
                        let lists = self.out.nodes.values().filter_map(|n| n.cpus.as_ref());
                        let count = lists.map(|k| k.value.len()).sum();
                        self.out.check_cpu_count(count, line)?;
                    }
                }
            }
            _ if key.ends_with(" cache") => self.cache(key, value),
            _ => {}
        }
        Ok(())
    }

    fn list(&self, value: &str, line: u64) -> Result<Option<Vec<u32>>, MachineError> {
        if value == "-" {
            return Ok(Some(Vec::new()));
        }
        let list = cpulist::parse(value).map_err(|e| {
            let line = usize::try_from(line).ok();
            MachineError::content(&self.out.input, line, e.to_string())
        })?;
        Ok(Some(list))
    }

    /// The architecture by its own line, the vendor or the model.
    fn identity(&mut self, key: &str, value: &str, line: u64) {
        let by_vendor = match value {
            "GenuineIntel" | "AuthenticAMD" | "HygonGenuine" | "CentaurHauls" => Some(Arch::X86_64),
            "IBM/S390" => Some(Arch::S390x),
            "ARM" | "Cavium" | "HiSilicon" | "Ampere" | "APM" => Some(Arch::Arm64),
            _ if value.starts_with("POWER") => Some(Arch::Ppc64),
            _ => None,
        };
        let arch = if key == "Architecture" { arch_of(value) } else { by_vendor };
        let arch = arch.map(|arch| self.out.known(arch, line));
        let is_foreign = (key == "Architecture" && arch.is_none()) || value.contains("Loongson");
        self.out.arch = self.out.arch.take().or(arch);
        if is_foreign {
            let foreign = self.out.known(value.to_string(), line);
            self.out.foreign_arch.get_or_insert(foreign);
        }
        if key == "Model name" && !matches!(value, "-" | "") {
            let words: Vec<&str> = value.split_whitespace().collect();
            let known = self.out.known(words.join(" "), line);
            self.out.cpu_model.get_or_insert(known);
        }
    }

    /// `24 MiB (48 instances)`; the form with the size of one cache has no count.
    fn cache(&mut self, key: &str, value: &str) {
        let level =
            key.strip_prefix('L').and_then(|k| k.chars().next()).and_then(|c| c.to_digit(10));
        let Some((bytes, rest)) = value.split_once('(') else { return };
        let instances = rest.split_whitespace().next().and_then(|n| n.parse::<u64>().ok());
        let known = level.zip(size(bytes)).zip(instances.filter(|&n| n > 0));
        let is_new = |level| self.caches.iter().all(|&(known, _, _)| known != level);
        if let Some(((level, bytes), instances)) = known
            && !key.contains('i')
            && is_new(level)
        {
            self.caches.push((level, bytes / instances, instances));
        }
    }

    fn header(&mut self, header: &str) {
        self.tables += 1;
        self.columns = header.split(',').map(String::from).collect();
    }

    /// `48,0,0,0,,0,0,0,0` under `# CPU,Core,Socket,Node,,L1d,L1i,L2,L3`.
    fn row(&mut self, line: &str, number: u64) {
        if self.tables != 1 {
            return;
        }
        let mut words = line.split(',');
        let Some(id) = words.next().and_then(|w| w.parse().ok()) else { return };
        let words: Vec<&str> = words.collect();
        let column = |name: &str| {
            let at = self.columns.iter().position(|c| c == name)?;
            words.get(at)?.trim().parse::<u32>().ok()
        };
        let (Some(core), package) = (column("Core"), column("Socket").unwrap_or(0)) else { return };
        let node = column("Node");
        let nid = Nid(node.unwrap_or(0));
        if nid.0 <= MAX_NID && self.rows.len() <= cpulist::MAX_CPU_ID as usize {
            self.rows.push((Cpu { id, nid, core, package }, node.is_some()));
            self.rows_at = if self.rows_at == 0 { number } else { self.rows_at };
        }
    }

    fn finish(mut self) -> Result<Evidence, MachineError> {
        // Lists of nodes may name CPUs that are only possible.
        if let Some(online) = self.online.take() {
            for node in self.out.nodes.values_mut() {
                if let Some(known) = &mut node.cpus {
                    known.value.retain(|id| online.binary_search(id).is_ok());
                }
            }
        }
        self.table();
        if self.out.cpu_count.is_none() && self.out.nodes.is_empty() {
            let problem = "there is no CPU; expected the text of lscpu";
            return Err(MachineError::content(&self.out.input, None, problem));
        }
        let first = self.out.nodes.values().find_map(|n| n.cpus.as_ref());
        self.out.all_nodes = first.map(|k| k.at.clone());
        let cpus = self.out.cpu_count.as_ref().map_or(0, |k| u64::from(k.value));
        self.caches.sort_unstable();
        let share = |instances: u64| u32::try_from((cpus / instances).max(1)).unwrap_or(1);
        let cache = |&(level, bytes, instances): &(u32, u64, u64)| Cache {
            level,
            bytes,
            line_bytes: None,
            shared_by_cpus: share(instances),
        };
        self.out.caches = self.caches.iter().map(cache).collect();
        Ok(self.out)
    }

    /// Takes the table, if it has every CPU of the nodes once.
    fn table(&mut self) {
        let mut by_node: BTreeMap<Nid, Vec<u32>> = BTreeMap::new();
        self.rows.iter().for_each(|(cpu, _)| by_node.entry(cpu.nid).or_default().push(cpu.id));
        by_node.values_mut().for_each(|ids| ids.sort_unstable());
        let has_nodes = self.rows.iter().all(|(_, has)| *has);
        let fits = self.out.nodes.iter().all(|(nid, node)| {
            let listed = node.cpus.as_ref().map_or(&[][..], |k| k.value.as_slice());
            by_node.get(nid).map_or(&[][..], Vec::as_slice) == listed
        });
        let mut ids: Vec<u32> = self.rows.iter().map(|(cpu, _)| cpu.id).collect();
        ids.sort_unstable();
        ids.dedup();
        if self.rows.is_empty() || !has_nodes || !fits || ids.len() != self.rows.len() {
            return;
        }
        let at = self.out.place(Some(self.rows_at));
        let cpus = self.rows.drain(..).map(|(cpu, _)| cpu).collect();
        self.out.cpus = Some(Known { value: cpus, at: at.clone() });
        for (nid, ids) in by_node {
            self.out.node(nid).cpus.get_or_insert(Known { value: ids, at: at.clone() });
        }
        let count = u32::try_from(ids.len()).unwrap_or(u32::MAX);
        self.out.cpu_count.get_or_insert(Known { value: count, at });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SAMPLE: &str = "Architecture:  x86_64\nCPU(s):   8\nOn-line CPU(s) list:  0-7\n\
        Model name:  Sample  CPU\nThread(s) per core:  2\nL1d cache: 128 KiB (4 instances)\n\
        L3 cache:  16 MiB (2 instances)\nNUMA node(s): 2\nNUMA node0 CPU(s): 0-1,4-5,100\n\
        NUMA node1 CPU(s): 2-3,6-7\n\n# CPU,Core,Socket,Node,,L1d\n0,0,0,0,,0\n1,1,0,0,,1\n\
        2,2,1,1,,2\n3,3,1,1,,3\n4,0,0,0,,0\n5,1,0,0,,1\n6,2,1,1,,2\n7,3,1,1,,3\n\
        # CPU,Core,Socket,Node,,L1d\n0,9,9,0,,0\n";

    #[test]
    fn cpus_cores_and_caches() {
        let found = parse("l", SAMPLE).unwrap();
        assert_eq!(found.arch.as_ref().unwrap().value, Arch::X86_64);
        assert_eq!(found.cpu_model.as_ref().unwrap().value, "Sample CPU");
        assert_eq!(found.nodes[&Nid(0)].cpus.as_ref().unwrap().value, [0, 1, 4, 5]);
        let cpus = &found.cpus.as_ref().unwrap().value;
        assert_eq!((cpus.len(), cpus[6].core, cpus[6].nid, cpus[6].package), (8, 2, Nid(1), 1));
        let caches: Vec<_> =
            found.caches.iter().map(|c| (c.level, c.bytes >> 10, c.shared_by_cpus)).collect();
        assert_eq!(caches, [(1, 32, 2), (3, 8192, 4)]);
    }

    #[test]
    fn other_processors_and_none() {
        let of = |text: &str| parse("l", &format!("CPU(s): 2\n{text}\n")).unwrap();
        assert_eq!(of("Vendor ID: IBM/S390").arch.unwrap().value, Arch::S390x);
        assert_eq!(of("Model name: POWER9, altivec").arch.unwrap().value, Arch::Ppc64);
        assert_eq!(of("Architecture: mips64").foreign_arch.unwrap().value, "mips64");
        assert!(parse("l", "Flags: a b\n").is_err());
        let error = parse("l", "CPU(s): 2\nNUMA node0 CPU(s): 5-2\n").unwrap_err().to_string();
        assert!(error.starts_with("l:2:"), "{error}");
        let error = parse("l", "NUMA node0 CPU(s): 0-65535\nNUMA node1 CPU(s): 0-65535\n");
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with("l:2: the nodes have 131072 CPUs"), "{error}");
    }

    proptest! {
        #[test]
        fn damaged_texts_never_fail_badly(cut in 0usize..700, at in 0usize..700, with in ".{0,3}") {
            let mut text: String = SAMPLE.chars().take(cut).collect();
            let at = at.min(text.len());
            text.insert_str(at, &with);
            let _ = parse("l", &text);
        }
    }
}
