// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whose packet ended a wait, where that is a process on this machine.

use crate::timeline::packets::in_softirq;
use crate::timeline::polls::{is_for_names, is_internet, is_loopback};
use crate::timeline::recording::Recording;
use crate::timeline::threads::{Span, ThreadState};
use crate::timeline::waits::polls;
use tipme_record::records::Wait;
use tipme_record::{Nanos, Tid};

/// Polls in a row that are taken for one wait, and what a thread does between two of them at most.
const POLLS_MAX: usize = 1_024;
const AGAIN: Nanos = Nanos::from_millis(5);

/// A packet is answered within this time.
const ASKED_WITHIN: Nanos = Nanos::from_secs(10);

impl Recording {
    /// The process on this machine whose packet ended a wait, or the last of several polls of the same files in a row.
    ///
    /// Packets over loopback arrive in a softirq on the time of whoever sent them. A poll that ends because its time is
    /// up, and begins again at once, is one wait. Who asks for a name waits for the name server, whoever stands behind it.
    pub(crate) fn loopback_peer(&self, span: &Span, wait: Option<&Wait>) -> Option<Tid> {
        let wait = wait.filter(|wait| (polls(wait) || is_internet(wait)) && !is_for_names(wait))?;
        if is_internet(wait) && !is_loopback(wait) || wait.family == 0 && self.takes_display_input(span.tid) {
            return None;
        }
        let same = |other: &&Wait| (other.syscall, &other.args[..2]) == (wait.syscall, &wait.args[..2]);
        let (first, mut busy) = (span.index, Nanos(0));
        for index in (first..).take(POLLS_MAX) {
            let span = self.timeline.span(span.tid, index).filter(|_| busy < AGAIN)?;
            match span.segment.state {
                ThreadState::Blocked if self.waits.find(&span).filter(same).is_some() => busy = Nanos(0),
                ThreadState::Runnable => continue,
                ThreadState::Running | ThreadState::Blocked => {
                    busy = busy.after(span.end.since(span.start));
                    continue;
                }
                ThreadState::Absent => return None,
            }
            if in_softirq(&span) {
                return self.sender(&span).filter(|by| is_loopback(wait) || self.was_asked(*by, &span));
            }
            if let Some(by) = span.task_waker().filter(|_| index > first) {
                return Some(by);
            }
            if span.task_waker().is_some() {
                return None;
            }
        }
        None
    }

    /// Whether a packet of the waiter reached the process of a sender shortly before: one from another machine may arrive on
    /// the time of anybody.
    fn was_asked(&self, sender: Tid, answered: &Span) -> bool {
        let (pid, end) = (self.tasks.pid(sender, answered.end), answered.end);
        self.packet_reached(pid, answered.tid, end.before(ASKED_WITHIN), end)
    }
}
