// SPDX-License-Identifier: MIT OR Apache-2.0
//! Code with interrupts off during which the CPU may have been stolen: an interrupt handler, or a
//! thread that holds interrupts off.
//!
//! Such code records nothing between its start and its end, and neither does a hypervisor that
//! takes the CPU meanwhile. If the hypervisor counts stolen time, the count decides. Otherwise
//! there is only the usual duration to compare with: a handler that takes ten times as long as its
//! other runs may be innocent, and one that often takes that long is not.

use crate::timeline::interrupts::{Interrupt, Source};
use crate::timeline::overdue::OverdueTimer;
use crate::timeline::recording::Recording;
use tipme_record::{Cpu, Nanos, Tid};

/// Minimum share of a time for which a thread held interrupts off, for the time to be attributed to
/// it.
const SHARE_MIN: f64 = 0.5;

/// Minimum length to check; the records decide about shorter stretches.
pub(crate) const LENGTH_MIN: Nanos = Nanos::from_millis(5);

/// Minimum number of other runs for the usual duration to be known.
const OTHERS_MIN: usize = 3;

/// A run of this many times the usual duration is suspect.
const TIMES_USUAL: u64 = 10;

/// Code that had the CPU, or was on it when the hypervisor took it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Suspect {
    Handler(Source),
    /// A thread that held interrupts off.
    Thread(Tid),
}

/// Returns the owner of most of `lo..hi` on a CPU that took no interrupt, if it cannot be
/// distinguished from a hypervisor that took the CPU.
pub(crate) fn suspect(recording: &Recording, cpu: Cpu, lo: Nanos, hi: Nanos) -> Option<Suspect> {
    let counts = || recording.steal.is_accounted() || recording.withdrawals.are_counted();
    if !recording.meta.machine.virtualized || counts() {
        return None;
    }
    handler(recording, cpu, lo, hi).or_else(|| thread(recording, cpu, lo, hi))
}

/// Checks interrupt handlers. A softirq can be interrupted, so it is in doubt only if the CPU's
/// timer was late as well.
fn handler(recording: &Recording, cpu: Cpu, lo: Nanos, hi: Nanos) -> Option<Suspect> {
    let run = recording.interrupts.most_of(cpu, lo, hi).filter(|run| run.length() >= LENGTH_MIN)?;
    let deaf = || recording.overdue.away(cpu, run.start, run.end).0 >= run.length().0 / 2;
    let others = recording
        .interrupts
        .all()
        .iter()
        .filter(|other| other.source == run.source && *other != run);
    let unusual = is_unusual(run.length(), others.map(Interrupt::length));
    (unusual && (!run.source.soft || deaf())).then_some(Suspect::Handler(run.source))
}

fn thread(recording: &Recording, cpu: Cpu, lo: Nanos, hi: Nanos) -> Option<Suspect> {
    let held = recording
        .overdue
        .longest_held_off(cpu, lo, hi)
        .filter(|held| held.covers(SHARE_MIN, lo, hi))?;
    let others = recording.overdue.held_off_by(held.tid).filter(|other| *other != held);
    let unusual =
        held.late() >= LENGTH_MIN && is_unusual(held.late(), others.map(OverdueTimer::late));
    unusual.then_some(Suspect::Thread(held.tid))
}

/// Returns `true` if a run is far longer than the others, or too few others are known.
fn is_unusual(length: Nanos, others: impl Iterator<Item = Nanos>) -> bool {
    let mut others: Vec<Nanos> = others.collect();
    others.sort_unstable();
    let usual = others.get(others.len() / 2).filter(|_| others.len() >= OTHERS_MIN);
    usual.is_none_or(|usual| length.0 / TIMES_USUAL >= usual.0)
}

impl Suspect {
    /// Names both possible owners for a sentence.
    pub(crate) fn words(self, recording: &Recording, at: Nanos) -> String {
        format!("the hypervisor or {}", self.name(recording, at))
    }

    /// Explains why the owner is undecided.
    pub(crate) fn text(self, recording: &Recording, cpu: Cpu, at: Nanos) -> String {
        format!(
            "CPU {} had {} for most of it, which is usually far shorter or was seen too seldom to tell: a CPU that is taken \
             meanwhile looks the same, and this hypervisor counts nothing",
            cpu.0,
            self.name(recording, at)
        )
    }

    fn name(self, recording: &Recording, at: Nanos) -> String {
        match self {
            Suspect::Handler(source) => source.name(&recording.meta.irq_names),
            Suspect::Thread(tid) => {
                let process = recording.tasks.comm(recording.tasks.pid(tid, at), at);
                format!("{process} with interrupts held off")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_often_has_something_that_is_usual() {
        let unusual = |length, others: &[u64]| {
            is_unusual(
                Nanos::from_millis(length),
                others.iter().map(|other| Nanos::from_millis(*other)),
            )
        };
        assert!(unusual(400, &[]) && unusual(400, &[1, 1, 1, 400]) && unusual(400, &[390, 390]));
        assert!(!unusual(400, &[390, 390, 390]) && !unusual(400, &[50, 50, 50, 1]));
    }
}
