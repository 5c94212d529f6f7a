// SPDX-License-Identifier: MIT OR Apache-2.0
//! Latencies of each user by day: counts by application and hour, if enabled.
//!
//! The kernel reports each answer once (`tipme_kernel::ToldAnswer`); here it is added to the counts
//! of the program's user. Memory holds the counts since the last write. A file holds one user's day
//! in UTC, readable by root only; the recorder gives each user access to their own.

use crate::identity::realtime_now;
use crate::learning::{Learning, class, is_of_pointer};
use crate::processes;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tipme_control::{journal, state_file};
use tipme_kernel::{AnswersRead, Kernel, ToldAnswer};
use tipme_measure::lived::{AnsweredPresses, DayFigures, LastAnswer, LivedDay};
use tipme_record::{Nanos, Pid};
use tipme_store::id_at;

/// Write period of the files, which bounds the loss in a crash.
const SAVE_PERIOD: Nanos = Nanos::from_secs(300);

/// Maximum number of days kept per user, and of files of all users.
const DAYS_MAX: usize = 32;
const FILES_MAX: usize = 1_024;

/// Maximum number of users with counts in memory; one more flushes them all.
const USERS_MAX: usize = 16;

/// Maximum number of clients with a remembered user, even after their end.
const CLIENTS_MAX: usize = 512;

/// Maximum bytes of a file: 24 hours with every row and bucket filled take less.
const FILE_BYTES_MAX: u64 = 8 << 20;

/// Maximum bytes of an application name; the kernel keeps 15.
const NAME_BYTES_MAX: usize = 64;

const DAY_S: u64 = 86_400;
const HOURS: usize = 24;
const VERSION: u32 = 1;

/// Contents of a file.
#[derive(Serialize, Deserialize)]
struct DayFile {
    version: u32,
    #[serde(flatten)]
    day: LivedDay,
}

/// Counts of a user since the files were written.
#[derive(Default)]
struct Lately {
    day: LivedDay,
    last: LastAnswer,
}

/// Process name of the X server that is a Wayland client.
const XWAYLAND: &str = "Xwayland";

/// Counts of all users.
pub(crate) struct Days {
    folder: PathBuf,
    users: BTreeMap<u32, Lately>,
    read: AnswersRead,
    lost: u64,
    clients: HashMap<Pid, u32>,
    next_save: Nanos,
}

impl Days {
    /// Opens the folder, created if missing; skips answers from before the call.
    pub(crate) fn open(folder: PathBuf, kernel: &Kernel<'_>, now: Nanos) -> Result<Days> {
        tipme_control::secure(&folder)?;
        let private = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(&folder, private)
            .with_context(|| format!("cannot close {}", folder.display()))?;
        let mut days = Days::at(folder, now);
        kernel.answers(&mut days.read);
        days.lost = days.read.lost;
        Ok(days)
    }

    fn at(folder: PathBuf, now: Nanos) -> Days {
        let (users, clients) = (BTreeMap::new(), HashMap::new());
        Days {
            folder,
            users,
            read: AnswersRead::default(),
            lost: 0,
            clients,
            next_save: now.after(SAVE_PERIOD),
        }
    }

    /// Counts the answers since the last call, and writes the files when due. Call at every tick.
    pub(crate) fn tick(&mut self, kernel: &Kernel<'_>, learning: &mut Learning, now: Nanos) {
        self.take(kernel, learning, now);
        if now >= self.next_save {
            self.next_save = now.after(SAVE_PERIOD);
            self.save();
        }
    }

    /// Counts the answers since the last call.
    pub(crate) fn take(&mut self, kernel: &Kernel<'_>, learning: &mut Learning, now: Nanos) {
        let answers = kernel.answers(&mut self.read);
        self.lose(self.read.lost - self.lost);
        self.lost = self.read.lost;
        for answer in answers.iter().filter(|answer| is_counted(answer)) {
            // The recorder's own windows have no name; Xwayland passes its input on to its clients,
            // which are counted.
            let Some(application) = learning.name(answer.client).filter(|name| name != XWAYLAND)
            else {
                continue;
            };
            match self.user(answer.client) {
                Some(uid) => self.add(
                    uid,
                    &application,
                    answer,
                    realtime_now().saturating_sub(now.since(answer.at).0),
                ),
                None => self.lose(1),
            }
        }
    }

