//! What boot logs say about initialisation, as a table and as JSON.
//!
//! [`BootTimes`] is one boot with its times; [`text`] prints all, [`rows_json`] and
//! [`boot_json`] make the parts of `machine --init-times --json`.

use crate::machine::bootlog::{Caveat, InitTime};
use crate::units::{grouped, three_digits};
use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The times of one boot.
#[derive(Clone, Debug)]
pub struct BootTimes {
    /// The input.
    pub input: String,
    /// Which boot of it, counted from 1.
    pub number: usize,
    /// One line about the boot.
    pub summary: String,
    /// The kernel's release.
    pub release: Option<String>,
    /// The times.
    pub times: Vec<InitTime>,
    /// Threads per time, where known.
    pub threads: Vec<Option<u32>>,
    /// Device memory: pages, milliseconds, line.
    pub devices: Vec<(u64, u64, u64)>,
}

/// All boots as tables for people, with a newline at the end.
pub fn text(boots: &[BootTimes]) -> String {
    let mut out = String::new();
    for boot in boots {
        out += &format!("{}, boot {}: {}\n", boot.input, boot.number, boot.summary);
        if !boot.times.is_empty() {
            out += &trimmed(&table(boot).to_string());
        }
        for (pages, ms, line) in &boot.devices {
            let pages = grouped(*pages);
            out += &format!("device memory: {pages} pages in {ms} ms (line {line})\n");
        }
        let caveats: BTreeSet<Caveat> =
            boot.times.iter().flat_map(|t| t.caveats.iter().copied()).collect();
        for caveat in caveats {
            out += &format!("{}: {caveat}\n", caveat.code());
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out + "\n"
}

fn trimmed(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn table(boot: &BootTimes) -> Table {
    let mut table = Table::new();
    let header = ["node", "pages", "ms", "ns per page", "threads", "tick ms", "line", "caveats"];
    table.load_style(presets::UTF8_BORDERS_ONLY).set_header(header);
    let dash = || "-".to_string();
    for (time, threads) in boot.times.iter().zip(&boot.threads) {
        let node = match &time.zone {
            Some(zone) => format!("{} {zone}", time.nid),
            None => time.nid.to_string(),
        };
        let caveats: Vec<_> = time.caveats.iter().map(|c| c.code()).collect();
        table.add_row([
            node,
            time.pages.map_or_else(dash, grouped),
            ms(time.ms),
            time.ns_per_page.map_or_else(dash, three_digits),
            threads.map_or_else(dash, |t| t.to_string()),
            time.step_ms.map_or_else(dash, three_digits),
            time.line.to_string(),
            caveats.join(" "),
        ]);
    }
    for index in 0..7 {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Milliseconds: whole as the kernel prints them, else to a tenth.
fn ms(ms: f64) -> String {
    if ms.fract() == 0.0 { format!("{ms}") } else { format!("{ms:.1}") }
}

/// The rows of `init_times`, each with its boot.
pub fn rows_json(boot: &BootTimes) -> Vec<Value> {
    let row = |(time, threads): (&InitTime, &Option<u32>)| {
        let whole = time.ms.fract() == 0.0 && time.ms >= 0.0;
        json!({
            "boot": boot.number,
            "input": boot.input,
            "nid": time.nid,
            "zone": time.zone,
            "pages": time.pages,
            "node_pages": time.node_pages,
            "ms": if whole { json!(time.ms as u64) } else { json!(time.ms) },
            "ns_per_page": time.ns_per_page,
            "threads": threads,
            "step_ms": time.step_ms,
            "caveats": time.caveats.iter().map(|c| c.code()).collect::<Vec<_>>(),
            "line": time.line,
        })
    };
    boot.times.iter().zip(&boot.threads).map(row).collect()
}

/// What is known of a boot beside its times.
pub fn boot_json(boot: &BootTimes) -> Value {
    let device =
        |&(pages, ms, line): &(u64, u64, u64)| json!({ "pages": pages, "ms": ms, "line": line });
    json!({
        "input": boot.input,
        "boot": boot.number,
        "kernel": boot.release,
        "summary": boot.summary,
        "init_times": boot.times.len(),
        "device_init_times": boot.devices.iter().map(device).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::bootlog::BootLog;

    fn boots(log: &str) -> Vec<BootTimes> {
        let log = BootLog::read("log", log.as_bytes()).unwrap();
        let of = |(boot, number): (&crate::machine::bootlog::Boot, usize)| BootTimes {
            input: "log".into(),
            number,
            summary: boot.summary(),
            release: None,
            times: boot.init_times(),
            threads: vec![Some(1); boot.init.len()],
            devices: vec![(5, 6, 7)],
        };
        log.boots.iter().zip(1..).map(of).collect()
    }

    const LOG: &str = "node 0 initialised, 1000000 pages in 20ms\n\
                       node 0 initialised, 32170688 pages in 1ms\n";

    #[test]
    fn boots_stand_one_after_another() {
        let text = text(&boots(LOG));
        for words in [
            "log, boot 1: lines 1 to 1, unknown kernel, nodes 0",
            "boot 2",
            "1 000 000",
            "20.0",
            "stalled-tick: impossibly short",
            "device memory: 5 pages in 6 ms (line 7)",
        ] {
            assert!(text.contains(words), "{words} is not in\n{text}");
        }
    }

    #[test]
    fn rows_have_null_where_nothing_is_known() {
        let boots = boots(LOG);
        let row = &rows_json(&boots[1])[0];
        assert_eq!(
            (&row["nid"], &row["pages"], &row["ms"]),
            (&json!(0), &json!(32_170_688), &json!(1))
        );
        assert!(row["ns_per_page"].is_null());
        assert_eq!(row["caveats"], json!(["stalled-tick"]));
        assert_eq!(rows_json(&boots[0])[0]["ns_per_page"], json!(20.0));
        assert!(boot_json(&boots[0])["kernel"].is_null());
    }
}
