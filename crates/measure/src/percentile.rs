// SPDX-License-Identifier: MIT OR Apache-2.0
//! Percentiles by nearest rank, in integers: no rounding error affects the choice of the value.

/// Share of a whole in ten-thousandths: the 98th percentile is `Share(9_800)`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Share(pub u32);

impl Share {
    /// Median.
    pub const P50: Share = Share(5_000);
    /// 98th percentile.
    pub const P98: Share = Share(9_800);
    /// 99th percentile.
    pub const P99: Share = Share(9_900);
    /// The whole.
    pub const ALL: Share = Share(10_000);

    /// Returns `true` if a percentile at this share may be shown for `n` observations: n(1 - p) >=
    /// 5.
    pub fn is_shown(self, n: usize) -> bool {
        let above = u128::from(Share::ALL.0.saturating_sub(self.0)) * n as u128;
        above >= 5 * u128::from(Share::ALL.0)
    }
}

/// Returns the 0-based index of the nearest-rank percentile of `n` sorted values: ceil(p n) - 1.
///
/// `None` for no values. Shares above the whole count as the whole.
pub(crate) fn nearest_rank(n: usize, share: Share) -> Option<usize> {
    let whole = u128::from(Share::ALL.0);
    let rank = (n as u128 * u128::from(share.0.min(Share::ALL.0))).div_ceil(whole).max(1);
    usize::try_from(rank - 1).ok().filter(|index| *index < n)
}

/// Returns the nearest-rank percentile of values in ascending order; `None` for no values.
pub(crate) fn percentile(sorted: &[u64], share: Share) -> Option<u64> {
    nearest_rank(sorted.len(), share).and_then(|index| sorted.get(index)).copied()
}

pub(crate) fn median(values: &[u64]) -> Option<u64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    percentile(&sorted, Share::P50)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_exact_at_the_edges() {
        let expected = [
            (1, 1, 1, 1),
            (2, 1, 2, 2),
            (49, 25, 49, 49),
            (50, 25, 49, 50),
            (51, 26, 50, 51),
            (99, 50, 98, 99),
            (100, 50, 98, 99),
            (101, 51, 99, 100),
            (499, 250, 490, 495),
            (500, 250, 490, 495),
        ];
        for (n, p50, p98, p99) in expected {
            let values: Vec<u64> = (1..=n).collect();
            let found = [Share(0), Share::P50, Share::P98, Share::P99, Share::ALL]
                .map(|share| percentile(&values, share));
            assert_eq!(found, [1, p50, p98, p99, n].map(Some), "{n}");
        }
    }

    #[test]
    fn nothing_has_no_percentile() {
        assert_eq!(percentile(&[], Share::P50), None);
    }

    #[test]
    fn a_percentile_is_shown_with_five_values_above_it() {
        assert!(!Share::P50.is_shown(9) && Share::P50.is_shown(10));
        assert!(!Share::P98.is_shown(249) && Share::P98.is_shown(250));
        assert!(!Share::P99.is_shown(499) && Share::P99.is_shown(500));
        assert!(!Share::ALL.is_shown(usize::MAX));
    }
}
