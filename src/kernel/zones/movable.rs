//! Where `ZONE_MOVABLE` begins on each node.
//!
//! [`MovableOptions`] are read from the kernel command line; [`starts`] follows
//! `mm/mm_init.c: find_zone_movable_pfns_for_nodes` (v6.12).

use super::NodeSpan;
use crate::kernel::memblock::{MemblockFlags, RegionSet};
use crate::kernel::sparse_rules::ReleaseRules;
use crate::pfn::{Nid, Pfn, PfnRange};
use std::collections::BTreeMap;

/// An amount of memory on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreSize {
    /// So many bytes.
    Bytes(u64),
    /// So many hundredths of all memory.
    Percent(u64),
}

/// What the command line says about `ZONE_MOVABLE`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MovableOptions {
    /// `kernelcore=`: at least so much for the kernel.
    pub kernelcore: Option<CoreSize>,
    /// `movablecore=`: about so much movable.
    pub movablecore: Option<CoreSize>,
    /// `kernelcore=mirror`: the kernel takes mirrored memory alone.
    pub mirror: bool,
    /// `movable_node`: hot-pluggable memory is movable.
    pub movable_node: bool,
}

/// An option of the command line that is not a size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{option}={value} is not a size; write for example {option}=4G or {option}=30%")]
pub struct BadOption {
    /// The option's name.
    pub option: &'static str,
    /// Its value.
    pub value: String,
}

impl MovableOptions {
    /// Reads the options from a kernel command line; the last of each counts.
    ///
    /// # Errors
    /// When a value is not a size, a percentage up to 100 or, for `kernelcore`, `mirror`.
    pub fn from_cmdline(cmdline: &str) -> Result<Self, BadOption> {
        let mut out = Self::default();
        for word in cmdline.split_whitespace() {
            match word.split_once('=') {
                Some(("kernelcore", "mirror")) => out.mirror = true,
                Some(("kernelcore", value)) => {
                    out.kernelcore = Some(core_size("kernelcore", value)?);
                }
                Some(("movablecore", value)) => {
                    out.movablecore = Some(core_size("movablecore", value)?);
                }
                None if word == "movable_node" => out.movable_node = true,
                _ => {}
            }
        }
        Ok(out)
    }
}

fn core_size(option: &'static str, value: &str) -> Result<CoreSize, BadOption> {
    let bad = || BadOption { option, value: value.into() };
    if let Some(percent) = value.strip_suffix('%') {
        let percent = percent.parse().ok().filter(|&p| p <= 100).ok_or_else(bad)?;
        return Ok(CoreSize::Percent(percent));
    }
    let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match value[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        "p" => 50,
        _ => return Err(bad()),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(1 << shift));
    bytes.map(CoreSize::Bytes).ok_or_else(bad)
}

impl CoreSize {
    fn pages(self, total: u64, page_bytes: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes / page_bytes,
            Self::Percent(percent) => total.saturating_mul(100 * percent) / 10_000,
        }
    }
}

/// The first page frame of `ZONE_MOVABLE` on each node that has one. `usable_from` is
/// where the highest other zone begins: nothing below may be movable.
pub(super) fn starts(
    memory: &RegionSet,
    rules: &ReleaseRules,
    options: &MovableOptions,
    spans: &[NodeSpan],
    usable_from: Pfn,
) -> BTreeMap<Nid, Pfn> {
    let has_mirror = || memory.iter().any(|r| r.flags.contains(MemblockFlags::MIRROR));
    let mut starts = if options.movable_node {
        lowest(memory, rules, 0, |f| f.contains(MemblockFlags::HOTPLUG))
    } else if options.mirror {
        if !has_mirror() {
            return BTreeMap::new();
        }
        lowest(memory, rules, 1 << 32, |f| !f.contains(MemblockFlags::MIRROR))
    } else {
        match kernelcore_pages(rules, options, spans) {
            Some(pages) => spread(memory, rules, spans, usable_from, pages),
            None => return BTreeMap::new(),
        }
    };
    for start in starts.values_mut() {
        *start = start.align_up(rules.max_order_pages());
    }
    starts.retain(|nid, start| {
        spans.iter().any(|s| s.nid == *nid && *start < s.range.end) && start.0 > 0
    });
    starts
}

