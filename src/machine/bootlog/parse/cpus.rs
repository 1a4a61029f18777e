//! CPUs: how many, where they are, what they are called.

use super::super::boot::{Boot, Fact};
use super::number;
use super::ranges::nid;
use crate::machine::cpulist;
use crate::pfn::Nid;

/// More CPUs than any machine has; larger numbers are damage.
const MAX_CPUS: u64 = 65_536;

/// Reads a message about CPUs; `false` if it is about something else.
pub(super) fn read(boot: &mut Boot, text: &str, line: u64) -> bool {
    brought_up(boot, text, line).is_some()
        || of_node(boot, text, line).is_some()
        || more_of_node(boot, text, line).is_some()
        || affinity(boot, text, line).is_some()
        || model(boot, text, line).is_some()
        || counts(boot, text, line).is_some()
}

/// `smp: Brought up 2 nodes, 88 CPUs`.
fn brought_up(boot: &mut Boot, text: &str, line: u64) -> Option<()> {
    let text = text.strip_prefix("smp: ").or_else(|| text.strip_prefix("x86: ")).unwrap_or(text);
    let (nodes, rest) = number(text.strip_prefix("Brought up ")?)?;
    if rest.trim_start().starts_with("CPU") {
        Boot::set(&mut boot.cpu_count, small(nodes)?, line);
        return Some(());
    }
    let (cpus, _) = number(rest.split_once(',')?.1)?;
    Boot::set(&mut boot.node_count, small(nodes)?, line);
    Boot::set(&mut boot.cpu_count, small(cpus)?, line);
    Some(())
}

fn small(number: u64) -> Option<u32> {
    u32::try_from(number).ok().filter(|&n| n > 0 && u64::from(n) <= MAX_CPUS)
}

/// `.... node  #0, CPUs:      #1 #2 #3` and `numa: Node 0 CPUs: 0-15`.
fn of_node(boot: &mut Boot, text: &str, line: u64) -> Option<()> {
    if let Some(rest) = text.strip_prefix("numa: Node ") {
        let (nid, rest) = nid(rest)?;
        let ids = cpulist::parse(rest.trim_start().strip_prefix("CPUs:")?).ok()?;
        if !boot.node_cpus.contains_key(&nid) {
            list(boot, nid, &ids, line);
        }
        return Some(());
    }
    let (nid, rest) = nid(text.strip_prefix(".... node")?.trim_start().strip_prefix('#')?)?;
    let ids = rest.trim_start().strip_prefix(", CPUs:")?.split('#');
    let ids = ids.filter_map(|id| u32::try_from(number(id)?.0).ok());
    let ids: Vec<u32> = ids.take(8192).collect();
    list(boot, nid, &ids, line);
    boot.listing_nid = Some(nid);
    Some(())
}

/// ` #3 #4`: other messages came between the CPUs of a list.
fn more_of_node(boot: &mut Boot, text: &str, line: u64) -> Option<()> {
    let rest = text.strip_prefix('#')?;
    let nid = boot.listing_nid?;
    let id = |word: &str| word.trim().parse().ok().filter(|&id: &u32| u64::from(id) < MAX_CPUS);
    let ids: Option<Vec<u32>> = rest.split('#').take(8192).map(id).collect();
    list(boot, nid, &ids?, line);
    Some(())
}

/// `SRAT: PXM 1 -> APIC 0x04 -> Node 1` (`drivers/acpi/numa/srat.c` up to v6.7).
fn affinity(boot: &mut Boot, text: &str, line: u64) -> Option<()> {
    let text = text.strip_prefix("ACPI: ").unwrap_or(text).strip_prefix("SRAT: PXM ")?;
    let (_, rest) = text.split_once("APIC ")?;
    let (nid, _) = nid(rest.split_once("-> Node ")?.1)?;
    Boot::add(&mut boot.dropped, &mut boot.srat_cpus, Fact::new(nid, line));
    Some(())
}

