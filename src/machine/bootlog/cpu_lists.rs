//! Which CPUs each node has, out of what a log lists.
//!
//! [`Boot::cpu_lists`] gives the lists of all nodes where the log shows every CPU: as
//! they were brought up, or by the affinity table. Used by [`super::evidence`] and
//! [`super::times`].

use super::boot::{Boot, Fact};
use crate::pfn::Nid;
use std::collections::{BTreeMap, BTreeSet};

type Lists = BTreeMap<Nid, Fact<Vec<u32>>>;

impl Boot {
    /// The CPUs of every node that has any, ascending; `None` unless the log shows where
    /// each of them is.
    pub(super) fn cpu_lists(&self) -> Option<Lists> {
        let count = self.cpu_count.as_ref()?;
        let mut lists = self.listed_cpus();
        let listed: usize = lists.values().map(|f| f.value.len()).sum();
        let has_zero = lists.values().any(|f| f.value.contains(&0));
        if listed as u64 + 1 == u64::from(count.value) && !has_zero {
            // x86 does not list the CPU that booted; it is of the first node.
            let known = self.early.iter().chain(&self.initmem).map(|r| r.nid);
            let first = known.chain(lists.keys().copied()).min().unwrap_or(Nid(0));
            let zero = Fact::new(Vec::new(), count.line);
            lists.entry(first).or_insert(zero).value.insert(0, 0);
            return Some(lists);
        }
        if listed as u64 == u64::from(count.value) {
            return Some(lists);
        }
        self.by_affinity(count.value, &lists)
    }

    /// What the log lists, ascending, each CPU once.
    pub(super) fn listed_cpus(&self) -> Lists {
        let mut lists = self.node_cpus.clone();
        for fact in lists.values_mut() {
            fact.value.sort_unstable();
            fact.value.dedup();
        }
        lists
    }

    /// The affinity table counts the CPUs of each node. Linux numbers them as firmware
    /// lists them, mostly in this order; where the log lists some otherwise, those stay
    /// and the rest follow in order.
    fn by_affinity(&self, count: u32, listed: &Lists) -> Option<Lists> {
        let is_rearranged = self.cmdline.as_ref().is_some_and(|line| {
            line.value.split_whitespace().any(|w| w.starts_with("numa=fake") || w == "numa=off")
        });
        if self.srat_cpus.len() as u64 != u64::from(count) || is_rearranged {
            return None;
        }
        let mut lists = Lists::new();
        for (entry, id) in self.srat_cpus.iter().zip(0u32..) {
            let own = lists.entry(entry.value).or_insert(Fact::new(Vec::new(), entry.line));
            own.value.push(id);
        }
        let agrees = |(nid, fact): (&Nid, &Fact<Vec<u32>>)| {
            let own = lists.get(nid).map_or(&[][..], |own| &own.value);
            fact.value.iter().all(|id| own.binary_search(id).is_ok())
        };
        if listed.iter().all(agrees) {
            return Some(lists);
        }
        let taken: BTreeSet<u32> = listed.values().flat_map(|f| f.value.clone()).collect();
        let mut free = (0..count).filter(|id| !taken.contains(id));
        for (nid, own) in &mut lists {
            let stated = listed.get(nid).map(|f| f.value.clone()).unwrap_or_default();
            let missing = own.value.len().checked_sub(stated.len())?;
            own.value = stated.into_iter().chain(free.by_ref().take(missing)).collect();
            own.value.sort_unstable();
        }
        Some(lists)
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse::boot_of;

    const SRAT: &str = "SRAT: PXM 0 -> APIC 0x00 -> Node 0\nSRAT: PXM 0 -> APIC 0x01 -> Node 0\n\
        ACPI: SRAT: PXM 7 -> APIC 0x0020 -> Node 1\nSRAT: PXM 7 -> X2APIC 0x21 -> Node 1\n";

    fn lists(text: &str) -> Option<Vec<(u32, Vec<u32>)>> {
        let lists = boot_of(text).cpu_lists()?;
        Some(lists.into_iter().map(|(nid, fact)| (nid.0, fact.value)).collect())
    }

    #[test]
    fn a_list_goes_on_in_lines_of_its_own() {
        let text = ".... node  #0, CPUs:      #1 #2\nWARNING: CPU: 4\n#3\n\
            .... node  #2, CPUs:   #4\n#5 #6\nnoise #7\nsmp: Brought up 3 nodes, 7 CPUs\n";
        assert_eq!(lists(text).unwrap(), [(0, vec![0, 1, 2, 3]), (2, vec![4, 5, 6])]);
        assert_eq!(lists(&format!("#9\n{text}")).unwrap().len(), 2);
    }

    #[test]
    fn the_affinity_table_tells_where_the_list_is_cut() {
        let count = "smp: Brought up 2 nodes, 4 CPUs\n";
        let whole = lists(&format!("{SRAT}{count}")).unwrap();
        assert_eq!(whole, [(0, vec![0, 1]), (1, vec![2, 3])]);
        let other = lists(&format!("{SRAT}.... node  #1, CPUs:  #1\n{count}")).unwrap();
        assert_eq!(other, [(0, vec![0, 2]), (1, vec![1, 3])]);
        assert_eq!(lists(&format!("Command line: numa=fake=4\n{SRAT}{count}")), None);
        assert_eq!(lists(&format!("{SRAT}smp: Brought up 2 nodes, 3 CPUs\n")), None);
        assert_eq!(lists(SRAT), None);
    }
}
