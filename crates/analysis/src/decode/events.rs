// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scheduler events, compact and in the order of time.

use tipme_record::records::{Fork, Migrate, Switch, Waking};
use tipme_record::{Cpu, Entry, Kind, Nanos, Tid};

/// CPU numbers from here on are not believed.
pub const CPU_LIMIT: usize = 8_192;

/// What changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Change {
    Switch,
    Waking,
    Migrate,
    Fork,
}

/// One event, 24 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    pub ts: Nanos,
    /// The thread that leaves, is woken, moves or is created.
    pub tid: Tid,
    /// The thread that enters, wakes, moves or creates.
    pub other: Tid,
    pub cpu: u16,
    /// Switch: state of the thread that leaves. Waking, migrate: CPU of the thread.
    pub argument: u16,
    pub change: Change,
    /// Waking: context of the waker.
    pub context: u8,
    /// Switch: kernel priority of the thread that enters.
    pub prio: u8,
}

impl Event {
    /// The event of a record, where it is one that changes a thread's state.
    pub fn read(entry: &Entry<'_>, cpu: Cpu) -> Option<Event> {
        let (ts, tid, cpu) = (entry.head.ts, entry.head.tid, cpu.0 as u16);
        let (change, other) = (Change::Switch, Tid(0));
        let event = Event { ts, tid, other, cpu, argument: 0, change, context: 0, prio: 0 };
        Some(match entry.kind {
            Kind::Switch => {
                let Switch { next, prev_state, next_prio, .. } = Switch::read(entry.bytes)?;
                Event { other: next, argument: prev_state, prio: next_prio, ..event }
            }
            Kind::Waking => {
                let Waking { waker, target_cpu, context, .. } = Waking::read(entry.bytes)?;
                Event { change: Change::Waking, other: waker, argument: target_cpu, context, ..event }
            }
            Kind::Migrate => {
                let Migrate { to, by, .. } = Migrate::read(entry.bytes)?;
                Event { change: Change::Migrate, other: by, argument: to, ..event }
            }
            Kind::Fork => {
                let Fork { child_tid, .. } = Fork::read(entry.bytes)?;
                Event { change: Change::Fork, tid: child_tid, other: tid, ..event }
            }
            _ => return None,
        })
    }
}
