// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the person did, and to which client it was delivered.
//!
//! Input reaches a display server as XTEST requests of some client or as events of input devices; it
//! leaves the server as events to clients. Both sides are joined in order: a press fits an event where the
//! server had it before the event, and was still at it when the burst began that told of it. A client is
//! told of a press once. Other clients may be told of the same one, but only where there is no other.
//!
//! A client that takes clicks before all others, as window managers do, may hand one on: then the event
//! follows from what that client did, and the press is that client's. Who holds a device frozen lets what was pressed
//! meanwhile go on when it says so or leaves: then the event tells of the earliest press that nobody was told of. Where
//! no input is known its time is the one that a compositor of Wayland stamps its event with, else the begin of the
//! burst, or what the server told of before in that burst.
//!
//! An X server that is a client of a compositor is told of presses as any client is, and tells its own clients: what it
//! dequeued is no answer to anybody, but a press that it has.

use crate::decode::messages::{PartPlace, Side, Stream};
use crate::decode::parts::Part;
use crate::decode::protocol::{InputDeviceKind, class_of, device_of};
use crate::join::input_readers::InputReader;
use crate::timeline::bursts::{Burst, Wake};
use crate::timeline::recording::Recording;
use crate::timeline::threads::ThreadState;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::Range;
use tipme_measure::InputClass;
use tipme_record::records::Input;
use tipme_record::{Nanos, Pid, Tid};

/// A press or motion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DevicePress {
    pub device: InputDeviceKind,
    /// When the person acted: the device's time, or the send of the request that injects it.
    pub at: Nanos,
    /// When the server had it, at the earliest; `None` where it had not at the mark.
    pub reached: Option<Nanos>,
    /// Until when it may have been new to the server.
    until: Nanos,
    /// The thread that injected it.
    pub by: Option<Tid>,
    /// The server thread that dequeued the request.
    pub server: Option<Tid>,
    /// When the injector sent what it sent before this.
    before: Nanos,
    /// When the compositor told the server of it, and its thread that did, where the server is a client of one.
    through: Option<(Nanos, Tid)>,
}

/// A press or motion that was delivered to a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Delivery {
    pub class: InputClass,
    pub client: Pid,
    pub input: Nanos,
    /// When the server sent the event, and the thread that did.
    pub sent: Nanos,
    pub server: Tid,
    pub stream: usize,
    /// When the client dequeued it, and the thread that did.
    pub dequeued: Option<(Nanos, Tid)>,
    /// When another client let it go on that it was held back for, and the thread that did.
    pub released: Option<(Nanos, Tid)>,
    /// What the event was is known from its shape only.
    pub inferred: bool,
    /// No event told of it: the client repeats a key that is held, and takes it from its own timer.
    pub repeated: bool,
}

/// Records of one instant on two CPUs may be this far apart.
pub(crate) const SLACK: Nanos = Nanos(50_000);

const MILLISECOND: Nanos = Nanos::from_millis(1);

/// One part tells of at most this many presses; and of one motion.
const WORDS_MAX: usize = 64;

/// Presses that are looked at for one part, the earliest ones that fit.
const FITTING_MAX: usize = 1_024;

/// Display servers that presses of devices are looked for on.
const SERVERS_MAX: usize = 64;

/// A client that wakes the server as it ends is gone this soon.
const LEAVES: Nanos = Nanos::from_millis(100);

/// Events before one that are looked at for who may have handed it on.
const HANDED_MAX: usize = 256;

/// Presses of one device in the order in which the server had them.
#[derive(Default)]
struct Queue {
    /// Each with whether any client was told of it.
    presses: Vec<(DevicePress, bool)>,
    /// By stream, the first press after the one that the client was told of last.
    next: HashMap<usize, usize>,
}

type Queues = HashMap<(Pid, InputDeviceKind), Queue>;

/// All presses that were delivered to clients, by the time of the event.
pub(crate) fn deliveries(recording: &Recording) -> Vec<Delivery> {
    let mut queues = [Queues::new(), injected_queues(recording), device_queues(recording)];
    let mut deliveries = Vec::new();
    for (place, stream, part) in sends(recording) {
        let burst = recording.burst(part.tid, part.ts);
        let classes: Vec<InputClass> = classes(recording, stream, part).collect();
        let mut presses = presses(&mut queues, &classes, stream.server, (place.stream, part, &burst));
        for class in classes {
            let device = device_of(class);
            let (input, released) = match presses.get_mut(&device).and_then(VecDeque::pop_front) {
                Some(press) => (Some(begin(recording, &press, &burst)), press.through),
                None => {
                    begin_unqueued(recording, &mut queues, &deliveries, (stream, device), (place.stream, part, &burst))
                }
            };
            let unknown = || stamped(stream, place, told_before(&deliveries, device, part, &burst));
            let told = tell(class, stream, place, part, input.unwrap_or_else(unknown));
            let told = Delivery { released, inferred: is_inferred(recording, part, class), ..told };
            match passed_on(recording, &told) {
                Some(press) => queues[0].entry((told.client, device)).or_default().presses.push((press, false)),
                None => deliveries.push(told),
            }
        }
    }
    add_unread(recording, &mut queues, &mut deliveries);
    deliveries
}

