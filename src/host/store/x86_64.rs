//! The stores of x86-64: string, vector, streaming and whole-line instructions.
//!
//! Plain vector stores are volatile, because the compiler would otherwise turn a
//! zeroing loop into a call of memset. Streaming stores are inline assembly inside
//! the standard library and stay as they are; the library asks for an `sfence`
//! before anything else touches the memory, so every run ends with one.

use super::generic::{self, Vector};
use super::{Entry, StoreKind};
use crate::host::line::Line;
use core::arch::asm;
use core::arch::x86_64::*;
use std::sync::OnceLock;

/// A register type with its loads, its addition and one way of storing.
macro_rules! vector {
    ($name:ident, $register:ty, $load:expr, $add:expr, $store:expr, $fence:expr) => {
        #[derive(Clone, Copy)]
        struct $name($register);

        impl Vector for $name {
            #[inline(always)]
            unsafe fn load(words: *const u64) -> Self {
                // SAFETY: the caller vouches for the pointer and for the CPU.
                Self(unsafe { $load(words.cast()) })
            }

            #[inline(always)]
            unsafe fn add(self, step: Self) -> Self {
                // SAFETY: the caller vouches for the CPU.
                Self(unsafe { $add(self.0, step.0) })
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut u64) {
                // SAFETY: the caller vouches for the pointer, its alignment and the CPU.
                unsafe { $store(to.cast::<$register>(), self.0) }
            }

            #[inline(always)]
            unsafe fn fence() {
                // SAFETY: `sfence` is part of x86-64.
                unsafe { $fence() }
            }
        }
    };
}

/// The two functions of a vector store, compiled with its instructions enabled.
macro_rules! store {
    ($module:ident, $vector:ident, $count:literal, $feature:literal) => {
        mod $module {
            use super::*;

            /// # Safety
            /// The CPU has this store's instructions.
            #[target_feature(enable = $feature)]
            pub(super) unsafe fn zero(lines: &mut [Line]) {
                // SAFETY: the caller vouches for the CPU; the count makes up a line.
                unsafe { generic::zero::<$vector, $count>(lines) }
            }

            /// # Safety
            /// The CPU has this store's instructions.
            #[target_feature(enable = $feature)]
            pub(super) unsafe fn images(lines: &mut [Line], first: &[u64; 8], step: &[u64; 8]) {
                // SAFETY: the caller vouches for the CPU; the count makes up a line.
                unsafe { generic::images::<$vector, $count>(lines, first, step) }
            }
        }
    };
}

/// # Safety
/// The pointer is valid for one word.
#[inline(always)]
unsafe fn load_word(words: *const i64) -> i64 {
    // SAFETY: the caller vouches for the pointer.
    unsafe { words.read() }
}

/// # Safety
/// None needed: `unsafe` only to look like the vector instructions.
#[inline(always)]
unsafe fn add_word(word: i64, step: i64) -> i64 {
    word.wrapping_add(step)
}

/// # Safety
/// None needed: `unsafe` only to look like a fence. Plain stores order themselves.
#[inline(always)]
unsafe fn no_fence() {}

use core::ptr::write_volatile as plain;

vector!(Sse2, __m128i, _mm_loadu_si128, _mm_add_epi64, plain, no_fence);
vector!(Sse2Nt, __m128i, _mm_loadu_si128, _mm_add_epi64, _mm_stream_si128, _mm_sfence);
vector!(Avx2, __m256i, _mm256_loadu_si256, _mm256_add_epi64, plain, no_fence);
vector!(Avx2Nt, __m256i, _mm256_loadu_si256, _mm256_add_epi64, _mm256_stream_si256, _mm_sfence);
vector!(Avx512, __m512i, _mm512_loadu_si512, _mm512_add_epi64, plain, no_fence);
vector!(Avx512Nt, __m512i, _mm512_loadu_si512, _mm512_add_epi64, _mm512_stream_si512, _mm_sfence);
vector!(Movnti, i64, load_word, add_word, _mm_stream_si64, _mm_sfence);

