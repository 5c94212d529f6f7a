// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scheduler events in compact form and chronological order.

use tipme_record::records::{Fork, Migrate, Switch, Waking};
use tipme_record::{ChunkEntry, Cpu, Nanos, RecordKind, Tid};

/// Limit for CPU numbers; larger ones are taken for damage.
pub(crate) const CPU_LIMIT: usize = 8_192;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum SchedChange {
    Switch,
    Waking,
    Migrate,
    Fork,
    /// No change: the thread was sampled on the CPU, which reveals a switch without a record.
    Sampled,
}

/// Scheduler event, 24 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SchedEvent {
    pub ts: Nanos,
    /// The thread that is switched out, woken, migrated, created or sampled.
    pub tid: Tid,
    /// The thread that is switched in, the waker, or the thread that migrates or creates.
    pub other: Tid,
    pub cpu: u16,
    /// Switch: state of the previous thread. Waking, migrate: target CPU.
    pub argument: u16,
    pub change: SchedChange,
    /// Waking: context of the waker.
    pub context: u8,
    /// Switch: kernel priority of the next thread.
    pub prio: u8,
    /// Switch: kernel priority of the previous thread.
    pub left_prio: u8,
}

impl SchedEvent {
    /// Returns a switch from a thread that sleeps to another one, both with the default priority.
    #[cfg(test)]
    pub(crate) fn switched(ts: Nanos, cpu: u16, tid: u32, other: u32) -> SchedEvent {
        let (tid, other, change) = (Tid(tid), Tid(other), SchedChange::Switch);
        SchedEvent {
            ts,
            tid,
            other,
            cpu,
            argument: 1,
            change,
            context: 0,
            prio: 120,
            left_prio: 120,
        }
    }

    /// Returns the event of a record, if its kind affects the state of a thread.
    pub fn read(entry: &ChunkEntry<'_>, cpu: Cpu) -> Option<SchedEvent> {
        let (ts, tid, cpu) = (entry.head.ts, entry.head.tid, cpu.0 as u16);
        let (change, other) = (SchedChange::Switch, Tid(0));
        let event = SchedEvent {
            ts,
            tid,
            other,
            cpu,
            argument: 0,
            change,
            context: 0,
            prio: 0,
            left_prio: 0,
        };
        Some(match entry.kind {
            RecordKind::Switch => {
                let Switch { next, prev_state, next_prio, prev_prio, .. } =
                    Switch::read(entry.bytes)?;
                SchedEvent {
                    other: next,
                    argument: prev_state,
                    prio: next_prio,
                    left_prio: prev_prio,
                    ..event
                }
            }
            RecordKind::Waking => {
                let Waking { waker, target_cpu, context, .. } = Waking::read(entry.bytes)?;
                SchedEvent {
                    change: SchedChange::Waking,
                    other: waker,
                    argument: target_cpu,
                    context,
                    ..event
                }
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
