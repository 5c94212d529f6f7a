// SPDX-License-Identifier: MIT OR Apache-2.0
//! Conversion for display: counting is in nanoseconds, display in milli- or microseconds.

/// Converts nanoseconds to milliseconds.
pub const fn ms(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

/// Converts nanoseconds to microseconds.
pub(crate) const fn us(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}
