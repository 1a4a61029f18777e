//! `numactl -H`: nodes, their CPUs and sizes, distances.
//!
//! [`parse`] reads the whole text, quoted or wrapped by a mail program, cut off at
//! the end, and the old form without CPUs. Sizes are what Linux manages, somewhat
//! less than there is. Makes an [`Evidence`].

use super::evidence::{Evidence, Known};
use super::text::dequoted;
use super::{MachineError, check::MAX_NID, cpulist};
use crate::pfn::Nid;
use crate::units::MIB;
use crate::warning::Warning;

/// Reads the text of the input called `name`.
///
/// # Errors
///
/// A line contradicts another one, or there is no node.
pub fn parse(name: &str, text: &str) -> Result<Evidence, MachineError> {
    parse_lines(name, text.lines().zip(1u64..))
}

/// Reads numbered lines, which may stand apart in the input called `name`.
///
/// # Errors
///
/// As [`parse`].
pub fn parse_lines<'l>(
    name: &str,
    lines: impl Iterator<Item = (&'l str, u64)>,
) -> Result<Evidence, MachineError> {
    let mut reader = Reader { out: Evidence::new(name, "numactl -H"), ..Reader::default() };
    for (line, number) in lines {
        reader.line(dequoted(line), number)?;
        reader.last = number;
    }
    reader.finish()
}

#[derive(Default)]
struct Reader {
    out: Evidence,
    /// Ids of `available:` and its line.
    listed: Option<(Vec<u32>, u64)>,
    /// The node whose CPU list may go on in the next line.
    open_list: Option<Nid>,
    /// Columns of the distance table, once its head was seen.
    columns: Option<Vec<Nid>>,
    rows: Vec<(Nid, Vec<u32>, u64)>,
    last: u64,
}

impl Reader {
    fn fail(&self, line: u64, problem: impl Into<String>) -> MachineError {
        MachineError::content(&self.out.input, usize::try_from(line).ok(), problem)
    }

