// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each user's tolerance by class and application, kept across restarts beside the baselines.
//!
//! A mark by the user, and verdicts on automatic incidents, change it by the rule of
//! `tipme_measure::Tolerance`. The ids of automatic incidents are kept too, for the status.

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use tipme_control::{ToldTolerance, journal, state_file};
use tipme_measure::{InputClass, PersonSaid, Tolerance};

/// Maximum number of rows; the one with the oldest feedback is evicted.
const ROWS_MAX: usize = 256;

/// Maximum number of automatic incidents remembered, the newest ones.
const SUGGESTED_MAX: usize = 256;

/// Maximum number of those listed for one user.
const TOLD_MAX: usize = 100;

/// Maximum size in bytes of the file, and of a name in it.
const FILE_BYTES_MAX: u64 = 1 << 20;
const NAME_BYTES_MAX: usize = 64;

const VERSION: u32 = 1;

/// User, class and application of a tolerance.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Subject {
    pub(crate) uid: u32,
    pub(crate) class: String,
    pub(crate) application: String,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct ToleranceRow {
    #[serde(flatten)]
    subject: Subject,
    tolerance: Tolerance,
}

/// An automatic incident.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Suggestion {
    id: String,
    #[serde(flatten)]
    subject: Subject,
    answered: bool,
}

/// Contents of the file. Rows are in the order of their latest feedback, newest last.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct ToleranceFile {
    version: u32,
    rows: Vec<ToleranceRow>,
    suggested: Vec<Suggestion>,
}

pub(crate) struct Tolerances {
    path: PathBuf,
    file: ToleranceFile,
}

impl Subject {
    pub(crate) fn new(uid: u32, class: InputClass, application: &str) -> Subject {
        Subject { uid, class: class.name().to_owned(), application: application.to_owned() }
    }

    fn is_named(&self) -> bool {
        InputClass::named(&self.class).is_some()
            && (1..=NAME_BYTES_MAX).contains(&self.application.len())
    }
}

impl Tolerances {
    /// Loads the file; moves an unreadable one aside and logs a warning.
    pub(crate) fn open(path: PathBuf) -> Tolerances {
        let (file, damage) = state_file::load(&path, FILE_BYTES_MAX, parse);
        if let Some(why) = damage {
            journal::warning(why).tell();
        }
        Tolerances { path, file }
    }

    /// Returns the tolerance, the default one without feedback.
    pub(crate) fn get(&self, subject: &Subject) -> Tolerance {
        self.file
            .rows
            .iter()
            .find(|row| row.subject == *subject)
            .map(|row| row.tolerance)
            .unwrap_or_default()
    }

    /// Applies feedback, and writes the file.
    pub(crate) fn adjust(&mut self, subject: &Subject, said: PersonSaid) {
        let mut tolerance = self.get(subject);
        tolerance.hear(said);
        self.file.rows.retain(|row| row.subject != *subject);
        self.file.rows.push(ToleranceRow { subject: subject.clone(), tolerance });
        let over = self.file.rows.len().saturating_sub(ROWS_MAX);
        self.file.rows.drain(..over);
        self.save();
    }

    /// Records an automatic incident.
    pub(crate) fn suggest(&mut self, id: String, subject: Subject) {
        self.file.suggested.push(Suggestion { id, subject: subject.clone(), answered: false });
        let over = self.file.suggested.len().saturating_sub(SUGGESTED_MAX);
        self.file.suggested.drain(..over);
        self.adjust(&subject, PersonSaid::Nothing);
    }

    /// Applies a user's verdict on an incident of their own; the first one counts.
    pub(crate) fn answer(&mut self, id: &str, uid: u32, right: bool) {
        let mut open = self.file.suggested.iter_mut().filter(|one| one.id == id && !one.answered);
        let Some(suggestion) = open.find(|one| one.subject.uid == uid) else { return };
        suggestion.answered = true;
        let subject = suggestion.subject.clone();
        self.adjust(&subject, if right { PersonSaid::Right } else { PersonSaid::Wrong });
    }

    /// Handles the removal of a user's incident: it counts as a wrong verdict, and the id is
    /// forgotten.
    pub(crate) fn remove(&mut self, id: &str, uid: u32) {
        self.answer(id, uid, false);
        self.file.suggested.retain(|one| one.id != id);
        self.save();
    }

    /// Returns the ids of a user's automatic incidents, oldest first.
    pub(crate) fn suggested(&self, uid: u32) -> Vec<String> {
        let own: Vec<&Suggestion> =
            self.file.suggested.iter().filter(|one| one.subject.uid == uid).collect();
        own.iter().skip(own.len().saturating_sub(TOLD_MAX)).map(|one| one.id.clone()).collect()
    }

