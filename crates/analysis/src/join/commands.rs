// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands: the work that a key starts behind a terminal, until the terminal is read again.
//!
//! A terminal is a small display server, and the program that reads it is its client. A shell that
//! waits for its child does not read; a multiplexer (tmux, screen) reads one terminal and writes to
//! another one, and the reader of the latter counts.

use crate::join::answer::{Interaction, Reached, Task};
use crate::join::drawing_cause::Hop;
use crate::join::inputs::Delivery;
use crate::join::starts::first_window;
use crate::timeline::packets::in_softirq;
use crate::timeline::pauses::Pause;
use crate::timeline::recording::Recording;
use crate::timeline::tasks::Life;
use crate::timeline::threads::Span;
use crate::timeline::waits::Waited;
use std::collections::BTreeMap;
use tipme_record::{Nanos, Pid, Tid};

/// Minimum duration of a command that is considered.
const COMMAND_MIN: Nanos = Nanos::from_millis(300);

/// Maximum time from the receipt of a key by a terminal emulator to a write that belongs to the
/// key.
const HANDLED_MAX: Nanos = Nanos::from_secs(5);

/// Maximum time from the receipt of a key by a terminal emulator to its write to the terminal.
const WRITTEN_MAX: Nanos = Nanos::from_millis(2);

/// Maximum time for which a multiplexer holds a key.
const RELAYED_MAX: Nanos = Nanos::from_millis(50);

/// Maximum time for which it holds back a key that may begin a sequence, such as Escape.
const HELD_MAX: Nanos = Nanos::from_secs(3);

/// Maximum number of wakeups considered by the thread that received a key.
const WAKES_MAX: usize = 64;

/// Minimum number of keys received one by one for a terminal in non-canonical mode, which does not
/// collect lines.
const KEYS_MIN: usize = 3;

/// Maximum number of nested multiplexers.
const RELAYS_MAX: usize = 3;

/// Hops from a write to a terminal to the end of the work that it started, latest first.
struct Way {
    end: Nanos,
    hops: Vec<Hop>,
}

/// Returns the long command that an input started: until the reader of the terminal reads it again.
pub(crate) fn command(
    recording: &Recording,
    delivery: &Delivery,
    handled: Nanos,
) -> Option<Reached> {
    let (at, tid) = delivery.dequeued?;
    let until = handled.max(at.after(WRITTEN_MAX)).min(at.after(HANDLED_MAX));
    let ways = writers(recording, tid, at)
        .flat_map(|(from, writer)| begun(recording, (tid, at), (writer, from), until));
    let Way { end, hops } = ways.max_by_key(|way| way.end)?;
    let task = hops.first().map_or(Task::Command, |last| task(recording, last));
    Some(Reached { task, ..Reached::completed(end, hops) })
}

/// Returns the kind of work that a program behind a terminal did before it read the terminal again.
fn task(recording: &Recording, last: &Hop) -> Task {
    if answers_by_itself(recording, last) {
        return if waits_for_child(recording, last) { Task::Input } else { Task::Typed };
    }
    if runs_for_itself(recording, last) { Task::Prompt } else { Task::Command }
}

/// Returns `true` if a shell spent most of a stay on programs that it ran for a prompt, a
/// completion or a function. Command substitutions stay in the shell's process group, whereas a
/// typed command comes first and gets a group of its own.
fn runs_for_itself(recording: &Recording, stay: &Hop) -> bool {
    let life = recording.tasks.life(stay.tid, stay.hi);
    let Some(shell) = life.filter(|life| life.from <= stay.lo) else { return false };
    let started =
        children(recording, shell).filter(|child| child.from > stay.lo && child.from < stay.hi);
    let started: Vec<&Life> = started.collect();
    let own = started.iter().filter(|child| child.group == shell.group);
    let Some(from) = own.map(|child| child.from).min() else { return false };
    let later = started.iter().filter(|child| child.from >= from);
    let end = later.map(|child| child.until.min(stay.hi)).max();
    end.is_some_and(|end| end.since(from).0 * 2 >= stay.hi.since(stay.lo).0)
}

