//! Writing SVG: [`Canvas`], escaping, numbers, and how much room a text takes.
//!
//! A picture is drawn once and used twice: alone in a file, or inside a page, where the
//! keyboard reaches its marks. All texts pass through [`escape`].

use std::fmt::Write;

/// Where a picture will stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a file of its own; assistive technology sees one image with a description.
    File,
    /// In a page as its n-th picture; every mark can be read and focused.
    Page(usize),
}

/// Colours, patterns and fonts of a picture that stands alone.
const STYLE: &str = include_str!("picture.css");

/// A picture in the making. Lengths are in pixels from the upper left.
#[derive(Clone, Debug)]
pub struct Canvas {
    body: String,
    place: Place,
    width: f64,
    marks: usize,
}

/// How a text is set.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Set {
    /// Classes of the style sheet.
    pub class: &'static str,
    /// `start`, `middle` or `end`; the start where empty.
    pub anchor: &'static str,
}

impl Canvas {
    /// An empty picture.
    pub fn new(place: Place, width: f64) -> Self {
        Self { body: String::new(), place, width, marks: 0 }
    }

    /// Its width.
    pub const fn width(&self) -> f64 {
        self.width
    }

    /// A text at its baseline.
    pub fn text(&mut self, x: f64, y: f64, text: &str, set: Set) {
        let (x, y) = (number(x), number(y));
        let class = attribute("class", set.class);
        let anchor = attribute("text-anchor", set.anchor);
        let _ = writeln!(self.body, "<text x=\"{x}\" y=\"{y}\"{class}{anchor}>{}</text>", {
            escape(text)
        });
    }

    /// Sentences below each other in small letters, long ones in several lines, from the
    /// baseline `y` on; returns the last baseline.
    pub fn notes(&mut self, mut y: f64, notes: &[String]) -> f64 {
        for note in notes {
            let class = if note.contains("NO: it was") { "small head" } else { "small faint" };
            for line in wrapped(note, self.width - 20.0, 11.0) {
                y += 16.0;
                self.text(10.0, y, &line, Set { class, anchor: "" });
            }
        }
        y
    }

    /// A straight line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(number);
        let _ = writeln!(
            self.body,
            "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" class=\"{class}\"/>"
        );
    }

    /// A rectangle that stands for no value.
    pub fn rect(&mut self, (x, y): (f64, f64), (w, h): (f64, f64), attributes: &str) {
        let [x, y, w, h] = [x, y, w, h].map(number);
        let _ = writeln!(
            self.body,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" {attributes}/>"
        );
    }

    /// A rectangle with values: `says` is its tooltip and what is read aloud.
    pub fn bar(&mut self, (x, y): (f64, f64), (w, h): (f64, f64), style: usize, says: &str) {
        let [x, y, w, h] = [x, y, w, h].map(number);
        let (focus, fill) = (self.focus(), self.fill(style));
        let _ = writeln!(
            self.body,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" class=\"m\"{fill}{focus}>\
             <title>{}</title></rect>",
            escape(says)
        );
    }

    /// A marker with values, as a path around a point.
    pub fn marker(&mut self, at: (f64, f64), style: usize, class: &str, says: &str) {
        let path = path_of(at, style, class);
        let focus = self.focus();
        let _ = writeln!(
            self.body,
            "<path d=\"{path}\" class=\"v s{} {class}\"{focus}><title>{}</title></path>",
            style % STYLES,
            escape(says)
        );
    }

    /// A marker that explains itself in the legend.
    pub fn legend_marker(&mut self, at: (f64, f64), style: usize, class: &str) {
        let path = path_of(at, style, class);
        let _ = writeln!(self.body, "<path d=\"{path}\" class=\"s{} {class}\"/>", style % STYLES);
    }

    /// A patch that explains a bar's colour and pattern in the legend.
    pub fn legend_patch(&mut self, at: (f64, f64), style: usize) {
        let fill = self.fill(style);
        self.rect(at, (14.0, 12.0), &format!("class=\"m\"{fill}"));
    }

    /// Markup that is well formed and escaped already.
    pub fn raw(&mut self, markup: &str) {
        self.body.push_str(markup);
        self.body.push('\n');
    }

    /// How many marks it has.
    pub const fn marks(&self) -> usize {
        self.marks
    }

    /// One tab stop per picture: arrow keys move on from its first mark.
    fn focus(&mut self) -> &'static str {
        self.marks += 1;
        match (self.place, self.marks) {
            (Place::File, _) => "",
            (Place::Page(_), 1) => " role=\"img\" tabindex=\"0\"",
            (Place::Page(_), _) => " role=\"img\" tabindex=\"-1\"",
        }
    }

    /// A pattern lies over every colour but the first, so that none is told by colour
    /// alone.
    fn fill(&self, style: usize) -> String {
        let index = style % STYLES;
        format!(" fill=\"url(#{}p{index})\"", self.prefix())
    }

    fn prefix(&self) -> String {
        match self.place {
            Place::File => String::new(),
            Place::Page(index) => format!("g{index}"),
        }
    }

    /// The whole picture.
    pub fn finish(self, height: f64, title: &str, description: &str) -> String {
        let (w, h, id) = (number(self.width), number(height), self.prefix());
        let role = if self.place == Place::File { "img" } else { "group" };
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"picture\" viewBox=\"0 0 {w} {h}\" \
             width=\"{w}\" height=\"{h}\" role=\"{role}\" aria-labelledby=\"{id}t {id}d\">\n\
             <title id=\"{id}t\">{}</title>\n<desc id=\"{id}d\">{}</desc>\n",
            escape(title),
            escape(description)
        );
        if self.place == Place::File {
            let _ = writeln!(out, "<style>\n{STYLE}</style>");
        }
        out.push_str(&patterns(&id));
        let _ = writeln!(out, "<rect class=\"paper\" width=\"{w}\" height=\"{h}\"/>");
        out.push_str(&self.body);
        out.push_str("</svg>\n");
        out
    }
}

