// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every thread did: running on a CPU, or off-CPU, which is runnable, blocked or absent; without gaps.
//!
//! A segment ends where the next of its thread begins and the last one at the mark, so every
//! nanosecond of a known thread lies in exactly one. Segments are 16 bytes, and one pass over the events in the
//! order of time builds them.

use crate::decode::events::{CPU_LIMIT, Change, Event};
use crate::timeline::by_thread::ByThread;
use tipme_record::{Cpu, Nanos, Tid};

/// A wake-up may be recorded this long before the switch that it undoes.
const RACE_MAX: Nanos = Nanos(100_000);

/// Segments that are looked at to tell whether a thread was busy.
const SEGMENTS_MAX: usize = 4_096;

/// The context of a wake-up that was never seen.
pub const CONTEXT_UNKNOWN: u8 = u8::MAX;

/// The bit of a task state that means the thread never comes back.
const STATE_DEAD: u16 = 0x80;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum State {
    Running,
    /// In a run queue: run-queue delay, and after a wake-up its wake-up latency.
    Runnable,
    Blocked,
    /// Not yet created, or ended.
    Absent,
}

/// The begin of a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    pub start: Nanos,
    /// Blocked: who ended it; absent: who created the thread. 0 where that is not known.
    pub waker: Tid,
    /// Running and runnable: the CPU; blocked: the bits of the task state.
    pub place: u16,
    pub state: State,
    /// Context of the waker: 0 task, 1 softirq, 2 hard interrupt, 3 NMI.
    pub context: u8,
}

/// A segment of one thread with its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    pub tid: Tid,
    /// Its number among the segments of the thread.
    pub index: usize,
    pub start: Nanos,
    pub end: Nanos,
    pub segment: Segment,
}

impl Span {
    /// The task that ended the wait on its own time, if one did.
    pub fn task_waker(&self) -> Option<Tid> {
        let by_task = self.segment.context == 0 && self.segment.waker != Tid(0);
        (by_task && self.segment.waker != self.tid).then_some(self.segment.waker)
    }
}

/// Who a CPU ran from `start` on; tid 0 is idle.
#[derive(Clone, Copy, Debug)]
struct Run {
    start: Nanos,
    tid: Tid,
}

/// All threads and CPUs of an incident.
#[derive(Debug, Default)]
pub struct Timeline {
    from: Nanos,
    mark: Nanos,
    threads: ByThread<Thread>,
    cpus: Vec<Vec<Run>>,
}

impl Timeline {
    /// Builds the timeline from events in the order of time; later ones than the mark are left out.
    pub fn new(events: impl IntoIterator<Item = Event>, resting: &[Resting], mark: Nanos) -> Timeline {
        let mut events = events.into_iter().peekable();
        let from = events.peek().map_or(mark, |event| event.ts.min(mark));
        let mut timeline = Timeline { from, mark, ..Timeline::default() };
        events.filter(|event| event.ts <= mark).for_each(|event| timeline.feed(&event));
        resting.iter().for_each(|task| timeline.rest(task));
        timeline
    }

    /// Every thread that is known.
    pub fn threads(&self) -> impl Iterator<Item = Tid> {
        self.threads.iter().map(|(tid, _)| tid)
    }

    /// When tasks woke a thread, and which did.
    pub fn wakes(&self, tid: Tid) -> impl Iterator<Item = (Tid, Nanos)> {
        let segments = self.segments(tid);
        let pairs = segments.iter().zip(segments.iter().skip(1));
        let woken = pairs.filter(|(wait, _)| wait.state == State::Blocked && wait.context == 0 && wait.waker != Tid(0));
        woken.map(|(wait, next)| (wait.waker, next.start))
    }

    pub fn segments(&self, tid: Tid) -> &[Segment] {
        self.threads.get(tid).map_or(&[], |thread| &thread.segments)
    }

    /// A segment by its number.
    pub fn span(&self, tid: Tid, index: usize) -> Option<Span> {
        let segments = self.segments(tid);
        let segment = *segments.get(index)?;
        let end = segments.get(index + 1).map_or(self.mark, |next| next.start);
        Some(Span { tid, index, start: segment.start, end, segment })
    }

