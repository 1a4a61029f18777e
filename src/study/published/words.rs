//! What authors' words mean: what was timed, which node, how much memory.
//!
//! [`kind_of`] tells a measurement's [`Kind`]; its own words go before those of its
//! record ([`Context`]). [`node_in_words`], [`page_kib`] and [`pages_of_sizes`] read numbers.

use super::Kind;
use crate::units::TIB;

/// What a record's title and configuration say about all of its measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Context {
    device: bool,
    huge: bool,
    hotplug: bool,
    deferred: bool,
    /// Bytes of the one size that is named.
    bytes: Option<u64>,
    /// Bytes of device memory that a field says each node has.
    node_bytes: Option<u64>,
    page_bytes: u64,
}

impl Context {
    /// Reads title and configuration. Names of options (`CONFIG_ZONE_DEVICE=y`) say what
    /// a kernel can do, not what was timed.
    pub(super) fn of(title: &str, config: &str, page_kib: Option<u64>) -> Self {
        let both = format!("{title} {config}").to_ascii_lowercase();
        let words = both.split_whitespace().filter(|w| !w.starts_with("config_"));
        let text = words.collect::<Vec<_>>().join(" ");
        let title = title.to_ascii_lowercase();
        Self {
            device: is_device(&text),
            huge: is_huge(&title),
            hotplug: is_hotplug(&title),
            deferred: is_deferred(&title),
            node_bytes: None,
            bytes: size_in_words(&text),
            page_bytes: page_kib.filter(|kib| *kib > 0).unwrap_or(4).saturating_mul(1024),
        }
    }

    /// With so much device memory on each node.
    pub(super) fn with_node_tib(self, tib: Option<f64>) -> Self {
        let bytes = tib.filter(|tib| *tib > 0.0).map(|tib| (tib * TIB as f64) as u64);
        Self { node_bytes: bytes, ..self }
    }

    fn kind(self) -> Option<Kind> {
        match () {
            _ if self.device => Some(Kind::Device),
            _ if self.huge => Some(Kind::Huge),
            _ if self.hotplug => Some(Kind::Hotplug),
            _ => None,
        }
    }
}

/// What a measurement times, by its words and then by its record's.
pub(super) fn kind_of(what: &str, context: &Context) -> Kind {
    let text = what.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let memmap = has(&["memmap", "struct page", "sparse_init", "memblock"]);
    match () {
        _ if has(&["mremap"]) => Kind::Other,
        _ if is_hotplug(&text) => Kind::Hotplug,
        _ if is_huge(&text) => Kind::Huge,
        _ if is_device(&text) || context.device && memmap => Kind::Device,
        _ if has(&["expected", "estimate"]) => Kind::Expectation,
        _ if is_saving(&text) && context.device => Kind::Device,
        _ if is_saving(&text) => Kind::Saving,
        _ if has(&["additional per-node"]) => Kind::NodeZeroExtra,
        _ if has(&["memmap_init_reserved", "reserve_bootmem", "reserved page"]) => Kind::Reserved,
        _ if node_in_words(what).is_some() => Kind::DeferredNode,
        _ if begins_with_boot(&text) => Kind::Boot,
        _ if is_deferred(&text) => Kind::DeferredSlowest,
        _ if has(&["memset of", "memset in memblock"]) => Kind::BootZero,
        _ if has(&["zeroing", "memset"]) && memmap => Kind::BootZero,
        _ if has(&["memmap_init"]) => Kind::Sweep,
        _ if has(&["free_all_bootmem", "memblock_free_all"]) => Kind::FreeAll,
        _ if has_word(&text, "boot") => Kind::Boot,
        _ if context.kind().is_some() => context.kind().unwrap_or_default(),
        _ if has(&["initialised", "initialized", "after patch"]) => Kind::DeferredSlowest,
        _ if has(&["common-iterator", "slowest node"]) => Kind::DeferredSlowest,
        // A table under the title: `struct page init, 8 threads`.
        _ if context.deferred && has(&["struct page", "page init", "thread"]) => {
            Kind::DeferredSlowest
        }
        _ if has(&["boot"]) || is_memory_size(&text) => Kind::Boot,
        _ => Kind::Other,
    }
}

