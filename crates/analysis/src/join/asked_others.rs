// SPDX-License-Identifier: MIT OR Apache-2.0
//! Answers to an input from other processes or hosts that the program asked because of it.

use crate::decode::messages::PartPlace;
use crate::join::answer::{NOTICED, Reached, SEPARATE_MIN};
use crate::join::commands;
use crate::join::drawing_cause::Hop;
use crate::join::input_work::{AskedAnswer, Work};
use crate::join::inputs::Delivery;
use crate::join::server_drawings::{Drawing, drawing};
use crate::join::starts::Presses;
use crate::timeline::bursts::FRAME;
use crate::timeline::recording::Recording;
use std::collections::{BTreeMap, HashMap};
use tipme_measure::InputClass;
use tipme_record::{Nanos, Tid};

/// Gap between two frames from which on an animation visibly stops.
pub(crate) const HITCH: Nanos = Nanos::from_millis(100);

/// Number of preceding keys with an echo after which a remote shell is expected to echo the next
/// one; passwords have no echo.
const ECHOES_MIN: usize = 3;

/// Maximum number of answered inputs of each class, and minimum number of them after which a
/// drawing must recur with the same delay to be a blinking caret.
const ANSWERED_MAX: usize = 64;
const BLINKS_MIN: usize = 2;
/// Maximum number of drawings taken for one change: a second of frames.
const RUN_MAX: usize = 64;

/// Minimum time from an input to an answer of others that follows its own response: carets blink
/// every 600 ms.
const LATE_MIN: Nanos = Nanos::from_millis(750);

/// Joined inputs and drawings of one connection, for the search for answers from others.
pub(crate) struct AskedOthers<'a> {
    pub recording: &'a Recording,
    pub work: &'a Work<'a>,
    pub presses: &'a Presses,
    /// Receipts of button releases on this connection, with the receiving thread.
    pub releases: Option<&'a BTreeMap<Nanos, Tid>>,
    /// Drawings without a cause within the program itself, with the drawing thread.
    pub unexplained: &'a [(Nanos, Tid, PartPlace)],
    /// All drawings, in chronological order.
    pub drawn: &'a [(Nanos, PartPlace)],
    /// Send times of answered inputs, by class.
    pub answered: &'a HashMap<InputClass, Vec<Nanos>>,
    /// `true` for each key and click so far that led to a drawing.
    pub shown: &'a [bool],
}

