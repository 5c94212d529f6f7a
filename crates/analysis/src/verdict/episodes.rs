// SPDX-License-Identifier: MIT OR Apache-2.0
//! Episodes: stretches of one thread between two idle waits, for processes without user input.

use crate::timeline::recording::Recording;
use crate::timeline::threads::{Span, ThreadState};
use crate::timeline::waits::Waited;
use std::collections::BTreeSet;
use tipme_record::{Nanos, Pid, SystemCall, Tid};

/// Minimum number of sleeps for them to count as the idle time of a thread; they must also fill
/// half of the time.
const SLEEPS_MIN: usize = 3;

/// Stretch of one thread between two idle waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Episode {
    pub tid: Tid,
    pub start: Nanos,
    pub end: Nanos,
}

/// Returns the longest episode that overlaps a time, and all episodes, of the given processes.
/// Without a list, the processes that read terminals are used.
pub(crate) fn longest(
    recording: &Recording,
    pids: Option<&[Pid]>,
    (lo, hi): (Nanos, Nanos),
) -> Option<(Episode, Vec<Episode>)> {
    let lives = recording.tasks.lives().iter().filter(|life| !life.is_kernel());
    let asked = lives.filter(|life| match pids {
        Some(pids) => pids.contains(&life.pid),
        None => reads_terminal(recording, life.tid),
    });
    let mut tids: Vec<Tid> = asked.map(|life| life.tid).collect();
    tids.dedup();
    let episodes: Vec<Episode> = tids.iter().flat_map(|tid| episodes(recording, *tid)).collect();
    let complete = recording.complete_from();
    let near =
        |episode: &&Episode| episode.start < hi && episode.end > lo && episode.start >= complete;
    let worst = episodes
        .iter()
        .filter(near)
        .max_by_key(|episode| episode.end.since(episode.start))
        .copied()?;
    Some((worst, episodes))
}

/// Returns the time of a delay as an episode of the busiest thread of a process, unless that thread
/// was idle for most of it.
pub(crate) fn meanwhile(
    recording: &Recording,
    pid: Pid,
    (lo, hi): (Nanos, Nanos),
) -> Option<Episode> {
    let threads =
        recording.tasks.lives().iter().filter(|life| life.pid == pid && !life.is_kernel());
    let tids: BTreeSet<Tid> = threads.map(|life| life.tid).collect();
    let (busy, tid) =
        tids.into_iter().map(|tid| (busy_within(recording, tid, (lo, hi)), tid)).max()?;
    (busy.saturating_mul(2) >= hi.since(lo).0).then_some(Episode { tid, start: lo, end: hi })
}

/// Returns the time in nanoseconds for which a thread was neither absent nor waiting for its next
/// work.
fn busy_within(recording: &Recording, tid: Tid, (lo, hi): (Nanos, Nanos)) -> u64 {
    let absent = |span: &Span| span.segment.state == ThreadState::Absent;
    let idle = |span: &Span| {
        absent(span)
            || blocked(span) && (recording.waits.is_idle(span) || awaits_work(recording, span))
    };
    let spans = recording
        .timeline
        .spans(tid)
        .skip_while(|span| span.end <= lo)
        .take_while(|span| span.start < hi);
    spans.filter(|span| !idle(span)).map(|span| span.end.min(hi).since(span.start.max(lo)).0).sum()
}

fn reads_terminal(recording: &Recording, tid: Tid) -> bool {
    recording.waits.of_thread(tid).iter().any(|wait| {
        wait.call() == Some(SystemCall::read) && recording.waits.kind_of(wait) == Waited::Events
    })
}

/// Returns the stretches between the idle waits of a thread. For a thread without idle waits, each
/// wait other than a sleep is an episode.
fn episodes(recording: &Recording, tid: Tid) -> Vec<Episode> {
    let paced = is_paced_by_sleeps(recording, tid);
    let waits_on = |span: &Span| {
        recording.waits.is_idle(span)
            || paced && is_sleep(recording, span)
            || awaits_work(recording, span)
    };
    let idle =
        |span: &Span| span.segment.state == ThreadState::Absent || blocked(span) && waits_on(span);
    let (mut episodes, mut start, mut waits) = (Vec::new(), None, Vec::new());
    for span in recording.timeline.spans(tid) {
        if idle(&span) {
            episodes.extend(start.take().map(|start| Episode { tid, start, end: span.start }));
            start = Some(span.end);
        } else if span.segment.state != ThreadState::Running
            && recording.waits.kind(&span) != Waited::Sleep
        {
            waits.push(Episode { tid, start: span.start, end: span.end });
        }
    }
    episodes.extend(start.map(|start| Episode { tid, start, end: recording.mark }));
    let mut episodes = if start.is_some() { episodes } else { waits };
    episodes.retain(|episode| episode.start < episode.end);
    episodes
}

fn is_sleep(recording: &Recording, span: &Span) -> bool {
    recording.waits.kind(span) == Waited::Sleep
}

/// Returns `true` if a thread works in short bursts between sleeps, so that its sleeps are its idle
/// time.
fn is_paced_by_sleeps(recording: &Recording, tid: Tid) -> bool {
    let spans =
        || recording.timeline.spans(tid).filter(|span| span.segment.state != ThreadState::Absent);
    let length = |span: Span| span.end.since(span.start).0;
    let sleeps: Vec<u64> =
        spans().filter(|span| blocked(span) && is_sleep(recording, span)).map(length).collect();
    sleeps.len() >= SLEEPS_MIN && 2 * sleeps.iter().sum::<u64>() >= spans().map(length).sum::<u64>()
}

/// Returns `true` if a thread waits on a condition for its next work. This excludes the first
/// thread of a process, except at the mark if no thread woken by it is at work.
fn awaits_work(recording: &Recording, span: &Span) -> bool {
    let is_first = recording.tasks.pid(span.tid, span.start).0 == span.tid.0;
    let lasts = span.end >= recording.mark;
    let entrusted = || lasts && recording.entrusted(span).is_some();
    (!is_first || lasts) && recording.waits.is_for_condition(span) && !entrusted()
}

fn blocked(span: &Span) -> bool {
    span.segment.state == ThreadState::Blocked
}
