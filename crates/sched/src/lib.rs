// SPDX-License-Identifier: MIT OR Apache-2.0
//! The manager's mechanism: what is changed of processes and groups, with a journal.
//!
//! The policy says which role each set of processes has; this crate makes it so, and can take it all
//! back. Four rules stand above everything else.
//!
//! 1. *Announced, then done.* Each change is in the journal before it is made: what, the baseline,
//!    the new value; a process is its number and its start. It is taken back on request, on drop, and
//!    at the next start after a crash. The journal is not synced to disk: it outlives a killed process,
//!    and a machine that stops has forgotten the changes as well.
//! 2. *What others set stays.* A process whose nice value, policy or I/O priority is not the default is left alone; of one
//!    that has only a slice of its own, the slice is. So is whatever somebody changes after us. Both are told with the
//!    reason.
//! 3. *Only what may be taken back, only whom we may touch.* Owner and tree are checked directly before each change: the
//!    effective user, since starting a program can change that; the real user is checked once in a call. Without the right
//!    to undo a change it is not made. No real-time policy is ever set.
//! 4. *A process that is gone is normal.* It is counted, never an error.
//!
//! # What each back end cannot do
//!
//! `Nice` sets nice value, time slice, SCHED_IDLE and I/O priority of each thread; the others set slices too. Children
//! inherit them; those that nobody lists are found by their slice, their descent and their session. Without slices (before
//! Linux 6.12) a daemon that leaves both before it is noticed keeps what it has inherited, but for a negative nice value
//! that it could not have set. With autogroup on, these values count within a session only. There is no
//! limit for memory, only advice.
//!
//! `Autogroup` weighs whole sessions. Processes of one session cannot be told apart: the most favoured
//! of them decides, and the others are reported as sharing it. The leader of a session answers for
//! it: who runs a program as another user inside of the session takes that program along. A process in a group of a
//! cpu controller has no autogroup, and the kernel bounds the rate of changes for all but root.
//!
//! `Systemd` sets properties of units, and splits sets that share a unit by moving them to scopes of their own
//! beside it (`units.rs`). Weights count inside of the user's slice: what other users and the system's
//! services run competes with all of it. No process is taken out of a service, so a set that shares one is not
//! weighed. What systemd was told once it keeps in a file below /run until the machine stops, also after
//! it was told the value of before. Where it no longer answers, nice values are set instead.
//!
//! `Cgroup` makes groups below one delegated group of version 2. Weights count among these groups;
//! what runs outside of the delegated group competes with all of them together. Processes that a
//! service manager holds in a unit of its own are not moved, since the unit would lose them.
//! `memory.low` is written up to the delegated group;
//! groups above it are not touched, and without theirs the protection is void. The kernel counts memory where a process
//! was when it got it, so a new group neither protects nor limits what its processes had before. What stays
//! together in `rest` can be limited as one.
//!
//! A process that is advised about its memory ([`tipme_policy::MemoryAction`]) needs no taking back.
//! A process may change its own values at any time; then they are its own, by rule 2.

#![warn(unreachable_pub)]

mod advice;
mod cgroup;
mod engine;
mod error;
mod explain;
#[cfg(test)]
mod fake;
mod fuzz;
mod groups;
mod held;
mod inherit;
mod journal;
mod ledger;
mod linux;
mod load_file;
mod log;
mod memory;
mod memory_high;
mod memory_of_rest;
mod memory_of_units;
mod memory_requests;
mod offers;
mod placements;
pub mod processes;
#[cfg(test)]
mod property;
mod sessions;
mod slice;
mod subtree;
mod threads;
mod units;
mod units_bus;
mod units_names;
mod units_real;
mod why;
mod world;

pub use cgroup::full_average;
pub use error::MechanismError;
pub use explain::{KnobState, ProcessExplanation, RoleExplanation};
pub use fuzz::{exercise_journal, exercise_processes};
pub use load_file::{LoadFile, runnable};
pub use offers::{DesktopOwner, Offer, extension, offers, plain_offers};
pub use why::{Applied, Knob, Restored, SkipReason, Skipped};
pub use world::LATER_MS;

use engine::Engine;
use ledger::Ledger;
use linux::Linux;
use log::FileLog;
use placements::Units;
use std::path::{Path, PathBuf};
use subtree::Subtree;
use tipme_policy::{Action, Backend, Identity, Strength};

