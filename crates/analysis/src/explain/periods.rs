// SPDX-License-Identifier: MIT OR Apache-2.0
//! Periodicity of a cause in the whole recording.

use crate::explain::chain::ChainPiece;
use crate::explain::jobs::Job;
use crate::explain::partition::{BlameGroup, BlameOwner, Budget};
use crate::model::CauseKind;
use crate::timeline::interrupts::Source;
use crate::timeline::threads::ThreadState;
use tipme_measure::{Period, period};
use tipme_record::{Cpu, Nanos, Tid};

/// Maximum gap between runs of one activation: others interrupted the culprit.
const MERGE: Nanos = Nanos::from_millis(5);

/// Maximum number of runs; with more, nothing is called periodic.
const RUNS_MAX: usize = 1_000_000;

/// Start and end of an active time.
type Run = (Nanos, Nanos);

/// Returns the period at which the cause of a group recurs.
pub(crate) fn of(budget: &Budget<'_>, group: &BlameGroup) -> Option<Period> {
    let mut runs = match (&group.owner, group.kind) {
        (BlameOwner::Interrupt(source), CauseKind::Interrupt) => interrupts(budget, *source),
        (BlameOwner::Job(job), CauseKind::CpuCompetition) => runs_of(budget, job),
        (_, CauseKind::Stall) => stalls(budget),
        _ => return None,
    };
    if runs.len() > RUNS_MAX {
        return None;
    }
    runs.sort_unstable();
    let runs = merged(&runs);
    let pieces: Vec<&ChainPiece> = budget.pieces(group).collect();
    let hurt = runs.iter().filter(|run| reaches(run, &pieces));
    let least = Nanos(hurt.map(|run| run.1.since(run.0).0).max()? / 2);
    let begins: Vec<u64> =
        runs.iter().filter(|run| run.1.since(run.0) >= least).map(|run| run.0.0).collect();
    period(&begins)
}

/// Returns `true` if a run overlaps one of the pieces, which are in order of time and do not
/// overlap each other.
fn reaches(run: &Run, pieces: &[&ChainPiece]) -> bool {
    let first = pieces.partition_point(|piece| piece.hi <= run.0);
    pieces.get(first).is_some_and(|piece| piece.lo < run.1)
}

/// Merges nearby runs, which are in order of time.
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
    let of =
        budget.recording.interrupts.all().iter().filter(|interrupt| interrupt.source == source);
    of.map(|interrupt| (interrupt.start, interrupt.end)).collect()
}

/// Returns the runs of all threads of a job.
fn runs_of(budget: &Budget<'_>, job: &Job) -> Vec<Run> {
    let timeline = &budget.recording.timeline;
    let mut runs = Vec::new();
    for tid in timeline.threads() {
        // Threads are matched by the job of their last life: ids are seldom reused within a window.
        if budget.jobs.of(tid, budget.recording.mark) != *job {
            continue;
        }
        let spans = timeline.spans(tid).filter(|span| span.segment.state == ThreadState::Running);
        runs.extend(
            spans.map(|span| (span.start, span.end)).take(RUNS_MAX + 1 - runs.len().min(RUNS_MAX)),
        );
    }
    runs
}

/// Returns the times in which a thread was runnable beside an idle CPU for longer than a wakeup
/// takes.
fn stalls(budget: &Budget<'_>) -> Vec<Run> {
    let timeline = &budget.recording.timeline;
    let ready = timeline.threads().flat_map(|tid| timeline.spans(tid)).filter(|span| {
        span.segment.state == ThreadState::Runnable
            && span.end.since(span.start) >= crate::explain::blame::HELD_BACK_MIN
    });
    let idle = |cpu: u16, lo, hi| {
        let ran = timeline.ran(Cpu(u32::from(cpu)), lo, hi);
        ran.into_iter()
            .filter(|(by, ..)| *by == Some(Tid(0)))
            .map(|(_, lo, hi)| (lo, hi))
            .collect::<Vec<Run>>()
    };
    let runs = ready.take(RUNS_MAX).flat_map(|span| idle(span.segment.place, span.start, span.end));
    runs.filter(|run| run.1.since(run.0) >= crate::explain::blame::HELD_BACK_MIN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupted_runs_are_one_activation() {
        let ms = |lo, hi| (Nanos::from_millis(lo), Nanos::from_millis(hi));
        assert_eq!(
            merged(&[ms(0, 10), ms(14, 30), ms(20, 25), ms(40, 50)]),
            [ms(0, 30), ms(40, 50)]
        );
    }
}
