// SPDX-License-Identifier: MIT OR Apache-2.0
//! Display connections as byte streams: time of each send, and time of its receipt at the other
//! end.
//!
//! Both ends of a stream are recorded with the number of bytes; `matching` pairs sends and
//! receives.

use crate::decode::matching::{MatchedParts, match_parts};
use crate::decode::objects::{Act, Objects};
use crate::decode::parts::Part;
use crate::decode::protocol::{Majors, Word};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tipme_record::incident::Display;
use tipme_record::records::{Message, WlMessage};
use tipme_record::wayland::WlWord;
use tipme_record::{Nanos, Pid, Tid};

/// Direction of a message and the end at which it was recorded; the values are those of the
/// records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Side {
    RequestSent = 0,
    RequestReceived = 1,
    EventSent = 2,
    EventReceived = 3,
}

/// Connection of a client to a display.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    pub client: Pid,
    /// The display server, which identifies the display.
    pub server: Pid,
    /// Recorded display number; some connections lack it.
    display: u32,
    sides: [Vec<Part>; 4],
    /// Pairs of sends and receives: requests, events.
    matched: [MatchedParts; 2],
    /// Time of the frame callback for the commit of a send.
    frames: BTreeMap<usize, Nanos>,
    presented: BTreeMap<usize, Nanos>,
    pressed: BTreeMap<usize, Nanos>,
}

/// Stream of a part and its index in one side of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct PartPlace {
    pub stream: usize,
    pub part: usize,
}

/// Key of a compositor's connections: server and number, or the client if the number is unknown
/// yet.
type Connection = (Pid, u32, Pid);

/// Records, each with its tail.
pub trait Records<'a, T>: Iterator<Item = (T, &'a [u8])> {}
impl<'a, T, I: Iterator<Item = (T, &'a [u8])>> Records<'a, T> for I {}

/// Flags of a Wayland record that lacks, or may lack, messages of its send.
const INCOMPLETE: u16 = 3;

/// Maximum length of a round trip: before a later reply, the client may have waited for events.
const ROUND_TRIP_MAX: Nanos = Nanos::from_millis(100);

/// All display connections.
#[derive(Debug, Default)]
pub struct Messages {
    streams: Vec<Stream>,
    words: Vec<Word>,
    majors: HashMap<Pid, Majors>,
    unknown: Majors,
    /// Receives of requests by servers: server thread, time, place.
    received: Vec<(Tid, Nanos, PartPlace)>,
    servers: BTreeSet<Pid>,
    /// Grabs of a server: begin, end, and the client.
    grabs: Vec<(Nanos, Nanos, Pid)>,
    /// Receives of requests that release frozen input: server thread, time, and the thread that
    /// sent them.
    releases: Vec<(Tid, Nanos, Tid)>,
    injectors: BTreeSet<Pid>,
    /// Frame callbacks: compositor thread, time, and the client that receives it.
    frames: Vec<(Tid, Nanos, Pid)>,
    /// X11 round trips by the thread that receives events: from the last request before a reply to
    /// that reply.
    round_trips: HashMap<Tid, Vec<(Nanos, Nanos)>>,
}

