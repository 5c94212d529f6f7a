// SPDX-License-Identifier: MIT OR Apache-2.0
//! Event waits: the wait in which an idle thread of an event loop receives its next input.
//!
//! The polled sets of files are known only if they are small, so the event wait of a thread is
//! learned: it is a wait that events end again and again. Each toolkit has its own kind, including
//! a condition with another thread that polls.

use crate::decode::messages::{Side, Stream};
use crate::decode::parts::Part;
use crate::timeline::pauses::{EventWaits, Pause};
use crate::timeline::recording::Recording;
use crate::timeline::threads::{Span, ThreadState};
use crate::timeline::waits::{
    HARD_INTERRUPT, LIMITED, Signature, UNLIMITED, Waited, awaits_signal, is_condition, is_futex,
    is_lone, is_private_futex, is_terminal_file, polls, reads,
};
use std::collections::{HashMap, HashSet};
use tipme_record::records::Wait;
use tipme_record::{Nanos, Pid, Tid};

/// Thresholds for an event wait of a thread: minimum number of events that ended it, and minimum
/// share of them, one in `FINDS_SHARE`.
const FINDS_MIN: usize = 3;
const FINDS_SHARE: usize = 10;

/// Minimum share, one in `HANDED_SHARE`, of a process's inputs that end a wait for a condition, for
/// it to count as an event wait.
const HANDED_SHARE: usize = 2;

/// Maximum time from the end of a wait to the receipt of the event that ended it.
const FOUND_MAX: Nanos = Nanos::from_millis(10);

/// Maximum number of wakeups considered right after a receipt.
const WAKES_MAX: usize = 16;

/// Maximum number of segments before a receipt that are searched for the wait.
const SEGMENTS_MAX: usize = 24;

/// Minimum length of an event wait: a terminal wakes and waits again before the data is there.
const EVENT_WAIT_MIN: Nanos = Nanos::from_millis(1);

/// Maximum time from the start of a process to the begin of the wait for its end.
const FORKED_BEFORE: Nanos = Nanos::from_millis(100);

/// Minimum number of waits for a terminal without a time limit for each one whose limit expired, for
/// a thread that rests without one, and maximum number of waits considered.
const RESTS_MIN: usize = 3;
const RESTS_MAX: usize = 256;

/// Minimum length of a wait without a record to count as idle.
const UNKNOWN_MIN: Nanos = Nanos::from_millis(30);

/// Number of events that ended each wait of a thread.
type Finds = HashMap<Tid, HashMap<Signature, usize>>;

/// Learns the event waits of all threads that receive events: from the waits that events ended, and
/// from the conditions in which other threads hand over most inputs. A wait for an answer in the
/// middle of the work takes few of these.
fn learn(recording: &Recording) -> EventWaits {
    let (mut finds, mut handed, mut taken) =
        (Finds::new(), Finds::new(), HashMap::<Pid, usize>::new());
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
        let all =
            taken.get(&recording.tasks.pid(*tid, recording.mark)).copied().unwrap_or_default();
        let conditions = handed.remove(tid).into_iter().flatten();
        for (condition, count) in conditions.filter(|(_, count)| count * HANDED_SHARE >= all) {
            *known.entry(condition).or_default() += count;
        }
    }
    EventWaits(finds.into_iter().map(|(tid, finds)| (tid, frequent(&finds))).collect())
}

/// Returns the receipts of inputs.
fn inputs_taken<'a>(
    recording: &'a Recording,
    stream: &'a Stream,
) -> impl Iterator<Item = &'a Part> {
    let majors = recording.messages.majors(stream);
    let sends = stream.side(Side::EventSent).iter().enumerate();
    let inputs = sends.filter(|(_, part)| {
        recording.messages.words(part).iter().any(|word| majors.input_class(*word).is_some())
    });
    inputs.filter_map(|(index, _)| stream.receipt(Side::EventSent, index))
}

