//! The instructions that fill lines, by name.
//!
//! A [`Store`] zeroes lines; an [`ImageStore`] also writes a finished image that
//! advances by a fixed step from line to line. Both can only be had for a CPU that
//! has the instruction, which is what makes their methods safe. The loops stand
//! once in `generic`; `portable`, `x86_64` and `aarch64` are thin tables over it.
//!
//! A store's speed may depend on what it stores: AMD Zen 5 moves lines of zeros that
//! go around the cache at twice the rate of any other lines. So the rate of zeroing
//! says nothing about that of writing images.

use super::line::Line;
use crate::nearest::nearest;
use serde::{Deserialize, Serialize};
use std::fmt;

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(test)]
mod broken;
mod generic;
mod portable;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64 as isa;
#[cfg(target_arch = "x86_64")]
use x86_64 as isa;

/// No instructions of its own: every other architecture has the portable stores.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod isa {
    use super::{Entry, Line};

    pub(super) static STORES: &[Entry] = &[];

    pub(super) fn default_zero_name() -> &'static str {
        "libc-memset"
    }

    #[inline(always)]
    pub(super) fn memset_line(line: &mut Line) {
        *line = Line::default();
    }

    pub(super) fn order_streams() {}
}

/// A row of the table. The functions are unsafe because the CPU must have the
/// instruction: only a row whose `detect` answered yes becomes a [`Store`].
struct Entry {
    name: &'static str,
    kind: StoreKind,
    needs: &'static str,
    about: &'static str,
    detect: fn() -> bool,
    zero: unsafe fn(&mut [Line]),
    images: Option<Images>,
}

/// Images that advance by a fixed step from line to line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ramp {
    /// The image of line 0.
    pub first: [u64; 8],
    /// What each word gains from a line to the next, wrapping.
    pub step: [u64; 8],
}

impl Ramp {
    /// The image of line `index`.
    pub fn at(&self, index: usize) -> [u64; 8] {
        std::array::from_fn(|w| self.first[w].wrapping_add(self.step[w].wrapping_mul(index as u64)))
    }
}

type Images = unsafe fn(&mut [Line], &[u64; 8], &[u64; 8]);

/// Whether what was stored is left in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoreKind {
    /// Goes through the cache and stays there.
    Temporal,
    /// Goes around the cache; weakly ordered, so each run ends with a fence.
    NonTemporal,
}

impl fmt::Display for StoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Temporal => "temporal",
            Self::NonTemporal => "non-temporal",
        })
    }
}

/// What is known about a store, whether or not this CPU has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StoreInfo {
    /// The name that the command line takes.
    pub name: &'static str,
    /// Whether it leaves lines in the cache.
    pub kind: StoreKind,
    /// Whether it writes images, or only zeros.
    pub writes_images: bool,
    /// The CPU feature that it needs.
    pub needs: &'static str,
    /// Whether this CPU has that feature.
    pub available: bool,
    /// One line about what it executes.
    pub about: &'static str,
}

/// Why a name is not a store of this CPU.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// No store has this name.
    #[error("no store is called {name:?}{}; there are {}", hint(.nearest), .known.join(", "))]
    Unknown {
        /// The name as given.
        name: String,
        /// The nearest known name, if any is near.
        nearest: Option<String>,
        /// All names of this architecture.
        known: Vec<String>,
    },
    /// The store exists, but not on this CPU.
    #[error("store {name} needs {needs}, which this CPU lacks; it has {}", .available.join(", "))]
    Missing {
        /// The name of the store.
        name: String,
        /// The CPU feature that is missing.
        needs: String,
        /// The names of the stores that this CPU has.
        available: Vec<String>,
    },
}

/// The part of a message that suggests a name.
fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or(String::new(), |name| format!(", did you mean {name:?}?"))
}

/// A way of zeroing lines that this CPU has.
#[derive(Clone, Copy)]
pub struct Store(&'static Entry);

/// A way of writing images that this CPU has.
#[derive(Clone, Copy)]
pub struct ImageStore {
    store: Store,
    images: Images,
}

/// All rows of this architecture, portable ones first, narrow before wide.
fn entries() -> impl Iterator<Item = &'static Entry> {
    portable::STORES.iter().chain(isa::STORES)
}

/// A row by its name, whether or not this CPU has it.
fn entry_named(name: &str) -> Option<&'static Entry> {
    let found = entries().find(|entry| entry.name == name);
    // Only to be had by its name, so that tests of all stores do not meet it.
    #[cfg(test)]
    let found = found.or(Some(&broken::STORE).filter(|entry| entry.name == name));
    found
}

impl Store {
    /// Every store of this architecture, also those that this CPU lacks.
    pub fn table() -> Vec<StoreInfo> {
        entries()
            .map(|entry| StoreInfo {
                name: entry.name,
                kind: entry.kind,
                writes_images: entry.images.is_some(),
                needs: entry.needs,
                available: (entry.detect)(),
                about: entry.about,
            })
            .collect()
    }

    /// Every store that this CPU has, in the order of the table.
    pub fn available() -> Vec<Store> {
        entries().filter(|entry| (entry.detect)()).map(Store).collect()
    }

