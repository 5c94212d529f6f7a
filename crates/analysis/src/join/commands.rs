// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands: what a key starts behind a terminal, until the terminal is read again.
//!
//! A terminal is a display server in small, and the program that reads it is its client. A shell that waits for its
//! child does not read; a multiplexer (tmux, screen) reads one terminal and writes to another, whose reader counts.

use crate::join::answer::{COMPLETED, Interaction, Milestone, Reached, Task};
use crate::join::drawing_cause::Hop;
use crate::join::inputs::Delivery;
use crate::join::starts::first_window;
use crate::timeline::pauses::Pause;
use crate::timeline::recording::Recording;
use crate::timeline::tasks::Life;
use crate::timeline::threads::{Span, ThreadState};
use crate::timeline::waits::Waited;
use tipme_record::{Nanos, Tid};

/// Quicker commands are not looked at.
const COMMAND_MIN: Nanos = Nanos::from_millis(300);

/// What a terminal emulator writes belongs to a key that it dequeued this long ago, at most.
const HANDLED_MAX: Nanos = Nanos::from_secs(5);

/// A terminal emulator hands a key on within this time after it has dequeued it.
const WRITTEN_MAX: Nanos = Nanos::from_millis(2);

/// A multiplexer hands it on within this time.
const RELAYED_MAX: Nanos = Nanos::from_millis(50);

/// Wake-ups by the thread that took a key that are looked at.
const WAKES_MAX: usize = 64;

/// So many keys that a program took one by one tell that its terminal does not collect lines.
const KEYS_MIN: usize = 3;

/// Multiplexers inside one another, at most.
const RELAYS_MAX: usize = 3;

/// The stays on the way from a write to a terminal to the end of what it started, the latest first.
struct Way {
    end: Nanos,
    hops: Vec<Hop>,
}

/// The command that an input started, where it took long: until whoever reads the terminal reads it again.
pub(crate) fn command(recording: &Recording, delivery: &Delivery, handled: Nanos) -> Option<Reached> {
    let (at, tid) = delivery.dequeued?;
    let until = handled.max(at.after(WRITTEN_MAX)).min(at.after(HANDLED_MAX));
    let ways =
        writers(recording, tid, at).flat_map(|(from, writer)| begun(recording, (tid, at), (writer, from), until));
    let Way { end, hops } = ways.max_by_key(|way| way.end)?;
    let task = hops.first().map_or(Task::Command, |last| task(recording, last));
    Some(Reached { milestone: Milestone::Completed, at: end, drawing: None, hops, noticed: COMPLETED, task })
}

/// The kind of work that a program behind a terminal did before it read that again.
fn task(recording: &Recording, last: &Hop) -> Task {
    if does_itself(recording, last) {
        return if waits_for_child(recording, last) { Task::Input } else { Task::Typed };
    }
    if is_own_account(recording, last) { Task::Prompt } else { Task::Command }
}

/// Returns `true` if a shell spent most of a stay on programs that it ran for a prompt, a completion or a function. Command
/// substitutions stay in the shell's process group, whereas a typed command comes first and gets a group of its own.
fn is_own_account(recording: &Recording, stay: &Hop) -> bool {
    let life = recording.tasks.life(stay.tid, stay.hi);
    let Some(shell) = life.filter(|life| life.from <= stay.lo) else { return false };
    let started = || children(recording, shell).filter(|child| child.from > stay.lo && child.from < stay.hi);
    let Some(from) = started().filter(|child| child.group == shell.group).map(|child| child.from).min() else {
        return false;
    };
    let end = started().filter(|child| child.from >= from).map(|child| child.until.min(stay.hi)).max();
    end.is_some_and(|end| end.since(from).0 * 2 >= stay.hi.since(stay.lo).0)
}

/// Whether a program that takes key after key from its terminal answers the person itself, as an editor does; a shell gives
/// the terminal to what it starts, in a process group of its own.
fn does_itself(recording: &Recording, stay: &Hop) -> bool {
    let Some(own) = recording.tasks.life(stay.tid, stay.hi) else { return false };
    let has_terminal = |child: &Life| child.session == own.session && child.group != own.group;
    !children(recording, own).any(has_terminal) && takes_keys(recording, stay.tid, stay.lo)
}

