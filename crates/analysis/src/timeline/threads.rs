// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every thread did: running on a CPU, or off-CPU, which is runnable, blocked or absent; without gaps.
//!
//! A segment ends where the next of its thread begins and the last one at the mark, so every
//! nanosecond of a known thread lies in exactly one. Segments are 24 bytes or less, and one pass over
//! the events in the order of time builds them.

use crate::decode::events::{CPU_LIMIT, Change, Event};
use tipme_record::{Cpu, Nanos, Tid};

/// Thread ids from here on do not exist: the kernel's PID_MAX_LIMIT.
const TID_LIMIT: u32 = 1 << 22;

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
    /// By tid: index into `threads` plus one.
    index: Vec<u32>,
    threads: Vec<(Tid, Vec<Segment>)>,
    cpus: Vec<Vec<Run>>,
}

impl Timeline {
    /// Builds the timeline from events in the order of time; later ones than the mark are left out.
    pub fn new(events: &[Event], resting: &[Resting], mark: Nanos) -> Timeline {
        let from = events.first().map_or(mark, |event| event.ts.min(mark));
        let mut builder = Builder::new(from, mark);
        events.iter().filter(|event| event.ts <= mark).for_each(|event| builder.feed(event));
        resting.iter().for_each(|task| builder.rest(task));
        builder.timeline
    }

    /// Every thread that is known.
    pub fn threads(&self) -> impl Iterator<Item = Tid> {
        self.threads.iter().map(|(tid, _)| *tid)
    }

    /// When tasks woke a thread, and which did.
    pub fn wakes(&self, tid: Tid) -> impl Iterator<Item = (Tid, Nanos)> {
        let segments = self.segments(tid);
        let pairs = segments.iter().zip(segments.iter().skip(1));
        let woken = pairs.filter(|(wait, _)| wait.state == State::Blocked && wait.context == 0 && wait.waker != Tid(0));
        woken.map(|(wait, next)| (wait.waker, next.start))
    }

