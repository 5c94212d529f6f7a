// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the user is likely to turn to next, from what followed what before.
//!
//! People work in rounds: edit, build, look, edit. So for each program the model counts which ones followed it, and
//! lets old counts fade with each new one: a habit counts after a few rounds, and is forgotten after some more. What
//! the user only passes through, for less than `PASSING`, is not counted. Each change of focus is first compared with
//! what the model would have said, so that its hits are those of real use; then it is learnt.
//!
//! The model holds names of programs and numbers, no titles and no times of day. It can be written down and read
//! again; whatever is read keeps the bounds. What to do with a prediction, and within which bound, is the caller's.
//!
//! Login is where each session's round begins: what was turned to first then follows [`LOGIN`].

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tipme_record::Nanos;
use tipme_record::text::cut;

/// Programs whose followers are known; beyond, the one that was left longest ago is dropped.
pub const PROGRAMS_MAX: usize = 128;
/// Followers of a program; beyond, the one with the least weight is dropped.
pub const FOLLOWERS_MAX: usize = 16;
/// Bytes of a name; longer ones are cut.
pub const NAME_BYTES_MAX: usize = 64;
/// Programs that are predicted at a time.
pub const PREDICTED_MAX: usize = 3;
/// Of these, programs that are made ready at a time.
pub const MADE_READY_MAX: usize = 2;
/// So long after a change of focus nothing is made ready: the focused program comes first.
pub const SETTLED: Nanos = Nanos::from_secs(2);
/// Less likely ones are not predicted.
pub(crate) const PROBABILITY_MIN: f64 = 0.1;
/// Stands for the begin of a session where programs stand; no program is named so.
pub const LOGIN: &str = "";
/// A program that has the focus for a shorter time was only passed.
pub(crate) const PASSING: Nanos = Nanos::from_millis(1_000);

/// What of the weights is left when another change from the same program is learnt.
const KEEP: f64 = 0.9;
/// Weight of what has never been seen, so that little experience makes no great claims.
const UNSEEN: f64 = 1.0;
/// Weights stay below 1 / (1 - [`KEEP`]).
const WEIGHT_MAX: f64 = 10.0;
/// How much less each further change after login counts for what is wanted first, and how many of them count.
const LATER: f64 = 0.8;
const CHANGES_MAX: usize = 16;

/// Programs, each with how likely it has the focus.
type Chances<'a> = BTreeMap<&'a str, f64>;

/// The history of focus changes, as far as it is of use.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct Prediction {
    programs: BTreeMap<String, Followers>,
    /// The latest change, which is not learnt before it is known whether it was more than a passing one.
    #[serde(skip)]
    latest: Option<FocusSwitch>,
    /// Changes learnt, which is also the clock of the bounds.
    turn: u64,
    hits: u64,
    misses: u64,
    dropped: u64,
}

/// What followed a program.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Followers {
    weights: BTreeMap<String, f64>,
    /// When one was learnt last.
    turn: u64,
}

/// A change of focus.
#[derive(Clone, PartialEq, Debug)]
struct FocusSwitch {
    at: Nanos,
    from: String,
    to: String,
}

/// A history as it was written down, by whomever.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Written {
    programs: BTreeMap<String, Followers>,
    turn: u64,
    hits: u64,
    misses: u64,
    dropped: u64,
}

impl From<Written> for Prediction {
    fn from(written: Written) -> Prediction {
        let Written { programs, turn, hits, misses, dropped } = written;
        let mut prediction = Prediction { turn, hits, misses, dropped, ..Prediction::default() };
        for (name, followers) in programs {
            let followers = followers.sound();
            if name.len() <= NAME_BYTES_MAX && !followers.weights.is_empty() {
                prediction.programs.insert(name, followers);
                prediction.bound_programs();
            }
        }
        prediction
    }
}

impl Prediction {
    /// The focus went from one program to another. Names are the caller's; the same program has the same name. Times
    /// are only compared with the one before.
    pub fn observe(&mut self, now: Nanos, from: &str, to: &str) {
        let (from, to) = (kept(from), kept(to));
        let latest = self.latest.take();
        let origin = match latest {
            Some(latest) if latest.passes_through(now, from) => latest.from,
            Some(latest) => {
                self.learn(&latest.from, &latest.to);
                from.to_owned()
            }
            None => from.to_owned(),
        };
        self.latest = (origin != to).then(|| FocusSwitch { at: now, from: origin, to: to.to_owned() });
    }

    /// Learns the latest change without waiting for the next one, before the history is written down.
    pub fn finish(&mut self) {
        if let Some(latest) = self.latest.take() {
            self.learn(&latest.from, &latest.to);
        }
    }

