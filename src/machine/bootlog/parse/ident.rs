//! Which kernel: release, command line, architecture, page size, ticks.

use super::super::boot::Boot;
use super::number;
use crate::machine::Arch;

/// The longest command line that is kept; Linux's longest has 4096 bytes.
const MAX_CMDLINE: usize = 4096;

/// Reads a message about the kernel itself; `false` if it is about something else.
pub(super) fn read(boot: &mut Boot, text: &str, line: u64) -> bool {
    arch_words(boot, text, line);
    version(boot, text, line).is_some()
        || command_line(boot, text, line).is_some()
        || page_size(boot, text, line).is_some()
        || ticks(boot, text, line).is_some()
}

/// `Linux version 6.11.0-rc4 (user@host) (gcc …) #272 SMP …`.
fn version(boot: &mut Boot, text: &str, line: u64) -> Option<()> {
    let rest = text.strip_prefix("Linux version ")?;
    let release = rest.split_whitespace().next()?;
    Boot::set(&mut boot.release, release.chars().take(120).collect(), line);
    let compilers = [
        ("x86_64-", Arch::X86_64),
        ("aarch64-", Arch::Arm64),
        ("powerpc64", Arch::Ppc64),
        ("s390x-", Arch::S390x),
        ("riscv64-", Arch::Riscv64),
        ("sparc64-", Arch::Sparc64),
        ("-amd64", Arch::X86_64),
        (".x86_64", Arch::X86_64),
        ("-arm64", Arch::Arm64),
        (".aarch64", Arch::Arm64),
        ("ppc64le", Arch::Ppc64),
    ];
    if let Some(&(_, arch)) = compilers.iter().find(|(word, _)| rest.contains(word)) {
        Boot::set(&mut boot.arch, arch, line);
    }
    Some(())
}

fn command_line(boot: &mut Boot, text: &str, line: u64) -> Option<()> {
    let rest = text
        .strip_prefix("Kernel command line:")
        .or_else(|| text.strip_prefix("Command line:"))?
        .trim();
    if boot.cmdline.is_none() {
        let kept = rest.char_indices().map(|(at, _)| at).find(|&at| at >= MAX_CMDLINE);
        let kept = rest.get(..kept.unwrap_or(rest.len())).unwrap_or(rest);
        Boot::set(&mut boot.cmdline, kept.to_string(), line);
        super::signs::of_command_line(boot, kept, line);
        if let Some(release) = image_release(kept) {
            Boot::set(&mut boot.image_release, release, line);
        }
    }
    Some(())
}

/// `BOOT_IMAGE=/boot/vmlinuz-5.10.0-1-amd64` of boot loaders.
fn image_release(cmdline: &str) -> Option<String> {
    let image = cmdline.split_whitespace().find_map(|word| word.strip_prefix("BOOT_IMAGE="))?;
    let file = image.rsplit('/').next()?;
    let heads = ["vmlinuz-", "vmlinux-", "Image-", "bzImage-"];
    let release = heads.into_iter().find_map(|head| file.strip_prefix(head))?;
    let is_release = release.starts_with(|c: char| c.is_ascii_digit()) && release.contains('.');
    is_release.then(|| release.chars().take(120).collect())
}

/// Messages that only one architecture prints.
fn arch_words(boot: &mut Boot, text: &str, line: u64) {
    if boot.arch.is_some() || boot.foreign_arch.is_some() {
        return;
    }
    let words = [
        ("x86/", Arch::X86_64),
        ("smpboot:", Arch::X86_64),
        ("BIOS-provided physical RAM map", Arch::X86_64),
        ("x86: ", Arch::X86_64),
        ("tsc: ", Arch::X86_64),
        ("Booting Linux on physical CPU", Arch::Arm64),
        ("CPU: All CPU(s) started at EL", Arch::Arm64),
        ("radix-mmu:", Arch::Ppc64),
        ("hash-mmu:", Arch::Ppc64),
        ("phys_mem_size ", Arch::Ppc64),
        ("CPU maps initialized for", Arch::Ppc64),
        ("OPAL: ", Arch::Ppc64),
        ("setup: Linux is running", Arch::S390x),
        ("SBI specification", Arch::Riscv64),
        ("riscv: ", Arch::Riscv64),
        ("PROMLIB: ", Arch::Sparc64),
    ];
    if let Some(&(_, arch)) = words.iter().find(|(word, _)| text.starts_with(word)) {
        boot.arch = Some(super::super::boot::Fact::new(arch, line));
    } else if text.starts_with("CPU0 revision is: ") || text.starts_with("CPU-0 is: Loongson") {
        Boot::set(&mut boot.foreign_arch, "MIPS or LoongArch".into(), line);
    }
}

