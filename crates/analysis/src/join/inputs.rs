// SPDX-License-Identifier: MIT OR Apache-2.0
//! User input and the clients that received it.
//!
//! Input reaches a display server as XTEST requests of a client or as events of input devices; it
//! leaves the server as events to clients. Both sides are joined in order: a press matches an event
//! if the server had it before the event, and was still at work on it when the burst with the event
//! began. A client receives a press once. Other clients may receive the same press, but only if
//! there is no other one for them.
//!
//! A client that receives clicks before all others, as window managers do, may pass one on: then
//! the event follows from the work of that client, and the press is the one it received. A client
//! that holds a device frozen releases the presses made meanwhile by a request or when it exits:
//! then the event carries the earliest press that no client has received. If no input is known, the
//! time of the press is the time stamp that a Wayland compositor gives the event, else the start of
//! the burst, or the previous event in that burst.
//!
//! An X server that is a client of a compositor receives presses like any client, and passes them
//! to its own clients: its receipt of a press is no answer, but makes the press available to it.

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
    /// Time of the user's action: the time stamp of the device, or the send of the injecting
    /// request.
    pub at: Nanos,
    /// Earliest time at which the server had it; `None` if it did not have it at the mark.
    pub reached: Option<Nanos>,
    /// Time until which it may have been new to the server.
    until: Nanos,
    /// The thread that injected it.
    pub by: Option<Tid>,
    /// The server thread that dequeued the request.
    pub server: Option<Tid>,
    /// Time of the injector's previous send.
    before: Nanos,
    /// Time and compositor thread of its event to the server, if the server is a client of a
    /// compositor.
    through: Option<(Nanos, Tid)>,
}

/// A press or motion that was delivered to a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Delivery {
    pub class: InputClass,
    pub client: Pid,
    pub input: Nanos,
    /// Time of the event, and the server thread that sent it.
    pub sent: Nanos,
    pub server: Tid,
    pub stream: usize,
    /// Time of the receipt, and the client thread that dequeued it.
    pub dequeued: Option<(Nanos, Tid)>,
    /// Time and thread of the release by another client that held the input back.
    pub released: Option<(Nanos, Tid)>,
    /// The kind of event is known from its shape only.
    pub inferred: bool,
    /// No event: the client repeats a held key from its own timer.
    pub repeated: bool,
}

/// Maximum difference between records of one instant on two CPUs.
pub(crate) const SLACK: Nanos = Nanos(50_000);

const MILLISECOND: Nanos = Nanos::from_millis(1);

/// Maximum number of presses taken from one part; of motions, one counts.
const WORDS_MAX: usize = 64;

/// Maximum number of matching presses considered for one part, earliest first.
const FITTING_MAX: usize = 1_024;

/// Maximum number of display servers searched for device presses.
const SERVERS_MAX: usize = 64;

/// Maximum time from a client's wakeup of the server to its exit, if it wakes the server as it
/// exits.
const LEAVES: Nanos = Nanos::from_millis(100);

/// Maximum number of preceding events searched for a client that passed an event on.
const HANDED_MAX: usize = 256;

/// Presses of one device in the order in which the server had them.
#[derive(Default)]
struct Queue {
    /// `true` for presses that any client received.
    presses: Vec<(DevicePress, bool)>,
    /// Index after the last press that the client of a stream received.
    next: HashMap<usize, usize>,
}

type Queues = HashMap<(Pid, InputDeviceKind), Queue>;

/// Returns all presses that were delivered to clients, by the time of the event.
pub(crate) fn deliveries(recording: &Recording) -> Vec<Delivery> {
    let mut queues = [Queues::new(), injected_queues(recording), device_queues(recording)];
    let mut deliveries = Vec::new();
    for (place, stream, part) in sends(recording) {
        let burst = recording.burst(part.tid, part.ts);
        let classes: Vec<InputClass> = classes(recording, stream, part).collect();
        let mut presses =
            presses(&mut queues, &classes, stream.server, (place.stream, part, &burst));
        for class in classes {
            let device = device_of(class);
            let (input, released) = match presses.get_mut(&device).and_then(VecDeque::pop_front) {
                Some(press) => (Some(begin(recording, &press, &burst)), press.through),
                None => begin_unqueued(
                    recording,
                    &mut queues,
                    &deliveries,
                    (stream, device),
                    (place.stream, part, &burst),
                ),
            };
            let input = input.unwrap_or_else(|| {
                stamped(stream, place, earliest_input(&deliveries, device, part, &burst))
            });
            let new = delivery(class, stream, place, part, input);
            let new = Delivery { released, inferred: is_inferred(recording, part, class), ..new };
            match passed_on(recording, &new) {
                Some(press) => {
                    queues[0].entry((new.client, device)).or_default().presses.push((press, false))
                }
                None => deliveries.push(new),
            }
        }
    }
    add_unread(recording, &mut queues, &mut deliveries);
    deliveries
}

