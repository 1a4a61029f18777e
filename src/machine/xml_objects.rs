//! The objects of hwloc XML, checked before hwloc's C code trusts them.
//!
//! hwloc follows null pointers and aborts on objects whose sets are missing or do
//! not nest; one wrong letter in a file is enough. [`Objects`] is told of every
//! start and end by [`super::xml`] and keeps the rules that hwloc relies on.

use super::cpulist::MAX_CPU_ID;
use std::collections::HashSet;

/// The four sets of every object that has CPUs or memory.
const SETS: [&str; 4] = ["cpuset", "complete_cpuset", "nodeset", "complete_nodeset"];

/// Elements that may stand inside an object.
const INSIDE: [&str; 5] = ["object", "info", "userdata", "page_type", "indexes"];

/// A set of small numbers in words of 32, without zeros at the end.
type Set = Vec<u32>;

/// What kind of object a type name means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Normal,
    Pu,
    Node,
    MemoryCache,
    /// Devices and notes, which have no sets.
    Other,
}

/// An object whose end has not come yet.
#[derive(Debug)]
struct Open {
    kind: Kind,
    sets: [Set; 4],
    /// CPUs and nodes that its children have taken so far.
    taken: Set,
}

/// The objects seen so far.
#[derive(Debug, Default)]
pub(super) struct Objects {
    open: Vec<Open>,
    ids: HashSet<u64>,
    with_ids: Option<bool>,
    nodes: HashSet<u64>,
    pus: HashSet<u64>,
    seen_root: bool,
}

type Step = Result<(), String>;

impl Objects {
    /// An element begins. `depth` is the number of elements it lies in.
    pub(super) fn begin(&mut self, tag: &str, attributes: &[(&str, &str)], depth: usize) -> Step {
        for (name, text) in attributes.iter().filter(|(name, _)| name.ends_with("set")) {
            parse(text).ok_or_else(|| no_set(tag, name, text))?;
        }
        if tag != "object" {
            let is_foreign = !self.open.is_empty() && !INSIDE.contains(&tag);
            return if is_foreign { Err(format!("<{tag}> inside an <object>")) } else { Ok(()) };
        }
        if depth != self.open.len() + 1 {
            return Err("an <object> lies in another element than an <object>".into());
        }
        let get = |name: &str| attributes.iter().find(|(n, _)| *n == name).map(|(_, v)| *v);
        let name = get("type").ok_or("an <object> has no type")?;
        let kind = kind_of(name).ok_or_else(|| format!("unknown object type {name:?}"))?;
        self.check_id(name, get("gp_index"))?;
        if self.open.is_empty() {
            self.check_root(name)?;
        }
        if kind == Kind::Other {
            self.open.push(Open { kind, sets: Default::default(), taken: Set::new() });
            return Ok(());
        }
        let sets = sets_of(name, get)?;
        self.check_place(name, kind, &sets)?;
        self.check_index(name, kind, get("os_index"), &sets)?;
        self.open.push(Open { kind, sets, taken: Set::new() });
        Ok(())
    }

    /// The element `tag` ends.
    pub(super) fn end(&mut self, tag: &str) {
        if tag == "object" {
            self.open.pop();
        }
    }

