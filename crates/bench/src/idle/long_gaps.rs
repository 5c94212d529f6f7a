// SPDX-License-Identifier: MIT OR Apache-2.0
//! The longest of the gaps that a full buffer has no room for.

/// Number of long gaps that are kept once the buffer is full.
const LONGEST: usize = 64;

/// The longest gaps that had no room in a buffer: start and length of each, in ticks.
pub(super) struct LongGaps {
    kept: [(u64, u64); LONGEST],
    shortest: usize,
}

impl LongGaps {
    pub(super) fn new() -> LongGaps {
        LongGaps { kept: [(0, 0); LONGEST], shortest: 0 }
    }

    /// Replaces the shortest gap if the new one is longer. Returns the length of the gap that is
    /// dropped.
    pub(super) fn exchange(&mut self, gap: (u64, u64)) -> u64 {
        if gap.1 <= self.kept[self.shortest].1 {
            return gap.1;
        }
        let gone = std::mem::replace(&mut self.kept[self.shortest], gap);
        self.shortest = (0..LONGEST).min_by_key(|at| self.kept[*at].1).unwrap_or_default();
        gone.1
    }

    /// Gaps in order of time.
    pub(super) fn gaps(&self) -> Vec<(u64, u64)> {
        let mut gaps: Vec<(u64, u64)> = self.kept.iter().copied().filter(|gap| gap.1 > 0).collect();
        gaps.sort_unstable();
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_stay_and_the_time_of_the_others_is_counted() {
        let mut longest = LongGaps::new();
        let gone: u64 = (1..=100).map(|at| longest.exchange((at, 1_000 * (at % 10) + at))).sum();
        let kept = longest.gaps();
        assert_eq!(kept.len(), LONGEST);
        assert!(kept.is_sorted() && kept.iter().all(|gap| gap.1 > 3_000), "{kept:?}");
        let all: u64 = (1..=100).map(|at| 1_000 * (at % 10) + at).sum();
        assert_eq!(gone + kept.iter().map(|gap| gap.1).sum::<u64>(), all);
    }
}
