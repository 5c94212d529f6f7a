// SPDX-License-Identifier: MIT OR Apache-2.0
//! Event waits: where a thread that takes input is while it has nothing to do.
//!
//! The sets of files that a thread polls are known only where they are small, so its event wait is learned: it is a wait in
//! which events find the thread again and again. Every toolkit has its own, a condition behind which another thread
//! polls among them.

use crate::decode::messages::{Side, Stream};
use crate::decode::parts::Part;
use crate::timeline::pauses::{EventWaits, Pause};
use crate::timeline::recording::Recording;
use crate::timeline::tasks::Life;
use crate::timeline::threads::{Span, ThreadState};
use crate::timeline::waits::{
    FUTEX, HARD_INTERRUPT, Signature, Waited, awaits_signal, is_condition, is_lone, is_private_futex, is_terminal_file,
    polls, reads, signature,
};
use std::collections::{HashMap, HashSet};
use tipme_record::records::Wait;
use tipme_record::{Nanos, Pid, Tid};

/// A wait is an event wait of its thread if it found at least so many events, and so large a part of them, one in so
/// many.
const FINDS_MIN: usize = 3;
const FINDS_SHARE: usize = 10;

/// So large a part of the inputs of a process finds the thread that they are handed over to in one condition: one in so many.
const HANDED_SHARE: usize = 2;

/// From the end of a wait to the receipt of the event that ended it, at most.
const FOUND_MAX: Nanos = Nanos::from_millis(10);

/// Wake-ups right after a receipt that are looked at.
const WAKES_MAX: usize = 16;

/// Segments before a receipt that are searched for that wait.
const SEGMENTS_MAX: usize = 24;

/// Shorter waits are no rest: a terminal wakes and waits again before the data is there.
const EVENT_WAIT_MIN: Nanos = Nanos::from_millis(1);

/// Maximum time from the start of a process to the begin of the wait for its end.
const FORKED_BEFORE: Nanos = Nanos::from_millis(100);

/// A wait that nothing is known of is taken to be idle from this length on.
const UNKNOWN_MIN: Nanos = Nanos::from_millis(30);

/// How often something found a thread in each of its waits.
type Finds = HashMap<Tid, HashMap<Signature, usize>>;

/// Learns the event waits of all threads that take events: from the waits that events ended, and from the conditions in
/// which others hand over most inputs. Who waits in one for an answer, in the middle of the work, is found there by few.
fn learn(recording: &Recording) -> EventWaits {
    let (mut finds, mut handed, mut taken) = (Finds::new(), Finds::new(), HashMap::<Pid, usize>::new());
    for stream in recording.messages.streams() {
        for part in stream.side(Side::EventReceived) {
            finds.entry(part.tid).or_default();
            if let Some(found) = found_in(recording, part.tid, part.ts) {
                *finds.entry(part.tid).or_default().entry(found).or_default() += 1;
            }
        }
        for input in inputs_taken(recording, stream) {
            *taken.entry(stream.client).or_default() += 1;
            for (wakee, condition) in handed_over(recording, input.tid, input.ts) {
                *handed.entry(wakee).or_default().entry(condition).or_default() += 1;
            }
        }
    }
    for (tid, known) in &mut finds {
        let all = taken.get(&recording.tasks.pid(*tid, recording.mark)).copied().unwrap_or_default();
        let conditions = handed.remove(tid).into_iter().flatten();
        for (condition, count) in conditions.filter(|(_, count)| count * HANDED_SHARE >= all) {
            *known.entry(condition).or_default() += count;
        }
    }
    EventWaits(finds.into_iter().map(|(tid, finds)| (tid, frequent(&finds))).collect())
}

/// The receipts of inputs.
fn inputs_taken<'a>(recording: &'a Recording, stream: &'a Stream) -> impl Iterator<Item = &'a Part> {
    let majors = recording.messages.majors(stream);
    let is_input = |part: &Part| recording.messages.words(part).iter().any(|word| majors.input_class(*word).is_some());
    let sends = stream.side(Side::EventSent).iter().enumerate().filter(move |(_, part)| is_input(part));
    sends.filter_map(|(index, _)| stream.received(Side::EventSent, index).map(|(_, taken)| taken))
}

