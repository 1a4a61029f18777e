//! Memory: firmware maps, affinity, nodes, zones and the `Memory:` line.

use super::super::boot::{Boot, Fact, MapRange, MemoryLine, NodeRange, ZonePages, ZoneRange};
use super::super::join::Message;
use super::{hex, is_wrapped, mem_range, number, range};
use crate::pfn::{Nid, PhysRange};

/// Reads a message about memory; `false` if it is about something else.
pub(super) fn read(boot: &mut Boot, message: &Message<'_>) -> bool {
    let (text, line) = (message.text, message.line);
    match text.as_bytes().first() {
        Some(b'B' | b'u' | b'e') => map(boot, text, line).is_some(),
        Some(b'A' | b'S' | b'N' | b'n' | b'I' | b'O') => {
            node(boot, text, line).is_some() || zone(boot, message).is_some()
        }
        Some(b'D' | b'M' | b'p' | b'T' | b'Z' | b'E') => {
            zone(boot, message).is_some() || totals(boot, text, line).is_some()
        }
        _ => false,
    }
}

/// `BIOS-e820: [mem …] usable`, `user: [mem …] usable`, and the form without `mem`
/// up to 3.5; `efi: mem00: … range=[0x…-0x…) (4MB)`.
fn map(boot: &mut Boot, text: &str, line: u64) -> Option<()> {
    if let Some(rest) = text.strip_prefix("efi: mem") {
        return efi(boot, rest, line);
    }
    let (rest, is_user) = match text.strip_prefix("BIOS-e820:") {
        Some(rest) => (rest, false),
        None => (text.strip_prefix("user:")?, true),
    };
    let (range, kind) = mem_range(rest)?;
    let kind: String = kind.trim().chars().take(40).collect();
    let list = if is_user { &mut boot.user_map } else { &mut boot.e820 };
    Boot::add(&mut boot.dropped, list, MapRange { range, kind, line });
    Some(())
}

/// `00: [Conventional Memory|…] range=[0x0-0xfff] (0MB)` (`efi_print_memmap`).
fn efi(boot: &mut Boot, rest: &str, line: u64) -> Option<()> {
    let (kind, rest) = rest.split_once('[')?.1.split_once("range=[")?;
    let (range, _) = range(rest)?;
    let kind = kind.split(['|', ']']).next().unwrap_or("").trim();
    let kind: String = kind.chars().take(40).collect();
    Boot::add(&mut boot.dropped, &mut boot.efi_map, MapRange { range, kind, line });
    Some(())
}

fn node(boot: &mut Boot, text: &str, line: u64) -> Option<()> {
    let text = text.strip_prefix("ACPI: ").unwrap_or(text);
    let text = text.strip_prefix("NUMA: ").or_else(|| text.strip_prefix("numa: ")).unwrap_or(text);
    if let Some(rest) = text.strip_prefix("SRAT: Node ") {
        let (nid, rest) = nid(rest)?;
        let at = rest.find("[mem")?;
        refuse_wrapped(boot, rest.get(at..)?, line);
        let (range, _) = mem_range(rest.get(at..)?)?;
        Boot::add(&mut boot.dropped, &mut boot.srat, NodeRange { nid, range, line });
    } else if let Some(rest) = text.strip_prefix("Initmem setup node ") {
        let (nid, rest) = nid(rest)?;
        // Kernels up to 5.16 print a node without memory as 0 to 0.
        let range = mem_range(rest).map_or(PhysRange::new(0, 0), |(range, _)| range);
        let range = if range.end == 1 { PhysRange::new(0, 0) } else { range };
        if !range.is_empty() || rest.contains("memory") || rest.contains("[mem") {
            Boot::add(&mut boot.dropped, &mut boot.initmem, NodeRange { nid, range, line });
        }
        boot.current_nid = Some(nid);
    } else if let Some(rest) = text.trim_start().strip_prefix("NODE_DATA(") {
        let (nid, rest) = nid(rest)?;
        let (range, _) = mem_range(rest.get(rest.find("[mem")?..)?)?;
        Boot::add(&mut boot.dropped, &mut boot.node_data, NodeRange { nid, range, line });
    } else if let Some(rest) = text.strip_prefix("node ") {
        let (nid, rest) = nid(rest)?;
        let rest = rest.strip_prefix(':')?;
        refuse_wrapped(boot, rest, line);
        let (range, _) = mem_range(rest)?;
        Boot::add(&mut boot.dropped, &mut boot.early, NodeRange { nid, range, line });
    } else if let Some(rest) = text.strip_prefix("On node ") {
        let (nid, rest) = nid(rest)?;
        let (pages, _) = number(rest.trim_start().strip_prefix("totalpages:")?)?;
        boot.total_pages.entry(nid).or_insert(Fact::new(pages, line));
        boot.current_nid = Some(nid);
    } else {
        return None;
    }
    Some(())
}