/// How many colours and patterns there are; lines have more styles by their markers.
pub const STYLES: usize = 8;

/// Strokes over each colour: none, and seven that differ also without colour.
const STROKES: [&str; STYLES] = [
    "",
    "M0 8L8 0M-2 2L2 -2M6 10L10 6",
    "M0 0L8 8M-2 6L2 10M6 -2L10 2",
    "M0 2H8M0 6H8",
    "M2 0V8M6 0V8",
    "M1 3h2v2h-2zM5 7h2v2h-2z",
    "M0 4H8M4 0V8",
    "M0 8L8 0M0 0L8 8",
];

fn patterns(id: &str) -> String {
    let mut out = String::from("<defs>\n");
    for (index, path) in STROKES.iter().enumerate() {
        let _ = writeln!(
            out,
            "<pattern id=\"{id}p{index}\" width=\"8\" height=\"8\" \
             patternUnits=\"userSpaceOnUse\"><rect class=\"c{index}\" width=\"8\" height=\"8\"/>\
             <path class=\"hatch\" d=\"{path}\"/></pattern>"
        );
    }
    out.push_str("</defs>\n");
    out
}

/// A cross for points without a line, else the style's own shape.
fn path_of((x, y): (f64, f64), style: usize, class: &str) -> String {
    if class != "cross" {
        return marker_path((x, y), style, 4.5);
    }
    let [left, right, top, bottom] = [x - 4.0, x + 4.0, y - 4.0, y + 4.0].map(number);
    format!("M{left} {top}L{right} {bottom}M{left} {bottom}L{right} {top}")
}

/// Circle, square, triangle, diamond, and the same turned or crossed.
fn marker_path((x, y): (f64, f64), style: usize, r: f64) -> String {
    let at = |dx: f64, dy: f64| format!("{} {}", number(x + dx * r), number(y + dy * r));
    let closed = |points: &[(f64, f64)]| {
        let texts: Vec<String> = points.iter().map(|(dx, dy)| at(*dx, *dy)).collect();
        format!("M{}Z", texts.join("L"))
    };
    // Colours repeat after eight styles; then they come with other shapes.
    match (style + style / STYLES * 3) % STYLES {
        0 => format!("M{}a{r} {r} 0 1 0 .01 0z", at(0.0, -1.0)),
        1 => closed(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
        2 => closed(&[(0.0, -1.1), (1.0, 0.8), (-1.0, 0.8)]),
        3 => closed(&[(0.0, -1.2), (1.2, 0.0), (0.0, 1.2), (-1.2, 0.0)]),
        4 => closed(&[(0.0, 1.1), (1.0, -0.8), (-1.0, -0.8)]),
        5 => closed(&[(-1.2, -0.5), (1.2, -0.5), (1.2, 0.5), (-1.2, 0.5)]),
        6 => closed(&[(-0.5, -1.2), (0.5, -1.2), (0.5, 1.2), (-0.5, 1.2)]),
        _ => closed(&[(0.0, -1.2), (1.1, -0.3), (0.7, 1.0), (-0.7, 1.0), (-1.1, -0.3)]),
    }
}

fn attribute(name: &str, value: &str) -> String {
    if value.is_empty() { String::new() } else { format!(" {name}=\"{value}\"") }
}

/// A coordinate with one decimal at most; 0 for what is no number.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "0".into();
    }
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".into() } else { text.into() }
}