/// Returns `true` if a program that reads key after key from its terminal answers the user itself,
/// like an editor. A shell instead hands the terminal to the programs that it starts in process
/// groups of their own.
fn answers_by_itself(recording: &Recording, stay: &Hop) -> bool {
    let Some(own) = recording.tasks.life(stay.tid, stay.hi) else { return false };
    let hands_over = children(recording, own)
        .any(|child| child.session == own.session && child.group != own.group);
    !hands_over && takes_keys(recording, stay.tid, stay.lo)
}

/// Returns `true` if the program waited most of the time for a child that it started meanwhile.
fn waits_for_child(recording: &Recording, stay: &Hop) -> bool {
    let Some(own) = recording.tasks.life(stay.tid, stay.hi) else { return false };
    children(recording, own).any(|child| {
        let within = child.from > stay.lo && child.from < stay.hi;
        within && 2 * child.until.min(stay.hi).since(child.from).0 >= stay.hi.since(stay.lo).0
    })
}

/// Returns the process that an input started in a terminal: the longest-running new child of the
/// terminal's reader, or the reader itself, if it is new.
pub(crate) fn started<'a>(recording: &'a Recording, interaction: &Interaction) -> Option<&'a Life> {
    let last = interaction.hops.first()?;
    let reader = recording.tasks.pid(last.tid, last.hi);
    let (input, end) = (interaction.delivery.input, interaction.end);
    let line = recording.tasks.ancestors(reader, last.hi);
    let itself = line.take_while(|life| life.from > input && life.from < end).last();
    itself.or_else(|| {
        let children = children(recording, recording.tasks.process(reader, last.hi)?);
        let new = children.filter(|life| life.from > input && life.from < end);
        new.max_by_key(|life| life.until.min(end).since(life.from))
    })
}

fn children<'a>(recording: &'a Recording, own: &Life) -> impl Iterator<Item = &'a Life> + use<'a> {
    let pid = own.pid;
    recording
        .tasks
        .lives()
        .iter()
        .filter(move |life| life.parent == pid && life.tid.0 == life.pid.0)
}

/// Returns `true` if at least [`KEYS_MIN`] writes to the terminal before a time each woke the
/// reader: a terminal that collects lines wakes no thread for a single key.
fn takes_keys(recording: &Recording, reader: Tid, before: Nanos) -> bool {
    let keys = recording.terminals.written_to(reader, Nanos(0), before);
    keys.filter_map(|(writer, at)| woken(recording, writer, reader, at)).nth(KEYS_MIN - 1).is_some()
}

/// Returns the threads that write to a terminal after a key: the thread that dequeued it, threads
/// of its process that it woke, and threads that these woke in turn.
pub(crate) fn writers(
    recording: &Recording,
    reader: Tid,
    at: Nanos,
) -> impl Iterator<Item = (Nanos, Tid)> {
    let woken = woken_fellows(recording, (at, reader), reader);
    let further = woken_fellows(recording, (at, reader), reader)
        .flat_map(move |next| woken_fellows(recording, next, reader))
        .take(WAKES_MAX);
    let all = std::iter::once((at, reader)).chain(woken).chain(further);
    all.filter(|(_, tid)| recording.terminals.writes(*tid))
}

/// Returns the threads of its process, apart from the reader, that a thread woke soon after a time.
fn woken_fellows(
    recording: &Recording,
    (at, tid): (Nanos, Tid),
    reader: Tid,
) -> impl Iterator<Item = (Nanos, Tid)> {
    let own = recording.tasks.pid(tid, at);
    let woken = recording.wakes.by(tid, at, at.after(WRITTEN_MAX)).take(WAKES_MAX);
    woken.filter(move |(at, tid)| *tid != reader && recording.tasks.pid(*tid, *at) == own)
}

