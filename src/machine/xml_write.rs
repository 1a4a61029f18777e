//! The text that hwloc gets: what was understood, written anew.
//!
//! hwloc reads XML with one of two readers, and neither reads an odd text as
//! [`super::xml`] does. Its own one ignores the rest of a tag behind an attribute that it
//! does not like, such as one in capitals, and then follows null pointers to sets that
//! were there. So [`Writer`] is told of every element, keeps what a machine is made of,
//! and writes it as hwloc itself would: devices and notes are left out.

use super::check::MAX_NID;
use super::xml_objects::is_device;
use std::collections::BTreeSet;

/// What hwloc is told of an object.
const OBJECT: [&str; 18] = [
    "type",
    "os_index",
    "gp_index",
    "cpuset",
    "complete_cpuset",
    "allowed_cpuset",
    "nodeset",
    "complete_nodeset",
    "allowed_nodeset",
    "local_memory",
    "cache_size",
    "cache_linesize",
    "cache_associativity",
    "cache_type",
    "depth",
    "kind",
    "subkind",
    "dont_merge",
];

/// Attributes by name, with values as they stand in the text.
type Attributes<'a> = [(&'a str, &'a str)];

/// Writes the elements that are kept.
#[derive(Debug, Default)]
pub(super) struct Writer {
    out: String,
    /// Tags that are open and were written.
    open: Vec<Tag>,
    /// How many elements are open inside one that is left out, itself included.
    skipped: usize,
    /// The distances that are being read.
    distances: Option<Distances>,
}

/// The elements that are written with what they hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tag {
    Topology,
    Object,
    Distances,
    Indexes,
    Values,
}

/// A table of distances, which hwloc gives memory by `nbobjs` alone.
#[derive(Debug, Default)]
struct Distances {
    objects: usize,
    kind: u64,
    indexing: &'static str,
    indexes: Vec<u64>,
    values: Vec<u64>,
}

impl Writer {
    /// The text of a whole file.
    pub(super) fn finish(self) -> String {
        self.out
    }

    /// An element begins.
    pub(super) fn begin(&mut self, tag: &str, attributes: &Attributes<'_>) {
        if self.skipped > 0 {
            self.skipped += 1;
            return;
        }
        let get = |name: &str| attributes.iter().find(|(n, _)| *n == name).map(|(_, v)| *v);
        match (self.open.last(), tag) {
            (None, "topology") => {
                self.out.push_str("<?xml version=\"1.0\"?>\n<topology version=\"2.0\">\n");
                self.open.push(Tag::Topology);
            }
            (Some(Tag::Topology | Tag::Object), "object")
                if !get("type").is_some_and(is_device) =>
            {
                self.tag("object", &OBJECT, attributes);
                self.out.push_str(">\n");
                self.open.push(Tag::Object);
            }
            (Some(Tag::Object), "info") => self.leaf("info", &["name", "value"], attributes),
            (Some(Tag::Object), "page_type") => {
                self.leaf("page_type", &["size", "count"], attributes);
            }
            (Some(Tag::Topology), "distances2") => match Distances::of(get) {
                Some(distances) => {
                    self.distances = Some(distances);
                    self.open.push(Tag::Distances);
                }
                None => self.skipped = 1,
            },
            (Some(Tag::Distances), "indexes") => self.open.push(Tag::Indexes),
            (Some(Tag::Distances), "u64values") => self.open.push(Tag::Values),
            _ => self.skipped = 1,
        }
    }

    /// Text between tags.
    ///
    /// # Errors
    /// Distances are no numbers, or more than belong there.
    pub(super) fn text(&mut self, text: &str) -> Result<(), String> {
        let (Some(tag), Some(distances), 0) =
            (self.open.last(), self.distances.as_mut(), self.skipped)
        else {
            return Ok(());
        };
        let (list, most) = match tag {
            Tag::Indexes => (&mut distances.indexes, distances.objects),
            Tag::Values => (&mut distances.values, distances.objects * distances.objects),
            _ => return Ok(()),
        };
        for word in text.split_whitespace() {
            let number =
                word.parse().map_err(|_| format!("{word:?} in distances2 is no number"))?;
            if list.len() == most {
                return Err(distances.wrong());
            }
            list.push(number);
        }
        Ok(())
    }

