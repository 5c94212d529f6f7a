// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets that may bring the answer to a request made in the work on an input.
//!
//! A packet alone proves nothing: any host may send one at any time. It counts if the thread polls
//! an address since that work that it did not poll before, or if the sender is a process that a
//! packet of the thread reached in that work. For threads that receive no input, the order in time
//! alone is sufficient, if no unrequested packets arrived before. Without a packet, a timeout of
//! the wait for one counts.

use crate::join::drawing_cause::Hop;
use crate::timeline::event_waits::waited_before;
use crate::timeline::recording::Recording;
use crate::timeline::threads::Span;
use crate::timeline::waits::HARD_INTERRUPT;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use tipme_record::records::Wait;
use tipme_record::{Nanos, Tid};

/// Maximum number of packets to one thread considered after one stretch of its work.
const PACKETS_MAX: usize = 8;

/// Time before an input within which another packet shows that packets arrive anyway.
const COMES_ANYWAY: Nanos = Nanos::from_secs(3);

/// Maximum number of packets in that time, and of previous answers to the thread, that are
/// considered.
const BEFORE_MAX: usize = 64;

/// Maximum time from the start of an answer to its rest.
const REST_OF_ANSWER: Nanos = Nanos::from_secs(1);

/// Maximum number of segments after a stretch of work searched for the next recorded wait.
const SEGMENTS_MAX: usize = 64;

/// Thread that may have made a request in the work on an input.
#[derive(Clone, Copy)]
pub(crate) struct Asker {
    pub tid: Tid,
    /// Time at which the work first reached it, and the end of this stretch of the work.
    pub reached: Nanos,
    pub done: Nanos,
    /// Time until which an answer counts.
    pub until: Nanos,
    /// It belongs to the program and receives no display input.
    pub works_for_program: bool,
}

/// Packet that may be an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NetworkAnswer {
    pub at: Nanos,
    /// Inode of the connection; 0 if unknown.
    pub file: u64,
    /// There is more evidence than the order in time.
    pub sure: bool,
}

/// Time by which a browser may connect before the request: when the pointer reaches a link.
const CONNECTS_WITHIN: Nanos = Nanos::from_millis(500);

/// Minimum number of pictures that a thread drew within this time after a packet, to count as one
/// that passes on what comes over the network.
const FORWARDED_MIN: usize = 3;
const FORWARDED_MAX: Nanos = Nanos::from_millis(5);
const FORWARDED_WITHIN: Nanos = Nanos::from_secs(10);

/// Packets that answered inputs so far.
pub(crate) struct NetworkAnswers<'a> {
    recording: &'a Recording,
    /// Times for which each thread waited for them.
    awaited: RefCell<HashMap<Tid, Vec<(Nanos, Nanos)>>>,
}