/// A text as XML and HTML may hold it, in elements and in quoted attributes. Characters
/// that XML forbids are replaced.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                out.push(char::REPLACEMENT_CHARACTER);
            }
            c => out.push(c),
        }
    }
    out
}

/// About how wide a text of so many pixels in height is.
pub fn text_width(text: &str, size: f64) -> f64 {
    text.chars().map(|c| if c.is_ascii() { 0.56 } else { 0.75 }).sum::<f64>() * size
}

/// The text, cut with an ellipsis where it is wider than `width`.
pub fn fit(text: &str, width: f64, size: f64) -> String {
    if text_width(text, size) <= width {
        return text.into();
    }
    let mut out = String::new();
    let mut used = 0.75 * size;
    for c in text.chars() {
        used += if c.is_ascii() { 0.56 } else { 0.75 } * size;
        if used > width {
            break;
        }
        out.push(c);
    }
    out + "…"
}

/// Lines of a note at most.
const MOST_LINES: usize = 8;

/// The text in lines that are no wider than `width`; the last one is cut where there are
/// too many.
pub fn wrapped(text: &str, width: f64, size: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut words = text.split(' ').peekable();
    while words.peek().is_some() && lines.len() + 1 < MOST_LINES {
        let mut line = String::new();
        while let Some(word) = words.next_if(|word| {
            line.is_empty() || text_width(&line, size) + text_width(word, size) + size < width
        }) {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(fit(&line, width, size));
    }
    let rest: Vec<&str> = words.collect();
    if !rest.is_empty() {
        lines.push(fit(&rest.join(" "), width, size));
    }
    lines
}

/// Ticks from 0 to `most` in steps of 1, 2 or 5 times a power of ten, about `count`.
pub fn ticks(most: f64, count: usize) -> Vec<f64> {
    if !(most.is_finite() && most > 0.0) {
        return vec![0.0];
    }
    let raw = most / count.max(1) as f64;
    let power = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power);
    let step = step.into_iter().find(|s| *s >= raw * 0.999).unwrap_or(raw);
    let n = (most / step + 1e-9).floor() as usize;
    (0..=n.min(count * 4)).map(|i| i as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(number(1.0), "1");
        assert_eq!(number(-0.01), "0");
        assert_eq!(number(2.25), "2.2");
        assert_eq!(number(f64::NAN), "0");
    }

    #[test]
    fn texts_are_cut_to_their_room() {
        assert_eq!(fit("abc", 100.0, 10.0), "abc");
        let cut = fit(&"x".repeat(100), 100.0, 10.0);
        assert!(cut.ends_with('…') && text_width(&cut, 10.0) <= 100.0, "{cut}");
    }

    #[test]
    fn long_texts_have_several_lines_and_lose_no_word() {
        let text = "a few words that are longer than one line of the picture is wide";
        let lines = wrapped(text, 120.0, 11.0);
        assert!(lines.len() > 2 && lines.iter().all(|line| text_width(line, 11.0) <= 120.0));
        assert_eq!(lines.join(" "), text);
        let endless = wrapped(&"word ".repeat(1000), 120.0, 11.0);
        assert!(endless.len() == MOST_LINES && endless[MOST_LINES - 1].ends_with('…'));
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks(1000.0, 5), [0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]);
        assert_eq!(ticks(0.0, 5), [0.0]);
        assert_eq!(ticks(f64::INFINITY, 5), [0.0]);
    }

    proptest! {
        #[test]
        fn any_text_makes_a_picture_that_an_xml_parser_reads(
            text in any::<Vec<char>>().prop_map(|c| c.into_iter().collect::<String>())
        ) {
            for place in [Place::File, Place::Page(3)] {
                let mut canvas = Canvas::new(place, 100.0);
                canvas.bar((1.0, 2.0), (3.0, 4.0), 9, &text);
                canvas.marker((1.0, 2.0), 2, "", &text);
                canvas.text(1.0, 1.0, &text, Set::default());
                let svg = canvas.finish(50.0, &text, &text);
                prop_assert!(roxmltree::Document::parse(&svg).is_ok(), "{}", svg);
            }
        }

        #[test]
        fn ticks_never_run_away(most in any::<f64>(), count in 0usize..20) {
            let ticks = ticks(most, count);
            prop_assert!(ticks.len() <= count * 4 + 1 && ticks.is_sorted());
        }
    }
}
