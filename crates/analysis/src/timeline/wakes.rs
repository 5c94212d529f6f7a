// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wake-ups forward: whom a thread woke, and when.

use crate::timeline::threads::{State, Timeline};
use tipme_record::{Nanos, Tid};

/// Wake-ups by tasks: waker, time, wakee; sorted.
#[derive(Debug, Default)]
pub struct Wakes(Vec<(Tid, Nanos, Tid)>);

impl Wakes {
    pub fn new(timeline: &Timeline) -> Wakes {
        let mut wakes = Vec::new();
        for tid in timeline.threads() {
            let waits = timeline.spans(tid).filter(|span| matches!(span.segment.state, State::Blocked | State::Absent));
            wakes.extend(waits.filter_map(|span| Some((span.task_waker()?, span.end, tid))));
        }
        wakes.sort_unstable();
        Wakes(wakes)
    }

    /// Whom a thread woke or created in `lo..=hi`, in the order of time.
    pub fn by(&self, waker: Tid, lo: Nanos, hi: Nanos) -> impl Iterator<Item = (Nanos, Tid)> {
        let first = self.0.partition_point(|(by, at, _)| (*by, *at) < (waker, lo));
        let of = self.0[first..].iter().take_while(move |(by, at, _)| *by == waker && *at <= hi);
        of.map(|(_, at, wakee)| (*at, *wakee))
    }
}
