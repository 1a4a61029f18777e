//! Logs of captured boots with `memblock=debug`: the layout is that of the captured facts.
//!
//! The logs lie beside the project and are not part of it; without them the test says so
//! and passes.

use pageinit::kernel::boot::BootInput;
use pageinit::kernel::layout::Layout;
use pageinit::kernel::place::Placement;
use pageinit::machine::input::load;
use pageinit::machine::{Arch, Machine};
use std::path::Path;

fn booted(machine: &Machine) -> (Layout, Placement) {
    let name = &machine.name;
    let facts = machine.boot.as_ref().unwrap_or_else(|| panic!("{name}: not exact"));
    let input = BootInput::from_facts(facts).unwrap_or_else(|e| panic!("{name}: {e}"));
    input.boot().unwrap_or_else(|e| panic!("{name}: {e}"))
}

#[test]
fn every_captured_log_has_the_layout_of_its_facts() {
    let Ok(entries) = std::fs::read_dir("../shared/boots") else {
        return eprintln!("../shared/boots is not there; this test does nothing");
    };
    let mut found = 0;
    for path in entries.filter_map(|e| Some(e.ok()?.path())) {
        if path.extension().is_none_or(|e| e != "log") {
            continue;
        }
        found += 1;
        let machine =
            |path: &Path| load(&path.display().to_string(), None).unwrap_or_else(|e| panic!("{e}"));
        let (log, facts) = (machine(&path), machine(&path.with_extension("json")));
        let ((layout, placement), (expected, answers)) = (booted(&log), booted(&facts));
        let name = path.display();
        assert_eq!(placement, answers, "{name}");
        assert_eq!((layout.zones, layout.memmap), (expected.zones, expected.memmap), "{name}");
        let pages = |n: &pageinit::kernel::layout::NodeLayout| (n.nid, n.deferred.clone());
        let all = |list: &[_]| list.iter().map(pages).collect::<Vec<_>>();
        assert_eq!(all(&layout.nodes), all(&expected.nodes), "{name}");
        // Other architectures do not print which CPUs a node has.
        if log.arch == Arch::X86_64 {
            let cpus = |m: &Machine| m.nodes.iter().map(|n| n.cpus.clone()).collect::<Vec<_>>();
            assert_eq!(cpus(&log), cpus(&facts), "{name}");
            assert_eq!(layout.nodes, expected.nodes, "{name}");
            assert_eq!(layout.kernel, expected.kernel, "{name}");
        }
    }
    assert_eq!(found, 122);
}
