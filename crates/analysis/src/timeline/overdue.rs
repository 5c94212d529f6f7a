// SPDX-License-Identifier: MIT OR Apache-2.0
//! Overdue timer interrupts: a CPU did not take the interrupt of its own timer, because the kernel
//! had interrupts disabled, or nothing ran on the CPU at all.
//!
//! An interrupt held off by the kernel arrives with the instruction that enables interrupts again.
//! One that hits user code, an idle CPU, or kernel code that had not just enabled interrupts could
//! have arrived at any time before: then the CPU itself was away, because of a hypervisor or the
//! firmware.

use crate::decode::names::Names;
use tipme_record::records::Overdue;
use tipme_record::{Cpu, Nanos, StackId, Tid};

/// Values of the field `found` of a record.
const JUST_ALLOWED: u32 = 1;
const IN_PROGRAM: u32 = 2;

/// Prefix of the entry function of an interrupt in a stack.
const ENTRY: &str = "asm_sysvec_";

/// Stretch in which a CPU took no timer interrupt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OverdueTimer {
    pub cpu: Cpu,
    /// Expiry of the timer, and start of its interrupt.
    pub due: Nanos,
    pub came: Nanos,
    /// Thread on the CPU at that time; 0 is idle.
    pub tid: Tid,
    found: u32,
    stack: StackId,
}

/// All recorded overdue timers, by CPU and time, without overlaps.
#[derive(Debug, Default)]
pub struct OverdueTimers {
    sorted: Vec<OverdueTimer>,
}

/// Part of a CPU's time, with the timer that was overdue in it.
pub(crate) type OverdueTile<'a> = (Option<&'a OverdueTimer>, Nanos, Nanos);

impl OverdueTimer {
    /// Returns `true` if the kernel had interrupts disabled.
    pub(crate) fn is_held_off(&self) -> bool {
        self.found == JUST_ALLOWED && self.tid != Tid(0)
    }

    /// Returns the delay of the interrupt.
    pub(crate) fn late(&self) -> Nanos {
        self.came.since(self.due)
    }

    /// Returns `true` if the timer was overdue for at least this share of `lo..hi`.
    pub(crate) fn covers(&self, share: f64, lo: Nanos, hi: Nanos) -> bool {
        self.came.min(hi).since(self.due.max(lo)).0 as f64 >= share * hi.since(lo).0 as f64
    }

    /// Describes the code that the interrupt hit, for a CPU that was away.
    pub(crate) fn found(&self) -> &'static str {
        match self.found {
            IN_PROGRAM => "a program, which cannot hold interrupts off",
            _ if self.tid == Tid(0) => "the CPU idle",
            _ => "kernel code that had not just allowed it",
        }
    }

    /// Returns the kernel function that the interrupt hit; `None` in user code, or if it is
    /// unknown.
    pub(crate) fn function<'a>(&self, names: &'a Names) -> Option<&'a str> {
        let mut functions = names.kernel_functions(self.stack);
        functions.find(|name| name.starts_with(ENTRY))?;
        functions.next()
    }
}

impl OverdueTimers {
    pub fn new(records: &[(Cpu, Overdue)]) -> OverdueTimers {
        let timers = records.iter().map(|(cpu, record)| OverdueTimer {
            cpu: *cpu,
            due: record.head.ts.before(record.nanos),
            came: record.head.ts,
            tid: record.head.tid,
            found: record.found,
            stack: record.stack,
        });
        let mut sorted: Vec<OverdueTimer> = timers.collect();
        sorted.sort_by_key(|one| (one.cpu, one.came, one.due));
        let mut before = (Cpu(0), Nanos(0));
        for one in &mut sorted {
            if before.0 == one.cpu {
                one.due = one.due.max(before.1);
            }
            before = (one.cpu, one.came);
        }
        sorted.retain(|one| one.due < one.came);
        OverdueTimers { sorted }
    }

    /// Returns the overdue timers on a CPU that overlap `lo..hi`, in chronological order.
    pub(crate) fn within(
        &self,
        cpu: Cpu,
        lo: Nanos,
        hi: Nanos,
    ) -> impl Iterator<Item = &OverdueTimer> {
        let first = self.sorted.partition_point(|one| (one.cpu, one.came) <= (cpu, lo));
        let rest = self.sorted.get(first..).unwrap_or_default();
        rest.iter().take_while(move |one| one.cpu == cpu && one.due < hi)
    }

    /// Tiles `lo..hi` on a CPU with its overdue timers and the gaps between them.
    pub(crate) fn tiles(&self, cpu: Cpu, lo: Nanos, hi: Nanos) -> Vec<OverdueTile<'_>> {
        let (mut at, mut tiles) = (lo, Vec::new());
        for one in self.within(cpu, lo, hi) {
            tiles.push((None, at, one.due.max(lo)));
            tiles.push((Some(one), one.due.max(lo), one.came.min(hi)));
            at = one.came.min(hi);
        }
        tiles.push((None, at, hi));
        tiles.retain(|(_, lo, hi)| lo < hi);
        tiles
    }

    /// Returns the longest stretch overlapping `lo..hi` in which a CPU was away.
    pub(crate) fn longest_away(&self, cpu: Cpu, lo: Nanos, hi: Nanos) -> Option<&OverdueTimer> {
        self.within(cpu, lo, hi).filter(|one| !one.is_held_off()).max_by_key(|one| one.late())
    }

    /// Returns the longest stretch overlapping `lo..hi` in which the kernel held interrupts off on
    /// a CPU.
    pub(crate) fn longest_held_off(&self, cpu: Cpu, lo: Nanos, hi: Nanos) -> Option<&OverdueTimer> {
        self.within(cpu, lo, hi).filter(|one| one.is_held_off()).max_by_key(|one| one.late())
    }

    /// Returns the overdue timers that a thread held off.
    pub(crate) fn held_off_by(&self, tid: Tid) -> impl Iterator<Item = &OverdueTimer> {
        self.sorted.iter().filter(move |one| one.tid == tid && one.is_held_off())
    }

    /// Returns `true` if each of the first `cpus` CPUs was away for at least half of `lo..hi`.
    pub(crate) fn all_away(&self, cpus: u32, lo: Nanos, hi: Nanos) -> bool {
        (0..cpus).map(Cpu).all(|cpu| self.away(cpu, lo, hi).0.saturating_mul(2) >= hi.since(lo).0)
    }

    /// Returns the time in `lo..hi` for which a CPU was away: nothing of this machine ran on it.
    pub fn away(&self, cpu: Cpu, lo: Nanos, hi: Nanos) -> Nanos {
        let away = self.within(cpu, lo, hi).filter(|one| !one.is_held_off());
        Nanos(
            away.map(|one| one.came.min(hi).since(one.due.max(lo)).0).fold(0, u64::saturating_add),
        )
    }
}