/// Whether it waited for a child that it had started meanwhile, for most of the time.
fn waits_for_child(recording: &Recording, stay: &Hop) -> bool {
    let awaited = |child: &Life| {
        let within = child.from > stay.lo && child.from < stay.hi;
        within && 2 * child.until.min(stay.hi).since(child.from).0 >= stay.hi.since(stay.lo).0
    };
    recording.tasks.life(stay.tid, stay.hi).is_some_and(|own| children(recording, own).any(awaited))
}

/// The process that was started in a terminal by an input: started by the one that read the terminal, the longest where there
/// are several, or itself the last on the way.
pub(crate) fn started<'a>(recording: &'a Recording, interaction: &Interaction) -> Option<&'a Life> {
    let last = interaction.hops.first()?;
    let reader = recording.tasks.pid(last.tid, last.hi);
    let is_new = |life: &&Life| life.from > interaction.delivery.input && life.from < interaction.end;
    let lasted = |life: &&Life| life.until.min(interaction.end).since(life.from);
    let itself = recording.tasks.ancestors(reader, last.hi).take_while(is_new).last();
    let own = recording.tasks.process(reader, last.hi);
    itself.or_else(|| children(recording, own?).filter(is_new).max_by_key(lasted))
}

fn children<'a>(recording: &'a Recording, own: &Life) -> impl Iterator<Item = &'a Life> + use<'a> {
    let pid = own.pid;
    recording.tasks.lives().iter().filter(move |life| life.parent == pid && life.tid.0 == life.pid.0)
}

/// Whether so many writes to its terminal each woke a thread before a time: a terminal that collects lines wakes nobody for a key.
fn takes_keys(recording: &Recording, reader: Tid, before: Nanos) -> bool {
    let keys = recording.terminals.written_to(reader, Nanos(0), before);
    keys.filter_map(|(writer, at)| woken(recording, writer, reader, at)).nth(KEYS_MIN - 1).is_some()
}

/// Who writes to the terminal after a key: the thread that dequeued it, one of its process that it then woke, or one that
/// that one woke.
pub(crate) fn writers(recording: &Recording, reader: Tid, at: Nanos) -> impl Iterator<Item = (Nanos, Tid)> {
    let own = recording.tasks.pid(reader, at);
    let woken = move |(at, tid): (Nanos, Tid)| {
        let woken = recording.wakes.by(tid, at, at.after(WRITTEN_MAX)).take(WAKES_MAX);
        woken.filter(move |(at, tid)| *tid != reader && recording.tasks.pid(*tid, *at) == own)
    };
    let further = woken((at, reader)).flat_map(woken).take(WAKES_MAX);
    let all = std::iter::once((at, reader)).chain(woken((at, reader))).chain(further);
    all.filter(|(_, tid)| recording.terminals.writes(*tid))
}

/// The ways on from the thread that took a key to a writer, and from there to the ends of commands that took long.
fn begun(recording: &Recording, taken: (Tid, Nanos), writer: (Tid, Nanos), until: Nanos) -> Vec<Way> {
    let ((reader, at), (tid, from)) = (taken, writer);
    let worked = recording.pause_after(tid, from.after(Nanos(1)), Pause::EventWait).min(at.after(HANDLED_MAX));
    let mut ways = follow(recording, tid, from, if tid == reader { until } else { worked }, RELAYS_MAX);
    ways.retain_mut(|way| {
        let begin = way.hops.last().map_or(way.end, |hop| hop.lo);
        way.hops.push(Hop::new(tid, from, begin));
        way.hops.extend((tid != reader).then_some(Hop::new(reader, at, from)));
        way.end.since(begin) >= COMMAND_MIN
    });
    ways
}

/// The ways on from a thread that writes to terminals.
fn follow(recording: &Recording, writer: Tid, lo: Nanos, hi: Nanos, relays: usize) -> Vec<Way> {
    let own = recording.tasks.pid(writer, lo);
    let readers = recording.terminals.reached(writer, lo, hi).into_iter();
    let other = |(reader, written): &(Tid, Nanos)| {
        let life = recording.tasks.life(*reader, *written);
        life.is_some_and(|life| life.pid != own && !life.is_kernel())
    };
    readers.filter(other).filter_map(|(reader, written)| read(recording, writer, reader, written, relays)).collect()
}