    /// Counts answers without a known user as lost with each user.
    fn lose(&mut self, answers: u64) {
        self.users.values_mut().for_each(|lately| lately.day.lost += answers);
    }

    fn add(&mut self, uid: u32, application: &str, counted: &ToldAnswer, at: u64) {
        if !self.users.contains_key(&uid) && self.users.len() >= USERS_MAX {
            self.save();
            self.users.clear();
        }
        let answer = AnsweredPresses {
            at,
            first: counted.first.0,
            last: counted.last.0,
            slept: counted.slept.0,
            presses: counted.presses,
            silent: counted.silent,
        };
        let lately = self.users.entry(uid).or_default();
        let interactive = lately.last.extend(&answer);
        lately.day.add(class(counted.class), application, &answer, interactive);
    }

    /// Returns the user of a client, remembered for a while after it has ended.
    fn user(&mut self, client: Pid) -> Option<u32> {
        if let Some(uid) = processes::user(client.0) {
            if self.clients.len() >= CLIENTS_MAX {
                self.clients.clear();
            }
            self.clients.insert(client, uid);
        }
        self.clients.get(&client).copied()
    }

    /// Writes new counts. On failure, logs a warning and keeps them.
    pub(crate) fn save(&mut self) {
        let folder = &self.folder;
        let mut wrote = false;
        for (uid, lately) in
            self.users.iter_mut().filter(|(_, lately)| !lately.day.hours.is_empty())
        {
            match save(folder, *uid, &lately.day) {
                Ok(()) => lately.day = LivedDay::default(),
                Err(error) => {
                    journal::warning(format!("cannot save the latencies of the day: {error:#}"))
                        .tell()
                }
            }
            wrote = true;
        }
        if wrote && let Err(error) = prune(folder) {
            journal::warning(format!("cannot remove old days from {}: {error}", folder.display()))
                .tell();
        }
    }

    /// Returns a user's figures between two times in seconds since 1970, at most `DAYS_MAX` days
    /// apart.
    pub(crate) fn figures(&self, uid: u32, from_s: u64, to_s: u64) -> Result<DayFigures> {
        if to_s.saturating_sub(from_s) > DAYS_MAX as u64 * DAY_S {
            bail!("cannot show more than {DAYS_MAX} days: no more are kept");
        }
        let mut whole = self.users.get(&uid).map(|lately| lately.day.clone()).unwrap_or_default();
        for start_s in (from_s / DAY_S * DAY_S..to_s).step_by(DAY_S as usize) {
            whole.join(&load(&path(&self.folder, uid, start_s))?);
        }
        Ok(DayFigures::of(whole, from_s, to_s))
    }

    /// Deletes all figures of a user.
    pub(crate) fn forget(&mut self, uid: u32) -> Result<()> {
        self.users.remove(&uid);
        for (name, _) in files(&self.folder)?.into_iter().filter(|(_, owner)| *owner == uid) {
            let path = self.folder.join(name);
            std::fs::remove_file(&path)
                .with_context(|| format!("cannot remove {}", path.display()))?;
        }
        Ok(())
    }
}

/// Returns `true` if the answer counts: the kernel reports only late ones for the pointer, which
/// allows no statistics.
fn is_counted(answer: &ToldAnswer) -> bool {
    !answer.queued && !is_of_pointer(class(answer.class))
}

/// Returns the path of a user's day in UTC, such as `1000-20260131.json`.
fn path(folder: &Path, uid: u32, start_s: u64) -> PathBuf {
    let id = id_at(start_s.saturating_mul(1_000_000_000));
    folder.join(format!("{uid}-{}.json", id.get(..8).unwrap_or_default()))
}

