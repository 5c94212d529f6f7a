// SPDX-License-Identifier: MIT OR Apache-2.0
//! Starts: from an input to the first prompt or window of the program that it started, through
//! launchers, buses, service managers and wrappers.
//!
//! The new process comes from the program that received the input, or from one that this program
//! asked. It is ready for the user when it first reads its terminal, or has filled its first
//! window.

use crate::decode::messages::Side;
use crate::decode::objects::Act;
use crate::join::answer::{COMPLETED, Interaction, Reached, Task};
use crate::join::drawing_cause::Hop;
use crate::join::inputs::Delivery;
use crate::join::late_answers::AnsweringThreads;
use crate::timeline::pauses::Pause;
use crate::timeline::recording::Recording;
use crate::timeline::tasks::Life;
use crate::timeline::threads::ThreadState;
use std::collections::{BTreeMap, BTreeSet};
use tipme_measure::InputClass;
use tipme_record::{Nanos, Pid, Tid};

/// Maximum time from an input to the first process that it starts.
const STARTED_MAX: Nanos = Nanos::from_secs(1);

/// Maximum time from the request to show a window to its first drawing.
const SHOWN_MAX: Nanos = Nanos::from_secs(60);

/// Maximum number of ancestors of a new process that are searched.
const LINE_MAX: usize = 16;

/// Receipts of keys and clicks by each program.
pub(super) type Presses = BTreeMap<Pid, BTreeSet<Nanos>>;

/// A new process, and the time at which it was ready for the user.
struct ProgramStart<'a> {
    life: &'a Life,
    ready: Nanos,
}

/// Origin of a start: the program that received an input and the time, or a compositor that started
/// it for a press of its own.
type Origin = (Pid, Nanos);

/// Finds the starts in a recording, by their origin.
pub(crate) fn starts(recording: &Recording, deliveries: &[Delivery]) -> BTreeMap<Origin, Reached> {
    let inputs = presses(deliveries);
    let mut found: BTreeMap<Origin, Reached> = BTreeMap::new();
    for start in prompts(recording).chain(windows(recording, &inputs)) {
        let Some((client, at)) = origin(recording, &inputs, start.life) else { continue };
        let hops = vec![Hop::new(start.life.tid, at, start.ready)];
        let reached = Reached { task: Task::Start, ..Reached::completed(start.ready, hops) };
        let last = found.entry((client, at)).or_insert_with(|| reached.clone());
        if reached.at > last.at {
            *last = reached;
        }
    }
    found
}

/// Returns the starts by compositors, which pass their own keys and clicks to no client: for a
/// shortcut, or an icon that they draw themselves.
pub(crate) fn by_compositors(
    recording: &Recording,
    starts: BTreeMap<Origin, Reached>,
) -> Vec<Interaction> {
    let streams = recording.messages.streams();
    let started = starts.into_iter().filter_map(|((client, at), reached)| {
        let stream = streams.iter().position(|stream| stream.server == client)?;
        let server = Tid(client.0);
        let delivery = Delivery {
            class: InputClass::Key,
            client,
            input: at,
            sent: at,
            server,
            stream,
            dequeued: Some((at, server)),
            released: None,
            inferred: false,
            repeated: false,
        };
        Some(Interaction::open(delivery, reached.at).until(&reached, recording.mark))
    });
    started.collect()
}

pub(super) fn presses(deliveries: &[Delivery]) -> Presses {
    let mut presses = Presses::new();
    for delivery in deliveries.iter().filter(|delivery| delivery.class != InputClass::Motion) {
        presses.entry(delivery.client).or_default().extend(delivery.dequeued.map(|(at, _)| at));
    }
    presses
}

/// Returns the shells in new terminals, up to their first wait for input: each leads a session and
/// reads a terminal.
fn prompts(recording: &Recording) -> impl Iterator<Item = ProgramStart<'_>> {
    let lives = recording
        .tasks
        .lives()
        .iter()
        .filter(|life| life.from > Nanos(0) && life.tid.0 == life.pid.0);
    let shells =
        lives.filter(|life| life.session == life.pid && recording.reads_terminal(life.tid));
    shells.map(|life| ProgramStart { life, ready: first_wait(recording, life) })
}

/// Returns the time at which a process first waited for terminal input; the mark if it did not.
fn first_wait(recording: &Recording, life: &Life) -> Nanos {
    recording.pause_after(life.tid, life.from.after(Nanos(1)), Pause::EventWait)
}