fn is_device(text: &str) -> bool {
    let names = ["pmem", "zone_device", "nvdimm", "devmap", "namespace", "nouveau"];
    // Short ones are parts of other words.
    let whole = ["dax", "devdax", "hmm", "fsdax"];
    names.iter().any(|name| text.contains(name)) || whole.iter().any(|word| has_word(text, word))
}

fn is_huge(text: &str) -> bool {
    let names = ["hugetlb", "hugepages", "gigantic"];
    names.iter().any(|name| text.contains(name)) || has_word(text, "hvo")
}

fn is_hotplug(text: &str) -> bool {
    let names =
        ["hotplug", "hot-plug", "hot plug", "hotadd", "hot-add", "hot add", "adding memory"];
    names.iter().any(|name| text.contains(name)) || text.contains("add_memory")
}

fn is_saving(text: &str) -> bool {
    ["saving", "saved", "improvement", "reduction"].iter().any(|word| text.contains(word))
}

/// The deferred phase by the names of its code, or as people call it.
fn is_deferred(text: &str) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let code = ["deferred init", "deferred page init", "deferred_init", "pgdatinit"];
    has(&code)
        || has(&["page_alloc_init_late"])
        || has(&["deferred"]) && !has_word(text, "boot") && has(&["node", "page", "init", "phase"])
}

/// `kernel boot`, `boot, base, deferred`: whole boots, whatever else they name.
fn begins_with_boot(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty());
    let (first, second, third) = (words.next(), words.next(), words.next());
    match (first, second) {
        (Some("boot"), next) => next != Some("cpu"),
        (Some("kernel" | "total" | "whole" | "full"), Some("boot")) => third != Some("cpu"),
        _ => false,
    }
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| part == word)
}

/// Words such as `8 TB (128 nodes) before`, which authors use for whole boots.
fn is_memory_size(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let number = words.next().is_some_and(|w| w.parse::<f64>().is_ok());
    number && words.next().is_some_and(|w| w == "tb" || w == "tib")
}

/// The node that words name: `node 12 deferred init`, `Node 3:`, `node3`, `pgdatinit3`.
pub(crate) fn node_in_words(what: &str) -> Option<u32> {
    let text = what.trim().to_ascii_lowercase();
    let rest = match text.strip_prefix("node") {
        Some(rest) => rest.strip_prefix([' ', '#', '-']).unwrap_or(rest),
        None => text.split_once("pgdatinit")?.1,
    };
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// `4K`, `8 KiB`, `65536` in KiB; 0 where that is no size.
pub(super) fn page_kib(text: &str) -> u64 {
    let text = text.trim().to_ascii_lowercase();
    let cut = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(cut);
    let number: u64 = number.parse().unwrap_or(0);
    match unit.trim_start().chars().next() {
        Some('k') => number,
        Some('m') => number.saturating_mul(1024),
        Some('g') => number.saturating_mul(1024 * 1024),
        // No page has fewer than 1024 bytes, and none more than 1023 KiB.
        Some('b') | None if number >= 1024 && number.is_multiple_of(1024) => number / 1024,
        None => number,
        Some(_) => 0,
    }
}

/// The first size in a lowercase text, in bytes: `3 tb/node`, `100 gb namespace`. Authors
/// mean powers of two.
fn size_in_words(text: &str) -> Option<u64> {
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let from = &rest[start..];
        let end = from.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(from.len());
        let (number, behind) = from.split_at(end);
        let unit: String =
            behind.trim_start().chars().take_while(char::is_ascii_alphabetic).collect();
        let shift = match unit.as_str() {
            "mb" | "mib" => Some(20),
            "gb" | "gib" => Some(30),
            "tb" | "tib" => Some(40),
            _ => None,
        };
        if let (Some(shift), Ok(number)) = (shift, number.parse::<f64>()) {
            return Some((number * f64::from(1u32 << (shift - 20)) * 1024.0 * 1024.0) as u64);
        }
        rest = behind;
    }
    None
}

