// SPDX-License-Identifier: MIT OR Apache-2.0
//! States of every thread without gaps: running on a CPU, or off-CPU as runnable, blocked or
//! absent.
//!
//! A segment ends where the next one of its thread begins, and the last one at the mark, so every
//! nanosecond of a known thread lies in exactly one segment. Segments are 16 bytes, built in one
//! chronological pass over the events.
//!
//! Switch records may be missing. A thread that is switched out of a CPU, or sampled on it, was
//! there, whatever thread the timeline had there before.

use crate::decode::events::{CPU_LIMIT, SchedChange, SchedEvent};
use crate::timeline::by_thread::ByThread;
use tipme_record::{Cpu, Nanos, Tid};

/// Maximum time by which the record of a wakeup may precede the switch to sleep that it undoes.
const RACE_MAX: Nanos = Nanos(100_000);

/// Maximum time after a switch record in which a sample may still hit the previous thread.
const SAMPLE_RACE_MAX: Nanos = RACE_MAX;

/// Maximum number of segments searched.
const SEGMENTS_MAX: usize = 4_096;

/// Context of a wakeup without a record.
pub(crate) const CONTEXT_UNKNOWN: u8 = u8::MAX;

/// Bit of the task state of a dead thread.
pub(crate) const STATE_DEAD: u16 = 0x80;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum ThreadState {
    Running,
    /// In a run queue: run-queue delay, and after a wakeup its wakeup latency.
    Runnable,
    Blocked,
    /// Not yet created, or exited.
    Absent,
}

/// Start of a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    pub start: Nanos,
    /// Blocked: the waker; absent: the creator. 0 if unknown.
    pub waker: Tid,
    /// Running and runnable: the CPU; blocked: bits of the task state.
    pub place: u16,
    pub state: ThreadState,
    /// Context of the waker: 0 task, 1 softirq, 2 hard interrupt, 3 NMI.
    pub context: u8,
}

/// Segment of a thread with its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    pub tid: Tid,
    /// Index among the segments of the thread.
    pub index: usize,
    pub start: Nanos,
    pub end: Nanos,
    pub segment: Segment,
}

impl Span {
    pub(crate) fn length(&self) -> Nanos {
        self.end.since(self.start)
    }

    pub(crate) fn is_blocked(&self) -> bool {
        self.segment.state == ThreadState::Blocked
    }

    /// Returns the task that ended the wait from its own context, if any.
    pub(crate) fn task_waker(&self) -> Option<Tid> {
        let by_task = self.segment.context == 0 && self.segment.waker != Tid(0);
        (by_task && self.segment.waker != self.tid).then_some(self.segment.waker)
    }
}

/// Thread that a CPU ran from `start` on; tid 0 is the idle task.
#[derive(Clone, Copy, Debug)]
struct CpuRun {
    start: Nanos,
    tid: Tid,
}

/// States of all threads and CPUs of an incident.
#[derive(Debug, Default)]
pub struct Timeline {
    from: Nanos,
    mark: Nanos,
    threads: ByThread<ThreadHistory>,
    cpus: Vec<Vec<CpuRun>>,
}

impl Timeline {
    /// Builds the timeline from chronological events, without events after the mark and samples
    /// before the first change.
    pub fn new(
        events: impl IntoIterator<Item = SchedEvent>,
        resting: &[Resting],
        mark: Nanos,
    ) -> Timeline {
        let mut events =
            events.into_iter().skip_while(|event| event.change == SchedChange::Sampled).peekable();
        let from = events.peek().map_or(mark, |event| event.ts.min(mark));
        let mut timeline = Timeline { from, mark, ..Timeline::default() };
        events.filter(|event| event.ts <= mark).for_each(|event| timeline.feed(&event));
        resting.iter().for_each(|task| timeline.rest(task));
        timeline
    }

    /// Returns all known threads.
    pub fn threads(&self) -> impl Iterator<Item = Tid> {
        self.threads.iter().map(|(tid, _)| tid)
    }

