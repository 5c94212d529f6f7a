// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stretches in which no CPU of the machine recorded anything: then it is the machine itself that stood still.

use crate::timeline::recording::Recording;
use tipme_record::{Cpu, Nanos};

/// Whether nothing was recorded on any CPU between `lo` and `hi`: no switch, no interrupt, no sample. One CPU at least
/// has to be at work, since all that is idle records nothing.
pub(crate) fn is_silent(recording: &Recording, lo: Nanos, hi: Nanos) -> bool {
    let cpus = recording.meta.machine.cpus;
    let mut busy = false;
    for cpu in (0..cpus).map(Cpu) {
        let ran = recording.timeline.ran(cpu, lo, hi);
        if ran.len() > 1 || recording.interrupts.within(cpu, lo, hi).any(|one| one.start > lo || one.end < hi) {
            return false;
        }
        busy |= ran.iter().any(|(tid, ..)| tid.is_some_and(|tid| tid.0 != 0));
    }
    busy && !recording.samples.iter().any(|sample| sample.head.ts > lo && sample.head.ts < hi)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::events::{SchedChange, SchedEvent};
    use crate::timeline::interrupts::Interrupts;
    use crate::timeline::threads::Timeline;
    use tipme_record::records::Irq;
    use tipme_record::{Head, Tid};

    fn switch(ts: u64, cpu: u16, next: u32) -> SchedEvent {
        let (tid, other) = (Tid(90 + u32::from(cpu)), Tid(next));
        SchedEvent { ts: Nanos(ts), tid, other, cpu, argument: 1, change: SchedChange::Switch, context: 0, prio: 0 }
    }

    fn recording(events: &[SchedEvent], irqs: &[(Cpu, Irq)]) -> Recording {
        let mut recording = Recording { mark: Nanos(1_000), ..Recording::default() };
        recording.meta.machine.cpus = 2;
        recording.timeline = Timeline::new(events.iter().copied(), &[], Nanos(1_000));
        recording.interrupts = Interrupts::new(irqs);
        recording
    }

    #[test]
    fn a_machine_stands_still_where_no_cpu_recorded_anything() {
        let begun = [switch(10, 0, 7), switch(20, 1, 0)];
        assert!(is_silent(&recording(&begun, &[]), Nanos(100), Nanos(400)));
        let later = [begun[0], begun[1], switch(300, 1, 8)];
        assert!(!is_silent(&recording(&later, &[]), Nanos(100), Nanos(400)), "the other CPU went on");
        let head = Head { ts: Nanos(250), tid: Tid(7), size: 32, kind: 20, generation: 0 };
        let irq = (Cpu(1), Irq { head, nanos: Nanos(20), number: 24, soft: 0 });
        assert!(!is_silent(&recording(&begun, &[irq]), Nanos(100), Nanos(400)), "an interrupt came");
        let idle = [switch(10, 0, 0), switch(20, 1, 0)];
        assert!(!is_silent(&recording(&idle, &[]), Nanos(100), Nanos(400)), "an idle machine records nothing");
    }
}