/// What a reader did with what was written, and those whom it handed it on to.
fn read(recording: &Recording, writer: Tid, reader: Tid, written: Nanos, relays: usize) -> Option<Way> {
    let woken = woken(recording, writer, reader, written)?;
    let end = recording.pause_after(reader, woken, Pause::EventWait);
    let (end, tid) = shown_below(recording, reader, woken, end).unwrap_or((end, reader));
    let (end, tid) = read_below(recording, reader, woken, end).unwrap_or((end, tid));
    let here = Way { end, hops: vec![Hop::new(tid, written, end)] };
    let relayed = relayed(recording, reader, woken, relays).map(|mut way| {
        let lo = way.hops.last().map_or(woken, |hop| hop.lo);
        way.hops.push(Hop::new(reader, written, lo));
        way
    });
    relayed.chain([here]).max_by_key(|way| way.end)
}

/// The ways on through a reader that writes to a further terminal, or wakes a thread of another process that does.
fn relayed(recording: &Recording, reader: Tid, woken: Nanos, relays: usize) -> impl Iterator<Item = Way> {
    let until = if relays == 0 { woken } else { woken.after(RELAYED_MAX) };
    let own = recording.tasks.pid(reader, woken);
    let itself = std::iter::once((woken, reader)).filter(move |_| relays > 0);
    let wakes = recording.wakes.by(reader, woken, until);
    let others = wakes.filter(move |(at, wakee)| recording.tasks.pid(*wakee, *at) != own);
    let writers = itself.chain(others).filter(|(_, tid)| recording.terminals.writes(*tid));
    writers.flat_map(move |(at, writer)| follow(recording, writer, at, at.after(RELAYED_MAX), relays.saturating_sub(1)))
}

/// When the reader that waited for its terminal, or was stopped, got what was written. A terminal that collects lines
/// wakes nobody before the line ends: then a later write does.
fn woken(recording: &Recording, writer: Tid, reader: Tid, written: Nanos) -> Option<Nanos> {
    let span = recording.timeline.at(reader, written)?;
    let waits = recording.is_event_wait(&span) && span.segment.state == ThreadState::Blocked;
    let wakes = || !recording.terminals.writes_again(writer, reader, written, span.end);
    (waits && wakes() || is_stopped(recording, &span)).then_some(span.end)
}

fn is_stopped(recording: &Recording, span: &Span) -> bool {
    span.segment.state == ThreadState::Blocked && recording.waits.kind(span) == Waited::Stopped
}

/// When a program that was started below a reader, and takes input itself, waited for it after it had shown a window.
fn shown_below(recording: &Recording, reader: Tid, woken: Nanos, end: Nanos) -> Option<(Nanos, Tid)> {
    if end.since(woken) < COMMAND_MIN {
        return None;
    }
    let shell = recording.tasks.pid(reader, woken);
    let lives = recording.tasks.lives().iter().filter(|life| life.from > woken && life.from < end && life.pid != shell);
    let takes = lives.filter(|life| recording.takes_display_input(life.tid));
    let below = takes.filter(|life| recording.tasks.descends(life.pid, shell, life.from.after(Nanos(1))));
    let ready = |life: &Life| {
        Some((recording.pause_after(life.tid, first_window(recording, life.pid)?, Pause::EventWait), life.tid))
    };
    below.filter_map(ready).filter(|(at, _)| *at < end).min()
}

/// When a program below a reader first waited for input on the same terminal (a pager, an interpreter).
fn read_below(recording: &Recording, reader: Tid, woken: Nanos, end: Nanos) -> Option<(Nanos, Tid)> {
    let shell = recording.tasks.pid(reader, woken);
    let fellows = recording.terminals.fellows(reader).filter(|tid| *tid != reader);
    let new = recording.tasks.lives().iter().filter(|life| life.from > woken && life.from < end);
    // A session has one terminal; what reads another one, as a daemon may, asks elsewhere.
    let session = recording.tasks.process(shell, end).map(|life| life.session);
    let here = new.filter(|life| Some(life.session) == session);
    let quiet = here.map(|life| life.tid).filter(|tid| recording.reads_terminal(*tid));
    let ready = fellows.chain(quiet).filter_map(|tid| {
        let life = recording.tasks.life(tid, end)?;
        let below = life.pid != shell && recording.tasks.descends(life.pid, shell, end);
        below.then(|| (recording.pause_after(tid, life.from.after(Nanos(1)).max(woken), Pause::EventWait), tid))
    });
    ready.filter(|(at, _)| *at < end).min()
}
