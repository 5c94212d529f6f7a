// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the user is likely to turn to next, and having it in memory ahead.
//!
//! What is learned are names of programs, and how often one was followed by the other. It is kept in a file
//! between runs, which only the manager's user can read.

use crate::setting::ManageOptions;
use std::collections::BTreeMap;
use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use tipme_control::{journal, manager};
use tipme_policy::prediction::{MADE_READY_MAX, SETTLED};
use tipme_policy::{Action, MemoryAction, Prediction, SetId};
use tipme_record::Nanos;
use tipme_sched::processes::read_up_to;

/// A set is brought in again only after so long.
const AGAIN: Nanos = Nanos::from_secs(60);
/// Sets of which it is known when they were brought in last.
const KNOWN_MAX: usize = 256;
/// Bytes of a history that are read: more than the bounds of the history come to.
const FILE_BYTES_MAX: u64 = 1 << 20;

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
    /// Reads the history; one that cannot be read is started over.
    pub(crate) fn open(options: &ManageOptions) -> Prefetch {
        let path = options.state.predictions();
        let prediction = options.predict.then(|| read(&path).unwrap_or_default());
        Prefetch { prediction, path, current: None, due: None, prefetched: BTreeMap::new(), count: 0 }
    }

    /// The focus went to this program.
    pub(crate) fn focus(&mut self, program: Option<String>, now: Nanos) {
        let (Some(prediction), Some(to)) = (&mut self.prediction, program) else { return };
        if let Some(from) = self.current.as_ref().filter(|from| **from != to) {
            prediction.observe(now, from, &to);
        }
        self.current = Some(to);
        self.due = Some(now.after(SETTLED));
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

    /// Writes the history down, whole or not at all. One that cannot be written is told of, and lost.
    pub(crate) fn save(&mut self) {
        let Some(prediction) = &mut self.prediction else { return };
        prediction.finish();
        if let Err(error) = write(&self.path, prediction) {
            journal::warning(format!("cannot write {}: {error}; what was learned is lost", self.path.display())).tell();
        }
    }

    fn note(&mut self, sets: &[SetId], now: Nanos) {
        self.count += sets.len() as u64;
        self.prefetched.retain(|_, at| now.since(*at) < AGAIN);
        let room = KNOWN_MAX.saturating_sub(self.prefetched.len());
        self.prefetched.extend(sets.iter().take(room).map(|set| (*set, now)));
    }
}

fn read(path: &Path) -> Option<Prediction> {
    serde_json::from_slice(&read_up_to(path, FILE_BYTES_MAX).ok()?).ok()
}

fn write(path: &Path, prediction: &Prediction) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
    }
    let new = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(&serde_json::to_vec(prediction)?)?;
    std::fs::rename(&new, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::StateDir;
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
        assert_eq!(Prefetch::open(&options(dir.path(), true)).prediction.unwrap().predict("editor")[0].0, "build");
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