/// When the press was made that an event tells of though no queue has it, as far as that is known, and which client let
/// it go on: one that handed it on, or had held it back.
fn begin_unqueued(
    recording: &Recording,
    queues: &mut [Queues; 3],
    deliveries: &[Delivery],
    (stream, device): (&Stream, InputDeviceKind),
    (number, part, burst): Sent<'_>,
) -> (Option<Nanos>, Option<(Nanos, Tid)>) {
    let handed = handed_on(recording, deliveries, device, number, burst);
    let released = released(recording, part, burst).or(handed.map(|(_, by)| (burst.start, by)));
    let held = |by| held_back(recording, queues, deliveries, stream.server, device, by);
    (handed.map(|(input, _)| input).or_else(|| released.and_then(held)), released)
}

/// When a press was made of which nothing else is known: at the earliest time, as far as the compositor's own stamp, which
/// is in whole milliseconds, leaves that open.
fn stamped(stream: &Stream, place: PartPlace, earliest: Nanos) -> Nanos {
    stream.pressed(place.part).map_or(earliest, |at| earliest.clamp(at, at.after(MILLISECOND)))
}

/// When a server can have had what it tells of at the earliest: at the begin of its burst, or when it told of the input
/// before with the same device, since it would have told of both.
fn told_before(deliveries: &[Delivery], device: InputDeviceKind, part: &Part, burst: &Burst) -> Nanos {
    let mut before = deliveries.iter().rev().take(HANDED_MAX).filter(|told| told.server == part.tid);
    let last = before.find(|told| device_of(told.class) == device && told.sent < part.ts.before(SLACK));
    last.map_or(burst.start, |told| burst.start.max(told.sent))
}

/// The press that a display server has which was told of it as a client, and took it.
fn passed_on(recording: &Recording, told: &Delivery) -> Option<DevicePress> {
    let (had, server) = told.dequeued.filter(|_| recording.messages.is_server(told.client))?;
    let (device, at, through) = (device_of(told.class), told.input, Some((told.sent, told.server)));
    let server = Some(server);
    Some(DevicePress { device, at, reached: Some(had), until: had, by: None, server, before: Nanos(0), through })
}

/// Adds the presses in parts that a client dequeued so fast that they could not be read any more, because the server
/// lost its CPU in the middle of sending: a part of a burst in which the server had a press that nobody was told of
/// tells of it, where its client is told of such presses.
fn add_unread(recording: &Recording, queues: &mut [Queues; 3], deliveries: &mut Vec<Delivery>) {
    let clients: BTreeSet<(usize, InputDeviceKind)> =
        deliveries.iter().map(|delivery| (delivery.stream, device_of(delivery.class))).collect();
    let read = deliveries.len();
    for (place, stream, part) in unread(recording) {
        let burst = recording.burst(part.tid, part.ts);
        let devices = [InputDeviceKind::Keyboard, InputDeviceKind::Button].into_iter();
        let mut known = devices.filter(|device| clients.contains(&(place.stream, *device)));
        let press = known.find_map(|device| {
            let mut queues = queues.iter_mut().filter_map(|queues| queues.get_mut(&(stream.server, device)));
            queues.find_map(|queue| queue.take_new((place.stream, part, &burst)))
        });
        let input = |press: DevicePress| tell(press.class(), stream, place, part, begin(recording, &press, &burst));
        deliveries.extend(press.map(input));
    }
    if deliveries.len() > read {
        deliveries.sort_by_key(|delivery| delivery.sent);
    }
}

/// A part of a stream, by the stream's number, and the burst of the server in which it was sent.
type Sent<'a> = (usize, &'a Part, &'a Burst);

