// SPDX-License-Identifier: MIT OR Apache-2.0
//! Think time and wait time of a repeat.
//!
//! The signals come from the joins (an event is queued until it is dequeued, and handled until the
//! end defined by its class: its first or its last drawing) and, with the display tap, from the
//! scheduler and the disk: running or runnable threads of the application and of the display
//! server, and reads awaited by threads of the application. Without the tap, a handled event counts
//! as computing throughout. A wait is therefore part of a latency or of a read; drawing after the
//! end of an event, and times without complete records, do not count.

use super::joining::InputOutcome;
use std::collections::BTreeSet;
use tipme_analysis::Recording;
use tipme_bench::measure::MeasureRepeat;
use tipme_measure::think::{self, Expectation, RECORD_NS, Signal, SignalChange, Wait};
use tipme_measure::{Event, InputClass};
use tipme_record::{Nanos, Tid};

/// Begin and end, in nanoseconds.
pub type Span = (u64, u64);

/// Recorded activity in a time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Activity {
    /// Times with running or runnable answering threads.
    pub computing: Vec<Span>,
    /// Times with outstanding reads from a disk.
    pub reading: Vec<Span>,
}

/// Time by phase, from the first step of the script to the end of the last, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PhaseTimes {
    pub wait: u64,
    /// Part of it in waits at least as long as the threshold of the request.
    pub noticed: u64,
    pub think: u64,
    /// `None` without records.
    pub background: Option<u64>,
}

impl Activity {
    /// Returns the activity of the application's processes and of its display servers.
    pub fn of(recording: &Recording, pids: &[u32]) -> Activity {
        let servers: Vec<u32> =
            recording.display_servers(pids).into_iter().map(|server| server.0).collect();
        let (own, servers) = (threads(recording, pids), threads(recording, &servers));
        let all: BTreeSet<Tid> = own.union(&servers).copied().collect();
        let spans = all.iter().flat_map(|tid| recording.timeline.spans(*tid));
        let busy = spans.filter(|span| {
            recording.timeline.is_busy(span.tid, span.start, span.start.after(Nanos(1)))
        });
        let from = recording.complete_from();
        let reads = recording.disk.outstanding(from, recording.mark);
        let reads = reads.filter(|request| own.contains(&request.tid) && !request.is_write());
        Activity {
            computing: busy.map(|span| (span.start.0, span.end.0)).collect(),
            reading: reads.map(|request| (request.start.0, request.end.0)).collect(),
        }
        .within(from.0, recording.mark.0)
    }

    /// Clips to two times. Before the start of complete records, a thread seems to stay in its last
    /// seen state.
    fn within(self, from: u64, to: u64) -> Activity {
        let [computing, reading] = [self.computing, self.reading].map(|spans| {
            spans.into_iter().map(|(start, end)| (start.max(from), end.min(to))).collect()
        });
        Activity { computing, reading }
    }

    /// Appends another recording.
    pub fn add(&mut self, other: Activity) {
        self.computing.extend(other.computing);
        self.reading.extend(other.reading);
    }
}

/// Returns the threads of some processes.
fn threads(recording: &Recording, pids: &[u32]) -> BTreeSet<Tid> {
    let lives = recording.tasks.lives().iter();
    lives.filter(|life| pids.contains(&life.pid.0)).map(|life| life.tid).collect()
}

/// Returns the phases of a repeat; `activity` is `None` without records. `threshold` returns that
/// of a class.
pub fn waits(
    repeat: &MeasureRepeat,
    outcomes: &[InputOutcome],
    activity: Option<Activity>,
    threshold: impl Fn(InputClass) -> u64,
) -> PhaseTimes {
    let answered = repeat.sent.iter().zip(outcomes).filter_map(|(sent, outcome)| match outcome {
        InputOutcome::Answered(event) => Some((sent, event)),
        InputOutcome::Silent | InputOutcome::Lost => None,
    });
    let answered: Vec<_> = answered.collect();
    let known = activity.is_some();
    let changes = changes(answered.iter().map(|(_, event)| *event), activity);
    let phases = think::phases(&changes, repeat.begun.0, repeat.ended.0, RECORD_NS);
    let mut inputs: Vec<Expectation> = answered
        .iter()
        .map(|(sent, event)| Expectation {
            at: event.times().input,
            threshold: threshold(sent.class),
        })
        .collect();
    inputs.sort_by_key(|input| input.at);
    let noticed = think::waits(&phases, &inputs).into_iter().filter(Wait::is_noticeable);
    let balance = think::balance(&phases);
    PhaseTimes {
        wait: balance.wait,
        noticed: noticed.map(|wait| wait.length()).sum(),
        think: balance.think,
        background: known.then_some(balance.background),
    }
}

