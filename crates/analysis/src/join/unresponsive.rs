// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unresponsive spans: a program in use stays away from its event loop for long, though no input is
//! late.
//!
//! A button pressed by its key looks pressed at once, and a timer begins its action a moment later;
//! a reply of a peer, an animation or a clock may begin long work as well. The states of the
//! threads that handle inputs show it: such a thread is away from its event loop while it neither
//! waits for an event, nor receives one, nor draws. The user has to miss the program: it has the
//! keyboard focus or received the last key or click, and either an event from its display server
//! stayed unread for long, or the span began soon after a key or click. A program that computes all
//! the time but receives its events, or draws, is responsive; these rules do not apply to one that
//! is starting.

use crate::decode::messages::{Side, Stream};
use crate::join::answer::{Interaction, NOTICED};
use crate::join::focus::FocusHistory;
use crate::join::inputs::Delivery;
use crate::join::milestones::Handling;
use crate::timeline::pauses::Pause;
use crate::timeline::recording::Recording;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use tipme_measure::{InputClass, Summary};
use tipme_record::{Nanos, Pid, Tid};

/// Maximum time from a key or click to work that may come from it, by a timer or an answer: then no
/// unread message is needed.
const PRESSED_WITHIN: Nanos = Nanos::from_secs(1);

/// Maximum number of spans of a program, longest first.
const SPANS_MAX: usize = 32;

/// Time in which a program was away from its event loop.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct UnresponsiveSpan {
    pub client: Pid,
    pub tid: Tid,
    pub start: Nanos,
    /// The mark, if it was still away.
    pub end: Nanos,
    /// Time since which the user missed it.
    pub missed: Nanos,
    /// Receipt of the last key or click before the span.
    pub pressed: Option<Nanos>,
    /// Number of messages that its display servers sent to it meanwhile.
    pub untaken: usize,
    /// Durations of the thread's other absences.
    pub usual: Summary,
}

impl UnresponsiveSpan {
    pub(crate) fn length(&self) -> Nanos {
        self.end.since(self.start)
    }

    /// Returns the part of it that overlaps `lo..hi`.
    pub(crate) fn shared(&self, lo: Nanos, hi: Nanos) -> Nanos {
        self.end.min(hi).since(self.start.max(lo))
    }
}

/// Returns the unresponsive spans of all programs that received input, even if an input reports the
/// same delay.
pub(crate) fn spans(
    recording: &Recording,
    handling: &Handling<'_>,
    deliveries: &[Delivery],
    found: &[Interaction],
) -> Vec<UnresponsiveSpan> {
    let attention = UserAttention::new(recording, deliveries, found);
    let messages = &recording.messages;
    let threads = handling.threads(deliveries).into_iter().filter(|(client, _)| {
        !messages.is_server(*client) && !messages.injectors().contains(client)
    });
    let clients = threads
        .flat_map(|(client, tids)| client_spans(recording, handling, &attention, client, &tids));
    clients.chain(server_spans(recording, handling)).collect()
}

/// Returns the longest spans of display servers that left requests unread for long, apart from
/// those of the client they served.
fn server_spans(recording: &Recording, handling: &Handling<'_>) -> Vec<UnresponsiveSpan> {
    let mut taken: BTreeMap<Tid, Vec<Nanos>> = BTreeMap::new();
    for part in
        recording.messages.streams().iter().flat_map(|stream| stream.side(Side::RequestReceived))
    {
        taken.entry(part.tid).or_default().push(part.ts);
    }
    let mut spans = Vec::new();
    for (tid, mut signs) in taken {
        signs.sort_unstable();
        let thread = AwayThread::new(recording, tid, stretches(recording, handling, &signs, tid));
        let long = thread.times.iter().filter(|(lo, hi)| hi.since(*lo) > NOTICED);
        spans.extend(long.filter_map(|(start, end)| {
            let (missed, untaken) = unread(recording, tid, *start, *end)?;
            let (client, usual) = (recording.tasks.pid(tid, *start), thread.usual(*start));
            Some(UnresponsiveSpan {
                client,
                tid,
                start: *start,
                end: *end,
                missed,
                pressed: None,
                untaken,
                usual,
            })
        }));
    }
    spans.sort_by_key(|span| Reverse(span.length()));
    spans.truncate(SPANS_MAX);
    spans
}

