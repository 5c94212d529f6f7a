// SPDX-License-Identifier: MIT OR Apache-2.0
//! Answers to an input from other processes or hosts that the program asked because of it.

use crate::decode::messages::PartPlace;
use crate::join::answer::{COMPLETED, Milestone, NOTICED, Reached, TELLING, Task};
use crate::join::commands;
use crate::join::input_work::{AskedAnswer, Work};
use crate::join::inputs::Delivery;
use crate::join::server_drawings::drawing;
use crate::timeline::bursts::FRAME;
use crate::timeline::recording::Recording;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tipme_measure::InputClass;
use tipme_record::{Nanos, Pid, Tid};

/// Pause between two frames from which on an animation visibly stops.
pub(crate) const HITCH: Nanos = Nanos::from_millis(100);

/// A remote shell echoes what is typed where it did so of so many keys just before; it echoes no password.
const ECHOES_MIN: usize = 3;

/// Maximum number of answered inputs of each class, and minimum number of them after which a drawing must recur with the same
/// delay to be a blinking caret.
const ANSWERED_MAX: usize = 64;
const BLINKS_MIN: usize = 2;
/// Drawings that are taken for one change at most: a second of frames.
const RUN_MAX: usize = 64;

/// Inputs and drawings of one connection, as far as they are joined, for the search for answers of others.
pub(crate) struct AskedOthers<'a> {
    pub recording: &'a Recording,
    pub work: &'a Work<'a>,
    /// By client, when it took keys and clicks.
    pub presses: &'a HashMap<Pid, BTreeSet<Nanos>>,
    /// Receipts of button releases on this connection, with the receiving thread.
    pub releases: Option<&'a BTreeMap<Nanos, Tid>>,
    /// Drawings that no input led to without others who were asked, and whose they are.
    pub unexplained: &'a [(Nanos, Tid, PartPlace)],
    /// All drawings, in the order of time.
    pub drawn: &'a [(Nanos, PartPlace)],
    /// By class, when inputs that were answered had been sent.
    pub answered: &'a HashMap<InputClass, Vec<Nanos>>,
    /// Of the keys and clicks so far, whether something was drawn.
    pub shown: &'a [bool],
}

impl AskedOthers<'_> {
    /// Returns the answer of others that arrived long after the program's own first drawing, such as a page after its link
    /// looked pressed.
    pub(crate) fn completed(&self, delivery: &Delivery, answered: Nanos) -> Option<Reached> {
        let (at, tid) = delivery.dequeued?;
        let terminal = commands::writers(self.recording, tid, at).next().is_some();
        let of_others = self.answer(delivery, COMPLETED).filter(|answer| terminal || answer.sure);
        let late = |answer: AskedAnswer| {
            let drawing = drawing(self.recording, answer.place).filter(|drawing| drawing.end > answered.after(TELLING));
            drawing.map(|drawing| (drawing, answer.hops))
        };
        let by_request = || self.by_request(delivery, COMPLETED);
        let (drawing, hops) = of_others.and_then(late).or_else(|| by_request().and_then(late))?;
        let (milestone, at, task) = (Milestone::Completed, drawing.end, Task::Input);
        Some(Reached { milestone, at, drawing: Some(drawing), hops, noticed: COMPLETED, task })
    }

    /// The answer that came from others who were asked because of a key or click, before the next one was taken; only where
    /// something was drawn this long after it.
    fn answer(&self, delivery: &Delivery, after: Nanos) -> Option<AskedAnswer> {
        let drawn = self.drawn_before_next(delivery, after)?;
        let (at, _) = delivery.dequeued?;
        let releases = self.releases.filter(|_| delivery.class == InputClass::Click);
        let until = drawn.last().map_or(at, |(sent, ..)| *sent);
        let release = releases.and_then(|all| all.range(at..until).next()).map(|(taken, by)| (*taken, *by));
        let blinks = |sent: Nanos| self.blinks(at, sent);
        // What comes long after the echo is no echo.
        let terminals = after >= COMPLETED || self.echoes();
        self.work.answered_by_others(delivery, release, drawn, terminals, blinks)
    }

    /// The answer to an input that has none by itself.
    pub(crate) fn any(&self, delivery: &Delivery) -> Option<AskedAnswer> {
        self.answer(delivery, Nanos(0)).or_else(|| self.by_request(delivery, NOTICED))
    }

    /// The answer, so long after a key or click, that followed the reply of another process which was at work on a request of
    /// the program.
    fn by_request(&self, delivery: &Delivery, after: Nanos) -> Option<AskedAnswer> {
        let drawn = self.drawn_before_next(delivery, after)?;
        let first = drawn.partition_point(|(sent, ..)| *sent < delivery.input.after(after));
        self.work.answered_by_request(delivery, &drawn[first..], self.echoes())
    }

    /// Returns `true` if the last keys and clicks each drew something.
    fn echoes(&self) -> bool {
        self.shown.len() >= ECHOES_MIN && self.shown.iter().rev().take(ECHOES_MIN).all(|shown| *shown)
    }

    /// The drawings after a key or click, up to the next one, that no input led to by itself; none where nothing was drawn so
    /// long after it.
    fn drawn_before_next(&self, delivery: &Delivery, after: Nanos) -> Option<&[(Nanos, Tid, PartPlace)]> {
        let (at, _) = delivery.dequeued.filter(|_| delivery.class != InputClass::Motion)?;
        // What is sealed goes a little beyond the mark.
        if at > self.recording.mark {
            return None;
        }
        let next = self.presses.get(&delivery.client).and_then(|all| all.range(at.after(Nanos(1))..).next());
        let next = next.copied().map_or(self.recording.mark, |next| next.min(self.recording.mark));
        let place = |at: Nanos| self.unexplained.partition_point(|(sent, ..)| *sent <= at);
        let drawn = self.unexplained.get(place(at)..place(next)).unwrap_or_default();
        let late = drawn.last().is_some_and(|(sent, ..)| *sent >= delivery.input.after(after));
        late.then_some(drawn)
    }

    /// Whether the drawings that one belongs to, without a pause in between, began so long after other inputs, too, which
    /// had been answered: a caret blinks.
    fn blinks(&self, at: Nanos, sent: Nanos) -> bool {
        let run =
            self.drawn[..self.drawn.partition_point(|(drawn, _)| *drawn <= sent)].iter().rev().map(|(drawn, _)| *drawn);
        let begins = |drawn: &Nanos| paused_before(self.drawn, *drawn) > HITCH;
        let Some(begin) = run.take(RUN_MAX).find(begins) else { return false };
        let again = |input: &&Nanos| {
            let due = input.after(begin.since(at));
            let first = self.unexplained.partition_point(|(sent, ..)| sent.after(FRAME) < due);
            let near = self.unexplained[first..].iter().take_while(|(sent, ..)| *sent <= due.after(FRAME));
            near.into_iter().any(|(sent, ..)| begins(sent))
        };
        let answered = self.answered.values().flat_map(|sent| sent.iter().rev().take(ANSWERED_MAX));
        begin > at && answered.filter(again).nth(BLINKS_MIN - 1).is_some()
    }
}

/// For how long nothing had been drawn before the last of some drawings, which is of this time.
pub(crate) fn paused_before(drawn: &[(Nanos, PartPlace)], sent: Nanos) -> Nanos {
    let before = drawn.partition_point(|(at, _)| *at < sent).checked_sub(1);
    before.map_or(Nanos(0), |last| sent.since(drawn[last].0))
}