store!(sse2, Sse2, 4, "sse2");
store!(sse2_nt, Sse2Nt, 4, "sse2");
store!(avx2, Avx2, 2, "avx2");
store!(avx2_nt, Avx2Nt, 2, "avx2");
store!(avx512, Avx512, 1, "avx512f");
store!(avx512_nt, Avx512Nt, 1, "avx512f");
store!(movnti, Movnti, 8, "sse2");

/// A row of the table for a store that can write images.
macro_rules! row {
    ($name:literal, $kind:ident, $module:ident, $needs:literal, $detect:expr, $about:literal) => {
        Entry {
            name: $name,
            kind: StoreKind::$kind,
            needs: $needs,
            about: $about,
            detect: $detect,
            zero: $module::zero,
            images: Some($module::images),
        }
    };
}

/// A row of the table for a store that can only write zeros.
macro_rules! zero_row {
    ($name:literal, $kind:ident, $zero:ident, $needs:literal, $detect:expr, $about:literal) => {
        Entry {
            name: $name,
            kind: StoreKind::$kind,
            needs: $needs,
            about: $about,
            detect: $detect,
            zero: $zero,
            images: None,
        }
    };
}

/// The stores of this file, in the order of the table.
pub(super) static STORES: &[Entry] = &[
    zero_row!("rep-stosb", Temporal, rep_stosb, "erms", has_erms, "Linux's memset with ERMS"),
    zero_row!("rep-stosq", Temporal, rep_stosq, "x86-64", || true, "Linux's memset without ERMS"),
    row!("sse2", Temporal, sse2, "x86-64", || true, "four 16-byte stores to a line"),
    row!("avx2", Temporal, avx2, "avx2", has_avx2, "two 32-byte stores to a line"),
    row!("avx512", Temporal, avx512, "avx512f", has_avx512, "one 64-byte store to a line"),
    row!("movnti", NonTemporal, movnti, "x86-64", || true, "eight 8-byte streaming stores"),
    row!("sse2-nt", NonTemporal, sse2_nt, "x86-64", || true, "four 16-byte streaming stores"),
    row!("avx2-nt", NonTemporal, avx2_nt, "avx2", has_avx2, "two 32-byte streaming stores"),
    row!("avx512-nt", NonTemporal, avx512_nt, "avx512f", has_avx512, "one 64-byte streaming store"),
    zero_row!("clzero", NonTemporal, clzero, "clzero", has_clzero, "AMD's store of a zero line"),
    row!(
        "movdir64b",
        NonTemporal,
        movdir64b,
        "movdir64b",
        has_movdir64b,
        "one direct 64-byte store"
    ),
];

/// Kept apart, because `memset_call` asks for every line and the standard library's
/// own answer has to be shifted out of a word first.
#[inline(always)]
fn has_erms() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| is_x86_feature_detected!("ermsb"))
}

fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
}

/// Also asks whether the operating system saves the wide registers.
fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
}

/// CPUID 8000_0008h, EBX bit 0; the standard library has no name for it.
fn has_clzero() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        __cpuid(0x8000_0000).eax >= 0x8000_0008 && __cpuid(0x8000_0008).ebx & 1 != 0
    })
}

/// CPUID 7.0, ECX bit 28; the standard library has no name for it.
fn has_movdir64b() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| __cpuid(0).eax >= 7 && __cpuid_count(7, 0).ecx & (1 << 28) != 0)
}

/// The name of the store that Linux's memset is on this CPU
/// (`arch/x86/lib/memset_64.S`, v4.15 to v6.3).
pub(super) fn default_zero_name() -> &'static str {
    if has_erms() { "rep-stosb" } else { "rep-stosq" }
}

/// # Safety
/// None needed: `unsafe` only for the table's type.
unsafe fn rep_stosb(lines: &mut [Line]) {
    // SAFETY: the range is exactly that of an exclusive slice; the direction flag
    // is clear, as the ABI demands.
    unsafe {
        asm!("rep stosb", inout("rcx") size_of_val(lines) => _,
            inout("rdi") lines.as_mut_ptr() => _, in("al") 0u8,
            options(nostack, preserves_flags));
    }
}