fn changes<'a>(
    events: impl Iterator<Item = &'a Event>,
    activity: Option<Activity>,
) -> Vec<SignalChange> {
    let (mut queued, mut handled) = (Vec::new(), Vec::new());
    for times in events.map(Event::times) {
        let dequeued = times.dequeued.unwrap_or(times.input);
        queued.push((times.input, dequeued));
        handled.push((dequeued, times.end.time()));
    }
    let Activity { computing, reading } =
        activity.unwrap_or_else(|| Activity { computing: handled.clone(), ..Activity::default() });
    let lists = [
        (Signal::Queued, queued),
        (Signal::Handling, handled),
        (Signal::Computing, computing),
        (Signal::SynchronousIo, reading),
    ];
    let mut changes: Vec<SignalChange> =
        lists.into_iter().flat_map(|(signal, spans)| switched(signal, spans)).collect();
    changes.sort_by_key(|change| change.at);
    changes
}

/// Returns the changes of a signal that is on during any of the spans.
fn switched(signal: Signal, spans: Vec<Span>) -> Vec<SignalChange> {
    merged(spans)
        .into_iter()
        .flat_map(|(from, to)| [(from, true), (to, false)])
        .map(|(at, on)| SignalChange { at, signal, on })
        .collect()
}

/// Merges spans that overlap or touch.
fn merged(mut spans: Vec<Span>) -> Vec<Span> {
    spans.retain(|(from, to)| from < to);
    spans.sort_unstable();
    let mut merged: Vec<Span> = Vec::new();
    for (from, to) in spans {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_bench::measure::SentInput;
    use tipme_measure::{Answer, EventJoin};

    const MS: u64 = 1_000_000;

    /// Builds keys from the times of input, dequeue and first drawing; each settles 30 ms later.
    fn repeat(times: &[(u64, u64, u64)]) -> (MeasureRepeat, Vec<InputOutcome>) {
        let mut repeat = MeasureRepeat { ended: Nanos(1_000 * MS), ..MeasureRepeat::default() };
        let mut outcomes = Vec::new();
        for (input, dequeued, end) in times {
            let (at, class) = (Nanos(input * MS), InputClass::Key);
            repeat.sent.push(SentInput { at, label: "x".to_owned(), class });
            let answer = Answer {
                input: at.0,
                dequeued: Some(dequeued * MS),
                first: end * MS,
                settled: (end + 30) * MS,
                join: EventJoin::Exact,
                open: false,
            };
            outcomes.push(InputOutcome::Answered(answer.event(class)));
        }
        (repeat, outcomes)
    }

    #[test]
    fn spans_that_overlap_are_one() {
        let changes = switched(Signal::Queued, vec![(5, 9), (1, 6), (20, 20), (9, 12)]);
        assert_eq!(
            changes.iter().map(|change| (change.at, change.on)).collect::<Vec<_>>(),
            [(1, true), (12, false)]
        );
    }

    #[test]
    fn without_records_an_answer_is_awaited_all_along() {
        let (repeat, outcomes) = repeat(&[(100, 110, 150), (200, 200, 450)]);
        let waits = waits(&repeat, &outcomes, None, |_| 100 * MS);
        assert_eq!((waits.wait, waits.noticed, waits.think), (300 * MS, 250 * MS, 700 * MS));
        assert_eq!(waits.background, None);
    }

    #[test]
    fn an_application_that_sleeps_is_not_waited_for() {
        let (repeat, outcomes) = repeat(&[(100, 110, 200)]);
        let computing = vec![(110 * MS, 130 * MS), (190 * MS, 200 * MS), (600 * MS, 650 * MS)];
        let activity = Activity { computing, reading: vec![(130 * MS, 140 * MS)] };
        let waits = waits(&repeat, &outcomes, Some(activity), |_| 100 * MS);
        assert_eq!((waits.wait, waits.background), (50 * MS, Some(50 * MS)));
        assert_eq!((waits.noticed, waits.think), (0, 900 * MS));
    }

    #[test]
    fn no_wait_is_longer_than_what_was_waited_for() {
        let (repeat, outcomes) = repeat(&[(100, 110, 150), (400, 400, 420)]);
        let busy = Activity { computing: vec![(0, 1_000 * MS)], ..Activity::default() };
        let waits = waits(&repeat, &outcomes, Some(busy), |_| 100 * MS);
        assert_eq!(
            (waits.wait, waits.background),
            (70 * MS, Some(930 * MS)),
            "what settles later is background"
        );
    }

    #[test]
    fn what_is_not_recorded_as_a_whole_is_not_known_to_be_busy() {
        let computing = vec![(0, 700 * MS), (800 * MS, 900 * MS)];
        let activity = Activity { computing, reading: vec![(10 * MS, 20 * MS)] };
        let activity = activity.within(600 * MS, 850 * MS);
        let changes = switched(Signal::Computing, activity.computing);
        assert_eq!(
            changes.iter().map(|change| change.at / MS).collect::<Vec<_>>(),
            [600, 700, 800, 850]
        );
        assert_eq!(switched(Signal::SynchronousIo, activity.reading), []);
    }
}
