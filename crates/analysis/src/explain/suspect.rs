// SPDX-License-Identifier: MIT OR Apache-2.0
//! Code that takes no interrupt, in which its CPU may have been taken: the handler of an interrupt, or a thread that
//! holds interrupts off.
//!
//! Such code leaves nothing between its begin and its end, and neither does a hypervisor that takes the CPU meanwhile.
//! Where the hypervisor counts what it takes, that decides. Where it counts nothing there is only what is usual: a
//! handler that takes ten times what its other runs take may be innocent, and one that often takes as long is not.

use crate::timeline::interrupts::{Interrupt, Source};
use crate::timeline::overdue::OverdueTimer;
use crate::timeline::recording::Recording;
use tipme_record::{Cpu, Nanos, Tid};

/// Who held interrupts off for a smaller share of a time is not who had that.
const SHARE_MIN: f64 = 0.5;

/// Shorter stretches stay whose they are by the records.
pub(crate) const LENGTH_MIN: Nanos = Nanos::from_millis(5);

/// Code that was seen this often beside the run in question has something that is usual.
const OTHERS_MIN: usize = 3;

/// From this many times the usual length on a run is not what the code does.
const TIMES_USUAL: u64 = 10;

/// Who may have had a CPU itself, or may have been on it when it was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Suspect {
    Handler(Source),
    /// With interrupts held off.
    Thread(Tid),
}

/// Who had most of `lo..hi` on a CPU without taking an interrupt, and cannot be told from a hypervisor that took it.
pub(crate) fn suspect(recording: &Recording, cpu: Cpu, lo: Nanos, hi: Nanos) -> Option<Suspect> {
    let counts = || recording.steal.is_accounted() || recording.withdrawals.are_counted();
    if !recording.meta.machine.virtualized || counts() {
        return None;
    }
    handler(recording, cpu, lo, hi).or_else(|| thread(recording, cpu, lo, hi))
}

/// A softirq can be interrupted: it is in doubt only where the timer of its CPU did not come either.
fn handler(recording: &Recording, cpu: Cpu, lo: Nanos, hi: Nanos) -> Option<Suspect> {
    let run = recording.interrupts.most_of(cpu, lo, hi).filter(|run| run.length() >= LENGTH_MIN)?;
    let deaf = || recording.overdue.away(cpu, run.start, run.end).0 >= run.length().0 / 2;
    let others = recording.interrupts.all().iter().filter(|other| other.source == run.source && *other != run);
    let unusual = is_unusual(run.length(), others.map(Interrupt::length));
    (unusual && (!run.source.soft || deaf())).then_some(Suspect::Handler(run.source))
}

fn thread(recording: &Recording, cpu: Cpu, lo: Nanos, hi: Nanos) -> Option<Suspect> {
    let held = recording.overdue.longest_held_off(cpu, lo, hi).filter(|held| held.covers(SHARE_MIN, lo, hi))?;
    let others = recording.overdue.held_off_by(held.tid).filter(|other| *other != held);
    let unusual = held.late() >= LENGTH_MIN && is_unusual(held.late(), others.map(OverdueTimer::late));
    unusual.then_some(Suspect::Thread(held.tid))
}

/// Whether something takes far longer than it does else, as far as it was seen else.
fn is_unusual(length: Nanos, others: impl Iterator<Item = Nanos>) -> bool {
    let mut others: Vec<Nanos> = others.collect();
    others.sort_unstable();
    let usual = others.get(others.len() / 2).filter(|_| others.len() >= OTHERS_MIN);
    usual.is_none_or(|usual| length.0 / TIMES_USUAL >= usual.0)
}

impl Suspect {
    /// The two that it may have been, in a sentence.
    pub(crate) fn words(self, recording: &Recording, at: Nanos) -> String {
        format!("the hypervisor or {}", self.name(recording, at))
    }

    /// Why that is not decided.
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
            is_unusual(Nanos::from_millis(length), others.iter().map(|other| Nanos::from_millis(*other)))
        };
        assert!(unusual(400, &[]) && unusual(400, &[1, 1, 1, 400]) && unusual(400, &[390, 390]));
        assert!(!unusual(400, &[390, 390, 390]) && !unusual(400, &[50, 50, 50, 1]));
    }
}
