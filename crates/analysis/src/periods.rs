// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a cause comes back at regular times, looked for in all that was recorded.

use crate::chain::Piece;
use crate::interrupts::Source;
use crate::jobs::Job;
use crate::model::Kind;
use crate::partition::{Budget, Group, Owner};
use crate::timeline::State;
use tipme_record::{Cpu, Nanos, Tid};

/// With fewer activations nothing is called periodic.
const ACTIVATIONS_MIN: usize = 4;

/// Intervals deviate by less than this share of their mean.
const DEVIATION_MAX: f64 = 0.1;

/// An interval may be this many periods long: activations in between were missed.
const MISSED_MAX: f64 = 3.0;

/// At most one activation in so many is missed.
const MISSED_SHARE: usize = 3;

/// Runs closer together are one activation: the culprit was interrupted by others.
const MERGE: Nanos = Nanos::from_millis(5);

/// Runs that are looked at; with more of them nothing is called periodic.
const RUNS_MAX: usize = 1_000_000;

/// A regular recurrence.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Period {
    pub every: Nanos,
    /// Activations that were seen.
    pub times: usize,
    /// Standard deviation of the intervals as a share of their mean.
    pub deviation: f64,
}

/// When something was active.
type Run = (Nanos, Nanos);

impl Period {
    /// `every 5.0 s (7 times, deviation 0.4 %)`.
    pub fn text(&self) -> String {
        let ms = self.every.millis();
        let every = if ms >= 999.5 { format!("{:.1} s", ms / 1e3) } else { format!("{ms:.1} ms") };
        format!("every {every} ({} times, deviation {:.1} %)", self.times, 100.0 * self.deviation)
    }

    /// For the verdict.
    pub fn seconds(&self) -> f64 {
        self.every.0 as f64 / 1e9
    }
}

/// The period of activations that begin at these times, where they have one.
pub fn period(begins: &[Nanos]) -> Option<Period> {
    if begins.len() < ACTIVATIONS_MIN {
        return None;
    }
    let intervals: Vec<f64> = begins.windows(2).map(|pair| pair[1].since(pair[0]).0 as f64).collect();
    let mut sorted = intervals.clone();
    sorted.sort_by(f64::total_cmp);
    // Not the upper median: of two intervals one may hold a missed activation.
    let base = sorted[(sorted.len() - 1) / 2];
    let periods: Vec<f64> = intervals.iter().map(|interval| (interval / base.max(1.0)).round()).collect();
    let missed: f64 = periods.iter().map(|periods| periods - 1.0).sum();
    let fits = periods.iter().all(|periods| (1.0..=MISSED_MAX).contains(periods));
    if !fits || missed * MISSED_SHARE as f64 > periods.len() as f64 {
        return None;
    }
    let single: Vec<f64> = intervals.iter().zip(&periods).map(|(interval, periods)| interval / periods).collect();
    let mean = single.iter().sum::<f64>() / single.len() as f64;
    let variance = single.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / single.len() as f64;
    let deviation = variance.sqrt() / mean.max(1.0);
    (deviation < DEVIATION_MAX).then_some(Period { every: Nanos(mean as u64), times: begins.len(), deviation })
}

/// The period of what a group of pieces is due to.
pub fn of(budget: &Budget<'_>, group: &Group) -> Option<Period> {
    let mut runs = match (&group.owner, group.kind) {
        (Owner::Interrupt(source), Kind::Interrupt) => interrupts(budget, *source),
        (Owner::Job(job), Kind::CpuCompetition) => runs_of(budget, job),
        (_, Kind::Stall) => stalls(budget),
        _ => return None,
    };
    if runs.len() > RUNS_MAX {
        return None;
    }
    runs.sort_unstable();
    let runs = merged(&runs);
    let pieces: Vec<&Piece> = budget.pieces(group).collect();
    let hurt = runs.iter().filter(|run| reaches(run, &pieces));
    let least = Nanos(hurt.map(|run| run.1.since(run.0).0).max()? / 2);
    let begins: Vec<Nanos> = runs.iter().filter(|run| run.1.since(run.0) >= least).map(|run| run.0).collect();
    period(&begins)
}

/// Whether a run reaches into one of the pieces, which are in the order of time and do not overlap.
fn reaches(run: &Run, pieces: &[&Piece]) -> bool {
    let first = pieces.partition_point(|piece| piece.hi <= run.0);
    pieces.get(first).is_some_and(|piece| piece.lo < run.1)
}

/// Runs in the order of time, those close together as one.
fn merged(runs: &[Run]) -> Vec<Run> {
    let mut merged: Vec<Run> = Vec::new();
    for run in runs {
        match merged.last_mut() {
            Some(last) if run.0 <= last.1.after(MERGE) => last.1 = last.1.max(run.1),
            _ => merged.push(*run),
        }
    }
    merged
}

fn interrupts(budget: &Budget<'_>, source: Source) -> Vec<Run> {
    let of = budget.recording.interrupts.all().iter().filter(|interrupt| interrupt.source == source);
    of.map(|interrupt| (interrupt.start, interrupt.end)).collect()
}

