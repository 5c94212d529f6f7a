// SPDX-License-Identifier: MIT OR Apache-2.0
//! Selection of the values that can be drawn.

use super::words::{count, duration, plain};
use super::{LatencySet, SETS_MAX};

/// Maximum valid time in milliseconds: 31 years.
const TIME_MAX: f64 = 1e12;
/// Maximum number of characters of a name.
pub(crate) const NAME_CHARS: usize = 60;

/// Set ready to be drawn: valid values in ascending order.
pub(crate) struct Sorted {
    pub name: String,
    pub values: Vec<f64>,
    pub total_ms: f64,
}

impl Sorted {
    fn new(set: &LatencySet) -> Sorted {
        let mut values: Vec<f64> =
            set.values_ms.iter().copied().filter(|value| is_time(*value)).collect();
        values.sort_unstable_by(f64::total_cmp);
        Sorted { name: plain(&set.name, NAME_CHARS), total_ms: values.iter().sum(), values }
    }

    /// Formats name, number of events and the longest of them.
    pub(crate) fn extent(&self) -> String {
        let Some(longest) = self.values.last() else { return self.summary() };
        format!("{}: n {}, longest {}", self.name, count(self.values.len()), duration(*longest))
    }

    /// Formats name, number of events and their sum.
    pub(crate) fn summary(&self) -> String {
        let Sorted { name, values, total_ms } = self;
        match values.len() {
            0 => format!("{name}: no events"),
            1 => format!("{name}: 1 event, {}", duration(*total_ms)),
            n => format!("{name}: {} events, {} in all", count(n), duration(*total_ms)),
        }
    }
}

/// Returns `true` for a valid time: finite, not negative, and at most [`TIME_MAX`].
pub(crate) fn is_time(ms: f64) -> bool {
    (0.0..=TIME_MAX).contains(&ms)
}

/// Returns `true` for a valid time before or after the start of a run.
pub(crate) fn is_moment(s: f64) -> bool {
    is_time(s.abs())
}

/// Returns the sets to draw, and remarks about the omitted ones.
pub(crate) fn sorted(sets: &[LatencySet]) -> (Vec<Sorted>, Vec<String>) {
    let shown: Vec<Sorted> = sets.iter().take(SETS_MAX).map(Sorted::new).collect();
    let given: usize = sets.iter().take(SETS_MAX).map(|set| set.values_ms.len()).sum();
    let kept: usize = shown.iter().map(|set| set.values.len()).sum();
    (shown, remarks(given - kept, "times", sets.len().saturating_sub(SETS_MAX), "sets"))
}

/// Returns the remarks for the footer about omitted values.
pub(crate) fn remarks(strange: usize, kind: &str, further: usize, things: &str) -> Vec<String> {
    let strange = (strange > 0).then(|| format!("Invalid {kind}, left out: {}.", count(strange)));
    let further =
        (further > 0).then(|| format!("Further {things}, not drawn: {}.", count(further)));
    strange.into_iter().chain(further).collect()
}

/// Returns the smallest and the largest value of all sets; `None` if there are no values.
pub(crate) fn extremes(sets: &[Sorted]) -> Option<(f64, f64)> {
    let firsts = sets.iter().filter_map(|set| set.values.first()).copied();
    let lasts = sets.iter().filter_map(|set| set.values.last()).copied();
    firsts.reduce(f64::min).zip(lasts.reduce(f64::max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_times_are_left_out_and_counted() {
        let values_ms = vec![3.0, f64::NAN, 1.0, f64::INFINITY, -1.0, 1e13, 0.0];
        let sets = vec![LatencySet { name: "x".to_owned(), values_ms }; SETS_MAX + 2];
        let (shown, remarks) = sorted(&sets);
        assert_eq!(
            (shown.len(), shown[0].values.as_slice()),
            (SETS_MAX, [0.0, 1.0, 3.0].as_slice())
        );
        assert_eq!(extremes(&shown), Some((0.0, 3.0)));
        insta::assert_snapshot!(remarks.join(" "), @"Invalid times, left out: 64. Further sets, not drawn: 2.");
        assert_eq!(extremes(&[]), None);
    }

    #[test]
    fn a_set_is_summed_up() {
        let sets = [vec![], vec![0.25], vec![1.5; 2_000], vec![2.0, 1.0]]
            .map(|values_ms| Sorted::new(&LatencySet { name: "key".to_owned(), values_ms }));
        let summaries = ["key: no events", "key: 1 event, 250 µs", "key: 2,000 events, 3 s in all"];
        for (set, summary) in sets.iter().zip(summaries) {
            assert_eq!(set.summary(), summary);
        }
        assert_eq!(sets[3].extent(), "key: n 2, longest 2 ms");
    }
}
