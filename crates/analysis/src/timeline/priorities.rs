// SPDX-License-Identifier: MIT OR Apache-2.0
//! The priorities that threads ran with: from the records of switches, and the policy from the walk over all tasks.

use crate::decode::events::{SchedChange, SchedEvent};
use crate::timeline::by_thread::ByThread;
use std::collections::HashMap;
use tipme_record::records::Task;
use tipme_record::{Nanos, Tid};

/// Kernel priorities below are real-time ones.
const REALTIME_LIMIT: u8 = 100;

/// The kernel priority of nice 0.
const NICE_ZERO: u8 = 120;

/// The priority -1 of the kernel, in a byte: a thread with a deadline.
const DEADLINE: u8 = u8::MAX;

/// The kernel's numbers of policies.
const FIFO: u32 = 1;
const ROUND_ROBIN: u32 = 2;
const IDLE: u32 = 5;

/// What the scheduler knew of a thread at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SchedStanding {
    prio: u8,
    /// Known of threads that live at the mark.
    policy: Option<u32>,
}

/// The priorities of all threads.
#[derive(Debug, Default)]
pub struct Priorities {
    /// By thread: from when on it was seen with which priority.
    seen: ByThread<Vec<(Nanos, u8)>>,
    at_mark: HashMap<Tid, (u8, u32)>,
}

impl SchedStanding {
    /// Before whom the scheduler puts whom: the lower runs first.
    fn rank(self) -> u8 {
        match self.prio {
            DEADLINE => 0,
            _ if self.is_idle_policy() => u8::MAX,
            prio => prio.saturating_add(1),
        }
    }

    /// Whether a thread runs before another one, or gets the larger share.
    pub(crate) fn beats(self, other: SchedStanding) -> bool {
        self.rank() < other.rank()
    }

    /// What every thread starts with.
    pub(crate) fn is_usual(self) -> bool {
        self.prio == NICE_ZERO && !self.is_idle_policy()
    }

    /// Below what every thread starts with.
    pub(crate) fn is_low(self) -> bool {
        self.is_idle_policy() || self.prio > NICE_ZERO && self.prio != DEADLINE
    }

    /// Whether it runs before all threads of the ordinary kind.
    pub(crate) fn is_realtime(self) -> bool {
        self.prio < REALTIME_LIMIT || self.prio == DEADLINE
    }

    /// A real-time priority that an ordinary thread has while it holds a lock that a real-time thread waits for.
    pub(crate) fn is_lent(self) -> bool {
        self.is_realtime() && self.policy.is_some_and(|policy| policy == 0 || policy == 3 || policy == IDLE)
    }

    pub(crate) fn is_idle_policy(self) -> bool {
        self.policy == Some(IDLE) && !self.is_realtime()
    }

    /// `at nice -5`, `with real-time priority FIFO 50`.
    pub fn text(self) -> String {
        let policy = match self.policy {
            Some(FIFO) => "FIFO ",
            Some(ROUND_ROBIN) => "RR ",
            _ => "",
        };
        match self.prio {
            DEADLINE => "with a deadline (SCHED_DEADLINE)".to_owned(),
            prio if self.is_lent() => format!("with real-time priority {}, lent for a lock", REALTIME_LIMIT - 1 - prio),
            prio if prio < REALTIME_LIMIT => format!("with real-time priority {policy}{}", REALTIME_LIMIT - 1 - prio),
            _ if self.is_idle_policy() => "with the idle policy".to_owned(),
            prio => format!("at nice {}", i16::from(prio) - i16::from(NICE_ZERO)),
        }
    }
}

impl Priorities {
    /// What is known of tasks that live at the mark.
    pub fn at_mark(tasks: &[Task]) -> Priorities {
        let at_mark = tasks.iter().map(|task| (task.head.tid, (task.prio as u8, task.policy))).collect();
        Priorities { seen: ByThread::default(), at_mark }
    }

    /// Takes note of an event; they come in the order of time.
    pub fn see(&mut self, event: &SchedEvent) {
        if event.change != SchedChange::Switch {
            return;
        }
        let seen = self.seen.get_or_add(event.other, Vec::new);
        if let Some(seen) = seen.filter(|seen| seen.last().is_none_or(|(_, last)| *last != event.prio)) {
            seen.push((event.ts, event.prio));
        }
    }

    /// How a thread stood at a time: as it was seen last before, else first after; `None` where nothing is known of it.
    pub fn at(&self, tid: Tid, at: Nanos) -> Option<SchedStanding> {
        let seen = self.seen.get(tid).map_or(&[][..], Vec::as_slice);
        let index = seen.partition_point(|(from, _)| *from <= at).saturating_sub(1);
        let (prio, policy) = (seen.get(index).map(|(_, prio)| *prio), self.at_mark.get(&tid));
        let prio = prio.or_else(|| policy.map(|(prio, _)| *prio))?;
        Some(SchedStanding { prio, policy: policy.map(|(_, policy)| *policy) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch(ts: u64, next: u32, prio: u8) -> SchedEvent {
        let (tid, other) = (Tid(9), Tid(next));
        SchedEvent { ts: Nanos(ts), tid, other, cpu: 0, argument: 1, change: SchedChange::Switch, context: 0, prio }
    }

    #[test]
    fn a_priority_holds_until_another_one_is_seen() {
        let events = [switch(10, 2, 49), switch(20, 1, 120), switch(30, 2, 139), switch(35, 1, 110)];
        let mut priorities = Priorities::default();
        events.iter().for_each(|event| priorities.see(event));
        let text = |tid, at| priorities.at(Tid(tid), Nanos(at)).map(SchedStanding::text);
        assert_eq!(text(1, 5).as_deref(), Some("at nice 0"));
        assert_eq!(text(1, 40).as_deref(), Some("at nice -10"));
        assert_eq!(text(2, 25).as_deref(), Some("with real-time priority 50"));
        assert_eq!(text(2, 35).as_deref(), Some("at nice 19"));
        assert_eq!(text(3, 35), None);
    }

    #[test]
    fn policies_order_what_priorities_do_not_tell() {
        let standing = |prio, policy| SchedStanding { prio, policy };
        let (deadline, fifo, normal) = (standing(DEADLINE, None), standing(49, Some(FIFO)), standing(120, Some(0)));
        let (idle, lent) = (standing(120, Some(IDLE)), standing(49, Some(0)));
        assert!(deadline.beats(fifo) && fifo.beats(normal) && normal.beats(idle) && !normal.beats(normal));
        assert_eq!(fifo.text(), "with real-time priority FIFO 50");
        assert_eq!(lent.text(), "with real-time priority 50, lent for a lock");
        assert_eq!((idle.text().as_str(), idle.is_low()), ("with the idle policy", true));
        assert!(lent.is_lent() && !fifo.is_lent() && !normal.is_low());
    }
}