/// Returns the time of the first request that a display server left unread, and the number of all.
/// While the server computes, further requests of the client that it serves do not count.
fn unread(recording: &Recording, server: Tid, lo: Nanos, hi: Nanos) -> Option<(Nanos, usize)> {
    let pid = recording.tasks.pid(server, lo);
    let computes = recording.timeline.run_time(server, lo, hi).0 * 2 >= hi.since(lo).0;
    let served = recording
        .messages
        .last_received(server, lo)
        .map(|(_, place)| place.stream)
        .filter(|_| computes);
    let streams = recording.messages.streams().iter().enumerate();
    let others = streams.filter(|(index, stream)| stream.server == pid && Some(*index) != served);
    let lay = others.flat_map(|(_, stream)| {
        let sent = stream.side(Side::RequestSent);
        let first = sent.partition_point(|part| part.ts < lo);
        let early =
            (first..sent.len()).take_while(move |index| hi.since(sent[*index].ts) >= NOTICED);
        // Another thread of the server may have read it.
        let unread = early.filter(move |index| {
            stream.receipt(Side::RequestSent, *index).is_none_or(|receipt| receipt.ts >= hi)
        });
        unread.map(move |index| sent[index].ts)
    });
    let lay: Vec<Nanos> = lay.collect();
    Some((*lay.iter().min()?, lay.len()))
}

/// Returns the longest spans of one program.
fn client_spans(
    recording: &Recording,
    handling: &Handling<'_>,
    attention: &UserAttention<'_>,
    client: Pid,
    tids: &BTreeSet<Tid>,
) -> Vec<UnresponsiveSpan> {
    let streams = attention.streams(client);
    let mut threads = Vec::new();
    for tid in tids.iter().copied() {
        let signs = signs(recording, streams, tid);
        // A helper thread handles inputs for its program if it draws, or is the first thread.
        let is_first = streams.iter().any(|stream| stream.client.0 == tid.0);
        if !handling.is_helper(tid) || !signs.is_empty() || is_first {
            let times = stretches(recording, handling, &signs, tid);
            threads.push(AwayThread::new(recording, tid, times));
        }
    }
    let all = threads
        .iter()
        .flat_map(|thread| thread.times.iter().map(move |(lo, hi)| (thread, *lo, *hi)));
    let mut long: Vec<_> = all.filter(|(_, lo, hi)| hi.since(*lo) > NOTICED).collect();
    long.sort_by_key(|(_, lo, hi)| Reverse(hi.since(*lo)));
    let spans = long.into_iter().filter_map(|(thread, start, end)| {
        let (missed, pressed, untaken) = attention.missed((client, thread.tid), start, end)?;
        let (tid, usual) = (thread.tid, thread.usual(start));
        Some(UnresponsiveSpan { client, tid, start, end, missed, pressed, untaken, usual })
    });
    spans.take(SPANS_MAX).collect()
}

/// Times in which a thread was away from its event loop.
struct AwayThread {
    tid: Tid,
    times: Vec<(Nanos, Nanos)>,
    /// Those without the thread's usual computation.
    unusual: Vec<(Nanos, Nanos)>,
}

impl AwayThread {
    fn new(recording: &Recording, tid: Tid, times: Vec<(Nanos, Nanos)>) -> AwayThread {
        let unusual =
            times.iter().filter(|(lo, hi)| !recording.is_busy_anyway(tid, *lo, (*lo, *hi)));
        let unusual = unusual.copied().collect();
        AwayThread { tid, times, unusual }
    }

    /// Returns the durations of the thread's other absences, without its usual computation.
    fn usual(&self, start: Nanos) -> Summary {
        let others = self.unusual.iter().filter(|(lo, _)| *lo != start);
        Summary::new(others.map(|(lo, hi)| hi.since(*lo).0).collect())
    }
}

/// Returns the times in which a thread was away from its event loop, from its first event wait on,
/// or since it is known to be restless; split at signs of life.
fn stretches(
    recording: &Recording,
    handling: &Handling<'_>,
    signs: &[Nanos],
    tid: Tid,
) -> Vec<(Nanos, Nanos)> {
    let waits = handling.event_waits(tid);
    let restless =
        signs.iter().copied().find(|sign| recording.is_restless(tid, Pause::EventWait, *sign));
    let (mut stretches, mut away) = (Vec::new(), restless);
    for span in recording.timeline.spans(tid).filter(waits) {
        if let Some(since) = away.replace(span.end) {
            cut((recording, tid), &mut stretches, (since, span.start), signs);
        }
    }
    if let Some(since) = away {
        cut((recording, tid), &mut stretches, (since, recording.mark), signs);
    }
    stretches
}

fn cut(
    (recording, tid): (&Recording, Tid),
    stretches: &mut Vec<(Nanos, Nanos)>,
    (lo, hi): (Nanos, Nanos),
    signs: &[Nanos],
) {
    let first = signs.partition_point(|sign| *sign <= lo);
    let mut at = lo;
    for end in signs[first..].iter().copied().take_while(|sign| *sign < hi).chain([hi]) {
        if end > at {
            stretches.push((recording.stops_from(tid, at, end), end));
        }
        at = end;
    }
}

/// Returns the times at which a thread received display events or drew, in chronological order.
fn signs(recording: &Recording, streams: &[&Stream], tid: Tid) -> Vec<Nanos> {
    let mut signs = Vec::new();
    for stream in streams {
        let took = stream.side(Side::EventReceived).iter().filter(|part| part.tid == tid);
        let sent = stream.side(Side::RequestSent).iter().filter(|part| part.tid == tid);
        let drew = sent.filter(|part| recording.messages.draws(stream, part));
        signs.extend(took.chain(drew).map(|part| part.ts));
    }
    signs.sort_unstable();
    signs
}

