//! A store with a defect, so that tests can see that verification finds one.
//!
//! [`STORE`] is in no list: only its name leads to it, and only in unit tests.

use super::{Entry, StoreKind};
use crate::host::line::Line;

/// Leaves the last word of every 1000th line as it was.
pub(super) static STORE: Entry = Entry {
    name: "broken-for-tests",
    kind: StoreKind::NonTemporal,
    needs: "nothing",
    about: "leaves out the last word of every 1000th line",
    detect: || true,
    zero,
    images: Some(images),
};

fn zero(lines: &mut [Line]) {
    images(lines, &[0; 8], &[0; 8]);
}

fn images(lines: &mut [Line], first: &[u64; 8], step: &[u64; 8]) {
    let mut image = *first;
    for line in lines {
        // By address, or short slices would never have a 1000th line.
        let is_left_out =
            (std::ptr::from_ref(line).addr() / size_of::<Line>()).is_multiple_of(1000);
        let before = line.word::<7>();
        *line = Line::new(image);
        if is_left_out {
            line.set_word::<7>(before);
        }
        for (word, by) in image.iter_mut().zip(step) {
            *word = word.wrapping_add(*by);
        }
    }
}
