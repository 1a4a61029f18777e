//! The kernel command line, as far as it changes the memory layout.
//!
//! [`CommandLine`] parses the text of `/proc/cmdline`. Options that are not known
//! here are ignored, as Linux ignores them; a known one with a bad value is an
//! error, because Linux would boot with another layout than was asked for.
//! Sizes have the kernel's own syntax ([`memparse`]), not the one of `units`.

use std::str::FromStr;

/// What the options ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// `numa=fake=`.
    pub numa_fake: Option<NumaFake>,
    /// `numa=off`.
    pub numa_off: bool,
    /// `kernelcore=`.
    pub kernelcore: Option<Core>,
    /// `movablecore=`.
    pub movablecore: Option<Core>,
    /// `movable_node`.
    pub movable_node: bool,
    /// `memmap=`, one entry per range in the order given.
    pub memmap: Vec<Memmap>,
    /// `mem=`: bytes from address 0 on that are used.
    pub mem_bytes: Option<u64>,
    /// `early_page_ext`.
    pub early_page_ext: bool,
    /// `hugepagesz=` and `hugepages=`, in order.
    pub hugepages: Vec<HugePages>,
    /// `hugetlb_free_vmemmap=`.
    pub hugetlb_free_vmemmap: Option<bool>,
    /// `maxcpus=`: CPUs brought online at boot; 0 is the boot CPU alone, as `nosmp`.
    pub maxcpus: Option<u32>,
    /// `nr_cpus=`: CPUs that there can be; 0 is ignored.
    pub nr_cpus: Option<u32>,
    /// `possible_cpus=`: the same, on x86_64 alone.
    pub possible_cpus: Option<u32>,
    /// `nosmp`.
    pub nosmp: bool,
    /// `nosmt` or `nosmt=force`: one thread per core.
    pub nosmt: bool,
    /// `no5lvl`.
    pub no5lvl: bool,
    /// `page_poison=`.
    pub page_poison: Option<bool>,
    /// `init_on_alloc=`.
    pub init_on_alloc: Option<bool>,
    /// `init_on_free=`.
    pub init_on_free: Option<bool>,
}

/// How `numa=fake=` cuts nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumaFake {
    /// `4`: so many nodes in all.
    Nodes(u32),
    /// `4U`: so many out of every real node.
    PerNode(u32),
    /// `2G`: nodes of that many bytes.
    Bytes(u64),
}

/// How much memory is for the kernel, or movable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Core {
    /// So many bytes.
    Bytes(u64),
    /// So many hundredths of all memory.
    Percent(u32),
    /// The mirrored memory (`kernelcore` only).
    Mirror,
}

/// One range of `memmap=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memmap {
    /// What the range is to be.
    pub kind: MemmapKind,
    /// Its first byte; 0 for [`MemmapKind::Limit`].
    pub start: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// The sign between size and address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemmapKind {
    /// `@`: usable memory.
    Usable,
    /// `$`: reserved.
    Reserved,
    /// `!`: protected (persistent) memory.
    Protected,
    /// `#`: ACPI data.
    Acpi,
    /// No sign: like `mem=`.
    Limit,
}

/// Huge pages to allocate at boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HugePages {
    /// Their size; `None` before any `hugepagesz=`: the default size.
    pub page_bytes: Option<u64>,
    /// How many in all, or `(node, how many)` in the form `0:2,1:3`.
    pub count: HugeCount,
}

/// How many huge pages are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HugeCount {
    /// Anywhere, spread over the nodes.
    Total(u64),
    /// By node.
    PerNode(Vec<(u32, u64)>),
}

/// An option whose value Linux would not take as meant.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("kernel option {option}: expected {expected}")]
pub struct CmdlineError {
    /// The option as it stands on the line.
    pub option: String,
    /// What would do.
    pub expected: &'static str,
}

