//! A boot's own times against their prediction.
//!
//! [`of`] goes through what a log says about initialisation: a time per node, times of
//! zones from stamps, device memory, pools of huge pages. Each becomes a [`Logged`] with
//! its error, or with the reason why the logged time cannot be held against anything.

use super::huge::gives_back;
use super::{Case, Ran, Run, usual_strategy};
use crate::kernel::KernelVersion;
use crate::machine::bootlog::{Boot, Caveat, InitTime};
use crate::model::added;
use crate::model::hugetlb;
use crate::model::run::{PhaseRun, WorkRun};
use crate::plan::{Executor, PhaseName};
use crate::record::estimate::Logged;

/// Ticks per second where a log does not tell: the usual value of distributions.
const USUAL_HZ: f64 = 250.0;

/// From this version on zones are initialised after all of their lines.
const ZONES_AFTER_LINES: KernelVersion = KernelVersion::new(5, 12);

/// Why a logged time has no error.
pub mod reason {
    /// `0ms`.
    pub const BELOW_STEP: &str = "below-a-step: less than one tick of the timer";
    /// 4.17 to 5.7.
    pub const STALLED: &str = "stalled-tick: the timer stood still while pages were initialised";
    /// The prediction defers nothing there.
    pub const NOT_DEFERRED: &str = "no-such-phase: by these rules nothing is deferred there";
    /// A debugging kernel.
    pub const DEBUG: &str = "debug-kernel: slower by a factor that is not known";
    /// Stamps of zones.
    pub const AFTER_LINES: &str = "stamps: from 5.12 on zones are initialised after their lines";
    /// Pools of huge pages.
    pub const NO_TIME: &str = "no-time: the line has none";
}

/// Everything that `boot` says, in the order of the log.
pub fn of(boot: &Boot, ran: &Ran) -> Vec<Logged> {
    let hz = boot.hz.as_ref().map_or(USUAL_HZ, |hz| f64::from(hz.value));
    let judge = Judge { case: &ran.case, run: &ran.run, hz };
    let times = if boot.init.is_empty() { boot.serial_times() } else { boot.init_times() };
    let mut out: Vec<Logged> = times.iter().map(|time| judge.time(time)).collect();
    out.extend(boot.device_init.iter().map(|line| judge.device(line.pages, line.ms, line.line)));
    for pool in boot.huge_pools.iter().filter(|pool| pool.pages > 0) {
        out.push(judge.pool(pool.page_bytes, pool.pages, pool.line));
    }
    out.sort_by_key(|l| l.line);
    let otherwise = otherwise(boot, ran);
    out.iter_mut().for_each(|l| l.caveats.extend(otherwise.iter().map(|c| (*c).into())));
    out
}

/// Codes for what the prediction has otherwise than the boot that was logged.
fn otherwise(boot: &Boot, ran: &Ran) -> Vec<&'static str> {
    let version = ran.case.layout.kernel.version;
    let own = boot.kernel().map(|release| release.value.parse::<KernelVersion>());
    let mut out = Vec::new();
    match own {
        Some(Ok(own)) if own != version => out.push("other-kernel"),
        Some(Ok(_)) => {}
        Some(Err(_)) => out.push("other-kernel"),
        None => out.push("kernel-assumed"),
    }
    if ran.plan.strategy != usual_strategy(version).name() {
        out.push("other-strategy");
    }
    out
}

struct Judge<'a> {
    case: &'a Case,
    run: &'a Run,
    hz: f64,
}

