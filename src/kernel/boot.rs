//! From a machine or a captured boot to what boots there.
//!
//! [`BootInput`] is the exact question: memory, reservations, rules, command line.
//! [`BootInput::from_facts`] takes them from a captured boot, [`BootInput::from_machine`]
//! from a machine with plausible reservations. [`BootInput::boot`] answers by running
//! [`super::place`] and then [`super::deferral`].

use super::cmdline::{CommandLine, HugeCount};
use super::deferral::{MemoryPages, Split, split};
use super::effects::{self, before_sparse_init, gigantic_pages};
use super::layout::{Layout, LayoutError};
use super::memblock::MemblockFlags;
use super::memory_map::{MemoryMap, ReservedRegion};
use super::place::{PlaceError, Placement, place};
use super::sparse_rules::{Platform, ReleaseRules};
use super::version::KernelModel;
use crate::machine::Machine;
use crate::machine::facts::BootFacts;
use crate::pfn::{Nid, PhysRange};
use crate::warning::Warning;

/// A machine as it stands when `sparse_init` starts, with the rules that hold.
#[derive(Clone, Debug)]
pub struct BootInput {
    /// The machine's name.
    pub name: String,
    /// Memory and reservations.
    pub map: MemoryMap,
    /// The rules of `sparse_init` and memblock.
    pub rules: ReleaseRules,
    /// The command line, where it changes zones or takes gigantic pages.
    pub line: CommandLine,
    /// The rules of everything else.
    pub kernel: KernelModel,
    /// Online CPUs by node.
    pub cpus: Vec<(Nid, u32)>,
    /// Gigantic pages that are among the reservations already.
    pub gigantic: Vec<PhysRange>,
}

/// Applies the rules of `kernel` to `machine`, without options on its command line. Of
/// a captured boot reservations are exact, else they are assumed.
///
/// # Errors
/// When memory cannot be placed: none at all, overlapping, beyond the architecture.
pub fn layout(machine: &Machine, kernel: &KernelModel) -> Result<Layout, LayoutError> {
    Ok(BootInput::of_machine(machine, kernel, None)?.boot()?.0)
}

impl BootInput {
    /// A captured boot under its own kernel, configuration and command line.
    ///
    /// # Errors
    /// When its release is not modelled, or its options make no sense.
    pub fn from_facts(facts: &BootFacts) -> Result<Self, LayoutError> {
        let kernel = kernel_of_facts(facts)?;
        Self::of_facts(facts, &kernel)
    }

    /// A captured boot's memory and reservations under the rules of any kernel.
    fn of_facts(facts: &BootFacts, kernel: &KernelModel) -> Result<Self, LayoutError> {
        let line: CommandLine = facts.cmdline.parse()?;
        let kernel = kernel.with_command_line(&line);
        let platform = Platform::of_facts(facts);
        let cpus = facts.nodes.iter().map(|n| (n.nid, n.cpus.len() as u32));
        let mut map = MemoryMap::from_facts(facts);
        map.warnings.extend(other_kernel(facts, &kernel));
        Ok(Self {
            name: facts.id.clone(),
            rules: ReleaseRules::new(&kernel, facts.page_bytes, platform),
            map,
            line,
            cpus: cpus.collect(),
            kernel,
            gigantic: Vec::new(),
        })
    }

    /// `machine` as `kernel` boots it with `line`, which [`effects::apply`] turns into
    /// another machine first. Without a line a captured boot keeps its own.
    ///
    /// # Errors
    /// As [`BootInput::from_facts`], and when gigantic pages are asked of a node without
    /// memory.
    pub fn from_machine(
        machine: &Machine,
        kernel: &KernelModel,
        line: Option<&CommandLine>,
    ) -> Result<Self, LayoutError> {
        let Some(line) = line else { return Self::of_machine(machine, kernel, None) };
        let affected = effects::apply(machine, kernel, line);
        let mut input = Self::of_machine(&affected.machine, kernel, Some(line))?;
        input.map.warnings.extend(affected.notes);
        Ok(input)
    }

    /// `machine` to which the effects of `line` on nodes, memory and CPUs have been
    /// applied already.
    ///
    /// # Errors
    /// As [`BootInput::from_machine`].
    pub fn of_machine(
        machine: &Machine,
        kernel: &KernelModel,
        line: Option<&CommandLine>,
    ) -> Result<Self, LayoutError> {
        let mut input = match (&machine.boot, line) {
            (Some(facts), None) => return Self::of_facts(facts, kernel),
            (Some(facts), Some(line)) => Self::of_other_line(facts, machine, kernel, line)?,
            (None, line) => Self::assumed(machine, kernel, line.cloned().unwrap_or_default()),
        };
        input.check_huge_nodes()?;
        if before_sparse_init(input.kernel.version) {
            input.reserve_gigantic_pages();
        }
        Ok(input)
    }

