// SPDX-License-Identifier: MIT OR Apache-2.0
//! Thinning of the stretches of one thread or CPU: long ones stay, short ones are merged.

use crate::scene::look::Look;
use std::collections::BTreeMap;
use tipme_record::Nanos;

/// Stretch of time in one state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stretch {
    pub lo: Nanos,
    pub hi: Nanos,
    pub look: Look,
    /// Index that the creator of the stretch gave it.
    pub of: usize,
}

/// Consecutive stretches merged into one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct StretchRun {
    pub lo: Nanos,
    pub hi: Nanos,
    /// Look with the largest part of the time, apart from idle time.
    pub look: Look,
    /// Index of the longest stretch with this look.
    pub of: usize,
    pub count: usize,
    /// Share of the time with this look, 0 to 1.
    pub share: f64,
}

impl Stretch {
    fn length(&self) -> u64 {
        self.hi.since(self.lo).0
    }
}

/// Merges stretches, which are in order of time, into at most about `max` runs. Each stretch is in
/// exactly one run. Only stretches shorter than a fraction of the whole are merged, and only into
/// runs of at most twice that fraction.
pub(super) fn thin(stretches: &[Stretch], max: usize) -> Vec<StretchRun> {
    let (Some(first), Some(last)) = (stretches.first(), stretches.last()) else {
        return Vec::new();
    };
    let whole = last.hi.since(first.lo).0.max(1);
    // Fractions start at 1/2^32 of the whole and grow by a factor of four. The last one makes any
    // lane fit.
    let fractions = (0..).map(|step| whole.checked_shr(32 - 2 * step).unwrap_or(0));
    let coarsest = whole / (max as u64 / 3).max(1) + 1;
    let limits = [0]
        .into_iter()
        .chain(fractions.take(16).filter(|limit| *limit < coarsest))
        .chain([coarsest]);
    let runs = limits.map(|short| runs(stretches, short)).find(|runs| runs.len() <= max);
    let runs = runs.unwrap_or_else(|| self::runs(stretches, coarsest));
    runs.iter().filter_map(|run| sum_up(run)).collect()
}

/// Thins stretches that may overlap, in order of their start. If there are more than `max`, only
/// the longest in each `step` nanoseconds after `from` is kept.
pub(super) fn sparse(stretches: &[Stretch], from: Nanos, step: u64, max: usize) -> Vec<StretchRun> {
    let mut kept: Vec<StretchRun> = Vec::new();
    for Stretch { lo, hi, look, of } in stretches.iter().copied() {
        let new = StretchRun { lo, hi, look, of, count: 1, share: 1.0 };
        let place = lo.since(from).0 / step.max(1);
        match kept.last_mut() {
            Some(last) if stretches.len() > max && last.lo.since(from).0 / step.max(1) == place => {
                let count = last.count + 1;
                if hi.since(lo) > last.hi.since(last.lo) {
                    *last = new;
                }
                last.count = count;
            }
            _ => kept.push(new),
        }
    }
    kept
}

/// Splits into slices of one stretch or several short ones.
fn runs(stretches: &[Stretch], short: u64) -> Vec<&[Stretch]> {
    let (mut runs, mut from) = (Vec::new(), 0);
    for (at, stretch) in stretches.iter().enumerate().skip(1) {
        let begin = &stretches[from];
        let fits = stretch.hi.since(begin.lo).0 <= short.saturating_mul(2);
        if !(fits && begin.length() < short && stretch.length() < short) {
            runs.push(&stretches[from..at]);
            from = at;
        }
    }
    runs.push(&stretches[from..]);
    runs
}

fn sum_up(run: &[Stretch]) -> Option<StretchRun> {
    let (first, last) = (run.first()?, run.last()?);
    let mut looks: BTreeMap<Look, (u64, &Stretch)> = BTreeMap::new();
    for stretch in run {
        let (time, longest) = looks.entry(stretch.look).or_insert((0, stretch));
        *time += stretch.length();
        if stretch.length() > longest.length() {
            *longest = stretch;
        }
    }
    let (look, (time, longest)) =
        looks.into_iter().max_by_key(|(look, (time, _))| (*look != Look::Idle, *time))?;
    let whole = last.hi.since(first.lo).0.max(1);
    let share = if run.len() == 1 { 1.0 } else { time as f64 / whole as f64 };
    Some(StretchRun { lo: first.lo, hi: last.hi, look, of: longest.of, count: run.len(), share })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stretch(lo: u64, hi: u64, look: Look, of: usize) -> Stretch {
        Stretch { lo: Nanos(lo), hi: Nanos(hi), look, of }
    }

    fn stretches(lengths: &[u64]) -> Vec<Stretch> {
        let (mut at, mut stretches) = (0, Vec::new());
        for (of, length) in lengths.iter().enumerate() {
            stretches.push(stretch(at, at + length, Look::ALL[of % 3].0, of));
            at += length;
        }
        stretches
    }

    #[test]
    fn long_stretches_stay_and_short_ones_are_summed_up() {
        let mut lengths = vec![1_u64; 1_000];
        lengths.push(100_000);
        let runs = thin(&stretches(&lengths), 30);
        assert!(runs.len() <= 30, "{}", runs.len());
        let last = runs.last().expect("there are some");
        assert_eq!((last.count, last.of, last.share), (1, 1_000, 1.0));
        assert_eq!(runs.iter().map(|run| run.count).sum::<usize>(), 1_001);
    }

    #[test]
    fn the_look_of_a_run_is_that_of_its_busy_time() {
        let lane = [
            stretch(0, 8, Look::Idle, 0),
            stretch(8, 9, Look::App, 1),
            stretch(9, 10, Look::Idle, 2),
        ];
        let run = sum_up(&lane).expect("there is one");
        assert_eq!((run.look, run.of, run.count, run.share), (Look::App, 1, 3, 0.1));
    }

    #[test]
    fn the_longest_of_overlapping_stretches_in_a_step_stays() {
        let all = [(100, 105), (101, 110), (102, 109), (103, 104)];
        let all = [0, 1, 2, 3].map(|of| stretch(all[of].0, all[of].1, Look::App, of));
        for (max, expected) in [(4, &[(0, 1), (1, 1), (2, 1), (3, 1)][..]), (3, &[(1, 3), (3, 1)])]
        {
            let runs = sparse(&all, Nanos(101), 2, max);
            let kept: Vec<_> = runs.iter().map(|run| (run.of, run.count)).collect();
            assert_eq!(kept, expected, "at most {max}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn no_lane_is_too_long_and_nothing_is_lost(
            lengths in prop::collection::vec(prop_oneof![1..10_u64, 1..1_000_000_u64], 0..3_000),
            max in 10..300_usize,
        ) {
            let lane = stretches(&lengths);
            let runs = thin(&lane, max);
            prop_assert!(runs.len() <= max + 2, "{} over {max}", runs.len());
            prop_assert_eq!(runs.iter().map(|run| run.count).sum::<usize>(), lane.len());
            prop_assert!(runs.windows(2).all(|pair| pair[0].hi == pair[1].lo));
            prop_assert!(runs.iter().all(|run| (0.0..=1.0).contains(&run.share)));
        }
    }
}
