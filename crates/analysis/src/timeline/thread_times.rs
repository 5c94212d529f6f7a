// SPDX-License-Identifier: MIT OR Apache-2.0
//! Running and run-queue times of a set of threads.

use crate::timeline::recording::Recording;
use crate::timeline::threads::ThreadState;
use std::collections::BTreeSet;
use tipme_record::{Cpu, Nanos, Tid};

/// Times by thread; they may overlap.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ThreadTimes {
    /// Running, with the name of the thread at that time.
    pub running: Vec<(String, Nanos, Nanos)>,
    /// Runnable, with the CPU of the run queue.
    pub ready: Vec<(Cpu, Nanos, Nanos)>,
}

/// Returns the recorded times of some threads.
pub fn thread_times(recording: &Recording, threads: &BTreeSet<Tid>) -> ThreadTimes {
    let mut times = ThreadTimes::default();
    for span in threads.iter().flat_map(|tid| recording.timeline.spans(*tid)) {
        match span.segment.state {
            ThreadState::Running => {
                times.running.push((
                    recording.tasks.thread_comm(span.tid, span.start),
                    span.start,
                    span.end,
                ));
            }
            ThreadState::Runnable => {
                times.ready.push((Cpu(u32::from(span.segment.place)), span.start, span.end))
            }
            ThreadState::Blocked | ThreadState::Absent => {}
        }
    }
    times
}
