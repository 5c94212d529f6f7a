// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the person did, and which client was told of it.
//!
//! Input reaches a display server as XTEST requests of some client or as events of input devices; it
//! leaves the server as events to clients. Both sides are joined in order, within the burst of the
//! server that handled the input; where no input is known its time is the begin of that burst.

use crate::bursts::{Burst, Wake};
use crate::messages::{Part, Place, Side, Stream};
use crate::protocol::{Device, device_of};
use crate::recording::Recording;
use crate::timeline::State;
use std::collections::{BTreeSet, HashMap};
use tipme_measure::Class;
use tipme_record::records::Input;
use tipme_record::{Nanos, Pid, Tid};

/// A press or motion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Press {
    pub device: Device,
    /// When the person acted: the device's time, or the send of the request that injects it.
    pub at: Nanos,
    /// When the server had it; `None` where it had not at the mark.
    pub reached: Option<Nanos>,
    /// The thread that injected it.
    pub by: Option<Tid>,
    /// The server thread that took the request.
    pub server: Option<Tid>,
}

/// A press or motion that a client was told of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Told {
    pub class: Class,
    pub client: Pid,
    pub input: Nanos,
    /// When the server sent the event, and the thread that did.
    pub sent: Nanos,
    pub server: Tid,
    pub stream: usize,
    /// When the client took it, and the thread that did.
    pub taken: Option<(Nanos, Tid)>,
}

/// Records of one instant on two CPUs may be this far apart.
const SLACK: Nanos = Nanos(50_000);

/// A device's event may precede the wake-up of the server by this much.
const DEVICE_SLACK: Nanos = Nanos::from_millis(5);

/// One part tells of at most this many presses; and of one motion.
const WORDS_MAX: usize = 64;

/// Presses of one device in the order in which the server had them.
struct Queue {
    presses: Vec<Press>,
    /// How long before a burst of the server its first press may be.
    slack: Nanos,
}

type Queues = HashMap<(Pid, Device), Queue>;

/// All presses that clients were told of, by the time of the event.
pub fn told(recording: &Recording) -> Vec<Told> {
    let queues = [injected_queues(recording), device_queues(recording)];
    let mut cursors: HashMap<(usize, Device, usize), usize> = HashMap::new();
    let mut told = Vec::new();
    for (place, stream, part) in sends(recording) {
        let burst = recording.burst(part.tid, part.ts);
        for class in classes(recording, stream, part) {
            let device = device_of(class);
            let press = queues.iter().enumerate().find_map(|(kind, queues)| {
                let cursor = cursors.entry((place.stream, device, kind)).or_default();
                queues.get(&(stream.server, device))?.next(cursor, part, &burst)
            });
            let input = press.map_or(burst.start, |press| begin(recording, &press, &burst));
            told.push(tell(class, stream, place, part, input));
        }
    }
    told
}

impl Queue {
    /// The next press for a client that the server had in this burst, up to the event.
    fn next(&self, cursor: &mut usize, part: &Part, burst: &Burst) -> Option<Press> {
        let since = burst.start.before(self.slack);
        let first = self.presses.partition_point(|press| press.had() < since).max(*cursor);
        let press = *self.presses.get(first).filter(|press| press.had() <= part.ts.after(SLACK))?;
        *cursor = first + 1;
        Some(press)
    }
}

impl Press {
    /// The class of a press of this device; a wheel cannot be told from a button.
    pub fn class(&self) -> Class {
        match self.device {
            Device::Keyboard => Class::Key,
            Device::Button => Class::Click,
            Device::Pointer => Class::Motion,
        }
    }

    fn had(&self) -> Nanos {
        self.reached.unwrap_or(Nanos(u64::MAX))
    }
}

fn tell(class: Class, stream: &Stream, place: Place, part: &Part, input: Nanos) -> Told {
    let taken = stream.taken(Side::EventSent, place.part).map(|(_, taken)| (taken.ts, taken.tid));
    let sent = taken.map_or(part.ts, |(at, _)| part.ts.min(at));
    let input = input.min(sent);
    Told { class, client: stream.client, input, sent, server: part.tid, stream: place.stream, taken }
}

