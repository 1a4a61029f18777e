//! Signs of a kernel that does more per page than others.

use super::super::boot::{Boot, Sign};

/// Reads a message that betrays debugging; `false` if it does not.
pub(super) fn read(boot: &mut Boot, text: &str, line: u64) -> bool {
    let sign = if text.starts_with("KernelAddressSanitizer initialized")
        || text.starts_with("kasan: KernelAddressSanitizer initialized")
    {
        Sign::Kasan
    } else if text.starts_with("mem auto-init:") {
        // `mm/mm_init.c: report_meminit`, v6.12.
        if !text.contains("heap free:on") {
            return true;
        }
        Sign::InitOnFree
    } else if text.starts_with("Lock dependency validator") {
        Sign::Lockdep
    } else if text.starts_with("Starting KernelMemorySanitizer") {
        Sign::Kmsan
    } else {
        return false;
    };
    boot.sign(sign, line);
    true
}

/// Signs of the command line. Linux reads these with `kstrtobool`.
pub(super) fn of_command_line(boot: &mut Boot, cmdline: &str, line: u64) {
    for word in cmdline.split_whitespace() {
        let Some((key, value)) = word.split_once('=') else { continue };
        let is_on = matches!(value, "1" | "y" | "Y" | "on" | "t" | "T");
        let sign = match key {
            "page_poison" => Sign::PagePoison,
            "init_on_free" => Sign::InitOnFree,
            "debug_pagealloc" => Sign::DebugPagealloc,
            _ => continue,
        };
        if is_on {
            boot.sign(sign, line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::boot_of;
    use super::*;

    #[test]
    fn signs_are_seen_once() {
        let boot = boot_of(
            "Command line: page_poison=on init_on_free=0 debug_pagealloc=1 quiet\n\
             KernelAddressSanitizer initialized (generic)\n\
             kasan: KernelAddressSanitizer initialized (sw-tags)\n\
             mem auto-init: stack:off, heap alloc:on, heap free:on\n",
        );
        let signs: Vec<_> = boot.signs.iter().map(|s| (s.value, s.line)).collect();
        let expected = [
            (Sign::PagePoison, 1),
            (Sign::DebugPagealloc, 1),
            (Sign::Kasan, 2),
            (Sign::InitOnFree, 4),
        ];
        assert_eq!(signs, expected);
        assert!(boot_of("mem auto-init: stack:off, heap free:off").signs.is_empty());
    }
}