    /// The innermost element ends.
    ///
    /// # Errors
    /// A table of distances has not as many numbers as it says.
    pub(super) fn end(&mut self) -> Result<(), String> {
        if self.skipped > 0 {
            self.skipped -= 1;
            return Ok(());
        }
        match self.open.pop() {
            Some(Tag::Topology) => self.out.push_str("</topology>\n"),
            Some(Tag::Object) => self.out.push_str("</object>\n"),
            Some(Tag::Distances) => {
                if let Some(distances) = self.distances.take() {
                    distances.check()?;
                    distances.write(&mut self.out);
                }
            }
            Some(Tag::Indexes | Tag::Values) | None => {}
        }
        Ok(())
    }

    /// An element that holds nothing; what stands in it all the same is left out.
    fn leaf(&mut self, tag: &str, names: &[&str], attributes: &Attributes<'_>) {
        self.tag(tag, names, attributes);
        self.out.push_str("/>\n");
        self.skipped = 1;
    }

    fn tag(&mut self, tag: &str, names: &[&str], attributes: &Attributes<'_>) {
        self.out.push('<');
        self.out.push_str(tag);
        for (name, value) in attributes.iter().filter(|(name, _)| names.contains(name)) {
            self.out.push(' ');
            self.out.push_str(name);
            self.out.push_str("=\"");
            escape(value, &mut self.out);
            self.out.push('"');
        }
    }
}

impl Distances {
    /// A table between nodes; others say nothing about a machine.
    fn of<'t>(get: impl Fn(&str) -> Option<&'t str>) -> Option<Self> {
        let indexing = match get("indexing") {
            Some("gp") => "gp",
            Some("os") | None => "os",
            Some(_) => return None,
        };
        let objects: usize = get("nbobjs")?.parse().ok()?;
        let fits = get("type")? == "NUMANode" && objects <= MAX_NID as usize + 1;
        let kind = get("kind")?.parse().ok()?;
        fits.then(|| Self { objects, kind, indexing, ..Self::default() })
    }

    fn wrong(&self) -> String {
        let n = self.objects;
        format!("distances2 of {n} nodes needs {n} different indexes and {} values", n * n)
    }

    fn check(&self) -> Result<(), String> {
        let different: BTreeSet<u64> = self.indexes.iter().copied().collect();
        let fits = different.len() == self.objects
            && self.indexes.len() == self.objects
            && self.values.len() == self.objects * self.objects;
        if fits { Ok(()) } else { Err(self.wrong()) }
    }

    fn write(&self, out: &mut String) {
        let (n, kind, indexing) = (self.objects, self.kind, self.indexing);
        out.push_str(&format!(
            "<distances2 type=\"NUMANode\" nbobjs=\"{n}\" kind=\"{kind}\" \
             name=\"NUMALatency\" indexing=\"{indexing}\">\n"
        ));
        for (tag, list) in [("indexes", &self.indexes), ("u64values", &self.values)] {
            // hwloc's own writer puts so many into an element.
            for part in list.chunks(10) {
                let text: String = part.iter().map(|number| format!("{number} ")).collect();
                out.push_str(&format!("<{tag} length=\"{}\">{text}</{tag}>\n", text.len()));
            }
        }
        out.push_str("</distances2>\n");
    }
}

/// The entities that hwloc's own reader knows.
const ENTITIES: [&str; 7] = ["&#10;", "&#13;", "&#9;", "&quot;", "&lt;", "&gt;", "&amp;"];