/// A number of bytes as `lib/cmdline.c: memparse` reads it: decimal, `0x` hex or `0`
/// octal, then K, M, G, T, P or E in either case. Gives the rest of the text too;
/// `None` without digits or above 64 bits.
pub fn memparse(text: &str) -> Option<(u64, &str)> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None if text.len() > 1 && text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    let length = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let number = u64::from_str_radix(digits.get(..length)?, radix).ok()?;
    let rest = digits.get(length..)?;
    let shift = match rest.bytes().next().map(|b| b.to_ascii_uppercase()) {
        Some(unit @ (b'K' | b'M' | b'G' | b'T' | b'P' | b'E')) => {
            10 * (1 + b"KMGTPE".iter().position(|&u| u == unit)? as u32)
        }
        _ => return Some((number, rest)),
    };
    Some((number.checked_mul(1 << shift)?, rest.get(1..)?))
}

/// A number of bytes with nothing behind it.
fn whole_size(text: &str) -> Option<u64> {
    memparse(text).filter(|(_, rest)| rest.is_empty()).map(|(bytes, _)| bytes)
}

impl FromStr for CommandLine {
    type Err = CmdlineError;

    fn from_str(text: &str) -> Result<Self, CmdlineError> {
        let mut line = Self::default();
        let mut huge_bytes = None;
        for word in words(text).into_iter().take_while(|w| w != "--") {
            let (key, value) = match word.split_once('=') {
                Some((key, value)) => (key, Some(value)),
                None => (word.as_str(), None),
            };
            // Linux takes `-` and `_` for the same in names.
            let key = key.replace('-', "_");
            let known = line.take_switch(&key, value);
            let taken = match (known, value) {
                (Some(taken), _) => taken,
                (None, Some(value)) => line.take(&key, value, &mut huge_bytes),
                (None, None) => Ok(()),
            };
            taken.map_err(|expected| CmdlineError { option: word.clone(), expected })?;
        }
        Ok(line)
    }
}

type Taken = Result<(), &'static str>;

impl CommandLine {
    /// Options without a value, and those with on or off.
    fn take_switch(&mut self, key: &str, value: Option<&str>) -> Option<Taken> {
        let switch = match key {
            "early_page_ext" => &mut self.early_page_ext,
            "movable_node" => &mut self.movable_node,
            "nosmp" => &mut self.nosmp,
            "no5lvl" => &mut self.no5lvl,
            "nosmt" if value.is_some_and(|v| v != "force") => {
                return Some(Err("nosmt or nosmt=force"));
            }
            "nosmt" => &mut self.nosmt,
            _ => return self.take_choice(key, value?),
        };
        *switch = true;
        Some(Ok(()))
    }

    fn take_choice(&mut self, key: &str, value: &str) -> Option<Taken> {
        let choice = match key {
            "hugetlb_free_vmemmap" => &mut self.hugetlb_free_vmemmap,
            "page_poison" => &mut self.page_poison,
            "init_on_alloc" => &mut self.init_on_alloc,
            "init_on_free" => &mut self.init_on_free,
            _ => return None,
        };
        *choice = match value.to_ascii_lowercase().as_str() {
            "on" | "1" | "y" | "yes" | "true" => Some(true),
            "off" | "0" | "n" | "no" | "false" => Some(false),
            _ => return Some(Err("on or off")),
        };
        Some(Ok(()))
    }

    fn take(&mut self, key: &str, value: &str, huge_bytes: &mut Option<u64>) -> Taken {
        match key {
            "numa" => self.take_numa(value)?,
            "kernelcore" if value == "mirror" => self.kernelcore = Some(Core::Mirror),
            "kernelcore" => self.kernelcore = Some(core(value)?),
            "movablecore" => self.movablecore = Some(core(value)?),
            "memmap" => {
                for part in value.split(',').filter(|p| *p != "exactmap") {
                    self.memmap.push(memmap(part)?);
                }
            }
            "mem" if value == "nopentium" => {}
            "mem" => {
                let bytes = whole_size(value).filter(|b| *b > 0);
                self.mem_bytes = Some(bytes.ok_or("a size such as 4G")?);
            }
            "maxcpus" => {
                self.maxcpus = Some(value.parse().map_err(|_| "a number of CPUs")?);
            }
            "nr_cpus" | "possible_cpus" => {
                let count = value.parse().map_err(|_| "a number of CPUs")?;
                let own =
                    if key == "nr_cpus" { &mut self.nr_cpus } else { &mut self.possible_cpus };
                *own = Some(count).filter(|n| *n > 0);
            }
            "hugepagesz" => {
                let bytes = whole_size(value).filter(|b| b.is_power_of_two());
                *huge_bytes = Some(bytes.ok_or("a page size such as 2M or 1G")?);
            }
            "hugepages" => {
                let page_bytes = *huge_bytes;
                self.hugepages.push(HugePages { page_bytes, count: huge_count(value)? });
            }
            _ => {}
        }
        Ok(())
    }

