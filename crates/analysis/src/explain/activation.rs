// SPDX-License-Identifier: MIT OR Apache-2.0
//! Services started on request. A message bus or a service manager holds the call while the service
//! starts, and the service never exchanges a message with it or with the caller.

use crate::timeline::recording::Recording;
use crate::timeline::tasks::Life;
use tipme_record::{Nanos, Pid, Tid};

/// Minimum length of a wait to check.
const WAIT_MIN: Nanos = Nanos::from_millis(100);

/// Maximum time from the caller's last wakeup of another process to the start of its wait.
const ASKED_BEFORE: Nanos = Nanos::from_millis(50);

/// Maximum time from the start of the wait to the start of the service.
const STARTED_AFTER: Nanos = Nanos::from_millis(300);

/// Maximum time by which the service may end before the wait does.
const ENDED_SLACK: Nanos = Nanos::from_millis(100);

impl Recording {
    /// Returns the process that a broker started because of a request by a thread right before it
    /// waited from `lo` to `hi`, if that process lived until the end of the wait.
    pub(crate) fn started_on_request(&self, tid: Tid, lo: Nanos, hi: Nanos) -> Option<Tid> {
        if hi.since(lo) < WAIT_MIN {
            return None;
        }
        let caller = self.tasks.pid(tid, lo);
        let from = lo.before(ASKED_BEFORE);
        let brokers = self.brokers(caller, from, lo);
        // A broker forks once more to supervise the service.
        let is_own = |life: &Life, broker: Pid| life.name() == self.tasks.comm(broker, lo);
        let lives = self
            .tasks
            .lives()
            .iter()
            .filter(|life| {
                let in_time = life.from >= from && life.from <= lo.after(STARTED_AFTER);
                let is_main = life.tid.0 == life.pid.0 && !life.is_kernel();
                is_main && in_time && life.until.after(ENDED_SLACK) >= hi
            })
            .filter(|life| {
                let mut line = self.tasks.ancestors(life.pid, life.from.after(Nanos(1))).skip(1);
                let by = line.find_map(|above| brokers.contains(&above.pid).then_some(above.pid));
                by.is_some_and(|broker| !is_own(life, broker))
                    && !self.tasks.descends(life.pid, caller, life.from)
            });
        lives.min_by_key(|life| life.from).map(|life| life.tid)
    }
}