/// Returns the time of a press that is in no queue, as far as it is known, and the client that
/// released it: one that passed it on, or that had held it back.
fn begin_unqueued(
    recording: &Recording,
    queues: &mut [Queues; 3],
    deliveries: &[Delivery],
    (stream, device): (&Stream, InputDeviceKind),
    (number, part, burst): Sent<'_>,
) -> (Option<Nanos>, Option<(Nanos, Tid)>) {
    let handed = handed_on(recording, deliveries, device, number, burst);
    let released = released(recording, part, burst).or(handed.map(|(_, by)| (burst.start, by)));
    let input = handed
        .map(|(input, _)| input)
        .or_else(|| held_back(recording, queues, deliveries, stream.server, device, released?));
    (input, released)
}

/// Returns the time of an otherwise unknown press: the earliest possible one, within the
/// compositor's time stamp, which is in whole milliseconds.
fn stamped(stream: &Stream, place: PartPlace, earliest: Nanos) -> Nanos {
    stream.pressed(place.part).map_or(earliest, |at| earliest.clamp(at, at.after(MILLISECOND)))
}

/// Returns the earliest time at which a server can have had an input: the start of its burst, or
/// its previous event from the same device in the burst, since it would have sent both together.
fn earliest_input(
    deliveries: &[Delivery],
    device: InputDeviceKind,
    part: &Part,
    burst: &Burst,
) -> Nanos {
    let mut before = deliveries.iter().rev().take(HANDED_MAX);
    let last = before.find(|last| {
        last.server == part.tid
            && device_of(last.class) == device
            && last.sent < part.ts.before(SLACK)
    });
    last.map_or(burst.start, |last| burst.start.max(last.sent))
}

/// Returns the press that a display server received as a client, and so has for its own clients.
fn passed_on(recording: &Recording, delivery: &Delivery) -> Option<DevicePress> {
    let (had, server) =
        delivery.dequeued.filter(|_| recording.messages.is_server(delivery.client))?;
    Some(DevicePress {
        device: device_of(delivery.class),
        at: delivery.input,
        reached: Some(had),
        until: had,
        by: None,
        server: Some(server),
        before: Nanos(0),
        through: Some((delivery.sent, delivery.server)),
    })
}

/// Adds the presses in parts that a client dequeued so fast that the recorder could not read them
/// any more, because the server was preempted in the middle of the send. Such a part carries a
/// press if its client receives such presses, and no client has received a press that the server
/// had in that burst.
fn add_unread(recording: &Recording, queues: &mut [Queues; 3], deliveries: &mut Vec<Delivery>) {
    let clients: BTreeSet<(usize, InputDeviceKind)> =
        deliveries.iter().map(|delivery| (delivery.stream, device_of(delivery.class))).collect();
    let read = deliveries.len();
    for (place, stream, part) in unread(recording) {
        let burst = recording.burst(part.tid, part.ts);
        let devices = [InputDeviceKind::Keyboard, InputDeviceKind::Button].into_iter();
        let mut known = devices.filter(|device| clients.contains(&(place.stream, *device)));
        let press = known.find_map(|device| {
            let mut queues =
                queues.iter_mut().filter_map(|queues| queues.get_mut(&(stream.server, device)));
            queues.find_map(|queue| queue.take_new((place.stream, part, &burst)))
        });
        deliveries.extend(press.map(|press| {
            delivery(press.class(), stream, place, part, begin(recording, &press, &burst))
        }));
    }
    if deliveries.len() > read {
        deliveries.sort_by_key(|delivery| delivery.sent);
    }
}

/// Part of a stream, with the index of the stream and the server's burst that sent it.
type Sent<'a> = (usize, &'a Part, &'a Burst);

