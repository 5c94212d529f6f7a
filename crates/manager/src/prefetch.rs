// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the user is likely to turn to next, and having it in memory ahead.
//!
//! What is learned are names of programs, and how often one was followed by the other. It is kept in a file
//! between runs, which only the manager's user can read.

use crate::history_file;
use crate::setting::ManageOptions;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tipme_control::manager;
use tipme_policy::prediction::{LOGIN, MADE_READY_MAX, SETTLED};
use tipme_policy::{Action, MemoryAction, Prediction, SetId};
use tipme_record::Nanos;

/// A set is brought in again only after so long.
const AGAIN: Nanos = Nanos::from_secs(60);
/// Sets of which it is known when they were brought in last.
const KNOWN_MAX: usize = 256;

/// The history of focus changes and what is made of it; nothing where prediction is switched off.
pub(crate) struct Prefetch {
    prediction: Option<Prediction>,
    path: PathBuf,
    /// The program with the focus.
    current: Option<String>,
    /// When to bring in what may follow it.
    due: Option<Nanos>,
    prefetched: BTreeMap<SetId, Nanos>,
    count: u64,
}

impl Prefetch {
    /// Reads the history.
    pub(crate) fn open(options: &ManageOptions) -> Prefetch {
        let path = options.state.predictions();
        let prediction = options.predict.then(|| history_file::read(&path));
        Prefetch { prediction, path, current: None, due: None, prefetched: BTreeMap::new(), count: 0 }
    }

    /// The focus went to this program.
    pub(crate) fn focus(&mut self, program: Option<String>, now: Nanos) {
        let (Some(prediction), Some(to)) = (&mut self.prediction, program) else { return };
        let from = self.current.as_deref().unwrap_or(LOGIN);
        if from != to {
            prediction.observe(now, from, &to);
        }
        self.current = Some(to);
        self.due = Some(now.after(SETTLED));
    }

    /// Programs in the order in which they are usually turned to after login.
    pub(crate) fn after_login(&self) -> Vec<String> {
        self.prediction.as_ref().map(Prediction::after_login).unwrap_or_default()
    }

    /// What to bring into memory now, of these programs' sets, which are asked for only then; the caller has seen
    /// that memory is free.
    pub(crate) fn actions(
        &mut self,
        programs: impl FnOnce() -> Vec<(SetId, String)>,
        focused: Option<SetId>,
        now: Nanos,
    ) -> Vec<Action> {
        let (Some(prediction), Some(current)) = (&self.prediction, &self.current) else { return Vec::new() };
        if self.due.is_none_or(|due| now < due) {
            return Vec::new();
        }
        self.due = None;
        let (likely, programs) = (prediction.predict(current), programs());
        let named = |name: &str| programs.iter().filter(|(_, program)| program == name).collect::<Vec<_>>();
        let sets = likely.iter().flat_map(|(name, _)| named(name)).map(|(set, _)| *set);
        let sets = sets.filter(|set| Some(*set) != focused);
        let cold = |set: &SetId| self.prefetched.get(set).is_none_or(|at| now.since(*at) >= AGAIN);
        let sets: Vec<SetId> = sets.filter(cold).take(MADE_READY_MAX).collect();
        self.note(&sets, now);
        sets.into_iter().map(|set| Action::Memory(MemoryAction::WillNeed(set))).collect()
    }

    /// `None` where prediction is switched off.
    pub(crate) fn figures(&self) -> Option<manager::PredictionStatus> {
        let prediction = self.prediction.as_ref()?;
        let (hits, misses) = (prediction.hits(), prediction.misses());
        Some(manager::PredictionStatus { predictions: hits.saturating_add(misses), hits, warmed: self.count })
    }

    /// Writes the history down.
    pub(crate) fn save(&mut self) {
        let Some(prediction) = &mut self.prediction else { return };
        prediction.finish();
        history_file::write(&self.path, prediction);
    }

    fn note(&mut self, sets: &[SetId], now: Nanos) {
        self.count += sets.len() as u64;
        self.prefetched.retain(|_, at| now.since(*at) < AGAIN);
        let room = KNOWN_MAX.saturating_sub(self.prefetched.len());
        self.prefetched.extend(sets.iter().take(room).map(|set| (*set, now)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::StateDir;
    use std::path::Path;
    use tipme_policy::{Identity, Strength};

    fn options(dir: &Path, predict: bool) -> ManageOptions {
        let state = StateDir::choose(Some(dir));
        let (strength, backend, display) = (Strength::Normal, None, None);
        let helper = crate::setting::UseHelper::Never;
        let recorder = dir.to_owned();
        ManageOptions { strength, backend, display, recorder, under: None, cgroup: None, state, predict, helper }
    }

    fn set(pid: u32) -> SetId {
        SetId(Identity { pid, start: 1 })
    }

    /// Edit, build, look, again and again.
    fn work(prefetch: &mut Prefetch, from_s: u64) -> Nanos {
        let programs = ["editor", "build", "browser"].iter().cycle().take(30);
        let mut now = Nanos::from_secs(from_s);
        for program in programs {
            now = now.after(Nanos::from_secs(10));
            prefetch.focus(Some((*program).to_owned()), now);
        }
        now
    }

    #[test]
    fn what_usually_follows_is_brought_in_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut prefetch = Prefetch::open(&options(dir.path(), true));
        let now = work(&mut prefetch, 0);
        let programs: Vec<(SetId, String)> =
            [(1, "editor"), (2, "build"), (3, "browser")].map(|(pid, name)| (set(pid), name.to_owned())).into();
        let unasked = || unreachable!("nothing is due, so no program is asked for its name");
        assert_eq!(prefetch.actions(unasked, Some(set(3)), now), []);
        let later = now.after(SETTLED);
        let expected = [Action::Memory(MemoryAction::WillNeed(set(1)))];
        assert_eq!(prefetch.actions(|| programs.clone(), Some(set(3)), later), expected);
        assert_eq!(prefetch.actions(unasked, Some(set(3)), later), []);
        prefetch.focus(Some("browser".to_owned()), later);
        assert_eq!(prefetch.actions(|| programs.clone(), Some(set(3)), later.after(SETTLED)), []);
        let figures = prefetch.figures().unwrap();
        assert_eq!((figures.predictions, figures.warmed), (28, 1));
        assert!(figures.hits >= 22, "{figures:?}");
    }

    #[test]
    fn the_history_outlives_the_manager_and_damage_starts_it_over() {
        let dir = tempfile::tempdir().unwrap();
        let mut prefetch = Prefetch::open(&options(dir.path(), true));
        work(&mut prefetch, 0);
        prefetch.save();
        let path = dir.path().join("predictions.json");
        let next = Prefetch::open(&options(dir.path(), true));
        assert_eq!(next.after_login()[0], "editor");
        assert_eq!(next.prediction.unwrap().predict("editor")[0].0, "build");
        std::fs::write(&path, b"{\"programs\": 7").unwrap();
        assert_eq!(Prefetch::open(&options(dir.path(), true)).figures().unwrap().predictions, 0);
    }

    #[test]
    fn switched_off_it_learns_and_writes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut prefetch = Prefetch::open(&options(dir.path(), false));
        work(&mut prefetch, 0);
        prefetch.save();
        assert_eq!(prefetch.figures(), None);
        assert!(!dir.path().join("predictions.json").exists());
    }
}