/// The presses that a part tells of, by device: first those that a compositor told of, then those that were injected.
fn presses(
    queues: &mut [Queues; 3],
    classes: &[InputClass],
    server: Pid,
    sent: Sent<'_>,
) -> HashMap<InputDeviceKind, VecDeque<DevicePress>> {
    let mut presses: HashMap<InputDeviceKind, VecDeque<DevicePress>> = HashMap::new();
    for device in classes.iter().map(|class| device_of(*class)) {
        let count = classes.iter().filter(|class| device_of(**class) == device).count();
        presses.entry(device).or_insert_with(|| {
            let mut found = VecDeque::new();
            for queue in queues.iter_mut().filter_map(|queues| queues.get_mut(&(server, device))) {
                let lacking = count - found.len();
                found.extend(queue.take(lacking, sent));
            }
            found
        });
    }
    presses
}

impl Queue {
    fn new(mut presses: Vec<DevicePress>) -> Queue {
        presses.sort_by_key(|press| (press.had(), press.at));
        Queue { presses: presses.into_iter().map(|press| (press, false)).collect(), next: HashMap::new() }
    }

    /// The next `count` presses for a client that the server had up to the event and was still at when the burst
    /// began: those that nobody was told of where there are as many, else those that others were told of, too.
    fn take(&mut self, count: usize, sent: Sent<'_>) -> Vec<DevicePress> {
        let fitting = self.fitting(self.next.get(&sent.0).copied().unwrap_or(0), sent);
        let new: Vec<usize> = fitting.clone().filter(|index| !self.presses[*index].1).take(count).collect();
        let chosen = if new.len() == count { new } else { fitting.take(count).collect() };
        chosen.into_iter().map(|index| self.tell(index, sent.0)).collect()
    }

    /// The same for one press of which nobody was told, also where the client was told of later ones.
    fn take_new(&mut self, sent: Sent<'_>) -> Option<DevicePress> {
        let new = self.fitting(0, sent).find(|index| !self.presses[*index].1)?;
        Some(self.tell(new, sent.0))
    }

    /// The earliest press before a time that nobody was told of, after the last one that somebody was told of.
    fn take_held(&mut self, at: Nanos) -> Option<Nanos> {
        let after = self.presses.partition_point(|(press, _)| press.had() <= at);
        let before = &mut self.presses[..after];
        let first = before.iter().rposition(|(_, was_told)| *was_told).map_or(0, |last| last + 1);
        let (press, was_told) = before.get_mut(first)?;
        *was_told = true;
        Some(press.at)
    }

    /// From the press with the number `next` on.
    fn fitting(&self, next: usize, (_, part, burst): Sent<'_>) -> Range<usize> {
        let since = burst.start.before(SLACK);
        let first = self.presses.partition_point(|(press, _)| press.until < since).max(next);
        let last = self.presses.partition_point(|(press, _)| press.had() <= part.ts.after(SLACK));
        first..last.min(first.saturating_add(FITTING_MAX))
    }

    fn tell(&mut self, index: usize, stream: usize) -> DevicePress {
        self.next.insert(stream, index + 1);
        let (press, was_told) = &mut self.presses[index];
        *was_told = true;
        *press
    }
}

/// The time of a press that another client was told of, where that client then woke the server for this burst, and
/// its thread that did.
fn handed_on(
    recording: &Recording,
    deliveries: &[Delivery],
    device: InputDeviceKind,
    stream: usize,
    burst: &Burst,
) -> Option<(Nanos, Tid)> {
    let Wake::Task(by) = burst.wake else { return None };
    let since = recording.burst(by, burst.start).start;
    let dequeued_by =
        |delivery: &&Delivery| delivery.dequeued.is_some_and(|(at, tid)| tid == by && since <= at && at <= burst.start);
    let mut before = deliveries.iter().rev().take(HANDED_MAX);
    let first = before
        .find(|delivery| delivery.stream != stream && device_of(delivery.class) == device && dequeued_by(delivery));
    first.map(|delivery| (delivery.input, by))
}

/// Who let held input go on in the burst that sent an event: by a request, or by leaving the display.
fn released(recording: &Recording, part: &Part, burst: &Burst) -> Option<(Nanos, Tid)> {
    let leaves = || {
        let Wake::Task(by) = burst.wake else { return None };
        let later = recording.timeline.at(by, burst.start.after(LEAVES))?;
        (later.segment.state == ThreadState::Absent).then_some((burst.start, by))
    };
    recording.messages.released(part.tid, burst.start.before(SLACK), part.ts).or_else(leaves)
}

