// SPDX-License-Identifier: MIT OR Apache-2.0
//! Preload at login: reads files of the user's programs into memory before the programs start.
//!
//! A thread does all of this with idle priority. Right after the start it reads the remembered
//! files ahead; from then on it remembers the files that the programs in use have mapped. The
//! manager's loop sends it these programs and never waits for it.

mod brake;
#[cfg(test)]
mod fake;
mod mapped;
mod mounts;
mod others;
mod reader;

use crate::memory;
use crate::setting::ManageOptions;
use anyhow::Result;
use brake::Brake;
use mounts::MountList;
use reader::Reader;
use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use tipme_control::manager::{PreloadState, PreloadStatus};
use tipme_control::{journal, state_file};
use tipme_policy::preload::FileHistory;
use tipme_policy::{Identity, SetId, Strength};
use tipme_record::Nanos;

/// Maximum number of bytes read of a history, more than its bounds allow.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// Time with the focus after which a program counts as in use, and has mapped the files that it
/// needs to start.
const USED: Nanos = Nanos::from_secs(10);
/// Minimum time between two looks at the mappings of a program.
const AGAIN: Nanos = Nanos::from_secs(3600);
/// Maximum number of programs with a known last look, and of programs queued for one.
const KNOWN_MAX: usize = 256;
const WAITING_MAX: usize = 16;
/// Maximum number of processes per program for reading mappings.
const PROCESSES_MAX: usize = 16;
/// Pause of reading ahead after a program start.
const STARTING: Nanos = Nanos::from_secs(2);
/// Maximum fraction of the available memory to read ahead.
const SHARE_DIVISOR: u64 = 8;

/// The manager loop's side of the preload.
pub(crate) struct Preload {
    /// Sends programs to the thread; `None` if preload is switched off.
    sender: Option<SyncSender<UsedProgram>>,
    brake: Arc<Brake>,
    /// Result of reading ahead, once it has ended.
    ended: Arc<OnceLock<PreloadStatus>>,
    /// Next look at a program: its time, name and set.
    due: Option<(Nanos, String, SetId)>,
    looked: BTreeMap<String, Nanos>,
}

/// A program in use.
struct UsedProgram {
    name: String,
    processes: Vec<Identity>,
}

/// State of the thread.
struct PreloadWorker {
    proc: PathBuf,
    path: PathBuf,
    brake: Arc<Brake>,
    ended: Arc<OnceLock<PreloadStatus>>,
}

impl Preload {
    /// Starts the thread.
    pub(crate) fn begin(options: &ManageOptions, proc: &Path) -> Preload {
        let (brake, ended) = (Arc::new(Brake::default()), Arc::new(OnceLock::new()));
        if options.strength == Strength::Off {
            brake.stop();
        }
        let (path, proc) = (options.state.files(), proc.to_owned());
        let worker =
            PreloadWorker { proc, path, brake: Arc::clone(&brake), ended: Arc::clone(&ended) };
        let sender = options.predict.then(|| worker.start()).flatten();
        Preload { sender, brake, ended, due: None, looked: BTreeMap::new() }
    }

    /// Pauses reading ahead for a program start: the own reads of the program come first.
    pub(crate) fn pause_for_start(&self, now: Nanos) {
        self.brake.hold_until(now.after(STARTING));
    }

    /// Stops reading ahead for good.
    pub(crate) fn stop(&self) {
        self.brake.stop();
    }

    /// Handles a change of focus to this program and its set.
    pub(crate) fn focus(&mut self, program: Option<&str>, set: Option<SetId>, now: Nanos) {
        let program = program.filter(|name| {
            self.sender.is_some() && self.looked.get(*name).is_none_or(|at| now.since(*at) >= AGAIN)
        });
        self.due = program.zip(set).map(|(name, set)| (now.after(USED), name.to_owned(), set));
    }

    /// Remembers a program that has been in use for a while. Asks for its processes only then.
    pub(crate) fn keep_time(&mut self, now: Nanos, processes: impl FnOnce(SetId) -> Vec<Identity>) {
        let Some((_, name, set)) = self.due.take_if(|(due, ..)| *due <= now) else { return };
        let mut processes = processes(set);
        processes.truncate(PROCESSES_MAX);
        self.looked.retain(|_, at| now.since(*at) < AGAIN);
        if self.looked.len() < KNOWN_MAX {
            self.looked.insert(name.clone(), now);
        }
        // If the queue is full, the program is retried another time.
        if let Some(sender) = &self.sender
            && sender.try_send(UsedProgram { name: name.clone(), processes }).is_err()
        {
            self.looked.remove(&name);
        }
    }

    /// Returns `None` if preload is switched off.
    pub(crate) fn status(&self) -> Option<PreloadStatus> {
        self.sender.as_ref().map(|_| self.ended.get().copied().unwrap_or_default())
    }
}

impl PreloadWorker {
    /// Starts the thread; returns `None` if that fails.
    fn start(self) -> Option<SyncSender<UsedProgram>> {
        let (sender, used) = sync_channel(WAITING_MAX);
        let begun =
            std::thread::Builder::new().name("preload".to_owned()).spawn(move || self.run(&used));
        if let Err(error) = &begun {
            journal::warning(format!("cannot start the thread that reads ahead: {error}")).tell();
        }
        begun.ok().map(|_| sender)
    }

    fn run(&self, used: &Receiver<UsedProgram>) {
        tipme_confine::be_idle();
        let mut history = recall(&self.path);
        let status = if self.brake.is_stopped() {
            PreloadStatus { state: PreloadState::Off, ..PreloadStatus::default() }
        } else {
            self.read_ahead(&history)
        };
        // Set only here.
        self.ended.set(status).ok();
        for program in used {
            self.remember(&mut history, &program);
        }
    }

    fn read_ahead(&self, history: &FileHistory) -> PreloadStatus {
        let bytes_max = memory::available(&self.proc).unwrap_or(0) / SHARE_DIVISOR;
        let plan = history.plan(bytes_max);
        Reader::new(&self.proc, &MountList::read(&self.proc), &self.brake).read(&plan)
    }

    fn remember(&self, history: &mut FileHistory, program: &UsedProgram) {
        let files = mapped::files(&self.proc, &MountList::read(&self.proc), &program.processes);
        if !files.is_empty() {
            history.remember(&program.name, files);
            save(&self.path, history);
        }
    }
}

/// Reads the history; empty if there is none. An unreadable file is moved aside with a warning.
fn recall(path: &Path) -> FileHistory {
    let (history, damage) =
        state_file::load(path, FILE_BYTES_MAX, |bytes| Ok(serde_json::from_slice(bytes)?));
    if let Some(why) = damage {
        journal::warning(why).tell();
    }
    history
}

/// Writes the history. On failure it warns, and loses what is new.
fn save(path: &Path, history: &FileHistory) {
    if let Err(error) = replace(path, history) {
        journal::warning(format!("{error:#}; what was learned is lost")).tell();
    }
}

fn replace(path: &Path, history: &FileHistory) -> Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
    }
    state_file::replace(path, &serde_json::to_vec(history)?)
}

#[cfg(test)]
mod tests;
