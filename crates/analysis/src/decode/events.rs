// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scheduler events, compact and in the order of time.

use tipme_record::records::{Fork, Migrate, Switch, Waking};
use tipme_record::{ChunkEntry, Cpu, Nanos, RecordKind, Tid};

/// CPU numbers from here on are not believed.
pub(crate) const CPU_LIMIT: usize = 8_192;

/// What changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum SchedChange {
    Switch,
    Waking,
    Migrate,
    Fork,
    /// Nothing changed: the thread was found on the CPU, which tells of a switch whose record is missing.
    Sampled,
}

/// One event, 24 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SchedEvent {
    pub ts: Nanos,
    /// The thread that leaves, is woken, moves, is created or found.
    pub tid: Tid,
    /// The thread that enters, wakes, moves or creates.
    pub other: Tid,
    pub cpu: u16,
    /// Switch: state of the thread that leaves. Waking, migrate: CPU of the thread.
    pub argument: u16,
    pub change: SchedChange,
    /// Waking: context of the waker.
    pub context: u8,
    /// Switch: kernel priority of the thread that enters.
    pub prio: u8,
    /// Switch: that of the thread that leaves.
    pub left_prio: u8,
}

impl SchedEvent {
    /// On a CPU one thread leaves, to sleep, and another one enters; both have the usual priority.
    #[cfg(test)]
    pub(crate) fn switched(ts: Nanos, cpu: u16, tid: u32, other: u32) -> SchedEvent {
        let (tid, other, change) = (Tid(tid), Tid(other), SchedChange::Switch);
        SchedEvent { ts, tid, other, cpu, argument: 1, change, context: 0, prio: 120, left_prio: 120 }
    }

    /// The event of a record, where it is one that tells of a thread's state.
    pub fn read(entry: &ChunkEntry<'_>, cpu: Cpu) -> Option<SchedEvent> {
        let (ts, tid, cpu) = (entry.head.ts, entry.head.tid, cpu.0 as u16);
        let (change, other) = (SchedChange::Switch, Tid(0));
        let event = SchedEvent { ts, tid, other, cpu, argument: 0, change, context: 0, prio: 0, left_prio: 0 };
        Some(match entry.kind {
            RecordKind::Switch => {
                let Switch { next, prev_state, next_prio, prev_prio, .. } = Switch::read(entry.bytes)?;
                SchedEvent { other: next, argument: prev_state, prio: next_prio, left_prio: prev_prio, ..event }
            }
            RecordKind::Waking => {
                let Waking { waker, target_cpu, context, .. } = Waking::read(entry.bytes)?;
                SchedEvent { change: SchedChange::Waking, other: waker, argument: target_cpu, context, ..event }
            }
            RecordKind::Migrate => {
                let Migrate { to, by, .. } = Migrate::read(entry.bytes)?;
                SchedEvent { change: SchedChange::Migrate, other: by, argument: to, ..event }
            }
            RecordKind::Fork => {
                let Fork { child_tid, .. } = Fork::read(entry.bytes)?;
                SchedEvent { change: SchedChange::Fork, tid: child_tid, other: tid, ..event }
            }
            RecordKind::Sample => SchedEvent { change: SchedChange::Sampled, ..event },
            _ => return None,
        })
    }
}
