//! Memory that can be moved to other addresses by `mremap`.
//!
//! A [`Movable`] owns a stretch of address space with several places in it, a multiple
//! of 1 GiB apart or a chosen offset from that; its memory lies at one of them at a
//! time. Whatever place is empty is held by an inaccessible mapping, so that nobody
//! else's memory can ever lie where the next move goes.

use super::clock::Clock;
use super::error::HostError;
use std::ffi::c_void;
use std::io;

/// Alignment of the first place: what one entry of an upper page directory covers on
/// x86-64 and on arm64 with 4 KiB pages.
pub const PUD_BYTES: usize = 1 << 30;

/// Address space with memory at one place of it.
#[derive(Debug)]
pub struct Movable {
    base: *mut c_void,
    reserved_bytes: usize,
    /// The first multiple of 1 GiB in it, as an offset.
    aligned: usize,
    /// Where the memory is, as an offset from `aligned`.
    at: usize,
    bytes: usize,
    page_bytes: usize,
}

impl Movable {
    /// Reserves `reach_bytes` from a multiple of 1 GiB on and puts `bytes` of memory,
    /// without pages yet and for base pages only, at its start.
    ///
    /// # Errors
    /// [`HostError::Map`] when the kernel gives no address range, [`HostError::TooLarge`]
    /// when `bytes` do not fit into the reach or are no whole pages.
    pub fn map(bytes: usize, reach_bytes: usize) -> Result<Self, HostError> {
        let page_bytes = super::arena::page_bytes();
        let whole = reach_bytes.checked_add(2 * PUD_BYTES);
        let fits = bytes > 0 && bytes <= reach_bytes && bytes.is_multiple_of(page_bytes);
        let Some(reserved_bytes) = whole.filter(|_| fits) else {
            return Err(HostError::TooLarge { lines: bytes / 64 });
        };
        let base = reserve(std::ptr::null_mut(), reserved_bytes)?;
        let aligned = base.addr().next_multiple_of(PUD_BYTES) - base.addr();
        let movable = Self { base, reserved_bytes, aligned, at: 0, bytes, page_bytes };
        let place = movable.place(0);
        // SAFETY: the range lies in our reservation, which nothing borrows.
        let mapped = unsafe {
            libc::mmap(
                place,
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if mapped == libc::MAP_FAILED {
            return Err(HostError::Map { bytes, source: io::Error::last_os_error() });
        }
        // SAFETY: advice about our own mapping; it changes no contents. A kernel without
        // huge pages refuses, and then there are none to be kept out.
        unsafe { libc::madvise(place, bytes, libc::MADV_NOHUGEPAGE) };
        Ok(movable)
    }

    /// Base pages of the memory.
    pub fn pages(&self) -> usize {
        self.bytes / self.page_bytes
    }

    /// Where the memory is: its offset from a multiple of 1 GiB.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Writes a number into the first and the last word of every page of `range` (in
    /// pages): its own, mixed with `seed`. Faults the pages in.
    pub fn write_pages(&mut self, range: std::ops::Range<usize>, seed: u64) {
        for page in range.start..range.end.min(self.pages()) {
            for word in self.ends_of(page) {
                // SAFETY: the word lies in our mapping, which is writable, and `self`
                // is borrowed exclusively.
                unsafe { word.write_volatile(number_of(page, seed)) };
            }
        }
    }

    /// The first page that does not hold what [`Movable::write_pages`] wrote.
    pub fn first_wrong_page(&self, seed: u64) -> Option<usize> {
        let wrong = |page: &usize| {
            self.ends_of(*page).into_iter().any(|word| {
                // SAFETY: the word lies in our mapping, which is readable; all of its
                // bytes are initialised, by us or as zero pages.
                unsafe { word.read_volatile() != number_of(*page, seed) }
            })
        };
        (0..self.pages()).find(wrong)
    }

    /// Moves the memory to offset `to` from the multiple of 1 GiB; returns what the one
    /// system call took, in ns. Where it came from is reserved again afterwards.
    ///
    /// # Errors
    /// [`HostError::Move`] when the kernel refuses, and when the places overlap or do
    /// not fit; [`HostError::Map`] when the old place cannot be reserved again.
    pub fn move_to(&mut self, to: usize, clock: &Clock) -> Result<u64, HostError> {
        self.check(to)?;
        let (old, new) = (self.place(self.at), self.place(to));
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let began = clock.now_ns();
        // SAFETY: both ranges lie in our reservation and do not overlap; nothing borrows
        // the memory, because `self` is borrowed exclusively.
        let moved = unsafe { libc::mremap(old, self.bytes, self.bytes, flags, new) };
        let ns = clock.now_ns().saturating_sub(began);
        if moved == libc::MAP_FAILED {
            return Err(HostError::Move { bytes: self.bytes, source: io::Error::last_os_error() });
        }
        self.at = to;
        reserve(old, self.bytes)?;
        Ok(ns)
    }

    /// Whether a move to `to` stays inside and does not overlap.
    fn check(&self, to: usize) -> Result<(), HostError> {
        let room = self.reserved_bytes - self.aligned;
        let fits = to.checked_add(self.bytes).is_some_and(|end| end <= room);
        let apart = to.abs_diff(self.at) >= self.bytes;
        if fits && apart && to.is_multiple_of(self.page_bytes) {
            return Ok(());
        }
        let source = io::Error::from_raw_os_error(libc::EINVAL);
        Err(HostError::Move { bytes: self.bytes, source })
    }

    fn place(&self, offset: usize) -> *mut c_void {
        self.base.wrapping_byte_add(self.aligned + offset)
    }

    /// The first and the last word of a page.
    fn ends_of(&self, page: usize) -> [*mut u64; 2] {
        let first = self.place(self.at + page * self.page_bytes);
        [first.cast(), first.wrapping_byte_add(self.page_bytes - 8).cast()]
    }
}

impl Drop for Movable {
    fn drop(&mut self) {
        // SAFETY: the whole reservation is ours, whatever lies in it, and nothing
        // borrows it any more.
        unsafe { libc::munmap(self.base, self.reserved_bytes) };
    }
}

/// Inaccessible address space: anywhere, or at `at`, where nothing may be mapped.
fn reserve(at: *mut c_void, bytes: usize) -> Result<*mut c_void, HostError> {
    let fixed = if at.is_null() { 0 } else { libc::MAP_FIXED_NOREPLACE };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | fixed;
    // SAFETY: a new mapping that replaces nothing.
    let got = unsafe { libc::mmap(at, bytes, libc::PROT_NONE, flags, -1, 0) };
    let failed = |source| HostError::Map { bytes, source };
    if got == libc::MAP_FAILED {
        return Err(failed(io::Error::last_os_error()));
    }
    if !at.is_null() && got != at {
        // Before v4.17 the flag is a mere hint: somebody else's memory was there.
        // SAFETY: the mapping was made just now and nothing uses it.
        unsafe { libc::munmap(got, bytes) };
        return Err(failed(io::Error::from_raw_os_error(libc::EEXIST)));
    }
    Ok(got)
}

fn number_of(page: usize, seed: u64) -> u64 {
    (page as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    /// ```text
    ///   1 GiB |memory|      |      | …     then     |      |      |memory| …
    ///         0      2      4      6 MiB
    /// ```
    #[test]
    fn contents_move_along_and_back() {
        let clock = Clock::measure();
        let mut memory = Movable::map(2 * MIB, 8 * MIB).unwrap();
        memory.write_pages(0..usize::MAX, 3);
        assert_eq!(memory.first_wrong_page(3), None);
        for to in [4 * MIB, MIB, 3 * MIB + 4096, 0] {
            memory.move_to(to, &clock).unwrap();
            assert_eq!((memory.at(), memory.first_wrong_page(3)), (to, None));
        }
        assert_eq!(memory.first_wrong_page(4), Some(0));
        memory.write_pages(7..8, 9);
        assert_eq!(memory.first_wrong_page(3), Some(7));
    }

    #[test]
    fn places_that_overlap_or_lie_outside_are_refused() {
        let clock = Clock::measure();
        let mut memory = Movable::map(2 * MIB, 4 * MIB).unwrap();
        for to in [0, MIB, 2 * MIB + 1, usize::MAX, 3 * PUD_BYTES] {
            assert!(matches!(memory.move_to(to, &clock), Err(HostError::Move { .. })), "{to}");
        }
        assert!(memory.move_to(2 * MIB, &clock).is_ok());
        for bytes in [0, 100, 8 * MIB] {
            assert!(matches!(Movable::map(bytes, 4 * MIB), Err(HostError::TooLarge { .. })));
        }
    }
}
