//! A first look at XML, before hwloc gets it.
//!
//! hwloc says only "invalid argument" about XML it cannot read, and its C code is
//! not to be tried with broken input. [`scan`] checks that tags nest, that the root is
//! hwloc's and, with `xml_objects`, the objects; it names the line of the
//! first fault. [`Topology::for_hwloc`] is the text that [`super::hwloc`] hands on: not the
//! input, but what `xml_write` wrote of it.

use super::xml_objects::Objects;
use super::xml_write::Writer;
use std::ops::Range;

/// hwloc recurses once per level; no real topology has more than some twenty.
const MAX_DEPTH: usize = 200;

/// hwloc writes some twenty into a tag at most.
const MAX_ATTRIBUTES: usize = 100;

/// What is known of an hwloc XML text without hwloc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology<'t> {
    text: &'t str,
    /// Where the value of the root's `version` stands; `None` in hwloc 1's format.
    version: Option<Range<usize>>,
    /// `info` pairs of the root element (format 3) and of the machine object (2).
    infos: Vec<(&'t str, &'t str)>,
    /// How many PU and NUMANode objects the text has.
    counts: (usize, usize),
    /// What hwloc gets.
    written: String,
}

/// Why a text is not hwloc XML.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{problem}")]
pub struct XmlError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong.
    pub problem: String,
}

impl<'t> Topology<'t> {
    /// How many PU and NUMANode objects the text has.
    pub fn counts(&self) -> (usize, usize) {
        self.counts
    }

    /// The format's version as written, for example `2.0`.
    pub fn version(&self) -> Option<&'t str> {
        self.text.get(self.version.clone()?)
    }

    /// The value of an `info` about the whole machine, for example `Architecture`.
    pub fn info(&self, name: &str) -> Option<&'t str> {
        self.infos.iter().find(|(n, _)| *n == name).map(|(_, value)| *value)
    }

    /// What matters for a machine, as hwloc writes it in format 2.0.
    ///
    /// hwloc 2 refuses any other major version than its own, although format 3
    /// differs only in elements behind the objects.
    pub fn for_hwloc(&self) -> &str {
        &self.written
    }
}

/// Checks that `text` is well-formed and has hwloc's root element.
pub fn scan(text: &str) -> Result<Topology<'_>, XmlError> {
    let mut scanner = Scanner {
        text,
        at: 0,
        open: Vec::new(),
        found: Topology {
            text,
            version: None,
            infos: Vec::new(),
            counts: (0, 0),
            written: String::new(),
        },
        seen_root: false,
        objects: Objects::default(),
        writer: Writer::default(),
    };
    let outcome = scanner.run().and_then(|()| scanner.check_whole());
    let line = 1 + text.get(..scanner.at).unwrap_or(text).matches('\n').count();
    outcome.map_err(|problem| XmlError { line, problem })?;
    Ok(Topology { written: scanner.writer.finish(), ..scanner.found })
}

struct Scanner<'t> {
    text: &'t str,
    at: usize,
    open: Vec<&'t str>,
    found: Topology<'t>,
    seen_root: bool,
    objects: Objects,
    writer: Writer,
}

type Step = Result<(), String>;