/// Adds CPUs to a node's list. A CPU has one node, so that all lists together are
/// bounded; else each of many lines `numa: Node N CPUs: 0-65535` would take 256 KiB.
fn list(boot: &mut Boot, nid: Nid, ids: &[u32], line: u64) {
    if boot.listed_cpus + ids.len() > MAX_CPUS as usize {
        boot.dropped += 1;
        return;
    }
    boot.listed_cpus += ids.len();
    let known = boot.node_cpus.entry(nid).or_insert(Fact::new(Vec::new(), line));
    known.value.extend(ids);
}

/// `smpboot: CPU0: Intel(R) Core(TM) i7-7500U CPU @ 2.70GHz (family: 0x6, …)`.
fn model(boot: &mut Boot, text: &str, line: u64) -> Option<()> {
    let text = text.strip_prefix("smpboot: ").unwrap_or(text);
    let (name, _) = text.strip_prefix("CPU0: ")?.split_once(" (fam")?;
    let name: Vec<&str> = name.split_whitespace().collect();
    let name: String = name.join(" ").chars().take(120).collect();
    super::platform::imitated(boot, &name, line);
    Boot::set(&mut boot.cpu_model, name, line);
    Some(())
}

/// Threads per core, and CPUs where nothing is brought up.
fn counts(boot: &mut Boot, text: &str, line: u64) -> Option<()> {
    if let Some(rest) = text.strip_prefix("CPU topo: Max. threads per core:") {
        Boot::set(&mut boot.smt, small(number(rest)?.0)?, line);
    } else if let Some(rest) = text.strip_prefix("CPU maps initialized for ") {
        Boot::set(&mut boot.smt, small(number(rest)?.0)?, line);
    } else {
        return None;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::boot_of;
    use super::*;

    #[test]
    fn cpus_of_x86() {
        let boot = boot_of(
            "smpboot: CPU0: Some(R)  CPU @ 2.70GHz (family: 0x6, model: 0x8e)\n\
             CPU topo: Max. threads per core:   2\n\
             .... node  #0, CPUs:        #1  #2\n.... node  #1, CPUs:    #3\n\
             .... node  #0, CPUs:   #4 #5\nsmp: Brought up 2 nodes, 6 CPUs\n",
        );
        assert_eq!(boot.cpu_model.unwrap().value, "Some(R) CPU @ 2.70GHz");
        assert_eq!((boot.smt.unwrap().value, boot.cpu_count.unwrap().value), (2, 6));
        assert_eq!(boot.node_count.unwrap().value, 2);
        assert_eq!(boot.node_cpus[&Nid(0)].value, [1, 2, 4, 5]);
    }

    #[test]
    fn cpus_of_others() {
        let boot = boot_of(
            "CPU maps initialized for 4 threads per core\nnuma: Node 8 CPUs: 16-31\n\
             smp: Brought up 1 node, 1 CPU\n",
        );
        assert_eq!(boot.node_cpus[&Nid(8)].value.len(), 16);
        assert_eq!((boot.smt.unwrap().value, boot.cpu_count.unwrap().value), (4, 1));
        assert!(boot_of("smp: Brought up 1 node, 99999999999 CPUs").cpu_count.is_none());
    }

    // Every such line took 256 KiB for itself once.
    #[test]
    fn all_lists_together_have_no_more_cpus_than_there_can_be() {
        let line = |nid: u32| format!("numa: Node {nid} CPUs: 0-65535\n");
        let boot = boot_of(&(0..40).map(line).collect::<String>());
        assert_eq!(boot.node_cpus.keys().map(|n| n.0).collect::<Vec<_>>(), [0]);
        assert_eq!((boot.node_cpus[&Nid(0)].value.len(), boot.dropped), (65_536, 39));
        assert!(boot_of("numa: Node 4294967295 CPUs: 0-1\n").node_cpus.is_empty());
        assert!(boot_of(".... node  #4096, CPUs:   #1\n").node_cpus.is_empty());
    }
}