/// Per node the start of the lowest region at or above `from` with such flags.
fn lowest(
    memory: &RegionSet,
    rules: &ReleaseRules,
    from: u64,
    wanted: impl Fn(MemblockFlags) -> bool,
) -> BTreeMap<Nid, Pfn> {
    let mut out = BTreeMap::new();
    for region in memory.iter().filter(|r| wanted(r.flags)) {
        let start = region.range().whole_pages(rules.page_bytes).start;
        if start.0 >= from / rules.page_bytes {
            out.entry(region.nid.unwrap_or_default()).or_insert(start);
        }
    }
    out
}

/// How many pages the kernel must keep; `None` when there is no `ZONE_MOVABLE`.
fn kernelcore_pages(
    rules: &ReleaseRules,
    options: &MovableOptions,
    spans: &[NodeSpan],
) -> Option<u64> {
    let total: u64 = spans.iter().map(|s| s.present).sum();
    let pages = |size: Option<CoreSize>| size.map_or(0, |s| s.pages(total, rules.page_bytes));
    let mut kernelcore = pages(options.kernelcore);
    let movablecore = pages(options.movablecore);
    if movablecore > 0 {
        let block = rules.max_order_pages();
        let rounded = movablecore.checked_next_multiple_of(block).unwrap_or(total).min(total);
        kernelcore = kernelcore.max(total - rounded);
    }
    (kernelcore > 0 && kernelcore < total).then_some(kernelcore)
}

/// Spreads `required` pages for the kernel evenly over the nodes, again with one node
/// fewer while some are left.
fn spread(
    memory: &RegionSet,
    rules: &ReleaseRules,
    spans: &[NodeSpan],
    usable_from: Pfn,
    mut required: u64,
) -> BTreeMap<Nid, Pfn> {
    let mut by_node: BTreeMap<Nid, Vec<PfnRange>> = BTreeMap::new();
    for region in memory.iter() {
        let range = region.range().whole_pages(rules.page_bytes);
        if !range.is_empty() {
            by_node.entry(region.nid.unwrap_or_default()).or_default().push(range);
        }
    }
    let mut starts = BTreeMap::new();
    let mut nodes = spans.len() as u64;
    while nodes > 0 {
        let mut share = required / nodes;
        for (&nid, ranges) in &by_node {
            if required < share {
                share = required / nodes;
            }
            let start = starts.entry(nid).or_insert(Pfn(0));
            take_from_node(ranges, usable_from, share, start, &mut required);
        }
        nodes -= 1;
        if required <= nodes {
            break;
        }
    }
    starts
}

/// Moves the `start` of one node's movable part up by `share` pages of memory.
fn take_from_node(
    ranges: &[PfnRange],
    usable_from: Pfn,
    share: u64,
    start: &mut Pfn,
    required: &mut u64,
) {
    let mut remaining = share;
    for range in ranges {
        let mut from = range.start.max(*start);
        if from >= range.end {
            continue;
        }
        if from < usable_from {
            let kernel_only = range.end.min(usable_from).pages_since(from);
            remaining = remaining.saturating_sub(kernel_only);
            *required = required.saturating_sub(kernel_only);
            if range.end <= usable_from {
                *start = range.end;
                continue;
            }
            from = usable_from;
        }
        let pages = range.end.pages_since(from).min(remaining);
        *start = from.offset(pages);
        *required = required.saturating_sub(pages);
        remaining -= pages;
        if remaining == 0 {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn options_are_read_from_the_command_line() {
        let read = MovableOptions::from_cmdline;
        let options = read("ro kernelcore=512M movablecore=30% movable_node").expect("valid");
        assert_eq!(options.kernelcore, Some(CoreSize::Bytes(512 << 20)));
        assert_eq!(options.movablecore, Some(CoreSize::Percent(30)));
        assert!(options.movable_node && !options.mirror);
        assert!(read("kernelcore=mirror").expect("valid").mirror);
        for bad in ["kernelcore=", "kernelcore=12X", "movablecore=101%", "movablecore=-1"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "(kernelcore|movablecore)=.*") {
            let _ = MovableOptions::from_cmdline(&text);
        }
    }
}