impl<'a> NetworkAnswers<'a> {
    pub(crate) fn new(recording: &'a Recording) -> NetworkAnswers<'a> {
        NetworkAnswers { recording, awaited: RefCell::default() }
    }

    /// Returns `true` if a thread drew its last pictures right after packets, as a connection to a
    /// program on another machine does.
    pub(crate) fn draws_for_packets(&self, tid: Tid, before: Nanos) -> bool {
        let drawn = self.recording.drawings().within(tid, before.before(FORWARDED_WITHIN), before);
        let mut last = drawn.iter().rev().take(FORWARDED_MIN);
        drawn.len() >= FORWARDED_MIN
            && last.all(|(sent, _)| {
                let from = sent.before(FORWARDED_MAX);
                self.recording.waits_for_packets(tid, from, *sent).next().is_some()
            })
    }

    /// Returns the packets that may bring a thread its answer. Earlier packets that an input
    /// requested do not show that others arrive anyway.
    pub(crate) fn answers_to(
        &self,
        asker: &Asker,
        asked: impl Fn(Nanos) -> bool,
    ) -> Vec<NetworkAnswer> {
        let packets = self.recording.waits_for_packets(asker.tid, asker.done, asker.until);
        let mut packets = packets.take(PACKETS_MAX).peekable();
        let new = self.new_files(asker);
        if packets.peek().is_none() {
            return self.given_up(asker, &new).into_iter().collect();
        }
        let anyway = self.comes_anyway(asker, asked);
        packets.filter_map(|span| self.answer(asker, &span, &new, anyway)).collect()
    }

    /// Returns the timeout of the wait for an answer over a new connection, if that is the thread's
    /// next wait: it gives up, which answers the input as well.
    fn given_up(&self, asker: &Asker, new: &BTreeSet<u64>) -> Option<NetworkAnswer> {
        let wait = self
            .waits_next(asker)
            .filter(|wait| wait.context == HARD_INTERRUPT && wait.head.ts < asker.until)?;
        let file = self
            .recording
            .remote_files(wait)
            .map(|file| file.inode)
            .find(|file| new.contains(file))?;
        Some(NetworkAnswer { at: wait.head.ts, file, sure: true })
    }

    /// Remembers the network waits on the path to an answer.
    pub(crate) fn keep(&self, way: &[Hop]) {
        for hop in way.iter().filter(|hop| hop.awaits.is_some()) {
            self.awaited
                .borrow_mut()
                .entry(hop.tid)
                .or_default()
                .push((hop.lo, hop.hi.after(REST_OF_ANSWER)));
        }
    }

    fn answer(
        &self,
        asker: &Asker,
        span: &Span,
        new: &BTreeSet<u64>,
        anyway: bool,
    ) -> Option<NetworkAnswer> {
        let wait = self.recording.waits.find(span)?;
        let files: Vec<u64> = self.recording.remote_files(wait).map(|file| file.inode).collect();
        if let Some(file) = files.iter().find(|file| new.contains(file)) {
            return Some(NetworkAnswer { at: span.end, file: *file, sure: true });
        }
        let sure = self.is_asked_sender(asker, span);
        let file = if let [file] = files[..] { file } else { 0 };
        (asker.works_for_program && (sure || !anyway)).then_some(NetworkAnswer {
            at: span.end,
            file,
            sure,
        })
    }

    /// Returns the connections that a thread polls first after its work, and did not poll before.
    fn new_files(&self, asker: &Asker) -> BTreeSet<u64> {
        let before = waited_before(self.recording, asker.tid, asker.reached);
        let (Some(before), Some(after)) = (before, self.waits_next(asker)) else {
            return BTreeSet::new();
        };
        let known = self.recording.polls.files(before);
        let files = self.recording.remote_files(after).map(|file| file.inode);
        let new = files
            .filter(|inode| !known.is_empty() && !known.iter().any(|file| file.inode == *inode));
        new.collect()
    }

    /// Returns the first recorded wait of a thread after its work.
    fn waits_next(&self, asker: &Asker) -> Option<&Wait> {
        let first = self.recording.timeline.at(asker.tid, asker.done)?.index;
        let spans = self.recording.timeline.spans_from(asker.tid, first).take(SEGMENTS_MAX);
        let mut waits = spans.filter(|span| span.is_blocked() && span.start >= asker.done);
        waits.find_map(|span| self.recording.waits.find(&span))
    }

    /// Returns `true` if a local process sent a packet after one of the thread had reached it. The
    /// sending thread may have been reached in the context of any thread: on a busy machine,
    /// packets arrive in the context of others.
    fn is_asked_sender(&self, asker: &Asker, span: &Span) -> bool {
        let Some(by) = self.recording.sender(span) else { return false };
        let pid = self.recording.tasks.pid(by, span.end);
        let since = asker.reached.before(CONNECTS_WITHIN);
        self.recording.packet_reached(pid, asker.tid, since, span.end)
            || self.recording.waits_for_packets(by, since, span.end).next().is_some()
    }

    /// Returns `true` if packets reached a thread shortly before the work, without being answers or
    /// requested.
    fn comes_anyway(&self, asker: &Asker, asked: impl Fn(Nanos) -> bool) -> bool {
        let awaited = self.awaited.borrow();
        let answers = awaited.get(&asker.tid).map_or(&[][..], Vec::as_slice);
        let answers = &answers[answers.len().saturating_sub(BEFORE_MAX)..];
        let from = asker.reached.before(COMES_ANYWAY);
        let before = self.recording.waits_for_packets(asker.tid, from, asker.reached);
        before
            .take(BEFORE_MAX)
            .map(|span| span.end)
            .any(|at| !answers.iter().any(|(lo, hi)| (*lo..=*hi).contains(&at)) && !asked(at))
    }
}