/// Returns the presses of a part by device: first those from a compositor, then those that were
/// injected, then those of devices.
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
        Queue {
            presses: presses.into_iter().map(|press| (press, false)).collect(),
            next: HashMap::new(),
        }
    }

    /// Returns the next `count` presses for a client that the server had by the event and was still
    /// at work on when the burst began. Prefers presses that no client has received, if there are
    /// enough of them.
    fn take(&mut self, count: usize, sent: Sent<'_>) -> Vec<DevicePress> {
        let fitting = self.fitting(self.next.get(&sent.0).copied().unwrap_or(0), sent);
        let new: Vec<usize> =
            fitting.clone().filter(|index| !self.presses[*index].1).take(count).collect();
        let chosen = if new.len() == count { new } else { fitting.take(count).collect() };
        chosen.into_iter().map(|index| self.deliver(index, sent.0)).collect()
    }

    /// Returns one such press that no client has received, even if the client has received later
    /// ones.
    fn take_new(&mut self, sent: Sent<'_>) -> Option<DevicePress> {
        let new = self.fitting(0, sent).find(|index| !self.presses[*index].1)?;
        Some(self.deliver(new, sent.0))
    }

    /// Returns the time of the earliest press before `at` that no client has received, after the
    /// last one that some client has.
    fn take_held(&mut self, at: Nanos) -> Option<Nanos> {
        let after = self.presses.partition_point(|(press, _)| press.had() <= at);
        let before = &mut self.presses[..after];
        let last = before.iter().rposition(|(_, is_received)| *is_received);
        let (press, is_received) = before.get_mut(last.map_or(0, |last| last + 1))?;
        *is_received = true;
        Some(press.at)
    }

    /// Returns the indices of matching presses from `next` on.
    fn fitting(&self, next: usize, (_, part, burst): Sent<'_>) -> Range<usize> {
        let since = burst.start.before(SLACK);
        let first = self.presses.partition_point(|(press, _)| press.until < since).max(next);
        let last = self.presses.partition_point(|(press, _)| press.had() <= part.ts.after(SLACK));
        first..last.min(first.saturating_add(FITTING_MAX))
    }

    fn deliver(&mut self, index: usize, stream: usize) -> DevicePress {
        self.next.insert(stream, index + 1);
        let (press, is_received) = &mut self.presses[index];
        *is_received = true;
        *press
    }
}

/// Returns the time of a press that another client received, if that client then woke the server
/// for this burst, and the client's thread that did.
fn handed_on(
    recording: &Recording,
    deliveries: &[Delivery],
    device: InputDeviceKind,
    stream: usize,
    burst: &Burst,
) -> Option<(Nanos, Tid)> {
    let Wake::Task(by) = burst.wake else { return None };
    let since = recording.burst(by, burst.start).start;
    let mut before = deliveries.iter().rev().take(HANDED_MAX);
    let first = before.find(|delivery| {
        let taken = delivery.dequeued.filter(|(at, _)| (since..=burst.start).contains(at));
        delivery.stream != stream
            && device_of(delivery.class) == device
            && taken.is_some_and(|(_, tid)| tid == by)
    });
    first.map(|delivery| (delivery.input, by))
}

/// Returns the client that released frozen input in the burst that sent an event: by a request, or
/// by its exit.
fn released(recording: &Recording, part: &Part, burst: &Burst) -> Option<(Nanos, Tid)> {
    let request = recording.messages.released(part.tid, burst.start.before(SLACK), part.ts);
    request.or_else(|| {
        let Wake::Task(by) = burst.wake else { return None };
        let later = recording.timeline.at(by, burst.start.after(LEAVES))?;
        (later.segment.state == ThreadState::Absent).then_some((burst.start, by))
    })
}

/// Returns the time of a press that a client held back until its release: one that it received
/// itself, or the earliest that no client has received.
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
    own.map(|delivery| delivery.input).or_else(|| {
        queues.iter_mut().find_map(|queues| queues.get_mut(&(server, device))?.take_held(at))
    })
}