    fn take_numa(&mut self, value: &str) -> Taken {
        if value == "off" {
            self.numa_off = true;
        }
        let Some(fake) = value.strip_prefix("fake=") else { return Ok(()) };
        let expected = "a number of nodes such as 4 or 2U, or a size such as 2G";
        let (number, rest) = memparse(fake).ok_or(expected)?;
        let digits = fake.len() - rest.len();
        let bare = fake[..digits].bytes().all(|b| b.is_ascii_digit());
        let count = u32::try_from(number).ok().filter(|n| *n > 0);
        self.numa_fake = Some(match rest {
            "" if bare => NumaFake::Nodes(count.ok_or(expected)?),
            "U" | "u" => NumaFake::PerNode(count.ok_or(expected)?),
            "" if number > 0 => NumaFake::Bytes(number),
            _ => return Err(expected),
        });
        Ok(())
    }

    /// The line of a boot log whose machine is read from the same log: that machine is as
    /// the line made it, so that options which change memory, nodes or CPUs are done.
    ///
    /// # Errors
    /// As [`str::parse`].
    pub fn of_log(text: &str) -> Result<Self, CmdlineError> {
        let line: Self = text.parse()?;
        Ok(Self {
            numa_fake: None,
            numa_off: false,
            memmap: Vec::new(),
            mem_bytes: None,
            maxcpus: None,
            nr_cpus: None,
            possible_cpus: None,
            nosmp: false,
            nosmt: false,
            ..line
        })
    }

    /// CPUs online when the deferred phase starts, of `present` with `per_core` threads
    /// each. Linux brings CPUs up by number, which is not modelled: only the count is.
    pub fn online_cpus(&self, present: u32, per_core: u32) -> u32 {
        let limits = [self.nr_cpus, self.possible_cpus];
        let present = limits.into_iter().flatten().fold(present, u32::min);
        let threads = if self.nosmt { present.div_ceil(per_core.max(1)) } else { present };
        match self.maxcpus {
            _ if self.nosmp => threads.min(1),
            Some(most) => threads.min(most.max(1)),
            None => threads,
        }
    }
}

fn core(value: &str) -> Result<Core, &'static str> {
    let expected = "a size such as 4G, or a percentage such as 25%";
    if let Some(percent) = value.strip_suffix('%') {
        let percent = percent.parse().ok().filter(|p| *p <= 100);
        return percent.map(Core::Percent).ok_or(expected);
    }
    whole_size(value).map(Core::Bytes).ok_or(expected)
}

fn memmap(part: &str) -> Result<Memmap, &'static str> {
    let expected = "SIZE@START, SIZE$START, SIZE!START or SIZE#START";
    let (bytes, rest) = memparse(part).filter(|(b, _)| *b > 0).ok_or(expected)?;
    let kind = match rest.chars().next() {
        None => return Ok(Memmap { kind: MemmapKind::Limit, start: 0, bytes }),
        Some('@') => MemmapKind::Usable,
        Some('$') => MemmapKind::Reserved,
        Some('!') => MemmapKind::Protected,
        Some('#') => MemmapKind::Acpi,
        Some(_) => return Err(expected),
    };
    let start = whole_size(&rest[1..]).ok_or(expected)?;
    start.checked_add(bytes).ok_or("a range below 2^64")?;
    Ok(Memmap { kind, start, bytes })
}

fn huge_count(value: &str) -> Result<HugeCount, &'static str> {
    let expected = "a number, or NODE:NUMBER,…";
    if !value.contains(':') {
        return value.parse().map(HugeCount::Total).map_err(|_| expected);
    }
    let pair = |part: &str| {
        let (node, count) = part.split_once(':')?;
        Some((node.parse().ok()?, count.parse().ok()?))
    };
    let pairs: Option<Vec<(u32, u64)>> = value.split(',').map(pair).collect();
    pairs.map(HugeCount::PerNode).ok_or(expected)
}

