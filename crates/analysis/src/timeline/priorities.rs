// SPDX-License-Identifier: MIT OR Apache-2.0
//! Priorities of threads over time, from the switch records; policies from the task walk at the
//! mark.

use crate::decode::events::{SchedChange, SchedEvent};
use crate::timeline::by_thread::ByThread;
use std::collections::HashMap;
use tipme_record::records::Task;
use tipme_record::{Nanos, Tid};

/// Limit of the kernel's real-time priorities, which are lower numbers.
const REALTIME_LIMIT: u8 = 100;

/// Kernel priority of nice 0.
const NICE_ZERO: u8 = 120;

/// Kernel priority -1 as a byte: SCHED_DEADLINE.
const DEADLINE: u8 = u8::MAX;

/// The kernel's policy numbers.
const FIFO: u32 = 1;
const ROUND_ROBIN: u32 = 2;
const IDLE: u32 = 5;

/// Priority and policy of a thread at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SchedStanding {
    prio: u8,
    /// Known only for threads alive at the mark.
    policy: Option<u32>,
}

/// Priorities of all threads.
#[derive(Debug, Default)]
pub struct Priorities {
    /// By thread: the observed priorities, each with the time since which it holds.
    seen: ByThread<Vec<(Nanos, u8)>>,
    at_mark: HashMap<Tid, (u8, u32)>,
    /// By CPU: the running thread, and the time since which it runs.
    running: Vec<(Tid, Nanos)>,
}

impl SchedStanding {
    /// Returns the rank of the thread in scheduling order; lower ranks run first.
    fn rank(self) -> u8 {
        match self.prio {
            DEADLINE => 0,
            _ if self.is_idle_policy() => u8::MAX,
            prio => prio.saturating_add(1),
        }
    }

    /// Returns `true` if the thread runs before `other`, or gets a larger share.
    pub(crate) fn beats(self, other: SchedStanding) -> bool {
        self.rank() < other.rank()
    }

    /// Returns `true` for the default priority.
    pub(crate) fn is_usual(self) -> bool {
        self.prio == NICE_ZERO && !self.is_idle_policy()
    }

    /// Returns `true` for a priority below the default.
    pub(crate) fn is_low(self) -> bool {
        self.is_idle_policy() || self.prio > NICE_ZERO && self.prio != DEADLINE
    }

    /// Returns `true` if the thread runs before all SCHED_OTHER threads.
    pub(crate) fn is_realtime(self) -> bool {
        self.prio < REALTIME_LIMIT || self.prio == DEADLINE
    }

    /// Returns `true` for a real-time priority that an ordinary thread inherits while it holds a
    /// lock that a real-time thread waits for.
    pub(crate) fn is_lent(self) -> bool {
        self.is_realtime()
            && self.policy.is_some_and(|policy| policy == 0 || policy == 3 || policy == IDLE)
    }

    pub(crate) fn is_idle_policy(self) -> bool {
        self.policy == Some(IDLE) && !self.is_realtime()
    }

    /// Returns a description: `at nice -5`, `with real-time priority FIFO 50`.
    pub fn text(self) -> String {
        let policy = match self.policy {
            Some(FIFO) => "FIFO ",
            Some(ROUND_ROBIN) => "RR ",
            _ => "",
        };
        match self.prio {
            DEADLINE => "with a deadline (SCHED_DEADLINE)".to_owned(),
            prio if self.is_lent() => {
                format!("with real-time priority {}, lent for a lock", REALTIME_LIMIT - 1 - prio)
            }
            prio if prio < REALTIME_LIMIT => {
                format!("with real-time priority {policy}{}", REALTIME_LIMIT - 1 - prio)
            }
            _ if self.is_idle_policy() => "with the idle policy".to_owned(),
            prio => format!("at nice {}", i16::from(prio) - i16::from(NICE_ZERO)),
        }
    }
}

impl Priorities {
    /// Starts with the tasks alive at the mark.
    pub fn at_mark(tasks: &[Task]) -> Priorities {
        let at_mark =
            tasks.iter().map(|task| (task.head.tid, (task.prio as u8, task.policy))).collect();
        Priorities { at_mark, ..Priorities::default() }
    }

