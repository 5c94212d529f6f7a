// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that a request is passed on by: message buses, service managers, launchers.

use crate::timeline::recording::Recording;
use std::collections::BTreeSet;
use tipme_record::{Nanos, Pid};

/// Processes that pass a request on, one after the other, at most, and wakeups of each that are looked at.
const BROKERS_MAX: usize = 3;
const WAKES_MAX: usize = 64;

/// Longest time from one wakeup to the next.
const PASSED_ON_MAX: Nanos = Nanos::from_millis(50);

impl Recording {
    /// The processes that one woke in a time, and those that they woke because of that.
    pub(crate) fn brokers(&self, caller: Pid, from: Nanos, until: Nanos) -> BTreeSet<Pid> {
        let (mut all, mut last) = (BTreeSet::new(), BTreeSet::from([caller]));
        let mut until = until;
        for _ in 0..BROKERS_MAX {
            let threads = self.tasks.lives().iter().filter(|life| last.contains(&life.pid) && life.from < until);
            let wakes = threads.flat_map(|life| self.wakes.by(life.tid, from, until).take(WAKES_MAX));
            let woken = wakes.map(|(at, wakee)| self.tasks.pid(wakee, at));
            last = woken.filter(|pid| *pid != caller && !all.contains(pid) && !self.messages.is_server(*pid)).collect();
            all.extend(last.iter().copied());
            until = until.after(PASSED_ON_MAX);
        }
        all
    }
}