    /// A machine of which only ranges are known.
    fn assumed(machine: &Machine, kernel: &KernelModel, line: CommandLine) -> Self {
        let kernel = kernel.with_command_line(&line);
        let mut platform = Platform::of_machine(&kernel, machine);
        platform.five_level_paging &= !line.no5lvl;
        let rules = ReleaseRules::new(&kernel, machine.page_bytes, platform);
        let name = machine.name.clone();
        let map = MemoryMap::assumed(machine, &rules);
        Self { name, map, rules, line, kernel, cpus: cpus_of(machine), gigantic: Vec::new() }
    }

    /// A captured boot with another command line: `machine` says which of its memory
    /// there is, and on which node. Reservations stay, which is said.
    fn of_other_line(
        facts: &BootFacts,
        machine: &Machine,
        kernel: &KernelModel,
        line: &CommandLine,
    ) -> Result<Self, LayoutError> {
        let mut input = Self::of_facts(facts, kernel)?;
        input.kernel = kernel.with_command_line(line);
        input.rules.platform.five_level_paging &= !line.no5lvl;
        input.rules =
            ReleaseRules::new(&input.kernel, facts.page_bytes, input.rules.platform.clone());
        input.map.keep_memory_of(machine);
        input.line = line.clone();
        input.cpus = cpus_of(machine);
        input.map.warnings.push(Warning::new(
            "captured-reservations",
            "reservations and node data are those of the captured boot, whose command line \
             was another",
            "capture a boot with this command line for exact addresses",
        ));
        Ok(input)
    }

    /// Refuses `hugepages=NODE:COUNT` of a node without memory.
    fn check_huge_nodes(&self) -> Result<(), LayoutError> {
        for pages in &self.line.hugepages {
            let HugeCount::PerNode(list) = &pages.count else { continue };
            let known = |nid: u32| self.map.memory.iter().any(|m| m.nid == Nid(nid));
            if let Some((nid, _)) = list.iter().find(|(nid, _)| !known(*nid)) {
                return Err(LayoutError::NodeWithoutMemory { nid: Nid(*nid) });
            }
        }
        Ok(())
    }

    fn reserve_gigantic_pages(&mut self) {
        if self.line.hugepages.is_empty() {
            return;
        }
        // A map that cannot be placed is refused by `place`, with a better message.
        let Ok(mut memblock) = self.map.memblock(&self.rules, self.line.movable_node) else {
            return;
        };
        let (pages, missing) = gigantic_pages(&mut memblock, &self.rules, &self.line);
        self.map.warnings.extend(hugepage_notes(&self.kernel, &self.line, &pages, missing));
        self.map.reserved.extend(pages.iter().copied().map(ReservedRegion::plain));
        self.gigantic = pages;
    }

    /// The same boot with struct pages of another size, whatever the configuration says.
    pub fn with_struct_page_bytes(mut self, bytes: u64) -> Self {
        let platform = Platform { struct_page_bytes: Some(bytes), ..self.rules.platform.clone() };
        self.rules = ReleaseRules::new(&self.kernel, self.rules.page_bytes, platform);
        self
    }

    /// Runs the memory model: what lies where, and who initialises it.
    ///
    /// # Errors
    /// When memory cannot be placed.
    pub fn boot(&self) -> Result<(Layout, Placement), LayoutError> {
        let placed = place(&self.map, &self.rules, &self.line);
        let mut placement = placed.map_err(|cause| self.error(cause))?;
        let late = self.late_gigantic_pages(&mut placement);
        let nodes = split(&self.split(&placement, &late), &self.kernel);
        let mut format = self.kernel.page_format();
        format.vmemmap_base = self.rules.vmemmap_base;
        let layout = Layout {
            machine: self.name.clone(),
            kernel: self.kernel.clone(),
            arch: self.rules.arch,
            page_bytes: self.rules.page_bytes,
            pages_per_section: self.rules.pages_per_section(),
            max_order_pages: self.rules.max_order_pages(),
            pageblock_pages: self.rules.pageblock_pages(),
            format,
            zones: placement.zones.clone(),
            memmap: placement.extents(&self.rules),
            nodes,
            gigantic: if late.is_empty() { self.gigantic.clone() } else { late },
            struct_page_bytes: self.rules.struct_page_bytes,
            warnings: placement.warnings.clone(),
        };
        Ok((layout, placement))
    }