/// Gigantic pages as `500 x 1G`, `500 pages of 1 GiB`, `1G (11776 pages)` or
/// `hugepagesz=1G hugepages=500`: the bytes of one, and how many.
pub(crate) fn gigantic_in_words(what: &str) -> Option<(u64, u64)> {
    let text = what.to_ascii_lowercase().replace(',', "");
    let part = |c: char| c.is_whitespace() || matches!(c, '(' | ')' | '=' | ':' | '/');
    let words: Vec<&str> = text.split(part).filter(|w| !w.is_empty()).collect();
    let of_1g = ["1g", "1gb", "1gib"];
    let apart = words.windows(2).any(|pair| matches!(pair, ["1", "gb" | "gib"]));
    if !apart && !words.iter().any(|word| of_1g.contains(word)) {
        return None;
    }
    let count = |word: &str| word.parse::<u64>().ok().filter(|count| *count > 0);
    let beside = |before: &str, at: &str, after: &str| match (before, at, after) {
        // `hugepages=500`, and `500 x 1G`, `500 pages`, `1G pages 500`.
        ("hugepages" | "pages", at, _) | (_, at, "x" | "pages" | "hugepages") => count(at),
        (_, at, after) if of_1g.contains(&after) => count(at),
        _ => None,
    };
    let found = (0..words.len()).find_map(|i| {
        let word = |i: Option<usize>| i.and_then(|i| words.get(i)).copied().unwrap_or_default();
        beside(word(i.checked_sub(1)), word(Some(i)), word(Some(i + 1)))
    });
    Some((1 << 30, found?))
}

