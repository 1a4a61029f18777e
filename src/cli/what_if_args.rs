//! The changes that `estimate` can be asked about, each a flag.

use crate::study::estimate::{HugePool, WhatIf};
use crate::units::Bytes;
use clap::{Args, ValueEnum, value_parser};

/// What to change, and what to add to the boot.
#[derive(Debug, Args)]
#[command(next_help_heading = "What if (modelled; several may be combined)")]
pub(super) struct WhatIfArgs {
    /// So many threads per node [default: what that kernel would use]
    #[arg(
        long,
        visible_alias = "threads-per-node",
        value_name = "THREADS",
        value_parser = value_parser!(u32).range(1..=65536)
    )]
    threads: Option<u32>,
    /// Freed pages are written, as with init_on_free=1 or page_poison=1
    #[arg(long)]
    init_on_free: bool,
    /// So many fake nodes in all, as with numa=fake=N
    #[arg(long, value_name = "N")]
    fake_numa: Option<u32>,
    /// Gigantic pages at boot, as 1GiB:500, with and without HVO
    #[arg(long, value_name = "SIZE:COUNT", value_parser = parse_pool)]
    hugepages: Option<HugePool>,
    /// Whether the memmap behind gigantic pages is given back (HVO) [default: as the
    /// kernel is configured]
    #[arg(long, value_enum, value_name = "ON|OFF", requires = "hugepages")]
    hvo: Option<Switch>,
    /// Bytes of a struct page [default: what the configuration makes of it]
    #[arg(long, value_name = "BYTES")]
    struct_page_bytes: Option<u64>,
    /// Memory that is added while the system runs: serially, and with threads
    #[arg(long, value_name = "SIZE")]
    hotplug: Option<Bytes>,
    /// Device memory with struct pages (ZONE_DEVICE)
    #[arg(long, value_name = "SIZE")]
    device_memory: Option<Bytes>,
    /// Start the kernel from another one
    #[arg(long)]
    kexec: bool,
    /// Set memory aside for a crash kernel, and boot that
    #[arg(long, value_name = "SIZE")]
    kdump: Option<Bytes>,
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    /// Yes
    On,
    /// No
    Off,
}

fn parse_pool(text: &str) -> Result<HugePool, String> {
    let expected = "write SIZE:COUNT, for example 1GiB:500";
    let (size, count) = text.split_once(':').ok_or(expected)?;
    let size: Bytes = size.parse().map_err(|e: crate::units::SizeError| e.to_string())?;
    let pages = count.parse().map_err(|_| expected)?;
    Ok(HugePool { page_bytes: size.0, pages })
}

impl WhatIfArgs {
    /// For the study; `--page-size` belongs to the machine's arguments.
    pub(super) fn what_if(&self) -> WhatIf {
        WhatIf {
            fake_numa: self.fake_numa,
            hugepages: self.hugepages,
            hvo: self.hvo.map(|switch| switch == Switch::On),
            page_bytes: None,
            struct_page_bytes: self.struct_page_bytes,
            init_on_free: self.init_on_free,
            threads: self.threads,
            kdump_bytes: self.kdump.map(|b| b.0),
            hotplug_bytes: self.hotplug.map(|b| b.0),
            device_bytes: self.device_memory.map(|b| b.0),
            kexec: self.kexec,
        }
    }
}
