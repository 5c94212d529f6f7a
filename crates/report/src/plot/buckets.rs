// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts of latencies in buckets of equal width.

/// Where no bucket is given that could be one.
const WIDTH: f64 = 10.0;
/// Narrower buckets are below what any clock tells.
const WIDTH_MIN: f64 = 1e-6;
/// Wider ones, of thirty thousand years, cannot be counted up from.
const WIDTH_MAX: f64 = 1e15;
/// A value at the begin of a bucket stays in it, though it was computed.
const CLOSE: f64 = 1e-9;

/// The width as given, or 10 ms where it is not a width.
pub(crate) fn usable(width: f64) -> f64 {
    if width.is_finite() && width > 0.0 { width.clamp(WIDTH_MIN, WIDTH_MAX) } else { WIDTH }
}

/// The number of the bucket that a value falls into; the last possible one where it is too large.
pub(crate) fn place(value: f64, width: f64) -> u64 {
    (value / width + CLOSE).floor() as u64
}

/// Number and count of the buckets that are not empty, in order.
pub(crate) fn counts(ascending: &[f64], width: f64) -> Vec<(u64, u64)> {
    let mut out: Vec<(u64, u64)> = Vec::new();
    for value in ascending {
        let at = place(*value, width);
        match out.last_mut() {
            Some((known, count)) if *known == at => *count += 1,
            _ => out.push((at, 1)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fall_into_the_bucket_that_begins_at_or_below_them() {
        assert_eq!(counts(&[0.0, 9.999, 10.0, 19.0, 30.0], 10.0), [(0, 2), (1, 2), (3, 1)]);
        assert_eq!(place(0.3, 0.1), 3);
        assert_eq!(place(1e300, 1e-6), u64::MAX);
    }

    #[test]
    fn what_is_no_width_is_replaced() {
        assert_eq!([f64::NAN, 0.0, -1.0, f64::INFINITY].map(usable), [WIDTH; 4]);
        assert_eq!([0.1, 1e-30].map(usable), [0.1, WIDTH_MIN]);
    }
}