/// Returns the ways from the thread that received a key over a writer to the ends of long commands.
fn begun(
    recording: &Recording,
    taken: (Tid, Nanos),
    writer: (Tid, Nanos),
    until: Nanos,
) -> Vec<Way> {
    let ((reader, at), (tid, from)) = (taken, writer);
    let worked = recording
        .pause_after(tid, from.after(Nanos(1)), Pause::EventWait)
        .min(at.after(HANDLED_MAX));
    let mut ways =
        follow(recording, tid, from, if tid == reader { until } else { worked }, RELAYS_MAX);
    ways.retain_mut(|way| {
        let begin = way.hops.last().map_or(way.end, |hop| hop.lo);
        way.hops.push(Hop::new(tid, from, begin));
        way.hops.extend((tid != reader).then_some(Hop::new(reader, at, from)));
        way.end.since(begin) >= COMMAND_MIN
    });
    ways
}

/// Returns the ways on from a thread that writes to terminals.
fn follow(recording: &Recording, writer: Tid, lo: Nanos, hi: Nanos, relays: usize) -> Vec<Way> {
    let own = recording.tasks.pid(writer, lo);
    let mut readers = recording.terminals.reached(writer, lo, hi);
    readers.retain(|(reader, written)| {
        let life = recording.tasks.life(*reader, *written);
        life.is_some_and(|life| life.pid != own && !life.is_kernel())
    });
    // Any idle thread of a program may be the next to read: the first one woken gets the data.
    let mut first: BTreeMap<Pid, (Nanos, Tid, Nanos)> = BTreeMap::new();
    for (reader, written) in readers {
        let Some(woken) = woken(recording, writer, reader, written) else { continue };
        let got = (woken, reader, written);
        let earliest = first.entry(recording.tasks.pid(reader, written)).or_insert(got);
        *earliest = got.min(*earliest);
    }
    first.into_values().map(|got| read(recording, got, relays)).collect()
}

/// Returns the work of a reader on the data that woke it, or of the programs to which it relayed
/// the data, if they took longer.
fn read(
    recording: &Recording,
    (woken, reader, written): (Nanos, Tid, Nanos),
    relays: usize,
) -> Way {
    let end = recording.pause_after(reader, woken, Pause::EventWait);
    let (end, tid) = shown_below(recording, reader, woken, end).unwrap_or((end, reader));
    let (end, tid) = read_below(recording, reader, woken, end).unwrap_or((end, tid));
    let here = Way { end, hops: vec![Hop::new(tid, written, end)] };
    let relayed = relayed(recording, reader, woken, relays).into_iter().map(|mut way| {
        let lo = way.hops.last().map_or(woken, |hop| hop.lo);
        way.hops.push(Hop::new(reader, written, lo));
        way
    });
    relayed.fold(here, |longest, way| if way.end > longest.end { way } else { longest })
}

/// Returns the ways on over a reader that writes to another terminal, or wakes a thread of another
/// process that does.
fn relayed(recording: &Recording, reader: Tid, woken: Nanos, relays: usize) -> Vec<Way> {
    if relays == 0 {
        return Vec::new();
    }
    let until = woken.after(RELAYED_MAX);
    let own = recording.tasks.pid(reader, woken);
    let wakes = recording.wakes.by(reader, woken, until);
    let others = wakes.filter(|(at, wakee)| recording.tasks.pid(*wakee, *at) != own);
    let all = std::iter::once((woken, reader)).chain(others);
    let writers = all.filter(|(_, tid)| recording.terminals.writes(*tid));
    let mut ways: Vec<Way> = writers
        .flat_map(|(at, writer)| follow(recording, writer, at, at.after(RELAYED_MAX), relays - 1))
        .collect();
    let keys = recording.terminals.written_to(reader, Nanos(0), woken).next();
    let keyboard = keys.map(|(writer, at)| recording.tasks.pid(writer, at));
    let is_further = |way: &Way| {
        let next = way.hops.last().map(|hop| recording.tasks.pid(hop.tid, hop.lo));
        next != keyboard
    };
    if !ways.iter().any(is_further) {
        let held = held_until(recording, reader, woken).into_iter();
        let later =
            held.flat_map(|at| follow(recording, reader, at, at.after(RELAYED_MAX), relays - 1));
        ways.extend(later.filter(is_further));
    }
    ways
}

