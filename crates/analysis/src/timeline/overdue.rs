// SPDX-License-Identifier: MIT OR Apache-2.0
//! When a CPU did not take the interrupt of its own timer: the kernel allowed none there, or nothing ran on it at all.
//!
//! An interrupt that the kernel holds off comes with the instruction that allows interrupts again. One that finds a
//! program at work, an idle CPU, or kernel code that had not just allowed it could have come at any time before: then
//! the CPU itself was away, by a hypervisor or by the firmware.

use crate::decode::names::Names;
use tipme_record::records::Overdue;
use tipme_record::{Cpu, Nanos, StackId, Tid};

/// The values of a record's `found`.
const JUST_ALLOWED: u32 = 1;
const IN_PROGRAM: u32 = 2;

/// Where the stack of an interrupt begins.
const ENTRY: &str = "asm_sysvec_";

/// A stretch in which a CPU took no interrupt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OverdueTimer {
    pub cpu: Cpu,
    /// For when the timer was set, and when its interrupt began.
    pub due: Nanos,
    pub came: Nanos,
    /// Who was on the CPU then; 0 is idle.
    pub tid: Tid,
    found: u32,
    stack: StackId,
}

/// All that were recorded, by CPU and time, none of them overlapping.
#[derive(Debug, Default)]
pub struct OverdueTimers {
    sorted: Vec<OverdueTimer>,
}

/// A part of a CPU's time, and the timer that was due in it.
pub(crate) type OverdueTile<'a> = (Option<&'a OverdueTimer>, Nanos, Nanos);

impl OverdueTimer {
    /// Whether the kernel had held interrupts off.
    pub(crate) fn is_held_off(&self) -> bool {
        self.found == JUST_ALLOWED && self.tid != Tid(0)
    }

    /// By how much it came late.
    pub(crate) fn late(&self) -> Nanos {
        self.came.since(self.due)
    }

    /// Whether it was awaited for such a share of `lo..hi`.
    pub(crate) fn covers(&self, share: f64, lo: Nanos, hi: Nanos) -> bool {
        self.came.min(hi).since(self.due.max(lo)).0 as f64 >= share * hi.since(lo).0 as f64
    }

    /// What the interrupt found, where the CPU was away.
    pub(crate) fn found(&self) -> &'static str {
        match self.found {
            IN_PROGRAM => "a program, which cannot hold interrupts off",
            _ if self.tid == Tid(0) => "the CPU idle",
            _ => "kernel code that had not just allowed it",
        }
    }

    /// The function of the kernel that the interrupt hit; `None` in a program and where it is not known.
    pub(crate) fn function<'a>(&self, names: &'a Names) -> Option<&'a str> {
        let mut functions = names.kernel_functions(self.stack);
        functions.find(|name| name.starts_with(ENTRY))?;
        functions.next()
    }
}

impl OverdueTimers {
    pub fn new(records: &[(Cpu, Overdue)]) -> OverdueTimers {
        let read = |(cpu, record): &(Cpu, Overdue)| OverdueTimer {
            cpu: *cpu,
            due: record.head.ts.before(record.nanos),
            came: record.head.ts,
            tid: record.head.tid,
            found: record.found,
            stack: record.stack,
        };
        let mut sorted: Vec<OverdueTimer> = records.iter().map(read).collect();
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

    /// Those on a CPU that reach into `lo..hi`, in the order of time.
    pub(crate) fn within(&self, cpu: Cpu, lo: Nanos, hi: Nanos) -> impl Iterator<Item = &OverdueTimer> {
        let first = self.sorted.partition_point(|one| (one.cpu, one.came) <= (cpu, lo));
        let rest = self.sorted.get(first..).unwrap_or_default();
        rest.iter().take_while(move |one| one.cpu == cpu && one.due < hi)
    }

    /// Tiles `lo..hi` on a CPU with the stretches in which it took no interrupt, and with what lies between them.
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

    /// The longest on a CPU that reaches into `lo..hi` and was not held off.
    pub(crate) fn longest_away(&self, cpu: Cpu, lo: Nanos, hi: Nanos) -> Option<&OverdueTimer> {
        self.within(cpu, lo, hi).filter(|one| !one.is_held_off()).max_by_key(|one| one.late())
    }

    /// The longest on a CPU that reaches into `lo..hi` and was held off.
    pub(crate) fn longest_held_off(&self, cpu: Cpu, lo: Nanos, hi: Nanos) -> Option<&OverdueTimer> {
        self.within(cpu, lo, hi).filter(|one| one.is_held_off()).max_by_key(|one| one.late())
    }

    /// All that a thread held off.
    pub(crate) fn held_off_by(&self, tid: Tid) -> impl Iterator<Item = &OverdueTimer> {
        self.sorted.iter().filter(move |one| one.tid == tid && one.is_held_off())
    }

    /// Whether all of so many CPUs were away for most of `lo..hi`.
    pub(crate) fn all_away(&self, cpus: u32, lo: Nanos, hi: Nanos) -> bool {
        (0..cpus).map(Cpu).all(|cpu| self.away(cpu, lo, hi).0.saturating_mul(2) >= hi.since(lo).0)
    }

    /// For how much of `lo..hi` a CPU was away: nothing of this machine ran on it.
    pub fn away(&self, cpu: Cpu, lo: Nanos, hi: Nanos) -> Nanos {
        let away = self.within(cpu, lo, hi).filter(|one| !one.is_held_off());
        Nanos(away.map(|one| one.came.min(hi).since(one.due.max(lo)).0).fold(0, u64::saturating_add))
    }
}
