// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts of latencies in buckets of equal width.

use super::LatencySet;

/// Default for an invalid width, in milliseconds.
const WIDTH: f64 = 10.0;
/// Minimum width, below the resolution of any clock.
const WIDTH_MIN: f64 = 1e-6;
/// Maximum width, thirty thousand years; larger ones lose precision.
const WIDTH_MAX: f64 = 1e15;
/// Tolerance that keeps a computed value at the start of a bucket in that bucket.
const CLOSE: f64 = 1e-9;

/// Returns the given width, limited to the valid range, or 10 ms if it is invalid.
pub(crate) fn usable(width: f64) -> f64 {
    if width.is_finite() && width > 0.0 { width.clamp(WIDTH_MIN, WIDTH_MAX) } else { WIDTH }
}

/// Returns the first of several ascending widths that needs at most `buckets_max` buckets up to the
/// longest value, or else the last width.
pub(crate) fn fitting(sets: &[LatencySet], widths: &[f64], buckets_max: f64) -> f64 {
    let longest = sets.iter().flat_map(|set| &set.values_ms).copied().fold(0.0, f64::max);
    let fits = widths.iter().find(|width| longest / **width <= buckets_max);
    fits.or(widths.last()).copied().unwrap_or(WIDTH)
}

/// Returns the number of the bucket that contains a value; it saturates at the maximum.
pub(crate) fn place(value: f64, width: f64) -> u64 {
    (value / width + CLOSE).floor() as u64
}

/// Returns number and count of the non-empty buckets, in order.
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
    fn an_invalid_width_is_replaced() {
        assert_eq!([f64::NAN, 0.0, -1.0, f64::INFINITY].map(usable), [WIDTH; 4]);
        assert_eq!([0.1, 1e-30].map(usable), [0.1, WIDTH_MIN]);
    }
}
