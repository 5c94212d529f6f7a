// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts of latencies in a fixed number of buckets, for storage over days.
//!
//! Eight buckets per doubling, from 65.5 µs to 69 s: a value read back is at most an eighth too
//! large and never too small.

use crate::percentile::{Share, nearest_rank};
use serde::{Deserialize, Serialize};

/// Number of buckets: one below, twenty doublings of eight, one above.
pub const BUCKETS: usize = 162;

/// Latencies below 2 to this power share the first bucket.
const LEAST_BITS: u32 = 16;

/// Counts by bucket; serialised as pairs of bucket and count for the non-empty ones.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(from = "Vec<(usize, u64)>", into = "Vec<(usize, u64)>")]
pub struct Histogram {
    counts: [u64; BUCKETS],
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: [0; BUCKETS] }
    }
}

impl From<Vec<(usize, u64)>> for Histogram {
    fn from(filled: Vec<(usize, u64)>) -> Histogram {
        let mut histogram = Histogram::default();
        filled.into_iter().for_each(|(bucket, count)| histogram.add(bucket, count));
        histogram
    }
}

impl From<Histogram> for Vec<(usize, u64)> {
    fn from(histogram: Histogram) -> Vec<(usize, u64)> {
        histogram.filled().collect()
    }
}

impl Histogram {
    /// Returns the bucket of a latency in nanoseconds.
    pub fn bucket(latency: u64) -> usize {
        let bits = (u64::BITS - latency.leading_zeros()).saturating_sub(LEAST_BITS);
        match bits {
            0 => 0,
            1..=20 => {
                1 + (bits as usize - 1) * 8 + (latency >> (bits + LEAST_BITS - 4) & 7) as usize
            }
            _ => BUCKETS - 1,
        }
    }

    /// Returns the longest latency of a bucket in nanoseconds; for the last bucket, the shortest.
    pub(crate) fn upper(bucket: usize) -> u64 {
        match bucket {
            0 => (1 << LEAST_BITS) - 1,
            _ if bucket >= BUCKETS - 1 => 1 << (LEAST_BITS + 20),
            _ => {
                let (octave, eighth) = ((bucket - 1) / 8, (bucket - 1) % 8);
                ((9 + eighth as u64) << (octave as u32 + LEAST_BITS - 3)) - 1
            }
        }
    }

    /// Adds latencies to a bucket; ignored if it does not exist.
    pub fn add(&mut self, bucket: usize, count: u64) {
        if let Some(known) = self.counts.get_mut(bucket) {
            *known = known.saturating_add(count);
        }
    }

    /// Returns the number of latencies.
    pub fn n(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Returns the nearest-rank percentile, rounded up to the end of its bucket; `None` if empty.
    pub fn value(&self, share: Share) -> Option<u64> {
        self.ranked(nearest_rank(usize::try_from(self.n()).ok()?, share)? as u64)
    }

    /// Returns the latency with this many longer ones, rounded up to the end of its bucket.
    pub(crate) fn ranked_from_top(&self, longer: u64) -> Option<u64> {
        self.ranked(self.n().checked_sub(longer + 1)?)
    }

    /// Returns the latency with this many before it, rounded up to the end of its bucket.
    fn ranked(&self, rank: u64) -> Option<u64> {
        let mut before = 0u64;
        let bucket = self.counts.iter().position(|count| {
            before = before.saturating_add(*count);
            before > rank
        });
        bucket.map(Histogram::upper)
    }

    /// Returns the non-empty buckets with their counts.
    pub fn filled(&self) -> impl Iterator<Item = (usize, u64)> {
        self.counts.iter().copied().enumerate().filter(|(_, count)| *count > 0)
    }

    /// Halves all counts, so that newer ones weigh more. The cumulative sums are halved, which
    /// preserves every percentile.
    pub fn fade(&mut self) {
        let (mut before, mut kept) = (0u64, 0);
        for count in &mut self.counts {
            before = before.saturating_add(*count);
            *count = before / 2 - kept;
            kept = before / 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(latencies: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::default();
        latencies.into_iter().for_each(|latency| histogram.add(Histogram::bucket(latency), 1));
        histogram
    }

    #[test]
    fn buckets_follow_each_other_without_gaps() {
        for bucket in 0..BUCKETS - 1 {
            let upper = Histogram::upper(bucket);
            assert_eq!(
                (Histogram::bucket(upper), Histogram::bucket(upper + 1)),
                (bucket, bucket + 1)
            );
        }
        assert_eq!(Histogram::bucket(0), 0);
        assert_eq!(Histogram::bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn a_value_is_at_most_an_eighth_too_large() {
        for latency in [70_000, 1_000_000, 14_000_000, 99_999_999, 2_310_000_000, 60_000_000_000] {
            let read = of([latency]).value(Share::P50).expect("one latency");
            assert!(read >= latency && read <= latency + latency / 8, "{latency} {read}");
        }
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let histogram = of((1..=100).map(|ms| ms * 1_000_000));
        assert_eq!(
            histogram.value(Share::P98),
            Some(Histogram::upper(Histogram::bucket(98_000_000)))
        );
        assert_eq!(Histogram::default().value(Share::P98), None);
    }

    #[test]
    fn fading_keeps_percentiles() {
        let mut histogram = of((0..10_000).map(|index| 1_000_000 + index * 7_919));
        let before = [Share::P50, Share::P98].map(|share| histogram.value(share));
        histogram.fade();
        assert_eq!(histogram.n(), 5_000);
        assert_eq!([Share::P50, Share::P98].map(|share| histogram.value(share)), before);
        (0..20).for_each(|_| histogram.fade());
        assert_eq!(histogram.n(), 0);
    }
}
