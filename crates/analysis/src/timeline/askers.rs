// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads that may have sent a request to a thread that could not receive it.
//!
//! A message to a thread that is stopped or runnable causes no wakeup, so no record shows it. The
//! threads that repeatedly ended its earlier idle waits are its usual clients: each of their bursts
//! that ended meanwhile may have sent a request.

use crate::timeline::bursts::{Burst, SEGMENTS_MAX};
use crate::timeline::pauses::Pause;
use crate::timeline::recording::Recording;
use crate::timeline::threads::Span;
use std::collections::BTreeMap;
use tipme_record::{Nanos, Tid};

/// Maximum number of idle waits before the burst that are searched for usual clients.
const WAITS_MAX: usize = 64;

/// Thresholds for a usual client: minimum number of waits that it ended, and minimum share of them,
/// one in `ASKED_SHARE`.
const ASKED_MIN: usize = 3;
const ASKED_SHARE: usize = 10;

/// Maximum number of bursts followed that may have sent a request, earliest first.
const ASKS_MAX: usize = 16;

impl Recording {
    /// Returns the threads that may have sent a request to a thread while that thread was held up
    /// inside a burst, each with the end of the sender's own burst, earliest first.
    pub(crate) fn askers(&self, tid: Tid, burst: &Burst, at: Nanos) -> Vec<(Tid, Nanos)> {
        let mut held_up = self.ended_within(tid, Pause::HeldUp, burst.start, at, SEGMENTS_MAX);
        let before = self.timeline.before(tid, at).map_or(0, |last| last.index);
        held_up.retain(|span| span.index + SEGMENTS_MAX > before);
        if held_up.is_empty() {
            return Vec::new();
        }
        let usual = self.usual_askers(tid, burst.start);
        let asked = held_up
            .iter()
            .flat_map(|span| usual.iter().flat_map(|asker| self.bursts_during(*asker, span)));
        let mut asked: Vec<(Tid, Nanos)> = asked.collect();
        asked.sort_unstable_by_key(|(tid, at)| (*at, *tid));
        asked.truncate(ASKS_MAX);
        asked
    }

    /// Returns the threads that ended most of the idle waits of a thread before a time, without
    /// display servers: their messages are recorded.
    fn usual_askers(&self, tid: Tid, at: Nanos) -> Vec<Tid> {
        let mut counts: BTreeMap<Tid, usize> = BTreeMap::new();
        let wakers: Vec<Tid> = self.last_wakers(tid, at, WAITS_MAX);
        wakers.iter().for_each(|waker| *counts.entry(*waker).or_default() += 1);
        counts.retain(|_, count| *count >= ASKED_MIN && *count * ASKED_SHARE >= wakers.len());
        let usual = counts.into_keys();
        usual.filter(|waker| !self.messages.is_server(self.tasks.pid(*waker, at))).collect()
    }

    /// Returns the ends of a thread's bursts while another thread was held up.
    fn bursts_during(
        &self,
        tid: Tid,
        held_up: &Span,
    ) -> impl Iterator<Item = (Tid, Nanos)> + use<> {
        let ends = self.pauses_begun(tid, Pause::Idle, held_up.start, held_up.end);
        ends.into_iter().map(move |at| (tid, at))
    }
}