impl DevicePress {
    /// Returns the class of a press of this device; wheels are not distinguished from buttons.
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

pub(crate) fn delivery(
    class: InputClass,
    stream: &Stream,
    place: PartPlace,
    part: &Part,
    input: Nanos,
) -> Delivery {
    let dequeued =
        stream.receipt(Side::EventSent, place.part).map(|dequeued| (dequeued.ts, dequeued.tid));
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

/// Returns the button releases that were delivered to clients. They need no visible answer, but
/// most programs act on them.
pub(crate) fn releases(recording: &Recording) -> Vec<Delivery> {
    let mut deliveries = Vec::new();
    for (index, stream) in recording.messages.streams().iter().enumerate() {
        let majors = recording.messages.majors(stream);
        for (part, sent) in stream.side(Side::EventSent).iter().enumerate() {
            let mut words = recording.messages.words(sent).iter().take(WORDS_MAX);
            if words.any(|word| majors.is_button_release(*word)) {
                let input = recording.burst(sent.tid, sent.ts).start;
                let place = PartPlace { stream: index, part };
                deliveries.push(delivery(InputClass::Click, stream, place, sent, input));
            }
        }
    }
    deliveries
}

/// Returns the event parts that contain input, by time.
fn sends(recording: &Recording) -> Vec<(PartPlace, &Stream, &Part)> {
    let mut sends = Vec::new();
    for (index, stream) in recording.messages.streams().iter().enumerate() {
        let parts = stream.side(Side::EventSent).iter().enumerate();
        let with_input =
            parts.filter(|(_, part)| classes(recording, stream, part).next().is_some());
        sends.extend(
            with_input.map(|(part, sent)| (PartPlace { stream: index, part }, stream, sent)),
        );
    }
    sends.sort_by_key(|(place, _, part)| (part.ts, *place));
    sends
}

/// Returns the event parts that were dequeued before their send was recorded, and so could not be
/// read; by time.
fn unread(recording: &Recording) -> Vec<(PartPlace, &Stream, &Part)> {
    let mut unread = Vec::new();
    for (index, stream) in recording.messages.streams().iter().enumerate() {
        for (part, sent) in
            stream.side(Side::EventSent).iter().enumerate().filter(|(_, sent)| sent.is_opaque())
        {
            let dequeued =
                stream.receipt(Side::EventSent, part).filter(|dequeued| dequeued.ts <= sent.ts);
            unread.extend(dequeued.map(|_| (PartPlace { stream: index, part }, stream, sent)));
        }
    }
    unread.sort_by_key(|(place, _, part)| (part.ts, *place));
    unread
}

/// Returns the classes of the presses in a part; motions in one part count as one.
fn classes<'a>(
    recording: &'a Recording,
    stream: &'a Stream,
    part: &'a Part,
) -> impl Iterator<Item = InputClass> {
    let majors = recording.messages.majors(stream);
    let words = recording.messages.words(part).iter().take(WORDS_MAX);
    let mut moved = false;
    words.filter_map(|word| majors.input_class(*word)).filter(move |class| {
        let again = *class == InputClass::Motion && moved;
        moved |= *class == InputClass::Motion;
        !again
    })
}

/// Returns `true` if the presses of a class in a part are known only from their shape.
fn is_inferred(recording: &Recording, part: &Part, class: InputClass) -> bool {
    let words = recording.messages.words(part).iter().take(WORDS_MAX);
    let mut inferred = words.filter(|word| word.is_inferred());
    inferred.any(|word| word.act().and_then(class_of) == Some(class))
}

fn injected_queues(recording: &Recording) -> Queues {
    queues(injected(recording))
}

/// Returns the presses of input devices, which every display may have received; wheels count as
/// buttons.
fn device_queues(recording: &Recording) -> Queues {
    let mut presses: Vec<DevicePress> = recording.inputs.iter().filter_map(device_press).collect();
    presses.sort_by_key(|press| press.at);
    let stamps: Vec<Nanos> = presses.iter().map(|press| press.at).collect();
    let servers: BTreeSet<Pid> =
        recording.messages.streams().iter().map(|stream| stream.server).collect();
    let servers = servers.into_iter().filter(|_| !presses.is_empty()).take(SERVERS_MAX);
    let readers = servers.map(|server| (server, InputReader::find(recording, server, &stamps)));
    queues(readers.flat_map(|(server, reader)| {
        presses.iter().map(move |press| {
            let reading = reader.reading(press.at);
            (server, DevicePress { reached: reading.from, until: reading.until, ..*press })
        })
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

/// Returns every press that a client injected, with its server.
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
    let dequeued = stream.receipt(Side::RequestSent, index);
    let reached = dequeued.map(|dequeued| dequeued.ts);
    let before = index.checked_sub(1).and_then(|index| stream.side(Side::RequestSent).get(index));
    let before = before.map_or(Nanos(0), |part| part.ts);
    let words = recording.messages.words(part).iter().filter_map(|word| majors.injects(*word));
    words.map(move |device| {
        let press = DevicePress {
            device,
            at: reached.map_or(part.ts, |reached| part.ts.min(reached)),
            reached,
            until: reached.unwrap_or(Nanos(u64::MAX)),
            by: Some(part.tid),
            server: dequeued.map(|dequeued| dequeued.tid),
            before,
            through: None,
        };
        (stream.server, press)
    })
}

/// Returns the time of a press. The send of an injector that is preempted after it wakes the server
/// is recorded late: then the wakeup is the better time, unless an earlier send caused it.
fn begin(recording: &Recording, press: &DevicePress, burst: &Burst) -> Nanos {
    match press.by {
        Some(by)
            if burst.wake == Wake::Task(by)
                && press.before < burst.start
                && burst.start < press.at
                && lost_its_cpu(recording, by, burst.start, press.at) =>
        {
            burst.start
        }
        _ => press.at,
    }
}

fn lost_its_cpu(recording: &Recording, tid: Tid, lo: Nanos, hi: Nanos) -> bool {
    let spans = recording.timeline.overlapping(tid, lo, hi);
    let mut states =
        spans.map(|span| span.segment.state).take_while(|state| *state != ThreadState::Blocked);
    states.any(|state| state == ThreadState::Runnable)
}