impl Judge<'_> {
    fn time(&self, time: &InitTime) -> Logged {
        let codes = time.caveats.iter().map(|c| c.code().to_owned());
        let row = Logged {
            what: if time.zone.is_some() { "zone-init" } else { "deferred-init" }.into(),
            nid: Some(time.nid.0),
            line: time.line,
            pages: time.pages,
            logged_ms: Some(time.ms),
            step_ms: time.step_ms,
            caveats: codes.collect(),
            ..Logged::default()
        };
        let name = if time.zone.is_some() { PhaseName::EarlyInit } else { PhaseName::DeferredInit };
        let Some((phase, work)) = self.work(name, time) else {
            return Logged { left_out: Some(reason::NOT_DEFERRED.into()), ..row };
        };
        let pages = time.pages.unwrap_or(work.pages);
        let share = pages as f64 / work.pages.max(1) as f64;
        let (boot_ns, nodes_ns) = match phase.executor {
            Executor::BootCpu => (pages as f64 * work.page.ns, 0.0),
            Executor::NodeThreads => (0.0, (work.end_ns() - phase.start_ns) * share),
        };
        let row = Logged { pages: Some(pages), workers: Some(work.workers), ..row };
        let row = self.predicted(row, boot_ns, nodes_ns, work.workers);
        match self.why_not(time) {
            Some(why) => Logged { error: None, in_range: None, left_out: Some(why.into()), ..row },
            None => row,
        }
    }

    /// The phase and share of a node; of the boot CPU's works the first, which
    /// initialises.
    fn work(&self, name: PhaseName, time: &InitTime) -> Option<(&PhaseRun, &WorkRun)> {
        let phase = self.run.phases.iter().find(|p| p.name == name)?;
        Some((phase, phase.works.iter().find(|w| w.nid == time.nid)?))
    }

    fn why_not(&self, time: &InitTime) -> Option<&'static str> {
        let has = |caveat: Caveat| time.caveats.contains(&caveat);
        match () {
            () if has(Caveat::BelowTick) => Some(reason::BELOW_STEP),
            () if has(Caveat::StalledTick) => Some(reason::STALLED),
            () if has(Caveat::DebugKernel) => Some(reason::DEBUG),
            () if time.zone.is_some() && self.version() >= ZONES_AFTER_LINES => {
                Some(reason::AFTER_LINES)
            }
            () => None,
        }
    }

    fn version(&self) -> KernelVersion {
        self.case.layout.kernel.version
    }

    /// Fills in the prediction with its range and error.
    fn predicted(&self, row: Logged, boot_ns: f64, nodes_ns: f64, workers: u32) -> Logged {
        let range = self.case.range_of(boot_ns, nodes_ns, workers).with_ticks(self.hz);
        let ms = (boot_ns + nodes_ns) / 1e6;
        let logged = row.logged_ms.filter(|logged| *logged > 0.0);
        Logged {
            predicted_ms: Some(ms),
            range_ms: Some([range.low_ns / 1e6, range.high_ns / 1e6]),
            error: logged.map(|logged| ms / logged - 1.0),
            in_range: logged.map(|logged| range.holds(logged * 1e6)),
            ..row
        }
    }

    /// Device memory belongs to no node that the line names; the first one's costs are
    /// taken.
    fn device(&self, pages: u64, ms: u64, line: u64) -> Logged {
        let row = Logged {
            what: "zone-device".into(),
            line,
            pages: Some(pages),
            workers: Some(1),
            logged_ms: Some(ms as f64),
            step_ms: Some(1000.0 / self.hz),
            ..Logged::default()
        };
        let hardware = self.case.setup.on(&self.case.hardware);
        let Some(node) = hardware.nodes.first() else { return row };
        let options = self.case.setup.options;
        let page = added::device_page(self.version(), node, options, added::Store::Fields);
        let row = self.predicted(row, 0.0, page.ns * pages as f64, 1);
        match ms {
            0 => Logged { error: None, left_out: Some(reason::BELOW_STEP.into()), ..row },
            _ => row,
        }
    }

    /// What gathering a pool takes, which no line tells.
    fn pool(&self, page_bytes: u64, pages: u64, line: u64) -> Logged {
        let gigantic = page_bytes > self.case.layout.max_order_pages * self.case.layout.page_bytes;
        let struct_pages = page_bytes / self.case.layout.page_bytes * pages;
        let row = Logged {
            what: "hugetlb".into(),
            line,
            pages: Some(struct_pages),
            left_out: Some(reason::NO_TIME.into()),
            ..Logged::default()
        };
        if !gigantic {
            return row;
        }
        let gathered = hugetlb::gather(
            &self.case.setup.on(&self.case.hardware),
            &self.case.setup.options,
            &hugetlb::Pool {
                version: self.version(),
                page_bytes: self.case.layout.page_bytes,
                huge_bytes: page_bytes,
                huge_pages: pages,
                hvo: gives_back(self.case),
            },
        );
        Logged { predicted_ms: Some(gathered.total_ns() / 1e6), ..row }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::KernelModel;
    use crate::machine::input;
    use crate::pfn::Nid;
    use crate::study::estimate::Question;

    #[test]
    fn anchors_hold_for_pools_too() {
        let machine = input::load("@2n-skylake-768g", None).unwrap();
        let kernel = KernelModel::new(KernelVersion::new(5, 10), machine.arch);
        let ms = |scale: f64| {
            let scales = Some(vec![(Nid(0), scale)]);
            let ran = Ran::new(&machine, &kernel, &Question::default(), scales).unwrap();
            let judge = Judge { case: &ran.case, run: &ran.run, hz: USUAL_HZ };
            judge.pool(1 << 30, 10, 1).predicted_ms.unwrap()
        };
        assert!((ms(3.0) / ms(1.0) - 3.0).abs() < 1e-9);
    }
}