/// # Safety
/// None needed: `unsafe` only for the table's type.
unsafe fn rep_stosq(lines: &mut [Line]) {
    // SAFETY: as in `rep_stosb`; a line is a whole number of words.
    unsafe {
        asm!("rep stosq", inout("rcx") size_of_val(lines) / 8 => _,
            inout("rdi") lines.as_mut_ptr() => _, in("rax") 0u64,
            options(nostack, preserves_flags));
    }
}

/// Zeroes one line as memset does, for the era that called it per `struct page`.
/// Orders streaming stores before everything that follows.
#[inline(always)]
pub(super) fn order_streams() {
    // SAFETY: `sfence` is part of x86-64.
    unsafe { _mm_sfence() };
}

#[inline(always)]
pub(super) fn memset_line(line: &mut Line) {
    let lines = core::slice::from_mut(line);
    // SAFETY: both need nothing of the CPU beyond x86-64.
    unsafe { if has_erms() { rep_stosb(lines) } else { rep_stosq(lines) } }
}

/// # Safety
/// The CPU has `clzero`, and its line is 64 bytes as on every CPU that has it.
unsafe fn clzero(lines: &mut [Line]) {
    for line in lines {
        // SAFETY: `clzero` zeroes the aligned line that RAX points into: this one.
        unsafe {
            asm!("clzero rax", in("rax") &raw mut *line, options(nostack, preserves_flags));
        }
    }
    // SAFETY: `sfence` is part of x86-64.
    unsafe { _mm_sfence() };
}

/// # Safety
/// The CPU has `movdir64b`.
#[inline(always)]
unsafe fn direct_store(to: &mut Line, from: &Line) {
    // SAFETY: reads one whole line and writes one whole aligned line.
    unsafe {
        asm!("movdir64b {to}, [{from}]", to = in(reg) &raw mut *to,
            from = in(reg) &raw const *from, options(nostack, preserves_flags));
    }
}

mod movdir64b {
    use super::*;

    /// # Safety
    /// The CPU has `movdir64b`.
    pub(in crate::host::store) unsafe fn zero(lines: &mut [Line]) {
        let zeros = Line::default();
        for line in lines {
            // SAFETY: the caller vouches for the CPU.
            unsafe { direct_store(line, &zeros) };
        }
        // SAFETY: `sfence` is part of x86-64.
        unsafe { _mm_sfence() };
    }

    /// # Safety
    /// The CPU has `movdir64b`.
    pub(in crate::host::store) unsafe fn images(
        lines: &mut [Line],
        first: &[u64; 8],
        step: &[u64; 8],
    ) {
        // SAFETY: the caller vouches for the CPU.
        staged_images(lines, first, step, |to, from| unsafe { direct_store(to, from) });
    }
}

/// Lines composed in the cache before they are moved. `movdir64b` reads its line
/// back from memory, and a line still in the store buffer would stall it; by the
/// time the last of these is composed, the first has left.
const STAGED_LINES: usize = 16;

/// Composes images in a small buffer and hands each to `put`.
#[inline(always)]
fn staged_images(
    lines: &mut [Line],
    first: &[u64; 8],
    step: &[u64; 8],
    put: impl Fn(&mut Line, &Line),
) {
    let mut staged = [Line::default(); STAGED_LINES];
    let mut image = *first;
    for block in lines.chunks_mut(STAGED_LINES) {
        // SAFETY: `sse2` is part of x86-64.
        unsafe { sse2::images(&mut staged, &image, step) };
        for (to, from) in block.iter_mut().zip(&staged) {
            put(to, from);
        }
        for (word, by) in image.iter_mut().zip(step) {
            *word = word.wrapping_add(by.wrapping_mul(STAGED_LINES as u64));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{LENGTHS, oracle_images};
    use super::*;

    #[test]
    fn staging_gives_the_same_images_without_the_instruction() {
        let (first, step) = ([u64::MAX - 5; 8], [3, 0, 1, u64::MAX, 1 << 63, 7, 0, 9]);
        for length in LENGTHS {
            let mut lines = vec![Line::new([!0; 8]); length];
            staged_images(&mut lines, &first, &step, |to, from| *to = *from);
            assert_eq!(lines, oracle_images(length, &first, &step), "{length} lines");
        }
    }
}