/// Remembers a range of a node that ends before it begins: without it the node's memory
/// would be missing in silence.
fn refuse_wrapped(boot: &mut Boot, text: &str, line: u64) {
    if is_wrapped(text) {
        let shown: String = text.trim().chars().take(60).collect();
        let problem = format!("memory {shown} ends before it begins; the line is damaged");
        Boot::set(&mut boot.flaw, problem, line);
    }
}

/// A node id within bounds that no kernel exceeds.
pub(super) fn nid(text: &str) -> Option<(Nid, &str)> {
    let (number, rest) = number(text)?;
    u32::try_from(number).ok().filter(|&n| n < 4096).map(|n| (Nid(n), rest))
}

/// Lines of `Zone ranges:`, `Normal zone: 98304000 pages, LIFO batch:63`, and the
/// heads of lists.
fn zone(boot: &mut Boot, message: &Message<'_>) -> Option<()> {
    let (text, line) = (message.text, message.line);
    if text.starts_with("Early memory node ranges") {
        return Some(());
    }
    let name = ["DMA32", "DMA", "Normal", "Movable", "Device"]
        .into_iter()
        .find(|name| text.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '\t'])))?;
    let rest = text.strip_prefix(name)?.trim_start();
    if let Some(rest) = rest.strip_prefix("zone:") {
        let (pages, rest) = number(rest)?;
        let nid = boot.current_nid?;
        rest.strip_prefix(" pages, LIFO batch")?;
        let (seconds, zone) = (message.seconds, name.into());
        let item = ZonePages { nid, zone, pages, line, seconds, next_seconds: None };
        Boot::add(&mut boot.dropped, &mut boot.zone_pages, item);
        return Some(());
    }
    let range = match rest.starts_with("empty") {
        true => PhysRange::new(0, 0),
        false => mem_range(rest)?.0,
    };
    Boot::add(&mut boot.dropped, &mut boot.zones, ZoneRange { zone: name.into(), range, line });
    Some(())
}

