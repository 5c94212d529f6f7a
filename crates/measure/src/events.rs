// SPDX-License-Identifier: MIT OR Apache-2.0
//! One event of interaction, from its input to its picture, and the events that are still open.
//!
//! All times are nanoseconds of CLOCK_MONOTONIC. A latency is t_end - t_in and has parts that sum to it exactly:
//! the *queue* until the application takes the event, and the *processing* from there to its end. The
//! *presentation* from the end until it is on the screen comes on top, where a real time of it exists; a
//! part that cannot be told is `None`, never 0.

use crate::document::Events;
use crate::threshold::Limits;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Events that can be open at a time; more are counted as lost. A person makes some ten a second.
pub const OPEN_MAX: usize = 65_536;

/// How a drawing was found to answer an input.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Join {
    /// By time only: another cause of the drawing cannot be ruled out.
    Speculative,
    /// On the same connection, or along a chain of wake-ups that was followed.
    Exact,
}

/// The end of an event, or of what was seen of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// It was handled then.
    At(u64),
    /// It had not ended when the capture did: its latency is at least what was seen.
    After(u64),
}

/// The times of an event; [`Times::event`] checks them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    /// t_in: the kernel had the input, or it was injected.
    pub input: u64,
    /// t_deq: the application took it; `None` where that was not seen.
    pub taken: Option<u64>,
    /// The first drawing that it caused.
    pub drawn: Option<u64>,
    /// The last drawing that it caused before the application was idle-waiting again.
    pub settled: Option<u64>,
    /// t_end.
    pub end: End,
    /// t_pres: it was on the screen; `None` where nothing tells.
    pub presented: Option<u64>,
    pub join: Join,
}

/// An event whose times follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    times: Times,
}

/// What a latency is made of, nanoseconds. Of an unfinished event the last known part is at least what stands here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parts {
    pub queue: Option<u64>,
    pub processing: Option<u64>,
    pub presentation: Option<u64>,
}

impl End {
    /// When it was last seen.
    pub fn time(self) -> u64 {
        match self {
            End::At(at) | End::After(at) => at,
        }
    }
}

impl Times {
    /// The event, where no time lies before one that it must follow; else `None`, since some clock was wrong.
    ///
    /// Drawing may begin before the event counts as handled and settle after it, so it must only follow the input.
    /// What had not ended cannot have been presented.
    pub fn event(self) -> Option<Event> {
        let taken = self.taken.unwrap_or(self.input);
        let drawn = self.drawn.unwrap_or(self.input);
        let handled = self.input <= taken && taken <= self.end.time();
        let shown = self.presented.is_none_or(|at| self.end.time() <= at && matches!(self.end, End::At(_)));
        let drew = self.input <= drawn && self.settled.is_none_or(|at| drawn <= at);
        (handled && shown && drew).then_some(Event { times: self })
    }
}

impl Event {
    /// When what happened.
    pub fn times(&self) -> Times {
        self.times
    }

    /// Handling latency: from the input to the end, or to the end of the capture where it is censored.
    pub fn latency(&self) -> u64 {
        self.since_input(self.times.end.time())
    }

    /// Whether the latency is at least, not exactly, what [`Event::latency`] says.
    pub fn is_censored(&self) -> bool {
        matches!(self.times.end, End::After(_))
    }

    /// From the input to the first drawing that it caused.
    pub fn first_response(&self) -> Option<u64> {
        self.times.drawn.map(|at| self.since_input(at))
    }

    /// From the input to the last drawing that it caused.
    pub fn settled(&self) -> Option<u64> {
        self.times.settled.map(|at| self.since_input(at))
    }

    /// Queue and processing sum to the latency; with the presentation, they sum to the time until it is shown.
    pub fn parts(&self) -> Parts {
        let (times, end) = (self.times, self.times.end.time());
        Parts {
            queue: times.taken.map(|taken| self.since_input(taken)),
            processing: times.taken.map(|taken| end.saturating_sub(taken)),
            presentation: times.presented.map(|at| at.saturating_sub(end)),
        }
    }

    fn since_input(&self, at: u64) -> u64 {
        at.saturating_sub(self.times.input)
    }
}

/// Events as a class of a run, by their input.
pub fn columns(class: &str, limits: Option<Limits>, events: &[Event]) -> Events {
    let mut sorted: Vec<&Event> = events.iter().collect();
    sorted.sort_by_key(|event| event.times.input);
    let mut columns = Events::of(class, limits);
    for event in sorted {
        columns.push(event.times.input, event.latency());
        columns.censored += u64::from(event.is_censored());
    }
    columns
}

