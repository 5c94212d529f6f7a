// SPDX-License-Identifier: MIT OR Apache-2.0
//! Brake by which the manager's loop stops reading ahead without waiting for the thread.

use std::sync::atomic::{AtomicU64, Ordering};
use tipme_record::Nanos;

/// Time before which nothing is read, in nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct Brake(AtomicU64);

impl Brake {
    /// Blocks reading until this time.
    pub(crate) fn hold_until(&self, time: Nanos) {
        self.0.fetch_max(time.0, Ordering::Relaxed);
    }

    /// Stops reading for good.
    pub(crate) fn stop(&self) {
        self.hold_until(Nanos(u64::MAX));
    }

    pub(crate) fn holds(&self, now: Nanos) -> bool {
        now.0 < self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.holds(Nanos(u64::MAX - 1))
    }
}