    pub fn segments(&self, tid: Tid) -> &[Segment] {
        let index = self.index.get(tid.0 as usize).copied().unwrap_or(0) as usize;
        index.checked_sub(1).and_then(|index| self.threads.get(index)).map_or(&[], |(_, segments)| segments)
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
        (0..self.segments(tid).len()).filter_map(move |index| self.span(tid, index))
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
#[derive(Clone, Copy, Default)]
struct Early {
    ts: Nanos,
    waker: Tid,
    context: u8,
}

struct Builder {
    timeline: Timeline,
    early: Vec<Early>,
}

impl Builder {
    fn new(from: Nanos, mark: Nanos) -> Builder {
        Builder { timeline: Timeline { from, mark, ..Timeline::default() }, early: Vec::new() }
    }

    fn feed(&mut self, event: &Event) {
        match event.change {
            Change::Switch => self.switch(event),
            Change::Waking => self.wake(event),
            Change::Migrate => self.migrate(event),
            Change::Fork => self.create(event),
        }
    }

    /// The slot of a thread; at its first event it gets the state that it must have had before.
    fn slot(&mut self, tid: Tid, first: Segment) -> Option<usize> {
        if tid.0 == 0 || tid.0 >= TID_LIMIT {
            return None;
        }
        let index = tid.0 as usize;
        if index >= self.timeline.index.len() {
            self.timeline.index.resize(index + 1, 0);
        }
        if self.timeline.index[index] == 0 {
            self.timeline.threads.push((tid, vec![Segment { start: self.timeline.from, ..first }]));
            self.early.push(Early::default());
            self.timeline.index[index] = self.timeline.threads.len() as u32;
        }
        Some(self.timeline.index[index] as usize - 1)
    }

    /// The latest segment of a thread, which always has one.
    fn last(&mut self, slot: usize) -> &mut Segment {
        self.timeline.threads[slot].1.last_mut().expect("a thread begins with a segment")
    }

    fn push(&mut self, slot: usize, segment: Segment) {
        let last = self.last(slot);
        if last.start >= segment.start {
            *last = Segment { start: last.start, ..segment };
        } else {
            self.timeline.threads[slot].1.push(segment);
        }
    }

    fn switch(&mut self, event: &Event) {
        self.run(event);
        if let Some(slot) = self.slot(event.tid, segment(event, State::Running, event.cpu)) {
            self.leave(slot, event);
        }
        if let Some(slot) = self.slot(event.other, segment(event, State::Runnable, event.cpu)) {
            self.enter(slot, event);
        }
    }

    fn run(&mut self, event: &Event) {
        let cpu = usize::from(event.cpu);
        if cpu >= CPU_LIMIT {
            return;
        }
        if cpu >= self.timeline.cpus.len() {
            self.timeline.cpus.resize(cpu + 1, Vec::new());
        }
        let runs = &mut self.timeline.cpus[cpu];
        if runs.is_empty() {
            runs.push(Run { start: self.timeline.from, tid: event.tid });
        }
        runs.push(Run { start: event.ts, tid: event.other });
    }

    fn leave(&mut self, slot: usize, event: &Event) {
        let next = match event.argument {
            0 => segment(event, State::Runnable, event.cpu),
            state if state & STATE_DEAD != 0 => segment(event, State::Absent, 0),
            state => Segment { context: CONTEXT_UNKNOWN, ..segment(event, State::Blocked, state) },
        };
        self.push(slot, next);
    }

    fn enter(&mut self, slot: usize, event: &Event) {
        let early = self.early[slot];
        let last = self.last(slot);
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
        self.push(slot, segment(event, State::Running, event.cpu));
    }

    fn wake(&mut self, event: &Event) {
        let before = Segment { context: CONTEXT_UNKNOWN, ..segment(event, State::Blocked, 0) };
        let Some(slot) = self.slot(event.tid, before) else { return };
        let last = self.last(slot);
        match last.state {
            State::Blocked => {
                (last.waker, last.context) = (event.other, event.context);
                self.push(slot, segment(event, State::Runnable, event.argument));
            }
            State::Absent => self.push(slot, segment(event, State::Runnable, event.argument)),
            State::Running | State::Runnable => {
                self.early[slot] = Early { ts: event.ts, waker: event.other, context: event.context };
            }
        }
    }

    fn migrate(&mut self, event: &Event) {
        let Some(slot) = self.slot(event.tid, segment(event, State::Runnable, event.cpu)) else { return };
        if self.last(slot).state == State::Runnable {
            self.push(slot, segment(event, State::Runnable, event.argument));
        }
    }

    fn create(&mut self, event: &Event) {
        let absent = Segment { waker: event.other, context: 0, ..segment(event, State::Absent, 0) };
        let Some(slot) = self.slot(event.tid, absent) else { return };
        let last = self.last(slot);
        if last.state == State::Absent {
            (last.waker, last.context) = (event.other, 0);
        }
        self.push(slot, segment(event, State::Runnable, event.cpu));
    }

    fn rest(&mut self, task: &Resting) {
        let state = if task.state & !0x8000 == 0 { self.resting_state(task) } else { State::Blocked };
        let place = if state == State::Blocked { task.state } else { task.cpu.0 as u16 };
        let context = if state == State::Blocked { CONTEXT_UNKNOWN } else { 0 };
        let start = self.timeline.from;
        self.slot(task.tid, Segment { start, waker: Tid(0), place, state, context });
    }

    /// A task that never left its CPU ran on it all the time, where no other was seen there.
    fn resting_state(&mut self, task: &Resting) -> State {
        let cpu = task.cpu.0 as usize;
        let runs = self.timeline.cpus.get(cpu).map_or(&[][..], Vec::as_slice);
        match runs.last() {
            Some(run) if run.tid != task.tid => State::Runnable,
            _ => State::Running,
        }
    }
}

fn segment(event: &Event, state: State, place: u16) -> Segment {
    Segment { start: event.ts, waker: Tid(0), place, state, context: 0 }
}