/// An event that has not ended.
#[derive(Clone, Copy, Debug)]
struct Open {
    input: u64,
    taken: Option<u64>,
    drawn: Option<u64>,
    settled: Option<u64>,
    join: Join,
}

impl Open {
    /// It has no time before its input, however wrong a clock was.
    fn end(self, end: End) -> Event {
        let Open { input, taken, drawn, settled, join } = self;
        Event { times: Times { input, taken, drawn, settled, end, presented: None, join } }
    }
}

/// The events of one receiver that have not ended, the oldest first.
///
/// Inputs that the application takes or answers together are *coalesced*: each keeps its own input time and
/// ends by itself, so that the one that waited longest is not hidden by the last one. Times are given in ascending
/// order; one that lies before an earlier one counts as that one.
#[derive(Clone, Debug, Default)]
pub struct Pending {
    open: VecDeque<Open>,
    now: u64,
    lost: u64,
}

impl Pending {
    /// None are open.
    pub fn new() -> Pending {
        Pending::default()
    }

    /// An input came. Where [`OPEN_MAX`] are open it is counted as lost; none that is open gives way to it.
    pub fn input(&mut self, at: u64) {
        let input = self.advance(at);
        if self.open.len() >= OPEN_MAX {
            self.lost = self.lost.saturating_add(1);
            return;
        }
        self.open.push_back(Open { input, taken: None, drawn: None, settled: None, join: Join::Speculative });
    }

    /// The application took so many of those that it had not taken, the oldest first.
    pub fn taken(&mut self, at: u64, count: usize) {
        let at = self.advance(at);
        for open in self.open.iter_mut().filter(|open| open.taken.is_none()).take(count) {
            open.taken = Some(at);
        }
    }

    /// Something was drawn that answers all that were taken. An exact join is not made worse by a later drawing.
    pub fn drawn(&mut self, at: u64, join: Join) {
        let at = self.advance(at);
        for open in self.open.iter_mut().filter(|open| open.taken.is_some()) {
            open.drawn.get_or_insert(at);
            open.settled = Some(at);
            open.join = open.join.max(join);
        }
    }

    /// The application is done with all that it had taken: they end, each by its own input time.
    pub fn done(&mut self, at: u64) -> Vec<Event> {
        let at = self.advance(at);
        let (ended, open) = self.open.drain(..).partition::<VecDeque<Open>, _>(|open| open.taken.is_some());
        self.open = open;
        ended.into_iter().map(|open| open.end(End::At(at))).collect()
    }

    /// The capture ends: what is open is kept as censored.
    pub fn cut(mut self, at: u64) -> Vec<Event> {
        let at = self.advance(at);
        self.open.into_iter().map(|open| open.end(End::After(at))).collect()
    }

