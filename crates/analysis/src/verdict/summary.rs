// SPDX-License-Identifier: MIT OR Apache-2.0
//! Activity of a requested process in the whole recording.

use crate::explain::describe::{process_text, span_text, wait_text};
use crate::timeline::recording::Recording;
use crate::timeline::threads::{Span, ThreadState};
use std::collections::{BTreeMap, BTreeSet};
use tipme_record::{Nanos, Pid, Tid};

/// Maximum number of activities listed, the longest first.
const SHOWN: usize = 3;

/// Maximum number of threads checked per process.
const THREADS_MAX: usize = 1_024;

/// Describes the thread that ran most: `nasfs (pid 7) waited for events for 9.10 s, ran for 12 ms.`
pub(crate) fn text(recording: &Recording, pid: Pid) -> Option<String> {
    let (lo, hi) = (recording.complete_from(), recording.mark);
    let lives = recording.tasks.lives().iter().filter(|life| life.pid == pid && life.until > lo);
    let tids: BTreeSet<Tid> = lives.map(|life| life.tid).take(THREADS_MAX).collect();
    let all = tids.into_iter().map(|tid| activities(recording, tid, (lo, hi)));
    let mut of_thread: Vec<(String, u64)> =
        all.max_by_key(|all| all.get(RAN).copied())?.into_iter().collect();
    of_thread.sort_by_key(|(_, nanos)| std::cmp::Reverse(*nanos));
    let parts: Vec<String> = of_thread
        .iter()
        .take(SHOWN)
        .map(|(what, nanos)| format!("{what} for {}", span_text(Nanos(*nanos))))
        .collect();
    let window = span_text(hi.since(lo));
    (!parts.is_empty()).then(|| {
        format!(
            "In the {window} before the mark, {} {}.",
            process_text(recording, pid, hi),
            parts.join(", ")
        )
    })
}

const RAN: &str = "ran";

fn activities(recording: &Recording, tid: Tid, (lo, hi): (Nanos, Nanos)) -> BTreeMap<String, u64> {
    let mut all: BTreeMap<String, u64> = BTreeMap::new();
    let spans = recording
        .timeline
        .spans(tid)
        .skip_while(|span| span.end <= lo)
        .take_while(|span| span.start < hi);
    for span in spans {
        if let Some(what) = activity(recording, &span) {
            let nanos = span.end.min(hi).since(span.start.max(lo)).0;
            let total = all.entry(what).or_default();
            *total = total.saturating_add(nanos);
        }
    }
    all
}

fn activity(recording: &Recording, span: &Span) -> Option<String> {
    match span.segment.state {
        ThreadState::Running => Some(RAN.to_owned()),
        ThreadState::Runnable => Some("was runnable".to_owned()),
        ThreadState::Blocked if recording.waits.is_idle(span) => {
            Some("waited for events".to_owned())
        }
        ThreadState::Blocked => {
            Some(wait_text(recording.waits.kind(span), recording.waits.find(span)))
        }
        ThreadState::Absent => None,
    }
}
