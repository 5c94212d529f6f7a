// SPDX-License-Identifier: MIT OR Apache-2.0
//! Late answers to inputs that piled up.

use crate::join::drawing_cause::Hop;
use crate::timeline::pauses::Pause;
use crate::timeline::recording::Recording;
use crate::timeline::restless::GAP;
use crate::timeline::threads::ThreadState;
use crate::timeline::waits::Waited;
use std::collections::{BTreeMap, BTreeSet};
use tipme_record::{Nanos, Pid, Tid};

/// Maximum number of steps from thread to thread in one search.
const STEPS_MAX: usize = 256;

/// Maximum time, in gaps, from the receipt of an input to the work that it begins.
const BEGUN_WITHIN: u64 = 20;

/// Thresholds for a usual answering thread: minimum number of answers with the thread on their way,
/// and minimum share of them, one in `ANSWERS_SHARE`.
const ANSWERS_MIN: usize = 3;
const ANSWERS_SHARE: usize = 2;

/// Threads that answer a client's input: those of the client and its descendants that wait for
/// events (a shell, an editor; not a program that merely computes), that of the server, and the
/// usual answering threads.
pub(crate) struct AnsweringThreads(Vec<Tid>);

impl AnsweringThreads {
    pub(crate) fn find(
        recording: &Recording,
        client: Pid,
        server: Tid,
        usual: &[Tid],
    ) -> AnsweringThreads {
        let related = recording.descendants().threads(client).iter();
        let answering = related.copied().filter(|tid| waits_for_events(recording, *tid));
        // A kernel thread that carries terminal data works for any program.
        let usual = usual.iter().copied().filter(|tid| !is_kernel(recording, *tid));
        let mut tids: Vec<Tid> = answering.chain([server]).chain(usual).collect();
        tids.sort_unstable();
        tids.dedup();
        AnsweringThreads(tids)
    }

    /// Returns all threads of a client and its descendants.
    pub(crate) fn all(recording: &Recording, client: Pid) -> AnsweringThreads {
        AnsweringThreads(recording.descendants().threads(client).to_vec())
    }

    /// Returns `true` if some thread of the family was busy at every time from `lo` to `hi`, apart
    /// from short gaps. Restless threads do not count.
    pub(crate) fn busy_throughout(&self, recording: &Recording, lo: Nanos, hi: Nanos) -> bool {
        self.busy_one_after_the_other(recording, lo, hi).is_some()
    }

    /// Returns these threads, each for the time it was busy, latest first. A thread owes no answer
    /// if another program read the typed input in its place.
    pub(crate) fn busy_one_after_the_other(
        &self,
        recording: &Recording,
        lo: Nanos,
        hi: Nanos,
    ) -> Option<Vec<Hop>> {
        let answering = self.0.iter().copied().filter(|tid| {
            !recording.is_restless(*tid, Pause::Rest, lo)
                && !recording.is_read_by_another(*tid, lo, hi)
        });
        let tids: Vec<Tid> = answering.collect();
        let (until, hops) = busy_from(recording, &tids, lo, hi);
        (until.after(GAP) >= hi).then_some(hops)
    }
}

/// Returns the end of the work that the programs below a client began soon after a time at which
/// all of them rested, and their threads, each for the time it was busy, latest first.
pub(crate) fn worked_below(
    recording: &Recording,
    client: Pid,
    lo: Nanos,
) -> Option<(Nanos, Vec<Hop>)> {
    let all = recording.descendants().threads(client).iter().copied();
    let below: Vec<Tid> =
        all.filter(|tid| recording.tasks.pid(*tid, recording.mark) != client).collect();
    let runs = |tid: &Tid| {
        let span = recording.timeline.at(*tid, lo);
        span.is_some_and(|span| {
            matches!(span.segment.state, ThreadState::Running | ThreadState::Runnable)
        })
    };
    if below.iter().any(runs) {
        return None;
    }
    let mut starts = (0..BEGUN_WITHIN).map(|gaps| lo.after(Nanos(gaps * GAP.0)));
    let from = starts.find(|at| busy_until(recording, &below, *at).is_some())?;
    Some(busy_from(recording, &below, from, recording.mark))
}

/// Returns the time until which some of the threads are busy from `lo` on, at most `hi`, apart from
/// short gaps, and those threads, latest first.
fn busy_from(recording: &Recording, tids: &[Tid], lo: Nanos, hi: Nanos) -> (Nanos, Vec<Hop>) {
    let (mut at, mut hops) = (lo, Vec::new());
    while at.after(GAP) < hi && hops.len() < STEPS_MAX {
        let busy =
            busy_until(recording, tids, at).or_else(|| busy_until(recording, tids, at.after(GAP)));
        let Some((until, tid)) = busy else { break };
        let until = until.max(at.after(Nanos(1)));
        hops.push(Hop::new(tid, at, until.min(hi)));
        at = until;
    }
    hops.reverse();
    (at, hops)
}

/// Returns the threads on the way of most answers, given the ways back to the inputs.
pub(crate) fn usual<'a>(ways: impl Iterator<Item = &'a [Hop]>) -> Vec<Tid> {
    let (mut answers, mut counts): (usize, BTreeMap<Tid, usize>) = (0, BTreeMap::new());
    for way in ways {
        answers += 1;
        let threads: BTreeSet<Tid> = way.iter().map(|hop| hop.tid).collect();
        threads.into_iter().for_each(|tid| *counts.entry(tid).or_default() += 1);
    }
    counts.retain(|_, count| *count >= ANSWERS_MIN && *count * ANSWERS_SHARE >= answers);
    counts.into_keys().collect()
}

/// Returns the thread that is busy longest from `at` on, and the end of that; `None` if all are
/// idle.
fn busy_until(recording: &Recording, tids: &[Tid], at: Nanos) -> Option<(Nanos, Tid)> {
    let busy =
        tids.iter().filter(|tid| !recording.is_paused_at(**tid, at.after(Nanos(1)), Pause::Rest));
    busy.map(|tid| (recording.pause_after(*tid, at, Pause::Rest), *tid))
        .max_by_key(|(until, _)| *until)
}

fn waits_for_events(recording: &Recording, tid: Tid) -> bool {
    recording
        .waits
        .of_thread(tid)
        .iter()
        .any(|wait| recording.waits.kind_of(wait) == Waited::Events)
}

fn is_kernel(recording: &Recording, tid: Tid) -> bool {
    recording.tasks.life(tid, recording.mark).is_some_and(|life| life.is_kernel())
}
