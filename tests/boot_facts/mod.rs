//! Captured boots for tests: facts of real kernels, read from a folder of JSON files.
//!
//! [`all`] reads `fixtures/boots`, or the shared folder beside the project where that
//! does not exist. Two spellings are understood: struct pages one by one as
//! `[pfn, words…]`, or grouped as `{words, pfns}` with `lru` for the address of the
//! page's own `lru`; allocations one by one, or with `count` and `step`.

// Every test binary compiles this module and uses a part of it.
#![allow(dead_code)]

use pageinit::kernel::config::KernelConfig;
use pageinit::kernel::deferral::{MemoryPages, Split};
use pageinit::kernel::layout::{ZoneKind, ZoneSpan};
use pageinit::kernel::struct_page::{PageFormat, PageWords};
use pageinit::kernel::version::KernelModel;
use pageinit::machine::Arch;
use pageinit::pfn::{self, Nid, Pfn, PfnRange, PhysRange};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// One captured boot.
pub(crate) struct Boot {
    /// Kernel series and topology, for example `6.12_n2-8g`.
    pub(crate) id: String,
    /// All facts.
    pub(crate) json: Value,
    /// The architecture.
    pub(crate) arch: Arch,
    /// The base page size in bytes.
    pub(crate) page_bytes: u64,
}

/// One allocation of `sparse_init`.
pub(crate) struct Allocation {
    /// Where it is.
    pub(crate) range: PhysRange,
    /// How much was asked for.
    pub(crate) bytes: u64,
    /// How many calls of `sparse_init` came before it, this one included.
    pub(crate) after: u64,
}

/// All boots, ascending by name; empty, with a notice, where no folder is there.
pub(crate) fn all() -> Vec<Boot> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let places = [root.join("fixtures/boots"), root.join("../shared/boots")];
    let Some(place) = places.iter().find(|p| p.is_dir()) else {
        eprintln!("no folder with captured boots: nothing is compared");
        return Vec::new();
    };
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "json"));
    files.sort();
    files.iter().map(|f| read(f)).filter(|b| !b.json["zones"].is_null()).collect()
}

fn read(file: &Path) -> Boot {
    let text = std::fs::read_to_string(file).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    let arch = match json["arch"].as_str() {
        Some("arm64") => Arch::Arm64,
        Some("ppc64el") => Arch::Ppc64,
        Some("s390x") => Arch::S390x,
        Some("riscv64") => Arch::Riscv64,
        _ => Arch::X86_64,
    };
    let id = file.file_stem().unwrap().to_string_lossy().into_owned();
    Boot { id, page_bytes: json["page_bytes"].as_u64().unwrap(), arch, json }
}

fn number(value: &Value) -> u64 {
    match value.as_str() {
        Some(text) => u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap(),
        None => value.as_u64().unwrap_or_else(|| panic!("not a number: {value}")),
    }
}

fn range(value: &Value) -> PhysRange {
    PhysRange::new(number(&value["start"]), number(&value["end"]))
}

