//! How much room a page has: [`Budget`].

/// Bytes that may still be used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    left: usize,
}

impl Budget {
    pub(super) const fn new(bytes: usize) -> Self {
        Self { left: bytes }
    }

    /// Takes so many bytes where they are left.
    pub(super) const fn take(&mut self, bytes: usize) -> bool {
        let fits = bytes <= self.left;
        if fits {
            self.left -= bytes;
        }
        fits
    }

    /// Takes so many bytes, or all that are left.
    pub(super) const fn spend(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
    }

    /// What each of `parts` gets of the rest.
    pub(super) const fn share(&self, parts: usize) -> usize {
        match parts {
            0 => self.left,
            _ => self.left / parts,
        }
    }
}
