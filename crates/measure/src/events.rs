// SPDX-License-Identifier: MIT OR Apache-2.0
//! One interaction event, from its input to its presentation.
//!
//! All times are nanoseconds of CLOCK_MONOTONIC. A latency is t_end - t_in and has parts that sum
//! to it exactly: the *queue* time until the application dequeues the event, and the *processing*
//! time from there to its end. The *presentation* time from the end until it is on the screen is
//! added if a real time of it exists. An unknown part is `None`, never 0.

use crate::document::Events;
use crate::threshold::{ClassLimits, InputClass};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Evidence that a drawing answers an input.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum EventJoin {
    /// By time only: another cause of the drawing cannot be ruled out.
    Speculative,
    /// On the same connection, or along a chain of wake-ups that was followed.
    Exact,
}

/// End of an event, or of its observed part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Time at which it was handled.
    At(u64),
    /// End of the capture for an unfinished event: its latency is a lower bound.
    After(u64),
}

/// Times of an event; [`EventTimes::event`] checks them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EventTimes {
    /// t_in: the kernel received the input, or it was injected.
    pub input: u64,
    /// t_deq: the application dequeued it; `None` if not observed.
    pub dequeued: Option<u64>,
    /// First drawing that it caused.
    pub drawn: Option<u64>,
    /// Last drawing that it caused before the application was idle again.
    pub settled: Option<u64>,
    /// t_end.
    pub end: End,
    /// t_pres: it was on the screen; `None` if unknown.
    pub presented: Option<u64>,
    pub join: EventJoin,
}

/// Event with consistent times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    times: EventTimes,
}

/// Drawings found to answer an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// t_in.
    pub input: u64,
    /// Time at which the application dequeued it; `None` if not observed.
    pub dequeued: Option<u64>,
    /// Time of the first drawing; the end of the capture for an open answer.
    pub first: u64,
    /// Time of the last drawing.
    pub settled: u64,
    pub join: EventJoin,
    /// `true` if nothing was drawn by the end of the capture.
    pub open: bool,
}

/// Parts of a latency in nanoseconds. The last known part of an unfinished event is a lower bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parts {
    pub queue: Option<u64>,
    pub processing: Option<u64>,
    pub presentation: Option<u64>,
}

impl End {
    /// Returns the time at which it was last seen.
    pub fn time(self) -> u64 {
        match self {
            End::At(at) | End::After(at) => at,
        }
    }
}

impl EventTimes {
    /// Returns the event if each time follows those that it must follow; otherwise some clock was
    /// wrong, and the result is `None`.
    ///
    /// Drawing may begin before the event counts as handled and settle after it, so it must only
    /// follow the input. An unfinished event cannot have been presented.
    pub fn event(self) -> Option<Event> {
        let dequeued = self.dequeued.unwrap_or(self.input);
        let drawn = self.drawn.unwrap_or(self.input);
        let handled = self.input <= dequeued && dequeued <= self.end.time();
        let shown =
            self.presented.is_none_or(|at| self.end.time() <= at && matches!(self.end, End::At(_)));
        let drew = self.input <= drawn && self.settled.is_none_or(|at| drawn <= at);
        (handled && shown && drew).then_some(Event { times: self })
    }
}

impl Event {
    /// Returns the times of the event.
    pub fn times(&self) -> EventTimes {
        self.times
    }

    /// Returns the handling latency: from the input to the end, or to the end of the capture if
    /// censored.
    pub fn latency(&self) -> u64 {
        self.since_input(self.times.end.time())
    }

    /// Returns `true` if [`Event::latency`] is a lower bound.
    pub fn is_censored(&self) -> bool {
        matches!(self.times.end, End::After(_))
    }

    /// Returns the time from the input to the first drawing that it caused.
    pub fn first_response(&self) -> Option<u64> {
        self.times.drawn.map(|at| self.since_input(at))
    }