    /// The store with this name.
    ///
    /// # Errors
    /// [`StoreError::Unknown`] with a suggestion, or [`StoreError::Missing`] when
    /// this CPU lacks the instruction.
    pub fn named(name: &str) -> Result<Store, StoreError> {
        let Some(entry) = entry_named(name) else {
            return Err(unknown(name));
        };
        if (entry.detect)() {
            return Ok(Store(entry));
        }
        Err(StoreError::Missing {
            name: entry.name.into(),
            needs: entry.needs.into(),
            available: Self::available().iter().map(|store| store.name().into()).collect(),
        })
    }

    /// The widest store of this kind that writes images; `portable`, which is
    /// temporal, where this architecture has none.
    pub fn best_image(kind: StoreKind) -> Store {
        let names: &[&str] = match kind {
            StoreKind::Temporal => &["avx512", "avx2", "sse2", "stp"],
            StoreKind::NonTemporal => &["avx512-nt", "avx2-nt", "sse2-nt", "stnp"],
        };
        Self::first_of(names)
    }

    /// What Linux's memset of a large range executes on this CPU: `rep-stosb` with
    /// ERMS, else `rep-stosq` (`arch/x86/lib/memset_64.S`, up to v6.3); `dc-zva` on
    /// arm64 (`arch/arm64/lib/memset.S`). From v6.4 on x86 uses `rep-stosb` only
    /// with FSRS, else a loop of eight 8-byte stores, which is `unrolled` here.
    pub fn default_zero() -> Store {
        Self::first_of(&[isa::default_zero_name()])
    }

    /// The first of these that this CPU has, or `portable`.
    fn first_of(names: &[&str]) -> Store {
        let found = names.iter().find_map(|name| Self::named(name).ok());
        found.unwrap_or(Store(&portable::STORES[0]))
    }

    /// The name that [`Store::named`] takes.
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// Whether it leaves lines in the cache.
    pub fn kind(&self) -> StoreKind {
        self.0.kind
    }

    /// Whether [`Store::as_image`] gives something.
    pub fn writes_images(&self) -> bool {
        self.0.images.is_some()
    }

    /// This store as one that writes images, or `None` if it can only write zeros.
    pub fn as_image(&self) -> Option<ImageStore> {
        self.0.images.map(|images| ImageStore { store: *self, images })
    }

    /// Sets all bytes of `lines` to 0. A non-temporal store ends with a fence.
    pub fn zero(&self, lines: &mut [Line]) {
        // SAFETY: a `Store` is only made after its `detect` found the instruction.
        unsafe { (self.0.zero)(lines) }
    }
}

impl ImageStore {
    /// The same store, for zeroing.
    pub fn store(&self) -> Store {
        self.store
    }

    /// The name that [`Store::named`] takes.
    pub fn name(&self) -> &'static str {
        self.store.name()
    }

    /// Whether it leaves lines in the cache.
    pub fn kind(&self) -> StoreKind {
        self.store.kind()
    }

    /// Writes `first + i * step` to line `i`, each word wrapping by itself, with one
    /// addition and one store per register. A non-temporal store ends with a fence.
    pub fn write_images(&self, lines: &mut [Line], first: [u64; 8], step: [u64; 8]) {
        self.write_unordered(lines, &first, &step);
        self.order();
    }

    /// Writes blocks of `period` lines in one stream: the first line of block `k` gets
    /// image `k` of `head`, its line `i` image `k * period + i` of `body`. A
    /// non-temporal store ends with one fence. A `period` of 0 writes nothing.
    pub fn write_blocks(&self, lines: &mut [Line], head: Ramp, body: Ramp, period: usize) {
        if period == 0 {
            return;
        }
        for (block, lines) in lines.chunks_mut(period).enumerate() {
            let (first, rest) = lines.split_at_mut(1);
            self.write_unordered(first, &head.at(block), &head.step);
            self.write_unordered(rest, &body.at(block * period + 1), &body.step);
        }
        self.order();
    }

    /// Streaming stores are not ordered yet when this returns: `order` must follow
    /// before the exclusive borrow of the lines ends.
    fn write_unordered(&self, lines: &mut [Line], first: &[u64; 8], step: &[u64; 8]) {
        // SAFETY: a `Store` is only made after its `detect` found the instruction.
        unsafe { (self.images)(lines, first, step) }
    }

    fn order(&self) {
        if self.kind() == StoreKind::NonTemporal {
            isa::order_streams();
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({})", self.name())
    }
}

impl fmt::Debug for ImageStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ImageStore({})", self.name())
    }
}

impl PartialEq for Store {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Store {}

/// The error for a name that no store has.
fn unknown(name: &str) -> StoreError {
    let nearest = nearest(name, entries().map(|entry| entry.name)).map(str::to_owned);
    let known = entries().map(|entry| entry.name.to_owned()).collect();
    StoreError::Unknown { name: name.into(), nearest, known }
}

/// Zeroes one line by a call out of line, as v4.15 to v5.1 made one of `memset` for
/// every `struct page` (`mm/page_alloc.c: __init_single_page`): `rep stosb` with
/// ERMS or `rep stosq` on x86, `dc zva` or `stp` on arm64.
#[inline(never)]
pub fn memset_call(line: &mut Line) {
    isa::memset_line(line);
}