/// Returns the threads of the same process that a thread wakes from a condition right after it
/// received an input, with that condition.
fn handed_over(
    recording: &Recording,
    tid: Tid,
    at: Nanos,
) -> impl Iterator<Item = (Tid, Signature)> {
    let process = recording.tasks.pid(tid, at);
    let woken = recording.wakes.by(tid, at, at.after(FOUND_MAX)).take(WAKES_MAX);
    woken.filter_map(move |(woken, wakee)| {
        let span = recording
            .timeline
            .before(wakee, woken)
            .filter(|_| recording.tasks.pid(wakee, woken) == process)?;
        let condition =
            recording.waits.is_for_condition(&span).then(|| recording.waits_in(&span))?;
        condition.map(|condition| (wakee, condition))
    })
}

/// Returns the waits that ended often enough among all counted ones.
pub(crate) fn frequent(finds: &HashMap<Signature, usize>) -> HashSet<Signature> {
    let all: usize = finds.values().sum();
    let often =
        finds.iter().filter(|(_, count)| **count >= FINDS_MIN && **count * FINDS_SHARE >= all);
    often.map(|(signature, _)| *signature).collect()
}

/// Returns the wait that an event received at `at` ended.
pub(crate) fn found_in(recording: &Recording, tid: Tid, at: Nanos) -> Option<Signature> {
    let span = blocked_before(recording, tid, at)?;
    let wait = recording.waits.find(&span)?;
    let for_lock = is_futex(wait) && !recording.waits.is_for_condition(&span);
    (!for_lock).then(|| recording.signature(wait))
}

/// Returns the recorded wait of a thread that ended right before `at`.
pub(crate) fn waited_before(recording: &Recording, tid: Tid, at: Nanos) -> Option<&Wait> {
    recording.waits.find(&blocked_before(recording, tid, at)?)
}

fn blocked_before(recording: &Recording, tid: Tid, at: Nanos) -> Option<Span> {
    let last = recording.timeline.before(tid, at)?;
    let spans = (0..=last.index)
        .rev()
        .take(SEGMENTS_MAX)
        .filter_map(|index| recording.timeline.span(tid, index));
    let mut near = spans.take_while(|span| at.since(span.end) < FOUND_MAX);
    near.find(|span| span.is_blocked())
}

impl Recording {
    fn event_waits(&self) -> &EventWaits {
        self.event_waits.get_or_init(|| learn(self))
    }

    /// Returns `true` if events usually end this wait of a thread; `None` if its event waits are
    /// unknown.
    pub(crate) fn is_usual_event_wait(&self, tid: Tid, signature: Signature) -> Option<bool> {
        self.event_waits().has(tid, signature)
    }

    /// Returns `true` if a thread waits for the next event, or does not exist.
    pub(crate) fn is_event_wait(&self, span: &Span) -> bool {
        match span.segment.state {
            ThreadState::Absent => true,
            ThreadState::Blocked if span.length() < EVENT_WAIT_MIN && span.end < self.mark => false,
            ThreadState::Blocked => self.awaits_events(span),
            ThreadState::Running | ThreadState::Runnable => false,
        }
    }

    /// Returns the share of `lo..hi` in which a thread waited for the next event.
    pub(crate) fn idle_share(&self, tid: Tid, lo: Nanos, hi: Nanos) -> f64 {
        let spans = self.timeline.overlapping(tid, lo, hi);
        let idle: u64 = spans
            .filter(|span| self.is_event_wait(span))
            .map(|span| span.end.min(hi).since(span.start.max(lo)).0)
            .sum();
        idle as f64 / hi.since(lo).0.max(1) as f64
    }

    /// Returns `true` for an event wait; never for a stopped or frozen thread, or one blocked on a
    /// device or a lock.
    fn awaits_events(&self, span: &Span) -> bool {
        let kind = self.waits.kind(span);
        if !matches!(kind, Waited::Events | Waited::Futex | Waited::Sleep | Waited::Unknown) {
            return false;
        }
        let Some(wait) = self.waits.find(span) else {
            return kind == Waited::Unknown
                && span.length() >= UNKNOWN_MIN
                && self.waits.is_idle(span);
        };
        if let Some(wakes) = self.terminal_wakes(wait) {
            return wakes && !self.has_given_up(wait);
        }
        match self.event_waits().has(wait.head.tid, self.signature(wait)) {
            _ if self.awaits_remote(wait) || self.polls_aside(wait) => false,
            _ if self.messages.awaits_reply(span.tid, span.start, span.end) => false,
            Some(event_wait) => event_wait || polls(wait) && !is_lone(wait),
            // A futex shared between processes is used to wait for their answer.
            None if kind == Waited::Events => true,
            None => {
                is_condition(wait)
                    && is_private_futex(wait)
                    && !self.awaits_child(span)
                    && !self.is_last_retry(span)
            }
        }
    }