impl Messages {
    /// Reads the records of both protocols, each in chronological order. `busy` returns `true` if a
    /// thread neither blocked nor exited between two times.
    pub fn new<'a>(
        x11: impl Records<'a, Message>,
        wayland: impl Records<'a, WlMessage>,
        displays: &[Display],
        busy: impl Fn(Tid, Nanos, Nanos) -> bool,
    ) -> Messages {
        let majors = displays
            .iter()
            .map(|display| (Pid(display.server_pid), Majors::new(display)))
            .collect();
        let servers = displays.iter().map(|display| Pid(display.server_pid)).collect();
        let mut messages = Messages { majors, servers, ..Messages::default() };
        let mut known = BTreeMap::new();
        for (record, tail) in x11 {
            messages.add(&record, tail, &mut known);
        }
        let of_x11 = messages.streams.len();
        let mut known = BTreeMap::new();
        for (record, tail) in wayland {
            messages.add_wayland(&record, tail, &mut known);
        }
        messages.streams.iter_mut().for_each(|stream| stream.settle(displays, &busy));
        messages.learn_majors(displays, of_x11);
        messages.servers.extend(
            messages.streams.iter().map(|stream| stream.server).filter(|server| *server != Pid(0)),
        );
        messages.index_taken();
        messages.index_frames();
        messages.index_round_trips();
        messages.index_clients();
        messages
    }

    /// Learns the extension opcodes of servers that do not listen on their displays themselves
    /// because a compositor started them: by display number.
    fn learn_majors(&mut self, displays: &[Display], of_x11: usize) {
        for stream in self.streams.iter().take(of_x11).filter(|stream| stream.server != Pid(0)) {
            if let Some(display) = displays.iter().find(|display| display.display == stream.display)
            {
                self.majors.entry(stream.server).or_insert_with(|| Majors::new(display));
            }
        }
    }

    fn add(&mut self, record: &Message, tail: &[u8], known: &mut BTreeMap<(u32, u32), usize>) {
        let Some(side) = SIDES.get(usize::from(record.direction)) else { return };
        let stream =
            *known.entry((record.display, record.connection)).or_insert(self.streams.len());
        if stream == self.streams.len() {
            self.streams.push(Stream { display: record.display, ..Stream::default() });
        }
        let words = (self.words.len() as u32, self.keep_words(record, tail));
        let stream = &mut self.streams[stream];
        if record.client != Pid(0) {
            stream.client = record.client;
        }
        let parts = &mut stream.sides[*side as usize];
        let (ts, tid, pid, bytes) =
            (record.head.ts, record.head.tid, record.pid, u64::from(record.bytes));
        parts.push(Part { ts, tid, pid, bytes, words, flags: record.flags });
    }

    /// Keeps the words of a record and returns their number.
    fn keep_words(&mut self, record: &Message, tail: &[u8]) -> u8 {
        let words = tail.as_chunks::<4>().0.iter().take(usize::from(record.operations));
        let before = self.words.len();
        self.words.extend(words.map(|bytes| Word::X11(*bytes)));
        (self.words.len() - before) as u8
    }

    fn add_wayland(
        &mut self,
        record: &WlMessage,
        tail: &[u8],
        known: &mut BTreeMap<Connection, (usize, Objects)>,
    ) {
        let Some(side) = SIDES.get(usize::from(record.direction)) else { return };
        let (server, early) = (record.server, (record.server, 0, record.client));
        let connection =
            if record.connection == 0 { early } else { (server, record.connection, Pid(0)) };
        // Before the server accepts a client, its messages have no connection number.
        if !known.contains_key(&connection)
            && let Some(begun) = known.remove(&early)
        {
            known.insert(connection, begun);
        }
        let (stream, objects) =
            known.entry(connection).or_insert_with(|| (self.streams.len(), Objects::default()));
        if *stream == self.streams.len() {
            self.streams.push(Stream { server: record.server, ..Stream::default() });
        }
        let stream = &mut self.streams[*stream];
        let words: Vec<WlWord> = WlWord::list(tail, record.operations).collect();
        if *side == Side::RequestSent && record.flags & INCOMPLETE != 0 {
            objects.miss();
        }
        let meanings = match side {
            Side::RequestSent => objects.requests(&words, stream.side(*side).len()),
            Side::EventSent => objects.events(&words),
            Side::RequestReceived | Side::EventReceived => Vec::new(),
        };
        if record.client != Pid(0) {
            stream.client = record.client;
        }
        let shown = objects.take_presented().into_iter();
        stream
            .presented
            .extend(shown.filter_map(|(send, us)| Some((send, stamp_before(record.head.ts, us)?))));
        let pressed = objects
            .take_pressed()
            .and_then(|ms| stamp_before(record.head.ts, ms.wrapping_mul(1_000)));
        let send = stream.side(*side).len();
        stream.pressed.extend(pressed.map(|at| (send, at)));
        stream.frames.extend(objects.take_done().into_iter().map(|send| (send, record.head.ts)));
        let (ts, tid, pid, bytes) =
            (record.head.ts, record.head.tid, record.pid, u64::from(record.bytes));
        let words = (self.words.len() as u32, meanings.len() as u8);
        self.words.extend(meanings.into_iter().map(Word::Wayland));
        stream.sides[*side as usize].push(Part { ts, tid, pid, bytes, words, flags: record.flags });
    }

    fn index_taken(&mut self) {
        for (stream, content) in self.streams.iter().enumerate() {
            let parts = content.side(Side::RequestReceived).iter().enumerate();
            self.received.extend(
                parts.map(|(part, received)| {
                    (received.tid, received.ts, PartPlace { stream, part })
                }),
            );
        }
        self.received.sort_unstable();
    }

    fn index_frames(&mut self) {
        let mut frames = Vec::new();
        for stream in &self.streams {
            let sent = stream.side(Side::EventSent).iter();
            let callbacks = sent.filter(|part| self.has_act(part, Act::FrameDone));
            frames.extend(callbacks.map(|part| (part.tid, part.ts, stream.client)));
        }
        frames.sort_unstable();
        self.frames = frames;
    }

    fn index_round_trips(&mut self) {
        let mut round_trips: HashMap<Tid, Vec<(Nanos, Nanos)>> = HashMap::new();
        for stream in &self.streams {
            let requests = stream.side(Side::RequestSent);
            let replies = stream.side(Side::EventSent).iter();
            for reply in replies.filter(|part| self.words(part).iter().any(|word| word.replies())) {
                let before = requests.partition_point(|part| part.ts <= reply.ts).checked_sub(1);
                let asked = before.map(|index| (requests[index].ts, reply.ts));
                let asked = asked.filter(|(lo, hi)| hi.since(*lo) <= ROUND_TRIP_MAX);
                round_trips.entry(stream.reader(Side::EventReceived)).or_default().extend(asked);
            }
        }
        round_trips.values_mut().for_each(|list| list.sort_unstable());
        self.round_trips = round_trips;
    }

    /// Returns `true` if a thread that receives events of an X server waited for a reply from it
    /// throughout `lo..hi`.
    pub(crate) fn awaits_reply(&self, tid: Tid, lo: Nanos, hi: Nanos) -> bool {
        let list = self.round_trips.get(&tid).map_or(&[][..], Vec::as_slice);
        let before = list.partition_point(|(asked, _)| *asked <= lo).checked_sub(1);
        before.is_some_and(|index| list[index].1.after(WAKE_SLACK) >= hi)
    }

    /// Returns `true` if a compositor thread sent a client a frame callback close to the time `at`
    /// at which it woke the client.
    pub(crate) fn has_frame_callback(&self, server: Tid, client: Pid, at: Nanos) -> bool {
        let first = self
            .frames
            .partition_point(|(tid, sent, _)| (*tid, *sent) < (server, at.before(WAKE_SLACK)));
        let mut near = self.frames[first..]
            .iter()
            .take_while(|(tid, sent, _)| *tid == server && *sent <= at.after(CALLBACK_WITHIN));
        near.any(|(.., receiver)| *receiver == client)
    }

    /// Finds the clients that inject input or hold a server grab.
    fn index_clients(&mut self) {
        let (mut injectors, mut methods) = (BTreeSet::new(), BTreeSet::new());
        for stream in &self.streams {
            let requests = self.timed_words(stream, Side::RequestSent).map(|(_, word)| word);
            if injects_input(self.majors(stream), requests) {
                injectors.insert(stream.client);
            }
            if self.has_event(stream, Act::GrabbedKey) {
                methods.insert(stream.client);
            }
        }
        // An input method that received a key press only repeats it: the user pressed the original
        // key.
        self.injectors = &injectors - &methods;
        let mut held = Vec::new();
        for (index, stream) in self.streams.iter().enumerate() {
            for (since, until) in grabs_in(self.timed_words(stream, Side::RequestSent)) {
                held.push((since, until.min(self.others_served(index, since)), stream.client));
            }
        }
        self.grabs = held;
        let mut releases: Vec<_> =
            self.streams.iter().flat_map(|stream| self.releases_of(stream)).collect();
        releases.sort_unstable();
        self.releases = releases;
    }

    fn releases_of(&self, stream: &Stream) -> impl Iterator<Item = (Tid, Nanos, Tid)> {
        let majors = self.majors(stream);
        let sent = stream.side(Side::RequestSent).iter().enumerate();
        let releasing = sent
            .filter(|(_, part)| self.words(part).iter().any(|word| majors.releases_input(*word)));
        releasing.filter_map(|(index, part)| {
            let received = stream.receipt(Side::RequestSent, index)?;
            Some((received.tid, received.ts, part.tid))
        })
    }

    /// Returns the time at which a server first served another client after it received a request
    /// sent at `sent`: a grab has ended by then, even if its end could not be read. Input injectors
    /// do not count, since a grab may let them through.
    fn others_served(&self, stream: usize, sent: Nanos) -> Nanos {
        let of = &self.streams[stream];
        let part = of.side(Side::RequestSent).partition_point(|part| part.ts < sent);
        let Some(received) = of.receipt(Side::RequestSent, part) else {
            return Nanos(u64::MAX);
        };
        let later =
            self.received_within(received.tid, received.ts.after(GRAB_SLACK), Nanos(u64::MAX));
        let mut others = later.iter().filter(|(_, _, place)| {
            let client = self.streams[place.stream].client;
            place.stream != stream && !self.injectors.contains(&client)
        });
        others.next().map_or(Nanos(u64::MAX), |(_, at, _)| *at)
    }

    /// Returns the known words of one side of a stream with the time of their part.
    pub(crate) fn timed_words(
        &self,
        stream: &Stream,
        side: Side,
    ) -> impl Iterator<Item = (Nanos, Word)> {
        let parts = stream.side(side).iter();
        parts.flat_map(|part| self.words(part).iter().map(|word| (part.ts, *word)))
    }

    /// Returns the client that holds a server grab at a time, and the end of the grab.
    pub fn grab(&self, at: Nanos) -> Option<(Pid, Nanos)> {
        self.grabs
            .iter()
            .find(|(lo, hi, _)| *lo <= at && at < *hi)
            .map(|(_, hi, client)| (*client, *hi))
    }

    /// Returns the last request in `lo..hi` that made a server thread release frozen input: time
    /// and the client's thread.
    pub fn released(&self, server: Tid, lo: Nanos, hi: Nanos) -> Option<(Nanos, Tid)> {
        let after = self.releases.partition_point(|entry| (entry.0, entry.1) < (server, hi));
        let entry = self.releases.get(after.checked_sub(1)?)?;
        (entry.0 == server && entry.1 >= lo).then_some((entry.1, entry.2))
    }

    /// Processes that inject input.
    pub(crate) fn injectors(&self) -> &BTreeSet<Pid> {
        &self.injectors
    }

    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    pub fn stream(&self, index: usize) -> Option<&Stream> {
        self.streams.get(index)
    }

    /// Returns the connections of a client.
    pub(crate) fn streams_of(&self, client: Pid) -> impl Iterator<Item = &Stream> {
        self.streams.iter().filter(move |stream| stream.client == client)
    }

    /// Returns the display servers of some clients.
    pub(crate) fn servers_of(&self, clients: &BTreeSet<Pid>) -> BTreeSet<Pid> {
        let streams = self.streams.iter().filter(|stream| clients.contains(&stream.client));
        streams.map(|stream| stream.server).collect()
    }

    /// Returns the known words of a part.
    pub fn words(&self, part: &Part) -> &[Word] {
        let first = part.words.0 as usize;
        self.words.get(first..first + usize::from(part.words.1)).unwrap_or_default()
    }

    /// Returns `true` if a part contains a message of this kind.
    pub(crate) fn has_act(&self, part: &Part, act: Act) -> bool {
        self.words(part).iter().any(|word| word.act() == Some(act))
    }

    /// Returns `true` if a client was sent an event of this kind.
    pub(crate) fn has_event(&self, stream: &Stream, act: Act) -> bool {
        stream.side(Side::EventSent).iter().any(|part| self.has_act(part, act))
    }

    /// Returns the extension opcodes of a stream's server.
    pub(crate) fn majors(&self, stream: &Stream) -> &Majors {
        self.majors.get(&stream.server).unwrap_or(&self.unknown)
    }

    /// Returns `true` if a request part draws; opaque parts count as drawing.
    pub fn draws(&self, stream: &Stream, part: &Part) -> bool {
        let majors = self.majors(stream);
        part.is_opaque() || self.words(part).iter().any(|word| majors.draws(*word))
    }

    /// Returns `true` if the process is a display server.
    pub(crate) fn is_server(&self, pid: Pid) -> bool {
        self.servers.contains(&pid)
    }

    /// Returns the receives of requests by a server thread in `lo..hi`, in chronological order.
    pub(crate) fn received_within(
        &self,
        server: Tid,
        lo: Nanos,
        hi: Nanos,
    ) -> &[(Tid, Nanos, PartPlace)] {
        let first = self.received.partition_point(|entry| (entry.0, entry.1) < (server, lo));
        let last = self.received.partition_point(|entry| (entry.0, entry.1) < (server, hi));
        self.received.get(first..last.max(first)).unwrap_or_default()
    }

    /// Returns the last receive of requests by a server thread at or before a time.
    pub(crate) fn last_received(&self, server: Tid, at: Nanos) -> Option<(Nanos, PartPlace)> {
        let after = self.received.partition_point(|entry| (entry.0, entry.1) <= (server, at));
        let entry = self.received.get(after.checked_sub(1)?).filter(|entry| entry.0 == server)?;
        Some((entry.1, entry.2))
    }
}