/// The words of a line; double quotes keep spaces together and are dropped.
fn words(text: &str) -> Vec<String> {
    let (mut out, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => out.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    out.push(word);
    out.retain(|w| !w.is_empty());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(text: &str) -> CommandLine {
        text.parse().unwrap()
    }

    #[test]
    fn sizes_have_the_kernels_syntax() {
        assert_eq!(memparse("4G@16M"), Some((4 << 30, "@16M")));
        assert_eq!(memparse("0x10k"), Some((16 << 10, "")));
        assert_eq!(memparse("010"), Some((8, "")));
        assert_eq!(memparse("1e"), Some((1 << 60, "")));
        assert_eq!(memparse("0"), Some((0, "")));
        assert_eq!(memparse("16E"), None);
        assert_eq!(memparse("G"), None);
    }

    #[test]
    fn layout_options_are_understood_and_others_ignored() {
        let l = line(
            "root=/dev/sda quiet numa=fake=4 memmap=1G$4G,0x100@64K movablecore=25% \
             kernelcore=mirror hugepages=7 hugepagesz=1G hugepages=0:2,1:3 nosmt \
             early-page-ext init_on_free=1 dyndbg=\"a b\" -- mem=1G",
        );
        assert_eq!(l.numa_fake, Some(NumaFake::Nodes(4)));
        let range = |kind, start, bytes| Memmap { kind, start, bytes };
        let expect = [
            range(MemmapKind::Reserved, 4 << 30, 1 << 30),
            range(MemmapKind::Usable, 64 << 10, 256),
        ];
        assert_eq!(l.memmap, expect);
        assert_eq!((l.movablecore, l.kernelcore), (Some(Core::Percent(25)), Some(Core::Mirror)));
        assert_eq!(l.hugepages[0], HugePages { page_bytes: None, count: HugeCount::Total(7) });
        let by_node = HugeCount::PerNode(vec![(0, 2), (1, 3)]);
        assert_eq!(l.hugepages[1], HugePages { page_bytes: Some(1 << 30), count: by_node });
        assert!(l.nosmt && l.early_page_ext && l.init_on_free == Some(true));
        assert_eq!(l.mem_bytes, None, "options behind -- are for init");
    }

    #[test]
    fn fake_nodes_come_by_count_by_node_or_by_size() {
        assert_eq!(line("numa=fake=2U").numa_fake, Some(NumaFake::PerNode(2)));
        assert_eq!(line("numa=fake=2G").numa_fake, Some(NumaFake::Bytes(2 << 30)));
        assert!(line("numa=off").numa_off);
        assert_eq!(line("numa=noacpi").numa_fake, None);
    }

    #[test]
    fn bad_values_say_what_was_expected() {
        let bad = [
            "mem=4X",
            "memmap=1G%4G",
            "memmap=$1G",
            "kernelcore=101%",
            "numa=fake=0",
            "maxcpus=all",
            "nr_cpus=all",
            "hugepagesz=3M",
            "hugepages=1:x",
            "nosmt=1",
            "page_poison=maybe",
            "memmap=15E@15E",
        ];
        for text in bad {
            let error = text.parse::<CommandLine>().unwrap_err();
            assert_eq!(error.option, text);
            assert!(error.to_string().contains("expected"), "{error}");
        }
    }

    #[test]
    fn fewer_cpus_come_online_when_told() {
        assert_eq!(line("").online_cpus(64, 2), 64);
        assert_eq!(line("nosmt").online_cpus(64, 2), 32);
        assert_eq!(line("maxcpus=8 nosmt").online_cpus(64, 2), 8);
        assert_eq!(line("maxcpus=0").online_cpus(64, 2), 1);
        assert_eq!(line("nosmp").online_cpus(0, 2), 0);
        assert_eq!(line("nr_cpus=8 nosmt").online_cpus(64, 2), 4);
        assert_eq!(line("nr_cpus=8 possible_cpus=6 maxcpus=7").online_cpus(64, 2), 6);
        assert_eq!(line("nr_cpus=0").online_cpus(64, 2), 64);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(
            text in "(mem|memmap|numa|hugepages|nosmt)?=?[0-9a-zA-Z:,$@=%é\" ]{0,24}",
        ) {
            let _ = text.parse::<CommandLine>();
        }
    }
}
