// SPDX-License-Identifier: MIT OR Apache-2.0
//! When some threads had a CPU, and when one of them was ready and had to wait for one.

use crate::timeline::recording::Recording;
use crate::timeline::threads::ThreadState;
use std::collections::BTreeSet;
use tipme_record::{Cpu, Nanos, Tid};

/// From one time to another, by thread: times may overlap.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ThreadTimes {
    /// With the thread's name then.
    pub running: Vec<(String, Nanos, Nanos)>,
    /// With the CPU in whose run queue it was.
    pub ready: Vec<(Cpu, Nanos, Nanos)>,
}

/// The times of some threads, as recorded.
pub fn thread_times(recording: &Recording, threads: &BTreeSet<Tid>) -> ThreadTimes {
    let mut times = ThreadTimes::default();
    for span in threads.iter().flat_map(|tid| recording.timeline.spans(*tid)) {
        match span.segment.state {
            ThreadState::Running => {
                times.running.push((recording.tasks.thread_comm(span.tid, span.start), span.start, span.end));
            }
            ThreadState::Runnable => times.ready.push((Cpu(u32::from(span.segment.place)), span.start, span.end)),
            ThreadState::Blocked | ThreadState::Absent => {}
        }
    }
    times
}