/// Attention of the user to programs over time.
struct UserAttention<'a> {
    recording: &'a Recording,
    focus: FocusHistory,
    /// Send times of keys and clicks, with the receiving client.
    pressed: Vec<(Nanos, Pid)>,
    /// Receipts of keys and clicks; sends of any input; sends of any event.
    taken: BTreeMap<Pid, Vec<Nanos>>,
    given: BTreeMap<Pid, Vec<Nanos>>,
    events: BTreeMap<Pid, Vec<Nanos>>,
    streams: BTreeMap<Pid, Vec<&'a Stream>>,
}

impl<'a> UserAttention<'a> {
    fn new(
        recording: &'a Recording,
        deliveries: &[Delivery],
        found: &[Interaction],
    ) -> UserAttention<'a> {
        let presses = deliveries.iter().filter(|delivery| delivery.class != InputClass::Motion);
        let mut taken: BTreeMap<Pid, Vec<Nanos>> = BTreeMap::new();
        for delivery in presses.clone() {
            taken.entry(delivery.client).or_default().extend(delivery.dequeued.map(|(at, _)| at));
        }
        let mut given: BTreeMap<Pid, Vec<Nanos>> = BTreeMap::new();
        for delivery in deliveries {
            given.entry(delivery.client).or_default().push(delivery.sent);
        }
        let mut events: BTreeMap<Pid, Vec<Nanos>> = BTreeMap::new();
        let mut streams: BTreeMap<Pid, Vec<&Stream>> = BTreeMap::new();
        for stream in recording.messages.streams() {
            streams.entry(stream.client).or_default().push(stream);
            events
                .entry(stream.client)
                .or_default()
                .extend(stream.side(Side::EventSent).iter().map(|part| part.ts));
        }
        for lists in [&mut taken, &mut given, &mut events] {
            lists.values_mut().for_each(|list| list.sort_unstable());
        }
        let mut pressed: Vec<_> =
            presses.map(|delivery| (delivery.sent, delivery.client)).collect();
        pressed.sort_unstable();
        let focus = FocusHistory::new(recording, found);
        UserAttention { recording, focus, pressed, taken, given, events, streams }
    }

    fn streams(&self, client: Pid) -> &[&'a Stream] {
        self.streams.get(&client).map_or(&[], Vec::as_slice)
    }

    /// Returns the time since which the user missed a program in `lo..hi`, if at all, the receipt
    /// of the last key or click before, and the number of unread messages.
    ///
    /// A program may be away because of an earlier request. Otherwise it is missed from the first
    /// unread input on.
    fn missed(
        &self,
        (client, tid): (Pid, Tid),
        lo: Nanos,
        hi: Nanos,
    ) -> Option<(Nanos, Option<Nanos>, usize)> {
        let pressed = before(&self.taken, client, lo.after(Nanos(1))).last().copied();
        if !self.has_attention(client, lo) || pressed.is_none() && self.starts(client, lo) {
            return None;
        }
        let untaken = between(&self.events, client, lo, hi);
        let lay = untaken.first().is_some_and(|at| hi.since(*at) >= NOTICED);
        let soon = pressed.is_some_and(|at| lo.since(at) <= PRESSED_WITHIN);
        let soon = soon && !self.recording.is_busy_anyway(tid, lo, (lo, hi));
        let given = between(&self.given, client, lo, hi).first();
        let given = given.filter(|at| !soon && hi.since(**at) >= NOTICED);
        (lay || soon).then_some((given.copied().unwrap_or(lo), pressed, untaken.len()))
    }

    /// Returns `true` if a client has the keyboard focus, or received the last key or click.
    fn has_attention(&self, client: Pid, at: Nanos) -> bool {
        let last = self.pressed[..self.pressed.partition_point(|(sent, _)| *sent <= at)].last();
        last.is_some_and(|(_, pid)| *pid == client) || self.focus.at(at) == Some(Some(client))
    }

    /// Returns `true` if a program is younger than the records.
    fn starts(&self, client: Pid, at: Nanos) -> bool {
        let life = self.recording.tasks.process(client, at);
        life.is_none_or(|life| life.from >= self.recording.complete_from())
    }
}

/// Returns the times of a client before `at`.
fn before(times: &BTreeMap<Pid, Vec<Nanos>>, client: Pid, at: Nanos) -> &[Nanos] {
    let all = times.get(&client).map_or(&[][..], Vec::as_slice);
    &all[..all.partition_point(|time| *time < at)]
}

/// Returns the times of a client in `lo..hi`.
fn between(times: &BTreeMap<Pid, Vec<Nanos>>, client: Pid, lo: Nanos, hi: Nanos) -> &[Nanos] {
    &before(times, client, hi)[before(times, client, lo).len()..]
}
