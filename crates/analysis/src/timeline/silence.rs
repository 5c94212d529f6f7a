// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stretches in which no CPU recorded anything: the machine itself stood still.

use crate::timeline::recording::Recording;
use tipme_record::{Cpu, Nanos};

/// Minimum length of such a stretch: a busy CPU has a recorded tick at least every 10 ms, so
/// shorter ones prove nothing.
const LENGTH_MIN: Nanos = Nanos::from_millis(20);

/// Returns the number of CPUs at work between `lo` and `hi` if no CPU recorded a switch, interrupt
/// or sample; else 0. Idle CPUs do not count, since they record nothing anyway.
pub(crate) fn silent_at_work(recording: &Recording, lo: Nanos, hi: Nanos) -> usize {
    if hi.since(lo) < LENGTH_MIN || !cpus(recording).all(|cpu| is_quiet(recording, cpu, lo, hi)) {
        return 0;
    }
    let at_work = cpus(recording).filter(|cpu| {
        let ran = recording.timeline.ran(*cpu, lo, hi);
        ran.iter().any(|(tid, ..)| tid.is_some_and(|tid| tid.0 != 0))
    });
    at_work.count()
}

fn cpus(recording: &Recording) -> impl Iterator<Item = Cpu> + use<> {
    (0..recording.meta.machine.cpus).map(Cpu)
}

/// Returns `true` if another CPU recorded something in the middle half of `lo..hi`: after a stop of
/// the machine, all CPUs resume at the end.
pub(crate) fn another_went_on(recording: &Recording, cpu: Cpu, lo: Nanos, hi: Nanos) -> bool {
    let quarter = Nanos(hi.since(lo).0 / 4);
    let mut others = cpus(recording).filter(|other| *other != cpu);
    others.any(|other| !is_quiet(recording, other, lo.after(quarter), hi.before(quarter)))
}

/// Returns `true` if a CPU recorded no switch, no interrupt and no sample of its thread.
fn is_quiet(recording: &Recording, cpu: Cpu, lo: Nanos, hi: Nanos) -> bool {
    let ran = recording.timeline.ran(cpu, lo, hi);
    let mut interrupts = recording.interrupts.within(cpu, lo, hi);
    ran.len() <= 1
        && !interrupts.any(|one| one.start > lo || one.end < hi)
        && ran
            .iter()
            .filter_map(|(tid, ..)| *tid)
            .all(|tid| recording.samples_of(tid, lo.after(Nanos(1)), hi).is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::events::SchedEvent;
    use crate::timeline::interrupts::Interrupts;
    use crate::timeline::threads::Timeline;
    use tipme_record::records::{Irq, Sample};
    use tipme_record::{Head, Tid};

    fn ms(at: u64) -> Nanos {
        Nanos::from_millis(at)
    }

    fn switch(at: u64, cpu: u16, next: u32) -> SchedEvent {
        SchedEvent::switched(ms(at), cpu, 90 + u32::from(cpu), next)
    }

    fn recording(events: &[SchedEvent], irqs: &[(Cpu, Irq)]) -> Recording {
        let mut recording = Recording { mark: ms(1_000), ..Recording::default() };
        recording.meta.machine.cpus = 2;
        recording.timeline = Timeline::new(events.iter().copied(), &[], ms(1_000));
        recording.interrupts = Interrupts::new(irqs);
        recording
    }

    fn silent(events: &[SchedEvent], irqs: &[(Cpu, Irq)]) -> usize {
        silent_at_work(&recording(events, irqs), ms(100), ms(400))
    }

    #[test]
    fn a_machine_stands_still_where_no_cpu_recorded_anything() {
        let begun = [switch(10, 0, 7), switch(20, 1, 0)];
        assert_eq!(silent(&begun, &[]), 1);
        assert_eq!(silent(&[begun[0], switch(20, 1, 8)], &[]), 2);
        assert_eq!(
            silent(&[begun[0], begun[1], switch(300, 1, 8)], &[]),
            0,
            "the other CPU went on"
        );
        let head = Head { ts: ms(250), tid: Tid(7), size: 32, kind: 20, generation: 0 };
        let irq = (Cpu(1), Irq { head, nanos: Nanos(20), number: 24, soft: 0 });
        assert_eq!(silent(&begun, &[irq]), 0, "an interrupt came");
        assert_eq!(
            silent(&[switch(10, 0, 0), begun[1]], &[]),
            0,
            "an idle machine records nothing"
        );
        assert_eq!(
            silent_at_work(&recording(&begun, &[]), ms(100), ms(119)),
            0,
            "that is too short"
        );
    }

    #[test]
    fn another_cpu_goes_on_that_does_something_before_all_come_back() {
        let begun = [switch(10, 0, 7), switch(20, 1, 0)];
        for (at, cpu, expected) in
            [(250, 1, true), (250, 0, false), (110, 1, false), (390, 1, false)]
        {
            let recording = recording(&[begun[0], begun[1], switch(at, cpu, 8)], &[]);
            let went_on = another_went_on(&recording, Cpu(0), ms(100), ms(400));
            assert_eq!(went_on, expected, "CPU {cpu} at {at} ms");
        }
    }

    #[test]
    fn a_sample_shows_that_a_cpu_was_at_work() {
        for (at, went_on, silent) in [(250, true, 0), (50, false, 2)] {
            let mut recording = recording(&[switch(10, 0, 7), switch(20, 1, 8)], &[]);
            let mut sample = Sample::read(&[0; Sample::SIZE]).unwrap();
            (sample.head.tid, sample.head.ts) = (Tid(8), ms(at));
            recording.samples = vec![sample];
            assert_eq!(another_went_on(&recording, Cpu(0), ms(100), ms(400)), went_on);
            assert_eq!(silent_at_work(&recording, ms(100), ms(400)), silent);
        }
    }
}
