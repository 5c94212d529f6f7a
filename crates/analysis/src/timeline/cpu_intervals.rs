// SPDX-License-Identifier: MIT OR Apache-2.0
//! Owners of a CPU over time, to explain time that something else lost there: gaps of the idle
//! loop, late timers.
//!
//! Only records decide. Interrupts shorter than the recorder's limit are not recorded, nor is the
//! local timer interrupt, which has no number: their time counts for the interrupted thread.

use crate::timeline::interrupts::Source;
use crate::timeline::recording::Recording;
use tipme_record::{Cpu, Nanos, Tid};

/// Owner of a CPU.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CpuOwner {
    /// A thread of the kernel or of a process.
    Thread { tid: Tid, name: String },
    /// A kernel thread that ran a work item, by the function of the item.
    Work { tid: Tid, function: String },
    /// An interrupt handler of a device.
    Interrupt { name: String },
    /// A softirq.
    Softirq { name: String },
    /// The idle task.
    Idle,
    /// Not recorded, or no longer held.
    Unknown,
}

/// Uninterrupted stretch of one owner on a CPU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CpuInterval {
    pub owner: CpuOwner,
    pub from: Nanos,
    pub to: Nanos,
}

impl CpuInterval {
    pub fn time(&self) -> Nanos {
        self.to.since(self.from)
    }
}

/// Recorded owner of a CPU interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CpuOccupancy {
    /// Tid 0 is the idle task; `None` is unknown.
    Thread(Option<Tid>),
    Interrupt(Source),
}

/// Returns the owners of a CPU in `lo..hi` in chronological order without gaps: threads, and the
/// interrupts within their time.
pub(crate) fn on_cpu(
    recording: &Recording,
    cpu: Cpu,
    lo: Nanos,
    hi: Nanos,
) -> Vec<(CpuOccupancy, Nanos, Nanos)> {
    let threads = recording.timeline.ran(cpu, lo, hi).into_iter();
    let tiles = threads.flat_map(|(tid, lo, hi)| {
        let tiles = recording.interrupts.tiles(cpu, lo, hi).into_iter();
        tiles.map(move |(source, lo, hi)| {
            (source.map_or(CpuOccupancy::Thread(tid), CpuOccupancy::Interrupt), lo, hi)
        })
    });
    tiles.collect()
}

/// Returns the owners of a CPU in `from..to` in chronological order without gaps: the times sum to
/// `to - from`.
///
/// The owner is `Unknown` before the time from which the recording is complete, and after the mark.
/// An interrupt within an interrupt counts for the outer one.
pub fn cpu_intervals(recording: &Recording, cpu: Cpu, from: Nanos, to: Nanos) -> Vec<CpuInterval> {
    let mut tiles = Tiles::default();
    let held = recording.complete_from().clamp(from, to.max(from));
    tiles.add(CpuOwner::Unknown, from, held);
    for (on, lo, hi) in on_cpu(recording, cpu, held, to) {
        match on {
            CpuOccupancy::Thread(Some(tid)) if tid != Tid(0) => {
                add_thread(&mut tiles, recording, tid, lo, hi)
            }
            _ => tiles.add(owner(recording, cpu, on, lo, hi), lo, hi),
        }
    }
    tiles.done
}

/// Adds a thread's time, split by the work items that it ran.
fn add_thread(tiles: &mut Tiles, recording: &Recording, tid: Tid, lo: Nanos, hi: Nanos) {
    for (function, lo, hi) in recording.deferred.tiles(tid, lo, hi) {
        let owner = match function {
            Some(function) => CpuOwner::Work { tid, function: function.to_owned() },
            None => CpuOwner::Thread { tid, name: recording.tasks.thread_comm(tid, lo) },
        };
        tiles.add(owner, lo, hi);
    }
}

/// Returns `true` if a thread belongs to the recorder of this recording.
pub fn is_recorder(recording: &Recording, tid: Tid, at: Nanos) -> bool {
    recording.meta.recorder_pid != 0
        && recording.tasks.pid(tid, at).0 == recording.meta.recorder_pid
}

/// CPU intervals so far; each begins at the end of the one before.
#[derive(Default)]
struct Tiles {
    done: Vec<CpuInterval>,
}

impl Tiles {
    /// Adds a non-empty interval; extends the last one if the owner is the same.
    fn add(&mut self, owner: CpuOwner, from: Nanos, to: Nanos) {
        if to <= from {
            return;
        }
        match self.done.last_mut() {
            Some(last) if last.owner == owner => last.to = to,
            _ => self.done.push(CpuInterval { owner, from, to }),
        }
    }
}