/// Event parts with input in them, by time.
fn sends(recording: &Recording) -> Vec<(Place, &Stream, &Part)> {
    let mut sends = Vec::new();
    for (index, stream) in recording.messages.streams().iter().enumerate() {
        let parts = stream.side(Side::EventSent).iter().enumerate();
        let with_input = parts.filter(|(_, part)| classes(recording, stream, part).next().is_some());
        sends.extend(with_input.map(|(part, sent)| (Place { stream: index, part }, stream, sent)));
    }
    sends.sort_by_key(|(place, _, part)| (part.ts, *place));
    sends
}

/// The classes of the presses in a part; motions of one part are one.
fn classes<'a>(recording: &'a Recording, stream: &'a Stream, part: &'a Part) -> impl Iterator<Item = Class> {
    let majors = recording.messages.majors(stream);
    let words = recording.messages.words(part).iter().take(WORDS_MAX);
    let mut moved = false;
    words.filter_map(|word| majors.input_class(*word)).filter(move |class| {
        let again = *class == Class::Motion && moved;
        moved |= *class == Class::Motion;
        !again
    })
}

fn injected_queues(recording: &Recording) -> Queues {
    queues(injected(recording), SLACK)
}

/// The presses of input devices, which every display may have got; wheels are buttons.
fn device_queues(recording: &Recording) -> Queues {
    let servers: BTreeSet<Pid> = recording.messages.streams().iter().map(|stream| stream.server).collect();
    let presses = recording.inputs.iter().filter_map(device_press);
    queues(presses.flat_map(|press| servers.iter().map(move |server| (*server, press))), DEVICE_SLACK)
}

fn queues(presses: impl Iterator<Item = (Pid, Press)>, slack: Nanos) -> Queues {
    let mut queues = Queues::new();
    for (server, press) in presses {
        let queue = queues.entry((server, press.device)).or_insert(Queue { presses: Vec::new(), slack });
        queue.presses.push(press);
    }
    queues.values_mut().for_each(|queue| queue.presses.sort_by_key(|press| (press.had(), press.at)));
    queues
}

fn device_press(input: &Input) -> Option<Press> {
    let device = match (input.class, input.press) {
        (0, 1) => Device::Keyboard,
        (1, 1) | (3, _) => Device::Button,
        (2, _) => Device::Pointer,
        _ => return None,
    };
    Some(Press { device, at: input.head.ts, reached: Some(input.head.ts), by: None, server: None })
}

/// Every press that a client injected, with the server.
pub fn injected(recording: &Recording) -> impl Iterator<Item = (Pid, Press)> {
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
) -> impl Iterator<Item = (Pid, Press)> + 'a {
    let majors = recording.messages.majors(stream);
    let taken = stream.taken(Side::RequestSent, index).map(|(_, taken)| (taken.ts, taken.tid));
    let words = recording.messages.words(part).iter().filter_map(|word| majors.injects(*word));
    words.map(move |device| {
        let at = taken.map_or(part.ts, |(taken, _)| part.ts.min(taken));
        let reached = taken.map(|(at, _)| at);
        (stream.server, Press { device, at, reached, by: Some(part.tid), server: taken.map(|(_, server)| server) })
    })
}

/// When a press was made. An injector that loses its CPU after waking the server is recorded late:
/// the wake-up is then the better time.
fn begin(recording: &Recording, press: &Press, burst: &Burst) -> Nanos {
    match press.by {
        Some(by) if burst.wake == Wake::Task(by) && burst.start < press.at => {
            if lost_its_cpu(recording, by, burst.start, press.at) { burst.start } else { press.at }
        }
        _ => press.at,
    }
}

fn lost_its_cpu(recording: &Recording, tid: Tid, lo: Nanos, hi: Nanos) -> bool {
    let first = recording.timeline.at(tid, lo).map_or(0, |span| span.index);
    let spans = (first..).map_while(|index| recording.timeline.span(tid, index)).take_while(|span| span.start < hi);
    let mut states = spans.map(|span| span.segment.state).take_while(|state| *state != State::Blocked);
    states.any(|state| state == State::Runnable)
}
