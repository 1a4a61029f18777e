//! The house rules, as tests: layers, the unsafe island, sizes, no printing.
//!
//! DESIGN.md explains the layers. Every violation is listed with file and line.

use std::fs;
use std::path::{Path, PathBuf};

/// Layers from top to bottom; each may use what stands below it, and itself.
/// Neighbours in a row do not see each other: `exec` knows no `model`, nor that it.
const LAYERS: [&[&str]; 10] = [
    &["main"],
    &["cli"],
    &["report", "study"],
    &["lab"],
    &["exec", "model"],
    &["plan"],
    &["kernel"],
    &["machine"],
    &["host"],
    &["record", "stats", "warning", "progress", "nearest", "pfn", "units"],
];

/// What a layer may not use although it stands below.
const FORBIDDEN: [(&str, &[&str]); 4] = [
    // Pure rendering: no layer that touches the host, and no plans.
    ("report", &["exec", "model", "plan", "host", "lab"]),
    // Small experiments beside the boot: the host, figures and records suffice.
    ("lab", &["exec", "model", "plan", "kernel", "machine"]),
    // One answer per question: what is printed comes from records.
    ("plan", &["host"]),
    // Predictions are the same wherever they are made.
    ("model", &["host"]),
];

const LONGEST_FUNCTION: usize = 70;
const LONGEST_LINE: usize = 100;

struct Source {
    path: PathBuf,
    text: String,
}