    fn line(&mut self, line: &str, number: u64) -> Result<(), MachineError> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_numbers = !words.is_empty() && words.iter().all(|w| w.parse::<u32>().is_ok());
        if let (Some(nid), true) = (self.open_list, is_numbers) {
            return self.cpus(nid, &words, number);
        }
        self.open_list = None;
        match words.as_slice() {
            ["available:", count, "nodes" | "node", rest @ ..] => {
                let ids = rest.first().map(|ids| ids.trim_matches(['(', ')']));
                let ids = ids.and_then(|ids| cpulist::parse(ids).ok());
                if let Some(last) =
                    ids.as_ref().and_then(|ids| ids.last()).filter(|&&n| n > MAX_NID)
                {
                    return Err(self.fail(number, format!("{last} is above the highest node id")));
                }
                let count = count.parse().unwrap_or(0).min(MAX_NID + 1);
                self.listed = Some((ids.unwrap_or_else(|| (0..count).collect()), number));
                Ok(())
            }
            ["node", id, "cpus:", list @ ..] => {
                let nid = self.nid(id, number)?;
                self.open_list = Some(nid);
                self.cpus(nid, list, number)
            }
            ["node", id, "size:", size, "MB"] => self.size(id, size, number),
            ["node", "distances:"] => Ok(()),
            ["node", ids @ ..] if self.columns.is_none() => {
                let ids: Option<Vec<Nid>> = ids.iter().map(|i| i.parse().ok().map(Nid)).collect();
                self.columns = ids.filter(|ids| !ids.is_empty());
                Ok(())
            }
            [id, row @ ..] if id.ends_with(':') && self.columns.is_some() => {
                self.row(id, row, number);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn nid(&self, id: &str, line: u64) -> Result<Nid, MachineError> {
        let nid = id.parse().ok().filter(|&id| id <= MAX_NID);
        let nid = nid.ok_or_else(|| self.fail(line, format!("{id:?} is not a node id")))?;
        match &self.listed {
            Some((ids, at)) if !ids.contains(&nid) => Err(self.fail(
                line,
                format!("node {nid} is not one of nodes {} of line {at}", cpulist::format(ids)),
            )),
            _ => Ok(Nid(nid)),
        }
    }

    fn cpus(&mut self, nid: Nid, words: &[&str], line: u64) -> Result<(), MachineError> {
        let list = cpulist::parse(&words.join(","));
        let mut ids = list.map_err(|e| self.fail(line, format!("CPUs of node {nid}: {e}")))?;
        let open = self.out.nodes.get(&nid).and_then(|n| n.cpus.clone());
        let at = open.as_ref().map_or(line, |k| k.at.line.unwrap_or(line));
        if let Some(known) = open {
            let is_known = |id| known.value.binary_search(id).is_ok();
            if words.is_empty() || ids.iter().any(is_known) {
                let problem = format!("node {nid} has its CPUs in line {at} already");
                return Err(self.fail(line, problem));
            }
            ids.extend(known.value);
            ids.sort_unstable();
        }
        let known = self.out.known(ids, at);
        self.out.node(nid).cpus = Some(known);
        let lists = self.out.nodes.values().filter_map(|n| n.cpus.as_ref());
        let count: usize = lists.map(|k| k.value.len()).sum();
        self.out.check_cpu_count(count, line)
    }

    fn size(&mut self, id: &str, size: &str, line: u64) -> Result<(), MachineError> {
        let nid = self.nid(id, line)?;
        // `<not available>` and a cut number are no sizes.
        let bytes = size.parse::<u64>().ok().and_then(|mib| mib.checked_mul(MIB));
        let Some(bytes) = bytes else { return Ok(()) };
        let known = self.out.known(bytes, line);
        let own = self.out.node(nid).bytes.get_or_insert_with(|| known.clone());
        if own.value != bytes {
            let at = own.at.line.unwrap_or(0);
            return Err(self.fail(line, format!("node {nid} has another size in line {at}")));
        }
        Ok(())
    }

    fn row(&mut self, id: &str, words: &[&str], line: u64) {
        let nid = id.trim_end_matches(':').parse().ok().map(Nid);
        let row: Option<Vec<u32>> = words.iter().map(|w| w.parse().ok()).collect();
        if let (Some(nid), Some(row)) = (nid, row) {
            self.rows.push((nid, row, line));
        }
    }

    fn finish(mut self) -> Result<Evidence, MachineError> {
        let listed = self.listed.take();
        if let Some((ids, line)) = &listed {
            for &id in ids {
                self.out.node(Nid(id));
            }
            self.out.all_nodes = Some(self.out.place(Some(*line)));
        }
        if self.out.nodes.is_empty() {
            return Err(self.fail(1, "there is no node; expected the text of numactl -H"));
        }
        let is_incomplete = self.out.nodes.values().any(|n| n.bytes.is_none());
        if is_incomplete {
            self.out.cut_off = Some(self.out.place(Some(self.last)));
        }
        if !is_incomplete && listed.is_none() {
            let first = self.out.nodes.values().find_map(|n| n.bytes.as_ref());
            self.out.all_nodes = first.map(|k| k.at.clone());
        }
        self.distances();
        Ok(self.out)
    }

    fn distances(&mut self) {
        let nodes = self.out.nodes.len();
        let Some(columns) = self.columns.take() else { return };
        let fits = columns.len() == nodes
            && self.rows.len() == nodes
            && self.rows.iter().zip(&columns).all(|((nid, row, _), column)| {
                nid == column && row.len() == nodes && row.iter().all(|d| (1..=255).contains(d))
            });
        if !fits {
            self.out.warnings.push(Warning::new(
                "distances-incomplete",
                "the table of distances is cut off and is not used",
                "give the whole text of numactl -H",
            ));
            return;
        }
        let line = self.rows.first().map_or(0, |(_, _, line)| *line);
        let rows = self.rows.drain(..).map(|(_, row, _)| row).collect();
        let at = self.out.place(Some(line));
        self.out.distances = Some(Known { value: (columns, rows), at });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SAMPLE: &str = "available: 3 nodes (0-1,4)\nnode 0 cpus: 0 1 2\n3 4\n\
        node 0 size: 2000 MB\nnode 0 free: 1 MB\nnode 1 cpus: 5 6\nnode 1 size: 0 MB\n\
        node 1 free: 0 MB\nnode 4 cpus:\nnode 4 size: 1000 MB\nnode 4 free: 900 MB\n\
        node distances:\nnode   0   1   4 \n  0:  10  20  40 \n\
        1:  20  10  41 \n  4:  40  41  10 \n";

    #[test]
    fn memoryless_cpuless_and_sparse_nodes() {
        for text in
            [SAMPLE.to_string(), SAMPLE.replace("\n", "\n> > "), format!("# numactl -H\n{SAMPLE}")]
        {
            let found = parse("n", &text).unwrap();
            assert_eq!(found.nodes.len(), 3);
            let node = |nid| &found.nodes[&Nid(nid)];
            assert_eq!(node(0).cpus.as_ref().unwrap().value, [0, 1, 2, 3, 4]);
            assert_eq!(node(1).bytes.as_ref().unwrap().value, 0);
            assert!(node(4).cpus.as_ref().unwrap().value.is_empty());
            assert_eq!(found.distances.as_ref().unwrap().value.1[1], [20, 10, 41]);
            assert!(found.cut_off.is_none() && found.all_nodes.is_some());
        }
    }

    #[test]
    fn the_old_form_has_no_cpus() {
        let text = "available: 2 nodes (0-1)\nnode 0 size: 2047 MB\nnode 0 free: 5 MB\n\
                    node 1 size: 2048 MB\nnode distances:\nnode   0   1\n\
                    0:  10  20\n  1:  20  10\n";
        let found = parse("n", text).unwrap();
        assert!(found.nodes.values().all(|n| n.cpus.is_none() && n.bytes.is_some()));
        assert!(found.distances.is_some());
    }

    #[test]
    fn what_is_cut_off_is_known_to_be() {
        let cut = &SAMPLE[..SAMPLE.find("node 4 size: 10").unwrap() + 15];
        let found = parse("n", cut).unwrap();
        assert_eq!(found.cut_off.unwrap().line, Some(10));
        let cut = &SAMPLE[..SAMPLE.find("  4:").unwrap()];
        let found = parse("n", cut).unwrap();
        assert_eq!(found.warnings[0].code, "distances-incomplete");
    }

    #[test]
    fn contradictions_have_lines() {
        let error = |text: &str| parse("n", text).unwrap_err().to_string();
        assert!(error("available: 2 nodes (0-1)\nnode 7 cpus: 0\n").starts_with("n:2: node 7"));
        assert!(error("node 0 size: 1 MB\nnode 0 size: 2 MB\n").contains("line 1"));
        assert!(error("node 0 cpus: 0\nnode 0 cpus: 0 1\n").starts_with("n:2:"));
        assert!(error("node 0 cpus: 0 x\n").contains("CPUs of node 0"));
        assert!(error("nothing\n").contains("no node"));
    }

    // Short texts that name many nodes or CPUs.
    #[test]
    fn no_more_nodes_and_cpus_than_there_can_be() {
        let error = |text: &str| parse("n", text).unwrap_err().to_string();
        assert!(error("available: 1 nodes (0-65535)\n").starts_with("n:1: 65535 is above"));
        let error = error("node 0 cpus: 0-65535\nnode 1 cpus: 0-65535\n");
        assert!(error.starts_with("n:2: the nodes have 131072 CPUs"), "{error}");
    }

    proptest! {
        #[test]
        fn damaged_texts_never_fail_badly(cut in 0usize..400, at in 0usize..400, with in ".{0,3}") {
            let mut text: String = SAMPLE.chars().take(cut).collect();
            let at = at.min(text.len());
            text.insert_str(at, &with);
            let _ = parse("n", &text);
        }
    }
}