fn nid(value: &Value) -> Nid {
    Nid(value["nid"].as_u64().unwrap_or(0) as u32)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

impl Boot {
    /// The kernel's rules, with the configuration and command line of the boot.
    pub(crate) fn model(&self) -> KernelModel {
        let release = self.json["kernel"].as_str().unwrap();
        let model = KernelModel::from_release(release, self.arch).unwrap();
        let line = self.json["cmdline"].as_str().unwrap_or("").parse().unwrap();
        let config = self.config(model.config.clone());
        model.with_config(config).with_command_line(&line)
    }

    /// `config` with what the boot's facts say.
    pub(crate) fn config(&self, mut config: KernelConfig) -> KernelConfig {
        let known = [&self.json["config"], &self.json["config_nearest"]];
        let known = known.into_iter().find_map(Value::as_object);
        let known = known.cloned().unwrap_or_default().into_iter().collect();
        config.apply_facts(&known).unwrap_or_else(|e| panic!("{}: {e}", self.id));
        config
    }

    /// The form of its struct pages.
    pub(crate) fn format(&self) -> PageFormat {
        let mut format = self.model().page_format();
        if !self.json["vmemmap_base"].is_null() {
            format.vmemmap_base = number(&self.json["vmemmap_base"]);
        }
        format
    }

    /// Pages of a section.
    pub(crate) fn pages_per_section(&self) -> u64 {
        let bits = self.json["vmcoreinfo"]["NUMBER(SECTION_SIZE_BITS)"].as_str();
        (1 << bits.map_or(27, |b| b.parse::<u32>().unwrap())) / self.page_bytes
    }

    /// Regions of memory in whole pages.
    pub(crate) fn memory(&self) -> Vec<MemoryPages> {
        list(&self.json["memblock_memory"])
            .map(|m| MemoryPages { range: range(m).whole_pages(self.page_bytes), nid: nid(m) })
            .filter(|m| !m.range.is_empty())
            .collect()
    }

    /// Populated zones by node and then ascending.
    pub(crate) fn zones(&self) -> Vec<ZoneSpan> {
        let mut out: Vec<ZoneSpan> = list(&self.json["zones"])
            .filter(|z| z["present"].as_u64().unwrap_or(0) > 0)
            .map(|z| ZoneSpan {
                nid: nid(z),
                zone: match z["zone"].as_str() {
                    Some("DMA") => ZoneKind::Dma,
                    Some("DMA32") => ZoneKind::Dma32,
                    Some("Movable") => ZoneKind::Movable,
                    _ => ZoneKind::Normal,
                },
                start_pfn: Pfn(number(&z["start_pfn"])),
                spanned: number(&z["spanned"]),
                present: number(&z["present"]),
            })
            .collect();
        out.sort_by_key(|z| (z.nid, z.start_pfn));
        out
    }

    /// CPUs of every node.
    pub(crate) fn cpus(&self) -> Vec<(Nid, u32)> {
        list(&self.json["nodes"])
            .map(|n| (nid(n), cpus_of_list(n["cpulist"].as_str().unwrap_or(""))))
            .collect()
    }

    /// The allocations of `sparse_init` that succeeded, in order.
    pub(crate) fn allocations(&self) -> Vec<Allocation> {
        let mut out = Vec::new();
        let mut after = 0;
        for call in list(&self.json["sparse_init_allocations"]) {
            let step = call["step"].as_i64().unwrap_or(0);
            for i in 0..call["count"].as_i64().unwrap_or(1) {
                after += 1;
                if call["start"].is_null() {
                    continue;
                }
                let first = range(call);
                let moved = |at: u64| at.wrapping_add_signed(step * i);
                out.push(Allocation {
                    range: PhysRange::new(moved(first.start), moved(first.end)),
                    bytes: number(&call["bytes"]),
                    after,
                });
            }
        }
        out
    }

    /// Pages that were reserved when `sparse_init` was done.
    pub(crate) fn reserved_pages(&self) -> Vec<PfnRange> {
        let touched = |ranges: &[PhysRange]| {
            pfn::normalise(ranges.iter().map(|r| r.touched_pages(self.page_bytes)).collect())
        };
        let before: Vec<PhysRange> =
            list(&self.json["reserved_before_sparse"]).map(range).collect();
        let mut out = touched(&before);
        let mut frees: Vec<&Value> = list(&self.json["sparse_init_frees"]).collect();
        for allocation in self.allocations() {
            out.extend(touched(&[allocation.range]));
            out = pfn::normalise(out);
            frees.retain(|free| {
                let due = number(&free["after"]) <= allocation.after;
                if due {
                    out = pfn::subtract(&out, &[range(free).whole_pages(self.page_bytes)]);
                }
                !due
            });
        }
        out
    }

    /// Where each node's data lies.
    pub(crate) fn node_data(&self) -> Vec<(Nid, PfnRange)> {
        list(&self.json["node_data"])
            .map(|n| (nid(n), range(n).touched_pages(self.page_bytes)))
            .collect()
    }

    /// The nodes of which the log says that pages were deferred.
    pub(crate) fn deferred_nodes(&self) -> Vec<u32> {
        list(&self.json["deferred_nodes"]).map(|n| n.as_u64().unwrap() as u32).collect()
    }

    /// What the split depends on, with the reservations at the end of `sparse_init`.
    pub(crate) fn split_input(&self) -> Split {
        let reserved = self.reserved_pages();
        let bytes = |p: Pfn| p.0 * self.page_bytes;
        Split {
            page_bytes: self.page_bytes,
            pages_per_section: self.pages_per_section(),
            zones: self.zones(),
            memory: self.memory(),
            reserved: reserved
                .iter()
                .map(|r| PhysRange::new(bytes(r.start), bytes(r.end)))
                .collect(),
            cpus: self.cpus(),
        }
    }

    /// The struct pages that were read in the running guest, ascending.
    pub(crate) fn struct_pages(&self) -> Vec<(Pfn, PageWords)> {
        let format = self.format();
        let mut out = Vec::new();
        for item in list(&self.json["struct_pages"]) {
            if let Some(row) = item.as_array() {
                let pfn = Pfn(row[0].as_u64().unwrap());
                out.push((pfn, words(&row[1..], format.kernel_lru_address(pfn))));
            }
            for pfn in list(&item["pfns"]) {
                let pfn = Pfn(pfn.as_u64().unwrap());
                let row = item["words"].as_array().unwrap();
                out.push((pfn, words(row, format.kernel_lru_address(pfn))));
            }
        }
        out.sort();
        out
    }
}

fn words(row: &[Value], lru: u64) -> PageWords {
    let mut out = [0; 8];
    for (word, value) in out.iter_mut().zip(row) {
        *word = if value == "lru" { lru } else { number(value) };
    }
    out
}

/// `0-3,8` are five.
fn cpus_of_list(text: &str) -> u32 {
    let part = |part: &str| match part.split_once('-') {
        Some((a, b)) => b.parse::<u32>().unwrap() - a.parse::<u32>().unwrap() + 1,
        None => u32::from(!part.is_empty()),
    };
    text.split(',').map(part).sum()
}