    /// Learns from an event; events come in chronological order. A thread that leaves a CPU with
    /// another priority than it came with counts as having had it since it came: the change is not
    /// recorded, and a thread usually gets its priority as soon as it starts.
    pub fn see(&mut self, event: &SchedEvent) {
        if event.change != SchedChange::Switch {
            return;
        }
        let cpu = usize::from(event.cpu);
        if cpu >= self.running.len() {
            self.running.resize(cpu + 1, (Tid(0), Nanos(0)));
        }
        let (before, since) = std::mem::replace(&mut self.running[cpu], (event.other, event.ts));
        self.learn(event.tid, if before == event.tid { since } else { event.ts }, event.left_prio);
        self.learn(event.other, event.ts, event.prio);
    }

    /// Learns the priority of the threads that still run at the mark.
    pub fn close(&mut self) {
        for (tid, since) in std::mem::take(&mut self.running) {
            if let Some((prio, _)) = self.at_mark.get(&tid).copied() {
                self.learn(tid, since, prio);
            }
        }
    }

    fn learn(&mut self, tid: Tid, from: Nanos, prio: u8) {
        let Some(seen) = self.seen.get_or_add(tid, Vec::new) else { return };
        match seen.last_mut() {
            Some((_, last)) if *last == prio => {}
            Some((at, last)) if *at >= from => *last = prio,
            _ => seen.push((from, prio)),
        }
    }

    /// Returns the standing of a thread: the last one observed at or before `at`, else the first
    /// one after it; `None` if nothing is known.
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
        SchedEvent { prio, ..SchedEvent::switched(Nanos(ts), 0, 9, next) }
    }

    #[test]
    fn a_priority_set_while_running_holds_from_the_switch_on() {
        let mut task = Task::read(&[0; Task::SIZE]).expect("it has its size");
        (task.head.tid, task.prio, task.policy) = (Tid(1), 94, FIFO);
        let mut priorities = Priorities::at_mark(&[task]);
        let left = SchedEvent { tid: Tid(1), left_prio: 49, ..switch(30, 2, 120) };
        [switch(10, 1, 120), left, switch(40, 1, 120)]
            .iter()
            .for_each(|event| priorities.see(event));
        priorities.close();
        let held = [10, 29, 35, 40].map(|at| priorities.at(Tid(1), Nanos(at)));
        let held = held.map(|standing| standing.map(|standing| standing.prio));
        assert_eq!(held, [Some(49), Some(49), Some(49), Some(94)]);
    }

    #[test]
    fn a_priority_holds_until_another_one_is_seen() {
        let events =
            [switch(10, 2, 49), switch(20, 1, 120), switch(30, 2, 139), switch(35, 1, 110)];
        let mut priorities = Priorities::default();
        events.iter().for_each(|event| priorities.see(event));
        for (tid, at, expected) in [
            (1, 5, Some("at nice 0")),
            (1, 40, Some("at nice -10")),
            (2, 25, Some("with real-time priority 50")),
            (2, 35, Some("at nice 19")),
            (3, 35, None),
        ] {
            let text = priorities.at(Tid(tid), Nanos(at)).map(SchedStanding::text);
            assert_eq!(text.as_deref(), expected, "thread {tid} at {at}");
        }
    }

    fn standing(prio: u8, policy: Option<u32>) -> SchedStanding {
        SchedStanding { prio, policy }
    }

    #[test]
    fn deadline_beats_fifo_beats_normal_beats_idle() {
        let (deadline, fifo, normal) =
            (standing(DEADLINE, None), standing(49, Some(FIFO)), standing(120, Some(0)));
        let (idle, lent) = (standing(120, Some(IDLE)), standing(49, Some(0)));
        assert!(
            deadline.beats(fifo)
                && fifo.beats(normal)
                && normal.beats(idle)
                && !normal.beats(normal)
        );
        assert_eq!(fifo.text(), "with real-time priority FIFO 50");
        assert_eq!(lent.text(), "with real-time priority 50, lent for a lock");
        assert_eq!((idle.text().as_str(), idle.is_low()), ("with the idle policy", true));
        assert!(lent.is_lent() && !fifo.is_lent() && !normal.is_low());
    }
}