    /// How many are open.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Inputs that there was no room for.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    fn advance(&mut self, at: u64) -> u64 {
        self.now = self.now.max(at);
        self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Class, Profile};
    use proptest::prelude::*;

    fn times(input: u64, taken: Option<u64>, end: End) -> Times {
        Times { input, taken, drawn: None, settled: None, end, presented: None, join: Join::Exact }
    }

    #[test]
    fn an_event_has_its_parts() {
        let times =
            Times { drawn: Some(130), settled: Some(190), presented: Some(166), ..times(100, Some(110), End::At(150)) };
        let event = times.event().expect("its times follow each other");
        assert_eq!((event.latency(), event.first_response(), event.settled()), (50, Some(30), Some(90)));
        assert_eq!(event.parts(), Parts { queue: Some(10), processing: Some(40), presentation: Some(16) });
        assert!(!event.is_censored());
    }

    #[test]
    fn what_was_not_seen_is_none_and_not_zero() {
        let event = times(100, None, End::At(150)).event().expect("its times follow each other");
        assert_eq!(event.parts(), Parts { queue: None, processing: None, presentation: None });
        assert_eq!((event.latency(), event.first_response(), event.settled()), (50, None, None));
    }

    #[test]
    fn an_unfinished_event_is_at_least_what_was_seen() {
        let event = times(100, Some(120), End::After(1_000)).event().expect("its times follow each other");
        assert_eq!((event.latency(), event.is_censored()), (900, true));
        assert_eq!(event.parts().processing, Some(880));
        let presented = Times { presented: Some(2_000), ..times(100, Some(120), End::After(1_000)) };
        assert_eq!(presented.event(), None);
    }

    #[test]
    fn times_that_do_not_follow_each_other_are_no_event() {
        assert_eq!(times(100, None, End::At(99)).event(), None);
        assert_eq!(times(100, Some(99), End::At(120)).event(), None);
        assert_eq!(times(100, Some(121), End::At(120)).event(), None);
        let event = times(100, None, End::At(120));
        assert_eq!(Times { presented: Some(119), ..event }.event(), None);
        assert_eq!(Times { drawn: Some(99), ..event }.event(), None);
        assert_eq!(Times { drawn: Some(110), settled: Some(109), ..event }.event(), None);
        assert_eq!(Times { settled: Some(99), ..event }.event(), None);
    }

    #[test]
    fn coalesced_events_keep_their_own_input() {
        let mut pending = Pending::new();
        [100, 110, 120].into_iter().for_each(|at| pending.input(at));
        pending.taken(130, 2);
        pending.drawn(140, Join::Exact);
        pending.drawn(145, Join::Speculative);
        let ended = pending.done(150);
        let seen: Vec<(u64, u64)> = ended.iter().map(|event| (event.times().input, event.latency())).collect();
        assert_eq!(seen, [(100, 50), (110, 40)]);
        assert_eq!(
            (ended[1].first_response(), ended[1].settled(), ended[1].times().join),
            (Some(30), Some(35), Join::Exact)
        );
        assert_eq!(pending.open(), 1);
        let cut = pending.cut(1_000);
        assert_eq!((cut.len(), cut[0].latency(), cut[0].is_censored()), (1, 880, true));
        assert_eq!((cut[0].times().taken, cut[0].first_response()), (None, None));
    }

    #[test]
    fn an_open_event_gives_way_to_no_other() {
        let mut pending = Pending::new();
        (0..OPEN_MAX as u64 + 3).for_each(|at| pending.input(at));
        assert_eq!((pending.open(), pending.lost()), (OPEN_MAX, 3));
        pending.taken(OPEN_MAX as u64 + 3, 1);
        assert_eq!(pending.done(OPEN_MAX as u64 + 4)[0].times().input, 0);
    }

    #[test]
    fn columns_are_in_the_order_of_inputs() {
        let open = times(50, None, End::After(200)).event().expect("its times follow each other");
        let ended = times(100, None, End::At(150)).event().expect("its times follow each other");
        let limits = Class::Key.limits(Profile::Default);
        let columns = columns("key", Some(limits), &[ended, open]);
        assert_eq!((columns.starts_ns, columns.latencies_ns, columns.censored), (vec![50, 100], vec![150, 50], 1));
        assert_eq!(columns.threshold_ns, Some(limits.threshold));
    }

    /// What may come to a receiver.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Input,
        Taken(usize),
        Drawn,
        Done,
    }

    fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
        let step = prop_oneof![
            4 => Just(Step::Input),
            3 => (0..4_usize).prop_map(Step::Taken),
            2 => Just(Step::Drawn),
            2 => Just(Step::Done),
        ];
        proptest::collection::vec((any::<u64>(), step), 0..60)
    }

    proptest! {
        #[test]
        fn parts_sum_exactly(mut at in proptest::collection::vec(any::<u64>(), 4), censored in any::<bool>()) {
            at.sort_unstable();
            let end = if censored { End::After(at[2]) } else { End::At(at[2]) };
            let times = Times { presented: (!censored).then_some(at[3]), ..times(at[0], Some(at[1]), end) };
            let event = times.event().expect("its times follow each other");
            let parts = event.parts();
            prop_assert_eq!(parts.queue.zip(parts.processing).map(|(queue, rest)| queue + rest), Some(event.latency()));
            let shown = parts.presentation.map(|rest| event.latency() + rest);
            prop_assert_eq!(shown, times.presented.map(|shown| shown - at[0]));
        }

        #[test]
        fn every_input_becomes_one_event(steps in steps()) {
            let mut pending = Pending::new();
            let mut events = Vec::new();
            for (at, step) in &steps {
                match step {
                    Step::Input => pending.input(*at),
                    Step::Taken(count) => pending.taken(*at, *count),
                    Step::Drawn => pending.drawn(*at, Join::Exact),
                    Step::Done => events.extend(pending.done(*at)),
                }
            }
            events.extend(pending.cut(u64::MAX));
            let inputs = steps.iter().filter(|(_, step)| matches!(step, Step::Input)).count();
            prop_assert_eq!(events.len(), inputs);
            prop_assert!(events.iter().all(|event| event.times().event().is_some()), "{:?}", events);
        }
    }
}