/// The struct pages of a size that the words of device memory or hotplug name.
pub(super) fn pages_of_sizes(kind: Kind, what: &str, context: &Context) -> Option<u64> {
    let text = what.to_ascii_lowercase();
    if !matches!(kind, Kind::Device | Kind::Hotplug) || is_saving(&text) {
        return None;
    }
    // A record's size is not that of one of its nodes.
    let shared = || context.bytes.filter(|_| !text.contains("per node") && !text.contains("/node"));
    let of_node = || context.node_bytes.filter(|_| kind == Kind::Device);
    let bytes = size_in_words(&text).or_else(of_node).or_else(shared)?;
    Some(bytes / context.page_bytes).filter(|pages| *pages > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(what: &str) -> Kind {
        kind_of(what, &Context::default())
    }

    #[test]
    fn words_say_what_was_timed() {
        let expect = [
            ("deferred init (slowest node)", Kind::DeferredSlowest),
            ("node 15 deferred init (kswapd)", Kind::DeferredNode),
            ("node 0, after", Kind::DeferredNode),
            ("kernel boot", Kind::Boot),
            ("8 TB (128 nodes) before", Kind::Boot),
            ("boot saving (RFC text)", Kind::Saving),
            ("single-thread memset of vmemmap for 1 TB (16 GiB of struct page)", Kind::BootZero),
            ("additional per-node time when zeroing is done in the threads", Kind::NodeZeroExtra),
            ("after patch 2 (drop meminit_pfn_in_nid)", Kind::DeferredSlowest),
            ("pmem memmap 3 TB/node, before series", Kind::Device),
            ("memmap_init_zone, before", Kind::Sweep),
            ("stosb 16MB", Kind::Other),
            ("boot, fix (zeroing deferred too)", Kind::Boot),
            ("boot, base, deferred", Kind::Boot),
            ("x86 1 GB mremap", Kind::Other),
        ];
        for (what, kind) in expect {
            assert_eq!(plain(what), kind, "{what}");
        }
    }

    #[test]
    fn the_deferred_phase_has_many_names() {
        for what in ["deferred struct page init", "page_alloc_init_late", "average node deferred"] {
            assert_eq!(plain(what), Kind::DeferredSlowest, "{what}");
        }
        for what in ["pgdatinit0", "Node 3: deferred pages initialised", "node3 deferred init"] {
            assert_eq!(plain(what), Kind::DeferredNode, "{what}");
        }
        assert_eq!(plain("slowest node"), Kind::DeferredSlowest);
        let title = Context::of("ktask: deferred struct page init", "", None);
        assert_eq!(kind_of("struct page init, 8 threads", &title), Kind::DeferredSlowest);
        assert_eq!(kind_of("boot, 8 threads", &title), Kind::Boot);
        assert_eq!(plain("sparse_init (memmap zeroing)"), Kind::BootZero);
        assert_eq!(plain("vmemmap zeroing, boot CPU"), Kind::BootZero);
        let nodes = ["Node 3: x", "node12", "pgdatinit7", "per node 384 GB"].map(node_in_words);
        assert_eq!(nodes, [Some(3), Some(12), Some(7), None]);
    }

    #[test]
    fn what_is_no_sweep_is_not_taken_for_one() {
        assert_eq!(plain("memmap_init_reserved_pages(), before"), Kind::Reserved);
        assert_eq!(plain("memory hotplug of 1 TiB"), Kind::Hotplug);
        assert_eq!(plain("adding memory, 16 TB (approx.)"), Kind::Hotplug);
        assert_eq!(plain("hugetlb init 500 x 1G pages with HVO, before"), Kind::Huge);
        let title = Context::of("hugetlb parallel boot init", "", None);
        assert_eq!(kind_of("128c1T 2M, before", &title), Kind::Huge);
    }

    #[test]
    fn a_records_words_count_less_than_a_figures_own() {
        let options = Context::of("padata", "CONFIG_ZONE_DEVICE=y CONFIG_FS_DAX=y", None);
        assert_eq!(kind_of("same, later", &options), Kind::Other);
        let title = Context::of("host with a pmem namespace", "", None);
        assert_eq!(kind_of("deferred init (slowest node)", &title), Kind::DeferredSlowest);
        assert_eq!(kind_of("kernel boot", &title), Kind::Boot);
        assert_eq!(kind_of("same, later", &title), Kind::Device);
        assert_eq!(kind_of("memmap_init_zone, before", &title), Kind::Device);
    }

    #[test]
    fn gigantic_pages_are_counted_where_words_do() {
        let five_hundred = [
            "hugetlb init 500 x 1G pages with HVO, before",
            "hugetlb 1G pages 500, HVO, before",
            "500 pages of 1 GiB",
            "hugepagesz=1G hugepages=500",
        ];
        for what in five_hundred {
            assert_eq!(gigantic_in_words(what), Some((1 << 30, 500)), "{what}");
        }
        assert_eq!(gigantic_in_words("12T 1G (11776 pages), before"), Some((1 << 30, 11_776)));
        for what in ["256c2T (4 node) 1G pages, before", "128c1T 2M, before", "1024 x 2M"] {
            assert_eq!(gigantic_in_words(what), None, "{what}");
        }
    }

    #[test]
    fn sizes_are_read_with_their_units() {
        let sizes = ["4K", "8 KiB", "64k", "4096", "16384", "2M", "0K", "5K", "huge", "4"];
        assert_eq!(sizes.map(page_kib), [4, 8, 64, 4, 16, 2048, 0, 5, 0, 4]);
        let pages = |what: &str, config: &str| {
            pages_of_sizes(Kind::Device, what, &Context::of("", config, Some(4)))
        };
        assert_eq!(pages("pmem memmap 3 TB/node, before series", ""), Some(805_306_368));
        assert_eq!(pages("nd_pmem, base, rebind", "100 GB namespace"), Some(26_214_400));
        assert_eq!(pages("pmem memmap init per node", "12 TB pmem over 4 nodes"), None);
        let field = Context::of("12 TB pmem over 4 nodes", "", None).with_node_tib(Some(3.0));
        let per_node = pages_of_sizes(Kind::Device, "pmem memmap init per node", &field);
        assert_eq!(per_node, Some(805_306_368));
        assert_eq!(pages("reduction, 4 nodes, 12 TB", ""), None);
        assert_eq!(pages("nd_pmem, 750 ms", ""), None);
    }
}