    /// Returns the wakeups of a thread by tasks: waker and time.
    pub fn wakes(&self, tid: Tid) -> impl Iterator<Item = (Tid, Nanos)> {
        let segments = self.segments(tid);
        let pairs = segments.iter().zip(segments.iter().skip(1));
        let woken = pairs.filter(|(wait, _)| {
            wait.state == ThreadState::Blocked && wait.context == 0 && wait.waker != Tid(0)
        });
        woken.map(|(wait, next)| (wait.waker, next.start))
    }

    pub fn segments(&self, tid: Tid) -> &[Segment] {
        self.threads.get(tid).map_or(&[], |thread| &thread.segments)
    }

    /// Returns a segment with its end.
    pub fn span(&self, tid: Tid, index: usize) -> Option<Span> {
        let segments = self.segments(tid);
        let segment = *segments.get(index)?;
        let end = segments.get(index + 1).map_or(self.mark, |next| next.start);
        Some(Span { tid, index, start: segment.start, end, segment })
    }

    /// Returns all segments of a thread with their ends.
    pub fn spans(&self, tid: Tid) -> impl Iterator<Item = Span> {
        let segments = self.segments(tid);
        let ends = segments.iter().skip(1).map(|next| next.start).chain([self.mark]);
        let ended = segments.iter().zip(ends).enumerate();
        ended.map(move |(index, (segment, end))| Span {
            tid,
            index,
            start: segment.start,
            end,
            segment: *segment,
        })
    }

    /// Returns the segments of a thread with their ends, from an index on.
    pub(crate) fn spans_from(&self, tid: Tid, first: usize) -> impl Iterator<Item = Span> {
        (first..).map_while(move |index| self.span(tid, index))
    }

    /// Returns the segments of a thread that overlap `lo..hi`.
    pub(crate) fn overlapping(&self, tid: Tid, lo: Nanos, hi: Nanos) -> impl Iterator<Item = Span> {
        let first = self.at(tid, lo).map_or(0, |span| span.index);
        self.spans_from(tid, first).take_while(move |span| span.start < hi)
    }

    /// Returns the segment that contains the instant just before `at`.
    pub fn before(&self, tid: Tid, at: Nanos) -> Option<Span> {
        let index = self.segments(tid).partition_point(|segment| segment.start < at);
        self.span(tid, index.checked_sub(1)?)
    }

    /// Returns the segment that contains `at`.
    pub fn at(&self, tid: Tid, at: Nanos) -> Option<Span> {
        self.before(tid, at.after(Nanos(1)))
    }

    /// Returns `true` if a thread was running or runnable all the time in `lo..hi`; `false` if
    /// nothing is known of it.
    pub fn is_busy(&self, tid: Tid, lo: Nanos, hi: Nanos) -> bool {
        let Some(first) = self.at(tid, lo) else { return false };
        let spans = self.spans_from(tid, first.index).take_while(|span| span.start < hi);
        spans
            .take(SEGMENTS_MAX)
            .all(|span| matches!(span.segment.state, ThreadState::Running | ThreadState::Runnable))
    }

    /// Returns the end of a thread's last run in `lo..hi`, at most `hi`.
    pub(crate) fn last_ran(&self, tid: Tid, lo: Nanos, hi: Nanos) -> Option<Nanos> {
        let last = self.before(tid, hi)?.index;
        let spans = (0..=last).rev().take(SEGMENTS_MAX).filter_map(|index| self.span(tid, index));
        let mut within = spans.take_while(|span| span.end > lo);
        within.find(|span| span.segment.state == ThreadState::Running).map(|span| span.end.min(hi))
    }

    /// Returns the time for which a thread ran in `lo..hi`.
    pub(crate) fn run_time(&self, tid: Tid, lo: Nanos, hi: Nanos) -> Nanos {
        let spans = self.overlapping(tid, lo, hi);
        let ran = spans.filter(|span| span.segment.state == ThreadState::Running);
        ran.fold(Nanos(0), |sum, span| sum.after(span.end.min(hi).since(span.start.max(lo))))
    }

