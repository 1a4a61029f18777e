//! Every number of the cost model that is not a class's own, in one place.
//!
//! Each constant is marked [`Mark::Fit`] (chosen with published figures in view),
//! [`Mark::Derived`] (arithmetic on one published figure) or [`Mark::Prior`] (assumed;
//! the figures cannot tell), with its origin. [`ALL`] lists them for tables and
//! [`fitted`] counts; costs of processor classes stand in `topology/processors.toml`.

/// What a number rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Chosen with the published figures in view.
    Fit,
    /// Arithmetic on one published figure.
    Derived,
    /// Assumed.
    Prior,
}

/// What a number decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// How a node's time falls with its threads.
    Threads,
    /// What one page costs one worker.
    Page,
    /// What the boot CPU does alone.
    Boot,
    /// Memory that is added after boot, and huge pages.
    Added,
    /// How wide a prediction's range is.
    Range,
}

/// One number with its marks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constant {
    /// Its name in this module.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
    /// What it rests on.
    pub mark: Mark,
    /// What it decides.
    pub group: Group,
    /// Where it comes from.
    pub origin: &'static str,
}

impl Mark {
    /// `FIT`, `DERIVED` or `PRIOR`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fit => "FIT",
            Self::Derived => "DERIVED",
            Self::Prior => "PRIOR",
        }
    }

    /// The mark of that name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Fit, Self::Derived, Self::Prior].into_iter().find(|m| m.name() == name)
    }
}

/// How many constants of a group were chosen with published figures in view.
pub fn fitted(group: Group) -> usize {
    ALL.iter().filter(|c| c.group == group && c.mark == Mark::Fit).count()
}

