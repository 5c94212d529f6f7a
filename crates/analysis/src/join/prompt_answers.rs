// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inputs that a thread answered promptly, one after the other: then it was done with the earlier
//! ones, even if it has not waited for the next event since.

use crate::join::inputs::Delivery;
use crate::timeline::recording::Recording;
use crate::timeline::restless::PROMPT;
use std::collections::HashMap;
use tipme_measure::InputClass;
use tipme_record::{Nanos, Tid};

/// Minimum number of later, promptly answered inputs that show that a thread went on.
pub(crate) const WENT_ON_MIN: usize = 3;

/// Keys and clicks that each thread answered promptly: receipt and send.
pub(crate) struct PromptAnswers<'a> {
    recording: &'a Recording,
    prompt: HashMap<Tid, Vec<(Nanos, Nanos)>>,
    /// Receipts of all keys and clicks, by thread.
    taken: HashMap<Tid, Vec<Nanos>>,
}

impl PromptAnswers<'_> {
    pub(crate) fn find<'a>(recording: &'a Recording, deliveries: &[Delivery]) -> PromptAnswers<'a> {
        let presses = deliveries.iter().filter(|delivery| delivery.class != InputClass::Motion);
        let mut prompt: HashMap<Tid, Vec<(Nanos, Nanos)>> = HashMap::new();
        let mut taken: HashMap<Tid, Vec<Nanos>> = HashMap::new();
        for (sent, (at, tid)) in
            presses.filter_map(|delivery| Some((delivery.sent, delivery.dequeued?)))
        {
            taken.entry(tid).or_default().push(at);
            if !recording.drawings().within(tid, at, at.after(PROMPT)).is_empty() {
                prompt.entry(tid).or_default().push((at, sent));
            }
        }
        prompt.values_mut().for_each(|list| list.sort_unstable());
        taken.values_mut().for_each(|list| list.sort_unstable());
        PromptAnswers { recording, prompt, taken }
    }

    /// Returns the time at which a thread was done with an input received at `at`, if it went on to
    /// the next ones before `until`: the receipt of the next input, or `at` if that one did not
    /// have to wait.
    pub(crate) fn went_on(&self, tid: Tid, at: Nanos, until: Nanos) -> Option<Nanos> {
        self.went_on_promptly(tid, at, until).or_else(|| self.went_on_starved(tid, at, until))
    }

    fn went_on_promptly(&self, tid: Tid, at: Nanos, until: Nanos) -> Option<Nanos> {
        let all = self.prompt.get(&tid)?;
        let later = &all[all.partition_point(|(taken, _)| *taken <= at)..];
        later.get(WENT_ON_MIN - 1).filter(|(taken, _)| *taken < until)?;
        let (taken, sent) = later.first()?;
        Some(if taken.since(*sent) <= PROMPT { at } else { *taken })
    }

    /// Returns the time at which a thread that was kept from its CPU received the next input, if it
    /// drew after little work of its own: it had hardly run since the input before either, so no
    /// work on that one was left.
    fn went_on_starved(&self, tid: Tid, at: Nanos, until: Nanos) -> Option<Nanos> {
        let all = self.taken.get(&tid)?;
        let next =
            *all.get(all.partition_point(|taken| *taken <= at)).filter(|taken| **taken < until)?;
        let drawn = self.recording.drawings().next(tid, next).filter(|drawn| *drawn < until)?;
        let timeline = &self.recording.timeline;
        let prompt = timeline.run_time(tid, at, next) <= PROMPT
            && timeline.run_time(tid, next, drawn) <= PROMPT;
        prompt.then_some(next)
    }
}