/// Returns the programs started within the recording, up to their first window and the work they
/// had begun for it.
fn windows<'a>(
    recording: &'a Recording,
    inputs: &'a Presses,
) -> impl Iterator<Item = ProgramStart<'a>> {
    let clients: BTreeSet<Pid> =
        recording.messages.streams().iter().map(|stream| stream.client).collect();
    clients.into_iter().filter_map(move |client| {
        let life =
            recording.tasks.process(client, recording.mark).filter(|life| life.from > Nanos(0))?;
        let shown = first_window(recording, client)?;
        let used = inputs.get(&client).and_then(|taken| taken.range(shown..).next());
        let ready = filled(recording, client, shown, used.copied().unwrap_or(recording.mark));
        Some(ProgramStart { life, ready })
    })
}

/// Returns the time at which a program had filled its first window, shown at `shown`: the last
/// drawing before `until` that followed a noticeable gap in which the program worked all the time.
fn filled(recording: &Recording, client: Pid, shown: Nanos, until: Nanos) -> Nanos {
    let drawn = recording.messages.streams_of(client).flat_map(|stream| {
        let sent = stream.side(Side::RequestSent).iter();
        sent.filter(|part| recording.messages.draws(stream, part)).map(|part| part.ts)
    });
    let mut drawn: Vec<Nanos> = drawn.filter(|at| (shown..until).contains(at)).collect();
    drawn.sort_unstable();
    let threads = AnsweringThreads::all(recording, client);
    let (mut last, mut ready) = (shown, shown);
    for at in drawn {
        if at.since(last) > COMPLETED {
            if !threads.busy_throughout(recording, last, at) {
                break;
            }
            ready = at;
        }
        last = at;
    }
    ready
}

/// Returns the time of a process's first drawing after its request to show its first window:
/// earlier drawings are invisible, and a window manager may delay it. Without a drawing within
/// [`SHOWN_MAX`], the request counts. A Wayland client makes the request by drawing.
pub(crate) fn first_window(recording: &Recording, pid: Pid) -> Option<Nanos> {
    let messages = &recording.messages;
    let mapped = messages.streams_of(pid).filter_map(|stream| {
        let mut sent = stream.side(Side::RequestSent).iter();
        let first = sent.find(|part| {
            messages.words(part).iter().any(|word| word.maps_window())
                || messages.has_act(part, Act::Commit) && messages.draws(stream, part)
        });
        first.map(|part| part.ts)
    });
    let mapped = mapped.min()?;
    let drawn = messages.streams_of(pid).filter_map(|stream| {
        let sent = stream.side(Side::RequestSent);
        let after = &sent[sent.partition_point(|part| part.ts < mapped)..];
        after.iter().find(|part| recording.messages.draws(stream, part)).map(|part| part.ts)
    });
    drawn.min().filter(|drawn| drawn.since(mapped) < SHOWN_MAX).or(Some(mapped))
}

/// Returns the input that a process comes from: the last one within a second before the first new
/// process of its line, received by an ancestor or by a program that had asked that ancestor. For a
/// compositor without such a request, it is a key or click of its own just before.
fn origin(recording: &Recording, inputs: &Presses, life: &Life) -> Option<Origin> {
    let mut born = life.from;
    let line = std::iter::successors(creator(recording, life), |above| creator(recording, above));
    for above in line.take(LINE_MAX) {
        let is_new = above.from > Nanos(0) && born.since(above.from) < STARTED_MAX;
        if is_new && !inputs.contains_key(&above.pid) {
            born = born.min(above.from);
            continue;
        }
        let lo = born.before(STARTED_MAX);
        let own = last_input(inputs, above.pid, lo, born).map(|at| (above.pid, at));
        let is_server = recording.messages.is_server(above.pid);
        return own
            .or_else(|| asked_by(recording, inputs, above.pid, lo, born))
            .or(is_server.then_some((above.pid, born)));
    }
    None
}

/// Returns the process that created another one, which may no longer be its parent.
fn creator<'a>(recording: &'a Recording, life: &Life) -> Option<&'a Life> {
    let first = recording.timeline.spans(life.tid).next();
    let by = first
        .filter(|span| span.segment.state == ThreadState::Absent)
        .and_then(|span| span.task_waker());
    let pid = by.map_or(life.parent, |by| recording.tasks.pid(by, life.from));
    recording.tasks.process(pid, life.from).filter(|above| above.pid != life.pid)
}

fn last_input(inputs: &Presses, pid: Pid, lo: Nanos, hi: Nanos) -> Option<Nanos> {
    inputs.get(&pid)?.range(lo..=hi).next_back().copied()
}

/// Returns the program with the latest input among those that received one and then asked
/// `starter`, directly or through other processes, before `hi`.
fn asked_by(
    recording: &Recording,
    inputs: &Presses,
    starter: Pid,
    lo: Nanos,
    hi: Nanos,
) -> Option<(Pid, Nanos)> {
    let recent = inputs.keys().filter_map(|pid| Some((*pid, last_input(inputs, *pid, lo, hi)?)));
    let asked = recent.filter(|(pid, at)| recording.brokers(*pid, *at, hi).contains(&starter));
    asked.max_by_key(|(_, at)| *at)
}
