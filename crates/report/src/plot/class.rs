// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plots of the events of one class, with a set of latencies for each result or run.

use super::buckets::fitting;
use super::cumulative::cumulative_by_latency;
use super::histograms::histograms;
use super::percentiles::percentiles;
use super::{Figure, LatencySet};

/// Bucket widths of a histogram, ascending, and maximum number of buckets.
const BUCKETS_MS: [f64; 5] = [0.001, 0.01, 0.1, 1.0, 10.0];
const BUCKETS_MAX: f64 = 200.0;

/// Plots histograms, percentiles, and cumulative time by length. The title of each plot is that of
/// the figure and its own, and its name is suitable for a file.
pub(crate) fn class_plots(figure: &Figure<'_>, sets: &[LatencySet]) -> [(&'static str, String); 3] {
    let bucket_ms = fitting(sets, &BUCKETS_MS, BUCKETS_MAX);
    let by_length = format!("{} by {}", figure.quantity.sum(), figure.quantity.name());
    let titles =
        ["histograms", "percentiles", &by_length].map(|title| format!("{}: {title}", figure.title));
    let [buckets, shares, sums] = titles.each_ref().map(|title| Figure { title, ..*figure });
    [
        ("histograms", histograms(&buckets, sets, bucket_ms)),
        ("percentiles", percentiles(&shares, sets)),
        ("cumulative-latency-by-latency", cumulative_by_latency(&sums, sets)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket_ms(values_ms: &[f64]) -> f64 {
        let set = LatencySet { name: String::new(), values_ms: values_ms.to_vec() };
        fitting(&[set], &BUCKETS_MS, BUCKETS_MAX)
    }

    #[test]
    fn buckets_follow_the_longest() {
        let lengths: [&[f64]; 5] = [&[0.05], &[150.0], &[1.0, 250.0], &[1e9], &[]];
        assert_eq!(lengths.map(bucket_ms), [0.001, 1.0, 10.0, 10.0, 0.001]);
    }
}
