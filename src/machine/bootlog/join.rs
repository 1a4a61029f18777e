//! Wrapped lines put together again.
//!
//! [`Joiner`] takes physical lines and gives messages. Mail programs break lines
//! between words, terminals after 80 columns, quoted-printable with `=`. A line
//! without a prefix behind one with a prefix goes on with it if its first word did
//! not fit there, or if the message is plainly not at its end. Uses
//! [`super::clean`]; [`super::collect`] reads the messages.

use super::clean::{Cleaned, clean, without_escapes};

/// A message is never longer than this; what follows is dropped.
pub(super) const MAX_MESSAGE_BYTES: usize = 16 * 1024;

/// The width behind which mail programs and terminals break lines, at least.
const WRAP_COLUMNS: usize = 66;

/// A whole message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Message<'m> {
    /// The text, without blanks around.
    pub(super) text: &'m str,
    /// The physical line it begins on.
    pub(super) line: u64,
    /// Seconds since boot, where the stamp says so.
    pub(super) seconds: Option<f64>,
    /// Whether it has a stamp that is not zero.
    pub(super) has_stamp: bool,
}

/// The message that is being put together.
#[derive(Debug, Default)]
pub(super) struct Joiner {
    text: String,
    line: u64,
    seconds: Option<f64>,
    has_stamp: bool,
    is_marked: bool,
    /// Columns of the last piece without its quotes.
    columns: usize,
    /// Whether the last piece ended with the `=` of quoted-printable.
    is_soft: bool,
    /// Whether such a `=` was seen in this text at all.
    is_quoted_printable: bool,
}

