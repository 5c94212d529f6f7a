// SPDX-License-Identifier: MIT OR Apache-2.0
//! Matching of sends with receives in one direction of a connection.
//!
//! Bytes are first in, first out, so the receive that reaches the last byte of a send has received
//! it. Two things disturb the count. A sender may be preempted between its send and the record of
//! it: then the receive is recorded first and is short of sends. Records may also be lost: then one
//! end is ahead for good. Both errors correct themselves, because a receive that does not fill its
//! buffer empties the queue.

use crate::decode::parts::Part;
use std::collections::VecDeque;
use tipme_record::{Nanos, Tid};

/// The receive of each send, and for each receive the last send received by then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MatchedParts {
    pub received_by: Vec<Option<u32>>,
    pub last_sent: Vec<Option<u32>>,
}

/// Unit of receive buffers: a receive of a multiple of this size may have left bytes behind.
const BUFFER: u64 = 1_024;

/// Smallest buffer size; a receive of fewer bytes did not fill its buffer.
const BUFFER_MIN: u64 = 4_096;

/// Time before a receive within which a recorded send may have been too late for it.
const SEND_SLACK: Nanos = Nanos(3_000);

/// Time within which a reader that did not empty the queue receives again.
const AGAIN: Nanos = Nanos::from_millis(2);

/// Bytes of a receive without a recorded send.
struct Short {
    receive: usize,
    bytes: u64,
}

struct Matcher<'a> {
    sent: &'a [Part],
    received: &'a [Part],
    matched: MatchedParts,
    /// Sends not yet received in full, with the number of bytes left.
    pending: VecDeque<(usize, u64)>,
    short: Option<Short>,
    last: Option<u32>,
}

/// Matches the parts of both ends, each in chronological order. `busy` returns `true` if a thread
/// neither blocked nor exited between two times.
pub(crate) fn match_parts(
    sent: &[Part],
    received: &[Part],
    busy: impl Fn(Tid, Nanos, Nanos) -> bool,
) -> MatchedParts {
    let matched = MatchedParts {
        received_by: vec![None; sent.len()],
        last_sent: Vec::with_capacity(received.len()),
    };
    let mut matcher =
        Matcher { sent, received, matched, pending: VecDeque::new(), short: None, last: None };
    let mut next = 0;
    for (receive, part) in received.iter().enumerate() {
        while sent.get(next).is_some_and(|send| send.ts <= part.ts) {
            matcher.send(next, &busy);
            next += 1;
        }
        matcher.receive(receive);
    }
    (next..sent.len()).for_each(|send| matcher.send(send, &busy));
    matcher.matched
}

impl Matcher<'_> {
    fn send(&mut self, send: usize, busy: &impl Fn(Tid, Nanos, Nanos) -> bool) {
        let part = &self.sent[send];
        let late = self.short.as_mut().filter(|short| {
            short.bytes >= part.bytes && busy(part.tid, self.received[short.receive].ts, part.ts)
        });
        match late {
            Some(short) => {
                short.bytes -= part.bytes;
                let receive = short.receive;
                self.assign(send, receive);
                self.matched.last_sent[receive] = self.last;
            }
            None => self.pending.push_back((send, part.bytes)),
        }
    }

    fn receive(&mut self, receive: usize) {
        let mut bytes = self.received[receive].bytes;
        while let Some((send, left)) = self.pending.front_mut() {
            let part = bytes.min(*left);
            (bytes, *left) = (bytes - part, *left - part);
            if *left > 0 {
                break;
            }
            let send = *send;
            self.assign(send, receive);
            self.pending.pop_front();
        }
        if bytes > 0 {
            self.short = Some(Short { receive, bytes });
        } else if self.empties(receive) {
            self.drain(receive);
        }
        self.matched.last_sent.push(self.last);
    }

    /// Assigns older pending sends to a receive that emptied the queue: it received them, or an
    /// unrecorded one did.
    fn drain(&mut self, receive: usize) {
        let before = self.received[receive].ts.before(SEND_SLACK);
        while let Some((send, _)) =
            self.pending.front().copied().filter(|(send, _)| self.sent[*send].ts < before)
        {
            self.assign(send, receive);
            self.pending.pop_front();
        }
    }

    fn empties(&self, receive: usize) -> bool {
        let part = &self.received[receive];
        let again =
            self.received.get(receive + 1).is_some_and(|next| next.ts.since(part.ts) < AGAIN);
        part.bytes < BUFFER_MIN && !part.bytes.is_multiple_of(BUFFER) && !again
    }

    fn assign(&mut self, send: usize, receive: usize) {
        self.matched.received_by[send] = Some(receive as u32);
        self.last = self.last.max(Some(send as u32));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(list: &[(u64, u64)]) -> Vec<Part> {
        let parts = list.iter().map(|(ms, bytes)| Part {
            ts: Nanos::from_millis(*ms),
            bytes: *bytes,
            ..Part::default()
        });
        parts.collect()
    }

    fn received_by(sent: &[(u64, u64)], received: &[(u64, u64)], busy: bool) -> Vec<Option<u32>> {
        match_parts(&parts(sent), &parts(received), |_, _, _| busy).received_by
    }

    #[test]
    fn a_send_is_taken_by_the_receive_that_reaches_its_end() {
        assert_eq!(
            received_by(&[(1, 32), (2, 64)], &[(3, 64), (4, 32)], false),
            [Some(0), Some(1)]
        );
        assert_eq!(received_by(&[(1, 32), (2, 32)], &[(9, 64)], false), [Some(0), Some(0)]);
    }

    #[test]
    fn bytes_from_before_the_recording_are_left_out() {
        assert_eq!(received_by(&[(500, 32)], &[(1, 64), (501, 32)], false), [Some(1)]);
    }

    #[test]
    fn a_sender_that_lost_its_cpu_is_recorded_late() {
        assert_eq!(
            received_by(&[(21, 32), (500, 32)], &[(1, 32), (501, 32)], true),
            [Some(0), Some(1)]
        );
    }

    #[test]
    fn lost_receives_heal_at_the_next_one() {
        let sent = [(1, 60), (100, 60), (200, 60), (300, 60)];
        assert_eq!(
            received_by(&sent, &[(201, 60), (301, 60)], false),
            [Some(0), Some(0), Some(0), Some(1)]
        );
    }

    #[test]
    fn a_full_buffer_leaves_the_rest_for_the_next_receive() {
        assert_eq!(
            received_by(&[(1, 4_096), (2, 100)], &[(9, 4_096), (90, 100)], false),
            [Some(0), Some(1)]
        );
    }

    #[test]
    fn receives_know_the_last_send_they_took() {
        let matched =
            match_parts(&parts(&[(1, 32), (2, 32)]), &parts(&[(3, 32), (4, 32)]), |_, _, _| false);
        assert_eq!(matched.last_sent, [Some(0), Some(1)]);
    }
}
