//! Progress bars on a terminal.
//!
//! [`Bar`] redraws only when told about progress, so nothing ticks while something
//! is being timed.

use crate::progress::{Progress, Unit};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::{Mutex, PoisonError};

/// The bar of the current stage, if stderr is a terminal.
#[derive(Debug, Default)]
pub(super) struct Bar {
    current: Mutex<Option<ProgressBar>>,
}

impl Bar {
    fn with(&self, act: impl FnOnce(&mut Option<ProgressBar>)) {
        act(&mut self.current.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Progress for Bar {
    fn begin(&self, what: &str, total: u64, unit: Unit) {
        let template = match unit {
            Unit::Bytes => "{msg:12} [{bar:30}] {bytes}/{total_bytes} eta {eta}",
            Unit::Runs => "{msg:12} [{bar:30}] {pos}/{len} eta {eta}",
        };
        let style = ProgressStyle::with_template(template)
            .map(|s| s.progress_chars("=> "))
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let target = ProgressDrawTarget::stderr_with_hz(5);
        let bar = ProgressBar::with_draw_target(Some(total), target).with_style(style);
        self.with(|current| *current = Some(bar.with_message(what.to_owned())));
    }

    fn advance(&self, done: u64) {
        self.with(|current| {
            if let Some(bar) = current {
                bar.inc(done);
            }
        });
    }

    fn end(&self) {
        self.with(|current| {
            if let Some(bar) = current.take() {
                bar.finish_and_clear();
            }
        });
    }
}