    fn error(&self, cause: PlaceError) -> LayoutError {
        LayoutError::Place { machine: self.name.clone(), cause }
    }

    /// Gigantic pages of kernels that take them after the memmap has its place.
    fn late_gigantic_pages(&self, placement: &mut Placement) -> Vec<PhysRange> {
        if self.line.hugepages.is_empty() || before_sparse_init(self.kernel.version) {
            return Vec::new();
        }
        let reserved = placement.after.reserved.iter().map(|r| ReservedRegion {
            start: r.start,
            end: r.end,
            nid: r.nid,
            flags: r.flags,
        });
        let after = MemoryMap { reserved: reserved.collect(), ..self.map.clone() };
        let Ok(mut memblock) = after.memblock(&self.rules, self.line.movable_node) else {
            return Vec::new();
        };
        let (pages, missing) = gigantic_pages(&mut memblock, &self.rules, &self.line);
        placement.warnings.extend(hugepage_notes(&self.kernel, &self.line, &pages, missing));
        pages
    }

    /// The question of early and deferred pages, once the memmap has its place; gigantic
    /// pages that come later left out.
    pub fn split_input(&self, placement: &Placement) -> Split {
        self.split(placement, &[])
    }

    /// The same with gigantic pages.
    fn split(&self, placement: &Placement, late: &[PhysRange]) -> Split {
        let page_bytes = self.rules.page_bytes;
        let memory = self.map.memory.iter().map(|m| MemoryPages {
            range: PhysRange::new(m.start, m.end).whole_pages(page_bytes),
            nid: m.nid,
        });
        let reserved = placement.after.reserved.iter().map(|r| PhysRange::new(r.start, r.end));
        // Unmapped memory has struct pages that are treated as reserved ones.
        let unmapped = self.map.memory.iter().filter(|m| m.flags.contains(MemblockFlags::NOMAP));
        let unmapped = unmapped.map(|m| PhysRange::new(m.start, m.end));
        Split {
            page_bytes,
            pages_per_section: self.rules.pages_per_section(),
            zones: placement.zones.clone(),
            memory: memory.filter(|m| !m.range.is_empty()).collect(),
            reserved: reserved.chain(unmapped).chain(late.iter().copied()).collect(),
            cpus: self.cpus.clone(),
        }
    }
}

/// The rules of a captured boot's own release and configuration.
///
/// # Errors
/// When the release is not modelled, or the configuration has impossible values.
pub fn kernel_of_facts(facts: &BootFacts) -> Result<KernelModel, LayoutError> {
    let kernel = KernelModel::from_release(&facts.kernel, facts.arch)?;
    let mut config = kernel.config.clone();
    config.apply_facts(&facts.config)?;
    Ok(kernel.with_config(config))
}

fn cpus_of(machine: &Machine) -> Vec<(Nid, u32)> {
    machine.nodes.iter().map(|n| (n.nid, n.cpus.len() as u32)).collect()
}

fn other_kernel(facts: &BootFacts, kernel: &KernelModel) -> Option<Warning> {
    (facts.kernel != kernel.release).then(|| {
        Warning::new(
            "captured-reservations",
            format!(
                "reservations are those of the captured kernel {}, the rules those of {}",
                facts.kernel, kernel.release
            ),
            "capture a boot of that kernel for exact addresses",
        )
    })
}

/// What is to be said about gigantic pages.
fn hugepage_notes(
    kernel: &KernelModel,
    line: &CommandLine,
    pages: &[PhysRange],
    missing: u64,
) -> Vec<Warning> {
    let mut out = Vec::new();
    if missing > 0 {
        out.push(Warning::new(
            "huge-pages-missing",
            format!("{missing} gigantic pages find no room"),
            "ask for fewer with hugepages=",
        ));
    }
    let config = &kernel.config;
    let wanted =
        line.hugetlb_free_vmemmap.unwrap_or(config.hugetlb_page_optimize_vmemmap_default_on);
    if pages.is_empty() || !wanted {
        return out;
    }
    let text = if !config.hugetlb_page_optimize_vmemmap {
        "hugetlb_free_vmemmap= does nothing: this kernel is built without \
         CONFIG_HUGETLB_PAGE_OPTIMIZE_VMEMMAP"
    } else if before_sparse_init(kernel.version) {
        "the layout is without sharing: from 6.15 on the memmap of gigantic pages would share \
         struct pages from the start, here it is counted and placed whole"
    } else {
        "the memmap of gigantic pages is given back after boot only: the layout is the same"
    };
    out.push(Warning::new(
        "hugetlb-vmemmap",
        text,
        "the layout is that of hugetlb_free_vmemmap=off",
    ));
    out
}
