// SPDX-License-Identifier: MIT OR Apache-2.0
//! Services that are started on request: a message bus or a service manager holds the call and waits with its caller, while
//! the process that it started never exchanges a message with either.

use crate::timeline::recording::Recording;
use crate::timeline::tasks::Life;
use tipme_record::{Nanos, Pid, Tid};

/// Shorter waits are not looked at.
const WAIT_MIN: Nanos = Nanos::from_millis(100);

/// Longest time from the caller's last wakeup of another process to the beginning of its wait.
const ASKED_BEFORE: Nanos = Nanos::from_millis(50);

/// Longest time from that to the start of the service.
const STARTED_AFTER: Nanos = Nanos::from_millis(300);

/// A wait ends at most this long before or after the process that it was for.
const ENDED_SLACK: Nanos = Nanos::from_millis(100);

impl Recording {
    /// The process that another one started because of what a thread asked right before it waited from `lo` to `hi`, and
    /// that lived until then.
    pub(crate) fn started_on_request(&self, tid: Tid, lo: Nanos, hi: Nanos) -> Option<Tid> {
        if hi.since(lo) < WAIT_MIN {
            return None;
        }
        let caller = self.tasks.pid(tid, lo);
        let from = lo.before(ASKED_BEFORE);
        let brokers = self.brokers(caller, from, lo);
        let starts = |life: &&Life| {
            let in_time = life.from >= from && life.from <= lo.after(STARTED_AFTER);
            let is_main = life.tid.0 == life.pid.0 && !life.is_kernel();
            is_main && in_time && life.until.after(ENDED_SLACK) >= hi
        };
        // A broker forks once more to look after the service.
        let is_own = |life: &Life, broker: Pid| life.comm == self.tasks.comm(broker, lo);
        let started = |life: &&Life| {
            let mut line = self.tasks.ancestors(life.pid, life.from.after(Nanos(1))).skip(1);
            let by = line.find_map(|above| brokers.contains(&above.pid).then_some(above.pid));
            by.is_some_and(|broker| !is_own(life, broker)) && !self.tasks.descends(life.pid, caller, life.from)
        };
        let lives = self.tasks.lives().iter().filter(starts).filter(started);
        lives.min_by_key(|life| life.from).map(|life| life.tid)
    }
}
