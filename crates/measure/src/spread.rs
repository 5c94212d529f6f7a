// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decomposition of the differences between repeats.

/// Returns the share of each part in the variance of the total, given the time of each part in each
/// repeat. The shares sum to 1; a part that falls as the total rises has a negative one. Returns
/// `None` if the total is always the same.
pub fn spread_shares(parts: &[Vec<f64>]) -> Option<Vec<f64>> {
    let repeats = parts.iter().map(Vec::len).min().unwrap_or_default();
    let total: Vec<f64> = (0..repeats).map(|at| parts.iter().map(|part| part[at]).sum()).collect();
    let variance = covariance(&total, &total);
    (variance > 0.0).then(|| parts.iter().map(|part| covariance(part, &total) / variance).collect())
}

fn covariance(one: &[f64], other: &[f64]) -> f64 {
    let [mean, other_mean] = [one, other]
        .map(|values| values.iter().take(other.len()).sum::<f64>() / other.len().max(1) as f64);
    one.iter().zip(other).map(|(one, other)| (one - mean) * (other - other_mean)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_that_differs_has_the_share() {
        let parts = [vec![10.0, 10.0, 10.0], vec![1.0, 5.0, 3.0], vec![2.0, 2.0, 2.0]];
        assert_eq!(spread_shares(&parts), Some(vec![0.0, 1.0, 0.0]));
        let both = spread_shares(&[vec![1.0, 2.0, 3.0], vec![3.0, 6.0, 9.0]]).expect("they differ");
        assert!((both[0] - 0.25).abs() < 1e-9 && (both[1] - 0.75).abs() < 1e-9, "{both:?}");
        assert_eq!((spread_shares(&[vec![1.0, 1.0]]), spread_shares(&[])), (None, None));
    }
}