/// The threads of its process that a thread wakes from a condition right after it took an input, and that condition.
fn handed_over(recording: &Recording, tid: Tid, at: Nanos) -> impl Iterator<Item = (Tid, Signature)> {
    let process = recording.tasks.pid(tid, at);
    let woken = recording.wakes.by(tid, at, at.after(FOUND_MAX)).take(WAKES_MAX);
    woken.filter_map(move |(woken, wakee)| {
        let span = recording.timeline.before(wakee, woken).filter(|_| recording.tasks.pid(wakee, woken) == process)?;
        let condition = recording.waits.is_for_condition(&span).then(|| recording.waits_in(&span))?;
        condition.map(|condition| (wakee, condition))
    })
}

/// The waits that found a thread often enough, of all that did.
pub(crate) fn frequent(finds: &HashMap<Signature, usize>) -> HashSet<Signature> {
    let all: usize = finds.values().sum();
    let often = finds.iter().filter(|(_, count)| **count >= FINDS_MIN && **count * FINDS_SHARE >= all);
    often.map(|(signature, _)| *signature).collect()
}

/// The wait in which an event found a thread that took it at a time.
pub(crate) fn found_in(recording: &Recording, tid: Tid, at: Nanos) -> Option<Signature> {
    let span = blocked_before(recording, tid, at)?;
    let wait = recording.waits.find(&span)?;
    let for_lock = wait.syscall == FUTEX && !recording.waits.is_for_condition(&span);
    (!for_lock).then(|| recording.signature(wait))
}

/// The wait of a thread that ended right before a time, where it is recorded.
pub(crate) fn waited_before(recording: &Recording, tid: Tid, at: Nanos) -> Option<&Wait> {
    recording.waits.find(&blocked_before(recording, tid, at)?)
}

fn blocked_before(recording: &Recording, tid: Tid, at: Nanos) -> Option<Span> {
    let last = recording.timeline.before(tid, at)?;
    let spans = (0..=last.index).rev().take(SEGMENTS_MAX).filter_map(|index| recording.timeline.span(tid, index));
    let mut near = spans.take_while(|span| at.since(span.end) < FOUND_MAX);
    near.find(|span| span.segment.state == ThreadState::Blocked)
}

impl Recording {
    fn event_waits(&self) -> &EventWaits {
        self.event_waits.get_or_init(|| learn(self))
    }

    /// What tells a wait apart from the others of its thread.
    pub fn signature(&self, wait: &Wait) -> Signature {
        signature(wait, self.polls.of(wait).first().map(|file| file.inode))
    }

    /// What tells the wait that a thread is blocked in from its others, where it is recorded.
    pub(crate) fn waits_in(&self, span: &Span) -> Option<Signature> {
        let wait = self.waits.find(span).filter(|_| span.segment.state == ThreadState::Blocked);
        wait.map(|wait| self.signature(wait))
    }

    /// Whether events usually find a thread in a wait; `None` where it is not known where they do.
    pub(crate) fn is_usual_event_wait(&self, tid: Tid, signature: Signature) -> Option<bool> {
        self.event_waits().has(tid, signature)
    }

    /// Whether a thread waits for the next event, or is not there at all.
    pub(crate) fn is_event_wait(&self, span: &Span) -> bool {
        match span.segment.state {
            ThreadState::Absent => true,
            ThreadState::Blocked if span.end.since(span.start) < EVENT_WAIT_MIN && span.end < self.mark => false,
            ThreadState::Blocked => self.awaits_events(span),
            ThreadState::Running | ThreadState::Runnable => false,
        }
    }

    /// The share of a time in which a thread waited for the next event.
    pub(crate) fn idle_share(&self, tid: Tid, lo: Nanos, hi: Nanos) -> f64 {
        let first = self.timeline.at(tid, lo).map_or(0, |span| span.index);
        let spans = (first..).map_while(|index| self.timeline.span(tid, index)).take_while(|span| span.start < hi);
        let idle: u64 = spans
            .filter(|span| self.is_event_wait(span))
            .map(|span| span.end.min(hi).since(span.start.max(lo)).0)
            .sum();
        idle as f64 / hi.since(lo).0.max(1) as f64
    }