impl Joiner {
    /// Takes a line; passes the message before it on when that is complete.
    pub(super) fn push(&mut self, line: &str, number: u64, sink: &mut impl FnMut(Message<'_>)) {
        let line = without_escapes(line);
        let cleaned = clean(&line);
        if self.is_soft && !cleaned.is_marked {
            return self.append(&line, line.chars().count(), true);
        }
        let goes_on = !cleaned.is_marked && self.continues(&cleaned);
        if goes_on {
            let is_direct = self.columns == 80 || self.text.ends_with(['-', ' ']);
            return self.append(cleaned.text, columns(cleaned.unquoted), is_direct);
        }
        self.flush(sink);
        if cleaned.is_foreign {
            return;
        }
        self.line = number;
        self.seconds = cleaned.seconds;
        self.has_stamp = cleaned.has_stamp;
        self.is_marked = cleaned.is_marked;
        self.append(cleaned.text, columns(cleaned.unquoted), true);
    }

    /// Passes on what is left.
    pub(super) fn flush(&mut self, sink: &mut impl FnMut(Message<'_>)) {
        let text = self.text.trim();
        if !text.is_empty() {
            let (line, seconds, has_stamp) = (self.line, self.seconds, self.has_stamp);
            sink(Message { text, line, seconds, has_stamp });
        }
        self.text.clear();
        self.is_soft = false;
        self.columns = 0;
    }

    fn append(&mut self, piece: &str, columns: usize, is_direct: bool) {
        let soft = piece.strip_suffix('=').filter(|_| (60..=76).contains(&columns));
        self.is_soft = soft.is_some();
        self.is_quoted_printable |= self.is_soft;
        let piece = soft.unwrap_or(piece);
        if self.text.len() + piece.len() < MAX_MESSAGE_BYTES {
            if !is_direct {
                self.text.push(' ');
            }
            match self.is_quoted_printable && piece.contains('=') {
                true => self.text.push_str(&piece.replace("=3D", "=").replace("=20", " ")),
                false => self.text.push_str(piece),
            }
        }
        self.columns = columns;
    }

    /// Whether an unmarked line belongs to the message before it.
    fn continues(&self, next: &Cleaned<'_>) -> bool {
        let Some(word) = next.text.split_whitespace().next() else { return false };
        if self.text.is_empty() {
            return false;
        }
        let did_not_fit = || self.columns + 1 + word.chars().count() >= WRAP_COLUMNS;
        let text = self.text.trim_start();
        let is_command_line =
            text.starts_with("Command line:") || text.starts_with("Kernel command line:");
        if is_command_line && (word.contains('=') || did_not_fit()) {
            // Without stamps the next message looks like a continuation.
            let is_message = next.text.contains(": ") || next.text.trim_end().ends_with(':');
            return self.is_marked || !is_message;
        }
        wants_more(text) || (self.is_marked && did_not_fit())
    }
}

fn columns(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}

/// Whether a message cannot be at its end.
fn wants_more(text: &str) -> bool {
    let end = text.trim_end();
    end.ends_with("[mem")
        || (end.ends_with('-') && end.contains("[mem 0x"))
        || (end.contains(" initialised") && (end.ends_with(" in") || end.ends_with("initialised,")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(text: &str) -> Vec<String> {
        let mut out = Vec::new();
        let mut joiner = Joiner::default();
        for (line, number) in text.split('\n').zip(1u64..) {
            joiner.push(line, number, &mut |m| out.push(format!("{}:{}", m.line, m.text)));
        }
        joiner.flush(&mut |m| out.push(format!("{}:{}", m.line, m.text)));
        out
    }

    #[test]
    fn mails_break_between_words() {
        let text = "[    0.1][    T0]   node   0: [mem\n0x0000000000000000-0x000000003fffffff]\n\
                    log_a:[    9.1] node 215 initialised, 1000 pages in \n7ms\nend\n";
        assert_eq!(
            messages(text),
            [
                "1:node   0: [mem 0x0000000000000000-0x000000003fffffff]",
                "3:node 215 initialised, 1000 pages in 7ms",
                "5:end",
            ]
        );
    }

    #[test]
    fn hyphens_and_eighty_columns_break_inside_words() {
        let text =
            "> > [    0.28] Initmem setup node 0 [mem 0x0000000000001000-\n> 0x0000001fff]\n";
        assert_eq!(
            messages(text),
            ["1:Initmem setup node 0 [mem 0x0000000000001000-0x0000001fff]"]
        );
        let first = format!("[    0.115979] Kernel command line: {}", "a".repeat(44));
        assert_eq!(first.len(), 80);
        let text = format!(">> {first}\n>> bb c=d\n>> [    0.2] x\n");
        let joined = format!("1:Kernel command line: {}bb c=d", "a".repeat(44));
        assert_eq!(messages(&text), [joined, "3:x".into()]);
    }

    #[test]
    fn quoted_printable_breaks_anywhere() {
        let head = "[    3.3] .... node  #1, CPUs:   #66 #67 #68 #69 #70 #71 #72 #73 #74 #=";
        let text = format!("{head}\n75 #76\n[    3.4] a=3Db\n");
        let joined = format!("1:{}75 #76", &head[10..head.len() - 1]);
        assert_eq!(messages(&text), [joined, "3:a=b".into()]);
    }

    #[test]
    fn prose_and_other_programs_are_not_joined() {
        let text = "[    0.1] Zone ranges:\nand so on\n\nnode 0 x\n\
                    Feb 03 00:24:02 h kernel: Zone ranges:\n\
                    Feb 03 00:24:02 h sshd[1]: node 1 initialised, 1 pages in 1ms\n";
        assert_eq!(
            messages(text),
            ["1:Zone ranges:", "2:and so on", "4:node 0 x", "5:Zone ranges:"]
        );
    }

    #[test]
    fn a_message_has_a_bound() {
        let mut joiner = Joiner::default();
        let mut longest = 0;
        joiner.push("[    0.1] Command line: a", 1, &mut |_| ());
        for number in 2..5000 {
            joiner.push("b=cccccccccccccccccccccccccccccccccccc", number, &mut |_| ());
            longest = longest.max(joiner.text.capacity());
        }
        assert!(longest <= 2 * MAX_MESSAGE_BYTES, "{longest}");
    }
}
