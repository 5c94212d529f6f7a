// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets with their senders and receivers.

use crate::timeline::packets::{Packets, in_softirq};
use crate::timeline::polls::is_internet;
use crate::timeline::recording::Recording;
use crate::timeline::threads::Span;
use crate::timeline::waits::{Waited, accepts, polls, submits};
use tipme_record::{Nanos, Pid, Tid};

impl Recording {
    fn packets(&self) -> &Packets {
        self.packets.get_or_init(|| Packets::find(&self.timeline, |span| is_for_packet(self, span)))
    }

    /// Returns the recorded waits of a thread that packets ended in `lo..hi`, in chronological
    /// order.
    pub(crate) fn waits_for_packets(
        &self,
        tid: Tid,
        lo: Nanos,
        hi: Nanos,
    ) -> impl Iterator<Item = Span> {
        self.packets().ended(tid, lo, hi).filter_map(move |index| self.timeline.span(tid, index))
    }

    /// Returns `true` if a packet processed in the context of thread `by` in `lo..=hi` woke a
    /// process.
    pub(crate) fn packet_reached(&self, pid: Pid, by: Tid, lo: Nanos, hi: Nanos) -> bool {
        self.packets().woke(by, lo, hi).any(|(at, wakee)| self.tasks.pid(wakee, at) == pid)
    }

    /// Returns the wakeups of other processes by packets processed in the context of thread `by` in
    /// `lo..=hi`.
    pub(crate) fn reached_by_packet(
        &self,
        by: Tid,
        lo: Nanos,
        hi: Nanos,
    ) -> impl Iterator<Item = (Nanos, Tid)> {
        let own = self.tasks.pid(by, lo);
        self.packets()
            .woke(by, lo, hi)
            .filter(move |(at, wakee)| self.tasks.pid(*wakee, *at) != own)
    }

    /// Returns the thread of another process in the context of which a packet ended a wait.
    pub(crate) fn sender(&self, span: &Span) -> Option<Tid> {
        let by = Some(span.segment.waker).filter(|by| *by != Tid(0) && in_softirq(span))?;
        let life = self.tasks.life(by, span.end).filter(|life| !life.is_kernel())?;
        (life.pid != self.tasks.pid(span.tid, span.end)).then_some(by)
    }
}

/// Returns `true` if a wait is for a connection to an address, or its files are unknown: softirqs
/// also end waits for devices and timers.
fn is_for_packet(recording: &Recording, span: &Span) -> bool {
    let Some(wait) = recording.waits.find(span).filter(|wait| !submits(wait)) else { return false };
    let files = recording.polls.files(wait);
    match recording.waits.kind_of(wait) {
        Waited::Network => true,
        Waited::Events if accepts(wait) => is_internet(wait),
        Waited::Events | Waited::Sleep if polls(wait) && files.is_empty() => {
            wait.family == 0 || is_internet(wait)
        }
        Waited::Events | Waited::Sleep if polls(wait) => {
            recording.remote_files(wait).next().is_some()
        }
        _ => false,
    }
}
