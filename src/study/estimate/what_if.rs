//! What changes of a machine or its kernel would cost or save.
//!
//! [`WhatIf`] is the list of changes. Those of the boot itself are applied one by one
//! and all together ([`Asked`]), each held against the boot without any; what is no
//! part of this boot, such as memory added later, is in [`super::apart`]. Impossible
//! changes are refused with what would be possible.

pub use super::huge::HugePool;

use super::huge::{check_pool, gathered};
use super::{Question, Ran, StudyError, apart, whole};
use crate::kernel::KernelModel;
use crate::kernel::cmdline::{HugeCount, HugePages, NumaFake};
use crate::machine::Machine;
use crate::model::hugetlb;
use crate::plan::Executor;
use crate::record::estimate::{WhatIfPart, WhatIfRow};
use crate::study::sweep::shapes::{MOST_NODES, page_sizes};
use crate::units::Bytes;
use crate::warning::Warning;

/// Changes, none by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WhatIf {
    /// So many fake nodes in all, as `numa=fake=`.
    pub fake_numa: Option<u32>,
    /// Gigantic pages at boot.
    pub hugepages: Option<HugePool>,
    /// Whether their memmap is given back; by the configuration when `None`.
    pub hvo: Option<bool>,
    /// Bytes of a base page.
    pub page_bytes: Option<u64>,
    /// Bytes of a struct page.
    pub struct_page_bytes: Option<u64>,
    /// Freed pages are written.
    pub init_on_free: bool,
    /// Threads per node.
    pub threads: Option<u32>,
    /// Memory for a crash kernel, in bytes.
    pub kdump_bytes: Option<u64>,
    /// Memory that is added while the system runs, in bytes.
    pub hotplug_bytes: Option<u64>,
    /// Device memory with struct pages, in bytes.
    pub device_bytes: Option<u64>,
    /// The kernel is started by another one.
    pub kexec: bool,
}

/// One change in words.
struct Change {
    name: &'static str,
    what: String,
    only: WhatIf,
}

impl WhatIf {
    /// Whether the boot itself is another one.
    fn changes_boot(&self) -> bool {
        !self.changes().is_empty()
    }

    /// The changes of the boot, each by itself. Gigantic pages stand there with and
    /// without HVO, whichever is asked for.
    fn changes(&self) -> Vec<Change> {
        let mut out = Vec::new();
        let mut add = |name, what: String, only| out.push(Change { name, what, only });
        let none = Self::default;
        if let Some(n) = self.fake_numa {
            add("fake-numa", format!("{n} fake nodes"), Self { fake_numa: Some(n), ..none() });
        }
        for hvo in [false, true] {
            let Some(pool) = self.hugepages else { continue };
            let (name, how) =
                if hvo { ("hugepages-hvo", "with") } else { ("hugepages", "without") };
            let what = format!("{} pages of {}, {how} HVO", pool.pages, Bytes(pool.page_bytes));
            add(name, what, Self { hugepages: Some(pool), hvo: Some(hvo), ..none() });
        }
        if let Some(bytes) = self.page_bytes {
            let only = Self { page_bytes: Some(bytes), ..none() };
            add("page-size", format!("base pages of {}", Bytes(bytes)), only);
        }
        if let Some(bytes) = self.struct_page_bytes {
            let only = Self { struct_page_bytes: Some(bytes), ..none() };
            add("struct-page-bytes", format!("struct pages of {bytes} bytes"), only);
        }
        if self.init_on_free {
            let only = Self { init_on_free: true, ..none() };
            add("init-on-free", "freed pages are written".into(), only);
        }
        if let Some(n) = self.threads {
            let plural = if n == 1 { "" } else { "s" };
            let only = Self { threads: Some(n), ..none() };
            add("threads-per-node", format!("{n} thread{plural} per node"), only);
        }
        if let Some(bytes) = self.kdump_bytes {
            let what = format!("{} set aside for a crash kernel", Bytes(bytes));
            add("kdump-reserved", what, Self { kdump_bytes: Some(bytes), ..none() });
        }
        out
    }

    /// Machine, kernel and question with these changes.
    fn apply(&self, machine: &Machine, kernel: &KernelModel, question: &Question) -> Applied {
        let (mut machine, mut kernel, mut question) =
            (machine.clone(), kernel.clone(), question.clone());
        let mut line = question.line.take();
        if let Some(n) = self.fake_numa {
            kernel.config.numa_emu = true;
            let bits = n.next_power_of_two().trailing_zeros();
            kernel.config.nodes_shift = kernel.config.nodes_shift.max(bits);
            line.get_or_insert_default().numa_fake = Some(NumaFake::Nodes(n));
        }
        if let Some(pool) = self.hugepages {
            let page_bytes = Some(pool.page_bytes);
            let asked = HugePages { page_bytes, count: HugeCount::Total(pool.pages) };
            line.get_or_insert_default().hugepages.push(asked);
        }
        if let Some(hvo) = self.hvo {
            line.get_or_insert_default().hugetlb_free_vmemmap = Some(hvo);
        }
        if let Some(bytes) = self.page_bytes {
            machine.page_bytes = bytes;
            // Captured reservations are those of other pages.
            machine.boot = None;
        }
        question.line = line;
        question.struct_page_bytes = self.struct_page_bytes.or(question.struct_page_bytes);
        question.options.poison |= self.init_on_free;
        question.threads = self.threads.or(question.threads);
        question.crash_bytes = self.kdump_bytes.or(question.crash_bytes);
        Applied { machine, kernel, question }
    }