/// Adds each count to the file of its day.
fn save(folder: &Path, uid: u32, new: &LivedDay) -> Result<()> {
    let mut starts: Vec<u64> = new.hours.iter().map(|hour| hour.start_s / DAY_S * DAY_S).collect();
    starts.dedup();
    // Losses have no hour and are added once.
    let mut lost = new.lost;
    for start_s in starts {
        let path = path(folder, uid, start_s);
        let mut day = load(&path)?;
        let part = LivedDay { lost: std::mem::take(&mut lost), ..new.clone() };
        day.join(&part.within(start_s, start_s + DAY_S));
        state_file::replace(&path, &serde_json::to_vec(&DayFile { version: VERSION, day })?)?;
    }
    Ok(())
}

/// Reads a file; returns an empty day if there is none. Moves an unreadable one aside and logs a
/// warning.
fn load(path: &Path) -> Result<LivedDay> {
    let Some(bytes) = state_file::read(path, FILE_BYTES_MAX)? else {
        return Ok(LivedDay::default());
    };
    Ok(parse(&bytes).unwrap_or_else(|error| {
        let moved = state_file::put_aside(path);
        journal::warning(format!("cannot read {}: {error:#}; {moved}", path.display())).tell();
        LivedDay::default()
    }))
}

fn parse(bytes: &[u8]) -> Result<LivedDay> {
    let file: DayFile = serde_json::from_slice(bytes)?;
    if file.version != VERSION || !file.day.is_bounded(HOURS, NAME_BYTES_MAX) {
        bail!("it has version {}, or exceeds the limits of a day", file.version);
    }
    Ok(file.day)
}

/// Parses arbitrary bytes and computes their figures; returns `true` if they are a day.
pub(crate) fn parse_any(bytes: &[u8]) -> bool {
    parse(bytes).map(|day| DayFigures::of(day, 0, u64::MAX)).is_ok()
}

/// Lists the files of the folder with their users, newest first.
fn files(folder: &Path) -> Result<Vec<(String, u32)>> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let owned = names.filter_map(|name| {
        let (uid, date) = name.split_once('-')?;
        let (uid, date) = (uid.parse().ok()?, date.to_owned());
        Some((date, name, uid))
    });
    let mut files: Vec<(String, String, u32)> = owned.collect();
    files.sort_by(|one, other| other.cmp(one));
    Ok(files.into_iter().map(|(_, name, uid)| (name, uid)).collect())
}