    /// All segments of a thread with their ends.
    pub fn spans(&self, tid: Tid) -> impl Iterator<Item = Span> {
        let segments = self.segments(tid);
        let ends = segments.iter().skip(1).map(|next| next.start).chain([self.mark]);
        let ended = segments.iter().zip(ends).enumerate();
        ended.map(move |(index, (segment, end))| Span { tid, index, start: segment.start, end, segment: *segment })
    }

    /// The segment that the instant just before `at` lies in.
    pub fn before(&self, tid: Tid, at: Nanos) -> Option<Span> {
        let index = self.segments(tid).partition_point(|segment| segment.start < at);
        self.span(tid, index.checked_sub(1)?)
    }

    /// The segment that `at` lies in.
    pub fn at(&self, tid: Tid, at: Nanos) -> Option<Span> {
        self.before(tid, at.after(Nanos(1)))
    }

    /// Whether a thread ran or was ready to all the time; false where nothing is known of it.
    pub fn is_busy(&self, tid: Tid, lo: Nanos, hi: Nanos) -> bool {
        let Some(first) = self.at(tid, lo) else { return false };
        let spans = (first.index..).map_while(|index| self.span(tid, index)).take_while(|span| span.start < hi);
        spans.take(SEGMENTS_MAX).all(|span| matches!(span.segment.state, State::Running | State::Runnable))
    }

    /// Who ran on a CPU, tiling `lo..hi`; `None` where that is not known, tid 0 for idle.
    pub fn ran(&self, cpu: Cpu, lo: Nanos, hi: Nanos) -> Vec<(Option<Tid>, Nanos, Nanos)> {
        let runs = self.cpus.get(cpu.0 as usize).map_or(&[][..], Vec::as_slice);
        let first = runs.partition_point(|run| run.start <= lo).saturating_sub(1);
        let mut pieces = Vec::new();
        let mut at = lo;
        for (index, run) in runs.iter().enumerate().skip(first).take_while(|(_, run)| run.start < hi) {
            push(&mut pieces, None, &mut at, run.start.min(hi));
            let end = runs.get(index + 1).map_or(self.mark, |next| next.start).min(hi);
            push(&mut pieces, Some(run.tid), &mut at, end);
        }
        push(&mut pieces, None, &mut at, hi);
        pieces
    }
}

fn push(pieces: &mut Vec<(Option<Tid>, Nanos, Nanos)>, tid: Option<Tid>, at: &mut Nanos, end: Nanos) {
    if end > *at {
        pieces.push((tid, *at, end));
        *at = end;
    }
}

/// A task as it is at the mark; counts only where no event tells of it.
#[derive(Clone, Copy, Debug)]
pub struct Resting {
    pub tid: Tid,
    pub state: u16,
    pub cpu: Cpu,
}

/// A wake-up of a thread that was not seen blocked yet.
#[derive(Clone, Copy, Debug, Default)]
struct Early {
    ts: Nanos,
    waker: Tid,
    context: u8,
}

/// The segments of a thread, which has one at least.
#[derive(Debug)]
struct Thread {
    segments: Vec<Segment>,
    early: Early,
}

impl Thread {
    fn last(&mut self) -> &mut Segment {
        self.segments.last_mut().expect("a thread begins with a segment")
    }

    fn push(&mut self, segment: Segment) {
        let last = self.last();
        if last.start >= segment.start {
            *last = Segment { start: last.start, ..segment };
        } else {
            self.segments.push(segment);
        }
    }

    fn leave(&mut self, event: &Event) {
        self.push(match event.argument {
            0 => segment(event, State::Runnable, event.cpu),
            state if state & STATE_DEAD != 0 => segment(event, State::Absent, 0),
            state => Segment { context: CONTEXT_UNKNOWN, ..segment(event, State::Blocked, state) },
        });
    }

    fn enter(&mut self, event: &Event) {
        let early = self.early;
        let last = self.last();
        let unwoken = last.state == State::Blocked && last.context == CONTEXT_UNKNOWN;
        if unwoken && early.ts > Nanos(0) && early.ts.after(RACE_MAX) >= last.start {
            *last = Segment {
                start: last.start,
                waker: early.waker,
                context: early.context,
                ..segment(event, State::Runnable, event.cpu)
            };
        } else if last.state == State::Runnable {
            last.place = event.cpu;
        }
        self.push(segment(event, State::Running, event.cpu));
    }

