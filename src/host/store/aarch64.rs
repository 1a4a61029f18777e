//! The stores of aarch64: `dc zva`, and pairs of registers with and without the
//! non-temporal hint.

use super::generic::{self, Vector};
use super::{Entry, StoreKind};
use crate::host::line::Line;
use core::arch::aarch64::*;
use core::arch::asm;

/// A pair of 16-byte registers that one instruction stores.
macro_rules! pair {
    ($name:ident, $instruction:literal, $fence:literal) => {
        #[derive(Clone, Copy)]
        struct $name(uint64x2_t, uint64x2_t);

        impl Vector for $name {
            #[inline(always)]
            unsafe fn load(words: *const u64) -> Self {
                // SAFETY: the caller's pointer is valid for four words.
                unsafe { Self(vld1q_u64(words), vld1q_u64(words.add(2))) }
            }

            #[inline(always)]
            unsafe fn add(self, step: Self) -> Self {
                // SAFETY: vector registers are part of aarch64 Linux.
                unsafe { Self(vaddq_u64(self.0, step.0), vaddq_u64(self.1, step.1)) }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut u64) {
                // SAFETY: the caller's pointer is valid for writes of four words.
                unsafe {
                    asm!(concat!($instruction, " {a:q}, {b:q}, [{to}]"), a = in(vreg) self.0,
                        b = in(vreg) self.1, to = in(reg) to,
                        options(nostack, preserves_flags));
                }
            }

            #[inline(always)]
            unsafe fn fence() {
                // SAFETY: a barrier (or nothing) touches no memory.
                unsafe { asm!($fence, options(nostack, preserves_flags)) };
            }
        }
    };
}

pair!(Stp, "stp", "");
pair!(Stnp, "stnp", "dmb ishst");

/// The stores of this file, in the order of the table.
pub(super) static STORES: &[Entry] = &[
    Entry {
        name: "dc-zva",
        kind: StoreKind::Temporal,
        needs: "dc zva permitted (DCZID_EL0.DZP = 0)",
        about: "zeroes a block of cache without reading it, as arm64 Linux does",
        detect: || zva_block_bytes().is_some(),
        zero: dc_zva,
        images: None,
    },
    Entry {
        name: "stp",
        kind: StoreKind::Temporal,
        needs: "aarch64",
        about: "two stores of a register pair to a line",
        detect: || true,
        zero: stp_zero,
        images: Some(stp_images),
    },
    Entry {
        name: "stnp",
        kind: StoreKind::NonTemporal,
        needs: "aarch64",
        about: "the same with the non-temporal hint, which a CPU may ignore",
        detect: || true,
        zero: stnp_zero,
        images: Some(stnp_images),
    },
];

/// The name of the store that Linux's memset and clear_page are on this CPU
/// (`arch/arm64/lib/memset.S`, `clear_page.S`).
pub(super) fn default_zero_name() -> &'static str {
    if zva_block_bytes().is_some() { "dc-zva" } else { "stp" }
}

/// Bytes that one `dc zva` zeroes (16 to 2048), or `None` where it is prohibited.
fn zva_block_bytes() -> Option<usize> {
    let dczid: u64;
    // SAFETY: the register is readable from user space and the read has no effect.
    unsafe {
        asm!("mrs {dczid}, dczid_el0", dczid = out(reg) dczid,
            options(nomem, nostack, preserves_flags));
    }
    let prohibited = dczid & 0x10 != 0;
    (!prohibited).then_some(4 << (dczid & 0xf))
}

/// # Safety
/// `dc zva` is permitted.
unsafe fn dc_zva(lines: &mut [Line]) {
    let Some(block_bytes) = zva_block_bytes() else { return lines.fill(Line::default()) };
    // A block may be larger than a line: what it does not cover whole is stored.
    let (at, bytes) = (lines.as_mut_ptr().addr(), size_of_val(lines));
    let head = (at.next_multiple_of(block_bytes) - at).min(bytes) / size_of::<Line>();
    let (before, rest) = lines.split_at_mut(head);
    let whole = size_of_val(rest) / block_bytes * block_bytes;
    let (blocks, after) = rest.split_at_mut(whole / size_of::<Line>());
    before.fill(Line::default());
    after.fill(Line::default());
    let to: *mut u8 = blocks.as_mut_ptr().cast();
    for offset in (0..whole).step_by(block_bytes) {
        // SAFETY: the block at `offset` lies inside `blocks` and starts at a multiple
        // of its size, so exactly it is zeroed.
        unsafe {
            asm!("dc zva, {to}", to = in(reg) to.add(offset), options(nostack, preserves_flags));
        }
    }
}

/// `stnp` is only a hint to the caches: its stores are ordered like any others.
#[inline(always)]
pub(super) fn order_streams() {}

/// Zeroes one line as memset does, for the era that called it per `struct page`.
#[inline(always)]
pub(super) fn memset_line(line: &mut Line) {
    if zva_block_bytes() == Some(size_of::<Line>()) {
        let to = &raw mut *line;
        // SAFETY: the block is exactly this line, which is aligned to its size.
        unsafe { asm!("dc zva, {to}", to = in(reg) to, options(nostack, preserves_flags)) };
    } else {
        // SAFETY: register pairs are part of aarch64.
        unsafe { stp_zero(core::slice::from_mut(line)) };
    }
}

/// # Safety
/// None needed: `unsafe` only for the table's type.
unsafe fn stp_zero(lines: &mut [Line]) {
    // SAFETY: part of aarch64; two pairs are a line.
    unsafe { generic::zero::<Stp, 2>(lines) }
}

/// # Safety
/// None needed: `unsafe` only for the table's type.
unsafe fn stp_images(lines: &mut [Line], first: &[u64; 8], step: &[u64; 8]) {
    // SAFETY: part of aarch64; two pairs are a line.
    unsafe { generic::images::<Stp, 2>(lines, first, step) }
}

/// # Safety
/// None needed: `unsafe` only for the table's type.
unsafe fn stnp_zero(lines: &mut [Line]) {
    // SAFETY: part of aarch64; two pairs are a line.
    unsafe { generic::zero::<Stnp, 2>(lines) }
}

/// # Safety
/// None needed: `unsafe` only for the table's type.
unsafe fn stnp_images(lines: &mut [Line], first: &[u64; 8], step: &[u64; 8]) {
    // SAFETY: part of aarch64; two pairs are a line.
    unsafe { generic::images::<Stnp, 2>(lines, first, step) }
}