    /// Tiles `lo..hi` with the threads that ran on a CPU; `None` if unknown, tid 0 for the idle
    /// task.
    pub fn ran(&self, cpu: Cpu, lo: Nanos, hi: Nanos) -> Vec<(Option<Tid>, Nanos, Nanos)> {
        let runs = self.cpus.get(cpu.0 as usize).map_or(&[][..], Vec::as_slice);
        let first = runs.partition_point(|run| run.start <= lo).saturating_sub(1);
        let mut pieces = Vec::new();
        let mut at = lo;
        for (index, run) in
            runs.iter().enumerate().skip(first).take_while(|(_, run)| run.start < hi)
        {
            push(&mut pieces, None, &mut at, run.start.min(hi));
            let end = runs.get(index + 1).map_or(self.mark, |next| next.start).min(hi);
            push(&mut pieces, Some(run.tid), &mut at, end);
        }
        push(&mut pieces, None, &mut at, hi);
        pieces
    }
}

fn push(
    pieces: &mut Vec<(Option<Tid>, Nanos, Nanos)>,
    tid: Option<Tid>,
    at: &mut Nanos,
    end: Nanos,
) {
    if end > *at {
        pieces.push((tid, *at, end));
        *at = end;
    }
}

/// State of a task at the mark; used only if no event concerns the task.
#[derive(Clone, Copy, Debug)]
pub struct Resting {
    pub tid: Tid,
    pub state: u16,
    pub cpu: Cpu,
}

/// Wakeup of a thread before the record of its switch to sleep.
#[derive(Clone, Copy, Debug, Default)]
struct Early {
    ts: Nanos,
    waker: Tid,
    context: u8,
}

/// Segments of a thread, at least one.
#[derive(Debug)]
struct ThreadHistory {
    segments: Vec<Segment>,
    early: Early,
}

impl ThreadHistory {
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

    fn leave(&mut self, event: &SchedEvent) {
        self.push(match event.argument {
            0 => segment(event, ThreadState::Runnable, event.cpu),
            state if state & STATE_DEAD != 0 => segment(event, ThreadState::Absent, 0),
            state => {
                Segment { context: CONTEXT_UNKNOWN, ..segment(event, ThreadState::Blocked, state) }
            }
        });
    }

    /// Ends a run of this thread on a CPU on which another thread was found: it was switched out
    /// without a record, for an unknown reason.
    fn left_unseen(&mut self, event: &SchedEvent) {
        let last = self.last();
        if (last.state, last.place) == (ThreadState::Running, event.cpu) {
            self.push(Segment {
                context: CONTEXT_UNKNOWN,
                ..segment(event, ThreadState::Blocked, 0)
            });
        }
    }

    fn enter(&mut self, event: &SchedEvent) {
        let early = self.early;
        let last = self.last();
        let unwoken = last.state == ThreadState::Blocked && last.context == CONTEXT_UNKNOWN;
        if unwoken && early.ts > Nanos(0) && early.ts.after(RACE_MAX) >= last.start {
            *last = Segment {
                start: last.start,
                waker: early.waker,
                context: early.context,
                ..segment(event, ThreadState::Runnable, event.cpu)
            };
        } else if last.state == ThreadState::Runnable {
            last.place = event.cpu;
        }
        self.push(segment(event, ThreadState::Running, event.cpu));
    }

    fn wake(&mut self, event: &SchedEvent) {
        let last = self.last();
        match last.state {
            ThreadState::Blocked => {
                (last.waker, last.context) = (event.other, event.context);
                self.push(segment(event, ThreadState::Runnable, event.argument));
            }
            ThreadState::Absent => self.push(segment(event, ThreadState::Runnable, event.argument)),
            ThreadState::Running | ThreadState::Runnable => {
                self.early = Early { ts: event.ts, waker: event.other, context: event.context };
            }
        }
    }

    fn migrate(&mut self, event: &SchedEvent) {
        if self.last().state == ThreadState::Runnable {
            self.push(segment(event, ThreadState::Runnable, event.argument));
        }
    }