/// What to change, of whom, and where things lie.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    pub backend: Backend,
    pub strength: Strength,
    /// Where /proc is.
    pub proc: PathBuf,
    /// The folder of a delegated control group of version 2; needed by the back end of that name.
    pub cgroup: Option<PathBuf>,
    /// The journal's file. Beside it lie a lock and, for moments, its successor.
    pub journal: PathBuf,
    /// Only processes of this user, and that run as this user.
    pub owner: Option<u32>,
    /// Only this process and those below it.
    pub under: Option<Identity>,
}

/// The mechanism at work. Dropping it takes everything back.
pub struct Mechanism {
    engine: Engine<Linux, FileLog>,
}

impl Mechanism {
    /// Opens the journal, takes back what a dead predecessor has left changed, and is ready.
    ///
    /// # Errors
    /// Where the journal cannot be opened, is not safe, or belongs to a mechanism that runs; and where
    /// the back end needs a control group that is not there.
    pub fn open(config: Config) -> Result<(Mechanism, Restored), MechanismError> {
        let subtree = find_subtree(&config)?;
        let log = FileLog::open(&config.journal)?;
        let world = Linux::new(&config.proc, config.owner, config.under);
        let wrap = |source| MechanismError::Journal { path: config.journal.clone(), source };
        let (ledger, restored) = Ledger::open(world, log).map_err(wrap)?;
        let mut engine = Engine::new(ledger, config.backend, config.strength);
        engine.subtree = subtree;
        engine.units = find_units(&config)?;
        engine.nice_too = extension().is_some();
        Ok((Mechanism { engine }, restored))
    }

    /// Does what the actions say. With no actions, tries again what had to wait ([`Applied::later`]).
    pub fn apply(&mut self, actions: &[Action]) -> Applied {
        let applied = self.engine.apply(actions);
        self.engine.ledger.finish();
        applied
    }

    /// Goes over to the numbers of another strength; [`Strength::Off`] takes everything back and keeps the assignments.
    pub fn set_strength(&mut self, strength: Strength) -> Applied {
        let applied = self.engine.set_strength(strength);
        self.engine.ledger.finish();
        applied
    }

    /// What a process has, and why; `None` where it has no role, and nothing that it has inherited from one that has.
    pub fn explain(&self, who: Identity) -> Option<ProcessExplanation> {
        self.engine.explain(who)
    }

    /// Takes everything back and forgets all assignments.
    pub fn restore(&mut self) -> Restored {
        let restored = self.engine.restore();
        self.engine.ledger.finish();
        restored
    }
}

/// Takes back what a mechanism that was killed has left changed, where no new one can be opened. What children have
/// inherited from it is left to one that is opened later.
///
/// # Errors
/// As [`Mechanism::open`].
pub fn take_back(journal: &Path, proc: &Path) -> Result<Restored, MechanismError> {
    let log = FileLog::open(journal)?;
    let wrap = |source| MechanismError::Journal { path: journal.to_owned(), source };
    Ledger::take_back_listed(Linux::new(proc, None, None), log).map_err(wrap)
}

impl Drop for Mechanism {
    fn drop(&mut self) {
        self.restore();
    }
}

fn find_subtree(config: &Config) -> Result<Option<Subtree>, MechanismError> {
    if config.backend != Backend::Cgroup {
        return Ok(None);
    }
    let path = config.cgroup.clone().unwrap_or_default();
    let root = root_above(&path).map_err(|why| MechanismError::Group { path: path.clone(), why })?;
    let text = |path: &Path| path.to_str().map(str::to_owned);
    match (text(&path), text(&root)) {
        (Some(dir), Some(root)) => Ok(Some(Subtree::new(dir, root))),
        _ => Err(MechanismError::Group {
            path,
            why: "its name is not UTF-8 text; name a group whose folder has a name in UTF-8",
        }),
    }
}

fn find_units(config: &Config) -> Result<Option<Units>, MechanismError> {
    if config.backend != Backend::Systemd {
        return Ok(None);
    }
    let root = offers::hierarchy().map_err(|why| MechanismError::Units { why })?;
    Ok(Some(Units::new(root)))
}

fn root_above(dir: &Path) -> Result<PathBuf, &'static str> {
    let root = cgroup::root_of(dir).ok_or("it is not a control group; name a delegated one of version 2")?;
    if root == dir { Err("it is the root of its hierarchy; name a group below it") } else { Ok(root) }
}