    /// Returns the time from the input to the last drawing that it caused.
    pub fn settled(&self) -> Option<u64> {
        self.times.settled.map(|at| self.since_input(at))
    }

    /// Returns the parts. Queue and processing sum to the latency; with the presentation, they sum
    /// to the time until it is shown.
    pub fn parts(&self) -> Parts {
        let (times, end) = (self.times, self.times.end.time());
        Parts {
            queue: times.dequeued.map(|dequeued| self.since_input(dequeued)),
            processing: times.dequeued.map(|dequeued| end.saturating_sub(dequeued)),
            presentation: times.presented.map(|at| at.saturating_sub(end)),
        }
    }

    fn since_input(&self, at: u64) -> u64 {
        at.saturating_sub(self.times.input)
    }
}

impl Answer {
    /// Creates the event, which ends with the first or the last drawing depending on its class.
    ///
    /// Inputs answered together keep their own input times. Since the clocks of two sources differ
    /// slightly, drawings are moved to their input if they precede it, and the last to the first. A
    /// time of dequeueing outside the event is dropped.
    pub fn event(self, class: InputClass) -> Event {
        let Answer { input, join, .. } = self;
        let first = self.first.max(input);
        let settled = self.settled.max(first);
        let last = if class.ends_with_first_drawing() { first } else { settled };
        let end = if self.open { End::After(last) } else { End::At(last) };
        let dequeued = self.dequeued.filter(|at| input <= *at && *at <= last);
        Event {
            times: EventTimes {
                input,
                dequeued,
                drawn: (!self.open).then_some(first),
                settled: (!self.open).then_some(settled),
                end,
                presented: None,
                join,
            },
        }
    }
}

