//! The one look of tables: a border, a header, numbers to the right.

use comfy_table::{CellAlignment, Row, Table, presets};

/// An empty table whose columns from `numbers_from` on are aligned to the right.
pub(super) fn grid(header: impl Into<Row>, numbers_from: usize) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY).set_header(header);
    for column in table.column_iter_mut().skip(numbers_from) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
