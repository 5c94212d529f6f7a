// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that relay requests: message buses, service managers, launchers.

use crate::timeline::recording::Recording;
use std::collections::BTreeSet;
use tipme_record::{Nanos, Pid, Tid};

/// Maximum length of a chain of brokers, and maximum number of wakeups searched per thread.
const BROKERS_MAX: usize = 3;
const WAKES_MAX: usize = 64;

/// Maximum time from one wakeup to the next.
const PASSED_ON_MAX: Nanos = Nanos::from_millis(50);

impl Recording {
    /// Returns the processes that `caller` woke or wrote to over a terminal, and those that these
    /// reached in turn. Kernel threads are excluded: one worker carries the data of all terminals.
    pub(crate) fn brokers(&self, caller: Pid, from: Nanos, until: Nanos) -> BTreeSet<Pid> {
        let (mut all, mut last) = (BTreeSet::new(), BTreeSet::from([caller]));
        let mut until = until;
        for _ in 0..BROKERS_MAX {
            let threads = self
                .tasks
                .lives()
                .iter()
                .filter(|life| last.contains(&life.pid) && life.from < until);
            let reached = threads.flat_map(|life| self.reached_by(life.tid, from, until));
            let new = reached.filter(|pid| {
                *pid != caller && !all.contains(pid) && !self.messages.is_server(*pid)
            });
            last = new.collect();
            all.extend(last.iter().copied());
            until = until.after(PASSED_ON_MAX);
        }
        all
    }

    /// Returns the processes that a thread woke or wrote to over a terminal.
    fn reached_by(&self, tid: Tid, from: Nanos, until: Nanos) -> impl Iterator<Item = Pid> {
        let woken = self.wakes.by(tid, from, until).take(WAKES_MAX).map(|(at, wakee)| (wakee, at));
        let all = woken.chain(self.terminals.reached(tid, from, until));
        all.filter_map(|(tid, at)| self.tasks.life(tid, at))
            .filter(|life| !life.is_kernel())
            .map(|life| life.pid)
    }
}