    fn create(&mut self, event: &SchedEvent) {
        let last = self.last();
        if last.state == ThreadState::Absent {
            (last.waker, last.context) = (event.other, 0);
        }
        self.push(segment(event, ThreadState::Runnable, event.cpu));
    }
}

impl Timeline {
    fn feed(&mut self, event: &SchedEvent) {
        match event.change {
            SchedChange::Switch => self.switch(event),
            SchedChange::Waking => self.wake(event),
            SchedChange::Migrate => self.migrate(event),
            SchedChange::Fork => self.create(event),
            SchedChange::Sampled => self.find(event),
        }
    }

    /// Handles a sample. If it contradicts the thread believed to run on the CPU, that thread was
    /// switched out before, and the sampled one runs from now on at the latest.
    fn find(&mut self, event: &SchedEvent) {
        let believed = self.cpus.get(usize::from(event.cpu)).and_then(|runs| runs.last());
        if believed
            .is_some_and(|run| run.tid != event.tid && run.start.after(SAMPLE_RACE_MAX) < event.ts)
        {
            let found = SchedEvent { other: event.tid, ..*event };
            let before = self.run(&found);
            self.left_unseen(before, &found);
            self.enter(&found);
        }
    }

    /// Returns the history of a thread; starts it with the state before its first event.
    fn thread(&mut self, tid: Tid, first: Segment) -> Option<&mut ThreadHistory> {
        let first = Segment { start: self.from, ..first };
        self.threads
            .get_or_add(tid, || ThreadHistory { segments: vec![first], early: Early::default() })
    }

    fn switch(&mut self, event: &SchedEvent) {
        let before = self.run(event).filter(|tid| *tid != event.tid);
        self.left_unseen(before, event);
        if let Some(thread) =
            self.thread(event.tid, segment(event, ThreadState::Running, event.cpu))
        {
            thread.leave(event);
        }
        self.enter(event);
    }

    fn left_unseen(&mut self, before: Option<Tid>, event: &SchedEvent) {
        if let Some(thread) = before.and_then(|tid| self.threads.get_mut(tid)) {
            thread.left_unseen(event);
        }
    }

    fn enter(&mut self, event: &SchedEvent) {
        if let Some(thread) =
            self.thread(event.other, segment(event, ThreadState::Runnable, event.cpu))
        {
            thread.enter(event);
        }
    }

    /// Records the thread that runs on a CPU from now on, and returns the one seen there last.
    fn run(&mut self, event: &SchedEvent) -> Option<Tid> {
        let cpu = usize::from(event.cpu);
        if cpu >= CPU_LIMIT {
            return None;
        }
        if cpu >= self.cpus.len() {
            self.cpus.resize(cpu + 1, Vec::new());
        }
        let runs = &mut self.cpus[cpu];
        if runs.is_empty() {
            runs.push(CpuRun { start: self.from, tid: event.tid });
        }
        let before = runs.last().map(|run| run.tid);
        runs.push(CpuRun { start: event.ts, tid: event.other });
        before
    }

    fn wake(&mut self, event: &SchedEvent) {
        let before =
            Segment { context: CONTEXT_UNKNOWN, ..segment(event, ThreadState::Blocked, 0) };
        if let Some(thread) = self.thread(event.tid, before) {
            thread.wake(event);
        }
    }

    fn migrate(&mut self, event: &SchedEvent) {
        if let Some(thread) =
            self.thread(event.tid, segment(event, ThreadState::Runnable, event.cpu))
        {
            thread.migrate(event);
        }
    }

    fn create(&mut self, event: &SchedEvent) {
        let absent =
            Segment { waker: event.other, context: 0, ..segment(event, ThreadState::Absent, 0) };
        if let Some(thread) = self.thread(event.tid, absent) {
            thread.create(event);
        }
    }

