//! The kernel that an author's words name.
//!
//! [`kernel_in_words`] looks for the number that is a kernel's among those of
//! distributions, compilers and patch series; `linux-next` and `mmotm` are dated.

use crate::kernel::KernelVersion;

/// Names that are followed by a number of their own.
const OTHERS: [&str; 34] = [
    "rhel",
    "hat",
    "centos",
    "oracle",
    "ol",
    "oel",
    "ubuntu",
    "debian",
    "sles",
    "sled",
    "suse",
    "opensuse",
    "leap",
    "fedora",
    "rocky",
    "alma",
    "almalinux",
    "amazon",
    "anolis",
    "openeuler",
    "tencentos",
    "gcc",
    "clang",
    "llvm",
    "binutils",
    "glibc",
    "qemu",
    "python",
    "perl",
    "xen",
    "esxi",
    "series",
    "patchset",
    "rfc",
];

/// Words between such a name and its number.
const BETWEEN: [&str; 10] =
    ["enterprise", "linux", "server", "release", "version", "lts", "stream", "sp", "os", "v"];

/// The version that words name, also one without rules here.
pub(crate) fn kernel_in_words(words: &str) -> Option<KernelVersion> {
    let numbers = numbers(words);
    let whole = numbers.iter().find(|n| n.whole);
    whole.or(numbers.first()).map(|n| n.version).or_else(|| dated(words))
}

/// The version that a figure's words name beyond doubt: `v5.8-rc1`, `5.10.0-rc3`.
pub(crate) fn kernel_of_figure(what: &str) -> Option<KernelVersion> {
    numbers(what).iter().find(|n| n.whole || n.marked).map(|n| n.version)
}

/// A number that may be a kernel's.
struct Number {
    version: KernelVersion,
    /// Three parts and more behind them: what `uname -r` prints.
    whole: bool,
    /// `v` before it or `-rc` behind it.
    marked: bool,
}

fn numbers(words: &str) -> Vec<Number> {
    let text = words.to_ascii_lowercase();
    let mut before: Vec<&str> = Vec::new();
    let mut out = Vec::new();
    let part = |c: char| c.is_whitespace() || matches!(c, ',' | '(' | ')' | '/' | ';' | ':' | '=');
    for token in text.split(part).filter(|t| !t.is_empty()) {
        match number(token) {
            // Without a word between them, a second number is not the other name's.
            Some(number) if !is_anothers(&before) => {
                out.push(number);
                before.clear();
            }
            Some(_) => before.clear(),
            None => before.push(token),
        }
    }
    out
}

/// Whether the words before a number end with the name of something else.
fn is_anothers(before: &[&str]) -> bool {
    let fills = |word: &&&str| BETWEEN.contains(word) || word.chars().all(|c| c.is_ascii_digit());
    let name = before.iter().rev().find(|word| !fills(word));
    name.is_some_and(|name| {
        let plain = name.trim_end_matches(|c: char| !c.is_ascii_alphabetic());
        OTHERS.contains(&plain) || OTHERS.contains(&name.trim_end_matches("-linux"))
    })
}

/// `v5.7-rc7`, `linux-6.12.9-amd64`, `3.10.0-1160.el7`; nothing for `5.x` or `2.1ghz`.
fn number(token: &str) -> Option<Number> {
    let named = ["linux-", "kernel-", "linux", "kernel"];
    let rest = named.iter().find_map(|name| token.strip_prefix(name)).unwrap_or(token);
    let bare = rest.strip_prefix('v').unwrap_or(rest);
    let (major, behind) = bare.split_once('.')?;
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).count();
    let (minor, tail) = behind.split_at(digits(behind));
    let patch = tail.strip_prefix('.').map(|t| t.split_at(digits(t)));
    let has_patch = patch.is_some_and(|(digits, _)| !digits.is_empty());
    let end = patch.filter(|_| has_patch).map_or(tail, |(_, end)| end);
    if end.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '%') {
        return None;
    }
    let version = KernelVersion::new(major.parse().ok()?, minor.parse().ok()?);
    let marked = bare.len() < token.len() || end.starts_with("-rc");
    let is_kernels = (2..=9).contains(&version.major);
    let whole = has_patch && end.starts_with('-');
    is_kernels.then_some(Number { version, whole, marked })
}

