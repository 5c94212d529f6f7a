// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wakeups indexed by waker.

use crate::timeline::by_thread::ByThread;
use crate::timeline::threads::{ThreadState, Timeline};
use tipme_record::{Nanos, Tid};

/// Wakeups by tasks: sorted times and wakees of each waker.
#[derive(Debug, Default)]
pub struct Wakes(ByThread<Vec<(Nanos, Tid)>>);

impl Wakes {
    pub fn new(timeline: &Timeline) -> Wakes {
        let mut wakes: ByThread<Vec<(Nanos, Tid)>> = ByThread::default();
        for tid in timeline.threads() {
            let waits = timeline.spans(tid).filter(|span| {
                matches!(span.segment.state, ThreadState::Blocked | ThreadState::Absent)
            });
            for (waker, at) in waits.filter_map(|span| Some((span.task_waker()?, span.end))) {
                wakes.get_or_add(waker, Vec::new).into_iter().for_each(|list| list.push((at, tid)));
            }
        }
        // Wakeups of one wakee are in order already, which makes this sort fast.
        wakes.values_mut().for_each(|list| list.sort());
        Wakes(wakes)
    }

    /// Returns the threads that a thread woke or created in `lo..=hi`, in chronological order.
    pub fn by(&self, waker: Tid, lo: Nanos, hi: Nanos) -> impl Iterator<Item = (Nanos, Tid)> {
        let list = self.0.get(waker).map_or(&[][..], Vec::as_slice);
        let first = list.partition_point(|(at, _)| *at < lo);
        list[first..].iter().take_while(move |(at, _)| *at <= hi).copied()
    }
}