impl<'t> Scanner<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn run(&mut self) -> Step {
        while let Some(skip) = self.rest().find('<') {
            let between = self.rest().get(..skip).unwrap_or("");
            if self.open.is_empty() && !between.trim().is_empty() {
                return Err("there is text outside the root element".into());
            }
            self.writer.text(between)?;
            self.at += skip;
            self.markup()?;
        }
        match self.open.last() {
            Some(tag) => {
                self.at = self.text.len();
                Err(format!("the file ends inside <{tag}>; it is not complete"))
            }
            None if !self.seen_root => Err("there is no element; expected <topology>".into()),
            None if !self.rest().trim().is_empty() => {
                Err("there is text behind the root element".into())
            }
            None => Ok(()),
        }
    }

    /// Consumes one `<…>`.
    fn markup(&mut self) -> Step {
        let rest = self.rest();
        if rest.starts_with("<!--") {
            self.skip_past("-->", "a comment")
        } else if rest.starts_with("<?") {
            self.skip_past("?>", "a processing instruction")
        } else if rest.starts_with("<![CDATA[") {
            self.skip_past("]]>", "a CDATA section")
        } else if rest.starts_with("<!") {
            let end = rest.find('>').unwrap_or(rest.len());
            if rest.get(..end).unwrap_or("").contains('[') {
                return Err("the DOCTYPE defines entities, which hwloc never writes".into());
            }
            self.skip_past(">", "a declaration")
        } else if rest.starts_with("</") {
            self.end_tag()
        } else {
            self.start_tag()
        }
    }

    fn skip_past(&mut self, end: &str, what: &str) -> Step {
        let found = self.rest().find(end).ok_or_else(|| format!("the file ends inside {what}"))?;
        self.at += found + end.len();
        Ok(())
    }

    fn end_tag(&mut self) -> Step {
        let rest = self.rest();
        let end = rest.find('>').ok_or("the file ends inside a tag; it is not complete")?;
        let name = rest.get(2..end).unwrap_or("").trim_end();
        match self.open.pop() {
            Some(open) if open == name => {
                self.objects.end(name);
                self.writer.end()?;
                self.at += end + 1;
                Ok(())
            }
            Some(open) => Err(format!("</{name}> where </{open}> was expected")),
            None => Err(format!("</{name}> without a beginning")),
        }
    }

    fn start_tag(&mut self) -> Step {
        self.at += 1;
        let Some(tag) = self.name() else {
            let cut = "the file ends behind a `<`; it is not complete";
            return Err(
                if self.rest().is_empty() { cut } else { "a `<` that begins no tag" }.into()
            );
        };
        if self.open.is_empty() {
            self.check_root(tag)?;
        }
        let mut attributes = Vec::new();
        while let Some((name, span)) = self.attribute(tag)? {
            if name == "version" && self.open.is_empty() {
                self.found.version = Some(span.clone());
            }
            if attributes.iter().any(|(known, _)| *known == name) {
                return Err(format!("attribute {name} of <{tag}> stands twice"));
            }
            if attributes.len() == MAX_ATTRIBUTES {
                return Err(format!("<{tag}> has more than {MAX_ATTRIBUTES} attributes"));
            }
            attributes.push((name, self.text.get(span).unwrap_or("")));
        }
        self.objects.begin(tag, &attributes, self.open.len())?;
        self.writer.begin(tag, &attributes);
        let get = |name: &str| attributes.iter().find(|(n, _)| *n == name).map(|(_, v)| *v);
        if let ("info", Some(name), Some(value)) = (tag, get("name"), get("value"))
            && self.open.len() <= 2
        {
            self.found.infos.push((name, value));
        }
        self.close_start(tag)
    }

    /// What can be said only at the end: the format, and that objects were there.
    fn check_whole(&mut self) -> Step {
        self.found.counts = self.objects.counts();
        let version = self.found.version().unwrap_or("1");
        if version.starts_with("2.") || version.starts_with("3.") {
            return self.objects.finish();
        }
        Err(format!(
            "format {version} is not read, only 2 and 3; convert the file with lstopo of hwloc 2"
        ))
    }

    fn check_root(&mut self, tag: &str) -> Step {
        if self.seen_root {
            return Err(format!("a second root element <{tag}>"));
        }
        self.seen_root = true;
        if tag == "topology" {
            return Ok(());
        }
        Err(format!(
            "the root element is <{tag}>, not hwloc's <topology>; write one with `lstopo file.xml`"
        ))
    }

    fn close_start(&mut self, tag: &'t str) -> Step {
        if self.rest().starts_with("/>") {
            self.objects.end(tag);
            self.writer.end()?;
            self.at += 2;
            return Ok(());
        }
        self.at += 1;
        self.open.push(tag);
        if self.open.len() > MAX_DEPTH {
            return Err(format!("elements nest deeper than {MAX_DEPTH} levels"));
        }
        Ok(())
    }

    /// The next attribute's name and the place of its value; `None` before the
    /// tag's end.
    fn attribute(&mut self, tag: &str) -> Result<Option<(&'t str, Range<usize>)>, String> {
        self.skip_space();
        if self.rest().starts_with('>') || self.rest().starts_with("/>") {
            return Ok(None);
        }
        if self.rest().is_empty() {
            return Err(format!("the file ends inside <{tag}>; it is not complete"));
        }
        let name = self.name().ok_or_else(|| format!("unexpected text inside <{tag}>"))?;
        self.skip_space();
        if !self.rest().starts_with('=') {
            return Err(format!("attribute {name} of <{tag}> has no value"));
        }
        self.at += 1;
        self.skip_space();
        let quote = self.rest().chars().next().filter(|c| matches!(c, '"' | '\''));
        let quote = quote.ok_or_else(|| format!("the value of {name} in <{tag}> has no quotes"))?;
        let start = self.at + 1;
        let rest = self.text.get(start..).unwrap_or("");
        let length =
            rest.find(quote).ok_or_else(|| format!("the value of {name} in <{tag}> never ends"))?;
        self.at = start + length + 1;
        Ok(Some((name, start..start + length)))
    }

    fn name(&mut self) -> Option<&'t str> {
        let rest = self.rest();
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).filter(|name| !name.is_empty())
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SMALL: &str = r#"<?xml version="1.0"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="3.0">
 <object type='Machine' cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1">
  <info name="OSRelease" value="6.1"/>
  <object type="NUMANode" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1"
   complete_nodeset="0x1"/>
  <object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1"
   complete_nodeset="0x1"/>
 </object>
 <info name="Architecture" value="aarch64"/>
