// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who may have asked something of a thread that could not take it.
//!
//! What is sent to a thread that is stopped, or waits for a CPU, wakes nobody: no record tells of it. Who ended its idle
//! waits again and again before is who asks it as a rule, and may have asked it in each burst that ended meanwhile.

use crate::timeline::bursts::{Burst, SEGMENTS_MAX};
use crate::timeline::pauses::Pause;
use crate::timeline::recording::Recording;
use crate::timeline::threads::Span;
use std::collections::BTreeMap;
use tipme_record::{Nanos, Tid};

/// Idle waits whose ends tell who asks a thread as a rule, the latest before the burst.
const WAITS_MAX: usize = 64;

/// Who asks as a rule ended so many of them at least, and one in so many.
const ASKED_MIN: usize = 3;
const ASKED_SHARE: usize = 10;

/// Bursts in which something may have been asked that are followed, the earliest ones.
const ASKS_MAX: usize = 16;

impl Recording {
    /// The threads that may have asked something of a thread while it was held up inside a burst, and when each was done
    /// with that; the earliest first.
    pub(crate) fn askers(&self, tid: Tid, burst: &Burst, at: Nanos) -> Vec<(Tid, Nanos)> {
        let mut held_up = self.ended_within(tid, Pause::HeldUp, burst.start, at, SEGMENTS_MAX);
        let before = self.timeline.before(tid, at).map_or(0, |last| last.index);
        held_up.retain(|span| span.index + SEGMENTS_MAX > before);
        if held_up.is_empty() {
            return Vec::new();
        }
        let usual = self.usual_askers(tid, burst.start);
        let asked = held_up.iter().flat_map(|span| usual.iter().flat_map(|asker| self.bursts_during(*asker, span)));
        let mut asked: Vec<(Tid, Nanos)> = asked.collect();
        asked.sort_unstable_by_key(|(tid, at)| (*at, *tid));
        asked.truncate(ASKS_MAX);
        asked
    }

    /// Who ended most of the idle waits of a thread before a time. Display servers are not among them: what these send is
    /// recorded.
    fn usual_askers(&self, tid: Tid, at: Nanos) -> Vec<Tid> {
        let mut counts: BTreeMap<Tid, usize> = BTreeMap::new();
        let wakers: Vec<Tid> = self.last_wakers(tid, at, WAITS_MAX);
        wakers.iter().for_each(|waker| *counts.entry(*waker).or_default() += 1);
        let often = |count: usize| count >= ASKED_MIN && count * ASKED_SHARE >= wakers.len();
        let usual = counts.into_iter().filter(|(_, count)| often(*count)).map(|(waker, _)| waker);
        usual.filter(|waker| !self.messages.is_server(self.tasks.pid(*waker, at))).collect()
    }

    /// When bursts of a thread ended while another one was held up.
    fn bursts_during(&self, tid: Tid, held_up: &Span) -> impl Iterator<Item = (Tid, Nanos)> + use<> {
        let ends = self.pauses_begun(tid, Pause::Idle, held_up.start, held_up.end);
        ends.into_iter().map(move |at| (tid, at))
    }
}