/// Releases and their days; what a development tree holds comes with the next but one.
const RELEASED: [(u32, u32, u32); 56] = [
    (4, 0, 20150412),
    (4, 1, 20150621),
    (4, 2, 20150830),
    (4, 3, 20151101),
    (4, 4, 20160110),
    (4, 5, 20160313),
    (4, 6, 20160515),
    (4, 7, 20160724),
    (4, 8, 20161002),
    (4, 9, 20161211),
    (4, 10, 20170219),
    (4, 11, 20170430),
    (4, 12, 20170702),
    (4, 13, 20170903),
    (4, 14, 20171112),
    (4, 15, 20180128),
    (4, 16, 20180401),
    (4, 17, 20180603),
    (4, 18, 20180812),
    (4, 19, 20181022),
    (4, 20, 20181223),
    (5, 0, 20190303),
    (5, 1, 20190505),
    (5, 2, 20190707),
    (5, 3, 20190915),
    (5, 4, 20191124),
    (5, 5, 20200126),
    (5, 6, 20200329),
    (5, 7, 20200531),
    (5, 8, 20200802),
    (5, 9, 20201011),
    (5, 10, 20201213),
    (5, 11, 20210214),
    (5, 12, 20210425),
    (5, 13, 20210627),
    (5, 14, 20210829),
    (5, 15, 20211031),
    (5, 16, 20220109),
    (5, 17, 20220320),
    (5, 18, 20220522),
    (5, 19, 20220731),
    (6, 0, 20221002),
    (6, 1, 20221211),
    (6, 2, 20230219),
    (6, 3, 20230423),
    (6, 4, 20230625),
    (6, 5, 20230827),
    (6, 6, 20231029),
    (6, 7, 20240107),
    (6, 8, 20240310),
    (6, 9, 20240512),
    (6, 10, 20240714),
    (6, 11, 20240915),
    (6, 12, 20241117),
    (6, 13, 20250119),
    (6, 14, 20250324),
];

/// The version that a tree of a day became: `next-20201208` is 5.11, as 5.10 was then
/// being tested.
fn dated(words: &str) -> Option<KernelVersion> {
    let text = words.to_ascii_lowercase();
    let at = ["next", "mmotm", "mm-unstable"].iter().find_map(|tree| text.find(tree))?;
    let digits = text.get(at..)?.chars().filter(|c| *c != '-' && *c != ' ');
    let day: String =
        digits.skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    let day: u32 = day.parse().ok().filter(|day| (20150412..=20251231).contains(day))?;
    let mut later = RELEASED.iter().filter(|(_, _, released)| *released > day);
    let (tested, next) = (later.next()?, later.next()?);
    debug_assert!(tested.2 < next.2);
    Some(KernelVersion::new(next.0, next.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernels_number_is_told_from_a_distributions() {
        let expect = [
            ("RHEL 7.9, 3.10.0-1160", Some((3, 10))),
            ("RHEL 8.4 (4.18.0-305.el8)", Some((4, 18))),
            ("Oracle Linux 7.6, UEK5 4.14.35", Some((4, 14))),
            ("Red Hat Enterprise Linux 8.4, kernel 4.18", Some((4, 18))),
            ("CentOS Linux release 7.9.2009, 5.4.0-150", Some((5, 4))),
            ("Ubuntu 9.04 LTS, Linux 5.10", Some((5, 10))),
            ("SLES 15 SP2 5.3.18-22", Some((5, 3))),
            ("7.9 (3.10.0-1160.el7.x86_64)", Some((3, 10))),
            ("RHEL 8.4", None),
            ("gcc 4.8, Linux v5.10", Some((5, 10))),
            ("v5.8-rc1", Some((5, 8))),
            ("4.20-rc2 + patches", Some((4, 20))),
            ("4.0/4.1-rc + v4 series", Some((4, 0))),
            ("4.0.1 + v4 series (low section raised 2G->4G per node)", Some((4, 0))),
            ("v5.7-rc7 + 3 mmotm patches + series", Some((5, 7))),
            ("5.x, stated for two machines as 5.10.0-rc3", Some((5, 10))),
            ("6.12.9-amd64", Some((6, 12))),
            ("linux-6.1.y", Some((6, 1))),
            ("2.6.32", Some((2, 6))),
            ("9.9", Some((9, 9))),
            ("4.11 era", Some((4, 11))),
            ("next-20201208", Some((5, 11))),
            ("linux-next 20201208", Some((5, 11))),
            ("mmotm-2020-05-05", Some((5, 8))),
            ("not stated", None),
            ("5.x", None),
            (".", None),
            ("2.10GHz", None),
        ];
        for (words, version) in expect {
            let version = version.map(|(major, minor)| KernelVersion::new(major, minor));
            assert_eq!(kernel_in_words(words), version, "{words}");
        }
    }

    #[test]
    fn a_figures_number_counts_where_it_is_beyond_doubt() {
        assert_eq!(kernel_of_figure("devdax fio, 5.10.0-rc3"), Some(KernelVersion::new(5, 10)));
        assert_eq!(kernel_of_figure("v6.1, 16 threads"), Some(KernelVersion::new(6, 1)));
        for what in ["pmem 1.5 TB", "CPU at 2.3", "deferred init", "saves 7.6 s"] {
            assert_eq!(kernel_of_figure(what), None, "{what}");
        }
    }
}