/// The time of the press that a client had held back until it let it go on: one that it was told of itself, or the
/// earliest that nobody was told of.
fn held_back(
    recording: &Recording,
    queues: &mut [Queues; 3],
    deliveries: &[Delivery],
    server: Pid,
    device: InputDeviceKind,
    (at, by): (Nanos, Tid),
) -> Option<Nanos> {
    let holder = recording.tasks.pid(by, at.before(Nanos(1)));
    let own = deliveries
        .iter()
        .rev()
        .take(HANDED_MAX)
        .find(|delivery| delivery.client == holder && device_of(delivery.class) == device);
    let untold = || queues.iter_mut().find_map(|queues| queues.get_mut(&(server, device))?.take_held(at));
    own.map(|delivery| delivery.input).or_else(untold)
}

impl DevicePress {
    /// The class of a press of this device; a wheel cannot be told from a button.
    pub(crate) fn class(&self) -> InputClass {
        match self.device {
            InputDeviceKind::Keyboard => InputClass::Key,
            InputDeviceKind::Button => InputClass::Click,
            InputDeviceKind::Pointer => InputClass::Motion,
        }
    }

    fn had(&self) -> Nanos {
        self.reached.unwrap_or(Nanos(u64::MAX))
    }
}

pub(crate) fn tell(class: InputClass, stream: &Stream, place: PartPlace, part: &Part, input: Nanos) -> Delivery {
    let dequeued = stream.received(Side::EventSent, place.part).map(|(_, dequeued)| (dequeued.ts, dequeued.tid));
    let sent = dequeued.map_or(part.ts, |(at, _)| part.ts.min(at));
    let input = input.min(sent);
    Delivery {
        class,
        client: stream.client,
        input,
        sent,
        server: part.tid,
        stream: place.stream,
        dequeued,
        released: None,
        inferred: false,
        repeated: false,
    }
}

/// Releases of buttons that were delivered to clients. Nothing need be shown then, but it is when most programs act.
pub(crate) fn releases(recording: &Recording) -> Vec<Delivery> {
    let mut deliveries = Vec::new();
    for (index, stream) in recording.messages.streams().iter().enumerate() {
        let majors = recording.messages.majors(stream);
        for (part, sent) in stream.side(Side::EventSent).iter().enumerate() {
            let mut words = recording.messages.words(sent).iter().take(WORDS_MAX);
            if words.any(|word| majors.tells_of_release(*word)) {
                let input = recording.burst(sent.tid, sent.ts).start;
                deliveries.push(tell(InputClass::Click, stream, PartPlace { stream: index, part }, sent, input));
            }
        }
    }
    deliveries
}

/// Event parts with input in them, by time.
fn sends(recording: &Recording) -> Vec<(PartPlace, &Stream, &Part)> {
    let mut sends = Vec::new();
    for (index, stream) in recording.messages.streams().iter().enumerate() {
        let parts = stream.side(Side::EventSent).iter().enumerate();
        let with_input = parts.filter(|(_, part)| classes(recording, stream, part).next().is_some());
        sends.extend(with_input.map(|(part, sent)| (PartPlace { stream: index, part }, stream, sent)));
    }
    sends.sort_by_key(|(place, _, part)| (part.ts, *place));
    sends
}

/// Event parts that were dequeued before their sending was recorded, and could not be read therefore; by time.
fn unread(recording: &Recording) -> Vec<(PartPlace, &Stream, &Part)> {
    let mut unread = Vec::new();
    for (index, stream) in recording.messages.streams().iter().enumerate() {
        for (part, sent) in stream.side(Side::EventSent).iter().enumerate().filter(|(_, sent)| sent.is_opaque()) {
            let dequeued = stream.received(Side::EventSent, part).filter(|(_, dequeued)| dequeued.ts <= sent.ts);
            unread.extend(dequeued.map(|_| (PartPlace { stream: index, part }, stream, sent)));
        }
    }
    unread.sort_by_key(|(place, _, part)| (part.ts, *place));
    unread
}

/// The classes of the presses in a part; motions of one part are one.
fn classes<'a>(recording: &'a Recording, stream: &'a Stream, part: &'a Part) -> impl Iterator<Item = InputClass> {
    let majors = recording.messages.majors(stream);
    let words = recording.messages.words(part).iter().take(WORDS_MAX);
    let mut moved = false;
    words.filter_map(|word| majors.input_class(*word)).filter(move |class| {
        let again = *class == InputClass::Motion && moved;
        moved |= *class == InputClass::Motion;
        !again
    })
}

/// Whether it is known only from their shape that a part tells of presses of a class.
fn is_inferred(recording: &Recording, part: &Part, class: InputClass) -> bool {
    let words = recording.messages.words(part).iter().take(WORDS_MAX);
    let mut inferred = words.filter(|word| word.is_inferred());
    inferred.any(|word| word.act().and_then(class_of) == Some(class))
}

