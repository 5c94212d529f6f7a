// SPDX-License-Identifier: MIT OR Apache-2.0
//! Answers that others gave who were asked because of an input, as over a network.

use super::{ANSWERED_MAX, BLINKS_MIN, ECHOES_MIN, HITCH, Joiner, RUN_MAX};
use crate::join::answer::{COMPLETED, Interaction, Join, Milestone, Reached, TELLING, Task};
use crate::join::commands;
use crate::join::input_work::AskedAnswer;
use crate::join::server_drawings::drawing;
use crate::timeline::bursts::FRAME;
use tipme_measure::InputClass;
use tipme_record::Nanos;

impl Joiner<'_> {
    /// The answer to an input that has none by itself.
    pub(super) fn by_others(&self, index: usize) -> Option<Interaction> {
        let delivery = self.deliveries[index];
        let AskedAnswer { place, hops, sure } = self.asked(index, Nanos(0))?;
        let join = if sure { Join::Exact } else { Join::Speculative };
        Some(self.answer(delivery, join, drawing(self.recording, place)?, hops, None))
    }

    /// What others sent long after the program itself had answered: a button looks pressed at once, and its page comes later.
    pub(super) fn completed_by_others(&self, index: usize, answered: Nanos) -> Option<Reached> {
        let delivery = self.deliveries[index];
        let (at, tid) = delivery.dequeued?;
        if commands::writers(self.recording, tid, at).next().is_some() {
            return None;
        }
        let AskedAnswer { place, hops, .. } = self.asked(index, COMPLETED).filter(|answer| answer.sure)?;
        let drawing = drawing(self.recording, place).filter(|drawing| drawing.end > answered.after(TELLING))?;
        let (milestone, at, task) = (Milestone::Completed, drawing.end, Task::Input);
        Some(Reached { milestone, at, drawing: Some(drawing), hops, noticed: COMPLETED, task })
    }

    /// The answer that came from others who were asked because of a key or click, before the next one was taken; only where
    /// something was drawn this long after it.
    fn asked(&self, index: usize, after: Nanos) -> Option<AskedAnswer> {
        let delivery = self.deliveries[index];
        let (at, _) = delivery.dequeued.filter(|_| delivery.class != InputClass::Motion)?;
        // What is sealed goes a little beyond the mark.
        if at > self.recording.mark || self.dequeued_presses(index + 1).next() == Some(at) {
            return None;
        }
        let next = self.context.presses.get(&delivery.client).and_then(|all| all.range(at.after(Nanos(1))..).next());
        let next = next.copied().map_or(self.recording.mark, |next| next.min(self.recording.mark));
        let place = |at: Nanos| self.unexplained.partition_point(|(sent, ..)| *sent <= at);
        let drawn = self.unexplained.get(place(at)..place(next)).unwrap_or_default();
        let releases = self.context.releases.get(&self.stream).filter(|_| delivery.class == InputClass::Click);
        let release = releases.and_then(|all| all.range(at..next).next()).map(|(taken, by)| (*taken, *by));
        let terminals = self.shown.len() >= ECHOES_MIN && self.shown.iter().rev().take(ECHOES_MIN).all(|shown| *shown);
        let blinks = |sent: Nanos| self.blinks(at, sent);
        let late = drawn.last().is_some_and(|(sent, ..)| *sent >= delivery.input.after(after));
        late.then(|| self.context.work.answered_by_others(&delivery, release, drawn, terminals, blinks)).flatten()
    }

    /// Whether the drawings that one belongs to, without a pause in between, began so long after other inputs, too, which
    /// had been answered: a caret blinks.
    fn blinks(&self, at: Nanos, sent: Nanos) -> bool {
        let run =
            self.drawn[..self.drawn.partition_point(|(drawn, _)| *drawn <= sent)].iter().rev().map(|(drawn, _)| *drawn);
        let begins = |drawn: &Nanos| self.paused_before(*drawn) > HITCH;
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
