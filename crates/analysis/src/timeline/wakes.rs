// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wake-ups forward: whom a thread woke, and when.

use crate::timeline::by_thread::ByThread;
use crate::timeline::threads::{ThreadState, Timeline};
use tipme_record::{Nanos, Tid};

/// Wake-ups by tasks: for each waker the times and wakees, sorted.
#[derive(Debug, Default)]
pub struct Wakes(ByThread<Vec<(Nanos, Tid)>>);

impl Wakes {
    pub fn new(timeline: &Timeline) -> Wakes {
        let mut wakes: ByThread<Vec<(Nanos, Tid)>> = ByThread::default();
        for tid in timeline.threads() {
            let waits = timeline
                .spans(tid)
                .filter(|span| matches!(span.segment.state, ThreadState::Blocked | ThreadState::Absent));
            for (waker, at) in waits.filter_map(|span| Some((span.task_waker()?, span.end))) {
                wakes.get_or_add(waker, Vec::new).into_iter().for_each(|list| list.push((at, tid)));
            }
        }
        // Those of one wakee are in order already, which this sort makes use of.
        wakes.values_mut().for_each(|list| list.sort());
        Wakes(wakes)
    }

    /// Whom a thread woke or created in `lo..=hi`, in the order of time.
    pub fn by(&self, waker: Tid, lo: Nanos, hi: Nanos) -> impl Iterator<Item = (Nanos, Tid)> {
        let list = self.0.get(waker).map_or(&[][..], Vec::as_slice);
        let first = list.partition_point(|(at, _)| *at < lo);
        list[first..].iter().take_while(move |(at, _)| *at <= hi).copied()
    }
}
