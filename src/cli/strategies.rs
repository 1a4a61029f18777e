//! `pageinit strategies`: what there is to compare.

use super::exit::Failure;
use super::output;
use crate::host::store::Store;
use crate::plan::Strategy;
use crate::plan::strategies::StoreRole;
use crate::report;
use crate::study::candidates::{default_store, fits};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Arguments of `strategies`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  pageinit strategies\n  pageinit strategies --json")]
pub(super) struct Args {
    /// Write one JSON document
    #[arg(long)]
    json: bool,
}

/// Lists the strategies and the stores.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    if args.json {
        output::json(&output::document("pageinit/strategies/1", &[], body()))?;
    } else {
        output::data(&report::strategies::text(&strategy_rows(), &store_rows()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn strategy_rows() -> Vec<[String; 5]> {
    let row = |s: Strategy| {
        [
            s.name().to_owned(),
            s.who_zeroes().into(),
            s.who_fills().into(),
            stores_of(s),
            s.stands_for().into(),
        ]
    };
    Strategy::ALL.into_iter().map(row).collect()
}

fn stores_of(strategy: Strategy) -> String {
    let role = strategy.store_role();
    let default = default_store(role).unwrap_or_default();
    match role {
        StoreRole::Fixed => "fixed".into(),
        StoreRole::Zero => format!("any; {default}"),
        StoreRole::TemporalImage => format!("temporal images; {default}"),
        StoreRole::NonTemporalImage => format!("non-temporal images; {default}"),
    }
}

fn store_rows() -> Vec<[String; 5]> {
    let row = |info: crate::host::store::StoreInfo| {
        [
            info.name.to_owned(),
            info.kind.to_string(),
            if info.writes_images { "images, zeroes" } else { "zeroes" }.into(),
            if info.available { "yes".into() } else { format!("no: needs {}", info.needs) },
            info.about.into(),
        ]
    };
    Store::table().into_iter().map(row).collect()
}

fn body() -> Value {
    let available = Store::available();
    let strategies: Vec<Value> = Strategy::ALL
        .into_iter()
        .map(|s| {
            let role = s.store_role();
            let fitting: Vec<&str> =
                available.iter().filter(|store| fits(**store, role)).map(|s| s.name()).collect();
            json!({
                "strategy": s.name(),
                "who_zeroes": s.who_zeroes(),
                "who_fills": s.who_fills(),
                "stands_for": s.stands_for(),
                "default_store": default_store(role),
                "stores_here": fitting,
            })
        })
        .collect();
    let stores: Vec<Value> = Store::table()
        .into_iter()
        .map(|s| {
            json!({
                "store": s.name,
                "kind": s.kind,
                "writes_images": s.writes_images,
                "available": s.available,
                "needs": s.needs,
                "about": s.about,
            })
        })
        .collect();
    json!({ "strategies": strategies, "stores": stores })
}
