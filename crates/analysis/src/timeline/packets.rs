// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits ended by packets.
//!
//! A packet arrives in a softirq, in the context of the thread that its CPU ran; over loopback that
//! is the sender.

use crate::timeline::by_thread::ByThread;
use crate::timeline::threads::{Span, Timeline};
use crate::timeline::waits::SOFTIRQ;
use tipme_record::{Nanos, Tid};

/// Index of packet wakeups, built on first use.
#[derive(Debug, Default)]
pub struct Packets {
    /// For each thread, end and segment index of the recorded waits that packets ended.
    ended: ByThread<Vec<(Nanos, u32)>>,
    /// For each thread, the wakeups in softirqs that ran in its context: time and wakee.
    wakes: ByThread<Vec<(Nanos, Tid)>>,
}

impl Packets {
    /// Indexes the waits ended in a softirq; `is_for_packet` selects those known to be for packets.
    pub(crate) fn find(timeline: &Timeline, is_for_packet: impl Fn(&Span) -> bool) -> Packets {
        let mut packets = Packets::default();
        for tid in timeline.threads() {
            for span in timeline.spans(tid).filter(in_softirq) {
                let wakes = packets.wakes.get_or_add(span.segment.waker, Vec::new);
                wakes.into_iter().for_each(|list| list.push((span.end, tid)));
                if is_for_packet(&span) {
                    let ended = packets.ended.get_or_add(tid, Vec::new);
                    ended.into_iter().for_each(|list| list.push((span.end, span.index as u32)));
                }
            }
        }
        packets.wakes.values_mut().for_each(|list| list.sort_unstable());
        packets
    }

    /// Returns the segments of the recorded waits of a thread that packets ended in `lo..hi`, in
    /// chronological order.
    pub(crate) fn ended(&self, tid: Tid, lo: Nanos, hi: Nanos) -> impl Iterator<Item = usize> {
        let list = self.ended.get(tid).map_or(&[][..], Vec::as_slice);
        let first = list.partition_point(|(end, _)| *end < lo);
        let last = list.partition_point(|(end, _)| *end < hi);
        list.get(first..last).unwrap_or_default().iter().map(|(_, index)| *index as usize)
    }

    /// Returns the wakeups in softirqs in the context of a thread in `lo..=hi`: time and wakee.
    pub(crate) fn woke(&self, by: Tid, lo: Nanos, hi: Nanos) -> impl Iterator<Item = (Nanos, Tid)> {
        let list = self.wakes.get(by).map_or(&[][..], Vec::as_slice);
        let first = list.partition_point(|(at, _)| *at < lo);
        list[first..].iter().copied().take_while(move |(at, _)| *at <= hi)
    }
}

pub(crate) fn in_softirq(span: &Span) -> bool {
    span.is_blocked() && span.segment.context == SOFTIRQ
}