const SIDES: [Side; 4] =
    [Side::RequestSent, Side::RequestReceived, Side::EventSent, Side::EventReceived];

impl Side {
    /// Returns the other end of the same direction, and the index of the direction.
    fn ways(self) -> (Side, usize) {
        match self {
            Side::RequestSent => (Side::RequestReceived, 0),
            Side::RequestReceived => (Side::RequestSent, 0),
            Side::EventSent => (Side::EventReceived, 1),
            Side::EventReceived => (Side::EventSent, 1),
        }
    }
}

impl Stream {
    pub fn side(&self, side: Side) -> &[Part] {
        &self.sides[side as usize]
    }

    /// Returns the thread that reads one end: the last one to do so, else the first of the process.
    pub fn reader(&self, side: Side) -> Tid {
        let process = if side == Side::EventReceived { self.client } else { self.server };
        self.side(side).last().map_or(Tid(process.0), |part| part.tid)
    }

    /// Returns the receive that completes a send.
    pub fn received(&self, side: Side, sent: usize) -> Option<(usize, &Part)> {
        let (other, way) = side.ways();
        let index = (*self.matched[way].received_by.get(sent)?)? as usize;
        self.side(other).get(index).map(|part| (index, part))
    }

    /// Returns the part of the other side in which a send was received.
    pub(crate) fn receipt(&self, side: Side, sent: usize) -> Option<&Part> {
        self.received(side, sent).map(|(_, part)| part)
    }