/// Removes files beyond the limits, oldest first.
fn prune(folder: &Path) -> Result<()> {
    let mut kept: BTreeMap<u32, usize> = BTreeMap::new();
    for (index, (name, uid)) in files(folder)?.into_iter().enumerate() {
        let own = kept.entry(uid).or_default();
        *own += 1;
        if *own > DAYS_MAX || index >= FILES_MAX {
            std::fs::remove_file(folder.join(&name))
                .with_context(|| format!("cannot remove {name}"))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noon of an arbitrary day.
    const NOON_S: u64 = 20_000 * DAY_S + 43_200;

    fn answer(latency: Nanos) -> ToldAnswer {
        let (at, client) = (Nanos(1), Pid(1));
        let (slept, slot, presses, silent) = (Nanos(0), 3, 1, 0);
        let (class, queued) = (0, false);
        ToldAnswer {
            at,
            first: latency,
            last: latency,
            slept,
            client,
            slot,
            presses,
            silent,
            class,
            queued,
        }
    }

    fn days(dir: &tempfile::TempDir) -> Days {
        Days::at(dir.path().to_owned(), Nanos(0))
    }

    fn add(days: &mut Days, uid: u32, at_s: u64) {
        days.add(uid, "editor", &answer(Nanos::from_millis(150)), at_s * 1_000_000_000);
    }

    fn count(days: &Days, uid: u32) -> u64 {
        days.figures(uid, NOON_S - 43_200, NOON_S + 43_200).unwrap().all.n
    }

    #[test]
    fn latencies_survive_a_restart_and_count_once() {
        let dir = tempfile::TempDir::new().unwrap();
        let mut first = days(&dir);
        add(&mut first, 1000, NOON_S);
        assert_eq!(count(&first, 1000), 1);
        first.save();
        assert_eq!(count(&first, 1000), 1);
        add(&mut first, 1000, NOON_S + 5);
        first.save();
        let mut again = days(&dir);
        add(&mut again, 1000, NOON_S + 9);
        assert_eq!(count(&again, 1000), 3);
        assert_eq!(again.figures(1000, NOON_S - 43_200, NOON_S + 43_200).unwrap().longest.len(), 3);
        assert_eq!(again.figures(1000, NOON_S - 86_400, NOON_S - 43_200).unwrap().all.n, 0);
    }

    #[test]
    fn the_pointer_is_not_counted() {
        let late = answer(Nanos::from_millis(150));
        let counted = [0, 1, 2, 3].map(|class| is_counted(&ToldAnswer { class, ..late }));
        assert_eq!(counted, [true, true, false, false]);
        assert!(!is_counted(&ToldAnswer { queued: true, ..late }));
    }

    #[test]
    fn users_have_only_their_own_and_may_have_it_forgotten() {
        let dir = tempfile::TempDir::new().unwrap();
        let mut days = days(&dir);
        add(&mut days, 1000, NOON_S);
        add(&mut days, 1001, NOON_S);
        days.save();
        add(&mut days, 1001, NOON_S);
        assert_eq!((count(&days, 1000), count(&days, 1001), count(&days, 0)), (1, 2, 0));
        days.forget(1000).unwrap();
        assert_eq!((count(&days, 1000), count(&days, 1001)), (0, 2));
    }

    #[test]
    fn days_and_users_are_bounded() {
        let dir = tempfile::TempDir::new().unwrap();
        let mut days = days(&dir);
        for day in 0..40 {
            add(&mut days, 1000, NOON_S - day * DAY_S);
        }
        (0..40).for_each(|uid| add(&mut days, uid, NOON_S));
        assert!(days.users.len() <= USERS_MAX);
        days.save();
        let own = files(dir.path()).unwrap().into_iter().filter(|(_, uid)| *uid == 1000).count();
        assert_eq!((own, count(&days, 1000), count(&days, 0)), (DAYS_MAX, 1, 1));
        assert!(days.figures(1000, 0, NOON_S).is_err());
    }

    #[test]
    fn a_damaged_file_is_put_aside() {
        let dir = tempfile::TempDir::new().unwrap();
        let file = path(dir.path(), 1000, NOON_S);
        for bytes in ["{", r#"{"version":9}"#, r#"{"version":1,"longest":[{}]}"#] {
            std::fs::write(&file, bytes).unwrap();
            assert_eq!(count(&days(&dir), 1000), 0);
            assert!(!file.exists() && file.with_extension("damaged.json").exists());
        }
    }

    #[test]
    fn the_largest_day_fits_its_file() {
        let mut day = LivedDay::default();
        for hour in 0..HOURS as u64 {
            for index in 0..40 {
                let name = format!("{index:x<15}");
                for exponent in 14..36u32 {
                    let first = (1 << exponent) + 7;
                    let at = (NOON_S / DAY_S * DAY_S + hour * 3_600) * 1_000_000_000;
                    let answer = AnsweredPresses {
                        at,
                        first,
                        last: first,
                        presses: 1,
                        ..AnsweredPresses::default()
                    };
                    day.add(tipme_measure::InputClass::Key, &name, &answer, 1);
                }
            }
        }
        let bytes = serde_json::to_vec(&DayFile { version: VERSION, day: day.clone() }).unwrap();
        assert!(bytes.len() as u64 * 16 < FILE_BYTES_MAX, "{}", bytes.len());
        assert_eq!(parse(&bytes).unwrap(), day);
    }
}
