//! This host without hwloc: `/sys` and `/proc` alone.
//!
//! Stands in for `host.rs` where the feature `hwloc` is off. Caches stay unknown.

use super::evidence::{Answers, complete};
use super::{Arch, Machine, MachineError, sysfs_tree};
use std::path::Path;

/// Describes the computer this program runs on.
///
/// # Errors
/// [`MachineError::Host`] where `/sys` shows no node.
pub fn load() -> Result<Machine, MachineError> {
    let failed = |e: MachineError| MachineError::Host { problem: e.to_string() };
    let evidence = sysfs_tree::this_host(Path::new("/")).map_err(failed)?;
    let answers = Answers { arch: Arch::of_this_program(), ..Answers::default() };
    let mut machine = complete("host", &evidence, &answers).map_err(failed)?;
    machine.is_this_host = true;
    Ok(machine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_cpus_and_memory() {
        let machine = load().unwrap();
        assert!(machine.memory_bytes() > 0 && !machine.cpus.is_empty());
        assert!(machine.is_this_host && machine.kernel_release.is_some());
    }
}
