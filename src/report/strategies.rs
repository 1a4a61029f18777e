//! The lists that `pageinit strategies` shows.
//!
//! Rows come in as plain texts, because this layer knows neither plans nor stores.

use comfy_table::Table;

/// One strategy: name, who zeroes, who fills, its stores, what it stands for.
pub type StrategyRow = [String; 5];

/// One store: name, kind, what it can write, whether it is here, what it is.
pub type StoreRow = [String; 5];

/// Both tables.
pub fn text(strategies: &[StrategyRow], stores: &[StoreRow]) -> String {
    let mut first = plain(["strategy", "who zeroes", "who fills", "stores", "stands for"]);
    first.add_rows(strategies);
    let mut second = plain(["store", "kind", "writes", "this CPU", "what it is"]);
    second.add_rows(stores);
    format!("{first}\n\n{second}\n")
}

fn plain(header: [&str; 5]) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::UTF8_BORDERS_ONLY).set_header(header);
    table
}