    /// Returns `true` if a thread waited for its terminal up to a time limit, although it waits
    /// for the next input without one: it gave up on something else, such as the terminal's answer
    /// to a query. A program that updates its display by a timer rests with a limit.
    pub(crate) fn has_given_up(&self, wait: &Wait) -> bool {
        let expired = |wait: &Wait| wait.limit == LIMITED && wait.context == HARD_INTERRUPT;
        if !expired(wait) {
            return false;
        }
        let (mut limited, mut unlimited) = (0, 0);
        for rest in self.waits.of_thread(wait.head.tid).iter().take(RESTS_MAX) {
            if self.terminal_wakes(rest) == Some(true) {
                limited += usize::from(expired(rest));
                unlimited += usize::from(rest.limit == UNLIMITED);
            }
        }
        unlimited >= RESTS_MIN * limited
    }

    /// Returns `true` if the terminal that a thread reads can end the wait; `None` if that is
    /// unknown, or if the thread reads no terminal or has a display as well.
    fn terminal_wakes(&self, wait: &Wait) -> Option<bool> {
        let tid = wait.head.tid;
        if !self.terminals.reads(tid) || self.takes_display_input(tid) {
            return None;
        }
        let files = self.polls.files(wait);
        match polls(wait) {
            // A shell suspends itself until SIGCHLD.
            _ if awaits_signal(wait) => Some(false),
            true => (!files.is_empty())
                .then(|| files.iter().any(|file| is_terminal_file(file.mode, file.magic))),
            false => reads(wait).then(|| is_terminal_file(wait.mode, wait.magic)),
        }
    }

    /// Returns `true` if a thread in a wait for a condition waits for a child process, which ends
    /// the wait by a signal when it exits.
    fn awaits_child(&self, span: &Span) -> bool {
        let pid = self.tasks.pid(span.tid, span.start);
        if span.end < self.mark {
            return span.task_waker().is_some_and(|by| self.tasks.pid(by, span.end) != pid);
        }
        let recent = span.start.before(FORKED_BEFORE)..=span.start;
        self.terminals.reads(span.tid)
            && self.tasks.lives().iter().any(|life| {
                life.parent == pid
                    && life.tid.0 == life.pid.0
                    && recent.contains(&life.from)
                    && life.until >= self.mark
            })
    }

    /// Returns `true` if another program that reads the same terminal waited for input in `lo..hi`,
    /// and so received what was typed before: input for an editor is not left for the shell that
    /// waits for the editor to exit.
    pub(crate) fn is_read_by_another(&self, tid: Tid, lo: Nanos, hi: Nanos) -> bool {
        let own = self.tasks.pid(tid, lo);
        let lives = self.terminals.fellows(tid).filter_map(|other| self.tasks.life(other, hi));
        let mut others = lives.filter(|life| life.pid != own && !life.is_kernel());
        others.any(|life| {
            let waits =
                self.pause_after(life.tid, lo.max(life.from.after(Nanos(1))), Pause::EventWait);
            let span = self.timeline.at(life.tid, waits).filter(|_| waits < hi);
            span.is_some_and(|span| span.is_blocked())
        })
    }

    /// Returns `true` if a thread that reads a terminal was in a wait that the terminal cannot end,
    /// until a timeout.
    pub(crate) fn is_time_up(&self, wait: &Wait) -> bool {
        wait.context == HARD_INTERRUPT && self.terminal_wakes(wait) == Some(false)
    }

    /// Returns `true` if a thread receives events of a display.
    pub(crate) fn takes_display_input(&self, tid: Tid) -> bool {
        self.event_waits().0.contains_key(&tid)
    }

    /// Returns `true` if a wait for a condition is the event wait of its thread.
    pub(crate) fn is_event_wait_condition(&self, wait: &Wait) -> bool {
        is_futex(wait)
            && self.is_usual_event_wait(wait.head.tid, self.signature(wait)) == Some(true)
    }
}
