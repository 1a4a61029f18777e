//! What the kernel runs on: processor by its id, hypervisor, emulator.
//!
//! [`read`] looks at DMI, hardware names, device trees and what kernels say about
//! hypervisors; [`imitated`] at the processor's name. x86's names of processors are in
//! [`super::cpus`].

use super::super::boot::{Boot, Fact};
use super::hex;

/// Reads a message about the platform; `false` if it is about something else.
pub(super) fn read(boot: &mut Boot, text: &str, line: u64) -> bool {
    match text.as_bytes().first() {
        Some(b'D' | b'M') => {
            let name = text.strip_prefix("DMI: ").or_else(|| text.strip_prefix("Machine model: "));
            name.is_some_and(|name| product(boot, name, line))
        }
        Some(b'H') => match text.strip_prefix("Hardware name: ") {
            Some(name) => {
                power(boot, name, line);
                product(boot, name, line)
            }
            None => hypervisor(boot, text.strip_prefix("Hypervisor detected: "), line),
        },
        Some(b'B') => {
            midr(boot, text, line);
            let host = text.strip_prefix("Booting paravirtualized kernel on ");
            hypervisor(boot, host.filter(|h| h.trim() != "bare hardware"), line)
        }
        Some(b'F') => {
            boot.has_fake_nodes |= text.starts_with("Faking node ");
            false
        }
        Some(b'h') => {
            boot.has_hash_mmu |= text.starts_with("hash-mmu: Initializing");
            false
        }
        Some(b's') => {
            // `arch/s390/kernel/setup.c: setup_arch`; natively means in an LPAR.
            let host = text.strip_prefix("setup: Linux is running ");
            let host = host.filter(|h| h.starts_with("under ") || h.starts_with("as a z/VM"));
            hypervisor(boot, host, line);
            false
        }
        _ => false,
    }
}

/// Remembers what a hypervisor is called.
fn hypervisor(boot: &mut Boot, name: Option<&str>, line: u64) -> bool {
    let Some(name) = name.map(|n| n.trim().chars().take(80).collect::<String>()) else {
        return false;
    };
    if name.starts_with("KVM") {
        // Only a name that hides the real processor was seen before.
        boot.emulated = boot.emulated.take().filter(|e| !e.value.contains(HIDING));
    }
    boot.guest = Some(Fact::new(name, line));
    true
}

/// A vendor and product that only hypervisors show.
fn product(boot: &mut Boot, name: &str, line: u64) -> bool {
    const WORDS: [&str; 17] = [
        "QEMU",
        "qemu",
        "dummy-virt",
        "KVM",
        "VMware",
        "VirtualBox",
        "Xen HVM domU",
        "Microsoft Corporation Virtual Machine",
        "Google Compute Engine",
        "OpenStack",
        "Alibaba Cloud ECS",
        "Parallels Virtual",
        "Bochs",
        "DigitalOcean Droplet",
        "Hetzner vServer",
        "RHEV Hypervisor",
        "Apple Virtualization",
    ];
    let is_cloud = name.starts_with("Amazon EC2 ") && !name.contains(".metal");
    if is_cloud || WORDS.iter().any(|word| name.contains(word)) {
        Boot::set(&mut boot.guest, name.trim().chars().take(80).collect(), line);
        return true;
    }
    false
}

/// QEMU's plain model, which KVM shows as well.
const HIDING: &str = "QEMU Virtual CPU";

/// A processor that QEMU's translator imitates.
pub(super) fn imitated(boot: &mut Boot, name: &str, line: u64) {
    let is_kvm = || boot.guest.as_ref().is_some_and(|g| g.value.starts_with("KVM"));
    if name.contains("QEMU TCG CPU") || (name.contains(HIDING) && !is_kvm()) {
        Boot::set(&mut boot.emulated, name.into(), line);
    }
}

/// `T2P9D01 REV 1.01 POWER9 0x4e1202 opal:…`.
fn power(boot: &mut Boot, name: &str, line: u64) {
    let is_model = |word: &&str| {
        let number = word.strip_prefix("POWER").unwrap_or("");
        number.starts_with(|c: char| c.is_ascii_digit()) && word.len() <= 12
    };
    if let Some(model) = name.split_whitespace().find(is_model) {
        Boot::set(&mut boot.cpu_model, model.into(), line);
    }
}

/// `Booting Linux on physical CPU 0x0000000000 [0x413fd0c1]`: implementer, variant,
/// architecture, part and revision (`arch/arm64/include/asm/cputype.h`, v6.12).
fn midr(boot: &mut Boot, text: &str, line: u64) {
    let Some(rest) = text.strip_prefix("Booting Linux on physical CPU ") else { return };
    let Some((_, rest)) = rest.split_once('[') else { return };
    let Some((midr, _)) = hex(rest) else { return };
    let (implementer, part) = ((midr >> 24) & 0xff, (midr >> 4) & 0xfff);
    if (implementer, part) == (0, 0x051) {
        return Boot::set(&mut boot.emulated, "QEMU's processor \"max\"".into(), line);
    }
    if let Some(name) = processor(implementer, part) {
        Boot::set(&mut boot.cpu_model, name.into(), line);
    }
}

