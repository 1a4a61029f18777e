//! From messages to boots: where one ends and the next begins.
//!
//! [`Collector`] gives each message to the current [`Boot`] and begins a new one
//! where a message cannot belong to it: a second `Linux version`, a second memory
//! map, a node that is initialised again. Boots are never merged.

use super::boot::Boot;
use super::join::Message;
use super::parse;
use super::parse::init_line;

/// Boots that are kept of one file; further ones are counted only.
pub(super) const MAX_BOOTS: usize = 256;

/// Collects boots.
#[derive(Debug, Default)]
pub(super) struct Collector {
    boots: Vec<Boot>,
    current: Boot,
    dropped: u64,
}

impl Collector {
    /// Takes the next message.
    pub(super) fn take(&mut self, message: &Message<'_>) {
        if is_beginning(&self.current, message) {
            self.close();
        }
        if self.current.first_line == 0 {
            self.current.first_line = message.line;
        }
        parse::message(&mut self.current, message);
        self.current.last_line = message.line;
    }

    /// All boots that hold anything, and how many did not fit.
    pub(super) fn finish(mut self) -> (Vec<Boot>, u64) {
        self.close();
        (self.boots, self.dropped)
    }

    fn close(&mut self) {
        let mut boot = std::mem::take(&mut self.current);
        boot.memblock.finish();
        if boot.is_empty() {
            return;
        }
        if self.boots.len() < MAX_BOOTS {
            self.boots.push(boot);
        } else {
            self.dropped += 1;
        }
    }
}

/// Whether `message` is of another boot than `boot`.
fn is_beginning(boot: &Boot, message: &Message<'_>) -> bool {
    let text = message.text;
    let is_late = || {
        boot.has_layout()
            || boot.memory_line.is_some()
            || boot.cpu_count.is_some()
            || !boot.init.is_empty()
    };
    match text.as_bytes().first() {
        Some(b'L') => text.starts_with("Linux version ") && (boot.release.is_some() || is_late()),
        Some(b'C') => text.starts_with("Command line: ") && (boot.cmdline.is_some() || is_late()),
        Some(b'B') => {
            let is_head = text.starts_with("Booting Linux on physical CPU")
                || text.starts_with("BIOS-provided physical RAM map");
            is_head && (is_late() || !boot.e820.is_empty())
        }
        Some(b'E') => text.starts_with("Early memory node ranges") && !boot.early.is_empty(),
        Some(b'-') => text.starts_with("-- Boot ") || text.starts_with("-- Reboot --"),
        Some(b'n' | b'k') => {
            let same = |line: super::boot::InitLine| boot.init.iter().any(|i| i.nid == line.nid);
            // Looking at the head first spares the search in ordinary messages.
            let is_like = text.starts_with("node ") || text.starts_with("kswapd ");
            is_like && init_line(text, 0).is_some_and(same)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boots(text: &str) -> Vec<Boot> {
        let mut collector = Collector::default();
        for (line, number) in text.lines().zip(1u64..) {
            collector.take(&Message {
                text: line.trim(),
                line: number,
                seconds: None,
                has_stamp: false,
            });
        }
        collector.finish().0
    }

    #[test]
    fn a_second_beginning_is_a_second_boot() {
        let text = "radix-mmu: early\nLinux version 6.1.0 (a)\nCommand line: a\n\
                    Early memory node ranges\nnode   0: [mem 0x0-0xfffff]\n\
                    Kernel command line: a\nnode 0 deferred pages initialised in 4ms\n\
                    Linux version 6.2.0 (a)\nCommand line: b\nEarly memory node ranges\n\
                    node   0: [mem 0x0-0x1fffff]\n";
        let boots = boots(text);
        let releases: Vec<_> =
            boots.iter().filter_map(|b| b.release.as_ref()).map(|r| r.value.as_str()).collect();
        assert_eq!(releases, ["6.1.0", "6.2.0"]);
        assert_eq!((boots[0].first_line, boots[1].first_line), (1, 8));
        assert_eq!((boots[0].init.len(), boots[1].early.len()), (1, 1));
    }

    #[test]
    fn fragments_are_told_apart() {
        let text = "kswapd 0 initialised deferred memory in 188ms\n\
                    kswapd 1 initialised deferred memory in 208ms\nprose\n\
                    kswapd 0 initialised deferred memory in 1168ms\n";
        assert_eq!(boots(text).iter().map(|b| b.init.len()).collect::<Vec<_>>(), [2, 1]);
        let text = "Initmem setup node 1 [mem 0x0-0xfff]\nCommand line: x=1\n\
                    Initmem setup node 0 [mem 0x0-0xfff]\n";
        assert_eq!(boots(text).len(), 2);
        assert!(boots("nothing\nat all\n").is_empty());
    }

    #[test]
    fn boots_have_a_bound() {
        let text = "Linux version 1\n".repeat(MAX_BOOTS + 10);
        let mut collector = Collector::default();
        for (line, number) in text.lines().zip(1u64..) {
            collector.take(&Message { text: line, line: number, seconds: None, has_stamp: false });
        }
        let (boots, dropped) = collector.finish();
        assert_eq!((boots.len(), dropped), (MAX_BOOTS, 10));
    }
}