/// When any thread of a job ran.
fn runs_of(budget: &Budget<'_>, job: &Job) -> Vec<Run> {
    let timeline = &budget.recording.timeline;
    let mut runs = Vec::new();
    for tid in timeline.threads() {
        // A thread is ignored where its last life belongs to another job: ids are seldom used twice in a window.
        if budget.jobs.of(tid, budget.recording.mark) != *job {
            continue;
        }
        let spans = timeline.spans(tid).filter(|span| span.segment.state == State::Running);
        runs.extend(spans.map(|span| (span.start, span.end)).take(RUNS_MAX + 1 - runs.len().min(RUNS_MAX)));
    }
    runs
}

/// When any thread was ready beside an idle CPU for longer than a wake-up takes.
fn stalls(budget: &Budget<'_>) -> Vec<Run> {
    let timeline = &budget.recording.timeline;
    let ready = timeline.threads().flat_map(|tid| timeline.spans(tid)).filter(|span| {
        span.segment.state == State::Runnable && span.end.since(span.start) >= crate::blame::HELD_BACK_MIN
    });
    let idle = |cpu: u16, lo, hi| {
        let ran = timeline.ran(Cpu(u32::from(cpu)), lo, hi);
        ran.into_iter().filter(|(by, ..)| *by == Some(Tid(0))).map(|(_, lo, hi)| (lo, hi)).collect::<Vec<Run>>()
    };
    let runs = ready.take(RUNS_MAX).flat_map(|span| idle(span.segment.place, span.start, span.end));
    runs.filter(|run| run.1.since(run.0) >= crate::blame::HELD_BACK_MIN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    fn times(seconds: &[f64]) -> Vec<Nanos> {
        seconds.iter().map(|at| Nanos((at * 1e9) as u64)).collect()
    }

    #[test]
    fn figures_are_told() {
        let found = period(&times(&[1.0, 6.0, 11.02, 16.0, 21.0, 26.0, 31.0])).expect("it is regular");
        assert_eq!(found.text(), "every 5.0 s (7 times, deviation 0.2 %)");
        let fast = Period { every: Nanos(33_300_000), times: 9, deviation: 0.0 };
        assert_eq!(fast.text(), "every 33.3 ms (9 times, deviation 0.0 %)");
    }

    #[test]
    fn what_is_irregular_or_rare_has_no_period() {
        assert_eq!(period(&times(&[1.0, 2.0, 3.0])), None);
        assert_eq!(period(&times(&[1.0, 2.0, 4.5, 4.9, 9.0, 9.3])), None);
        assert_eq!(period(&times(&[1.0, 1.0, 1.0, 1.0, 1.0])), None);
        assert_eq!(period(&times(&[0.0, 1.0, 3.0, 4.0, 6.0, 7.0, 9.0, 10.0])), None);
    }

    #[test]
    fn interrupted_runs_are_one_activation() {
        let ms = |lo, hi| (Nanos::from_millis(lo), Nanos::from_millis(hi));
        assert_eq!(merged(&[ms(0, 10), ms(14, 30), ms(20, 25), ms(40, 50)]), [ms(0, 30), ms(40, 50)]);
    }

    fn jittered(every: u64, jitter: &[f64]) -> Vec<Nanos> {
        let at = |(index, jitter): (usize, &f64)| Nanos(SECOND + index as u64 * every + (jitter * every as f64) as u64);
        jitter.iter().enumerate().map(at).collect()
    }

    proptest! {
        #[test]
        fn jitter_up_to_a_twentieth_keeps_the_period(
            every in 10_000_000..20 * SECOND,
            jitter in proptest::collection::vec(0.0..0.05_f64, 4..40),
        ) {
            let found = period(&jittered(every, &jitter));
            prop_assert!(found.is_some());
            let error = found.map_or(1.0, |found| (found.every.0 as f64 / every as f64 - 1.0).abs());
            prop_assert!(error < 0.05, "{}", error);
        }

        #[test]
        fn a_missed_one_keeps_the_period(
            every in 10_000_000..20 * SECOND,
            jitter in proptest::collection::vec(0.0..0.05_f64, 6..40),
            missed in 1..5_usize,
        ) {
            let mut begins = jittered(every, &jitter);
            begins.remove(missed);
            let found = period(&begins);
            prop_assert!(found.is_some_and(|found| found.times == begins.len()));
            let error = found.map_or(1.0, |found| (found.every.0 as f64 / every as f64 - 1.0).abs());
            prop_assert!(error < 0.05, "{}", error);
        }

        #[test]
        fn any_times_are_answered(mut begins in proptest::collection::vec(0..u64::MAX, 0..30)) {
            begins.sort_unstable();
            let begins: Vec<Nanos> = begins.into_iter().map(Nanos).collect();
            let found = period(&begins);
            prop_assert!(found.is_none_or(|found| found.deviation < DEVIATION_MAX));
        }
    }
}
