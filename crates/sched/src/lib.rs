// SPDX-License-Identifier: MIT OR Apache-2.0
//! The manager's mechanism: changes processes and groups, and journals every change.
//!
//! The policy assigns a role to each set of processes; this crate applies it, and can restore
//! everything. Four rules take precedence over all else.
//!
//! 1. *Announced, then done.* Each change is in the journal before it is made: place, baseline, and
//!    new value; a process is identified by PID and start time. Changes are restored on request, on
//!    drop, and at the next start after a crash. The journal is not synced to disk: it survives a
//!    killed process, and a machine that stops has lost the changes as well.
//! 2. *Values set by others stay.* A process with a non-default nice value, policy or I/O priority
//!    is left alone; if only its slice is non-default, just the slice is. The same applies to any
//!    value that another program changes after us. Both are reported with the reason.
//! 3. *Only reversible changes, only on admitted processes.* Owner and tree are checked directly
//!    before each change: the effective user, since an exec can change it; the real user is checked
//!    once in a call. A change that could not be undone with the present privileges is not made. No
//!    real-time policy is ever set.
//! 4. *A vanished process is normal.* It is counted, and never an error.
//!
//! # Limits of each backend
//!
//! `Nice` sets nice value, time slice, SCHED_IDLE and I/O priority of each thread; the other
//! backends set slices too. Children inherit these values; unlisted children are found by their
//! slice, their ancestry and their session. Without slices (before Linux 6.12) a daemon that leaves
//! both before it is noticed keeps its inherited values, except for a negative nice value that it
//! could not have set. With autogroup enabled, these values count within a session only. Memory has
//! no limit, only advice.
//!
//! `Autogroup` weighs whole sessions. It cannot distinguish processes of one session: the most
//! favoured of them decides, and the others are reported as sharing it. Admission of a session is
//! checked on its leader: a program run as another user inside of the session is changed with it. A
//! process in a group of a cpu controller has no autogroup, and the kernel limits the rate of
//! changes for all users but root.
//!
//! `Systemd` sets properties of units, and splits sets that share a unit by moving them to scopes
//! of their own beside it (`units.rs`). Weights count inside of the user's slice: other users and
//! system services compete with all of it. No process is taken out of a service, so a set that
//! shares one has no weight. systemd keeps each property that was ever set in a file below `/run`
//! until shutdown, even after it was reset. If systemd no longer answers, nice values are set
//! instead.
//!
//! `Cgroup` creates groups below one delegated group of version 2. Weights count among these
//! groups; processes outside of the delegated group compete with all of them together. Processes
//! that a service manager holds in a unit of its own are not moved, since the unit would lose them.
//! `memory.low` is written up to the delegated group; groups above it are not touched, and without
//! theirs the protection is void. The kernel accounts memory to the group in which it was
//! allocated, so a new group neither protects nor limits earlier memory of its processes. Processes
//! that stay together in `rest` can be limited as one.
//!
//! Memory advice ([`tipme_policy::MemoryAction`]) needs no restore. A process may change its own
//! values at any time; then rule 2 protects them.

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

/// Backend, scope and file locations of the mechanism.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    pub backend: Backend,
    pub strength: Strength,
    /// Mount point of `/proc`.
    pub proc: PathBuf,
    /// Folder of a delegated control group (version 2), required by the backend of that name.
    pub cgroup: Option<PathBuf>,
    /// Path of the journal. A lock file and, briefly, the journal's successor lie beside it.
    pub journal: PathBuf,
    /// Restricts changes to processes that belong to this user and run as this user.
    pub owner: Option<u32>,
    /// Restricts changes to this process and its descendants.
    pub under: Option<Identity>,
}

/// The active mechanism. Dropping it restores everything.
pub struct Mechanism {
    engine: Engine<Linux, FileLog>,
}

impl Mechanism {
    /// Opens the journal, restores the leftovers of a dead predecessor, and gets ready.
    ///
    /// # Errors
    /// Fails if the journal cannot be opened, is unsafe, or belongs to a running mechanism, and if
    /// the backend needs a control group that does not exist.
    pub fn open(config: Config) -> Result<(Mechanism, Restored), MechanismError> {
        let subtree = find_subtree(&config)?;
        let log = FileLog::open(&config.journal)?;
        let world = Linux::new(&config.proc, config.owner, config.under);
        let (ledger, restored) = Ledger::open(world, log)
            .map_err(|source| MechanismError::journal(&config.journal, source))?;
        let mut engine = Engine::new(ledger, config.backend, config.strength);
        engine.subtree = subtree;
        engine.units = find_units(&config)?;
        engine.nice_too = extension().is_some();
        Ok((Mechanism { engine }, restored))
    }

    /// Applies the actions. An empty list retries deferred changes ([`Applied::later`]).
    pub fn apply(&mut self, actions: &[Action]) -> Applied {
        let applied = self.engine.apply(actions);
        self.engine.ledger.finish();
        applied
    }

    /// Changes the strength; [`Strength::Off`] restores everything and keeps the assignments.
    pub fn set_strength(&mut self, strength: Strength) -> Applied {
        let applied = self.engine.set_strength(strength);
        self.engine.ledger.finish();
        applied
    }

    /// Explains the knobs of a process; `None` if it has no role and inherited nothing from a
    /// process with one.
    pub fn explain(&self, who: Identity) -> Option<ProcessExplanation> {
        self.engine.explain(who)
    }

    /// Restores everything and forgets all assignments.
    pub fn restore(&mut self) -> Restored {
        let restored = self.engine.restore();
        self.engine.ledger.finish();
        restored
    }
}

/// Restores the leftovers of a killed mechanism if no new one can be opened. Inherited values of
/// children are left to a mechanism that is opened later.
///
/// # Errors
/// Same as [`Mechanism::open`].
pub fn take_back(journal: &Path, proc: &Path) -> Result<Restored, MechanismError> {
    let log = FileLog::open(journal)?;
    Ledger::take_back_listed(Linux::new(proc, None, None), log)
        .map_err(|source| MechanismError::journal(journal, source))
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
    let root =
        root_above(&path).map_err(|why| MechanismError::Group { path: path.clone(), why })?;
    match (path.to_str(), root.to_str()) {
        (Some(dir), Some(root)) => Ok(Some(Subtree::new(dir.to_owned(), root.to_owned()))),
        _ => Err(MechanismError::Group { path, why: "its name is not UTF-8; name another group" }),
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
    let root = cgroup::root_of(dir)
        .ok_or("it is not a control group; name a delegated one of version 2")?;
    if root == dir {
        Err("it is the root of its hierarchy; name a group below it")
    } else {
        Ok(root)
    }
}