/// Returns the time at which a timer woke a reader from its next wait: it may have held a key back
/// until then, as the beginning of a sequence.
fn held_until(recording: &Recording, reader: Tid, woken: Nanos) -> Option<Nanos> {
    let rests = recording.pause_after(reader, woken, Pause::EventWait);
    let span = recording.timeline.at(reader, rests).filter(Span::is_blocked)?;
    let timed = span.task_waker().is_none() && !in_softirq(&span) && span.end < recording.mark;
    (timed && span.length() <= HELD_MAX).then_some(span.end)
}

/// Returns the time at which the reader, which waited for its terminal or was stopped, got the
/// written data. A terminal that collects lines wakes no thread before the end of the line: a later
/// write does.
fn woken(recording: &Recording, writer: Tid, reader: Tid, written: Nanos) -> Option<Nanos> {
    let span = recording.timeline.at(reader, written)?;
    let waits = recording.is_event_wait(&span) && span.is_blocked();
    let gets_it = waits && !recording.terminals.writes_again(writer, reader, written, span.end);
    (gets_it || is_stopped(recording, &span)).then_some(span.end)
}

fn is_stopped(recording: &Recording, span: &Span) -> bool {
    span.is_blocked() && recording.waits.kind(span) == Waited::Stopped
}

/// Returns the first event wait, after its first window, of a program started below a reader that
/// receives input itself.
fn shown_below(
    recording: &Recording,
    reader: Tid,
    woken: Nanos,
    end: Nanos,
) -> Option<(Nanos, Tid)> {
    if end.since(woken) < COMMAND_MIN {
        return None;
    }
    let shell = recording.tasks.pid(reader, woken);
    let lives = recording
        .tasks
        .lives()
        .iter()
        .filter(|life| life.from > woken && life.from < end && life.pid != shell);
    let takes = lives.filter(|life| recording.takes_display_input(life.tid));
    let below =
        takes.filter(|life| recording.tasks.descends(life.pid, shell, life.from.after(Nanos(1))));
    let ready = below.filter_map(|life| {
        let shown = first_window(recording, life.pid)?;
        Some((recording.pause_after(life.tid, shown, Pause::EventWait), life.tid))
    });
    ready.filter(|(at, _)| *at < end).min()
}

/// Returns the first event wait of a program below a reader that reads the same terminal (a pager,
/// an interpreter).
fn read_below(
    recording: &Recording,
    reader: Tid,
    woken: Nanos,
    end: Nanos,
) -> Option<(Nanos, Tid)> {
    let shell = recording.tasks.pid(reader, woken);
    let fellows = recording.terminals.fellows(reader).filter(|tid| *tid != reader);
    let new = recording.tasks.lives().iter().filter(|life| life.from > woken && life.from < end);
    // A session has one terminal; a program that reads another one, such as a daemon, has other
    // users.
    let session = recording.tasks.process(shell, end).map(|life| life.session);
    let here = new.filter(|life| Some(life.session) == session);
    let quiet = here.map(|life| life.tid).filter(|tid| recording.reads_terminal(*tid));
    let ready = fellows.chain(quiet).filter_map(|tid| {
        let life = recording.tasks.life(tid, end)?;
        let below = life.pid != shell && recording.tasks.descends(life.pid, shell, end);
        // A program that polls the terminal beside other files, and ended before anything was
        // typed, did not wait for that.
        let typed = || recording.terminals.written_to(reader, life.from, life.until);
        let takes = life.until >= end
            || recording.waits_for_nothing_but_terminal(tid)
            || typed().next().is_some();
        (below && takes).then(|| {
            (
                recording.pause_after(tid, life.from.after(Nanos(1)).max(woken), Pause::EventWait),
                tid,
            )
        })
    });
    ready.filter(|(at, _)| *at < end).min()
}