/// The name of a processor of ARM's architecture.
fn processor(implementer: u64, part: u64) -> Option<&'static str> {
    Some(match (implementer, part) {
        (0x41, 0xd03) => "Cortex-A53",
        (0x41, 0xd04) => "Cortex-A35",
        (0x41, 0xd05) => "Cortex-A55",
        (0x41, 0xd07) => "Cortex-A57",
        (0x41, 0xd08) => "Cortex-A72",
        (0x41, 0xd09) => "Cortex-A73",
        (0x41, 0xd0a) => "Cortex-A75",
        (0x41, 0xd0b) => "Cortex-A76",
        (0x41, 0xd0c) => "Neoverse-N1",
        (0x41, 0xd0d) => "Cortex-A77",
        (0x41, 0xd40) => "Neoverse-V1",
        (0x41, 0xd41 | 0xd42) => "Cortex-A78",
        (0x41, 0xd49) => "Neoverse-N2",
        (0x41, 0xd4f) => "Neoverse-V2",
        (0x41, 0xd83 | 0xd84) => "Neoverse-V3",
        (0x41, 0xd8e) => "Neoverse-N3",
        (0x42, 0x516) | (0x43, 0x0af) => "ThunderX2",
        (0x43, 0x0a0..=0x0a3) => "ThunderX",
        (0x46, 0x001) => "A64FX",
        (0x48, 0xd01) => "Kunpeng-920",
        (0x48, _) => "Kunpeng",
        (0x4e, 0x004) => "NVIDIA Carmel",
        (0x50, 0x000) => "X-Gene",
        (0x61, 0x020..=0x02f) => "Apple M1",
        (0x61, 0x030..=0x03f) => "Apple M2",
        (0xc0, 0xac3..=0xac5) => "AmpereOne",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::boot_of;

    #[test]
    fn guests_are_told_from_real_machines() {
        for text in [
            "Hypervisor detected: Microsoft Hyper-V",
            "Booting paravirtualized kernel on KVM",
            "DMI: QEMU Standard PC (i440FX + PIIX, 1996), BIOS 1",
            "DMI: VMware, Inc. VMware Virtual Platform/440BX, BIOS 6",
            "DMI: innotek GmbH VirtualBox/VirtualBox, BIOS VirtualBox",
            "DMI: Xen HVM domU, BIOS 4.11",
            "DMI: Microsoft Corporation Virtual Machine/Virtual Machine, BIOS",
            "DMI: Amazon EC2 m5.large/, BIOS 1.0",
            "DMI: Google Google Compute Engine/Google Compute Engine, BIOS",
            "DMI: OpenStack Foundation OpenStack Nova, BIOS",
            "Machine model: linux,dummy-virt",
            "Machine model: riscv-virtio,qemu",
            "Hardware name: IBM pSeries (emulated by qemu) POWER9 (raw)",
            "setup: Linux is running under KVM in 64-bit mode",
            "setup: Linux is running as a z/VM guest operating system in 64-bit mode",
        ] {
            let boot = boot_of(text);
            assert!(boot.guest.is_some_and(|g| g.line == 1), "{text}");
            assert!(boot.emulated.is_none(), "{text}");
        }
        for text in [
            "Booting paravirtualized kernel on bare hardware",
            "DMI: Amazon EC2 m5.metal/Not Specified, BIOS 1.0",
            "DMI: Dell Inc. XPS 13 9360/0596KF, BIOS 2.21.0",
            "DMI: Microsoft Corporation Surface Pro/Surface Pro, BIOS",
            "DMI: Memory slots populated: 2/2",
            "setup: Linux is running natively in 64-bit mode",
        ] {
            assert!(boot_of(text).guest.is_none(), "{text}");
        }
    }

    #[test]
    fn imitated_processors_are_a_fact_of_their_own() {
        let named = |name: &str| format!("smpboot: CPU0: {name} version 2.5+ (family: 0xf)\n");
        assert!(boot_of(&named("AMD QEMU TCG CPU")).emulated.is_some());
        assert!(boot_of(&named("QEMU Virtual CPU")).emulated.is_some());
        let kvm = "Hypervisor detected: KVM\n";
        assert!(boot_of(&format!("{kvm}{}", named("QEMU Virtual CPU"))).emulated.is_none());
        assert!(boot_of(&format!("{}{kvm}", named("QEMU Virtual CPU"))).emulated.is_none());
        assert!(boot_of(&named("Intel Xeon")).emulated.is_none());
        let boot = boot_of("Booting Linux on physical CPU 0x0000000000 [0x000f0510]");
        assert!(boot.emulated.is_some() && boot.cpu_model.is_none());
    }

    #[test]
    fn processors_are_named_where_no_line_says_so() {
        let model = |text: &str| boot_of(text).cpu_model.map(|m| m.value);
        let midr = |id: &str| model(&format!("Booting Linux on physical CPU 0x0 [{id}]"));
        assert_eq!(midr("0x413fd0c1").as_deref(), Some("Neoverse-N1"));
        assert_eq!(midr("0x481fd010").as_deref(), Some("Kunpeng-920"));
        assert_eq!(midr("0xc00fac30").as_deref(), Some("AmpereOne"));
        assert_eq!(midr("0x430f0af2").as_deref(), Some("ThunderX2"));
        assert_eq!(midr("0x990fffff"), None);
        let power = model("Hardware name: T2P9D01 REV 1.01 POWER9 0x4e1202 opal:x PowerNV");
        assert_eq!(power.as_deref(), Some("POWER9"));
        assert_eq!(model("Hardware name: POWERFUL Inc."), None);
    }
}