fn injected_queues(recording: &Recording) -> Queues {
    queues(injected(recording))
}

/// The presses of input devices, which every display may have got; wheels are buttons.
fn device_queues(recording: &Recording) -> Queues {
    let mut presses: Vec<DevicePress> = recording.inputs.iter().filter_map(device_press).collect();
    presses.sort_by_key(|press| press.at);
    let stamps: Vec<Nanos> = presses.iter().map(|press| press.at).collect();
    let servers: BTreeSet<Pid> = recording.messages.streams().iter().map(|stream| stream.server).collect();
    let servers = servers.into_iter().filter(|_| !presses.is_empty()).take(SERVERS_MAX);
    let readers = servers.map(|server| (server, InputReader::find(recording, server, &stamps)));
    queues(readers.flat_map(|(server, reader)| {
        let read = move |press: &DevicePress| {
            let reading = reader.reading(press.at);
            (server, DevicePress { reached: reading.from, until: reading.until, ..*press })
        };
        presses.iter().map(read)
    }))
}

fn queues(presses: impl Iterator<Item = (Pid, DevicePress)>) -> Queues {
    let mut lists: HashMap<(Pid, InputDeviceKind), Vec<DevicePress>> = HashMap::new();
    for (server, press) in presses {
        lists.entry((server, press.device)).or_default().push(press);
    }
    lists.into_iter().map(|(key, presses)| (key, Queue::new(presses))).collect()
}

fn device_press(input: &Input) -> Option<DevicePress> {
    let device = match (input.class, input.press) {
        (0, 1) => InputDeviceKind::Keyboard,
        (1, 1) | (3, _) => InputDeviceKind::Button,
        (2, _) => InputDeviceKind::Pointer,
        _ => return None,
    };
    let at = input.head.ts;
    Some(DevicePress {
        device,
        at,
        reached: Some(at),
        until: at,
        by: None,
        server: None,
        before: Nanos(0),
        through: None,
    })
}

/// Every press that a client injected, with the server.
pub(crate) fn injected(recording: &Recording) -> impl Iterator<Item = (Pid, DevicePress)> {
    recording.messages.streams().iter().flat_map(move |stream| {
        let parts = stream.side(Side::RequestSent).iter().enumerate();
        parts.flat_map(move |(index, part)| injected_in(recording, stream, index, part))
    })
}

fn injected_in<'a>(
    recording: &'a Recording,
    stream: &'a Stream,
    index: usize,
    part: &'a Part,
) -> impl Iterator<Item = (Pid, DevicePress)> + 'a {
    let majors = recording.messages.majors(stream);
    let dequeued = stream.received(Side::RequestSent, index).map(|(_, dequeued)| (dequeued.ts, dequeued.tid));
    let before = index.checked_sub(1).and_then(|index| stream.side(Side::RequestSent).get(index));
    let before = before.map_or(Nanos(0), |part| part.ts);
    let words = recording.messages.words(part).iter().filter_map(|word| majors.injects(*word));
    words.map(move |device| {
        let at = dequeued.map_or(part.ts, |(dequeued, _)| part.ts.min(dequeued));
        let reached = dequeued.map(|(at, _)| at);
        let (until, server) = (reached.unwrap_or(Nanos(u64::MAX)), dequeued.map(|(_, server)| server));
        (stream.server, DevicePress { device, at, reached, until, by: Some(part.tid), server, before, through: None })
    })
}

/// When a press was made. An injector that loses its CPU after waking the server is recorded late:
/// the wake-up is then the better time, where it was not that of something sent before.
fn begin(recording: &Recording, press: &DevicePress, burst: &Burst) -> Nanos {
    match press.by {
        Some(by) if burst.wake == Wake::Task(by) && press.before < burst.start && burst.start < press.at => {
            if lost_its_cpu(recording, by, burst.start, press.at) {
                burst.start
            } else {
                press.at
            }
        }
        _ => press.at,
    }
}

fn lost_its_cpu(recording: &Recording, tid: Tid, lo: Nanos, hi: Nanos) -> bool {
    let first = recording.timeline.at(tid, lo).map_or(0, |span| span.index);
    let spans = (first..).map_while(|index| recording.timeline.span(tid, index)).take_while(|span| span.start < hi);
    let mut states = spans.map(|span| span.segment.state).take_while(|state| *state != ThreadState::Blocked);
    states.any(|state| state == ThreadState::Runnable)
}
