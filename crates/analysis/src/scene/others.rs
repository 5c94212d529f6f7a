// SPDX-License-Identifier: MIT OR Apache-2.0
//! States of all other threads, and the processes started meanwhile.

use crate::explain::describe::{process_text, span_text, thread_text};
use crate::scene::lanes::Stretch;
use crate::scene::picture::{Track, TrackGroup};
use crate::scene::stage::SceneStage;
use crate::scene::threads;
use crate::timeline::recording::Recording;
use crate::timeline::tasks::Life;
use crate::timeline::threads::ThreadState;
use std::collections::BTreeSet;
use tipme_record::{Nanos, Tid};

/// Maximum number of threads shown.
const THREADS_MAX: usize = 24;

/// Returns the tracks of the threads not yet shown, by the time for which they were running or
/// runnable.
pub(super) fn tracks(stage: &mut SceneStage<'_>, shown: &BTreeSet<Tid>) -> Vec<Track> {
    let threads =
        stage.recording.timeline.threads().filter(|tid| *tid != Tid(0) && !shown.contains(tid));
    let timed = threads.map(|tid| (std::cmp::Reverse(wanted(stage, tid)), tid));
    let mut all: Vec<_> = timed.filter(|(time, _)| time.0 > 0).collect();
    all.sort_unstable();
    if all.len() > THREADS_MAX {
        stage
            .left_out
            .push(format!("{} more threads with less run time.", all.len() - THREADS_MAX));
    }
    all.into_iter().take(THREADS_MAX).map(|(_, tid)| track(stage, tid)).collect()
}

/// Returns the time for which a thread was running or runnable, in nanoseconds.
fn wanted(stage: &SceneStage<'_>, tid: Tid) -> u64 {
    let spans = threads::spans(stage.recording, tid, stage.from, stage.to);
    let wanted = spans
        .filter(|span| matches!(span.segment.state, ThreadState::Running | ThreadState::Runnable));
    wanted
        .map(|span| span.end.min(stage.to).since(span.start.max(stage.from)).0)
        .fold(0, u64::saturating_add)
}

fn track(stage: &mut SceneStage<'_>, tid: Tid) -> Track {
    let at = stage.to;
    let name = thread_text(stage.recording, tid, at);
    let standing = stage.recording.priorities.at(tid, at).filter(|standing| !standing.is_usual());
    let name =
        standing.map_or_else(|| name.clone(), |standing| format!("{name}, {}", standing.text()));
    Track { group: TrackGroup::Others, name, ..threads::track(stage, tid) }
}

/// Returns the track of the processes started in the time of the page, with a bar from the fork to
/// the exit of each.
pub(super) fn started(stage: &mut SceneStage<'_>) -> Track {
    let recording = stage.recording;
    let (from, to) = (stage.from, stage.to);
    let processes = recording.tasks.lives().iter().filter(|life| life.tid.0 == life.pid.0);
    let mut lives: Vec<&Life> =
        processes.filter(|life| life.from > from && life.from < to).collect();
    lives.sort_by_key(|life| life.from);
    let stretches = lives.iter().enumerate().map(|(of, life)| Stretch {
        lo: life.from,
        hi: life.until.min(to),
        look: stage.actors.look(life.tid, life.from),
        of,
    });
    let stretches: Vec<Stretch> = stretches.collect();
    let bars = stage.sparse(&stretches, |of| {
        lives.get(of).map(|life| text(recording, life)).unwrap_or_default()
    });
    Track { group: TrackGroup::Started, name: "From fork to end".to_owned(), look: None, bars }
}

/// Formats `gzip (pid 12), started by xargs (pid 7), ended after 18 ms`.
fn text(recording: &Recording, life: &Life) -> String {
    let name = process_text(recording, life.pid, life.from.after(Nanos(1)));
    let parent = process_text(recording, life.parent, life.from);
    let end = match life.until > recording.mark {
        true => "alive at the mark".to_owned(),
        false => format!("ended after {}", span_text(life.until.since(life.from))),
    };
    format!("{name}, started by {parent}, {end}")
}