    fn rest(&mut self, task: &Resting) {
        let state =
            if task.state & !0x8000 == 0 { self.resting_state(task) } else { ThreadState::Blocked };
        let place = if state == ThreadState::Blocked { task.state } else { task.cpu.0 as u16 };
        let context = if state == ThreadState::Blocked { CONTEXT_UNKNOWN } else { 0 };
        let start = self.from;
        self.thread(task.tid, Segment { start, waker: Tid(0), place, state, context });
    }

    /// Returns the state of a task without events on its CPU: running all the time, unless another
    /// thread was seen there.
    fn resting_state(&self, task: &Resting) -> ThreadState {
        let cpu = task.cpu.0 as usize;
        let runs = self.cpus.get(cpu).map_or(&[][..], Vec::as_slice);
        match runs.last() {
            Some(run) if run.tid != task.tid => ThreadState::Runnable,
            _ => ThreadState::Running,
        }
    }
}

fn segment(event: &SchedEvent, state: ThreadState, place: u16) -> Segment {
    Segment { start: event.ts, waker: Tid(0), place, state, context: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch(ts: u64, tid: u32, other: u32) -> SchedEvent {
        SchedEvent { argument: 0, ..SchedEvent::switched(Nanos(ts), 0, tid, other) }
    }

    fn sampled(us: u64, tid: u32) -> SchedEvent {
        SchedEvent { change: SchedChange::Sampled, ..switch(us * 1_000, tid, 0) }
    }

    fn ran(timeline: &Timeline, from_us: u64, to_us: u64) -> Vec<(Option<u32>, u64, u64)> {
        let ran = timeline.ran(Cpu(0), Nanos(from_us * 1_000), Nanos(to_us * 1_000)).into_iter();
        ran.map(|(tid, from, to)| (tid.map(|tid| tid.0), from.0 / 1_000, to.0 / 1_000)).collect()
    }

    #[test]
    fn a_sample_corrects_the_running_thread() {
        let events =
            [switch(0, 0, 5), sampled(2_000, 7), sampled(3_000, 7), switch(4_000_000, 7, 0)];
        let timeline = Timeline::new(events, &[], Nanos(5_000_000));
        let expected = [(Some(5), 0, 2_000), (Some(7), 2_000, 4_000), (Some(0), 4_000, 5_000)];
        assert_eq!(ran(&timeline, 0, 5_000), expected);
        let left = timeline.segments(Tid(5)).last().expect("it was seen");
        assert_eq!(
            (left.start, left.state, left.context),
            (Nanos(2_000_000), ThreadState::Blocked, CONTEXT_UNKNOWN)
        );
        let runs: Vec<Span> = timeline
            .spans(Tid(7))
            .filter(|span| span.segment.state == ThreadState::Running)
            .collect();
        assert_eq!(
            runs.iter().map(|span| (span.start.0, span.end.0)).collect::<Vec<_>>(),
            [(2_000_000, 4_000_000)]
        );
    }

    #[test]
    fn samples_beside_a_switch_or_before_all_changes_are_ignored() {
        let events = [sampled(1, 9), switch(1_000_000, 7, 5), sampled(1_050, 7), sampled(1_500, 5)];
        let timeline = Timeline::new(events, &[], Nanos(2_000_000));
        assert_eq!(ran(&timeline, 1_000, 2_000), [(Some(5), 1_000, 2_000)]);
        assert_eq!((timeline.segments(Tid(9)), timeline.from), (&[][..], Nanos(1_000_000)));
    }

    #[test]
    fn a_thread_has_left_its_cpu_once_another_one_leaves_it() {
        let timeline =
            Timeline::new([switch(10, 0, 5), switch(20, 7, 0), switch(30, 0, 5)], &[], Nanos(40));
        let states: Vec<(u64, ThreadState)> = timeline
            .segments(Tid(5))
            .iter()
            .map(|segment| (segment.start.0, segment.state))
            .collect();
        let after = [(20, ThreadState::Blocked), (30, ThreadState::Running)];
        assert_eq!(states[states.len() - 2..], after, "{states:?}");
        assert_eq!(
            timeline.segments(Tid(7)).last().map(|segment| segment.state),
            Some(ThreadState::Runnable)
        );
    }
}
