//! Times of initialisation, and huge pages.

use super::super::boot::{Boot, DeviceInit, HugePool, InitForm, InitLine};
use super::number;
use crate::pfn::Nid;

/// Reads a message with a time or a pool; `false` if it is about something else.
pub(super) fn read(boot: &mut Boot, text: &str, line: u64) -> bool {
    if let Some(found) = init_line(text, line) {
        Boot::add(&mut boot.dropped, &mut boot.init, found);
        return true;
    }
    device(boot, text, line).is_some() || huge(boot, text, line).is_some()
}

/// The time of a node in any of the four forms.
pub(in crate::machine::bootlog) fn init_line(text: &str, line: u64) -> Option<InitLine> {
    let (rest, is_node) = match text.strip_prefix("node ") {
        Some(rest) => (rest, true),
        None => (text.strip_prefix("kswapd ")?, false),
    };
    let (nid, rest) = number(rest)?;
    let nid = Nid(u32::try_from(nid).ok().filter(|&n| n < 4096)?);
    let rest = rest.trim_start();
    let (pages, rest, form) = if let Some(rest) = rest.strip_prefix("deferred pages initialised in")
    {
        (None, rest, InitForm::Deferred)
    } else if let Some(rest) = rest.strip_prefix("initialised deferred memory in") {
        (None, rest, InitForm::Kswapd)
    } else {
        let rest = rest.strip_prefix("initialised")?.trim_start_matches(',');
        let (pages, rest) = number(rest)?;
        let form = if is_node { InitForm::Pages } else { InitForm::KswapdPages };
        (Some(pages), rest.trim_start().strip_prefix("pages in")?, form)
    };
    let (ms, rest) = number(rest)?;
    rest.trim_start().starts_with("ms").then_some(InitLine { nid, pages, ms, form, line })
}

/// `memmap_init_zone_device initialised 2097152 pages in 10ms`.
fn device(boot: &mut Boot, text: &str, line: u64) -> Option<()> {
    let rest = text.strip_prefix("memmap_init_zone_device initialised")?;
    let (pages, rest) = number(rest.trim_start_matches(','))?;
    let (ms, _) = number(rest.trim_start().strip_prefix("pages in")?)?;
    Boot::add(&mut boot.dropped, &mut boot.device_init, DeviceInit { pages, ms, line });
    Some(())
}

/// `HugeTLB: registered 1.00 GiB page size, pre-allocated 4 pages`.
fn huge(boot: &mut Boot, text: &str, line: u64) -> Option<()> {
    let rest = text.strip_prefix("HugeTLB")?.trim_start_matches(':').trim_start();
    let (size, rest) = rest.strip_prefix("registered ")?.split_once(" page size")?;
    let page_bytes = crate::machine::text::size(size)?;
    let (pages, _) = number(rest.split_once("pre-allocated")?.1)?;
    Boot::add(&mut boot.dropped, &mut boot.huge_pools, HugePool { page_bytes, pages, line });
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::boot_of;
    use super::*;
    use crate::units::{GIB, MIB};

    #[test]
    fn four_generations() {
        let boot = boot_of(
            "kswapd 3 initialised deferred memory in 216ms\n\
             kswapd 0 initialised 396098436 pages in 6024ms\n\
             node 1 initialised, 7688738 pages in 149ms\n\
             node 8 deferred pages initialised in 0ms\n\
             node 8 deferred pages initialised in ms\nnode 1: [mem\n",
        );
        let got: Vec<_> = boot.init.iter().map(|i| (i.nid.0, i.pages, i.ms, i.form)).collect();
        assert_eq!(
            got,
            [
                (3, None, 216, InitForm::Kswapd),
                (0, Some(396_098_436), 6024, InitForm::KswapdPages),
                (1, Some(7_688_738), 149, InitForm::Pages),
                (8, None, 0, InitForm::Deferred),
            ]
        );
    }

    #[test]
    fn device_memory_and_huge_pages() {
        let boot = boot_of(
            "memmap_init_zone_device initialised 2097152 pages in 10ms\n\
             HugeTLB registered 1.00 GiB page size, pre-allocated 4 pages\n\
             HugeTLB: registered 2.00 MiB page size, pre-allocated 0 pages\n\
             HugeTLB: 16380 KiB vmemmap can be freed for a 1.00 GiB page\n",
        );
        assert_eq!((boot.device_init[0].pages, boot.device_init[0].ms), (2_097_152, 10));
        let pools: Vec<_> = boot.huge_pools.iter().map(|p| (p.page_bytes, p.pages)).collect();
        assert_eq!(pools, [(GIB, 4), (2 * MIB, 0)]);
    }
}
