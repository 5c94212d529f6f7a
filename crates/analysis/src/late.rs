// SPDX-License-Identifier: MIT OR Apache-2.0
//! Answers that come late: of inputs that piled up behind one another, and of pages that are drawn
//! long after their first echo.

use crate::bursts::Pause;
use crate::cause::Hop;
use crate::interactions::{Interaction, Join, drawing, since};
use crate::messages::Place;
use crate::recording::Recording;
use crate::waits::Waited;
use tipme_measure::{Class, Profile};
use tipme_record::{Nanos, Pid, Tid};

/// Between two threads that pass work on nobody may be busy for this long.
const GAP: Nanos = Nanos::from_millis(5);

/// Steps of one look from thread to thread at most.
const STEPS_MAX: usize = 256;

/// The threads that answer a client's input: its own, those of its descendants that wait for events
/// (a shell, an editor; not a program that merely computes), and the server's.
pub struct Family(Vec<Tid>);

impl Family {
    pub fn of(recording: &Recording, client: Pid, server: Tid) -> Family {
        let lives = recording.tasks.lives().iter().filter(|life| !life.is_kernel());
        let related = lives.filter(|life| recording.tasks.descends(life.pid, client, life.until.min(recording.mark)));
        let answering = related.filter(|life| waits_for_events(recording, life.tid)).map(|life| life.tid);
        let mut tids: Vec<Tid> = answering.chain([server]).collect();
        tids.sort_unstable();
        tids.dedup();
        Family(tids)
    }

    /// Whether some thread of the family was busy at every time from `lo` to `hi`, short gaps aside.
    pub fn busy_throughout(&self, recording: &Recording, lo: Nanos, hi: Nanos) -> bool {
        let mut at = lo;
        for _ in 0..STEPS_MAX {
            if at.after(GAP) >= hi {
                return true;
            }
            let Some(until) = self.busy_until(recording, at).or_else(|| self.busy_until(recording, at.after(GAP)))
            else {
                return false;
            };
            at = until.max(at.after(Nanos(1)));
        }
        false
    }

    /// Until when the thread that is busy longest from `at` on stays so; `None` where all are idle.
    fn busy_until(&self, recording: &Recording, at: Nanos) -> Option<Nanos> {
        let busy = self.0.iter().filter(|tid| !recording.is_paused_at(**tid, at.after(Nanos(1)), Pause::Rest));
        busy.map(|tid| recording.pause_after(*tid, at, Pause::Rest)).max()
    }
}

fn waits_for_events(recording: &Recording, tid: Tid) -> bool {
    recording.waits.of(tid).iter().any(|wait| recording.waits.kind_of(wait) == Waited::Events)
}

/// The page that an input had drawn anew, as an interaction of its own: where the last drawing came
/// long after the first, and no program was started meanwhile (its output is a new matter). The caller
/// sees to it that no other input came between: what is drawn after that one may be due to it.
pub fn page(recording: &Recording, first: &Interaction, last: Place, hops: &[Hop]) -> Option<Interaction> {
    let threshold = Nanos(Class::Window.limits(Profile::Default).threshold);
    let last = drawing(recording, last)?;
    let (input, client) = (first.told.input, first.told.client);
    let long = first.join == Join::Exact && last.end.since(first.end) > threshold;
    if !long || starts_program(recording, client, input, last.end) {
        return None;
    }
    let mut told = first.told;
    told.class = Class::Window;
    let hops = first.told.taken.map_or_else(Vec::new, |(at, _)| since(hops, at));
    let (end, censored) = (last.end, last.end >= recording.mark);
    Some(Interaction { told, join: Join::Exact, drawing: Some(last), hops, end, settled: None, censored })
}

fn starts_program(recording: &Recording, client: Pid, lo: Nanos, hi: Nanos) -> bool {
    let born =
        recording.tasks.lives().iter().filter(|life| life.from > lo && life.from < hi && life.tid.0 == life.pid.0);
    born.into_iter().any(|life| recording.tasks.descends(life.pid, client, hi))
}
