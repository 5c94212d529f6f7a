// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits that packets ended.
//!
//! A packet arrives in a softirq, on the time of whoever its CPU ran: over loopback that is who sent it.

use crate::timeline::by_thread::ByThread;
use crate::timeline::threads::{Span, ThreadState, Timeline};
use crate::timeline::waits::SOFTIRQ;
use tipme_record::{Nanos, Tid};

/// Found when first asked for.
#[derive(Debug, Default)]
pub struct Packets {
    /// Of each thread the ends and the numbers of the recorded waits that packets ended.
    ended: ByThread<Vec<(Nanos, u32)>>,
    /// Of each thread on whose time packets came, when, and whom they woke.
    wakes: ByThread<Vec<(Nanos, Tid)>>,
}

impl Packets {
    /// Of the waits that ended in a softirq, some are known to be for packets.
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

    /// The segments of the recorded waits of a thread that packets ended in `lo..hi`, in the order of time.
    pub(crate) fn ended(&self, tid: Tid, lo: Nanos, hi: Nanos) -> impl Iterator<Item = usize> {
        let list = self.ended.get(tid).map_or(&[][..], Vec::as_slice);
        let place = |at: Nanos| list.partition_point(|(end, _)| *end < at);
        list.get(place(lo)..place(hi)).unwrap_or_default().iter().map(|(_, index)| *index as usize)
    }

    /// When packets came on the time of a thread in `lo..=hi`, and whom they woke.
    pub(crate) fn woke(&self, by: Tid, lo: Nanos, hi: Nanos) -> impl Iterator<Item = (Nanos, Tid)> {
        let list = self.wakes.get(by).map_or(&[][..], Vec::as_slice);
        let first = list.partition_point(|(at, _)| *at < lo);
        list[first..].iter().copied().take_while(move |(at, _)| *at <= hi)
    }
}

pub(crate) fn in_softirq(span: &Span) -> bool {
    span.segment.state == ThreadState::Blocked && span.segment.context == SOFTIRQ
}
