//! Every example of the help texts and of README.md runs as it is printed.

mod cli;

use cli::{Ran, pageinit, run};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const VERBS: [&[&str]; 21] = [
    &[],
    &["machine"],
    &["layout"],
    &["capture"],
    &["compare"],
    &["calibrate"],
    &["estimate"],
    &["sweep"],
    &["validate"],
    &["report"],
    &["diff"],
    &["strategies"],
    &["doctor"],
    &["schema"],
    &["completions"],
    &["man"],
    &["lab"],
    &["lab", "prefetch"],
    &["lab", "clear-huge"],
    &["lab", "mremap"],
    &["lab", "pte-scan"],
];

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

/// Makes an experiment short, and keeps it from changing settings of this system.
fn shorten(args: &mut Vec<String>) {
    set(args, "--runs", "2");
    let (sizes, flags): (&[&str], &[&str]) = match args[1].as_str() {
        "prefetch" => (&["--buffer"], &[]),
        "clear-huge" => (&["--buffer", "--touch"], &["--no-gigantic", "--no-settings"]),
        "mremap" => (&["--size"], &[]),
        _ => (&["--size", "--live-size"], &["--no-settings"]),
    };
    sizes.iter().for_each(|flag| set(args, flag, "2MiB"));
    for flag in flags.iter().filter(|flag| !args.contains(&(**flag).to_owned())).collect::<Vec<_>>()
    {
        args.push((*flag).to_owned());
    }
}

/// A boot log and the text of `numactl -H` of one small machine of nobody.
const BOOT_LOG: &str = "\
[    0.000000] Linux version 6.12.1 (someone@example) #1 SMP PREEMPT_DYNAMIC
[    0.000000] Early memory node ranges
[    0.000000]   node   0: [mem 0x0000000000100000-0x00000000bfffffff]
[    0.000000]   node   1: [mem 0x0000000100000000-0x00000001ffffffff]
[    0.100000] smp: Brought up 2 nodes, 4 CPUs
[    0.200000] node 1 deferred pages initialised in 12ms
";
const NUMACTL: &str = "\
available: 2 nodes (0-1)
node 0 cpus: 0 1
node 0 size: 3020 MB
node 1 cpus: 2 3
node 1 size: 4030 MB
node distances:
node   0   1
  0:  10  20
  1:  20  10
";

/// Figures without any figure: what is left out is said, too.
const FIGURES: &str =
    r#"[{"id": "example", "machine": {"arch": "x86_64", "nodes": 2}, "measurements": []}]"#;

/// Records of one host before and after something, and of two hosts.
fn records() -> [(&'static str, String); 4] {
    let fixture = |name: &str| {
        let path = format!("{}/fixtures/records/{name}", env!("CARGO_MANIFEST_DIR"));
        fs::read_to_string(path).expect("the fixture is there")
    };
    let (before, node) = (fixture("compare-v1.json"), fixture("calibration-v1.json"));
    let mut after: serde_json::Value = serde_json::from_str(&before).expect("a record");
    for point in after["points"].as_array_mut().expect("points") {
        // So fast that no noise hides it: with --strict the example ends with 0, too.
        let runs = point["samples_ns"].as_array_mut().expect("runs");
        runs.iter_mut().for_each(|ns| *ns = (ns.as_u64().expect("ns") / 100).into());
    }
    [
        ("before.json", before),
        ("after.json", after.to_string()),
        ("node1.json", node.clone()),
        ("node2.json", node),
    ]
}

/// A folder in which examples find the project's fixtures and leave their files.
fn scratch() -> TempDir {
    let dir = TempDir::new().expect("a temporary folder");
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    std::os::unix::fs::symlink(fixtures, dir.path().join("fixtures")).expect("a link");
    for (name, text) in
        [("my-figures.json", FIGURES), ("boot.log", BOOT_LOG), ("numactl.txt", NUMACTL)]
    {
        fs::write(dir.path().join(name), text).expect("the temporary folder is writable");
    }
    for (name, text) in records() {
        fs::write(dir.path().join(name), text).expect("the temporary folder is writable");
    }
    dir
}

/// Runs an example in `dir`: measurements on less memory and in fewer rounds than
/// printed, and `> FILE` done as a shell does it.
#[track_caller]
fn works(dir: &Path, line: &str) {
    let mut args = words(line);
    let into = args.iter().position(|arg| arg == ">").map(|at| args.split_off(at).swap_remove(1));
    if ["compare", "calibrate"].contains(&args[0].as_str()) {
        set(&mut args, "--runs", "2");
        set(&mut args, "--buffer", "16MiB");
    }
    if args[0] == "lab" {
        shorten(&mut args);
    }
    let output = pageinit().current_dir(dir).args(&args).output().expect("the program starts");
    let ran = Ran::of(&args, output);
    let lacks_store = ran.status == Some(7) && ran.stderr.contains("which this CPU lacks");
    if lacks_store {
        return eprintln!("notice: not tested: pageinit {line}: {}", ran.stderr);
    }
    let ran = ran.ok();
    let into_file = args.iter().any(|arg| arg == "-o" || arg == "--output");
    assert!(into_file || !ran.stdout.is_empty(), "{ran:?}");
    if let Some(name) = into {
        fs::write(dir.join(name), ran.stdout).expect("the temporary folder is writable");
    }
}

/// Runs examples in their order, each once: some use what others wrote.
fn all_work(lines: Vec<String>) {
    let dir = scratch();
    let mut done: Vec<String> = Vec::new();
    for line in lines {
        if !done.contains(&line) {
            works(dir.path(), &line);
            done.push(line);
        }
    }
}

#[test]
fn examples_of_every_help_text_run() {
    let mut all = Vec::new();
    for verb in VERBS {
        let help = run(&[verb, &["--help"]].concat()).ok();
        assert_eq!(help.stderr, "");
        let found = examples_of(&help.stdout);
        assert!(!found.is_empty(), "the help of {verb:?} has no examples:\n{}", help.stdout);
        all.extend(found);
    }
    all_work(all);
}

#[test]
fn examples_of_the_readme_and_of_the_pages_of_the_lab_run() {
    let mut all = Vec::new();
    for name in ["README.md", "docs/lab.md"] {
        let path = format!("{}/{name}", env!("CARGO_MANIFEST_DIR"));
        let Ok(text) = fs::read_to_string(path) else { continue };
        all.extend(console_lines(&text));
    }
    all_work(all);
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
    let help = run(&["lab", "--help"]).ok().stdout;
    for verb in ["prefetch", "clear-huge", "mremap", "pte-scan"] {
        assert!(help.contains(&format!("pageinit lab {verb}")), "{verb} has no example:\n{help}");
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