    /// How many PU and NUMANode objects there were.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.pus.len(), self.nodes.len())
    }

    /// The file ends; there must have been a whole machine.
    pub(super) fn finish(&self) -> Step {
        match (self.pus.is_empty(), self.nodes.is_empty()) {
            (true, _) => Err("the topology has no PU object".into()),
            (_, true) => Err("the topology has no NUMANode object".into()),
            _ => Ok(()),
        }
    }

    /// Either every object has a `gp_index` of its own or none has any; hwloc gives
    /// numbers to those without, which then clash.
    fn check_id(&mut self, name: &str, id: Option<&str>) -> Step {
        let with_ids = *self.with_ids.get_or_insert(id.is_some());
        match id.map(|text| (text, text.parse::<u64>())) {
            None if !with_ids => Ok(()),
            Some((_, Ok(number))) if with_ids && self.ids.insert(number) => Ok(()),
            Some((text, Ok(_))) if with_ids => {
                Err(format!("gp_index {text} of {name} stands twice"))
            }
            Some((text, Err(_))) => Err(format!("gp_index {text:?} of {name} is not a number")),
            _ => Err(format!("some objects have a gp_index and others, as this {name}, do not")),
        }
    }

    fn check_root(&mut self, name: &str) -> Step {
        if name != "Machine" || std::mem::replace(&mut self.seen_root, true) {
            return Err("the topology has to have one object at its root, a Machine".into());
        }
        Ok(())
    }

    /// Whether the object may lie where it does: inside its parent's sets, and, if
    /// it is no memory, beside and not over its siblings.
    fn check_place(&mut self, name: &str, kind: Kind, sets: &[Set; 4]) -> Step {
        let Some(parent) = self.open.last_mut() else { return Ok(()) };
        let memory = matches!(kind, Kind::Node | Kind::MemoryCache);
        let allowed = match parent.kind {
            Kind::Normal => true,
            Kind::MemoryCache | Kind::Pu => memory,
            Kind::Node | Kind::Other => false,
        };
        if !allowed || name == "Machine" {
            return Err(format!("{name} lies in an object that cannot hold it"));
        }
        for ((set, outer), what) in sets.iter().zip(&parent.sets).zip(SETS) {
            if !is_inside(set, outer) {
                return Err(format!("the {what} of {name} is not inside that of its parent"));
            }
        }
        let [_, complete_cpus, ..] = sets;
        if memory {
            return Ok(());
        }
        if parent.taken.iter().zip(complete_cpus).any(|(a, b)| a & b != 0) {
            return Err(format!("the complete_cpuset of {name} overlaps that of a sibling"));
        }
        if parent.taken.len() < complete_cpus.len() {
            parent.taken.resize(complete_cpus.len(), 0);
        }
        parent.taken.iter_mut().zip(complete_cpus).for_each(|(taken, word)| *taken |= word);
        Ok(())
    }

    /// A PU's and a node's own set holds its number and nothing else.
    fn check_index(
        &mut self,
        name: &str,
        kind: Kind,
        index: Option<&str>,
        sets: &[Set; 4],
    ) -> Step {
        let [cpus, complete_cpus, nodes, complete_nodes] = sets;
        if let Some(index) = index
            && index.parse::<u32>().is_err()
        {
            return Err(format!("os_index {index:?} of {name} is not a number"));
        }
        let (own, complete, seen) = match kind {
            Kind::Pu => (cpus, complete_cpus, &mut self.pus),
            Kind::Node => (nodes, complete_nodes, &mut self.nodes),
            _ => return Ok(()),
        };
        let index: Option<u64> = index.and_then(|i| i.parse().ok());
        let index = index.filter(|&i| i <= u64::from(MAX_CPU_ID));
        let index = index.ok_or_else(|| format!("{name} has no os_index up to {MAX_CPU_ID}"))?;
        let single = single(index);
        if *complete != single || *own != single {
            return Err(format!("the sets of {name} {index} do not hold just {index}"));
        }
        if seen.insert(index) { Ok(()) } else { Err(format!("{name} {index} stands twice")) }
    }
}

/// Whether objects of this type are devices or notes, which a machine does not have.
pub(super) fn is_device(name: &str) -> bool {
    kind_of(name) == Some(Kind::Other)
}

fn kind_of(name: &str) -> Option<Kind> {
    Some(match name {
        "PU" => Kind::Pu,
        "NUMANode" => Kind::Node,
        "MemCache" => Kind::MemoryCache,
        "Bridge" | "PCIDev" | "OSDev" | "Misc" => Kind::Other,
        "Machine" | "Package" | "Die" | "Core" | "Group" => Kind::Normal,
        "L1Cache" | "L2Cache" | "L3Cache" | "L4Cache" | "L5Cache" => Kind::Normal,
        "L1iCache" | "L2iCache" | "L3iCache" => Kind::Normal,
        _ => return None,
    })
}