    /// Refuses what cannot be.
    fn check(&self, machine: &Machine, kernel: &KernelModel) -> Result<(), StudyError> {
        let wrong = |text: String| Err(StudyError::Usage(text));
        if let Some(n) = self.fake_numa.filter(|n| !(2..=MOST_NODES).contains(n)) {
            return wrong(format!("--fake-numa {n}: Linux can have 2 to {MOST_NODES} nodes"));
        }
        let sizes = page_sizes(machine.arch);
        if let Some(bytes) = self.page_bytes.filter(|bytes| !sizes.contains(bytes)) {
            let sizes: Vec<String> = sizes.iter().map(|b| Bytes(*b).to_string()).collect();
            let (arch, sizes) = (machine.arch, sizes.join(", "));
            return wrong(format!("--page-size {}: {arch} has {sizes}", Bytes(bytes)));
        }
        if let Some(bytes) = self.struct_page_bytes.filter(|b| !(56..=96).contains(b) || b % 8 > 0)
        {
            return wrong(format!(
                "--struct-page-bytes {bytes}: Linux builds with 56, 64, 72, 80, 88 or 96"
            ));
        }
        if let Some(pool) = self.hugepages {
            check_pool(pool, machine, self.page_bytes.unwrap_or(machine.page_bytes))?;
        }
        let asked = [("hotplug", self.hotplug_bytes), ("device-memory", self.device_bytes)];
        for (flag, bytes) in asked {
            let (least, most) = (machine.page_bytes, crate::machine::assume::PHYS_LIMIT >> 1);
            if let Some(bytes) = bytes.filter(|b| !(least..=most).contains(b)) {
                let (bytes, least, most) = (Bytes(bytes), Bytes(least), Bytes(most));
                return wrong(format!("--{flag} {bytes}: at least {least}, at most {most}"));
            }
        }
        if self.hvo == Some(true) && kernel.version < hugetlb::FIRST_HVO {
            return wrong(format!("--hvo on: Linux has it from {} on", hugetlb::FIRST_HVO));
        }
        let odd = self.struct_page_bytes.filter(|bytes| !bytes.is_power_of_two());
        if let Some(bytes) = odd.filter(|_| self.hvo == Some(true)) {
            return wrong(format!(
                "--hvo on: Linux cannot with struct pages of {bytes} bytes; they must divide a \
                 base page, as 64 does"
            ));
        }
        Ok(())
    }
}

impl WhatIf {
    /// Refuses changes that what else was asked for leaves without effect.
    fn check_against(&self, question: &Question) -> Result<(), StudyError> {
        let wrong = |text: &str| Err(StudyError::Usage(text.into()));
        if self.init_on_free && !question.free {
            return wrong(
                "--init-on-free writes freed pages and --no-free frees none; leave one out",
            );
        }
        let numa_off = question.line.as_ref().is_some_and(|line| line.numa_off);
        if self.fake_numa.is_some() && numa_off {
            return wrong(
                "--fake-numa makes nodes and numa=off leaves one; leave one of both out, or give \
                 --cmdline without numa=off",
            );
        }
        Ok(())
    }
}

/// What a [`WhatIf`] makes of machine, kernel and question.
struct Applied {
    machine: Machine,
    kernel: KernelModel,
    question: Question,
}

impl Applied {
    fn ran(&self, base: &Ran) -> Result<Ran, StudyError> {
        let ran = Ran::like(&self.machine, &self.kernel, &self.question, &base.case.setup)?;
        let failed = ran.case.layout.warnings.iter().find(|w| w.code == "numa-fake-failed");
        match failed {
            Some(warning) => Err(StudyError::Usage(format!("--fake-numa: {}", warning.message))),
            None => Ok(ran),
        }
    }
}

/// A question with its changes: the boot without any and the boot with all of them.
pub(super) struct Asked {
    what_if: WhatIf,
    plain: Applied,
    all: Applied,
    /// The boot without any change.
    pub(super) base: Ran,
    changed: Option<Ran>,
}

impl Asked {
    /// Runs both.
    pub(super) fn new(
        machine: &Machine,
        kernel: &KernelModel,
        question: &Question,
    ) -> Result<Self, StudyError> {
        let what_if = question.what_if.clone();
        what_if.check(machine, kernel)?;
        what_if.check_against(question)?;
        let base = Ran::new(machine, kernel, question, None)?;
        let plain = WhatIf::default().apply(machine, kernel, question);
        let all = what_if.apply(machine, kernel, question);
        let changed = what_if.changes_boot().then(|| all.ran(&base)).transpose()?;
        Ok(Self { what_if, plain, all, base, changed })
    }