/// Writes a value so that both of hwloc's readers read it alike.
fn escape(value: &str, out: &mut String) {
    for (at, c) in value.char_indices() {
        let is_entity =
            || value.get(at..).is_some_and(|v| ENTITIES.iter().any(|e| v.starts_with(e)));
        match c {
            '&' if !is_entity() => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::xml::scan;

    const SETS: &str = "cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x1\" \
                        complete_nodeset=\"0x1\"";

    fn whole(root: &str, inside: &str, behind: &str) -> String {
        format!(
            "<topology version='3.0'><object type='Machine' {root} {SETS}>{inside}\
             <object type='NUMANode' os_index='0' {SETS}/><object type='PU' os_index='0' {SETS}/>\
             </object>{behind}</topology>"
        )
    }

    fn written(root: &str, inside: &str, behind: &str) -> String {
        let text = whole(root, inside, behind);
        scan(&text).unwrap_or_else(|e| panic!("{e}: {text}")).for_hwloc().to_owned()
    }

    fn problem(root: &str, behind: &str) -> String {
        scan(&whole(root, "", behind)).unwrap_err().problem
    }

    // hwloc's reader stops at such attributes, and the sets behind them were never read.
    #[test]
    fn odd_attributes_do_not_hide_what_follows() {
        let plain = written("", "", "");
        assert!(plain.contains(&format!("<object type=\"Machine\" {SETS}>\n")), "{plain}");
        for odd in ["Odd='1'", "o2='1'", "name = 'x'", "\u{c}", "é=\"1\"", "name='&nbsp;'"] {
            assert_eq!(written(odd, "", ""), plain, "{odd:?}");
        }
        assert!(problem("gp_index='1' gp_index='1'", "").contains("stands twice"));
    }

    #[test]
    fn devices_and_notes_are_left_out() {
        let inside = "<object type='Bridge'><info name='a' value='b'/><object type='PCIDev'/>\
                      </object><userdata name='u'>text</userdata><!-- note --><![CDATA[ x ]]>";
        let behind =
            "<support name='discovery.pu'/><cpukind cpuset='0x1'><info name='a'/></cpukind>";
        assert_eq!(written("", inside, behind), written("", "", ""));
    }

    #[test]
    fn infos_keep_their_text() {
        let text = written("", "<info name='CPUModel' value='A \"B\" &lt;C&gt; &x; <é\n'/>", "");
        let expected = "value=\"A &quot;B&quot; &lt;C&gt; &amp;x; &lt;é \"/>";
        assert!(text.contains(expected), "{text}");
        let text = written("", "<page_type size=\"4096\" count='7'>ignored</page_type>", "");
        assert!(text.contains("<page_type size=\"4096\" count=\"7\"/>\n<object"), "{text}");
    }

    const TABLE: &str = "<distances2 type='NUMANode' nbobjs='2' kind='5' indexing='os'>";

    #[test]
    fn distances_have_as_many_numbers_as_they_say() {
        let table = |indexes: &str, values: &str| {
            format!(
                "{TABLE}<indexes>{indexes}</indexes><u64values length='9'>{values}</u64values>\
                 </distances2>"
            )
        };
        let text = written("", "", &table("0 1", "10 20\n20 10"));
        assert!(text.contains("<indexes length=\"4\">0 1 </indexes>\n<u64values length=\"12\">"));
        for (indexes, values) in
            [("0", "10 20 20 10"), ("0 0", "10 20 20 10"), ("0 1", "10"), ("0 1 2", "1 2 3 4")]
        {
            let error = problem("", &table(indexes, values));
            assert!(error.contains("2 different indexes and 4 values"), "{error}");
        }
        assert!(problem("", &table("0 x", "1 2 3 4")).contains("\"x\" in distances2"));
        let huge = "<distances2 type='NUMANode' nbobjs='65536' kind='5'></distances2>";
        assert_eq!(written("", "", huge), written("", "", ""), "hwloc would take 32 GiB for it");
    }
}
