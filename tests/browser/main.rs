//! Pages of `report --as html` in a real browser: drawn, pointed at, sorted, printed.
//!
//! Run by `scripts/browser-tests.sh`; ignored otherwise, because a browser is needed.
//! That a picture is not blank is checked in the page (sizes, colours and number of its
//! marks), not in screenshots; those lie in `target/browser` for people to look at.

mod cdp;
#[path = "../common/records.rs"]
mod records;

use cdp::Browser;
use pageinit::record::any::AnyRecord;
use pageinit::report::html::page;
use pageinit::report::source::Source;
use pageinit::warning::Warning;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn fixture(name: &str) -> Source {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/records").join(name);
    Source::read(name, &fs::read_to_string(path).expect("the fixture is there")).expect("a record")
}

/// Records of several kinds; the first is incomplete and its names carry markup.
fn sources() -> Vec<Source> {
    let mut first = fixture("compare-v1-memory.json");
    first.name = "</script><img src=\"x\" onerror=\"document.title = 'broken'\"/>".into();
    first.record = match first.record {
        AnyRecord::Compare(mut record) => {
            record.head.complete = false;
            record.head.warnings.push(Warning::new("a-code", "a & <b>message</b>", "a remedy"));
            AnyRecord::Compare(record)
        }
        other => other,
    };
    let others = ["estimate-v1-memory.json", "sweep-v1.json", "calibration-v1.json"];
    std::iter::once(first).chain(others.into_iter().map(fixture)).collect()
}

/// A page in a browser.
fn opened(dir: &TempDir, sources: &[Source]) -> Browser {
    let path = dir.path().join("report.html");
    fs::write(&path, page(sources, &[])).expect("writable");
    let mut browser = Browser::start();
    browser.resize(1280, 900);
    browser.open(&path);
    browser
}

fn scratch() -> TempDir {
    TempDir::new().expect("a temporary folder")
}

/// The middle of an element, scrolled into sight, as `[x, y]`.
#[track_caller]
fn middle(browser: &mut Browser, element: &str) -> (f64, f64) {
    let at = browser.eval(&format!(
        "(() => {{ const e = {element}; e.scrollIntoView({{block: 'center'}});
         const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()"
    ));
    // Scrolling hides a tooltip, in the frame that follows.
    browser.eval("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
    (at[0].as_f64().expect("a place"), at[1].as_f64().expect("a place"))
}

const TIP: &str = "(() => { const t = document.getElementById('tip');
    return t.hidden ? '' : t.textContent; })()";

fn keep(browser: &mut Browser, name: &str) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../browser");
    fs::create_dir_all(&folder).expect("target is writable");
    fs::write(folder.join(name), decoded(&browser.screenshot())).expect("target is writable");
}

/// Bytes of base64.
fn decoded(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let values = text.bytes().filter_map(|b| DIGITS.iter().position(|d| *d == b));
    let (mut out, mut bits, mut held) = (Vec::new(), 0u32, 0);
    for value in values {
        bits = bits << 6 | value as u32;
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    out
}

#[test]
#[ignore = "needs a browser: scripts/browser-tests.sh"]
fn pictures_are_drawn_and_nothing_is_asked_for() {
    let dir = scratch();
    let mut browser = opened(&dir, &sources());
    let boxes = browser.eval(
        "Array.from(document.querySelectorAll('.picture'), svg => {
            const seen = Array.from(svg.querySelectorAll('[tabindex]')).filter(mark => {
                const box = mark.getBoundingClientRect();
                const style = getComputedStyle(mark);
                return box.width > 0 && box.height > 0
                    && (style.fill !== 'none' || style.stroke !== 'none');
            });
            const all = svg.querySelectorAll('[tabindex]').length;
            const box = svg.getBoundingClientRect();
            return [box.width, box.height, all, seen.length];
        })",
    );
    let pictures = boxes.as_array().expect("a list");
    assert!(pictures.len() >= 5, "{boxes}");
    for picture in pictures {
        let of = |at: usize| picture[at].as_f64().expect("a number");
        assert!(of(0) > 600.0 && of(1) > 100.0, "{picture}");
        assert!(of(2) >= 3.0 && of(2) == of(3), "every mark is seen: {picture}");
    }
    let marks = pictures.iter().filter_map(|p| p[2].as_u64()).sum::<u64>();
    assert!(marks > 100, "{marks}");
    assert_eq!(browser.eval("document.querySelectorAll('img').length"), 0);
    assert_ne!(browser.eval("document.title"), "broken");
    let heading = browser.eval("document.querySelector('#r1 h2').textContent");
    assert!(heading.as_str().is_some_and(|text| text.starts_with("</script><img")), "{heading}");
    assert!(browser.eval("document.querySelector('#r1 .incomplete') !== null") == true);
    keep(&mut browser, "light.png");
    middle(&mut browser, "document.querySelector('#r3 figure')");
    keep(&mut browser, "light-curves.png");
    assert!(browser.requests() >= 1, "requests are seen");
    assert_eq!(browser.complaints(), [] as [String; 0]);
}

