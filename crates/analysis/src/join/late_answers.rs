// SPDX-License-Identifier: MIT OR Apache-2.0
//! Answers that come late: of inputs that piled up behind one another.

use crate::timeline::pauses::Pause;
use crate::timeline::recording::Recording;
use crate::timeline::restless::GAP;
use crate::timeline::waits::Waited;
use tipme_record::{Nanos, Pid, Tid};

/// Steps of one look from thread to thread at most.
const STEPS_MAX: usize = 256;

/// The threads that answer a client's input: its own, those of its descendants that wait for events
/// (a shell, an editor; not a program that merely computes), and the server's.
pub(crate) struct AnsweringThreads(Vec<Tid>);

impl AnsweringThreads {
    pub(crate) fn of(recording: &Recording, client: Pid, server: Tid) -> AnsweringThreads {
        let related = recording.descendants().threads(client).iter();
        let answering = related.copied().filter(|tid| waits_for_events(recording, *tid));
        let mut tids: Vec<Tid> = answering.chain([server]).collect();
        tids.sort_unstable();
        tids.dedup();
        AnsweringThreads(tids)
    }

    /// Whether some thread of the family was busy at every time from `lo` to `hi`, short gaps aside. Who always is tells
    /// nothing.
    pub(crate) fn busy_throughout(&self, recording: &Recording, lo: Nanos, hi: Nanos) -> bool {
        let tids: Vec<Tid> =
            self.0.iter().copied().filter(|tid| !recording.is_restless(*tid, Pause::Rest, lo)).collect();
        let mut at = lo;
        for _ in 0..STEPS_MAX {
            if at.after(GAP) >= hi {
                return true;
            }
            let Some(until) = busy_until(recording, &tids, at).or_else(|| busy_until(recording, &tids, at.after(GAP)))
            else {
                return false;
            };
            at = until.max(at.after(Nanos(1)));
        }
        false
    }
}

/// Until when that of some threads which is busy longest from `at` on stays so; `None` where all are idle.
fn busy_until(recording: &Recording, tids: &[Tid], at: Nanos) -> Option<Nanos> {
    let busy = tids.iter().filter(|tid| !recording.is_paused_at(**tid, at.after(Nanos(1)), Pause::Rest));
    busy.map(|tid| recording.pause_after(*tid, at, Pause::Rest)).max()
}

fn waits_for_events(recording: &Recording, tid: Tid) -> bool {
    recording.waits.of(tid).iter().any(|wait| recording.waits.kind_of(wait) == Waited::Events)
}