impl AskedOthers<'_> {
    /// Returns the answer of others that arrived long after the program's own first drawing, such
    /// as a page after its link looked pressed.
    pub(crate) fn completed(&self, delivery: &Delivery, answered: Nanos) -> Option<Reached> {
        let (at, tid) = delivery.dequeued?;
        let terminal = commands::writers(self.recording, tid, at).next().is_some();
        let of_others = self.answer(delivery, LATE_MIN).filter(|answer| terminal || answer.sure);
        let (drawing, hops) = of_others
            .and_then(|answer| self.drawn_late(answer, answered))
            .or_else(|| self.drawn_late(self.by_request(delivery, LATE_MIN)?, answered))?;
        Some(Reached::drawn(drawing, hops))
    }

    /// Returns the drawing of an answer, if it ended long after the response, and the way to it.
    fn drawn_late(&self, answer: AskedAnswer, responded: Nanos) -> Option<(Drawing, Vec<Hop>)> {
        let drawing = drawing(self.recording, answer.place)?;
        (drawing.end > responded.after(SEPARATE_MIN)).then_some((drawing, answer.hops))
    }

    /// Returns the answer of others to a key or click, before the next one was received. There must
    /// be a drawing at least `after` past the input.
    fn answer(&self, delivery: &Delivery, after: Nanos) -> Option<AskedAnswer> {
        let drawn = self.drawn_before_next(delivery, after)?;
        let (at, _) = delivery.dequeued?;
        let releases = self.releases.filter(|_| delivery.class == InputClass::Click);
        let until = drawn.last().map_or(at, |(sent, ..)| *sent);
        let release =
            releases.and_then(|all| all.range(at..until).next()).map(|(taken, by)| (*taken, *by));
        // A drawing long after the echo is no echo.
        let terminals = after >= LATE_MIN || self.echoes();
        self.work
            .answered_by_others(delivery, release, drawn, terminals, |sent| self.blinks(at, sent))
    }

    /// Returns the answer of others to an input that has no answer otherwise.
    pub(crate) fn any(&self, delivery: &Delivery) -> Option<AskedAnswer> {
        self.answer(delivery, Nanos(0)).or_else(|| self.by_request(delivery, NOTICED))
    }

    /// Returns the answer, at least `after` past a key or click, that followed the reply of another
    /// process at work on a request of the program.
    fn by_request(&self, delivery: &Delivery, after: Nanos) -> Option<AskedAnswer> {
        let drawn = self.drawn_before_next(delivery, after)?;
        let first = drawn.partition_point(|(sent, ..)| *sent < delivery.input.after(after));
        self.work.answered_by_request(delivery, &drawn[first..], self.echoes())
    }

    /// Returns `true` if the last keys and clicks each drew something.
    fn echoes(&self) -> bool {
        self.shown.len() >= ECHOES_MIN
            && self.shown.iter().rev().take(ECHOES_MIN).all(|shown| *shown)
    }

    /// Returns the drawings without a cause in the program between a key or click and the next one;
    /// `None` if the last one is less than `after` past the input.
    fn drawn_before_next(
        &self,
        delivery: &Delivery,
        after: Nanos,
    ) -> Option<&[(Nanos, Tid, PartPlace)]> {
        let (at, _) = delivery.dequeued.filter(|_| delivery.class != InputClass::Motion)?;
        // The recorder seals the window a little after the mark.
        if at > self.recording.mark {
            return None;
        }
        let next = self
            .presses
            .get(&delivery.client)
            .and_then(|all| all.range(at.after(Nanos(1))..).next());
        let next = next.copied().map_or(self.recording.mark, |next| next.min(self.recording.mark));
        let first = self.unexplained.partition_point(|(sent, ..)| *sent <= at);
        let end = self.unexplained.partition_point(|(sent, ..)| *sent <= next);
        let drawn = self.unexplained.get(first..end).unwrap_or_default();
        let late = drawn.last().is_some_and(|(sent, ..)| *sent >= delivery.input.after(after));
        late.then_some(drawn)
    }

    /// Returns `true` if the uninterrupted run of drawings with this one began equally long after
    /// other, answered inputs: a blinking caret.
    fn blinks(&self, at: Nanos, sent: Nanos) -> bool {
        let run = self.drawn[..self.drawn.partition_point(|(drawn, _)| *drawn <= sent)]
            .iter()
            .rev()
            .map(|(drawn, _)| *drawn);
        let begin = run.take(RUN_MAX).find(|drawn| self.begins_run(*drawn));
        let Some(begin) = begin else { return false };
        let answered = self.answered.values().flat_map(|sent| sent.iter().rev().take(ANSWERED_MAX));
        let again = answered.filter(|input| self.run_begins_near(input.after(begin.since(at))));
        begin > at && again.take(BLINKS_MIN).count() == BLINKS_MIN
    }

    fn begins_run(&self, drawn: Nanos) -> bool {
        paused_before(self.drawn, drawn) > HITCH
    }

    /// Returns `true` if a run of drawings began within a frame of `due`, without a known cause.
    fn run_begins_near(&self, due: Nanos) -> bool {
        let first = self.unexplained.partition_point(|(sent, ..)| sent.after(FRAME) < due);
        let mut near =
            self.unexplained[first..].iter().take_while(|(sent, ..)| *sent <= due.after(FRAME));
        near.any(|(sent, ..)| self.begins_run(*sent))
    }
}

/// Returns the gap before the drawing at `sent`.
pub(crate) fn paused_before(drawn: &[(Nanos, PartPlace)], sent: Nanos) -> Nanos {
    let before = drawn.partition_point(|(at, _)| *at < sent).checked_sub(1);
    before.map_or(Nanos(0), |last| sent.since(drawn[last].0))
}