#[test]
#[ignore = "needs a browser: scripts/browser-tests.sh"]
fn pointing_and_the_keyboard_show_the_same_values() {
    let dir = scratch();
    let mut browser = opened(&dir, &sources());
    let mark = "document.querySelector('#r2 .picture [tabindex]')";
    let says = browser.eval(&format!("{mark}.textContent"));
    let (x, y) = middle(&mut browser, mark);
    browser.hover(x, y);
    let tip = browser.eval(TIP);
    assert_eq!(tip, says, "the tooltip shows the mark's values");
    assert!(tip.as_str().is_some_and(|t| t.contains(" struct pages, ")), "{tip}");
    keep(&mut browser, "tooltip.png");
    browser.hover(2.0, 2.0);
    assert_eq!(browser.eval(TIP), "", "elsewhere there is none");

    // By keyboard alone, from the heading above it into the picture.
    browser.eval(
        "(() => { const h = document.querySelector('#r2 h2'); h.tabIndex = -1; h.focus(); })()",
    );
    let inside = "document.activeElement.closest('.picture') !== null";
    let reached = (0..40).any(|_| {
        browser.press("Tab");
        browser.eval(inside) == true
    });
    assert!(reached, "Tab leads into the picture");
    assert_eq!(browser.eval(TIP), says, "focus shows the same values");
    browser.press("ArrowRight");
    let second = browser.eval(TIP);
    assert!(second != says && second.as_str().is_some_and(|t| t.contains("GB/s")), "{second}");
    let label = browser.eval("document.activeElement.getAttribute('aria-label')");
    assert_eq!(label, second, "what is read aloud");
    browser.press("Escape");
    assert_eq!(browser.eval(TIP), "");
    browser.press("Tab");
    assert_eq!(browser.eval(inside), false, "a picture is one stop");
    assert_eq!(browser.complaints(), [] as [String; 0]);
}

/// The values of a column, as they stand.
fn column(browser: &mut Browser, table: &str, column: usize) -> Vec<f64> {
    let values = browser.eval(&format!(
        "Array.from(document.querySelector('{table}').tBodies[0].rows,
             row => Number(row.cells[{column}].dataset.v))"
    ));
    values.as_array().expect("a list").iter().filter_map(Value::as_f64).collect()
}

