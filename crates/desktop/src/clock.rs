// SPDX-License-Identifier: MIT OR Apache-2.0
//! The single clock of the product.

use rustix::time::{ClockId, clock_gettime};
use tipme_record::Nanos;

/// Returns the time of CLOCK_MONOTONIC.
pub fn now() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