/// The page size from sizes that the kernel prints in pages and in bytes:
/// `Dentry cache hash table entries: 131072 (order: 4, 1048576 bytes` has
/// `PAGE_SIZE << order` bytes (`mm/mm_init.c: alloc_large_system_hash`), and
/// `percpu: Embedded 3 pages/cpu s122904 r0 d73704` has that many pages.
fn page_size(boot: &mut Boot, text: &str, line: u64) -> Option<()> {
    let bytes = if let Some((_, rest)) = text.split_once("hash table entries:") {
        let (order, rest) = number(rest.split_once("(order:")?.1)?;
        let (bytes, rest) = number(rest.strip_prefix(',')?)?;
        rest.trim_start().strip_prefix("bytes")?;
        let shift = u32::try_from(order).ok()?;
        bytes.checked_shr(shift).filter(|b| b.checked_shl(shift) == Some(bytes))?
    } else {
        let rest = text.strip_prefix("percpu: Embedded ").or_else(|| {
            let rest = text.strip_prefix("PERCPU: Embedded ")?;
            Some(rest)
        })?;
        let (pages, rest) = number(rest)?;
        let parts = rest.split_whitespace().filter_map(|word| {
            let digits = word.strip_prefix(['s', 'r', 'd'])?;
            digits.parse::<u64>().ok()
        });
        parts.take(3).fold(0u64, u64::saturating_add).checked_div(pages)?
    };
    if matches!(bytes, 4096 | 8192 | 16_384 | 65_536) {
        Boot::set(&mut boot.page_bytes, bytes, line);
    }
    Some(())
}

/// Ticks per second: RCU's delay is a tenth of a second in ticks
/// (`kernel/rcu/tree.c: jiffies_till_sched_qs`), and the jiffies clock source tells
/// how long it can idle, which is inversely proportional.
fn ticks(boot: &mut Boot, text: &str, line: u64) -> Option<()> {
    const IDLE_NS_OF_1_HZ: u64 = 1_911_260_446_275_000_000;
    let hz = if let Some((_, rest)) = text.split_once("scheduler-enlistment delay is ") {
        number(rest)?.0.checked_mul(10)?
    } else if text.starts_with("clocksource: ") && text.contains("jiffies:") {
        IDLE_NS_OF_1_HZ.checked_div(number(text.split_once("max_idle_ns:")?.1)?.0)?
    } else {
        return None;
    };
    let near = [100u32, 250, 300, 1000].into_iter().find(|&h| u64::from(h).abs_diff(hz) <= 2)?;
    Boot::set(&mut boot.hz, near, line);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::boot_of;
    use super::*;

    #[test]
    fn the_kernel_says_who_it_is() {
        let boot = boot_of(
            "Linux version 6.1.2-test (a@b) (aarch64-linux-gnu-gcc 12) #1 SMP\n\
             Kernel command line: root=/dev/x page_poison=1\n\
             Dentry cache hash table entries: 131072 (order: 4, 1048576 bytes, linear)\n\
             rcu: RCU calculated value of scheduler-enlistment delay is 25 jiffies.\n",
        );
        assert_eq!(boot.release.unwrap().value, "6.1.2-test");
        assert_eq!(boot.arch.unwrap().value, Arch::Arm64);
        assert_eq!(boot.cmdline.unwrap().value, "root=/dev/x page_poison=1");
        assert_eq!((boot.page_bytes.unwrap().value, boot.hz.unwrap().value), (65_536, 250));
        assert_eq!(boot.signs.len(), 1);
        let image = boot_of("Command line: BOOT_IMAGE=(hd0)/boot/vmlinuz-5.10.0-1-amd64 ro");
        assert_eq!(image.kernel().unwrap().value, "5.10.0-1-amd64");
    }

    #[test]
    fn page_size_and_ticks_have_two_sources() {
        let boot = boot_of(
            "percpu: Embedded 19 pages/cpu s38584 r0 d39240 u77824\n\
             clocksource: jiffies: mask: 0xff max_cycles: 0xff, max_idle_ns: 6370867519511994 ns\n",
        );
        assert_eq!((boot.page_bytes.unwrap().value, boot.hz.unwrap().value), (4096, 300));
        let nonsense = "Dentry cache hash table entries: 1 (order: 99, 5 bytes, linear)";
        assert!(boot_of(nonsense).page_bytes.is_none());
    }
}
