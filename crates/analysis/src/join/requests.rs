// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work of another process on a request: from the wait that the request ended to the next wait of
//! the same kind.
//!
//! In between, the process may itself wait for a server, a disk or a stopped machine. It is done
//! once it waits for the next request in the same way.

use crate::timeline::packets::in_softirq;
use crate::timeline::recording::Recording;
use crate::timeline::threads::{Span, ThreadState};
use crate::timeline::waits::{Waited, is_terminal_file};
use tipme_record::{Nanos, Tid};

/// Maximum time for which work on a request is followed.
const ASKED_MAX: Nanos = Nanos::from_secs(10);

/// Maximum number of segments that are searched for its end.
const SEGMENTS_MAX: usize = 4_096;

/// Maximum time until the rest of a conversation.
const REST_WITHIN: Nanos = Nanos::from_millis(100);

/// Minimum length of a wait without a record to count as one for the next request.
const UNKNOWN_MIN: Nanos = Nanos::from_millis(30);

/// Returns `true` if an event at `at` found a thread waiting for a socket, a pipe or several files.
/// If `only_packets`, only a packet counts.
pub(crate) fn found_by_request(
    recording: &Recording,
    tid: Tid,
    at: Nanos,
    only_packets: bool,
) -> bool {
    let span = recording
        .timeline
        .before(tid, at)
        .filter(|span| span.end == at && (!only_packets || in_softirq(span)));
    let wait = span.and_then(|span| recording.waits.find(&span));
    wait.is_some_and(|wait| {
        let asked = matches!(
            recording.waits.kind_of(wait),
            Waited::Events | Waited::Peer | Waited::Network
        );
        asked && !is_terminal_file(wait.mode, wait.magic) && !recording.waits_for_terminal(wait)
    })
}

/// Returns the time at which a packet ended the wait that begins at `at`, if it came soon enough to
/// be the rest of the same message. Packets arrive in the context of any thread.
pub(crate) fn heard_again(recording: &Recording, tid: Tid, at: Nanos) -> Option<Nanos> {
    let span =
        recording.timeline.at(tid, at).filter(|span| span.start == at && in_softirq(span))?;
    let soon = span.length() <= REST_WITHIN && recording.waits.kind(&span) == Waited::Network;
    soon.then_some(span.end)
}

/// Returns the time until which a thread works on a request received at `at`: its next wait of the
/// kind that the request ended.
pub(crate) fn works_on_request_until(recording: &Recording, tid: Tid, at: Nanos) -> Nanos {
    let until = at.after(ASKED_MAX).min(recording.mark);
    let Some(first) = recording.timeline.at(tid, at) else { return at };
    let found = recording.timeline.before(tid, at).filter(|span| span.end == at);
    let spans = recording.timeline.spans_from(tid, first.index);
    let mut spans = spans.take_while(|span| span.start < until).take(SEGMENTS_MAX);
    let next = spans.find(|span| match span.segment.state {
        ThreadState::Absent => true,
        ThreadState::Blocked => {
            span.start >= at && found.is_none_or(|found| is_same(recording, &found, span))
        }
        ThreadState::Running | ThreadState::Runnable => false,
    });
    // Beyond the limit, the work counts as far as it was followed.
    let end = next.map_or_else(
        || match recording.timeline.span(tid, first.index + SEGMENTS_MAX) {
            Some(beyond) => beyond.start.min(until),
            None => until,
        },
        |span| span.start,
    );
    end.max(at)
}

/// Returns `true` if a thread waits for the next request as it did before.
fn is_same(recording: &Recording, found: &Span, span: &Span) -> bool {
    let (Some(before), Some(now)) = (recording.waits.find(found), recording.waits.find(span))
    else {
        return recording.waits.kind(span) == Waited::Unknown && span.length() >= UNKNOWN_MIN;
    };
    let conditions =
        recording.waits.is_for_condition(found) && recording.waits.is_for_condition(span);
    conditions
        || recording.signature(before) == recording.signature(now) && before.inode == now.inode
}