/// Converts events to a class of a run, in order of input.
pub fn columns(class: &str, limits: Option<ClassLimits>, events: &[Event]) -> Events {
    let mut sorted: Vec<&Event> = events.iter().collect();
    sorted.sort_by_key(|event| event.times.input);
    let mut columns = Events::of(class, limits);
    for event in sorted {
        columns.push(event.times.input, event.latency());
        columns.censored += u64::from(event.is_censored());
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InputClass, ThresholdProfile};
    use proptest::prelude::*;

    const ANSWER: Answer = Answer {
        input: 100,
        dequeued: Some(110),
        first: 150,
        settled: 190,
        join: EventJoin::Exact,
        open: false,
    };

    fn times(input: u64, dequeued: Option<u64>, end: End) -> EventTimes {
        EventTimes {
            input,
            dequeued,
            drawn: None,
            settled: None,
            end,
            presented: None,
            join: EventJoin::Exact,
        }
    }

    #[test]
    fn an_event_has_its_parts() {
        let times = EventTimes {
            drawn: Some(130),
            settled: Some(190),
            presented: Some(166),
            ..times(100, Some(110), End::At(150))
        };
        let event = times.event().expect("its times follow each other");
        assert_eq!(
            (event.latency(), event.first_response(), event.settled()),
            (50, Some(30), Some(90))
        );
        assert_eq!(
            event.parts(),
            Parts { queue: Some(10), processing: Some(40), presentation: Some(16) }
        );
        assert!(!event.is_censored());
    }

    #[test]
    fn unobserved_parts_are_none_and_not_zero() {
        let event = times(100, None, End::At(150)).event().expect("its times follow each other");
        assert_eq!(event.parts(), Parts { queue: None, processing: None, presentation: None });
        assert_eq!((event.latency(), event.first_response(), event.settled()), (50, None, None));
    }

    #[test]
    fn an_unfinished_event_is_at_least_what_was_seen() {
        let event =
            times(100, Some(120), End::After(1_000)).event().expect("its times follow each other");
        assert_eq!((event.latency(), event.is_censored()), (900, true));
        assert_eq!(event.parts().processing, Some(880));
        let presented =
            EventTimes { presented: Some(2_000), ..times(100, Some(120), End::After(1_000)) };
        assert_eq!(presented.event(), None);
    }

    #[test]
    fn times_that_do_not_follow_each_other_are_no_event() {
        assert_eq!(times(100, None, End::At(99)).event(), None);
        assert_eq!(times(100, Some(99), End::At(120)).event(), None);
        assert_eq!(times(100, Some(121), End::At(120)).event(), None);
        let event = times(100, None, End::At(120));
        assert_eq!(EventTimes { presented: Some(119), ..event }.event(), None);
        assert_eq!(EventTimes { drawn: Some(99), ..event }.event(), None);
        assert_eq!(EventTimes { drawn: Some(110), settled: Some(109), ..event }.event(), None);
        assert_eq!(EventTimes { settled: Some(99), ..event }.event(), None);
    }

    #[test]
    fn an_answer_ends_as_its_class_does() {
        let key = ANSWER.event(InputClass::Key);
        assert_eq!((key.latency(), key.first_response(), key.settled()), (50, Some(50), Some(90)));
        assert_eq!(
            key.parts(),
            Parts { queue: Some(10), processing: Some(40), presentation: None }
        );
        assert_eq!(ANSWER.event(InputClass::Window).latency(), 90);
    }

    #[test]
    fn an_open_answer_was_not_drawn() {
        let open = Answer { dequeued: None, first: 900, settled: 900, open: true, ..ANSWER };
        let event = open.event(InputClass::Key);
        assert_eq!((event.latency(), event.is_censored()), (800, true));
        assert_eq!((event.first_response(), event.settled()), (None, None));
    }

    #[test]
    fn events_that_are_answered_together_keep_their_own_input() {
        let latencies = [100, 110, 120]
            .map(|input| Answer { input, ..ANSWER }.event(InputClass::Key).latency());
        assert_eq!(latencies, [50, 40, 30]);
    }

    #[test]
    fn columns_are_in_the_order_of_inputs() {
        let open = times(50, None, End::After(200)).event().expect("its times follow each other");
        let ended = times(100, None, End::At(150)).event().expect("its times follow each other");
        let limits = InputClass::Key.limits(ThresholdProfile::Default);
        let columns = columns("key", Some(limits), &[ended, open]);
        assert_eq!(
            (columns.starts_ns, columns.latencies_ns, columns.censored),
            (vec![50, 100], vec![150, 50], 1)
        );
        assert_eq!(columns.threshold_ns, Some(limits.threshold));
    }

    proptest! {
        #[test]
        fn parts_sum_exactly(mut at in any::<[u64; 4]>(), censored in any::<bool>()) {
            at.sort_unstable();
            let end = if censored { End::After(at[2]) } else { End::At(at[2]) };
            let presented = (!censored).then_some(at[3]);
            let times = EventTimes { presented, ..times(at[0], Some(at[1]), end) };
            let event = times.event().expect("its times follow each other");
            let parts = event.parts();
            let handling = parts.queue.zip(parts.processing).map(|(queue, rest)| queue + rest);
            prop_assert_eq!(handling, Some(event.latency()));
            let shown = parts.presentation.map(|rest| event.latency() + rest);
            prop_assert_eq!(shown, times.presented.map(|shown| shown - at[0]));
        }

        /// Times of two clocks may contradict each other; the resulting events do not.
        #[test]
        fn every_answer_becomes_an_event(at in any::<[u64; 4]>(), open in any::<bool>()) {
            let [input, dequeued, first, settled] = at;
            let (dequeued, join) = (Some(dequeued), EventJoin::Exact);
            let answer = Answer { input, dequeued, first, settled, join, open };
            for class in [InputClass::Key, InputClass::Window] {
                let event = answer.event(class);
                prop_assert_eq!(event.times().event(), Some(event));
                prop_assert_eq!(event.is_censored(), open);
            }
        }
    }
}
