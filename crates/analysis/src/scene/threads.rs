// SPDX-License-Identifier: MIT OR Apache-2.0
//! States of the threads on the chain.

use crate::explain::describe::{frames, thread_text, wait_text};
use crate::explain::partition::length;
use crate::scene::lanes::Stretch;
use crate::scene::look::Look;
use crate::scene::picture::{Track, TrackGroup};
use crate::scene::stage::SceneStage;
use crate::timeline::recording::Recording;
use crate::timeline::threads::{Span, ThreadState};
use std::collections::{BTreeMap, BTreeSet};
use tipme_record::{Nanos, Tid};

/// Maximum number of threads shown.
const THREADS_MAX: usize = 12;

/// Returns the tracks of the threads on the chain, those with the most time first, and the set of
/// these threads.
pub(super) fn tracks(stage: &mut SceneStage<'_>) -> (Vec<Track>, BTreeSet<Tid>) {
    let mut all = on_the_chain(stage);
    if all.len() > THREADS_MAX {
        stage.left_out.push(format!(
            "{} more threads involved in the wait, each for less time than those shown.",
            all.len() - THREADS_MAX
        ));
    }
    all.truncate(THREADS_MAX);
    (all.iter().map(|tid| track(stage, *tid)).collect(), all.into_iter().collect())
}

/// Returns the application's main thread, then the others by their time on the chain or waiting for
/// it.
fn on_the_chain(stage: &SceneStage<'_>) -> Vec<Tid> {
    let chain = stage.budget.chain;
    let mut times: BTreeMap<Tid, u64> = BTreeMap::new();
    for piece in &chain.pieces {
        let waiters = chain.vias_of(piece).map(|via| via.waiter);
        for tid in waiters.chain([piece.tid]).filter(|tid| *tid != Tid(0)) {
            *times.entry(tid).or_default() += length(piece);
        }
    }
    let main = Tid(stage.problem.client.0);
    *times.entry(main).or_default() = u64::MAX;
    let mut times: Vec<(Tid, u64)> = times.into_iter().collect();
    times.sort_by_key(|(tid, time)| (std::cmp::Reverse(*time), *tid));
    times.into_iter().map(|(tid, _)| tid).collect()
}

/// Returns the track of a thread in the time of the page.
pub(super) fn track(stage: &mut SceneStage<'_>, tid: Tid) -> Track {
    let (recording, from, to) = (stage.recording, stage.from, stage.to);
    let spans: Vec<Span> = spans(recording, tid, from, to).collect();
    let stretches = spans.iter().enumerate().map(|(of, span)| Stretch {
        lo: span.start.max(from),
        hi: span.end.min(to),
        look: look(recording, span),
        of,
    });
    let stretches: Vec<Stretch> = stretches.collect();
    let bars = stage
        .bars(&stretches, |of| spans.get(of).map(|span| text(recording, span)).unwrap_or_default());
    let name = thread_text(recording, tid, stage.problem.end);
    Track { group: TrackGroup::Threads, name, look: Some(stage.actors.look(tid, to)), bars }
}

/// Returns the states of a thread in `lo..hi`, as far as it existed.
pub(super) fn spans(
    recording: &Recording,
    tid: Tid,
    lo: Nanos,
    hi: Nanos,
) -> impl Iterator<Item = Span> {
    let spans = recording.timeline.overlapping(tid, lo, hi).filter(move |span| span.end > lo);
    spans.filter(|span| span.segment.state != ThreadState::Absent)
}

fn look(recording: &Recording, span: &Span) -> Look {
    match span.segment.state {
        ThreadState::Running => Look::Running,
        ThreadState::Runnable => Look::Ready,
        ThreadState::Absent => Look::Unknown,
        ThreadState::Blocked if is_idle(recording, span) => Look::Idle,
        ThreadState::Blocked => Look::of_wait(recording.waits.kind(span)),
    }
}

/// Returns `true` if a thread waited for its next work: for events, or for work of its pool.
fn is_idle(recording: &Recording, span: &Span) -> bool {
    recording.waits.is_idle(span)
        || recording.waits.find(span).is_some_and(|wait| recording.is_event_wait_condition(wait))
}

/// Describes a state. A wait includes its kernel functions and its waker.
fn text(recording: &Recording, span: &Span) -> String {
    let place = span.segment.place;
    match span.segment.state {
        ThreadState::Running => format!("ran on CPU {place}"),
        ThreadState::Runnable => format!("was ready for CPU {place}"),
        ThreadState::Absent => String::new(),
        ThreadState::Blocked => {
            let wait = recording.waits.find(span);
            let what = wait_text(recording.waits.kind(span), wait);
            let stack =
                wait.map(|wait| frames(recording, wait)).filter(|frames| !frames.is_empty());
            let stack = stack.map(|frames| format!(" ({})", frames.join(" <- ")));
            let by = span
                .task_waker()
                .map(|by| format!("; ended by {}", thread_text(recording, by, span.end)));
            what + &stack.unwrap_or_default() + &by.unwrap_or_default()
        }
    }
}