fn sets_of<'t>(name: &str, get: impl Fn(&str) -> Option<&'t str>) -> Result<[Set; 4], String> {
    let mut sets: [Set; 4] = Default::default();
    for (set, what) in sets.iter_mut().zip(SETS) {
        let text = get(what).ok_or_else(|| format!("{name} has no {what}"))?;
        *set = parse(text).ok_or_else(|| no_set(name, what, text))?;
    }
    let [cpus, complete_cpus, nodes, complete_nodes] = &sets;
    if !is_inside(cpus, complete_cpus) || !is_inside(nodes, complete_nodes) {
        return Err(format!("a set of {name} is not inside its complete set"));
    }
    Ok(sets)
}

fn no_set(owner: &str, what: &str, text: &str) -> String {
    format!("the {what} of {owner} is no set such as 0x0000000f: {text:?}")
}

/// Words of 32 bits in hexadecimal, the highest first; an empty one is zero.
///
/// hwloc 2.9 aborts on an empty first word, which it never writes.
fn parse(text: &str) -> Option<Set> {
    let word = |part: &str| match part.strip_prefix("0x") {
        Some(digits) if (1..=8).contains(&digits.len()) && !digits.starts_with('+') => {
            u32::from_str_radix(digits, 16).ok()
        }
        None if part.is_empty() => Some(0),
        _ => None,
    };
    if !text.starts_with("0x") {
        return None;
    }
    let words: Option<Set> = text.rsplit(',').map(word).collect();
    let mut words = words.filter(|w| w.len() <= MAX_CPU_ID as usize / 32 + 1)?;
    while words.last() == Some(&0) {
        words.pop();
    }
    Some(words)
}

fn single(index: u64) -> Set {
    let mut set = vec![0; usize::try_from(index / 32).unwrap_or(0)];
    set.push(1 << (index % 32));
    set
}

fn is_inside(inner: &Set, outer: &Set) -> bool {
    inner.len() <= outer.len() && inner.iter().zip(outer).all(|(a, b)| a & !b == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_read_from_the_highest_word() {
        assert_eq!(parse("0x0000000f"), Some(vec![15]));
        assert_eq!(parse("0x1,,0x2"), Some(vec![2, 0, 1]));
        assert_eq!(parse("0x0"), Some(vec![]));
        for bad in ["", "15", "0x", "0x123456789", "0xg", "0xf...f", "0x+1", ",0x1"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
        assert_eq!(single(33), vec![0, 2]);
        assert!(is_inside(&vec![1], &vec![3, 1]) && !is_inside(&vec![4], &vec![3, 1]));
    }

    const ROOT: [(&str, &str); 5] = [
        ("type", "Machine"),
        ("cpuset", "0x3"),
        ("complete_cpuset", "0x3"),
        ("nodeset", "0x1"),
        ("complete_nodeset", "0x1"),
    ];

    fn child(changes: &[(&'static str, &'static str)]) -> Step {
        let mut objects = Objects::default();
        objects.begin("object", &ROOT, 1)?;
        let mut attributes = ROOT.to_vec();
        for (key, value) in changes {
            attributes.retain(|(name, _)| name != key);
            if !value.is_empty() {
                attributes.push((key, value));
            }
        }
        objects.begin("object", &attributes, 2)
    }

    #[test]
    fn what_hwloc_relies_on_is_checked() {
        let core = ("type", "Core");
        let pu = [("type", "PU"), ("cpuset", "0x2"), ("complete_cpuset", "0x2")];
        assert_eq!(child(&[core]), Ok(()));
        assert_eq!(child(&[pu[0], pu[1], pu[2], ("os_index", "1")]), Ok(()));
        let wrong = |changes: &[_], words: &str| {
            let problem = child(changes).unwrap_err();
            assert!(problem.contains(words), "{problem}");
        };
        wrong(&[("type", "L1C6che")], "unknown object type");
        wrong(&[core, ("complete_cpuset", "")], "no complete_cpuset");
        wrong(&[core, ("complete_cpuset", "0x1")], "complete set");
        wrong(&[core, ("nodeset", "0x3"), ("complete_nodeset", "0x3")], "parent");
        wrong(&[pu[0], pu[1], pu[2], ("os_index", "0")], "hold just");
        wrong(&[pu[0], pu[1], pu[2]], "os_index");
        wrong(&[], "cannot hold");
        wrong(&[core, ("gp_index", "7")], "some objects");
        wrong(&[core, ("allowed_cpuset", ",x1")], "no set");
    }
}
