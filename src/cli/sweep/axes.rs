//! From the texts of the axes to values, counted before any range is expanded.

use super::{Args, Machine};
use crate::cli::estimate::{chunk_pages, strategy};
use crate::cli::exit::Failure;
use crate::cli::inputs;
use crate::kernel::KernelModel;
use crate::plan::Strategy;
use crate::study::sweep::values::{Values, ValuesError};
use crate::study::sweep::{Axes, check_points, most_threads};
use crate::units::Bytes;

/// Loads the machine; the first page size also holds where its input does not say.
pub(super) fn machine(args: &Args) -> Result<Machine, Failure> {
    let sizes = args.page_size.as_deref().map(page_sizes).transpose()?;
    let first = sizes.and_then(|sizes| sizes.all().first().copied());
    args.machine.load(first)
}

/// What is varied.
pub(super) fn axes(args: &Args, machine: &Machine) -> Result<Axes, Failure> {
    let most = u64::from(most_threads(machine));
    let threads = parse("threads", &args.threads, most, |text| {
        text.parse::<u32>().ok().filter(|n| *n > 0).map(u64::from)
    })?;
    let (auto, chunks) = chunks(&args.chunk)?;
    let nodes = optional(args.nodes.as_deref(), |text| {
        let with_memory = machine.nodes.iter().filter(|n| !n.memory.is_empty()).count();
        parse("nodes", text, with_memory as u64, |text| text.parse().ok())
    })?;
    let memory = optional(args.memory.as_deref(), |text| {
        parse("memory", text, machine.memory_bytes(), size)
    })?;
    let pages = optional(args.page_size.as_deref(), page_sizes)?;
    let strategies = strategies(&args.strategy)?;
    let kernels = kernels(args, machine)?;
    let count = |values: &Option<Values>| values.as_ref().map_or(1, Values::count);
    let chunk_count = chunks.as_ref().map_or(0, Values::count) + u128::from(auto);
    let counts = [
        strategies.len() as u128,
        kernels.len() as u128,
        threads.count(),
        chunk_count,
        count(&nodes),
        count(&memory),
        count(&pages),
    ];
    // Before any range is expanded: it may hold millions.
    check_points(counts.into_iter().fold(1, u128::saturating_mul), args.max_points)?;
    let narrow = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    let all = |values: Option<Values>| match values {
        Some(values) => values.all().into_iter().map(Some).collect(),
        None => vec![None],
    };
    let sizes = chunks.map(|chunks| chunks.all()).unwrap_or_default();
    if pages.is_none() {
        sizes.iter().try_for_each(|bytes| chunk_pages(Bytes(*bytes), machine).map(|_| ()))?;
    }
    Ok(Axes {
        kernels,
        strategies,
        threads: threads.all().into_iter().map(narrow).collect(),
        chunks: auto.then_some(None).into_iter().chain(sizes.into_iter().map(Some)).collect(),
        nodes: all(nodes).into_iter().map(|n: Option<u64>| n.map(narrow)).collect(),
        memory_bytes: all(memory),
        page_bytes: all(pages),
    })
}

fn optional(
    text: Option<&str>,
    parse: impl Fn(&str) -> Result<Values, Failure>,
) -> Result<Option<Values>, Failure> {
    text.map(parse).transpose()
}

fn parse(
    flag: &str,
    text: &str,
    most: u64,
    unit: impl Fn(&str) -> Option<u64>,
) -> Result<Values, Failure> {
    Values::parse(text, most, unit).map_err(|error| usage(flag, &error))
}

fn usage(flag: &str, error: &ValuesError) -> Failure {
    let sizes = match (flag, error) {
        ("memory" | "chunk" | "page-size", ValuesError::Syntax(_)) => {
            "; sizes need a unit: 64GiB..1TiB*2"
        }
        _ => "",
    };
    Failure::usage(format!("--{flag}: {error}{sizes}"))
}

fn size(text: &str) -> Option<u64> {
    text.parse::<Bytes>().ok().map(|bytes| bytes.0)
}

fn page_sizes(text: &str) -> Result<Values, Failure> {
    parse("page-size", text, 0, size)
}

/// Whether padata's own rule is among them, and the sizes.
fn chunks(text: &str) -> Result<(bool, Option<Values>), Failure> {
    let items: Vec<&str> = text.split(',').map(str::trim).collect();
    let sizes: Vec<&str> = items.iter().copied().filter(|item| *item != "auto").collect();
    let auto = sizes.len() < items.len();
    if auto && sizes.is_empty() {
        return Ok((true, None));
    }
    Ok((auto, Some(parse("chunk", &sizes.join(","), 0, size)?)))
}

fn strategies(names: &[String]) -> Result<Vec<Strategy>, Failure> {
    let mut out = Vec::new();
    for name in names {
        let found = strategy(name.trim())?;
        if !out.contains(&found) {
            out.push(found);
        }
    }
    Ok(out)
}

/// The kernels, each version once: points are told apart by it.
fn kernels(args: &Args, machine: &Machine) -> Result<Vec<KernelModel>, Failure> {
    if args.kernel.is_empty() {
        return Ok(vec![inputs::kernel_model(machine, None)?.0]);
    }
    let mut out: Vec<KernelModel> = Vec::new();
    for text in &args.kernel {
        let model = inputs::kernel_model(machine, Some(text.trim()))?.0;
        match out.iter().find(|known| known.version == model.version) {
            None => out.push(model),
            Some(known) if *known == model => {}
            Some(known) => {
                return Err(Failure::usage(format!(
                    "--kernel {text}: {} is in this sweep already as {}; sweep it on its own",
                    model.version, known.release
                )));
            }
        }
    }
    Ok(out)
}
