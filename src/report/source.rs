//! A record that was read back, with where it comes from.
//!
//! [`Source::read`] takes a text and the name of its file. Names in records come from
//! users: control characters, which terminals obey, are replaced on reading, so that no
//! view can show them. [`Source::facts`] is what every view says about a record.

use super::sheet::{Cell, Sheet};
use crate::record::HostFacts;
use crate::record::MachineFacts;
use crate::record::any::{AnyRecord, ReadError};
use serde_json::Value;

/// One record of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// The file's name, or what stands for it.
    pub name: String,
    /// What it holds.
    pub record: AnyRecord,
}

impl Source {
    /// Reads a record.
    ///
    /// # Errors
    /// What is wrong with the text; the caller adds the file's name.
    pub fn read(name: &str, text: &str) -> Result<Self, ReadError> {
        let mut record = AnyRecord::read(text)?;
        let mut value: Value =
            serde_json::from_str(text).map_err(|why| ReadError::Json(why.to_string()))?;
        if clean_value(&mut value) {
            record = AnyRecord::read(&value.to_string())?;
        }
        Ok(Self { name: clean(name), record })
    }

    /// What it is and where it comes from, as pairs of name and text.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let head = self.record.head();
        let made_by = format!("{} {}", head.tool.name, head.tool.version);
        let mut facts = vec![
            ("file", self.name.clone()),
            ("record", format!("{} by {made_by}", head.schema)),
            ("command", command(&head.argv)),
        ];
        facts.extend(self.host().map(|host| ("measured on", host_line(host))));
        facts.extend(self.machine().map(|machine| ("machine", machine)));
        facts.extend(self.rules().map(|rules| ("kernel rules", rules)));
        facts.push(("complete", complete(head.complete).into()));
        facts
    }

    /// The facts as a table.
    pub fn sheet(&self) -> Sheet {
        let mut sheet = Sheet::new("Record", &[("fact", "fact"), ("value", "value")], 2);
        let row = |(name, text): (&'static str, String)| vec![name.into(), Cell::Text(text)];
        sheet.rows = self.facts().into_iter().map(row).collect();
        sheet
    }

    /// The record's warnings as a table; without rows where there are none.
    pub fn warnings(&self) -> Sheet {
        let columns = [("warning", "message"), ("code", "code"), ("remedy", "remedy")];
        let mut sheet = Sheet::new("Warnings", &columns, 3);
        let text = |text: &String| Cell::Text(text.clone());
        let row = |w: &crate::warning::Warning| [&w.message, &w.code, &w.remedy].map(text).to_vec();
        sheet.rows = self.record.head().warnings.iter().map(row).collect();
        sheet
    }

    /// The computer that measured; `None` for predictions.
    pub fn host(&self) -> Option<&HostFacts> {
        match &self.record {
            AnyRecord::Compare(r) => Some(&r.host),
            AnyRecord::Calibration(r) => Some(&r.host),
            AnyRecord::Lab(r) => Some(&r.host),
            AnyRecord::Sweep(r) => r.host.as_ref(),
            AnyRecord::Estimate(_) | AnyRecord::Validate(_) => None,
        }
    }

    fn machine(&self) -> Option<String> {
        let of = |m: &MachineFacts| format!("{}: {}", m.name, m.title);
        match &self.record {
            AnyRecord::Compare(r) => Some(of(&r.machine)),
            AnyRecord::Estimate(r) => Some(of(&r.machine)),
            AnyRecord::Sweep(r) => Some(format!("{}: {}", r.machine, r.title)),
            AnyRecord::Validate(_) | AnyRecord::Calibration(_) | AnyRecord::Lab(_) => None,
        }
    }

    fn rules(&self) -> Option<String> {
        match &self.record {
            AnyRecord::Compare(r) => version(&r.kernel),
            AnyRecord::Estimate(r) => version(&r.kernel),
            AnyRecord::Calibration(r) => Some(r.kernel.clone()),
            AnyRecord::Sweep(_) | AnyRecord::Validate(_) | AnyRecord::Lab(_) => None,
        }
        .map(|version| format!("Linux {version}"))
    }
}