/// `Memory: 3332424K/4014080K available (…)`, `phys_mem_size     = 0x1000000000`.
fn totals(boot: &mut Boot, text: &str, line: u64) -> Option<()> {
    if let Some(rest) = text.strip_prefix("Memory:") {
        let (available, rest) = number(rest)?;
        let (total, rest) = number(rest.to_ascii_lowercase().strip_prefix("k/")?)
            .map(|(n, rest)| (n, rest.to_owned()))?;
        rest.strip_prefix('k')?;
        let bytes = |kib: u64| kib.saturating_mul(1024);
        let value = MemoryLine { available_bytes: bytes(available), total_bytes: bytes(total) };
        Boot::set(&mut boot.memory_line, value, line);
        return Some(());
    }
    let rest = text.strip_prefix("phys_mem_size")?;
    let (bytes, _) = hex(rest.trim_start().strip_prefix('=')?)?;
    Boot::set(&mut boot.phys_bytes, bytes, line);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::boot_of;
    use super::*;
    use crate::units::MIB;

    // MiB     0    1        64       128
    // e820    |usa-|  usable  | reserved
    // SRAT    |     node 0    |  node 2
    #[test]
    fn maps_and_affinity() {
        let boot = boot_of(
            "BIOS-e820: [mem 0x0000000000000000-0x000000000009fbff] usable\n\
             BIOS-e820: [mem 0x0000000000100000-0x0000000003ffffff] usable\n\
             BIOS-e820: [mem 0x0000000004000000-0x0000000007ffffff] ACPI data\n\
             user: [mem 0x0000000000100000-0x0000000001ffffff] usable\n\
             efi: mem00: [Conventional Memory|   |  |WB] range=[0x0-0xfff] (0MB)\n\
             ACPI: SRAT: Node 0 PXM 0 [mem 0x00000000-0x03ffffff]\n\
             SRAT: Node 2 PXM 7 [mem 0x04000000-0x07ffffff] hotplug\n\
             NODE_DATA(0) allocated [mem 0x3fd6000-0x3ffffff]\n",
        );
        assert_eq!(boot.e820.len(), 3);
        assert_eq!(boot.e820[1].range, PhysRange::new(MIB, 64 * MIB));
        assert_eq!((boot.e820[2].kind.as_str(), boot.e820[2].line), ("ACPI data", 3));
        assert_eq!((boot.user_map.len(), boot.efi_map.len()), (1, 1));
        assert_eq!(boot.efi_map[0].kind, "Conventional Memory");
        assert_eq!((boot.srat[1].nid, boot.srat[1].range.end), (Nid(2), 128 * MIB));
        assert_eq!(boot.node_data[0].range.end, 64 * MIB);
    }

    #[test]
    fn a_range_that_ends_before_it_begins_is_a_flaw() {
        let text = "node   0: [mem 0x1000-0xbfffffff]\nnode   1: [mem 0x2000-0x1fff]\n";
        let flaw = boot_of(text).flaw.unwrap();
        assert!(flaw.line == 2 && flaw.value.contains("0x2000-0x1fff"), "{flaw:?}");
        let boot = boot_of(text);
        let error = crate::machine::bootlog::evidence::evidence("x.log", &boot).unwrap_err();
        assert!(error.to_string().starts_with("x.log:2: memory"), "{error}");
        assert!(boot_of("SRAT: Node 0 PXM 0 [mem 0x2000-0x1ffe]").flaw.is_some());
        assert!(boot_of("BIOS-e820: [mem 0x2000-0x1fff] usable").flaw.is_none());
    }

    #[test]
    fn nodes_and_zones() {
        let boot = boot_of(
            "Zone ranges:\n  DMA32    [mem 0x0000000000001000-0x00000000ffffffff]\n\
             Normal   empty\nEarly memory node ranges\n\
             node   0: [mem 0x0000000000001000-0x000000000009efff]\n\
             node   3: [mem 0x0000000000100000-0x0000000003ffffff]\n\
             Initmem setup node 0 [mem 0x0000000000001000-0x000000000009efff]\n\
             Initmem setup node 1 [mem 0x0000000000000000-0x0000000000000000]\n\
             NUMA: Initmem setup node 2 [<memory-less node>]\n\
             On node 0 totalpages: 158\n  DMA zone: 64 pages used for memmap\n\
             DMA zone: 158 pages, LIFO batch:63\n\
             Memory: 237484K/262144K available (7652K kernel code)\n\
             phys_mem_size     = 0x40000000\n",
        );
        assert_eq!(boot.zones.len(), 2);
        assert!(boot.zones[1].range.is_empty());
        assert_eq!(boot.early.len(), 2);
        assert_eq!(boot.early[1].nid, Nid(3));
        let empty: Vec<_> = boot.initmem.iter().map(|n| n.range.is_empty()).collect();
        assert_eq!(empty, [false, true, true]);
        assert_eq!(boot.total_pages[&Nid(0)].value, 158);
        assert_eq!((boot.zone_pages.len(), boot.zone_pages[0].pages), (1, 158));
        assert_eq!(boot.memory_line.unwrap().value.total_bytes, 256 * MIB);
        assert_eq!(boot.phys_bytes.unwrap().value, 1 << 30);
    }
}
