//! Every fact of a boot with the line it came from, for `machine --explain`.

use super::boot::{Boot, Fact, NodeRange};
use crate::machine::evidence::{Explained, Place};
use crate::units::{Bytes, grouped};
use std::fmt::Display;

/// Lists the facts in the order of their lines.
pub fn explain(input: &str, boot: &Boot) -> Vec<Explained> {
    let mut list = List { input, out: Vec::new() };
    list.fact("kernel", boot.release.as_ref(), |v| v.clone());
    list.fact("command line", boot.cmdline.as_ref(), |v| v.clone());
    list.fact("architecture", boot.arch.as_ref(), ToString::to_string);
    list.fact("page size", boot.page_bytes.as_ref(), |&v| Bytes(v).to_string());
    list.fact("ticks per second", boot.hz.as_ref(), ToString::to_string);
    list.fact("processor", boot.cpu_model.as_ref(), |v| v.clone());
    list.fact("CPUs", boot.cpu_count.as_ref(), ToString::to_string);
    list.fact("nodes with CPUs", boot.node_count.as_ref(), ToString::to_string);
    list.fact("guest", boot.guest.as_ref(), |v| v.clone());
    list.fact("imitated processor", boot.emulated.as_ref(), |v| v.clone());
    list.fact("threads per core", boot.smt.as_ref(), ToString::to_string);
    list.fact("memory", boot.memory_line.as_ref(), |m| Bytes(m.total_bytes).to_string());
    list.fact("physical memory", boot.phys_bytes.as_ref(), |&v| Bytes(v).to_string());
    memory(&mut list, boot);
    for (nid, cpus) in &boot.node_cpus {
        let text = crate::machine::cpulist::format(&cpus.value);
        list.push(format!("CPUs listed of node {nid}"), text, cpus.line);
    }
    times(&mut list, boot);
    for sign in &boot.signs {
        list.push("sign".into(), format!("{:?}", sign.value), sign.line);
    }
    list.out.sort_by_key(|e| e.at.line);
    list.out
}

struct List<'i> {
    input: &'i str,
    out: Vec<Explained>,
}

impl List<'_> {
    fn push(&mut self, fact: String, value: impl Display, line: u64) {
        let at = Place { input: self.input.to_string(), line: Some(line) };
        self.out.push(Explained { fact, value: value.to_string(), at });
    }

    fn fact<T>(&mut self, name: &str, fact: Option<&Fact<T>>, text: impl Fn(&T) -> String) {
        if let Some(fact) = fact {
            self.push(name.into(), text(&fact.value), fact.line);
        }
    }

    fn ranges(&mut self, what: &str, ranges: &[NodeRange]) {
        for item in ranges {
            let value = match item.range.is_empty() {
                true => "none".into(),
                false => item.range.to_string(),
            };
            self.push(format!("{what} {}", item.nid), value, item.line);
        }
    }
}

fn memory(list: &mut List<'_>, boot: &Boot) {
    for (what, map) in
        [("e820", &boot.e820), ("user map", &boot.user_map), ("EFI map", &boot.efi_map)]
    {
        for item in map {
            list.push(format!("{what}, {}", item.kind), item.range, item.line);
        }
    }
    list.ranges("affinity of node", &boot.srat);
    list.ranges("pglist_data of node", &boot.node_data);
    list.ranges("memory of node", &boot.early);
    list.ranges("span of node", &boot.initmem);
    for zone in &boot.zones {
        list.push(format!("zone {}", zone.zone), zone.range, zone.line);
    }
    for (nid, pages) in &boot.total_pages {
        list.push(format!("pages of node {nid}"), grouped(pages.value), pages.line);
    }
    for region in boot.memblock.memory().unwrap_or_default() {
        list.push("memblock memory".into(), region.range, region.line);
    }
    for call in &boot.memblock.allocations {
        let size = Bytes(call.bytes);
        let value = match call.given {
            Some(given) => format!("{size} at {given}"),
            None => format!("{size}, refused"),
        };
        list.push(format!("allocation of {}", call.caller), value, call.line);
    }
}

fn times(list: &mut List<'_>, boot: &Boot) {
    for line in &boot.init {
        let pages = line.pages.map_or(String::new(), |p| format!(", {} pages", grouped(p)));
        let value = format!("{} ms{pages}", line.ms);
        list.push(format!("initialisation of node {}", line.nid), value, line.line);
    }
    for device in &boot.device_init {
        let value = format!("{} ms, {} pages", device.ms, grouped(device.pages));
        list.push("initialisation of device memory".into(), value, device.line);
    }
    for pool in boot.huge_pools.iter().filter(|p| p.pages > 0) {
        let value = format!("{} × {}", grouped(pool.pages), Bytes(pool.page_bytes));
        list.push("huge pages".into(), value, pool.line);
    }
}
