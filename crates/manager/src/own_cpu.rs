// SPDX-License-Identifier: MIT OR Apache-2.0
//! Breakdown of the manager's own CPU time.

use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use tipme_record::{Nanos, named};

named! {
    /// A task of the manager's loop.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub(crate) enum Chore {
        /// Waiting for the next timer, and everything not listed below.
        Waiting = "waiting",
        /// Events of the display, and queries to it.
        Display = "display",
        /// Applying knobs once they are decided.
        Knobs = "knobs",
        /// Looks at the processes of sets and at terminals.
        Processes = "processes of sets",
        /// Search for busy processes while CPUs are scarce.
        BusyProcesses = "busy processes",
        Memory = "memory",
        /// Prefetching: files of programs, and memory of recently used sets.
        Files = "reading ahead",
        Requests = "requests",
    }
}

/// CPU time of the deciding thread, by task.
#[derive(Debug)]
pub(crate) struct OwnCpu {
    chore: Chore,
    since: Nanos,
    spent: BTreeMap<Chore, Nanos>,
}

impl OwnCpu {
    pub(crate) fn new() -> OwnCpu {
        OwnCpu { chore: Chore::Waiting, since: thread_time(), spent: BTreeMap::new() }
    }

    /// Starts a task of the thread; returns the previous one.
    pub(crate) fn begin(&mut self, chore: Chore) -> Chore {
        self.change(chore, thread_time())
    }

    fn change(&mut self, chore: Chore, now: Nanos) -> Chore {
        let spent = self.spent.entry(self.chore).or_default();
        *spent = spent.after(now.since(self.since));
        self.since = now;
        std::mem::replace(&mut self.chore, chore)
    }

    /// Returns the time of each task until now, by name; the time of the display thread counts as
    /// display time.
    pub(crate) fn spent(&self, of_display_thread: Nanos) -> BTreeMap<&'static str, Nanos> {
        self.spent_until(thread_time(), of_display_thread)
    }

    fn spent_until(&self, now: Nanos, of_display_thread: Nanos) -> BTreeMap<&'static str, Nanos> {
        let mut spent: BTreeMap<&'static str, Nanos> =
            self.spent.iter().map(|(chore, spent)| (chore.name(), *spent)).collect();
        for (chore, more) in
            [(self.chore, now.since(self.since)), (Chore::Display, of_display_thread)]
        {
            let time = spent.entry(chore.name()).or_default();
            *time = time.after(more);
        }
        spent
    }
}

/// CPU time of this thread, for differences.
pub(crate) fn thread_time() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Nanos(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_time_belongs_to_one_chore() {
        let mut own = OwnCpu { chore: Chore::Waiting, since: Nanos(100), spent: BTreeMap::new() };
        let before = own.change(Chore::Display, Nanos(110));
        let display = own.change(Chore::Knobs, Nanos(130));
        own.change(display, Nanos(135));
        own.change(before, Nanos(150));
        own.change(before, Nanos(151));
        let spent = [("waiting", Nanos(14)), ("display", Nanos(42)), ("knobs", Nanos(5))];
        assert_eq!(own.spent_until(Nanos(154), Nanos(7)), BTreeMap::from(spent));
    }
}
