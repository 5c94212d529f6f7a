// SPDX-License-Identifier: MIT OR Apache-2.0
//! Nanoseconds are counted, milliseconds are shown.

/// Nanoseconds in milliseconds.
pub const fn ms(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}