    /// The boot that was asked for: machine, question and what came out.
    pub(super) fn chosen(&self) -> (&Machine, &Question, &Ran) {
        match &self.changed {
            Some(ran) => (&self.all.machine, &self.all.question, ran),
            None => (&self.plain.machine, &self.plain.question, &self.base),
        }
    }

    /// What every change costs or saves; nothing without any.
    pub(super) fn rows(&self) -> Result<Vec<WhatIfRow>, StudyError> {
        if self.what_if == WhatIf::default() {
            return Ok(Vec::new());
        }
        let base = row("base", "this boot, nothing changed".into(), &self.base, None);
        let base_ns = base.total_ns.unwrap_or(0);
        let mut out = vec![base];
        let changes = self.what_if.changes();
        for change in &changes {
            let Applied { machine, kernel, question } = &self.plain;
            let hvo = change.only.hvo == Some(true);
            if hvo && kernel.version < hugetlb::FIRST_HVO {
                continue;
            }
            let ran = change.only.apply(machine, kernel, question).ran(&self.base)?;
            out.push(row(change.name, change.what.clone(), &ran, Some(base_ns)));
        }
        if let (true, Some(ran)) = (changes.len() > 1, &self.changed) {
            out.push(row("together", "all that was asked for".into(), ran, Some(base_ns)));
        }
        out.extend(apart::rows(
            &self.what_if,
            &self.plain.machine,
            &self.plain.kernel,
            &self.base,
        )?);
        Ok(out)
    }
}

/// One boot as a row.
fn row(name: &str, what: String, ran: &Ran, base_ns: Option<u64>) -> WhatIfRow {
    let gathered = gathered(&ran.case);
    let boot_ns = ran.run.total_ns();
    let gather_ns = gathered.map_or(0.0, |g| g.total_ns());
    let mut parts = vec![part("boot CPU", ran.run.share_ns(Executor::BootCpu))];
    parts.push(part("threads of the nodes", ran.run.share_ns(Executor::NodeThreads)));
    let mut note = note_of(name);
    if let Some(gathered) = gathered {
        parts.push(part("tails of gigantic pages", gathered.tails_ns));
        parts.push(part("giving back their memmap", gathered.remap_ns));
        note = format!(
            "{} of memmap given back; {} struct pages written by {} thread{}",
            Bytes(gathered.given_back_bytes),
            crate::units::grouped(gathered.pages),
            gathered.workers,
            if gathered.workers == 1 { "" } else { "s" }
        );
    }
    let nodes_ns = ran.run.share_ns(Executor::NodeThreads);
    let range = ran.range(boot_ns - nodes_ns + gather_ns, nodes_ns);
    let total_ns = whole(boot_ns + gather_ns);
    WhatIfRow {
        name: name.into(),
        what,
        total_ns: Some(total_ns),
        range_ns: Some([whole(range.low_ns), whole(range.high_ns)]),
        against_ns: base_ns,
        saved_ns: base_ns.map(|base| signed(base, total_ns)),
        memmap_bytes: Some(memmap_bytes(ran)),
        parts: parts.into_iter().filter(|p| p.ns > 0).collect(),
        note,
    }
}

fn note_of(name: &str) -> String {
    match name {
        "fake-numa" => "fake nodes share the cores and the memory of their real node",
        "init-on-free" => "every freed page is written, 0.9 of a cold line for each of its lines",
        "page-size" => "fewer or more struct pages; captured reservations are not used",
        "kdump-reserved" => "its struct pages are the boot CPU's work, as all reserved ones",
        _ => "",
    }
    .into()
}

/// Struct pages that exist once the boot is done.
fn memmap_bytes(ran: &Ran) -> u64 {
    let extents = ran.case.layout.memmap.iter().map(|e| e.end.saturating_sub(e.start));
    let given_back = gathered(&ran.case).map_or(0, |g| g.given_back_bytes);
    extents.sum::<u64>().saturating_sub(given_back)
}

/// A part of a row.
pub(super) fn part(what: &str, ns: f64) -> WhatIfPart {
    WhatIfPart { part: what.into(), ns: whole(ns) }
}

/// What is saved of `base`.
pub(super) fn signed(base: u64, total: u64) -> i64 {
    i64::try_from(i128::from(base) - i128::from(total)).unwrap_or(i64::MIN)
}

/// What is to be said of changes as a whole.
pub fn warnings(what_if: &WhatIf, kernel: &KernelModel, calibrated: bool) -> Vec<Warning> {
    let mut out = Vec::new();
    let apart = what_if.hotplug_bytes.is_some()
        || what_if.device_bytes.is_some()
        || what_if.hugepages.is_some();
    if calibrated && apart {
        out.push(Warning::new(
            "not-calibrated",
            "a calibration has no costs of memory added later or of gigantic pages; those rest on \
             the processor's class",
            "leave --calibration out to have one basis for all",
        ));
    }
    if what_if.fake_numa.is_some() && !kernel.config.numa_emu {
        out.push(Warning::new(
            "numa-emu-assumed",
            "fake nodes need CONFIG_NUMA_EMU, which this kernel is not known to have",
            "it is taken to be set: --fake-numa asks what it would bring",
        ));
    }
    out
}
