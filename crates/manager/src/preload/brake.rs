// SPDX-License-Identifier: MIT OR Apache-2.0
//! By which the manager's loop stops what reads ahead, without ever waiting for it.

use std::sync::atomic::{AtomicU64, Ordering};
use tipme_record::Nanos;

/// Nothing is read before this time, in nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct Brake(AtomicU64);

impl Brake {
    /// Nothing is read before this time.
    pub(crate) fn hold_until(&self, time: Nanos) {
        self.0.fetch_max(time.0, Ordering::Relaxed);
    }

    /// Nothing is read any more.
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