    /// A stopped or frozen thread, and one that waits for a device or a lock, is never in an event wait.
    fn awaits_events(&self, span: &Span) -> bool {
        let kind = self.waits.kind(span);
        if !matches!(kind, Waited::Events | Waited::Futex | Waited::Sleep | Waited::Unknown) {
            return false;
        }
        let Some(wait) = self.waits.find(span) else {
            return kind == Waited::Unknown && span.end.since(span.start) >= UNKNOWN_MIN && self.waits.is_idle(span);
        };
        if let Some(wakes) = self.terminal_wakes(wait) {
            return wakes;
        }
        match self.event_waits().has(wait.head.tid, self.signature(wait)) {
            _ if self.awaits_remote(wait) || self.polls_aside(wait) => false,
            _ if self.messages.awaits_reply(span.tid, span.start, span.end) => false,
            Some(event_wait) => event_wait || polls(wait) && !is_lone(wait),
            // What other processes share is waited for as their answer is.
            None if kind == Waited::Events => true,
            None => is_condition(wait) && is_private_futex(wait) && !self.awaits_child(span),
        }
    }

    /// Whether the terminal that a thread reads can end a wait of its; `None` where that is not known, or it reads none, or has a
    /// display besides.
    fn terminal_wakes(&self, wait: &Wait) -> Option<bool> {
        let tid = wait.head.tid;
        if !self.terminals.reads(tid) || self.takes_display_input(tid) {
            return None;
        }
        let files = self.polls.of(wait);
        match polls(wait) {
            // A shell suspends itself until its child's end signals it.
            _ if awaits_signal(wait) => Some(false),
            true => (!files.is_empty()).then(|| files.iter().any(|file| is_terminal_file(file.mode, file.magic))),
            false => reads(wait).then(|| is_terminal_file(wait.mode, wait.magic)),
        }
    }

    /// Whether a process that a thread has started is what it waits for in a condition: its end interrupts that by a signal.
    fn awaits_child(&self, span: &Span) -> bool {
        let pid = self.tasks.pid(span.tid, span.start);
        if span.end < self.mark {
            return span.task_waker().is_some_and(|by| self.tasks.pid(by, span.end) != pid);
        }
        let recent = span.start.before(FORKED_BEFORE)..=span.start;
        let is_child = |life: &Life| life.parent == pid && life.tid.0 == life.pid.0 && recent.contains(&life.from);
        self.terminals.reads(span.tid)
            && self.tasks.lives().iter().any(|life| is_child(life) && life.until >= self.mark)
    }

    /// Whether another program that reads a thread's terminal waited for input in `lo..hi`, and has what was typed before:
    /// what goes to an editor is not left for the shell that waits for it to end.
    pub(crate) fn is_read_by_another(&self, tid: Tid, lo: Nanos, hi: Nanos) -> bool {
        let own = self.tasks.pid(tid, lo);
        let lives = self.terminals.fellows(tid).filter_map(|other| self.tasks.life(other, hi));
        let mut others = lives.filter(|life| life.pid != own && !life.is_kernel());
        others.any(|life| {
            let waits = self.pause_after(life.tid, lo.max(life.from.after(Nanos(1))), Pause::EventWait);
            let span = self.timeline.at(life.tid, waits).filter(|_| waits < hi);
            span.is_some_and(|span| span.segment.state == ThreadState::Blocked)
        })
    }

    /// Whether a thread that reads a terminal waited for what that cannot end, until its time was up.
    pub(crate) fn is_time_up(&self, wait: &Wait) -> bool {
        wait.context == HARD_INTERRUPT && self.terminal_wakes(wait) == Some(false)
    }

    /// Whether a thread takes events of a display.
    pub(crate) fn takes_display_input(&self, tid: Tid) -> bool {
        self.event_waits().0.contains_key(&tid)
    }

    /// Whether a wait for a condition is its thread's event wait.
    pub(crate) fn is_event_wait_condition(&self, wait: &Wait) -> bool {
        wait.syscall == FUTEX && self.is_usual_event_wait(wait.head.tid, self.signature(wait)) == Some(true)
    }
}