    /// Returns the last send that had been received when a receive ended.
    pub fn sent(&self, side: Side, received: usize) -> Option<(usize, &Part)> {
        let (other, way) = side.ways();
        let index = (*self.matched[way].last_sent.get(received)?)? as usize;
        self.side(other).get(index).map(|part| (index, part))
    }

    /// Returns the time of the frame callback for the commit of a send, if there was one.
    pub(crate) fn frame_done(&self, sent: usize) -> Option<Nanos> {
        self.frames.get(&sent).copied()
    }

    /// Returns the time at which the commit of a send was presented, if the compositor reported it.
    pub fn presented(&self, sent: usize) -> Option<Nanos> {
        self.presented.get(&sent).copied()
    }

    /// Returns the time of the first press in a send, in whole milliseconds, if the event has a
    /// time stamp.
    pub fn pressed(&self, sent: usize) -> Option<Nanos> {
        self.pressed.get(&sent).copied()
    }

    fn settle(&mut self, displays: &[Display], busy: &impl Fn(Tid, Nanos, Nanos) -> bool) {
        let served = self.sides[1].iter().chain(&self.sides[2]).map(|part| part.pid).next();
        let listening = Some(self.server).filter(|server| *server != Pid(0));
        let listed = displays.iter().find(|display| display.display == self.display);
        let listed = listed.map(|display| Pid(display.server_pid));
        self.server = served.or(listening).or(listed).unwrap_or_default();
        let [requests, requests_taken, events, events_taken] = &self.sides;
        self.matched =
            [match_parts(requests, requests_taken, busy), match_parts(events, events_taken, busy)];
    }
}