#[test]
#[ignore = "needs a browser: scripts/browser-tests.sh"]
fn headers_sort_by_mouse_and_by_keyboard() {
    let dir = scratch();
    let mut browser = opened(&dir, &[fixture("sweep-v1.json")]);
    let table = "#r1t0";
    let wanted = browser.eval(&format!(
        "Array.from(document.querySelectorAll('{table} thead th')).findIndex(
             th => th.textContent.includes('total'))"
    ));
    let at = wanted.as_u64().expect("a column of times") as usize;
    let before = column(&mut browser, table, at);
    let mut ascending = before.clone();
    ascending.sort_by(f64::total_cmp);
    assert!(before.len() > 3 && before != ascending, "{before:?}");
    let button = format!("document.querySelectorAll('{table} thead button')[{at}]");
    let (x, y) = middle(&mut browser, &button);
    browser.click(x, y);
    assert_eq!(column(&mut browser, table, at), ascending);
    let state = format!("{button}.closest('th').getAttribute('aria-sort')");
    assert_eq!(browser.eval(&state), "ascending");
    browser.eval(&format!("{button}.focus()"));
    browser.press("Enter");
    ascending.reverse();
    assert_eq!(column(&mut browser, table, at), ascending);
    assert_eq!(browser.eval(&state), "descending");
    assert_eq!(browser.complaints(), [] as [String; 0]);
}

const OVERFLOW: &str =
    "document.documentElement.scrollWidth - document.documentElement.clientWidth";

#[test]
#[ignore = "needs a browser: scripts/browser-tests.sh"]
fn dark_phone_and_paper_are_readable() {
    let dir = scratch();
    let mut browser = opened(&dir, &sources());
    let colours = "[getComputedStyle(document.body).backgroundColor,
        getComputedStyle(document.querySelector('.picture .paper')).fill,
        getComputedStyle(document.querySelector('.picture text')).fill]";
    let light = browser.eval(colours);
    browser.medium("screen", "dark");
    let dark = browser.eval(colours);
    for at in 0..3 {
        assert_ne!(light[at], dark[at], "{light} {dark}");
    }
    assert_eq!(dark[0], dark[1], "a picture lies on the page's own colour");
    assert_eq!(browser.eval(OVERFLOW), 0);
    keep(&mut browser, "dark.png");
    middle(&mut browser, "document.querySelector('#r3 figure')");
    keep(&mut browser, "dark-curves.png");
    browser.medium("screen", "light");
    for width in [320, 375] {
        browser.resize(width, 800);
        assert_eq!(browser.eval(OVERFLOW), 0, "the page of {width} pixels is not wider");
    }
    browser.eval("scrollTo(0, 0)");
    keep(&mut browser, "phone.png");
    middle(&mut browser, "document.querySelector('#r2 figure')");
    keep(&mut browser, "phone-picture.png");
    browser.resize(1280, 900);
    browser.medium("print", "dark");
    let paper = browser.eval(colours);
    assert_eq!(paper, light, "paper is light");
    let nav = "getComputedStyle(document.querySelector('nav')).display";
    assert_eq!(browser.eval(nav), "none");
    keep(&mut browser, "print.png");
    let pdf = decoded(&browser.print());
    assert!(pdf.starts_with(b"%PDF") && pdf.len() > 20_000, "{}", pdf.len());
    assert_eq!(browser.complaints(), [] as [String; 0]);
}

#[test]
#[ignore = "needs a browser: scripts/browser-tests.sh"]
fn pages_of_a_thousand_records_and_of_many_points_can_be_used() {
    let dir = scratch();
    let mut browser = opened(&dir, &[records::sweep(100_000)]);
    let marks = browser.eval("document.querySelectorAll('.picture [tabindex]').length");
    assert!(marks.as_u64().is_some_and(|marks| marks > 1000), "{marks}");
    assert_eq!(browser.complaints(), [] as [String; 0]);
    let mut browser = opened(&dir, &records::many(1000));
    assert_eq!(browser.eval("document.querySelectorAll('main > section').length"), 1001);
    let (x, y) = middle(&mut browser, "document.querySelector('#all tbody a')");
    browser.click(x, y);
    assert_eq!(browser.eval("location.hash"), "#r1");
    let rows = browser.eval("document.querySelector('#all').tBodies[0].rows.length");
    assert_eq!(rows, 1000);
    assert_eq!(browser.eval(OVERFLOW), 0);
    assert_eq!(browser.complaints(), [] as [String; 0]);
}