/// Returns the owner of anything but a known thread.
fn owner(recording: &Recording, cpu: Cpu, on: CpuOccupancy, lo: Nanos, hi: Nanos) -> CpuOwner {
    match on {
        CpuOccupancy::Thread(None) => CpuOwner::Unknown,
        CpuOccupancy::Thread(Some(_)) => CpuOwner::Idle,
        CpuOccupancy::Interrupt(source) => {
            let name = source.name(&recording.meta.irq_names);
            let function = recording.deferred.timer(cpu, source, lo, hi);
            let name =
                function.map_or_else(|| name.clone(), |function| format!("{name}: {function}"));
            if source.soft { CpuOwner::Softirq { name } } else { CpuOwner::Interrupt { name } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::events::SchedEvent;
    use crate::timeline::interrupts::Interrupts;
    use crate::timeline::threads::Timeline;
    use proptest::prelude::*;
    use tipme_record::Head;
    use tipme_record::records::Irq;

    fn switch(ts: u64, tid: u32, next: u32) -> SchedEvent {
        SchedEvent::switched(Nanos(ts), 0, tid, next)
    }

    fn irq(end: u64, nanos: u64, number: u32, soft: u32) -> (Cpu, Irq) {
        let head = Head { ts: Nanos(end), tid: Tid(7), size: 32, kind: 20, generation: 0 };
        (Cpu(0), Irq { head, nanos: Nanos(nanos), number, soft })
    }

    fn recording(events: &[SchedEvent], irqs: &[(Cpu, Irq)], held: u64, mark: u64) -> Recording {
        let mut recording = Recording { mark: Nanos(mark), ..Recording::default() };
        recording.meta.held_from_ns = held;
        recording.timeline = Timeline::new(events.iter().copied(), &[], Nanos(mark));
        recording.interrupts = Interrupts::new(irqs);
        recording
    }

    fn named(tid: u32) -> CpuOwner {
        CpuOwner::Thread { tid: Tid(tid), name: format!("thread {tid}") }
    }

    fn owners(cpu_intervals: &[CpuInterval]) -> Vec<(CpuOwner, u64, u64)> {
        cpu_intervals.iter().map(|one| (one.owner.clone(), one.from.0, one.to.0)).collect()
    }

    #[test]
    fn threads_interrupts_and_idle_are_distinguished() {
        let events = [switch(100, 7, 8), switch(200, 8, 0), switch(300, 0, 7)];
        let recording = recording(&events, &[irq(160, 20, 24, 0), irq(250, 10, 1, 1)], 0, 400);
        let expected = vec![
            (named(8), 120, 140),
            (CpuOwner::Interrupt { name: "interrupt 24".to_owned() }, 140, 160),
            (named(8), 160, 200),
            (CpuOwner::Idle, 200, 240),
            (CpuOwner::Softirq { name: "softirq timer".to_owned() }, 240, 250),
            (CpuOwner::Idle, 250, 300),
            (named(7), 300, 350),
        ];
        assert_eq!(owners(&cpu_intervals(&recording, Cpu(0), Nanos(120), Nanos(350))), expected);
    }

    #[test]
    fn times_without_records_are_unknown() {
        let recording = recording(&[switch(100, 7, 8), switch(200, 8, 7)], &[], 150, 300);
        let expected = vec![
            (CpuOwner::Unknown, 50, 150),
            (named(8), 150, 200),
            (named(7), 200, 300),
            (CpuOwner::Unknown, 300, 400),
        ];
        assert_eq!(owners(&cpu_intervals(&recording, Cpu(0), Nanos(50), Nanos(400))), expected);
        let elsewhere = cpu_intervals(&recording, Cpu(1), Nanos(160), Nanos(170));
        assert_eq!(owners(&elsewhere), vec![(CpuOwner::Unknown, 160, 170)]);
        assert_eq!(cpu_intervals(&recording, Cpu(0), Nanos(170), Nanos(160)), vec![]);
    }

    proptest! {
        #[test]
        fn cpu_intervals_tile_any_interval(
            mut times in proptest::collection::vec(1..1_000_u64, 0..20),
            irqs in proptest::collection::vec((1..1_000_u64, 0..300_u64, 0..3_u32, 0..2_u32), 0..10),
            held in 0..1_200_u64,
            (from, length) in (0..1_000_u64, 0..1_000_u64),
        ) {
            times.sort_unstable();
            let events = times.iter().enumerate();
            let events: Vec<SchedEvent> =
                events.map(|(at, ts)| switch(*ts, at as u32, at as u32 + 1)).collect();
            let irqs = irqs.into_iter();
            let irqs: Vec<_> =
                irqs.map(|(end, nanos, number, soft)| irq(end, nanos, number, soft)).collect();
            let recording = recording(&events, &irqs, held, 1_100);
            let found = cpu_intervals(&recording, Cpu(0), Nanos(from), Nanos(from + length));
            let sum: u64 = found.iter().map(|one| one.time().0).sum();
            prop_assert_eq!(sum, length);
            prop_assert!(found.windows(2).all(|pair| pair[0].to == pair[1].from));
        }
    }
}