    fn wake(&mut self, event: &Event) {
        let last = self.last();
        match last.state {
            State::Blocked => {
                (last.waker, last.context) = (event.other, event.context);
                self.push(segment(event, State::Runnable, event.argument));
            }
            State::Absent => self.push(segment(event, State::Runnable, event.argument)),
            State::Running | State::Runnable => {
                self.early = Early { ts: event.ts, waker: event.other, context: event.context };
            }
        }
    }

    fn migrate(&mut self, event: &Event) {
        if self.last().state == State::Runnable {
            self.push(segment(event, State::Runnable, event.argument));
        }
    }

    fn create(&mut self, event: &Event) {
        let last = self.last();
        if last.state == State::Absent {
            (last.waker, last.context) = (event.other, 0);
        }
        self.push(segment(event, State::Runnable, event.cpu));
    }
}

impl Timeline {
    fn feed(&mut self, event: &Event) {
        match event.change {
            Change::Switch => self.switch(event),
            Change::Waking => self.wake(event),
            Change::Migrate => self.migrate(event),
            Change::Fork => self.create(event),
        }
    }

    /// A thread; at its first event it gets the state that it must have had before.
    fn thread(&mut self, tid: Tid, first: Segment) -> Option<&mut Thread> {
        let first = Segment { start: self.from, ..first };
        self.threads.get_or_add(tid, || Thread { segments: vec![first], early: Early::default() })
    }

    fn switch(&mut self, event: &Event) {
        self.run(event);
        if let Some(thread) = self.thread(event.tid, segment(event, State::Running, event.cpu)) {
            thread.leave(event);
        }
        if let Some(thread) = self.thread(event.other, segment(event, State::Runnable, event.cpu)) {
            thread.enter(event);
        }
    }

    fn run(&mut self, event: &Event) {
        let cpu = usize::from(event.cpu);
        if cpu >= CPU_LIMIT {
            return;
        }
        if cpu >= self.cpus.len() {
            self.cpus.resize(cpu + 1, Vec::new());
        }
        let runs = &mut self.cpus[cpu];
        if runs.is_empty() {
            runs.push(Run { start: self.from, tid: event.tid });
        }
        runs.push(Run { start: event.ts, tid: event.other });
    }

    fn wake(&mut self, event: &Event) {
        let before = Segment { context: CONTEXT_UNKNOWN, ..segment(event, State::Blocked, 0) };
        if let Some(thread) = self.thread(event.tid, before) {
            thread.wake(event);
        }
    }

    fn migrate(&mut self, event: &Event) {
        if let Some(thread) = self.thread(event.tid, segment(event, State::Runnable, event.cpu)) {
            thread.migrate(event);
        }
    }

    fn create(&mut self, event: &Event) {
        let absent = Segment { waker: event.other, context: 0, ..segment(event, State::Absent, 0) };
        if let Some(thread) = self.thread(event.tid, absent) {
            thread.create(event);
        }
    }

    fn rest(&mut self, task: &Resting) {
        let state = if task.state & !0x8000 == 0 { self.resting_state(task) } else { State::Blocked };
        let place = if state == State::Blocked { task.state } else { task.cpu.0 as u16 };
        let context = if state == State::Blocked { CONTEXT_UNKNOWN } else { 0 };
        let start = self.from;
        self.thread(task.tid, Segment { start, waker: Tid(0), place, state, context });
    }

    /// A task that never left its CPU ran on it all the time, where no other was seen there.
    fn resting_state(&self, task: &Resting) -> State {
        let cpu = task.cpu.0 as usize;
        let runs = self.cpus.get(cpu).map_or(&[][..], Vec::as_slice);
        match runs.last() {
            Some(run) if run.tid != task.tid => State::Runnable,
            _ => State::Running,
        }
    }
}

fn segment(event: &Event, state: State, place: u16) -> Segment {
    Segment { start: event.ts, waker: Tid(0), place, state, context: 0 }
}