macro_rules! constants {
    ($($(#[$doc:meta])* $name:ident = $value:expr, $unit:literal, $mark:ident, $group:ident,
       $origin:literal;)*) => {
        $($(#[$doc])* pub const $name: f64 = $value;)*

        /// All of them, in the order of this file.
        pub const ALL: &[Constant] = &[$(Constant {
            name: stringify!($name),
            value: $name,
            unit: $unit,
            mark: Mark::$mark,
            group: Group::$group,
            origin: $origin,
        }),*];
    };
}

constants! {
    /// Share of the peak rate that reads for ownership and write-backs together reach.
    EFFICIENCY = 0.69, "of peak", Fit, Threads,
        "padata-v1..v3, three machines; 0.69 to 0.70 with one left out";
    /// Added once per node while some of its hardware threads are idle; at most the time
    /// of a chunk, and never so much that one thread would be faster.
    SETTLE_MS_PER_THREAD = 0.50, "ms per hardware thread", Fit, Threads,
        "padata-v1..v3; 0.45 to 0.60 with one machine left out; the cause is a hypothesis";
    /// A guest's memory lies on more channels than its share of CPUs.
    GUEST_BANDWIDTH = 1.20, "times", Fit, Threads,
        "padata-*-epyc16, the only guest: an unseen guest is not predicted by it";
    /// What a core's second hardware thread adds.
    SMT_GAIN = 0.40, "cores", Prior, Threads,
        "anything from 0 to 0.8 fits: bandwidth is full before siblings are used";
    /// Holding the zone lock for one freed block.
    ZONE_LOCK_NS = 500.0, "ns per block", Prior, Threads,
        "0 to 500 fit alike; above 710 contradicts padata-*-skylake";

    /// Bytes moved to write a cold line through the caches: read for ownership, write back.
    TEMPORAL_BYTES = 128.0, "bytes", Derived, Page, "64 read and 64 written";
    /// Bytes moved to store a line past the caches.
    STREAMED_BYTES = 64.0, "bytes", Derived, Page, "64 written";
    /// Field writes on a cold line, in lines.
    FIELDS_LINE = 1.1, "w", Fit, Page,
        "one-thread times of 4.0 to 4.2: mel-1tb-*, waiman-12tb-*";
    /// Core work of the field writes.
    FIELDS_CORE_NS = 1.5, "ns", Prior, Page, "stores retire at about one per cycle";
    /// Core work of nine merged stores.
    NINE_STORES_CORE_NS = 2.0, "ns", Prior, Page, "stores retire at about one per cycle";
    /// Eight separate zero stores and the field writes.
    ZERO_LINE_CORE_NS = 3.0, "ns", Prior, Page, "seventeen stores";
    /// Storing a finished image.
    COMPOSE_CORE_NS = 0.5, "ns", Prior, Page, "one or two wide stores";
    /// What the state after freeing adds to an image.
    COMPOSE_FREED_CORE_NS = 0.5, "ns", Prior, Page, "a head in a thousand differs";
    /// Calling memset for one page.
    MEMSET_CALL_NS = 9.5, "ns", Derived, Page, "duyck-v5, patch 1: 37.3 to 27.8 ns per page";
    /// Checking the node and validity of every page frame (4.15 to 5.1).
    PER_PFN_CHECKS_NS = 9.5, "ns", Derived, Page, "duyck-v5, patch 2: 27.8 to 18.4 ns per page";
    /// The rest of the loop over pages.
    LOOP_CORE_NS = 1.0, "ns", Prior, Page, "counters and bounds";
    /// Freeing hot lines while every tail page is checked (up to 6.2).
    FREE_HOT_CHECKED_NS = 4.0, "ns", Fit, Page,
        "one-thread times of 5.6 and 5.7: padata-v1..v3, three machines";
    /// Freeing hot lines without those checks.
    FREE_HOT_NS = 2.5, "ns", Prior, Page, "no published figure of 6.4 or later";
    /// Freeing in a pass of its own, in lines.
    FREE_COLD_LINE = 0.5, "w", Derived, Page, "duyck-v5, patches 3 and 4: 18.4 to 13.7 ns";
    /// Core work of freeing in a pass of its own.
    FREE_COLD_CORE_NS = 3.0, "ns", Prior, Page, "as hot, less what the line hides";
    /// Setting `PG_reserved` on cold lines.
    MARK_RESERVED_CORE_NS = 3.0, "ns", Prior, Page, "one read-modify-write";
    /// A line's share of the guest's first touch where the processor is named.
    GUEST_TOUCH_NAMED_NS = 2.0, "ns", Prior, Page,
        "0 when the host backs memory beforehand, 7 with huge pages, 19 with small ones";
    /// The same where the hypervisor hides the processor.
    GUEST_TOUCH_NS = 7.0, "ns", Prior, Page, "the host clears 64 bytes from huge pages";
    /// Poisoning or clearing one line of a freed page, in lines.
    POISON_LINE = 0.9, "w", Prior, Page, "0.75 to 0.97 on two captured boots";
    /// Kernels with lockdep or KASAN.
    DEBUG_FACTOR = 1.8, "times", Prior, Page, "one captured boot; at least this";

    /// The boot CPU's loop up to 4.1, without the stores.
    BOOT_LOOP_A_NS = 12.5, "ns", Prior, Boot, "a locked read-modify-write per page";
    /// From 4.2 to 5.1.
    BOOT_LOOP_B_NS = 10.5, "ns", Prior, Boot, "a check per page frame";
    /// From 5.2 to 5.7.
    BOOT_LOOP_D_NS = 11.0, "ns", Prior, Boot, "a check per page frame";
    /// From 5.8 on.
    BOOT_LOOP_E_NS = 1.0, "ns", Prior, Boot, "regions instead of page frames";
    /// `memblock_free_all`, in lines.
    BOOT_FREE_LINE = 0.7, "w", Prior, Boot, "a cold second pass without read-ahead";
    /// Its core work.
    BOOT_FREE_CORE_NS = 3.5, "ns", Prior, Boot, "as the workers'";
    /// A line of the other socket of two, in local lines.
    REMOTE_TWO_SOCKETS = 1.5, "times", Prior, Boot, "remembered, not looked up";
    /// Exponent of SLIT / 10 on machines of four sockets and more.
    REMOTE_EXPONENT = 1.15, "power", Fit, Boot,
        "tatashin-zeroing-x86 and boot times of 4.0, by hand";
    /// Lines behind a node controller.
    REMOTE_CONTROLLER = 2.0, "times", Fit, Boot, "zimmer-sgi-boots, sgi-2013-16tib, by hand";
    /// The station that all nodes share behind node controllers, per freed block.
    CONTROLLER_BLOCK_NS = 840.0, "ns per block", Derived, Boot, "zimmer-sgi-nodes, 248 nodes";
    /// A remote line of a SPARC of the M series, whatever its distance, in local lines.
    REMOTE_SPARC = 1.4, "times", Derived, Boot, "sparc-m7-zeroing, tatashin-v11-sparc";
    /// SLIT between two to four sockets where it is not known.
    ASSUMED_SLIT_NEAR = 21.0, "SLIT", Prior, Boot, "usual firmware of two sockets";
    /// Between eight sockets.
    ASSUMED_SLIT_EIGHT = 26.0, "SLIT", Prior, Boot, "one or two hops, mean";
    /// Between sixteen sockets.
    ASSUMED_SLIT_SIXTEEN = 30.0, "SLIT", Prior, Boot, "crossbars of large x86 machines";
    /// Behind node controllers.
    ASSUMED_SLIT_CONTROLLER = 50.0, "SLIT", Prior, Boot, "remembered for SGI UV";
    /// The slowest of many equal nodes.
    SLOWEST_NODE = 1.03, "times", Fit, Boot, "waiman-12tb-*: 0.5 to 3 % between nodes";

    /// What a page of device memory needs beyond a page of memory.
    DEVICE_CORE_NS = 1.0, "ns", Prior, Added, "owner, reserved bit and count: stores on a hot line";
    /// Registering one memory block: device, notifiers, lock.
    HOTPLUG_BLOCK_NS = 100_000.0, "ns per block", Prior, Added,
        "order of magnitude, remembered; up to 5.5 it also grows with the blocks there are";
    /// Allocating and mapping 2 MiB of memmap while the system runs.
    HOTPLUG_MAP_NS = 1500.0, "ns per 2 MiB", Prior, Added,
        "one allocation and one page table entry";
    /// Freeing one page alone, up to 5.0.
    HOTPLUG_FREE_SINGLE_NS = 25.0, "ns", Prior, Added, "the path of single pages, with its lock";
    /// Making a struct page a tail of a gigantic page, beyond its line.
    TAIL_CORE_NS = 2.0, "ns", Prior, Added, "head, count and reserved bit";
    /// Giving back one page of memmap behind a huge page.
    HVO_PAGE_NS = 100.0, "ns per page", Prior, Added,
        "one page table entry and one page to the buddy allocator";
    /// Splitting a mapping of the memmap, and flushing translations, per huge page.
    HVO_HUGE_NS = 2000.0, "ns per huge page", Prior, Added, "a flush on all CPUs";

    /// Half-width, as a factor, anchored on one thread of the same machine.
    RANGE_ANCHORED = 1.10, "times", Fit, Range, "four in five of padata-v1..v3 lie inside";
    /// By class, processor known.
    RANGE_CLASS = 1.28, "times", Fit, Range, "one machine, two kernels: 1.25 apart";
    /// By class, a guest on a known processor.
    RANGE_GUEST = 1.40, "times", Prior, Range, "how the host backs memory is unknown";
    /// Processor unknown.
    RANGE_UNKNOWN = 1.60, "times", Fit, Range, "published records without a processor";
    /// A guest on an unknown processor.
    RANGE_UNKNOWN_GUEST = 2.0, "times", Fit, Range, "tatashin-irqs-enabled";
    /// The boot CPU's phases.
    RANGE_BOOT_CPU = 1.60, "times", Fit, Range, "whole-boot savings, 2.3 at worst";
    /// Where no published figure reaches.
    RANGE_EXTRAPOLATED = 1.2, "times more", Prior, Range, "6.4 on, DDR5, over 64 threads";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_scaling_rests_on_three_fitted_constants() {
        assert_eq!(fitted(Group::Threads), 3);
    }

    #[test]
    fn names_are_unique_and_every_constant_says_where_it_comes_from() {
        for (index, constant) in ALL.iter().enumerate() {
            assert!(ALL[..index].iter().all(|c| c.name != constant.name), "{}", constant.name);
            assert!(!constant.origin.is_empty() && constant.value > 0.0, "{}", constant.name);
            assert_eq!(Mark::named(constant.mark.name()), Some(constant.mark));
        }
    }
}