/// Maximum age of a press or presentation time in an event.
const STAMP_AGE_MAX: Nanos = Nanos::from_secs(10);

/// Returns the past time that an event at `ts` carries as microseconds modulo 2^32.
fn stamp_before(ts: Nanos, us: u32) -> Option<Nanos> {
    let age = Nanos(u64::from(((ts.0 / 1_000) as u32).wrapping_sub(us)) * 1_000);
    (age <= STAMP_AGE_MAX).then(|| ts.before(age))
}

/// Window around a wakeup of the client in which the frame callback is recorded: from `WAKE_SLACK`
/// before it until `CALLBACK_WITHIN` after it.
const CALLBACK_WITHIN: Nanos = Nanos::from_millis(2);
const WAKE_SLACK: Nanos = Nanos(50_000);

/// Time for which a server may still serve requests that it read before a grab.
const GRAB_SLACK: Nanos = Nanos::from_millis(1);

/// Returns `true` if a client injects input: with XTEST, or by moving the pointer without drawing.
fn injects_input(majors: &Majors, words: impl Iterator<Item = Word>) -> bool {
    let (mut moves, mut draws) = (false, false);
    for word in words {
        if majors.fakes_input(word) {
            return true;
        }
        moves |= word.moves_pointer();
        draws |= majors.draws(word);
    }
    moves && !draws
}

