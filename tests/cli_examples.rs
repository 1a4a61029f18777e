//! Every example of the help texts and of README.md runs as it is printed.

mod cli;

use cli::{Ran, run};
use std::collections::BTreeSet;

const VERBS: [&[&str]; 5] = [&[], &["machine"], &["layout"], &["compare"], &["strategies"]];

/// The commands below "Examples:", without `pageinit` and without what explains them.
fn examples_of(help: &str) -> Vec<String> {
    let below = help.lines().skip_while(|line| line.trim() != "Examples:").skip(1);
    let block = below.take_while(|line| !line.trim().is_empty());
    block.filter_map(|line| line.trim().strip_prefix("pageinit ")).map(command).collect()
}

/// The command of a line: an explanation stands behind two spaces or more.
fn command(line: &str) -> String {
    line.split("  ").next().unwrap_or(line).trim().to_owned()
}

/// The commands of a Markdown text: lines of fenced blocks that call the program.
fn console_lines(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if let Some(call) = line.trim().trim_start_matches("$ ").strip_prefix("pageinit ")
            && fenced
        {
            found.push(command(call));
        }
    }
    found
}

/// The words of a command as a shell splits them; single quotes keep words together.
fn words(line: &str) -> Vec<String> {
    let mut out = vec![];
    for (part, text) in line.split('\'').enumerate() {
        match part % 2 {
            1 => out.push(text.to_owned()),
            _ => out.extend(text.split_whitespace().map(str::to_owned)),
        }
    }
    out
}

/// Replaces the value of a flag, or adds the flag.
fn set(args: &mut Vec<String>, flag: &str, value: &str) {
    match args.iter().position(|arg| arg == flag) {
        Some(at) => args[at + 1] = value.into(),
        None => args.extend([flag.into(), value.into()]),
    }
}

/// Runs an example, a comparison on less memory and in fewer rounds than printed.
#[track_caller]
fn works(line: &str) {
    let mut args = words(line);
    if args[0] == "compare" {
        set(&mut args, "--runs", "2");
        set(&mut args, "--buffer", "16MiB");
    }
    let ran: Ran = run(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let lacks_store = ran.status == Some(7) && ran.stderr.contains("which this CPU lacks");
    if lacks_store {
        return eprintln!("notice: not tested: pageinit {line}: {}", ran.stderr);
    }
    assert!(!ran.ok().stdout.is_empty());
}

#[test]
fn examples_of_every_help_text_run() {
    let mut all = BTreeSet::new();
    for verb in VERBS {
        let help = run(&[verb, &["--help"]].concat()).ok();
        assert_eq!(help.stderr, "");
        let found = examples_of(&help.stdout);
        assert!(!found.is_empty(), "the help of {verb:?} has no examples:\n{}", help.stdout);
        all.extend(found);
    }
    all.iter().for_each(|line| works(line));
}

#[test]
fn examples_of_the_readme_run() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let Ok(text) = std::fs::read_to_string(path) else { return };
    console_lines(&text).iter().for_each(|line| works(line));
}

#[test]
fn every_verb_of_the_help_text_is_tested() {
    let help = run(&["--help"]).ok().stdout;
    let below = help.lines().skip_while(|line| line.trim() != "Commands:").skip(1);
    let verbs = below.take_while(|line| !line.trim().is_empty());
    let verbs = verbs.filter_map(|line| line.split_whitespace().next()).filter(|v| *v != "help");
    for verb in verbs {
        assert!(VERBS.iter().any(|known| known == &[verb]), "add {verb} to VERBS");
    }
}

#[test]
fn commands_are_found_and_split() {
    let text = "pageinit not here\n```console\n$ pageinit machine -m 'a b' --json\nout\n```\n";
    assert_eq!(console_lines(text), ["machine -m 'a b' --json"]);
    assert_eq!(words("machine -m 'a b' --json"), ["machine", "-m", "a b", "--json"]);
    let help = "x\nExamples:\n  pageinit a   explained\n  pageinit b c\n\nExit status: 0";
    assert_eq!(examples_of(help), ["a", "b c"]);
}
