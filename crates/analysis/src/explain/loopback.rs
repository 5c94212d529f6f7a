// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits ended by a packet from a process on this machine.

use crate::timeline::packets::in_softirq;
use crate::timeline::polls::{is_for_names, is_internet, is_loopback};
use crate::timeline::recording::Recording;
use crate::timeline::threads::{Span, ThreadState};
use crate::timeline::waits::polls;
use tipme_record::records::Wait;
use tipme_record::{Nanos, Tid};

/// Maximum number of consecutive polls treated as one wait, and maximum running time between two of
/// them.
const POLLS_MAX: usize = 1_024;
const AGAIN: Nanos = Nanos::from_millis(5);

/// Maximum time from a packet to its answer.
const ASKED_WITHIN: Nanos = Nanos::from_secs(10);

impl Recording {
    /// Returns the local process that ended a wait by a packet, or the last of several consecutive
    /// polls of the same files.
    ///
    /// A loopback packet arrives in a softirq in the context of its sender. Polls that time out and
    /// are repeated at once count as one wait. A name lookup is a wait for the name server,
    /// whatever process answers behind it.
    pub(crate) fn loopback_peer(&self, span: &Span, wait: Option<&Wait>) -> Option<Tid> {
        let wait = wait.filter(|wait| (polls(wait) || is_internet(wait)) && !is_for_names(wait))?;
        let elsewhere = is_internet(wait) && !is_loopback(wait) || self.awaits_connection(wait);
        if elsewhere || wait.family == 0 && self.takes_display_input(span.tid) {
            return None;
        }
        let same =
            |other: &&Wait| (other.syscall, &other.args[..2]) == (wait.syscall, &wait.args[..2]);
        let (first, mut busy) = (span.index, Nanos(0));
        for index in (first..).take(POLLS_MAX) {
            let span = self.timeline.span(span.tid, index).filter(|_| busy < AGAIN)?;
            match span.segment.state {
                ThreadState::Blocked if self.waits.find(&span).filter(same).is_some() => {
                    busy = Nanos(0)
                }
                ThreadState::Runnable => continue,
                ThreadState::Running | ThreadState::Blocked => {
                    busy = busy.after(span.end.since(span.start));
                    continue;
                }
                ThreadState::Absent => return None,
            }
            if in_softirq(&span) {
                return self
                    .sender(&span)
                    .filter(|by| is_loopback(wait) || self.was_asked(*by, &span));
            }
            if let Some(by) = span.task_waker().filter(|_| index > first) {
                let kernel = self.tasks.life(by, span.end).is_some_and(|life| life.is_kernel());
                return (!kernel).then_some(by);
            }
            if span.task_waker().is_some() {
                return None;
            }
        }
        None
    }

    /// Returns `true` if a packet of the waiter reached the process of a sender shortly before. A
    /// packet from another machine may arrive in the context of any process.
    fn was_asked(&self, sender: Tid, answered: &Span) -> bool {
        let (pid, end) = (self.tasks.pid(sender, answered.end), answered.end);
        self.packet_reached(pid, answered.tid, end.before(ASKED_WITHIN), end)
    }
}