</topology>
"#;

    fn problem(text: &str) -> (usize, String) {
        let error = scan(text).unwrap_err();
        (error.line, error.problem)
    }

    #[test]
    fn root_infos_and_version_are_found() {
        let found = scan(SMALL).unwrap();
        assert_eq!(found.version(), Some("3.0"));
        assert_eq!(found.info("Architecture"), Some("aarch64"));
        assert_eq!(found.info("OSRelease"), Some("6.1"));
        assert!(found.for_hwloc().contains("<topology version=\"2.0\">"));
        assert!(found.for_hwloc().starts_with("<?xml version=\"1.0\"?>\n"));
    }

    #[test]
    fn faults_are_named_with_their_line() {
        let (line, text) = problem("<svg width=\"3\"></svg>");
        assert!(line == 1 && text.contains("<svg>") && text.contains("lstopo"), "{text}");
        assert_eq!(problem("<topology>\n<a>\n</b></topology>").0, 3);
        assert!(problem("<topology><a x=1/></topology>").1.contains("quotes"));
        assert!(problem("<!DOCTYPE a [<!ENTITY b 'c'>]><topology/>").1.contains("entities"));
        assert!(problem("<topology/>\n<topology/>").1.contains("second root"));
        assert!(problem("<topology/> more").1.contains("behind"));
        assert!(problem(&"<topology>".repeat(300)).1.contains("nest"));
        let many: String = (0..200).map(|n| format!(" a{n}='1'")).collect();
        assert!(problem(&format!("<topology{many}/>")).1.contains("more than 100 attributes"));
        assert!(problem("<topology version='1.0'/>").1.contains("format 1.0 is not read"));
        assert!(problem("<topology version='2.0'/>").1.contains("no PU"));
        assert!(problem("<topology version='2.0'><object/></topology>").1.contains("no type"));
    }

    #[test]
    fn every_truncation_is_noticed() {
        let whole = SMALL.trim_end();
        for cut in 0..whole.len() {
            assert!(scan(&whole[..cut]).is_err(), "cut at {cut}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_scanned_without_panic(text in "[<>/!?=' a-c\\-\\[\\]é]{0,60}|.*") {
            let _ = scan(&text);
        }
    }
}