fn sources(dir: &str) -> Vec<Source> {
    let mut found = Vec::new();
    let mut todo = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(dir)];
    while let Some(dir) = todo.pop() {
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = fs::read_to_string(&path).expect("sources are readable UTF-8");
                found.push(Source { path, text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn all_sources() -> Vec<Source> {
    ["src", "tests", "benches"].into_iter().flat_map(sources).collect()
}

/// The layer a file of `src` belongs to: its folder below `src`, or its own name.
fn layer_of(path: &Path) -> Option<String> {
    let below = path.strip_prefix(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).ok()?;
    let first = below.components().next()?.as_os_str().to_str()?;
    Some(first.trim_end_matches(".rs").to_owned())
}

fn rank(layer: &str) -> Option<usize> {
    LAYERS.iter().position(|names| names.contains(&layer))
}

fn allowed(from: &str, to: &str) -> bool {
    if from == to {
        return true;
    }
    let banned = FORBIDDEN.iter().any(|(layer, out)| *layer == from && out.contains(&to));
    let (Some(upper), Some(lower)) = (rank(from), rank(to)) else { return false };
    // The lowest layer is flat: its modules may use each other.
    !banned && (upper < lower || (upper == lower && upper == LAYERS.len() - 1))
}

/// The layers that a line names with `crate::`.
fn used_layers(line: &str) -> Vec<String> {
    let parts = line.split("crate::").skip(1);
    let names = parts.map(|rest| {
        rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>()
    });
    names.filter(|name| rank(name).is_some()).collect()
}

fn report(rule: &str, violations: &[String]) {
    assert!(violations.is_empty(), "{rule}:\n{}", violations.join("\n"));
}

#[test]
fn layers_point_one_way() {
    let mut wrong = Vec::new();
    for source in sources("src") {
        let Some(layer) = layer_of(&source.path).filter(|l| l != "lib") else { continue };
        assert!(rank(&layer).is_some(), "{layer} is in no layer: add it to tests/tidy.rs");
        for (number, line) in source.text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            for used in used_layers(code).into_iter().filter(|used| !allowed(&layer, used)) {
                let at = source.path.display();
                wrong.push(format!("{at}:{}: {layer} may not use {used}", number + 1));
            }
        }
    }
    report("imports that point upward", &wrong);
}

#[test]
fn the_layer_rule_knows_up_from_down() {
    assert!(allowed("cli", "study") && !allowed("study", "cli"));
    assert!(allowed("exec", "host") && !allowed("host", "plan"));
    assert!(!allowed("exec", "model") && !allowed("model", "exec") && !allowed("model", "host"));
    assert!(!allowed("report", "exec") && !allowed("kernel", "plan"));
    assert!(allowed("lab", "host") && !allowed("lab", "exec") && !allowed("report", "lab"));
    assert_eq!(used_layers("use crate::{host, plan};"), [] as [String; 0]);
    assert_eq!(used_layers("use crate::host::line::Line;"), ["host"]);
}

#[test]
fn grouped_imports_from_the_crate_root_do_not_hide_layers() {
    let mut wrong = Vec::new();
    for source in sources("src") {
        for (number, line) in source.text.lines().enumerate() {
            if line.contains("crate::{") && !line.contains("//") {
                wrong.push(format!("{}:{}", source.path.display(), number + 1));
            }
        }
    }
    report("write one `use crate::layer::…` per layer", &wrong);
}

/// Whether the line of code has the keyword, be it beside texts: `unsafe` and what begins
/// a block, a function or an attribute's parentheses.
fn has_unsafe(code: &str) -> bool {
    let of_word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices("unsafe").any(|(at, word)| {
        let (before, after) = (&code[..at], &code[at + word.len()..]);
        !before.ends_with(of_word) && (after.is_empty() || after.starts_with([' ', '{', '(']))
    })
}

#[test]
fn unsafe_stays_on_its_island() {
    // In two parts, or this file would be found.
    let word = ["un", "safe"].concat();
    assert!(has_unsafe(&format!("let x = {word} {{ f(\"x\") }};")) && has_unsafe(&word));
    assert!(!has_unsafe("style-src 'unsafe-inline'") && !has_unsafe("unsafe_stays()"));
    let mut wrong = Vec::new();
    for source in all_sources() {
        let on_island = layer_of(&source.path).is_some_and(|l| l == "host");
        for (number, line) in source.text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            if has_unsafe(code) && !on_island {
                wrong.push(format!("{}:{}", source.path.display(), number + 1));
            }
        }
    }
    report("`unsafe` outside src/host", &wrong);
}

#[test]
fn lines_fit() {
    let mut wrong = Vec::new();
    for source in all_sources() {
        for (number, line) in source.text.lines().enumerate() {
            if line.chars().count() > LONGEST_LINE {
                wrong.push(format!("{}:{}", source.path.display(), number + 1));
            }
        }
    }
    report("lines over 100 columns", &wrong);
}

#[test]
fn nothing_below_cli_prints() {
    let macros = ["print!(", "println!(", "eprint!(", "eprintln!(", "dbg!("];
    let mut wrong = Vec::new();
    for source in sources("src") {
        if layer_of(&source.path).is_some_and(|l| l == "cli" || l == "main") {
            continue;
        }
        let is_tests =
            source.path.file_stem().is_some_and(|s| s.to_string_lossy().ends_with("tests"));
        if is_tests {
            continue;
        }
        for (number, line) in source.text.lines().enumerate() {
            // From here on a file has its tests; what is only said to be for tests goes on.
            if line.starts_with("mod tests {") {
                break;
            }
            if macros.iter().any(|m| line.contains(m)) {
                wrong.push(format!("{}:{}", source.path.display(), number + 1));
            }
        }
    }
    report("printing below cli", &wrong);
}

/// Where each function of a file begins and how many lines it has.
fn functions(text: &str) -> Vec<(usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let words = line.trim_start();
        let is_fn = words.starts_with("fn ") || words.contains(" fn ") && !words.starts_with("//");
        let declares = is_fn && !words.contains('"') && !words.starts_with('*');
        if !declares {
            continue;
        }
        let close = format!("{}}}", " ".repeat(indent));
        let end = lines[at..].iter().position(|l| {
            *l == close || l.trim_end().ends_with(';') && l.len() - l.trim_start().len() == indent
        });
        if let Some(length) = end {
            found.push((at + 1, length + 1));
        }
    }
    found
}

#[test]
fn functions_are_short() {
    let mut wrong = Vec::new();
    for source in all_sources() {
        for (line, length) in functions(&source.text) {
            if length > LONGEST_FUNCTION {
                wrong.push(format!("{}:{line}: {length} lines", source.path.display()));
            }
        }
    }
    report("functions over 70 lines", &wrong);
}

#[test]
fn the_function_rule_can_fail() {
    let body = "    work();\n".repeat(80);
    let text =
        format!("impl X {{\n}}\n\nfn long() {{\n{body}}}\n\nfn short() {{\n    work();\n}}\n");
    assert_eq!(functions(&text), [(4, 82), (87, 3)]);
}

#[test]
fn every_module_says_what_it_is() {
    let mut wrong = Vec::new();
    for source in sources("src") {
        if !source.text.starts_with("//!") {
            wrong.push(source.path.display().to_string());
        }
    }
    report("files without a module doc", &wrong);
}