    /// Returns a user's tolerances that differ from the default.
    pub(crate) fn adjusted(&self, uid: u32) -> Vec<ToldTolerance> {
        let own = self
            .file
            .rows
            .iter()
            .filter(|row| row.subject.uid == uid && row.tolerance.percent() != 100);
        let adjusted = own.map(|ToleranceRow { subject, tolerance }| ToldTolerance {
            class: subject.class.clone(),
            application: subject.application.clone(),
            percent: tolerance.percent(),
            bad: tolerance.bad,
            right: tolerance.right,
            wrong: tolerance.wrong,
            ignored: tolerance.ignored,
        });
        adjusted.take(TOLD_MAX).collect()
    }

    /// Writes the file; on failure, logs a warning.
    fn save(&mut self) {
        self.file.version = VERSION;
        let written = serde_json::to_vec(&self.file).map_err(Into::into);
        if let Err(error) = written.and_then(|bytes| state_file::replace(&self.path, &bytes)) {
            journal::warning(format!("cannot save the tolerances: {error:#}")).tell();
        }
    }
}

fn parse(bytes: &[u8]) -> Result<ToleranceFile> {
    let file: ToleranceFile = serde_json::from_slice(bytes)?;
    let rows = file.rows.iter().all(|row| row.subject.is_named() && row.tolerance.is_bounded());
    let suggested =
        file.suggested.iter().all(|one| one.subject.is_named() && one.id.len() <= NAME_BYTES_MAX);
    let few = file.rows.len() <= ROWS_MAX && file.suggested.len() <= SUGGESTED_MAX;
    if file.version != VERSION || !rows || !suggested || !few {
        bail!("it has version {}, or exceeds the limits of tolerances", file.version);
    }
    Ok(file)
}

/// Parses arbitrary bytes; returns `true` if they are valid, with all tolerances in bounds.
pub(crate) fn parse_any(bytes: &[u8]) -> bool {
    parse(bytes)
        .is_ok_and(|file| file.rows.iter().all(|row| (50..=200).contains(&row.tolerance.percent())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(uid: u32) -> Subject {
        Subject::new(uid, InputClass::Key, "xterm")
    }

    fn percent(tolerances: &Tolerances, uid: u32) -> u64 {
        tolerances.get(&subject(uid)).percent()
    }

    #[test]
    fn feedback_counts_for_its_user_and_survives() {
        let dir = tempfile::TempDir::new().unwrap();
        let path = dir.path().join("tolerances.json");
        let mut first = Tolerances::open(path.clone());
        first.adjust(&subject(1000), PersonSaid::Bad);
        first.adjust(&subject(1000), PersonSaid::Bad);
        let again = Tolerances::open(path);
        assert_eq!((percent(&again, 1000), percent(&again, 1001)), (71, 100));
        let adjusted = again.adjusted(1000);
        assert_eq!((adjusted.len(), adjusted[0].percent, adjusted[0].bad), (1, 71, 2));
        assert_eq!(again.adjusted(1001), []);
    }

    #[test]
    fn verdicts_on_a_suggestion_count_once_and_from_its_owner_only() {
        let dir = tempfile::TempDir::new().unwrap();
        let mut tolerances = Tolerances::open(dir.path().join("tolerances.json"));
        ["a", "b", "c"].iter().for_each(|id| tolerances.suggest((*id).to_owned(), subject(1000)));
        tolerances.answer("a", 1001, false);
        assert_eq!(percent(&tolerances, 1000), 100);
        tolerances.answer("a", 1000, false);
        tolerances.answer("a", 1000, false);
        assert_eq!(percent(&tolerances, 1000), 119);
        tolerances.answer("b", 1000, true);
        assert_eq!(percent(&tolerances, 1000), 100);
        tolerances.remove("c", 1000);
        assert_eq!(
            (percent(&tolerances, 1000), tolerances.suggested(1000)),
            (119, vec!["a".to_owned(), "b".to_owned()])
        );
        tolerances.answer("manual", 1000, true);
        assert_eq!(percent(&tolerances, 1000), 119, "what a person marked says nothing of that");
    }

    #[test]
    fn rows_and_suggestions_are_bounded_and_damage_is_put_aside() {
        let dir = tempfile::TempDir::new().unwrap();
        let path = dir.path().join("tolerances.json");
        let mut tolerances = Tolerances::open(path.clone());
        for uid in 0..300 {
            tolerances.suggest(format!("20260131T120000.{uid:03}Z"), subject(uid));
        }
        assert_eq!(
            (tolerances.file.rows.len(), tolerances.file.suggested.len()),
            (ROWS_MAX, SUGGESTED_MAX)
        );
        assert!(std::fs::metadata(&path).unwrap().len() * 8 < FILE_BYTES_MAX);
        let again = Tolerances::open(path.clone());
        assert_eq!(again.file.suggested, tolerances.file.suggested);
        for bytes in [
            "{",
            r#"{"version":1,"suggested":[],
                "rows":[{"uid":1,"class":"key","application":"x","tolerance":{"level":9}}]}"#,
        ] {
            std::fs::write(&path, bytes).unwrap();
            assert!(Tolerances::open(path.clone()).file.rows.is_empty() && !path.exists());
        }
    }
}