    /// What is likely to follow this program, the likeliest first, each with its probability: [`PREDICTED_MAX`] at
    /// most, and none below `PROBABILITY_MIN`.
    pub fn predict(&self, current: &str) -> Vec<(String, f64)> {
        let Some(followers) = self.programs.get(kept(current)) else { return Vec::new() };
        let all = followers.all();
        let mut list: Vec<(String, f64)> =
            followers.weights.iter().map(|(name, weight)| (name.clone(), weight / all)).collect();
        list.retain(|(_, probability)| *probability >= PROBABILITY_MIN);
        list.sort_by(|a, b| b.1.total_cmp(&a.1));
        list.truncate(PREDICTED_MAX);
        list
    }

    /// The programs that are turned to after login, those that are wanted sooner and more often first. While nothing
    /// is known of logins, any program may be the first one.
    pub fn after_login(&self) -> Vec<String> {
        let anywhere = || self.programs.keys().map(|name| (name.as_str(), 1.0)).collect();
        let mut chances: Chances<'_> =
            if self.programs.contains_key(LOGIN) { [(LOGIN, 1.0)].into() } else { anywhere() };
        let (mut worth, mut share) = (Chances::new(), 1.0);
        for _ in 0..CHANGES_MAX {
            chances = self.after_change(&chances);
            for (&name, chance) in &chances {
                *worth.entry(name).or_default() += share * chance;
            }
            share *= LATER;
        }
        let mut order: Vec<(&str, f64)> = worth.into_iter().collect();
        order.sort_by(|a, b| b.1.total_cmp(&a.1));
        order.into_iter().map(|(name, _)| name.to_owned()).collect()
    }

    /// Changes whose goal was among the predicted ones.
    pub fn hits(&self) -> u64 {
        self.hits
    }

    /// Changes whose goal was not predicted, also where nothing was.
    pub fn misses(&self) -> u64 {
        self.misses
    }

    /// Programs and followers that were dropped for the bounds.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The chances after one more change of focus.
    fn after_change<'a>(&'a self, chances: &Chances<'_>) -> Chances<'a> {
        let mut after = Chances::new();
        for (from, chance) in chances {
            let Some(followers) = self.programs.get(*from) else { continue };
            for (to, weight) in &followers.weights {
                *after.entry(to.as_str()).or_default() += chance * weight / followers.all();
            }
        }
        after
    }

    fn learn(&mut self, from: &str, to: &str) {
        if from != LOGIN {
            self.score(from, to);
        }
        self.turn = self.turn.saturating_add(1);
        let followers = self.programs.entry(from.to_owned()).or_default();
        followers.turn = self.turn;
        followers.weights.values_mut().for_each(|weight| *weight *= KEEP);
        *followers.weights.entry(to.to_owned()).or_default() += 1.0;
        self.dropped = self.dropped.saturating_add(followers.bound(to));
        self.bound_programs();
    }

    fn score(&mut self, from: &str, to: &str) {
        let predicted = self.predict(from).iter().any(|(name, _)| name == to);
        let counter = if predicted { &mut self.hits } else { &mut self.misses };
        *counter = counter.saturating_add(1);
    }

    fn bound_programs(&mut self) {
        while self.programs.len() > PROGRAMS_MAX {
            let oldest = self.programs.iter().min_by_key(|(_, followers)| followers.turn);
            let Some(oldest) = oldest.map(|(name, _)| name.clone()) else { return };
            self.programs.remove(&oldest);
            self.dropped = self.dropped.saturating_add(1);
        }
    }
}

impl FocusSwitch {
    /// Whether what it led to was left again too soon to count.
    fn passes_through(&self, now: Nanos, from: &str) -> bool {
        self.to == from && now >= self.at && now.since(self.at) < PASSING
    }
}

impl Followers {
    /// The weight of all of them, and of what has never been seen.
    fn all(&self) -> f64 {
        UNSEEN + self.weights.values().sum::<f64>()
    }

    /// Without what could not have been written by this module.
    fn sound(mut self) -> Followers {
        let sound =
            |name: &String, weight: &mut f64| name.len() <= NAME_BYTES_MAX && *weight > 0.0 && *weight <= WEIGHT_MAX;
        self.weights.retain(sound);
        self.bound("");
        self
    }

    /// Drops those with the least weight, but not `newest`; how many.
    fn bound(&mut self, newest: &str) -> u64 {
        let mut dropped = 0;
        while self.weights.len() > FOLLOWERS_MAX {
            let old = self.weights.iter().filter(|(name, _)| *name != newest);
            let Some((least, _)) = old.min_by(|a, b| a.1.total_cmp(b.1)) else { break };
            let least = least.clone();
            self.weights.remove(&least);
            dropped += 1;
        }
        dropped
    }
}

/// The name as far as it is kept.
fn kept(name: &str) -> &str {
    cut(name, NAME_BYTES_MAX)
}