/// What views say of `complete`; the text of an incomplete record must be seen.
pub(super) const fn complete(complete: bool) -> &'static str {
    if complete { "yes" } else { "NO: it was interrupted; less was done than asked for" }
}

/// The processor, or words that say that it is not known.
pub(super) fn cpu_model(host: &HostFacts) -> &str {
    host.cpu_model.as_deref().unwrap_or("unknown processor")
}

fn host_line(host: &HostFacts) -> String {
    let kernel = host.kernel_release.as_deref().unwrap_or("of unknown version");
    let cpus = host.allowed_cpus.len();
    let plural = if cpus == 1 { "" } else { "s" };
    format!("{}, {cpus} CPU{plural}, {}, Linux {kernel}", cpu_model(host), host.arch)
}

/// The version in kernel rules as records hold them, such as `6.12`.
pub(super) fn version(rules: &Value) -> Option<String> {
    let part = |name: &str| rules.get("version")?.get(name)?.as_u64();
    Some(format!("{}.{}", part("major")?, part("minor")?))
}

/// A command line as a shell reads it.
fn command(argv: &[String]) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./@=,:+%".contains(c);
    let word = |arg: &String| match !arg.is_empty() && arg.chars().all(plain) {
        true => arg.clone(),
        false => format!("'{}'", arg.replace('\'', "'\\''")),
    };
    argv.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// The text with every character that a terminal or a reader's eye could be misled by
/// replaced: controls, and marks that turn the direction of writing.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if misleads(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

fn misleads(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Cleans all texts and names below; says whether any was changed.
fn clean_value(value: &mut Value) -> bool {
    match value {
        Value::String(text) if text.chars().any(misleads) => {
            *text = clean(text);
            true
        }
        Value::Array(items) => items.iter_mut().fold(false, |any, item| clean_value(item) | any),
        Value::Object(fields) => {
            let names: Vec<String> =
                fields.keys().filter(|name| name.chars().any(misleads)).cloned().collect();
            for name in &names {
                if let Some(value) = fields.remove(name) {
                    fields.insert(clean(name), value);
                }
            }
            fields.values_mut().fold(!names.is_empty(), |any, item| clean_value(item) | any)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = include_str!("../../fixtures/records/compare-v1.json");

    #[test]
    fn a_terminal_sees_no_control_character() {
        let evil = V1.replace("Example CPU", "Ex\\u001b[31m\\u009bample\\nCPU\\u202e");
        let source = Source::read("a\u{7}.json", &evil).unwrap();
        assert_eq!(source.name, "a\u{fffd}.json");
        let host = source.facts().into_iter().find(|f| f.0 == "measured on").unwrap().1;
        assert!(
            host.starts_with("Ex\u{fffd}[31m\u{fffd}ample\u{fffd}CPU\u{fffd}, 2 CPUs"),
            "{host}"
        );
        let plain = Source::read("a", V1).unwrap();
        assert_eq!(plain.record, AnyRecord::read(V1).unwrap(), "nothing else is touched");
    }

    #[test]
    fn names_of_fields_are_cleaned_too() {
        let mut value: Value =
            serde_json::from_str(r#"{"a\u001b": {"b\u0000": 1}, "c": 2}"#).unwrap();
        assert!(clean_value(&mut value));
        assert_eq!(value.to_string(), "{\"a\u{fffd}\":{\"b\u{fffd}\":1},\"c\":2}");
        assert!(!clean_value(&mut value));
    }

    #[test]
    fn a_command_line_can_be_used_again() {
        let argv = ["pageinit", "compare", "-m", "pack:2 core:8", "it's", ""].map(String::from);
        assert_eq!(command(&argv), r"pageinit compare -m 'pack:2 core:8' 'it'\''s' ''");
    }
}