/// Returns begin and end of each server grab of a client.
fn grabs_in(words: impl Iterator<Item = (Nanos, Word)>) -> Vec<(Nanos, Nanos)> {
    let (mut since, mut grabs) = (None, Vec::new());
    for (at, word) in words {
        if word.grabs_server() {
            since = since.or(Some(at));
        } else if word.ungrabs_server() {
            grabs.extend(since.take().map(|since| (since, at)));
        }
    }
    grabs.extend(since.map(|since| (since, Nanos(u64::MAX))));
    grabs
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::{FromZeros, IntoBytes};

    fn passed(client: u32, connection: u32, side: Side, words: &[WlWord]) -> (WlMessage, Vec<u8>) {
        let mut record = WlMessage::new_zeroed();
        (record.client, record.server, record.connection) = (Pid(client), Pid(9), connection);
        (record.direction, record.operations) = (side as u8, words.len() as u8);
        (record, words.as_bytes().to_vec())
    }

    /// Two clients sync before the compositor has accepted them.
    #[test]
    fn messages_before_acceptance_belong_to_their_client() {
        let sync = WlWord { object: 1, opcode: 0, units: 3, hint: 0, unused: 0, argument: 30 };
        let done = [WlWord { object: 30, argument: 0, ..sync }, WlWord { opcode: 1, ..sync }];
        let records = [
            passed(7, 0, Side::RequestSent, &[sync]),
            passed(8, 0, Side::RequestSent, &[sync]),
            passed(8, 8, Side::EventSent, &done),
            passed(7, 7, Side::EventSent, &done),
        ];
        let wayland = records.iter().map(|(record, tail)| (*record, tail.as_slice()));
        let messages = Messages::new(std::iter::empty(), wayland, &[], |_, _, _| false);
        let clients: Vec<Pid> = messages.streams().iter().map(|stream| stream.client).collect();
        assert_eq!(clients, [Pid(7), Pid(8)]);
        assert_eq!(messages.frames, [], "neither asked for a frame");
    }
}
